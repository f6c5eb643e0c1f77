"""Damages inputs: scenario files, command lines, results and captures, as a stranger's may be.

Every function draws from the `random.Random` that it is given and from
nothing else: a seed always gives the same damage.
"""

from __future__ import annotations

import copy
import datetime
import json
import os
import string
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

NUMBERS = (0, -1, 1, 2, 3, 10, 1000, 65_536, 2**31, 2**63, 2**64, 10**30, -10**30, 0.0, -0.0,
           1e-12, 5e-324, 0.1, 0.5, 1.5, 1e15, 1e308, -1e308, float("nan"), float("inf"),
           -float("inf"))
WORDS = ("", " ", "x", "none", "same", "nan", "rtt_ms", "bdp_bytes", "initcwnd", "joint", "loss",
         "window_sweep", "percentiles", "../../etc/passwd", "/dev/zero", "a/b", "$x^{2$", "<b>&",
         "\x00", "\x1b[31m", "line\nline", "\u202e", "ünï\U0001f600", "=1+1", "%s %d {0}",
         "x" * 5000, "paper_figure5.csv", "ietf78.csv", "3+10", "10*0.5+3*0.5", "cubic", "1" * 400)
# What is inserted in a file's bytes.
BYTES = (b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\n\n", b"\x1b[2J", "é".encode("latin-1"),
         b'"', b"'''", b"]]", b"[", b"{", b",", b"=", b"#", b"-", b"9" * 5000, b"[" * 20_000,
         b"{a=" * 2000, b"nan", b"1e999", b"\xed\xa0\x80")


def hostile(random: Random) -> Any:
    """A value that hardly any key expects."""
    makers: tuple[Callable[[], Any], ...] = (
        lambda: random.choice(NUMBERS), lambda: random.choice(WORDS),
        lambda: random.choice((True, False)), lambda: [], lambda: {},
        lambda: [random.choice(NUMBERS) for _ in range(random.randint(1, 3))],
        lambda: [random.choice(WORDS), random.choice(NUMBERS)],
        lambda: {random.choice(WORDS): random.choice(NUMBERS)},
        lambda: nested(random.choice((5, 60, 400))),
        lambda: datetime.date(2010, 4, 1), lambda: list(range(2000)))
    return random.choice(makers)()


def nested(depth: int) -> list[Any]:
    made: list[Any] = []
    for _ in range(depth):
        made = [made]
    return made


# Trees: TOML and JSON -----------------------------------------------------------------

def tree(content: Any, random: Random) -> Any:
    """The content with one to three of its values, keys or items damaged."""
    made = copy.deepcopy(content)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        places = _places(made)
        if places:
            _damage(*random.choice(places), random)
    return made


def huge(content: Any, random: Random) -> Any:
    """The content with some of its numbers and lists of numbers replaced by thousands."""
    made = copy.deepcopy(content)
    numbers = [(owner, key) for owner, key in _places(made) if isinstance(owner[key], (int, list))
               and all(type(each) is int for each in ([owner[key]], owner[key])[
                   isinstance(owner[key], list)])]
    for owner, key in random.sample(numbers, min(len(numbers), random.randint(1, 4))):
        owner[key] = list(range(1, random.choice((30, 300, 3000))))
    return made


def _places(content: Any) -> list[tuple[Any, Any]]:
    """Each container with each of its keys, at any depth up to 50."""
    found, waiting = [], [(content, 0)]
    while waiting:
        each, depth = waiting.pop()
        keys = (list(each) if isinstance(each, dict) else
                range(len(each)) if isinstance(each, list) else ())
        for key in keys:
            found.append((each, key))
            if depth < 50:
                waiting.append((each[key], depth + 1))
    return found


def _damage(owner: Any, key: Any, random: Random) -> None:
    """One key of a table, or one item of a list: gone, doubled, renamed, changed."""
    value, how = owner[key], random.random()
    if how < 0.12:
        del owner[key]
    elif how < 0.2 and isinstance(owner, list):
        owner.insert(random.randrange(len(owner) + 1), copy.deepcopy(value))
    elif how < 0.2:
        owner[random.choice((*owner, *WORDS, str(key)[:-1], "kind"))] = owner.pop(key)
    elif how < 0.85 and isinstance(value, (int, float)) and not isinstance(value, bool):
        owner[key] = random.choice((-value, value + 1, value + 1, value * 2, value * 2,
                                    value * 10, value * 10, value / 2 if abs(value) < 1e300 else 0,
                                    value - 1, str(value), [value], random.choice(NUMBERS)))
    elif how < 0.3 and isinstance(value, str) and value:
        place = random.randrange(len(value))
        owner[key] = value[:place] + random.choice((*WORDS, *string.printable)) + value[place + 1:]
    elif how < 0.7:
        others = _places(owner)
        other, place = random.choice(others)
        owner[key] = copy.deepcopy(other[place])
    else:
        owner[key] = hostile(random)


def toml(table: dict[str, Any], first_line: str = "# A claim.") -> str:
    """A TOML document: every table inline."""
    return "\n".join([first_line, *(f"{_key(name)} = {_inline(value)}"
                                    for name, value in table.items()), ""])


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {_inline(each)}"
                               for key, each in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_inline, value))}]"
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    return _key(value) if isinstance(value, str) else json.dumps(value).replace(
        "NaN", "nan").replace("Infinity", "inf")


