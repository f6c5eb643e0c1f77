"""What the folder that an engine and its worker share can no longer take: never a trial's fault.

A worker that cannot write its observation cannot say so in the same way. So
the engine reserves a little room beforehand, which the worker overwrites in place.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from engines.untrusted_files import read_within

RESERVE, RESERVE_BYTES = "cannot-write", 512
PROBE, PROBE_BYTES = "probe", 1 << 20
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}


def reserve(folder: Path) -> None:
    (folder / RESERVE).write_bytes(b" " * RESERVE_BYTES)


def tell(folder: Path, error: OSError) -> None:
    """Overwrite the reserve with what could not be written. Raises OSError."""
    with (folder / RESERVE).open("r+b", buffering=0) as file:
        file.write(os.strerror(error.errno or 0).encode()[:RESERVE_BYTES])


def told(folder: Path) -> str:
    """Why the worker could not write, in the system's words; "" for nothing."""
    try:
        words = read_within(folder, RESERVE, RESERVE_BYTES).decode(errors="replace").strip()
    except (OSError, ValueError):
        return ""
    return words if words in map(os.strerror, FULL) else ""


def probe(folder: Path) -> None:
    """Write a file of some size and remove it. Raises OSError where that does not work.

    The other side may have put a link there, to a file that is none of the folder's.
    """
    (folder / PROBE).unlink(missing_ok=True)
    made = os.open(folder / PROBE, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with open(made, "wb") as file:
            file.write(bytes(PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())
    finally:
        (folder / PROBE).unlink(missing_ok=True)
