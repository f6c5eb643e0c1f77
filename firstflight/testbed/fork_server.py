"""The library that makes a fork server of curl (hosts/fork_server.c), compiled once a machine."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

from vtime import system

SOURCE = Path(__file__).with_name("hosts") / "fork_server.c"
COMPILE = ("gcc", "-O2", "-shared", "-fPIC")


def library() -> Path | None:
    """The compiled library, in the user's cache.

    None where it cannot be had, for lack of a compiler or of room: curl then links its libraries
    for each fetch, which takes longer and measures the same.
    """
    if not shutil.which(COMPILE[0]):
        return None
    source = SOURCE.read_bytes()
    path = system.cache().parent / f"fork-server-{hashlib.sha256(source).hexdigest()[:16]}.so"
    if not path.exists():
        with suppress(OSError, subprocess.CalledProcessError):
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".", dir=path.parent) as folder:
                compiled = Path(folder) / path.name
                subprocess.run([*COMPILE, "-o", compiled, SOURCE], check=True,
                               stdin=subprocess.DEVNULL, capture_output=True)
                compiled.rename(path)  # whole, or not there
    return path if path.exists() else None
