"""How long TCP itself goes on where packets are lost; deadlines of trials follow it.

In virtual time a deadline costs nothing: the guest that waits for it has a clock that skips idle
time.
"""

from __future__ import annotations

import math

from firstflight.net.headers import MSS

GIVES_UP_S = 930.0  # without an acknowledgement: Linux's default of 15 retries (tcp_retries2)
# A timer of retransmission that has not backed off runs for less than this and two round trips.
TIMER_S = 0.4


def longest_s(sent_bytes: float, rtt_ms: float, mss: int = MSS) -> float:
    """Seconds in which TCP delivers data or gives up, even if each segment needs its timer."""
    return GIVES_UP_S + math.ceil(sent_bytes / mss) * (TIMER_S + 2 * rtt_ms / 1000)
