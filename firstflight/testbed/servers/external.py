"""Runs nginx or the user's own server for a bench: one at a time, with each trial's settings."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from firstflight.net import link
from firstflight.testbed.bench import TOOL_DEADLINE_S, Lacking, LineProcess, WorkerError
from firstflight.testbed.hosts import certificates
from firstflight.testbed.hosts.certificates import (CertificateError, ChainFiles, ChainSpec,
                                                    HostChain)
from firstflight.testbed.hosts.downloads import host_name
from firstflight.testbed.hosts.serving import body_of
from firstflight.testbed.messages import KERNEL_RANDOM, Fetch, Job, OwnServer, Response, Tls
from firstflight.testbed.network.commands import OTHER_PORT, OTHER_SECURE_PORT
from firstflight.testbed.network.kernel import Host
from firstflight.testbed.network.links import SERVER_IP
from firstflight.testbed.servers import nginx
from firstflight.testbed.servers.program import (LOG_BYTES, Program, SocketSample, Sockets, Watch,
                                                 answers, takes_connections)
from firstflight.testbed.restart import BEGINS_S, drawn_alike

LOG = "server.log"
OWN = "the server"  # the user's own one, in messages
LAUNCH = str(Path(__file__).resolve().with_name("launch.py"))
LOOKS_IN_RTT = 8
LEAST_LOOK_S = 0.001
# A server sends at most so much besides the chain before its response: hellos, tickets, settings.
AROUND_CHAIN_BYTES = 16_384
MOST_CHAIN_BYTES = 100_000  # the longest chain that OpenSSL's clients take from another server


@dataclass(frozen=True)
class ServerSpec:
    """A server with the settings of a trial; other settings need another process."""

    name: str  # in messages
    settings: object
    command: Callable[[], list[str]]  # returns the command that starts it
    folder: Path  # where it runs
    ready: Callable[[], bool]  # returns whether it answers


class ExternalServers:
    """The servers that replace server.py in testbed.worker.fetches.FetchBench."""

    def __init__(self, host: Host, folder: Path, chains: Chains) -> None:
        self.host, self.folder, self.chains = host, folder, chains
        self.own_folder = Path(tempfile.mkdtemp(prefix="first-flight-server-"))
        self.bodies = self.own_folder / "bodies"
        self.bodies.mkdir()
        # By path: digests of nginx's files; for another server, of what was fetched first.
        self.digests: dict[str, str] = {}
        self.running: Program | None = None
        self.settings: object = None  # as which it runs
        self.sockets = Sockets(host.pid)
        self.logs = 0

    def close(self) -> None:
        self.stop()
        self.sockets.close()
        shutil.rmtree(self.own_folder, ignore_errors=True)

    def prepare(self, trial: Job, inherited: Mapping[str, str] = MappingProxyType({})
                ) -> Path | None:
        """Have the server of a trial run; the root to trust, None for plain HTTP.

        inherited: the trial's own sysctls that a connection has as they were when its server began
        to listen. Raises Lacking where it is missing, WorkerError if it does not start.
        """
        tls, requested = trial.get("tls"), trial.get("own")
        chains = self.chains.of_trial(trial) if tls and tls["chain_bytes"] else ()
        files = chains[0].files if chains else None
        if requested:
            spec = self._own(trial, requested, files)
        else:
            spec = self._nginx(trial, chains)
        spec = replace(spec, settings=(spec.settings, dict(inherited)))
        if self.running is None or spec.settings != self.settings \
                or self.running.process.poll() is not None:
            self._start(spec, port_of(trial))

        if files:
            return files.root
        return Path(requested["ca"]) if requested and requested["ca"] else None

    def _nginx(self, trial: Job, chains: Sequence[HostChain]) -> ServerSpec:
        if nginx.program() is None:
            raise Lacking(nginx.MISSING)
        for path in trial["paths"]:
            self._write_body(path)

        port, folder = port_of(trial), self.own_folder
        settings = nginx.Settings.of_trial(SERVER_IP, port, chains, tls=trial.get("tls"),
                                           is_page="objects" in trial)

        def command() -> list[str]:
            return [*drawing_from_kernel(self.folder),
                    *nginx.command(settings, folder, self.bodies)]

        return ServerSpec(nginx.NAME, settings, command, folder=folder,
                          ready=lambda: takes_connections(self.host, port))

    def _own(self, trial: Job, requested: OwnServer, files: ChainFiles | None) -> ServerSpec:
        port, path = port_of(trial), requested["ready"]

        def is_ready() -> bool:
            if path:
                return answers(self.host, port, path, is_secure="tls" in trial)
            return takes_connections(self.host, port)

        return ServerSpec(OWN, settings=(dict(requested), port, files),
                          command=lambda: own_command(requested, port, files),
                          folder=self.own_folder, ready=is_ready)

    def _start(self, spec: ServerSpec, port: int) -> None:
        self.stop()
        self.running = Program(spec.name, self.host, spec.command(), log=self.own_folder / LOG,
                               folder=spec.folder)
        self.running.wait_until(spec.ready, port)
        self.settings = spec.settings

    def stop(self) -> None:
        """End the server, and with it its connections; the next trial starts one."""
        if self.running is not None:
            self.running.stop()
        self.running = self.settings = None

    def _write_body(self, path: str) -> None:
        """Write the file of a path, which names its size; it is the same as server.py's body."""
        if path in self.digests:
            return
        body = body_of(int(path.lstrip("/")))
        file = self.bodies / path.lstrip("/")
        file.write_bytes(body)
        os.utime(file, (BEGINS_S, BEGINS_S))  # nginx's headers have it
        self.digests[path] = hashlib.sha256(body).hexdigest()

    def watch(self, trial: Job) -> Watch:
        """The Watch that samples the connections of a trial while it runs."""
        rtt_ms = link.Path.from_json(trial["network"]).rtt_ms
        every_s = max(rtt_ms / 1000 / LOOKS_IN_RTT, LEAST_LOOK_S)
        until_bytes = 0
        if "tls" in trial:
            chain_bytes = trial["tls"]["chain_bytes"] or MOST_CHAIN_BYTES
            until_bytes = chain_bytes + AROUND_CHAIN_BYTES
        return Watch(self.sockets, port_of(trial), every_s, until_bytes=until_bytes)

    def report(self, trial: Job, fetch: Fetch, watch: Watch) -> Response:
        """The report on a trial's connection, from samples instead of the server's own report.

        Raises WorkerError if the server has ended meanwhile.
        """
        if not fetch["ok"] and self.running is not None:
            self.running.check()
        port = fetch.get("port", 0)
        samples = watch.of_client(port)
        report = report_on(trial["server"], port, samples)
        report["sha256"] = self._digest(trial, fetch)
        report["samples"] = [sample[1:4] for sample in samples]
        return report

    def _digest(self, trial: Job, fetch: Fetch) -> str:
        """The digest of the right body; for the user's own server, that of the first fetch."""
        path = trial["paths"][-1]
        if "own" not in trial:
            return self.digests[path]
        key = f"{json.dumps(trial['own'], sort_keys=True)} {path}"
        if fetch["ok"]:
            self.digests.setdefault(key, fetch["sha256"])
        return self.digests.get(key, "")

    def log(self) -> dict[str, str]:
        """A copy of the server's output so far, as a file of an observation, by name."""
        if self.running is None or not self.running.log.stat().st_size:
            return {}
        self.logs += 1
        place = f"server{self.logs}.log"
        (self.folder / place).write_bytes(self.running.log.read_bytes()[-LOG_BYTES:])
        return {LOG: place}


