"""Pages: what files and flags may request, the trials that follow, and the client's requests."""

from __future__ import annotations

import json
import select
import socket
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings, strategies

from firstflight.base import PROJECT
from firstflight.base.errors import UsageError
from firstflight.base.words import format_toml
from firstflight.runs import batches, scenario_file, schema
from firstflight.runs.kinds import NOTHING, Overrides, Study
from firstflight.runs.results.records import RowReader, RowWriter, columns_of
from firstflight.study import registry
from firstflight.study.pages import KIND
from firstflight.study.questions import page as question
from firstflight.testbed import site_store
from firstflight.testbed.hosts import libcurl
from firstflight.testbed.hosts.page_client import Browser
from firstflight.workloads.page import objects, scenario
from firstflight.workloads.page.har import SavedPage
from firstflight.workloads.page.objects import PageObject
from firstflight.workloads.page.record import PageRecord
from firstflight.workloads.page.scenario import TABLES, Page
from firstflight.workloads.page.trial import PageTrial
from tests.golden import stored_page
from tests.unit.page import saved

# Parts of a scenario of pages: three equal objects besides the document, one network, one figure.
MADE = '[[page]]\nname = "p"\nobjects = 3\nbytes = 6000\n'
SWEEP = ('[[sweep]]\nname = "s"\npage = "p"\nrtt_ms = 40\nbandwidth_kbps = 5000\n'
         'initcwnd = [3, 10]\n')
FIGURE = '[[figure]]\nname = "f"\ntitle = "t"\nkind = "times"\nsweep = "s"\n'


def study(page: str = MADE, sweep: str = SWEEP, figure: str = FIGURE,
          overrides: Overrides = NOTHING) -> Study:
    """The study of a scenario with these parts. overrides: what flags replace."""
    text = f'# c\nkind = "page"\ntitle = "t"\nsource = "s"\n{page}{sweep}{figure}'
    return KIND.study(scenario_file.parse("mine", text), overrides, 1)


def listed(*rows: dict[str, Any]) -> str:
    """The part of a scenario that lists a page's objects. A row has the keys of one object."""
    lines = ["[[page]]", 'name = "p"']
    for row in rows:
        lines.append("[[page.object]]")
        for key, value in row.items():
            is_bool = isinstance(value, bool)
            lines.append(f"{key} = {str(value).lower() if is_bool else format_toml(value)}")
    return "\n".join(lines) + "\n"


def test_a_page_is_measured_under_each_window_of_each_setting() -> None:
    trials = study(sweep=SWEEP + 'server = "nginx"\nconnections = [1, 6]\n').trials
    assert [(trial.server, trial.connections, trial.initcwnd) for trial in trials] == [
        ("nginx", connections, window) for connections in (1, 6) for window in (3, 10)]
    assert {trial.server for trial in study().trials} == {"builtin"}
    assert len({trial.id for trial in trials}) == 4


def test_a_page_over_http_2_has_one_connection_to_a_host_tls_and_nginx() -> None:
    swept = SWEEP + 'http = ["1.1", "2"]\nconnections = [1, 6]\n'
    made = study(sweep=swept).trials
    # Each network has two trials, one for each window.
    assert [(trial.http, trial.connections) for trial in made[::2]] == [
        ("1.1", 1), ("2", 1), ("1.1", 6)]
    assert {(trial.chain_bytes, trial.server) for trial in made} == {(4000, "nginx")}
    assert len({trial.id for trial in made}) == len(made)
    (sweep,) = study(sweep=swept).scenario.sweeps
    assert sweep.count == len(made)
    assert made[0].job()["tls"]["chain_bytes"] == 4000

    (with_chain, *_) = study(sweep=swept + "chain_bytes = [9000]\n").trials
    by_flag = study(overrides=Overrides({"http": ["2"]})).trials
    assert with_chain.chain_bytes == 9000
    assert {(trial.chain_bytes, trial.server) for trial in by_flag} == {(4000, "nginx")}
    assert {trial.chain_bytes for trial in study().trials} == {0}


