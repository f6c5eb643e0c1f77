"""Packets as captures have them, and which timer sent a segment again."""

from __future__ import annotations

import io
import socket
import struct
from pathlib import Path

import dpkt
import pytest
from hypothesis import given, settings, strategies as st

from firstflight.net.headers import ACK, ETHERNET_BYTES, SYN
from firstflight.net.pcap import HEADER as PCAP_HEADER
from firstflight.net.segments import (SERVER_PORTS, CaptureError, Segment, capture_file,
                                      client_ports, distance, read_connection, read_connections)
from firstflight.probe import verdict
from firstflight.wire.exchange import count_early_data, read_exchange, server_rtt_us
from firstflight.wire.retransmissions import (FALLBACK_TIMER, RETRANSMISSION_TIMER, Retransmission,
                                              explain_retransmissions)
from tests.golden import probed, stored
from tests.golden.stored import Stored, nth_data, sent_again
from tests.unit.tcp.conversation import CLIENT, MS, SERVER, START_NS, Conversation, capture, plain


def test_a_segment_has_the_fields_of_its_packet() -> None:
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
    wrapped = Conversation(client_start=client_start, server_start=server_start)
    wrapped.handshake().flight(0, 1, 2)
    for number, at_ms in enumerate((212.112, 224.224, 236.336), start=1):
        wrapped.acknowledge(at_ms, number)
    assert wrapped.read() == plain().read()


@pytest.mark.parametrize(("stamp_ms", "rtts_us"), [
    (5000, (100_000, 100_001)), (4999, (100_000, 100_001)), (4971, (128_000, 129_000))])
def test_after_a_syn_cookie_the_server_takes_its_rtt_from_the_stamp(
        stamp_ms: int, rtts_us: tuple[int, int]) -> None:
    """The SYN-ACK leaves at 5000 ms of the server's clock, and the answer is back 100 ms later.

    A cookie keeps options in the stamp's low bits, so that it may be an earlier time.
    """
    def stamped(own: int, echo: int) -> bytes:
        return b"\x01\x01\x08\x0a" + struct.pack(">II", own, echo)

    talk = Conversation().send(0, False, SYN, options=stamped(700, 0))
    talk.send(50, True, SYN | ACK, ack=1, options=stamped(stamp_ms, 700))
    talk.send(100, False, ACK, seq=1, ack=1, options=stamped(800, stamp_ms))
    talk.send(100, False, ACK, seq=1, ack=1, payload=95, options=stamped(800, stamp_ms))
    talk.send(150.01, True, ACK, seq=1, ack=96, payload=1448, options=stamped(5100, 800))
    assert server_rtt_us(talk.read()) == rtts_us


def test_a_capture_of_several_connections_is_read_by_port() -> None:
    first, second = plain(), Conversation(port=40001).handshake().flight(0, 1)
    both = capture(first.client + second.client), capture(first.server + second.server)
    with pytest.raises(CaptureError, match="2 connections, from client ports 40000, 40001"):
        read_exchange(*both)
    assert read_exchange(*both, 40000) == first.read()
    assert len(read_exchange(*both, 40001).first_flight) == 2
    assert client_ports(both[0]) == [40000, 40001]
    with pytest.raises(CaptureError, match="no packet from or to client port 5"):
        read_exchange(*both, 5)


def test_two_connections_of_one_port_are_refused() -> None:
    first, second = plain(), Conversation(client_start=77).handshake()
    with pytest.raises(CaptureError, match="more than one connection"):
        read_exchange(capture(first.client + second.client),
                      capture(first.server + second.server))


def answered_again(*starts: int, every_ms: float = 64_000) -> Conversation:
    """A SYN that is repeated every 64 s, and the server's answers; all but the last one are lost.

    starts: the sequence number with which each answer begins, as the server forgot the SYN before.
    """
    talk = Conversation()
    for place, start in enumerate(starts):
        talk.server_start, begun_ms = start, place * every_ms
        talk.send(begun_ms, False, SYN)
        talk.send(begun_ms + 50, True, SYN | ACK, ack=1, lost=start != starts[-1])
    return talk


