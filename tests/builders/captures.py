"""Builds captures of a network packet by packet, as ./run.sh --capture would have written them.

The hosts h1, h2 and h3 stand in a line: h1 is linked with h2, and h2 with h3.
"""

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
# The kernel's reasons for a drop: the queue was full, and the link was taken down.
QUEUE_DROP, TAKEN_DOWN = 126, 2
# Of the link between h1 and h2, then of the one between h2 and h3: a device at each end.
DEVICES = ("h1-eth0", "h2-eth0", "h2-eth1", "h3-eth0")
HOSTS = (0, 1, 1, 2)  # the number of the host, and so of the namespace, of each device
ADDRESSES = (b"\x0a\0\0\1", b"\x0a\0\0\2")  # of h1 and h2


class Packet(NamedTuple):
    """One packet of a TCP connection that h1 opens, on one link."""

    device: int  # that sends it, a place in DEVICES
    queued_ms: float  # when it came to the device's queue
    seq: int  # relative to the start of its sender, as Wireshark shows it
    size: int  # bytes of data
    flags: int = ACK
    ack: int = 1  # relative to the start of its receiver
    took_ms: float = 10.0  # from coming to the queue until it left or was dropped
    reason: int = 0  # the kernel's reason for dropping it, 0 if it left
    source: str = ""  # h1's address, "" for ADDRESSES'
    ends: tuple[int, int] = (1024, 80)  # the ports of h1 and h2


def build_capture(packets: Iterable[Packet], starts: tuple[int, int] = (1000, 2000),
         kinds: Sequence[str] = ("veth", "veth"), settings: Sequence[Qdisc] = (),
         mtus: Sequence[int] = (1500, 1500, 1500, 1500), queue_packets: int = 1000) -> Capture:
    """A capture of these packets.

    starts: the initial sequence numbers of h1 and h2. kinds: of the devices at the first and at
    the second end of each link. settings: the qdiscs of the first device, from the root down.
    mtus: of each device. queue_packets: the txqueuelen of the first device.
    """
    devices = []
    for number, name in enumerate(DEVICES):
        state = DeviceState(
            0, name, kinds[number % 2], namespace=HOSTS[number], is_root=False, peer=number ^ 1,
            mtu=mtus[number], is_up=True, queue_packets=1000 if number else queue_packets)
        devices.append(Device(number, name, [state]))
    devices[0].settings = [DeviceSetting(0, tuple(settings)) if settings else parse_setting(0, b"")]

    heads, rows = [], list[dict[str, int]]()
    place = 0
    for number, packet in enumerate(sorted(packets, key=lambda packet: packet.queued_ms), start=1):
        head = _headers(packet, number, starts)
        heads.append(head)
        rows.append({
            "device": packet.device, "time_ns": round((packet.queued_ms + packet.took_ms) * MS),
            "queued_ns": round(packet.queued_ms * MS), "number": number, "frame": number,
            "accepted": packet.reason != QUEUE_DROP, "reason": packet.reason, "segments": 1,
            "frame_bytes": len(head) + packet.size, "place": place, "kept": len(head)})
        place += len(head)

    columns = {name: [row[name] for row in rows] for name in Packets._fields} if rows else {}
    by_number = packets_of(**columns)
    order = numpy.lexsort((by_number.number, by_number.time_ns))  # as they left or were dropped
    return Capture(devices, by_number.at(order),
                   numpy.frombuffer(b"".join(heads) or b"\0", numpy.uint8))


def _headers(packet: Packet, number: int, starts: tuple[int, int]) -> bytes:
    """The Ethernet, IP and TCP headers of a packet; number: IP's identification."""
    ports, addresses, sequence = packet.ends, list(ADDRESSES), starts
    if packet.source:
        addresses[0] = bytes(map(int, packet.source.split(".")))
    if packet.device % 2:  # back to h1
        ports, addresses, sequence = ports[::-1], addresses[::-1], sequence[::-1]

    seq, ack = ((start + relative) % (1 << 32)
                for start, relative in zip(sequence, (packet.seq, packet.ack)))
    tcp = struct.pack(">HHIIHHHH", *ports, seq, ack, 5 << 12 | packet.flags, 65535, 0, 0)
    # The length is 0, as IP has it of more than 64 kB: the frame's bytes say how many there are.
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 0, number % 65536, 0, 64, 6, 0)
    return bytes(12) + b"\x08\0" + ip + b"".join(addresses) + tcp


HANDSHAKE = (Packet(0, 0, 0, 0, SYN, ack=-1), Packet(1, 10, 0, 0, SYN | ACK, ack=1),
             Packet(0, 20, 1, 0))


def observe_tcp(capture: Capture) -> list[ObservedConnection]:
    """The TCP connections of a capture, without what cannot be followed."""
    fields, directions = read_headers(capture), find_links(capture)
    conversations = find_conversations(capture, fields, directions)
    if conversations.tcp is None:
        return []

    observed = observe_connections(conversations.connections, conversations.tcp, directions,
                                   capture.data)
    return [connection for connection in observed if connection]


def make_report(capture: Capture, origin_ns: int = 0, **facts: object) -> CaptureReport:
    """The report of a capture. origin_ns: when its clock began; facts: as in its run.json."""
    return report_capture(capture, facts, "folder", origin_ns)


def find_links(capture: Capture) -> list[LinkDirection]:
    return observe_links(capture, read_headers(capture), NamespaceNames())


