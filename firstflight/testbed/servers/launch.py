"""Becomes the user's own server, with the folders that servers write to in memory.

Start it as `python3 firstflight/testbed/servers/launch.py JSON` on the server's host, with
{"command": […], "folders": […], "in_memory": …}. In a guest the root is read-only, and nothing
below /tmp and /var is visible. Both get file systems in memory, in the server's own mount
namespace, with the folders that servers expect. Folders that the user lets it read stay in place.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from pathlib import Path

ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
               "HOME": "/tmp", "LC_ALL": "C.UTF-8"}
IN_MEMORY = ("/tmp", "/var")
EXPECTED = ("cache", "lib", "log", "run", "spool", "tmp", "www")  # below /var
SERVER_FOLDERS = ("cache", "lib", "log", "run")  # below /var, a folder of each server's name
STAGE = "/run/first-flight-folders"  # a guest's /run is in memory
_CLONE_NEWNS, _MS_BIND, _MS_REC, _MS_PRIVATE = 0x20000, 4096, 16384, 1 << 18

_libc = ctypes.CDLL(None, use_errno=True)


def _call(result: int, what: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), what)


def mount(source: str, target: str, kind: str = "", flags: int = 0) -> None:
    """mount(2). Raises OSError."""
    _call(_libc.mount(source.encode(), target.encode(), kind.encode() or None, flags, None), target)


def put_in_memory(name: str, readable: list[str]) -> None:
    """Mount memory on the folders that servers write to. name: of the server's own folders.

    readable: folders that stay in place.
    """
    _call(_libc.unshare(_CLONE_NEWNS), "unshare")
    mount("none", "/", flags=_MS_REC | _MS_PRIVATE)

    # Readable folders that the memory would hide are put aside, and back again below.
    in_memory = tuple(f"{folder}/" for folder in IN_MEMORY)
    hidden = {path: f"{STAGE}/{number}" for number, path in enumerate(readable)
              if path.startswith(in_memory)}
    for path, stage in hidden.items():
        os.makedirs(stage, exist_ok=True)
        mount(path, stage, flags=_MS_BIND)

    for target in IN_MEMORY:
        mount("tmpfs", target, "tmpfs")
    for folder in EXPECTED:
        os.makedirs(f"/var/{folder}")
    for folder in SERVER_FOLDERS:
        os.makedirs(f"/var/{folder}/{name}")

    for path, stage in hidden.items():
        os.makedirs(path)
        mount(stage, path, flags=_MS_BIND)


def main(words: str) -> None:
    """Become the server. Raises OSError, whose message goes to the server's log."""
    requested = json.loads(words)
    command, folders = requested["command"], requested["folders"]
    if requested["in_memory"]:
        put_in_memory(Path(command[0]).name, folders)

    os.chdir(folders[0] if folders else "/tmp")
    os.environ.clear()
    os.environ.update(ENVIRONMENT)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        error.filename = command[0]
        raise


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except OSError as error:
        sys.exit(f"{error.filename or 'cannot be started'}: {error.strerror}")
