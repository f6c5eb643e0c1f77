"""What a probe of a server observed: its first flight, and what may have limited it.

The client acknowledged nothing of the response until the server retransmitted (probe/client.py), so
that the flight is what came until then, less the probe that a timer sends (tail loss probe, RFC
8985, section 7).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from firstflight.net.headers import SYN
from firstflight.net.segments import distance
from firstflight.probe.tap import Packet

LEAST_RATE_S = 0.05  # over which the speed of the server's time stamps can be measured


class Response(NamedTuple):
    """What came of a response, after its first flight was let through.

    response_bytes: on the connection, headers included; ended: whether that was all; size_bytes: of
    the whole response, None if it is not known. location: where it redirects to.
    """

    status: int
    location: str
    response_bytes: int
    ended: bool
    size_bytes: int | None


class Observed(NamedTuple):
    """A connection to a server, as probe.client saw it.

    rtt_ms, mss, window_bytes, segments_before: as of Probed. scale: by how many bits the windows of
    this client are shifted. before, packets: those before the request, and from it on, where
    `captured`; else counts: (ms after the request, segments so far).
    """

    rtt_ms: float
    segments_before: int
    window_bytes: int
    scale: int
    mss: int
    before: Sequence[Packet]
    packets: Sequence[Packet]
    captured: bool
    counts: Sequence[tuple[float, int]]
    response: Response


class Piece(NamedTuple):
    """One segment as it was on the wire: (start, end) in bytes of the response, and when it came.

    stamp_ms: the server's own time, None if its stamps are of no use.
    """

    start: int
    end: int
    time_ms: float
    stamp_ms: float | None

    @property
    def size(self) -> int:
        return self.end - self.start


@dataclass(frozen=True)
class Probed:
    """The first flight.

    payload_bytes, full: None without a capture; full: whether the last segment
    was, and all that a timer sent after it. mss: data of a full segment. window_bytes: that the
    client offered, None if it is not known. response_bytes: observed on the connection,
    headers included; size_bytes: of all of it, None if it was not read to its end and
    its head has no length. segments_before: that the server had sent before the request, of TLS.
    lost: segments of the flight that did not come. unsure: whether what a timer sent may be
    counted with it.
    """

    segments: int
    payload_bytes: int | None
    mss: int
    rtt_ms: float
    window_bytes: int | None
    response_bytes: int
    size_bytes: int | None
    full: bool | None
    segments_before: int = 0
    lost: int = 0
    unsure: bool = False

    @property
    def is_captured(self) -> bool:
        return self.payload_bytes is not None

    @property
    def is_window(self) -> bool:
        """Whether the flight is the initial window: nothing else can have ended it."""
        return bool(self.full) and not self.segments_before and self._other_limit is None

    @property
    def limit(self) -> str:
        """What ended the flight, in a sentence."""
        if (other := self._other_limit) is not None:
            return f"{other}{'' if self.unsure else f': {self._bound}'}"
        if self.segments_before:
            return (f"the server's window, which may have grown by the {self.segments_before}"
                    f" segments of its handshake: on a new connection it is {self.segments}, or up"
                    f" to {self.segments_before} fewer")
        if self.full is None:
            return ("the server's initial window, or by its program, which may have written no"
                    " more at first: only a capture decides")
        return "the server's initial window: the response goes on, and there is room for it"

    @property
    def ends_with_the_response(self) -> bool:
        """Within a segment: a tail that is not full may wait for an acknowledgement (RFC 896)."""
        return self.response_bytes - self._held_bytes < self.mss

    @property
    def deciding_bytes(self) -> int | None:
        """The size of a page that no flight to this client can hold; None if it is not known."""
        return self.window_bytes + self.mss if self.window_bytes else None

    @property
    def count(self) -> str:
        return _counted(self.segments)

    @property
    def _held_bytes(self) -> int:
        return self.payload_bytes or self.segments * self.mss

    @property
    def _other_limit(self) -> str | None:
        """What may have ended the flight, other than the server's window; None for nothing."""
        if self.ends_with_the_response:
            return ("the response, all of which is in it"
                    if self.response_bytes == self.payload_bytes else
                    "the response, which ends within a segment of it")
        if self.window_bytes and self._held_bytes + self.mss > self.window_bytes:
            return f"the receive window that this client offers, {self.window_bytes} bytes"
        if self.full is False:
            return "the server's program, which had written no more"
        return None

    @property
    def _bound(self) -> str:
        """What a flight still proves that was not ended by the window."""
        least = max(1, self.segments - self.segments_before)
        grown = (f", since the {self.segments_before} segments of its handshake may have enlarged"
                 " it") if self.segments_before else ""
        return f"the server's initial window is at least {_counted(least)}{grown}"


