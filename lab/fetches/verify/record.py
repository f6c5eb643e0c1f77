"""The record of a fetch: what is measured of a trial, column by column.

Each column says where its value comes from: what the client and the server
reported, the packets, or the model (lab.fetches.verify.evidence.Evidence).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from lab.core.results import records
from lab.core.results.records import measured
from lab.fetches.scenario.trial import Trial
from lab.fetches.verify.limits import limit_of, offered_to, segments_of
from lab.tcp.wire.flights import FLIGHTS, listed_flights


def _client(name: str) -> Any:
    return measured(lambda evidence: evidence.fetch.get(name))


def _server(name: str) -> Any:
    return measured(lambda evidence: evidence.report.get(name))


def _wire(source: Callable[[Any], Any], default: Any = None) -> Any:
    """A column read off the packets; its default where there are none to read."""
    return measured(lambda evidence: default if evidence.exchange is None else source(evidence),
                    default)


def _offered(source: Callable[[Any, Any], Any]) -> Any:
    """A column of the windows that the client offered."""
    return _wire(lambda evidence: None if (windows := offered_to(evidence)) is None
                 else source(windows, evidence))


def _tls(source: Callable[[Any], Any]) -> Any:
    """A column of what the server reported of the handshake; none without TLS."""
    return measured(lambda evidence: source(evidence.report["tls"]) if "tls" in evidence.report
                    else None)


@dataclass(frozen=True)
class Record(records.Record):
    """One measured trial. Times in ms, windows in segments.

    connect_ms, first_byte_ms, total_ms: the client's clock, from the start of
        the handshake to its end, to the first and the last byte.
    latency_ms: the paper's metric (section 2), T_ACK − T_Res1 at the server,
        by the kernel's time stamps; wire_latency_ms: the same from the
        capture at the server, which both are of another server than server.py.
    seen_initcwnd: TCP_INFO at accept, of another server before data is
        acknowledged; seen_first_flight: data segments on the wire before the
        first acknowledgement of data; limited_by: what made
        that less than initcwnd, a word of lab.fetches.verify.limits, "" for nothing.
    seen_rtt_ms: handshake at the client less serialisation; seen_bandwidth_kbps:
        from the spacing of the first flight at the client.
    retransmissions: data segments that the server retransmitted;
        handshake_retransmissions: SYNs and SYN-ACKs retransmitted;
        lost_segments: data segments that the client never received.
    queue_drops, random_drops: packets towards the client that the bottleneck's
        queue dropped, and that random loss took; by the qdiscs' own counters, so those
        of the connection before a resumed session are among them.
    uplink_queue_drops: packets towards the server that the bottleneck's queue dropped.
    lost_packets: what was lost on the connection, in words, each direction: "to client: 2 data;
        to server: 1 request, 3 ACK".
    judged_by: what judges the trial: "path", every packet by delay, rate and queue; "host", each
        moment at which data left; "TCP", the whole transfer by the model.
    retransmission_cause: why it retransmitted although nothing was lost.
    goodput_kbps: bits of the body over total_ms.
    model_ms, model_latency_ms, model_retransmissions: predicted total_ms,
        latency_ms and retransmissions of the lossless transfer
        (lab.tcp.model.predict); model_appconnect_ms, model_first_byte_ms likewise.
    appconnect_ms: the client's clock, the end of TLS's handshake.
    handshake_round_trips: flights in which the server's messages up to its
        Finished left, on the wire; flight_bytes, flight_writes, flight_segments:
        of those messages, in all. window_after_handshake: TCP_INFO at the server
        when the client's Finished was there. All of them empty without TLS.
    response_round_trips: flights in which the response left, on the wire; response_flights:
        segments of the first of them, as "10+20+40"; what was retransmitted is in none.
    accepted_early_bytes: early data that the server took, by the client; negative where it
        refused so many. request_round_trips, request_segments: in which hello and early data left.
    unvalidated_bytes: over QUIC, of the server's datagrams before the client's second
        flight was there; allowed_bytes: three times the client's first (RFC 9000, 8.1).
        Of QUIC segments are datagrams, and their bytes those of UDP's payload;
        flight_datagrams: of each of them, as "1200+1200, 50", a comma for each round trip.
    least_offered_segments, most_offered_segments: receive windows that the client offered
        while data was to be sent, in full segments; receive_window_waits: how often
        the server had filled the window and had more to send, in any flight.
    """

    trial: Trial
    connect_ms: float | None = _client("connect_ms")
    first_byte_ms: float | None = _client("first_byte_ms")
    total_ms: float | None = _client("total_ms")
    latency_ms: float | None = measured(lambda evidence: evidence.latency_ms)
    wire_latency_ms: float | None = _wire(lambda evidence: evidence.exchange.latency_ms)
    header_bytes: int | None = _server("header_bytes")
    request_bytes: int | None = _server("request_bytes")
    seen_initcwnd: int | None = _server("initial_window")
    seen_first_flight: int | None = _wire(lambda evidence: evidence.first_flight)
    limited_by: str = _wire(limit_of, "")
    seen_rtt_ms: float | None = _wire(lambda evidence: evidence.rtt_ms)
    seen_bandwidth_kbps: float | None = _wire(lambda evidence: evidence.bandwidth_kbps)
    retransmissions: int | None = _wire(
        lambda evidence: len(evidence.exchange.retransmissions))
    handshake_retransmissions: int | None = _wire(
        lambda evidence: evidence.exchange.handshake_retransmissions)
    lost_segments: int | None = _wire(lambda evidence: len(evidence.exchange.lost_data))
    queue_drops: int | None = _wire(lambda evidence: evidence.queue_drops)
    random_drops: int | None = _wire(lambda evidence: evidence.random_drops)
    uplink_queue_drops: int | None = _wire(lambda evidence: evidence.uplink_queue_drops)
    lost_packets: str = _wire(lambda evidence: evidence.lost_packets, "")
    judged_by: str = measured(lambda evidence: evidence.judged_by, "")
    retransmission_cause: str = _wire(lambda evidence: evidence.retransmission_cause, "")
    model_ms: float | None = measured(lambda evidence: evidence.model_ms)
    model_latency_ms: float | None = measured(lambda evidence: evidence.model_latency_ms)
    model_retransmissions: int = measured(lambda evidence: evidence.model_retransmissions, 0)
    goodput_kbps: float | None = measured(
        lambda evidence: evidence.trial.response_bytes * 8 / evidence.fetch["total_ms"]
        if evidence.fetch.get("total_ms") else None)
    appconnect_ms: float | None = _client("appconnect_ms")
    handshake_round_trips: int | None = _wire(lambda evidence: len(evidence.flights) or None)
    flight_bytes: int | None = measured(lambda evidence: evidence.flight_bytes)
    flight_writes: int | None = _tls(lambda tls: len(tls["flight"]))
    flight_segments: int | None = _wire(
        lambda evidence: sum(map(len, evidence.flights)) or None)
    window_after_handshake: int | None = measured(
        lambda evidence: evidence.window_after_handshake)
    response_round_trips: int | None = _wire(
        lambda evidence: len(evidence.response_flights) or None)
    model_appconnect_ms: float | None = measured(lambda evidence: evidence.model_appconnect_ms)
    model_first_byte_ms: float | None = measured(lambda evidence: evidence.model_first_byte_ms)
    unvalidated_bytes: int | None = measured(lambda evidence: None)  # of datagrams (quic.py)
    allowed_bytes: int | None = measured(lambda evidence: None)
    accepted_early_bytes: int | None = measured(lambda evidence: evidence.accepted_early_bytes)
    request_round_trips: int | None = measured(
        lambda evidence: evidence.early.round_trips if evidence.early else None)
    request_segments: int | None = measured(
        lambda evidence: evidence.early.segments if evidence.early else None)
    flight_datagrams: str = measured(lambda evidence: "", "")
    least_offered_segments: float | None = _offered(
        lambda windows, evidence: segments_of(windows.least_bytes, evidence))
    most_offered_segments: float | None = _offered(
        lambda windows, evidence: segments_of(windows.most_bytes, evidence))
    receive_window_waits: int | None = _offered(lambda windows, evidence: windows.waits)
    response_flights: str = _wire(
        lambda evidence: listed_flights(evidence.response_flights), "")
    PATTERNS: ClassVar = {"response_flights": FLIGHTS}

    def check(self) -> None:
        if self.counts and self.total_ms is None:
            raise ValueError("it counts, and has no total_ms")
