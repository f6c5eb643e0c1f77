"""Compares two captures of one command: the first packet that differs, and the totals.

Two machines ran the command with the same seed. So any difference comes from what distinguishes
the machines, such as their kernels.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy

from firstflight.net import headers
from firstflight.wire.capture.pcapng import Capture, Device, Packets

BEFORE = 4  # packets that are shown before the one that differs
# The columns of Packets that are compared besides the packets' bytes.
COLUMNS = ("device", "time_ns", "reason", "segments", "frame_bytes", "kept")
_FLAGS = "FSRPAUEC"  # of TCP, from the lowest bit on
_SACK, _TIMESTAMPS = 5, 8  # kinds of TCP's options
_PROTOCOLS = {1: "ICMP", 17: "UDP", 58: "ICMPv6"}
_ETHERTYPES = {0x0806: "ARP", 0x88CC: "LLDP"}


@dataclass(frozen=True)
class Totals:
    """Sums over a whole capture, and when it ends."""

    packets: int  # that left a device
    frame_bytes: int  # of the packets that left a device
    dropped: int  # packets, in queues and elsewhere
    last_s: float  # when the last packet left or was dropped, from the command's start


@dataclass(frozen=True)
class FirstDifference:
    """The first packet that differs."""

    number: int  # of the packet in both captures, from 1
    link: str  # the device that sent it, and the other end
    at_s: float  # when it left or was dropped, from the command's start
    first: str  # the first capture's packet in words, "no packet" past its end
    second: str  # the second capture's
    before: tuple[str, ...]  # the last packets before it, which are the same in both
    what: str  # in what the two packets differ


def add_up(capture: Capture, begins_ns: int) -> Totals:
    """The totals of a capture. begins_ns: as for find_first_difference."""
    packets = capture.packets
    left = packets.at(~packets.is_dropped)
    dropped_elsewhere = sum(count for _, _, count in capture.dropped)
    last_ns = int(packets.time_ns[-1]) if packets.size else begins_ns
    return Totals(packets=left.size, frame_bytes=int(left.frame_bytes.sum()),
                  dropped=packets.size - left.size + dropped_elsewhere,
                  last_s=(last_ns - begins_ns) / 1e9)


def find_first_difference(first: Capture, second: Capture,
                          begins_ns: int) -> FirstDifference | None:
    """The first packet that differs, in the order of leaving or being dropped; None for none.

    begins_ns: the guest's clock when the command began, since the epoch.
    """
    index = _first_index(first, second)
    if index is None:
        return None

    longer = first if index < first.packets.size else second
    packets = longer.packets
    before = range(max(0, index - BEFORE), index)
    return FirstDifference(
        number=index + 1, link=device_name(longer, int(packets.device[index])),
        at_s=(int(packets.time_ns[index]) - begins_ns) / 1e9,
        first=_describe_if_any(first, index, begins_ns),
        second=_describe_if_any(second, index, begins_ns),
        before=tuple(describe(first, earlier, begins_ns) for earlier in before),
        what=_what_differs(first, second, index))


def _describe_if_any(capture: Capture, index: int, begins_ns: int) -> str:
    """A packet in a line; "no packet" past the capture's end."""
    return describe(capture, index, begins_ns) if index < capture.packets.size else "no packet"


def _first_index(first: Capture, second: Capture) -> int | None:
    """The index of the first packet that differs in any of COLUMNS, or in its bytes; None if none.

    Past the end of the shorter capture every packet differs.
    """
    count = min(first.packets.size, second.packets.size)
    differs = numpy.zeros(count, bool)
    for name in COLUMNS:
        differs |= getattr(first.packets, name)[:count] != getattr(second.packets, name)[:count]
    found = numpy.flatnonzero(differs)
    # Up to this index the packets have the same columns; now their bytes.
    alike = int(found[0]) if found.size else count
    pairs = zip(_first_frames(first, alike), _first_frames(second, alike))
    for index, (first_frame, second_frame) in enumerate(pairs):
        if first_frame != second_frame:
            return index
    return alike if alike < max(first.packets.size, second.packets.size) else None


