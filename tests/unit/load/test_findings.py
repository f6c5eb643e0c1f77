"""Findings on load runs: numbers, tables, charts, and claims at each side of their limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy
import pytest

from firstflight.base.errors import FirstFlightError, UsageError
from firstflight.findings.charts import Line, LineChart
from firstflight.findings.claims import (DIRECTION, NOT_MEASURED, NOT_REPRODUCED, REPRODUCED,
                                         UNDECIDED)
from firstflight.net.headers import ACK, SYN
from firstflight.runs import scenario_file
from firstflight.runs.kinds import Overrides, RunData
from firstflight.runs.results.records import FAIL
from firstflight.study.loads import KIND, START_S
from firstflight.wire.exchange import read_exchanges
from firstflight.workloads.load import analysis, charts, findings, tables
from firstflight.workloads.load.analysis import MissingRuns, Runs
from firstflight.workloads.load.record import LoadRecord, join_rows, parse_connections, wire_flights
from firstflight.workloads.load.scenario import OF_GROUPS, OF_RUNS, Compared, LoadClaim, LoadFigure
from firstflight.workloads.load.verify import judge_load
from tests.golden import stored_load
from tests.golden.answers import stated
from tests.golden.stored_load import GOLDEN, RUN
from tests.unit.load.test_verify import RAW, TRIAL, edited
from tests.unit.tcp.conversation import MSS, Conversation, capture

# Numbers of a figure's runs -----------------------------------------------------------

FIGURES = {figure.name: figure for figure in stored_load.study().scenario.figures}


@pytest.fixture(name="records", scope="module")
def _records() -> list[LoadRecord]:
    return list(stored_load.run().records)


def runs_of(figure: LoadFigure, records: list[LoadRecord]) -> Runs:
    """The runs of a figure among these records, whose files are in the stored run."""
    return Runs.of_figure(figure, records, RUN)


def test_jains_index_is_1_for_equal_shares_and_a_half_where_one_of_two_has_all() -> None:
    assert analysis.jain([5, 5]) == 1
    assert analysis.jain([1, 0]) == 0.5


def test_both_windows_meet_the_same_arrivals(records: list[LoadRecord]) -> None:
    runs = runs_of(FIGURES["distribution"], records)
    for repeat, record in runs.at("3").items():
        other = runs.connections(runs.at("10")[repeat])
        assert runs.connections(record).arrival_s.tolist() == other.arrival_s.tolist()


def test_the_chart_of_a_mix_has_the_savings_that_its_statements_name(
        records: list[LoadRecord]) -> None:
    """They are the savings of the larger window within the mix, and where all servers have it."""
    (shown,) = [finding for finding in stored_load.report().findings if finding.name == "mix"]
    assert isinstance(shown.chart, LineChart)
    _, compared, groups = shown.chart.columns[0]
    # A line without a name has the mean of the line before it; means stand left of the first tick.
    means = {line.name or before.name: line.y[0]
             for before, line in zip(compared.lines, compared.lines[1:]) if line.x[0] < 1}
    within, everywhere = [value.value for statement in shown.statements
                          for value in statement.numbers]
    assert means == {"IW 10 in the mix": pytest.approx(within.value),
                     "IW 10 everywhere": pytest.approx(everywhere.value)}
    assert compared.y_ends == groups.y_ends is not None, "both plots have savings in percent"


def test_groups_of_a_mix_have_all_its_connections(records: list[LoadRecord]) -> None:
    runs = runs_of(FIGURES["mix"], records)
    found = analysis.mixes(runs)
    assert list(found.alone) == ["3", "10"] and list(found.groups) == ["3+10"]
    parts = found.groups["3+10"]
    assert [part.window.name for part in parts] == ["3", "10"]
    assert sum(part.count for part in parts) == analysis.all_connections(runs, "3+10").count


def test_without_the_handshake_every_percentile_is_earlier(records: list[LoadRecord]) -> None:
    runs = runs_of(FIGURES["distribution"], records)
    for with_it, without in zip(analysis.distributions(runs),
                                analysis.distributions(runs, with_handshake=False)):
        assert with_it.mean.value - without.mean.value > 60  # the RTT in ms
        assert (with_it.count, with_it.retransmission) == (without.count, without.retransmission)


def test_runs_whose_verdict_failed_enter_no_figure(records: list[LoadRecord]) -> None:
    failed = [replace(record, verdict=FAIL) if record.trial.window == "10" else record
              for record in records]
    with pytest.raises(MissingRuns, match="window 10"):
        runs_of(FIGURES["gain"], failed)
    first_failed = [replace(record, verdict=FAIL) if record.trial.repeat == 1 else record
                    for record in records]
    runs = runs_of(FIGURES["gain"], first_failed)
    assert runs.excluded == 4 and {record.trial.repeat for record in runs.records} == {2}


def test_runs_that_an_axis_does_not_distinguish_are_refused(records: list[LoadRecord]) -> None:
    runs = runs_of(replace(FIGURES["gain"], by="queue_bdp"), records)
    with pytest.raises(MissingRuns, match="say by which axis they differ"):
        analysis.points(runs)


def test_a_missing_file_of_a_run_is_named(records: list[LoadRecord]) -> None:
    runs = Runs.of_figure(FIGURES["distribution"], records, RUN / "nowhere")
    for read in (runs.connections, runs.queue):
        with pytest.raises(FirstFlightError, match="nowhere.*cannot be read"):
            read(records[0])


def test_windows_without_a_common_seed_or_common_arrivals_are_refused(
        records: list[LoadRecord]) -> None:
    hit = next(figure for figure in FIGURES.values() if figure.kind == "hit")
    # Of the first window only repeat 2 counts, of the second one only repeat 1.
    failed = ((hit.windows[0], 1), (hit.windows[1], 2))
    without_common_seed = [
        replace(record, verdict=FAIL) if (record.trial.window, record.trial.repeat) in failed
        else record for record in records]
    with pytest.raises(MissingRuns, match="^hit: no seed was measured with both windows at 0"):
        analysis.hits(runs_of(hit, without_common_seed))
    shorter = [replace(record, trial=replace(record.trial, duration_s=4.0))
               if record.trial.window == hit.windows[1] else record for record in records]
    with pytest.raises(MissingRuns, match="^hit: small-.*-iw3-1 and small-.*-iw10-1 had other"):
        analysis.hits(runs_of(hit, shorter))


def test_a_transfer_with_one_retransmitted_byte_is_hit(records: list[LoadRecord]) -> None:
    hit = next(figure for figure in FIGURES.values() if figure.kind == "hit")
    runs, with_one_byte = runs_of(hit, records), runs_of(hit, records)
    for record in records:
        connections = runs.connections(record)
        with_one_byte._read[record.trial.id] = replace(
            connections, retransmitted_bytes=numpy.minimum(connections.retransmitted_bytes, 1))
    found = analysis.hits(with_one_byte)
    assert found == analysis.hits(runs) and found[1].same_count > found[0].same_count > 0


# Savings of seeds, and runs without connections ---------------------------------------

ALL_CONNECTIONS = parse_connections(join_rows(RAW.files))
NO_CONNECTIONS = ALL_CONNECTIONS.select(numpy.zeros(len(ALL_CONNECTIONS), dtype=bool))
STUDY = stored_load.study()


def test_only_seeds_measured_with_both_windows_are_compared() -> None:
    gain = analysis.paired({1: 2.0, 2: 4.0}, {2: 3.0, 3: 9.0})
    assert gain is not None
    assert (gain.absolute.value, gain.percent.value, gain.absolute.n) == (1, 25, 1)
    assert analysis.paired({1: 2.0}, {2: 2.0}) is analysis.paired({1: 2.0}, {1: None}) is None


def test_without_connections_there_is_no_distribution() -> None:
    assert NO_CONNECTIONS.retransmission_percent == 0
    assert NO_CONNECTIONS.percentile_of_all_ms(50) is None
    for by_seed in ({}, {1: ALL_CONNECTIONS, 2: NO_CONNECTIONS}):
        with pytest.raises(MissingRuns, match="IW 3: no connection completed"):
            analysis.distribution("IW 3", "3", by_seed)


def test_a_claim_on_an_unmeasured_column_says_that_no_run_measured_it() -> None:
    records = [replace(record, p99_ms=None) for record in stored_load.run().records]
    figure = next(figure for figure in STUDY.scenario.figures if figure.kind == "gain")
    claim = LoadClaim(figure="gain", says="x", compares=(Compared("3"), Compared("10")),
                      metric="p99_ms", expects="less")
    statement = findings.judge_claim(Runs.of_figure(figure, records, RUN), claim)
    assert statement.measured == "no run measured it."


# One run -----------------------------------------------------------------------------

@pytest.mark.parametrize(("happens", "counted"), [
    (lambda talk: talk, True),
    (lambda talk: talk.flight(1, at_ms=500), False),  # a retransmission
    (lambda talk: talk.flight(3, at_ms=600), False),  # a timer's probe
    (lambda talk: talk.send(320, True, ACK, seq=1 + 3 * MSS, ack=96, payload=MSS, lost=True),
     False),
    (lambda talk: talk.send(50.5, True, SYN | ACK, ack=1), False)])  # a second SYN-ACK
def test_only_first_flights_without_losses_count(happens: Any, counted: bool) -> None:
    talk = happens(Conversation().handshake().flight(0, 1, 2).acknowledge(700, 3))
    flights = wire_flights(read_exchanges(capture(talk.client), capture(talk.server)))
    assert list(flights.values()) == ([[3]] if counted else [])


def test_hit_transfers_are_a_share_of_completed_ones() -> None:
    record = judge_load(TRIAL,
                        edited(RAW, "server1.csv", slice(40, 53), retransmitted_bytes="1448"))[0]
    assert record.completed == 130 and record.hit_percent == 10


def test_a_queue_holds_one_packet_at_least() -> None:
    (sweep, *_) = STUDY.scenario.sweeps
    values = {"bandwidth_kbps": 5000, "rtt_ms": 60, "queue_bdp": 1e-6}
    assert sweep.nearest_packets(values) == 1
    assert sweep.nearest_packets({**values, "queue_bdp": 4 * 1514 / (5000 * 60 / 8)}) == 4


def test_the_time_of_a_run_is_estimated_by_connections_and_segments() -> None:
    """Progress shows this time. Every run has the start of a guest in addition."""
    def after_start_s(**more: Any) -> float:
        return STUDY.kind.guest_s(replace(TRIAL, **more)) - START_S

    usual_s = after_start_s()
    assert after_start_s(duration_s=2 * TRIAL.duration_s) == pytest.approx(2 * usual_s)
    assert usual_s > 0
    assert after_start_s(load=TRIAL.load / 2) == pytest.approx(usual_s / 2)
    # The load grows with the size, so these runs have about equally many connections.
    small, middle, large = (after_start_s(response_bytes=size, load=size / 1e6)
                            for size in (10_000, 20_000, 30_000))
    assert middle - small == pytest.approx(large - middle, rel=0.05) and small < middle


# Tables, charts and claims ------------------------------------------------------------

SCENARIO = stored_load.study().scenario
CLAIM = LoadClaim(figure="gain", says="x", compares=(Compared("3"), Compared("10")),
                  metric="retransmission_percent", expects="more")


# Claims ------------------------------------------------------------------------------

def test_a_claim_holds_only_where_its_interval_lies_on_its_side(records: list[LoadRecord]) -> None:
    runs = Runs.of_figure(FIGURES["gain"], records, RUN)
    # Ten segments at once into a buffer of 25 packets lose more than three, in every cell.
    words = {expects: findings.judge_claim(runs, replace(CLAIM, expects=expects)).outcome
             for expects in ("less", "more", "alike")}
    assert words["more"] != NOT_REPRODUCED
    assert words["less"] == words["alike"] == NOT_REPRODUCED
    # Two seeds that differ widely leave it open.
    assert findings.judge_claim(runs, replace(CLAIM, metric="mean_ms")).outcome == UNDECIDED


def test_a_claim_may_be_on_some_cells_only(records: list[LoadRecord]) -> None:
    runs = Runs.of_figure(FIGURES["gain"], records, RUN)
    full = findings.judge_claim(runs, replace(CLAIM, where=(("load", (0.9,)),)))
    gain = analysis.gain(runs.at("3", load=0.9), runs.at("10", load=0.9),
                         "retransmission_percent")
    assert gain is not None and full.outcome == DIRECTION
    assert f"from {gain.base.value:.3f} ±" in full.measured and "cells" not in full.measured
    nowhere = findings.judge_claim(runs, replace(CLAIM, where=(("load", (0.7,)),)))
    assert (nowhere.measured, nowhere.outcome) == ("no run measured it.", NOT_MEASURED)


def test_a_claim_may_be_on_every_number_of_a_run() -> None:
    records = [replace(record, **{name: 2.0 + record.trial.repeat for name in OF_RUNS})
               for record in stored_load.run().records if isinstance(record, LoadRecord)]
    runs = Runs.of_figure(FIGURES["gain"], records, RUN)
    assert {*OF_GROUPS} <= {*OF_RUNS}
    for name in OF_RUNS:
        found = findings.judge_claim(runs, replace(CLAIM, metric=name)).measured
        assert " with IW 10 instead of 3" in found, name


def test_a_claim_may_be_on_a_part_of_a_mix(records: list[LoadRecord]) -> None:
    runs = Runs.of_figure(FIGURES["mix"], records, RUN)
    claim = replace(CLAIM, figure="mix", compares=(Compared("3+10", 3), Compared("3+10", 10)),
                    metric="mean_ms", expects="alike")
    sentence = findings.judge_claim(runs, claim).measured
    assert sentence.startswith("the mean completion time ")
    for group in analysis.groups_of_mix(runs, "3+10"):
        assert f"{group.mean.value:.0f}" in sentence


# Findings on some runs of a scenario -------------------------------------------------

def test_a_row_names_what_distinguishes_its_cell(records: list[LoadRecord]) -> None:
    some = [record for record in records if record.trial.part == "one"]
    for field, other, ending in (("rtt_ms", 80.0, "RTT 80 ms"), ("connections", 2, "at once 2"),
                                 ("bandwidth_kbps", 9e3, "bandwidth 9000 kbit/s"),
                                 ("congestion_control", "reno", ", reno"),
                                 ("qdisc", "fq", "cubic paced by fq"),
                                 ("qdisc", "cake", "cubic through cake"),
                                 ("mss", 536, "segment 536 bytes"),
                                 ("loss_percent", 1.5, "random loss towards the client 1.5 %"),
                                 ("sysctl", "net.ipv4.tcp_sack=0", "net.ipv4.tcp_sack=0"),
                                 ("part", "two", ": two, load 0.9, 15000 B, queue 25"),
                                 ("load", 0.7, ": one, load 0.7, 15000 B, queue 25"),
                                 ("response_bytes", 99, ": one, load 0.9, 99 B, queue 25"),
                                 ("queue_packets", 50, ": one, load 0.9, 15000 B, queue 50")):
        changed = [replace(record, trial=replace(record.trial, **{field: other}))
                   for record in some]
        _, changes = findings.finding_of_part([*some, *changed]).tables
        names = [str(row[0]) for row in changes.rows]
        assert len(names) == len(set(names)) == 4
        assert sum(name.endswith(ending) for name in names) == 2


def test_a_partial_study_reports_its_runs() -> None:
    partial = KIND.study(scenario_file.read(GOLDEN / "small.toml"), Overrides({"initcwnd": [3]}))
    report = partial.report(replace(stored_load.run(), records=[
        record for record in stored_load.run().records if record.trial.window == "3"]))
    (finding,) = report.findings
    assert (finding.name, len(finding.tables), len(finding.tables[0].rows)) == ("runs", 1, 6)


def test_a_figure_without_runs_says_which_are_missing(records: list[LoadRecord]) -> None:
    some = [record for record in records if record.trial.part == "one"]
    by_name = {finding.name: finding for finding in
               findings.findings(SCENARIO, RunData(RUN, {}, some))}
    assert "no run with the window 3 counts" in by_name["gain"].missing
    assert by_name["gain"].chart is None and by_name["gain"].tables == ()
    assert by_name["distribution"].missing == ""


# Charts ------------------------------------------------------------------------------

def test_a_chart_has_a_legend_only_where_it_has_several_lines(records: list[LoadRecord]) -> None:
    runs = Runs.of_figure(FIGURES["gain"], records, RUN)
    of_windows = analysis.points(runs)
    one_line = [replace(point, window="", series="") for point in of_windows]
    another_line = [replace(point, window="", series="other") for point in of_windows]
    assert charts.gain(runs, of_windows).legend
    assert not charts.gain(runs, one_line).legend
    assert charts.gain(runs, one_line + another_line).legend


@pytest.mark.parametrize(("values", "ends"), [
    ([15.0, 25.0, 38.0], (0.0, 38.0)), ([], (0.0, 0.0)), ([-3.0, -2.0], (-3.0, 0.0)),
    ([10.0, 25.0, -17.0, -120.0], (-17.0, 25.0)),  # the 99.9th percentiles of ietf78_fairness
    ([10.0, 25.0, -17.0, -120.0, 65.0], (-17.0, 65.0)), ([20.0, 30.0, 500.0, -400.0], (0.0, 30.0))])
def test_an_axis_is_as_long_as_its_values_without_those_far_from_all_others(
        values: list[float], ends: tuple[float, float]) -> None:
    assert charts._without_outliers(values) == ends


def test_an_interval_makes_an_axis_no_more_than_three_times_as_long() -> None:
    line = Line("", (0.0, 1.0), (10.0, 20.0), ((9.0, 11.0), (-300.0, 340.0)))
    low, high = charts._ends([line])
    assert low == pytest.approx(-23.0) and high > 40.0


def test_a_figure_of_gains_also_shows_the_slowest_in_a_hundred(records: list[LoadRecord]) -> None:
    runs = Runs.of_figure(FIGURES["gain"], records, RUN)
    points = analysis.points(runs)
    (plots,) = charts.gain(runs, points).columns
    assert "99th percentile" in plots[1].title
    drawn = [y for line in plots[1].lines for y in line.y]
    assert drawn == [point.p99.percent.value for point in points if point.p99 is not None] != []
    unknown = [replace(point, p99=None) for point in points]
    assert len(charts.gain(runs, unknown).columns[0]) == 2


def test_a_link_without_a_queue_has_retransmissions_drawn_instead(
        records: list[LoadRecord], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the clients' links are slower, packets queue and are dropped there."""
    runs = Runs.of_figure(FIGURES["distribution"], records, RUN)
    of_windows = analysis.distributions(runs)
    assert "queue" in charts.distribution(runs, of_windows).columns[0][2].title
    monkeypatch.setattr(Runs, "queue", lambda self, record: (numpy.arange(9.0), numpy.ones(9)))
    shown = charts.distribution(runs, of_windows).columns[0][2]
    assert "Retransmitted" in shown.title
    assert [name for _, name in shown.ticks] == [window.name for window in of_windows]
    assert [y for line in shown.lines for y in line.y] == [
        window.retransmission.value for window in of_windows]


