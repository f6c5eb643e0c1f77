"""A Dask cluster of this machine's processes, each part as on a machine of its own, with TLS."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

from benchmarks.leftovers import children, command_of
from lab.core.errors import FirstFlightError

SCHEDULER = "scheduler"
WORKERS = ("one", "two")
HOST = "127.0.0.1"
# As docs/CLUSTER.md has it.
CERTIFY = ("req -x509 -newkey ed25519 -nodes -days 30 -subj /CN=cluster"
           " -keyout ca-key.pem -out ca.pem",
           "req -newkey ed25519 -nodes -subj /CN=member -keyout key.pem -out member.csr",
           "x509 -req -in member.csr -CA ca.pem -CAkey ca-key.pem -CAcreateserial"
           " -days 30 -out cert.pem")
START_S, END_S = 120.0, 20.0


class Machines:
    """A scheduler and its workers, each in a process of its own; folder: of all that is theirs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        for words in CERTIFY:
            subprocess.run(["openssl", *words.split()], cwd=folder, check=True,
                           capture_output=True)
        settings = {"CA_FILE": "ca.pem", **{
            f"{role}__{what}": file for role in ("SCHEDULER", "WORKER", "CLIENT")
            for what, file in (("CERT", "cert.pem"), ("KEY", "key.pem"))}}
        self.environment = {**os.environ, **{
            f"DASK_DISTRIBUTED__COMM__TLS__{name}": str(folder / file)
            for name, file in settings.items()}}
        self.port = free_port()
        self.schedule()
        for name in WORKERS:
            self.work(name)

    @property
    def address(self) -> str:
        return f"tls://{HOST}:{self.port}"

    def start(self, name: str, *words: str, **more: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                words, env={**self.environment, **more}, stdout=log,
                stderr=log, cwd=self.folder, start_new_session=True)

    def schedule(self, *flags: str) -> None:
        self.start(SCHEDULER, "dask-scheduler", "--protocol", "tls", "--host", HOST,
                   "--port", str(self.port), *(flags or ("--no-dashboard",)))

    def work(self, name: str, *flags: str, before: tuple[str, ...] = ()) -> None:
        """A worker with a cache of its own, as on another machine, and the kernel's not there.

        before: a command that starts the worker's.
        """
        self.start(name, *before, "dask-worker", self.address, "--nthreads", "1", "--nworkers",
                   "1", "--no-dashboard", *flags,
                   XDG_CACHE_HOME=str(self.folder / f"cache-{name}"))

    def wait(self) -> None:
        """Until both workers have met the scheduler. Raises FirstFlightError."""
        until = time.monotonic() + START_S
        while self.log_of(SCHEDULER).count("Register worker") < len(WORKERS):
            if time.monotonic() > until:
                raise FirstFlightError(f"no worker came up: {self.log_of(WORKERS[0])[-300:]}")
            time.sleep(0.2)

    def log_of(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def kill(self, name: str) -> None:
        """As a machine that loses its power; waits until its Dask is gone."""
        process = self.processes.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def end(self, name: str) -> None:
        """As Ctrl-C does."""
        process = self.processes.pop(name)
        process.send_signal(signal.SIGINT)
        process.wait(END_S)

    def close(self) -> None:
        for name in list(self.processes):
            self.kill(name)


def free_port() -> int:
    with socket.socket() as free:
        free.bind((HOST, 0))
        return int(free.getsockname()[1])


def parts_of(nanny: int) -> dict[str, list[int]]:
    """The processes of a machine by what they are, from its Dask nanny's."""
    words = {"worker": b"spawn_main", "batch": b"commands/batch.py\0--kernel", "guest": b"uml_dir"}
    below, waiting = [], [nanny]
    while waiting:
        below += (found := children(waiting.pop()))
        waiting += found
    return {name: [process for process in below if word in command_of(process)]
            for name, word in words.items()}
