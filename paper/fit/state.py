"""The state of many transfers at once: an array for each quantity, a place in it for each transfer.

Times are milliseconds since the first byte of the connection's first response, segments are
counted from the first of the connection. Needs numpy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy
from numpy.typing import NDArray

Numbers = NDArray[numpy.float64]
Counts = NDArray[numpy.int64]
Flags = NDArray[numpy.bool_]

NEVER = numpy.inf
CONGESTED, LOST = 1, 2  # states of recovery; 0: open
UNLIMITED = float(1 << 30)


@dataclass(frozen=True)
class Kernels:
    """What both ends do, where that is to be varied; today's Linux.

    quick_acks: before the client delays acknowledgements; patience_ms: for how long (the timer's
    40 ms, and on average half a jiffy more); syn_timer_ms: of SYN and SYN-ACK.
    """

    quick_acks: int = 16
    patience_ms: float = 40.5
    syn_timer_ms: float = 1000.0


@dataclass
class Transfers:
    """Transfers under way, shape (n,) each, or (n, segments).

    earlier, burst, size: segments of the response before, of the first write, of all;
    last_earlier_ms, last_ms: what their last segment takes on the link, segment_ms: a whole
    one. number: in the order of the caller. The others at first: `simulation.begin`.
    """

    number: Counts
    rtt: Numbers
    segment_ms: Numbers
    ack_ms: Numbers
    request_ms: Numbers
    loss: Numbers
    chance: NDArray[numpy.uint32]
    earlier: Counts
    burst: Counts
    size: Counts
    last_earlier_ms: Numbers
    last_ms: Numbers
    gap: Numbers
    queue: Numbers
    # The sender.
    now: Numbers
    next: Counts
    acked: Counts
    written: Counts
    write_at: Numbers
    stage: Counts
    started: Numbers
    window: Numbers
    threshold: Numbers
    epoch: Numbers
    origin: Numbers
    last_most: Numbers
    friendly: Numbers
    limited: Flags
    most_out: Counts
    usage_end: Counts
    sent_since: Flags
    smoothed: Numbers
    deviation: Numbers
    worst: Numbers
    variance: Numbers
    round_end: Counts
    timeout_at: Numbers
    backoff: Numbers
    least_rtt: Numbers
    # HyStart.
    train_end: Counts
    train_began: Numbers
    train_last: Numbers
    train_samples: Counts
    train_least: Numbers
    delay_least: Numbers
    # Recovery.
    state: Counts
    recover_upto: Counts
    sacked_count: Counts
    lost_count: Counts
    retrans_out: Counts
    prior_window: Numbers
    recovered: Numbers
    recovery_sent: Numbers
    rack_sent: Numbers
    rack_segment: Counts
    rack_rtt: Numbers
    reorder_at: Numbers
    retransmitted: Counts
    # The path and the receiver.
    link_free: Numbers
    received: Counts
    above: Counts
    pending_at: Numbers
    quick: Counts
    patience: Numbers
    interactive: Flags
    reported: Counts
    heard: Counts
    # Of each segment.
    sent: Numbers
    fate: Flags
    sacked: Flags
    lost: Flags
    is_retransmitted: Flags
    there: Flags
    ack_at: Numbers
    ack_upto: Counts
    ack_of: Counts

    def keep(self, inside: Flags) -> None:
        """Only those transfers."""
        for name, values in vars(self).items():
            setattr(self, name, values[inside])