def test_a_page_that_needs_debian_13_runs_there() -> None:
    lists = {"chain_bytes": [15_000], "signature": ["mldsa44"]}
    assert {trial.system for trial in study(overrides=Overrides(lists)).trials} == {"debian13"}
    assert study(overrides=Overrides(lists)).trials[0].job()["system"] == "debian13"


def test_losses_are_drawn_once_for_all_windows() -> None:
    trials = study(sweep=SWEEP + "loss_percent = [0, 2]\nrepeat_with_loss = 3\n").trials
    assert len(trials) == 2 + 3 * 2
    seeds = {trial.repeat: trial.seed for trial in trials if trial.loss_percent}
    assert len(set(seeds.values())) == 3
    assert all(trial.seed == seeds[trial.repeat] for trial in trials if trial.loss_percent)


def test_parse_times_are_drawn_once_for_all_windows() -> None:
    made = study(sweep=SWEEP + "spread_ms = 20\nrepeat = 3\n").trials
    assert len(made) == 3 * 2 and all(trial.seed == 0 for trial in made)
    pages = {trial.repeat: trial.objects for trial in made}
    assert len(set(pages.values())) == 3
    assert all(trial.objects == pages[trial.repeat] for trial in made)
    document, *others = made[0].requested
    assert document.parse_ms == 0
    assert all(0 < page_object.parse_ms < 20 for page_object in others)


@pytest.mark.parametrize(("length", "packets"), [
    ("auto", 100), ("7", 7), ("100ms", 42), ("0.5bdp", 9), ("2bdp", 34)])
def test_a_queues_length_becomes_packets(length: str, packets: int) -> None:
    """5 Mbit/s for 40 ms are 25 kB, 16.5 full frames."""
    (first, *_) = study(sweep=SWEEP + f'queue = ["{length}"]\n').trials
    assert first.queue_packets == packets


def test_equal_objects_are_named_evenly_along_the_document() -> None:
    assert objects.equal_objects(3, 6000, 8000) == (
        PageObject(8000), PageObject(6000, 1, 2000), PageObject(6000, 1, 4000),
        PageObject(6000, 1, 6000))


def test_a_listed_object_has_defaults_for_the_keys_it_lacks() -> None:
    page = listed({"bytes": 9000, "early": True}, {"bytes": 5000},
                  {"bytes": 10, "named_by": 2, "parse_ms": 1.5, "think_ms": 2, "host": 3},
                  {"bytes": 10, "named_by": 1, "at_byte": 0})
    assert study(page).trials[0].requested == (
        PageObject(9000, is_early=True), PageObject(5000, 1, 9000),
        PageObject(10, 2, 5000, 1.5, 2.0, 3), PageObject(10, 1, 0))


def test_objects_with_a_count_are_named_evenly_between_two_bytes() -> None:
    page = listed({"bytes": 9000}, {"bytes": 50, "count": 3, "at_byte": 1000, "until_byte": 8000},
                  {"bytes": 10, "named_by": 4})
    assert study(page).trials[0].requested == (
        PageObject(9000), PageObject(50, 1, 1000), PageObject(50, 1, 4500), PageObject(50, 1, 8000),
        PageObject(10, 4, 50))


COUNTS = strategies.integers(1, 20_000)
TIMES = strategies.sampled_from((0.0, 0.5, 3.25, 1000.0))


@settings(max_examples=50, deadline=None)
@given(strategies.lists(strategies.tuples(COUNTS, COUNTS, COUNTS, TIMES, TIMES,
                                          strategies.integers(0, 255), strategies.booleans()),
                        min_size=1, max_size=30))
