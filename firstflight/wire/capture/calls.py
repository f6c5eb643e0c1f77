"""The calls of a script to Mininet, which vtime/command/first_flight_calls.py records in a guest.

A command is root in the guest and may have written anything into the record, so a line that cannot
be read is skipped.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from firstflight.base.untrusted import quoted

_MOST_LINE = 20_000  # characters that are read of a line
_MOST_SHOWN = 100  # characters of a text that a report may show
_MOST_WORDS = 400  # the kernel keeps 400 characters of a command


@dataclass(frozen=True)
class LinkEnd:
    """An interface that Mininet made."""

    device: str
    kind: str  # the name of its class
    is_mininets: bool  # whether the class is Mininet's, not the script's
    given: Mapping[str, str]  # the parameters that the script set, by name, as text
    ignored: frozenset[str]  # names of parameters that no method of the class takes
    most_bw: float  # the largest bandwidth that the class accepts, in Mbit/s; 0 for no limit


@dataclass(frozen=True)
class LinkCall:
    """A link that Mininet made."""

    place: str  # such as "line 12"
    kind: str  # the name of the link's class
    ends: tuple[LinkEnd, ...]


@dataclass(frozen=True)
class CommandCall:
    """A command that the script gave to a host, or started itself."""

    place: str  # such as "line 12"
    words: str  # without quotes
    is_outside_hosts: bool = False  # the script started it itself, when there were links already
    is_missing: bool = False  # there is no such program, which Mininet's popen does not report


@dataclass(frozen=True)
class Calls:
    """All calls of a script, in order."""

    links: Sequence[LinkCall] = ()
    commands: Sequence[CommandCall] = ()

    def place_of(self, words: str) -> str:
        """The script's line that gave a command, as "line 12"; "" where no line has its words.

        words: the command as the kernel recorded it.
        """
        def comparable(text: str) -> str:
            # sysctl replaces the "=" in its own arguments, which the kernel shows.
            return f" {text} ".replace("=", " ")

        program, space, rest = words.partition(" ")
        wanted = comparable(f"{PurePosixPath(program).name}{space}{rest[:_MOST_WORDS]}")
        return next((call.place for call in self.commands if wanted in comparable(call.words)), "")


def read_calls(lines: Iterable[str], command: Sequence[str]) -> Calls:
    """The calls in the guest's lines of JSON. command: the command's words, which name the script.
    """
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
                commands.append(CommandCall(
                    place, words, is_outside_hosts=bool(links) and not read.get("node"),
                    is_missing=bool(read.get("is_missing"))))
    return Calls(links, commands)


def _place(at: Sequence[Any], scripts: set[str]) -> str:
    """A line in words, with the file's name unless it is the script; "" for a file in /usr."""
    file, line = str(at[0]), int(at[1])
    name = PurePosixPath(_short(file)).name
    if not line or file.startswith("/usr/"):
        return ""
    return f"line {line}" if name in scripts else f"{name} line {line}"


def _end(end: Mapping[str, Any]) -> LinkEnd:
    """The interface that the guest described."""
    given = {_short(name): _short(value) for name, value in end["given"].items()}
    ignored = frozenset(map(_short, end["ignored"]))
    return LinkEnd(device=_short(end["device"]), kind=_short(end["class"]),
                   is_mininets=bool(end["is_mininets"]), given=given, ignored=ignored,
                   most_bw=float(end["most_bw"] or 0))


def _short(text: object) -> str:
    """The first characters of a text, without control characters, so that it may be shown."""
    return quoted(str(text), _MOST_SHOWN)


def _without_quotes(text: str) -> str:
    """The words of a command as its program gets them, joined by single spaces.

    Characters at the end of a word by which a shell separates commands (;&|) are dropped, and so is
    the folder of the program.
    """
    try:
        words = shlex.split(text)
    except ValueError:  # a quote that is not closed
        words = text.split()
    stripped = [word.rstrip(";&|)") for word in words]
    kept = [word for word in stripped if word]
    if kept and kept[0].startswith("/"):
        kept[0] = PurePosixPath(kept[0]).name
    return " ".join(kept)
