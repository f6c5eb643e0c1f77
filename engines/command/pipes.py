"""What a guest and its machine pass through: a pipe that may be full, a file that only grows."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from typing import BinaryIO

PAGE_BYTES = 4096
_KEEP_SIZE, _PUNCH_HOLE = 1, 2  # fallocate(2)
_libc = ctypes.CDLL(None)


class Outlet:
    """Writes to a pipe without ever waiting for who reads it: what it does not take is kept."""

    def __init__(self, number: int) -> None:
        """number: the pipe's descriptor."""
        os.set_blocking(number, False)
        self.number = number
        self.waiting = b""

    def flush(self) -> None:
        """Write what is taken; where nobody can read it any more it is forgotten."""
        with suppress(BlockingIOError):
            while self.waiting:
                try:
                    self.waiting = self.waiting[os.write(self.number, self.waiting):]
                except BrokenPipeError:
                    self.waiting = b""


class Passing:
    """Reads a file while somebody appends to it; the disk does not keep what was read."""

    def __init__(self, file: BinaryIO) -> None:
        """file: open for reading and writing."""
        self.file, self.place, self.freed = file, 0, 0

    def read(self, most_bytes: int) -> bytes:
        piece = os.pread(self.file.fileno(), most_bytes, self.place)
        self.place += len(piece)
        if (whole := self.place // PAGE_BYTES * PAGE_BYTES) - self.freed >= most_bytes:
            # A file system without holes (EOPNOTSUPP) keeps it: nothing depends on it.
            _libc.fallocate(self.file.fileno(), _KEEP_SIZE | _PUNCH_HOLE,
                            ctypes.c_long(self.freed), ctypes.c_long(whole - self.freed))
            self.freed = whole
        return piece
