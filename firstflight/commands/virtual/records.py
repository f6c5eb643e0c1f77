"""What is kept of commands: a folder for each, and command.json in it."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

from firstflight.base import files
from vtime import CommandRequest, Result
from vtime.session import GUEST
from vtime.shared_folder import remove_dead
from vtime.uml import built_kernel_for_commands, made_from, named_kernel

DEFAULT_KERNEL = "default"
COMMAND_JSON = "command.json"  # of a command's folder: what was run
CAPTURE_BYTES = 500_000_000  # of packets, by default: two and a half million
MOST_SHOWN = 20  # lines about what went wrong; command.json has more
RUN = "run_"  # begins the names of the folders of several runs in a command's


def facts_of(request: CommandRequest, result: Result, kernel: Path) -> dict[str, object]:
    """What command.json says of a run."""
    return {"command": list(request.words), "folder": str(request.folder), "seed": request.seed,
            "clock": request.begins_s,
            "status": result.status, "virtual_s": round(result.clock_s, 9),
            "wall_s": round(result.wall_s, 3), "files": result.file_count,
            "left_out": result.troubles, "spinning": result.spinning,
            "namespaces": result.namespaces, "calls": result.calls, **made_from(kernel)}


def kernel_of(name: str) -> Path:
    """The kernel for commands of that name. Raises EngineCannot that says how to build it."""
    return built_kernel_for_commands() if name == DEFAULT_KERNEL else named_kernel(name, True)


def new_folder(results: Path, kind: str) -> Path:
    """results/<kind>/<stamp>; removes the guests' folders of killed runs. Raises WriteError."""
    stamp, home = datetime.now(timezone.utc).strftime("%Y-%m-%d_%H%M%SZ"), results / kind
    with files.Folder(results) as place:
        place.make(kind)
    for folder in home.iterdir():
        if not folder.is_symlink():
            for guest in (folder / GUEST, *folder.glob(f"{RUN}*/{GUEST}")):
                remove_dead(guest)
    names = (f"{stamp}{'' if not number else f'_{number}'}" for number in range(1000))
    return next(home / name for name in names if files.make_new_folder(home / name))
