"""Captures: synthetic packets, in good order and in every kind of bad order."""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass, field, replace
from pathlib import Path

import dpkt
import pytest

from lab import wire
from lab.wire import ACK, FIN, PUSH, RST, SYN, CaptureError, Segment, read_exchange

MS = 1_000_000
START_NS = 1_800_000_000 * 10**9
CLIENT, SERVER = b"\x0a\x00\x00\x01", b"\x0a\x00\x00\x02"
MSS = 1448


@dataclass
class Conversation:
    """Builds both captures of one connection over a path of 50 ms each way."""

    port: int = 40000
    client_start: int = 1000
    server_start: int = 9000
    one_way_ns: int = 50 * MS
    identification: int = 0
    client: list[tuple[int, bytes, int]] = field(default_factory=list)
    server: list[tuple[int, bytes, int]] = field(default_factory=list)

    def send(self, at_ms: float, to_client: bool, flags: int, seq: int = 0, ack: int = 0,
             payload: int = 0, takes_ms: float | None = None, lost: bool = False,
             options: bytes = b"") -> Conversation:
        """A packet that leaves at at_ms; seq and ack relative, as Wireshark shows them."""
        self.identification += 1
        own, other = ((self.server_start, self.client_start) if to_client
                      else (self.client_start, self.server_start))
        tcp = dpkt.tcp.TCP(sport=80 if to_client else self.port,
                           dport=self.port if to_client else 80, seq=(own + seq) % 2**32,
                           ack=(other + ack) % 2**32 if flags & ACK else 0, flags=flags,
                           win=500, opts=options)
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

    def handshake(self) -> Conversation:
        self.send(0, False, SYN)
        self.send(50, True, SYN | ACK, ack=1)
        self.send(100, False, ACK, seq=1, ack=1)
        return self.send(100, False, ACK | PUSH, seq=1, ack=1, payload=95)

    def flight(self, *numbers: int, at_ms: float = 150, each_ms: float = 12.112) -> Conversation:
        """Full segments by number from 0, back to back over a link of 1000 kbit/s."""
        for place, number in enumerate(numbers, start=1):
            self.send(at_ms, True, ACK, seq=1 + number * MSS, ack=96, payload=MSS,
                      takes_ms=50 + place * each_ms)
        return self

    def acknowledge(self, at_ms: float, segments: int) -> Conversation:
        return self.send(at_ms, False, ACK, seq=96, ack=1 + segments * MSS)

    def read(self, port: int = 0, response_bytes: int = 0) -> wire.Exchange:
        return read_exchange(capture(self.client), capture(self.server), port, response_bytes)


def capture(packets: list[tuple[int, bytes, int]]) -> bytes:
    return b"".join(struct.pack("<IIII", *divmod(time_ns, 10**9), len(frame), size) + frame
                    for time_ns, frame, size in sorted(packets))


def plain() -> Conversation:
    """Three segments, each acknowledged."""
    conversation = Conversation().handshake().flight(0, 1, 2)
    for number, at_ms in enumerate((212.112, 224.224, 236.336), start=1):
        conversation.acknowledge(at_ms, number)
    return conversation


def test_a_plain_exchange() -> None:
    seen = plain().read()
    assert seen.client_port == 40000
    assert (len(seen.at_client), len(seen.at_server)) == (10, 10)
    assert seen.handshake_ms == 100
    assert [s.seq for s in seen.first_flight] == [1, 1449, 2897]
    assert [s.seq for s in seen.flight_arrivals] == [1, 1449, 2897]
    assert seen.bandwidth_kbps == pytest.approx(1502 * 8 / 12.112, rel=1e-9)
    assert seen.latency_ms == pytest.approx(286.336 - 150)
    assert not (seen.retransmissions or seen.fin_retransmissions or seen.probes
                or seen.client_retransmissions or seen.lost_to_client or seen.lost_to_server)
    assert seen.handshake_retransmissions == 0


