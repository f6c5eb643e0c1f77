"""One file about users, whatever its format."""

from __future__ import annotations

from pathlib import Path

from lab.core import files
from lab.core.errors import UsageError
from lab.fetches.features.users import logs
from lab.fetches.features.users.rows import Users

SNIFFED = 4  # bytes that distinguish a capture from a text
CAPTURES = (b"\xa1\xb2\xc3\xd4", b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\x3c\x4d", b"\x4d\x3c\xb2\xa1",
            b"\x0a\x0d\x0d\x0a")  # pcap in µs and ns, either order of bytes; pcapng


def read(path: Path) -> Users:
    """The usable rows of a CSV, a log, a list of sockets or a capture. Raises UsageError."""
    try:
        with files.opened(path) as file:
            first = file.read(SNIFFED)
            file.seek(0)
            if first in CAPTURES:
                from lab.fetches.features.users import captures  # imports dpkt: only for a capture
                return captures.read(file, str(path))
            return logs.read(files.lines(file), str(path))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
