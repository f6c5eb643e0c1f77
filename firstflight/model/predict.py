"""The lossless transfer, computed: what a fetch must take if nothing goes wrong.

`predict` follows every segment and every acknowledgement of one fetch on an
idle path, by the rules of Linux (sender.py, window.py, receiver.py), and is
exact to microseconds.

What `predict` knows: the handshake, the request and the server's immediate
acknowledgement of it; store-and-forward serialisation both ways; slow start
and its end by HyStart, then CUBIC's growth; the send buffer; the receiver's
quick and delayed acknowledgements, its window from initrwnd on, and its
buffer, which grows with the transfer; a response in two writes, and one that
follows another on the same connection; the messages of TLS 1.3 before it, each
a list of writes that end in a segment which need not be full.

It knows the timers as well, which some networks outlast: tail loss probes,
timeouts and their undoing at the server, a request that the client repeats.

What it does not know: loss; SYNs that are retransmitted, where the RTT exceeds a
second; other congestion controls than cubic and reno; computing time at the
hosts. Timers count in milliseconds of the kernel's clock: `clock_phase_ns`
says how they fall.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from firstflight.model.simulate import Simulation
from firstflight.model.transfer import Transfer


@dataclass(frozen=True)
class Prediction:
    """When a lossless fetch gets where, in ms from its start.

    started_ms: of this fetch, from the first SYN; 0 on a connection of its own.
    connect_ms, first_byte_ms, total_ms: at the client; connect_ms is 0 on a
        connection that is there already. latency_ms: the paper's metric at
        the server, first segment sent to last one acknowledged.
    first_flight: segments sent before the connection's first acknowledgement
        of data.
    peak_queue: packets at a bottleneck at most, towards the client or from it, the one
        being sent included: a queue that long loses nothing, a shorter one does.
    slow_start_end: the window at which HyStart ended slow start, 0 if it did not.
    retransmissions: segments that the server's timers retransmit, all of them in vain.
    appconnect_ms: at the client, the end of TLS's handshake; 0 without TLS.
    window_after_handshake: the server's when it has heard of that, segments.
    handshake_round_trips, response_round_trips: flights in which the server's first
        messages, up to its Finished, and the response leave.
    """

    started_ms: float
    connect_ms: float
    first_byte_ms: float
    total_ms: float
    latency_ms: float
    first_flight: int
    peak_queue: int
    slow_start_end: int
    retransmissions: int = 0
    appconnect_ms: float = 0.0
    window_after_handshake: int = 0
    handshake_round_trips: int = 0
    response_round_trips: int = 0


@lru_cache(maxsize=4096)
def predict(transfer: Transfer) -> Prediction:
    """Follow one lossless fetch segment by segment; see the module's docstring."""
    simulation = Simulation(transfer)
    simulation.run()
    started = simulation.started
    return Prediction(
        started_ms=started / 1e6, connect_ms=0.0 if started else simulation.connected / 1e6,
        first_byte_ms=(simulation.first_arrival - started) / 1e6,
        total_ms=(simulation.last_arrival - started) / 1e6,
        latency_ms=(simulation.last_acknowledged - simulation.first_sent) / 1e6,
        first_flight=simulation.first_flight,
        peak_queue=max(simulation.down.peak_queue, simulation.up.peak_queue),
        slow_start_end=simulation.sender.cubic.ended_at,
        retransmissions=simulation.sender.retransmitted, appconnect_ms=simulation.shaken / 1e6,
        window_after_handshake=simulation.window_shaken,
        handshake_round_trips=simulation.flights.of_handshake.count,
        response_round_trips=simulation.flights.of_response.count)


def first_flight(transfer: Transfer) -> int:
    """Segments sent before the connection's first acknowledgement of data, and no more of it."""
    simulation = _Begun(transfer)
    simulation.run()
    return simulation.first_flight


class _Begun(Simulation):
    """The same, until the server has heard of the first flight."""

    def _acknowledged(self, upto: int, window_end: int, sent_at: int, stamp: int, now: int,
                      duplicate: bool = False, releases: bool = True) -> None:
        super()._acknowledged(upto, window_end, sent_at, stamp, now, duplicate, releases)
        if self.first_flight:
            self.is_over = True


def unacknowledged(transfer: Transfer) -> tuple[int, int]:
    """Segments of a response in two writes that leave if no acknowledgement of it arrives.

    Of the first write, and of both.
    """
    simulation = _Unheard(transfer)
    simulation.run()
    return simulation.first_write, simulation.first_flight


class _Unheard(Simulation):
    """The same, while all acknowledgements of the response are lost; until both are written."""

    first_write = 0

    def _acknowledged(self, upto: int, window_end: int, sent_at: int, stamp: int, now: int,
                      duplicate: bool = False, releases: bool = True) -> None:
        pass

    def _answer_rest(self, now: int) -> None:
        self.first_write = self.sender.in_flight - self.sender.beyond
        super()._answer_rest(now)
        self.first_flight = self.sender.in_flight - self.sender.beyond - self.sender.fin_sent
        self.is_over = True
