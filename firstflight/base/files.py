"""The only way in which the project writes files.

A file is written whole or stays as it was, and nobody else's link can redirect it. A path is walked
folder by folder, and each folder stays open while the next is looked up in it. What is new belongs
to the user who called sudo (SUDO_UID). There are two kinds of paths:

- One that the user gave. `sudo ./run.sh` writes as root into folders that others may write to as
  well. So a link is followed only if root or this process owns it, or if the invoking user owns
  it and it names a neighbour. `write` replaces regular files only; it writes into a FIFO or a
  character device (a terminal, /dev/null), and refuses a disk, a socket or a folder.
- One below an open folder (`Folder`, `save`). A stranger may have filled that folder with links
  that this process owns and that lead anywhere. None is followed; a link with the name of the new
  file is replaced. (openat2 is one call for a path; walking works on every kernel.)
"""

from __future__ import annotations

import errno
import io
import os
import secrets
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from firstflight.base.errors import FirstFlightError

MOST_BYTES = 64 << 20  # of a file that is read at once; captures are the largest
MOST_LINE_CHARACTERS = 1 << 20  # nginx's longest request and headers together have a tenth of it
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
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "not a regular file", str(path))


PROJECT = Path(__file__).resolve().parent.parent.parent
MOST_LINKS = 40  # of one path, as in the kernel (MAXSYMLINKS)
_PLACE = os.O_PATH | os.O_NOFOLLOW
_NEW = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_ADVICE = {errno.ENOSPC: "make room", errno.EDQUOT: "make room or raise the quota",
           errno.EFBIG: "raise the limit (ulimit -f)",
           errno.ENXIO: "nobody reads from it: start its reader first"}


class WriteError(FirstFlightError):
    """A file or a folder cannot be written; its text has which, why, and what to do."""


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an OSError while `path` is written into a WriteError with advice."""
    try:
        yield
    except OSError as error:
        advice = _ADVICE.get(error.errno or 0)
        raise WriteError(f"{path}: cannot be written: {error.strerror or error}"
                         + (f": {advice}" if advice else "")) from error


def inside(folder: Path, name: str) -> Path:
    """The path of a name in a folder. Raises FirstFlightError if it would lie elsewhere."""
    if name in ("", ".", "..") or "/" in name or not name.isprintable():
        raise FirstFlightError(f"{name!r} cannot be the name of a file in {folder}")
    return folder / name


def write(path: Path, content: bytes | str) -> Path:
    """Write a file whole; return the path. Raises WriteError.

    If `path` is a link, the file that it leads to is written. A FIFO or a character device is
    written into.
    """
    data = content.encode() if isinstance(content, str) else content
    place = path
    for _ in range(MOST_LINKS + 1):
        with _folder(place.parent, place.name) as folder:
            to = _end_of_link(place, folder)
            if not to:
                _write(place, folder, data)
                return path
        place = place.parent / to
    with writing(path):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def save(folder: Path, place: str, content: bytes | str) -> Path:
    """Write a file whole below a folder that the user gave; return its path. Raises WriteError.

    place: relative, of any depth. No link below the folder is followed.
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


def append(path: Path) -> FileIO:
    """A file open for appending, unbuffered, created if it is missing. Raises WriteError."""
    flags = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW
    with _folder(path.parent, path.name) as folder:
        try:
            file = open(os.open(path.name, flags | _NEW, 0o666, dir_fd=folder), "ab", buffering=0)
            _give(file.fileno())
        except FileExistsError:
            file = open(os.open(path.name, flags, dir_fd=folder), "ab", buffering=0)
            _check_ours(file.fileno(), path)
    return file


def write_all(file: FileIO, content: bytes) -> None:
    """Write all of it to an unbuffered file, in several calls if need be. Raises OSError."""
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest):]


def make_folder(path: Path) -> Path:
    """Create a folder, and those above it, if they are missing. Raises WriteError."""
    with _folder(path):
        return path


def new_folder(path: Path) -> bool:
    """Make a folder; False if the name is taken. Raises WriteError."""
    with _folder(path.parent) as folder:
        try:
            _make(path.name, folder)
        except FileExistsError:
            return False
    return True


def open_folder(path: Path | str, within: int | None = None) -> int:
    """A folder's descriptor, to lock it or to change its owner. Raises OSError if it is no folder.

    within: the descriptor of the folder that a relative path starts from.
    """
    return os.open(path, os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=within)


def empty_folder(path: Path) -> Path:
    """Create an empty folder; what was there is removed. Raises WriteError."""
    remove(path)
    with _folder(path.parent, path.name) as folder:
        os.mkdir(path.name, dir_fd=folder)
    return path


