"""Reads capture.pcapng, in which the kernel for commands records a command's network.

The format is pcapng (draft-ietf-opsawg-pcapng). vtime/kernel/capture.c defines an option and blocks
for local use, which other programs skip. The file may come from a stranger: each length in it is
checked.
"""

from __future__ import annotations

import os
import struct
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

from firstflight.base.errors import FirstFlightError
from firstflight.wire.capture.calls import Calls
from firstflight.wire.capture.qdiscs import DeviceSetting, parse_setting

NAME = "capture.pcapng"
_SECTION, _INTERFACE, _PACKET, _LOCAL = 0x0A0D0D0A, 1, 6, 0x80004646  # types of blocks
# Kinds of blocks for local use, in the order of capture.c.
_DEVICE, _SETTINGS, _DROPS, _FULL, _REFUSED, _ASKED, _COMMAND, _SAID, _OPENED = range(1, 10)
_BYTE_ORDER = 0x1A2B3C4D
_BLOCK = struct.Struct("<II")  # type, length of the block with this head and its end, in bytes
# The head of a packet's block, in words of 4 bytes: device, time (high, low), bytes kept, length.
_HEAD_WORDS = 5
# After the packet's bytes, in words of 4 bytes: epb_flags (the option's header and 1 word), then
# the option about the packet's queue (0x8001: its header and 8 words).
_FLAGS_OPTION, _QUEUE_OPTION = 4 << 16 | 2, 32 << 16 | 0x8001
_FLAGS_WORDS, _QUEUE_WORDS = 2, 9
_LOCAL_HEAD = struct.Struct("<HxxIQ")  # kind, number of a device or a namespace, time in ns
_DEVICE_HEAD = struct.Struct("<6I")  # namespace, is it the root's, peer, MTU, is it up, offloads
_NONE = 0xFFFFFFFF  # in place of the number of a peer
_UNSPECIFIED = 2  # SKB_DROP_REASON_NOT_SPECIFIED
_LEAST_BLOCK, _MOST_BLOCK = 12, 1 << 17  # bytes
_MOST_BYTES = 1 << 35  # of a file: capture.c writes less
MOST_BLOCKS = 50_000  # of settings and commands, which are held in memory one by one

Numbers = NDArray[Any]  # whole numbers of 64 bits, or of 32 if that is enough
Flags = NDArray[numpy.bool_]


class NoCapture(FirstFlightError):
    """The file was not written by ./run.sh --capture."""


class Packets(NamedTuple):
    """Packets that left a device or were dropped in its queue, in arrays with one row a packet.

    Times are in ns since the epoch, on the guest's clock.
    """

    device: Numbers  # number of the device
    time_ns: Numbers  # when the packet left or was dropped
    queued_ns: Numbers  # when it came to the queue
    # Counts the packets of all devices as they come to a queue, from 1; 0 for a packet that came to
    # no queue.
    number: Numbers
    frame: Numbers  # counts the packets in the file, from 1, as Wireshark does
    accepted: Flags  # whether the root qdisc took the packet
    reason: Numbers  # why the kernel dropped it, 0 if it left
    segments: Numbers  # how many TCP segments an offloaded packet holds; 0 for any other packet
    frame_bytes: Numbers  # on the wire, Ethernet header included
    place: Numbers  # offset in the file of its captured bytes
    kept: Numbers  # how many of its bytes were captured

    @property
    def size(self) -> int:
        """The number of packets."""
        return len(self.device)

    def at(self, places: Numbers | Flags | slice) -> Packets:
        """The packets at these places, or those for which an array is true."""
        return Packets(*(column[places] for column in self))

    @property
    def is_dropped(self) -> Flags:
        return numpy.not_equal(self.reason, 0)

    @property
    def is_dropped_at_once(self) -> Flags:
        """Whether each packet was dropped as it came although the queue had room: by random loss.
        """
        dropped: Flags = self.is_dropped & self.accepted & (self.time_ns == self.queued_ns)
        return dropped

    @property
    def is_discarded(self) -> Flags:
        """Whether each packet was still queued when the link was taken down or the queue removed.
        """
        has_waited = self.time_ns != self.queued_ns
        discarded: Flags = (self.reason == _UNSPECIFIED) & self.accepted & has_waited
        return discarded


