#!/usr/bin/env python3
"""Attack the project with hostile inputs and count what becomes of them.

    /usr/bin/python3 -m benchmarks.faults.fuzz [--inputs 10000] [--seed 1] [--kind toml …]

Real scenario files, command lines, files about users, trials.csv and run.json of small
stored runs (tests/golden) and captures are damaged (benchmarks/faults/mutations.py), odd things
stand where something is to be written, servers that are probed say anything
(benchmarks/faults/hostile.py), and all are put to the functions behind run.sh, report.py and
results.py (benchmarks/faults/attempts.py), in processes with a limit of memory.
Prints for each kind: inputs, refused with one line, accepted, internal errors
(any other exception, or a message that is not one line), those that took more than 3 GB,
hangs (no end within a minute of processor time, or ten by the clock), processes that died,
and slow ones (over 5 s of processor time). The first input of each defect is kept, and
where is said. The same seed makes the same inputs. Exit status: 0 where there is no
defect, else 1.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import stat
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection, wait
from pathlib import Path
from random import Random
from types import FrameType

from benchmarks import command
from benchmarks.faults import attempts
from benchmarks.faults.attempts import ACCEPTED, INTERNAL, KINDS, MEMORY, REFUSED, Outcome
from lab.core.command_line import Parser, positive
from lab.core.errors import FAILED, OK

Input = tuple[str, int]  # a kind, and a number in it
SLOW, HANG, DIED = "slow", "hang", "died"
DEFECTS = (INTERNAL, MEMORY, HANG, DIED)
SLOW_KINDS = {"servers": 0.2}  # how many of these for one of another
SLOW_S, HANG_S = 5.0, 60
WAIT_S = 600  # by the clock: on a machine that is busy with something else all is slow
MEMORY_BYTES = 3 << 30  # an input that takes more is a defect


class Kept:
    """Where failing inputs are kept: of each process the first of each defect."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seen: Counter[tuple[str, str]] = Counter()

    def note(self, kind: str, number: int, outcome: Outcome, made: Path) -> None:
        """Keep an input whose defect is new; tell it."""
        defect = kind, outcome.word + outcome.said[:40]
        self.seen[defect] += 1
        if self.seen[defect] == 1:
            place = self.folder / f"{kind}-{number}"
            shutil.copytree(made, place, symlinks=True, ignore=lambda at, names: [
                each for each in names if not is_small(Path(at) / each)])
            print(f"{outcome.word}: {outcome.said[:300]}\n  {place}", flush=True)


def is_small(path: Path) -> bool:
    """Whether it can be copied: a folder, a link, or a file of some megabytes at most."""
    seen = path.lstat()
    return stat.S_ISDIR(seen.st_mode) or stat.S_ISLNK(seen.st_mode) or (
        stat.S_ISREG(seen.st_mode) and seen.st_size < 10 << 20)


class Expired(BaseException):
    """Past HANG_S or WAIT_S; no Exception, which the code under attack could catch."""


def expired(number: int, frame: FrameType | None) -> None:
    raise Expired(f"{HANG_S} s of processor time" if number == signal.SIGPROF else f"{WAIT_S} s")


def attempted(kind: str, random: Random, folder: Path) -> tuple[Outcome, float]:
    """One input: what became of it, and how much processor time it took."""
    attempt = KINDS[kind](random, folder)
    started = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, HANG_S)
    signal.setitimer(signal.ITIMER_REAL, WAIT_S)
    try:
        outcome = attempts.tried(attempt)
    except Expired as expiry:
        outcome = Outcome(HANG, f"no end within {expiry}")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
    return outcome, time.process_time() - started


def tries(chosen: Sequence[Input], seed: int, kept: Kept, told: Connection) -> None:
    """Each input in turn in this process, which has a limit of memory; tells each outcome."""
    for limit in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(limit, expired)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    for kind, number in chosen:
        with tempfile.TemporaryDirectory() as folder:
            outcome, took_s = attempted(kind, Random(f"{seed} {kind} {number}"), Path(folder))
            words = [outcome.word]
            if outcome.word in DEFECTS:
                kept.note(kind, number, outcome, Path(folder))
            elif took_s > SLOW_S:
                words.append(SLOW)
                kept.note(kind, number, Outcome(SLOW, f"{took_s:.1f} s, {outcome.word}"),
                          Path(folder))
        told.send(words)