def test_the_objects_of_a_page_are_read_back_from_rows_and_batches(
        rows: list[tuple[Any, ...]]) -> None:
    page: list[PageObject] = []
    for number, (size, by, at, parse_ms, think_ms, host, early) in enumerate(rows):
        by = by % number + 1 if number else 0
        page.append(PageObject(size, by, min(at, page[by - 1].size_bytes) if by else 0, parse_ms,
                               think_ms, host, early))
    if objects.fault_of(page):
        page = page[:1]
    columns = columns_of(PageRecord)
    trial = replace(stored_page.run().records[0].trial, objects=tuple(page))
    row = RowWriter(PageRecord, columns).row(PageRecord(trial, True))
    reader = RowReader(PageRecord, columns)
    assert reader.record(row).trial == trial
    sent = json.loads(json.dumps(batches.named_values(trial)))
    assert batches.trial_of(PageTrial, sent) == trial
    for text in ("x", "[]", "[5]", "[{}]", '[{"bytes": 0}]', '[{"bytes": 5, "url": 1}]', "[" * 9,
                 '[{"bytes": 5, "named_by": 1}]', '[{"bytes": 5}, {"bytes": 5, "named_by": 2}]'):
        with pytest.raises(ValueError, match="^objects"):
            reader.record([text if column == "objects" else cell
                           for column, cell in zip(columns, row)])


@pytest.mark.parametrize(("page", "words"), [
    (listed({"bytes": 0}), "a response of 0 bytes is out of range"),
    (listed({"bytes": 10, "named_by": 1}), "object 1: is the document, which no object names"),
    (listed({"bytes": 10}, {"bytes": 10, "named_by": 2}), "object 2: named_by = 2: has to be"),
    (listed({"bytes": 10}, {"bytes": 10, "named_by": 3}, {"bytes": 9, "named_by": 2}),
     "object 2: named_by = 3: has to be the number of an object above it"),
    (listed({"bytes": 10}, {"bytes": 10, "at_byte": 11}), "object 1, which names it, has 10 bytes"),
    (listed({"bytes": 10}, {"bytes": 10, "host": 256}), "the number of a host of 256"),
    (listed({"bytes": 10}, {"bytes": 10, "count": 3}), "count goes with at_byte and until_byte"),
    (listed({"bytes": 10}, {"bytes": 10, "until_byte": 3}), "count goes with at_byte"),
    (listed({"bytes": 10}, {"bytes": 9, "count": 2, "at_byte": 9, "until_byte": 3}), "count goes"),
    (listed({"bytes": 10}, {"bytes": 9, "count": 2, "at_byte": 0, "until_byte": 11}),
     "object 1, which names it, has 10 bytes"),
    (listed({"bytes": 10, "parse_ms": -1}), "of -1 ms is out of range"),
    (listed({"bytes": 10, "parse": 1}), "unknown key 'parse' (did you mean 'parse_ms'?)"),
    (listed(*[{"bytes": 10}] * 1001), "a page of 1,001 objects; at most 1,000 fit"),
    (listed({"bytes": 31_000_000}), "a page of 31,000,000 bytes; at most 30,000,000 fit"),
    (MADE + "[[page.object]]\nbytes = 3\n", "either objects = N with bytes, or [[object]]s"),
    ('[[page]]\nname = "p"\n', "either objects = N with bytes"),
    ('[[page]]\nname = "p"\nobjects = 3\n', "bytes is missing"),
    ('[[page]]\nname = "q"\nobjects = 3\nbytes = 9\n', "there is no [[page]] 'p'"),
    ('[[page]]\nname = "p"\nobjects = 1000\nbytes = 9\n', "of 1000 is out of range")])
