"""The bench of pages in a browser: the star, Chromium, a recorded site, a tap at either end."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from pathlib import Path

from firstflight.testbed.bench import TOOL_DEADLINE_S, Lacking, LineProcess, WorkerError
from firstflight.testbed.hosts.browser.client import MISSING, PROGRAM
from firstflight.testbed.messages import (BROWSER_CLOCK, BROWSER_RANDOM, Job, Observation,
                                            Response)
from firstflight.testbed.network.commands import sysctls_of
from firstflight.testbed.network.shaping import dropped_between
from firstflight.testbed.servers.external import LEAST_LOOK_S, LOOKS_IN_RTT, report_on
from firstflight.testbed.servers import nginx
from firstflight.testbed.servers.program import Sockets, Watch
from firstflight.testbed.site_store import file_name
from firstflight.testbed.servers.replay import LOG, ReplayServer, ports_of
from firstflight.testbed.turns import take_turns
from firstflight.testbed.worker.fetches import DRAIN_DEADLINE_S, OWN_PORTS, FetchBench
from firstflight.testbed.worker.page import ENDLESS_BYTES

START_S = 120.0  # for the browser; a clock that skips computing does not reach it


class BrowserBench(FetchBench):
    """Loads pages in a browser on the star of FetchBench. See testbed.bench.Bench."""

    def __init__(self, folder: Path, project: Path, sysctls: dict[str, str],
                 alive: Callable[[], None]) -> None:
        take_turns()
        super().__init__(folder, project, sysctls, alive)
        self.site = ReplayServer(self.star.server, folder, project)
        self.browser = LineProcess.python(self.star.client, project,
                                          "firstflight.testbed.hosts.browser.client")
        self.started: dict[str, str] = {}  # with what the browser was started
        self.version = ""
        self.sockets = Sockets(self.star.server.pid)
        self.watches: list[Watch] = []
        self.kept_files = 0  # logs and pictures, ever

    def prepare(self, trial: Job) -> None:
        if not PROGRAM.exists():
            raise Lacking(MISSING)
        self._fix_ports(OWN_PORTS)
        self._free_server(trial)
        self._set_sysctls(**sysctls_of(trial, self.requested_sysctls))
        self.log = {}

        site = self.folder / file_name(trial["site"])
        recorded = self.site.prepare(site, trial["http"], trial["tls"],
                                     inherited=self.listens_with)
        self.install_setting(trial)

        libraries = [self.folder / name for name in (BROWSER_RANDOM, BROWSER_CLOCK)]
        start = {"rules": self.site.rules(recorded),
                 "keys": self.site.keys(recorded, trial["tls"]),
                 "libraries": ":".join(str(path) for path in libraries if path.exists())}
        if start != self.started:
            self.version = str(self._ask({"start": start})["version"])
            self.started = start
        self._ask({"prepare": True})

        rtt_s = 2 * trial["network"]["down"]["delay_ms"] / 1000
        every_s = max(rtt_s / LOOKS_IN_RTT, LEAST_LOOK_S)
        self.watches = []
        for port in ports_of(recorded):
            self.watches.append(Watch(self.sockets, port, every_s, until_bytes=ENDLESS_BYTES,
                                      first_only=True))
        self.url = recorded.url

    def measure(self, trial: Job, observation: Observation) -> None:
        for tap in self.taps.values():
            tap.discard()
        before = dict(self.star.dropped)
        observation["browser"] = self.version

        self.browser.order({"url": self.url, "deadline_s": trial["deadline_s"],
                            "phase_ms": trial.get("phase_ms"),
                            "filmed": trial.get("filmed", False)})
        answer = self.browser.answer(trial["deadline_s"] + TOOL_DEADLINE_S, "end of the page",
                                     self._look)

        observation["served"] = self.site.served()
        if answer["error"]:
            self._forget(answer)
            raise WorkerError(str(answer["error"]))
        observation["load"] = answer["load"]
        self._keep(answer["pictures"])
        self._settle()
        observation["responses"] = self._responses()
        self.star.drain(DRAIN_DEADLINE_S)
        observation["drops"] = dropped_between(before, self.star.dropped)

    def close(self) -> None:
        self.sockets.close()
        self.browser.process.kill()
        self.site.close()
        super().close()

    def _responses(self) -> list[Response]:
        """What the first sample of each connection shows."""
        reports = []
        for watch in self.watches:
            for sample in watch.samples:
                reports.append(report_on(nginx.NAME, sample.client_port, [sample]))
        return reports

    def _look(self) -> float | None:
        """Take samples of the server's connections; the seconds until the next look."""
        return min(watch.look() or LEAST_LOOK_S for watch in self.watches)

    def _ask(self, request: dict[str, object]) -> dict[str, object]:
        """Ask the browser for what needs no time of the network. Raises WorkerError."""
        self.browser.order(request)
        answer = self.browser.answer(START_S, "answer of the browser")
        if answer["error"]:
            self._forget(answer)
            raise WorkerError(str(answer["error"]))
        return answer

    def _keep(self, pictures: Mapping[str, str]) -> None:
        """Keep pictures of the page with the trial. pictures: PNGs in base64, by name."""
        for name, content in pictures.items():
            self.kept_files += 1
            place = f"{name}{self.kept_files}.png"
            (self.folder / place).write_bytes(base64.b64decode(content))
            self.log = {**self.log, f"{name}.png": place}

    def _forget(self, answer: dict[str, object]) -> None:
        """Start the browser anew for the next trial, whatever this one did to it."""
        self.started = {}
        if log := self.site.log():
            self.kept_files += 1
            place = f"server{self.kept_files}.log"
            (self.folder / place).write_bytes(log)
            self.log = {LOG: place}
