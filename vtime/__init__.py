"""A machine for anybody's command, whose clock skips idle time: `vtime.run`.

README.md of this folder has what it promises, its clock's rule, and its limits. Modules of this
package run in guests, and behind the wall of each step of a build: what is imported here, all of
these import. So the classes are imported when somebody first uses them (PEP 562).
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # as typing's, which takes long to import
if TYPE_CHECKING:
    from pathlib import Path

    from vtime.command.link_times import LinkTimes
    from vtime.request import CommandRequest
    from vtime.result import Result, Watcher

__all__ = ["CommandRequest", "LinkTimes", "Result", "Watcher", "run"]
_MODULES = {"CommandRequest": "vtime.request", "LinkTimes": "vtime.command.link_times",
            "Result": "vtime.result", "Watcher": "vtime.result"}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def run(request: CommandRequest, into: Path, watcher: Watcher | None = None,
        kernel: Path | None = None) -> Result:
    """Run a command as root of a machine of its own, and keep what it leaves in the folder `into`.

    into: an existing folder for this command only. Files that the command writes go to into/files,
    or with write_back into its own folder. watcher: follows it while it runs. kernel: the kernel to
    boot, by default the one that ./install.sh --with-mininet builds.

    Raises vtime.console.EngineCannot if this machine cannot run it, with what to do; EngineError if
    the machine ended before it ran the command;
    firstflight.base.errors.WriteError if `into` cannot be written to.
    """
    from dataclasses import replace

    from vtime.result import Watcher
    from vtime.session import attend

    without_links = replace(
        request, folder=request.folder.resolve(),
        readable=[path.resolve() for path in request.readable])
    return attend(without_links, into, watcher or Watcher(), kernel)