def _key(text: str) -> str:
    return json.dumps(str(text), ensure_ascii=False).replace("\x7f", "\\u007f")


# Bytes: any file ----------------------------------------------------------------------

def data(content: bytes, random: Random) -> bytes:
    """The bytes, cut, flipped, with lines lost, doubled or swapped, or in another encoding."""
    for _ in range(random.choice((1, 1, 2, 4))):
        content = random.choice((_cut, _flipped, _inserted, _of_lines, _of_lines, _recoded))(
            content, random)
    return content


def _cut(content: bytes, random: Random) -> bytes:
    start, end = sorted(random.randrange(len(content) + 1) for _ in range(2))
    return random.choice((content[:start], content[start:], content[:start] + content[end:]))


def _flipped(content: bytes, random: Random) -> bytes:
    changed = bytearray(content)
    for _ in range(random.choice((1, 3, 20)) if changed else 0):
        changed[random.randrange(len(changed))] = random.randrange(random.choice((128, 128, 256)))
    return bytes(changed)


def _inserted(content: bytes, random: Random) -> bytes:
    place = random.choice((0, len(content), random.randrange(len(content) + 1)))
    return content[:place] + random.choice(BYTES) + content[place:]


def _of_lines(content: bytes, random: Random) -> bytes:
    lines = content.splitlines(keepends=True)
    if not lines:
        return content
    one, other = random.randrange(len(lines)), random.randrange(len(lines))
    how = random.randrange(3)
    if how == 0:
        del lines[one]
    elif how == 1:
        lines.insert(other, lines[one])
    else:
        lines[one], lines[other] = lines[other], lines[one]
    return b"".join(lines)


def _recoded(content: bytes, random: Random) -> bytes:
    text = content.decode("utf-8", errors="replace")
    encoding = random.choice(("utf-16", "utf-32", "latin-1", "cp1252", "utf-7", "utf-8-sig"))
    return text.encode(encoding, errors="replace")


# Tables: CSV --------------------------------------------------------------------------

def cells(content: bytes, random: Random) -> bytes:
    """A CSV file with some of its cells changed, a column lost, renamed or doubled."""
    rows = [line.split(",") for line in content.decode(errors="replace").splitlines()]
    column = random.randrange(len(rows[0]))
    how = random.random()
    if how < 0.1:
        rows = [row[:column] + row[column + 1:] for row in rows]
    elif how < 0.2:
        rows[0][column] = random.choice((*rows[0], *WORDS))
    elif how < 0.3:
        rows = [[*row, row[min(column, len(row) - 1)]] for row in rows]
    else:
        value = random.choice((*map(str, NUMBERS), *WORDS, "true", "false", "fail", "skipped"))
        chosen = random.choice((rows[1:], random.sample(rows, min(3, len(rows)))))
        for row in chosen:
            row[min(column, len(row) - 1)] = value
    return "\n".join([*(",".join(row) for row in rows), ""]).encode(errors="replace")


# In place of a file -------------------------------------------------------------------

def sparse(path: Path) -> None:
    """20 GB that take no room on the disk."""
    with path.open("ab") as file:
        file.truncate(20 << 30)


def in_place_of(path: Path, random: Random) -> None:
    """Something that is no file, or none that can be read, where the file was."""
    path.unlink()
    made: list[Callable[[], object]] = [
        path.mkdir, lambda: os.mkfifo(path), lambda: path.symlink_to("/dev/zero"),
        lambda: path.symlink_to(path), lambda: path.symlink_to("/nonexistent"),
        lambda: path.write_bytes(b""), lambda: None,
        lambda: sparse(path)]
    random.choice(made)()


# Command lines ------------------------------------------------------------------------

def flags(known: dict[str, tuple[str, ...]], names: tuple[str, ...], random: Random) -> list[str]:
    """A command line; known: values that each flag takes, by the flag."""
    line = []
    for flag in random.sample(sorted(known), random.randint(0, min(4, len(known)))):
        values = [random.choice((*known[flag], *map(str, NUMBERS), *WORDS))
                  if random.random() < 0.5 else random.choice(known[flag] or ("",))
                  for _ in range(random.choice((1, 1, 2, 4)))]
        line += [flag] if random.random() < 0.05 or not known[flag] else [flag, ",".join(values)]
    if random.random() < 0.1:
        line.insert(random.randrange(len(line) + 1), random.choice(WORDS))
    return [*line, *(["--scenario", *random.sample(names, random.choice((1, 1, 1, 2)))]
                     if random.random() < 0.6 else [])]
