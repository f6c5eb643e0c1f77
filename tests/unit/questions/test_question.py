"""Questions by flags: their defaults, figures and trials; and the search for a cliff."""

from __future__ import annotations

import random
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firstflight.base.errors import CannotError, FirstFlightError
from firstflight.findings.charts import SquareChart
from firstflight.findings.findings import Finding, Report
from firstflight.findings.quantities import FLAGS
from firstflight.model.predict import predict
from firstflight.parameters import NETWORK, PARAMETERS, RESPONSE, TCP
from firstflight.runs import scenario_file
from firstflight.runs.kinds import NOTHING, Overrides, RunData, Study
from firstflight.runs.results.records import FAIL, SKIPPED
from firstflight.study import registry
from firstflight.study.cliff import findings, search
from firstflight.study.fetches import KIND, read_scenario
from firstflight.study.questions import question
from firstflight.workloads.fetch.figures import grid
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.scenario import varied_parameters
from firstflight.workloads.fetch.scenario.sweep import Sweep
from firstflight.workloads.fetch.trial import Trial
from firstflight.workloads.fetch.record.transfers import computed
from tests.golden import stored, stored_fetches
from tests.golden.answers import DEBIAN_12, GOOD, WITH_FLAGS, by_model, early, trials
from tests.golden.requested import QUESTIONS
from tests.parameters import another

GRID: dict[str, list[Any]] = {  # what zhao2019 asks for, in part
    "rtt_ms": [20, 50, 100], "bandwidth_kbps": [56, 1000], "response_bytes": [9000],
    "initcwnd": [3, 10], "initrwnd": [27], "queue": ["1000"]}


def study(client: str | None = None, **lists: list[Any]) -> Any:
    """The study of a question with these values of parameters."""
    return registry.own_question("own", Overrides(lists, client=client))


def report(**lists: list[Any]) -> Report:
    """The report of a question on GRID and these lists, from records of the golden run of
    zhao2019.
    """
    requested = study("curl", **{**GRID, **lists})
    cells = {replace(trial, scenario="zhao2019") for trial in requested.trials}
    records = [record for record in stored_fetches.stored("zhao2019") if record.trial in cells]
    assert len(records) == len(requested.trials)
    made: Report = requested.report(RunData(Path("own"), stored_fetches.FACTS, records))
    return made


def finding(report: Report, name: str) -> Finding:
    return next(found for found in report.findings if found.name == name)


def test_a_parameter_without_a_flag_has_the_default_that_help_names() -> None:
    small, large = study(rtt_ms=[35]).trials
    assert (small.initcwnd, large.initcwnd, small.initrwnd) == (10, 30, 1000)
    values = {name: getattr(small, name) for name in FLAGS
              if name not in ("load", "initcwnd", "initrwnd", "uplink_kbps", "system")}
    assert values.pop("rtt_ms") == 35
    assert values == {name: FLAGS[name].check(FLAGS[name].parsed(FLAGS[name].default), "")
                      for name in values}
    assert small.uplink_kbps == small.bandwidth_kbps and small.client == "libcurl"
    assert small.system == "here"


QUESTIONS_OF_SERVERS = {
    "tls": Overrides({"chain_bytes": [4000, 9000], "signature": ["ecdsa", "mldsa44"],
                      "http": ["2"], "server": ["nginx"]}),
    "own_server": Overrides({"response_bytes": [1]}, own_server={
        "command": "serve  'a b\\n' {p}", "url_path": "/x?a=\"", "folders": ["/a b"]})}


@pytest.mark.parametrize("name", [*QUESTIONS, *QUESTIONS_OF_SERVERS])
def test_a_question_is_written_so_that_an_equal_one_is_read(name: str) -> None:
    made = question.scenario("own", {**QUESTIONS, **QUESTIONS_OF_SERVERS}[name])
    assert read_scenario(scenario_file.parse("own", made.head.text)) == made


def test_a_question_with_random_loss_has_a_hundred_repeats_by_default() -> None:
    assert len(study(loss_percent=[0, 1]).trials) == 2 + 200
    assert len(registry.own_question("own", Overrides({"loss_percent": [1]}, repeat=3)).trials
               ) == 6