def packets_of(**columns: list[int]) -> Packets:
    """Packets from a list for each column; a column that is not given has zeros."""
    count = max(map(len, columns.values()), default=0)
    return Packets(*(numpy.array(columns.get(name, [0] * count),
                                 bool if name == "accepted" else numpy.int64)
                     for name in Packets._fields))


class DeviceState(NamedTuple):
    """The state of a device, from one change of it to the next."""

    time_ns: int  # when it began
    name: str
    kind: str  # as `ip -d link` prints it
    namespace: int  # number of its network namespace
    is_root: bool  # whether the namespace is the one in which the command was started
    peer: int | None  # number of the device at the other end of a veth pair
    mtu: int
    is_up: bool
    master: str = ""  # the bridge of which it is a port
    queue_packets: int | None = None  # txqueuelen, None if not recorded


@dataclass
class Device:
    """A device with its states and settings over time."""

    number: int
    name: str
    states: list[DeviceState] = field(default_factory=list)
    settings: list[DeviceSetting] = field(default_factory=list)  # of its queue, after each change
    refused: list[str] = field(default_factory=list)  # why the kernel refused a qdisc or class
    asking: str = ""  # while reading: the command that changes its queue next, "" if not known

    @property
    def state(self) -> DeviceState | None:
        """The last state in which it was up; otherwise the last one, None if there is none.

        If no state was recorded and its queue was set, this is a state with the device's name only.
        """
        if self.states:
            return next((state for state in reversed(self.states) if state.is_up),
                        self.states[-1])
        if any(setting.is_shaping for setting in self.settings):
            return DeviceState(self.settings[0].time_ns, self.name, "", namespace=0, is_root=True,
                               peer=None, mtu=0, is_up=False)
        return None


class Command(NamedTuple):
    """A program that set up the network, such as tc or ip."""

    time_ns: int  # when it ended
    namespace: int  # this and is_root as in DeviceState
    is_root: bool
    process: int  # number of the process
    status: int  # exit status as in a shell
    words: str  # the program and its arguments


class Complaint(NamedTuple):
    """A text that a program wrote to its standard error."""

    time_ns: int
    namespace: int  # this and is_root as in DeviceState
    is_root: bool
    process: int  # number of the process
    text: str
    program: str  # the name of the process


class Opened(NamedTuple):
    """One end of a TCP connection that was established."""

    time_ns: int  # when it was established
    namespace: int  # this and is_root as in DeviceState
    is_root: bool
    window: int  # the initial window, in segments


@dataclass
class Capture:
    """The content of a capture file."""

    devices: list[Device] = field(default_factory=list)
    packets: Packets = field(default_factory=packets_of)  # in order of leaving or being dropped
    data: NDArray[Any] = field(default_factory=lambda: numpy.zeros(0, numpy.uint8))  # of the file
    # (device, reason, count) of packets that were dropped outside of queues.
    dropped: list[tuple[int, str, int]] = field(default_factory=list)
    is_full: bool = False  # whether later packets were not recorded
    is_cut: bool = False  # whether the file ends within a block
    commands: list[Command] = field(default_factory=list)  # that set up the network
    complaints: list[Complaint] = field(default_factory=list)  # of programs that set it up
    opened: list[Opened] = field(default_factory=list)  # the ends of TCP connections
    calls: Calls = Calls()  # a script's calls of Mininet
    unread: int = 0  # how many settings and commands there are after the first MOST_BLOCKS


def read(path: Path) -> Capture:
    """Read a capture file. Raises NoCapture, OSError."""
    file_bytes = os.stat(path).st_size
    if file_bytes > _MOST_BYTES:
        raise NoCapture(f"{path}: {file_bytes} bytes are more than --capture writes")

    data = numpy.memmap(path, numpy.uint8, "r") if file_bytes else numpy.zeros(0, numpy.uint8)
    capture = Capture(data=data)
    packet_places = array("q")  # the offsets at which the bodies of packets' blocks begin
    local_count = 0
    try:
        for kind, place, size in _blocks(capture):
            if kind == _PACKET:
                packet_places.append(place)
            elif kind == _INTERFACE:
                options = dict(_options(bytes(capture.data[place:place + size]), 8))
                name = _text(options.get(2, b""))  # if_name
                capture.devices.append(Device(len(capture.devices), name))
            elif kind == _LOCAL and local_count < MOST_BLOCKS:
                _read_local(capture, bytes(capture.data[place:place + size]))
                local_count += 1
            elif kind == _LOCAL:
                capture.unread += 1

        places = numpy.zeros(0, numpy.int64)
        if packet_places:
            places = numpy.frombuffer(packet_places, numpy.int64)
        capture.packets = _packets(capture, places)
    except (struct.error, ValueError, IndexError, ArithmeticError) as error:
        raise NoCapture(f"{path}: damaged, or not written by ./run.sh --capture ({error})"
                        ) from error
    return capture


