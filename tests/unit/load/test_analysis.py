"""What load runs say in numbers, also where nothing was measured or lost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy
import pytest

from firstflight.base.errors import FirstFlightError
from firstflight.base.stats import Estimate
from firstflight.findings.charts import LineChart
from firstflight.net.headers import ACK, SYN
from firstflight.runs.results.records import FAIL
from firstflight.study.load import analysis, findings
from firstflight.study.load.analysis import Distribution, MissingRuns, Runs
from firstflight.study.load.record import LoadRecord, join_rows, parse_connections, wire_flights
from firstflight.study.load.scenario import LoadClaim, LoadFigure
from firstflight.study.load.study import START_S
from firstflight.study.load.verify import judge_load
from tests.golden import stored_load
from tests.golden.stored_load import RUN
from tests.unit.load.test_verify import RAW, TRIAL, edited
from tests.unit.tcp.conversation import MSS, Conversation, capture

FIGURES = {figure.name: figure for figure in stored_load.study().scenario.figures}


@pytest.fixture(name="records", scope="module")
def _records() -> list[LoadRecord]:
    return list(stored_load.run().records)


def runs_of(figure: LoadFigure, records: list[LoadRecord]) -> Runs:
    return Runs.of_figure(figure, records, RUN)


def test_gains_are_taken_seed_by_seed() -> None:
    gain = analysis.paired({1: 100.0, 2: 200.0}, {1: 90.0, 2: 190.0})
    assert gain is not None and gain.absolute.value == 10
    assert gain.absolute.interval == pytest.approx((10, 10))  # no luck of the draw is left
    assert gain.percent.value == pytest.approx(100 * 10 / 150)
    assert analysis.paired({1: 100.0}, {1: None}) is None


def test_jains_index() -> None:
    assert analysis.jain([5, 5]) == 1
    assert analysis.jain([1, 0]) == 0.5


def test_both_windows_meet_the_same_arrivals(records: list[LoadRecord]) -> None:
    runs = runs_of(FIGURES["distribution"], records)
    for repeat, record in runs.at("3").items():
        other = runs.connections(runs.at("10")[repeat])
        assert runs.connections(record).arrival_s.tolist() == other.arrival_s.tolist()


def test_a_mix_draws_what_is_stated_of_it(records: list[LoadRecord]) -> None:
    """What the larger window saves within the mix, and where everybody has it."""
    (shown,) = [finding for finding in stored_load.report().findings if finding.name == "mix"]
    stated = [value.value for statement in shown.statements for value in statement.numbers]
    assert isinstance(shown.chart, LineChart)
    means = {line.name or before.name: line.y[0]
             for before, line in zip(shown.chart.columns[0][1].lines,
                                     shown.chart.columns[0][1].lines[1:]) if line.x[0] < 1}
    within, everywhere = stated
    assert means == {"IW 10 in the mix": pytest.approx(within.value),
                     "IW 10 everywhere": pytest.approx(everywhere.value)}
    _, compared, groups = shown.chart.columns[0]
    assert compared.y_ends == groups.y_ends is not None, "both are what is saved, in percent"


def test_the_parts_of_a_mix_are_all_of_it(records: list[LoadRecord]) -> None:
    runs = runs_of(FIGURES["mix"], records)
    found = analysis.mixes(runs)
    assert list(found.alone) == ["3", "10"] and list(found.groups) == ["3+10"]
    parts = found.groups["3+10"]
    assert [part.window for part in parts] == ["3", "10"]
    assert sum(part.count for part in parts) == analysis.whole(runs, "3+10").count


def test_without_the_handshake_every_percentile_is_earlier(records: list[LoadRecord]) -> None:
    runs = runs_of(FIGURES["distribution"], records)
    for whole, rest in zip(analysis.distributions(runs),
                           analysis.distributions(runs, with_handshake=False)):
        assert whole.mean.value - rest.mean.value > 60  # the RTT
        assert (whole.count, whole.retransmission) == (rest.count, rest.retransmission)


def test_runs_whose_verdict_failed_enter_no_figure(records: list[LoadRecord]) -> None:
    failed = [replace(record, verdict=FAIL) if record.trial.window == "10" else record
              for record in records]
    with pytest.raises(MissingRuns, match="window 10"):
        runs_of(FIGURES["gain"], failed)
    one = [replace(record, verdict=FAIL) if record.trial.repeat == 1 else record
           for record in records]
    runs = runs_of(FIGURES["gain"], one)
    assert runs.excluded == 4 and {record.trial.repeat for record in runs.records} == {2}


def test_runs_that_fall_on_one_place_are_told(records: list[LoadRecord]) -> None:
    runs = runs_of(replace(FIGURES["gain"], by="queue_bdp"), records)
    with pytest.raises(MissingRuns, match="say by which axis they differ"):
        analysis.points(runs)


def test_a_missing_file_is_told_by_its_name(records: list[LoadRecord]) -> None:
    runs = Runs.of_figure(FIGURES["distribution"], records, RUN / "nowhere")
    for read in (runs.connections, runs.queue):
        with pytest.raises(FirstFlightError, match="nowhere.*cannot be read"):
            read(records[0])


def test_windows_without_a_seed_or_arrivals_in_common_are_told(records: list[LoadRecord]) -> None:
    hit = next(figure for figure in FIGURES.values() if figure.kind == "hit")
    apart = [replace(record, verdict=FAIL) if (record.trial.window, record.trial.repeat) in
             ((hit.windows[0], 1), (hit.windows[1], 2)) else record for record in records]
    with pytest.raises(MissingRuns, match="^hit: no seed was measured with both windows at 0"):
        analysis.hits(runs_of(hit, apart))
    shorter = [replace(record, trial=replace(record.trial, duration_s=4.0))
               if record.trial.window == hit.windows[1] else record for record in records]
    with pytest.raises(MissingRuns, match="^hit: small-.*-iw3-1 and small-.*-iw10-1 had other"):
        analysis.hits(runs_of(hit, shorter))


def test_a_transfer_is_hit_by_a_byte_that_is_sent_again(records: list[LoadRecord]) -> None:
    hit = next(figure for figure in FIGURES.values() if figure.kind == "hit")
    runs, slight = runs_of(hit, records), runs_of(hit, records)
    for record in records:
        own = runs.connections(record)
        slight._read[record.trial.id] = replace(
            own, retransmitted_bytes=numpy.minimum(own.retransmitted_bytes, 1))
    found = analysis.hits(slight)
    assert found == analysis.hits(runs) and found[1].same_count > found[0].same_count > 0


# Values of load runs where they are hardest -------------------------------------------

EVERYTHING = parse_connections(join_rows(RAW.files))
NOTHING = EVERYTHING.select(numpy.zeros(len(EVERYTHING), dtype=bool))
STUDY = stored_load.study()


# Gains -------------------------------------------------------------------------------

def test_only_seeds_that_both_have_are_compared() -> None:
    gain = analysis.paired({1: 2.0, 2: 4.0}, {2: 3.0, 3: 9.0})
    assert gain is not None
    assert (gain.absolute.value, gain.percent.value, gain.absolute.n) == (1, 25, 1)
    assert analysis.paired({1: 2.0}, {2: 2.0}) is analysis.paired({1: 2.0}, {1: None}) is None


def test_where_there_was_nothing_nothing_is_saved() -> None:
    gain = analysis.paired({1: 0.0, 2: 0.0}, {1: 0.0, 2: 0.0})
    assert gain is not None and gain.percent.value == gain.absolute.value == 0


def test_without_connections_there_is_no_distribution() -> None:
    assert NOTHING.retransmission_percent == 0 and NOTHING.percentile_ms(50) is None
    for by_seed in ({}, {1: EVERYTHING, 2: NOTHING}):
        with pytest.raises(MissingRuns, match="IW 3: no connection completed"):
            analysis.distribution("IW 3", "3", by_seed)


def test_a_claim_on_what_nobody_measured_is_not_reproduced() -> None:
    records = [replace(record, p99_ms=None) for record in stored_load.run().records]
    figure = next(one for one in STUDY.scenario.figures if one.kind == "gain")
    claim = LoadClaim(figure="gain", says="x", compares=("3", "10"), quantity="p99_ms",
                      expects="less")
    statement = findings.statement(Runs.of_figure(figure, records, RUN), claim)
    assert statement.measured == "no run measured it."


# Words -------------------------------------------------------------------------------

def distribution(name: str, mean_ms: float) -> Distribution:
    return Distribution(name, name, numpy.array([mean_ms]), 1, Estimate(0.0), {None: {1: mean_ms}},
                        1.0)


@pytest.mark.parametrize(("mean_ms", "words"), [
    (800, "20.0 % less on average, from 1000 to 800 ms."),
    (1200, "20.0 % more on average, from 1000 to 1200 ms."),
    (995, "0.5 % less on average, from 1000 to 995 ms.")])
def test_a_group_beside_runs_of_its_own_takes_less_or_more(mean_ms: float, words: str) -> None:
    statement = findings._against_own(distribution("IW 3 in the mix", mean_ms),
                                      distribution("IW 3", 1000))
    assert statement is not None
    assert statement.text == "IW 3 in the mix against everybody with IW 3:"
    assert statement.measured == words


# Of one run --------------------------------------------------------------------------

@pytest.mark.parametrize(("happens", "counted"), [
    (lambda talk: talk, True),
    (lambda talk: talk.flight(1, at_ms=500), False),  # sent again
    (lambda talk: talk.flight(3, at_ms=600), False),  # a timer's probe
    (lambda talk: talk.send(320, True, ACK, seq=1 + 3 * MSS, ack=96, payload=MSS, lost=True),
     False),
    (lambda talk: talk.send(50.5, True, SYN | ACK, ack=1), False)])
def test_only_a_flight_of_which_nothing_was_lost_or_sent_again_counts(happens: Any,
                                                                      counted: bool) -> None:
    talk = happens(Conversation().handshake().flight(0, 1, 2).acknowledge(700, 3))
    flights = wire_flights(capture(talk.client), capture(talk.server))
    assert list(flights.values()) == ([[3]] if counted else [])


def test_the_share_that_was_hit_is_of_those_that_completed() -> None:
    record = judge_load(TRIAL,
                        edited(RAW, "server1.csv", slice(40, 53), retransmitted_bytes="1448"))[0]
    assert record.completed == 130 and record.hit_percent == 10


def test_a_queue_holds_one_packet_at_least() -> None:
    (sweep, *_) = STUDY.scenario.sweeps
    bdp = sweep.bandwidth_kbps * sweep.rtt_ms / 8
    assert sweep.queue_packets(1e-6) == 1
    assert sweep.queue_packets(4 * 1514 / bdp) == 4


def test_how_long_a_run_takes_follows_its_connections_and_their_segments() -> None:
    """What progress is told by: beyond the start of a guest, which every run pays once."""
    def beyond(**more: Any) -> float:
        return STUDY.kind.guest_s(replace(TRIAL, **more)) - START_S

    once = beyond()
    assert beyond(duration_s=2 * TRIAL.duration_s) == pytest.approx(2 * once) and once > 0
    assert beyond(load=TRIAL.load / 2) == pytest.approx(once / 2)
    small, middle, large = (beyond(response_bytes=size, load=size / 1e6)
                            for size in (10_000, 20_000, 30_000))  # about as many each
    assert middle - small == pytest.approx(large - middle, rel=0.05) and small < middle
