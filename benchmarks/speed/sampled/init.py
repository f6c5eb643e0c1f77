"""PID 1 of a guest whose processes go by the names of their parts (benchmarks/speed/parts.py).

The name of the process that runs is what a sampler outside reads in the guest's
kernel. Changing it is one system call, some 5 µs.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import site
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent.parent.parent
_PR_SET_NAME = 15
_libc = ctypes.CDLL(None)
# What of the worker is a part of its own: the part, where it is, and its functions.
PARTS = (("taps", "engines.worker.tap", "Tap", ("save", "discard")),
         ("shape", "topo", "Star", ("shape", "set_routes", "drain")),
         ("shape", "topo", "Dumbbell", ("shape", "set_windows")))


def name(part: str) -> None:
    _libc.prctl(_PR_SET_NAME, part.encode())


def named(part: str, function: Callable[..., Any], after: str) -> Callable[..., Any]:
    """The function, by the name of a part while it runs."""
    def run(*words: Any, **more: Any) -> Any:
        name(part)
        try:
            return function(*words, **more)
        finally:
            name(after)
    return run


def name_parts() -> None:
    """Have the worker and what it starts go by the names of their parts."""
    from engines import bench
    from engines.worker import worker
    make_bench, start = worker.bench_of, bench.LineProcess.python

    def started(node: Any, project: Path, module: str, *arguments: str) -> Any:
        # A program goes by the name of the file that is executed.
        role = "client" if "client" in module else "server" if "server" in module else "other"
        link, executable = Path("/run", role), sys.executable
        if not link.exists():
            link.symlink_to(executable)
        sys.executable = str(link)
        try:
            return start(node, project, module, *arguments)
        finally:
            sys.executable = executable

    bench.LineProcess.python = started  # type: ignore[assignment]
    worker.bench_of = lambda kind: named("network", make_bench(kind), after="worker")
    for part, module, owner, functions in PARTS:
        target = getattr(importlib.import_module(module), owner)
        for function in functions:
            setattr(target, function, named(part, getattr(target, function), after="worker"))


def main() -> None:
    sys.path.insert(0, str(PROJECT))
    from engines.guest import init
    run = init.run

    def run_named(folder: Path, project: Path) -> None:
        name("network")  # Mininet's import belongs to it
        sys.path[:0] = site.getsitepackages()
        if not (folder / "command.json").exists():
            name_parts()
        run(folder, project)

    init.run = run_named
    init.main()


if __name__ == "__main__":
    assert os.getpid() == 1, "only the first process of a guest"
    main()
