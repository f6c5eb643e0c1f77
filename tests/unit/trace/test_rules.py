"""The rules of RFC 2861, RFC 5681 and the report for an unused window, and their replay.

The report is that of Handley, Padhye and Floyd, 1999 (workloads.trace.rules).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import islice
from types import SimpleNamespace
from typing import Any

import pytest

from firstflight.net.headers import ACK, FIN
from firstflight.workloads.trace.replay import (Mismatch, Restart, SendGroup, _Replayer,
                                                groups_of)
from firstflight.workloads.trace.rules import (LinuxRules, ReportRules, RuleSetting, Rules,
                                               restart_rule, rules_for)
from firstflight.workloads.trace.window import FIELDS, INFINITE, WindowSample
from tests.golden.stored_trace import trial
from tests.unit.tcp.conversation import MS, MSS, Conversation

SEGMENT = 1000  # bytes


def linux(cwnd: int, initcwnd: int = 10, ssthresh: int = INFINITE) -> LinuxRules:
    rules = LinuxRules(RuleSetting(initcwnd, SEGMENT, validation=True), 0)
    rules.set_window(cwnd, ssthresh)
    return rules


def report(cwnd: int, exact: bool = False, peer_segments: int = 1000) -> ReportRules:
    rules = ReportRules(RuleSetting(1, SEGMENT, exact=exact), 0)
    rules.set_window(cwnd, INFINITE)
    rules.note_peer_window(peer_segments * SEGMENT)
    rules.rto = 200
    return rules


def test_restart_of_rfc_5681_keeps_ssthresh() -> None:
    rules = rules_for("restart", False, 10, SEGMENT, 0)
    assert rules is not None
    rules.set_window(36, 20)
    assert rules.restart_window(200, 200) == (36, 20)
    assert rules.restart_window(201, 200) == (10, 20)


@pytest.mark.parametrize(("idle", "cwnd"), [
    (199, 25), (200, 12), (399, 12), (400, 6), (600, 3), (800, 1), (5000, 1)])
def test_the_report_halves_for_every_rto_down_to_one_segment(idle: int, cwnd: int) -> None:
    assert report(25).restart_window(idle, 200)[0] == cwnd


def test_a_restart_rule_exists_for_cubic_and_not_for_bbr() -> None:
    assert restart_rule("bbr", True, 10, SEGMENT, (80, 60), 5000, 200) is None
    assert restart_rule("cubic", True, 10, SEGMENT, (80, 60), 5000, 200) == (10, 60)
    assert restart_rule("cubic", False, 10, SEGMENT, (80, 60), 5000, 200) == (80, 60)


def test_a_restart_of_linux_takes_a_report_s_window_before_the_reports_rule_does() -> None:
    report_only, validated = (ReportRules(RuleSetting(14, SEGMENT, validation=validation), 0)
                              for validation in (False, True))
    for rules in (report_only, validated):
        rules.set_window(21, INFINITE)
        rules.note_peer_window(1000 * SEGMENT)
    assert report_only.restart_window(451, 446) == (10, INFINITE)
    assert validated.restart_window(451, 446) == (7, INFINITE)
    assert validated.restart_window(445, 446) == (21, INFINITE) and validated.cwnd == 21


def test_a_restart_remembers_the_window_where_linux_validates_it() -> None:
    rules = rules_for("restart", True, 10, SEGMENT, 0)
    assert rules is not None
    rules.set_window(36, 20)
    assert rules.restart_window(201, 200) == (10, 27)


# Whole connections ---------------------------------------------------------------

def send(rules: Rules, now: int, segments: int, more: bool = False) -> None:
    """Lets the rules send segments at this tick. more: whether data is left after that."""
    rules.before_sending(now)
    for _ in range(segments):
        rules.connection.add_packet(rules.connection.nxt + SEGMENT)
    rules.after_sending(now, more)
    rules.connection.last_send = now


def acknowledge_all(rules: Rules, now: int) -> None:
    """Acknowledges all outstanding segments, one by one."""
    for end in list(rules.connection.outstanding):
        rules.take_acknowledgement(now, end)


@pytest.mark.parametrize("used", [1, 4, 10])
def test_the_report_decays_to_the_mean_with_what_is_used_once_an_rto(used: int) -> None:
    rules = report(32)
    expected = 32 * SEGMENT
    send(rules, 0, used)
    acknowledge_all(rules, 20)
    for now in range(50, 601, 50):
        send(rules, now, used)
        acknowledge_all(rules, now + 20)
        if now % 200 == 0:
            expected = (expected + used * SEGMENT) // 2
        assert rules.window_bytes == expected and rules.cwnd == expected // SEGMENT


def test_the_report_and_not_linux_judges_a_write_of_which_nothing_leaves() -> None:
    """Half of the window is used when an RTO has passed. Linux judges only when it sends."""
    for rules, cwnd in ((report(2), 1), (linux(2, initcwnd=2), 2)):
        rules.rto = 200
        send(rules, 100, 1)
        acknowledge_all(rules, 150)
        send(rules, 210, 1)
        assert rules.cwnd == 2
        rules.after_blocked_write(300)
        assert rules.cwnd == cwnd


@pytest.mark.parametrize(("segments", "left", "early"), [
    (1, True, True), (1, False, False), (2, True, False)])
def test_a_sender_stops_early_where_its_window_has_room(segments: int, left: bool,
                                                        early: bool) -> None:
    rules = report(2)
    send(rules, 100, segments, more=left)
    assert rules.may_have_stopped_early(2) == early


@pytest.mark.parametrize(("segments", "peer", "observed", "early"), [
    (3, 1000, 4, True), (3, 1000, 3, False),  # the observed window is full
    (4, 1000, 5, False),  # the window of the rules is full
    (3, 3, 4, False)])  # the receive window is full
def test_a_sender_may_wait_for_room_for_more_than_a_segment(segments: int, peer: int,
                                                            observed: int, early: bool) -> None:
    rules = linux(4)
    rules.rto = 200
    rules.note_peer_window(peer * SEGMENT)
    send(rules, 100, segments, more=True)
    assert rules.may_have_stopped_early(observed) == early


@pytest.mark.parametrize(("segments", "rto", "early"), [(6, 100, True), (6, 101, False),
                                                        (4, 100, False)])
def test_a_long_write_may_look_finished_midway_after_a_timeout(segments: int, rto: int,
                                                               early: bool) -> None:
    """An skb holds half of the receive window, here five of ten segments."""
    rules = report(20, peer_segments=10)
    rules.rto = rto
    send(rules, 60, 1)
    rules.take_acknowledgement(70, 1 + SEGMENT)
    send(rules, 100, segments)
    assert rules.may_have_stopped_early(20) == early


def test_a_report_s_window_is_full_where_the_receive_window_is_and_linux_s_is_not() -> None:
    narrow, linux_rules = report(80, peer_segments=2), linux(80)
    linux_rules.rto = 200
    for rules in (narrow, linux_rules):
        send(rules, 100, 2)
    assert narrow.is_full and not linux_rules.is_full


@pytest.mark.parametrize("early", [True, False])
def test_a_sender_that_stops_early_unsettles_the_rules(early: bool) -> None:
    unsettled: list[bool] = []
    rules = SimpleNamespace(may_have_stopped_early=lambda _: early, is_full=False)
    sent: Any = [SimpleNamespace(end_with_fin=2897)]
    state: Any = SimpleNamespace(
        groups=[SendGroup(0, None, sends=sent)], candidates=[rules], una=1, outstanding_end=1449,
        _sample_after=lambda _: SimpleNamespace(cwnd=2),
        was_clean=True, was_full=False, _tick=lambda _: 7, _apply=lambda *_: None,
        _shows_disorder=lambda _: False, _unsettle=lambda: unsettled.append(True))
    _Replayer._take(state, 0)
    assert unsettled == [True] * early and state.outstanding_end == 2897


@pytest.mark.parametrize(("notsent", "tried"), [(0, []), (36, [7])])
def test_a_sample_with_unsent_data_counts_as_a_try_to_send(notsent: int, tried: list[int]) -> None:
    ticks: list[int] = []
    rules = SimpleNamespace(after_blocked_write=ticks.append)
    state: Any = SimpleNamespace(outstanding_end=100, written=100, candidates=[rules],
                                 unsure=False, _tick=lambda time_ns: time_ns // MS)
    _Replayer._try_to_send(state, sample(2, time_ns=7 * MS, notsent_bytes=notsent, rto_us=1000))
    assert ticks == tried


@pytest.mark.parametrize(("groups", "tried"), [([], [7]), ([SendGroup(6 * MS, 1)], [])])
def test_only_a_sample_that_follows_no_packet_shows_a_try(groups: list[SendGroup],
                                                          tried: list[int]) -> None:
    ticks: list[int] = []
    state: Any = SimpleNamespace(
        samples=[sample(2, time_ns=7 * MS)], groups=groups, checked=0, unjudged=0, mismatches=[],
        restarts=[], _precedes=lambda group, _: True, _take=lambda place: None,
        _compare=lambda _: None, _try_to_send=lambda shown: ticks.append(shown.time_ns // MS))
    _Replayer.run(state)
    assert ticks == tried


def test_a_fin_without_data_is_a_group_of_its_own() -> None:
    closed = Conversation().handshake().flight(0).send(150, True, ACK | FIN, seq=1449, ack=96)
    joined = Conversation().handshake().send(150, True, ACK | FIN, seq=1, ack=96, payload=MSS)
    assert [len(group.sends) for group in groups_of(closed.read())[-2:]] == [1, 1]
    assert [len(group.sends) for group in groups_of(joined.read())[-1:]] == [1]


@pytest.mark.parametrize(("unacked", "notsent", "precedes"), [
    (1, 0, False), (2, 0, True), (1, 36, True)])
def test_a_fin_at_the_time_of_a_sample_comes_before_a_sample_that_counts_it(
        unacked: int, notsent: int, precedes: bool) -> None:
    rules = SimpleNamespace(connection=SimpleNamespace(packets=1))
    state: Any = SimpleNamespace(candidates=[rules], outstanding_end=2342, written=1124)
    at_once = sample(26, time_ns=7, unacked=unacked, notsent_bytes=notsent)
    assert _Replayer._precedes(state, SendGroup(7, None), at_once) == precedes


# Groups of packets that show disorder ---------------------------------------------

def shows_disorder(group: SendGroup, una: int = 1449, end: int = 2897) -> bool:
    state: Any = SimpleNamespace(una=una, outstanding_end=end, last_window=500)
    return _Replayer._shows_disorder(state, group)


@pytest.mark.parametrize(("group", "disorder"), [
    (SendGroup(0, 2897, 500), False), (SendGroup(0, 2897, 500, sacked=True), True),
    (SendGroup(0, 1449, 500), True), (SendGroup(0, 1449, 501), False),  # a window update
    (SendGroup(0, 1449, 500, carries_data=True), False), (SendGroup(0, 1, 501), True)])
def test_a_selective_repeated_or_old_acknowledgement_shows_disorder(group: SendGroup,
                                                                    disorder: bool) -> None:
    assert shows_disorder(group) == disorder


def test_retransmitted_data_shows_disorder_and_new_data_does_not() -> None:
    retransmitted: Any = [SimpleNamespace(end_with_fin=2897)]
    new: Any = [SimpleNamespace(end_with_fin=2898)]
    assert shows_disorder(SendGroup(0, None, sends=retransmitted))
    assert not shows_disorder(SendGroup(0, None, sends=new))
    handshakes = SendGroup(0, 1, 500)  # nothing is outstanding
    assert not shows_disorder(handshakes, una=1, end=1)


# After a loss --------------------------------------------------------------------

# states: congestion states that samples of the recovery had (3: recovery, 4: loss).
@pytest.mark.parametrize(("states", "before", "by_chance", "known"), [
    ({1, 3}, 9, False, True), ({3}, 9, True, False), ({3, 4}, 9, False, False),
    ({1}, 9, False, False), ({1, 3}, 4, False, False)])
def test_the_reports_bytes_are_known_only_after_a_fast_recovery(
        states: set[int], before: int, by_chance: bool, known: bool) -> None:
    assert report(4).is_known_after(states, before, by_chance) == known
    assert linux(4).is_known_after(states, before, by_chance)


def test_after_a_recovery_the_window_may_have_any_growth_within_a_segment() -> None:
    """TCP_INFO has whole segments only, so every credit below one more segment is possible."""
    candidates = linux(4, ssthresh=2).after_recovery()
    assert [rules.credit for rules in candidates if isinstance(rules, LinuxRules)] == [0, 1, 2, 3]
    assert {(rules.cwnd, rules.ssthresh) for rules in candidates} == {(4, 2)}
    candidates = report(4).after_recovery()
    # Acknowledgements of one segment each let the window grow by less each time. The last two
    # windows are those after acknowledgements of two segments.
    assert [rules.window_bytes for rules in candidates if isinstance(rules, ReportRules)] == [
        4000, 4250, 4485, 4707, 4919, 4500, 4944]
    assert max(islice(report(4)._grown_windows(1), 10)) == 4999  # less than a segment more


# Growth, to the segment ------------------------------------------------------------

def test_an_acknowledgement_of_many_segments_grows_to_ssthresh_and_its_rest_beyond() -> None:
    rules = linux(10, ssthresh=12)
    rules.rto = 200
    send(rules, 0, 10, more=True)
    rules.take_acknowledgement(50, rules.connection.nxt)
    assert (rules.cwnd, rules.credit) == (12, 8)
    send(rules, 100, 12, more=True)
    rules.take_acknowledgement(150, rules.connection.nxt)
    assert (rules.cwnd, rules.credit) == (13, 8)


def test_the_report_grows_by_a_segment_to_ssthresh_then_by_mss_squared_over_cwnd() -> None:
    rules = report(10, exact=True)
    rules.ssthresh = 12
    send(rules, 0, 10, more=True)
    rules.take_acknowledgement(50, rules.connection.nxt)
    assert rules.window_bytes == 12 * SEGMENT + 8 * SEGMENT * SEGMENT // (12 * SEGMENT)


@pytest.mark.parametrize("make", [linux, report])
def test_in_a_recovery_the_rules_neither_grow_nor_decay(make: Callable[[int], Rules]) -> None:
    rules = make(4)
    rules.rto, rules.recovering = 200, True
    send(rules, 0, 4, more=True)
    acknowledge_all(rules, 20)
    assert rules.cwnd == 4
    if isinstance(rules, ReportRules):
        send(rules, 900, 1)  # after an idle time of several timeouts
        assert rules.cwnd == 4


@pytest.mark.parametrize(("ssthresh", "remembered"), [(INFINITE, INFINITE), (8, 27), (30, 30)])
def test_a_window_is_halved_only_after_an_rto_with_nothing_outstanding(ssthresh: int,
                                                                       remembered: int) -> None:
    """ssthresh remembers three quarters of the window then."""
    for rules in (linux(36, initcwnd=3), report(36)):
        rules.rto, rules.ssthresh = 200, ssthresh
        idle_ticks = 201 if isinstance(rules, LinuxRules) else 200  # Linux needs more than an RTO
        rules.before_sending(idle_ticks - 1)
        assert (rules.cwnd, rules.ssthresh) == (36, ssthresh)
        rules.before_sending(idle_ticks)
        assert (rules.cwnd, rules.ssthresh) == (18, remembered)
    rules = linux(36)
    rules.rto = 200
    rules.connection.add_packet(1 + SEGMENT)  # outstanding
    rules.before_sending(5000)
    assert rules.cwnd == 36


# At the limit of the window -----------------------------------------------------------

def acknowledge(rules: Rules, now: int, segments: int) -> None:
    """Acknowledges the first so many outstanding segments, one by one."""
    for end in list(rules.connection.outstanding)[:segments]:
        rules.take_acknowledgement(now, end)


# Linux: tcp_cwnd_validate() ----------------------------------------------------------

def test_new_rules_have_no_credit_towards_the_next_segment() -> None:
    rules = rules_for("reno", True, 10, SEGMENT, 0)
    assert rules is not None
    rules.ssthresh, rules.rto = 10, 200
    send(rules, 0, 10, more=True)
    acknowledge(rules, 50, 9)
    assert rules.cwnd == 10
    acknowledge(rules, 50, 1)
    assert rules.cwnd == 11


def test_a_flight_that_is_no_larger_than_before_does_not_move_cwnd_usage_seq() -> None:
    """It stays the sequence number of the first nine packets."""
    rules = linux(10)
    rules.rto = 200
    send(rules, 0, 9)
    acknowledge(rules, 50, 1)
    send(rules, 50, 1)  # nine again
    rules.recovering = True
    acknowledge(rules, 60, 8)
    rules.recovering = False
    send(rules, 60, 1)
    acknowledge(rules, 70, 2)
    assert rules.cwnd == 11, "the window that began after the nine used two segments only"


@pytest.mark.parametrize(("now", "cwnd"), [(199, 36), (200, 23)])
def test_a_timeout_to_the_tick_makes_a_window_application_limited(now: int, cwnd: int) -> None:
    rules = linux(36, ssthresh=30)
    rules.rto = 200
    send(rules, 0, 1)
    send(rules, now, 1)
    assert rules.cwnd == cwnd


def test_an_application_limited_window_keeps_its_growth_within_a_segment() -> None:
    """tcp_cwnd_application_limited() keeps snd_cwnd_cnt; the report keeps whole segments only."""
    of_linux = linux(20, ssthresh=5)
    of_linux.credit = 3
    of_report = ReportRules(RuleSetting(10, SEGMENT, validation=True), 0)
    of_report.set_window(20, 5)
    of_report.note_peer_window(1000 * SEGMENT)
    of_report.window_bytes += 300
    for rules in (of_linux, of_report):
        rules.rto = 200
        rules.connection.last_send = 200
        send(rules, 200, 1)
        assert (rules.cwnd, rules.ssthresh) == (15, 15)
    assert (of_linux.credit, of_report.window_bytes) == (3, 15 * SEGMENT)


@pytest.mark.parametrize(("now", "cwnd"), [(849, 4), (850, (4 + 3) // 2)])
def test_a_restarted_window_decays_only_after_a_timeout_of_its_own(now: int, cwnd: int) -> None:
    """tcp_cwnd_restart() sets snd_cwnd_stamp, and snd_cwnd_used to 0."""
    rules = linux(36, initcwnd=3, ssthresh=2)
    rules.rto = 200
    send(rules, 0, 12)
    acknowledge_all(rules, 20)
    send(rules, 650, 1)  # more than three timeouts later
    assert rules.cwnd == 36 >> 3
    send(rules, now, 1)
    assert rules.cwnd == cwnd


# Validation by the report ------------------------------------------------------------

def test_the_report_judges_what_was_sent_before_the_next_sending() -> None:
    rules = report(32)
    for now in (0, 100, 200, 250):
        assert rules.window_bytes == 32 * SEGMENT
        send(rules, now, 1)
    # When the timeout had passed, three segments were outstanding.
    assert rules.window_bytes == (32 + 3) * SEGMENT // 2


def test_after_an_idle_time_a_timeout_has_to_pass_again() -> None:
    rules = report(32)
    send(rules, 0, 4)
    acknowledge_all(rules, 20)
    for now in (400, 450, 500, 599):
        send(rules, now, 1)
        assert rules.window_bytes == 8 * SEGMENT, now
        acknowledge_all(rules, now + 1)
    send(rules, 600, 2)
    acknowledge_all(rules, 601)
    # The most that was used since then are two segments.
    assert rules.window_bytes == (8 + 2) * SEGMENT // 2


@pytest.mark.parametrize(("exact", "window_bytes", "segments", "full"), [
    (False, 5 * SEGMENT, 4, False), (False, 5 * SEGMENT - 1, 4, True),
    (False, 5 * SEGMENT, 5, True),
    (True, 5 * SEGMENT + 1, 5, False), (True, 5 * SEGMENT, 5, True)])
def test_a_window_is_full_where_no_segment_or_no_byte_is_free(
        exact: bool, window_bytes: int, segments: int, full: bool) -> None:
    rules = report(5, exact=exact)
    rules._set_bytes(window_bytes)
    send(rules, 0, segments)
    rules.take_acknowledgement(50, 1 + SEGMENT)
    assert (rules.window_bytes > window_bytes) == full


# Whether a group of packets or a sample comes first, where both have one time ---------

@pytest.mark.parametrize(("group_ms", "sample_ms", "unacked", "notsent", "first"), [
    (10, 11, 3, 0, True), (11, 10, 3, 0, False),
    # Both have one time: the sample shows what was known before the group, then something else.
    (10, 10, 3, 500, False), (10, 10, 4, 500, True), (10, 10, 2, 500, True),
    (10, 10, 3, 400, True), (10, 10, 4, 400, True)])
def test_a_group_comes_before_a_sample_of_its_time_that_shows_its_effect(
        group_ms: int, sample_ms: int, unacked: int, notsent: int, first: bool) -> None:
    """Three packets are outstanding up to byte 1000, and 500 bytes more have been written."""
    state: Any = SimpleNamespace(
        candidates=[SimpleNamespace(connection=SimpleNamespace(packets=3))],
        outstanding_end=1000, written=1500)
    sample: Any = SimpleNamespace(time_ns=sample_ms * MS, unacked=unacked, notsent_bytes=notsent)
    assert _Replayer._precedes(state, SendGroup(group_ms * MS, None), sample) == first
    state.candidates = []  # without rules only the times decide
    assert _Replayer._precedes(state, SendGroup(group_ms * MS, None), sample) == (
        group_ms <= sample_ms)


@pytest.mark.parametrize(("time_ns", "before", "after"), [
    (5, "a", "a"), (10, "a", "a"), (15, "a", "b"), (20, "a", "c"), (25, "c", "d"), (30, "c", "d")])
def test_the_sample_before_a_time_is_earlier_and_the_one_after_may_have_that_time(
        time_ns: int, before: str, after: str) -> None:
    """Of two samples with that time the last one is the one after."""
    state: Any = SimpleNamespace(samples="abcd", sample_times=[10, 20, 20, 30])
    found = _Replayer._sample_before(state, time_ns), _Replayer._sample_after(state, time_ns)
    assert found == (before, after)


@pytest.mark.parametrize(("ack", "rto", "unsure"), [(None, 200, False), (1449, 300, False),
                                                    (1449, 300, True)])
def test_the_timeout_is_the_one_before_a_write_or_after_an_acknowledgement(
        ack: int | None, rto: int, unsure: bool) -> None:
    made: Any = rules_of(10)
    state: Any = SimpleNamespace(
        unsure=unsure, window_scale=7, written=1,
        _sample_before=lambda _: SimpleNamespace(rto_us=200_999),
        _sample_after=lambda _: SimpleNamespace(rto_us=300_000, notsent_bytes=0))
    _Replayer._apply(state, made, SendGroup(0, ack, 500), [], 77)
    assert (made.rto, made.recovering) == (rto, unsure)
    assert made.peer_window_bytes == (INFINITE if ack is None else 500 << 7)
    assert made.connection.last_send == 0  # nothing left


@pytest.mark.parametrize(("ack", "notsent", "written", "left"), [
    (None, 0, 9999, False), (None, 1, 0, True),  # after a write, the next sample tells
    # After an acknowledgement, bytes that were written and not sent are left.
    (1449, 1, 2897, False), (1449, 0, 2898, True)])
def test_the_rules_know_whether_data_is_left_to_send(ack: int | None, notsent: int, written: int,
                                                     left: bool) -> None:
    made: Any = rules_for("cwv", False, 10, MSS, 0)
    known = SimpleNamespace(rto_us=200_000, notsent_bytes=notsent)
    state: Any = SimpleNamespace(unsure=False, window_scale=7, written=written,
                                 _sample_before=lambda _: known, _sample_after=lambda _: known)
    sent: Any = [SimpleNamespace(end_with_fin=end) for end in (1449, 2897)]
    _Replayer._apply(state, made, SendGroup(0, ack, 500, sends=sent), sent, 77)
    assert made.unjudged == (77, 200, left)
    assert list(made.connection.outstanding) == [1449, 2897] and made.connection.last_send == 77


# Samples are compared with the rules ----------------------------------------------------

def rules_of(cwnd: int, ssthresh: int = INFINITE) -> Rules:
    """Rules of Reno with this window."""
    made = rules_for("reno", True, 10, MSS, 0)
    assert made is not None
    made.set_window(cwnd, ssthresh)
    return made


def replayer(*candidates: Rules) -> Any:
    """The part of a replayer that _compare uses."""
    made: Any = SimpleNamespace(written=1, outstanding_end=1, candidates=list(candidates),
                                unsure=False, unjudged=0, checked=0, mismatches=[],
                                is_shown=True, is_settled=True, was_full=False, may_settle=True,
                                una=1, probe_end=0)
    made._take_over = partial(_Replayer._take_over, made)
    made._unsettle = partial(_Replayer._unsettle, made)
    made._settle = partial(_Replayer._settle, made)
    made.compare = partial(_Replayer._compare, made)
    return made


def sample(cwnd: int, **more: int) -> WindowSample:
    """A sample with this window. Its other fields are 0, but for ssthresh, mss and more."""
    return WindowSample(**{**dict.fromkeys(FIELDS, 0), "cwnd": cwnd, "ssthresh": INFINITE,
                           "mss": MSS, **more})


def test_after_disorder_no_sample_is_a_mismatch_until_the_window_is_full_again() -> None:
    state = replayer(rules_of(10))
    state._go_on = partial(_Replayer._go_on, state)
    state.trial, state.states, state.cwnd_before = trial("idle-linux-iw10"), set(), 10
    state.compare(sample(10, state=1))
    assert (state.unsure, state.unjudged, state.is_settled) == (True, 1, False)
    state.compare(sample(10))  # the first one after disorder
    state.compare(sample(12))
    assert (state.checked, state.unjudged, state.mismatches) == (0, 3, [])
    state.compare(sample(12))
    assert (state.checked, state.is_settled) == (1, False)
    state.was_full, state.candidates = True, state.candidates[3:4]
    state.compare(sample(12))
    assert (state.checked, state.is_settled, state.was_clean) == (2, True, True)
    assert {rules.credit for rules in state.candidates} == set(range(12))
    state.una = state.probe_end = 5  # nothing beyond a probe is acknowledged yet
    state.compare(sample(12))
    assert not state.was_clean
    state.compare(sample(13))
    assert (state.checked, state.unjudged, len(state.mismatches)) == (4, 3, 1)


def test_samples_of_a_tcp_without_rules_are_not_compared() -> None:
    state = replayer()
    state.compare(sample(10, notsent_bytes=70))
    state.compare(sample(5, state=4, notsent_bytes=60))
    assert (state.checked, state.unjudged, state.mismatches, state.written) == (0, 0, [], 71)


def test_rules_that_fit_a_sample_remain_and_after_a_mismatch_only_one() -> None:
    state = replayer(rules_of(9), rules_of(10), rules_of(10))
    state.compare(sample(10))
    assert [rules.cwnd for rules in state.candidates] == [10, 10] and not state.mismatches
    state.compare(sample(12, time_ns=77))
    assert state.mismatches == [Mismatch(77, (12, INFINITE), (10, INFINITE))]
    assert [rules.cwnd for rules in state.candidates] == [12]
    state.compare(sample(12))
    assert (state.checked, state.unjudged, len(state.mismatches)) == (3, 0, 1)


@pytest.mark.parametrize(("idle", "outstanding_end", "noted"), [
    (200, 1449, 0), (201, 1449, 1),
    (5000, 1, 0)])  # nothing was sent before, so no window restarts
def test_more_than_a_timeout_without_a_packet_is_noted_as_a_restart(idle: int, outstanding_end: int,
                                                                    noted: int) -> None:
    assert len(restarts(idle, outstanding_end)) == noted


@pytest.mark.parametrize(("notsent", "window_bytes", "flight", "may_send"), [
    (0, 100 * MSS, 4, 4),  # no data is left
    (500, 100 * MSS, 4, 10),  # data is left, up to the window
    (500, 7 * MSS, 4, 7), (500, 4 * MSS, 4, 4),  # up to the peer's window
    (500, 8 * MSS - 1, 7, 7),
    (500, 3 * MSS, 4, 4),  # four short segments fit into the peer's window
    (0, 100 * MSS, 12, 10)])  # the flight is larger than the window allows
def test_a_restart_may_send_what_the_windows_and_the_data_allow(notsent: int, window_bytes: int,
                                                                flight: int, may_send: int) -> None:
    (restart,) = restarts(900, 1449, notsent_bytes=notsent, send_window_bytes=window_bytes,
                          flight=flight)
    assert (restart.before, restart.after, restart.idle, restart.rto) == (
        (40, INFINITE), (10, INFINITE), 900, 200)
    assert (restart.flight, restart.may_send) == (flight, may_send)
    assert restart.rule == (10, INFINITE)


def restarts(idle: int, outstanding_end: int, flight: int = 4, **after: int) -> list[Restart]:
    """The restarts of a write at tick 10 + idle, after a window of 40 segments."""
    after_write = sample(10, **{"send_window_bytes": 100 * MSS, **after})
    state: Any = SimpleNamespace(
        trial=trial("idle-linux-iw10"), groups=[SendGroup(7, None)], last_send=10, candidates=[],
        outstanding_end=outstanding_end, restarts=[], is_shown=True, is_settled=True,
        _flight=lambda place: [None] * flight,
        _sample_before=lambda _: sample(40, rto_us=200_999), _sample_after=lambda _: after_write)
    _Replayer._note_restart(state, 0, 10 + idle)
    found: list[Restart] = state.restarts
    return found
