"""Reading regular files, and nothing else: a FIFO would wait forever, a device never end."""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


MOST_BYTES = 64 << 20  # of a file that is read at once; captures are the largest
MOST_LINE_CHARACTERS = 1 << 20  # nginx's longest request and headers together have a tenth of it


def content(path: Path, most_bytes: int = MOST_BYTES) -> bytes:
    """All of a file. Raises OSError, also for what is no regular file or too large."""
    with opened(path) as file:
        if os.fstat(file.fileno()).st_size > most_bytes:
            raise OSError(errno.EFBIG, f"it has more than {most_bytes >> 20} MB", str(path))
        return file.read()


def lines(file: BinaryIO) -> Iterator[str]:
    """The lines of a text, whichever of the three ends they have. Raises OSError for a long one."""
    text = io.TextIOWrapper(file, "utf-8-sig", errors="replace")
    while line := text.readline(MOST_LINE_CHARACTERS + 1):
        if len(line) > MOST_LINE_CHARACTERS:
            raise OSError(errno.EFBIG, f"it has a line of more than {MOST_LINE_CHARACTERS}"
                          " characters")
        yield line


def opened(path: Path) -> BinaryIO:
    """A file to be read. Raises OSError, also for what is no regular file."""
    if "\0" in str(path):
        raise OSError(errno.EINVAL, "no name of a file has a NUL", str(path))
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "not a regular file", str(path))
