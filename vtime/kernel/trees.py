"""Trees of a kernel's source: only what changed is written, since make goes by the time of a file.

    trees.py copy SOURCE TO FILE…         files of a source, as far as they are there, into a folder
    trees.py split PATCH SOURCE TO FILTERED
                                          the files that a patch changes into a folder, and the
                                          patch without those that the guest has no part of
    trees.py why OUTPUT                   why `patch` failed, with file and line
    trees.py sync SOURCE CHANGED TREE     TREE has the files of CHANGED, and of SOURCE where that
                                          lacks them; prints those that it was given anew

Used by inside.sh, behind the wall: a patch is a stranger's.
"""

from __future__ import annotations

import filecmp
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO

# Folders of which everything is unpacked (unpack in source.sh): a file that they lack is an error.
WHOLE = ("crypto", "include", "init", "io_uring", "ipc", "kernel", "lib", "mm", "net")
NONE = "/dev/null"
COPIED = "copied"  # beside the tree that is patched: the names of the files that patches change
# The largest patch between two releases of Linux has 60 MB, 1.8 million lines, 15,000 files.
MOST_BYTES, MOST_LINES, MOST_FILES, MOST_LINE = 256 << 20, 4_000_000, 30_000, 1 << 20
MOST_NAMES = 5  # in a message


class Refused(Exception):
    """A patch that cannot be applied; its text is the reason."""


def copy(source: Path, to: Path, names: list[str]) -> None:
    """Copy files of a source that are there, and not in the target yet.

    Raises Refused where the source has a link in place of one of them, or of a folder above it.
    """
    for name in filter(None, names):
        _refuse_links(source, name)
        if (source / name).is_file() and not (to / name).exists():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / name, to / name)


def _refuse_links(tree: Path, name: str) -> None:
    """Raises Refused where a link lies on the way to a file: what it leads to is no source."""
    for path in (*reversed(PurePosixPath(name).parents), PurePosixPath(name)):
        if (tree / path).is_symlink():
            raise Refused(f"{path} is a link in this source, and what it leads to is none")


# Patches -----------------------------------------------------------------------------

_HUNK = re.compile(rb"@@ -(\d{1,9})(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@")
_CONTEXT = re.compile(rb"\*\*\* (\d{1,9})(?:,\d{1,9})? \*\*\*\*")
_CONTEXT_TO = re.compile(rb"--- \d{1,9}(?:,\d{1,9})? ----")
_OTHER_DIFF = re.compile(rb"\d+(?:,\d+)?[acd](?:\d+(?:,\d+)?)?\s*$")  # for ed; without options
# Of git: a link has mode 120000, a repository within one 160000.
_MODE = re.compile(rb"(?:(old|new|new file|deleted file) mode (\d+)|index \S+ (\d+))\s*$")
_FILE = re.compile(rb"0*(?:100)?[0-7]{0,3}")  # of any other mode nothing can be a file
_MOVED = re.compile(rb"(?:rename|copy) (from|to) (.+)")
_ESCAPED = re.compile(rb"\\([0-7]{3}|.)")
_ESCAPES = dict(zip(b"abtnvfr", b"\a\b\t\n\v\f\r"))


@dataclass
class Section:
    """The part of a patch that is about one file."""

    lines: list[bytes] = field(default_factory=list)  # with empty ones for other text
    names: list[str] = field(default_factory=list)  # of the file, as its headers have them
    makes: bool = False  # whether it may be a new file
    changes: bool = False  # whether something is done with it
    has_hunks: bool = False  # whether lines of it change
    moves: bool = False  # whether it gets another name
    link: bool = False  # whether it is, or becomes, a link

    def add_hunk(self, first_line: int, lines: Iterable[bytes]) -> None:
        """Add a hunk. first_line: the number of its first line before the change, 0 for none."""
        self.makes |= not self.has_hunks and first_line == 0
        self.changes = self.has_hunks = True
        self.lines += lines


