"""What a command in virtual time came to, and who watches it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vtime.command.guest import CommandGuest


@dataclass(frozen=True)
class Result:
    """How a command ended, and where its output and its files are.

    status: its exit status, as a shell has it; 124 where a timeout ended it, 130 where a second
    Ctrl-C did, 143 where SIGTERM did. output: a file; each line has the seconds of the machine's
    clock, "out" or "err", and what was printed. files: the folder with what it wrote, file_count of
    them. capture: every packet of every link in pcapng, None if none was requested, or the
    command removed it. clock_s: seconds that passed on the machine's clock, wall_s: on the host.
    troubles: lines about what is missing or went wrong, untold_count: how many more there were.
    is_whole: whether all that it wrote and printed is there. spinning: names of its programs that
    waited without sleeping, so that the clock was moved on. namespaces: lines with the time in ns,
    the number and the name of each network namespace that `ip netns` named. cut_lines: how many
    lines of output are in pieces, since they are longer than 64 kB; the pieces after the first are
    marked with +.
    """

    status: int
    output: Path
    files: Path
    file_count: int
    capture: Path | None
    clock_s: float
    wall_s: float
    troubles: tuple[str, ...]
    untold_count: int
    is_whole: bool
    spinning: tuple[str, ...]
    cut_lines: int
    namespaces: tuple[str, ...] = ()


class Watcher:
    """Sees a command run. Nothing is done here; whoever wants something done overrides it.

    terminal: whether this process's terminal is the command's: what is typed goes to it.
    reads_input: whether the command has this process's standard input; else it has none.
    """

    terminal = False
    reads_input = False

    def begin(self, guest: CommandGuest) -> None:
        """The machine has started: it can be interrupted, stopped, and its terminal resized."""

    def print(self, is_error: bool, content: bytes) -> str:
        """The command has printed something; why it cannot be passed on, "" if it can."""
        return ""

    def tick(self, clock_s: float, is_full: bool) -> None:
        """A second of the machine's clock has passed. is_full: nearly all of its memory is used."""

    def write(self, name: str) -> None:
        """A file of its folder is about to be written back."""
