"""The state of many transfers at once: an array for each quantity, a place in it for each transfer.

Times are milliseconds since the first byte of the connection's first response, segments are
counted from the first of the connection. Needs numpy.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy
from numpy.typing import NDArray

from lab.fetches.features.population.draws import HEADER_BYTES as RESPONSE_HEADER_BYTES
from lab.fetches.features.population.draws import SEGMENT_BYTES, Drawn
from lab.tcp.packets import HEADER_BYTES
from paper.fit import losses

Numbers = NDArray[numpy.float64]
Counts = NDArray[numpy.int64]
Flags = NDArray[numpy.bool_]

FRAME_BITS = (SEGMENT_BYTES + HEADER_BYTES) * 8
LENGTH_DIGITS = 4  # of most sizes, in a header
REQUEST_BITS = (103 + HEADER_BYTES) * 8
NEVER = numpy.inf
CONGESTED, LOST = 1, 2  # states of recovery; 0: open
UNLIMITED = float(1 << 30)
# What is not 0 at first, whatever the transfer; and what has a value for each segment or ACK.
AT_FIRST = {"started": -1.0, "threshold": UNLIMITED, "epoch": -1.0, "timeout_at": NEVER,
            "backoff": 1.0, "train_least": NEVER, "delay_least": NEVER, "rack_sent": -1.0,
            "rack_segment": -1, "reorder_at": NEVER, "pending_at": NEVER, "ack_at": NEVER}
OF_SEGMENTS = ("sent", "fate", "sacked", "lost", "again", "there")
OF_ACKS = ("ack_at", "ack_upto", "ack_of")


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
    one. number: in the order of the caller. See `begin` for what the others are at first.
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
    again_count: Counts
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
    again: Flags
    there: Flags
    ack_at: Numbers
    ack_upto: Counts
    ack_of: Counts

    def keep(self, inside: Flags) -> None:
        """Only those transfers."""
        for name, values in vars(self).items():
            setattr(self, name, values[inside])


def begin(drawn: Drawn, number: Counts, initcwnd: Counts, queue: Counts,
          kernels: Kernels) -> Transfers:
    """Transfers before their first segment leaves.

    drawn: the responses; number: which of them each transfer is of; initcwnd, queue: of each
    transfer, segments and packets. All of shape (n,).
    """
    link = drawn.link_kbps[number]
    headers = RESPONSE_HEADER_BYTES + LENGTH_DIGITS
    bodies = [getattr(drawn, name)[number] for name in ("earlier_bytes", "burst_bytes")]
    rest_bytes = drawn.response_bytes[number] - bodies[1] + numpy.where(bodies[1], 0, headers)
    earlier_bytes, burst_bytes = (numpy.where(each, each + headers, 0) for each in bodies)
    earlier, burst, rest = map(_segments, (earlier_bytes, burst_bytes, rest_bytes))
    size = earlier + burst + rest
    handshake = drawn.rtt_ms[number] + 2 * HEADER_BYTES * 8 / link
    loss, chance = drawn.loss_percent[number] / 100, losses.begin(drawn.seed[number])
    # After a SYN-ACK that was retransmitted nothing is known of the RTT (tcp_init_metrics).
    known = ~losses.handshakes(chance, loss, handshake, kernels.syn_timer_ms)
    variance = numpy.where(known, numpy.maximum(2 * handshake, 200.0), 0.0)
    of = _blank(number, chance, int(size.max()) + 1)
    given = {
        "rtt": drawn.rtt_ms[number], "segment_ms": FRAME_BITS / link,
        "ack_ms": HEADER_BYTES * 8 / link, "request_ms": REQUEST_BITS / link, "loss": loss,
        "earlier": earlier, "burst": burst, "size": size,
        "last_earlier_ms": _last_ms(earlier_bytes, link), "last_ms": _last_ms(rest_bytes, link),
        "gap": drawn.gap_ms[number], "queue": queue, "stage": numpy.where(earlier, 0, 1),
        "window": initcwnd, "smoothed": numpy.where(known, handshake, 0.0),
        "deviation": numpy.where(known, 2.0 * handshake, 0.0), "worst": variance,
        "variance": variance, "least_rtt": numpy.where(known, handshake, NEVER),
        "quick": kernels.quick_acks, "patience": kernels.patience_ms, **AT_FIRST}
    for name, values in given.items():
        getattr(of, name)[...] = values
    return of


def _blank(number: Counts, chance: NDArray[numpy.uint32], width: int) -> Transfers:
    """Transfers of which nothing is known."""
    kinds = {"Numbers": numpy.float64, "Counts": numpy.int64, "Flags": numpy.bool_}
    widths = {**dict.fromkeys(OF_SEGMENTS, width), **dict.fromkeys(OF_ACKS, 2 * width + 64)}
    made: dict[str, Any] = {
        each.name: numpy.zeros((len(number), *([widths[each.name]] if each.name in widths
                                               else [])), kinds[str(each.type)])
        for each in fields(Transfers) if str(each.type) in kinds}
    made.update(number=number, chance=chance)
    return Transfers(**made)


def _segments(size_bytes: Counts) -> Counts:
    return -(-size_bytes // SEGMENT_BYTES)


def _last_ms(size_bytes: Counts, link_kbps: Numbers) -> Numbers:
    """How long the last segment of so many bytes is on the link."""
    last = size_bytes - (_segments(size_bytes) - 1) * SEGMENT_BYTES
    return (last + HEADER_BYTES) * 8 / link_kbps
