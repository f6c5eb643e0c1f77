"""Two captures of one command packet by packet: the first packet that differs, and the ends.

Both were run with one seed, so that whatever differs is the work of what differs between the two
machines, such as their kernels.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy

from firstflight.net import headers
from firstflight.wire.capture.pcapng import Capture, Device, Packets

BEFORE = 4  # packets in front of the one that differs
# What is compared of a packet besides its bytes.
COLUMNS = ("device", "time_ns", "reason", "segments", "frame_bytes", "kept")
_FLAGS = "FSRPAUEC"  # of TCP, from the lowest bit on
_SACK, _TIMESTAMPS = 5, 8  # kinds of TCP's options
_PROTOCOLS = {1: "ICMP", 17: "UDP", 58: "ICMPv6"}
_ETHERTYPES = {0x0806: "ARP", 0x88CC: "LLDP"}


@dataclass(frozen=True)
class Ends:
    """What a whole capture comes to.

    packets, frame_bytes: of those that left a device; dropped: in queues and elsewhere. last_s:
    when the last packet left or was dropped, by the guest's clock.
    """

    packets: int
    frame_bytes: int
    dropped: int
    last_s: float


@dataclass(frozen=True)
class FirstDifference:
    """The first packet that differs.

    number: its place in both captures, from 1. link: its device, in the first capture that has it.
    at_s: by the guest's clock. first, second: the packet in words, "no packet" past the end.
    before: the packets in front of it, which are the same in both. what: in what the two differ.
    """

    number: int
    link: str
    at_s: float
    first: str
    second: str
    before: tuple[str, ...]
    what: str


def ends(capture: Capture, begins_ns: int) -> Ends:
    packets = capture.packets
    left = packets.at(~packets.is_dropped)
    last_ns = int(packets.time_ns[-1]) if packets.size else begins_ns
    return Ends(left.size, int(left.frame_bytes.sum()),
                packets.size - left.size + sum(count for *_, count in capture.dropped),
                (last_ns - begins_ns) / 1e9)


def first_difference(first: Capture, second: Capture, begins_ns: int) -> FirstDifference | None:
    """Packets in the order in which they left or were dropped; None if all are the same.

    begins_ns: the guest's clock as the command began, since the epoch.
    """
    place = _first_place(first, second)
    if place is None:
        return None

    longer = first if place < first.packets.size else second
    packets = longer.packets
    here, there = (describe(capture, place, begins_ns) if place < capture.packets.size
                   else "no packet" for capture in (first, second))
    before = tuple(describe(first, earlier, begins_ns)
                   for earlier in range(max(0, place - BEFORE), place))
    return FirstDifference(
        place + 1, device_name(longer, int(packets.device[place])),
        (int(packets.time_ns[place]) - begins_ns) / 1e9, first=here, second=there, before=before,
        what=_what(first, second, place))


def _first_place(first: Capture, second: Capture) -> int | None:
    """The place of the first packet that differs in any of COLUMNS, or in its bytes."""
    one, other = first.packets, second.packets
    count = min(one.size, other.size)
    differs = numpy.zeros(count, bool)
    for name in COLUMNS:
        differs |= getattr(one, name)[:count] != getattr(other, name)[:count]
    found = numpy.flatnonzero(differs)
    same = int(found[0]) if found.size else count
    for place, (left, right) in enumerate(zip(_bytes(first, same), _bytes(second, same))):
        if left != right:
            return place
    return same if same < max(one.size, other.size) else None


def _bytes(capture: Capture, count: int) -> Iterator[memoryview]:
    """The first bytes of each packet."""
    data = capture.data.data
    packets: Packets = capture.packets
    for place, kept in zip(packets.place[:count].tolist(), packets.kept[:count].tolist()):
        yield data[place:place + kept]


def _what(first: Capture, second: Capture, place: int) -> str:
    """In what the packets at a place differ, in words."""
    if place >= min(first.packets.size, second.packets.size):
        return "one of the two has no more packets"
    words = {"device": "the link", "time_ns": "the time", "reason": "whether it was dropped",
             "segments": "the segments", "frame_bytes": "the length"}
    found = [word for name, word in words.items()
             if getattr(first.packets, name)[place] != getattr(second.packets, name)[place]]
    if found == ["the time"]:
        late_ns = int(second.packets.time_ns[place]) - int(first.packets.time_ns[place])
        return f"only its time: {abs(late_ns) / 1e6:.6f} ms {'later' if late_ns > 0 else 'earlier'}"
    return ", ".join(found) or "its bytes"


def device_name(capture: Capture, number: int) -> str:
    """A device and the other end of its link: "s1-eth1 → h1-eth0"."""
    names = {device.number: device.name for device in capture.devices}
    device: Device | None = next((device for device in capture.devices
                                  if device.number == number), None)
    state = device.state if device else None
    peer = names.get(state.peer) if state and state.peer is not None else None
    return f"{names.get(number, f'device {number}')}{f' → {peer}' if peer else ''}"


def describe(capture: Capture, place: int, begins_ns: int) -> str:
    """A packet in a line: its time, its link, and its headers."""
    packets = capture.packets
    start, kept = int(packets.place[place]), int(packets.kept[place])
    frame = bytes(capture.data[start:start + kept])
    dropped = " dropped" if packets.reason[place] else ""
    return (f"{(int(packets.time_ns[place]) - begins_ns) / 1e9:.9f} s"
            f" {device_name(capture, int(packets.device[place]))}{dropped}"
            f" {decode(frame, int(packets.frame_bytes[place]))}")


def decode(frame: bytes, frame_bytes: int) -> str:
    """The headers of a frame in words; of what is no IP its type, and its length."""
    try:
        parsed = headers.headers(frame, frame_bytes)
        kind = headers.network_header(frame)[0]
    except (ValueError, IndexError):
        parsed, kind = None, 0
    if parsed is None:
        return f"{_ETHERTYPES.get(kind, f'type {kind:#06x}')}, {frame_bytes} bytes"

    hosts = (f"{parsed.source}:{parsed.from_port} → {parsed.destination}:{parsed.to_port}"
             if parsed.from_port else f"{parsed.source} → {parsed.destination}")
    if parsed.protocol != socket.IPPROTO_TCP:
        return (f"{_PROTOCOLS.get(parsed.protocol, f'protocol {parsed.protocol}')} {hosts},"
                f" {frame_bytes} bytes")

    flags = "".join(letter for bit, letter in enumerate(_FLAGS) if parsed.flags >> bit & 1)
    return (f"TCP {hosts} [{flags}] seq {parsed.seq} ack {parsed.ack} window {parsed.window}"
            f" {parsed.payload_bytes} bytes{_options(parsed.options)}")


def _options(options: bytes) -> str:
    """The options that change from segment to segment: the sender's clock, and SACK's blocks."""
    words = ""
    with suppress(ValueError):  # of an option without a length
        for kind, value in headers.tcp_options(options):
            numbers = [int.from_bytes(value[at:at + 4], "big") for at in range(0, len(value), 4)]
            if kind == _TIMESTAMPS and len(numbers) > 1:
                words += " TSval {} TSecr {}".format(*numbers[:2])
            elif kind == _SACK:
                words += " SACK " + ", ".join(
                    f"{left}–{right}" for left, right in zip(numbers[::2], numbers[1::2]))
    return words
