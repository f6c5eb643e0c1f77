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

LEAST_RATE_S = 0.05  # the speed of a server's time stamps cannot be measured in less time


class Response(NamedTuple):
    """The response, as far as it was read."""

    status: int
    location: str  # the URL to which it redirects; "" for none
    response_bytes: int  # received with headers, and encrypted over TLS
    ended: bool  # whether the response was read to its end
    size_bytes: int | None  # of the whole response; None if not known


class ProbedConnection(NamedTuple):
    """A connection to a server, as probe.client observed it."""

    rtt_ms: float
    segments_before: int  # that the server sent before the request, for TLS
    window_bytes: int  # offered by the client; 0 if the kernel does not report it
    scale: int  # by how many bits to shift this client's windows
    mss: int  # payload of a full segment, bytes
    before: Sequence[Packet]  # with a capture: the packets before the request
    packets: Sequence[Packet]  # with a capture: the packets from the request on
    captured: bool
    # Without a capture: (ms after the request, segments so far), whenever the number grew.
    counts: Sequence[tuple[float, int]]
    response: Response


class Piece(NamedTuple):
    """One segment of the response, as it was on the wire."""

    start: int  # the offset of its first byte in the response
    end: int  # the offset after its last byte
    time_ms: float  # when it came
    # When it left by the server's time stamp, in ms from an unknown moment. None without a stamp,
    # and where the speed of the stamps is not known.
    stamp_ms: float | None

    @property
    def size(self) -> int:
        """Bytes of payload."""
        return self.end - self.start


@dataclass(frozen=True)
class ProbeResult:
    """What a probe shows of a server's first flight."""

    segments: int  # of the flight
    payload_bytes: int | None  # None without a capture
    mss: int  # payload of a full segment, bytes
    rtt_ms: float
    window_bytes: int | None  # offered by the client; None if not known
    response_bytes: int  # received, with headers
    # Of the whole response; None if it was not read to its end and has no Content-Length.
    size_bytes: int | None
    # Whether the last segment of the flight was full and more data followed; None without a
    # capture.
    full: bool | None
    segments_before: int = 0  # that the server sent before the request, for TLS
    lost: int = 0  # segments of the flight that did not arrive
    unsure: bool = False  # whether segments that a timer sent may be counted as well

    @property
    def is_captured(self) -> bool:
        """Whether the packets were captured, not only counted."""
        return self.payload_bytes is not None

    @property
    def is_window(self) -> bool:
        """Whether the flight is the initial window: nothing else can have limited it."""
        return bool(self.full) and not self.segments_before and self._other_limit is None

    @property
    def window_range(self) -> tuple[int | None, int | None]:
        """The least and the most segments that the initial window may have; None if not known."""
        # The segments before the request may each have grown the window by one.
        least = None if self.unsure else max(1, self.segments - self.segments_before)
        most = None if self._other_limit else self.segments
        if self.full is None and not self.unsure:
            most = None
        return least, most

    @property
    def limit(self) -> str:
        """What limited the flight, as the end of a sentence."""
        other = self._other_limit
        if other is not None and self.unsure:
            return other
        if other is not None:
            return f"{other}: {self._least_window}"
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

        The server may hold a last segment back that is not full, until an acknowledgement comes
        (RFC 896).
        """
        return self.response_bytes - self._held_bytes < self.mss

    @property
    def deciding_bytes(self) -> int | None:
        """The size of a page that is larger than any flight to this client; None if not known."""
        return self.window_bytes + self.mss if self.window_bytes else None

    @property
    def count(self) -> str:
        """The segments of the flight in words."""
        return _segments_in_words(self.segments)

    @property
    def _held_bytes(self) -> int:
        """The bytes of the flight; without a capture, the most that it can have."""
        return self.payload_bytes or self.segments * self.mss

    @property
    def _other_limit(self) -> str | None:
        """What may have limited the flight other than the server's window; None for nothing."""
        if self.ends_with_the_response:
            if self.response_bytes == self.payload_bytes:
                return "the response, all of which is in it"
            return "the response, which ends within a segment of it"
        if self.window_bytes and self._held_bytes + self.mss > self.window_bytes:
            return f"the receive window that this client offers, {self.window_bytes} bytes"
        if self.full is False:
            return "the server's program, which had written no more"
        return None

    @property
    def _least_window(self) -> str:
        """What the flight shows of the window although something else limited it, in words."""
        least = max(1, self.segments - self.segments_before)
        grown = ""
        if self.segments_before:
            grown = (f", since the {self.segments_before} segments of its handshake may have"
                     " enlarged it")
        return f"the server's initial window is at least {_segments_in_words(least)}{grown}"


def _segments_in_words(segments: int) -> str:
    return f"{segments} segment{'s' if segments != 1 else ''}"


def judge_probe(observed: ProbedConnection) -> ProbeResult:
    """The first flight in what probe.client.observe returned."""
    return _judge_packets(observed) if observed.captured else _judge_counts(observed)


def _judge_counts(observed: ProbedConnection) -> ProbeResult:
    """The first flight of a probe without a capture."""
    response = observed.response
    (first_ms, _), (last_ms, count) = observed.counts[0], observed.counts[-1]
    drained_ms = last_ms - first_ms
    if response.ended:  # the counter includes a FIN without data
        count = min(count, math.ceil(response.response_bytes / observed.mss))
    return ProbeResult(
        segments=count, payload_bytes=None, mss=observed.mss, rtt_ms=observed.rtt_ms,
        window_bytes=observed.window_bytes or None, response_bytes=response.response_bytes,
        size_bytes=response.size_bytes, full=None, segments_before=observed.segments_before,
        unsure=drained_ms > 2 * observed.rtt_ms)


