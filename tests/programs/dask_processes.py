"""Starts a Dask scheduler and its workers, each as another process, as on several machines."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.running import wait_until

# It runs a cluster until its standard input ends. Workers are forked from a server that has
# imported Dask, so that not each of them imports it.
PROGRAM = """import sys
import dask
from distributed import LocalCluster

if __name__ == "__main__":
    dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"})
    with LocalCluster(n_workers=int(sys.argv[1]), threads_per_worker=1,
                      dashboard_address="127.0.0.1:0", worker_dashboard_address="127.0.0.1:0",
                      local_directory=".") as local:
        print(local.scheduler_address, flush=True)
        sys.stdin.read()
"""


@contextmanager
def cluster_of(workers: int, folder: Path) -> Iterator[str]:
    """The address of a scheduler with so many workers. folder: where their files are."""
    program = folder / "cluster_of.py"
    program.write_text(PROGRAM)
    with (folder / "said").open("w") as said, subprocess.Popen(
            [sys.executable, str(program), str(workers)], cwd=folder, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said) as dask:
        assert dask.stdout is not None and dask.stdin is not None
        address = dask.stdout.readline().strip()
        assert address, (folder / "said").read_text()
        try:
            yield address
        finally:
            dask.stdin.close()


# The commands of openssl in docs/INSTALL.md: an authority, and a certificate for all members.
CERTIFY = ("req -x509 -newkey ed25519 -nodes -days 30 -subj /CN=cluster"
           " -keyout ca-key.pem -out ca.pem",
           "req -newkey ed25519 -nodes -subj /CN=member -keyout key.pem -out member.csr",
           "x509 -req -in member.csr -CA ca.pem -CAkey ca-key.pem -CAcreateserial"
           " -days 30 -out cert.pem")


def certificates(folder: Path) -> dict[str, str]:
    """Make an authority and a certificate in a folder; return the environment for Dask to use them.
    """
    folder.mkdir()
    for words in CERTIFY:
        subprocess.run(["openssl", *words.split()], cwd=folder, check=True, capture_output=True)
    settings = {"CA_FILE": "ca.pem"}
    for role in ("SCHEDULER", "WORKER", "CLIENT"):
        settings |= {f"{role}__CERT": "cert.pem", f"{role}__KEY": "key.pem"}
    return {**os.environ, **{f"DASK_DISTRIBUTED__COMM__TLS__{name}": str(folder / file)
                             for name, file in settings.items()}}


class Machines:
    """A scheduler with TLS and two workers, as docs/INSTALL.md starts them, on 127.0.0.1."""

    def __init__(self, folder: Path) -> None:
        """folder: where their certificates, logs and files are."""
        self.folder, self.environment = folder, certificates(folder)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._start("scheduler", "dask-scheduler", "--protocol", "tls", "--host", "127.0.0.1",
                    "--port", "0", "--no-dashboard")
        self.address = self._logged("scheduler", r"Scheduler at: *(tls://[0-9.:]+)\n")
        for name in ("one", "two"):
            self.work(name)
        # A run would wait only 10 s for a worker, and a busy machine takes longer.
        for name in ("one", "two"):
            self._logged(name, "(Registered to)")

    def _start(self, name: str, *words: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                words, env=self.environment, stdout=log, stderr=log, cwd=self.folder,
                start_new_session=True)

    def work(self, name: str) -> None:
        self._start(name, "dask-worker", self.address, "--nthreads", "1", "--nworkers", "1",
                    "--no-dashboard", "--local-directory", str(self.folder / f"machine-{name}"))

    def _logged(self, name: str, pattern: str) -> str:
        """The group of a pattern in a process's log; waits until the log has it."""
        log, found = self.folder / f"{name}.log", []

        def is_logged() -> bool:
            assert self.processes[name].poll() is None, log.read_text()
            found[:] = re.findall(pattern, log.read_text())
            return bool(found)

        wait_until(is_logged, f"{name}: {pattern}")
        return found[0]

    def kill(self, name: str) -> None:
        """End a process as if its machine had lost its power."""
        process = self.processes.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def close(self) -> None:
        for name in list(self.processes):
            self.kill(name)
