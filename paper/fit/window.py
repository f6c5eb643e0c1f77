"""The windows of many senders at once: growth, HyStart, timers (lab.tcp.model.window)."""

from __future__ import annotations

import numpy

from paper.fit.state import LOST, NEVER, UNLIMITED, Counts, Numbers, Transfers

LEAST_TIMEOUT_MS = 200.0
LONGEST_TIMEOUT_MS = 120_000.0
FALLBACK_TIMEOUT_MS = 3000.0  # TCP_TIMEOUT_FALLBACK
CUBE = 0.4  # segments a cubed second (RFC 9438, C)
LEAST_HYSTART_WINDOW, SAMPLES, SPACING_MS = 16, 8, 2.0


def in_flight(of: Transfers, rows: Counts) -> Counts:
    """Segments that are taken to be on their way."""
    count: Counts = (of.next[rows] - of.acked[rows] - of.sacked_count[rows] - of.lost_count[rows]
                     + of.again_count[rows])
    return count


def note_use(of: Transfers, rows: Counts) -> None:
    """Whether the window was used up by what was sent (tcp_cwnd_validate)."""
    rows = rows[of.sent_since[rows]]
    of.sent_since[rows] = False
    out = of.next[rows] - of.acked[rows]
    limited = in_flight(of, rows) >= numpy.floor(of.window[rows])
    fresh = ((of.acked[rows] >= of.usage_end[rows]) | limited
             | (~of.limited[rows] & (out > of.most_out[rows])))
    rows = rows[fresh]
    of.limited[rows], of.most_out[rows] = limited[fresh], out[fresh]
    of.usage_end[rows] = of.next[rows]


def timeout_ms(of: Transfers, rows: Counts) -> Numbers:
    known = numpy.where(of.smoothed[rows] > 0, of.smoothed[rows] + of.variance[rows],
                        FALLBACK_TIMEOUT_MS)
    wait: Numbers = numpy.minimum(known * of.backoff[rows], LONGEST_TIMEOUT_MS)
    return wait


def start_timer(of: Transfers, rows: Counts) -> None:
    of.timeout_at[rows] = of.now[rows] + timeout_ms(of, rows)


def sample(of: Transfers, rows: Counts, rtt: Numbers) -> None:
    """A round trip was measured (tcp_rtt_estimator). `acked` is what is acknowledged now."""
    of.least_rtt[rows] = numpy.minimum(of.least_rtt[rows], rtt)
    first = of.smoothed[rows] == 0
    begun = rows[first]
    of.smoothed[begun], of.deviation[begun] = rtt[first], 2 * rtt[first]
    of.variance[begun] = of.worst[begun] = numpy.maximum(2 * rtt[first], LEAST_TIMEOUT_MS)
    rows, rtt = rows[~first], rtt[~first]
    error = rtt - of.smoothed[rows]
    of.smoothed[rows] += error / 8
    change = numpy.abs(error) - of.deviation[rows] / 4
    of.deviation[rows] += numpy.where((error < 0) & (change > 0), change / 8, change)
    of.worst[rows] = numpy.maximum(of.worst[rows], of.deviation[rows])
    of.variance[rows] = numpy.maximum(of.variance[rows], of.worst[rows])
    rows = rows[of.acked[rows] > of.round_end[rows]]
    over = of.variance[rows] - of.worst[rows]
    of.variance[rows] -= numpy.maximum(over, 0) / 4
    of.worst[rows] = LEAST_TIMEOUT_MS
    of.round_end[rows] = of.next[rows]


def grow(of: Transfers, rows: Counts, count: Counts) -> None:
    """So many segments were acknowledged in order (cubictcp_cong_avoid)."""
    limited = of.limited[rows] | ((of.window[rows] < of.threshold[rows])
                                  & (of.window[rows] < 2 * of.most_out[rows]))
    rows, left = rows[limited], count[limited].astype(float)
    slow = numpy.clip(of.threshold[rows] - of.window[rows], 0, left)
    of.window[rows] += slow
    left -= slow
    rows, left = rows[left > 0], left[left > 0]
    if len(rows):
        of.window[rows] += left / _per_segment(of, rows, left)


