"""The result of a command in virtual time, and the interface of its watcher."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vtime.command.guest import CommandGuest


@dataclass(frozen=True)
class Result:
    """How a command ended, and where its output and its files are."""

    # Exit status as in a shell; 124 if a timeout ended the command, 130 if a second Ctrl-C did, 143
    # if SIGTERM did.
    status: int
    # A file in which each line has the seconds of the machine's clock, "out" or "err", and the
    # text.
    output: Path
    # The folder with the files that the command wrote, and how many these are.
    files: Path
    file_count: int
    # A pcapng file with every packet of every link; None if it was not requested or the command
    # removed it.
    capture: Path | None
    # Seconds on the machine's clock, and on the host's.
    clock_s: float
    wall_s: float
    # Lines about what is missing or went wrong, and how many more there were.
    troubles: tuple[str, ...]
    omitted_count: int
    # Whether all output and all files are there.
    is_whole: bool
    # Names of programs that waited without sleeping, so that the clock was moved on for them.
    spinning: tuple[str, ...]
    # How many lines of output are stored in pieces because they are longer than 64 kB; pieces after
    # the first are marked with +.
    cut_lines: int
    # Lines with the time in ns, the number and the name of each network namespace that `ip netns`
    # named.
    namespaces: tuple[str, ...] = ()
    # Lines of JSON with the links that Mininet was asked for and the commands that it was given, as
    # the guest has written them.
    calls: tuple[str, ...] = ()


class Watcher:
    """Follows a running command. Its methods do nothing; override those that are needed."""

    terminal = False  # whether the command uses this process's terminal
    reads_input = False  # whether it has this process's standard input; else it has none

    def begin(self, guest: CommandGuest) -> None:
        """Called when the machine has started: it can then be interrupted, stopped and resized."""

    def print(self, is_error: bool, content: bytes) -> str:
        """Called with what the command prints; return why it cannot be shown, or ""."""
        return ""

    def tick(self, clock_s: float, is_full: bool) -> None:
        """Called for each second of the machine's clock. is_full: its memory is nearly used up."""

    def write(self, name: str) -> None:
        """Called before a file of its folder is written back."""
