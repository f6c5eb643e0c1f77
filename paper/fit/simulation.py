"""Many transfers simulated packet by packet at once: each step takes every one to its next event.

It follows what the guest does as closely as the paper's figures need (tests/programs/test_fit.py),
not to the microsecond, as lab.tcp.model.predict does; and it knows losses.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy
from numpy.typing import NDArray

from lab.fetches.features.population.draws import HEADER_BYTES as RESPONSE_HEADER_BYTES
from lab.fetches.features.population.draws import SEGMENT_BYTES, Drawn
from lab.tcp.packets import HEADER_BYTES
from paper.fit import path, sender
from paper.fit.state import (CONGESTED, NEVER, UNLIMITED, Counts, Flags, Kernels, Numbers,
                             Transfers)

ALIKE = (14, 22, 40, 80, 160)  # transfers of up to so many segments are simulated together
TODAY = Kernels()
STEPS = 12  # between looks at who is done
FRAME_BITS = (SEGMENT_BYTES + HEADER_BYTES) * 8
LENGTH_DIGITS = 4  # of most sizes, in a header
REQUEST_BITS = (103 + HEADER_BYTES) * 8
# What is not 0 at first, whatever the transfer; and what has a value for each segment or ACK.
AT_FIRST = {"started": -1.0, "threshold": UNLIMITED, "epoch": -1.0, "timeout_at": NEVER,
            "backoff": 1.0, "train_least": NEVER, "delay_least": NEVER, "rack_sent": -1.0,
            "rack_segment": -1, "reorder_at": NEVER, "pending_at": NEVER, "ack_at": NEVER}
OF_SEGMENTS = ("sent", "fate", "sacked", "lost", "is_retransmitted", "there")
OF_ACKS = ("ack_at", "ack_upto", "ack_of")


@dataclass(frozen=True)
class Simulated:
    """latency_ms: T_ACK − T_Res1; retransmitted: segments of the response. Shape (n,)."""

    latency_ms: Numbers
    retransmitted: Counts


def simulate(drawn: Drawn, number: Counts, initcwnd: Counts, queue: Counts,
             kernels: Kernels = TODAY) -> Simulated:
    """Transfers of these responses under these windows; see `begin`."""
    segments = (drawn.response_bytes[number] + drawn.earlier_bytes[number]) // SEGMENT_BYTES
    group = numpy.searchsorted(ALIKE, segments)
    results = Simulated(numpy.zeros(len(number)), numpy.zeros(len(number), numpy.int64))
    for alike in numpy.unique(group):
        rows = numpy.flatnonzero(group == alike)
        flows = begin(drawn, number[rows], initcwnd[rows], queue[rows], kernels)
        flows.number = rows
        _run(flows, results)
    return results


def _run(flows: Transfers, results: Simulated) -> None:
    while len(flows.number):
        for _ in range(STEPS):
            _step(flows)
        done = flows.acked >= flows.size
        results.latency_ms[flows.number[done]] = (flows.now - flows.started)[done]
        results.retransmitted[flows.number[done]] = flows.retransmitted[done]
        if done.any():
            flows.keep(~done)


def _step(flows: Transfers) -> None:
    """Each transfer sends a segment, or waits for what happens next."""
    every = numpy.arange(len(flows.number))
    repeats = flows.lost_count > flows.retrans_out
    may = ((repeats | (flows.next < flows.written))
           & (sender.in_flight(flows, every) < numpy.floor(flows.window + 1e-9)))
    _send(flows, numpy.flatnonzero(may), repeats[may])
    _wait(flows, numpy.flatnonzero(~may))


def _send(flows: Transfers, rows: Counts, repeats: Flags) -> None:
    segment = flows.next[rows]
    lost = rows[repeats]
    if len(lost):
        segment[repeats] = (flows.lost[lost] & ~flows.is_retransmitted[lost]).argmax(axis=1)
        flows.is_retransmitted[lost, segment[repeats]] = True
        flows.retrans_out[lost] += 1
        flows.retransmitted[lost] += segment[repeats] >= flows.earlier[lost]
        sender.start_timer(flows, lost[segment[repeats] == flows.acked[lost]])
    flows.next[rows] += ~repeats
    flows.sent[rows, segment] = flows.now[rows]
    flows.sent_since[rows] = True
    flows.recovery_sent[rows] += flows.state[rows] == CONGESTED
    path.transmit(flows, rows, segment)
    sender.start_timer(flows, rows[flows.timeout_at[rows] == NEVER])


def _wait(flows: Transfers, rows: Counts) -> None:
    sender.note_use(flows, rows)
    events = numpy.stack([
        flows.ack_at[rows, flows.heard[rows]],
        flows.pending_at[rows] + flows.rtt[rows] / 2 + flows.ack_ms[rows],
        flows.write_at[rows], flows.timeout_at[rows], flows.reorder_at[rows]])
    kind = events.argmin(axis=0)
    at = events.min(axis=0)
    due = at < NEVER
    rows, kind, at = rows[due], kind[due], at[due]
    late = rows[kind == 1]
    path.lose_patience(flows, late)
    rows, kind, at = rows[kind != 1], kind[kind != 1], at[kind != 1]
    flows.now[rows] = at
    sender.acknowledge(flows, rows[kind == 0])
    _write(flows, rows[kind == 2])
    if (kind > 2).any():
        path.retry(flows, sender.expire(flows, rows[kind == 3]))
        waited = rows[kind == 4]
        sender.recover(flows, waited, numpy.zeros(len(waited), numpy.int64),
                         numpy.zeros(len(waited), numpy.int64))


def _write(flows: Transfers, rows: Counts) -> None:
    """The server writes: the earlier response, this one or its first part, or the rest."""
    stage = flows.stage[rows]
    burst = flows.burst[rows]
    flows.stage[rows] += 1
    flows.started[rows] = numpy.where(stage == 1, flows.now[rows], flows.started[rows])
    parts = (stage == 1) & (burst > 0)
    earlier = flows.earlier[rows]
    flows.written[rows] = numpy.where(
        stage == 0, earlier, numpy.where(parts, earlier + burst, flows.size[rows]))
    flows.write_at[rows] = numpy.where(parts, flows.now[rows] + flows.gap[rows], NEVER)


# The start ----------------------------------------------------------------------------

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
    earlier_bytes, burst_bytes = (numpy.where(body, body + headers, 0) for body in bodies)
    earlier, burst, rest = map(_segments, (earlier_bytes, burst_bytes, rest_bytes))
    size = earlier + burst + rest
    handshake = drawn.rtt_ms[number] + 2 * HEADER_BYTES * 8 / link
    loss, chance = drawn.loss_percent[number] / 100, path.generators(drawn.seed[number])
    # After a SYN-ACK that was retransmitted nothing is known of the RTT (tcp_init_metrics).
    known = ~path.handshakes(chance, loss, handshake, kernels.syn_timer_ms)
    variance = numpy.where(known, numpy.maximum(2 * handshake, 200.0), 0.0)
    flows = _blank(number, chance, int(size.max()) + 1)
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
        getattr(flows, name)[...] = values
    return flows


def _blank(number: Counts, chance: NDArray[numpy.uint32], width: int) -> Transfers:
    """Transfers of which nothing is known."""
    kinds = {"Numbers": numpy.float64, "Counts": numpy.int64, "Flags": numpy.bool_}
    widths = {**dict.fromkeys(OF_SEGMENTS, width), **dict.fromkeys(OF_ACKS, 2 * width + 64)}
    arrays: dict[str, Any] = {
        field.name: numpy.zeros((len(number), *([widths[field.name]] if field.name in widths
                                                else [])), kinds[str(field.type)])
        for field in fields(Transfers) if str(field.type) in kinds}
    arrays.update(number=number, chance=chance)
    return Transfers(**arrays)


def _segments(size_bytes: Counts) -> Counts:
    return -(-size_bytes // SEGMENT_BYTES)


def _last_ms(size_bytes: Counts, link_kbps: Numbers) -> Numbers:
    """How long the last segment of so many bytes is on the link."""
    last = size_bytes - (_segments(size_bytes) - 1) * SEGMENT_BYTES
    return (last + HEADER_BYTES) * 8 / link_kbps
