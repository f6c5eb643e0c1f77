"""Runs the scripts that install, with a temporary cache, stubs of programs, and packed kernels."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import signal
import subprocess
import tarfile
from pathlib import Path

from tests.conftest import PROJECT
from tests.running import run_program

GUEST = PROJECT / "vtime" / "kernel"


def run(script: Path, *arguments: str, cache: Path,
        **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script with this cache, as a user would who has no variables of sudo."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("SUDO_", "FIRST_FLIGHT_"))}
    return run_program([str(script), *arguments],
                       env={**kept, "XDG_CACHE_HOME": str(cache), **environment})


def changed(tree: Path) -> None:
    """Change the content of tcp.c, which keeps its length and its time."""
    before = (tree / "tcp.c").stat()
    (tree / "tcp.c").write_text("other")
    os.utime(tree / "tcp.c", ns=(before.st_atime_ns, before.st_mtime_ns))


def packed(file: Path, **changes: str) -> Path:
    """Write a file as --export-kernel would, of a kernel that ends at once.

    changes: other inputs, or another version, origin or kernel.
    """
    kernel, config = changes.get("kernel", "#!/bin/sh\n").encode(), b"CONFIG_UML=y\n"
    inputs = {"configuration": "0123456789abcdef", "source": "ab" * 32, "compiler": "gcc 12",
              "linux": hashlib.sha256(kernel).hexdigest(),
              "config": hashlib.sha256(config).hexdigest()}
    inputs |= {name: changes[name] for name in inputs.keys() & changes.keys()}
    members = {"inputs": "".join(f"{name} {value}\n" for name, value in inputs.items()).encode(),
               "version": changes.get("version", "7.2.1\n").encode(),
               "source": changes.get("origin", "linux-source-7.2 7.2.1-1\n").encode(),
               "config": config, "linux": kernel}
    with tarfile.open(file, "w") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return file


def stubs(folder: Path, **scripts: str) -> str:
    """Write shell scripts into a folder; return a PATH on which it comes first.

    scripts: the text by the name of the program, in which _ stands for -.
    """
    folder.mkdir()
    for name, text in scripts.items():
        (folder / name.replace("_", "-")).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name.replace("_", "-")).chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def builders(folder: Path, **scripts: str) -> str:
    """As stubs(), with a stub for each program that builds a kernel and that this machine lacks."""
    tools = ("gcc", "make", "flex", "bison", "bc", "ld", "xz")
    missing = {tool: "exit 0" for tool in tools if not shutil.which(tool)}
    return stubs(folder, **(missing | scripts))


def deaf() -> None:
    """Ignore the signals that would end this process, as some supervisors have it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
