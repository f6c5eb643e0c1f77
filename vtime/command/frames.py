"""The frames that a guest with a command and the machine exchange.

To the machine, appended to a file of the shared folder: output with the guest's clock, how the
command ended, then the files that it wrote. To the guest, through its console: input, Ctrl-C, the
order to end everything, the size of the terminal. Both sides read frames with limits, in pieces of
any size.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

# Kinds of frames. To the machine:
OUTPUT, ERROR, TICK, ENDED, TROUBLE = b"o", b"e", b"t", b"x", b"!"
ENTRY, CONTENT = b"f", b"d"  # files that the command wrote: an Entry, then pieces of its content
NAMES = b"n"  # of network namespaces: lines with the time, a number and a name
CALLS = b"m"  # of Mininet, in JSON: frames with pieces of them (first_flight_calls.py)
ALL_SENT = b"="  # the last frame
# to the guest:
INPUT, CLOSE, INTERRUPT, STOP, SIZE = b"i", b"c", b"^", b".", b"s"
KINDS = (OUTPUT + ERROR + TICK + ENDED + TROUBLE + ENTRY + CONTENT + NAMES + CALLS + ALL_SENT
         + INPUT + CLOSE + INTERRUPT + STOP + SIZE)
_HEAD = struct.Struct("!cQI")  # kind, the guest's clock in ns, bytes that follow
MOST_BYTES = 1 << 16  # of a frame
FILE, FOLDER, LINK = b"r", b"d", b"l"  # kinds of entries
_ENTRY = struct.Struct("!cIqQ")  # kind, mode, time, size; then the name, a NUL, the target
MOST_NAME = 4096  # bytes of an entry's name, as Linux allows in a path (PATH_MAX)
FULL = b"memory"  # content of a TICK: nearly all of the guest's memory is in use


@dataclass(frozen=True)
class Frame:
    """One frame."""

    kind: bytes
    time_ns: int  # on the guest's clock, from its start; 0 in frames to the guest
    content: bytes = b""

    def packed(self) -> bytes:
        return _HEAD.pack(self.kind, self.time_ns, len(self.content)) + self.content


@dataclass(frozen=True)
class Entry:
    """A file, a folder or a link that a command wrote, as its guest reports it."""

    kind: bytes  # FILE, FOLDER or LINK
    name: bytes  # path below the command's folder
    mode: int = 0  # permissions
    modified_ns: int = 0  # since 1970, on the guest's clock
    size: int = 0  # of a file; so many bytes follow in frames of CONTENT
    target: bytes = b""  # of a link

    def packed(self) -> bytes:
        head = _ENTRY.pack(self.kind, self.mode, self.modified_ns, self.size)
        return head + self.name + b"\0" + self.target

    @staticmethod
    def read(content: bytes) -> Entry:
        """The entry in a frame's content. Raises ValueError if it is none."""
        try:
            kind, mode, modified_ns, size = _ENTRY.unpack_from(content)
            name, target = content[_ENTRY.size:].split(b"\0")
        except (struct.error, ValueError):
            raise ValueError("the message is not the head of a file") from None
        if kind not in (FILE, FOLDER, LINK):
            raise ValueError("the message is not the head of a file")
        return Entry(kind, name, mode, modified_ns=modified_ns, size=size, target=target)


class Room:
    """How much of a command's files may still come back.

    The guest counts in order to send no more. The machine counts as well, since it does not trust
    the guest.
    """

    def __init__(self, most_bytes: int, most_files: int) -> None:
        self.bytes, self.files = most_bytes, most_files

    def refuses(self, entry: Entry) -> str:
        """Why an entry does not fit; if it fits, count it and return ""."""
        if entry.size > self.bytes:
            return f"its {entry.size} bytes are more than may still come back (--limit)"
        if self.files < 1:
            return "no more files may come back (--limit)"
        self.bytes, self.files = self.bytes - entry.size, self.files - 1
        return ""


class Reader:
    """Reads frames from pieces of any size."""

    def __init__(self) -> None:
        self._rest = b""

    def read(self, piece: bytes) -> Iterator[Frame]:
        """Yield the frames that this piece completes. Raises ValueError for what is no frame."""
        self._rest += piece
        place = 0
        while len(self._rest) - place >= _HEAD.size:
            kind, time_ns, size = _HEAD.unpack_from(self._rest, place)
            if kind not in KINDS or size > MOST_BYTES:
                raise ValueError("the message is not a frame")
            begin = place + _HEAD.size
            if len(self._rest) < begin + size:
                break
            place = begin + size
            yield Frame(kind, time_ns, self._rest[begin:place])
        self._rest = self._rest[place:]


class Outlet:
    """Writes to a pipe without waiting for its reader: what the pipe does not take is kept."""

    def __init__(self, number: int) -> None:
        """number: the pipe's descriptor."""
        os.set_blocking(number, False)
        self.number = number
        self.waiting = bytearray()

    def flush(self) -> None:
        """Write as much as the pipe takes; if its reader has left, drop everything."""
        with suppress(BlockingIOError):
            while self.waiting:
                try:
                    del self.waiting[:os.write(self.number, self.waiting)]
                except BrokenPipeError:
                    self.waiting.clear()
