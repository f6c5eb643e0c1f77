"""A server's first flight, from the packets of a probe, and what may have limited it.

The client acknowledged nothing of the response until the server retransmitted (probe/client.py).
So the flight is all that came until then, without the segment that a timer sends (tail loss probe,
RFC 8985, section 7).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from firstflight.net.headers import SYN
from firstflight.net.segments import distance
from firstflight.probe.tap import Packet

LEAST_RATE_S = 0.05  # in less time the speed of the server's time stamps cannot be measured


class Response(NamedTuple):
    """The response, as far as it was read.

    response_bytes: received, with headers, over TLS encrypted. ended: whether that was all.
    size_bytes: of the whole response, None if it is not known. location: where it redirects to.
    """

    status: int
    location: str
    response_bytes: int
    ended: bool
    size_bytes: int | None


class ProbedConnection(NamedTuple):
    """A connection to a server, as probe.client observed it.

    rtt_ms, mss, window_bytes, segments_before: as in ProbeResult. scale: by how many bits to shift
    this client's windows. If `captured`: before has the packets before the request, packets those
    from it on. Else counts has (ms after the request, segments so far).
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
    """One segment of the response, as it was on the wire.

    start, end: bytes of the response, the end excluded. time_ms: when it came. stamp_ms: the
    server's time stamp in ms, None if the speed of its stamps is not known.
    """

    start: int
    end: int
    time_ms: float
    stamp_ms: float | None

    @property
    def size(self) -> int:
        return self.end - self.start


@dataclass(frozen=True)
class ProbeResult:
    """The first flight.

    payload_bytes: None without a capture. full: whether the last segment of the flight was full
    and more data followed; None without a capture. mss: payload of a full segment, bytes.
    window_bytes: offered by the client, None if not known. response_bytes: received, with headers.
    size_bytes: of the whole response, None if it was not read to its end and has no
    Content-Length. segments_before: sent by the server before the request, for TLS. lost: segments
    of the flight that did not arrive. unsure: whether a timer's segments may be counted as well.
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
        """Whether the flight is the initial window: nothing else can have limited it."""
        return bool(self.full) and not self.segments_before and self._other_limit is None

    @property
    def window_ends(self) -> tuple[int | None, int | None]:
        """The least and the most segments that the initial window may have; None: not known."""
        least = max(1, self.segments - self.segments_before)
        if self.unsure:
            return None, None if self._other_limit else self.segments
        if self._other_limit or self.full is None:
            return least, None
        return least, self.segments

    @property
    def limit(self) -> str:
        """What limited the flight, as the end of a sentence."""
        if (other := self._other_limit) is not None:
            return f"{other}{'' if self.unsure else f': {self._least_window}'}"
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
        """Whether the response ends less than a segment after the flight.

        Its last segment, not full, may wait for an acknowledgement (RFC 896).
        """
        return self.response_bytes - self._held_bytes < self.mss

    @property
    def deciding_bytes(self) -> int | None:
        """The size of a page that is larger than any flight to this client; None if not known."""
        return self.window_bytes + self.mss if self.window_bytes else None

    @property
    def count(self) -> str:
        return _segments_in_words(self.segments)

    @property
    def _held_bytes(self) -> int:
        return self.payload_bytes or self.segments * self.mss

    @property
    def _other_limit(self) -> str | None:
        """What may have limited the flight other than the server's window; None for nothing."""
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
    def _least_window(self) -> str:
        """What a flight proves that something else than the window limited."""
        least = max(1, self.segments - self.segments_before)
        grown = (f", since the {self.segments_before} segments of its handshake may have enlarged"
                 " it") if self.segments_before else ""
        return f"the server's initial window is at least {_segments_in_words(least)}{grown}"


def _segments_in_words(segments: int) -> str:
    return f"{segments} segment{'s' if segments != 1 else ''}"


