"""The bench of pages: the star, a client of many connections, a server, a tap at either end."""

from __future__ import annotations

import json
import os
import resource
import select
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from firstflight.testbed.bench import TOOL_DEADLINE_S, LineProcess, ProgramEnded, WorkerError
from firstflight.testbed.messages import KERNEL_RANDOM, Job, Observation, Response
from firstflight.testbed.network.commands import curves_of, sysctls_of
from firstflight.testbed.network.links import SERVER_IP
from firstflight.testbed.network.shaping import dropped_between
from firstflight.testbed.servers.external import port_of, report_on
from firstflight.testbed.worker.fetches import DRAIN_DEADLINE_S, SECURE_PORT, FetchBench

OWN_PORT = 80  # of server.py without TLS
ENDLESS_BYTES = 1 << 62
HTTP_2 = "2"


class PageBench(FetchBench):
    """Runs pages on the star of FetchBench, with a browser. See testbed.bench.Bench."""

    def __init__(self, folder: Path, project: Path, sysctls: dict[str, str],
                 alive: Callable[[], None]) -> None:
        # For all programs that this process starts: a page may have a thousand connections, and
        # nginx opens a file for each response.
        _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
        super().__init__(folder, project, sysctls, alive)
        self.browser = LineProcess.python(self.star.client, project,
                                          "firstflight.testbed.hosts.page_client")
        # The library loads what it needs with the first page that it is asked for.
        library = folder / KERNEL_RANDOM
        self.browser.order({"library": str(library) if library.exists() else "",
                            "address": SERVER_IP, "port": OWN_PORT, "http": "1.1",
                            "connections": 1, "deadline_s": 0, "objects": [[1, 0, 0, 0, 0, 0]]})
        self.browser.answer(TOOL_DEADLINE_S, "loading of libcurl")
        self._settle()

    def prepare(self, trial: Job) -> None:
        self._fix_ports()
        self.server.discard()
        # Here, before the start: there an empty tap takes a microsecond (a call that fails), and
        # one that holds packets none, as what the library sent while it loaded.
        for tap in self.taps.values():
            tap.discard()
        self._set_sysctls(**sysctls_of(trial, self.requested_sysctls))
        self.watch, self.log, self.trusted = None, {}, None
        if "server" in trial:
            self.trusted = self._start_external(trial)
            assert self.watch is not None
            # To the end: a page opens connections late, too.
            self.watch = replace(self.watch, until_bytes=ENDLESS_BYTES, first_only=True,
                                 connections=connections_of(trial))
        elif "tls" in trial:
            self.trusted = self.chains.show(trial)
        self.install_setting(trial)

    def measure(self, trial: Job, observation: Observation) -> None:
        for tap in self.taps.values():
            tap.discard()
        before = dict(self.star.dropped)

        self.browser.order(self._request(trial))
        answer, lines = self._answer(trial["deadline_s"] + TOOL_DEADLINE_S)
        if answer.get("error"):
            raise WorkerError(str(answer["error"]))

        observation["objects"], observation["libcurl"] = answer["objects"], answer["libcurl"]
        if answer["certificates"]:
            observation["certificates"] = answer["certificates"]
        if answer["session_ports"]:
            observation["session_ports"] = answer["session_ports"]

        self._settle(lambda: self._take_server_lines(lines))
        observation["responses"] = self._responses(trial, lines)
        has_failed = not all(download["ok"] for download in answer["objects"])
        if has_failed and self.external is not None:
            self.log = self.external.log()
        self.star.drain(DRAIN_DEADLINE_S)
        observation["drops"] = dropped_between(before, self.star.dropped)

    def close(self) -> None:
        self.browser.process.kill()
        super().close()

    def _request(self, trial: Job) -> dict[str, Any]:
        """The request to the page's client."""
        port = SECURE_PORT if "tls" in trial else OWN_PORT
        if "server" in trial:
            port = port_of(trial)
        request: dict[str, Any] = {
            "address": SERVER_IP, "port": port, "http": trial["http"],
            "connections": trial["connections"], "deadline_s": trial["deadline_s"],
            "objects": trial["objects"]}
        if self.trusted is not None:
            roots = [str(chain.files.root) for chain in self.chains.of_trial(trial)]
            request["tls"] = {"trusted": roots, "curves": curves_of(trial),
                              "apart_s": trial["tls"]["apart_s"]}
            request["certificates"] = trial["certificates"]
        return request

    def _answer(self, deadline_s: float) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The browser's answer, and the lines of server.py until then: its pipe must not fill up.

        Raises WorkerError, ProgramEnded.
        """
        lines: list[dict[str, Any]] = []
        outputs = [self.browser.process.stdout, self.server.process.stdout]
        deadline = time.monotonic() + deadline_s
        while True:
            look_s = self.watch.look() if self.watch is not None else None
            wait_s = deadline - time.monotonic()
            if wait_s < 0:
                raise WorkerError(f"no end of the page within {deadline_s:g} s")
            if look_s is not None:
                wait_s = min(wait_s, look_s)
            ready, _, _ = select.select(outputs, [], [], wait_s)
            if self.server.process.stdout in ready:
                lines += self._server_lines_now()
            if self.browser.process.stdout in ready:
                answer = self.browser.answer(TOOL_DEADLINE_S, "end of the page")
                return answer, lines

    def _take_server_lines(self, lines: list[dict[str, Any]]) -> None:
        """Append what server.py has written. Raises ProgramEnded.

        It reports the end of each connection. Where nobody reads some hundreds of such reports, it
        waits and closes no more connections.
        """
        assert self.server.process.stdout is not None
        while select.select([self.server.process.stdout], [], [], 0)[0]:
            lines += self._server_lines_now()

    def _server_lines_now(self) -> list[dict[str, Any]]:
        """The complete lines that server.py has written. Raises ProgramEnded."""
        server = self.server
        assert server.process.stdout is not None
        chunk = os.read(server.process.stdout.fileno(), 1 << 16)
        if not chunk:
            raise ProgramEnded("server has ended")
        *whole, server.buffer = (server.buffer + chunk).split(b"\n")
        return [json.loads(line) for line in whole]

    def _responses(self, trial: Job, lines: list[dict[str, Any]]) -> list[Response]:
        """The report on the first response of each connection.

        It is server.py's, or what samples show of another server.
        """
        reports: dict[int, Any] = {}  # by the client's port
        if self.watch is not None:
            for sample in self.watch.samples:
                if sample.client_port not in reports:
                    reports[sample.client_port] = report_on(
                        trial["server"], sample.client_port, [sample])
        else:
            self._take_server_lines(lines)
            for line in lines:
                if line["event"] == "response":
                    reports.setdefault(line["client_port"], line)
        return list(reports.values())


def connections_of(trial: Job) -> int:
    """How many connections a page will open, those included whose sessions it resumes.

    0 for unknown: over HTTP/1.1 the network decides.
    """
    if trial["http"] != HTTP_2:
        return 0
    certificates = len({*trial["certificates"]})
    return 2 * certificates if trial["tls"]["apart_s"] else certificates
