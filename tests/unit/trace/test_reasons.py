"""What limits a trace, and its what-if trials; the words: tests/golden/trace_reasons.py."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from firstflight.net.headers import ACK, PUSH
from firstflight.setting.limits import without
from firstflight.study.traces import KIND, is_question
from firstflight.workloads.trace import reasons
from firstflight.workloads.trace.reasons import TraceWhatIfs
from firstflight.workloads.trace.record import TraceRecord
from firstflight.workloads.trace.trial import TraceTrial
from firstflight.workloads.trace.view import read_view, view_of
from tests.golden import exchanges, stored_trace
from tests.golden.reasons import saves
from tests.golden.trace_reasons import ONE, asked
from tests.unit.tcp.conversation import MSS, Conversation

TRACE = replace(ONE.trial, receive_window=20, nagle=True, validation=True, outage_from_ms=5.0,
                outage_to_ms=9.0, loss_percent=1.0)


@pytest.mark.parametrize(("tag", "free"), [
    ("receive-window", {"receive_window": 0, "initrwnd": 1000}), ("nagle", {"nagle": False}),
    ("restart", {"validation": False}), ("outage", {"outage_from_ms": 0.0, "outage_to_ms": 0.0}),
    ("loss", {"loss_percent": 0.0})])
def test_each_limit_of_a_trace_is_lifted(tag: str, free: dict[str, Any]) -> None:
    (limit,) = [limit for limit in TraceWhatIfs().limits(TRACE) if limit.tag == tag]
    trial = without(TRACE, (limit,))
    assert trial == replace(TRACE, what_if=tag, **free)
    assert trial.id.endswith(f"-without-{tag}")


def test_a_scenario_asks_what_if_of_its_largest_saving_and_largest_harm() -> None:
    study, records = stored_trace.warm_study(), stored_trace.warm_run().records
    trials = KIND.what_if_trials(study, records, [])
    changes = reasons.changes(records)
    best = max(changes, key=lambda change: change.saved_ms)
    assert trials and {(trial.tcp, trial.think_s) for trial in trials} >= {
        (best.base.requested.tcp, best.base.requested.think_s)}
    assert len({(trial.tcp, trial.think_s) for trial in trials}) <= 2


def test_a_traces_saving_is_that_of_its_last_response() -> None:
    """The time until it finishes includes its pauses, and is not compared."""
    records, _ = asked(lambda free: saves(100.0))
    (change,) = reasons.changes([replace(record, finish_ms=300_000.0) for record in records])
    assert change.saved_ms == 100.0


def test_a_question_asks_what_if_of_each_comparison() -> None:
    """A scenario with a flag of the user's is a question."""
    scenario, records = stored_trace.warm_study(), stored_trace.warm_run().records
    question = replace(scenario, whole=False)
    assert is_question(question) and not is_question(scenario)
    trials = KIND.what_if_trials(question, records, [])
    assert len({trial.think_s for trial in trials}) > 2


def test_a_last_response_in_one_flight_has_no_what_if_trials() -> None:
    """There is no round trip to save."""
    records = [replace(ONE, trial=replace(ONE.trial, initcwnd=window), latency_ms=100.0,
                       last_round_trips=1, last_window=40) for window in (3, 10)]
    (change,) = reasons.changes(records)
    assert TraceWhatIfs().same(change).label == "fits one flight"
    assert not reasons.what_if_trials(stored_trace.warm_study().scenario, records, [], True)
    later = [replace(record, last_round_trips=2) for record in records]
    assert reasons.what_if_trials(stored_trace.warm_study().scenario, later, [], True)


def test_the_link_is_idle_while_a_last_response_is_not_being_sent() -> None:
    """Two writes with a pause between them are one response: the pause is idle, too."""
    view = read_view(stored_trace.trial("idle-linux-iw10"), stored_trace.RUN)
    assert [len(flight) for flight in view.last_flights()] == [10, 16, 10, 11]
    sending_ms = sum(segment.frame_bytes for segment in view.sends) * 8 / 100_000  # at 100 Mbit/s
    took_ms = view.finish_s() * 1000 - (view.sends[0].time_ns - view.start_ns) / 1e6
    assert view.last_idle_ms() == pytest.approx(took_ms - sending_ms, abs=0.01)
    assert replace(view, trial=replace(view.trial, htb_burst_bytes=9000)).last_idle_ms() is None


def test_flights_and_idle_time_are_those_of_the_last_of_two_responses() -> None:
    """Two segments come, and after a pause two of another response, which wait for nothing."""
    packets = Conversation().handshake().flight(0, 1, each_ms=12)
    packets.acknowledge(224, 2).send(1000, False, ACK | PUSH, seq=96, ack=1 + 2 * MSS, payload=95)
    packets.flight(2, 3, at_ms=1050, each_ms=12).acknowledge(1124, 4)
    trial = replace(stored_trace.trial("idle-linux-iw10"), bandwidth_kbps=1000.0)
    view = view_of(trial, packets.read(), [exchanges.sample(0, 4)])
    assert [len(flight) for flight in view.last_flights()] == [2]
    frame_ms = (MSS + 54) * 8 / 1000
    assert view.last_idle_ms() == pytest.approx(124 - 2 * frame_ms)


