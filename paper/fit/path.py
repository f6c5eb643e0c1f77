"""The path and the receiver, for many transfers at once: what becomes of a segment that leaves.

A path is half the RTT, then the bottleneck: its drop-tail queue, and store and forward. Random
loss comes before the queue. The receiver acknowledges as Linux's does (lab.tcp.model.receiver).
"""

from __future__ import annotations

import numpy
from numpy.typing import NDArray

from paper.fit.state import NEVER, Counts, Flags, Numbers, Transfers

# Random loss --------------------------------------------------------------------------

# The worker seeds netem with a trial's seed, so that the simulation loses what the guest loses
# (prandom_seed_state, prandom_u32_state; netem's loss_event). Every packet towards the client
# draws a number, the SYN-ACK first.
Chances = NDArray[numpy.uint32]
# Of each of the generator's four parts (TAUSWORTHE): shifts and mask; the least of a seed.
_PARTS = ((6, 13, 4294967294, 18, 2), (2, 27, 4294967288, 2, 8), (13, 21, 4294967280, 7, 16),
          (3, 12, 4294967168, 13, 128))


def generators(seed: Counts) -> Chances:
    """Netem's random number generators of these seeds, shape (n, 4)."""
    wide = seed.astype(numpy.uint64)
    mixed = ((wide >> numpy.uint64(32)) ^ (wide << numpy.uint64(10)) ^ wide).astype(numpy.uint32)
    return numpy.stack([numpy.where(mixed < least, mixed + numpy.uint32(least), mixed)
                        for *_, least in _PARTS], axis=1)


def dropped(chance: Chances, rows: Counts, share: Numbers) -> Flags:
    """Whether the next packet of each of these transfers is dropped; share: of all, shape (n,)."""
    value = numpy.zeros(len(rows), numpy.uint32)
    for part, (up, down, mask, by, _) in enumerate(_PARTS):
        state = chance[rows, part]
        state = (((state & numpy.uint32(mask)) << numpy.uint32(by))
                 ^ (((state << numpy.uint32(up)) ^ state) >> numpy.uint32(down)))
        chance[rows, part] = state
        value ^= state
    return value <= share * 2.0**32


def handshakes(chance: Chances, share: Numbers, handshake_ms: Numbers, timer_ms: float
               ) -> Flags:
    """Let each SYN-ACK arrive, and the acknowledgement of the request; which were retransmitted.

    Where the handshake outlasts the timers (timer_ms) of the SYN and of the SYN-ACK, each that
    runs out sends the SYN-ACK once more.
    """
    repeated = handshake_ms > timer_ms
    rows = numpy.flatnonzero(share)
    lost = rows
    while len(lost):
        lost = lost[dropped(chance, lost, share[lost])]
        repeated[lost] = True
    expired = numpy.floor(numpy.log2(handshake_ms / timer_ms + 1))
    for number in range(int(expired.max(initial=0))):
        late = rows[expired[rows] > number]
        for _ in range(2):
            dropped(chance, late, share[late])
    dropped(chance, rows, share[rows])
    return repeated


# The path -----------------------------------------------------------------------------

def transmit(flows: Transfers, rows: Counts, segment: Counts) -> None:
    """A segment leaves each of these senders now."""
    reach = flows.now[rows] + flows.rtt[rows] / 2
    free = flows.link_free[rows]
    gone = _lost(flows, rows)
    waiting = numpy.ceil((free - reach) / flows.segment_ms[rows] - 1e-9)
    gone |= waiting >= flows.queue[rows]
    flows.fate[rows, segment] = gone
    rows, segment, reach, free = (values[~gone] for values in (rows, segment, reach, free))
    arrival = numpy.maximum(reach, free) + _on_link_ms(flows, rows, segment)
    flows.link_free[rows] = arrival
    _receive(flows, rows, segment, arrival)


def retry(flows: Transfers, rows: Counts) -> None:
    """The oldest segment once more, although it was not lost: it only takes the link's time."""
    reach = flows.now[rows] + flows.rtt[rows] / 2
    flows.link_free[rows] = numpy.maximum(reach, flows.link_free[rows]) + flows.segment_ms[rows]


def _lost(flows: Transfers, rows: Counts) -> Flags:
    lost = numpy.zeros(len(rows), bool)
    risky = numpy.flatnonzero(flows.loss[rows])
    lost[risky] = dropped(flows.chance, rows[risky], flows.loss[rows[risky]])
    return lost


def _on_link_ms(flows: Transfers, rows: Counts, segment: Counts) -> Numbers:
    is_last = segment == flows.size[rows] - 1
    taken = numpy.where(is_last, flows.last_ms[rows], flows.segment_ms[rows])
    earlier = segment == flows.earlier[rows] - 1
    taken[earlier] = flows.last_earlier_ms[rows[earlier]]
    return taken


def _receive(flows: Transfers, rows: Counts, segment: Counts, arrival: Numbers) -> None:
    late = flows.pending_at[rows] < arrival
    if late.any():
        lose_patience(flows, rows[late])
    in_order = segment == flows.received[rows]
    gap = flows.above[rows] > 0
    flows.received[rows[in_order]] += 1
    _fill(flows, rows[in_order & gap])
    beyond = ~in_order & ~flows.there[rows, segment] & (segment > flows.received[rows])
    flows.there[rows[beyond], segment[beyond]] = True
    flows.above[rows[beyond]] += 1
    received = flows.received[rows]
    asks = in_order & (received >= flows.earlier[rows]) & (flows.stage[rows] == 1) & (
        flows.write_at[rows] == NEVER)
    quick = (flows.quick[rows] > 0) & ~flows.interactive[rows]
    at_once = (quick | ~in_order | gap | (flows.pending_at[rows] < NEVER) | asks
               | (received >= flows.size[rows]))
    _report(flows, rows[at_once], arrival[at_once], segment[at_once])
    flows.pending_at[rows[at_once]] = NEVER
    flows.pending_at[rows[~at_once]] = arrival[~at_once] + flows.patience[rows[~at_once]]
    asking = rows[asks]
    if len(asking):
        flows.write_at[asking] = (arrival[asks] + flows.rtt[asking] / 2 + flows.ack_ms[asking]
                                  + flows.request_ms[asking])
        flows.interactive[asking] = True


def _fill(flows: Transfers, rows: Counts) -> None:
    """What had come before its turn follows."""
    while len(rows):
        rows = rows[flows.there[rows, flows.received[rows]] & (flows.above[rows] > 0)]
        flows.received[rows] += 1
        flows.above[rows] -= 1


def lose_patience(flows: Transfers, rows: Counts) -> None:
    """The acknowledgement that was put off leaves; the next ones are quick again."""
    _report(flows, rows, flows.pending_at[rows], flows.received[rows] - 1)
    flows.pending_at[rows] = NEVER
    flows.interactive[rows] = False


def _report(flows: Transfers, rows: Counts, at: Numbers, segment: Counts) -> None:
    """An acknowledgement that leaves at a time, caused by a segment."""
    place = numpy.minimum(flows.reported[rows], flows.ack_at.shape[1] - 2)
    flows.ack_at[rows, place] = at + flows.rtt[rows] / 2 + flows.ack_ms[rows]
    flows.ack_upto[rows, place] = flows.received[rows]
    flows.ack_of[rows, place] = segment
    flows.reported[rows] = place + 1
    flows.quick[rows] -= 1
