"""Trees of a kernel's source: only what changed is written, since make goes by the time of a file.

    trees.py copy SOURCE TO FILE…         files of a source, as far as they are there, into a folder
    trees.py split PATCH SOURCE TO FILTERED
                                          the files that a patch changes into a folder, and the
                                          patch without those that the guest has no part of
    trees.py why OUTPUT                   why `patch` failed, with file and line
    trees.py sync SOURCE CHANGED TREE     TREE has the files of CHANGED, and of SOURCE where that
                                          lacks them; prints those that it was given anew

Used by named.sh.
"""

from __future__ import annotations

import filecmp
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

# Folders of which everything is unpacked (unpack in source.sh): a file that they lack is an error.
WHOLE = ("crypto", "include", "init", "io_uring", "ipc", "kernel", "lib", "mm", "net")
NONE = "/dev/null"
COPIED = "copied"  # beside the tree that is patched: which files patches change, a line each


class Refused(Exception):
    """A patch that cannot be applied; its text is the reason."""


def copy(source: Path, to: Path, names: list[str]) -> None:
    for name in names:
        if (source / name).is_file() and not (to / name).exists():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / name, to / name)


# Patches -----------------------------------------------------------------------------

# What git writes before the lines of a file, and where a file has no other lines than that.
_HEADER = r"diff --git .*\n(?:(?!diff --git |--- ).*\n)*"
_SECTION = re.compile(rf"^(?:(?:{_HEADER})?--- .*\n\+\+\+ .*\n|{_HEADER})", re.MULTILINE)
_RENAMED = re.compile(r"^(?:rename|copy) from (.+)\n(?:rename|copy) to (.+)$", re.MULTILINE)


def sections(text: str) -> Iterator[tuple[str, str, str]]:
    """The part of each file: its name before and after (NONE for none), and the lines.

    A file whose mode alone changes has none. Raises Refused.
    """
    starts = list(_SECTION.finditer(text))
    for start, end in zip(starts, [*(match.start() for match in starts[1:]), len(text)]):
        part = text[start.start():end]
        if renamed := _RENAMED.search(start[0]):
            before, after = (_name(f"a/{path}") for path in renamed.groups())
        elif "\n+++ " in start[0]:
            before, after = (_name(path) for path in re.findall(
                r"^(?:---|\+\+\+) ([^\t\n]+)", start[0], re.MULTILINE))
        else:
            continue
        yield before, after, part


def _name(path: str) -> str:
    """The path without its first folder, as `patch -p1` has it. Raises Refused."""
    path = path.strip()
    if path == NONE:
        return path
    parts = PurePosixPath(path).parts[1:]
    if path.startswith("/") or "//" in path or not parts or ".." in parts:
        raise Refused(f"it names {path!r}, which is no file of a kernel's source (paths begin with"
                      " a/ and b/, as git writes them)")
    return str(PurePosixPath(*parts))


def split(patch: Path, source: Path, to: Path, filtered: Path) -> list[str]:
    """The files that are left out, since the guest has no part of them. Raises Refused.

    What is copied is noted in a file beside `to`: sync sees what the patch removed.
    """
    text = patch.read_text("utf-8", "surrogateescape")
    if re.search(r"^GIT binary patch$", text, re.MULTILINE):
        raise Refused("it changes a binary file")
    taken, left_out = [], []
    for before, after, part in sections(text):
        if before != NONE and not (to / before).is_file() and not (source / before).is_file():
            if PurePosixPath(before).parts[0] in WHOLE:
                raise Refused(f"there is no {before} in this source")
            left_out.append(before)
            continue
        for name in {before, after} - {NONE}:
            copy(source, to, [name])
            with (to.parent / COPIED).open("a", encoding="utf-8") as file:
                file.write(f"{name}\n")
        taken.append(part)
    if not taken:
        raise Refused("it changes no file of the guest's kernel (is it a patch, as git diff writes"
                      " it?)")
    filtered.write_text("".join(taken), "utf-8", "surrogateescape")
    return left_out


def why(output: str) -> str:
    """The first failure that `patch` reported."""
    file = ""
    for line in output.splitlines():
        if named := re.match(r"(?:patching|checking) file '?([^' ]+)", line):
            file = named[1]
        if failed := re.match(r"Hunk #(\d+) FAILED at (\d+)", line):
            return f"{file}:{failed[2]}: other lines stand there (part {failed[1]} of that file)"
        if "previously applied" in line:
            return f"{file}: it is applied already"
        if broken := re.search(r"malformed patch at line (\d+)", line):
            return f"its line {broken[1]} is no line of a patch"
    return next(iter(output.splitlines()), "no reason was given")


# The tree that is compiled -----------------------------------------------------------

def sync(source: Path, changed: Path, tree: Path) -> list[str]:
    """The names of the files that the tree was given anew, or that it lost."""
    wanted = {name: source / name for name in _files(source)}
    with suppress(FileNotFoundError):
        for name in (changed.parent / COPIED).read_text("utf-8").splitlines():
            wanted.pop(name, None)  # a patch may have removed it
    wanted |= {name: changed / name for name in _files(changed)}
    there = set(_files(tree))
    written = sorted(there - wanted.keys())
    for name in written:
        (tree / name).unlink()
    for name, path in sorted(wanted.items()):
        place = tree / name
        if name in there:
            if _same(path, place):
                continue
            place.unlink()
        place.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():
            place.symlink_to(os.readlink(path))
        elif not there and path.is_relative_to(source):
            os.link(path, place)  # of a new tree; a file is taken away later, and never written to
        else:
            shutil.copyfile(path, place)
            shutil.copymode(path, place)
        written.append(name)
    return written


def _same(path: Path, place: Path) -> bool:
    if path.is_symlink() or place.is_symlink():
        return (path.is_symlink() and place.is_symlink()
                and os.readlink(path) == os.readlink(place))
    return os.path.samefile(path, place) or filecmp.cmp(path, place, shallow=False)


def _files(folder: Path) -> Iterator[str]:
    """The paths in a folder of all that is no folder."""
    for place, folders, names in os.walk(folder):
        inside = os.path.relpath(place, folder)
        for name in (*names, *(each for each in folders
                               if os.path.islink(os.path.join(place, each)))):
            yield os.path.normpath(os.path.join(inside, name))


def main(words: list[str]) -> int:
    try:
        if words[0] == "copy":
            copy(Path(words[1]), Path(words[2]), words[3:])
        elif words[0] == "split":
            if left_out := split(*map(Path, words[1:])):
                print(f"{Path(words[1]).name}: left out, since the guest has no such file:"
                      f" {', '.join(left_out)}")
        elif words[0] == "why":
            print(why(Path(words[1]).read_text("utf-8", "replace")))
        else:
            print(*sync(*map(Path, words[1:])), sep="\n")
    except (Refused, OSError) as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