def test_segments_at_once_are_limited_by_the_response(records: list[LoadRecord]) -> None:
    """Four connections with windows of 10: a response of 5 kB has four segments only."""
    figure = replace(FIGURES["gain"], by="connections")
    runs = Runs.of_figure(figure, records, RUN)
    point = replace(analysis.points(Runs.of_figure(FIGURES["gain"], records, RUN))[0], x=4)
    for size_bytes, words in ((20_000, "IW 10 × 4 = 40 at once"), (5_000, "IW 10 × 4: 16 at once")):
        sized = replace(runs, records=tuple(replace(record, trial=replace(
            record.trial, response_bytes=size_bytes)) for record in runs.records))
        assert tables.where(sized, point)[0] == words


# The result of a claim on two cells, at each side of its limits -----------------------

GAIN = next(figure for figure in stored_load.study().scenario.figures if figure.kind == "gain")


# saved: percent in each of two cells.
@pytest.mark.parametrize("saved, less, more, alike", [
    ((10, 20), DIRECTION, NOT_REPRODUCED, NOT_REPRODUCED),
    ((-10, -20), NOT_REPRODUCED, DIRECTION, NOT_REPRODUCED),
    ((0, 0), NOT_REPRODUCED, NOT_REPRODUCED, REPRODUCED),
    ((0, 10), NOT_REPRODUCED, NOT_REPRODUCED, NOT_REPRODUCED),
    ((10, -10), NOT_REPRODUCED, NOT_REPRODUCED, NOT_REPRODUCED),
    ((5, -5), NOT_REPRODUCED, NOT_REPRODUCED, REPRODUCED),
    ((5.01, 5), DIRECTION, NOT_REPRODUCED, NOT_REPRODUCED),
    ((1, 0.5), DIRECTION, NOT_REPRODUCED, REPRODUCED)])
