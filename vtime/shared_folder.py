"""The folder that an engine and its worker share.

A guest writes to it: links in it may lead anywhere.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
import stat
import subprocess
from collections.abc import Container, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

FILE_NAME = re.compile(r"\w[\w.-]*", re.ASCII)
PAGE_BYTES = 4096
FREED_BYTES = 1 << 20  # of a growing file are given back to the disk at a time
_KEEP_SIZE, _PUNCH_HOLE = 1, 2  # fallocate(2)

_libc = ctypes.CDLL(None)


def open_within(folder: Path, place: str, access: int = os.O_RDONLY) -> BinaryIO:
    """Open a file in a folder that a guest writes to, without following links.

    place: the file's name, or a folder's name and its own. Raises ValueError if that is no such
    path or no regular file, OSError.
    """
    within, name = _opened_within(folder, place)
    try:
        # O_NONBLOCK: opening a pipe would wait for a writer.
        opened = os.open(name, access | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=within)
    finally:
        os.close(within)

    file = os.fdopen(opened, "rb" if access == os.O_RDONLY else "r+b")
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        file.close()
        raise ValueError(f"{place!r} is not a regular file")
    return file


def read_within(folder: Path, place: str, most_bytes: int) -> bytes:
    """The content of a file, opened by open_within. Raises ValueError if it is larger, OSError."""
    with open_within(folder, place) as file:
        if os.fstat(file.fileno()).st_size <= most_bytes:
            return file.read(most_bytes)  # it may grow meanwhile
    raise ValueError(f"a file has more than {most_bytes} bytes")


def ends_within(folder: Path, place: str, most_bytes: int) -> bytes:
    """The beginning and the end of a file, together at most most_bytes.

    Raises ValueError, OSError.
    """
    with open_within(folder, place) as file:
        content = file.read(most_bytes // 2)
        rest = os.fstat(file.fileno()).st_size - len(content)
        file.seek(max(0, rest - most_bytes // 2), os.SEEK_CUR)
        return content + file.read(most_bytes // 2)


def remove_folder(folder: Path) -> None:
    """Remove a folder that a guest writes to, however deep; what cannot be removed stays."""
    subprocess.run(["rm", "-rf", "--", str(folder)], stderr=subprocess.DEVNULL, check=False)


def remove_within(folder: Path, place: str) -> None:
    """Remove a file in a folder that a guest writes to. Raises ValueError, OSError."""
    within, name = _opened_within(folder, place)
    try:
        os.unlink(name, dir_fd=within)
    finally:
        os.close(within)


@contextmanager
def locked_folder(place: Path) -> Iterator[Path]:
    """A new, locked folder for guests, removed afterwards.

    If this process is killed, remove_dead removes it.
    """
    lock = _lock_new(place)
    try:
        yield place
    finally:
        remove_folder(place)
        os.close(lock)


def _lock_new(place: Path) -> int:
    """Create a folder and lock it; try again if remove_dead takes it for a dead one before that."""
    while True:
        place.mkdir()
        with suppress(FileNotFoundError):
            lock = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(lock), os.stat(place)):
                    return lock
            os.close(lock)


def remove_dead(shared: Path) -> None:
    """Remove the folder of a guest whose process was killed; leave that of a running one."""
    with suppress(OSError):
        lock = os.open(shared, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The opened folder may be gone, and that of another run may have its name.
            if os.path.samestat(os.fstat(lock), os.lstat(shared)):
                remove_folder(shared)
        finally:
            os.close(lock)


def _opened_within(folder: Path, place: str) -> tuple[int, str]:
    """The open folder of a place, and the name in it. Raises ValueError, OSError."""
    *above, name = place.split("/")
    if len(above) > 1 or not all(map(FILE_NAME.fullmatch, (*above, name))):
        raise ValueError(f"{place!r} is not a file of the worker's")
    return os.open(folder.joinpath(*above), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW), name


def holds_more(folder: Path, names: int, size: int, besides: Container[str] = ()) -> bool:
    """Whether a folder that a guest writes to has more names below it, or more bytes on the disk.

    besides: names of files whose bytes do not count. It stops counting as soon as it knows.
    """
    names_left, bytes_left = names, size
    waiting = [str(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    names_left -= 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif entry.name not in besides:
                        with suppress(FileNotFoundError):  # it is gone meanwhile
                            bytes_left -= entry.stat(follow_symlinks=False).st_blocks * 512
                    if names_left < 0 or bytes_left < 0:
                        return True
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:  # a path too long to look at holds what nobody can count
            return True
    return False


class GrowingFile:
    """Reads a file while the other side appends to it, and frees the disk of what was read."""

    def __init__(self, file: BinaryIO) -> None:
        """file: open for reading and writing."""
        self.file = file
        self.place = 0  # the offset of the next bytes to read
        self.freed = 0  # bytes from the beginning
        # Whether the file system cannot free what was read, since it has no holes (EOPNOTSUPP).
        self.is_unfreeable = False

    def read(self, most_bytes: int) -> bytes:
        """The next bytes that are there already, at most so many."""
        piece = os.pread(self.file.fileno(), most_bytes, self.place)
        self.place += len(piece)
        whole = self.place // PAGE_BYTES * PAGE_BYTES
        if whole - self.freed >= FREED_BYTES:
            self.is_unfreeable = _libc.fallocate(
                self.file.fileno(), _KEEP_SIZE | _PUNCH_HOLE, ctypes.c_long(self.freed),
                ctypes.c_long(whole - self.freed)) != 0
            self.freed = whole
        return piece

    def close(self) -> None:
        self.file.close()


# A full disk, which is never a trial's fault -----------------------------------------

# A worker that cannot write its observation cannot write its error either. So the engine reserves
# a little room before, which the worker then overwrites.
RESERVE, RESERVE_BYTES = "cannot-write", 512
PROBE, PROBE_BYTES = "probe", 1 << 20
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}


def reserve(folder: Path) -> None:
    """Reserve room for note_write_error."""
    (folder / RESERVE).write_bytes(b" " * RESERVE_BYTES)


def note_write_error(folder: Path, error: OSError) -> None:
    """Overwrite the reserve with the reason of an error. Raises OSError."""
    with (folder / RESERVE).open("r+b", buffering=0) as file:
        file.write(os.strerror(error.errno or 0).encode()[:RESERVE_BYTES])


def write_error(folder: Path) -> str:
    """Why the worker could not write, in the system's words; "" if it could."""
    try:
        words = read_within(folder, RESERVE, RESERVE_BYTES).decode(errors="replace").strip()
    except (OSError, ValueError):
        return ""
    return words if words in map(os.strerror, FULL) else ""


def probe(folder: Path) -> None:
    """Write a file of PROBE_BYTES and remove it. Raises OSError if that fails.

    O_NOFOLLOW: the other side may have made a link to a file outside of the folder.
    """
    (folder / PROBE).unlink(missing_ok=True)
    probe_fd = os.open(folder / PROBE, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with open(probe_fd, "wb") as file:
            file.write(bytes(PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())
    finally:
        (folder / PROBE).unlink(missing_ok=True)