def test_an_invalid_page_is_refused_in_one_line(page: str, words: str) -> None:
    with pytest.raises(UsageError) as raised:
        study(page)
    assert words in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize(("sweep", "figure", "words"), [
    (SWEEP + 'http = ["3"]\n', FIGURE, "unknown '3'"),
    (SWEEP + 'http = ["2"]\nchain_bytes = [0]\n', FIGURE, "browsers speak HTTP/2 over TLS only"),
    (SWEEP + 'http = ["1.1", "2"]\nserver = "builtin"\n', FIGURE, "speaks HTTP/1.1 only"),
    (SWEEP + "chain_bytes = [399]\n", FIGURE, "too small for 1 certificate with ed25519"),
    (SWEEP + "resumed = [1]\n", FIGURE, "resumed (resumed, --resumed) only with TLS"),
    (SWEEP + "chain_bytes = [900]\nresumed = 1\ntickets = 0\n", FIGURE, "without a ticket"),
    (SWEEP + 'chain_bytes = [15000]\nsignature = "mldsa44"\nsystem = "here"\n', FIGURE,
     "mldsa44 needs Debian 13's programs"),
    (SWEEP + 'http = ["2"]\nbuffer_bytes = [0]\n', FIGURE, "needs the server builtin, not nginx"),
    (SWEEP + "early_data_bytes = [1]\n", FIGURE, "unknown key 'early_data_bytes'"),
    (SWEEP + "connections = [0]\n", FIGURE, "connections at once of 0"),
    (SWEEP + 'server = "apache"\n', FIGURE, "unknown 'apache'"),
    (SWEEP, FIGURE + "windows = [3]\n",
     'a figure of kind "times" compares all that are measured, and names none'),
    (SWEEP, FIGURE.replace("times", "waterfall") + "windows = [3, 10, 5]\n",
     "compares 0 to 2, the baseline first"),
    (SWEEP, FIGURE.replace("times", "waterfall") + "windows = [4]\n", "4 is not measured"),
    (SWEEP, FIGURE.replace('"s"', '"x"'), "sweep: unknown 'x'"), ("", FIGURE, "[[sweep]]"),
    (SWEEP, FIGURE + "[[claim]]\nfigure = 'f'\n", "unknown key 'claim'")])
def test_an_invalid_sweep_or_figure_is_refused_in_one_line(sweep: str, figure: str,
                                                           words: str) -> None:
    with pytest.raises(UsageError) as raised:
        study(sweep=sweep, figure=figure)
    assert words in str(raised.value) and "\n" not in str(raised.value)


def test_a_think_time_with_nginx_is_refused() -> None:
    page = listed({"bytes": 10}, {"bytes": 10, "think_ms": 5})
    with pytest.raises(UsageError, match="think_ms needs the server builtin"):
        study(page, SWEEP + 'server = "nginx"\n')
    assert study(page).trials[0].job()["objects"][1] == [10, 1, 10, 0.0, 5.0, 0]


@pytest.mark.parametrize(("lists", "words"), [
    ({"early_data_bytes": [1]}, "a page's client sends no early data"),
    ({"loss_burst": [4]}, "bursts of losses (loss_burst, --burst-loss) need random loss"),
    ({"server": ["own"]}, "server: a page comes from builtin or nginx, not from own"),
    ({"http": ["2"], "chain_bytes": [0, 4000]}, "browsers speak HTTP/2 over TLS only")])
