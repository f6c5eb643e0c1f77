"""Linux's rules for a congestion window: how it grows, and how it shrinks when it is not used.

The model of a fetch (model/window.py) and the rules that judge traces (workloads/trace/rules.py)
share these rules. Each docstring names the kernel's function. Windows and thresholds are in
segments, times in jiffies.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class WindowUse:
    """Whether a sender fills its congestion window (tcp_cwnd_validate)."""

    limited: bool = False  # is_cwnd_limited
    most_in_flight: int = 0  # segments (max_packets_out)
    # The sequence number whose acknowledgement ends this round trip (cwnd_usage_seq).
    usage_end: int = 0

    def note(self, acknowledged: int, sent: int, in_flight: int, limited: bool) -> None:
        """Note how much is in flight after sending.

        acknowledged, sent: sequence numbers. in_flight: segments. limited: whether the window kept
        more data from leaving.
        """
        if acknowledged >= self.usage_end or limited or (
                not self.limited and in_flight > self.most_in_flight):
            self.limited, self.most_in_flight, self.usage_end = limited, in_flight, sent

    def may_grow(self, window: int, threshold: int) -> bool:
        """Whether an acknowledgement grows the window (tcp_is_cwnd_limited)."""
        return self.limited or (window < threshold and window < 2 * self.most_in_flight)


def slow_start(window: int, threshold: int, acknowledged: int) -> tuple[int, int]:
    """The window after slow start, and how many acknowledged segments are left (tcp_slow_start).

    Segments are left once the window has reached the threshold.
    """
    grown = min(window + acknowledged, threshold)
    return grown, acknowledged - (grown - window)


def additive_increase(window: int, credit: int, per_segment: int, acknowledged: int
                      ) -> tuple[int, int]:
    """The window and the credit after congestion avoidance (tcp_cong_avoid_ai).

    credit: acknowledged segments that have not grown the window yet (snd_cwnd_cnt). per_segment:
    how many acknowledged segments grow the window by one.
    """
    if credit >= per_segment:  # gathered under a larger window
        credit, window = 0, window + 1
    more, credit = divmod(credit + acknowledged, per_segment)
    return window + more, credit


def remembered_threshold(window: int, threshold: int) -> int:
    """The threshold that remembers a window which is about to shrink (tcp_current_ssthresh)."""
    return max(threshold, (window >> 1) + (window >> 2))


def restarted_window(window: int, initial_window: int, idle: int, timeout: int) -> int:
    """The window after a pause: halved for every timeout of silence (tcp_cwnd_restart).

    idle: how long the pause took. timeout: of retransmissions. A timeout that ends just now does
    not count. The window never falls below RFC 5681's restart window.
    """
    if idle <= timeout:
        return window
    return max(window >> (idle - 1) // timeout, min(initial_window, window))


def shrunk_window(window: int, initial_window: int, used: int) -> int:
    """The window of a sender that did not fill it for a timeout (tcp_cwnd_application_limited).

    used: the most segments that were in flight (RFC 2861). Fewer than the initial window count as
    the initial window.
    """
    used = max(used, initial_window)
    return (window + used) >> 1 if used < window else window
