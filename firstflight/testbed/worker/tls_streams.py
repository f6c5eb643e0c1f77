"""The lengths of the TLS records that servers sent, from their packets.

A record begins with a header of five bytes in the clear, the last two of which are its length
(RFC 8446, 5.1). So the headers can be found one after the other, although captures keep less of a
packet than that (net/pcap.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from firstflight.net.headers import ETHERNET_BYTES, SYN, TCP
from firstflight.net.segments import SECURE_PORTS
from firstflight.testbed.hosts.tls_records import RECORD_HEADER_BYTES

_SPACE, _HALF = 1 << 32, 1 << 31  # of sequence numbers
_PROTOCOL_AT, _FLAGS_AT, _OFFSET_AT = 9, 13, 12  # in IPv4's and in TCP's headers


@dataclass
class _Stream:
    """What one server has sent on one connection, up to a sequence number."""

    next_seq: int
    lengths: list[int] = field(default_factory=list)  # of the records, bytes
    head: bytes = b""  # the part of a record's header that has come
    left: int = 0  # bytes of the record that follow
    is_whole: bool = True  # whether no byte was missed

    def add(self, seq: int, payload: bytes) -> None:
        """Take a segment; what was sent before is skipped. New data leave in order."""
        before = (self.next_seq - seq) % _SPACE
        if before >= _HALF:
            self.is_whole = False
        elif before < len(payload) and self.is_whole:
            self.next_seq = (seq + len(payload)) % _SPACE
            self._walk(payload[before:])

    def _walk(self, data: bytes) -> None:
        place = 0
        while place < len(data):
            if self.left:
                step = min(self.left, len(data) - place)
                self.left -= step
                place += step
                continue
            more = data[place:place + RECORD_HEADER_BYTES - len(self.head)]
            self.head += more
            place += len(more)
            if len(self.head) == RECORD_HEADER_BYTES:
                self.left = int.from_bytes(self.head[3:], "big")
                self.lengths.append(RECORD_HEADER_BYTES + self.left)
                self.head = b""


class TlsStreams:
    """The records of all connections of a trial, by the client's port."""

    def __init__(self) -> None:
        self._streams: dict[int, _Stream] = {}

    def add(self, frame: bytes) -> None:
        """Take a whole frame, in the order in which it left or came at the server."""
        ip = ETHERNET_BYTES
        if frame[ip + _PROTOCOL_AT] != TCP:
            return
        tcp = ip + (frame[ip] & 15) * 4
        if int.from_bytes(frame[tcp:tcp + 2], "big") not in SECURE_PORTS:
            return

        client_port = int.from_bytes(frame[tcp + 2:tcp + 4], "big")
        seq = int.from_bytes(frame[tcp + 4:tcp + 8], "big")
        if frame[tcp + _FLAGS_AT] & SYN:
            self._streams.setdefault(client_port, _Stream((seq + 1) % _SPACE))
            return

        end = ip + int.from_bytes(frame[ip + 2:ip + 4], "big")
        payload = frame[tcp + (frame[tcp + _OFFSET_AT] >> 4) * 4:end]
        if payload and client_port in self._streams:
            self._streams[client_port].add(seq, payload)

    def report(self) -> list[tuple[int, list[tuple[int, int]]]]:
        """The client's port and the records of each connection whose stream has no gap.

        Records are (length in bytes, how many of this length follow each other).
        """
        return [(port, _runs(stream.lengths)) for port, stream in self._streams.items()
                if stream.is_whole]


def _runs(lengths: list[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for length in lengths:
        if runs and runs[-1][0] == length:
            runs[-1] = length, runs[-1][1] + 1
        else:
            runs.append((length, 1))
    return runs