def test_a_claim_is_decided_by_two_seeds_that_agree_and_undecided_by_one(
        saved: tuple[float, float], less: str, more: str, alike: str) -> None:
    two_seeds = [(percent, percent) for percent in saved]
    expected = ("less", "more", "alike")
    assert [stated(expects, *two_seeds).outcome for expects in expected] == [less, more, alike]
    one_seed = [(percent,) for percent in saved]
    assert [stated(expects, *one_seed).outcome for expects in expected] == [UNDECIDED] * 3


# first, second: percent saved in the two seeds of each cell.
@pytest.mark.parametrize("expects, first, second, word", [
    ("less", (10, 10.1), (20, 20.1), DIRECTION),
    ("less", (10, 10.1), (1, 40), UNDECIDED),  # 20 ± 248 %
    ("less", (10, 10.1), (-1, -1.1), NOT_REPRODUCED),  # the second cell is more for certain
    ("less", (10, 10.1), (-50, -50.5), NOT_REPRODUCED),
    ("less", (10, 10.1), (0, 0.2), NOT_REPRODUCED),  # 0.1 ± 1.3 % is within what counts as alike
    ("less", (10, 10.1), (0, 1), UNDECIDED),  # 0.5 ± 6.4 % may be more than that
    ("more", (-10, -10.1), (-20, -20.1), DIRECTION),
    ("alike", (4, 4.1), (-4, -4.1), REPRODUCED),
    ("alike", (4, 6), (-4, -6), UNDECIDED),  # ± 12.7 %
    ("alike", (6, 6.05), (-4, -4.1), NOT_REPRODUCED)])
