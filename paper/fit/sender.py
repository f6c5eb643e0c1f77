"""Many senders at once: their windows and timers, and what acknowledgements report of losses.

Growth, HyStart and timers as in lab.tcp.model.window; SACK, RACK (RFC 8985) and proportional rate
reduction (RFC 6937) as Linux has them (tcp_rack_detect_loss, tcp_cwnd_reduction); no tail loss
probes.
"""

from __future__ import annotations

import numpy

from paper.fit.state import CONGESTED, LOST, NEVER, UNLIMITED, Counts, Numbers, Transfers

# Windows and timers -------------------------------------------------------------------

LEAST_TIMEOUT_MS = 200.0
LONGEST_TIMEOUT_MS = 120_000.0
FALLBACK_TIMEOUT_MS = 3000.0  # TCP_TIMEOUT_FALLBACK
CUBE = 0.4  # segments a cubed second (RFC 9438, C)
LEAST_HYSTART_WINDOW, SAMPLES, SPACING_MS = 16, 8, 2.0


def in_flight(flows: Transfers, rows: Counts) -> Counts:
    """Segments that are taken to be on their way."""
    count: Counts = (flows.next[rows] - flows.acked[rows] - flows.sacked_count[rows]
                     - flows.lost_count[rows] + flows.retrans_out[rows])
    return count


def note_use(flows: Transfers, rows: Counts) -> None:
    """Whether the window was used up by what was sent (tcp_cwnd_validate)."""
    rows = rows[flows.sent_since[rows]]
    flows.sent_since[rows] = False
    out = flows.next[rows] - flows.acked[rows]
    limited = in_flight(flows, rows) >= numpy.floor(flows.window[rows])
    fresh = ((flows.acked[rows] >= flows.usage_end[rows]) | limited
             | (~flows.limited[rows] & (out > flows.most_out[rows])))
    rows = rows[fresh]
    flows.limited[rows], flows.most_out[rows] = limited[fresh], out[fresh]
    flows.usage_end[rows] = flows.next[rows]


def timeout_ms(flows: Transfers, rows: Counts) -> Numbers:
    known = numpy.where(flows.smoothed[rows] > 0, flows.smoothed[rows] + flows.variance[rows],
                        FALLBACK_TIMEOUT_MS)
    wait: Numbers = numpy.minimum(known * flows.backoff[rows], LONGEST_TIMEOUT_MS)
    return wait


def start_timer(flows: Transfers, rows: Counts) -> None:
    flows.timeout_at[rows] = flows.now[rows] + timeout_ms(flows, rows)


def sample(flows: Transfers, rows: Counts, rtt: Numbers) -> None:
    """A round trip was measured (tcp_rtt_estimator). `acked` is what is acknowledged now."""
    flows.least_rtt[rows] = numpy.minimum(flows.least_rtt[rows], rtt)
    first = flows.smoothed[rows] == 0
    begun = rows[first]
    flows.smoothed[begun], flows.deviation[begun] = rtt[first], 2 * rtt[first]
    flows.variance[begun] = flows.worst[begun] = numpy.maximum(2 * rtt[first], LEAST_TIMEOUT_MS)
    rows, rtt = rows[~first], rtt[~first]
    error = rtt - flows.smoothed[rows]
    flows.smoothed[rows] += error / 8
    change = numpy.abs(error) - flows.deviation[rows] / 4
    flows.deviation[rows] += numpy.where((error < 0) & (change > 0), change / 8, change)
    flows.worst[rows] = numpy.maximum(flows.worst[rows], flows.deviation[rows])
    flows.variance[rows] = numpy.maximum(flows.variance[rows], flows.worst[rows])
    rows = rows[flows.acked[rows] > flows.round_end[rows]]
    over = flows.variance[rows] - flows.worst[rows]
    flows.variance[rows] -= numpy.maximum(over, 0) / 4
    flows.worst[rows] = LEAST_TIMEOUT_MS
    flows.round_end[rows] = flows.next[rows]


