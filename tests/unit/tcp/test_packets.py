"""Captures, read and written: whole, cut, damaged, and of more than one connection."""

from __future__ import annotations

import io
import struct

import dpkt
import pytest

from firstflight.net.headers import ACK
from firstflight.net.pcap import HEADER as PCAP_HEADER
from firstflight.net.segments import (CaptureError, capture_file, client_ports, read_connection,
                                      read_connections)
from firstflight.wire.exchange import read_exchange
from tests.unit.tcp.conversation import CLIENT, MS, SERVER, START_NS, Conversation, capture, plain


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


def test_several_connections() -> None:
    first, second = plain(), Conversation(port=40001).handshake().flight(0, 1)
    both = capture(first.client + second.client), capture(first.server + second.server)
    with pytest.raises(CaptureError, match="2 connections, from client ports 40000, 40001"):
        read_exchange(*both)
    assert read_exchange(*both, 40000) == first.read()
    assert len(read_exchange(*both, 40001).first_flight) == 2
    assert client_ports(both[0]) == [40000, 40001]
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


def test_a_capture_as_a_file() -> None:
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
