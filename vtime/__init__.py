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
        watcher: Watcher | None = None, kernel: Path | None = None, guest: int = 0,
        begins_s: int | None = None) -> Result:
    """Run a command as root of a machine of its own, and keep what it leaves in the folder `into`.

    folder: where the command starts and which it reads; files that it writes there go to
    into/files, or with write_back into the folder itself. into: an existing folder for this command
    only. capture_bytes: at most so many bytes of packets are kept, 0 for none. readable: other
    paths that it reads. environment: variables in addition to those of every command. seed: of
    everything random in the machine. clock_limit_s, wall_limit_s: the command is ended after so
    many seconds of the machine's clock, or of the host's. most_bytes, most_files: limits of the
    files that come back. link_times: the cost of a packet on a link without a rate, and the noise
    of a machine. kernel: the kernel to boot, by default the one that ./install.sh --with-mininet
    builds. guest: a number that differs between machines that run at the same time; it chooses the
    processor. begins_s: when the machine's clock begins, in seconds since 1970, by default the
    first midnight after the newest file in folder and readable (vtime/command/beginning.py).

    Raises vtime.console.EngineCannot if this machine cannot run it, with what to do; EngineError if
    the machine ended before it ran the command;
    firstflight.base.errors.WriteError if `into` cannot be written to.
    """
    from vtime.command.beginning import beginning_s
    from vtime.command.guest import CommandRequest
    from vtime.session import attend
    watcher = watcher or Watcher()
    places = [path.resolve() for path in (folder, *readable)]
    if begins_s is None:
        begins_s = beginning_s(places, left_out=into)
    request = CommandRequest(
        words=list(command), folder=places[0], begins_s=begins_s,
        readable=[str(path) for path in places[1:]], environment=dict(environment or {}),
        memory_mb=memory_mb, seed=seed, timeout_virtual_s=clock_limit_s,
        timeout_wall_s=wall_limit_s, most_bytes=most_bytes, most_files=most_files,
        capture_bytes=capture_bytes, reads_input=watcher.reads_input, guest=guest,
        link_times=link_times)
    return attend(request, into, write_back, watcher, kernel)
