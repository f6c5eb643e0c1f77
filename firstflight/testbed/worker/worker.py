"""The worker: runs trials on the kernel under test, inside it.

Both engines start it, one in a guest, one in namespaces of the running
kernel. It reads a job from its folder, builds the bench that the
job's trials need, runs them one after another, and appends one observation
per trial to observations.jsonl: what the tools reported, and where what they
recorded lies. It judges nothing.

The folder, as the engine sees it:

    job.json              {"sysctls": {…}, "align_s": …, "warm_up": …, "waits": …}
    trials1.jsonl         {"kind": …, "id": …, …}, a line each; read one at a time
    trials2.jsonl, …      more of them, where the worker waits for more
    observations.jsonl    {"stage": …} or {"trial": id, …}, a line each
    client.pcap, server.pcap, and whatever files a bench keeps
"""

from __future__ import annotations

import ctypes
import errno
import itertools
import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from firstflight.base.files import write_all
from firstflight.testbed.bench import Bench, BenchMaker, Lacking, ProgramEnded, WorkerError
from firstflight.testbed.messages import BROWSED_PAGE, Job, Line, trials_file
from firstflight.testbed.network.kernel import KernelLacks, NetworkError
from firstflight.testbed.restart import Restart
from vtime import shared_folder

NEAR_NS = 1_000_000  # length of the last sleep before a trial
LOOK_S = 1.0  # between two looks for more trials
# A thousand take a tenth of a second of a processor. An engine that has not stopped this kernel
# after so many is gone.
MOST_LOOKS = 200_000
FURTHEST = 4  # the largest deviation in tc's table of the normal distribution
_TIMER_ABSTIME = 1
_libc = ctypes.CDLL(None)


class _Timespec(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]


def bench_of(kind: str) -> BenchMaker:
    """The bench for a kind of trial; the other benches are not imported."""
    if kind == "fetch":
        from firstflight.testbed.worker.fetches import FetchBench
        return FetchBench
    if kind == "load":
        from firstflight.testbed.worker.load import LoadBench
        return LoadBench
    if kind == "trace":
        from firstflight.testbed.worker.trace import TraceBench
        return TraceBench
    if kind == "page":
        from firstflight.testbed.worker.page import PageBench
        return PageBench
    if kind == BROWSED_PAGE:
        from firstflight.testbed.worker.browsed import BrowserBench
        return BrowserBench
    raise WorkerError(f"there is no bench for trials of kind {kind!r}")