def timed(think_s: float, window: int, latency_ms: float, what_if: str = "") -> TraceRecord:
    """The record of a trace whose link is idle for all but 50 ms."""
    trial = replace(ONE.trial, think_s=think_s, initcwnd=window, loss_percent=1.0, what_if=what_if)
    return replace(ONE, trial=trial, latency_ms=latency_ms, link_idle_ms=latency_ms - 50)


def test_an_unknown_reason_has_all_its_rounds_before_additions_to_known_ones() -> None:
    """Thirty savings of known reason would take all the what-if trials, and there is one harm.

    Its reason is found in the second round only: neither the queue nor random loss is it, but the
    restart.
    """
    saved = [timed(think_s, window, 300.0 + think_s if window == 3 else 150.0)
             for think_s in range(1, 31) for window in (3, 10)]
    harmed = [timed(31.0, window, 100.0 if window == 3 else 120.0) for window in (3, 10)]
    scenario, found = stored_trace.warm_study().scenario, []
    rounds = []
    for _ in range(3):
        more = reasons.what_if_trials(scenario, [*saved, *harmed], found, is_question=True)
        rounds.append({(trial.think_s, trial.what_if) for trial in more})
        for trial in more:
            is_harmed = trial.initcwnd == 10 and "restart" not in trial.what_if
            found.append(replace(ONE, trial=trial, latency_ms=120.0 if is_harmed else 100.0,
                                 link_idle_ms=50.0))
    assert {think_s for asked_in in rounds[:2] for think_s, _ in asked_in} == {31.0}
    assert "restart" in {what_if for _, what_if in rounds[1]}
    assert len({think_s for think_s, _ in rounds[2]}) > 10


def test_comparisons_with_equal_times_are_measured_after_one_of_each_size() -> None:
    """Twenty-nine comparisons save 150 ms each, and the last one 130 ms: it is measured second."""
    records = []
    for think_s in range(1, 31):
        saved_ms = 130.0 if think_s == 30 else 150.0
        records += [timed(think_s, 3, 300.0), timed(think_s, 10, 300.0 - saved_ms)]
    trials = reasons.what_if_trials(stored_trace.warm_study().scenario, records, [],
                                    is_question=True)
    assert [*dict.fromkeys(trial.think_s for trial in trials)][:2] == [1, 30]


def test_under_random_loss_the_pause_and_the_queue_are_still_lifted() -> None:
    """What-if trials under loss have a dozen repeats each, and their time is limited."""
    saved = {3: (91.0, 70.0), 10: (70.0, 49.0)}
    records = [replace(ONE, trial=replace(ONE.trial, initcwnd=window, repeat=repeat, seed=repeat,
                                          loss_percent=0.5, queue_packets=20, qdisc="fq_codel"),
                       latency_ms=latency_ms + 9 * (repeat % 3) * (window == 3),
                       link_idle_ms=idle_ms + 9 * (repeat % 3) * (window == 3))
               for window, (latency_ms, idle_ms) in saved.items() for repeat in range(1, 13)]
    trials = reasons.what_if_trials(stored_trace.warm_study().scenario, records, [],
                                    is_question=True)
    assert {"restart", "queue"} <= {trial.what_if for trial in trials}


def test_an_additional_reason_is_repeated_only_where_it_is_unsure() -> None:
    """Three repeats are enough where the saving without the limit is sure."""
    scenario = stored_trace.warm_study().scenario
    records = [replace(ONE, trial=replace(ONE.trial, initcwnd=window, repeat=repeat, seed=repeat,
                                          loss_percent=0.5),
                       latency_ms=time_ms + repeat / 10, link_idle_ms=time_ms + repeat / 10 - 20)
               for window, time_ms in ((3, 100.0), (10, 70.0)) for repeat in range(1, 21)]

    def restart_trials(measured: list[TraceRecord]) -> list[TraceTrial]:
        trials = reasons.what_if_trials(scenario, records, measured, is_question=True)
        return [trial for trial in trials if trial.what_if == "restart"]

    def repeats_after(spread_ms: float) -> int:
        first = reasons.what_if_trials(scenario, records, [], is_question=True)
        measured = []
        for trial in first:
            faster_ms = spread_ms * (trial.repeat % 2) if trial.initcwnd == 10 else 0.0
            measured.append(replace(records[0], trial=trial, latency_ms=90.0 - faster_ms))
        return len(restart_trials(measured))

    assert len(restart_trials([])) == 2 * 3
    assert repeats_after(0.0) == 0
    assert repeats_after(60.0) == 2 * (20 - 3)


def test_a_request_repeated_after_its_response_begins_no_response() -> None:
    """The client's timer may repeat it, and nothing leaves after that."""
    packets = Conversation().handshake().flight(0, 1, each_ms=12)
    packets.send(130, False, ACK | PUSH, seq=1, ack=1, payload=95).acknowledge(224, 2)
    exchange = packets.read()
    view = view_of(stored_trace.trial("idle-linux-iw10"), exchange, ())
    assert view.last_request_s() == 0
    assert sum(map(len, view.last_flights())) == 2

    # Even where the capture has no data after the last request, there is a last response.
    before_request = view.sends[0]._replace(time_ns=0)
    without_response = replace(view, sends=(before_request,))
    assert without_response.last_flights() and without_response.last_idle_ms() is not None
