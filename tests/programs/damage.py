"""Damages inputs as a stranger's may be damaged: scenario files, command lines, results, captures.

A `Draw` of Hypothesis draws each value and each place, so the same seed always gives the same
damage.
"""

from __future__ import annotations

import copy
import datetime
import json
import os
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from itertools import zip_longest
from pathlib import Path
from typing import Any, Protocol, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")
NUMBERS = (0, -1, 1, 2, 3, 10, 1000, 65_536, 2**31, 2**63, 2**64, 10**30, -10**30, 0.0, -0.0,
           1e-12, 5e-324, 0.1, 0.5, 1.5, 1e15, 1e308, -1e308, float("nan"), float("inf"),
           -float("inf"))
WORDS = ("", " ", "x", "none", "same", "nan", "rtt_ms", "bdp_bytes", "initcwnd", "joint", "loss",
         "window_sweep", "percentiles", "../../etc/passwd", "/dev/zero", "a/b", "$x^{2$", "<b>&",
         "\x00", "\x1b[31m", "line\nline", "\u202e", "ünï\U0001f600", "=1+1", "%s %d {0}",
         "x" * 5000, "paper_figure5.csv", "ietf78.csv", "3+10", "10*0.5+3*0.5", "cubic", "1" * 400)
# Pieces that are inserted in a file's bytes.
BYTES = (b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\n\n", b"\x1b[2J", "é".encode("latin-1"),
         b'"', b"'''", b"]]", b"[", b"{", b",", b"=", b"#", b"-", b"9" * 5000, b"[" * 20_000,
         b"{a=" * 2000, b"nan", b"1e999", b"\xed\xa0\x80")


def nested(depth: int) -> list[Any]:
    return reduce(lambda inner, _: [inner], range(depth), [])


# A value that hardly any key expects.
ODD: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(NUMBERS), st.sampled_from(WORDS), st.integers(), st.floats(),
    st.text(max_size=9), st.booleans(), st.dates(),
    st.recursive(st.sampled_from((*NUMBERS, *WORDS)), lambda value: st.lists(value, max_size=3)
                 | st.dictionaries(st.sampled_from(WORDS), value, max_size=2), max_leaves=5),
    st.builds(nested, st.sampled_from((5, 60, 400))), st.builds(list, st.just(range(2000))))


class Draw(Protocol):
    """A function that draws a value of a strategy: hypothesis.strategies.data().draw."""

    def __call__(self, strategy: st.SearchStrategy[T]) -> T: ...


def pick(draw: Draw, options: Sequence[T]) -> T:
    return options[draw(st.integers(0, len(options) - 1))]


def percent(draw: Draw) -> int:
    """A number from 0 to 99, each with the same probability."""
    return draw(st.integers(0, 99))


# Trees: TOML and JSON -----------------------------------------------------------------

def tree(content: Any, draw: Draw) -> Any:
    """The content with one to three of its values, keys or items damaged."""
    damaged = copy.deepcopy(content)
    for _ in range(pick(draw, (1, 1, 1, 2, 3))):
        if places := _places(damaged):
            _damage(*pick(draw, places), draw)
    return damaged


def huge(content: Any, draw: Draw) -> Any:
    """The content with some of its numbers and lists of numbers replaced by up to 3000 numbers."""
    enlarged = copy.deepcopy(content)
    numbers = []
    for owner, key in _places(enlarged):
        values = owner[key] if isinstance(owner[key], list) else [owner[key]]
        if all(type(value) is int for value in values):
            numbers.append((owner, key))

    for _ in range(draw(st.integers(1, 4)) if numbers else 0):
        owner, key = pick(draw, numbers)
        owner[key] = list(range(1, pick(draw, (30, 300, 3000))))
    return enlarged


def _places(content: Any) -> list[tuple[Any, Any]]:
    """Each table or list with each of its keys or indices, at any depth up to 50."""
    places, waiting = [], [(content, 0)]
    while waiting:
        value, depth = waiting.pop()
        keys: Iterable[Any] = ()
        if isinstance(value, dict):
            keys = list(value)
        elif isinstance(value, list):
            keys = range(len(value))
        for key in keys:
            places.append((value, key))
            if depth < 50:
                waiting.append((value[key], depth + 1))
    return places


def _damage(owner: Any, key: Any, draw: Draw) -> None:
    """Remove, double, rename or change one key of a table or one item of a list."""
    value, how = owner[key], percent(draw)
    if how < 12:
        del owner[key]
    elif how < 20 and isinstance(owner, list):
        owner.insert(draw(st.integers(0, len(owner))), copy.deepcopy(value))
    elif how < 20:
        owner[pick(draw, (*owner, *WORDS, str(key)[:-1], "kind"))] = owner.pop(key)
    elif how < 85 and isinstance(value, (int, float)) and not isinstance(value, bool):
        owner[key] = pick(draw, (
            -value, value + 1, value * 2, value * 10, value / 2 if abs(value) < 1e300 else 0,
            value - 1, str(value), [value], pick(draw, NUMBERS)))
    elif how < 30 and isinstance(value, str):
        owner[key] = spliced(value, draw(st.sampled_from(WORDS) | st.text(max_size=2)), draw)
    elif how < 70:
        other, place = pick(draw, _places(owner))
        owner[key] = copy.deepcopy(other[place])
    else:
        owner[key] = draw(ODD)