class _Lines:
    """The lines of a patch, counted; the next one can be looked at."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.bytes, self.count = file, 0, 0
        self.next = file.readline(MOST_LINE)

    def take(self) -> bytes:
        line, self.next = self.next, self.file.readline(MOST_LINE)
        self.bytes += len(line)
        self.count += 1
        if self.bytes > MOST_BYTES or self.count > MOST_LINES or len(line) == MOST_LINE:
            raise Refused(f"it is larger than any patch of a kernel: at most {MOST_BYTES >> 20} MB,"
                          f" {MOST_LINES} lines, {MOST_LINE >> 20} MB a line")
        return line


def sections(file: IO[bytes]) -> Iterator[Section]:
    """The parts of a patch, as `patch` finds them. Raises Refused."""
    lines, section = _Lines(file), Section()
    while line := lines.take():
        words = line.rstrip(b"\r\n")
        if _begins(words, lines.next, section):
            yield section
            section = Section()

        if hunk := _HUNK.match(words):
            before, after = int(hunk[2] or 1), int(hunk[3] or 1)
            section.add_hunk(int(hunk[1]), [line, *_lines_of_hunk(lines, before, after)])
        elif words.startswith(b"***************") and (hunk := _CONTEXT.match(lines.next)):
            section.add_hunk(int(hunk[1]), [line, *_lines_of_context(lines)])
        elif _is_header(words, lines.next):
            section.names = [*_names(words[4:]), *_names(lines.next[4:]), *section.names]
            section.lines += [line, lines.take()]
        else:
            section.lines.append(line if _read_header(words, section) else b"\n")
    yield section


def _is_header(words: bytes, following: bytes) -> bool:
    """Whether a line and the following one name a file, in a unified or in a context diff."""
    if words.startswith(b"--- "):
        return following.startswith(b"+++ ")
    return (words.startswith(b"*** ") and following.startswith(b"--- ")
            and not _CONTEXT.match(words))


def _begins(words: bytes, following: bytes, section: Section) -> bool:
    """Whether a line is the first one about another file than this section's."""
    if words.startswith((b"diff --git ", b"Index: ")):
        return section.changes or bool(section.names)
    return section.has_hunks and _is_header(words, following)


def _read_header(words: bytes, section: Section) -> bool:
    """Take a line between hunks; return whether `patch` reads it. Raises Refused."""
    if words.startswith(b"diff --git "):
        section.names += _names_of_git(words[11:])
    elif words.startswith(b"Index: "):
        section.names += _names(words[7:])
    elif mode := _MODE.match(words):
        section.link |= not _FILE.fullmatch(mode[2] or mode[3])
        section.makes |= mode[1] == b"new file"
        section.changes |= section.link or mode[1] in (b"new file", b"deleted file")
    elif moved := _MOVED.match(words):
        names = _names(moved[2] if moved[2].startswith(b'"') else b"a/" + moved[2] + b"\t")
        section.names = names if moved[1] == b"from" else [*section.names, *names]
        section.changes = section.moves = True
    elif words.startswith(b"GIT binary patch"):
        raise Refused("it changes a binary file")
    elif section.names and not section.changes and _OTHER_DIFF.match(words):
        raise Refused("it is neither a unified nor a context diff: make it with diff -u")
    else:
        return words.startswith((b"similarity index ", b"dissimilarity index "))
    return True


def _lines_of_hunk(lines: _Lines, before: int, after: int) -> Iterator[bytes]:
    """The lines of a hunk that has so many lines before and after."""
    while before > 0 or after > 0:
        first = lines.next[:1]
        if first not in (b" ", b"-", b"+", b"\\", b"\t", b"\n", b"\r"):
            return  # `patch` says what is wrong with it
        before -= first not in (b"+", b"\\")
        after -= first not in (b"-", b"\\")
        yield lines.take()
    if lines.next.startswith(b"\\"):  # no newline at the end of the file
        yield lines.take()


def _lines_of_context(lines: _Lines) -> Iterator[bytes]:
    """The lines of a hunk of a context diff."""
    while (lines.next[:2] in (b"  ", b"! ", b"+ ", b"- ", b"\\ ")
           or _CONTEXT.match(lines.next) or _CONTEXT_TO.match(lines.next)):
        yield lines.take()


