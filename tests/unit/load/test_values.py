"""Values of load runs where they are hardest: nothing measured, nothing lost, one connection."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy
import pytest

from firstflight.base.stats import Estimate
from firstflight.net.headers import ACK, SYN
from firstflight.study.load import analysis, findings
from firstflight.study.load.analysis import Distribution, MissingRuns, Runs
from firstflight.study.load.record import join_rows, parse_connections, wire_flights
from firstflight.study.load.scenario import LoadClaim
from firstflight.study.load.study import START_S
from firstflight.study.load.verify import judge_load
from tests.golden import stored_load
from tests.golden.stored_load import RUN
from tests.unit.load.test_verify import RAW, TRIAL, edited
from tests.unit.tcp.conversation import MSS, Conversation, capture

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
    assert statement.found == "no run measured it."


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
    assert statement.says == "IW 3 in the mix against everybody with IW 3:"
    assert statement.found == words


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
    record = judge_load(TRIAL, edited(RAW, "server1.csv", slice(40, 53), retransmitted_bytes="1448"))[0]
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
