"""Captures of networks, packet by packet, as ./run.sh --capture writes them."""

from __future__ import annotations

import gzip
import struct
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy

from firstflight.wire.capture.connections import ObservedConnection, observe_connections
from firstflight.wire.capture.conversations import find_conversations
from firstflight.wire.capture.direction import LinkDirection
from firstflight.wire.capture.fields import read_headers
from firstflight.wire.capture.links import observe_links
from firstflight.wire.capture.pcapng import (NAME, Capture, Command, Complaint, Device,
                                             DeviceState, Opened, Packets, packets_of, read)
from firstflight.wire.capture.qdiscs import DeviceSetting, Qdisc, parse_setting
from firstflight.wire.capture.report import CaptureReport, report_capture
from firstflight.wire.capture.spaces import NamespaceNames

MS = 1_000_000
SYN, RST, PUSH, ACK, FIN = 2, 4, 8, 16, 1
QUEUE_DROP, TAKEN_DOWN = 126, 2


class Packet(NamedTuple):
    """One of TCP on a link: 0 for h1 to h2, 1 back, 2 and 3 for a further link behind h2."""

    device: int
    queued_ms: float
    seq: int
    size: int
    flags: int = ACK
    ack: int = 1
    took_ms: float = 10.0
    reason: int = 0
    source: str = ""
    ends: tuple[int, int] = (1024, 80)


def made(packets: Iterable[Packet], starts: tuple[int, int] = (1000, 2000),
         kinds: Sequence[str] = ("veth", "veth"), settings: Sequence[Qdisc] = (),
         mtus: Sequence[int] = (1500, 1500, 1500, 1500), queue_packets: int = 1000) -> Capture:
    """A capture of them. seq, ack: relative to each side's start. settings: of the first device."""
    names = ("h1-eth0", "h2-eth0", "h2-eth1", "h3-eth0")
    devices = [Device(number, name, [DeviceState(
        0, name, kinds[number % 2], number // 2 + number % 2, False, number ^ 1, mtus[number], True,
        queue_packets=queue_packets if number == 0 else 1000)])
        for number, name in enumerate(names)]
    devices[2].states = [devices[2].states[0]._replace(namespace=1)]
    devices[0].settings = [DeviceSetting(0, tuple(settings)) if settings else parse_setting(0, b"")]
    heads, columns = [], dict[str, list[int]]()
    place = 0
    for number, packet in enumerate(sorted(packets, key=lambda each: each.queued_ms), start=1):
        back = packet.device % 2
        own, other = starts[::-1] if back else starts
        from_port, to_port = packet.ends[::-1] if back else packet.ends
        addresses = [b"\x0a\0\0\1", b"\x0a\0\0\2"]
        if packet.source:
            addresses[0] = bytes(map(int, packet.source.split(".")))
        source, destination = reversed(addresses) if back else addresses
        tcp = struct.pack(">HHIIHHHH", from_port, to_port, (own + packet.seq) % (1 << 32),
                          (other + packet.ack) % (1 << 32), 5 << 12 | packet.flags, 65535, 0, 0)
        # IP's length is 0, as of more than 64 kB: the frame's bytes say how many there are.
        head = bytes(12) + b"\x08\0" + struct.pack(
            ">BBHHHBBH", 0x45, 0, 0, number % 65536, 0, 64, 6, 0) + source + destination + tcp
        heads.append(head)
        times = round(packet.queued_ms * MS), round((packet.queued_ms + packet.took_ms) * MS)
        for name, value in zip(Packets._fields, (
                packet.device, times[1], times[0], number, number,
                packet.reason != QUEUE_DROP, packet.reason, 1, len(head) + packet.size, place,
                len(head))):
            columns.setdefault(name, []).append(value)
        place += len(head)
    packets_there = packets_of(**columns)
    order = numpy.lexsort((packets_there.number, packets_there.time_ns))
    return Capture(devices, packets_there.at(order),
                   numpy.frombuffer(b"".join(heads) or b"\0", numpy.uint8))


HANDSHAKE = (Packet(0, 0, 0, 0, SYN, -1), Packet(1, 10, 0, 0, SYN | ACK, 1), Packet(0, 20, 1, 0))


def seen(capture: Capture) -> list[ObservedConnection]:
    fields, directions = read_headers(capture), found(capture)
    conversations = find_conversations(capture, fields, directions)
    if conversations.tcp is None:
        return []
    return [each for each
            in observe_connections(conversations.connections, conversations.tcp, directions,
                                   capture.data)
            if each]


def of(capture: Capture, origin_ns: int = 0, **facts: object) -> CaptureReport:
    return report_capture(capture, facts, "folder", origin_ns)