def grow(flows: Transfers, rows: Counts, count: Counts) -> None:
    """So many segments were acknowledged in order (cubictcp_cong_avoid)."""
    limited = flows.limited[rows] | ((flows.window[rows] < flows.threshold[rows])
                                     & (flows.window[rows] < 2 * flows.most_out[rows]))
    rows, left = rows[limited], count[limited].astype(float)
    slow = numpy.clip(flows.threshold[rows] - flows.window[rows], 0, left)
    flows.window[rows] += slow
    left -= slow
    rows, left = rows[left > 0], left[left > 0]
    if len(rows):
        flows.window[rows] += left / _per_segment(flows, rows, left)


def _per_segment(flows: Transfers, rows: Counts, count: Numbers) -> Numbers:
    """How many acknowledged segments grow the window by one (bictcp_update)."""
    begins = flows.epoch[rows] < 0
    fresh = rows[begins]
    flows.epoch[fresh], flows.friendly[fresh] = flows.now[fresh], flows.window[fresh]
    flows.friendly[rows] += count / (15 / 8 * flows.window[rows])
    have = flows.window[rows]
    below = numpy.maximum(flows.last_most[rows] - flows.origin[rows], 0)
    flows.origin[fresh] = have[begins]
    below[begins] = numpy.maximum(flows.last_most[fresh] - have[begins], 0)
    seconds = (flows.now[rows] - flows.epoch[rows] + flows.least_rtt[rows]) / 1000
    target = flows.origin[rows] + below + CUBE * (seconds - numpy.cbrt(below / CUBE)) ** 3
    per = numpy.where(target > have, have / numpy.maximum(target - have, 1e-3), 100 * have)
    per = numpy.where(flows.last_most[rows] == 0, numpy.minimum(per, 20), per)
    ahead = flows.friendly[rows] - have
    per = numpy.where(ahead > 0, numpy.minimum(per, have / numpy.maximum(ahead, 1e-3)), per)
    return numpy.maximum(per, 2.0)


def hystart(flows: Transfers, rows: Counts, rtt: Numbers) -> None:
    """Whether slow start ends (hystart_update)."""
    flows.delay_least[rows] = numpy.minimum(flows.delay_least[rows], rtt)
    slow = flows.threshold[rows] == UNLIMITED
    rows, rtt = rows[slow], rtt[slow]
    now = flows.now[rows]
    fresh = flows.acked[rows] > flows.train_end[rows]
    begun = rows[fresh]
    flows.train_began[begun] = flows.train_last[begun] = now[fresh]
    flows.train_end[begun] = flows.next[begun]
    flows.train_samples[begun], flows.train_least[begun] = 0, NEVER
    large = flows.window[rows] >= LEAST_HYSTART_WINDOW
    rows, rtt, now = rows[large], rtt[large], now[large]
    if not len(rows):
        return
    close = now - flows.train_last[rows] <= SPACING_MS
    flows.train_last[rows[close]] = now[close]
    least = flows.delay_least[rows]
    ends = close & (now - flows.train_began[rows] > (least + 1) / 2)
    flows.train_least[rows] = numpy.minimum(flows.train_least[rows], rtt)
    enough = flows.train_samples[rows] >= SAMPLES
    ends |= enough & (flows.train_least[rows] > least + numpy.clip(least / 8, 4, 16))
    flows.train_samples[rows] += ~enough
    flows.threshold[rows[ends]] = flows.window[rows[ends]]


def reduce(flows: Transfers, rows: Counts) -> None:
    """Losses lower the threshold (cubictcp_recalc_ssthresh)."""
    have = numpy.floor(flows.window[rows])
    most = flows.last_most[rows]
    flows.last_most[rows] = numpy.where(have < most, have * (1024 + 717) / 2048, have)
    flows.threshold[rows] = numpy.maximum(numpy.floor(have * 717 / 1024), 2.0)
    flows.epoch[rows] = -1