@pytest.mark.parametrize(("lists", "figures"), [
    ({}, [("windows", "window_sweep", "initcwnd", "")]),
    ({"qdisc": ["fifo", "fq"]}, [("bars", "groups", "qdisc", "")]),
    ({"initcwnd": [10]}, [("windows", "window_sweep", "initcwnd", "")]),
    ({"rtt_ms": [20, 50], "bandwidth_kbps": [1e3, 1e4]},
     [("map", "map", "rtt_ms", "bandwidth_kbps")]),
    ({"rtt_ms": [20, 50], "initcwnd": [1, 2, 3, 4, 5, 6, 7]}, [("map", "map", "rtt_ms", "")])])
def test_the_varied_parameters_decide_on_a_questions_figures(
        lists: dict[str, list[Any]], figures: list[tuple[str, ...]]) -> None:
    requested = study(**lists)
    assert requested.whole and [(each.name, each.kind, each.by, each.down) for each in
                            requested.scenario.figures] == [
                                *figures, ("packets", "packets", "", "")]


def test_the_scenario_that_a_question_stores_makes_the_same_trials() -> None:
    """A stored run is read with it again, and resumed by it."""
    requested = registry.own_question("dsl", Overrides(
        {"queue": ["bdp", "20"], "rtt_ms": [0.2], "idle_ms": [10], "congestion_control": ["bbr"],
         "sysctl": ["net.ipv4.tcp_sack=0", "net.ipv4.tcp_rmem=4096 65536 65536"]}))
    again = registry.study_of(scenario_file.of_run("dsl", requested.head.text))
    assert again.trials == requested.trials and {trial.kept for trial in requested.trials} == {1}
    assert again.head == requested.head and requested.head.sysctls[
        "net.ipv4.tcp_rmem"].endswith("65536")


def test_a_map_compares_with_the_window_that_is_listed_first() -> None:
    chart = finding(report(**{"initcwnd": [10, 3]}), "map").chart
    assert isinstance(chart, SquareChart) and chart.maps[0].rows[1][2].value < 0  # type: ignore


def test_a_question_has_a_trial_of_each_combination_of_values() -> None:
    requested = study(rtt_ms=[1, 2], bandwidth_kbps=[1e3, 1e4], qdisc=["fifo", "fq"],
                  initcwnd=[1, 2, 3])
    assert len(requested.trials) == 2 * 2 * 2 * 3


def test_more_maps_than_a_reader_takes_in_are_left_out_with_a_sentence(
        monkeypatch: pytest.MonkeyPatch) -> None:
    assert "maps are shown" not in finding(report(), "map").sentence
    monkeypatch.setattr(grid, "MOST_MAPS", 0)
    limited = finding(report(), "map")
    assert isinstance(limited.chart, SquareChart)
    assert limited.chart.maps == () == limited.tables
    words = " The first 0 of 1 maps are shown, one for each window;"
    assert words in limited.sentence and words in limited.chart.foot


def test_a_maps_cells_are_listed_a_few_times_and_not_for_each_cell(
        monkeypatch: pytest.MonkeyPatch) -> None:
    """The report on a map of 1,024 networks took eleven minutes when they were."""
    listed: list[Sweep] = []
    requested: list[object] = []
    cells, columns = Sweep.cell_values, varied_parameters.requested_columns
    monkeypatch.setattr(Sweep, "cell_values", lambda sweep: (listed.append(sweep), cells(sweep))[1])
    monkeypatch.setattr(varied_parameters, "requested_columns", lambda *given, **more: (
        requested.append(given), columns(*given, **more))[1])
    study = registry.own_question("own", Overrides({
        "rtt_ms": [20, 50, 100, 200], "bandwidth_kbps": [1000, 2000, 5000, 10_000],
        "response_bytes": [15_000, 60_000], "initcwnd": [10, 30]}))
    records = [Record(trial, True, total_ms=trial.rtt_ms * (3 if trial.initcwnd == 10 else 2),
                      verdict="pass") for trial in study.trials]
    listed.clear()
    report = study.report(RunData(Path("own"), stored_fetches.FACTS, records))
    assert report.answer.sentence and len(listed) < 12 and len(requested) < 24


# A cell's trial is the same in any list -----------------------------------------------

