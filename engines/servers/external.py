"""Servers of a bench that are not server.py: one runs at a time, as a trial wants it."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engines.bench import Lacking
from engines.network.nodes import Host
from engines.network.routes import OTHER_PORT, OTHER_SECURE_PORT, SERVER_IP
from engines.network.sockets import Sample, Sockets, Watch
from engines.servers import nginx, own
from engines.servers.program import LOG_BYTES, Program, takes_connections
from engines.servers.tls_setup import Chains
from hosts.certificates import Files
from hosts.serving import body_of

LOG = "server.log"
LOOKS_IN_RTT = 8
LEAST_LOOK_S = 0.001
# Of what a server sends before its response, besides the chain: hellos, tickets, settings.
AROUND_CHAIN_BYTES = 16_384
MOST_CHAIN_BYTES = 100_000  # that OpenSSL's clients take, of a server with a chain of its own


@dataclass(frozen=True)
class Wanted:
    """A server as a trial wants it: another one where the settings differ.

    ready: whether it can be asked, once it runs.
    """

    name: str
    settings: Any
    command: Callable[[], list[str]]
    folder: Path
    ready: Callable[[], bool]


class Others:
    """See engines.worker.worker.fetches.FetchBench, whose server they stand in for."""

    def __init__(self, host: Host, folder: Path, chains: Chains) -> None:
        self.host, self.folder, self.chains = host, folder, chains
        self.own_folder = Path(tempfile.mkdtemp(prefix="first-flight-server-"))
        self.bodies = self.own_folder / "bodies"
        self.bodies.mkdir()
        # By path: of the files that nginx serves, else of what was fetched first.
        self.digests: dict[str, str] = {}
        self.running: Program | None = None
        self.settings: Any = None  # as which it runs
        self.sockets = Sockets(host.pid)
        self.kept = 0

    def close(self) -> None:
        self._stop()
        self.sockets.close()
        shutil.rmtree(self.own_folder, ignore_errors=True)

    def prepare(self, trial: Mapping[str, Any]) -> Path | None:
        """Have the server of a trial run; the root to trust, None for plain HTTP.

        Raises Lacking where it is missing, WorkerError where it does not start.
        """
        tls, asked = trial.get("tls"), trial.get("own")
        files = self.chains.files(tls) if tls and tls["chain_bytes"] else None
        wanted = self._own(trial, asked, files) if asked else self._nginx(trial, files)
        running = self.running
        if running is None or wanted.settings != self.settings \
                or running.process.poll() is not None:
            self._start(wanted, port_of(trial))
        return files.root if files else Path(asked["ca"]) if asked and asked["ca"] else None

    def _nginx(self, trial: Mapping[str, Any], files: Files | None) -> Wanted:
        if nginx.program() is None:
            raise Lacking(nginx.MISSING)
        for path in trial["paths"]:
            self._lay(path)
        port, folder = port_of(trial), self.own_folder
        settings = nginx.Settings.of(SERVER_IP, port, files, trial.get("tls", {}),
                                     trial.get("http", "1.1"))
        return Wanted(nginx.NAME, settings,
                      lambda: nginx.command(settings, folder, self.bodies), folder,
                      lambda: takes_connections(self.host, port))

    def _own(self, trial: Mapping[str, Any], asked: Mapping[str, Any],
             files: Files | None) -> Wanted:
        port, ready = port_of(trial), asked["ready"]
        return Wanted(own.NAME, (dict(asked), port, files),
                      lambda: own.command(asked, port, files), self.own_folder,
                      lambda: (own.answers(self.host, port, ready, "tls" in trial) if ready
                               else takes_connections(self.host, port)))

    def _start(self, wanted: Wanted, port: int) -> None:
        self._stop()
        self.running = Program(wanted.name, self.host, wanted.command(), self.own_folder / LOG,
                               wanted.folder)
        self.running.wait_until(wanted.ready, port)
        self.settings = wanted.settings

    def _stop(self) -> None:
        if self.running is not None:
            self.running.stop()
        self.running = self.settings = None

    def _lay(self, path: str) -> None:
        """A file of as many bytes as its name says, the same as server.py's body."""
        if path not in self.digests:
            body = body_of(int(path.lstrip("/")))
            (self.bodies / path.lstrip("/")).write_bytes(body)
            self.digests[path] = hashlib.sha256(body).hexdigest()

    def watch(self, trial: Mapping[str, Any]) -> Watch:
        """What will look at the connections of a trial while it runs."""
        every_s = max(trial["shape"]["rtt_ms"] / 1000 / LOOKS_IN_RTT, LEAST_LOOK_S)
        secure = trial.get("tls")
        until_bytes = ((secure["chain_bytes"] or MOST_CHAIN_BYTES) + AROUND_CHAIN_BYTES
                       if secure else 0)
        return Watch(self.sockets, port_of(trial), every_s, until_bytes)

    def said(self, trial: Mapping[str, Any], fetch: Mapping[str, Any],
             watch: Watch) -> dict[str, Any]:
        """What is known of the connection that counts, in the place of a server's own report.

        Raises WorkerError where the server has ended meanwhile.
        """
        if not fetch["ok"] and self.running is not None:
            self.running.check()
        samples = watch.of(fetch.get("port", 0))
        first = next((each for each in samples if not each.acknowledged_bytes), None)
        return {"server": trial["server"], "client_port": fetch.get("port", 0),
                "sha256": self._digest(trial, fetch),
                "initial_window": first.congestion_window if first else None,
                "mss": first.mss if first else None,
                "fields": Sample._fields[1:4], "samples": [each[1:4] for each in samples]}

    def _digest(self, trial: Mapping[str, Any], fetch: Mapping[str, Any]) -> str:
        """Of what the client has to get: of a server of the user's own what it got at first."""
        path = trial["paths"][-1]
        if "own" not in trial:
            return self.digests[path]
        key = f"{json.dumps(trial['own'], sort_keys=True)} {path}"
        if fetch["ok"]:
            self.digests.setdefault(key, fetch["sha256"])
        return self.digests.get(key, "")

    def log(self) -> dict[str, str]:
        """The server's words so far, as a file that an observation may take away, by name."""
        if self.running is None or not self.running.log.stat().st_size:
            return {}
        self.kept += 1
        place = f"server{self.kept}.log"
        (self.folder / place).write_bytes(self.running.log.read_bytes()[-LOG_BYTES:])
        return {LOG: place}


def port_of(trial: Mapping[str, Any]) -> int:
    return OTHER_SECURE_PORT if "tls" in trial else OTHER_PORT