def time_out(flows: Transfers, rows: Counts) -> None:
    """All that was sent is taken for lost (tcp_enter_loss)."""
    fresh = rows[flows.state[rows] != LOST]
    reduce(flows, fresh)
    flows.last_most[fresh] = 0  # forgotten (bictcp_reset)
    place = numpy.arange(flows.sent.shape[1])
    outstanding = ((place >= flows.acked[rows, None]) & (place < flows.next[rows, None])
                   & ~flows.sacked[rows])
    flows.lost[rows] = outstanding
    flows.is_retransmitted[rows] = False
    flows.lost_count[rows] = outstanding.sum(axis=1)
    flows.retrans_out[rows] = 0
    flows.window[rows] = 1
    flows.state[rows] = LOST
    flows.recover_upto[rows] = flows.next[rows]


# Acknowledgements and recovery --------------------------------------------------------

DUPLICATES = 3  # tcp_reordering


def acknowledge(flows: Transfers, rows: Counts) -> None:
    """Each of these senders takes its next acknowledgement."""
    place = flows.heard[rows]
    upto, segment = flows.ack_upto[rows, place], flows.ack_of[rows, place]
    flows.heard[rows] += 1
    count = numpy.maximum(upto - flows.acked[rows], 0)
    oldest = flows.acked[rows]
    first_sent, last_sent = flows.sent[rows, oldest], flows.sent[rows, numpy.maximum(upto - 1, 0)]
    clean = (count > 0) & ~flows.is_retransmitted[rows, oldest] & ~flows.lost[rows, oldest]
    messy = (flows.sacked_count[rows] > 0) | (flows.lost_count[rows] > 0) | (flows.state[rows] > 0)
    _note_newest(flows, rows, segment)
    delivered = count.copy()
    delivered[messy] -= _forget(flows, rows[messy], upto[messy])
    flows.acked[rows] = numpy.maximum(flows.acked[rows], upto)
    sample(flows, rows[clean], (flows.now[rows] - first_sent)[clean])
    hystart(flows, rows[clean], (flows.now[rows] - last_sent)[clean])
    out_of_order = segment >= flows.acked[rows]
    if out_of_order.any():
        delivered[out_of_order] += _mark_arrived(flows, rows[out_of_order], segment[out_of_order])
    moved = count > 0
    flows.backoff[rows[moved]] = 1
    start_timer(flows, rows[moved])
    flows.timeout_at[rows[flows.acked[rows] >= flows.next[rows]]] = NEVER
    suspicious = messy | out_of_order
    grows = moved & (flows.state[rows] != CONGESTED)
    grow(flows, rows[grows], count[grows])
    if suspicious.any():
        recover(flows, rows[suspicious], delivered[suspicious], moved[suspicious])


def _note_newest(flows: Transfers, rows: Counts, segment: Counts) -> None:
    """Which segment that arrived left last (tcp_rack_advance)."""
    sent = flows.sent[rows, segment]
    rtt = flows.now[rows] - sent
    newer = ((sent > flows.rack_sent[rows]) | ((sent == flows.rack_sent[rows])
                                               & (segment > flows.rack_segment[rows])))
    newer &= ~(flows.is_retransmitted[rows, segment] & (rtt < flows.least_rtt[rows]))
    rows = rows[newer]
    flows.rack_sent[rows], flows.rack_segment[rows] = sent[newer], segment[newer]
    flows.rack_rtt[rows] = rtt[newer]


def _forget(flows: Transfers, rows: Counts, upto: Counts) -> Counts:
    """What is acknowledged now is lost no more; how many of it had been reported before."""
    place = numpy.arange(flows.sent.shape[1])
    inside = (place >= flows.acked[rows, None]) & (place < upto[:, None])
    known: Counts = (flows.sacked[rows] & inside).sum(axis=1)
    flows.sacked_count[rows] -= known
    flows.lost_count[rows] -= (flows.lost[rows] & inside).sum(axis=1)
    flows.retrans_out[rows] -= (flows.is_retransmitted[rows] & inside).sum(axis=1)
    flows.lost[rows] &= ~inside
    flows.is_retransmitted[rows] &= ~inside
    return known


