"""The only way in which the project writes files.

A file is written whole or stays as it was, and nobody else's link can redirect it (places.py walks
its path). New files and folders belong to the user who called sudo (SUDO_UID). There are two kinds
of paths:

- A path that the user gave. `sudo ./run.sh` writes as root into folders that others may write to,
  too. So a link is followed only if root or this process owns it, or if the invoking user owns
  it and it names a neighbour. `write` replaces regular files only; it writes into a FIFO or a
  character device (a terminal, /dev/null), and refuses a disk, a socket or a folder.
- A path below an open folder (`Folder`, `save`). A stranger may have filled that folder with links
  that this process owns and that lead anywhere. No link is followed; a link with the name of the
  new file is replaced. (openat2 is one call for a path; walking works on every kernel.)
"""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path, PurePosixPath

from firstflight.base.errors import WriteError
from firstflight.base.places import (MOST_LINKS, NEW, PLACE, check_ours, folder_of,
                                     give_to_invoking, invoking_ids, make_below, open_below,
                                     status_of, target_of_link, unlink_below, writing)


def write(path: Path, content: bytes | str) -> Path:
    """Write a file whole; return the path. Raises WriteError.

    If `path` is a link, the file that it leads to is written. A FIFO or a character device is
    written into.
    """
    data = content.encode() if isinstance(content, str) else content
    end = path  # where the links lead that have been followed
    for _ in range(MOST_LINKS + 1):
        with folder_of(end.parent, end.name) as folder:
            target = _link_target(end, folder)
            if not target:
                _write(end, folder, data)
                return path
        end = end.parent / target
    with writing(path):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def save(folder: Path, place: str, content: bytes | str) -> Path:
    """Write a file whole below a folder that the user gave; return its path. Raises WriteError.

    place: the path below the folder, of any depth. No link below the folder is followed.
    """
    with Folder(folder) as opened:
        with opened.replacing(place) as file:
            write_all(file, content.encode() if isinstance(content, str) else content)
    return folder / place


def save_all(folder: Path, contents: Mapping[str, bytes | str]) -> list[Path]:
    """Save files below a folder, by their path there; return their paths.

    If some cannot be written the others still are, and a WriteError names the lost ones.
    """
    paths, lost = [], {}
    for place, content in contents.items():
        try:
            paths.append(save(folder, place, content))
        except WriteError as error:
            lost[place] = error
    if lost:
        raise WriteError(f"{', '.join(lost)}: not saved: {next(iter(lost.values()))}")
    return paths


def open_to_append(path: Path) -> FileIO:
    """Open a file for appending, unbuffered; create it if it is missing. Raises WriteError."""
    flags = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW
    with folder_of(path.parent, path.name) as folder:
        try:
            file = open(os.open(path.name, flags | NEW, 0o666, dir_fd=folder), "ab", buffering=0)
            give_to_invoking(file.fileno())
        except FileExistsError:
            file = open(os.open(path.name, flags, dir_fd=folder), "ab", buffering=0)
            check_ours(file.fileno(), path)
    return file


def write_all(file: FileIO, content: bytes) -> None:
    """Write all of the content to an unbuffered file, in several calls if need be. Raises OSError.
    """
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest):]


def make_folder(path: Path) -> Path:
    """Create a folder and the folders above it, as far as they are missing. Raises WriteError."""
    with folder_of(path):
        return path


def make_new_folder(path: Path) -> bool:
    """Create a folder; return whether it is new, False if its name is taken. Raises WriteError."""
    with folder_of(path.parent) as folder:
        try:
            make_below(path.name, folder)
        except FileExistsError:
            return False
    return True


def make_empty_folder(path: Path) -> Path:
    """Create an empty folder, after removing whatever had its name. Raises WriteError."""
    remove(path)
    with folder_of(path.parent, path.name) as folder:
        os.mkdir(path.name, dir_fd=folder)
    return path


def remove(path: Path) -> None:
    """Remove a file, a link, or a folder with all its content; what cannot be removed stays."""
    with suppress(WriteError, OSError), folder_of(path.parent, make=False) as folder:
        try:
            os.unlink(path.name, dir_fd=folder)
        except (IsADirectoryError, PermissionError):  # EISDIR on Linux, EPERM by POSIX
            # shutil.rmtree recurses, and a guest may have nested thousands of folders.
            subprocess.run(["rm", "-rf", "--", f"/proc/self/fd/{folder}/{path.name}"],
                           pass_fds=[folder], stderr=subprocess.DEVNULL, check=False)


def link(path: Path, to: str) -> None:
    """Make a link to the neighbour `to`, or change where a link leads. Raises WriteError."""
    with folder_of(path.parent, path.name) as folder:
        existing = status_of(path.name, folder)
        if existing is not None and not stat.S_ISLNK(existing.st_mode):
            raise OSError(errno.EEXIST, "something that is not a link has its name; move it away")
        _link(path.name, folder, to)


