"""A server that is not ours, on a host: started, waited for, ended, and its words kept."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from engines.bench import WorkerError
from engines.network.namespaces import network_of
from engines.network.nodes import Host
from engines.network.routes import SERVER_IP
from engines.network.sockets import Sockets

READY_S = 20.0  # in which it has to take connections
LOOK_S = 0.02
TERM_S = 5.0  # from SIGTERM to SIGKILL
LOG_BYTES = 1 << 20  # of a log that are kept: its end
_LAST_LINES = 3


class Program:
    """One running server. Raises WorkerError where it does not start, or ends too soon."""

    def __init__(self, name: str, host: Host, command: Sequence[str], log: Path,
                 folder: Path) -> None:
        """name: in messages. log: where its output goes; folder: where it runs."""
        self.name, self.host, self.log = name, host, log
        self.command = list(command)
        with log.open("wb") as output:
            self.process = host.popen(
                self.command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT)

    def wait_until(self, ready: Callable[[], bool], port: int) -> None:
        """Wait until it is ready, for READY_S. Raises WorkerError that says what was there."""
        deadline = time.monotonic() + READY_S
        while not ready():
            self.check()
            if time.monotonic() > deadline:
                raise WorkerError(f"{self.name} was not ready in {READY_S:g} s:"
                                  f" {self._listens(port)}{self.last_words}")
            time.sleep(LOOK_S)
        self.check()

    def check(self) -> None:
        """Raises WorkerError where it has ended."""
        status = self.process.poll()
        if status is not None:
            how = f"killed by {signal.Signals(-status).name}" if status < 0 else f"status {status}"
            raise WorkerError(f"{self.name} has ended ({how}){self.last_words}")

    def _listens(self, port: int) -> str:
        """Which ports of the host somebody listens on, for one who looks for it."""
        sockets = Sockets(self.host.pid)
        try:
            others = [each for each in sockets.listening() if each not in (80, 443)]
        finally:
            sockets.close()
        if port in others:
            return f"it listens on port {port} and does not answer as it should"
        if others:
            return (f"it listens on port {', '.join(map(str, others))}, not on {port}, which"
                    " {p} is in its command")
        return f"nothing listens on port {port}"

    @property
    def last_words(self) -> str:
        """The end of its log on one line, behind a colon; "" where it wrote nothing."""
        lines = self.log.read_bytes()[-4096:].decode(errors="replace").strip().splitlines()
        said = " | ".join(line.strip() for line in lines[-_LAST_LINES:])
        return f"; it said: {said}" if said else "; it said nothing"

    def stop(self) -> None:
        """SIGTERM to it, and SIGKILL to what is left of its process group."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(TERM_S)
            except subprocess.TimeoutExpired:
                pass
        try:  # mnexec made it the leader of a session of its own
            os.killpg(self.process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        self.process.wait()


def takes_connections(host: Host, port: int) -> bool:
    """Whether a connection to a port of the host's comes about, from the host itself."""
    with network_of(host.pid), socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((SERVER_IP, port)) == 0