def test_a_segment_says_what_the_packet_said() -> None:
    stamp = b"\x01\x01\x08\x0a" + struct.pack(">II", 77, 66)
    sack = b"\x01\x01\x05\x0a" + struct.pack(">II", 9000 + 1449, 9000 + 2897)
    seen = plain().send(300, False, ACK, seq=96, ack=1449, options=stamp + sack).read()
    segment = seen.at_server[-1]
    assert (segment.seq, segment.ack, segment.payload_bytes) == (96, 1449, 0)
    assert (segment.stamp, segment.echo) == (77, 66)
    assert segment.sacked == ((1449, 2897),)
    assert segment.frame_bytes == 14 + 20 + 20 + 24 and segment.window == 500
    assert segment.time_ns == START_NS + 350 * MS and not segment.to_client
    assert seen.at_server[0].ack is None and seen.at_server[0].stamp is None
    data = seen.first_flight[0]
    assert data.end == data.end_with_fin == 1449 and data.frame_bytes == 1502


@pytest.mark.parametrize(("client_start", "server_start"), [
    (2**32 - 40, 2**32 - 2000), (2**32 - 1, 2**32 - 1), (0, 0), (2**31 - 50, 2**31 - 1500)])
def test_sequence_numbers_wrap_around(client_start: int, server_start: int) -> None:
    wrapped, expected = plain(), plain().read()
    wrapped = Conversation(client_start=client_start, server_start=server_start)
    wrapped.handshake().flight(0, 1, 2)
    for number, at_ms in enumerate((212.112, 224.224, 236.336), start=1):
        wrapped.acknowledge(at_ms, number)
    assert wrapped.read() == expected


def test_without_a_handshake() -> None:
    conversation = Conversation().send(100, False, ACK | PUSH, seq=1, ack=1, payload=95)
    conversation.flight(0, 1).acknowledge(212, 1).acknowledge(224, 2)
    seen = conversation.read()
    assert seen.handshake_ms is None and seen.syns == seen.syn_acks == ()
    assert [s.seq for s in seen.first_flight] == [1, 1449]
    assert seen.latency_ms == pytest.approx(274 - 150)


def test_a_client_that_got_no_answer() -> None:
    conversation = Conversation()
    for at_ms in (0, 1000, 3000):
        conversation.send(at_ms, False, SYN, lost=True)
    seen = conversation.read()
    assert seen.handshake_ms is None and seen.latency_ms is None
    assert seen.handshake_retransmissions == 2 and seen.handshake_was_lost
    assert len(seen.lost_to_server) == 3
    assert seen.first_flight == () and seen.bandwidth_kbps is None


def test_a_reset_is_no_retransmission() -> None:
    seen = plain().send(300, True, RST | ACK, seq=4345, ack=96).read()
    assert not seen.retransmissions


def test_retransmissions() -> None:
    conversation = plain().flight(1, at_ms=260)
    conversation.send(300, True, FIN | ACK, seq=1 + 3 * MSS, ack=96)
    conversation.send(400, True, FIN | ACK, seq=1 + 3 * MSS, ack=96)
    conversation.send(500, False, ACK | PUSH, seq=1, ack=4345, payload=95)
    seen = conversation.read()
    assert [s.seq for s in seen.retransmissions] == [1449]
    assert len(seen.fin_retransmissions) == len(seen.client_retransmissions) == 1
    assert [s.seq for s in seen.first_flight] == [1, 1449, 2897]


def test_a_segment_resent_with_its_fin_is_data() -> None:
    conversation = plain().send(300, True, FIN | PUSH | ACK, seq=1 + 2 * MSS, ack=96, payload=MSS)
    assert len(conversation.read().retransmissions) == 1


def test_repeated_handshake_packets() -> None:
    conversation = plain()
    conversation.send(1000, False, SYN).send(1050, True, SYN | ACK, ack=1)
    seen = conversation.read()
    assert (len(seen.syns), len(seen.syn_acks)) == (2, 2)
    assert seen.handshake_retransmissions == 2
    assert seen.handshake_ms == 100 and not seen.handshake_was_lost
    assert not seen.retransmissions and not seen.client_retransmissions


def test_losses_are_found_by_transmission() -> None:
    """A segment that was lost once and arrived the second time was still lost once."""
    conversation = Conversation().handshake().flight(0)
    conversation.send(150, True, ACK, seq=1449, ack=96, payload=MSS, lost=True)
    conversation.flight(2).acknowledge(212, 1).flight(1, at_ms=400).acknowledge(500, 3)
    conversation.send(600, False, ACK, seq=96, ack=4345, lost=True)
    seen = conversation.read()
    assert [s.seq for s in seen.lost_data] == [1449]
    assert len(seen.lost_to_client) == len(seen.lost_to_server) == 1
    assert [s.seq for s in seen.retransmissions] == [1449]
    assert [s.seq for s in seen.first_flight] == [1, 1449, 2897]
    assert [s.seq for s in seen.flight_arrivals] == [1, 2897]