def _judge_packets(observed: ProbedConnection) -> ProbeResult:
    """The first flight of a probe with a capture."""
    requested = next(packet for packet in observed.packets if not packet.to_client)
    stamps_per_ms = _stamps_per_ms([*observed.before, *observed.packets])
    came = list(pieces_of(observed.packets, requested.ack, stamps_per_ms))
    pieces, following = flight(came, observed.rtt_ms)

    mss = max(observed.mss, *(piece.size for piece in pieces))
    last = max(pieces, key=lambda piece: piece.end)
    end = last.end
    lost = round((end - sum(piece.size for piece in pieces)) / mss)
    # Whether the server had more data than the flight. A loss probe repeats the last segment only
    # if there is no new data (tcp_send_loss_probe).
    had_more = following is None or len(pieces) == 1
    if following is not None and not had_more:
        repeats_earlier = following.start < last.start
        is_new_and_full = following.start >= end and following.size == mss
        had_more = repeats_earlier or is_new_and_full

    response = observed.response
    return ProbeResult(
        segments=len(pieces) + lost, payload_bytes=end, mss=mss, rtt_ms=observed.rtt_ms,
        window_bytes=requested.window << observed.scale, response_bytes=response.response_bytes,
        size_bytes=response.size_bytes, full=last.size == mss and had_more,
        segments_before=observed.segments_before, lost=lost)


def pieces_of(packets: Sequence[Packet], first: int, stamps_per_ms: float | None
              ) -> Iterator[Piece]:
    """The segments of the response. Frames that merge several segments are split again.

    first: the absolute sequence number of the response's first byte. stamps_per_ms: the speed of
    the server's time stamps, None if not known.
    """
    for packet in packets:
        if not packet.to_client or packet.flags & SYN:
            continue

        start = distance(packet.seq, first)
        end = start + packet.payload_bytes
        stamp_ms = None
        if stamps_per_ms and packet.stamp is not None:
            stamp_ms = packet.stamp / stamps_per_ms
        step = packet.segment_bytes or packet.payload_bytes
        while start < end:
            yield Piece(start, min(start + step, end), packet.time_ns / 1e6, stamp_ms)
            start += step


def flight(pieces: Sequence[Piece], rtt_ms: float) -> tuple[list[Piece], Piece | None]:
    """The segments of new data before the first retransmission, and the segment after them or None.

    A probe that a timer sends is not one of them: it comes alone, a round trip after the others.
    But if the segment before it was not full, it is no probe: the server had nothing more to send
    then, and its program wrote later.
    """
    segments: list[Piece] = []
    following = None
    for piece in pieces:
        if any(piece.start < earlier.end and earlier.start < piece.end for earlier in segments):
            following = piece
            break
        segments.append(piece)

    if len(segments) > 1:
        previous, last = segments[-2:]
        mss = max(piece.size for piece in segments)
        if _ms_between(previous, last) >= rtt_ms and previous.size == mss:
            following = segments.pop()
    return segments, following


def _ms_between(earlier: Piece, later: Piece) -> float:
    """The time between two segments in ms: by the server's clock if known, else by this client's.

    A slow link delays the later segment, which this client's clock would count.
    """
    if earlier.stamp_ms is not None and later.stamp_ms is not None:
        return later.stamp_ms - earlier.stamp_ms
    return later.time_ms - earlier.time_ms


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


def result_lines(probed: ProbeResult) -> list[str]:
    """The result in lines of text; the first line has the answer."""
    size = f"at most {probed.segments * probed.mss} bytes"
    if probed.payload_bytes is not None:
        size = f"{probed.payload_bytes} bytes"
    bound = "at most " if probed.unsure else ""
    lines = [f"first flight: {bound}{probed.count}, {size}", f"limited by {probed.limit}"]

    if probed.ends_with_the_response and probed.deciding_bytes:
        lines.append(f"probe a page of {probed.deciding_bytes} bytes or more: it does not fit"
                     " into this client's receive window")
    elif probed.ends_with_the_response:
        lines.append("probe a page that is larger than this client's receive window")

    whole = f"more than {probed.response_bytes} bytes"
    if probed.size_bytes is not None:
        whole = f"{probed.size_bytes} bytes"
    lines.append(f"RTT {probed.rtt_ms:.1f} ms, {probed.mss} bytes in a full segment; the response"
                 f" has {whole} with its head")

    if probed.lost:
        lines.append(f"{probed.lost} of the segments were lost; the gaps show them")
    if probed.unsure:
        lines.append("the link is slow: segments that the server's timers sent may be counted; a"
                     " capture (as root, or with CAP_NET_RAW) distinguishes them")
    if probed.is_captured:
        lines.append("measured by a capture of this connection")
    else:
        lines.append("counted without the right to capture: segments that the server writes after"
                     " a pause do not count")
    return lines


def next_command(probed: ProbeResult) -> str | None:
    """The command that measures this RTT and size, with --iw if the flight shows the window.

    None if the size is not known.
    """
    if probed.size_bytes is None:
        return None
    windows = f" --iw {probed.segments},{2 * probed.segments}" if probed.is_window else ""
    return f"./run.sh --rtt {max(0.1, probed.rtt_ms):.1f} --size {probed.size_bytes}{windows}"