def toml(table: dict[str, Any], first_line: str = "# A claim.") -> str:
    """A TOML document in which every table is inline."""
    return "\n".join([first_line, *(f"{_key(name)} = {_inline(value)}"
                                    for name, value in table.items()), ""])


def _inline(content: Any) -> str:
    if isinstance(content, dict):
        return "{" + ", ".join(f"{_key(key)} = {_inline(value)}"
                               for key, value in content.items()) + "}"
    if isinstance(content, list):
        return f"[{', '.join(map(_inline, content))}]"
    if isinstance(content, (datetime.date, datetime.time)):
        return content.isoformat()
    return _key(content) if isinstance(content, str) else json.dumps(content).replace(
        "NaN", "nan").replace("Infinity", "inf")


def _key(text: str) -> str:
    return json.dumps(str(text), ensure_ascii=False).replace("\x7f", "\\u007f")


# Bytes: any file ----------------------------------------------------------------------

def data(content: bytes, draw: Draw) -> bytes:
    """The bytes with stretches removed or replaced, lines lost or doubled, or recoded."""
    for _ in range(pick(draw, (1, 1, 2, 4))):
        how = percent(draw)
        if how < 50:
            content = spliced(content, draw(st.sampled_from(BYTES) | st.binary(max_size=3)), draw)
        elif how < 85 and content:
            lines = content.splitlines(keepends=True)
            place, other = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
            lines[place:place + 1] = pick(draw, ([], [lines[other]], [lines[other], lines[place]]))
            content = b"".join(lines)
        else:
            encoding = pick(draw, ("utf-16", "utf-32", "latin-1", "cp1252", "utf-7", "utf-8-sig"))
            content = content.decode(errors="replace").encode(encoding, errors="replace")
    return content


def spliced(content: Any, piece: Any, draw: Draw) -> Any:
    """Text or bytes in which a piece replaces a stretch: of none, one, some or all that follows."""
    start = draw(st.integers(0, len(content)))
    end = pick(draw, (start, start + 1, draw(st.integers(start, len(content))), len(content)))
    return content[:start] + piece + content[end:]


# Tables: CSV --------------------------------------------------------------------------

def cells(content: bytes, draw: Draw) -> bytes:
    """A CSV file with some of its cells changed, a column lost, renamed or doubled."""
    rows = [line.split(",") for line in content.decode(errors="replace").splitlines()]
    columns = [list(column) for column in zip_longest(*rows, fillvalue="")]
    column, how = pick(draw, columns), percent(draw)
    if how < 10:
        columns.remove(column)
    elif how < 20:
        column[0] = pick(draw, (*rows[0], *WORDS))
    elif how < 30:
        columns.append(column)
    else:
        value = pick(draw, (*map(str, NUMBERS), *WORDS, "true", "false", "fail", "skipped"))
        rest = range(1, len(column))
        for row in rest if how < 65 else [pick(draw, rest) for _ in range(3 if rest else 0)]:
            column[row] = value
    return "".join(",".join(row) + "\n" for row in zip(*columns)).encode(errors="replace")


# In place of a file -------------------------------------------------------------------

def put(path: Path, content: bytes, draw: Draw) -> None:
    """Write a file; or leave something there that is no file, or none that can be read."""
    path.unlink(missing_ok=True)
    if percent(draw) < 96:
        path.write_bytes(content)
        return
    ways: tuple[Callable[[], object], ...] = (
        path.mkdir, lambda: os.mkfifo(path), lambda: path.symlink_to("/dev/zero"),
        lambda: path.symlink_to(path), lambda: path.symlink_to("/nonexistent"),
        lambda: path.write_bytes(b""), lambda: None, lambda: sparse(path, content))
    pick(draw, ways)()


def sparse(path: Path, content: bytes) -> None:
    """With 20 GB that take no room on the disk."""
    path.write_bytes(content)
    os.truncate(path, 20 << 30)


# Command lines ------------------------------------------------------------------------

def flags(known: dict[str, tuple[str, ...]], names: Sequence[str], draw: Draw) -> list[str]:
    """A command line; known: values that each flag takes, by the flag."""
    def values(flag: str) -> Iterable[str]:
        for _ in range(pick(draw, (1, 1, 2, 4))):
            yield pick(draw, known[flag] if percent(draw) < 50 else (*map(str, NUMBERS), *WORDS))

    line = []
    for flag in draw(st.lists(st.sampled_from(sorted(known)), max_size=4, unique=True)):
        line += [flag, ",".join(values(flag))] if known[flag] and percent(draw) < 95 else [flag]
    if percent(draw) < 10:
        line.insert(draw(st.integers(0, len(line))), pick(draw, WORDS))
    if percent(draw) < 60:
        line += ["--scenario", *draw(st.lists(st.sampled_from(names), min_size=1, max_size=2))]
    return line
