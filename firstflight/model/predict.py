"""Computes how long a fetch takes if nothing is lost.

`predict` follows every segment and every acknowledgement of one fetch on an idle path, by the rules
of Linux (sender.py, window.py, receiver.py). It is exact to microseconds.

It models
- the handshake, with SYNs that are retransmitted because the RTT exceeds a second;
- the messages of TLS 1.3, each in writes whose last segment need not be full;
- requests of one segment, and the server's immediate acknowledgement; requests with a body;
- serialisation both ways, and the send buffer;
- slow start, its end by HyStart, and CUBIC's growth after it;
- the receiver's quick and delayed acknowledgements, its window from initrwnd on, and its growing
  buffer;
- a response in two writes, and responses one after another on the same connection;
- timers that fire although nothing is lost, because the network takes longer: tail loss probes,
  timeouts that the server undoes, requests that the client repeats.

It does not model losses, other congestion controls than cubic and reno, or computing time at the
hosts. Timers count milliseconds of the kernel's clock; `clock_phase_ns` gives its phase.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from firstflight.model.simulate import Simulation
from firstflight.model.transfer import Transfer
from firstflight.model.upload import Upload


@dataclass(frozen=True)
class Prediction:
    """The times of a lossless fetch, its windows and its flights. Windows and flights are segments.
    """

    started_ms: float  # from the first SYN to this fetch; 0 on a connection of its own
    # At the client, from the fetch's start.
    connect_ms: float  # 0 on an existing connection
    first_byte_ms: float
    total_ms: float
    # The paper's metric, at the server: from the first segment sent to the last one acknowledged.
    latency_ms: float
    first_flight: int  # sent before the connection's first acknowledgement of data
    # The most packets in either bottleneck's queue, with the one that is being sent. A queue of
    # this length loses nothing, and a shorter one does.
    peak_queue: int
    slow_start_end: int  # the window at which HyStart ended slow start; 0 if it did not
    retransmissions: int = 0  # segments that the server's timers retransmit, all without need
    appconnect_ms: float = 0.0  # at the client, the end of TLS's handshake; 0 without TLS
    window_after_handshake: int = 0  # the server's, when it has the client's Finished
    handshake_round_trips: int = 0  # flights of the server's messages up to its Finished
    response_round_trips: int = 0  # flights of the response
    # Of a request with a body.
    upload_flight: int = 0  # segments that left before the first acknowledgement of its data
    client_retransmissions: int = 0  # segments that the client's timers retransmit


@lru_cache(maxsize=4096)
def predict(transfer: Transfer) -> Prediction:
    """Follow one lossless fetch segment by segment; see the module's docstring."""
    if not transfer.request_writes:
        simulation = Simulation(transfer)
        simulation.run()
        return _prediction_of(simulation)

    upload = Upload(transfer)
    upload.run()
    return replace(_prediction_of(upload), upload_flight=upload.upload_flight,
                   client_retransmissions=upload.client.sender.retransmitted)


def _prediction_of(simulation: Simulation | Upload) -> Prediction:
    """The results of a simulation as a Prediction, whose times count from the fetch's start."""
    started = simulation.started
    return Prediction(
        started_ms=started / 1e6,
        connect_ms=0.0 if started else simulation.connected / 1e6,
        first_byte_ms=(simulation.first_arrival - started) / 1e6,
        total_ms=(simulation.last_arrival - started) / 1e6,
        latency_ms=(simulation.last_acknowledged - simulation.first_sent) / 1e6,
        first_flight=simulation.first_flight,
        peak_queue=max(simulation.down.peak_queue, simulation.up.peak_queue),
        slow_start_end=simulation.sender.cubic.ended_at,
        retransmissions=simulation.sender.retransmitted,
        appconnect_ms=simulation.handshake_end / 1e6,
        window_after_handshake=simulation.window_after_handshake,
        handshake_round_trips=simulation.flights.handshake.count,
        response_round_trips=simulation.flights.response.count)


def first_flight(transfer: Transfer) -> int:
    """How many segments are sent before the connection's first acknowledgement of data.

    `predict` has the same number, and takes longer.
    """
    simulation = _FirstFlight(transfer)
    simulation.run()
    return simulation.first_flight


class _FirstFlight(Simulation):
    """A simulation that ends when the server has the first acknowledgement of data."""

    def _take_acknowledgement(self, upto: int, window_end: int, sent_at: int, stamp: int, now: int,
                              duplicate: bool = False, releases: bool = True) -> None:
        super()._take_acknowledgement(upto, window_end, sent_at, stamp=stamp, now=now,
                                      duplicate=duplicate, releases=releases)
        if self.first_flight:
            self.is_over = True


def count_unacknowledged(transfer: Transfer) -> tuple[int, int]:
    """How many segments of a response in two writes leave if none of them is acknowledged.

    Returns the number for the first write, and the number for both writes.
    """
    simulation = _Unacknowledged(transfer)
    simulation.run()
    return simulation.first_write, simulation.first_flight


class _Unacknowledged(Simulation):
    """A simulation in which no acknowledgement arrives; it ends when both writes are done."""

    first_write = 0

    def _take_acknowledgement(self, upto: int, window_end: int, sent_at: int, stamp: int, now: int,
                              duplicate: bool = False, releases: bool = True) -> None:
        pass

    def _answer_rest(self, now: int) -> None:
        self.first_write = self.sender.in_flight - self.sender.probe_segments
        super()._answer_rest(now)
        self.first_flight = (self.sender.in_flight - self.sender.probe_segments
                             - self.sender.fin_sent)
        self.is_over = True
