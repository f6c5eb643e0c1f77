"""Finds folders for the project's writers: step by step, and never through a stranger's link.

A path is walked folder by folder, and each folder stays open while the next one is looked up in it.
files.py says which links are followed, and who owns new files.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from firstflight.base import PROJECT
from firstflight.base.errors import FirstFlightError, WriteError

# A name is cut to so many bytes before its ending. It may have 255 (NAME_MAX), and endings and the
# names of temporary files need some of them.
CUT_BYTES = 180
DIGEST_DIGITS = 32  # of the cut name
MOST_LINKS = 40  # in one path, as in the kernel (MAXSYMLINKS)
PLACE = os.O_PATH | os.O_NOFOLLOW  # opens a file, a folder or a link, only to look at it
NEW = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW  # opens a file that must not exist yet
_ADVICE = {errno.ENOSPC: "make room", errno.EDQUOT: "make room or raise the quota",
           errno.EFBIG: "raise the limit (ulimit -f)",
           errno.ENXIO: "nobody reads from it: start its reader first"}


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


def named_after(folder: Path, words: str, ending: str) -> Path:
    """The path of a file that is named after words, such as a trial's id.

    Words of 180 bytes and more are cut, and a digest of all of them follows. Such a name has
    exactly 180 bytes before its ending, and any other one has fewer: no two ids share a file.
    Raises FirstFlightError if the words cannot be the name of a file.
    """
    whole = inside(folder, words).name
    if len(whole.encode()) >= CUT_BYTES:
        digest = hashlib.sha256(whole.encode()).hexdigest()[:DIGEST_DIGITS]
        most_bytes = CUT_BYTES - DIGEST_DIGITS - 1
        start = whole.encode()[:most_bytes].decode(errors="ignore")
        whole = f"{start}{'_' * (most_bytes - len(start.encode()))}-{digest}"
    return inside(folder, f"{whole}{ending}")


@contextmanager
def folder_of(path: Path, name: str = "", make: bool = True) -> Iterator[int]:
    """Open a folder; give its descriptor.

    name: the file in it that is being written, which messages name; "" for the folder itself. make:
    create the folder if it is missing. Raises WriteError, also for an OSError of the caller while
    the folder is open.
    """
    with writing(inside(path, name) if name else path):
        folder = _walk(path, make)
        try:
            check_ours(folder, path)
            yield folder
        finally:
            os.close(folder)


def _walk(path: Path, make: bool) -> int:
    """Open a folder step by step; return its descriptor.

    make: create the folders that are missing. Raises OSError, WriteError.
    """
    steps = list(reversed((Path.cwd() / path).parts))  # the next step is the last of the list
    links = 0
    above = os.open(steps.pop(), PLACE)

    try:
        while steps:
            step = steps.pop()
            below = _step(step, above, make)

            try:
                if stat.S_ISLNK(os.fstat(below).st_mode):
                    links += 1
                    steps += reversed(Path(target_of_link(below, step, path)).parts)
                else:
                    above, below = below, above  # `below` is now the folder that is left behind
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
    """Open a name in a folder, without following a link. make: create a folder if it is missing."""
    try:
        return os.open(name, PLACE, dir_fd=folder)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):  # another process was quicker
        make_below(name, folder)
    return os.open(name, PLACE, dir_fd=folder)


def open_below(name: str, folder: int) -> int:
    """Open a folder in a folder, or create it. Raises OSError for a link."""
    while True:
        try:
            return os.open(name, PLACE | os.O_DIRECTORY, dir_fd=folder)
        except FileNotFoundError:
            with suppress(FileExistsError):  # another process was quicker
                make_below(name, folder)
        except NotADirectoryError:
            existing = status_of(name, folder)
            if existing is None or not stat.S_ISLNK(existing.st_mode):
                raise
            raise OSError(errno.ELOOP, f"{name} is a link, which is not followed") from None


def make_below(name: str, folder: int) -> None:
    """Create a folder that belongs to the invoking user. Raises OSError."""
    os.mkdir(name, dir_fd=folder)
    descriptor = open_folder(name, folder)
    try:
        give_to_invoking(descriptor)
    finally:
        os.close(descriptor)


def target_of_link(place: int, step: str, path: Path) -> str:
    """Where a link leads. Raises WriteError if it may not be followed.

    A link of root's or of our own may be followed. A link of the user who called sudo may be if it
    leads to a neighbour in its folder, as `latest` does. place: the link's descriptor. step, path:
    its name and the path in which it was met, for the message.
    """
    target, owner = os.readlink("", dir_fd=place), os.fstat(place).st_uid
    if owner in (0, os.geteuid()):
        return target
    is_neighbour = "/" not in target and target != ".."
    if is_neighbour and owner == int(os.environ.get("SUDO_UID", 0)):
        return target
    raise WriteError(f"{path}: {step} is another user's link, which is not followed: give the"
                     " folder that it leads to")


def open_folder(path: Path | str, within: int | None = None) -> int:
    """A folder's descriptor, to lock it or to change its owner. Raises OSError if it is no folder.

    within: the descriptor of the folder that a relative path starts from.
    """
    return os.open(path, os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=within)


def status_of(name: str, folder: int) -> os.stat_result | None:
    """The status of a name in a folder; None if nothing has the name. A link is not followed."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


# Owners ------------------------------------------------------------------------------

def give_to_invoking(descriptor: int) -> None:
    """Give a new file or folder to the user who called sudo."""
    if os.geteuid() == 0 and "SUDO_UID" in os.environ and os.fstat(descriptor).st_uid == 0:
        os.fchown(descriptor, *invoking_ids())


def invoking_ids() -> tuple[int, int]:
    """The user and the group who called sudo."""
    return int(os.environ["SUDO_UID"]), int(os.environ.get("SUDO_GID", -1))


def check_ours(descriptor: int, path: Path) -> None:
    """Refuse to write as root to what is not root's, the invoking user's or the project owner's.

    The project's owner decides anyway what root runs here. Raises WriteError.
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


def unlink_below(name: str, folder: int) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)
