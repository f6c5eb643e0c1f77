"""What the datagrams of a QUIC connection show: the two captures of a trial, summed up.

QUIC encrypts almost all of itself. In the open are each datagram's size and time, and of its
first packet whether the header is long, of the handshake, or short (RFC 9000, 17.2 and 17.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from net.headers import UDP, headers
from net.path import NEVER, serialised_ms
from net.segments import SERVER_PORTS, CaptureError, frames

AMPLIFICATION = 3  # times what came from an address that is not validated (RFC 9000, 8.1)
_UDP_BYTES, _LONG_HEADER = 8, 0x80


class Datagram(NamedTuple):
    """time_ns: since the epoch; payload_bytes: of UDP's; frame_bytes: on the wire.

    is_handshake: whether its first packet has a long header.
    """

    time_ns: int
    to_client: bool
    payload_bytes: int
    frame_bytes: int
    is_handshake: bool


@dataclass(frozen=True)
class Datagrams:
    """One connection over links that keep the order, as both taps recorded it.

    to_client, to_server: each datagram (as it left, as it came), None where it was lost.
    requested: the client's before anything of the server's reached it. unvalidated: the server's
    before the client's next reached it: its address is not validated until then.
    rounds: the server's of the handshake, by round trips.
    """

    to_client: tuple[tuple[Datagram, Datagram | None], ...]
    to_server: tuple[tuple[Datagram, Datagram | None], ...]
    requested: tuple[Datagram, ...]
    unvalidated: tuple[Datagram, ...]
    rounds: tuple[tuple[Datagram, ...], ...]

    @property
    def lost(self) -> tuple[int, int]:
        """How many were lost towards the client, and towards the server."""
        towards, back = (sum(came is None for _, came in direction)
                         for direction in (self.to_client, self.to_server))
        return towards, back

    @property
    def allowed_bytes(self) -> int:
        """The most that a server may send before the client's address is validated."""
        return AMPLIFICATION * sum(datagram.payload_bytes for datagram in self.requested)

    @property
    def unvalidated_bytes(self) -> int:
        return sum(datagram.payload_bytes for datagram in self.unvalidated)

    def rtt_ms(self, down_kbps: float, up_kbps: float) -> float | None:
        """Of the empty path: how long the first each way were under way, less serialisation."""
        total_ms = 0.0
        for direction, rate in ((self.to_client, down_kbps), (self.to_server, up_kbps)):
            left, came = direction[0]
            if came is None:
                return None
            total_ms += (came.time_ns - left.time_ns) / 1e6 - serialised_ms(left.frame_bytes, rate)
        return total_ms

    @cached_property
    def busy(self) -> tuple[Datagram, ...]:
        """The longest run at the client of what left at once, and so kept the link busy."""
        runs: list[list[Datagram]] = [[]]
        for (left, came), (following, next_came) in pairwise(self.to_client):
            if came is None or next_came is None or following.time_ns - left.time_ns > 1000:
                runs.append([])
                continue
            runs[-1] += [came, next_came] if not runs[-1] else [next_came]
        longest = 0
        for place, run in enumerate(runs):
            longest = place if len(run) > len(runs[longest]) else longest
        return tuple(runs[longest])

    @property
    def bandwidth_kbps(self) -> float | None:
        """From the spacing of `busy`; None where it is too short."""
        if len(self.busy) < 2 or self.busy[-1].time_ns == self.busy[0].time_ns:
            return None
        bits = 8 * sum(datagram.frame_bytes for datagram in self.busy[1:])
        return bits / ((self.busy[-1].time_ns - self.busy[0].time_ns) / 1e6)


def read_datagrams(client_pcap: bytes, server_pcap: bytes) -> Datagrams:
    """Raises CaptureError where there is no connection, or it is damaged."""
    at_client, at_server = (_datagrams(pcap, side) for pcap, side in
                            ((client_pcap, "client"), (server_pcap, "server")))
    to_client = _paired([datagram for datagram in at_server if datagram.to_client],
                        [datagram for datagram in at_client if datagram.to_client])
    to_server = _paired([datagram for datagram in at_client if not datagram.to_client],
                        [datagram for datagram in at_server if not datagram.to_client])
    if not to_client or not to_server:
        raise CaptureError("no datagram of QUIC each way in the captures")
    answered_ns = min((came.time_ns for _, came in to_client if came), default=NEVER)
    requested = tuple(left for left, _ in to_server if left.time_ns < answered_ns)
    validated_ns = next((came.time_ns for left, came in to_server
                         if came and left.time_ns >= answered_ns), NEVER)
    unvalidated = tuple(left for left, _ in to_client if left.time_ns < validated_ns)
    return Datagrams(to_client, to_server, requested, unvalidated, _rounds(to_client, to_server))


def _rounds(to_client: Sequence[tuple[Datagram, Datagram | None]],
            to_server: Sequence[tuple[Datagram, Datagram | None]]
            ) -> tuple[tuple[Datagram, ...], ...]:
    """A round begins with the first that answers something which answered the one before."""
    rounds: list[list[Datagram]] = []
    until_ns = 0
    for left, _ in to_client:
        if not left.is_handshake:
            continue
        if left.time_ns < until_ns:
            rounds[-1].append(left)
            continue
        rounds.append([left])
        reached_ns = next((came.time_ns for out, came in to_client
                           if came and out.time_ns >= left.time_ns), NEVER)
        until_ns = next((came.time_ns for out, came in to_server
                         if came and out.time_ns >= reached_ns), NEVER)
    return tuple(map(tuple, rounds))


def _paired(sent: Sequence[Datagram], came: Sequence[Datagram]
            ) -> tuple[tuple[Datagram, Datagram | None], ...]:
    """Each that was sent with its arrival: of what is as long, the next one."""
    pairs: list[tuple[Datagram, Datagram | None]] = []
    place = 0
    for datagram in sent:
        is_next = place < len(came) and came[place].payload_bytes == datagram.payload_bytes
        pairs.append((datagram, came[place] if is_next else None))
        place += is_next
    if place < len(came):
        raise CaptureError(f"{len(came) - place} datagrams came that nobody sent")
    return tuple(pairs)


def _datagrams(pcap: bytes, side: str) -> list[Datagram]:
    datagrams = (_datagram(*frame) for frame in frames(pcap, side))
    return [datagram for datagram in datagrams if datagram is not None]


def _datagram(time_ns: int, frame: bytes, frame_bytes: int) -> Datagram | None:
    """One captured frame; None for what is not UDP to or from the server, or holds nothing."""
    parsed = headers(frame, frame_bytes)
    if (parsed is None or parsed.protocol != UDP or len(parsed.body) <= _UDP_BYTES
            or not {parsed.from_port, parsed.to_port} & set(SERVER_PORTS)):
        return None
    return Datagram(time_ns, parsed.from_port in SERVER_PORTS, parsed.payload_bytes, frame_bytes,
                    bool(parsed.body[_UDP_BYTES] & _LONG_HEADER))
