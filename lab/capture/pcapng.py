"""Reads capture.pcapng: what the kernel for commands wrote of a command's network.

The format is pcapng (draft-ietf-opsawg-pcapng); what stands in its options and blocks for local
use is written by engines/guest/capture.c. The file is a stranger's: each length in it is checked.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from lab.capture.qdiscs import DeviceSetting, parsed
from lab.core.errors import FirstFlightError

NAME = "capture.pcapng"
_SECTION, _INTERFACE, _PACKET, _OWN = 0x0A0D0D0A, 1, 6, 0x80004646
_DEVICE, _SETTINGS, _DROPS, _FULL, _REFUSED = 1, 2, 3, 4, 5
_OPTION_QUEUE = 0x8001
_BYTE_ORDER = 0x1A2B3C4D
_BLOCK = struct.Struct("<II")  # type, length of the whole block
_PACKET_HEAD = struct.Struct("<IIIII")  # device, time (high, low), bytes kept, bytes on the wire
_QUEUE = struct.Struct("<QQIIII")
_OWN_HEAD = struct.Struct("<HxxIQ")
_DEVICE_HEAD = struct.Struct("<6I")
_NONE = 0xFFFFFFFF
_UNSPECIFIED = 2  # SKB_DROP_REASON_NOT_SPECIFIED
_LEAST_BLOCK, _MOST_BLOCK = 12, 1 << 17
_PIECE = 1 << 22


class NoCapture(FirstFlightError):
    """The file is none that ./run.sh --capture wrote."""


class CapturedPacket(NamedTuple):
    """A packet that left a device, or was dropped in its queue.

    device: its number. time_ns: when it left or was dropped, queued_ns: when it came to the queue,
    since the epoch by the guest's clock. number: in the order of coming to a queue of any device;
    0 for one that never came to one. accepted: the root qdisc took it. reason: why the kernel
    dropped it, 0 where it left. segments: how many TCP segments it is, as offloads make them; 0
    for one. frame_bytes: on the wire, Ethernet header included. head: its first bytes.
    """

    device: int
    time_ns: int
    queued_ns: int
    number: int
    accepted: bool
    reason: int
    segments: int
    frame_bytes: int
    head: bytes

    @property
    def is_dropped_at_once(self) -> bool:
        """Whether it was dropped when it came, though the queue had room: by random loss."""
        return bool(self.reason) and self.accepted and self.time_ns == self.queued_ns

    @property
    def is_discarded(self) -> bool:
        """Whether it was still queued when its link was taken down."""
        return self.reason == _UNSPECIFIED and self.accepted and self.time_ns != self.queued_ns


@dataclass(frozen=True)
class DeviceState:
    """How a device was set from some time on.

    namespace: number of its network namespace; is_root: of the one in which the command was
    started. peer: number of the device at the other end of a veth pair, None without one. kind:
    as `ip -d link` prints it.
    """

    time_ns: int
    name: str
    kind: str
    namespace: int
    is_root: bool
    peer: int | None
    mtu: int
    is_up: bool


@dataclass
class Device:
    """A device and how it was set, from the first time on.

    settings: of its queue, after each change. refused: why the kernel refused qdiscs and classes.
    """

    number: int
    name: str
    states: list[DeviceState] = field(default_factory=list)
    settings: list[DeviceSetting] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    @property
    def state(self) -> DeviceState | None:
        """The last one in which it was up, else the last one."""
        return next((state for state in reversed(self.states) if state.is_up),
                    self.states[-1] if self.states else None)


@dataclass
class Capture:
    """All of a file.

    packets: in the order in which they left or were dropped. dropped: (device, reason, count) of
    packets dropped elsewhere than in queues. is_full: packets after the last one were not written;
    is_cut: the file ends within a block.
    """

    devices: list[Device] = field(default_factory=list)
    packets: list[CapturedPacket] = field(default_factory=list)
    dropped: list[tuple[int, str, int]] = field(default_factory=list)
    is_full: bool = False
    is_cut: bool = False


def read(path: Path) -> Capture:
    """Raises NoCapture, OSError."""
    capture = Capture()
    try:
        for kind, body in _blocks(path, capture):
            if kind == _PACKET:
                capture.packets.append(_packet(body, len(capture.devices)))
            elif kind == _INTERFACE:
                names = dict(_options(body, 8))
                capture.devices.append(Device(len(capture.devices), _text(names.get(2, b""))))
            elif kind == _OWN:
                _read_own(capture, body)
    except (struct.error, ValueError, IndexError, ArithmeticError) as error:
        raise NoCapture(f"{path}: damaged, or not written by ./run.sh --capture ({error})"
                        ) from error
    capture.packets.sort(key=lambda packet: (packet.time_ns, packet.number))
    return capture


def _blocks(path: Path, capture: Capture) -> Iterator[tuple[int, memoryview]]:
    """Type and body of each whole block. Raises ValueError where there is none."""
    rest, begun = b"", False
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            data = memoryview(rest + piece)
            place = 0
            while len(data) - place >= _BLOCK.size:
                kind, size = _BLOCK.unpack_from(data, place)
                if not begun:
                    if kind != _SECTION or struct.unpack_from("<I", data, place + 8)[0] \
                            != _BYTE_ORDER:
                        raise ValueError("no pcapng file of this byte order")
                    begun = True
                if size % 4 or not _LEAST_BLOCK <= size <= _MOST_BLOCK:
                    raise ValueError(f"a block of {size} bytes")
                if len(data) - place < size:
                    break
                yield kind, data[place + 8:place + size - 4]
                place += size
            rest = bytes(data[place:])
    if not begun:
        raise ValueError("empty")
    capture.is_cut = bool(rest)


def _options(body: memoryview, place: int) -> Iterator[tuple[int, bytes]]:
    while place + 4 <= len(body):
        code, size = struct.unpack_from("<HH", body, place)
        if not code:
            return
        if place + 4 + size > len(body):
            raise ValueError("an option that is longer than its block")
        yield code, bytes(body[place + 4:place + 4 + size])
        place += 4 + (size + 3) // 4 * 4


def _packet(body: memoryview, devices: int) -> CapturedPacket:
    device, high, low, kept_bytes, frame_bytes = _PACKET_HEAD.unpack_from(body)
    begin = _PACKET_HEAD.size
    if device >= devices or kept_bytes > len(body) - begin or kept_bytes > frame_bytes:
        raise ValueError("a packet of no device, or that is longer than its block")
    head = bytes(body[begin:begin + kept_bytes])
    for code, content in _options(body, begin + (kept_bytes + 3) // 4 * 4):
        if code == _OPTION_QUEUE:
            queued_ns, number, accepted, reason, _, segments = _QUEUE.unpack(content)
            if queued_ns > high << 32 | low or high >> 31:
                raise ValueError("a packet that left before it came")
            return CapturedPacket(device, high << 32 | low, queued_ns, number, bool(accepted),
                                  reason, segments, frame_bytes, head)
    raise ValueError("a packet without what its queue did")


def _read_own(capture: Capture, body: memoryview) -> None:
    """A block for local use: all but packets. Raises ValueError, IndexError, struct.error."""
    kind, number, time_ns = _OWN_HEAD.unpack_from(body)
    place = _OWN_HEAD.size
    if kind == _FULL:
        capture.is_full = True
        return
    device = capture.devices[number]
    if kind == _SETTINGS:
        size, = struct.unpack_from("<I", body, place)
        if size > len(body) - place - 4:
            raise ValueError("settings that are longer than their block")
        device.settings.append(parsed(time_ns, bytes(body[place + 4:place + 4 + size])))
    elif kind == _DEVICE:
        namespace, is_root, peer, mtu, is_up, _ = _DEVICE_HEAD.unpack_from(body, place)
        if peer != _NONE and peer >= len(capture.devices):
            raise ValueError("a peer that is no device")
        names = dict(_options(body, place + _DEVICE_HEAD.size))
        device.states.append(DeviceState(
            time_ns, _text(names.get(1, b"")), _text(names.get(2, b"")), namespace, bool(is_root),
            None if peer == _NONE else peer, mtu, bool(is_up)))
    elif kind == _REFUSED:
        error, = struct.unpack_from("<I", body, place)
        words = {code: _text(content) for code, content in _options(body, place + 4)}
        device.refused.append(f"the kernel refused {words.get(1) or 'a qdisc'}:"
                              f" {words.get(2) or os.strerror(error)}")
    elif kind == _DROPS:
        count, = struct.unpack_from("<Q", body, place)
        reason = _text(dict(_options(body, place + 8)).get(1, b""))
        capture.dropped.append((number, reason, count))


def _text(content: bytes) -> str:
    return content.decode("ascii", "replace")
