"""Acknowledgements and what they say of losses, for many senders at once.

SACK, RACK (RFC 8985) and proportional rate reduction (RFC 6937) as Linux has them
(tcp_rack_detect_loss, tcp_cwnd_reduction); no tail loss probes.
"""

from __future__ import annotations

import numpy

from paper.fit import window
from paper.fit.state import CONGESTED, NEVER, Counts, Transfers

DUPLICATES = 3  # tcp_reordering


def acknowledge(of: Transfers, rows: Counts) -> None:
    """Each of these senders takes its next acknowledgement."""
    place = of.heard[rows]
    upto, segment = of.ack_upto[rows, place], of.ack_of[rows, place]
    of.heard[rows] += 1
    count = numpy.maximum(upto - of.acked[rows], 0)
    oldest = of.acked[rows]
    first_sent, last_sent = of.sent[rows, oldest], of.sent[rows, numpy.maximum(upto - 1, 0)]
    clean = (count > 0) & ~of.again[rows, oldest] & ~of.lost[rows, oldest]
    messy = (of.sacked_count[rows] > 0) | (of.lost_count[rows] > 0) | (of.state[rows] > 0)
    _note_newest(of, rows, segment)
    delivered = count.copy()
    delivered[messy] -= _forget(of, rows[messy], upto[messy])
    of.acked[rows] = numpy.maximum(of.acked[rows], upto)
    window.sample(of, rows[clean], (of.now[rows] - first_sent)[clean])
    window.hystart(of, rows[clean], (of.now[rows] - last_sent)[clean])
    out_of_order = segment >= of.acked[rows]
    if out_of_order.any():
        delivered[out_of_order] += _mark_arrived(of, rows[out_of_order], segment[out_of_order])
    moved = count > 0
    of.backoff[rows[moved]] = 1
    window.start_timer(of, rows[moved])
    of.timeout_at[rows[of.acked[rows] >= of.next[rows]]] = NEVER
    suspicious = messy | out_of_order
    grows = moved & (of.state[rows] != CONGESTED)
    window.grow(of, rows[grows], count[grows])
    if suspicious.any():
        recover(of, rows[suspicious], delivered[suspicious], moved[suspicious])


def _note_newest(of: Transfers, rows: Counts, segment: Counts) -> None:
    """Which segment that arrived left last (tcp_rack_advance)."""
    sent = of.sent[rows, segment]
    rtt = of.now[rows] - sent
    newer = ((sent > of.rack_sent[rows]) | ((sent == of.rack_sent[rows])
                                            & (segment > of.rack_segment[rows])))
    newer &= ~(of.again[rows, segment] & (rtt < of.least_rtt[rows]))
    rows = rows[newer]
    of.rack_sent[rows], of.rack_segment[rows] = sent[newer], segment[newer]
    of.rack_rtt[rows] = rtt[newer]


def _forget(of: Transfers, rows: Counts, upto: Counts) -> Counts:
    """What is acknowledged now is lost no more; how many of it had been reported before."""
    place = numpy.arange(of.sent.shape[1])
    inside = (place >= of.acked[rows, None]) & (place < upto[:, None])
    known: Counts = (of.sacked[rows] & inside).sum(axis=1)
    of.sacked_count[rows] -= known
    of.lost_count[rows] -= (of.lost[rows] & inside).sum(axis=1)
    of.again_count[rows] -= (of.again[rows] & inside).sum(axis=1)
    of.lost[rows] &= ~inside
    of.again[rows] &= ~inside
    return known


def _mark_arrived(of: Transfers, rows: Counts, segment: Counts) -> Counts:
    """A segment behind a gap was reported; 1 where that is new (tcp_sacktag_one)."""
    new = ~of.sacked[rows, segment]
    rows, segment = rows[new], segment[new]
    of.sacked[rows, segment] = True
    of.sacked_count[rows] += 1
    of.lost_count[rows] -= of.lost[rows, segment]
    of.again_count[rows] -= of.again[rows, segment]
    of.lost[rows, segment] = of.again[rows, segment] = False
    return new.astype(numpy.int64)


def recover(of: Transfers, rows: Counts, delivered: Counts, moved: Counts) -> None:
    """What is lost by now, and how much may be sent in its place."""
    ends = (of.state[rows] > 0) & (of.acked[rows] >= of.recover_upto[rows])
    over = rows[ends]
    reduced = over[of.state[over] == CONGESTED]
    of.window[reduced] = of.threshold[reduced]
    of.state[over] = 0
    found = detect(of, rows)
    enters = (found > 0) & (of.state[rows] == 0)
    fresh = rows[enters]
    of.state[fresh], of.recover_upto[fresh] = CONGESTED, of.next[fresh]
    of.prior_window[fresh] = of.window[fresh]
    window.reduce(of, fresh)
    of.recovered[fresh] = of.recovery_sent[fresh] = 0
    inside = of.state[rows] == CONGESTED
    rows, delivered = rows[inside], delivered[inside]
    of.recovered[rows] += delivered
    flying = window.in_flight(of, rows)
    room = of.threshold[rows] - flying
    proportional = (numpy.ceil(of.threshold[rows] * of.recovered[rows] / of.prior_window[rows])
                    - of.recovery_sent[rows])
    catching_up = numpy.maximum(of.recovered[rows] - of.recovery_sent[rows], delivered)
    catching_up += moved[inside] & (found[inside] == 0)
    allowed = numpy.where(room < 0, proportional, numpy.minimum(room, catching_up))
    allowed = numpy.maximum(allowed, of.recovery_sent[rows] == 0)
    of.window[rows] = flying + allowed


def detect(of: Transfers, rows: Counts) -> Counts:
    """Mark what is lost by what arrived though it left later; how many are new (RACK)."""
    place = numpy.arange(of.sent.shape[1])
    sent, resent = of.sent[rows], of.again[rows]
    outstanding = ((place >= of.acked[rows, None]) & (place < of.next[rows, None])
                   & ~of.sacked[rows] & (~of.lost[rows] | resent))
    newest = of.rack_sent[rows, None]
    before = (sent < newest) | ((sent == newest) & (place < of.rack_segment[rows, None]))
    patience = numpy.where((of.state[rows] > 0) | (of.sacked_count[rows] >= DUPLICATES), 0.0,
                           numpy.minimum(of.least_rtt[rows] / 4, of.smoothed[rows] / 8))
    due = sent + (of.rack_rtt[rows] + patience)[:, None]
    suspect = outstanding & before
    gone = suspect & (due <= of.now[rows, None] + 1e-6)
    of.reorder_at[rows] = numpy.where(suspect & ~gone, due, NEVER).min(axis=1)
    of.lost_count[rows] += (gone & ~of.lost[rows]).sum(axis=1)
    of.again_count[rows] -= (gone & resent).sum(axis=1)
    of.lost[rows] |= gone
    of.again[rows] &= ~gone
    found: Counts = gone.sum(axis=1)
    return found


def expire(of: Transfers, rows: Counts) -> Counts:
    """Retransmission timers that run out; where nothing was lost, those transfers."""
    of.backoff[rows] *= 2
    in_vain = ~of.fate[rows, of.acked[rows]]
    window.time_out(of, rows[~in_vain])
    of.retransmitted[rows] += in_vain & (of.acked[rows] >= of.earlier[rows])
    window.start_timer(of, rows)
    of.reorder_at[rows] = NEVER
    vain: Counts = rows[in_vain]
    return vain