def report_on(server: str, client_port: int, samples: Sequence[SocketSample]) -> Response:
    """What samples show of a connection's socket at first; no sample and no digest is in it."""
    report: Response = {
        "server": server, "client_port": client_port, "sha256": "", "initial_window": None,
        "mss": None, "fields": SocketSample._fields[1:4], "samples": []}
    first = next((sample for sample in samples if not sample.acknowledged_bytes), None)
    if first is not None:
        report.update({
            "initial_window": first.congestion_window,
            "mss": first.mss,
            "congestion_control": first.congestion_control,
            "first_buffer_bytes": first.send_buffer_bytes,
            "pacing_bytes_per_s": first.pacing_bytes_per_s,
            "is_pacing_limited": first.is_pacing_limited})
    return report


def port_of(trial: Job) -> int:
    """The port of another server than server.py in a trial."""
    return OTHER_SECURE_PORT if "tls" in trial else OTHER_PORT


def drawing_from_kernel(folder: Path) -> list[str]:
    """The words in front of a command, so that OpenSSL draws from the kernel in it.

    hosts/kernel_random.c does that. folder: the worker's. [] where it has no such library.
    """
    library = folder / KERNEL_RANDOM
    return ["env", f"LD_PRELOAD={library}"] if library.exists() else []


def own_command(own: OwnServer, port: int, files: ChainFiles | None) -> list[str]:
    """The command that starts the user's own server by launch.py, with its placeholders filled in.
    """
    values = {"{p}": str(port), "{address}": SERVER_IP}
    if files is not None:
        values.update({"{chain}": str(files.chain), "{key}": str(files.key)})
    words = []
    for word in own["command"]:
        for mark, value in values.items():
            word = word.replace(mark, value)
        words.append(word)
    requested = {"command": words, "folders": own["folders"], "in_memory": is_read_only("/")}
    return [sys.executable, "-S", "-E", LAUNCH, json.dumps(requested)]


