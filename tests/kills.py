"""Kill a small run at random moments, resume it, and count what is lost or left behind.

    /usr/bin/python3 -m tests.kills [--kills 200] [--seed 1]

A run of some seconds is struck one to four times. A strike is a signal that users, shells or the
system send, a stop for a while, or the loss of power in one of the run's guests (its kernel is
killed). Then the same command may run to its end. All its records must equal those of a run that
nobody disturbed, except for the time at which they were measured. After each strike its processes,
network devices and namespaces, mounts and temporary files have to be gone.

The program prints each fault as it finds it, and a table at the end. Its exit status is 1 where
there is a fault. As root it has mounts, a network and a /run/netns of its own, so that it counts
nobody else's work.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random

from benchmarks import command
from firstflight.base import PROJECT
from firstflight.base.argument_types import positive_number
from firstflight.base.errors import FAILED, OK, FirstFlightError
from firstflight.base.parser import Parser
from tests import leftovers
from tests.leftovers import FAULTS, STAGES, STATUS, WORDS, Fault, Machine
from tests.running import HANGS_S

# A run of some seconds that also draws figures.
SCENARIO = "zhao2019"
FLAGS = ("--scenario", SCENARIO, "--rtt", "20,50,100,200,500,1000", "--bw", "56,256,1000,5000",
         "--iw", "3,10")
POWER, STOPPED = "guest's power", "stop, continue"
# The ways to strike, each with the statuses that a struck run may end with. A signal kills the run
# or interrupts it (130). A run that was stopped goes on, and one whose guest lost power starts
# another guest.
WAYS: dict[str, tuple[int, ...]] = {
    **{name: (-signal.Signals[name], 130) for name in ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP")},
    STOPPED: (0,), POWER: (0,)}
STOPPED_S = 2.0  # at most
MOST_STRIKES = 4  # of one run, before it may come to its end
# With it sh starts the command in "$@", with an empty /run/netns where the machine has one.
OWN = 'test ! -d /run/netns || mount -t tmpfs tmpfs /run/netns || exit; exec "$@"'


def complaints(output: str) -> list[Fault]:
    """The lines of an output that no user may read."""
    return [(WORDS, line) for line in output.splitlines()
            if "Traceback" in line or "internal error" in line or "not resumed" in line]


def hit(way: str, run: subprocess.Popen[bytes], random: Random) -> None:
    """Strike a live run in one of WAYS.

    A stop also meets what shares the run's group of processes, but not others of its session.
    """
    if way == POWER:
        if guests := leftovers.guests(run.pid):
            os.kill(random.choice(guests), signal.SIGKILL)
    elif way == STOPPED:  # as Ctrl-Z
        os.killpg(run.pid, signal.SIGSTOP)
        time.sleep(random.uniform(0, STOPPED_S))
        os.killpg(run.pid, signal.SIGCONT)
    elif way == "SIGINT":  # as Ctrl-C, which all in the terminal's foreground get
        os.killpg(run.pid, signal.SIGINT)
    else:
        run.send_signal(signal.Signals[way])


class Loop:
    """Small runs, one after another, each in a folder of its own, struck and resumed.

    home is the folder of all runs. struck counts the strikes by way and stage, faults the faults by
    way and kind. takes_s is how long the undisturbed run took, whose folder is `undisturbed`.
    """

    def __init__(self, home: Path, random: Random) -> None:
        self.home, self.random = home, random
        self.log, self.temporary = home / "log", home / "tmp"
        self.temporary.mkdir()
        self.machine = Machine.now(self.temporary)
        self.struck: Counter[tuple[str, str]] = Counter()
        self.faults: Counter[tuple[str, str]] = Counter()
        began = time.monotonic()
        status, output = self.end(self.start(home / "undisturbed"))
        if status != 0:
            raise FirstFlightError(f"an undisturbed run fails: {output}")
        self.takes_s = time.monotonic() - began
        self.undisturbed = leftovers.folders(home / "undisturbed" / SCENARIO)[-1]

    def start(self, results: Path) -> subprocess.Popen[bytes]:
        """Start the command with a TMPDIR of its own.

        As in a terminal it is at the head of a group of processes.
        """
        with self.log.open("wb") as file:  # a file: an orphan would keep a pipe open
            return subprocess.Popen(
                [PROJECT / "run.sh", *FLAGS, "--results", results, "--figures",
                 results / "figures"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=file, start_new_session=True, env={**os.environ,
                                                          "TMPDIR": str(self.temporary)},
                # Programs in the background ignore Ctrl-C, and what they start does.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))

    def end(self, run: subprocess.Popen[bytes]) -> tuple[int, str]:
        """Wait for the end of a run; its status and its standard error."""
        return run.wait(HANGS_S), self.log.read_text()

    def left_behind(self) -> list[Fault]:
        return leftovers.left_processes() + self.machine.more(Machine.now(self.temporary))

    def note(self, way: str, faults: Iterable[Fault]) -> None:
        """Print the faults behind a strike, and count them."""
        for kind, what in faults:
            print(f"{way}: {kind}: {what}", flush=True)
            self.faults[way, kind] += 1

    def strike(self, way: str, results: Path) -> bool:
        """Start the run and strike it at a random moment; False where it had ended before."""
        home = results / SCENARIO
        before = leftovers.folders(home)[-1:]
        rows = [row for folder in before for row in leftovers.rows(folder)]
        run = self.start(results)
        time.sleep(self.random.uniform(0, self.takes_s))
        while way == POWER and run.poll() is None and not leftovers.guests(run.pid):
            time.sleep(0.01)
        stage, alive = leftovers.stage(home), run.poll() is None
        if alive:
            hit(way, run, self.random)
        status, output = self.end(run)
        faults = self.left_behind() + complaints(output)
        if status not in (*WAYS[way], 0):  # 0: it was about to end
            faults.append((STATUS, f"{status} in {stage}: {output.strip()[-300:]}"))
        faults += leftovers.earlier_row_faults(rows, [row for folder in before
                                                      for row in leftovers.rows(folder)])
        self.struck[way, stage] += alive
        self.note(way, faults)
        return alive

    def strike_one_run(self, number: int, most: int) -> int:
        """Strike a run up to `most` times, let it end, and check it; return how many met it."""
        results, met = self.home / f"round{number}", 0
        for _ in range(self.random.randint(1, min(most, MOST_STRIKES))):
            way = self.random.choice(list(WAYS))
            met += self.strike(way, results)
        status, output = self.end(self.start(results))
        faults = self.left_behind() + complaints(output)
        faults += leftovers.run_faults(results / SCENARIO, self.undisturbed)
        self.note(way, faults + ([(STATUS, f"{status} at last: {output}")] if status else []))
        return met


def table(struck: Counter[tuple[str, str]], faults: Counter[tuple[str, str]]) -> str:
    """By way of striking: how often it met a run in each stage, and the faults of each kind."""
    rows: list[list[object]] = [["struck by", "times", *STAGES, *FAULTS]]
    for name, ways in (*((way, (way,)) for way in WAYS), ("all", tuple(WAYS))):
        met = [sum(struck[way, stage] for way in ways) for stage in STAGES]
        rows.append([name, sum(met), *met, *(sum(faults[way, kind] for way in ways)
                                             for kind in FAULTS)])
    return "\n".join(f"{first!s:<14}" + "".join(f"{cell!s:>12}" for cell in rest)
                     for first, *rest in rows)


def main(words: Sequence[str]) -> int:
    parser = Parser(prog="kills", description="Kill runs, resume them, count what is lost.")
    parser.add_argument("--kills", type=positive_number, default=200,
                        help="strikes that meet a run (default 200)")
    parser.add_argument("--seed", type=int, default=1, help="of ways and moments (default 1)")
    arguments = parser.parse_args(words)
    if os.geteuid() == 0 and leftovers.OWN not in os.environ:
        os.environ[leftovers.OWN] = "own"
        os.execvp("unshare", ["unshare", "--mount", "--net", "--propagation", "private", "sh",
                              "-c", OWN, "sh", sys.executable, "-m", "tests.kills", *words])
    leftovers.adopt_orphans()
    with tempfile.TemporaryDirectory(prefix="first-flight-kills-") as folder:
        loop, met, number = Loop(Path(folder), Random(arguments.seed)), 0, 0
        while met < arguments.kills:
            met += loop.strike_one_run(number, arguments.kills - met)
            number += 1
        print(table(loop.struck, loop.faults))
    print(f"{number} runs, {loop.faults.total()} faults")
    return FAILED if loop.faults else OK


if __name__ == "__main__":
    command.run("kills", main)
