"""How long TCP itself goes on where packets are lost. A trial's deadline is later than that.

In virtual time a late deadline costs nothing: the clock of a waiting guest skips idle time.
"""

from __future__ import annotations

import math

from firstflight.net.headers import MSS

# TCP gives up so long after the last acknowledgement: Linux's default of 15 retries (tcp_retries2).
GIVES_UP_S = 930.0
# A retransmission timer that has not backed off runs for less than this and two round trips.
TIMER_S = 0.4


def longest_s(sent_bytes: float, rtt_ms: float, mss: int = MSS) -> float:
    """Seconds in which TCP delivers data or gives up, even if each segment needs a timer."""
    return GIVES_UP_S + math.ceil(sent_bytes / mss) * (TIMER_S + 2 * rtt_ms / 1000)
