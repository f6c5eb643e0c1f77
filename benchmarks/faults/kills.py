"""Kill a small run at random moments, resume it, and count what is lost or left behind.

    /usr/bin/python3 -m benchmarks.faults.kills [--kills 200] [--seed 1]

A run of some seconds is struck one to four times by the signals that users, shells and
the system send, is stopped for a while, or one of its guests loses power (its kernel is
killed); then the same
command is let through to its end. All its records must equal those of a run that nobody
disturbed, but for the time at which they were measured. After each strike its processes,
network devices and namespaces, mounts, temporary files and memory in /dev/shm have to be
gone. Prints a table, and each fault as it is found; exit status 1 where there is one.
As root it has mounts, a network, a /dev/shm and a /run/netns of its own, where nobody else's
work is counted.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

from benchmarks import command
from benchmarks.faults import strikes
from benchmarks.faults.strikes import (END_S, FAULTS, SIGNALS, STAGES, STATUS, STOPPED, Struck,
                                       Tally, complaints)
from engines.job import PROJECT
from lab.core.command_line import Parser, positive
from lab.core.errors import FAILED, OK, FirstFlightError

# Some seconds, and a figure to be drawn.
SCENARIO = """\
# A small run that is killed.
title = "Two windows on twelve networks"
source = "benchmarks/faults/kills.py"

[defaults]
response_bytes = [9000]
initcwnd = [3, 10]
repeat = 2
initrwnd = 27
loss_percent = 0
congestion_control = "cubic"
client = "curl"
queue_packets = 1000
uplink = "same"

[[sweep]]
name = "by_rtt"
rtt_ms = [20, 50, 100, 200, 500, 1000]
bandwidth_kbps = [1000]

[[sweep]]
name = "by_bandwidth"
rtt_ms = [60]
bandwidth_kbps = [56, 256, 512, 2000, 5000, 7000]

[[axis]]
by = "rtt_ms"
values = [20, 50, 100, 200, 500, 1000]
labels = ["20", "50", "100", "200", "500", "1000"]

[[figure]]
name = "rtt"
title = "Improvement by RTT"
kind = "improvement"
sweep = "by_rtt"
by = "rtt_ms"
baseline_initcwnd = 3
experiment_initcwnd = 10
metric = "total_ms"
"""
POWER = "guest's power"
# Each with the statuses that a run may end with: killed by it, or interrupted. A guest
# without power is replaced.
WAYS: dict[str, tuple[int, ...]] = {
    **{name: (-signal.Signals[name], 130) for name in SIGNALS}, STOPPED: (0,), POWER: (0,)}
MOST_STRIKES = 4  # of one run, before it may come to its end
OWN = ('for place in /dev/shm /run/netns; do test ! -d $place || mount -t tmpfs tmpfs $place'
       ' || exit; done')


class Loop(Struck):
    """Small runs, one after another, each in a folder of its own, struck and resumed."""

    def __init__(self, home: Path, random: Random) -> None:
        super().__init__(home, random, Tally(list(WAYS), STAGES, FAULTS))
        self.scenario = home / "killed.toml"
        self.scenario.write_text(SCENARIO)
        self.undisturbed, self.takes_s = self._undisturbed()

    def _undisturbed(self) -> tuple[Path, float]:
        """A run that nobody disturbs, and the seconds that it takes."""
        folder, began = self.home / "undisturbed", time.monotonic()
        status, output = self.end(self.start(folder))
        if status != 0:
            raise FirstFlightError(f"an undisturbed run fails: {output}")
        return strikes.folders(folder / "killed")[-1], time.monotonic() - began

    def start(self, results: Path) -> subprocess.Popen[bytes]:
        return self.started([PROJECT / "run.sh", self.scenario, "--results", results, "--figures",
                             results / "figures"], {})

    def end(self, run: subprocess.Popen[bytes]) -> tuple[int, str]:
        """The status of a run, and its standard error."""
        return run.wait(END_S), self.log.read_text()

    def strike(self, way: str, results: Path) -> bool:
        """Start the run and strike it at a random moment; False where it had ended before."""
        home = results / "killed"
        before = strikes.folders(home)[-1:]
        rows = [row for folder in before for row in strikes.rows(folder)]
        run = self.start(results)
        time.sleep(self.random.uniform(0, self.takes_s))
        while way == POWER and run.poll() is None and not strikes.guests(run.pid):
            time.sleep(0.01)
        stage, alive = strikes.stage(home), run.poll() is None
        if alive and way == POWER:
            os.kill(self.random.choice(strikes.guests(run.pid)), signal.SIGKILL)
        elif alive:
            strikes.hit(way, run, self.random)
        status, output = self.end(run)
        faults = self.leftovers() + complaints(output)
        if status not in (*WAYS[way], 0):  # 0: it was about to end
            faults.append((STATUS, f"{status} in {stage}: {output.strip()[-300:]}"))
        faults += strikes.earlier_row_faults(rows, [row for folder in before
                                              for row in strikes.rows(folder)])
        self.tally.struck[way, stage] += alive
        self.tally.note(way, faults)
        return alive

    def round(self, number: int, most: int) -> int:
        """Strike one run some times, then let it end; return how many strikes met it."""
        results, met = self.home / f"round{number}", 0
        for _ in range(self.random.randint(1, min(most, MOST_STRIKES))):
            way = self.random.choice(list(WAYS))
            met += self.strike(way, results)
        status, output = self.end(self.start(results))
        faults = self.leftovers() + complaints(output)
        faults += strikes.run_faults(results / "killed", self.undisturbed)
        self.tally.note(way, faults + ([(STATUS, f"{status} at last: {output}")] if status else []))
        return met


def main(words: Sequence[str]) -> int:
    parser = Parser(prog="kills", description="Kill runs, resume them, count what is lost.")
    parser.add_argument("--kills", type=positive, default=200,
                        help="strikes that meet a run (default 200)")
    parser.add_argument("--seed", type=int, default=1, help="of ways and moments (default 1)")
    arguments = parser.parse_args(words)
    strikes.isolate("kills", words, "--net", first=OWN)
    with tempfile.TemporaryDirectory(prefix="first-flight-kills-") as folder:
        loop, met, number = Loop(Path(folder), Random(arguments.seed)), 0, 0
        while met < arguments.kills:
            met, number = met + loop.round(number, arguments.kills - met), number + 1
        print(loop.tally.table())
    print(f"{number} runs, {loop.tally.faults.total()} faults")
    return FAILED if loop.tally.faults else OK


if __name__ == "__main__":
    command.run("kills", main)
