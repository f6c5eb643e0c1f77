"""What a machine of a cluster does: unpacks the project, checks itself, measures batches.

Dask sends this file's class and functions by value to workers that have nothing of
ours, so it imports nothing but Python's own library, at its top. A batch is measured
by a process of its own (commands/batch.py), which the machine's Python with Mininet
runs: the worker's Python needs Dask only.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import tempfile
import zipfile
from importlib import import_module
from pathlib import Path
from typing import Protocol

PYTHON = "/usr/bin/python3"  # the distribution's, which Mininet lives with
CODE, KERNEL, KERNELS = "project", "linux", "kernels"  # in the archive
CHECK_S = 120.0


class Worker(Protocol):
    """What is used of a Dask worker."""

    local_directory: str
    address: str
    plugins: dict[str, Node]


class Node:
    """A Dask worker's plugin: the project there, and the batches that are being measured.

    archive: a zip file of the project's programs and the guest kernel; tools: the versions that
    it has to have (runs.results.provenance.tools).
    """

    def __init__(self, archive: bytes, tools: dict[str, str]) -> None:
        self.archive, self.tools = archive, tools

    def setup(self, worker: Worker) -> None:
        """Called by Dask, before the first batch. The folder goes with the worker's own."""
        self.running: set[subprocess.Popen[bytes]] = set()
        self.address = worker.address
        try:
            self.folder = Path(tempfile.mkdtemp(prefix="first-flight-",
                                                dir=worker.local_directory))
            with zipfile.ZipFile(io.BytesIO(self.archive)) as files:
                for member in files.infolist():
                    Path(files.extract(member, self.folder)).chmod(
                        member.external_attr >> 16 & 0o755)
            self.refused = self.why_not()
        except (OSError, ValueError, zipfile.BadZipFile, subprocess.SubprocessError) as error:
            self.refused = str(error) or repr(error)

    def teardown(self, worker: Worker) -> None:
        """Called by Dask when the worker ends, or nobody needs it any more."""
        self.refused = "the run has ended"
        for process in list(self.running):
            process.kill()  # its guest goes with it

    def why_not(self) -> str:
        """Why this machine cannot measure, or not with the same tools; "" if it can."""
        code = self.folder / CODE
        for command, advice in (
                ([str(code / "install.sh"), "--check", "--no-kernel"],
                 ": run ./install.sh --no-kernel there"),
                ([PYTHON, str(code / "firstflight/commands/batch.py"), "--versions"], "")):
            done = subprocess.run(command, capture_output=True, text=True, check=False,
                                  timeout=CHECK_S)
            if done.returncode:
                return last_line(done.stderr) + advice
        versions = json.loads(done.stdout)
        other = [f"{name} {versions.get(name)!r} instead of {required!r}"
                 for name, required in self.tools.items() if versions.get(name) != required]
        return (f"it has {', '.join(other)}: use the same distribution on every machine"
                if other else "")

    def measure(self, batch: bytes) -> bytes:
        """The result of a batch. Raises RuntimeError with the reason where there is none."""
        if self.refused:
            raise RuntimeError(self.refused)
        with tempfile.TemporaryDirectory(dir=self.folder) as folder, subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", PYTHON,
                 str(self.folder / CODE / "firstflight/commands/batch.py"),
                 "--kernel", str(self.folder / KERNEL),
                 "--kernels", str(self.folder / KERNELS)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env={**os.environ, "TMPDIR": folder}) as process:
            self.running.add(process)
            if self.refused:  # the run ended while it began
                process.kill()
            result, printed = process.communicate(batch)
            self.running.discard(process)
        if process.returncode:
            raise RuntimeError(last_line(printed.decode(errors="replace"))
                               or f"it ended with {process.returncode}")
        return result


def last_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1]


def why_refused(name: str, dask_worker: Worker) -> str:
    """Why the plugin of that name measures nothing; "" if it does. Dask gives the worker."""
    return dask_worker.plugins[name].refused


def measure(name: str, batch: bytes) -> tuple[str, bytes]:
    """A task: the worker's address, and what that plugin makes of a batch.

    Raises RuntimeError with the address and the reason, whatever it was: what the client catches
    of any other type (OSError, TimeoutError) says that the scheduler is lost.
    """
    worker = import_module("distributed").get_worker()
    address = str(worker.address)
    try:
        result: bytes = worker.plugins[name].measure(batch)
    except Exception as error:
        raise RuntimeError(f"{address}: {error}") from error
    return address, result
