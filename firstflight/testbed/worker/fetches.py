"""The bench of single fetches: the star, one client, one server, a tap at either end."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast

from firstflight.net import link
from firstflight.testbed.bench import TOOL_DEADLINE_S, LineProcess, WorkerError
from firstflight.testbed.hosts import http_client
from firstflight.testbed.messages import (FORK_SERVER, KERNEL_RANDOM, Fetch, Job, Observation,
                                            Response)
from firstflight.testbed.network.commands import curves_of, named_of, sysctls_of, urls_of
from firstflight.testbed.network.kernel import set_sysctls
from firstflight.testbed.network.netlink import Network
from firstflight.testbed.network.links import SERVER_IP, RouteOptions
from firstflight.testbed.network.shaping import dropped_between
from firstflight.testbed.network.topology import Star
from firstflight.testbed.restart import SEED_FILE
from firstflight.testbed.worker.tap import Capture, Tap

if TYPE_CHECKING:  # only trials with TLS, or with another server than server.py, need them
    from firstflight.testbed.servers.external import Chains, ExternalServers
    from firstflight.testbed.servers.program import Watch

# For packets after the last byte: FINs and ACKs, even the answer to a late SYN.
DRAIN_DEADLINE_S = 300.0
# For connections whose FIN is lost repeatedly: eight times up to TCP_RTO_MAX (tcp_orphan_retries).
SETTLE_DEADLINE_S = 1000.0
# Until a client has reset all that a server sends while it ends, lost packets included.
FORGET_S = 60.0
SECURE_PORT = 443
AGAIN, FORGOTTEN = "listening again", "forgotten"  # events
TIME_STAMPS = "net.ipv4.tcp_timestamps"
# Sysctls whose value a connection has from the listening socket: the value when that was opened
# (tcp_init_sock), not the current one.
INHERITED = frozenset(f"net.ipv4.tcp_{name}" for name in (
    "reordering", "rmem", "wmem", "rto_min_us", "rto_max_ms"))
SETTLE_S = 0.05  # the least time between two looks
ALIVE_S = 60.0  # after which the worker reports that nothing hangs
TABLE_BYTES, ROW_BYTES = 1 << 16, 150  # of /proc/net/tcp (TMPSZ in tcp_ipv4.c)
HELD_S = 61.0  # a connection is in TIME_WAIT for 60 s, and its timer up to 0.5 s late
# Ranges from which the client's kernel chooses a port. Out of many ports the choice depends on the
# connections before; of two it takes the first.
OWN_PORTS, FIXED_PORTS = "32768 60999", "40000 40001"


class FetchBench:
    """Runs fetches, one at a time, and records all their packets. See testbed.bench.Bench."""

    def __init__(self, folder: Path, project: Path, sysctls: dict[str, str],
                 alive: Callable[[], None]) -> None:
        self.folder, self.alive, self.requested_sysctls = folder, alive, sysctls
        self.star = Star(sysctls)
        self.sysctls = self.star.sysctls

        self.server = LineProcess.python(
            self.star.server, project, "firstflight.testbed.hosts.http_server",
            "--address", SERVER_IP, "--secure-port", str(SECURE_PORT))
        # Started before any trial. Where it started with the first trial that needed it, a trace
        # with BBR differed by 0.5 µs from run to run on a busy machine.
        self.client = LineProcess.python(
            self.star.client, project, "firstflight.testbed.hosts.http_client")
        self.client_network = Network(self.star.client.pid)
        self.loaded: set[str] = set()  # programs, by client.py
        self.external: ExternalServers | None = None  # once a trial wants one

        self.taps = {"client": Tap(self.star.client.pid, "client-eth0"),
                     "server": Tap(self.star.server.pid, "server-eth0")}
        # Each file belongs to the network namespace of the process in its path, as it was opened.
        self.tables = [os.open(f"/proc/{host.pid}/net/tcp", os.O_RDONLY)
                       for host in (self.star.client, self.star.server)]
        self.client_counts, self.server_counts = (
            os.open(f"/proc/{host.pid}/net/sockstat", os.O_RDONLY)
            for host in (self.star.client, self.star.server))
        self.server.receive(TOOL_DEADLINE_S, "listening socket")
        self.captures = {side: Capture(folder / f"{side}.pcap") for side in self.taps}
        self.restarts = SEED_FILE.exists()  # whether trials begin alike (testbed.restart)

        # Of the latest trial:
        self.listens_with: dict[str, str] = {}  # the trial's own sysctls among INHERITED
        self.is_stamped = True  # whether its connections have time stamps
        self.is_secure = False
        self.ports = ""  # from which the client's kernel chooses; "" for its own range
        self.trusted: Path | None = None  # the root of the server's chain, None without TLS
        self.watch: Watch | None = None  # of the external server, None for server.py
        self.log: dict[str, str] = {}  # of that server, to be kept with the trial

    @cached_property
    def chains(self) -> Chains:
        """The certificate chains of server.py."""
        from firstflight.testbed.servers.external import Chains
        return Chains(self.folder, self.server, SERVER_IP)

    def prepare(self, trial: Job) -> None:
        may_reconnect = bool(trial.get("tls", {}).get("apart_s")) or "own" in trial
        self._fix_ports(OWN_PORTS if may_reconnect else FIXED_PORTS)
        self._free_server(trial)
        # A fetch that failed may have left reports: of a connection that nobody awaited, or late
        # ones.
        self.server.discard()
        if is_fetched_here(trial):
            http_client.import_library()
        else:
            self._load(trial["client"])
        self._set_sysctls(**sysctls_of(trial, self.requested_sysctls))
        self.watch, self.log, self.trusted = None, {}, None
        if "server" in trial:
            self.trusted = self._start_external(trial)
        elif "tls" in trial:
            self.trusted = self.chains.show(trial)
        self.install_setting(trial)

    def install_setting(self, trial: Job) -> None:
        """Set network and TCP of a trial. Raises NetworkError where the kernel has it otherwise."""
        self.is_secure = "tls" in trial
        self.star.install(link.Path.from_json(trial["network"]))
        self.star.set_routes(trial["initcwnd"], trial["initrwnd"], trial["congestion_control"],
                             RouteOptions(**trial.get("options", {})))
        self.star.set_neighbours(trial.get("arp_ms", 0))

    def _set_sysctls(self, client: Mapping[str, str], server: Mapping[str, str]) -> None:
        """Set a trial's own sysctls at both hosts, also for the server's listening sockets.

        Raises NetworkError, KernelLacks, WorkerError.
        """
        self.star.set_trial_sysctls(client=client, server=server)
        inherited = {name: value for name, value in server.items() if name in INHERITED}
        if inherited != self.listens_with:
            self._order_server("listen", AGAIN)
            self.listens_with = inherited

    def _order_server(self, order: str, event: str) -> None:
        """Give server.py an order, and wait for the event that ends it.

        Events of an earlier trial are skipped. Raises WorkerError, ProgramEnded.
        """
        self.server.send({order: True})
        while self.server.receive(TOOL_DEADLINE_S, event)["event"] != event:
            pass

    def _start_external(self, trial: Job) -> Path | None:
        """Start another server than server.py; return the root to trust.

        Raises Lacking, WorkerError.
        """
        from firstflight.testbed.servers.external import ExternalServers
        if self.external is None:
            self.external = ExternalServers(self.star.server, self.folder, self.chains)
        try:
            trusted = self.external.prepare(trial, self.listens_with)
        except WorkerError:
            self.log = self.external.log()
            raise
        self.watch = self.external.watch(trial)
        return trusted

    def _load(self, program: str) -> None:
        """Let the client load a program, once. Raises WorkerError, ProgramEnded."""
        if program in self.loaded:
            return
        libraries = [self.folder / name for name in (FORK_SERVER, KERNEL_RANDOM)]
        preload = [str(library) for library in libraries if library.exists()]
        self.client.order({"load": program, "preload": preload})
        self.client.answer(TOOL_DEADLINE_S, f"loading of {program}")
        self.loaded.add(program)

    def measure(self, trial: Job, observation: Observation) -> None:
        for tap in self.taps.values():
            tap.discard()
        before = dict(self.star.dropped)
        observation["fetch"] = self._fetch(trial)
        observation["server"] = self._server_report(trial, observation["fetch"])
        self._settle()
        self.star.drain(DRAIN_DEADLINE_S)
        observation["drops"] = dropped_between(before, self.star.dropped)

    def add_recorded(self, observation: Observation) -> None:
        streams = None
        if self.is_secure:
            from firstflight.testbed.worker.tls_streams import TlsStreams
            streams = TlsStreams()
        client, server = self.taps["client"], self.taps["server"]
        observation["captures"] = {
            "client": self.captures["client"].add([client]),
            "server": self.captures["server"].add([server], streams)}
        if streams is not None:
            observation["records"] = streams.report()
        if self.log:
            observation["files"] = self.log

    def close(self) -> None:
        for capture in self.captures.values():
            capture.close()
        for file in (*self.tables, self.client_counts, self.server_counts):
            os.close(file)
        self.client_network.close()
        if self.external is not None:
            self.external.close()
        for program in (self.server, self.client):
            program.process.kill()
        self.star.stop()

    def _fetch(self, trial: Job) -> Fetch:
        """Let the client fetch what a trial requests; return its report."""
        deadline_s = trial["deadline_s"]
        request = {"program": trial["client"], "deadline_s": deadline_s, "urls": urls_of(trial)}
        if "think_s" in trial:
            request["think_s"] = trial["think_s"]
        if "window_bytes" in trial:
            request["window_bytes"] = trial["window_bytes"]
        if "request_bytes" in trial:
            request["request_bytes"] = trial["request_bytes"]
        if self.trusted is not None:
            request.update(trusted=str(self.trusted), apart_s=trial["tls"]["apart_s"],
                           http=trial.get("http", "1.1"), curves=curves_of(trial),
                           named=named_of(trial), early_bytes=trial["tls"]["early_data_bytes"])

        whole_s = (len(trial["paths"]) * deadline_s + sum(trial.get("think_s", ()))
                   + trial.get("tls", {}).get("apart_s", 0) + TOOL_DEADLINE_S)
        if is_fetched_here(trial):
            with self.client_network.entered():
                return measured_of(http_client.answer_request(request, self.folder)["fetches"])
        self.client.order(request)
        if self.watch is None:
            answer = self.client.answer(whole_s, "end of the fetch")
        else:
            answer = self.client.answer(whole_s, "end of the fetch", self.watch.look)
        return measured_of(answer["fetches"])

    def _settle(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Wait until no connection is open at either end. Raises WorkerError after a long time.

        A connection whose FIN was lost lives on: it would send during the next trial, and use
        random numbers that belong to that trial. meanwhile: called while a connection is open.
        """
        begun, reports = time.monotonic(), 0
        pause_s = max(self.star.pause_s, SETTLE_S)
        while any(map(open_connections, self.tables)):
            waited_s = time.monotonic() - begun
            if waited_s > SETTLE_DEADLINE_S:
                self._forget_clients()
                return
            if waited_s > ALIVE_S * (reports + 1):
                self.alive()
                reports += 1
            meanwhile()
            time.sleep(pause_s)

    def _forget_clients(self) -> None:
        """End what is left of connections whose client gave its FIN up.

        Their server would wait for them for ever (tcp_orphan_retries). server.py closes them
        without a packet; another server ends, and the client's kernel resets what it says. Raises
        WorkerError where a connection stays.
        """
        of_client, of_server = self.tables
        if not open_connections(of_client):
            self._order_server("forget", FORGOTTEN)
            if self.external is not None:
                self.external.stop()
                time.sleep(FORGET_S)
        if open_connections(of_client) or open_connections(of_server):
            raise WorkerError(f"a connection is still open {SETTLE_DEADLINE_S:g} s after the"
                              " transfer")

    def _fix_ports(self, ports: str = FIXED_PORTS) -> None:
        """Let the client's kernel choose the same port in each trial, whatever ran before it.

        With FIXED_PORTS it takes the first. The trial before may still hold that port (TIME_WAIT),
        so this waits, which takes no time in a guest; a server in TIME_WAIT accepts the new
        connection. A trial whose client may open several connections needs OWN_PORTS, since each
        connection has to have a port of its own. Outside a guest nothing is set.
        """
        if not self.restarts:
            return
        if ports != self.ports:
            set_sysctls(self.star.client, {"net.ipv4.ip_local_port_range": ports})
            self.ports = ports
        while ports_held(self.client_counts):
            time.sleep(HELD_S)

    def _free_server(self, trial: Job) -> None:
        """Wait until the server has no connection in TIME_WAIT, where that would take no new one.

        Where the new connection or the one before has no time stamps, the server would answer the
        SYN by an acknowledgement of the trial before (tcp_timewait_state_process).
        """
        settings = {**self.requested_sysctls, **trial.get("host_sysctls", {}),
                    **trial.get("sysctls", {})}
        was_stamped, self.is_stamped = self.is_stamped, settings.get(TIME_STAMPS) != "0"
        both_are_stamped = was_stamped and self.is_stamped
        while self.restarts and not both_are_stamped and ports_held(self.server_counts):
            time.sleep(HELD_S)

    def _server_report(self, trial: Job, fetch: Fetch) -> Response:
        """The report of server.py, or the one on another server."""
        if self.watch is None or self.external is None:
            return self._server_lines(trial, fetch)
        if not fetch["ok"]:
            self.log = self.external.log()
        return self.external.report(trial, fetch, self.watch)

    def _server_lines(self, trial: Job, fetch: Fetch) -> Response:
        """server.py's report on the response, once all connections have ended."""
        report: Response = {}
        if not fetch["ok"] and not fetch.get("port"):
            return report  # never connected: the server has nothing to report

        still_open = len(trial["paths"]) if trial.get("tls", {}).get("apart_s") else 1
        while True:
            line = self.server.receive(trial["deadline_s"] + TOOL_DEADLINE_S,
                                       "end of the connection")
            if line["event"] == "response":
                report = cast(Response, line)
            elif line["event"] == "closed":
                still_open -= 1
                if line["error"]:
                    report["error"] = line["error"]
                if not still_open or line["error"]:
                    return report