def remove(path: Path) -> None:
    """Remove a file, a link, or a folder with all its content; what cannot be removed stays."""
    with suppress(WriteError, OSError), _folder(path.parent, make=False) as folder:
        try:
            os.unlink(path.name, dir_fd=folder)
        except (IsADirectoryError, PermissionError):  # EISDIR on Linux, EPERM by POSIX
            # shutil.rmtree recurses, and a guest may have nested thousands of folders.
            subprocess.run(["rm", "-rf", "--", f"/proc/self/fd/{folder}/{path.name}"],
                           pass_fds=[folder], stderr=subprocess.DEVNULL, check=False)


def link(path: Path, to: str) -> None:
    """Make a link to its neighbour `to`, or change where it leads. Raises WriteError."""
    with _folder(path.parent, path.name) as folder:
        existing = _status(path.name, folder)
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
        with _folder(path) as folder:
            self.number = os.dup(folder)
        self._near: tuple[tuple[str, ...], int] = ((), os.dup(self.number))  # looked up last

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        os.close(self.number)
        os.close(self._near[1])

    @contextmanager
    def replacing(self, place: str) -> Iterator[FileIO]:
        """A new, unbuffered file. It gets its name once all of it is on the disk."""
        with writing(self.path / place):
            name, folder = self._found(place)
            with _replacing(name, folder) as file:
                yield file

    def make(self, place: str, replace_link: bool = False) -> None:
        """Create a folder if it is missing. replace_link: also if a link has its name."""
        with writing(self.path / place):
            name, folder = self._found(place)
            existing = _status(name, folder)
            if replace_link and existing is not None and stat.S_ISLNK(existing.st_mode):
                _unlink(name, folder)
            os.close(_below(name, folder))

    def link(self, place: str, to: str) -> None:
        """Let a link lead to `to`; a file or a link of that name is replaced."""
        with writing(self.path / place):
            _link(*self._found(place), to)

    def _found(self, place: str) -> tuple[str, int]:
        """The name of a place and its folder's descriptor, which the next call may close."""
        *above, name = PurePosixPath(place).parts or ("..",)
        if place.startswith("/") or ".." in (*above, name):
            raise OSError(errno.EINVAL, f"it would lie outside {self.path}")
        begun, folder = self._near
        if tuple(above[:len(begun)]) != begun:
            begun, self._near = (), ((), os.dup(self.number))
            os.close(folder)
            folder = self._near[1]
        for step in above[len(begun):]:
            below = _below(step, folder)
            os.close(folder)
            begun, folder = self._near = ((*begun, step), below)
        return name, folder


# Files -------------------------------------------------------------------------------

def _write(path: Path, folder: int, data: bytes) -> None:
    """Write `path`, which is no link, in its folder. Raises OSError, WriteError."""
    existing = _status(path.name, folder)
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
            _check_ours(file, path)
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
    """A temporary name for a file or link that is then renamed to `name`. Raises OSError."""
    aside = f".first-flight-{secrets.token_hex(8)}"
    try:
        yield aside
        os.rename(aside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        _unlink(aside, folder)
        raise


@contextmanager
def _replacing(name: str, folder: int) -> Iterator[FileIO]:
    """A new file that gets its name once it is on the disk. Raises OSError."""
    with _renamed(name, folder) as aside:
        number, has_name = _new_file(aside, folder)
        with open(number, "wb", buffering=0) as file:
            yield file
            _give(number)
            os.fsync(number)
            if not has_name:
                os.link(f"/proc/self/fd/{number}", aside, dst_dir_fd=folder, follow_symlinks=True)


def _new_file(aside: str, folder: int) -> tuple[int, bool]:
    """A new file, and whether it has a name: without one a killed process leaves nothing behind."""
    with suppress(OSError):  # some file systems have no O_TMPFILE
        return os.open(".", os.O_WRONLY | os.O_TMPFILE, 0o666, dir_fd=folder), False
    return os.open(aside, os.O_WRONLY | _NEW, 0o666, dir_fd=folder), True


def _link(name: str, folder: int, to: str) -> None:
    """Make a link; it replaces a file or link of this name. Raises OSError."""
    with _renamed(name, folder) as aside:
        os.symlink(to, aside, dir_fd=folder)
        if os.geteuid() == 0 and "SUDO_UID" in os.environ:
            os.chown(aside, *_invoking(), dir_fd=folder, follow_symlinks=False)


def _fill(descriptor: int, data: bytes) -> None:
    with open(descriptor, "wb", buffering=0) as file:
        write_all(file, data)


def _status(name: str, folder: int) -> os.stat_result | None:
    """The status of a name in a folder, of a link itself; None if nothing has the name."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _end_of_link(path: Path, folder: int) -> str:
    """The target of `path`; "" if it is no link, or one in /proc/self/fd. Raises WriteError."""
    existing = _status(path.name, folder)
    if (existing is None or not stat.S_ISLNK(existing.st_mode)
            or _is_own_descriptor(path.name, folder)):
        return ""
    place = os.open(path.name, _PLACE, dir_fd=folder)
    try:
        return _target(place, path.name, path)
    finally:
        os.close(place)


def _is_own_descriptor(name: str, folder: int) -> bool:
    """Whether this is /proc/self/fd/N, where /dev/stdout leads: a file that is open already."""
    return name.isdecimal() and os.path.samestat(os.fstat(folder), os.stat("/proc/self/fd"))


# Folders -----------------------------------------------------------------------------

@contextmanager
def _folder(path: Path, name: str = "", make: bool = True) -> Iterator[int]:
    """A folder's descriptor; errors while it is open name `name` in it. Raises WriteError."""
    with writing(inside(path, name) if name else path):
        folder = _walk(path, make)
        try:
            _check_ours(folder, path)
            yield folder
        finally:
            os.close(folder)


def _walk(path: Path, make: bool) -> int:
    """Open a folder step by step. make: create those missing. Raises OSError, WriteError."""
    steps, links = list(reversed((Path.cwd() / path).parts)), 0
    above = os.open(steps.pop(), _PLACE)
    try:
        while steps:
            step = steps.pop()
            below = _step(step, above, make)
            try:
                if stat.S_ISLNK(os.fstat(below).st_mode):
                    links += 1
                    steps += reversed(Path(_target(below, step, path)).parts)
                else:
                    above, below = below, above
            finally:
                os.close(below)
            if links > MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if not stat.S_ISDIR(os.fstat(above).st_mode):
            raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    except BaseException:
        os.close(above)
        raise
    return above


def _step(name: str, folder: int, make: bool) -> int:
    try:
        return os.open(name, _PLACE, dir_fd=folder)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):  # another process was quicker
        _make(name, folder)
    return os.open(name, _PLACE, dir_fd=folder)


