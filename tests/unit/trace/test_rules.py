"""The rules of RFC 2861 and 7661, replayed, and at the limit of what is known."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from firstflight.study.trace.replay import Restart
from firstflight.study.trace.rules import (LinuxRules, ReportRules, RuleSetting, Rules,
                                           restart_rule, rules_for)
from firstflight.study.trace.window import INFINITE


MSS = 1000


def linux(cwnd: int, initcwnd: int = 10, ssthresh: int = INFINITE) -> LinuxRules:
    rules = LinuxRules(RuleSetting(initcwnd, MSS, validation=True), 0)
    rules.set_window(cwnd, ssthresh)
    return rules


def report(cwnd: int, exact: bool = False, peer_segments: int = 1000) -> ReportRules:
    rules = ReportRules(RuleSetting(1, MSS, exact=exact), 0)
    rules.set_window(cwnd, INFINITE)
    rules.declared(peer_segments * MSS)
    rules.rto = 200
    return rules


@pytest.mark.parametrize(("idle", "cwnd"), [
    (200, 36), (201, 18), (400, 18), (401, 9), (601, 4), (801, 3), (10**7, 3)])
def test_linux_halves_for_every_rto_down_to_the_initial_window(idle: int, cwnd: int) -> None:
    """tcp_cwnd_restart(): for every RTO but one that is not quite over."""
    assert linux(36, initcwnd=3).restart_window(idle, 200)[0] == cwnd


def test_linux_restarts_no_larger_than_the_window_was() -> None:
    assert linux(4).restart_window(60_000, 200)[0] == 4


@pytest.mark.parametrize(("cwnd", "ssthresh", "remembered"), [
    (36, 2, 27), (14, 2, 10), (15, 2, 10), (36, 50, 50)])
def test_three_quarters_are_remembered_and_never_less(cwnd: int, ssthresh: int,
                                                      remembered: int) -> None:
    assert linux(cwnd, ssthresh=ssthresh).restart_window(1000, 200)[1] == remembered


def test_restart_of_rfc_5681_keeps_ssthresh() -> None:
    rules = rules_for("restart", False, 10, MSS, 0)
    assert rules is not None
    rules.set_window(36, 20)
    assert rules.restart_window(200, 200) == (36, 20)
    assert rules.restart_window(201, 200) == (10, 20)


@pytest.mark.parametrize("control", ["reno", "unvalidated"])
def test_without_validation_nothing_decays(control: str) -> None:
    rules = rules_for(control, False, 10, MSS, 0)
    assert rules is not None
    rules.set_window(36, 20)
    assert rules.restart_window(60_000, 200) == (36, 20)


@pytest.mark.parametrize(("idle", "cwnd"), [
    (199, 25), (200, 12), (399, 12), (400, 6), (600, 3), (800, 1), (5000, 1)])
def test_the_report_halves_for_every_rto_down_to_one_segment(idle: int, cwnd: int) -> None:
    assert report(25).restart_window(idle, 200)[0] == cwnd


def test_the_report_halves_what_the_receiver_allows() -> None:
    assert report(200, peer_segments=25).restart_window(400, 200) == (6, INFINITE)


def test_bbr_is_left_alone() -> None:
    assert restart_rule("bbr", True, 10, MSS, (80, 60), 5000, 200) is None
    assert restart_rule("cubic", True, 10, MSS, (80, 60), 5000, 200) == (10, 60)
    assert restart_rule("cubic", False, 10, MSS, (80, 60), 5000, 200) == (80, 60)


# Whole connections ---------------------------------------------------------------

def send(rules: Rules, now: int, segments: int, more: bool = False) -> None:
    rules.before_sending(now)
    for _ in range(segments):
        rules.connection.sent(rules.connection.nxt + MSS)
    rules.after_sending(now, more)
    rules.connection.last_send = now


def acknowledge_all(rules: Rules, now: int) -> None:
    for end in list(rules.connection.outstanding):
        rules.acknowledged(now, end)


def test_nine_packets_of_a_window_of_ten_make_it_18_in_linux() -> None:
    """tcp_slow_start_slow-start-app-limited-9-packets-out.pkt"""
    rules = linux(10)
    rules.rto = 200
    send(rules, 0, 9)
    acknowledge_all(rules, 100)
    assert rules.cwnd == 18


def test_a_full_window_doubles_in_slow_start() -> None:
    for rules in (linux(10), report(10)):
        rules.rto = 200
        send(rules, 0, 10, more=True)
        acknowledge_all(rules, 100)
        # The report's window is no longer full after the first acknowledgement, if nothing follows.
        assert rules.cwnd == (20 if isinstance(rules, LinuxRules) else 11)


def test_the_unmodified_tcp_grows_by_every_acknowledgement() -> None:
    rules = rules_for("unvalidated", False, 10, MSS, 0)
    assert rules is not None
    rules.rto = 200
    for now in range(0, 1000, 100):
        send(rules, now, 1)
        acknowledge_all(rules, now + 50)
    assert rules.cwnd == 20


@pytest.mark.parametrize("used", [1, 4, 10])
def test_the_report_decays_to_the_mean_with_what_is_used_once_an_rto(used: int) -> None:
    rules = report(32)
    expected = 32 * MSS
    send(rules, 0, used)
    acknowledge_all(rules, 20)
    for now in range(50, 601, 50):
        send(rules, now, used)
        acknowledge_all(rules, now + 20)
        if now % 200 == 0:
            expected = (expected + used * MSS) // 2
        assert rules.window_bytes == expected and rules.cwnd == expected // MSS


def test_a_full_window_is_not_application_limited() -> None:
    rules = report(4)
    for now in range(0, 1001, 50):
        send(rules, now, rules.cwnd)
        acknowledge_all(rules, now + 20)
    assert rules.cwnd > 4


def test_linux_does_not_decay_an_application_limited_window_that_is_acknowledged() -> None:
    """tcp_cong_avoid() sets snd_cwnd_stamp with every acknowledgement."""
    rules = linux(36)
    rules.rto = 200
    for now in range(0, 2001, 50):
        send(rules, now, 12)
        acknowledge_all(rules, now + 20)
    assert rules.cwnd == 36


@pytest.mark.parametrize(("first", "used"), [(1, 10), (12, 14)])
def test_linux_decays_it_where_no_acknowledgement_comes(first: int, used: int) -> None:
    """To the mean with what is used, or with the initial window where that is more."""
    rules = linux(36, ssthresh=30)
    rules.rto = 200
    send(rules, 0, first)
    send(rules, 100, 1)
    send(rules, 250, 1)
    assert (rules.cwnd, rules.ssthresh) == ((36 + used) // 2, 30)


@pytest.mark.parametrize(("exact", "grows"), [(False, True), (True, False)])
def test_only_the_tolerant_check_lets_a_broken_window_grow(exact: bool, grows: bool) -> None:
    rules = report(4, exact=exact)
    rules.window_bytes += 300  # linear growth leaves parts of segments
    for now in range(0, 1000, 50):
        send(rules, now, rules.cwnd, more=True)
        acknowledge_all(rules, now + 20)
    assert (rules.cwnd > 4) == grows


# After a loss --------------------------------------------------------------------

def test_after_a_recovery_any_part_of_a_segment_may_have_grown() -> None:
    """TCP_INFO tells whole segments: every credit short of one more is possible."""
    left = linux(4, ssthresh=2).after_recovery()
    assert [rules.credit for rules in left if isinstance(rules, LinuxRules)] == [0, 1, 2, 3]
    assert {(rules.cwnd, rules.ssthresh) for rules in left} == {(4, 2)}
    left = report(4).after_recovery()
    assert [rules.window_bytes for rules in left if isinstance(rules, ReportRules)] == [
        4000, 4250, 4500, 4750]
    rules = report(4)
    rules.grow_unseen(9)
    assert rules.window_bytes == 4999  # never a whole one


def test_a_window_that_was_taken_over_has_no_credit() -> None:
    rules = linux(4)
    rules.credit = 3
    rules.set_window(7, 5)
    assert (rules.cwnd, rules.ssthresh, rules.credit) == (7, 5, 0)
    rules = report(4)
    rules.set_window(7, 5)
    assert (rules.cwnd, rules.ssthresh, rules.window_bytes) == (7, 5, 7 * MSS)


@pytest.mark.parametrize("make", [linux, report])
def test_in_a_recovery_the_rules_neither_grow_nor_decay(make: Callable[[int], Rules]) -> None:
    rules = make(4)
    rules.rto, rules.recovering = 200, True
    send(rules, 0, 4, more=True)
    acknowledge_all(rules, 20)
    assert rules.cwnd == 4
    if isinstance(rules, ReportRules):
        send(rules, 900, 1)  # after an idle time
        assert rules.cwnd == 4


# Growth, to the segment ------------------------------------------------------------

def test_beyond_ssthresh_linux_grows_by_one_a_window() -> None:
    """tcp_slow_start() up to it, then tcp_cong_avoid_ai() with what is left."""
    rules = linux(10, ssthresh=12)
    rules.rto = 200
    windows = []
    for now in range(0, 300, 100):
        send(rules, now, rules.cwnd, more=True)
        for end in list(rules.connection.outstanding):
            rules.acknowledged(now + 50, end)
            windows.append(rules.cwnd)
    # Each of two acknowledgements is worth a segment, then twelve together, then thirteen.
    assert windows == [11, *[12] * 12, *[13] * 13, *[14] * 9]


def test_credit_of_a_larger_window_is_worth_one_segment() -> None:
    """tcp_cong_avoid_ai(): credits accumulated at a higher w are applied gently."""
    rules = linux(12, ssthresh=10)
    rules.rto, rules.credit = 200, 30
    send(rules, 0, 12, more=True)
    rules.acknowledged(50, MSS + 1)
    assert (rules.cwnd, rules.credit) == (13, 1)


def test_an_acknowledgement_of_many_grows_past_ssthresh_and_on() -> None:
    rules = linux(10, ssthresh=12)
    rules.rto = 200
    send(rules, 0, 10, more=True)
    rules.acknowledged(50, rules.connection.nxt)
    assert (rules.cwnd, rules.credit) == (12, 8)
    send(rules, 100, 12, more=True)
    rules.acknowledged(150, rules.connection.nxt)
    assert (rules.cwnd, rules.credit) == (13, 8)


def test_the_report_grows_by_a_segment_up_to_ssthresh_then_by_mss_squared_over_the_window(
        ) -> None:
    rules = report(10, exact=True)
    rules.ssthresh = 12
    send(rules, 0, 10, more=True)
    rules.acknowledged(50, rules.connection.nxt)
    assert rules.window_bytes == 12 * MSS + 8 * MSS * MSS // (12 * MSS)


def test_an_acknowledgement_of_nothing_new_changes_nothing() -> None:
    for rules in (linux(10), report(10)):
        rules.rto = 200
        send(rules, 0, 10, more=True)
        rules.acknowledged(50, 1)
        assert (rules.cwnd, rules.connection.packets) == (10, 10)


@pytest.mark.parametrize(("ssthresh", "remembered"), [(INFINITE, INFINITE), (8, 27), (30, 30)])
def test_before_an_rto_nothing_restarts(ssthresh: int, remembered: int) -> None:
    """Then half of it is left, and three quarters of what it was are remembered."""
    for rules in (linux(36, initcwnd=3), report(36)):
        rules.rto, rules.ssthresh = 200, ssthresh
        edge = 201 if isinstance(rules, LinuxRules) else 200
        rules.before_sending(edge - 1)
        assert (rules.cwnd, rules.ssthresh) == (36, ssthresh)
        rules.before_sending(edge)
        assert (rules.cwnd, rules.ssthresh) == (18, remembered)
    rules = linux(36)
    rules.rto = 200
    rules.connection.sent(1 + MSS)  # outstanding
    rules.before_sending(5000)
    assert rules.cwnd == 36


@pytest.mark.parametrize(("rule", "flight", "agrees"), [
    ((10, 27), 10, True), (None, 10, True), ((11, 27), 10, False), ((10, 27), 9, False),
    (None, 9, False)])
def test_a_restart_agrees_in_its_window_and_in_its_flight(
        rule: tuple[int, int] | None, flight: int, agrees: bool) -> None:
    restart = Restart(0, 900, 300, (36, 20), (10, 27), rule, flight, may_send=10)
    assert restart.agrees == agrees


# At the limit of the window -----------------------------------------------------------

def acknowledge(rules: Rules, now: int, segments: int) -> None:
    """So many of those that are outstanding, one by one."""
    for end in list(rules.connection.outstanding)[:segments]:
        rules.acknowledged(now, end)


# Linux: tcp_cwnd_validate() ----------------------------------------------------------

def test_new_rules_have_no_credit() -> None:
    rules = rules_for("reno", True, 10, MSS, 0)
    assert rules is not None
    rules.ssthresh, rules.rto = 10, 200
    send(rules, 0, 10, more=True)
    acknowledge(rules, 50, 9)
    assert rules.cwnd == 10
    acknowledge(rules, 50, 1)
    assert rules.cwnd == 11


def test_a_window_that_was_full_counts_as_full_until_its_data_is_acknowledged() -> None:
    """!tp->is_cwnd_limited && tp->packets_out > tp->max_packets_out: both."""
    rules = linux(10, ssthresh=15)
    rules.rto = 200
    send(rules, 0, 10, more=True)
    acknowledge(rules, 50, 5)
    assert (rules.cwnd, rules.credit) == (15, 0)
    send(rules, 50, 8)  # 13 of 15 are outstanding, more than the ten
    acknowledge(rules, 60, 1)
    assert rules.credit == 1


def test_the_most_packets_of_a_window_are_not_forgotten_before_it_is_acknowledged() -> None:
    rules = linux(10)
    rules.rto = 200
    send(rules, 0, 9)
    acknowledge(rules, 50, 4)
    assert rules.cwnd == 14
    send(rules, 50, 1)  # six are outstanding
    acknowledge(rules, 60, 5)
    assert rules.cwnd == 18, "twice nine"


def test_as_many_packets_again_begin_no_window_of_their_own() -> None:
    """cwnd_usage_seq stays that of the nine."""
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
    assert rules.cwnd == 11, "of the new window only two were used"


@pytest.mark.parametrize(("now", "cwnd"), [(199, 36), (200, 23)])
def test_a_timeout_to_the_tick_makes_a_window_application_limited(now: int, cwnd: int) -> None:
    rules = linux(36, ssthresh=30)
    rules.rto = 200
    send(rules, 0, 1)
    send(rules, now, 1)
    assert rules.cwnd == cwnd


@pytest.mark.parametrize(("now", "cwnd"), [(849, 4), (850, (4 + 3) // 2)])
def test_a_restart_begins_a_time_of_its_own(now: int, cwnd: int) -> None:
    """tcp_cwnd_restart() sets snd_cwnd_stamp, and forgets what was used."""
    rules = linux(36, initcwnd=3, ssthresh=2)
    rules.rto = 200
    send(rules, 0, 12)
    acknowledge_all(rules, 20)
    send(rules, 650, 1)  # three timeouts and a part of one later
    assert rules.cwnd == 36 >> 3
    send(rules, now, 1)
    assert rules.cwnd == cwnd


# The report's ------------------------------------------------------------------------

def test_what_was_sent_is_judged_before_the_next_is() -> None:
    rules = report(32)
    for now in (0, 100, 200, 250):
        assert rules.window_bytes == 32 * MSS
        send(rules, now, 1)
    # Three were outstanding when the timeout was over.
    assert rules.window_bytes == (32 + 3) * MSS // 2


def test_what_something_else_holds_back_is_not_limited_by_the_application() -> None:
    rules = report(32)
    for now in (0, 100, 200, 250):
        send(rules, now, 1, more=True)
    assert rules.window_bytes == 32 * MSS


def test_after_an_idle_time_a_timeout_has_to_pass_again() -> None:
    rules = report(32)
    send(rules, 0, 4)
    acknowledge_all(rules, 20)
    for now in (400, 450, 500, 599):
        send(rules, now, 1)
        assert rules.window_bytes == 8 * MSS, now
        acknowledge_all(rules, now + 1)
    send(rules, 600, 2)
    acknowledge_all(rules, 601)
    # Of what has been used since then, two segments are the most.
    assert rules.window_bytes == (8 + 2) * MSS // 2


def test_of_a_huge_window_an_acknowledgement_is_worth_a_byte() -> None:
    rules = report(1500, peer_segments=3000)
    rules.ssthresh = 2
    send(rules, 0, 1500, more=True)
    rules.acknowledged(50, 1 + MSS)
    assert rules.window_bytes == 1500 * MSS + 1


@pytest.mark.parametrize(("exact", "window_bytes", "segments", "full"), [
    (False, 5 * MSS, 4, False), (False, 5 * MSS - 1, 4, True), (False, 5 * MSS, 5, True),
    (True, 5 * MSS + 1, 5, False), (True, 5 * MSS, 5, True)])
def test_a_window_is_full_where_no_segment_or_no_byte_is_free(
        exact: bool, window_bytes: int, segments: int, full: bool) -> None:
    rules = report(5, exact=exact)
    rules._set(window_bytes)
    send(rules, 0, segments)
    rules.acknowledged(50, 1 + MSS)
    assert (rules.window_bytes > window_bytes) == full
