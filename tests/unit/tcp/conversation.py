"""Builds captures packet by packet, in any order and with any losses."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import dpkt

from firstflight.net.headers import ACK, PUSH, SYN
from firstflight.wire.exchange import Exchange, read_exchange

MS = 1_000_000
START_NS = 1_800_000_000 * 10**9
CLIENT, SERVER = b"\x0a\x00\x00\x01", b"\x0a\x00\x00\x02"
MSS = 1448


@dataclass
class Conversation:
    """Both captures of one connection, and methods that add packets to them."""

    port: int = 40000  # of the client
    client_start: int = 1000  # initial sequence numbers
    server_start: int = 9000
    one_way_ns: int = 50 * MS
    identification: int = 0  # IPv4's, of the last packet
    # Packets of each capture: time in ns, the first 96 bytes of the frame, its length on the wire.
    client: list[tuple[int, bytes, int]] = field(default_factory=list)
    server: list[tuple[int, bytes, int]] = field(default_factory=list)

    def send(self, at_ms: float, to_client: bool, flags: int, seq: int = 0, ack: int = 0,
             payload: int = 0, takes_ms: float | None = None, lost: bool = False,
             options: bytes = b"", window: int = 500) -> Conversation:
        """Adds a packet that leaves at at_ms.

        seq, ack: relative, as Wireshark shows them. payload: its bytes. takes_ms: until it arrives,
        one_way_ns by default. window: before scaling.
        """
        self.identification += 1
        own, other = ((self.server_start, self.client_start) if to_client
                      else (self.client_start, self.server_start))
        tcp = dpkt.tcp.TCP(sport=80 if to_client else self.port,
                           dport=self.port if to_client else 80, seq=(own + seq) % 2**32,
                           ack=(other + ack) % 2**32 if flags & ACK else 0, flags=flags,
                           win=window, opts=options)
        tcp.off = 5 + len(options) // 4
        ip = dpkt.ip.IP(src=SERVER if to_client else CLIENT, p=6, id=self.identification,
                        dst=CLIENT if to_client else SERVER, data=bytes(tcp) + bytes(payload))
        ip.len = 20 + len(ip.data)
        frame = bytes(dpkt.ethernet.Ethernet(type=0x0800, data=bytes(ip)))
        left = START_NS + round(at_ms * MS)
        arrived = left + (self.one_way_ns if takes_ms is None else round(takes_ms * MS))
        sender, receiver = ((self.server, self.client) if to_client
                            else (self.client, self.server))
        sender.append((left, frame[:96], len(frame)))
        if not lost:
            receiver.append((arrived, frame[:96], len(frame)))
        return self

    def handshake(self, options: bytes = b"", window: int = 500) -> Conversation:
        """Adds SYN, SYN-ACK, acknowledgement, and a request of 95 bytes that leaves at 100 ms.

        options: of SYN and SYN-ACK. window: of the SYN.
        """
        self.send(0, False, SYN, options=options, window=window)
        self.send(50, True, SYN | ACK, ack=1, options=options)
        self.send(100, False, ACK, seq=1, ack=1)
        return self.send(100, False, ACK | PUSH, seq=1, ack=1, payload=95)

    def flight(self, *numbers: int, at_ms: float = 150, each_ms: float = 12.112) -> Conversation:
        """Adds full segments of the server, back to back over a link of 1000 kbit/s.

        numbers: segment 0 has the first bytes of the response. each_ms: of one on the link.
        """
        for place, number in enumerate(numbers, start=1):
            self.send(at_ms, True, ACK, seq=1 + number * MSS, ack=96, payload=MSS,
                      takes_ms=50 + place * each_ms)
        return self

    def acknowledge(self, at_ms: float, segments: int) -> Conversation:
        """Adds the client's acknowledgement of the first so many segments."""
        return self.send(at_ms, False, ACK, seq=96, ack=1 + segments * MSS)

    def read(self, port: int = 0, response_bytes: int = 0) -> Exchange:
        return read_exchange(capture(self.client), capture(self.server), port, response_bytes)


def capture(packets: list[tuple[int, bytes, int]]) -> bytes:
    """The records of a pcap file, without the file's header, in the order of their times."""
    return b"".join(struct.pack("<IIII", *divmod(time_ns, 10**9), len(frame), size) + frame
                    for time_ns, frame, size in sorted(packets))


def plain() -> Conversation:
    """A response of three segments, each of which is acknowledged."""
    conversation = Conversation().handshake().flight(0, 1, 2)
    for number, at_ms in enumerate((212.112, 224.224, 236.336), start=1):
        conversation.acknowledge(at_ms, number)
    return conversation