def is_fetched_here(trial: Job) -> bool:
    """Whether this process fetches by curl's library, in the client's network.

    For each of tens of thousands of trials that saves switching to the client's process and back.
    Over TLS curl has to fetch; with another server, this process takes samples during the fetch.
    """
    return trial["client"] == "libcurl" and "tls" not in trial and "server" not in trial


def measured_of(fetches: list[Fetch]) -> Fetch:
    """The last of a trial's fetches, or the first that failed.

    After a failure the client uses a new connection, and the last fetch is not the intended one.
    """
    failed = next((fetch for fetch in fetches[:-1] if not fetch["ok"]), None)
    if failed is None:
        return fetches[-1]
    failed["error"] = f"the response before: {failed['error']}"
    return failed


def open_connections(table: int) -> int:
    """How many sockets of an open /proc/net/tcp may still send: not TIME_WAIT, CLOSE, LISTEN."""
    text = b""
    while more := os.pread(table, TABLE_BYTES, len(text)):
        text += more
        if len(more) + ROW_BYTES < resource.getpagesize():
            break  # the kernel reads as many rows as a page can hold (seq_read_iter)
    return sum(row.split()[3] not in (b"06", b"07", b"0A") for row in text.splitlines()[1:])


def ports_held(counts: int) -> bool:
    """Whether an open /proc/net/sockstat counts connections in TIME_WAIT.

    /proc/net/tcp has them, too, but there the kernel looks through ten thousand empty rows.
    """
    words = os.pread(counts, TABLE_BYTES, 0).split()
    return words[words.index(b"tw") + 1] != b"0"
