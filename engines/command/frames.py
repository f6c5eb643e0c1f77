"""What goes between a guest that runs a command and the machine: frames, in both directions.

To the machine, appended to a file of the shared folder: what the command printed, with the
guest's clock, and how it ended. To the guest, through its console: input, Ctrl-C, that all has to
end, the size of the terminal. Both sides read what the other wrote with limits, in pieces of any
size.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

# What a frame is. To the machine:
OUTPUT, ERROR, TICK, ENDED, TROUBLE = b"o", b"e", b"t", b"x", b"!"
# to the guest:
INPUT, CLOSE, INTERRUPT, STOP, SIZE = b"i", b"c", b"^", b".", b"s"
KINDS = OUTPUT + ERROR + TICK + ENDED + TROUBLE + INPUT + CLOSE + INTERRUPT + STOP + SIZE
_HEAD = struct.Struct("!cQI")  # kind, the guest's clock in ns, bytes that follow
MOST_BYTES = 1 << 16  # of a frame
FULL = b"memory"  # of a TICK: nearly all of the guest's memory is in use


@dataclass(frozen=True)
class Frame:
    """One frame. time_ns: of the guest's clock, from its start; 0 towards the guest."""

    kind: bytes
    time_ns: int
    content: bytes = b""

    def packed(self) -> bytes:
        return _HEAD.pack(self.kind, self.time_ns, len(self.content)) + self.content


class Reader:
    """Makes frames of what arrives in pieces."""

    def __init__(self) -> None:
        self._rest = b""

    def read(self, piece: bytes) -> Iterator[Frame]:
        """The frames that are whole by now. Raises ValueError for what is none."""
        self._rest += piece
        place = 0
        while len(self._rest) - place >= _HEAD.size:
            kind, time_ns, size = _HEAD.unpack_from(self._rest, place)
            if kind not in KINDS or size > MOST_BYTES:
                raise ValueError("what was written is no frame")
            begin = place + _HEAD.size
            if len(self._rest) < begin + size:
                break
            place = begin + size
            yield Frame(kind, time_ns, self._rest[begin:place])
        self._rest = self._rest[place:]


class Outlet:
    """Writes to a pipe without ever waiting for who reads it: what it does not take is kept."""

    def __init__(self, number: int) -> None:
        """number: the pipe's descriptor."""
        os.set_blocking(number, False)
        self.number = number
        self.waiting = bytearray()

    def flush(self) -> None:
        """Write what is taken; where nobody can read it any more it is forgotten."""
        with suppress(BlockingIOError):
            while self.waiting:
                try:
                    del self.waiting[:os.write(self.number, self.waiting)]
                except BrokenPipeError:
                    self.waiting.clear()