def test_a_server_that_forgot_a_syn_answers_with_another_number() -> None:
    talk = answered_again(9000, 5000, 123)
    talk.send(128_100, False, ACK, seq=1, ack=1)
    talk.send(128_200, True, ACK, seq=1, ack=1, payload=700)
    seen = talk.read()
    assert [segment.seq for segment in seen.syn_acks] == [8877, 4877, 0]
    assert len(seen.lost_to_client) == 2 and seen.first_flight[0].seq == 1


def test_the_answer_that_the_client_acknowledges_begins_the_connection() -> None:
    talk = answered_again(9000, 5000, 123)

    def acknowledging(start: int) -> bytes:
        """The client's capture, as if it had acknowledged the answer with this number."""
        acknowledgement = answered_again(start).send(200_000, False, ACK, seq=1, ack=1).client[-1]
        return capture([*talk.client, acknowledgement])

    server = capture(talk.server)
    for start in (5000, 9000):
        assert read_exchange(acknowledging(start), server).syn_acks[-1].seq == 123 - start
    with pytest.raises(CaptureError, match="acknowledges a SYN that no server sent"):
        read_exchange(acknowledging(7), server)


def test_the_last_answer_begins_a_connection_that_nobody_acknowledges() -> None:
    assert answered_again(9000, 5000).read().syn_acks[-1].seq == 0


def test_a_server_does_not_forget_a_syn_within_a_second() -> None:
    assert answered_again(9000, 5000, every_ms=1000).read().syn_acks[0].seq == 4000
    with pytest.raises(CaptureError, match="more than one connection"):
        answered_again(9000, 5000, every_ms=900).read()


def test_a_capture_without_a_connection_is_refused() -> None:
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
def test_a_capture_that_was_cut_names_its_side(cut_bytes: int, named: str) -> None:
    conversation = plain()
    client, server = capture(conversation.client), capture(conversation.server)
    with pytest.raises(CaptureError, match=f"^server capture ends within {named}$"):
        read_exchange(client, server[:-cut_bytes])
    with pytest.raises(CaptureError, match="^client capture ends within a packet$"):
        read_exchange(client[:-1], server)


def test_a_damaged_capture_is_refused() -> None:
    packets = capture(plain().client)
    for damaged in (packets[3:], b"\xff" * 64, packets[:8] + b"\xff\xff" + packets[10:]):
        with pytest.raises(CaptureError, match="damaged|ends within|broken"):
            read_exchange(damaged, packets)


def test_a_packet_cut_short_is_broken() -> None:
    stub = Conversation().handshake().client[0][1][:40]
    with pytest.raises(CaptureError, match="broken packet|no connection"):
        read_exchange(capture([(START_NS, stub, 54)]), b"")


def test_captured_packets_become_a_pcap_file() -> None:
    packets = capture(plain().client)
    for content in (packets, PCAP_HEADER + packets):  # with a header or without
        own = capture_file(content)
        reader = dpkt.pcap.Reader(io.BytesIO(own))
        assert reader.datalink() == dpkt.pcap.DLT_EN10MB
        times, frames = zip(*reader)
        assert len(frames) == 10 and float(times[0]) == pytest.approx(START_NS / 1e9, abs=1e-3)
        assert read_exchange(own, own).at_client


def test_a_damaged_capture_is_named_by_its_side() -> None:
    good = capture(Conversation().handshake().client)
    for client, server, side in ((good[:-1], good, "client"), (good, good[:-1], "server")):
        for read in (read_connection, read_connections):
            with pytest.raises(CaptureError, match=f"^{side} capture ends within a packet"):
                read(client, server)


# With dpkt ----------------------------------------------------------------------------

GOLDEN = Path(__file__).resolve().parent.parent.parent / "golden"
STORED = sorted(GOLDEN.glob("**/*.pcap"))
PORT, START_S = 40000, 1_800_000_000
Read = dict[tuple[str, int], tuple[Segment, ...]]


def ours(packets: bytes) -> Read | None:
    """Segments by the client's address and port; None where the capture is refused."""
    try:
        return {client: connection.at_client
                for client, connection in read_connections(packets, b"").items()}
    except CaptureError:
        return None


