"""The bench of load runs: the dumbbell, a server on every server host, a generator on every client.

What a run leaves as files, CSV with a header each:

    client<n>.csv, server<n>.csv    a row a connection (testbed/hosts/)
    bottleneck.csv                  the bottleneck's counters over time

Packets of every SAMPLED_PORTS-th port are captured at both ends, for the first SAMPLED_HOSTS
clients: enough to check TCP's own reports by packets.
"""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Callable
from pathlib import Path

from firstflight.testbed.bench import TOOL_DEADLINE_S, LineProcess, WorkerError
from firstflight.testbed.messages import Job, Observation
from firstflight.testbed.network.commands import sysctls_of
from firstflight.testbed.network.shaping import DumbbellLinks
from firstflight.testbed.network.topology import Dumbbell
from firstflight.testbed.worker.tap import Capture, Tap
from vtime import shared_folder

QUEUE_INTERVAL_S = 0.1
ALIVE_INTERVAL_S = 10.0
START_S = 0.1  # from the command to the first moment that an arrival may have
SAMPLED_PORTS = 128
SAMPLED_HOSTS = 4
QUEUE_COLUMNS = ("time_s", "bytes", "packets", "drops", "queue_packets")


class LoadBench:
    """Runs load runs, each on its own network. See testbed.bench.Bench."""

    def __init__(self, folder: Path, project: Path, sysctls: dict[str, str],
                 alive: Callable[[], None]) -> None:
        self.project, self.requested_sysctls, self.alive = project, sysctls, alive
        self.job_folder = self.folder = folder
        self.captures = {side: Capture(folder / f"{side}.pcap")
                         for side in ("client", "server")}
        self.runs = 0
        self.sysctls: dict[str, dict[str, str]] = {}
        self.net: Dumbbell | None = None
        self.servers: list[LineProcess] = []
        self.clients: list[LineProcess] = []
        self.taps: dict[str, list[Tap]] = {"client": [], "server": []}

    def prepare(self, trial: Job) -> None:
        self._end_programs()
        # A folder for each run: the engine reads one while the next is under way.
        self.runs += 1
        self.folder = self.job_folder / f"run{self.runs}"
        self.folder.mkdir()

        self.net = self._build_net(trial)
        self.sysctls = self.net.sysctls
        self._start_programs(self.net)

    def _build_net(self, trial: Job) -> Dumbbell:
        """The network of a trial, with its sysctls, links and windows."""
        links = DumbbellLinks.from_json(trial["network"])
        net = Dumbbell(len(links.clients), trial["servers"], self.requested_sysctls)
        net.set_trial_sysctls(**sysctls_of(trial, self.requested_sysctls))
        net.install(links)
        net.set_windows(trial["client_initcwnd"], trial["initrwnd"], trial["congestion_control"],
                        advertised_mss=trial.get("options", {}).get("advertised_mss", 0))
        return net

    def _start_programs(self, net: Dumbbell) -> None:
        """Start servers, clients and taps."""
        for number, host in enumerate(net.servers, start=1):
            records = str(self.folder / f"server{number}.csv")
            self.servers.append(LineProcess.python(
                host, self.project, "firstflight.testbed.hosts.load_server",
                records, "--address", host.IP()))
        for server in self.servers:
            server.receive(TOOL_DEADLINE_S, "listening socket")
        self.clients = [
            LineProcess.python(host, self.project, "firstflight.testbed.hosts.load_client")
            for host in net.clients]

        sampled = [host.IP() for host in net.clients[:SAMPLED_HOSTS]]
        for side, hosts in (("client", net.clients[:SAMPLED_HOSTS]), ("server", net.servers)):
            self.taps[side] = [Tap(host.pid, f"{host.name}-eth0", SAMPLED_PORTS, hosts=sampled)
                               for host in hosts]

    def measure(self, trial: Job, observation: Observation) -> None:
        assert self.net is not None
        # A whole tenth of a second, so that events are due at the same readings of the clock.
        start_s = math.ceil(time.monotonic() * 10 + START_S * 10) / 10
        servers = [host.IP() for host in self.net.servers]
        for number, (client, traffic) in enumerate(zip(self.clients, trial["traffic"]), start=1):
            client.send({**traffic, "servers": servers, "port": 80, "name": str(number),
                         "start_s": start_s, "duration_s": trial["duration_s"],
                         "file": str(self.folder / f"client{number}.csv")})
        self._watch_bottleneck(trial, start_s)

        ended = [client.receive(TOOL_DEADLINE_S, "end of the traffic") for client in self.clients]
        failed = [line["error"] for line in ended if line["event"] != "done"]
        if failed:
            raise WorkerError(f"firstflight.testbed.hosts.load_client: {failed[0]}")
        observation["ended_servers"] = self._stop_servers()

    def _watch_bottleneck(self, trial: Job, start_s: float) -> None:
        """Record the bottleneck's counters until the traffic ends."""
        assert self.net is not None
        alive_s = start_s
        with (self.folder / "bottleneck.csv").open("w", newline="", encoding="ascii") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(QUEUE_COLUMNS)
            for step in range(round(trial["duration_s"] / QUEUE_INTERVAL_S) + 1):
                due_s = start_s + step * QUEUE_INTERVAL_S
                time.sleep(max(0.0, due_s - time.monotonic()))
                now_s, counters = time.monotonic(), self.net.bottleneck()
                values = [counters[name] for name in QUEUE_COLUMNS[1:]]
                writer.writerow([f"{now_s - start_s:.6f}", *values])
                if now_s - alive_s > ALIVE_INTERVAL_S:
                    alive_s = now_s
                    self.alive()

    def _stop_servers(self) -> list[int]:
        """Let the servers write their records; return the numbers of those that have died."""
        dead = []
        for number, server in enumerate(self.servers, start=1):
            try:
                server.send({"event": "stop"})
                server.receive(TOOL_DEADLINE_S, "records of the connections")
            except WorkerError:
                if server.process.poll() is None:
                    raise
                shared_folder.probe(self.folder)  # raises if a full disk ended it
                dead.append(number)
        return dead

    def add_recorded(self, observation: Observation) -> None:
        observation["files"] = {path.name: f"{self.folder.name}/{path.name}"
                                for path in sorted(self.folder.glob("*.csv"))}
        observation["captures"] = {side: self.captures[side].add(taps)
                                   for side, taps in self.taps.items()}

    def close(self) -> None:
        self._end_programs()
        for capture in self.captures.values():
            capture.close()

    def _end_programs(self) -> None:
        for program in (*self.servers, *self.clients):
            program.process.kill()
        for taps in self.taps.values():
            for tap in taps:
                tap.close()
        self.servers, self.clients, self.taps = [], [], {"client": [], "server": []}
        if self.net is not None:
            self.net.stop()
            self.net = None
