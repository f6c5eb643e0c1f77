"""What a probe of a server observed: its first flight, and what may have limited it.

The client acknowledged nothing of the response until the server retransmitted (probe/client.py), so
that the flight is what came until then, less the probe that a timer sends (tail loss probe, RFC
8985, section 7).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from net.headers import SYN
from net.segments import distance
from probe.tap import Packet

LEAST_RATE_S = 0.05  # over which the speed of the server's time stamps can be measured


class Piece(NamedTuple):
    """One segment as it was on the wire: (start, end) in bytes of the response, and when it came.

    stamp_ms: the server's own time, None where its stamps are of no use.
    """

    start: int
    end: int
    time_ms: float
    stamp_ms: float | None


@dataclass(frozen=True)
class Probed:
    """The first flight.

    payload_bytes, full: None without a capture; full: whether the last segment
    was. mss: data of a full segment. window_bytes: that the client offered,
    None where it is not known. response_bytes: observed on the connection, headers
    included; ended: whether that is all; size_bytes: of all of it, as the head
    says. segments_before: that the server had
    sent before the request, of TLS. lost: segments of the flight that did not
    come. unsure: whether what a timer sent may be counted with it.
    """

    segments: int
    payload_bytes: int | None
    mss: int
    rtt_ms: float
    window_bytes: int | None
    response_bytes: int
    ended: bool
    size_bytes: int
    full: bool | None
    segments_before: int = 0
    lost: int = 0
    unsure: bool = False

    @property
    def is_captured(self) -> bool:
        return self.payload_bytes is not None

    @property
    def limit(self) -> str:
        """What ended the flight, in a sentence."""
        held = self.payload_bytes or self.segments * self.mss
        if self.ended and self.response_bytes <= held:
            return (f"the response: all of it fits, so the window is {self.count} or more;"
                    " probe a larger one")
        if self.window_bytes and held + self.mss > self.window_bytes:
            return (f"the receive window that this client offers, {self.window_bytes} bytes: the"
                    f" server's window is {self.count} or more")
        if self.full is False:
            return ("the server's program: it had written no more, so the window is"
                    f" {self.count} or more")
        if self.segments_before:
            return (f"the server's window, which may have grown by the {self.segments_before}"
                    f" segments of its handshake: on a new connection it is {self.segments}, or up"
                    f" to {self.segments_before} fewer")
        if self.full is None:
            return ("the server's initial window, or by its program, which may have written no"
                    " more at first: only a capture tells")
        return "the server's initial window: the response goes on, and there is room for it"

    @property
    def count(self) -> str:
        return f"{self.segments} segment{'s' if self.segments != 1 else ''}"


def judge_probe(observed: dict[str, Any]) -> Probed:
    """The first flight of what probe.client.observe observed."""
    common: dict[str, Any] = {name: observed[name] for name in (
        "rtt_ms", "response_bytes", "ended", "size_bytes", "segments_before")}
    if not observed["captured"]:
        counts: list[tuple[float, int]] = observed["counts"]
        drained_ms, count = counts[-1][0] - counts[0][0], counts[-1][1]
        if observed["ended"]:  # a FIN of its own is counted as well
            count = min(count, math.ceil(observed["response_bytes"] / observed["mss"]))
        return Probed(segments=count, payload_bytes=None, mss=observed["mss"], full=None,
                      window_bytes=observed["window_bytes"] or None,
                      unsure=drained_ms > 2 * observed["rtt_ms"], **common)
    requested = next(packet for packet in observed["packets"] if not packet.to_client)
    pieces = flight([*pieces_of(observed["packets"], requested.ack, _stamps_per_ms(
        [*observed["before"], *observed["packets"]]))], observed["rtt_ms"])
    mss = max(piece.end - piece.start for piece in pieces)
    end = max(piece.end for piece in pieces)
    lost = round((end - sum(piece.end - piece.start for piece in pieces)) / mss)
    last = max(pieces, key=lambda piece: piece.end)
    return Probed(segments=len(pieces) + lost, payload_bytes=end, mss=mss, lost=lost,
                  window_bytes=requested.window << observed["scale"],
                  full=last.end - last.start == mss, **common)


def pieces_of(packets: Sequence[Packet], first: int, stamps_per_ms: float | None
              ) -> Iterator[Piece]:
    """The segments of the response; frames that merge several are taken apart.

    first: the absolute sequence number of its first byte.
    """
    for packet in packets:
        if not packet.to_client or packet.flags & SYN:
            continue
        start, end = distance(packet.seq, first), distance(packet.seq, first) + packet.payload_bytes
        stamp_ms = (packet.stamp / stamps_per_ms if stamps_per_ms and packet.stamp is not None
                    else None)
        step = packet.segment_bytes or packet.payload_bytes
        while start < end:
            yield Piece(start, min(start + step, end), packet.time_ns / 1e6, stamp_ms)
            start += step


def flight(pieces: Sequence[Piece], rtt_ms: float) -> list[Piece]:
    """New data up to what was retransmitted; without a probe, which is alone after a round trip.

    Where the segment before it was not full there was nothing more to send: then it is what the
    server's program wrote later.
    """
    segments: list[Piece] = []
    for piece in pieces:
        if any(piece.start < earlier.end and earlier.start < piece.end for earlier in segments):
            break
        segments.append(piece)
    if len(segments) > 1:
        before, last = segments[-2:]
        mss = max(piece.end - piece.start for piece in segments)
        if _apart_ms(before, last) >= rtt_ms and before.end - before.start == mss:
            segments.pop()
    return segments


def _apart_ms(before: Piece, after: Piece) -> float:
    """By the server's clock, where it is known: on a slow link a probe arrives with the flight."""
    if before.stamp_ms is not None and after.stamp_ms is not None:
        return after.stamp_ms - before.stamp_ms
    return after.time_ms - before.time_ms


def _stamps_per_ms(packets: Sequence[Packet]) -> float | None:
    """How fast the server's time stamps run; None without, or where too little time passed."""
    sent = [(packet.time_ns, packet.stamp) for packet in packets
            if packet.to_client and packet.stamp is not None]
    if not sent:
        return None
    (first_ns, first), (last_ns, last) = sent[0], sent[-1]
    if last_ns - first_ns < LEAST_RATE_S * 1e9:
        return None
    ticks = distance(last, first)
    return ticks / ((last_ns - first_ns) / 1e6) if ticks > 0 else None


def lines(probed: Probed) -> list[str]:
    """The result in lines; the first is the answer."""
    size = (f", {probed.payload_bytes} bytes" if probed.payload_bytes is not None else
            f", at most {probed.segments * probed.mss} bytes")
    lines = [f"first flight: {'at most ' if probed.unsure else ''}{probed.count}{size}",
             f"limited by {probed.limit}",
             f"RTT {probed.rtt_ms:.1f} ms, {probed.mss} bytes in a full segment; the response has"
             f" {probed.size_bytes} bytes with its head"]
    if probed.lost:
        lines.append(f"{probed.lost} of the segments did not come; they are counted by the gaps")
    if probed.unsure:
        lines.append("the link is slow: what timers of the server sent may be counted with it; with"
                     " the right to capture (root, CAP_NET_RAW) they are distinguished")
    lines.append("seen by a capture of this connection" if probed.is_captured else
                 "counted without the right to capture: what a server writes after a pause is not"
                 " seen")
    return lines