def test_the_first_flight_ends_with_the_first_acknowledgement_of_data() -> None:
    conversation = Conversation().handshake().flight(0, 1)
    conversation.send(140, False, ACK, seq=96, ack=1)  # of no data
    conversation.send(170, True, ACK, seq=2897, ack=96, payload=MSS, takes_ms=60)
    conversation.acknowledge(212, 1).flight(3, at_ms=262.5)
    assert [s.seq for s in conversation.read().first_flight] == [1, 1449, 2897]


def test_a_probe_is_not_of_the_flight() -> None:
    """New data without any cause but time: beyond the window, by a timer."""
    conversation = Conversation().handshake().flight(0, 1).flight(2, at_ms=360)
    conversation.acknowledge(400, 1).flight(3, at_ms=450)
    seen = conversation.read()
    assert [s.seq for s in seen.first_flight] == [1, 1449]
    assert [s.seq for s in seen.probes] == [2897]


def test_a_write_after_a_pause_is_no_probe() -> None:
    conversation = Conversation().handshake().flight(0, 1).flight(2, 3, at_ms=360)
    seen = conversation.acknowledge(450, 1).read()
    assert len(seen.first_flight) == 4 and not seen.probes
    # Only the first two kept the link busy: the pace of the rest is the server's.
    assert len(seen.flight_arrivals) == 2
    assert seen.bandwidth_kbps == pytest.approx(1502 * 8 / 12.112, rel=1e-9)


def test_bandwidth_needs_two_arrivals() -> None:
    seen = Conversation().handshake().flight(0).acknowledge(212, 1).read()
    assert len(seen.first_flight) == 1 and seen.bandwidth_kbps is None
    assert seen.latency_ms == pytest.approx(112)


def test_bandwidth_counts_all_that_the_link_carried() -> None:
    conversation = Conversation().handshake().flight(0)
    took = 40 * 8 / 1000 + 14 * 8 / 1000  # a SYN-ACK without options, in between
    conversation.send(150, True, SYN | ACK, ack=1, takes_ms=50 + 12.112 + took)
    conversation.send(150, True, ACK, seq=1449, ack=96, payload=MSS,
                      takes_ms=50 + 12.112 + took + 1502 * 8 / 1000)
    assert conversation.acknowledge(230, 2).read().bandwidth_kbps == pytest.approx(1000, rel=1e-6)


def test_a_paced_flight_shows_no_bandwidth() -> None:
    conversation = Conversation().handshake()
    for number in range(3):
        conversation.flight(number, at_ms=150 + 30 * number)
    seen = conversation.acknowledge(250, 1).read()
    assert len(seen.first_flight) == 3 and seen.bandwidth_kbps is None


def test_latency_of_the_last_response_of_several() -> None:
    conversation = plain()
    conversation.send(290, False, ACK | PUSH, seq=96, ack=1 + 3 * MSS, payload=95)
    conversation.send(340, True, ACK | PUSH, seq=1 + 3 * MSS, ack=191, payload=1000)
    conversation.send(400, False, ACK, seq=191, ack=1001 + 3 * MSS)
    assert conversation.read(response_bytes=1000).latency_ms == pytest.approx(110)
    assert conversation.read().latency_ms == pytest.approx(300)


def test_several_connections() -> None:
    first, second = plain(), Conversation(port=40001).handshake().flight(0, 1)
    both = capture(first.client + second.client), capture(first.server + second.server)
    with pytest.raises(CaptureError, match="2 connections, from client ports 40000, 40001"):
        read_exchange(*both)
    assert read_exchange(*both, 40000) == first.read()
    assert len(read_exchange(*both, 40001).first_flight) == 2
    assert wire.client_ports(both[0]) == [40000, 40001]
    with pytest.raises(CaptureError, match="no packet from or to client port 5"):
        read_exchange(*both, 5)