def test_the_interval_over_the_seeds_decides(expects: str, first: tuple[float, float],
                                             second: tuple[float, float], word: str) -> None:
    assert stated(expects, first, second).outcome == word


def with_retransmissions(of_3: float, of_10: float) -> list[Any]:
    """The stored records with these percents of retransmissions under 3 and 10 segments.

    Repeats differ by a thousandth of a percent, unless the percentage is 0.
    """
    records: list[Any] = []
    for record in stored_load.run().records:
        trial: Any = record.trial
        percent = of_3 if trial.window == "3" else of_10
        more = trial.repeat / 1000 if percent else 0.0
        records.append(replace(record, retransmission_percent=percent + more))
    return records


def test_the_published_number_of_a_rate_is_compared_in_points() -> None:
    runs = Runs.of_figure(GAIN, with_retransmissions(2.0, 5.0), RUN)
    claim = LoadClaim(figure="gain", says="x", compares=(Compared("3"), Compared("10")),
                      published=2.93, within=0.88,
                      metric="retransmission_percent", expects="more")
    near, far = (findings.judge_claim(runs, replace(claim, published=points))
                 for points in (2.93, 1.28))
    assert (near.outcome, far.outcome) == (REPRODUCED, DIRECTION)
    assert "3.00 ± 0.00 points, where 1.28 ± 0.88 were published" in far.measured


