"""Which packets make a moment of TCP's, and which of them a sample of TCP_INFO comes after."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from firstflight.net.headers import ACK, FIN
from firstflight.study.trace.replay import Mismatch, Restart, SendGroup, _Replayer, groups_of
from firstflight.study.trace.rules import Rules, rules_for
from firstflight.study.trace.window import FIELDS, INFINITE, WindowSample
from tests.golden.stored_trace import trial
from tests.unit.tcp.conversation import MS, MSS, START_NS, Conversation


def test_a_moment_is_an_acknowledgement_or_a_write_and_what_leaves_for_it() -> None:
    """The handshake is none; what arrives without data acknowledged begins one, too."""
    talk = Conversation().handshake().flight(0, 1)
    talk.acknowledge(220, 1).flight(2, 3, at_ms=270)
    talk.send(290, True, FIN | ACK, seq=1 + 4 * MSS, ack=96)
    talk.send(300, True, ACK, seq=1 + 4 * MSS, ack=96)  # which holds nothing
    groups = groups_of(talk.read())
    told = [((group.time_ns - START_NS) / MS, group.ack, len(group.sends)) for group in groups]
    assert told == [(150, 1, 0), (150, 1, 2), (270, 1 + MSS, 2), (290, None, 1)]
    assert {group.window for group in groups if group.ack} == {500}
    assert groups[-1].sends[0].is_fin and not groups[-1].window


@pytest.mark.parametrize(("group_ms", "sample_ms", "unacked", "notsent", "first"), [
    (10, 11, 3, 0, True), (11, 10, 3, 0, False),
    # At one moment: it shows what is known already, or more outstanding, less, or more sent.
    (10, 10, 3, 500, False), (10, 10, 4, 500, True), (10, 10, 2, 500, True),
    (10, 10, 3, 400, True), (10, 10, 4, 400, True)])
def test_a_sample_comes_after_a_moment_of_its_time_that_it_shows(
        group_ms: int, sample_ms: int, unacked: int, notsent: int, first: bool) -> None:
    """Three packets are outstanding up to byte 1000, and 500 bytes more are written."""
    state: Any = SimpleNamespace(
        candidates=[SimpleNamespace(connection=SimpleNamespace(packets=3))],
        outstanding_end=1000, written=1500)
    sample: Any = SimpleNamespace(time_ns=sample_ms * MS, unacked=unacked, notsent_bytes=notsent)
    assert _Replayer._precedes(state, SendGroup(group_ms * MS, None), sample) == first
    state.candidates = []  # rules that are not replayed: by the clock alone
    assert _Replayer._precedes(state, SendGroup(group_ms * MS, None), sample) == (
        group_ms <= sample_ms)


@pytest.mark.parametrize(("windows", "scale"), [((64_000, 128_000), 7), ((4000, 8000), 3),
                                                ((500, 1000), 0)])
def test_the_scale_of_windows_is_what_makes_those_that_tcp_info_tells(
        windows: tuple[int, ...], scale: int) -> None:
    state: Any = SimpleNamespace(
        samples=[SimpleNamespace(send_window_bytes=each) for each in windows],
        groups=[SendGroup(0, 1, 500), SendGroup(1, 1449, 1000), SendGroup(2, None, 77)])
    assert _Replayer._window_scale(state) == scale


@pytest.mark.parametrize(("time_ns", "before", "after"), [
    (5, "a", "a"), (10, "a", "a"), (15, "a", "b"), (20, "a", "c"), (25, "c", "d"), (30, "c", "d")])
def test_the_samples_around_a_moment(time_ns: int, before: str, after: str) -> None:
    """At its time the newest one shows what it brought; two may be of one time."""
    state: Any = SimpleNamespace(samples="abcd", times=[10, 20, 20, 30])
    assert (_Replayer._before(state, time_ns), _Replayer._after(state, time_ns)) == (before, after)


@pytest.mark.parametrize(("ack", "rto", "unsure"), [(None, 200, False), (1449, 300, False),
                                                    (1449, 300, True)])
def test_the_timeout_is_that_of_the_write_or_what_the_acknowledgement_makes_it(
        ack: int | None, rto: int, unsure: bool) -> None:
    made: Any = rules(10)
    state: Any = SimpleNamespace(
        unsure=unsure, window_scale=7, written=1, _before=lambda _: SimpleNamespace(rto_us=200_999),
        _after=lambda _: SimpleNamespace(rto_us=300_000, notsent_bytes=0))
    _Replayer._apply(state, made, SendGroup(0, ack, 500), [], 77)
    assert (made.rto, made.recovering) == (rto, unsure)
    assert made.peer_window_bytes == (INFINITE if ack is None else 500 << 7)
    assert made.connection.last_send == 0  # nothing left


@pytest.mark.parametrize(("ack", "notsent", "written", "left"), [
    (None, 0, 9999, False), (None, 1, 0, True),  # a write: what the sample after it says
    (1449, 1, 2897, False), (1449, 0, 2898, True)])  # else what was written and is not sent yet
def test_the_rules_are_told_whether_data_is_left(ack: int | None, notsent: int, written: int,
                                                 left: bool) -> None:
    made: Any = rules_for("cwv", False, 10, MSS, 0)
    known = SimpleNamespace(rto_us=200_000, notsent_bytes=notsent)
    state: Any = SimpleNamespace(unsure=False, window_scale=7, written=written,
                                 _before=lambda _: known, _after=lambda _: known)
    sent: Any = [SimpleNamespace(end_with_fin=end) for end in (1449, 2897)]
    _Replayer._apply(state, made, SendGroup(0, ack, 500, sent), sent, 77)
    assert made.unjudged == (77, 200, left)
    assert list(made.connection.outstanding) == [1449, 2897] and made.connection.last_send == 77


# A sample beside the rules --------------------------------------------------------------

def rules(cwnd: int, ssthresh: int = INFINITE) -> Rules:
    made = rules_for("reno", True, 10, MSS, 0)
    assert made is not None
    made.set_window(cwnd, ssthresh)
    return made


def replayer(*candidates: Rules) -> Any:
    """As far as _compare knows it."""
    made: Any = SimpleNamespace(written=1, outstanding_end=1, candidates=list(candidates),
                                unsure=False, unjudged=0, checked=0, mismatches=[])
    made._take_over = partial(_Replayer._take_over, made)
    made.compare = partial(_Replayer._compare, made)
    return made


def sample(cwnd: int, **more: int) -> WindowSample:
    return WindowSample(**{**dict.fromkeys(FIELDS, 0), "cwnd": cwnd, "ssthresh": INFINITE, **more})


def test_where_no_rules_are_written_down_nothing_is_compared() -> None:
    state = replayer()
    state.compare(sample(10, notsent_bytes=70))
    state.compare(sample(5, state=4, notsent_bytes=60))
    assert (state.checked, state.unjudged, state.mismatches, state.written) == (0, 0, [], 71)


def test_of_several_rules_those_that_fit_go_on_and_after_a_mismatch_one() -> None:
    state = replayer(rules(9), rules(10), rules(10))
    state.compare(sample(10))
    assert [each.cwnd for each in state.candidates] == [10, 10] and not state.mismatches
    state.compare(sample(12, time_ns=77))
    assert state.mismatches == [Mismatch(77, (12, INFINITE), (10, INFINITE))]
    assert [each.cwnd for each in state.candidates] == [12]
    state.compare(sample(12))
    assert (state.checked, state.unjudged, len(state.mismatches)) == (3, 0, 1)


@pytest.mark.parametrize("recovery", [{"state": 1}, {"lost": 1}, {"retransmitted": 1},
                                      {"sacked": 1}])
def test_a_window_in_a_recovery_is_taken_as_it_is_and_so_is_the_next(
        recovery: dict[str, int]) -> None:
    state = replayer(rules(10))
    for each, left in ((sample(5, **recovery), 1), (sample(4, ssthresh=3), 4)):
        state.compare(each)
        assert len(state.candidates) == left
        assert {(one.cwnd, one.ssthresh) for one in state.candidates} == {
            (each.cwnd, each.ssthresh)}
    assert (state.checked, state.unjudged, state.mismatches) == (0, 2, [])
    state.compare(sample(4, ssthresh=3))
    assert (state.checked, state.unjudged) == (1, 2)


@pytest.mark.parametrize(("idle", "outstanding_end", "noted"), [
    (200, 1449, 0), (201, 1449, 1), (5000, 1, 0)])  # after nothing, there is nothing to restart
def test_more_than_a_timeout_without_a_packet_is_noted(idle: int, outstanding_end: int,
                                                       noted: int) -> None:
    assert len(restarts(idle, outstanding_end)) == noted


@pytest.mark.parametrize(("notsent", "window_bytes", "flight", "may_send"), [
    (0, 100 * MSS, 4, 4),    # all that there is
    (500, 100 * MSS, 4, 10),  # there is more, and the window has room for it
    (500, 7 * MSS, 4, 7), (500, 4 * MSS, 4, 4),  # the peer's window
    (500, 8 * MSS - 1, 7, 7),
    (500, 3 * MSS, 4, 4),    # of short segments more fit in
    (0, 100 * MSS, 12, 10)])  # more than the window allows
def test_as_many_may_be_sent_as_the_windows_and_the_data_allow(
        notsent: int, window_bytes: int, flight: int, may_send: int) -> None:
    (restart,) = restarts(900, 1449, notsent_bytes=notsent, send_window_bytes=window_bytes,
                          flight=flight)
    assert (restart.before, restart.after, restart.idle, restart.rto) == (
        (40, INFINITE), (10, INFINITE), 900, 200)
    assert (restart.flight, restart.may_send) == (flight, may_send)
    assert restart.rule == (10, INFINITE)


def restarts(idle: int, outstanding_end: int, flight: int = 4, **after: int) -> list[Restart]:
    """Of a write at tick 10 + idle, after a window of 40 segments."""
    state: Any = SimpleNamespace(
        trial=trial("idle-linux-iw10"), groups=[SendGroup(7, None)], last_send=10, candidates=[],
        outstanding_end=outstanding_end, restarts=[], _flight=lambda place: [None] * flight,
        _before=lambda _: sample(40, rto_us=200_999), _after=lambda _: sample(
            10, **{"send_window_bytes": 100 * MSS, **after}))
    _Replayer._note_restart(state, 0, 10 + idle)
    found: list[Restart] = state.restarts
    return found
