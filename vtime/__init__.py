"""A machine for anybody's command, whose clock skips idle time: `vtime.run`.

README.md of this folder has what it promises, its clock's rule, and its limits. Modules of this
package run in guests, too: what is imported here, every guest imports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engines.command.guest import CommandGuest


@dataclass(frozen=True)
class Result:
    """How a command ended, and where what it left is.

    status: its exit status, as a shell has it; 124 where a timeout ended it, 130 where a second
    Ctrl-C did, 143 where SIGTERM did. output: a file; each line has the seconds of the machine's
    clock, "out" or "err", and what was printed. files: the folder with what it wrote, file_count of
    them. capture: every packet of every link in pcapng, None where none was asked for, or the
    command took it away. clock_s: seconds that passed on the machine's clock, wall_s: here. troubles:
    lines about what was left out or went wrong, untold_count: how many more there were. is_whole:
    whether all that it wrote and printed is there. spinning: names of its programs that waited
    without sleeping, so that the clock was moved on. cut_lines: how many lines of output are in
    pieces, since they are longer than 64 kB; the pieces after the first are marked with +.
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


class Watcher:
    """Sees a command run. Nothing is done here; whoever wants something done overrides it.

    terminal: whether this process's terminal is the command's: what is typed goes to it.
    reads_input: whether the command has this process's standard input; else it has none.
    """

    terminal = False
    reads_input = False

    def begin(self, guest: CommandGuest) -> None:
        """The machine has started; the guest can be interrupted, stopped, and its terminal resized."""

    def print(self, is_error: bool, content: bytes) -> str:
        """The command has printed something; why it cannot be passed on, "" where it can."""
        return ""

    def tick(self, clock_s: float, is_full: bool) -> None:
        """A second of the machine's clock has passed. is_full: nearly all of its memory is used."""

    def write(self, name: str) -> None:
        """A file of its folder is about to be written back."""


def run(command: Sequence[str], folder: Path, into: Path, *, memory_mb: int = 1024, seed: int = 1,
        capture_bytes: int = 0, readable: Sequence[Path] = (),
        environment: Mapping[str, str] | None = None, clock_limit_s: float | None = None,
        wall_limit_s: float | None = None, most_bytes: int = 1 << 30, most_files: int = 100_000,
        write_back: bool = False, watcher: Watcher | None = None) -> Result:
    """Run a command as root of a machine of its own, and keep what it leaves in the folder `into`.

    folder: where it starts; it reads this folder, and what it writes there goes to into/files, or
    with write_back here. into: a folder that is there, for this command alone. capture_bytes: at
    most so many bytes of packets are kept, 0 for none. readable: what else it reads. environment:
    variables besides what every command has. seed: of everything random in the machine.
    clock_limit_s, wall_limit_s: the command is ended after so many seconds of the machine's clock,
    or of ours. most_bytes, most_files: of what comes back.

    Raises vtime.console.EngineCannot where this machine cannot, its words say what to do;
    EngineError where the machine ended before it ran the command; base.errors.WriteError where
    `into` cannot be written to.
    """
    from engines.command.guest import CommandRequest  # guests import this file, and none of these
    from vtime.session import attend
    watcher = watcher or Watcher()
    request = CommandRequest(
        list(command), folder.resolve(), [str(path.resolve()) for path in readable],
        dict(environment or {}), memory_mb, seed, clock_limit_s, wall_limit_s, most_bytes, most_files,
        capture_bytes, watcher.reads_input)
    return attend(request, into, write_back, watcher)