def by_dpkt(packets: bytes) -> Read | None:
    found: dict[tuple[str, int], list[tuple[int, int, int, dpkt.ip.IP]]] = {}
    place = len(PCAP_HEADER) if packets.startswith(PCAP_HEADER[:4]) else 0
    while place < len(packets):
        seconds, nanoseconds, kept, on_wire = struct.unpack_from("<IIII", packets, place)
        frame, place = packets[place + 16:place + 16 + kept], place + 16 + kept
        try:
            ip = dpkt.ethernet.Ethernet(frame).data
        except dpkt.UnpackError:
            return None
        if isinstance(ip, dpkt.ip.IP) and isinstance(ip.data, dpkt.tcp.TCP) and not ip.mf \
                and {*SERVER_PORTS} & {ip.data.sport, ip.data.dport}:
            to_client = ip.data.sport in SERVER_PORTS
            client = ((ip.dst, ip.data.dport) if to_client else (ip.src, ip.data.sport))
            found.setdefault((socket.inet_ntoa(client[0]), client[1]), []).append(
                (seconds * 10**9 + nanoseconds, on_wire, to_client, ip))
    try:
        return {client: tuple(segment(*each, starts(seen)) for each in seen)
                for client, seen in found.items()}
    except TypeError:  # dpkt's word for an option without a length
        return None


def starts(seen: list[tuple[int, int, int, dpkt.ip.IP]]) -> dict[int, int]:
    return {to_client: ip.data.seq for _, _, to_client, ip in seen if ip.data.flags & SYN}


def segment(time_ns: int, on_wire: int, to_client: int, ip: dpkt.ip.IP,
            start: dict[int, int]) -> Segment:
    tcp = ip.data
    stamp, echo, sacked, scale = None, None, (), 0
    for kind, data in dpkt.tcp.parse_opts(before_end(tcp.opts)):
        if kind == dpkt.tcp.TCP_OPT_TIMESTAMP and len(data) == 8:
            stamp, echo = struct.unpack(">II", data)
        if kind == dpkt.tcp.TCP_OPT_WSCALE and len(data) == 1:
            (scale,) = data
        if kind == dpkt.tcp.TCP_OPT_SACK and len(data) % 8 == 0:
            sacked = tuple((distance(left, start[not to_client]),
                            distance(right, start[not to_client]))
                           for left, right in struct.iter_unpack(">II", data))
    return Segment(
        time_ns=time_ns, to_client=bool(to_client),
        client_port=tcp.dport if to_client else tcp.sport, seq=distance(tcp.seq, start[to_client]),
        ack=distance(tcp.ack, start[not to_client]) if tcp.flags & ACK else None,
        payload_bytes=max(0, ip.len - 4 * ip.hl - 4 * tcp.off), frame_bytes=on_wire,
        flags=tcp.flags,
        window=tcp.win, stamp=stamp, echo=echo, sacked=sacked, identification=ip.id, scale=scale,
        options=tcp.opts if tcp.flags & SYN else b"")


def before_end(options: bytes) -> bytes:
    """The options in front of the end of the list (RFC 9293, 3.1), which dpkt does not see."""
    place = 0
    while place < len(options) and options[place]:
        has_length = options[place] > 1 and place + 1 < len(options)
        place += max(2, options[place + 1]) if has_length else 1
    return options[:place]


