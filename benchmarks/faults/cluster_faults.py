"""Break a cluster in the middle of runs, and compare their records with an undisturbed run's.

    python3 -m benchmarks.faults.cluster_faults [kills] [cut] [lasting] [--kills 20] [--seed 1]

A scheduler, two workers and run.sh, each in a network namespace of its own, speak TLS.
kills: a worker, its nanny, its batch, its guest, or all of a machine is killed (SIGKILL) at
random moments. cut: a worker's link, the scheduler's, or run.sh's is down for 60 s, without a
reset. lasting: a worker's link is down for good. All records must equal those of a run that
nobody disturbed; nothing may be lost, doubled or left behind, and the user reads no more than
a line for each fault. Needs root; has mounts, a network, a /dev/shm and a /run of its own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from benchmarks import command
from benchmarks.faults import strikes
from benchmarks.faults.machines import HOME, SCHEDULER, WORKERS, Machines, Network
from benchmarks.faults.strikes import BATCH, GUEST, MACHINE, NANNY, WORKER, Machine, parts_of
from engines.job import PROJECT
from lab.core.command_line import Parser, positive
from lab.core.errors import FAILED, OK, CannotError, FirstFlightError

NAME = "zhao2019"
FLAGS = ("--scenario", NAME, "--rtt", "20,50,100,200,500,1000", "--bw", "256,1000,5000",
         "--iw", "3,10", "--repeat", "4")
WAYS = (MACHINE, NANNY, WORKER, BATCH, GUEST)
MOST_STRIKES = 3  # of one run
CUT_S = 60.0
END_S = 900.0
RESTART_S = 1.0  # between two looks at whether a worker has ended, and the run
OWN = ('for place in /dev/shm /run; do mount -t tmpfs tmpfs $place || exit; done;'
       ' mkdir /run/netns; ip link set lo up')


class Faults:
    """Runs over one cluster, each struck in its own way, compared with an undisturbed one."""

    def __init__(self, home: Path, random: Random) -> None:
        self.home, self.random = home, random
        self.temporary = home / "tmp"
        self.temporary.mkdir()
        os.environ["TMPDIR"] = str(self.temporary)
        self.network = Network()
        self.clean = Machine.now(self.temporary)
        self.machines = Machines(home / "machines", self.network)
        self.log = home / "log"
        self.number = 0
        self.faults = 0
        self.run_folder: Path = home
        self.undisturbed_run, self.takes_s = home, 0.0

    def undisturbed(self) -> None:
        """What all other runs are compared with."""
        self.machines.wait()
        began = time.monotonic()
        self.finish(self.start())
        self.undisturbed_run, self.takes_s = self.run_folder, time.monotonic() - began
        print(f"undisturbed: {len(strikes.rows(self.undisturbed_run))} records,"
              f" {self.takes_s:.0f} s", flush=True)

    def start(self) -> subprocess.Popen[bytes]:
        self.number += 1
        with self.log.open("wb") as log:
            return subprocess.Popen(
                [*self.machines.at(HOME), str(PROJECT / "run.sh"), "--cluster",
                 self.machines.address, "--no-figures", "--results",
                 str(self.home / f"run{self.number}"), *FLAGS], env=self.machines.environment,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def finish(self, run: subprocess.Popen[bytes]) -> list[str]:
        """Wait for a run's end; its messages besides progress. Raises FirstFlightError."""
        until = time.monotonic() + END_S
        while (status := run.poll()) is None:
            if time.monotonic() > until:
                run.send_signal(signal.SIGINT)
            time.sleep(RESTART_S)
            self.restart_workers()
        lines = self.log.read_text().splitlines()
        if status:
            raise FirstFlightError(f"a run ended with {status}: {' | '.join(lines[-8:])}")
        self.run_folder = strikes.folders(self.home / f"run{self.number}" / NAME)[-1]
        return [line for line in lines if line.startswith("run.sh: ")]

    def judge(self, what: str, messages: Sequence[str], most_lines: int) -> None:
        """Print and count the faults of a run that was struck."""
        rows = strikes.rows(self.run_folder)
        faults = strikes.row_faults(rows, strikes.rows(self.undisturbed_run))
        if len(messages) > most_lines:
            faults.append((strikes.WORDS, f"{len(messages)} lines"))
        self.faults += len(faults)
        print(f"{what}: {len(rows)} records, {len(faults)} faults",
              *messages, *(": ".join(fault) for fault in faults), sep="\n    ", flush=True)

    # Kills ---------------------------------------------------------------------------

    def kills(self, most: int) -> None:
        """Runs whose machines are struck, until so many strikes have met one."""
        struck: Counter[str] = Counter()
        while struck.total() < most:
            run, ways = self.start(), []
            for _ in range(min(self.random.randint(1, MOST_STRIKES), most - struck.total())):
                time.sleep(self.random.uniform(0, self.takes_s / MOST_STRIKES))
                way = self.random.choice(WAYS)
                if run.poll() is None and self.strike(way, self.random.choice(WORKERS)):
                    ways.append(way)
            messages = self.finish(run)
            struck.update(ways)
            self.judge(f"killed: {', '.join(ways) or 'nothing'}", messages, len(ways))
        print(f"{struck.total()} kills: "
              + ", ".join(f"{count} × {way}" for way, count in struck.items()), flush=True)

    def strike(self, way: str, name: str) -> bool:
        """Kill something of a machine; False where that was not there at the moment."""
        parts = parts_of(self.machines.processes[name].pid)
        if way == MACHINE:
            self.machines.kill(name)
        elif not parts[way]:
            return False
        else:
            os.kill(parts[way][0], signal.SIGKILL)
        if way in (MACHINE, NANNY):
            time.sleep(self.random.uniform(0, 3))
            if way == NANNY:
                self.machines.kill(name)
            self.machines.work(name)
        return True

    # Links ---------------------------------------------------------------------------

    def cut(self) -> None:
        """A link that is down for a minute, of each part in turn."""
        for name in (WORKERS[0], SCHEDULER, HOME):
            messages = self.while_measuring(lambda: self.pull(name, CUT_S))
            self.judge(f"link of {name} down for {CUT_S:.0f} s", messages, 1)

    def lasting(self) -> None:
        """A worker whose link does not come up before the run has ended."""
        messages = self.while_measuring(lambda: self.network.cut(WORKERS[0]))
        self.judge(f"link of {WORKERS[0]} down for good", messages, 1)
        self.network.mend(WORKERS[0])

    def pull(self, name: str, seconds: float) -> None:
        self.network.cut(name)
        time.sleep(seconds)
        self.network.mend(name)

    def while_measuring(self, act: Callable[[], None]) -> list[str]:
        """The messages of a run that meets something in its middle."""
        run, began = self.start(), time.monotonic()
        time.sleep(self.takes_s * self.random.uniform(0.4, 0.8))
        act()
        messages = self.finish(run)
        print(f"    it took {time.monotonic() - began:.0f} s instead of {self.takes_s:.0f} s")
        return messages

    def restart_workers(self) -> None:
        """Start the workers anew that ended with their link, as the loop of docs/CLUSTER.md."""
        for name in WORKERS:
            if self.machines.processes[name].poll() is not None:
                self.machines.work(name)

    # The end -------------------------------------------------------------------------

    def close(self) -> None:
        """End all, and count what is left."""
        for name in list(self.machines.processes):
            self.machines.end(name)
        # Python's semaphores, of Dask's processes: a machine that loses power loses its memory.
        for path in strikes.SHARED_MEMORY.glob("sem.mp-*"):
            path.unlink()
        left = strikes.left_processes() + [
            (kind, what) for kind, what in self.clean.more(Machine.now(self.temporary))
            if not what.endswith((".lock", "dask-worker-space"))]  # Dask's own
        self.faults += len(left)
        print(f"leftovers: {len(left)}", *(": ".join(fault) for fault in left), sep="\n    ")


FAULTS: dict[str, Callable[[Faults], None]] = {"cut": Faults.cut, "lasting": Faults.lasting}


def main(words: Sequence[str]) -> int:
    parser = Parser(prog="cluster_faults", description="Break a cluster in the middle of runs.")
    parser.add_argument("what", nargs="*", choices=["kills", *FAULTS], help="(default: all)")
    parser.add_argument("--kills", type=positive, default=20, help="(default 20)")
    parser.add_argument("--seed", type=int, default=1, help="of ways and moments (default 1)")
    arguments = parser.parse_args(words)
    if os.geteuid():
        raise CannotError("needs root, for networks that can be cut")
    strikes.isolate("cluster_faults", words, "--net", first=OWN)
    with tempfile.TemporaryDirectory(prefix="first-flight-faults-") as folder:
        faults = Faults(Path(folder), Random(arguments.seed))
        try:
            faults.undisturbed()
            for name in arguments.what or ["kills", *FAULTS]:
                faults.kills(arguments.kills) if name == "kills" else FAULTS[name](faults)
        finally:
            faults.close()
    print(f"{faults.faults} faults")
    return FAILED if faults.faults else OK


if __name__ == "__main__":
    command.run("cluster_faults", main)
