"""What a script asked of Mininet, as the guest wrote it down (vtime/command/first_flight_calls.py).

The guest's commands are root there and may have written anything: what cannot be read is skipped.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from firstflight.base.untrusted import quoted

_MOST_LINE, _MOST_SHOWN = 20_000, 100
_MOST_WORDS = 400  # the kernel keeps 400 characters of a command


@dataclass(frozen=True)
class LinkEnd:
    """An interface that Mininet made.

    kind: its class. is_mininets: whether Mininet has that class. given: what the script gave it, as
    text. ignored: names of those that no method of the class takes. most_bw: Mbit/s, 0 for none.
    """

    device: str
    kind: str
    is_mininets: bool
    given: Mapping[str, str]
    ignored: frozenset[str]
    most_bw: float


@dataclass(frozen=True)
class LinkCall:
    """A link that Mininet made. place: as "line 12". kind: the class of the link."""

    place: str
    kind: str
    ends: tuple[LinkEnd, ...]


@dataclass(frozen=True)
class CommandCall:
    """A command that the script gave to a host, or started itself.

    words: without quotes. is_of_root: whether the script started it itself, once there were links.
    is_missing: whether its program was not there, which Mininet's popen tells nobody.
    """

    place: str
    words: str
    is_of_root: bool = False
    is_missing: bool = False


@dataclass(frozen=True)
class Calls:
    """All calls of a run, in order."""

    links: Sequence[LinkCall] = ()
    commands: Sequence[CommandCall] = field(default=())

    def place_of(self, words: str) -> str:
        """The script's line with a command that the kernel saw; "" where no line has its words."""
        program, space, rest = words.partition(" ")
        # sysctl replaces the "=" in its own arguments, which the kernel shows.
        wanted = f" {PurePosixPath(program).name}{space}{rest[:_MOST_WORDS]} ".replace("=", " ")
        return next((call.place for call in self.commands
                     if wanted in f" {call.words} ".replace("=", " ")), "")


def read_calls(lines: Iterable[str], command: Sequence[str]) -> Calls:
    """The calls in a run's lines of JSON. command: its words, which name the script."""
    scripts = {PurePosixPath(word).name for word in command}
    links: list[LinkCall] = []
    commands: list[CommandCall] = []
    for line in lines:
        with suppress(ValueError, TypeError, LookupError, AttributeError, RecursionError):
            read = json.loads(line[:_MOST_LINE])
            place = _place(read["at"], scripts)

            if "link" in read:
                ends = tuple(_end(end) for end in read["ends"])
                links.append(LinkCall(place, _short(read["link"]), ends))
            elif "command" in read:
                words = _without_quotes(str(read["command"]))
                is_of_root = bool(links) and not read.get("node")
                is_missing = bool(read.get("is_missing"))
                commands.append(CommandCall(place, words, is_of_root, is_missing))
    return Calls(links, commands)


def _place(at: Sequence[Any], scripts: set[str]) -> str:
    """A line in words, with the file's name unless it is the script; "" in a program of /usr."""
    file, line = str(at[0]), int(at[1])
    name = PurePosixPath(_short(file)).name
    if not line or file.startswith("/usr/"):
        return ""
    return f"line {line}" if name in scripts else f"{name} line {line}"


def _end(end: Mapping[str, Any]) -> LinkEnd:
    given = {_short(name): _short(value) for name, value in end["given"].items()}
    return LinkEnd(_short(end["device"]), _short(end["class"]), bool(end["is_mininets"]), given,
                   frozenset(map(_short, end["ignored"])), float(end["most_bw"] or 0))


def _short(text: object) -> str:
    """A text that may be shown: without control characters."""
    return quoted(str(text), _MOST_SHOWN)


def _without_quotes(text: str) -> str:
    """The words of a command as programs get them, with one space between two.

    What separates commands in a shell is taken away.
    """
    try:
        words = shlex.split(text)
    except ValueError:  # a quote that is not closed
        words = text.split()
    bare = (word.rstrip(";&|)") for word in words)
    return " ".join(PurePosixPath(word).name if word.startswith("/") and not place else word
                    for place, word in enumerate(filter(None, bare)))
