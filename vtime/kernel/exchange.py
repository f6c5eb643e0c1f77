"""A built kernel as one file, for machines that shall not build it again.

    exchange.py export FOLDER FILE           a kernel of the cache into a file
    exchange.py import FILE FOLDER WANTED…   a file into a folder, if it is that kernel
    exchange.py collect BUILT FOLDER TREE    the kernel that was built and its configuration into a
                                             folder, and its source's tests of TCP if it has any

The file is a plain tar of MEMBERS. Who made it is not known: nothing of it is
read before it is known to have these names and no other, as regular files of a
likely size, and nothing of it is run before its hashes fit. WANTED are lines as
in its member `inputs` (write_inputs in compile.sh), of what this machine would
build from: configuration, compiler, source. Used by build.sh.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import stat
import sys
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

# By name, the most bytes that one may have.
MEMBERS = {"inputs": 1 << 12, "version": 1 << 8, "source": 1 << 12, "config": 1 << 20,
           "linux": 32 << 20}
# In words, what a line of `inputs` states.
INPUTS = {"configuration": "another recipe or configuration", "source": "another source",
          "compiler": "another compiler", "linux": "", "config": ""}
# What the texts have to be, in whole: they go into names, messages and run.json.
_DIGEST = r"[0-9a-f]{64}"
TEXTS = {"configuration": r"[0-9a-f]{16}", "source": _DIGEST, "compiler": r"[ -~]{1,200}",
         "linux": _DIGEST, "config": _DIGEST}
VERSION = r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,4}\n"
ORIGIN = r"[ -~]{1,500}\n"
IMPORTED = b", imported\n"


class ImportRefused(Exception):
    """The file is not taken; its text is the reason."""


def export_kernel(folder: Path, file: Path) -> None:
    """Write the kernel in a folder of the cache to a file. Raises OSError."""
    with tarfile.open(file, "w", format=tarfile.USTAR_FORMAT) as tar:
        for name in MEMBERS:
            member = tarfile.TarInfo(name)
            member.size, member.mode = (folder / name).stat().st_size, 0o644
            with (folder / name).open("rb") as content:
                tar.addfile(member, content)


def import_kernel(file: Path, folder: Path, requested: dict[str, str]) -> None:
    """Write the members of a file to a folder. Raises ImportRefused; OSError where it cannot write.

    requested: what the inputs have to be, by their names.
    """
    _check_size(file)
    try:
        with tarfile.open(file, "r:") as tar:
            members = _members(tar)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise ImportRefused(f"it is not a whole tar file ({error})") from error

    _check_content(members, requested)
    if not members["source"].endswith(IMPORTED):
        members["source"] = members["source"].rstrip(b"\n") + IMPORTED
    for name, content in members.items():
        (folder / name).write_bytes(content)
    os.chmod(folder / "linux", 0o755)


def _check_size(file: Path) -> None:
    """Raises ImportRefused where a file is none, or larger than any kernel."""
    try:
        info = file.stat()
    except OSError as error:
        raise ImportRefused(error.strerror) from error
    if not stat.S_ISREG(info.st_mode):  # a pipe would be waited for
        raise ImportRefused("it is no regular file")
    if info.st_size > 2 * sum(MEMBERS.values()):
        raise ImportRefused(f"it has {info.st_size} bytes, far more than a kernel")


def _check_content(members: dict[str, bytes], requested: dict[str, str]) -> None:
    """Raises ImportRefused where members are not as requested, or not as a build writes them."""
    inputs = _inputs(members["inputs"])
    for name, expected in requested.items():
        if inputs[name] != expected:
            raise ImportRefused(f"it was made with {INPUTS[name]}: {inputs[name]}, and here it is"
                                f" {expected}")

    for name, pattern in (("version", VERSION), ("source", ORIGIN)):
        if not re.fullmatch(pattern, members[name].decode("latin-1")):
            raise ImportRefused(f"its {name} is not one line as a build writes it")
    for name in ("linux", "config"):
        if hashlib.sha256(members[name]).hexdigest() != inputs[name]:
            raise ImportRefused(f"its {name} is damaged: its SHA-256 is not the one it was built"
                                " with")


def _members(tar: tarfile.TarFile) -> dict[str, bytes]:
    """The content of every member, by name; nothing is written."""
    contents: dict[str, bytes] = {}
    for member in tar:
        if member.name not in MEMBERS or member.name in contents or not member.isreg():
            raise ImportRefused(f"it holds {member.name!r}, and a kernel's file has"
                                f" {', '.join(MEMBERS)}, each once, and no links")
        if member.size > MEMBERS[member.name] or member.issparse():
            raise ImportRefused(f"its {member.name} has {member.size} bytes,"
                                f" more than {MEMBERS[member.name]}")

        content = tar.extractfile(member)
        contents[member.name] = content.read() if content else b""
        if len(contents[member.name]) != member.size:
            raise ImportRefused(f"its {member.name} is cut off")

    missing = MEMBERS.keys() - contents.keys()
    if missing:
        raise ImportRefused(f"it lacks {', '.join(sorted(missing))}")
    return contents


def collect(built: Path, folder: Path, tree: Path) -> None:
    """Write what a build has made to a folder. Raises ImportRefused, OSError.

    A stranger's source made it: no link of it is followed, and only files are taken.
    """
    place = _opened(built, "objects")
    for name, made in (("linux", "linux"), ("config", ".config")):
        _take(os.open(made, _READ, dir_fd=place), folder / name, MEMBERS[name])
    os.chmod(folder / "linux", 0o755)
    os.close(place)
    with suppress(FileNotFoundError, NotADirectoryError):
        _take_folder(_opened(tree, *TESTS.parts), folder / TESTS.name, itertools.count(1))


_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
TESTS = Path("tools", "testing", "selftests", "net", "packetdrill")
MOST_TESTS, MOST_OF_TEST = 2000, 1 << 20  # files and folders, Linux 7.2 has 90; bytes
MOST_DEPTH = 4  # of folders


def _opened(folder: Path, *names: str) -> int:
    """A folder below another one, without following links between the two."""
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for name in names:
        above = place
        try:
            place = os.open(name, _FOLDER, dir_fd=above)
        finally:
            os.close(above)
    return place


def _take_folder(place: int, to: Path, counted: Iterator[int], depth: int = 0) -> None:
    """Copy an open folder, down to MOST_DEPTH, and close it. counted: numbers of files, from 1."""
    to.mkdir()
    for name in os.listdir(place) if depth < MOST_DEPTH else []:
        if next(counted) > MOST_TESTS:
            raise ImportRefused(f"{TESTS} has more than {MOST_TESTS} files")
        mode = os.stat(name, dir_fd=place, follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            below = os.open(name, _FOLDER, dir_fd=place)
            _take_folder(below, to / name, counted, depth=depth + 1)
        elif stat.S_ISREG(mode):
            _take(os.open(name, _READ, dir_fd=place), to / name, MOST_OF_TEST)
            os.chmod(to / name, 0o755 if mode & 0o100 else 0o644)
    os.close(place)


def _take(descriptor: int, to: Path, most_bytes: int) -> None:
    """Copy an open file, and close it."""
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ImportRefused(f"{to.name} is no regular file")
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise ImportRefused(f"{to.name} has more than {most_bytes} bytes")
    to.write_bytes(content)


def _inputs(text: bytes) -> dict[str, str]:
    """The lines of `inputs` by their first words. Raises ImportRefused."""
    words = text.decode("ascii", "replace")
    if not words.replace("\n", "").isprintable():
        raise ImportRefused("its inputs are not text")
    lines = dict(line.partition(" ")[::2] for line in words.splitlines())
    if lines.keys() != INPUTS.keys():
        raise ImportRefused(f"its inputs are {', '.join(lines) or 'empty'}, not"
                            f" {', '.join(INPUTS)}")
    for name, value in lines.items():
        if not re.fullmatch(TEXTS[name], value):
            raise ImportRefused(f"its inputs have no {name} as a build writes it")
    return lines


def main(words: list[str]) -> int:
    try:
        if words[0] == "export":
            export_kernel(Path(words[1]), Path(words[2]))
        elif words[0] == "collect":
            collect(*map(Path, words[1:]))
        else:
            requested = dict(line.partition(" ")[::2] for line in words[3:])
            import_kernel(Path(words[1]), Path(words[2]), requested)
    except (ImportRefused, OSError) as error:
        print(error, file=sys.stderr)
        return 2 if isinstance(error, ImportRefused) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
