"""What limited the first flight of a trial, as far as its packets show."""

from __future__ import annotations

from firstflight.net.headers import SYN
from firstflight.net.segments import Segment
from firstflight.wire.exchange import SAME_WRITE_NS, Exchange, OfferedWindows, offered_windows
from firstflight.workloads.fetch.record.evidence import Evidence

# Limits, in the words of a record.
RESPONSE, FIRST_WRITE, FLIGHT = "response size", "first write", "handshake's size"
HANDSHAKE, CONGESTION_WINDOW = "repeated handshake", "congestion window"
RECEIVE_WINDOW, SEND_BUFFER, PACING = "receive window", "send buffer", "pacing"
DEFERRED = "wait for an acknowledgement"
# The limits of a flight whose window was large enough for all that was to be sent.
BY_RESPONSE = ("", RESPONSE, FIRST_WRITE, FLIGHT)


def limit_of(evidence: Evidence) -> str:
    """Why the first flight was shorter than the requested window; "" where it was not.

    Where no window holds data back, the kernel may not yet have taken all data from the server
    (send buffer). A second write finds a part of the window in use. The kernel may hold its last
    segments back, to send more at once after an acknowledgement (tcp_tso_should_defer).
    """
    wire = evidence.wire
    requested = evidence.trial.server_window
    flight = evidence.first_flight
    if flight is None or flight >= requested or not evidence.report:
        return ""

    # The window was smaller before the first write.
    if (evidence.report["initial_window"] or requested) < requested:
        return HANDSHAKE if len(wire.syn_acks) > 1 else CONGESTION_WINDOW

    # There was no more to send.
    end = max(segment.end for segment in wire.first_flight)
    if end >= _all_written(evidence):
        return FLIGHT if evidence.flights else RESPONSE
    if end in _writes(evidence):
        return FIRST_WRITE

    # There was more to send.
    if offered_end(wire) - end < evidence.mss:
        return RECEIVE_WINDOW
    if not _is_spread(wire.first_flight):
        return SEND_BUFFER
    return DEFERRED if _writes(evidence) and evidence.is_modelled else PACING


def offered_to(evidence: Evidence) -> OfferedWindows | None:
    """The windows that the client offered over the whole transfer."""
    scale = next((segment.scale for segment in evidence.wire.syns), 0)
    return offered_windows(evidence.wire.at_server, scale, evidence.mss)


def segments_of(window_bytes: int, evidence: Evidence) -> float:
    """A window in full segments, with one decimal."""
    return round(window_bytes / evidence.mss, 1)


def offered_end(wire: Exchange) -> int:
    """The end of the window that the client had offered when the first flight left."""
    last_ns = wire.first_flight[-1].time_ns
    scale = next((segment.scale for segment in wire.syns), 0)
    end = 0
    for segment in wire.at_server:
        is_window = not segment.to_client and not segment.flags & SYN
        if is_window and segment.ack is not None and segment.time_ns <= last_ns:
            end = max(end, segment.ack + (segment.window << scale))
    return end


def _all_written(evidence: Evidence) -> int:
    """The sequence number at the end of the server's first messages on the connection."""
    if evidence.messages is not None:
        return 1 + (evidence.flight_bytes or evidence.messages.end)
    return 1 + evidence.transfer.first_bytes


def _writes(evidence: Evidence) -> tuple[int, ...]:
    """The sequence number at the end of the first of two writes; () for one write."""
    staged = evidence.trial.gap_ms and not evidence.trial.before
    return (1 + evidence.transfer.burst_bytes,) if staged else ()


def _is_spread(flight: tuple[Segment, ...]) -> bool:
    """Whether a flight left with pauses."""
    return any(later.time_ns - segment.time_ns > SAME_WRITE_NS
               for segment, later in zip(flight, flight[1:]))