def judge_probe(observed: ProbedConnection) -> ProbeResult:
    """The first flight in what probe.client.observe returned."""
    response = observed.response
    if not observed.captured:
        drained_ms, count = observed.counts[-1][0] - observed.counts[0][0], observed.counts[-1][1]
        if response.ended:  # the counter includes a FIN without data
            count = min(count, math.ceil(response.response_bytes / observed.mss))
        return ProbeResult(count, None, observed.mss, observed.rtt_ms,
                           observed.window_bytes or None, response.response_bytes,
                           response.size_bytes, None, observed.segments_before,
                           unsure=drained_ms > 2 * observed.rtt_ms)
    requested = next(packet for packet in observed.packets if not packet.to_client)
    pieces, following = flight([*pieces_of(observed.packets, requested.ack, _stamps_per_ms(
        [*observed.before, *observed.packets]))], observed.rtt_ms)
    mss = max(observed.mss, *(piece.size for piece in pieces))
    last = max(pieces, key=lambda piece: piece.end)
    end = last.end
    lost = round((end - sum(piece.size for piece in pieces)) / mss)
    # A loss probe repeats the last segment only if there is no new data (tcp_send_loss_probe).
    had_more = following is None or len(pieces) == 1 or (
        following.start < last.start or following.start >= end and following.size == mss)
    return ProbeResult(len(pieces) + lost, end, mss, observed.rtt_ms,
                       requested.window << observed.scale, response.response_bytes,
                       response.size_bytes, last.size == mss and had_more, observed.segments_before,
                       lost)


def pieces_of(packets: Sequence[Packet], first: int, stamps_per_ms: float | None
              ) -> Iterator[Piece]:
    """The segments of the response; frames that merge several are split again.

    first: absolute sequence number of the response's first byte.
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
    """The segments of new data before the first retransmission, and the segment after them or None.

    A timer's probe does not count: it is alone, a round trip after the others. But if the segment
    before it was not full, the server had nothing more to send: then its program wrote later.
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
    """The time between two segments, by the server's clock if known: on a slow link they queue."""
    if before.stamp_ms is not None and after.stamp_ms is not None:
        return after.stamp_ms - before.stamp_ms
    return after.time_ms - before.time_ms


def _stamps_per_ms(packets: Sequence[Packet]) -> float | None:
    """How fast the server's time stamps run; None without stamps, or if too little time passed."""
    sent = [(packet.time_ns, packet.stamp) for packet in packets
            if packet.to_client and packet.stamp is not None]
    if not sent:
        return None
    (first_ns, first), (last_ns, last) = sent[0], sent[-1]
    if last_ns - first_ns < LEAST_RATE_S * 1e9:
        return None
    ticks = distance(last, first)
    return ticks / ((last_ns - first_ns) / 1e6) if ticks > 0 else None


def lines(probed: ProbeResult) -> list[str]:
    """The result in lines; the first line has the answer."""
    size = (f", {probed.payload_bytes} bytes" if probed.payload_bytes is not None else
            f", at most {probed.segments * probed.mss} bytes")
    whole = (f"has {probed.size_bytes} bytes" if probed.size_bytes is not None else
             f"has more than {probed.response_bytes} bytes")
    lines = [f"first flight: {'at most ' if probed.unsure else ''}{probed.count}{size}",
             f"limited by {probed.limit}",
             f"RTT {probed.rtt_ms:.1f} ms, {probed.mss} bytes in a full segment; the response"
             f" {whole} with its head"]
    if probed.ends_with_the_response:
        lines.insert(2, f"probe a page of {probed.deciding_bytes} bytes or more: it does not fit"
                     " into this client's receive window" if probed.deciding_bytes else
                     "probe a page that is larger than this client's receive window")
    if probed.lost:
        lines.append(f"{probed.lost} of the segments were lost; the gaps show them")
    if probed.unsure:
        lines.append("the link is slow: segments that the server's timers sent may be counted; a"
                     " capture (as root, or with CAP_NET_RAW) distinguishes them")
    lines.append("measured by a capture of this connection" if probed.is_captured else
                 "counted without the right to capture: segments that the server writes after a"
                 " pause do not count")
    return lines


def next_command(probed: ProbeResult) -> str | None:
    """The command that measures this RTT and size, with --iw if the flight shows the window.

    None if the size is not known.
    """
    if probed.size_bytes is None:
        return None
    windows = f" --iw {probed.segments},{2 * probed.segments}" if probed.is_window else ""
    return f"./run.sh --rtt {max(0.1, probed.rtt_ms):.1f} --size {probed.size_bytes}{windows}"