def _counted(segments: int) -> str:
    return f"{segments} segment{'s' if segments != 1 else ''}"


def judge_probe(observed: Observed) -> Probed:
    """The first flight of what probe.client.observe observed."""
    response = observed.response
    if not observed.captured:
        drained_ms, count = observed.counts[-1][0] - observed.counts[0][0], observed.counts[-1][1]
        if response.ended:  # a FIN of its own is counted as well
            count = min(count, math.ceil(response.response_bytes / observed.mss))
        return Probed(count, None, observed.mss, observed.rtt_ms, observed.window_bytes or None,
                      response.response_bytes, response.size_bytes, None,
                      observed.segments_before, unsure=drained_ms > 2 * observed.rtt_ms)
    requested = next(packet for packet in observed.packets if not packet.to_client)
    pieces, following = flight([*pieces_of(observed.packets, requested.ack, _stamps_per_ms(
        [*observed.before, *observed.packets]))], observed.rtt_ms)
    mss = max(observed.mss, *(piece.size for piece in pieces))
    last = max(pieces, key=lambda piece: piece.end)
    end = last.end
    lost = round((end - sum(piece.size for piece in pieces)) / mss)
    # A loss probe repeats the last segment only where there is nothing new (tcp_send_loss_probe).
    had_more = following is None or len(pieces) == 1 or (
        following.start < last.start or following.start >= end and following.size == mss)
    return Probed(len(pieces) + lost, end, mss, observed.rtt_ms,
                  requested.window << observed.scale, response.response_bytes,
                  response.size_bytes, last.size == mss and had_more, observed.segments_before,
                  lost)


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


def flight(pieces: Sequence[Piece], rtt_ms: float) -> tuple[list[Piece], Piece | None]:
    """New data up to what was retransmitted, and what followed; None for nothing.

    A timer's probe follows: it is alone, after a round trip. Where the segment before it was
    not full there was nothing more to send: then it is what the server's program wrote later.
    """
    segments: list[Piece] = []
    following = None
    for piece in pieces:
        if any(piece.start < earlier.end and earlier.start < piece.end for earlier in segments):
            following = piece
            break
        segments.append(piece)
    if len(segments) > 1:
        before, last = segments[-2:]
        mss = max(piece.size for piece in segments)
        if _apart_ms(before, last) >= rtt_ms and before.size == mss:
            following = segments.pop()
    return segments, following


def _apart_ms(before: Piece, after: Piece) -> float:
    """The time between two pieces, by the server's clock if known: on a slow link they queue."""
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
    whole = (f"has {probed.size_bytes} bytes" if probed.size_bytes is not None else
             f"has more than {probed.response_bytes} bytes")
    lines = [f"first flight: {'at most ' if probed.unsure else ''}{probed.count}{size}",
             f"limited by {probed.limit}",
             f"RTT {probed.rtt_ms:.1f} ms, {probed.mss} bytes in a full segment; the response"
             f" {whole} with its head"]
    if probed.ends_with_the_response:
        lines.insert(2, "what would decide: a page of"
                     f" {probed.deciding_bytes} bytes or more, which is more than this client's"
                     " receive window lets through at once" if probed.deciding_bytes else
                     "what would decide: a page larger than this client's receive window")
    if probed.lost:
        lines.append(f"{probed.lost} of the segments did not come; they are counted by the gaps")
    if probed.unsure:
        lines.append("the link is slow: what timers of the server sent may be counted with it; with"
                     " the right to capture (root, CAP_NET_RAW) they are distinguished")
    lines.append("seen by a capture of this connection" if probed.is_captured else
                 "counted without the right to capture: what a server writes after a pause is not"
                 " seen")
    return lines


def next_command(probed: Probed) -> str | None:
    """The command that measures at this RTT, with --iw if a window was seen; None without size."""
    if probed.size_bytes is None:
        return None
    windows = f" --iw {probed.segments},{2 * probed.segments}" if probed.is_window else ""
    return f"./run.sh --rtt {max(0.1, probed.rtt_ms):.1f} --size {probed.size_bytes}{windows}"
