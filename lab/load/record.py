"""The record of a load run, and its verdict.

A run counts only if its own packets and counters say that it was what was
asked for: arrivals at the offered load, initial windows as TCP used them, for
all connections by tcp_info and for some by their packets, and a bottleneck
that let through what it may. Connections that failed, or had not ended when
the run did, are counted, never dropped: a percentile takes them as the
longest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lab.load.connections import (FILE, OK, OPEN, QUEUE_FILE, Bottleneck, Connections,
                                  ConnectionsError, joined_text, packed, parsed,
                                  read_bottleneck)
from lab.load.trial import LoadTrial, wire_bytes
from lab.records import FAIL, PASS, SKIPPED
from lab.runs import now_text
from lab.tcp.exchange import read_exchanges
from lab.tcp.packets import CaptureError

if TYPE_CHECKING:
    from lab.study import Seen

PERCENTILES = (10, 25, 50, 75, 90, 95, 99, 99.9)
# The arrivals of one run in 16,000 are farther from their mean than this by chance.
SIGMAS = 4.0
# TCP_TIMEOUT_INIT: a handshake that takes as long has been repeated, and TCP
# begins with a window of one segment then (tcp_init_transfer; RFC 5681, 3.1).
REPEATED_MS = 1000.0
# netem sends a packet when the one before has left, to the nanosecond.
FULL = 1.0001


@dataclass(frozen=True)
class LoadRecord:
    """One load run. Times in ms, over the connections that arrived while it counts.

    arrivals: those connections; completed, failed, unfinished: how they ended.
    mean_ms: of the completion time (UCT: SYN to last byte) of the completed;
        mean_transfer_ms the same without the handshake; p10_ms …: percentiles
        over all arrivals, empty where one that never completed stands there.
    retransmission_percent: retransmitted bytes over unique bytes;
        hit_percent: connections that retransmitted; hit_mean_ms: their mean.
    offered_load: what the arrivals would send without loss, as a part of the
        bottleneck; utilisation: what left it, by its own counters.
    drops, drop_percent: at the bottleneck, of packets that came to it.
    queue_mean_packets, queue_max_packets: sampled ten times a second.
    repeated_handshakes: connections that lost a SYN or a SYN-ACK.
    seen_initcwnd, seen_first_flight: "3" or "3 10", by tcp_info at accept and
        after the first write, over all connections without a repeated handshake.
    wire_connections: whose packets were looked at; wire_first_flight: segments
        before the first acknowledgement of data, in them.
    """

    trial: LoadTrial
    ok: bool
    error: str = ""
    arrivals: int | None = None
    completed: int | None = None
    failed: int | None = None
    unfinished: int | None = None
    mean_ms: float | None = None
    mean_transfer_ms: float | None = None
    p10_ms: float | None = None
    p25_ms: float | None = None
    p50_ms: float | None = None
    p75_ms: float | None = None
    p90_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    p999_ms: float | None = None
    retransmission_percent: float | None = None
    hit_percent: float | None = None
    hit_mean_ms: float | None = None
    offered_load: float | None = None
    utilisation: float | None = None
    drops: int | None = None
    drop_percent: float | None = None
    queue_mean_packets: float | None = None
    queue_max_packets: int | None = None
    repeated_handshakes: int | None = None
    seen_initcwnd: str = ""
    seen_first_flight: str = ""
    wire_connections: int | None = None
    wire_first_flight: str = ""
    verdict: str = SKIPPED
    verdict_reason: str = ""
    measured_at: str = field(default="", compare=False)

    @property
    def counts(self) -> bool:
        """Whether this run may enter a figure."""
        return self.ok and self.verdict == PASS


def percentile_column(percentile: float) -> str:
    """The column of a percentile: p50_ms, p999_ms."""
    return f"p{percentile:g}_ms".replace(".", "")


def judge(trial: LoadTrial, seen: Seen) -> LoadRecord:
    """The record of a run: what was measured, what was seen on the wire, the verdict."""
    return judged(trial, seen)[0]


def judged(trial: LoadTrial, seen: Seen) -> tuple[LoadRecord, Mapping[str, bytes]]:
    """The record of a run, and what of its files is kept."""
    if QUEUE_FILE not in seen.files:
        fault = seen.content.get("error", "") or "the run left no records"
        return LoadRecord(trial, False, fault, measured_at=now_text()), seen.files
    text = joined_text(seen.files)
    return _judged(trial, seen, text), {FILE: packed(text),
                                        QUEUE_FILE: seen.files[QUEUE_FILE]}


def _judged(trial: LoadTrial, seen: Seen, connections: str) -> LoadRecord:
    """connections: the rows of all of them."""
    if seen.content.get("error"):
        return LoadRecord(trial, False, seen.content["error"], measured_at=now_text())
    try:
        everything = parsed(connections)
        queue = read_bottleneck(seen.files[QUEUE_FILE])
        flights = wire_flights(seen.client_pcap, seen.server_pcap)
    except (ConnectionsError, CaptureError) as error:
        return LoadRecord(trial, False, str(error), measured_at=now_text())
    smooth = everything.where(~(everything.connect_ms >= REPEATED_MS))
    on_wire = [segments for host in flights.values() for segments in host]
    measured: dict[str, Any] = {
        **_of_connections(trial, everything.counted(trial.counted_s)),
        **_of_bottleneck(trial, queue.between(trial.counted_s)),
        "repeated_handshakes": len(everything) - len(smooth),
        "seen_initcwnd": _values(smooth.initial_window),
        "seen_first_flight": _values(smooth.first_flight),
        "wire_connections": len(on_wire), "wire_first_flight": _values(on_wire)}
    dead = seen.content.get("ended_servers", [])
    death = f"server {dead[0]} of {trial.servers} died in the run" if dead else ""
    faults = _faults(trial, smooth, measured, flights)
    return LoadRecord(trial, not dead, death, **measured, verdict=FAIL if faults or dead else PASS,
                      verdict_reason="; ".join(faults), measured_at=now_text())


def _of_connections(trial: LoadTrial, counted: Connections) -> dict[str, Any]:
    """What the connections that count say."""
    done = counted.ended(OK)
    hit = done.where(done.retransmitted_bytes > 0)
    capacity_bytes = trial.bandwidth_kbps * 125 * _span_s(trial)
    unfinished = len(counted.ended(OPEN))
    return {
        "arrivals": len(counted), "completed": len(done), "unfinished": unfinished,
        "failed": len(counted) - len(done) - unfinished,
        "mean_ms": float(done.total_ms.mean()) if len(done) else None,
        "mean_transfer_ms": float((done.total_ms - done.connect_ms).mean()) if len(done) else None,
        **{percentile_column(each): counted.percentile_ms(each) for each in PERCENTILES},
        "retransmission_percent": counted.retransmission_percent,
        "hit_percent": len(hit) / len(done) * 100 if len(done) else None,
        "hit_mean_ms": float(hit.total_ms.mean()) if len(hit) else None,
        "offered_load": sum(map(wire_bytes, counted.asked_bytes)) / capacity_bytes}


def _of_bottleneck(trial: LoadTrial, queue: Bottleneck) -> dict[str, Any]:
    """What the bottleneck's counters say of the time that counts."""
    if len(queue.time_s) < 2:
        return {}
    span_s = float(queue.time_s[-1] - queue.time_s[0])
    packets, drops = (float(counter[-1] - counter[0]) for counter in (queue.packets, queue.drops))
    return {"utilisation": float(queue.bytes[-1] - queue.bytes[0])
            / (trial.bandwidth_kbps * 125 * span_s),
            "drops": round(drops),
            "drop_percent": drops / (packets + drops) * 100 if packets + drops else 0.0,
            "queue_mean_packets": float(queue.queue_packets.mean()),
            "queue_max_packets": round(float(queue.queue_packets.max()))}


