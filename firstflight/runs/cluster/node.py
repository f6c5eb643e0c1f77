"""The part of a cluster that runs on each machine: it unpacks the project, checks the machine, and
measures batches.

Dask sends the class and the functions of this file by value to workers that have nothing of the
project. So the imports at its top are of the standard library. Each batch is measured by a process
of its own (commands/batch.py), run by the machine's Python, which has Mininet. The worker's own
Python needs Dask only.
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

PYTHON = "/usr/bin/python3"  # the distribution's, which has Mininet
CODE, KERNEL, KERNELS, SITES = "project", "linux", "kernels", "sites"  # names in the archive
CHECK_S = 120.0  # the longest time of a check of the machine
BROWSER = "chromium"  # a tool that a machine may lack; it then skips the trials that need it


class Worker(Protocol):
    """The parts of a Dask worker that are used here."""

    local_directory: str
    address: str
    plugins: dict[str, Node]


class Node:
    """A plugin of a Dask worker, with the unpacked project and the batches that are under way."""

    def __init__(self, archive: bytes, tools: dict[str, str]) -> None:
        """archive: a zip file of the project's programs, the guest kernels, and recorded sites.
        tools: the versions that the machine has to have (runs.results.provenance).
        """
        self.archive, self.tools = archive, tools

    def setup(self, worker: Worker) -> None:
        """Unpack the project and check the machine; Dask calls it before the first batch.

        The project's folder is in the worker's folder, which Dask removes. `refused` is then the
        reason why the machine cannot measure, or "".
        """
        self.running: set[subprocess.Popen[bytes]] = set()
        self.address = worker.address
        self.available_mb: int | None = None
        try:
            self.folder = Path(tempfile.mkdtemp(prefix="first-flight-",
                                                dir=worker.local_directory))
            with zipfile.ZipFile(io.BytesIO(self.archive)) as files:
                for member in files.infolist():
                    Path(files.extract(member, self.folder)).chmod(
                        member.external_attr >> 16 & 0o755)
            self.available_mb = available_here_mb()
            self.refused = self.why_not()
        except (OSError, ValueError, zipfile.BadZipFile, subprocess.SubprocessError) as error:
            self.refused = str(error) or repr(error)

    def teardown(self, worker: Worker) -> None:
        """End the batches that are under way.

        Dask calls it when the worker ends, or when the run has ended.
        """
        self.refused = "the run has ended"
        for process in list(self.running):
            process.kill()  # its guest ends with it

    def why_not(self) -> str:
        """Why this machine cannot measure, or has other tools; "" if it can measure."""
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
        other = []
        for name, required in self.tools.items():
            version = versions.get(name)
            may_be_missing = name == BROWSER and not version
            if version != required and not may_be_missing:
                other.append(f"{name} {version!r} instead of {required!r}")
        if other:
            return f"it has {', '.join(other)}: use the same distribution on every machine"
        return ""

    def measure(self, batch: bytes) -> bytes:
        """Measure a batch; return the result. Raises RuntimeError with the reason."""
        if self.refused:
            raise RuntimeError(self.refused)
        # setpriv: the process ends with this worker.
        with tempfile.TemporaryDirectory(dir=self.folder) as folder, subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", PYTHON,
                 str(self.folder / CODE / "firstflight/commands/batch.py"),
                 "--kernel", str(self.folder / KERNEL),
                 "--kernels", str(self.folder / KERNELS), "--sites", str(self.folder / SITES)],
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
    """The last line of a text, "" if it is empty."""
    return (text.strip().splitlines() or [""])[-1]


def available_here_mb() -> int | None:
    """How many MB of memory are available on this machine; None if this is not known.

    vtime.memory.available does the same, but workers do not have it.
    """
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) // 1024 for line in lines
                 if line.startswith("MemAvailable:")), None)


def available_mb(name: str, dask_worker: Worker) -> int | None:
    """The memory that was available to a worker when it took the project, in MB."""
    return dask_worker.plugins[name].available_mb


def why_refused(name: str, dask_worker: Worker) -> str:
    """Why the plugin of that name cannot measure; "" if it can. Dask passes the worker."""
    return dask_worker.plugins[name].refused


def measure(name: str, batch: bytes) -> tuple[str, bytes]:
    """A task of Dask's: measure a batch by the plugin of that name.

    Returns the worker's address and the result. Any error becomes a RuntimeError with address and
    reason: the client takes an OSError or TimeoutError as the loss of the scheduler.
    """
    worker = import_module("distributed").get_worker()
    address = str(worker.address)
    try:
        result: bytes = worker.plugins[name].measure(batch)
    except Exception as error:
        raise RuntimeError(f"{address}: {error}") from error
    return address, result
