"""What a report follows of captures with very much in them: so much, and the rest is counted."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import numpy
import pytest

from firstflight.net.link import Link
from firstflight.wire.capture import conversations, links, pcapng
from firstflight.wire.capture.fields import read_headers
from firstflight.wire.capture.pcapng import Capture
from firstflight.wire.capture.spaces import NamespaceNames
from tests.unit.capture.test_capture import content, own_block, small
from tests.builders.captures import HANDSHAKE, SYN, Packet, made, netem, of


def conversations_of(capture: Capture) -> conversations.Conversations:
    fields = read_headers(capture)
    return conversations.find_conversations(capture, fields,
                                            links.observe_links(capture, fields, NamespaceNames()))


def test_connections_after_the_first_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversations, "MOST_CONNECTIONS", 3)
    syns = [Packet(0, 10 * port, 0, 0, SYN, -1, ends=(port, 80)) for port in range(1, 9)]
    capture = made([*syns, *(syn._replace(queued_ms=syn.queued_ms + 1000) for syn in syns)])
    found = conversations_of(capture)
    assert [ends.client[1] for ends in found.connections] == [1, 2, 3] and found.tcp is not None
    assert len(found.tcp.seq) == 6
    assert found.excluded["packets of TCP connections after the first 3"] == 10
    assert "10 packets of TCP connections after the first 3" in str(of(capture).report.provenance)


def datagrams(count: int, flows: int) -> Capture:
    """Datagrams from h1 to h2, the n-th of flow n modulo flows."""
    capture = made([Packet(0, number, 0, 0, took_ms=0.5, ends=(9 + number % flows, 7))
                    for number in range(count)] + [Packet(1, count, 0, 0, ends=(1, 1))])
    data = bytearray(capture.data.tobytes())
    for number, place in enumerate(sorted(capture.packets.place.tolist())):
        data[place + 23] = 17
        data[place + 42:place + 50] = struct.pack(">Q", number)
    capture.data = numpy.frombuffer(bytes(data), numpy.uint8)
    return capture


def test_flows_after_the_first_are_counted_and_what_never_comes_is_forgotten(
        monkeypatch: pytest.MonkeyPatch) -> None:
    capture = datagrams(40, 5)
    whole = conversations_of(capture)
    assert [(flow.sent, flow.came, flow.sum_ms) for flow in whole.flows] == [
        *[(8, 8, 4.0)] * 5, (1, 1, 10.0)]
    monkeypatch.setattr(conversations, "MOST_FLOWS", 2)
    monkeypatch.setattr(conversations, "_AT_ONCE", 7)
    found = conversations_of(capture)
    assert [(flow.sent, flow.came) for flow in found.flows] == [(8, 8)] * 2
    assert found.excluded["packets of UDP flows after the first 2"] == 25
    monkeypatch.setattr(conversations, "_MOST_WAITING", 2)
    late = datagrams(4, 1)
    late.packets = late.packets._replace(time_ns=late.packets.time_ns + 10**9)
    assert [(flow.sent, flow.came) for flow in conversations_of(late).flows] == [(4, 1), (1, 1)]


def test_the_first_packets_of_a_direction_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    capture = made([*(packet._replace(queued_ms=packet.queued_ms + 1) for packet in HANDSHAKE),
                    *(Packet(0, 30 + number, 1, 9) for number in range(20))],
                   settings=[netem(delay_ms=10.0)])
    capture.devices[0].settings = [replace(capture.devices[0].settings[0],
                                           link=Link(10.0, 1e12, 1000, qdisc="netem"))]
    for most, judged in ((200_000, 22), (5, 5)):
        monkeypatch.setattr(links, "MOST_JUDGED", most)
        first, *_ = links.observe_links(capture, read_headers(capture), NamespaceNames())
        assert (first.judged, first.sent) == (judged, 22)


def test_settings_after_the_first_are_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path
                                              ) -> None:
    ended = own_block(7, 5, struct.pack("<III", 1, 77, 2 << 8) + bytes(4))
    whole = small(tmp_path, content() + 5 * ended)
    assert len(whole.commands) == 5 and not whole.unread
    own = sum(len(device.settings) + len(device.states) for device in whole.devices)
    monkeypatch.setattr(pcapng, "MOST_BLOCKS", own + len(whole.dropped) + 2)
    part = small(tmp_path, content() + 5 * ended)
    assert len(part.commands) == 2 and part.unread == 3
    assert "3 settings of queues and commands are not read" in of(part).report.alarms[0]