class Folder:
    """A folder that the user gave, held open: below it no link is followed, whoever made it.

    A `place` is a path below it; missing folders on the way are created. Every method raises
    WriteError. Use as a context manager.
    """

    def __init__(self, path: Path) -> None:
        """Open the folder, or create it. Raises WriteError."""
        self.path = path
        with folder_of(path) as folder:
            self.number = os.dup(folder)
        # The folder that was looked up last: its steps below this one, and its descriptor. The next
        # file most often lies there, or below.
        self._last_steps: tuple[str, ...] = ()
        self._last_folder = os.dup(self.number)

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        os.close(self.number)
        os.close(self._last_folder)

    @contextmanager
    def replacing(self, place: str) -> Iterator[FileIO]:
        """Open a new, unbuffered file, which gets its name once all of it is on the disk."""
        with writing(self.path / place):
            name, folder = self._look_up(place)
            with _replacing(name, folder) as file:
                yield file

    def make(self, place: str, replace_link: bool = False) -> None:
        """Create a folder if it is missing. replace_link: also if a link has its name."""
        with writing(self.path / place):
            name, folder = self._look_up(place)
            existing = status_of(name, folder)
            if replace_link and existing is not None and stat.S_ISLNK(existing.st_mode):
                unlink_below(name, folder)
            os.close(open_below(name, folder))

    def link(self, place: str, to: str) -> None:
        """Let a link lead to `to`; a file or a link of that name is replaced."""
        with writing(self.path / place):
            _link(*self._look_up(place), to)

    def _look_up(self, place: str) -> tuple[str, int]:
        """The name of a place, and its folder's descriptor, which the next call may close."""
        parts = PurePosixPath(place).parts
        if not parts or place.startswith("/") or ".." in parts:
            raise OSError(errno.EINVAL, f"it would lie outside {self.path}")
        *above, name = parts

        if tuple(above[:len(self._last_steps)]) != self._last_steps:
            self._go_to((), os.dup(self.number))
        for step in above[len(self._last_steps):]:
            self._go_to((*self._last_steps, step), open_below(step, self._last_folder))
        return name, self._last_folder

    def _go_to(self, steps: tuple[str, ...], folder: int) -> None:
        """Take an open folder for the one that was looked up last, and close that."""
        os.close(self._last_folder)
        self._last_steps = steps
        self._last_folder = folder


# Files -------------------------------------------------------------------------------

def _write(path: Path, folder: int, data: bytes) -> None:
    """Write `path`, which is no link, in its folder. Raises OSError, WriteError."""
    existing = status_of(path.name, folder)
    if existing is not None and _is_own_descriptor(path.name, folder):
        sys.stdout.flush()  # keep the order of what was printed before
        _fill(os.dup(int(path.name)), data)
    elif existing is None or stat.S_ISREG(existing.st_mode):
        with _replacing(path.name, folder) as replacing:
            write_all(replacing, data)
    elif stat.S_ISFIFO(existing.st_mode) or stat.S_ISCHR(existing.st_mode):
        # O_NONBLOCK: opening a FIFO would wait for a reader, perhaps for ever.
        file = os.open(path.name, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY,
                       dir_fd=folder)

        try:
            check_ours(file, path)
            os.set_blocking(file, True)
        except BaseException:
            os.close(file)
            raise

        _fill(file, data)
    elif stat.S_ISDIR(existing.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    else:
        raise OSError(errno.EINVAL, "it is a disk or a socket; give a file")


@contextmanager
def _renamed(name: str, folder: int) -> Iterator[str]:
    """Give a temporary name for a file or link, and rename that to `name`. Raises OSError."""
    import secrets  # not for guests, which import this module, too
    aside = f".first-flight-{secrets.token_hex(8)}"
    try:
        yield aside
        os.rename(aside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        unlink_below(aside, folder)
        raise


@contextmanager
def _replacing(name: str, folder: int) -> Iterator[FileIO]:
    """Open a new file, which gets its name once it is on the disk. Raises OSError."""
    with _renamed(name, folder) as aside:
        number, has_name = _new_file(aside, folder)
        with open(number, "wb", buffering=0) as file:
            yield file
            give_to_invoking(number)
            os.fsync(number)
            if not has_name:
                os.link(f"/proc/self/fd/{number}", aside, dst_dir_fd=folder, follow_symlinks=True)


def _new_file(aside: str, folder: int) -> tuple[int, bool]:
    """Open a new file; return its descriptor, and whether it has a name.

    A file without a name is gone if this process is killed.
    """
    with suppress(OSError):  # some file systems have no O_TMPFILE
        return os.open(".", os.O_WRONLY | os.O_TMPFILE, 0o666, dir_fd=folder), False
    return os.open(aside, os.O_WRONLY | NEW, 0o666, dir_fd=folder), True


def _link(name: str, folder: int, to: str) -> None:
    """Make a link; it replaces a file or link of this name. Raises OSError."""
    with _renamed(name, folder) as aside:
        os.symlink(to, aside, dir_fd=folder)
        if os.geteuid() == 0 and "SUDO_UID" in os.environ:
            os.chown(aside, *invoking_ids(), dir_fd=folder, follow_symlinks=False)


def _fill(descriptor: int, data: bytes) -> None:
    with open(descriptor, "wb", buffering=0) as file:
        write_all(file, data)


def _link_target(path: Path, folder: int) -> str:
    """Where the link `path` leads; "" if it is no link, or one in /proc/self/fd.

    Raises WriteError where the link may not be followed.
    """
    existing = status_of(path.name, folder)
    if (existing is None or not stat.S_ISLNK(existing.st_mode)
            or _is_own_descriptor(path.name, folder)):
        return ""
    place = os.open(path.name, PLACE, dir_fd=folder)
    try:
        return target_of_link(place, path.name, path)
    finally:
        os.close(place)


def _is_own_descriptor(name: str, folder: int) -> bool:
    """Whether this is /proc/self/fd/N, where /dev/stdout leads: a file that is open already."""
    return name.isdecimal() and os.path.samestat(os.fstat(folder), os.stat("/proc/self/fd"))