def fuzz(inputs: Sequence[Input], seed: int, kept: Kept, jobs: int) -> dict[str, Counter[str]]:
    """How many inputs of each kind had each outcome; so many processes share them."""
    counts: dict[str, Counter[str]] = {kind: Counter() for kind, _ in inputs}
    workers = [Worker(list(inputs[place::jobs]), seed, kept) for place in range(jobs)]
    try:
        while running := {worker.told: worker for worker in workers if worker.left}:
            for told in wait(list(running)):
                worker = running[told]  # type: ignore[index]
                counts[worker.left[0][0]].update(worker.outcome())
    finally:
        for worker in workers:
            worker.end()
    return counts


class Worker:
    """A process that tries inputs, and the next one where it dies of its input.

    left: those that have no outcome yet.
    """

    def __init__(self, inputs: list[Input], seed: int, kept: Kept) -> None:
        self.left, self.seed, self.kept = inputs, seed, kept
        self.begin()

    def begin(self) -> None:
        self.told, telling = Pipe(duplex=False)
        self.process = Process(target=tries, args=(self.left, self.seed, self.kept, telling))
        self.process.start()
        telling.close()

    def outcome(self) -> list[str]:
        """Of the first of those that are left. Waits."""
        kind, number = self.left[0]
        try:
            words: list[str] = self.told.recv()
        except EOFError:
            self.end()
            words = [DIED]
            print(f"{DIED} with status {self.process.exitcode}: seed {self.seed}, {kind} {number}",
                  flush=True)
        del self.left[0]
        if words == [DIED] and self.left:
            self.begin()
        return words

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.told.close()


def table(found: dict[str, Counter[str]]) -> str:
    words = (REFUSED, ACCEPTED, *DEFECTS, SLOW)
    rows = [(kind, counts.total() - counts[SLOW], *(counts[word] for word in words))
            for kind, counts in found.items()]
    rows.append(("all", *(sum(row[place] for row in rows)  # type: ignore[misc]
                          for place in range(1, len(words) + 2))))
    heads = ("kind", "inputs", *words)
    return "\n".join("".join(f"{cell!s:>{len(head) + 3}}" for cell, head in zip(row, heads))
                     for row in (heads, *rows))


def shared(inputs: int, kinds: Sequence[str]) -> list[Input]:
    """So many inputs, of each kind as many as its part; those of one kind follow each other."""
    parts = [SLOW_KINDS.get(kind, 1.0) for kind in kinds]
    counts = [max(1, int(inputs * part / sum(parts))) for part in parts]
    counts[0] += inputs - sum(counts)
    return [(kind, number) for kind, count in zip(kinds, counts) for number in range(count)]


def main(words: Sequence[str]) -> int:
    parser = Parser(prog="fuzz", description="Attack the project with damaged inputs.")
    parser.add_argument("--inputs", type=positive, default=10_000,
                        help="all together (default 10000)")
    parser.add_argument("--seed", type=int, default=1, help="of the inputs (default 1)")
    parser.add_argument("--kind", nargs="+", choices=list(KINDS), default=list(KINDS),
                        help="only these (default all)")
    parser.add_argument("--jobs", type=positive, default=len(os.sched_getaffinity(0)),
                        help="processes (default one a core)")
    arguments = parser.parse_args(words)
    folder = Path(tempfile.mkdtemp(prefix="first-flight-fuzz-"))
    found = fuzz(shared(arguments.inputs, arguments.kind), arguments.seed, Kept(folder),
                 arguments.jobs)
    print(table(found))
    if not any(folder.iterdir()):
        folder.rmdir()
    failed = any(counts[word] for counts in found.values() for word in DEFECTS)
    return FAILED if failed else OK


if __name__ == "__main__":
    command.run("fuzz", main)
