"""Many transfers simulated packet by packet at once: each step takes every one to its next event.

It follows what the guest does as closely as the paper's figures need (tests/programs/test_fit.py),
not to the microsecond, as lab.tcp.model.predict does; and it knows losses.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy

from lab.fetches.features.population.draws import SEGMENT_BYTES, Drawn
from paper.fit import path, recovery, window
from paper.fit.state import CONGESTED, NEVER, Counts, Kernels, Numbers, Transfers, begin

ALIKE = (14, 22, 40, 80, 160)  # transfers of up to so many segments are simulated together
TODAY = Kernels()
STEPS = 12  # between looks at who is done


@dataclass(frozen=True)
class Simulated:
    """latency_ms: T_ACK − T_Res1; retransmitted: segments of the response. Shape (n,)."""

    latency_ms: Numbers
    retransmitted: Counts


def simulate(drawn: Drawn, number: Counts, initcwnd: Counts, queue: Counts,
             kernels: Kernels = TODAY) -> Simulated:
    """Transfers of these responses under these windows; see state.begin."""
    segments = (drawn.response_bytes[number] + drawn.earlier_bytes[number]) // SEGMENT_BYTES
    group = numpy.searchsorted(ALIKE, segments)
    made = Simulated(numpy.zeros(len(number)), numpy.zeros(len(number), numpy.int64))
    for each in numpy.unique(group):
        rows = numpy.flatnonzero(group == each)
        of = begin(drawn, number[rows], initcwnd[rows], queue[rows], kernels)
        of.number = rows
        _run(of, made)
    return made


def _run(of: Transfers, made: Simulated) -> None:
    while len(of.number):
        for _ in range(STEPS):
            _step(of)
        done = of.acked >= of.size
        made.latency_ms[of.number[done]] = (of.now - of.started)[done]
        made.retransmitted[of.number[done]] = of.retransmitted[done]
        if done.any():
            of.keep(~done)


def _step(of: Transfers) -> None:
    """Each transfer sends a segment, or waits for what happens next."""
    every = numpy.arange(len(of.number))
    repeats = of.lost_count > of.again_count
    may = ((repeats | (of.next < of.written))
           & (window.in_flight(of, every) < numpy.floor(of.window + 1e-9)))
    _send(of, numpy.flatnonzero(may), repeats[may])
    _wait(of, numpy.flatnonzero(~may))


def _send(of: Transfers, rows: Counts, repeats: numpy.typing.NDArray[numpy.bool_]) -> None:
    segment = of.next[rows]
    lost = rows[repeats]
    if len(lost):
        segment[repeats] = (of.lost[lost] & ~of.again[lost]).argmax(axis=1)
        of.again[lost, segment[repeats]] = True
        of.again_count[lost] += 1
        of.retransmitted[lost] += segment[repeats] >= of.earlier[lost]
        window.start_timer(of, lost[segment[repeats] == of.acked[lost]])
    of.next[rows] += ~repeats
    of.sent[rows, segment] = of.now[rows]
    of.sent_since[rows] = True
    of.recovery_sent[rows] += of.state[rows] == CONGESTED
    path.transmit(of, rows, segment)
    window.start_timer(of, rows[of.timeout_at[rows] == NEVER])


def _wait(of: Transfers, rows: Counts) -> None:
    window.note_use(of, rows)
    events = numpy.stack([
        of.ack_at[rows, of.heard[rows]],
        of.pending_at[rows] + of.rtt[rows] / 2 + of.ack_ms[rows],
        of.write_at[rows], of.timeout_at[rows], of.reorder_at[rows]])
    kind = events.argmin(axis=0)
    at = events.min(axis=0)
    due = at < NEVER
    rows, kind, at = rows[due], kind[due], at[due]
    late = rows[kind == 1]
    path.lose_patience(of, late)
    rows, kind, at = rows[kind != 1], kind[kind != 1], at[kind != 1]
    of.now[rows] = at
    recovery.acknowledge(of, rows[kind == 0])
    _write(of, rows[kind == 2])
    if (kind > 2).any():
        path.again(of, recovery.expire(of, rows[kind == 3]))
        waited = rows[kind == 4]
        recovery.recover(of, waited, numpy.zeros(len(waited), numpy.int64),
                         numpy.zeros(len(waited), numpy.int64))


def _write(of: Transfers, rows: Counts) -> None:
    """The server writes: the earlier response, this one or its first part, or the rest."""
    stage = of.stage[rows]
    burst = of.burst[rows]
    of.stage[rows] += 1
    of.started[rows] = numpy.where(stage == 1, of.now[rows], of.started[rows])
    parts = (stage == 1) & (burst > 0)
    of.written[rows] = numpy.where(stage == 0, of.earlier[rows],
                                   numpy.where(parts, of.earlier[rows] + burst, of.size[rows]))
    of.write_at[rows] = numpy.where(parts, of.now[rows] + of.gap[rows], NEVER)