def test_flags_that_a_page_does_not_take_are_refused(lists: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as raised:
        study(overrides=Overrides(lists))
    assert words in str(raised.value)


def test_flags_replace_the_values_of_a_files_sweep() -> None:
    made = study(overrides=Overrides({"rtt_ms": [20], "initcwnd": [5], "http": ["1.1"],
                                      "uplink_kbps": [700]}))
    (trial,) = made.trials
    assert (trial.rtt_ms, trial.initcwnd, trial.uplink_kbps) == (20, 5, 700)
    assert not made.whole


def test_a_page_takes_every_parameter_of_network_and_tcp_that_has_a_flag() -> None:
    """The job of a page has each of these parameters."""
    lists: dict[str, list[Any]] = {
        "rtt_ms": [20, 80], "uplink_kbps": [700, 900], "jitter_ms": [0, 3], "loss_percent": [2],
        "loss_burst": [3], "qdisc": ["fifo", "cake"], "mss": [536, 1448], "initrwnd": [45, 90],
        "congestion_control": ["reno"], "initcwnd": [5], "module_parameter": ["tcp_cubic.beta=900"]}
    trials = study(overrides=Overrides(lists, repeat=1)).trials
    assert len(trials) == 2 ** 6 and len({trial.id for trial in trials}) == len(trials)
    job = trials[-1].job()
    down = job["network"]["down"]
    assert (down["delay_ms"], down["jitter_ms"], down["loss_percent"], down["loss_burst"],
            down["qdisc"], job["network"]["up"]["rate_kbps"]) == (40, 3, 2, 3, "cake", 900)
    assert (job["initrwnd"], job["congestion_control"]) == (90, "reno")
    assert trials[0].job()["options"] == {"advertised_mss": 548}
    assert job["module_parameters"] == ["tcp_cubic.beta=900"] and trials[0].seed


def test_a_key_of_an_earlier_grammar_is_refused_with_its_new_name() -> None:
    for old, new in (("queue_packets", "queue"), ("repeat_lossless", "repeat")):
        with pytest.raises(UsageError, match=f"'{old}' is called '{new}' now"):
            study(sweep=SWEEP + f"{old} = 7\n")


def test_the_example_of_a_page_has_every_key() -> None:
    text = (PROJECT / "docs/examples/page.toml").read_text(encoding="utf-8")
    for table in (scenario.Page, scenario.ListedObject, scenario.Certificate, scenario.PageSweep,
                  scenario.PageFigure):
        for key in schema.keys_of(table):
            assert f"{key} = " in text or f"[[page.{key}]]" in text, key


# Pages of a browser -----------------------------------------------------------------

BROWSED = SWEEP + ('client = ["libcurl", "chromium"]\nchain_bytes = 4000\nsignature = "ecdsa"\n'
                   'server = "nginx"\n')


def browsed(folder: Path | str, path: str = "") -> Study:
    """A study of a page with objects for libcurl and a folder for Chromium.

    path: of the scenario's file.
    """
    text = (f'# c\nkind = "page"\ntitle = "t"\nsource = "s"\n{MADE}folder = "{folder}"\n'
            f"{BROWSED}{FIGURE}")
    return KIND.study(scenario_file.parse("mine", text, path), NOTHING, 1)


def test_both_clients_load_one_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "site").mkdir()
    (tmp_path / "site/index.html").write_text("<p>x</p>")
    made = browsed("site", str(tmp_path / "mine.toml"))
    curl, chromium = made.trials[:2], made.trials[2:]
    assert [(trial.client, trial.initcwnd) for trial in made.trials] == [
        ("libcurl", 3), ("libcurl", 10), ("chromium", 3), ("chromium", 10)]
    assert all(len(trial.objects) == 4 and not trial.site for trial in curl)
    assert all(not trial.objects and trial.site_bytes == 16 for trial in chromium)
    assert not site_store.folder().exists()  # nothing is written before a trial is measured
    assert site_store.get(chromium[0].site).url == "https://page.test/"


def test_a_page_that_is_not_installed_is_skipped_with_what_installs_it(tmp_path: Path) -> None:
    made = browsed(tmp_path / "none")
    missing = site_store.missing([trial.job() for trial in made.trials])
    assert [trial.initcwnd for trial in made.trials if trial.id in missing] == [3, 10]
    assert {*missing.values()} == {
        "its page is not installed: ./install.sh --with-browser brings it"}
    with pytest.raises(UsageError, match="none: cannot be read"):
        browsed("none", str(tmp_path / "mine.toml"))


# Pages by flags, and the scenario that is written for them ----------------------------

def trials(lists: dict[str, list[Any]] | None = None, path: Path | None = None,
           repeat: int | None = None, **page: Any) -> tuple[Any, ...]:
    """The trials of a question about a page.

    lists: values of parameters. path: of the page's file. page: other values of the page; without
    page and path it has three objects.
    """
    page = page if page or path else {"objects": 3}
    page.setdefault("objects", None)
    return tuple(registry.page_question("own", path, page, Overrides(lists or {}, repeat)).trials)


def test_a_page_without_flags_has_the_defaults_of_the_help() -> None:
    small, large = trials()
    assert (small.initcwnd, large.initcwnd) == (10, 30)
    assert (small.rtt_ms, small.bandwidth_kbps, small.uplink_kbps, small.queue_packets) == (
        50, 10_000, 10_000, 100)
    assert (small.http, small.connections, small.server) == ("1.1", 6, "builtin")
    assert small.requested == (PageObject(15_000), *(
        PageObject(15_000, 1, round(15_000 * place / 4)) for place in (1, 2, 3)))


