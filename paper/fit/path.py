"""The path and the receiver, for many transfers at once: what becomes of a segment that leaves.

A path is half the RTT, then the bottleneck: its drop-tail queue, and store and forward. Random
loss comes before the queue. The receiver acknowledges as Linux's does (lab.tcp.model.receiver).
"""

from __future__ import annotations

import numpy

from paper.fit import losses
from paper.fit.state import NEVER, Counts, Flags, Numbers, Transfers


def transmit(of: Transfers, rows: Counts, segment: Counts) -> None:
    """A segment leaves each of these senders now."""
    reach = of.now[rows] + of.rtt[rows] / 2
    free = of.link_free[rows]
    dropped = _lost(of, rows)
    waiting = numpy.ceil((free - reach) / of.segment_ms[rows] - 1e-9)
    dropped |= waiting >= of.queue[rows]
    of.fate[rows, segment] = dropped
    rows, segment, reach, free = (values[~dropped] for values in (rows, segment, reach, free))
    arrival = numpy.maximum(reach, free) + _on_link_ms(of, rows, segment)
    of.link_free[rows] = arrival
    _receive(of, rows, segment, arrival)


def again(of: Transfers, rows: Counts) -> None:
    """The oldest segment once more, although it was not lost: it only takes the link's time."""
    reach = of.now[rows] + of.rtt[rows] / 2
    of.link_free[rows] = numpy.maximum(reach, of.link_free[rows]) + of.segment_ms[rows]


def _lost(of: Transfers, rows: Counts) -> Flags:
    lost = numpy.zeros(len(rows), bool)
    risky = numpy.flatnonzero(of.loss[rows])
    lost[risky] = losses.lost(of.chance, rows[risky], of.loss[rows[risky]])
    return lost


def _on_link_ms(of: Transfers, rows: Counts, segment: Counts) -> Numbers:
    taken = numpy.where(segment == of.size[rows] - 1, of.last_ms[rows], of.segment_ms[rows])
    earlier = segment == of.earlier[rows] - 1
    taken[earlier] = of.last_earlier_ms[rows[earlier]]
    return taken


def _receive(of: Transfers, rows: Counts, segment: Counts, arrival: Numbers) -> None:
    late = of.pending_at[rows] < arrival
    if late.any():
        lose_patience(of, rows[late])
    in_order = segment == of.received[rows]
    gap = of.above[rows] > 0
    of.received[rows[in_order]] += 1
    _fill(of, rows[in_order & gap])
    beyond = ~in_order & ~of.there[rows, segment] & (segment > of.received[rows])
    of.there[rows[beyond], segment[beyond]] = True
    of.above[rows[beyond]] += 1
    received = of.received[rows]
    asks = in_order & (received >= of.earlier[rows]) & (of.stage[rows] == 1) & (
        of.write_at[rows] == NEVER)
    quick = (of.quick[rows] > 0) & ~of.interactive[rows]
    at_once = (quick | ~in_order | gap | (of.pending_at[rows] < NEVER) | asks
               | (received >= of.size[rows]))
    _report(of, rows[at_once], arrival[at_once], segment[at_once])
    of.pending_at[rows[at_once]] = NEVER
    of.pending_at[rows[~at_once]] = arrival[~at_once] + of.patience[rows[~at_once]]
    asking = rows[asks]
    if len(asking):
        of.write_at[asking] = (arrival[asks] + of.rtt[asking] / 2 + of.ack_ms[asking]
                               + of.request_ms[asking])
        of.interactive[asking] = True


def _fill(of: Transfers, rows: Counts) -> None:
    """What had come before its turn follows."""
    while len(rows):
        rows = rows[of.there[rows, of.received[rows]] & (of.above[rows] > 0)]
        of.received[rows] += 1
        of.above[rows] -= 1


def lose_patience(of: Transfers, rows: Counts) -> None:
    """The acknowledgement that was put off leaves; the next ones are quick again."""
    _report(of, rows, of.pending_at[rows], of.received[rows] - 1)
    of.pending_at[rows] = NEVER
    of.interactive[rows] = False


def _report(of: Transfers, rows: Counts, at: Numbers, segment: Counts) -> None:
    """An acknowledgement that leaves at a time, caused by a segment."""
    place = numpy.minimum(of.reported[rows], of.ack_at.shape[1] - 2)
    of.ack_at[rows, place] = at + of.rtt[rows] / 2 + of.ack_ms[rows]
    of.ack_upto[rows, place] = of.received[rows]
    of.ack_of[rows, place] = segment
    of.reported[rows] = place + 1
    of.quick[rows] -= 1
