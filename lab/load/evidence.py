"""What a load run left: its connections, the bottleneck's counters, and sampled packets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from lab.core.kinds import Seen
from lab.load.connections import (OK, QUEUE_FILE, Bottleneck, Connections, parsed,
                                  read_bottleneck)
from lab.load.trial import LoadTrial
from lab.tcp.exchange import read_exchanges

# TCP_TIMEOUT_INIT: a handshake that takes as long has been repeated, and TCP
# begins with a window of one segment then (tcp_init_transfer; RFC 5681, 3.1).
REPEATED_MS = 1000.0


@dataclass(frozen=True)
class Evidence:
    """One run, seen.

    everything: all connections; bottleneck: its samples while it counts.
    flights: segments of the first flights on the wire, by client address.
    ended_servers: numbers of those that died.
    """

    trial: LoadTrial
    everything: Connections
    bottleneck: Bottleneck
    flights: Mapping[str, list[int]]
    ended_servers: tuple[int, ...]

    @classmethod
    def of(cls, trial: LoadTrial, seen: Seen, connections: str) -> Evidence:
        """connections: the rows of all of them. Raises ConnectionsError and CaptureError."""
        return cls(trial, parsed(connections),
                   read_bottleneck(seen.files[QUEUE_FILE]).between(trial.counted_s),
                   wire_flights(seen.client_pcap, seen.server_pcap),
                   tuple(seen.content.get("ended_servers", ())))

    @cached_property
    def counted(self) -> Connections:
        """Those that arrived while it counts."""
        return self.everything.counted(self.trial.counted_s)

    @cached_property
    def done(self) -> Connections:
        """Those that count and completed."""
        return self.counted.ended(OK)

    @cached_property
    def hit(self) -> Connections:
        """Those of them that retransmitted."""
        return self.done.where(self.done.retransmitted_bytes > 0)

    @cached_property
    def smooth(self) -> Connections:
        """All without a repeated handshake."""
        return self.everything.where(~(self.everything.connect_ms >= REPEATED_MS))

    @property
    def capacity_bytes(self) -> float:
        """What the bottleneck can let through while it counts."""
        return self.trial.bandwidth_kbps * 125 * span_s(self.trial)

    def grown(self, counter: str) -> float:
        """What a counter of the bottleneck rose by."""
        samples = getattr(self.bottleneck, counter)
        return float(samples[-1] - samples[0])

    @property
    def utilisation(self) -> float | None:
        """What left the bottleneck, as a part of what can; None with fewer than two samples."""
        if len(self.bottleneck.time_s) < 2:
            return None
        return self.grown("bytes") / (self.trial.bandwidth_kbps * 125 * self.grown("time_s"))

    @property
    def drops(self) -> int | None:
        """Packets that the bottleneck dropped; None with fewer than two samples."""
        return round(self.grown("drops")) if len(self.bottleneck.time_s) > 1 else None

    @property
    def on_wire(self) -> list[int]:
        """First flights of all clients."""
        return [segments for host in self.flights.values() for segments in host]


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


def expected_arrivals(trial: LoadTrial) -> tuple[float, float]:
    """Mean and standard deviation of the connections that arrive while it counts.

    Arrivals are Poisson; each brings `connections` at once.
    """
    mean = trial.responses_per_s * span_s(trial)
    return mean, math.sqrt(mean * trial.connections)


def span_s(trial: LoadTrial) -> float:
    """Seconds that count."""
    first_s, last_s = trial.counted_s
    return last_s - first_s