def test_every_flag_reaches_the_page() -> None:
    made = trials({"rtt_ms": [20], "bandwidth_kbps": [900], "uplink_kbps": [300], "queue": ["7"],
                   "loss_percent": [2], "initcwnd": [4], "initrwnd": [70], "http": ["1.1"],
                   "congestion_control": ["reno"], "response_bytes": [5000]}, repeat=2,
                  objects=2, document_bytes=9000, connections=(1, 3))
    assert [(trial.http, trial.connections, trial.repeat) for trial in made] == [
        ("1.1", 1, 1), ("1.1", 1, 2), ("1.1", 3, 1), ("1.1", 3, 2)]
    first = made[0]
    assert (first.rtt_ms, first.bandwidth_kbps, first.uplink_kbps, first.queue_packets,
            first.loss_percent, first.initcwnd, first.initrwnd, first.congestion_control) == (
                20, 900, 300, 7, 2, 4, 70, "reno")
    assert [page_object.size_bytes for page_object in first.requested] == [9000, 5000, 5000]


def test_a_list_of_objects_and_a_har_are_read_as_pages(tmp_path: Path) -> None:
    path = tmp_path / "list.toml"
    path.write_text("[[object]]\nbytes = 900\n[[object]]\nbytes = 50\nat_byte = 20\n")
    assert trials(path=path)[0].requested == (PageObject(900), PageObject(50, 1, 20))
    path = tmp_path / "page"
    path.write_bytes(saved.har())
    assert len(trials({"http": ["1.1"]}, path)[0].requested) == 5


def test_a_har_is_measured_as_it_was_loaded_unless_flags_change_it(tmp_path: Path) -> None:
    path = tmp_path / "page.har"

    def ways(content: bytes, **lists: list[Any]) -> set[tuple[str, int, str]]:
        """Version of HTTP, bytes of the chain and server of the trials of a HAR."""
        path.write_bytes(content)
        return {(trial.http, trial.chain_bytes, trial.server) for trial in trials(lists, path)}

    older = saved.har().replace(b'"h2"', b'"http/1.1"')
    assert ways(saved.har()) == {("2", 4000, "nginx")}
    assert ways(saved.har(), http=["1.1"]) == {("1.1", 4000, "builtin")}
    assert ways(saved.har(), http=["1.1"], chain_bytes=[0]) == {("1.1", 0, "builtin")}
    assert ways(saved.har(), chain_bytes=[900]) == {("2", 900, "nginx")}
    assert ways(older) == {("1.1", 4000, "builtin")}
    assert ways(older.replace(b"https:", b"http:")) == {("1.1", 0, "builtin")}
    unknown = saved.har().replace(b'"h2"', b'"unknown"')
    with pytest.raises(UsageError, match="version of HTTP is unknown.*--http 2"):
        ways(unknown)
    assert ways(unknown, http=["2"]) == {("2", 4000, "nginx")}

    def note(**lists: list[Any]) -> str:
        return question.scenario("own", question.RequestedPage(path, None),
                                 Overrides({"http": ["1.1"], **lists})).head.note

    assert note().startswith("Measured over TLS with a chain of 4000 bytes, as a HAR has no chain")
    assert note(chain_bytes=[0]).startswith("Measured without TLS, whose handshake takes each")
    assert note(chain_bytes=[900]).startswith("2 of 5 objects")


HOSTILE = 'of "a\\", \n[[sweep]]\nname = \'x\' # \x00 \x7f \u2028 ü \U0001f600 """ \\u0041'
LISTED = (PageObject(9000, is_early=True), PageObject(50, 1, 0, 0.125, 20.0, 3, True),
          PageObject(700, 1, 9000), PageObject(7, 2, 50))


@pytest.mark.parametrize(("lists", "page"), [
    ({}, question.RequestedPage(None, 3)),
    ({"rtt_ms": [0.2], "bandwidth_kbps": [900], "uplink_kbps": [300.5], "queue": ["7", "0.5bdp"],
      "loss_percent": [0, 2], "initcwnd": [4, 10, 32], "initrwnd": [70], "http": ["1.1"],
      "congestion_control": ["reno", "bbr"], "server": ["nginx"], "response_bytes": [5000],
      "sysctl": ["net.ipv4.tcp_sack=0", "net.ipv4.tcp_rmem=4096 65536 65536"]},
     question.RequestedPage(None, 2, 9000, (1, 3))),
    ({"initcwnd": [4]}, question.RequestedPage(Path("x"), None))])
