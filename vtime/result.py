"""The result of a command in virtual time, and the interface of its watcher."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vtime.command.guest import CommandGuest


@dataclass(frozen=True)
class Result:
    """How a command ended, and where its output and its files are.

    status: exit status as in a shell; 124 if a timeout ended the command, 130 if a second Ctrl-C
    did, 143 if SIGTERM did. output: a file in which each line has the seconds of the machine's
    clock, "out" or "err", and the text. files: the folder with the files that the command wrote,
    file_count of them. capture: a pcapng file with every packet of every link; None if it was not
    requested or the command removed it. clock_s: seconds on the machine's clock, wall_s: on the
    host's. troubles: lines about what is missing or went wrong; omitted_count: how many more there
    were. is_whole: whether all output and all files are there. spinning: names of programs that
    waited without sleeping, so that the clock was moved on for them. namespaces: lines with the
    time in ns, the number and the name of each network namespace that `ip netns` named. calls:
    lines of JSON with the links that Mininet was asked for and the commands that it was given, as
    the guest has written them. cut_lines: how many lines of output are stored in pieces because
    they are longer than 64 kB; pieces after the first are marked with +.
    """

    status: int
    output: Path
    files: Path
    file_count: int
    capture: Path | None
    clock_s: float
    wall_s: float
    troubles: tuple[str, ...]
    omitted_count: int
    is_whole: bool
    spinning: tuple[str, ...]
    cut_lines: int
    namespaces: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()


class Watcher:
    """Follows a running command. Its methods do nothing; override those that are needed.

    terminal: whether the command uses this process's terminal. reads_input: whether the command
    has this process's standard input; else it has none.
    """

    terminal = False
    reads_input = False

    def begin(self, guest: CommandGuest) -> None:
        """Called when the machine has started: it can then be interrupted, stopped and resized."""

    def print(self, is_error: bool, content: bytes) -> str:
        """Called with what the command prints; return why it cannot be shown, or ""."""
        return ""

    def tick(self, clock_s: float, is_full: bool) -> None:
        """Called for each second of the machine's clock. is_full: its memory is nearly used up."""

    def write(self, name: str) -> None:
        """Called before a file of its folder is written back."""
