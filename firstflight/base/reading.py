"""Reads files that may come from a stranger: only regular files, and only up to a limit."""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

MOST_BYTES = 64 << 20  # of a file that is read at once; captures are the largest
MOST_LINE_CHARACTERS = 1 << 20  # ten times what nginx accepts as a request with its headers
LONG_LINE = f"it has a line of more than {MOST_LINE_CHARACTERS} characters"


def content(path: Path, most_bytes: int = MOST_BYTES) -> bytes:
    """The content of a file. Raises OSError, also if it is too large or no regular file."""
    with opened(path) as file:
        if os.fstat(file.fileno()).st_size > most_bytes:
            raise OSError(errno.EFBIG, f"it has more than {most_bytes >> 20} MB", str(path))
        return file.read()


def lines(file: BinaryIO) -> Iterator[str]:
    r"""The lines of a text, ended by \n, \r or \r\n. Raises OSError for a line that is too long."""
    text = io.TextIOWrapper(file, "utf-8-sig", errors="replace")
    while line := text.readline(MOST_LINE_CHARACTERS + 1):
        if len(line) > MOST_LINE_CHARACTERS:
            raise OSError(errno.EFBIG, LONG_LINE)
        yield line


def opened(path: Path) -> BinaryIO:
    """A file open for reading. Raises OSError, also if it is no regular file."""
    if "\0" in str(path):
        raise OSError(errno.EINVAL, "a file name cannot contain NUL", str(path))
    # O_NONBLOCK: opening a FIFO would wait for a writer, perhaps for ever.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "not a regular file", str(path))
