"""What all benches share. A bench is a network with its programs, on which trials run.

The worker calls `prepare`, `measure` and `add_recorded` for each trial, and `close` at the end.
There is a bench for each kind of trial, named by `kind` in the trial's job
(testbed/worker/worker.py).
"""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from mininet.node import Node

from firstflight.testbed.forked_program import ForkedProgram, Running
from firstflight.testbed.messages import Job, Observation

TOOL_DEADLINE_S = 30.0  # for our own programs, in addition to what the network takes


class WorkerError(Exception):
    """A program or a check of the worker failed."""


class ProgramEnded(WorkerError):
    """A program that serves all trials has ended, so that no more trials can run."""


class Lacking(Exception):
    """This machine lacks something that a trial needs; the message says how to install it."""


class Bench(Protocol):
    """A network with its programs. Built from (folder, project, sysctls, alive).

    folder: for files that the engine reads. project: the folder of our programs. sysctls: those
    that the run requests. alive: to be called now and then in a long trial, so that the engine
    knows that nothing hangs.
    """

    sysctls: dict[str, dict[str, str]]  # of each host's kernel, by host

    def prepare(self, trial: Job) -> None:
        """Shape the network for a trial. Raises NetworkError, WorkerError, Lacking."""

    def measure(self, trial: Job, observation: Observation) -> None:
        """Run the trial and add what is observed to `observation`, even if this raises."""

    def add_recorded(self, observation: Observation) -> None:
        """Add the places of what was recorded: captures by side, files by name."""

    def close(self) -> None:
        """End the programs and the network."""


BenchMaker = Callable[[Path, Path, dict[str, str], Callable[[], None]], Bench]


class LineProcess:
    """A process that answers requests in JSON lines."""

    def __init__(self, name: str, process: Running) -> None:
        self.name = name
        self.process = process
        self.buffer = b""
        self.orders = 0  # requests that were sent

    @classmethod
    def python(cls, node: Node, project: Path, module: str, *arguments: str) -> LineProcess:
        """Start one of the project's programs on a host, such as testbed.hosts.http_server."""
        return cls(module, ForkedProgram(node.pid, project, module, arguments))

    def send(self, message: Mapping[str, object]) -> None:
        """Send a line. Raises ProgramEnded."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()
        except OSError as error:
            raise ProgramEnded(f"{self.name} has ended: {error}") from error

    def discard(self) -> None:
        """Drop the lines that nobody waits for any more. Raises ProgramEnded."""
        assert self.process.stdout is not None
        self.buffer = b""
        while select.select([self.process.stdout], [], [], 0)[0]:
            if not os.read(self.process.stdout.fileno(), 1 << 16):
                raise ProgramEnded(f"{self.name} has ended")

    def order(self, request: Mapping[str, object]) -> None:
        """Send a request, whose answer `answer` then awaits. Raises ProgramEnded."""
        self.orders += 1
        self.send({**request, "number": self.orders})

    def answer(self, deadline_s: float, awaited: str,
               look: Callable[[], float | None] = lambda: None) -> dict[str, Any]:
        """The answer to the last request; answers to earlier ones are skipped. See `receive`."""
        while True:
            answer = self.receive(deadline_s, awaited, look)
            if answer["number"] == self.orders:
                return answer

    def receive(self, deadline_s: float, awaited: str,
                look: Callable[[], float | None] = lambda: None) -> dict[str, Any]:
        """The next line. Raises WorkerError naming what was awaited, ProgramEnded.

        look: called while waiting; returns the seconds until its next call, None for no more.
        """
        assert self.process.stdout is not None
        deadline = time.monotonic() + deadline_s
        next_look_s: float | None = 0.0
        while b"\n" not in self.buffer:
            if next_look_s is not None:
                next_look_s = look()
            wait_s = max(0.0, deadline - time.monotonic())
            if next_look_s is not None:
                wait_s = min(wait_s, next_look_s)
            ready, _, _ = select.select([self.process.stdout], [], [], wait_s)
            if not ready:
                if time.monotonic() < deadline:
                    continue
                raise WorkerError(f"{self.name}: no {awaited} within {deadline_s:g} s")
            chunk = os.read(self.process.stdout.fileno(), 1 << 16)
            if not chunk:
                raise ProgramEnded(f"{self.name} ended while {awaited} was awaited")
            self.buffer += chunk

        line, self.buffer = self.buffer.split(b"\n", 1)
        answer: dict[str, Any] = json.loads(line)
        return answer
