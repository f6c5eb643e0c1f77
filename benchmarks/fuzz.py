"""Attack the project with damaged inputs and count what becomes of them.

    /usr/bin/python3 -m benchmarks.fuzz [--inputs 10000] [--seed 1] [--kind toml …]

Real scenario files, command lines, trials.csv and run.json of small stored runs
(tests/golden) and captures are damaged (benchmarks/mutations.py) and put to the
functions behind run.sh, report.py and results.py (benchmarks/attempts.py).
Prints for each kind: inputs, refused with one line, accepted, internal errors
(any other exception, or a message that is not one line), slow ones (over 5 s of
processor time) and hangs (no end within a minute of it, or ten by the clock). The
first input of each defect is kept, and where is said.
The same seed makes the same inputs. Exit status: 0 where there is no internal
error and no hang, else 1.
"""

from __future__ import annotations

import resource
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from types import FrameType

from benchmarks import attempts, command
from benchmarks.attempts import ACCEPTED, INTERNAL, KINDS, REFUSED, Outcome
from lab.core.command_line import Parser, positive
from lab.core.errors import FAILED, OK

SLOW, HANG = "slow", "hang"
SLOW_S, HANG_S = 5.0, 60
WAIT_S = 600  # by the clock: on a machine that is busy with something else all is slow
MEMORY_BYTES = 3 << 30  # an input that takes more is a defect


class Kept:
    """Where failing inputs are kept: the first of each defect."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="first-flight-fuzz-"))
        self.seen: Counter[tuple[str, str]] = Counter()

    def note(self, kind: str, number: int, outcome: Outcome, made: Path) -> None:
        """Keep an input whose defect is new; tell it."""
        defect = kind, outcome.word + outcome.said[:40]
        self.seen[defect] += 1
        if self.seen[defect] == 1:
            place = self.folder / f"{kind}-{number}"
            shutil.copytree(made, place, symlinks=True,
                            ignore=lambda at, names: [each for each in names
                                                      if (Path(at) / each).is_fifo()])
            print(f"{outcome.word}: {outcome.said[:300]}\n  {place}", flush=True)


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


def fuzz(kind: str, inputs: int, seed: int, kept: Kept) -> Counter[str]:
    """How many inputs of a kind had each outcome."""
    counts: Counter[str] = Counter()
    for number in range(inputs):
        with tempfile.TemporaryDirectory() as folder:
            outcome, took_s = attempted(kind, Random(f"{seed} {kind} {number}"), Path(folder))
            counts[outcome.word] += 1
            if outcome.word in (INTERNAL, HANG):
                kept.note(kind, number, outcome, Path(folder))
            elif took_s > SLOW_S:
                counts[SLOW] += 1
                kept.note(kind, number, Outcome(SLOW, f"{took_s:.1f} s, {outcome.word}"),
                          Path(folder))
    return counts


def table(found: dict[str, Counter[str]]) -> str:
    words = (REFUSED, ACCEPTED, INTERNAL, SLOW, HANG)
    rows = [(kind, counts.total() - counts[SLOW], *(counts[word] for word in words))
            for kind, counts in found.items()]
    rows.append(("all", *(sum(row[place] for row in rows)  # type: ignore[misc]
                          for place in range(1, len(words) + 2))))
    heads = ("kind", "inputs", REFUSED, ACCEPTED, "internal errors", SLOW, "hangs")
    return "\n".join("".join(f"{cell!s:>{10 if place else 9}}" if place != 4 else f"{cell!s:>17}"
                             for place, cell in enumerate(row)) for row in (heads, *rows))


def main(words: Sequence[str]) -> int:
    parser = Parser(prog="fuzz", description="Attack the project with damaged inputs.")
    parser.add_argument("--inputs", type=positive, default=10_000,
                        help="all together (default 10000)")
    parser.add_argument("--seed", type=int, default=1, help="of the inputs (default 1)")
    parser.add_argument("--kind", nargs="+", choices=list(KINDS), default=list(KINDS),
                        help="only these (default all)")
    arguments = parser.parse_args(words)
    for number in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(number, expired)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    kept, kinds = Kept(), arguments.kind
    shares = [arguments.inputs // len(kinds) + (place < arguments.inputs % len(kinds))
              for place in range(len(kinds))]
    found = {kind: fuzz(kind, inputs, arguments.seed, kept)
             for kind, inputs in zip(kinds, shares)}
    print(table(found))
    if not kept.seen:
        kept.folder.rmdir()
    failed = any(counts[INTERNAL] or counts[HANG] for counts in found.values())
    return FAILED if failed else OK


if __name__ == "__main__":
    command.run("fuzz", main)