def _names_of_git(words: bytes) -> list[str]:
    """The name in `a/NAME b/NAME`; [] for two names, which other lines have."""
    before, after = words[:len(words) // 2], words[len(words) // 2 + 1:]
    return _names(before + b"\t") if before[1:] == after[1:] else []


def _names(words: bytes) -> list[str]:
    """The name in a header without its first folder, as `patch -p1` has it; none of /dev/null.

    Raises Refused.
    """
    words = words.rstrip(b"\r\n")
    if words.startswith(b'"'):  # by git, with escapes as in C
        end = re.match(rb'"((?:[^"\\]|\\.)*)"', words)
        words = _ESCAPED.sub(_unescape, end[1] if end else words)
    elif b"\t" in words:  # a date follows
        words = words.partition(b"\t")[0]
    else:
        words = words.partition(b" ")[0]

    path = os.fsdecode(words)
    if path == NONE:
        return []
    first, *parts = path.split("/")
    if "" in (first, *parts) or not parts or ".." in parts or re.search("[\x00-\x1f\x7f]", path):
        raise Refused(f"it names {path!r}, which is no file of a kernel's source (paths begin with"
                      " a/ and b/, as git writes them)")
    return [str(PurePosixPath(*parts))]


def _unescape(escape: re.Match[bytes]) -> bytes:
    code = escape[1]
    if len(code) == 3:
        return bytes([int(code, 8) & 255])
    return bytes([_ESCAPES.get(code[0], code[0])])


def split(patch: Path, source: Path, to: Path, filtered: Path) -> list[str]:
    """The files that are left out, since the guest has no part of them. Raises Refused.

    What is copied is noted in a file beside `to`: sync sees what the patch removed. In the filtered
    patch every line has the number that it has in the patch.
    """
    taken, left_out = 0, []
    with patch.open("rb") as file, filtered.open("wb") as rest, \
            (to.parent / COPIED).open("ab") as copied:
        for section in sections(file):
            if section.changes and _is_the_guests(section, source, to):
                taken += 1
                copy(source, to, section.names)
                copied.writelines(os.fsencode(f"{name}\0") for name in section.names)
                rest.writelines(section.lines)
            else:
                if section.changes:
                    left_out += section.names[:1]
                rest.write(b"\n" * len(section.lines))
            if taken + len(left_out) > MOST_FILES:
                raise Refused(f"it changes more than {MOST_FILES} files")

    if not taken:
        raise Refused("it changes no file of the guest's kernel (is it a patch, as git diff writes"
                      " it?)")
    return left_out


def _is_the_guests(section: Section, source: Path, to: Path) -> bool:
    """Whether the guest has a part of the file, or is to have. Raises Refused."""
    if not section.names:
        raise Refused("it has a part that names no file")

    known = section.names[:1] if section.moves else section.names
    is_there = any(os.path.lexists(folder / name) for folder in (to, source) for name in known)
    if not (is_there or section.makes or PurePosixPath(known[0]).parts[0] in WHOLE):
        return False

    if section.link:
        raise Refused(f"it makes or changes a link, {known[0]}, which may lead anywhere")
    if not (is_there or section.makes):
        raise Refused(f"there is no {known[0]} in this source")
    return True


_WHY = (
    ("The next patch would create the file (.+),$", "{}: it makes this file, and it is there"),
    ("The next patch would delete the file (.+),$", "{}: it removes this file, which is not there"),
    ("The next patch would empty out the file (.+),$", "{}: it empties this file, which is empty"),
    ("File (.+) is not (?:empty after patch|a regular file)", "{}: it is not what the patch says"),
    (r"malformed patch at line (\d+)", "its line {} is no line of a patch"),
    (r"unexpected end of file in patch at line (\d+)", "it ends at line {}, within a part"),
    (r"can't find file to patch at input line (\d+)", "the file of its line {} is not there"))


def why(output: str) -> str:
    """The first failure that `patch` reported."""
    file = ""
    for line in output.splitlines():
        if named := re.match(r"(?:patching|checking) file '?(.+?)'?(?: \(.*\))?$", line):
            file = named[1]
        if failed := re.match(r"Hunk #(\d+) FAILED at (\d+)", line):
            return f"{file}:{failed[2]}: other lines stand there (part {failed[1]} of that file)"
        if "previously applied" in line:
            return f"{file}: it is applied already"
        for pattern, words in _WHY:
            if found := re.search(pattern, line):
                return words.format(found[1])
    return next(iter(output.splitlines()), "no reason was given")


# The tree that is compiled -----------------------------------------------------------

def sync(source: Path, changed: Path, tree: Path) -> list[str]:
    """The names of the files that the tree was given anew, or that it lost. Raises Refused."""
    wanted = _wanted(source, changed, tree)
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
        _refuse_links(tree, str(PurePosixPath(name).parent))
        place.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():
            place.symlink_to(os.readlink(path))
        else:
            shutil.copyfile(path, place)
            shutil.copymode(path, place)
        written.append(name)
    return written


def _wanted(source: Path, changed: Path, tree: Path) -> dict[str, Path]:
    """The files that a tree is to have, by their names in it. Raises Refused."""
    wanted = {name: source / name for name in _files(source)}
    with suppress(FileNotFoundError):
        for changes in (changed.parent / COPIED).read_bytes().split(b"\0"):
            wanted.pop(os.fsdecode(changes), None)  # a patch may have removed it

    for name in _files(changed):
        _refuse_links(tree, str(PurePosixPath(name).parent))
        if (changed / name).is_symlink():
            raise Refused(f"a patch makes {name} a link")
        wanted[name] = changed / name
    return wanted


def _same(path: Path, place: Path) -> bool:
    """Whether two files, or two links, are the same."""
    if path.is_symlink() or place.is_symlink():
        return (path.is_symlink() and place.is_symlink()
                and os.readlink(path) == os.readlink(place))
    return os.path.samefile(path, place) or filecmp.cmp(path, place, shallow=False)


def _files(folder: Path) -> Iterator[str]:
    """The paths in a folder of all that is no folder."""
    for place, folders, names in os.walk(folder):
        inside = os.path.relpath(place, folder)
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]
        for name in (*names, *links):
            yield os.path.normpath(os.path.join(inside, name))


def _report_left_out(names: list[str]) -> None:
    """Print which files of a patch are left out, if any."""
    if not names:
        return
    listed = ", ".join(names[:MOST_NAMES])
    if len(names) > MOST_NAMES:
        listed += f" and {len(names) - MOST_NAMES} more"
    print(f"left out, since the guest has no such file: {listed}")


def main(words: list[str]) -> int:
    try:
        if words[0] == "copy":
            copy(Path(words[1]), Path(words[2]), words[3:])
        elif words[0] == "split":
            _report_left_out(split(*map(Path, words[1:])))
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