def test_a_port_used_twice() -> None:
    first, second = plain(), Conversation(client_start=77).handshake()
    with pytest.raises(CaptureError, match="more than one connection"):
        read_exchange(capture(first.client + second.client),
                      capture(first.server + second.server))


def test_nothing_but_other_traffic() -> None:
    arp = bytes(dpkt.ethernet.Ethernet(type=0x0806, data=bytes(dpkt.arp.ARP())))
    udp = bytes(dpkt.ethernet.Ethernet(type=0x0800, data=bytes(dpkt.ip.IP(
        p=17, src=CLIENT, dst=SERVER, data=bytes(dpkt.udp.UDP(sport=80, dport=9))))))
    ssh = Conversation().handshake().client[0][1].replace(b"\x00\x50", b"\x00\x16")
    noise = capture([(START_NS + number, frame, len(frame))
                     for number, frame in enumerate((arp, udp, ssh))])
    with pytest.raises(CaptureError, match="no connection"):
        read_exchange(noise, noise)
    with pytest.raises(CaptureError, match="no connection"):
        read_exchange(b"", b"")
    conversation = plain()
    assert read_exchange(capture(conversation.client) + noise,
                         noise + capture(conversation.server)) == conversation.read()


@pytest.mark.parametrize(("cut_bytes", "named"), [(1, "a packet"), (54, "a packet"),
                                                  (55, "a packet's header"),
                                                  (69, "a packet's header")])
def test_a_cut_capture(cut_bytes: int, named: str) -> None:
    conversation = plain()
    client, server = capture(conversation.client), capture(conversation.server)
    with pytest.raises(CaptureError, match=f"^server capture ends within {named}$"):
        read_exchange(client, server[:-cut_bytes])
    with pytest.raises(CaptureError, match="^client capture ends within a packet$"):
        read_exchange(client[:-1], server)


def test_a_damaged_capture() -> None:
    packets = capture(plain().client)
    for damaged in (packets[3:], b"\xff" * 64, packets[:8] + b"\xff\xff" + packets[10:]):
        with pytest.raises(CaptureError, match="damaged|ends within|broken"):
            read_exchange(damaged, packets)


def test_a_packet_cut_short_is_broken() -> None:
    stub = Conversation().handshake().client[0][1][:40]
    with pytest.raises(CaptureError, match="broken packet|no connection"):
        read_exchange(capture([(START_NS, stub, 54)]), b"")


def test_writing_captures(tmp_path: Path) -> None:
    packets = capture(plain().client)
    for content in (packets, wire.PCAP_HEADER + packets):  # with a header or without
        own = tmp_path / "trial.pcap"
        wire.write_capture(own, content)
        reader = dpkt.pcap.Reader(io.BytesIO(own.read_bytes()))
        assert reader.datalink() == dpkt.pcap.DLT_EN10MB
        times, frames = zip(*reader)
        assert len(frames) == 10 and float(times[0]) == pytest.approx(START_NS / 1e9, abs=1e-3)
        assert read_exchange(own.read_bytes(), own.read_bytes()).at_client


def test_the_phase_of_the_clock() -> None:
    """Stamps count whole milliseconds: packets at the right times tell where one starts."""
    phase_ns = 300_000
    conversation = Conversation()
    for at_ms in (0.0, 10.65, 20.71, 33.69, 50.72):
        stamp = int(at_ms + phase_ns / MS)
        conversation.send(at_ms, False, ACK if at_ms else SYN, seq=1 if at_ms else 0, ack=1,
                          options=b"\x01\x01\x08\x0a" + struct.pack(">II", stamp, 0))
    phase = wire.clock_phase_ns(conversation.read())
    assert phase == pytest.approx(phase_ns, abs=10_000)
    assert wire.clock_phase_ns(plain().read()) is None  # no stamps


def test_stamps_that_contradict_each_other_give_no_phase() -> None:
    conversation = Conversation()
    for at_ms, stamp in ((0.0, 5), (10.0, 99)):
        conversation.send(at_ms, False, ACK if at_ms else SYN, seq=1 if at_ms else 0, ack=1,
                          options=b"\x01\x01\x08\x0a" + struct.pack(">II", stamp, 0))
    assert wire.clock_phase_ns(conversation.read()) is None


def test_segments_compare_by_content() -> None:
    segment = plain().read().first_flight[0]
    assert isinstance(segment, Segment) and segment == replace(segment)
