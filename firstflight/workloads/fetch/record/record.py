"""Record: what is measured of a fetch, column by column.

A column that is a metric of figures has the metric's words, too. So a new metric changes only this
file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from firstflight.base.quantity import Quantity
from firstflight.findings import quantities
from firstflight.net.link import MANAGED
from firstflight.runs.results import records
from firstflight.runs.results.records import metric
from firstflight.setting.tcp import BY_KERNEL
from firstflight.workloads.fetch.trial import Trial

# The reader of scenarios imports this module for the names of metrics. So it imports no module that
# judges.
if TYPE_CHECKING:
    from firstflight.net.segments import Segment
    from firstflight.workloads.fetch.record.evidence import Evidence

# Flights whose sizes a record lists. The ninth of slow start would have 256 initial windows.
MOST_LISTED = 8


@dataclass(frozen=True)
class Record(records.Record):
    """One measured trial. Times in ms, windows in segments.

    connect_ms: the client's clock from the start of the handshake to its end.
    first_byte_ms: by the client's clock, from the start of the handshake to the first byte of the
        response.
    total_ms: by the client's clock, from the start of the handshake to the last byte.
    latency_ms: the paper's metric (section 2): at the server, from the first byte sent to the last
        byte acknowledged, by the kernel's time stamps; of another server than server.py, by the
        capture.
    wire_latency_ms: the same from the capture at the server.
    header_bytes, request_header_bytes: bytes of the headers of the response, and of the request.
    seen_initcwnd: the initial window by TCP_INFO at accept; of another server than server.py,
        before data is acknowledged.
    seen_first_flight: data segments on the wire before the first acknowledgement of data.
    limited_by: what made the first flight smaller than initcwnd, "" for nothing.
    seen_rtt_ms: the handshake at the client less serialisation.
    seen_bandwidth_kbps: the bandwidth by the spacing of the first flight at the client.
    retransmissions: data segments that the server retransmitted.
    handshake_retransmissions: SYNs and SYN-ACKs that were retransmitted.
    lost_segments: data segments that the client never received.
    queue_drops: packets to the client that the bottleneck's queue dropped, by its counters, with
        those of the connection before a resumed session.
    random_drops: packets to the client that were lost at random, counted in the same way.
    uplink_queue_drops: packets to the server that the bottleneck's queue dropped.
    lost_packets: in words, "to client: 2 data; to server: 1 request, 3 ACK".
    judged_by: "path" (every packet by delay, rate and queue), "host" (each moment at which data
        left), "TCP" (the whole transfer by the model).
    retransmission_cause: why the server retransmitted although nothing was lost.
    goodput_kbps: bits of the body over total_ms.
    model_ms, model_latency_ms, model_retransmissions, model_appconnect_ms, model_first_byte_ms:
        what the model predicts for the lossless transfer.
    appconnect_ms: the client's clock at the end of TLS's handshake.
    handshake_round_trips: flights in which the server's messages up to its Finished left.
    flight_bytes, flight_writes, flight_segments: how many bytes, writes and segments they are.
    window_after_handshake: TCP_INFO at the server when the client's Finished had arrived.
    response_round_trips: flights in which the response left.
    response_flights: segments of the first flights, "10+20+40", without retransmissions.
    first_burst_segments: segments of the first flight that left at one instant; a server that paces
        sends the others later.
    accepted_early_bytes: early data that the server accepted, by the client; negative where it
        refused so many.
    request_round_trips, request_segments: flights in which hello and early data left, and their
        segments.
    least_offered_segments, most_offered_segments: the smallest and the largest receive window that
        the client offered while data was to be sent.
    receive_window_waits: how often the server had filled the receive window and had more to send.
    link_idle_ms: of total_ms, how long the link towards the client sent nothing; with a request
        that has a body, how long neither link sent what was requested.
    seen_client_initcwnd: the client's initial window by TCP_INFO, of a request with a body.
    seen_upload_flight: segments of data that the client sent before the first acknowledgement of
        any.
    client_retransmissions: data segments of such requests that the client retransmitted.
    upload_round_trips: flights in which the last request left.
    upload_flights: segments of these flights, as of response_flights.
    """

    trial: Trial
    _: KW_ONLY
    connect_ms: float | None = None
    first_byte_ms: float | None = metric(
        "the time to the first byte", "ms", head="first byte", label="time to the first byte")
    total_ms: float | None = metric(
        "the client's total time, handshake included", "ms", head="total", label="total time")
    latency_ms: float | None = metric(
        "the latency at the server, T_ACK − T_Res1", "ms", head="latency", label="latency")
    wire_latency_ms: float | None = None
    header_bytes: int | None = None
    request_header_bytes: int | None = None
    seen_initcwnd: int | None = None
    seen_first_flight: int | None = None
    limited_by: str = ""
    seen_rtt_ms: float | None = None
    seen_bandwidth_kbps: float | None = None
    retransmissions: int | None = None
    handshake_retransmissions: int | None = None
    lost_segments: int | None = None
    queue_drops: int | None = None
    random_drops: int | None = None
    uplink_queue_drops: int | None = None
    lost_packets: str = ""
    judged_by: str = ""
    retransmission_cause: str = ""
    model_ms: float | None = None
    model_latency_ms: float | None = None
    model_retransmissions: int = 0
    goodput_kbps: float | None = metric(
        "the goodput of the transfer", "kbit/s", head="goodput", label="goodput",
        more_is_better=True)
    appconnect_ms: float | None = metric(
        "the time of both handshakes", "ms", head="handshake", label="handshake, TLS included")
    handshake_round_trips: int | None = metric(
        "round trips of the TLS handshake", head="round trips",
        label="round trips of the TLS handshake")
    flight_bytes: int | None = metric(
        "what a server's handshake sends", "bytes", head="flight",
        label="the server's messages of the handshake")
    flight_writes: int | None = None
    flight_segments: int | None = metric(
        "the number of segments of a server's handshake", "segments", head="flight",
        label="segments of the server's messages of the handshake")
    window_after_handshake: int | None = metric(
        "the window after the handshake", "segments", head="window",
        label="the server's window after the handshake")
    response_round_trips: int | None = metric(
        "round trips of the response", head="round trips", label="round trips of the response")
    model_appconnect_ms: float | None = None
    model_first_byte_ms: float | None = None
    accepted_early_bytes: int | None = None
    request_round_trips: int | None = None
    request_segments: int | None = None
    least_offered_segments: float | None = None
    most_offered_segments: float | None = None
    receive_window_waits: int | None = None
    response_flights: str = ""
    first_burst_segments: int | None = None
    link_idle_ms: float | None = None
    seen_client_initcwnd: int | None = None
    seen_upload_flight: int | None = None
    client_retransmissions: int | None = None
    upload_round_trips: int | None = metric(
        "round trips of the request", head="round trips of the request",
        label="round trips of the request")
    upload_flights: str = ""

    COMPARED: ClassVar[str] = "total_ms"
    PATTERNS: ClassVar[dict[str, str]] = dict.fromkeys(
        ("response_flights", "upload_flights"), r"(\d{1,9}(\+\d{1,9})*(\+…)?)?")

    def validate(self) -> None:
        """Raise ValueError where values of a stored record contradict each other."""
        if self.counts and self.total_ms is None:
            raise ValueError("it counts, and has no total_ms")
        if self.trial.weight < 0:
            raise ValueError("its weight is below 0")


# BBR draws a random number when it leaves STARTUP and DRAIN, which takes more flights than these.
BBR_FLIGHTS = 5


def is_one_draw(record: Record) -> bool:
    """Whether the trial may take quite another time if its RTT differs by a few microseconds.

    A trial with random losses or jitter, or of a population, does not count: it has repeats anyway.
    """
    trial = record.trial
    if trial.is_random or trial.part:
        return False
    draws_phase = trial.is_bbr and (record.response_round_trips or 0) > BBR_FLIGHTS
    return bool(trial.qdisc in MANAGED or record.queue_drops or record.uplink_queue_drops
                or draws_phase)


METRICS = records.metrics(Record)


def own_window(records: Iterable[Record]) -> str:
    """How to name a window that no route sets, such as "kernel's default (10)".

    In brackets is what TCP reported. "" where a route sets the window in all records.
    """
    by_kernel = [record for record in records if record.trial.window_by == BY_KERNEL]
    if not by_kernel:
        return ""
    reported = sorted({record.seen_initcwnd for record in by_kernel if record.seen_initcwnd})
    windows = f" ({', '.join(map(str, reported))})" if reported else ""
    return f"kernel's default{windows}"


def quantity(name: str) -> Quantity:
    """The metric of that name, or else the quantity. Raises KeyError where there is none."""
    return METRICS.get(name) or quantities.quantity(name)


def record_of(evidence: Evidence, error: str, measured_at: str) -> Record:
    """The record of a transfer, without a verdict.

    It has what the client, the server, the packets and the model say. error: why the transfer
    failed; "" where it succeeded.
    """
    fetch, report, early = evidence.fetch, evidence.report, evidence.early
    total_ms = fetch.get("total_ms")
    return Record(
        evidence.trial, not error, error, measured_at=measured_at,
        connect_ms=fetch.get("connect_ms"),
        first_byte_ms=fetch.get("first_byte_ms"),
        total_ms=total_ms,
        latency_ms=evidence.latency_ms,
        header_bytes=report.get("header_bytes"),
        request_header_bytes=report.get("request_bytes"),
        seen_initcwnd=report.get("initial_window"),
        judged_by=evidence.judged_by,
        model_ms=evidence.model_ms,
        model_latency_ms=evidence.model_latency_ms,
        model_retransmissions=evidence.model_retransmissions,
        goodput_kbps=evidence.trial.response_bytes * 8 / total_ms if total_ms else None,
        appconnect_ms=fetch.get("appconnect_ms"),
        flight_bytes=evidence.flight_bytes,
        flight_writes=len(report["tls"]["flight"]) if "tls" in report else None,
        window_after_handshake=evidence.window_after_handshake,
        model_appconnect_ms=evidence.model_appconnect_ms,
        model_first_byte_ms=evidence.model_first_byte_ms,
        accepted_early_bytes=evidence.accepted_early_bytes,
        request_round_trips=early.round_trips if early else None,
        request_segments=early.segments if early else None,
        **_of_packets(evidence))


def _of_packets(evidence: Evidence) -> dict[str, Any]:
    """The columns that follow from the packets; {} where these cannot be read."""
    from firstflight.workloads.fetch.record.limits import limit_of, offered_to, segments_of
    if evidence.exchange is None:
        return {}
    wire = evidence.wire
    windows = offered_to(evidence)
    return dict(
        wire_latency_ms=wire.latency_ms,
        seen_first_flight=evidence.first_flight,
        limited_by=limit_of(evidence),
        seen_rtt_ms=evidence.rtt_ms,
        seen_bandwidth_kbps=evidence.bandwidth_kbps,
        retransmissions=len(wire.retransmissions),
        handshake_retransmissions=wire.handshake_retransmissions,
        lost_segments=len(wire.lost_data),
        queue_drops=evidence.queue_drops,
        random_drops=evidence.random_drops,
        uplink_queue_drops=evidence.uplink_queue_drops,
        lost_packets=evidence.lost_packets,
        retransmission_cause=evidence.retransmission_cause,
        handshake_round_trips=len(evidence.flights) or None,
        flight_segments=sum(map(len, evidence.flights)) or None,
        response_round_trips=len(evidence.response_flights) or None,
        least_offered_segments=segments_of(windows.least_bytes, evidence) if windows else None,
        most_offered_segments=segments_of(windows.most_bytes, evidence) if windows else None,
        receive_window_waits=windows.waits if windows else None,
        response_flights=_format_flights(evidence.response_flights),
        first_burst_segments=evidence.first_burst,
        link_idle_ms=evidence.link_idle_ms,
        **_of_upload(evidence))


def _of_upload(evidence: Evidence) -> dict[str, Any]:
    """The columns of a request with a body."""
    if not evidence.trial.request_bytes:
        return {}
    reported = evidence.fetch.get("socket")
    return {"seen_client_initcwnd": reported["initial_window"] if reported else None,
            "seen_upload_flight": evidence.upload_first_flight,
            "client_retransmissions": evidence.client_retransmissions,
            "upload_round_trips": len(evidence.request_flights) or None,
            "upload_flights": _format_flights(evidence.request_flights)}


def _format_flights(flights: Sequence[Sequence[Segment]]) -> str:
    """The number of segments in each flight: "10+20+40"; "+…" for flights after MOST_LISTED."""
    sizes = [str(len(flight)) for flight in flights[:MOST_LISTED]]
    if len(flights) > MOST_LISTED:
        sizes.append("…")
    return "+".join(sizes)
