"""Strike install.sh while it builds the guest's kernel, continue, see what is lost or left.

    /usr/bin/python3 -m benchmarks.faults.struck_builds [--strikes 50] [--seed 1] [--source FILE]

A build in a cache of its own is struck at random moments by the signals that users, shells and
the system send, is stopped for a while, or its disk becomes full; the same command continues it,
until a kernel is there. It has to be the same to the byte as one that nobody disturbed. After each
strike all its processes and temporary files have to be gone, and in the cache is nothing but a
build to be continued. Prints a table, and each fault as it is found; exit status 1 where there is
one. Needs the programs that build a kernel, and as root mounts of its own for the small disks.
Without --source (a tree, a tarball or a linux-source package) each kernel's is fetched anew.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

from benchmarks import command
from benchmarks.faults import strikes
from benchmarks.faults.strikes import (CHANGED, END_S, FILES, PROCESSES, SIGNALS, STATUS, STOPPED,
                                       STOPPED_S, WORDS, Fault, Struck, Tally, complaints)
from engines.job import PROJECT
from engines.uml import find_kernel
from lab.core.command_line import Parser, positive
from lab.core.errors import CANNOT, FAILED, INTERRUPTED, OK

FULL, AT_LAST = "full disk", "at last"
ENDED = 128 + signal.SIGTERM  # by a trap
# Each with the statuses that install.sh may end with. What was stopped is ended by SIGTERM.
WAYS = {**{name: (INTERRUPTED if name == "SIGINT" else ENDED, -signal.Signals[name])
           for name in SIGNALS}, STOPPED: (ENDED, -signal.SIGTERM), FULL: (CANNOT,)}
SLEPT_S = 30.0  # the longest before a strike; most come much sooner, and several hit each build
ROOM_MB = 1500  # of the cache's disk, and what is left of it when it becomes full
FULL_MB = 60
STAGES = ("starting", "fetching", "unpacking", "configuring", "compiling")
KINDS = (CHANGED, STATUS, WORDS, PROCESSES, FILES)


class Builds(Struck):
    """Kernels, one after another in one cache; each is struck until it is there all the same."""

    def __init__(self, home: Path, random: Random, source: Path | None) -> None:
        self.cache = home / "cache"
        self.cache.mkdir()
        self.root = self.cache / "first-flight" / "kernel"
        self.environment = {"XDG_CACHE_HOME": str(self.cache),
                            **({"FIRST_FLIGHT_KERNEL_SOURCE": str(source)} if source else {})}
        self.ways = [way for way in WAYS if way != FULL or strikes.is_own()]
        if FULL in self.ways:
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={ROOM_MB}m", "tmpfs",
                            str(self.cache)], check=True)
        super().__init__(home, random, Tally([*WAYS, AT_LAST], STAGES, KINDS))
        self.digests = inputs_of(find_kernel())  # of kernels that are as they have to be

    def kernel(self) -> Path | None:
        """The one that runs would use."""
        done = subprocess.run([PROJECT / "engines" / "guest" / "build.sh", "--path"],
                              env={**os.environ, **self.environment}, capture_output=True,
                              text=True, check=False)
        return Path(done.stdout.strip()) if done.returncode == 0 else None

    def stage(self) -> str:
        work = self.root / ".build"
        notes = ("begun", "fetched", "unpacked", "configured")
        return STAGES[sum((work / note).exists() for note in notes)]

    def start(self) -> subprocess.Popen[bytes]:
        return self.started([PROJECT / "install.sh"], self.environment)

    def strike(self) -> bool:
        """Start it and strike it; whether it met it before its end."""
        way = self.random.choice(self.ways)
        process = self.start()
        deadline = time.monotonic() + SLEPT_S * self.random.random() ** 2
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        stage, met = self.stage(), process.poll() is None
        if met:
            self._hit(way, process)
        status = process.wait(END_S)
        if met and way == FULL:
            self._resize(ROOM_MB)
        faults = self.leftovers() + complaints(self.log.read_text())
        if status not in (*(WAYS[way] if met else ()), OK):
            faults.append((STATUS, f"{status} in {stage}: {self.log.read_text()[-300:]}"))
        self.tally.struck[way, stage] += met
        self.tally.note(way, faults)
        return met

    def _hit(self, way: str, process: subprocess.Popen[bytes]) -> None:
        if way == FULL:
            self._resize(used_mb(self.cache) + self.random.randrange(FULL_MB))
        else:
            strikes.hit(way, process, self.random)
        if way == STOPPED:
            time.sleep(self.random.uniform(0, STOPPED_S))
            process.send_signal(signal.SIGTERM)

    def _resize(self, size_mb: int) -> None:
        subprocess.run(["mount", "-o", f"remount,size={size_mb}m", str(self.cache)], check=True)

    def leftovers(self) -> list[Fault]:
        """Processes and files that are left, besides a build that is to be continued."""
        faults = super().leftovers()
        if self.root.exists():
            key = next((path.stem for path in self.root.glob("*.log")), "none")
            faults += [(FILES, path.name) for path in self.root.iterdir()
                       if path.name not in (".build", "lock", "source-digest")
                       and not path.name.startswith(key)]
        return faults

    def end(self) -> None:
        """Let it through to its end, see the kernel, and begin with nothing again."""
        status = self.start().wait(END_S)
        faults = self.leftovers() + complaints(self.log.read_text())
        kernel = self.kernel()
        if status != OK or kernel is None:
            faults.append((STATUS, f"{status} at last: {self.log.read_text()[-300:]}"))
        else:
            (made_from, digest), = inputs_of(kernel).items()
            if self.digests.setdefault(made_from, digest) != digest:
                faults.append((CHANGED, f"the kernel is {digest}, not {self.digests[made_from]}"))
        if (self.root / ".build").exists():
            faults.append((FILES, "what the build was made in"))
        self.tally.note(AT_LAST, faults)
        shutil.rmtree(self.cache / "first-flight", ignore_errors=True)


def inputs_of(kernel: Path | None) -> dict[str, str]:
    """The digest of a kernel by what it was made from; {} where there is none."""
    if kernel is None or not (kernel.parent / "inputs").exists():
        return {}
    lines = (kernel.parent / "inputs").read_text().splitlines()
    digest = next(line for line in lines if line.startswith("linux "))
    return {"\n".join(line for line in lines if line != digest): digest.partition(" ")[2]}


def used_mb(folder: Path) -> int:
    disk = os.statvfs(folder)
    return (disk.f_blocks - disk.f_bfree) * disk.f_frsize // (1 << 20) + 1


def main(words: Sequence[str]) -> int:
    parser = Parser(prog="struck_builds", description="Strike builds of the guest's kernel.")
    parser.add_argument("--strikes", type=positive, default=50,
                        help="that meet a build (default 50)")
    parser.add_argument("--seed", type=int, default=1, help="of ways and moments (default 1)")
    parser.add_argument("--source", type=Path, help="of the kernel (default: fetched each time)")
    arguments = parser.parse_args(words)
    strikes.isolate("struck_builds", words, first="mount -t tmpfs tmpfs /dev/shm")
    with tempfile.TemporaryDirectory(prefix="first-flight-builds-") as folder:
        builds, met, kernels = Builds(Path(folder), Random(arguments.seed), arguments.source), 0, 0
        try:
            while met < arguments.strikes:
                met += builds.strike()
                if met == arguments.strikes or builds.kernel():
                    builds.end()
                    kernels += 1
        finally:
            if FULL in builds.ways:
                subprocess.run(["umount", "--lazy", str(builds.cache)], check=True)
        print(builds.tally.table())
    print(f"{kernels} kernels, {builds.tally.faults.total()} faults")
    return FAILED if builds.tally.faults else OK


if __name__ == "__main__":
    command.run("struck_builds", main)