def _per_segment(of: Transfers, rows: Counts, count: Numbers) -> Numbers:
    """How many acknowledged segments grow the window by one (bictcp_update)."""
    begins = of.epoch[rows] < 0
    fresh = rows[begins]
    of.epoch[fresh], of.friendly[fresh] = of.now[fresh], of.window[fresh]
    of.friendly[rows] += count / (15 / 8 * of.window[rows])
    have = of.window[rows]
    below = numpy.maximum(of.last_most[rows] - of.origin[rows], 0)
    of.origin[fresh] = have[begins]
    below[begins] = numpy.maximum(of.last_most[fresh] - have[begins], 0)
    seconds = (of.now[rows] - of.epoch[rows] + of.least_rtt[rows]) / 1000
    target = of.origin[rows] + below + CUBE * (seconds - numpy.cbrt(below / CUBE)) ** 3
    per = numpy.where(target > have, have / numpy.maximum(target - have, 1e-3), 100 * have)
    per = numpy.where(of.last_most[rows] == 0, numpy.minimum(per, 20), per)
    ahead = of.friendly[rows] - have
    per = numpy.where(ahead > 0, numpy.minimum(per, have / numpy.maximum(ahead, 1e-3)), per)
    return numpy.maximum(per, 2.0)


def hystart(of: Transfers, rows: Counts, rtt: Numbers) -> None:
    """Whether slow start ends (hystart_update)."""
    of.delay_least[rows] = numpy.minimum(of.delay_least[rows], rtt)
    slow = of.threshold[rows] == UNLIMITED
    rows, rtt = rows[slow], rtt[slow]
    now = of.now[rows]
    fresh = of.acked[rows] > of.train_end[rows]
    begun = rows[fresh]
    of.train_began[begun] = of.train_last[begun] = now[fresh]
    of.train_end[begun] = of.next[begun]
    of.train_samples[begun], of.train_least[begun] = 0, NEVER
    large = of.window[rows] >= LEAST_HYSTART_WINDOW
    rows, rtt, now = rows[large], rtt[large], now[large]
    if not len(rows):
        return
    close = now - of.train_last[rows] <= SPACING_MS
    of.train_last[rows[close]] = now[close]
    least = of.delay_least[rows]
    found = close & (now - of.train_began[rows] > (least + 1) / 2)
    of.train_least[rows] = numpy.minimum(of.train_least[rows], rtt)
    enough = of.train_samples[rows] >= SAMPLES
    found |= enough & (of.train_least[rows] > least + numpy.clip(least / 8, 4, 16))
    of.train_samples[rows] += ~enough
    of.threshold[rows[found]] = of.window[rows[found]]


def reduce(of: Transfers, rows: Counts) -> None:
    """Losses lower the threshold (cubictcp_recalc_ssthresh)."""
    have = numpy.floor(of.window[rows])
    of.last_most[rows] = numpy.where(have < of.last_most[rows], have * (1024 + 717) / 2048, have)
    of.threshold[rows] = numpy.maximum(numpy.floor(have * 717 / 1024), 2.0)
    of.epoch[rows] = -1


def time_out(of: Transfers, rows: Counts) -> None:
    """All that was sent is taken for lost (tcp_enter_loss)."""
    fresh = rows[of.state[rows] != LOST]
    reduce(of, fresh)
    of.last_most[fresh] = 0  # forgotten (bictcp_reset)
    place = numpy.arange(of.sent.shape[1])
    outstanding = ((place >= of.acked[rows, None]) & (place < of.next[rows, None])
                   & ~of.sacked[rows])
    of.lost[rows] = outstanding
    of.again[rows] = False
    of.lost_count[rows] = outstanding.sum(axis=1)
    of.again_count[rows] = 0
    of.window[rows] = 1
    of.state[rows] = LOST
    of.recover_upto[rows] = of.next[rows]
