"""What vtime.run takes: a command, its machine, and its limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vtime.command.link_times import LinkTimes


@dataclass(frozen=True)
class CommandRequest:
    """A command that runs as root of a machine of its own."""

    # The program and its arguments.
    words: Sequence[str]
    # Where it starts. It reads this folder, and what it writes there comes back.
    folder: Path
    # Other paths that it reads.
    readable: Sequence[Path] = ()
    # Variables in addition to those of every command.
    environment: Mapping[str, str] = field(default_factory=dict)
    # When the machine's clock begins, in seconds since 1970; None for the first midnight after the
    # newest file in folder and readable was written (vtime/command/beginning.py).
    begins_s: int | None = None
    memory_mb: int = 1024
    # Of everything random in the machine.
    seed: int = 1
    # The command is ended after so many seconds of the machine's clock, or of the host's; None for
    # no limit.
    clock_limit_s: float | None = None
    wall_limit_s: float | None = None
    # Limits of the files that come back.
    most_bytes: int = 1 << 30
    most_files: int = 100_000
    # Its files go into the folder itself, not into a copy.
    write_back: bool = False
    # At most so many bytes of packets are kept; 0 for none.
    capture_bytes: int = 0
    # The cost of a packet on a link without a rate, and the noise of a machine.
    link_times: LinkTimes = LinkTimes()
    # Differs between machines that run at the same time: it chooses the processor.
    guest: int = 0
