"""What is kept of a command that ran: a folder, and command.json in it."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

from firstflight.base import files
from vtime import CommandRequest, Result
from vtime.session import GUEST
from vtime.shared_folder import remove_dead
from vtime.uml import built_kernel_for_commands, made_from, named_kernel

DEFAULT_KERNEL = "default"
COMMAND_JSON = "command.json"  # the file in a command's folder that says what was run
CAPTURE_BYTES = 500_000_000  # kept by default: some two and a half million packets
MOST_SHOWN = 20  # lines about what went wrong; command.json has more
# Begins the names of folders in a command's folder, of which each run of --repeat has one.
RUN = "run_"


def facts_of(request: CommandRequest, result: Result, kernel: Path) -> dict[str, object]:
    """What command.json says of a run."""
    return {"command": list(request.words), "folder": str(request.folder), "seed": request.seed,
            "clock": request.begins_s,
            "status": result.status, "virtual_s": round(result.clock_s, 9),
            "wall_s": round(result.wall_s, 3), "files": result.file_count,
            "left_out": result.troubles, "spinning": result.spinning,
            "namespaces": result.namespaces, "calls": result.calls, **made_from(kernel)}


def kernel_of(name: str) -> Path:
    """The file of the kernel for commands with that name.

    Raises EngineCannot, which says how to build it.
    """
    return built_kernel_for_commands() if name == DEFAULT_KERNEL else named_kernel(name, True)


def new_folder(results: Path, kind: str) -> Path:
    """Make the folder results/<kind>/<time>, and return its path.

    Removes what guests left in the other folders when they were killed. Raises WriteError.
    """
    home = results / kind
    with files.Folder(results) as place:
        place.make(kind)
    for folder in home.iterdir():
        if not folder.is_symlink():
            for guest in (folder / GUEST, *folder.glob(f"{RUN}*/{GUEST}")):
                remove_dead(guest)

    stamp = datetime.now(timezone.utc).strftime("%Y-%m-%d_%H%M%SZ")
    names = (stamp, *(f"{stamp}_{number}" for number in range(1, 1000)))
    return next(home / name for name in names if files.make_new_folder(home / name))