def test_a_claim_of_an_abstract_is_never_reproduced() -> None:
    assert stated("alike", (1, 1), (1, 1), abstract_only=True).outcome == DIRECTION
    assert stated("less", (-9, -9), (-9, -9), abstract_only=True).outcome == NOT_REPRODUCED


def test_a_rise_from_zero_is_more_and_neither_less_nor_alike() -> None:
    """A rise from 0 % of retransmissions has no percentage."""
    runs = Runs.of_figure(GAIN, with_retransmissions(0.0, 9.0), RUN)
    claim = LoadClaim(figure="gain", says="x", compares=(Compared("3"), Compared("10")),
                      metric="retransmission_percent", expects="less")
    outcomes = [findings.judge_claim(runs, replace(claim, expects=expects)).outcome
                for expects in ("less", "more", "alike")]
    assert outcomes == [NOT_REPRODUCED, DIRECTION, NOT_REPRODUCED]


def test_without_retransmissions_no_transfer_is_hit() -> None:
    hit = next(figure for figure in stored_load.study().scenario.figures if figure.kind == "hit")
    records: Any = stored_load.run().records
    runs = Runs.of_figure(hit, records, RUN)
    for record in records:
        connections = runs.connections(record)
        runs._read[record.trial.id] = replace(
            connections, retransmitted_bytes=numpy.zeros_like(connections.retransmitted_bytes))
    found = analysis.hits(runs)
    assert [(hit.own, hit.same, hit.same_count) for hit in found] == [(None, None, 0)] * 2
    assert findings._hit_answer(runs, found).measured == "nothing was hit."


def test_an_unknown_published_table_is_refused_with_its_file() -> None:
    with pytest.raises(UsageError, match="^paper/ietf78.csv: unknown 'Africa'.*Africa, all"):
        tables.published_deck("Africa")