# Values that lists are drawn from. Client and server are set for a question, not by lists.
VALUES: dict[str, tuple[Any, ...]] = {
    "rtt_ms": (4, 20.5, 100, 3000), "bandwidth_kbps": (56, 1000, 20_000.5, 10_000_000),
    "uplink_kbps": (28, 1000), "queue": ("1", "100", "50ms", "0.5bdp"),
    "qdisc": ("fifo", "fq", "fq_codel", "cake"), "loss_percent": (0, 1, 5), "jitter_ms": (0, 0.4),
    "initcwnd": (1, 10, 44, 45, 64, 910, 911, 3000), "initrwnd": (2, 44, 45, 64, 400, 3000),
    "congestion_control": ("cubic", "reno", "bbr"), "mss": (1448, 536),
    "response_bytes": (1, 9000, 183_173), "gap_ms": (0, 50), "kept": (1, 2), "idle_ms": (0, 500)}
# Parameters of TLS and of servers are left out, as few others go with them, and so are bursts of
# losses, which need losses.
VALUES |= {name: (row.default, another(row, row.default)) for name, row in PARAMETERS.items()
           if row.quantity.flag and row.subject in (NETWORK, TCP, RESPONSE)
           and name not in (*VALUES, "loss_burst")}


def requested(lists: dict[str, list[Any]]) -> Study:
    made: Study = KIND.study_of(
        question.scenario("own", Overrides(lists, client="libcurl", repeat=2)), NOTHING, 7)
    return made


def settings_by_trial(study: Study) -> dict[Trial, tuple[Any, ...]]:
    """By trial: its job for a worker, and the sysctls of the whole run."""
    return {trial: (trial.job(), sorted(study.head.sysctls.items())) for trial in study.trials}


@pytest.mark.parametrize("seed", range(12))
def test_a_trial_is_the_same_whether_its_values_are_in_lists_or_alone(seed: int) -> None:
    draw = random.Random(seed)
    lists = {name: draw.sample(values, draw.randint(1, min(3, len(values))))
             for name, values in VALUES.items()
             if name == "initcwnd" or draw.random() < 0.4}
    if "request_bytes" in lists:  # with a body other sizes and windows are usual
        lists["request_bytes"] = [size for size in lists["request_bytes"] if size] or [30_000]
        lists.setdefault("response_bytes", [1000])
        lists.setdefault("client_initcwnd", [0])
    else:
        lists.pop("client_initcwnd", None)
    whole = settings_by_trial(requested(lists))
    if "idle_ms" in lists or "kept" not in lists:
        lists.setdefault("kept", [1] if any(lists.get("idle_ms", ())) else [0])
    parts: dict[Trial, tuple[Any, ...]] = {}
    split = max(lists, key=lambda name: len(lists[name]))
    for value in lists[split]:
        parts |= settings_by_trial(requested({**lists, split: [value]}))
    assert parts == whole
    assert len(whole) >= len(lists["initcwnd"]) * 2


# The search for a cliff, to the byte: the measured one, and the model's ---------------

DEBIAN_13 = (3, 5, 0, 0, 0)