def _below(name: str, folder: int) -> int:
    """Open a folder in a folder, or create it. Raises OSError for a link."""
    while True:
        try:
            return os.open(name, _PLACE | os.O_DIRECTORY, dir_fd=folder)
        except FileNotFoundError:
            with suppress(FileExistsError):  # another process was quicker
                _make(name, folder)
        except NotADirectoryError:
            existing = _status(name, folder)
            if existing is None or not stat.S_ISLNK(existing.st_mode):
                raise
            raise OSError(errno.ELOOP, f"{name} is a link, which is not followed") from None


def _make(name: str, folder: int) -> None:
    """Create a folder that belongs to the invoking user. Raises OSError."""
    os.mkdir(name, dir_fd=folder)
    descriptor = open_folder(name, folder)
    try:
        _give(descriptor)
    finally:
        os.close(descriptor)


def _target(place: int, step: str, path: Path) -> str:
    """Where a link leads, by its descriptor. Raises WriteError if it may not be followed.

    The invoking user's may if it names a neighbour, as `latest` does: it stays in the folder.
    """
    target, owner = os.readlink("", dir_fd=place), os.fstat(place).st_uid
    if owner in (0, os.geteuid()) or (
            owner == int(os.environ.get("SUDO_UID", 0)) and "/" not in target and target != ".."):
        return target
    raise WriteError(f"{path}: {step} is another user's link, which is not followed: give the"
                     " folder that it leads to")


# Owners ------------------------------------------------------------------------------

def _give(descriptor: int) -> None:
    """Give a new file or folder to the user who called sudo."""
    if os.geteuid() == 0 and "SUDO_UID" in os.environ and os.fstat(descriptor).st_uid == 0:
        os.fchown(descriptor, *_invoking())


def _invoking() -> tuple[int, int]:
    """The user and the group who called sudo."""
    return int(os.environ["SUDO_UID"]), int(os.environ.get("SUDO_GID", -1))


def _check_ours(descriptor: int, path: Path) -> None:
    """Check that root writes only to what root, the invoking user or the project's owner owns.

    The project's owner already decides what root runs here. Raises WriteError.
    """
    if os.geteuid() != 0:
        return
    status = os.fstat(descriptor)
    owners = {0, int(os.environ.get("SUDO_UID", 0)), PROJECT.stat().st_uid}
    if status.st_uid not in owners:
        raise WriteError(f"{path}: belongs to another user (uid {status.st_uid}), so root does not"
                         " write there: give a folder of your own")
    if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
        raise WriteError(f"{path}: has a second name, a hard link, so root does not write to it")


def _unlink(name: str, folder: int) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)