def test_a_written_page_is_read_back_equal(lists: dict[str, list[Any]],
                                           page: question.RequestedPage,
                                           monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(question.page_files, "read", lambda path, mine=(): SavedPage(
        LISTED, HOSTILE, note=HOSTILE))
    made = question.scenario("own", page, Overrides(lists))
    assert made.head.note == (HOSTILE if page.file else "")
    assert (HOSTILE in made.head.about) == (page.file is not None)
    assert TABLES.read(scenario_file.parse("own", made.head.text)) == made


def test_hostile_names_stay_within_their_strings() -> None:
    """A hostile title, source or note adds no table and no key to the file."""
    made = question.scenario("own", question.RequestedPage(None, 3), Overrides({}))
    head = replace(made.head, title=HOSTILE, source=HOSTILE, note=HOSTILE, text="")
    made = replace(made, head=head)
    text = question.text(made, Page("own", 3, question.OBJECT_BYTES, question.OBJECT_BYTES))
    assert TABLES.read(scenario_file.parse("own", text)) == replace(
        made, head=replace(head, text=text))


# When the page's client hands its transfers to libcurl --------------------------------

# Rows of a job: bytes, naming object, at which byte, parse and think time in ms, host.
OBJECTS = [[900, 0, 0, 0, 0, 0], [5, 1, 1, 0, 0, 1], [6, 1, 1, 0, 0, 1], [7, 1, 1, 0, 0, 2],
           [8, 1, 1, 0, 0, 2]]


class Handle:
    """A transfer of libcurl. is_open: whether its connection has been established."""

    def __init__(self) -> None:
        self.is_open = False
        self.paused: list[int] = []
        self.values: dict[int, Any] = {}

    @property
    def url(self) -> str:
        return str(self.values[libcurl.URL])

    @property
    def number(self) -> int:
        """The number, from 1, of the object that it fetches. The size in the URL names it."""
        size = int(self.url.rpartition("/")[2])
        return 1 + next(place for place, row in enumerate(OBJECTS) if row[0] == size)

    def setopt(self, option: int, value: Any) -> None:
        self.values[option] = value

    def getinfo(self, info: int) -> float:
        if info == libcurl.INFO_HTTP_VERSION:
            return libcurl.CURL_HTTP_VERSION_2_0
        return 0.2 if self.is_open else 0.0

    def pause(self, bits: int) -> None:
        self.paused.append(bits)

    def close(self) -> None:
        self.is_open = False


@pytest.fixture()
def handed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers, from 1, of the objects that libcurl was given, in order."""
    numbers: list[int] = []
    multi = SimpleNamespace(setopt=lambda *_: None,
                            add_handle=lambda handle: numbers.append(handle.number),
                            remove_handle=lambda _: None, socket_action=lambda *_: (0, 3))
    monkeypatch.setattr(libcurl, "CurlMulti", lambda: multi)
    monkeypatch.setattr(libcurl, "Curl", Handle)
    monkeypatch.setattr(libcurl, "version", lambda: "7.88.1")
    return numbers


def started(http: str, **more: Any) -> Browser:
    """A browser that has requested all objects. more: of its request."""
    browser = Browser({"address": "10.0.0.2", "port": 80, "http": http, "connections": 6,
                       "deadline_s": 60, "objects": OBJECTS, **more})
    for download in browser.downloads:
        browser._start(download)
    return browser


def test_over_http2_further_requests_wait_for_their_hosts_connection(handed: list[int]) -> None:
    browser = started("2")
    assert handed == [1, 2, 4] and not browser._release()
    browser.downloads[3].handle.is_open = True
    assert browser._release() and handed == [1, 2, 4, 5]
    browser.downloads[1].handle = None  # object 2 has ended, so object 3 opens a connection
    assert browser._release() and handed == [1, 2, 4, 5, 3]
    before_ns = time.monotonic_ns()
    browser._start(browser.downloads[2])
    assert handed[-1] == 3 and not browser._release()
    assert [download.start_ns >= before_ns for download in browser.downloads] == [
        False, False, True, False, False]


def test_over_http2_hosts_with_one_certificate_share_a_connection(handed: list[int]) -> None:
    certified = {"certificates": [0, 0, 2], "tls": {"trusted": ["a", "c"], "curves": "",
                                                    "apart_s": 0}}
    browser = started("2", **certified)
    assert handed == [1, 4], "2 and 3 wait for the document's connection, 5 for that of host 2"
    assert [download.handle.url for download in browser.downloads[:2]] == [
        "https://10.0.0.2:80/900", "https://10.0.0.2:80/5"]
    assert browser.downloads[1].handle.values[libcurl.HTTPHEADER] == ["Host: host1.page.example:80"]
    assert [download.handle.values[libcurl.CAINFO] for download in browser.downloads] == [
        "a", "a", "a", "c", "c"]
    browser.downloads[0].handle.is_open = True
    assert browser._release() and handed == [1, 4, 2, 3]
    handed.clear()
    unshared = started("1.1", **certified).downloads
    assert handed == [1, 2, 3, 4, 5]
    assert unshared[1].handle.url == "https://host1.page.example:80/5"


def test_the_library_is_called_only_for_sockets_that_are_ready(handed: list[int]) -> None:
    """Looking at each of hundreds of transfers would take milliseconds of the guest's clock."""
    browser = started("1.1")
    acted: list[int] = []
    browser.multi.socket_action = lambda fd, _: acted.append(fd)
    browser.watched = {7, 8, 9}
    browser._work([(8, select.EPOLLIN), (5, select.EPOLLIN)])  # 5 is not watched any more
    assert acted == [8]
    browser._set_curl_timer(0)
    browser._work([])
    assert acted == [8, libcurl.SOCKET_TIMEOUT]


def test_each_transfer_connects_before_the_next_one_is_added(
        handed: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    acted: list[int] = []
    monkeypatch.setattr(libcurl.CurlMulti(), "socket_action",
                        lambda *_: acted.append(len(handed)))
    started("1.1")
    assert acted == [1, 2, 3, 4, 5]


def test_each_connection_takes_the_next_port(handed: list[int]) -> None:
    browser, ports = started("1.1"), []
    browser.ports = iter([0, 0])
    for _ in range(2):
        with socket.socket() as opened:
            assert browser._bind(opened.fileno(), 0) == libcurl.SOCKOPT_OK
            ports.append(opened.getsockname()[1])  # it is bound, and still open
    assert all(ports) and not list(browser.ports)


def test_over_http_1_every_request_starts_at_once(handed: list[int]) -> None:
    browser = started("1.1")
    assert handed == [1, 2, 3, 4, 5] and not browser._release()


@pytest.mark.parametrize(("http", "version", "reads"), [
    ("2", "7.88.1", True), ("2", "8.14.1", True), ("2", "8.23.0", False), ("1.1", "7.88.1", False)])
def test_over_http2_the_end_of_a_transfer_lets_another_one_of_its_host_read(
        handed: list[int], monkeypatch: pytest.MonkeyPatch, http: str, version: str,
        reads: bool) -> None:
    """libcurl 7.88 may hold back what it has read after the data of the transfer that ended."""
    monkeypatch.setattr(libcurl, "version", lambda: version)
    browser = started(http)
    handles = [download.handle for download in browser.downloads]
    for handle in handles:
        handle.is_open = True
    browser._release()
    acted: list[int] = []
    browser.watched = {7}
    browser.multi.socket_action = lambda fd, _: acted.append(fd)
    ended = [handles[3]]
    browser.multi.info_read = lambda: (0, [ended.pop()] if ended else [], [])
    assert browser._take_ended()
    assert [handle.paused for handle in handles] == [[], [], [], [], [1, 0] if reads else []]
    browser._work([])
    assert acted == ([7, 7] if reads else [])
    assert not browser._take_ended() and handles[4].paused == ([1, 0] if reads else [])