def _blocks(capture: Capture) -> Iterator[tuple[int, int, int]]:
    """The type of each complete block, the offset of its body, and the size of its body in bytes.

    Sets is_cut of the capture at the end. Raises ValueError.
    """
    data, place = capture.data.data, 0
    if len(data) < _LEAST_BLOCK or _BLOCK.unpack_from(data)[0] != _SECTION \
            or struct.unpack_from("<I", data, 8)[0] != _BYTE_ORDER:
        raise ValueError("no pcapng file of this byte order")
    while len(data) - place >= _BLOCK.size:
        kind, size = _BLOCK.unpack_from(data, place)
        if size % 4 or not _LEAST_BLOCK <= size <= _MOST_BLOCK:
            raise ValueError(f"a block of {size} bytes")
        if len(data) - place < size:
            break
        yield kind, place + _BLOCK.size, size - _LEAST_BLOCK
        place += size
    capture.is_cut = place < len(data)


def _options(body: bytes, place: int) -> Iterator[tuple[int, bytes]]:
    """The code and the value of each option from an offset on. Raises ValueError."""
    while place + 4 <= len(body):
        code, size = struct.unpack_from("<HH", body, place)
        if not code:
            return
        if place + 4 + size > len(body):
            raise ValueError("an option that is longer than its block")
        yield code, body[place + 4:place + 4 + size]
        place += 4 + (size + 3) // 4 * 4  # values fill words of 4 bytes


