"""Libraries for programs on the hosts (hosts/*.c), compiled once a machine."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

from firstflight.testbed.messages import (BROWSER_CLOCK, BROWSER_RANDOM, FORK_SERVER,
                                            KERNEL_RANDOM)
from vtime import system

HOSTS = Path(__file__).with_name("hosts")
SOURCES = {FORK_SERVER: HOSTS / "fork_server.c", KERNEL_RANDOM: HOSTS / "kernel_random.c",
           BROWSER_RANDOM: HOSTS / "browser_random.c",
           BROWSER_CLOCK: HOSTS / "browser_clock.c"}
COMPILE = ("gcc", "-O2", "-shared", "-fPIC")


def libraries() -> dict[str, Path]:
    """The compiled libraries in the user's cache, by their names in a worker's folder.

    Without a compiler, or without room, there is none. curl then links its libraries for each
    fetch, which takes longer and measures the same; and the length of an ECDSA signature is drawn
    anew in each run.
    """
    compiled = {name: library(source) for name, source in SOURCES.items()}
    return {name: path for name, path in compiled.items() if path is not None}


def library(source: Path = SOURCES[FORK_SERVER]) -> Path | None:
    """The library of a source, compiled where it is not there yet; None where it cannot be had."""
    if not shutil.which(COMPILE[0]):
        return None
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    path = system.cache().parent / f"{source.stem.replace('_', '-')}-{digest}.so"
    if not path.exists():
        with suppress(OSError, subprocess.CalledProcessError):
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".", dir=path.parent) as folder:
                compiled = Path(folder) / path.name
                subprocess.run([*COMPILE, "-o", compiled, source], check=True,
                               stdin=subprocess.DEVNULL, capture_output=True)
                compiled.rename(path)  # whole, or not there
    return path if path.exists() else None