@pytest.fixture(autouse=True)
def of_debian_12(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes of a handshake are those of the machine's OpenSSL."""
    monkeypatch.setattr(ssl, "OPENSSL_VERSION_INFO", DEBIAN_12)


# Measured in guests, and by the search itself, on both: the largest chain of one flight. The 22
# bytes that OpenSSL 3.5 sends more move two of them.
@pytest.mark.parametrize(("openssl", "window", "chain"), [
    (DEBIAN_12, 3, 3732), (DEBIAN_12, 10, 12_588), (DEBIAN_12, 20, 26_485),
    (DEBIAN_12, 32, 42_869), (DEBIAN_13, 3, 3710), (DEBIAN_13, 10, 12_566),
    (DEBIAN_13, 20, 26_485), (DEBIAN_13, 32, 42_869)])
def test_the_model_has_the_chains_that_were_measured(
        openssl: tuple[int, ...], window: int, chain: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssl, "OPENSSL_VERSION_INFO", openssl)
    (trial,) = trials(initcwnd=[window])
    for size, round_trips in ((chain, 1), (chain + 1, 2)):
        prediction = predict(computed(replace(trial, chain_bytes=size), {}))
        assert prediction.handshake_round_trips == round_trips


def test_a_search_ends_at_the_byte() -> None:
    requested: list[int] = []

    def measure(some: Sequence[Trial]) -> Mapping[Trial, Record]:
        requested.append(len(some))
        return by_model(some)

    found = search.search(search.CHAIN, trials(initcwnd=[3, 10]), {}, measure)
    assert [(cliff.fits_bytes, cliff.model_bytes) for cliff in found] == [(3732, 3732),
                                                                          (12_588, 12_588)]
    assert max(requested) <= 2 * search.AT_ONCE and len(requested) <= 6
    for cliff in found:  # each has the records of the last size that fits and of the next one
        assert cliff.record is not None and cliff.record.trial.chain_bytes == cliff.fits_bytes
        assert cliff.beyond is not None and cliff.fits_bytes is not None
        assert cliff.beyond.trial.chain_bytes == cliff.fits_bytes + 1


def test_a_measured_cliff_that_differs_from_the_models_is_found() -> None:
    (found,) = search.search(search.CHAIN, trials(initcwnd=[10]), {},
                            lambda some: by_model(some, shift=5))
    assert (found.fits_bytes, found.model_bytes) == (12_583, 12_588)


def test_the_cliff_of_another_server_is_measured_without_one_of_the_model() -> None:
    requested = trials(server=["nginx"], initcwnd=[10])
    (found,) = search.search(search.CHAIN, requested, {}, lambda some: by_model(some, shift=15))
    assert (found.fits_bytes, found.model_bytes) == (12_573, None)
    with pytest.raises(CannotError, match="nginx is missing"):
        search.search(search.CHAIN, requested, {}, lambda some: {
            trial: replace(GOOD, trial=trial, verdict=SKIPPED, verdict_reason="nginx is missing")
            for trial in some})


@pytest.mark.parametrize("what", [search.CHAIN, search.RESPONSE, search.EARLY])
@pytest.mark.parametrize("http", ["1.1", "2"])
def test_a_cliffs_sentence_has_only_what_was_observed_on_the_wire(what: str, http: str) -> None:
    """Of another server, without an observed flight, the limit is all, with a record or without."""
    trial = replace(GOOD.trial, server="nginx", http=http, chain_bytes=0)
    unseen = replace(GOOD, trial=trial, flight_segments=None, flight_bytes=None,
                     request_segments=None)
    for record in (None, unseen):
        found = search.Cliff(trial, 3000, None, record=record, beyond=record)
        (line,) = findings.sentences(what, found)
        assert " is 3000 bytes, measured of the server nginx" in line
        assert line.endswith(f"over HTTP/{http}")
    seen = replace(unseen, flight_bytes=3600, flight_segments=3, request_segments=3)
    lines = list(findings.sentences(what, search.Cliff(trial, 3000, None, record=seen)))
    assert len(lines) == (1 if what == search.RESPONSE else 2)


def test_early_data_has_its_cliff_under_the_clients_window() -> None:
    study = registry.cliff_question(search.EARLY, Overrides(WITH_FLAGS))
    (trial,) = study.trials
    assert (trial.server, trial.resumed, trial.system) == ("nginx", 1, "debian13")
    ((agrees, lines, _),) = registry.cliffs(search.EARLY, study, early)
    assert agrees and "13656 bytes" in lines[0]
    (all_fit,) = search.search(search.EARLY, study.trials, {}, lambda some: {
        each: replace(record, request_round_trips=1) for each, record in early(some).items()})
    assert all_fit.is_open and all_fit.fits_bytes == 16_384


def test_a_varied_parameter_other_than_the_window_is_named() -> None:
    requested = trials(initcwnd=[3, 10], rtt_ms=[20, 100], signature=["ed25519"])
    assert sorted(set(findings.distinctions(requested))) == ["RTT 100 ms", "RTT 20 ms"]


def test_parameters_that_a_line_names_anyway_are_not_named_twice() -> None:
    """The line names the window, what follows from the window, the server, and its HTTP."""
    (trial,) = trials(initcwnd=[10])
    other = replace(trial, initcwnd=200, initrwnd=200, queue_packets=300, server="nginx", http="2")
    assert findings.distinctions([trial, other]) == ["", ""]


def test_a_responses_cliff_is_the_window_less_headers_and_tickets() -> None:
    """The window is ten segments of 1448 bytes. Over TLS, headers are those of one record, too."""
    (plain,) = search.search(search.RESPONSE, trials(search.RESPONSE, initcwnd=[10]), {}, by_model)
    assert plain.fits_bytes == plain.model_bytes == 14_480 - 61
    (secure,) = search.search(search.RESPONSE, trials(
        search.RESPONSE, initcwnd=[10], chain_bytes=[2000]), {}, by_model)
    # Two tickets are sent before the response, in a segment each: eight segments are left.
    assert secure.fits_bytes == secure.model_bytes == 8 * 1448 - 22 - 61


@pytest.mark.parametrize(("shift", "expected"), [(0, True), (500, False)])
def test_a_cliff_agrees_with_the_model_only_at_the_models_byte(
        shift: int, expected: bool) -> None:
    study = registry.cliff_question(search.CHAIN, Overrides({**WITH_FLAGS, "initcwnd": [3]}))
    (agrees, *_), *_ = registry.cliffs(search.CHAIN, study, lambda some: by_model(some, shift))
    assert agrees is expected


# Measured in guests, at 50 ms: the largest response that leaves at once after 600 s of silence.
@pytest.mark.parametrize(("restart", "fits"), [("1", 14_438), ("0", 89_734)])
def test_the_cliff_after_a_pause_depends_on_the_restart(restart: str, fits: int) -> None:
    """A pause needs no flags for the kept connection and for the client that can pause."""
    sysctl = f"net.ipv4.tcp_slow_start_after_idle={restart}"
    question = registry.cliff_question(search.RESPONSE, Overrides(
        {"rtt_ms": [50], "initcwnd": [10], "idle_ms": [600_000],
         "sysctl": [sysctl]}))
    (trial,) = question.trials
    assert (trial.client, trial.kept) == ("libcurl", 1)
    sysctls = question.head.sysctls
    (found,) = search.search(search.RESPONSE, question.trials, sysctls,
                            lambda some: by_model(some, sysctls=sysctls))
    assert found.fits_bytes == found.model_bytes == fits


def test_a_cliffs_search_ends_at_the_first_size_that_does_not_fit() -> None:
    """After a pause more may fit where less did not: the search ends at the first cliff."""
    (trial,) = trials(search.RESPONSE, initcwnd=[10])

    def measure(some: Sequence[Trial]) -> Mapping[Trial, Record]:
        return {each: replace(GOOD, trial=each, response_round_trips=1 + (
            20_000 < each.response_bytes < 600_000)) for each in some}
    (found,) = search.search(search.RESPONSE, [trial], {}, measure)
    assert found.fits_bytes == 20_000 and found.again_bytes is not None
    assert list(findings.sentences(search.RESPONSE, found))[-1] == (
        f"  a larger response, of {found.again_bytes} bytes, costs none either: what was sent"
        " before it was larger, too, and had opened the window wider")


def test_a_cliff_beyond_either_end_of_the_range_is_reported_as_open() -> None:
    question = registry.cliff_question(search.CHAIN, Overrides({**WITH_FLAGS, "initcwnd": [100]}))
    sysctls = question.head.sysctls  # buffers as large as that window needs
    (all_fit,) = search.search(search.CHAIN, question.trials, sysctls,
                              lambda some: by_model(some, sysctls=sysctls))
    assert all_fit.is_open and "96000 bytes or more" in next(
        findings.sentences(search.CHAIN, all_fit))
    (none,) = search.search(search.CHAIN, trials(initcwnd=[1], intermediates=[3]), {}, by_model)
    assert none.fits_bytes is None and none.model_bytes is None


@pytest.mark.parametrize("broken", [
    lambda record: replace(record, verdict=FAIL, verdict_reason="RTT: observed 1 ms, expected 2"),
    lambda record: replace(record, handshake_round_trips=None)])
def test_a_trial_that_does_not_count_ends_the_search(broken: Callable[[Record], Record]) -> None:
    with pytest.raises(FirstFlightError, match="^--find-cliff: rtt100-bw100000"):
        search.search(search.CHAIN, trials(initcwnd=[3]), {}, lambda some: {
            trial: broken(record) for trial, record in by_model(some).items()})


# The model's cliff --------------------------------------------------------------------

@pytest.mark.parametrize(("least", "limit"), [(1, 14_419), (14_419, 14_419), (14_420, None)])
def test_the_models_cliff_is_ten_segments_less_the_head(least: int, limit: int | None) -> None:
    """Ten segments have 14,480 bytes, of which the head takes 61. There is no cliff in a range that
    begins beyond.
    """
    target = replace(search.TARGETS[search.RESPONSE], least=lambda _: least)
    assert search._model_limit(target, stored.load("iw10").trial, {}) == limit