def is_read_only(path: str) -> bool:
    """Whether a path is on a read-only file system, as a guest's root is."""
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)


# TLS on a bench: chains made for the run, and a server that uses one of them -------

FOLDER = "tls"  # in the worker's folder, which is removed after the run


class Chains:
    """The chains of one bench, each made once."""

    def __init__(self, folder: Path, server: LineProcess, address: str) -> None:
        """address: of the server, for which its certificates are."""
        self.folder, self.server, self.address = folder / FOLDER, server, address
        self.library = folder / KERNEL_RANDOM  # where there is one
        if self.library.exists():
            ctypes.CDLL(str(self.library))  # for the keys that this process makes
        self.issued: dict[ChainSpec, ChainFiles] = {}
        self.shown: dict[str, object] = {}

    def show(self, trial: Job) -> Path:
        """Let server.py use a trial's chains and settings; return the root to trust.

        Of several chains it is that of the first. Raises WorkerError.
        """
        tls = trial["tls"]
        first, *others = self.of_trial(trial)
        order: dict[str, object] = {
            "chain": str(first.files.chain), "key": str(first.files.key),
            "others": [{"names": other.names, "chain": str(other.files.chain),
                        "key": str(other.files.key)} for other in others],
            "tickets": tls["tickets"], "record_bytes": tls["record_bytes"],
            "buffer_bytes": tls["buffer_bytes"]}
        if self.library.exists():
            order["library"] = str(self.library)

        if order != self.shown:
            self.server.send(order)
            answer = self.server.receive(TOOL_DEADLINE_S, "word on its certificates")
            if answer["error"]:
                raise WorkerError(f"server: {answer['error']}")
            self.shown = order
        return first.files.root

    def of_trial(self, trial: Job) -> tuple[HostChain, ...]:
        """A trial's chains, first that of the server's address. Raises WorkerError.

        A page may have several, each for some of its hosts.
        """
        chains: list[HostChain] = []
        for names in host_names(trial):
            files = self._files(trial["tls"], names, has_address=not chains)
            chains.append(HostChain(names, files))
        return tuple(chains)

    def _files(self, tls: Tls, names: tuple[str, ...], has_address: bool) -> ChainFiles:
        """The files of a chain. Raises WorkerError."""
        requested = ChainSpec(tls["chain_bytes"], tls["signature"], tls["intermediates"],
                              address=self.address if has_address else "", names=names)
        if requested not in self.issued:
            folder = self.folder / str(len(self.issued))
            try:
                with drawn_alike():
                    self.issued[requested] = certificates.make_chain(folder, requested)
            except (CertificateError, OSError) as error:
                raise WorkerError(f"certificates: {error}") from error
        return self.issued[requested]


def host_names(trial: Job) -> tuple[tuple[str, ...], ...]:
    """The names that each certificate of a trial is for.

    The first certificate is also for the address, which the document's host has in place of a name.
    """
    certificates = trial.get("certificates", (0,))
    names: dict[int, list[str]] = {certificate: [] for certificate in certificates}
    for host, certificate in enumerate(certificates):
        if host:
            names[certificate].append(host_name(host))
    return tuple(map(tuple, names.values()))
