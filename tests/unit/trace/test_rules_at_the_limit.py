"""The rules of unused windows where a comparison or a moment of theirs decides."""

from __future__ import annotations

import pytest

from firstflight.study.trace.rules import Rules, rules_for
from tests.unit.trace.test_rules import MSS, acknowledge_all, linux, report, send


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
