"""A machine for anybody's command, whose clock skips idle time: `vtime.run`.

README.md of this folder has what it promises, its clock's rule, and its limits. Modules of this
package run in guests, too: what is imported here, every guest imports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from vtime.command.link_times import LinkTimes
from vtime.result import Result, Watcher

__all__ = ["LinkTimes", "Result", "Watcher", "run"]


def run(command: Sequence[str], folder: Path, into: Path, *, memory_mb: int = 1024, seed: int = 1,
        capture_bytes: int = 0, readable: Sequence[Path] = (),
        environment: Mapping[str, str] | None = None, clock_limit_s: float | None = None,
        wall_limit_s: float | None = None, most_bytes: int = 1 << 30, most_files: int = 100_000,
        write_back: bool = False, link_times: LinkTimes = LinkTimes(),
        watcher: Watcher | None = None, kernel: Path | None = None, guest: int = 0) -> Result:
    """Run a command as root of a machine of its own, and keep what it leaves in the folder `into`.

    folder: where it starts; it reads this folder, and what it writes there goes to into/files, or
    with write_back here. into: a folder that is there, for this command alone. capture_bytes: at
    most so many bytes of packets are kept, 0 for none. readable: what else it reads. environment:
    variables besides what every command has. seed: of everything random in the machine.
    clock_limit_s, wall_limit_s: the command is ended after so many seconds of the machine's clock,
    or of ours. most_bytes, most_files: of what comes back. link_times: what a packet costs on a
    link that nobody limited, and the noise of a machine. kernel: to boot, by default the one that
    ./install.sh --with-mininet has built. guest: a number for each machine that runs at the same
    time as others; it chooses the processor.

    Raises vtime.console.EngineCannot where this machine cannot, its words say what to do;
    EngineError if the machine ended before it ran the command;
    firstflight.base.files.WriteError if `into` cannot be written to.
    """
    from vtime.command.guest import CommandRequest
    from vtime.session import attend
    watcher = watcher or Watcher()
    request = CommandRequest(
        list(command), folder.resolve(), [str(path.resolve()) for path in readable],
        dict(environment or {}), memory_mb, seed, clock_limit_s, wall_limit_s, most_bytes,
        most_files, capture_bytes, watcher.reads_input, guest, link_times)
    return attend(request, into, write_back, watcher, kernel)