@pytest.mark.parametrize("path", STORED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_stored_capture_is_read_as_dpkt_reads_it(path: Path) -> None:
    read = ours(path.read_bytes())
    assert read is not None and read == by_dpkt(path.read_bytes())


# Made captures ------------------------------------------------------------------------------

def record(number: int, frame: bytes, on_wire: int = 0) -> bytes:
    return struct.pack("<IIII", START_S, number, len(frame), on_wire or len(frame)) + frame


def syn(to_client: bool) -> bytes:
    """With it the numbers of its side are relative to 7."""
    return frame_of(to_client, seq=7, flags=SYN)


def frame_of(to_client: bool, seq: int = 0, ack: int = 0, flags: int = ACK, window: int = 0,
             options: bytes = b"", ip_options: bytes = b"", length: int | None = None,
             identification: int = 0, kind: int = 0x0800, protocol: int = 6,
             fragment: int = 0, tail: bytes = b"") -> bytes:
    ports = (80, PORT) if to_client else (PORT, 80)
    options, ip_options = (each + bytes(-len(each) % 4) for each in (options, ip_options))
    tcp = struct.pack(">HHIIHHHH", *ports, seq, ack, (5 + len(options) // 4) << 12 | flags,
                      window, 0, 0) + options
    whole = 20 + len(ip_options) + len(tcp) + len(tail)
    ip = struct.pack(">BBHHHBBH4s4s", 0x45 + len(ip_options) // 4, 0,
                     whole if length is None else length, identification, fragment, 64, protocol,
                     0, *((SERVER, CLIENT) if to_client else (CLIENT, SERVER))) + ip_options
    return (bytes(12) + struct.pack(">H", kind) + ip + tcp + tail)[:96]


words, halves = st.integers(0, 2**32 - 1), st.integers(0, 2**16 - 1)
option = st.one_of(
    st.sampled_from([b"\0", b"\x01", b"\x04\x02", b"\x05\x0a" + bytes(range(8)), b"\x08"]),
    st.builds(lambda a, b: struct.pack(">BBII", 8, 10, a, b), words, words),
    st.builds(lambda bits: bytes((3, 3, bits)), st.integers(0, 255)),
    st.binary(max_size=12))
frames = st.builds(
    frame_of, st.booleans(), seq=words, ack=words, window=halves, identification=halves,
    flags=st.integers(0, 0x1FF).map(lambda flags: flags & ~SYN),
    options=st.lists(option, max_size=4).map(lambda each: b"".join(each)[:40]),
    ip_options=st.one_of(st.just(b""), st.binary(max_size=40)),
    length=st.one_of(st.none(), st.integers(0, 120), halves),
    kind=st.sampled_from([0x0800] * 6 + [0x0806, 0x86DD]),
    protocol=st.sampled_from([6] * 6 + [1, 17]),
    fragment=st.sampled_from([0, 0x4000, 0x2000, 1]), tail=st.binary(max_size=20))


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A frame cut short, or with one byte changed, but not of Ethernet, addresses or ports.

    In frames of other types dpkt reads what the taps never record: VLANs, MPLS, LLC.
    """
    frame = bytearray(draw(frames))
    if draw(st.booleans()):
        place = draw(st.sampled_from(
            [each for each in range(ETHERNET_BYTES, len(frame)) if each not in range(26, 38)]))
        frame[place] = draw(st.integers(0, 255))
        tcp_at = ETHERNET_BYTES + 4 * (frame[14] & 15)
        if tcp_at + 13 < len(frame):
            frame[tcp_at + 13] &= ~SYN
    return bytes(frame[:draw(st.integers(0, len(frame)))] if draw(st.booleans()) else frame)


@settings(derandomize=True, database=None, deadline=None, max_examples=50)
@given(st.lists(st.one_of(frames, damaged()), max_size=3))
def test_a_generated_capture_is_read_as_dpkt_reads_it(made: list[bytes]) -> None:
    packets = b"".join(record(number, frame) for number, frame
                       in enumerate((syn(False), syn(True), *made)))
    assert ours(packets) == by_dpkt(packets)


def test_an_option_without_a_length_is_refused() -> None:
    cut = frame_of(True, options=b"\x01\x01\x01\x08")
    assert ours(record(0, syn(False)) + record(1, syn(True)) + record(2, cut)) is None


def test_a_packet_with_too_short_an_ip_header_is_skipped() -> None:
    # By its length field the IP header has 16 bytes. So TCP would begin at the last address, which
    # has valid ports here, and find a header's length and flags within the acknowledgement.
    frame = bytearray(frame_of(True, ack=0x5010_0000))
    frame[14], frame[30:34] = 0x44, struct.pack(">HH", 80, PORT)
    packets = b"".join(record(number, bytes(each)) for number, each
                       in enumerate((syn(False), syn(True), frame)))
    read = ours(packets)
    assert read == by_dpkt(packets) and read is not None and list(map(len, read.values())) == [2]


# Which timer sent a segment again, and what no timer explains -------------------------

@pytest.fixture
def good() -> Stored:
    """RTT 100 ms, 1000 kbit/s, window 3, 9000 bytes; nothing sent again."""
    return stored.load("iw3")


def explained(trial: Stored) -> tuple[Retransmission, ...]:
    return explain_retransmissions(read_exchange(trial.client, trial.server))


def causes(trial: Stored) -> set[str | None]:
    return {again.cause for again in explained(trial)}


def unexplained(trial: Stored) -> list[Segment]:
    return [again.segment for again in explained(trial) if again.cause is None]


def test_a_timer_explains_nothing_before_its_time() -> None:
    early = stored.load("queue_timer")
    moved = []
    for packets, later_ns in ((stored.read(early.client), 1_000_000_000),
                              (stored.read(early.server), 150_000_000)):
        first = nth_data(packets, 1)
        again = next(packet for packet in packets if packet is not first
                     and packet.frame[38:42] == first.frame[38:42]
                     and packet.payload_bytes and packet.to_client)
        packets.remove(again)
        moved.append([*packets, first.retransmitted(later_ns, 65000)])
    assert unexplained(early.captured(*moved))


@pytest.mark.parametrize(("flags", "later_ms"), [(0x02, 20), (0x02, 1100), (0x12, 20),
                                                 (0x12, 1100)])
def test_a_syn_that_is_repeated_without_cause_is_unexplained(good: Stored, flags: int,
                                                             later_ms: int) -> None:
    """A SYN or SYN-ACK again, though the answer took but 100 ms."""
    copies = []
    for packets in (stored.read(good.client), stored.read(good.server)):
        first = next(packet for packet in packets if packet.frame[47] == flags)
        copies.append([*packets, first.retransmitted(later_ms * 1_000_000, 65000)])
    assert unexplained(good.captured(*copies))


def test_a_probe_explains_nothing_before_two_round_trips(good: Stored) -> None:
    assert unexplained(sent_again(good, 2, later_ms=100))  # the flight's last


@pytest.mark.parametrize(("least_ms", "cause"), [(50, RETRANSMISSION_TIMER), (70, None)])
def test_a_timer_is_explained_by_the_least_timeout_of_its_route(good: Stored, least_ms: float,
                                                                cause: str | None) -> None:
    again = sent_again(good, 2, later_ms=160)
    (sent,) = explain_retransmissions(read_exchange(again.client, again.server),
                                      least_timeout_ms=least_ms)
    assert sent.cause == cause


def test_a_timer_explains_its_own_window_only() -> None:
    """What was sent after the timer ran out is not sent again because of it."""
    trial = sent_again(stored.load("queue_timer"), 6, later_ms=60)
    assert causes(trial) == {RETRANSMISSION_TIMER, None}
    assert [(segment.seq, segment.end) for segment in unexplained(trial)] == [(7241, 8689)]


def test_a_fallback_timer_is_named() -> None:
    """Without time stamps a repeated SYN-ACK leaves a timer of 3 s, which a long RTT outlasts."""
    assert FALLBACK_TIMER in causes(sent_again(stored.load("long_rtt"), 0, later_ms=3050))


# How fast a server's clock ticks, for a probe -----------------------------------------

@pytest.mark.parametrize(("stamps", "per_ms"), [
    ([(0, 5000), (300, 9000), (1000, 5100)], 0.1),  # 100 Hz; what lies between does not count
    ([(0, (1 << 32) - 10), (50, 40)], 1.0),  # it wraps around; the least time
    ([(0, 5000), (1000, 5001)], 0.001), ([(0, 5000), (49.9, 5050)], None),
    ([(0, 5000), (1000, 5000)], None), ([(0, 5000), (1000, 4999)], None), ([], None)])
def test_the_probe_finds_how_fast_a_servers_clock_ticks(stamps: list[tuple[float, int]],
                                                        per_ms: float | None) -> None:
    packets = [probed.data(ms, 0)._replace(stamp=stamp) for ms, stamp in stamps]
    ours = probed.data(5000, 0)._replace(to_client=False, stamp=99)
    found = verdict._stamps_per_ms([ours, *packets, probed.data(6000, 0, stamp=False), ours])
    assert found == (per_ms if per_ms is None else pytest.approx(per_ms, rel=1e-9))


@pytest.mark.parametrize(("order", "early"), [
    ((0, 1, 2), 0), ((1, 0, 2), 1), ((2, 1, 0, 3), 2), ((0, 2, 3, 1, 4), 2), ((0, 0, 1), 0)])
def test_data_before_its_turn_is_counted_at_the_client(order: tuple[int, ...],
                                                       early: int) -> None:
    exchange = Conversation().handshake().flight(*order).read()
    assert count_early_data(exchange.at_client) == early