class Worker:
    """Runs the trials of one job on one bench."""

    def __init__(self, folder: Path, project: Path) -> None:
        self.folder = folder
        self.project = project
        self.job: dict[str, Any] = json.loads((folder / "job.json").read_text())
        self.out = (folder / "observations.jsonl").open("ab", buffering=0)
        self.written = self.out.tell()  # bytes of whole lines
        self.restart = Restart()
        self.broken: ProgramEnded | None = None  # why this bench is of no more use

    def _trials(self, number: int = 1) -> Iterator[Job]:
        with (self.folder / trials_file(number)).open(encoding="ascii") as file:
            yield from map(json.loads, file)

    def _all_trials(self) -> Iterator[Job]:
        """The trials of the first file; then, if the job says so, of each later one.

        While this waits for a later file, the engine stops the whole kernel (WorkerProcess.pause):
        a clock that skips idle time would make it a busy loop.
        """
        yield from self._trials()
        if not self.job["waits"]:
            return
        for number in itertools.count(2):
            path = self.folder / trials_file(number)
            looks = 0
            while not path.exists():
                if looks == MOST_LOOKS:
                    return
                looks += 1
                time.sleep(LOOK_S)
            yield from self._trials(number)

    def run(self) -> None:
        first = next(self._trials())
        make = bench_of(first["kind"])
        _libc.munlockall()  # a guest's first process has locked its memory (vtime/kernel/init.py)
        bench = make(self.folder, self.project, self.job["sysctls"], self._report_alive)
        try:
            check_modules(first.get("module_parameters", ()))
            self.write({"stage": "ready", "facts": {"kernel": os.uname().release,
                                                    "sysctls": bench.sysctls}})
            for trial in self._warming():
                self._observe(bench, trial)
                self._report_alive()

            for trial in self._all_trials():
                self.write(self._observe(bench, trial))
                if self.broken:  # the next one would fail for this one's reason
                    raise self.broken
            self.write({"stage": "done"})
        finally:
            bench.close()

    def _report_alive(self) -> None:
        self.write({"stage": "alive"})

    def _warming(self) -> list[Job]:
        """The shortest trial of each client program, to run before the first one that counts.

        In real time the first fetch finds cold caches. In virtual time computing takes no time, and
        the job requests no warming up. Trials that need their own kernel are not run twice.
        """
        if not self.job["warm_up"]:
            return []
        shortest: dict[str, Job] = {}
        for trial in self._trials():
            known = shortest.get(trial.get("client", ""), trial)
            if not trial.get("alone") and trial["deadline_s"] <= known["deadline_s"]:
                shortest[trial["client"]] = trial
        return list(shortest.values())

    def _observe(self, bench: Bench, trial: Job) -> Line:
        """Run one trial; an error becomes a part of its observation."""
        observation: Line = {"trial": trial["id"]}
        sysctls_before = bench.sysctls
        try:
            self.restart.begin(trial)  # queues and servers draw when they start, too
            bench.prepare(trial)
            if bench.sysctls != sysctls_before:  # a network of the trial's own
                self.write({"stage": "alive", "facts": {"sysctls": bench.sysctls}})

            self._align(trial.get("network", {}).get("down", {}).get("jitter_ms", 0))
            self.restart.begin(trial)
            observation["started_at"], started = time.time(), time.monotonic()
            bench.measure(trial, observation)
            observation["duration_s"] = time.monotonic() - started
        except KernelLacks:
            raise
        except Lacking as error:
            observation["skipped"] = str(error)
        except (NetworkError, WorkerError) as error:
            shared_folder.probe(self.folder)  # raises if a full disk is the reason
            observation["error"] = str(error)
            self.broken = error if isinstance(error, ProgramEnded) else None

        bench.add_recorded(observation)
        return observation

    def _align(self, jitter_ms: float) -> None:
        """Wait for the next point of a fixed grid of the guest's clock; in a guest waiting is free.

        TCP's timers round to the kernel's timer wheel, whose slots are up to 0.5 s wide for timers
        of some seconds. On a grid of the wheel, a trial meets the same rounding whenever it runs. A
        long sleep ends a nanosecond or two late, depending on its length; a short one is always
        late by the same. netem subtracts up to FURTHEST times the jitter from the clock, and never
        sends a packet that would be due before 0.
        """
        grid_ns = round(self.job["align_s"] * 1e9)
        if grid_ns > 0:
            earliest_ns = max(time.monotonic_ns() + NEAR_NS, round(FURTHEST * jitter_ms * 1e6))
            at_ns = -(-earliest_ns // grid_ns) * grid_ns
            sleep_until(at_ns - NEAR_NS)
            sleep_until(at_ns)

    def write(self, line: Line) -> None:
        """Append a line. Raises OSError, also if only a part of it could be written."""
        whole = json.dumps(line).encode() + b"\n"
        try:
            write_all(self.out, whole)
        except OSError:
            self.out.truncate(self.written)
            raise
        self.written += len(whole)


def check_modules(parameters: Sequence[str], modules: Path = Path("/sys/module")) -> None:
    """Raises KernelLacks where this kernel was not started with these parameters, NAME=VALUE each.

    A kernel ignores a parameter that it does not know, without a word.
    """
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        place = modules / name.replace(".", "/parameters/")
        try:
            found = place.read_text().strip()
        except OSError:
            raise KernelLacks(f"this kernel has no parameter {name} of a module that can be read"
                              f" back ({place})") from None
        as_truth = {"0": "N", "1": "Y", "n": "N", "y": "Y"}.get(value)
        if found not in (value, as_truth):
            raise KernelLacks(f"{name} is {found} in this kernel, not {value}")


def sleep_until(monotonic_ns: int) -> None:
    """Sleep until that nanosecond; time.sleep() would lose the last digits of a float."""
    until = _Timespec(*divmod(monotonic_ns, 10**9))
    while error := _libc.clock_nanosleep(time.CLOCK_MONOTONIC, _TIMER_ABSTIME,
                                         ctypes.byref(until), None):
        if error != errno.EINTR:
            raise OSError(error, os.strerror(error))


def main(folder: Path, project: Path) -> int:
    """Run the job in `folder`; return 0, 4 if this kernel cannot run it, or 1."""
    # As PID 1 of a namespace, signals without a handler are ignored.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    worker = Worker(folder, project)
    try:
        worker.run()
    except KernelLacks as error:
        worker.write({"stage": "cannot", "reason": str(error)})
        return 4
    except ProgramEnded as error:
        worker.write({"stage": "broken", "reason": str(error)})
        return 1
    except (NetworkError, WorkerError, OSError) as error:
        if isinstance(error, OSError) and error.errno in shared_folder.FULL:
            shared_folder.note_write_error(folder, error)
            return 1
        worker.write({"stage": "failed", "reason": str(error)})
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
