"""The model is asked again with the phase of the kernel's clock, where a timer's tick decides."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from firstflight.model.predict import Prediction, predict
from firstflight.study.fetches.verify.evidence import Evidence
from firstflight.study.fetches.verify.observed import EXACT, HOST, TCP
from firstflight.wire.exchange import clock_phases_ns, nearest_phase_ns, read_exchange
from tests.golden import stored

MS = 1_000_000
PHASE_NS = 600_000


def shifted(**fetch: Any) -> Evidence:
    """A handshake by timers, as if its client had begun so far into a millisecond."""
    trial = stored.load("syn_timer")
    said = copy.deepcopy(trial.observation)
    wire = read_exchange(trial.client, trial.server, said["server"]["client_port"])
    start_ns = wire.at_client[0].time_ns
    stamped = tuple(each if each.to_client else each._replace(
        stamp=1000 + (PHASE_NS + each.time_ns - start_ns) // MS) for each in wire.at_client)
    return Evidence(trial.trial, {**said["fetch"], **fetch}, said["server"],
                    replace(wire, at_client=stamped), EXACT, {})


def predicted() -> tuple[Prediction, Prediction]:
    """Where trials usually begin, and at the nearest of the phases that the packets tell."""
    seen = shifted()
    phases_ns = clock_phases_ns(seen.wire)
    assert phases_ns is not None and phases_ns[0] <= PHASE_NS <= phases_ns[1]
    return predict(seen.transfer), predict(replace(seen.transfer, clock_phase_ns=phases_ns[1]))


def test_a_tick_makes_a_difference_that_a_verdict_would_see() -> None:
    first, again = predicted()
    assert first.total_ms - again.total_ms > 0.1 and first.latency_ms == again.latency_ms


@pytest.mark.parametrize(("off_ms", "is_first"), [(0.0, True), (0.099, True), (0.101, False),
                                                  (-0.099, True), (-0.101, False)])
def test_the_first_word_stands_where_the_times_are_near(off_ms: float, is_first: bool) -> None:
    first, again = predicted()
    seen = shifted(total_ms=first.total_ms + off_ms)
    seen = replace(seen, report={**seen.report, "latency_ms": first.latency_ms})
    assert seen.prediction == (first if is_first else again)


@pytest.mark.parametrize("of", ["total_ms", "latency_ms"])
def test_without_a_time_nothing_is_near(of: str) -> None:
    first, again = predicted()
    seen = shifted(total_ms=first.total_ms)
    seen = replace(seen, report={**seen.report, "latency_ms": first.latency_ms})
    lacking = (replace(seen, fetch={**seen.fetch, of: None}) if of == "total_ms" else
               replace(seen, report={**seen.report, of: None}))
    assert (seen.prediction, lacking.prediction) == (first, again)


def test_packets_without_stamps_tell_no_phase() -> None:
    first, _ = predicted()
    seen = shifted(total_ms=1.0)
    blind = replace(seen.wire, at_client=tuple(each._replace(stamp=None)
                                               for each in seen.wire.at_client))
    assert replace(seen, exchange=blind).prediction == first


@pytest.mark.parametrize(("phases_ns", "expected_ns", "nearest_ns"), [
    ((432, 221_407), 989_432, 1_000_432),  # 11 µs before the least, on a circle of a millisecond
    ((432, 221_407), 300_000, 221_407), ((432, 221_407), 1_000, 1_000),
    ((5, 9), 2_000_007, 2_000_007), ((5, 9), 2_000_017, 2_000_009), ((5, 9), 2_999_990, 3_000_005),
    ((700_000, 999_990), 2_002, 999_990), ((500_000, 600_000), 2_002, 600_000)])
def test_phases_lie_on_a_circle(phases_ns: tuple[int, int], expected_ns: int,
                                nearest_ns: int) -> None:
    assert nearest_phase_ns(phases_ns, expected_ns) == nearest_ns


def test_a_resumed_session_on_a_slow_link_leaves_when_it_has_to() -> None:
    """Its second connection began just before a tick, by what the first one shows."""
    record = stored.load("resumed_slow").judge()
    assert record.counts and HOST in record.judged_by.split(), record.verdict_reason


@pytest.mark.parametrize(("name", "first_byte_ms"), [("resumed_repeated", 2445.913),
                                                     ("resumed_aligned", 3842.159)])
def test_a_request_that_was_sent_twice_is_predicted_over_tls(name: str, first_byte_ms: float
                                                             ) -> None:
    """What waits takes the report of the copy along; a record may come before a retransmission.

    The second of them needs the true phase of the clock, although its last byte does not.
    """
    record = stored.load(name).judge()
    assert record.counts and TCP in record.judged_by.split(), record.verdict_reason
    assert record.model_first_byte_ms == pytest.approx(first_byte_ms, abs=0.01)