def _first_frames(capture: Capture, count: int) -> Iterator[memoryview]:
    """The recorded bytes of each of the first packets."""
    data = capture.data.data
    packets: Packets = capture.packets
    for start, kept in zip(packets.place[:count].tolist(), packets.kept[:count].tolist()):
        yield data[start:start + kept]


def _what_differs(first: Capture, second: Capture, index: int) -> str:
    """In what the packets with this index differ, in words."""
    if index >= min(first.packets.size, second.packets.size):
        return "one of the two has no more packets"
    words = {"device": "the link", "time_ns": "the time", "reason": "whether it was dropped",
             "segments": "the segments", "frame_bytes": "the length"}
    found = [word for name, word in words.items()
             if getattr(first.packets, name)[index] != getattr(second.packets, name)[index]]
    if found == ["the time"]:
        late_ns = int(second.packets.time_ns[index]) - int(first.packets.time_ns[index])
        return f"only its time: {abs(late_ns) / 1e6:.6f} ms {'later' if late_ns > 0 else 'earlier'}"
    return ", ".join(found) or "its bytes"


def device_name(capture: Capture, number: int) -> str:
    """A device and the other end of its link: "s1-eth1 → h1-eth0"."""
    devices: dict[int, Device] = {device.number: device for device in capture.devices}
    if number not in devices:
        return f"device {number}"
    device = devices[number]
    state = device.state
    if state is None or state.peer is None or state.peer not in devices:
        return device.name
    return f"{device.name} → {devices[state.peer].name}"


def describe(capture: Capture, index: int, begins_ns: int) -> str:
    """A packet in a line: its time, its link, and its headers."""
    packets = capture.packets
    start, kept = int(packets.place[index]), int(packets.kept[index])
    frame = bytes(capture.data[start:start + kept])

    time_s = (int(packets.time_ns[index]) - begins_ns) / 1e9
    link = device_name(capture, int(packets.device[index]))
    dropped = " dropped" if packets.reason[index] else ""
    words = decode(frame, int(packets.frame_bytes[index]))
    return f"{time_s:.9f} s {link}{dropped} {words}"


def decode(frame: bytes, frame_bytes: int) -> str:
    """The headers of an IP frame in words; of any other frame its type and length."""
    try:
        parsed = headers.headers(frame, frame_bytes)
        kind = headers.network_header(frame)[0]
    except (ValueError, IndexError):
        parsed, kind = None, 0
    if parsed is None:
        return f"{_ETHERTYPES.get(kind, f'type {kind:#06x}')}, {frame_bytes} bytes"

    hosts = f"{parsed.source} → {parsed.destination}"
    if parsed.from_port:
        hosts = f"{parsed.source}:{parsed.from_port} → {parsed.destination}:{parsed.to_port}"
    if parsed.protocol != socket.IPPROTO_TCP:
        protocol = _PROTOCOLS.get(parsed.protocol, f"protocol {parsed.protocol}")
        return f"{protocol} {hosts}, {frame_bytes} bytes"

    flags = "".join(letter for bit, letter in enumerate(_FLAGS) if parsed.flags >> bit & 1)
    return (f"TCP {hosts} [{flags}] seq {parsed.seq} ack {parsed.ack} window {parsed.window}"
            f" {parsed.payload_bytes} bytes{_options(parsed.options)}")


def _options(options: bytes) -> str:
    """The options that change from segment to segment: the sender's clock, and SACK's blocks."""
    words = ""
    with suppress(ValueError):  # an option that lacks its length ends the list
        for kind, value in headers.tcp_options(options):
            numbers = [int.from_bytes(value[at:at + 4], "big") for at in range(0, len(value), 4)]
            if kind == _TIMESTAMPS and len(numbers) > 1:
                words += " TSval {} TSecr {}".format(*numbers[:2])
            elif kind == _SACK:
                words += " SACK " + ", ".join(
                    f"{left}–{right}" for left, right in zip(numbers[::2], numbers[1::2]))
    return words