def wire_flights(client_pcap: bytes, server_pcap: bytes) -> dict[str, list[int]]:
    """By client address: segments of the first flight of each sampled connection, on the wire.

    Only of those that lost nothing: what a timer sends again before the first
    acknowledgement, or in its place, is no part of a flight.
    """
    flights: dict[str, list[int]] = {}
    for (address, _), exchange in read_exchanges(client_pcap, server_pcap).items():
        lossless = not (exchange.lost_to_client or exchange.retransmissions or exchange.probes
                        or exchange.handshake_retransmissions)
        if lossless and exchange.first_flight:
            flights.setdefault(address, []).append(len(exchange.first_flight))
    return flights


def _faults(trial: LoadTrial, smooth: Connections, measured: Mapping[str, Any],
            flights: Mapping[str, list[int]]) -> list[str]:
    """What differs from what was asked, in words; smooth: without repeated handshakes."""
    faults = []
    asked, sigma = expected_arrivals(trial)
    arrived = float(measured["arrivals"])
    if abs(arrived - asked) > SIGMAS * sigma:
        faults.append(f"arrivals: seen {arrived:.0f}, asked {asked:.0f} ± {SIGMAS * sigma:.0f}")
    if measured.get("utilisation", 0.0) > FULL:
        faults.append(f"utilisation: seen {measured['utilisation']:.4f}, more than there is")
    if measured["failed"]:
        faults.append(f"{measured['failed']} of {measured['arrivals']} connections failed")
    for number, host in enumerate(trial.hosts):
        faults += _window_faults(trial, number, host.initcwnd, smooth,
                                 flights.get(f"10.0.1.{number + 1}", []))
    return faults


def _window_faults(trial: LoadTrial, number: int, initcwnd: int, smooth: Connections,
                   on_wire: list[int]) -> list[str]:
    """Whether one host's connections began with the window asked for."""
    import numpy
    mine = smooth.of_hosts({number})
    seen = mine.where(~numpy.isnan(mine.initial_window))
    faults = []
    if len(seen) and (values := _values(seen.initial_window)) != str(initcwnd):
        faults.append(f"initial window of client {number + 1}: seen {values}, asked {initcwnd}")
    if trial.paced or trial.congestion_control == "bbr":
        return faults  # a paced flight leaves one by one: there is no first flight to count
    whole = seen.where(seen.asked_bytes >= initcwnd * 1448)
    if len(whole) and (values := _values(whole.first_flight)) != str(initcwnd):
        faults.append(f"first flight to client {number + 1}: seen {values} segments,"
                      f" asked {initcwnd}")
    if on_wire and max(on_wire) > initcwnd:
        faults.append(f"first flight to client {number + 1} on the wire: seen {max(on_wire)}"
                      f" segments, asked {initcwnd}")
    return faults


def expected_arrivals(trial: LoadTrial) -> tuple[float, float]:
    """Mean and standard deviation of the connections that arrive while it counts.

    Arrivals are Poisson; each brings `connections` at once.
    """
    mean = trial.responses_per_s * _span_s(trial)
    return mean, math.sqrt(mean * trial.connections)


def _span_s(trial: LoadTrial) -> float:
    first_s, last_s = trial.counted_s
    return last_s - first_s


def _values(numbers: Any) -> str:
    """The different whole numbers among some, ascending: "3 10"."""
    return " ".join(map(str, sorted({int(number) for number in numbers if number == number})))
