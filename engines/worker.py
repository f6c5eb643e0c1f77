"""The worker: runs trials on the kernel under test, inside it.

Both engines start it, one in a guest, one in namespaces of the running
kernel. It reads a job (job.json in its folder), builds one Mininet network,
re-shapes it trial by trial, and appends one observation per trial to
observations.jsonl: what the tools and the server said, and where in the two
captures the trial's packets are. It judges nothing.

The folder, as the engine sees it:

    job.json              {"sysctls": {…}, "align_s": …, "trials": [{…}, …]}
    observations.jsonl    {"stage": …} or {"trial": id, …}, a line each
    client.pcap, server.pcap
"""

from __future__ import annotations

import json
import math
import os
import platform
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, BinaryIO

from engines.tap import Tap, open_capture
from topo import SERVER_IP, KernelLacks, NetworkError, Shape, Star

# What the tools may need on top of what the network takes.
TOOL_DEADLINE_S = 30.0
# After the last byte: FINs and ACKs, up to a late SYN's answer.
DRAIN_DEADLINE_S = 300.0


class WorkerError(Exception):
    """A tool of the worker's did not do its part."""


class LineProcess:
    """A process that answers in JSON lines."""

    def __init__(self, name: str, process: subprocess.Popen[bytes]) -> None:
        self.name = name
        self.process = process
        self.buffer = b""

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()
        except OSError as error:
            raise WorkerError(f"{self.name} has ended: {error}") from error

    def receive(self, deadline_s: float, awaited: str) -> dict[str, Any]:
        """The next line. Raises WorkerError naming what was awaited."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + deadline_s
        while b"\n" not in self.buffer:
            wait_s = max(0.0, deadline - time.monotonic())
            if not select.select([self.process.stdout], [], [], wait_s)[0]:
                raise WorkerError(f"{self.name}: no {awaited} within {deadline_s:g} s")
            chunk = os.read(self.process.stdout.fileno(), 1 << 16)
            if not chunk:
                raise WorkerError(f"{self.name} ended while {awaited} was awaited")
            self.buffer += chunk
        line, self.buffer = self.buffer.split(b"\n", 1)
        answer: dict[str, Any] = json.loads(line)
        return answer


class Worker:
    """One network, one server, one client, and the trials of one job."""

    def __init__(self, folder: Path, project: Path) -> None:
        self.folder = folder
        self.project = project
        self.job: dict[str, Any] = json.loads((folder / "job.json").read_text())
        self.out: BinaryIO = (folder / "observations.jsonl").open("ab", buffering=0)

    def run(self) -> None:
        star = Star(self.job["sysctls"])
        try:
            self._start_programs(star)
            self._write({"stage": "ready", "facts": {"kernel": platform.release(),
                                                     "sysctls": star.sysctls}})
            self.captures = {side: open_capture(self.folder / f"{side}.pcap")
                             for side in self.taps}
            for trial in self.job["trials"]:
                self._write(self._observe(star, trial))
            for capture in self.captures.values():
                capture.close()
            self._write({"stage": "done"})
        finally:
            for program in (self.server, self.client):
                program.process.kill()
            star.stop()

    def _start_programs(self, star: Star) -> None:
        # -S -E: nothing but the standard library is needed, and starting is quicker.
        python = [sys.executable, "-S", "-E"]
        self.server = LineProcess("server.py", star.server.popen(
            [*python, str(self.project / "server.py")],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=None))
        self.client = LineProcess("client.py", star.client.popen(
            [*python, str(self.project / "client.py")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=None))
        self.taps = {"client": Tap(star.client.pid, "client-eth0"),
                     "server": Tap(star.server.pid, "server-eth0")}
        self.server.receive(TOOL_DEADLINE_S, "listening socket")

    def _observe(self, star: Star, trial: dict[str, Any]) -> dict[str, Any]:
        """Run one trial; whatever goes wrong in it becomes part of its observation."""
        observation: dict[str, Any] = {"trial": trial["id"]}
        try:
            star.shape(Shape(**trial["shape"]))
            star.set_routes(trial["initcwnd"], trial["initrwnd"], trial["congestion_control"])
            self._align()
            observation["started_at"], started = time.time(), time.monotonic()
            for tap in self.taps.values():
                tap.discard()
            observation["fetch"] = self._fetch(trial)
            observation["server"] = self._server_lines(trial, observation["fetch"])
            star.drain(DRAIN_DEADLINE_S)
            observation["duration_s"] = time.monotonic() - started
        except KernelLacks:
            raise
        except (NetworkError, WorkerError) as error:
            observation["error"] = str(error)
        observation["captures"] = {side: self._save(side) for side in self.taps}
        return observation

    def _align(self) -> None:
        """Start on a fixed grid of the guest's clock, where waiting is free.

        TCP's timers round to the kernel's timer wheel, whose slots are up to
        0.5 s wide for timers of some seconds. On a grid of the wheel's, a
        trial meets the same rounding whenever it runs.
        """
        grid_s = self.job["align_s"]
        if grid_s > 0:
            now = time.monotonic()
            time.sleep(math.ceil(now / grid_s) * grid_s - now)

    def _fetch(self, trial: dict[str, Any]) -> dict[str, Any]:
        deadline_s = trial["deadline_s"]
        self.client.send({"program": trial["client"], "deadline_s": deadline_s,
                          "urls": [f"http://{SERVER_IP}{path}" for path in trial["paths"]]})
        answer = self.client.receive(deadline_s + TOOL_DEADLINE_S, "end of the fetch")
        fetch: dict[str, Any] = answer["fetches"][-1]
        return fetch

    def _server_lines(self, trial: dict[str, Any], fetch: dict[str, Any]) -> dict[str, Any]:
        """The server's report on the response, once it saw the connection's end."""
        said: dict[str, Any] = {}
        if not fetch["ok"] and not fetch.get("port"):
            return said  # never connected: the server has nothing to say
        while True:
            line = self.server.receive(trial["deadline_s"] + TOOL_DEADLINE_S,
                                       "end of the connection")
            if line["event"] == "response":
                said = line
            elif line["event"] == "closed":
                if line["error"]:
                    said["error"] = line["error"]
                return said

    def _save(self, side: str) -> dict[str, int]:
        capture = self.captures[side]
        offset = capture.tell()
        packets = self.taps[side].save(capture)
        capture.flush()
        return {"offset": offset, "bytes": capture.tell() - offset, "packets": packets}

    def _write(self, line: dict[str, Any]) -> None:
        self.out.write(json.dumps(line).encode() + b"\n")


def main(folder: Path, project: Path) -> int:
    """Run the job in `folder`; return 0, or 4 where this kernel cannot."""
    # As PID 1 of a namespace, signals without a handler are ignored.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    worker = Worker(folder, project)
    try:
        worker.run()
    except KernelLacks as error:
        worker._write({"stage": "cannot", "reason": str(error)})
        return 4
    except (NetworkError, WorkerError, OSError) as error:
        worker._write({"stage": "failed", "reason": str(error)})
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
