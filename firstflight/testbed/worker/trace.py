"""The bench of window traces: the server writes on a schedule, and samples its TCP_INFO."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from firstflight.net import link
from firstflight.testbed.bench import TOOL_DEADLINE_S, WorkerError
from firstflight.testbed.messages import Job, Observation, Response
from firstflight.testbed.network.commands import sysctls_of
from firstflight.testbed.network.links import SERVER_IP
from firstflight.testbed.network.shaping import dropped_between
from firstflight.testbed.worker.fetches import DRAIN_DEADLINE_S, FetchBench

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
WINDOW_FILE = "window.csv"


class TraceBench(FetchBench):
    """The star of the fetches, with a TCP of its own for every trial. See testbed.bench.Bench."""

    def __init__(self, folder: Path, project: Path, sysctls: dict[str, str],
                 alive: Callable[[], None]) -> None:
        super().__init__(folder, project, sysctls, alive)
        self.number = 0  # of files of windows, ever
        self.unavailable = ""  # why the trial cannot run, "" if it can
        self.files: dict[str, str] = {}
        self.path: link.Path | None = None

    def prepare(self, trial: Job) -> None:
        self.files = {}
        self.unavailable = why_unavailable(trial["congestion_control"])
        if self.unavailable:
            return
        self._settle()
        self._fix_ports()
        self._free_server(trial)
        self.server.discard()  # of a trace that failed: its client goes on with a new connection
        self._load("libcurl")
        self.path = link.Path.from_json(trial["network"])
        self._set_sysctls(**sysctls_of(trial, self.requested_sysctls))
        self.install_setting(trial)

    def measure(self, trial: Job, observation: Observation) -> None:
        if self.unavailable:
            observation["skipped"] = self.unavailable
            return

        for tap in self.taps.values():
            tap.discard()
        before = dict(self.star.dropped)
        deadline_s = trial["deadline_s"]
        self.client.order({"think_s": trial["think_s"], "deadline_s": deadline_s,
                           "program": "libcurl", "window_bytes": trial["window_bytes"],
                           "urls": [f"http://{SERVER_IP}{path}" for path in trial["paths"]]})
        if self.path is not None and self.path.down.outage_ms[1]:
            time.sleep(trial["think_s"][0])  # the first packet leaves then
            self._cut(*self.path.down.outage_ms)

        whole_s = deadline_s * len(trial["paths"]) + sum(trial["think_s"])
        answer = self.client.answer(whole_s + TOOL_DEADLINE_S, "end of the transfers")
        observation["fetches"] = answer["fetches"]
        first = answer["fetches"][0]
        if first["ok"] or first.get("port"):  # else the server has nothing to report
            observation["responses"] = self._responses(whole_s)
        self._settle()
        self.star.drain(DRAIN_DEADLINE_S)
        observation["drops"] = dropped_between(before, self.star.dropped)

    def add_recorded(self, observation: Observation) -> None:
        super().add_recorded(observation)
        observation["files"] = self.files

    def _cut(self, from_ms: float, to_ms: float) -> None:
        """Lose every packet to the client between two times, in ms after the first packet."""
        time.sleep(from_ms / 1000)
        self.star.lose_all(True)
        time.sleep((to_ms - from_ms) / 1000)
        self.star.lose_all(False)

    def _responses(self, deadline_s: float) -> list[Response]:
        """The server's report on each response; waits until the connection has ended."""
        responses: list[Response] = []
        while True:
            line = self.server.receive(deadline_s + TOOL_DEADLINE_S, "end of the connection")
            if line["event"] == "response":
                responses.append(cast(Response, line))
            elif line["event"] == "trace":
                self._write_window(line)
            elif line["event"] == "closed":
                if line["error"]:
                    raise WorkerError(f"server: {line['error']}")
                return responses

    def _write_window(self, line: dict[str, Any]) -> None:
        """Write the server's samples as CSV, for the observation's files."""
        self.number += 1
        place = f"window{self.number}.csv"
        rows = [",".join(map(str, row)) for row in (line["fields"], *line["samples"])]
        (self.folder / place).write_text("\n".join(rows) + "\n")
        self.files[WINDOW_FILE] = place


def why_unavailable(congestion_control: str) -> str:
    """Why this kernel cannot run a congestion control; "" if it can."""
    try:
        known = AVAILABLE.read_text().split()
    except OSError as error:
        return f"{AVAILABLE}: {error.strerror}"
    if congestion_control in known:
        return ""
    return (f"this kernel has no congestion control {congestion_control} (it has"
            f" {', '.join(known)}); vtime/kernel/Makefile builds it for a kernel with headers")