def message(kind: str, handle: int, parent: int, is_class: bool = False, options: bytes = b"",
            packets: int = 0) -> bytes:
    """A netlink message, RTM_NEWQDISC or RTM_NEWTCLASS, on a qdisc or class.

    kind: such as "netem". packets: how many it counted, in its TCA_STATS2.
    """
    def attribute(number: int, content: bytes) -> bytes:
        whole = struct.pack("=HH", 4 + len(content), number) + content
        return whole + bytes(-len(whole) % 4)

    body = struct.pack("=BxxxiIII", 0, 0, handle, parent, 0) + attribute(
        1, kind.encode() + b"\0") + attribute(7, attribute(1, struct.pack("=QI", 0, packets)))
    if options:
        body += attribute(2, options)
    return struct.pack("=IHHII", 16 + len(body), 40 if is_class else 36, 0, 0, 0) + body


ROOT = 0xFFFFFFFF  # TC_H_ROOT, the parent of a root qdisc
DELAY = struct.pack("=6I", 156250, 9, 0, 0, 0, 0)  # netem's options: 10 ms in ticks, limit 9


def netem(**more: object) -> Qdisc:
    """A netem as the root qdisc 1:, through which 9 packets passed."""
    return Qdisc("netem", False, 1 << 16, ROOT, packets=9, limit_packets=1000,
                 **more)  # type: ignore[arg-type]


def burst(count: int, begin_ms: float = 30, apart_ms: float = 1.0, size: int = 1400,
          took_ms: float = 50.0, reason: int = 0) -> list[Packet]:
    """Packets of data from h1 to h2. size: bytes of each; apart_ms: from one to the next."""
    return [Packet(0, begin_ms + apart_ms * number, 1 + size * number, size, took_ms=took_ms,
                   reason=reason) for number in range(count)]


def tbf(burst_bytes: int, rate_kbps: float = 1000.0) -> Qdisc:
    """A token bucket as the root qdisc 1:, through which 99 packets passed."""
    return Qdisc("tbf", False, 1 << 16, ROOT, packets=99, rate_kbps=rate_kbps,
                 burst_bytes=burst_bytes, limit_bytes=100_000)


def build_with_commands(*commands: tuple[str, int, bool], complaints: tuple[str, ...] = (),
                  program: str = "tc", **flight: int) -> Capture:
    """Commands, and then a connection from h1 to h2.

    commands: each with its exit status, and whether it ran in the root namespace and not in h1's.
    complaints: what the program wrote to standard error. flight: segments, how many the first
    flight has, which is the initial window too (10).
    """
    data = burst(flight.get("segments", 10), 30, apart_ms=0.01, size=1448, took_ms=10)
    end = 1 + 1448 * len(data)
    acks = [Packet(1, 60, 1, 0, ack=end), Packet(0, 70, end, 1448),
            Packet(1, 85, 1, 0, ack=end + 1448)]
    # A millisecond later, after the first commands.
    opening = [packet._replace(queued_ms=packet.queued_ms + 1) for packet in HANDSHAKE]

    capture = build_capture([*opening, *data, *acks])
    capture.commands = [Command(5 + number, 0, is_root, number, status, words)
                        for number, (words, status, is_root) in enumerate(commands)]
    capture.opened = [Opened(25 * MS, 0, is_root=False, window=flight.get("segments", 10))]
    process = 0 if program == "tc" else 99  # 0 is that of the first command
    capture.complaints = [Complaint(5, 0, False, process, text, program) for text in complaints]
    return capture


# A capture that was measured, by the script tests/golden/capture/small.py -------------------

SMALL = Path(__file__).resolve().parents[1] / "golden" / "capture" / "small.pcapng.gz"
ORIGIN_NS = 1_767_225_600_000_000_000  # when its clock began
Row = dict[str, int]  # a packet, by the columns of Packets
Change = Callable[[list[Row]], list[Row]]  # other packets in the place of a device's


@cache
def small_bytes() -> bytes:
    """The content of its file."""
    return gzip.decompress(SMALL.read_bytes())


def read_small(data: bytes | None = None) -> Capture:
    """The measured capture, or that of a file with other data. Raises NoCapture."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / NAME
        path.write_bytes(small_bytes() if data is None else data)
        return read(path)


def own_block(kind: int, device: int, rest: bytes) -> bytes:
    """A block of the file as vtime/kernel/capture.c writes it, of which a packet is none.

    kind: of the block, a number in firstflight/wire/capture/pcapng.py. device: its number, or
    that of the namespace. rest: what stands after the head.
    """
    body = struct.pack("<HxxIQ", kind, device, ORIGIN_NS) + rest
    return struct.pack("<II", 0x80004646, len(body) + 12) + body + struct.pack("<I", len(body) + 12)


def change_small(device: str, change: Change) -> Capture:
    """The measured capture with other packets of one device."""
    capture = read_small()
    (number,) = [known.number for known in capture.devices if known.name == device]
    columns = [column.tolist() for column in capture.packets]
    rows = [dict(zip(Packets._fields, values)) for values in zip(*columns)]

    unchanged = [row for row in rows if row["device"] != number]
    changed = change([row for row in rows if row["device"] == number])
    rows = sorted(unchanged + changed, key=lambda row: (row["time_ns"], row["number"]))
    capture.packets = packets_of(**{name: [row[name] for row in rows] for name in Packets._fields})
    return capture
