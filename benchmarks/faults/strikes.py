"""What those have in common that strike a program in its work: how, and the table of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random

from benchmarks.faults import aftermath
from benchmarks.faults.aftermath import WORDS, Fault

SIGNALS = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP")
STOPPED = "stop, continue"
STOPPED_S = 2.0  # at most
END_S = 3600.0  # nothing takes as long, on a machine however busy: it hangs


class Tally:
    """How often each way met a program in each stage, and the faults that were found."""

    def __init__(self, ways: Sequence[str], stages: Sequence[str], kinds: Sequence[str]) -> None:
        self.ways, self.stages, self.kinds = ways, stages, kinds
        self.struck: Counter[tuple[str, str]] = Counter()  # by way and stage
        self.faults: Counter[tuple[str, str]] = Counter()  # by way and kind

    def note(self, way: str, faults: Iterable[Fault]) -> None:
        for kind, what in faults:
            print(f"{way}: {kind}: {what}", flush=True)
            self.faults[way, kind] += 1

    def table(self) -> str:
        def row(name: str, ways: Sequence[str]) -> list[object]:
            struck = [sum(self.struck[way, stage] for way in ways) for stage in self.stages]
            return [name, sum(struck), *struck,
                    *(sum(self.faults[way, kind] for way in ways) for kind in self.kinds)]
        rows: list[list[object]] = [["struck by", "times", *self.stages, *self.kinds],
                                    *(row(way, [way]) for way in self.ways), row("all", self.ways)]
        return "\n".join(f"{first!s:<14}" + "".join(f"{cell!s:>12}" for cell in rest)
                         for first, *rest in rows)


def start(words: Sequence[str | Path], said: Path, environment: Mapping[str, str]
          ) -> subprocess.Popen[bytes]:
    """A program at the head of a group of processes as in a terminal; said: its last words."""
    with said.open("wb") as file:  # a file: an orphan would keep a pipe open
        return subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=file,
            start_new_session=True, preexec_fn=_heed_interrupts,
            env={**os.environ, **environment})


def _heed_interrupts() -> None:
    """Programs in the background ignore Ctrl-C, and what they start does."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def hit(way: str, process: subprocess.Popen[bytes], random: Random) -> None:
    """Strike it by a signal, or stop it for a while, in which others of its session go on."""
    if way == STOPPED:  # as Ctrl-Z
        os.killpg(process.pid, signal.SIGSTOP)
        time.sleep(random.uniform(0, STOPPED_S))
        os.killpg(process.pid, signal.SIGCONT)
    elif way == "SIGINT":  # as Ctrl-C, which all in the terminal's foreground get
        os.killpg(process.pid, signal.SIGINT)
    else:
        process.send_signal(signal.Signals[way])


def complaints(said: str) -> list[Fault]:
    """What no user may read."""
    return [(WORDS, line) for line in said.splitlines()
            if "Traceback" in line or "internal error" in line or "not resumed" in line]


def alone(program: str, words: Sequence[str], *flags: str, first: str) -> None:
    """Begin anew as root in name spaces (unshare's flags) where a first command has been run."""
    if os.geteuid() == 0 and not aftermath.is_own():
        os.environ[aftermath.OWN] = "own"
        os.execvp("unshare", [
            "unshare", "--mount", *flags, "--propagation", "private", "sh", "-c",
            f'{first} && exec "$@"', "sh", sys.executable, "-m", f"benchmarks.faults.{program}",
            *words])
    aftermath.adopt_orphans()
