"""Load scenarios: what is asked, what is refused, and what stored runs give."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from lab.comparison import DIRECTION_ONLY, NOT_REPRODUCED, WORDS
from lab.errors import UsageError
from lab.findings import as_markdown, as_text
from lab.load import analysis
from lab.load.analysis import MissingRuns, Runs
from lab.load.connections import ConnectionsError, joined, read, read_bottleneck
from lab.load.findings import findings, of_cells, statement
from lab.load.record import LoadRecord, expected_arrivals, judge
from lab.load.scenario import Claim, LoadScenario, apply, expand, load, parsed, window_name
from lab.load.trial import Clients, LoadTrial, distribution, mean_bytes, wire_bytes
from lab.records import FAIL, PASS, read_records
from lab.scenario import Overrides, names
from lab.study import LOAD, kind_of, study_of
from lab.tcp.packets import PCAP_HEADER

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "load"
RUN = GOLDEN / "run"
LOADS = [name for name in names() if kind_of(name) == LOAD]

MINIMAL: dict[str, Any] = {
    "kind": "load", "title": "t", "source": "s",
    "defaults": {"bandwidth_kbps": 20000, "rtt_ms": 300, "queue_bdp": [1.0],
                 "queue": ["droptail"], "load": [0.95], "response_bytes": [50000],
                 "connections": [1], "initcwnd": [3, 10], "initrwnd": 100,
                 "congestion_control": ["cubic"], "paced": [False], "clients": 2, "servers": 2,
                 "duration_s": 300, "warmup_s": 30, "cooldown_s": 20, "repeat": 2},
    "sweep": [{"name": "only"}]}


def made(**defaults: Any) -> LoadScenario:
    return parsed("made", {**MINIMAL, "defaults": {**MINIMAL["defaults"], **defaults}}, "# c\n")


@pytest.fixture(name="scenario")
def _scenario() -> LoadScenario:
    return load("small", GOLDEN)


@pytest.fixture(name="records")
def _records() -> list[LoadRecord]:
    return read_records(RUN / "trials.csv", LoadRecord)


@dataclass(frozen=True)
class Seen:
    """A stored run as an engine would bring it back."""

    trial_id: str = ""
    content: dict[str, Any] = field(default_factory=lambda: {"ended_servers": []})
    client_pcap: bytes = b""
    server_pcap: bytes = b""
    files: dict[str, bytes] = field(default_factory=dict)


@pytest.fixture(name="raw")
def _raw() -> Seen:
    packets = {side: (GOLDEN / "raw" / f"{side}.pcap").read_bytes() for side in
               ("client", "server")}
    return Seen(client_pcap=packets["client"].removeprefix(PCAP_HEADER),
                server_pcap=packets["server"].removeprefix(PCAP_HEADER),
                files={path.name: path.read_bytes() for path in (GOLDEN / "raw").glob("*.csv")})


@pytest.fixture(name="trial")
def _trial(scenario: LoadScenario) -> LoadTrial:
    """The one that raw/ is of."""
    return expand(scenario, Overrides(), 1)[0]


# What is asked -------------------------------------------------------------------

def test_a_response_is_counted_with_all_its_headers() -> None:
    # 50 042 bytes with HTTP's headers in 35 segments; SYN-ACK, two acknowledgements, a FIN in one.
    assert wire_bytes(50000) == 50042 + 35 * 66 + 74 + 2 * 66
    assert wire_bytes(1) == 38 + 1 + 66 + 74 + 2 * 66


@pytest.mark.parametrize("name", LOADS)
def test_every_load_scenario_expands_and_offers_what_it_says(name: str) -> None:
    trials = study_of(name).trials
    assert len({trial.id for trial in trials}) == len(trials)
    for trial in trials[:6]:
        assert isinstance(trial, LoadTrial)
        hosts = trial.hosts
        assert sum(host.share for host in hosts) == pytest.approx(1, abs=1e-4)
        per_s = sum(each["arrivals_per_s"] * each["connections"]
                    for each in trial.job()["traffic"])
        assert per_s == pytest.approx(trial.responses_per_s, rel=1e-4)


def test_windows_of_a_repeat_share_their_seed_and_repeats_do_not() -> None:
    trials = expand(made(), Overrides(), 1)
    seeds = {(trial.window, trial.repeat): trial.seed for trial in trials}
    assert seeds["3", 1] == seeds["10", 1] != seeds["3", 2] == seeds["10", 2]
    assert {trial.seed for trial in expand(made(), Overrides(), 2)}.isdisjoint(seeds.values())


def test_the_default_buffer_is_one_bdp_of_500_packets() -> None:
    assert expand(made(), Overrides(), 1)[0].queue_packets == 500


def test_sizes_of_a_service_have_the_papers_mean() -> None:
    assert mean_bytes(distribution("web_search")) == pytest.approx(10_300, rel=0.02)


def test_clients_are_read_back_from_their_column() -> None:
    for clients in (Clients(3, 0.5, 300), Clients(10, 0.25, 120.5, 512, 1.5)):
        assert Clients.of(str(clients)) == clients


def test_a_mix_is_named_by_its_windows() -> None:
    assert window_name(((10, 1.0),)) == "10"
    assert window_name(((3, 0.5), (10, 0.5))) == "3+10"
    assert window_name(((3, 0.9), (10, 0.1))) == "3*0.9+10*0.1"


@pytest.mark.parametrize(("wrong", "said"), [
    ({"load": [1.2]}, "offered load of 1.2 is out of range"),
    ({"load": [0]}, "offered load of 0 is out of range"),
    ({"queue_bdp": [0]}, "a bottleneck without a buffer passes nothing on"),
    ({"clients": 60}, "hosts are asked for; a guest has memory for 30"),
    ({"mixes": [[[3, 0.5], [10, 0.4]]]}, "0.5 + 0.4 sum to 0.9, not to 1"),
    ({"mixes": [[3, 10]]}, "list of [initial window, share]"),
    ({"initcwnd": []}, "has no initcwnd and no mixes"),
    ({"initcwnd": [0]}, "initial window of 0"),
    ({"warmup_s": 200, "cooldown_s": 100}, "leave nothing of 300 s"),
    ({"queue": ["red"]}, "unknown 'red'"),
    ({"sizes": "web_serch"}, "web_serch"),
    ({"paced": [1]}, "true and false"),
    ({"load": 0.5}, "has to be a list"),
    ({"connections": [0]}, "connections at once of 0"),
    ({"lod": [1]}, "unknown key 'lod' (did you mean 'load'?)"),
])
def test_what_cannot_be_is_refused_in_one_line(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as raised:
        made(**wrong)
    assert said in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize(("overrides", "said"), [
    (Overrides(load=[1.5]), "--load: an offered load of 1.5"),
    (Overrides(client="curl"), "--client"),
    (Overrides(rtt_ms=[20, 50]), "one value at a time"),
])
def test_flags_that_do_not_fit_a_load_scenario_are_refused(overrides: Overrides,
                                                          said: str) -> None:
    with pytest.raises(UsageError, match=said):
        expand(made(), overrides, 1)


def test_a_fetch_scenario_takes_no_load() -> None:
    with pytest.raises(UsageError, match="--load"):
        study_of("zhao2019", Overrides(load=[0.5]))


def test_flags_replace_what_the_scenario_says() -> None:
    changed = apply(made(), Overrides(load=[0.5], initcwnd=[16], repeat=1, response_bytes=[9000],
                                      rtt_ms=[100], bandwidth_kbps=[5000]))
    (trial,) = expand(changed, Overrides(), 1)
    assert (trial.load, trial.window, trial.response_bytes) == (0.5, "16", 9000)
    assert {host.rtt_ms for host in trial.hosts} == {100} and trial.bandwidth_kbps == 5000


# What a run left ---------------------------------------------------------------------

def test_every_connection_of_a_stored_run_is_accounted_for(raw: Seen, trial: LoadTrial) -> None:
    everything = read(joined(raw.files))
    asked = raw.files["client1.csv"].count(b"\n") - 1
    assert len(everything) == asked
    assert sum(len(everything.ended(end)) for end in ("ok", "failed", "open")) == asked
    record = judge(trial, raw)
    assert (record.verdict, record.verdict_reason, record.ok) == (PASS, "", True)
    assert record.arrivals == (record.completed or 0) + (record.failed or 0) + (
        record.unfinished or 0)
    # An empty link at load 0.5: nothing is faster than handshake, request and three flights.
    assert record.p10_ms is not None and record.p10_ms > 3 * 60


def test_a_run_without_its_records_is_a_failure(trial: LoadTrial) -> None:
    record = judge(trial, Seen())
    assert not record.ok and not record.counts and record.mean_ms is None


def test_a_server_that_died_makes_the_run_a_failure(raw: Seen, trial: LoadTrial) -> None:
    record = judge(trial, replace(raw, content={"ended_servers": [1]}))
    assert not record.ok and "server 1 of 1 died" in record.error and record.verdict == FAIL


@pytest.mark.parametrize(("changes", "said"), [
    ({"clients": "iw4*1@60ms"}, "initial window of client 1: seen 3, asked 4"),
    ({"load": 0.9}, "arrivals: seen"),
])
def test_the_verdict_sees_what_was_not_asked(raw: Seen, trial: LoadTrial,
                                             changes: dict[str, Any], said: str) -> None:
    record = judge(replace(trial, **changes), raw)
    assert record.verdict == FAIL and said in record.verdict_reason


def test_failed_connections_fail_the_verdict_and_no_percentile_gets_faster(
        raw: Seen, trial: LoadTrial) -> None:
    lines = raw.files["client1.csv"].decode().splitlines()
    for place in range(20, 40):  # each would have been among the fastest, had it counted
        cells = lines[place].split(",")
        cells[3], cells[6], cells[7] = "", "failed", "Connection reset by peer"
        lines[place] = ",".join(cells)
    broken = replace(raw, files={**raw.files, "client1.csv": "\n".join(lines).encode()})
    whole, failed = judge(trial, raw), judge(trial, broken)
    assert failed.verdict == FAIL and "20 of 130 connections failed" in failed.verdict_reason
    assert failed.p90_ms is None and (failed.p50_ms or 0) >= (whole.p50_ms or 0)


def test_damaged_files_are_told(raw: Seen) -> None:
    content = joined(raw.files)
    for damaged in (content[:-20], b"not gzip", b""):
        with pytest.raises(ConnectionsError, match="measure again"):
            read(damaged)
    with pytest.raises(ConnectionsError, match="measure again"):
        read_bottleneck(b"time_s,bytes\n1,x\n")


def test_joined_files_are_the_same_bytes_again(raw: Seen) -> None:
    assert joined(raw.files) == joined(dict(reversed(list(raw.files.items()))))


# What runs say -----------------------------------------------------------------------

def test_an_estimate_has_students_interval() -> None:
    found = analysis.estimate([1.0, 2.0, 3.0])
    assert found.value == 2 and found.interval is not None
    # t(0.975, 2) = 4.303; s = 1, n = 3
    assert found.interval[1] - found.value == pytest.approx(4.3027 / math.sqrt(3), rel=1e-3)
    assert analysis.estimate([5.0]).interval is None


def test_gains_are_taken_seed_by_seed() -> None:
    gain = analysis.paired({1: 100.0, 2: 200.0}, {1: 90.0, 2: 190.0})
    assert gain is not None and gain.absolute.value == 10
    assert gain.absolute.interval == pytest.approx((10, 10))  # no luck of the draw is left
    assert gain.percent.value == pytest.approx(100 * 10 / 150)
    assert analysis.paired({1: 100.0}, {1: None}) is None


def test_jains_index() -> None:
    assert analysis.jain([5, 5]) == 1
    assert analysis.jain([1, 0]) == 0.5


def test_both_windows_meet_the_same_arrivals(scenario: LoadScenario,
                                             records: list[LoadRecord]) -> None:
    figure = next(figure for figure in scenario.figures if figure.name == "distribution")
    runs = Runs.of(figure, records, RUN)
    for repeat, record in runs.at("3").items():
        other = runs.connections(runs.at("10")[repeat])
        assert runs.connections(record).arrival_s.tolist() == other.arrival_s.tolist()


def test_all_figures_of_stored_runs_have_tables_and_words(scenario: LoadScenario,
                                                          records: list[LoadRecord]) -> None:
    found = findings(scenario, records, RUN)
    assert [finding.name for finding in found] == [figure.name for figure in scenario.figures]
    for finding in found:
        for table in finding.tables:
            assert table.rows and all(len(row) == len(table.columns) for row in table.rows)
    assert found[0].statements[0].word in WORDS
    assert "Faster." in as_text(found) and "| IW 10 |" in as_markdown(found)


def test_a_claim_needs_its_interval_on_its_side(scenario: LoadScenario,
                                                records: list[LoadRecord]) -> None:
    runs = Runs.of(scenario.figures[0], records, RUN)
    # Ten segments at once into a buffer of 25 packets lose more than three, in every cell.
    claim = Claim("gain", "x", ("3", "10"), "retransmission_percent", "more", {}, "")
    words = {expects: statement(runs, replace(claim, expects=expects)).word
             for expects in ("less", "more", "alike")}
    assert words["more"] != NOT_REPRODUCED
    assert words["less"] == words["alike"] == NOT_REPRODUCED
    # Two seeds that differ widely: the mean alone does not reproduce a claim.
    assert statement(runs, replace(claim, quantity="mean_ms")).word == DIRECTION_ONLY


def test_a_claim_may_be_on_a_part_of_a_mix(scenario: LoadScenario,
                                           records: list[LoadRecord]) -> None:
    figure = next(figure for figure in scenario.figures if figure.name == "mix")
    runs = Runs.of(figure, records, RUN)
    claim = Claim("mix", "x", ("3 in 3+10", "10 in 3+10"), "mean_ms", "alike", {}, "")
    groups = {group.name: group for group in analysis.groups_of_mix(runs, "3+10")}
    found = statement(runs, claim).found
    for name in ("IW 3 in the mix", "IW 10 in the mix"):
        assert f"{groups[name].mean.value:.0f}" in found


def test_a_part_of_a_scenario_shows_its_runs_and_what_the_windows_change(
        records: list[LoadRecord]) -> None:
    some = [record for record in records if record.trial.part == "one"]
    runs_table, changes = of_cells(list(reversed(some))).tables
    assert len(runs_table.rows) == len(some)
    assert [row[0].partition(":")[0] for row in changes.rows] == ["IW 10 instead of 3",
                                                                  "IW 3+10 instead of 3"]
    gain = analysis.gain(*({record.trial.repeat: record for record in some
                            if record.trial.window == window} for window in ("3", "10")),
                         "mean_ms")
    assert gain is not None and changes.rows[0][3].startswith(
        f"{gain.percent.value:.1f}".replace("-", "−"))
    # One window alone changes nothing; runs that do not count are shown and not compared.
    assert len(of_cells(some[:1]).tables) == 1
    assert len(of_cells([replace(record, verdict=FAIL) for record in some]).tables) == 1


def test_runs_whose_verdict_failed_enter_no_figure(scenario: LoadScenario,
                                                   records: list[LoadRecord]) -> None:
    failed = [replace(record, verdict=FAIL) if record.trial.window == "10" else record
              for record in records]
    with pytest.raises(MissingRuns, match="IW|window 10"):
        Runs.of(scenario.figures[0], failed, RUN)
    one = [replace(record, verdict=FAIL) if record.trial.repeat == 1 else record
           for record in records]
    assert Runs.of(scenario.figures[0], one, RUN).left_out > 0


def test_the_expected_arrivals_of_pages_vary_more() -> None:
    single = expand(made(), Overrides(), 1)[0]
    pages = expand(made(connections=[12]), Overrides(), 1)[0]
    assert expected_arrivals(single)[0] == pytest.approx(expected_arrivals(pages)[0])
    assert expected_arrivals(pages)[1] == pytest.approx(
        expected_arrivals(single)[1] * math.sqrt(12))


def test_every_kind_of_figure_is_drawn_the_same_twice(monkeypatch: pytest.MonkeyPatch,
                                                      scenario: LoadScenario,
                                                      tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    import plot
    import plot_load
    monkeypatch.setattr(plot_load, "load", lambda _: scenario)
    monkeypatch.setattr(plot, "kind_of", lambda _: LOAD)
    first = plot.draw_findings("small", RUN, tmp_path / "a", ("png",))
    second = plot.draw_findings("small", RUN, tmp_path / "b", ("png",))
    assert [path.name for path in first] == [f"small_{figure.name}.png"
                                             for figure in scenario.figures]
    for one, other in zip(first, second):
        assert one.stat().st_size > 8000 and one.read_bytes() == other.read_bytes()
