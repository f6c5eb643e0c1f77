"""What an engine hands to a worker and gets back, through one folder on the disk."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

PROJECT = Path(__file__).resolve().parent.parent
SIDES = ("client", "server")

Job = dict[str, Any]  # one trial as the worker reads it: lab.trial.Trial.job()


class EngineError(Exception):
    """An engine failed; its text says what was awaited and what was seen instead."""


class EngineCannot(EngineError):
    """This machine cannot run the engine; its text says what to do."""


@dataclass(frozen=True)
class Observation:
    """What came back of one trial: the worker's JSON and what was recorded.

    client_pcap, server_pcap: pcap records (without file header) of that trial.
    files: by name, whatever else its bench kept.
    """

    trial_id: str
    content: dict[str, Any]
    client_pcap: bytes = b""
    server_pcap: bytes = b""
    files: dict[str, bytes] = field(default_factory=dict)


class JobFolder:
    """The folder of one worker, from the engine's side. See engines/worker.py."""

    def __init__(self, path: Path, trials: list[Job], sysctls: dict[str, str],
                 align_s: float = 0.0, warm_up: bool = False) -> None:
        """align_s: start trials on multiples of this on the worker's clock; 0 for at once.

        warm_up: fetch once before the first trial, unrecorded.
        """
        self.path = path
        path.mkdir(parents=True)
        (path / "job.json").write_text(json.dumps(
            {"sysctls": sysctls, "align_s": align_s, "warm_up": warm_up, "trials": trials}))
        self.lines_path = path / "observations.jsonl"
        self.lines_path.touch()
        self.lines: BinaryIO = self.lines_path.open("rb")
        self.torn = b""
        self.captures: dict[str, BinaryIO] = {}

    def new_lines(self) -> Iterable[dict[str, Any]]:
        """The lines that the worker has written since the last call."""
        self.torn += self.lines.read()
        *whole, self.torn = self.torn.split(b"\n")
        return [json.loads(line) for line in whole]

    def observation(self, line: dict[str, Any]) -> Observation:
        """A trial's line together with its packets and files."""
        packets = {side: b"" for side in SIDES}
        for side, place in line.get("captures", {}).items():
            if side not in self.captures:
                self.captures[side] = (self.path / f"{side}.pcap").open("rb")
            self.captures[side].seek(place["offset"])
            packets[side] = self.captures[side].read(place["bytes"])
        files = {name: (self.path / place).read_bytes()
                 for name, place in line.get("files", {}).items()}
        return Observation(line["trial"], line, packets["client"], packets["server"], files)

    def remove(self) -> None:
        for file in (self.lines, *self.captures.values()):
            file.close()
        shutil.rmtree(self.path, ignore_errors=True)


def shared_out(trials: list[Job], workers: int) -> list[list[Job]]:
    """Deal trials to workers, those of one link shape together, in a fixed order.

    Trials that have to be alone each get a worker of their own, one after
    another: what they leave in a kernel (ports, caches) no other one meets.
    """
    if any(trial.get("alone") for trial in trials):
        return [[trial] for trial in trials]
    shapes: dict[str, list[Job]] = {}
    for trial in trials:
        shapes.setdefault(json.dumps(trial["shape"], sort_keys=True), []).append(trial)
    hands: list[list[Job]] = [[] for _ in range(workers)]
    for number, group in enumerate(shapes.values()):
        hands[number % workers].extend(group)
    return [hand for hand in hands if hand]


class WorkerProcess:
    """A started worker, the trials it was given, and what it has said so far."""

    def __init__(self, job: JobFolder, trials: list[Job], command: list[str],
                 start_deadline_s: float, trial_deadline_s: float) -> None:
        """Start `command`; raises EngineCannot where its program is missing.

        The deadlines are wall time without a word, before the network is up
        and after it.
        """
        self.job = job
        self.waiting = {trial["id"]: trial for trial in trials}  # in their order
        self.start_deadline_s = start_deadline_s
        self.trial_deadline_s = trial_deadline_s
        self.ready: dict[str, Any] = {}  # what the worker says of its kernel once it is up
        self.heard = time.monotonic()
        self.console_path = job.path / "console.log"
        with self.console_path.open("wb") as console:
            try:
                self.process = subprocess.Popen(
                    # It dies with this process, whatever kills that.
                    ["setpriv", "--pdeathsig", "KILL", "--", *command], cwd=PROJECT,
                    stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.STDOUT,
                    start_new_session=True)
            except FileNotFoundError as error:
                raise EngineCannot(f"{error.filename} is missing: run ./install.sh") from error

    def poll(self) -> list[Observation]:
        """What has been observed since the last call.

        Raises EngineCannot where the worker's kernel cannot do it, EngineError
        where the worker gave up, stopped or hangs.
        """
        ended = self.process.poll() is not None  # before reading, so that nothing is missed
        observations = []
        for line in self.job.new_lines():
            self.heard = time.monotonic()
            if "trial" in line:
                observations.append(self.job.observation(line))
                del self.waiting[line["trial"]]
            elif line["stage"] == "ready":
                self.ready = line["facts"]
            elif line["stage"] == "alive":
                self.ready.update(line.get("facts", {}))
            elif line["stage"] == "cannot":
                raise EngineCannot(line["reason"])
            elif line["stage"] == "failed":
                raise EngineError(line["reason"])
        if self.waiting and not observations:
            self._judge_silence(ended)
        return observations

    def _judge_silence(self, ended: bool) -> None:
        silent_s = time.monotonic() - self.heard
        awaited = f"trial {next(iter(self.waiting))}" if self.ready else "its network"
        if ended:
            raise EngineError(f"the worker stopped (status {self.process.returncode}) while"
                              f" {awaited} was awaited: {self.last_words()}")
        if silent_s > (self.trial_deadline_s if self.ready else self.start_deadline_s):
            raise EngineError(f"the worker said nothing for {silent_s:.0f} s while {awaited} was"
                              f" awaited: {self.last_words()}")

    def last_words(self) -> str:
        """The end of what it printed, on one line."""
        lines = self.console_path.read_text(errors="replace").strip().splitlines()
        return " | ".join(lines[-3:]) or "it printed nothing"

    def stop(self) -> None:
        """Kill whatever still runs of it and remove its folder."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.job.remove()