def found(capture: Capture) -> list[LinkDirection]:
    return observe_links(capture, read_headers(capture), NamespaceNames())


def message(kind: str, handle: int, parent: int, is_class: bool = False, options: bytes = b"",
            packets: int = 0) -> bytes:
    """RTM_NEWQDISC or RTM_NEWTCLASS."""
    def attribute(number: int, content: bytes) -> bytes:
        whole = struct.pack("=HH", 4 + len(content), number) + content
        return whole + bytes(-len(whole) % 4)
    body = struct.pack("=BxxxiIII", 0, 0, handle, parent, 0) + attribute(
        1, kind.encode() + b"\0") + attribute(7, attribute(1, struct.pack("=QI", 0, packets)))
    if options:
        body += attribute(2, options)
    return struct.pack("=IHHII", 16 + len(body), 40 if is_class else 36, 0, 0, 0) + body


ROOT = 0xFFFFFFFF
DELAY = struct.pack("=6I", 156250, 9, 0, 0, 0, 0)  # 10 ms in ticks, limit 9


def netem(**more: object) -> Qdisc:
    return Qdisc("netem", False, 1 << 16, ROOT, packets=9, limit_packets=1000,
                 **more)  # type: ignore[arg-type]


def burst(count: int, begin_ms: float = 30, apart_ms: float = 1.0, size: int = 1400,
          took_ms: float = 50.0, reason: int = 0) -> list[Packet]:
    """Data from h1 to h2."""
    return [Packet(0, begin_ms + apart_ms * number, 1 + size * number, size, took_ms=took_ms,
                   reason=reason) for number in range(count)]


def tbf(burst_bytes: int, rate_kbps: float = 1000.0) -> Qdisc:
    return Qdisc("tbf", False, 1 << 16, ROOT, packets=99, rate_kbps=rate_kbps,
                 burst_bytes=burst_bytes, limit_bytes=100_000)


def with_commands(*commands: tuple[str, int, bool], complaints: tuple[str, ...] = (),
                  program: str = "tc", **flight: int) -> Capture:
    """A connection from h1 to h2 whose window is of some segments, and commands before."""
    data = burst(flight.get("segments", 10), 30, apart_ms=0.01, size=1448, took_ms=10)
    end = 1 + 1448 * len(data)
    acks = [Packet(1, 60, 1, 0, ack=end), Packet(0, 70, end, 1448),
            Packet(1, 85, 1, 0, ack=end + 1448)]
    opening = [packet._replace(queued_ms=packet.queued_ms + 1) for packet in HANDSHAKE]
    capture = made([*opening, *data, *acks])
    capture.commands = [Command(5 + number, 0, is_root, number, status, words)
                        for number, (words, status, is_root) in enumerate(commands)]
    capture.opened = [Opened(25 * MS, 0, False, flight.get("segments", 10))]
    capture.complaints = [Complaint(5, 0, False, 0 if program == "tc" else 99, text, program)
                          for text in complaints]
    return capture


# One that was measured: tests/golden/capture/small.py ---------------------------------------

SMALL = Path(__file__).resolve().parents[1] / "golden" / "capture" / "small.pcapng.gz"
ORIGIN_NS = 1_767_225_600_000_000_000  # when its clock began
Row = dict[str, int]
Change = Callable[[list[Row]], list[Row]]


@cache
def content() -> bytes:
    return gzip.decompress(SMALL.read_bytes())


def small(data: bytes | None = None) -> Capture:
    """As measured, or what a file with this data shows. Raises NoCapture."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / NAME
        path.write_bytes(content() if data is None else data)
        return read(path)


def own_block(kind: int, device: int, rest: bytes) -> bytes:
    """A block as vtime/kernel/capture.c writes it."""
    body = struct.pack("<HxxIQ", kind, device, ORIGIN_NS) + rest
    return struct.pack("<II", 0x80004646, len(body) + 12) + body + struct.pack("<I", len(body) + 12)


def changed(device: str, change: Change) -> Capture:
    """As measured, but the packets of one device are others."""
    capture = small()
    number = next(each.number for each in capture.devices if each.name == device)
    every = [dict(zip(Packets._fields, row))
             for row in zip(*(column.tolist() for column in capture.packets))]
    kept = [row for row in every if row["device"] != number]
    own = change([row for row in every if row["device"] == number])
    both = sorted(kept + own, key=lambda row: (row["time_ns"], row["number"]))
    capture.packets = packets_of(**{name: [row[name] for row in both] for name in Packets._fields})
    return capture
