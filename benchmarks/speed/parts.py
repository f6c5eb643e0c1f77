"""Processor time of one run of run.sh by part, and how it is known.

All: a control group. Python processes on this machine: samples of their stacks,
each with the processor time since the one before (benchmarks/speed/sampled/sitecustomize.py).
Guests: what is left. It is divided by which process ran when each guest's kernel was
looked at: its `cpu_tasks` and the name there (task_struct.comm), read in its memory
some hundred times a second; the guest's processes are named by their parts
(benchmarks/speed/sampled/init.py). What the kernel does for a process counts with it, and
`packets` is what it does while no process runs: timers, queues, and packets that arrive.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import processor
from engines.job import PROJECT
from engines.uml import built_kernel
from lab.core.errors import CannotError, FirstFlightError

SAMPLED = PROJECT / "benchmarks/speed/sampled"
INTERVAL_S = 0.002
LOOK_S = 0.02  # between two looks for guests that have begun or ended
COMM_BYTES, TASK_BYTES = 16, 16384
CHECK, BOOT, NETWORK, WORKER, GUEST = "check", "boot", "network", "worker", "guest"
COUNTER = "counter"
STAGES = (BOOT, NETWORK, WORKER)  # of a guest, each from the first process of that name on
# The part by the name of what runs, once a guest's network is up; names that are parts stay.
ROLES = {"curl": "client", "wget": "client", "tc": "shape", "ip": "shape", "swapper": "packets",
         "ksoftirqd": "packets", "kworker": "packets"}
PARTS = (CHECK, "start", BOOT, NETWORK, "shape", "server", "client", "packets", "taps", WORKER,
         "other", GUEST, "engine", "judge", "record", "tell", "draw")


def part_of(name: str, stage: str) -> str:
    """The part of a guest's time in which a process of that name runs, in a stage of STAGES."""
    role = ROLES.get(name.split("/")[0], name)
    return stage if stage != WORKER else role if role in PARTS else "other"


@dataclass
class Guest:
    """One guest: its memory, where its kernel keeps what runs, and the samples so far."""

    memory: int
    running: int  # the address of cpu_tasks
    comm: int  # the offset of the name in a task
    samples: Counter[str] = field(default_factory=Counter)
    stage: str = BOOT

    def look(self) -> bool:
        """Take one sample; False once the guest is gone."""
        try:
            task = int.from_bytes(os.pread(self.memory, 8, self.running), "little")
            name = os.pread(self.memory, COMM_BYTES, task + self.comm)
        except OSError:
            return False
        if not name:
            return False
        word = name.split(b"\0")[0].decode(errors="replace")
        if word in STAGES[STAGES.index(self.stage):]:
            self.stage = word
        self.samples[part_of(word, self.stage)] += 1
        return True


def symbols(kernel: Path) -> dict[str, int]:
    """Addresses of cpu_tasks and init_task. Raises CannotError where the kernel was stripped."""
    listed = ""
    with suppress(FileNotFoundError):
        listed = subprocess.run(["nm", str(kernel)], capture_output=True, text=True,
                                check=False).stdout
    addresses = {words[2]: int(words[0], 16) for line in listed.splitlines()
                 if len(words := line.split()) == 3 and words[2] in ("cpu_tasks", "init_task")}
    if len(addresses) < 2:
        raise CannotError(f"{kernel} has no symbols (or nm is missing: apt-get install binutils)")
    return addresses


class Guests:
    """Samples the guests of a control group."""

    def __init__(self, kernel: Path, group: processor.Group) -> None:
        self.kernel, self.group = kernel, group
        self.symbols = symbols(kernel)
        self.known: set[str] = set()
        self.running: list[Guest] = []
        self.ended: Counter[str] = Counter()
        self.looked = 0.0

    def sample(self) -> None:
        if time.monotonic() - self.looked > LOOK_S:
            self._find()
            self.looked = time.monotonic()
        for guest in list(self.running):
            if not guest.look():
                self.running.remove(guest)
                os.close(guest.memory)
                self.ended += guest.samples

    def _find(self) -> None:
        """Take up guests that have begun: processes of the kernel that lead no other's memory."""
        for pid in (self.group.folder / "cgroup.procs").read_text().split():
            if pid in self.known:
                continue
            try:
                words = Path("/proc", pid, "cmdline").read_bytes()
                leader = Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[3]
                if words.startswith(bytes(self.kernel)) and leader not in self.known:
                    memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
                    comm = os.pread(memory, TASK_BYTES, self.symbols["init_task"]).find(b"swapper")
                    if comm < 0:  # it has not come so far
                        os.close(memory)
                        continue
                    self.running.append(Guest(memory, self.symbols["cpu_tasks"], comm))
                    self.known |= {pid, leader}
            except OSError:
                continue


def measure(flags: list[str]) -> dict[str, float]:
    """Processor seconds by part, in the order of PARTS, of one run of run.sh with these flags.

    Raises CannotError without control groups, FirstFlightError where the run fails.
    """
    with processor.group() as group, tempfile.TemporaryDirectory() as name:
        if group is None:
            raise CannotError("no control group can be made: it takes root")
        samples = Path(name, "samples")
        samples.touch()
        guests = Guests(built_kernel(), group)
        with subprocess.Popen(
                group.command([str(PROJECT / "run.sh"), "--fresh", "--results", f"{name}/results",
                               "--figures", f"{name}/figures", *flags]),
                env={**os.environ, "PYTHONPATH": str(SAMPLED),
                     "FIRST_FLIGHT_SAMPLES": str(samples),
                     "FIRST_FLIGHT_COUNTER": str(group.counter)},
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            while process.poll() is None:
                guests.sample()
                time.sleep(INTERVAL_S)
        if process.returncode:
            raise FirstFlightError(f"run.sh ended with status {process.returncode} while it was"
                                   " sampled")
        return divided(group.used_s, samples.read_text(), guests.ended, group.seconds)


def divided(used_s: float, samples: str, guests: Mapping[str, int],
            seconds: Callable[[str], float]) -> dict[str, float]:
    """Seconds by part: of the samples of processes, and what is left by those of the guests.

    samples: lines of a part and seconds; `counter` and what the control group's file held
    (seconds reads it) when the program that run.sh becomes began.
    """
    seconds_of = dict.fromkeys(PARTS, 0.0)
    for line in samples.splitlines():
        part, _, number = line.partition(" ")
        if part == COUNTER:  # all so far was the driver's look at what is installed
            seconds_of = {**dict.fromkeys(PARTS, 0.0), CHECK: seconds(number)}
        else:
            seconds_of[part] += float(number)
    left_s = used_s - sum(seconds_of.values())
    shares = guests or {GUEST: 1}
    for part, count in shares.items():
        seconds_of[part] += left_s * count / sum(shares.values())
    return {part: used for part, used in seconds_of.items() if used}