def _packets(capture: Capture, places: Numbers) -> Packets:
    """The packets of the blocks whose bodies begin at these offsets. Raises ValueError."""
    words = capture.data[:len(capture.data) // 4 * 4].view("<u4")

    def word(at: Numbers) -> Numbers:
        return words[at].astype(numpy.int64)

    def word64(low: Numbers, high: Numbers) -> Numbers:
        return word(high) << 32 | word(low)

    # All numbers here count words of 4 bytes. The last word before a block's body is the length of
    # the block in bytes, three words of which are not in the body.
    begin = places // 4
    end = begin + word(begin - 1) // 4 - 3
    if (end < begin + _HEAD_WORDS).any():
        raise ValueError("a packet's block that is too short")
    kept, frame_bytes = word(begin + 3), word(begin + 4)
    flags = begin + _HEAD_WORDS + (kept + 3) // 4
    queue = flags + _FLAGS_WORDS
    if (word(begin) >= len(capture.devices)).any() or (queue + _QUEUE_WORDS > end).any() or (
            kept > frame_bytes).any():
        raise ValueError("a packet without a device, or that is longer than its block")
    if (word(flags) != _FLAGS_OPTION).any() or (word(queue) != _QUEUE_OPTION).any():
        raise ValueError("a packet without what its queue did")

    # pcapng has the upper half of a time first, capture.c has it last.
    time_ns = word64(low=begin + 2, high=begin + 1)
    queued_ns = word64(low=queue + 1, high=queue + 2)
    if (queued_ns > time_ns).any() or (queued_ns < 0).any():
        raise ValueError("a packet that left before it came")

    packets = Packets(
        device=_small(word(begin)), time_ns=time_ns, queued_ns=queued_ns,
        number=word64(low=queue + 3, high=queue + 4),
        frame=_small(numpy.arange(1, len(places) + 1)),
        accepted=word(queue + 5) != 0, reason=_small(word(queue + 6)),
        segments=_small(word(queue + 8)), frame_bytes=_small(frame_bytes),
        place=places + 4 * _HEAD_WORDS, kept=_small(kept))
    in_time = numpy.lexsort((packets.number, packets.time_ns))
    return _without_cut(packets.at(in_time))


def _small(column: Numbers) -> Numbers:
    """The numbers in 32 bits each, since captures have many packets."""
    return column.astype(numpy.int32)


def _without_cut(packets: Packets) -> Packets:
    """The packets without those that a queue cut into segments.

    The segments are recorded as well, with the number of the packet that was cut. Segments that
    left count as accepted by the queue.
    """
    _, place, counts = numpy.unique(packets.number, return_inverse=True, return_counts=True)
    shares_number = (counts[place] > 1) & (packets.number > 0)
    is_cut = shares_number & (packets.reason == _UNSPECIFIED) & (packets.segments > 1)
    packets = packets._replace(accepted=packets.accepted | shares_number & ~packets.is_dropped)
    return packets.at(~is_cut) if is_cut.any() else packets


def _read_local(capture: Capture, body: bytes) -> None:
    """Read a block for local use, which is no packet. Raises ValueError, IndexError, struct.error.
    """
    kind, number, time_ns = _LOCAL_HEAD.unpack_from(body)
    place = _LOCAL_HEAD.size
    if kind == _FULL:
        capture.is_full = True
        return
    if kind in (_COMMAND, _SAID):
        _read_command(capture, kind, body)
        return
    if kind == _OPENED:
        is_root, window = struct.unpack_from("<II", body, place)
        capture.opened.append(Opened(time_ns, number, bool(is_root), window))
        return

    device = capture.devices[number]
    if kind == _ASKED:
        device.asking = _text(dict(_options(body, place)).get(1, b""))
    elif kind == _SETTINGS:
        size, = struct.unpack_from("<I", body, place)
        if size > len(body) - place - 4:
            raise ValueError("settings that are longer than their block")
        setting = parse_setting(time_ns, body[place + 4:place + 4 + size])
        device.settings.append(replace(setting, command=device.asking))
        device.asking = ""
    elif kind == _DEVICE:
        device.states.append(_read_state(time_ns, body[place:], len(capture.devices)))
    elif kind == _REFUSED:
        error, = struct.unpack_from("<I", body, place)
        words = {code: _text(content) for code, content in _options(body, place + 4)}
        command = f" ({device.asking})" if device.asking else ""
        device.refused.append(f"the kernel refused {words.get(1) or 'a qdisc'}:"
                              f" {words.get(2) or os.strerror(error)}{command}")
        device.asking = ""
    elif kind == _DROPS:
        count, = struct.unpack_from("<Q", body, place)
        reason = _text(dict(_options(body, place + 8)).get(1, b""))
        capture.dropped.append((number, reason, count))


def _read_state(time_ns: int, body: bytes, devices: int) -> DeviceState:
    """The state of a device. devices: how many there are. Raises what _read_local raises."""
    namespace, is_root, peer, mtu, is_up, _ = _DEVICE_HEAD.unpack_from(body)
    if peer != _NONE and peer >= devices:
        raise ValueError("a peer that is not a device")

    options = dict(_options(body, _DEVICE_HEAD.size))
    name, kind, master = (_text(options.get(code, b"")) for code in (1, 2, 3))
    queue_packets = struct.unpack("<I", options[4])[0] if 4 in options else None
    return DeviceState(
        time_ns, name, kind, namespace=namespace, is_root=bool(is_root),
        peer=None if peer == _NONE else peer, mtu=mtu, is_up=bool(is_up), master=master,
        queue_packets=queue_packets)


def _read_command(capture: Capture, kind: int, body: bytes) -> None:
    """Read the end of a program (_COMMAND), or a message that it wrote (_SAID).

    Raises what _read_local raises.
    """
    _, namespace, time_ns = _LOCAL_HEAD.unpack_from(body)
    is_root, process = struct.unpack_from("<II", body, _LOCAL_HEAD.size)
    place = _LOCAL_HEAD.size + 8
    if kind == _COMMAND:
        code, = struct.unpack_from("<I", body, place)
        words = dict(_options(body, place + 4))
        signal = code & 127  # as waitpid's status: the signal is below the exit status
        capture.commands.append(Command(
            time_ns, namespace, bool(is_root), process=process,
            status=128 + signal if signal else code >> 8 & 255, words=_text(words.get(1, b""))))
    else:
        texts = dict(_options(body, place))
        capture.complaints.append(Complaint(
            time_ns, namespace, bool(is_root), process=process,
            text=texts.get(1, b"").decode(errors="replace"), program=_text(texts.get(2, b""))))


def _text(content: bytes) -> str:
    return content.decode("ascii", "replace")
