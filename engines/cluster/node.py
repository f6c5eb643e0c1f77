"""What a machine of a cluster does: unpacks the project, checks itself, measures batches.

Dask sends this file's classes by value to workers that have nothing of ours, so
it imports nothing but Python's own library, at its top. A batch is measured by a
process of its own (commands/batch.py), which the machine's Python with Mininet runs: the
worker's Python needs Dask only.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import platform
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
import uuid
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

PYTHON = "/usr/bin/python3"  # the distribution's, which Mininet lives with
CODE, KERNEL = "project", "linux"  # in the archive
OK, FAILED, REFUSED = "ok", "failed", "refused"
SPENT = "spent"  # its attempts: not measured once more
CANNOT_STATUS = 4
CHECK_S = 120.0
END_S = 10.0  # for which a batch that has SIGINT may remove what is its own


class NodeRefused(Exception):
    """This machine does not measure; its text is the reason, and what to do."""


class Node:
    """A Dask worker's plugin.

    name: of this run's; digest: of the archive, a zip file of the project's programs and the
    guest kernel; tools: the versions that it has to have (lab.core.results.provenance.tools).
    """

    def __init__(self, name: str, digest: str, archive: bytes, tools: dict[str, str]) -> None:
        self.name, self.digest, self.archive, self.tools = name, digest, archive, tools
        self.refused = ""
        self.stopped = False

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name)
                for name in ("name", "digest", "archive", "tools", "refused", "stopped")}

    def setup(self, worker: Any) -> None:
        """Called by Dask, before the first batch."""
        self.worker, self.home = str(worker.address), str(worker.local_directory)
        self.running: set[subprocess.Popen[bytes]] = set()
        self.lock = threading.Lock()
        try:
            with alone(cache()) as home:  # another worker of this machine may unpack the same
                self.folder = unpack(home / self.digest, self.archive)
            self.check()
        except (OSError, ValueError, LookupError, zipfile.BadZipFile, subprocess.SubprocessError,
                NodeRefused) as error:
            self.refused = str(error) or repr(error)
        self.archive = b""  # it is on the disk now

    def teardown(self, worker: Any) -> None:
        """Called by Dask when the worker ends, or nobody needs it any more."""
        with self.lock:
            self.stopped = True
            for process in self.running:
                end(process)

    def check(self) -> None:
        """Whether this machine can measure, and with the same tools. Raises NodeRefused."""
        code = self.folder / CODE
        done = subprocess.run([str(code / "install.sh"), "--check", "--no-kernel"],
                              capture_output=True, text=True, check=False, timeout=CHECK_S)
        if done.returncode:
            raise NodeRefused(last_line(done.stderr) + ": run ./install.sh --no-kernel there")
        versions = subprocess.run([PYTHON, str(code / "commands/batch.py"), "--versions"],
                                  capture_output=True, text=True, check=False, timeout=CHECK_S)
        if versions.returncode:
            raise NodeRefused(last_line(versions.stderr))
        tools = json.loads(versions.stdout)
        other = [f"{name} {tools.get(name)!r} instead of {required!r}"
                 for name, required in self.tools.items() if tools.get(name) != required]
        if other:
            raise NodeRefused(f"it has {', '.join(other)}: the same distribution everywhere,"
                              " please")

    def measure(self, batch: bytes) -> bytes:
        """The answer to one batch: a line of JSON with its status, then the result or a reason."""
        if self.refused:
            return self.answer(REFUSED, self.refused.encode())
        # A worker that a script starts with "&" ignores SIGINT, and so would its batches.
        command = ["env", "--default-signal=INT", "setpriv", "--pdeathsig", "KILL", "--", PYTHON,
                   str(self.folder / CODE / "commands/batch.py"), "--kernel",
                   str(self.folder / KERNEL)]
        try:  # Dask removes its worker's folder, and with it what a batch that was killed leaves
            with tempfile.TemporaryDirectory(prefix="first-flight-", dir=self.home) as folder:
                result, printed, status = self.run(command, batch, {**os.environ, "TMPDIR": folder})
        except OSError as error:
            return self.answer(FAILED, str(error).encode())
        if status == 0:
            return self.answer(OK, result)
        why = last_line(printed.decode(errors="replace")) or f"it ended with {status}"
        return self.answer(REFUSED if status == CANNOT_STATUS else FAILED, why.encode())

    def run(self, command: list[str], given: bytes,
            environment: dict[str, str]) -> tuple[bytes, bytes, int]:
        """A program that ends with this plugin: its output, its errors, its status."""
        with self.lock:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, start_new_session=True,
                                       env=environment)
            self.running.add(process)
            if self.stopped:
                end(process)
        try:
            return *process.communicate(given), process.returncode
        finally:
            with self.lock:
                self.running.discard(process)
            end(process)

    def answer(self, status: str, content: bytes) -> bytes:
        at = urlsplit(self.worker).hostname or ""  # names of machines may be alike
        head = {"status": status, "worker": self.worker, "machine": f"{platform.node()} ({at})"}
        return json.dumps(head).encode() + b"\n" + content


def measure(name: str, batch: bytes, attempts: int) -> bytes:
    """A task: what the plugin of that name on this worker makes of a batch.

    attempts: how many workers may begin it. Where one dies Dask gives the task to the
    next by itself, more often than that.
    """
    worker = import_module("distributed").get_worker()
    node = worker.plugins.get(name)
    if node is None:
        node = Node(name, "", b"", {})
        node.worker, node.refused = str(worker.address), "it could not take the project"
    spent = not node.refused and begins(worker, name) > attempts
    answer: bytes = node.answer(SPENT, b"") if spent else node.measure(batch)
    return answer


def begins(worker: Any, name: str) -> int:
    """How many workers have begun the task that this one has: the scheduler counts them."""
    sync, task = import_module("distributed.utils").sync, [name, worker.get_current_task()]
    sync(worker.loop, worker.scheduler.set_metadata, keys=[*task, uuid.uuid4().hex], value=1)
    return len(sync(worker.loop, worker.scheduler.get_metadata, keys=task))


def end(process: subprocess.Popen[bytes]) -> None:
    """Ask a batch to end, as Ctrl-C does: it then removes what is its own.

    It is killed where it does not: a Python that starts may drop the signal within an import.
    """
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
        late = threading.Timer(END_S, kill, [process])
        late.daemon = True
        late.start()


def kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)


def last_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1]


def cache() -> Path:
    """Where the project's copies are kept, for nobody else to write to.

    Raises OSError, NodeRefused.
    """
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = home / "first-flight" / "cluster"
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    status = path.lstat()
    if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o022:
        raise NodeRefused(f"{path}: others may write there: chmod go-w, or remove it")
    return path


@contextmanager
def alone(folder: Path) -> Iterator[Path]:
    """The folder, as long as no other process has it so. Raises OSError."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield folder
    finally:
        os.close(opened)


def unpack(folder: Path, archive: bytes) -> Path:
    """The archive's files in a folder that is named after them; returns the folder.

    What is there already is compared, byte by byte: one that was changed is
    replaced. Raises OSError, ValueError.
    """
    with zipfile.ZipFile(io.BytesIO(archive)) as files:
        contents = {member.filename: (files.read(member), member.external_attr >> 16)
                    for member in files.infolist()}
    for name in contents:
        if name.startswith("/") or ".." in name.split("/"):
            raise ValueError(f"{name!r} would lie outside")
    if all(same(folder / name, content) for name, (content, _) in contents.items()):
        return folder
    aside = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        for name, (content, mode) in contents.items():
            path = aside / "new" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            path.chmod(mode & 0o755)
        if folder.exists():
            folder.rename(aside / "old")
        (aside / "new").rename(folder)
    except OSError:  # another worker of this machine may have been faster
        if not all(same(folder / name, content) for name, (content, _) in contents.items()):
            raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return folder


def same(path: Path, content: bytes) -> bool:
    try:
        return hashlib.sha256(path.read_bytes()).digest() == hashlib.sha256(content).digest()
    except OSError:
        return False