def _mark_arrived(flows: Transfers, rows: Counts, segment: Counts) -> Counts:
    """A segment behind a gap was reported; 1 where that is new (tcp_sacktag_one)."""
    new = ~flows.sacked[rows, segment]
    rows, segment = rows[new], segment[new]
    flows.sacked[rows, segment] = True
    flows.sacked_count[rows] += 1
    flows.lost_count[rows] -= flows.lost[rows, segment]
    flows.retrans_out[rows] -= flows.is_retransmitted[rows, segment]
    flows.lost[rows, segment] = flows.is_retransmitted[rows, segment] = False
    return new.astype(numpy.int64)


def recover(flows: Transfers, rows: Counts, delivered: Counts, moved: Counts) -> None:
    """What is lost by now, and how much may be sent in its place."""
    ends = (flows.state[rows] > 0) & (flows.acked[rows] >= flows.recover_upto[rows])
    over = rows[ends]
    reduced = over[flows.state[over] == CONGESTED]
    flows.window[reduced] = flows.threshold[reduced]
    flows.state[over] = 0
    newly_lost = detect(flows, rows)
    enters = (newly_lost > 0) & (flows.state[rows] == 0)
    fresh = rows[enters]
    flows.state[fresh], flows.recover_upto[fresh] = CONGESTED, flows.next[fresh]
    flows.prior_window[fresh] = flows.window[fresh]
    reduce(flows, fresh)
    flows.recovered[fresh] = flows.recovery_sent[fresh] = 0
    inside = flows.state[rows] == CONGESTED
    rows, delivered = rows[inside], delivered[inside]
    flows.recovered[rows] += delivered
    flying = in_flight(flows, rows)
    room = flows.threshold[rows] - flying
    proportional = (numpy.ceil(flows.threshold[rows] * flows.recovered[rows]
                               / flows.prior_window[rows]) - flows.recovery_sent[rows])
    catching_up = numpy.maximum(flows.recovered[rows] - flows.recovery_sent[rows], delivered)
    catching_up += moved[inside] & (newly_lost[inside] == 0)
    allowed = numpy.where(room < 0, proportional, numpy.minimum(room, catching_up))
    allowed = numpy.maximum(allowed, flows.recovery_sent[rows] == 0)
    flows.window[rows] = flying + allowed


def detect(flows: Transfers, rows: Counts) -> Counts:
    """Mark what is lost by what arrived though it left later; how many are new (RACK)."""
    place = numpy.arange(flows.sent.shape[1])
    sent, resent = flows.sent[rows], flows.is_retransmitted[rows]
    outstanding = ((place >= flows.acked[rows, None]) & (place < flows.next[rows, None])
                   & ~flows.sacked[rows] & (~flows.lost[rows] | resent))
    newest = flows.rack_sent[rows, None]
    before = (sent < newest) | ((sent == newest) & (place < flows.rack_segment[rows, None]))
    patience = numpy.where((flows.state[rows] > 0) | (flows.sacked_count[rows] >= DUPLICATES), 0.0,
                           numpy.minimum(flows.least_rtt[rows] / 4, flows.smoothed[rows] / 8))
    due = sent + (flows.rack_rtt[rows] + patience)[:, None]
    suspect = outstanding & before
    gone = suspect & (due <= flows.now[rows, None] + 1e-6)
    flows.reorder_at[rows] = numpy.where(suspect & ~gone, due, NEVER).min(axis=1)
    flows.lost_count[rows] += (gone & ~flows.lost[rows]).sum(axis=1)
    flows.retrans_out[rows] -= (gone & resent).sum(axis=1)
    flows.lost[rows] |= gone
    flows.is_retransmitted[rows] &= ~gone
    count: Counts = gone.sum(axis=1)
    return count


def expire(flows: Transfers, rows: Counts) -> Counts:
    """Retransmission timers that run out; where nothing was lost, those transfers."""
    flows.backoff[rows] *= 2
    in_vain = ~flows.fate[rows, flows.acked[rows]]
    time_out(flows, rows[~in_vain])
    flows.retransmitted[rows] += in_vain & (flows.acked[rows] >= flows.earlier[rows])
    start_timer(flows, rows)
    flows.reorder_at[rows] = NEVER
    vain: Counts = rows[in_vain]
    return vain
