#!/usr/bin/env python3
"""Attack the project with hostile inputs and count what becomes of them.

    /usr/bin/python3 -m benchmarks.faults.fuzz [--inputs 10000] [--seed 1] [--kind toml …]

Real scenario files, command lines, files about users, trials.csv and run.json of small
stored runs (tests/golden) and captures are damaged (benchmarks/faults/damage.py), odd things
stand where something is to be written, servers that are probed answer anything, and all are put
to the functions behind run.sh, report.py and results.py (benchmarks/faults/inputs.py), in
processes with a limit of memory.
The same seed makes the same inputs.
Prints for each kind: inputs, refused with one line, accepted, internal errors
(any other exception, or a message that is not one line), those that took more than 3 GB,
hangs (no end within a minute of processor time, or ten by the clock), processes that died,
and slow ones (over 5 s of processor time). The first input of each defect is kept, and
its path is printed. Exit status: 0 where there is no defect, else 1.
"""

from __future__ import annotations

import contextlib
import io
import os
import resource
import shutil
import signal
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from threading import Lock
from types import FrameType

import hypothesis
from hypothesis import strategies as st

from benchmarks import command
from benchmarks.faults.damage import Draw
from benchmarks.faults.inputs import KINDS
from lab.core.command_line import Parser, positive
from lab.core.errors import FAILED, OK, USAGE, FirstFlightError

REFUSED, ACCEPTED, INTERNAL, MEMORY = "refused", "accepted", "internal error", "out of memory"
SLOW, HANG, DIED = "slow", "hang", "died"
DEFECTS = (INTERNAL, MEMORY, HANG, DIED)
SLOW_KINDS = {"servers": 0.2}  # how many of these for one of another
SLOW_S, HANG_S = 5.0, 60
WAIT_S = 600  # by the clock: on a machine that is busy with something else all is slow
MEMORY_BYTES = 3 << 30  # an input that takes more is a defect
MOST_CHARACTERS = 500  # of a message
CHOICES_BYTES = 8192  # more than any input takes, the most that Hypothesis reads
FORKING = Lock()


# One input ----------------------------------------------------------------------------

@dataclass(frozen=True)
class Outcome:
    """What became of an input; message: of the refusal, or the exception's name and text."""

    result: str
    message: str = ""


class Expired(BaseException):
    """Past HANG_S or WAIT_S; no Exception, which the code under attack could catch."""


def expired(number: int, frame: FrameType | None) -> None:
    raise Expired(f"{HANG_S} s of processor time" if number == signal.SIGPROF else f"{WAIT_S} s")


def tried(attempt: Callable[[], object]) -> Outcome:
    """One input put to the project; what else it raises is a defect, INTERNAL."""
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            attempt()
    except FirstFlightError as error:
        return refused(str(error))
    except MemoryError:
        return Outcome(MEMORY, "it takes more than it may")
    except SystemExit as error:  # argparse: the message went to standard error
        message = errors.getvalue().strip()
        return (refused(message) if error.code == USAGE else
                Outcome(ACCEPTED if error.code in (0, None) else INTERNAL, message))
    except Exception as error:  # what a user would see as an internal error
        last = traceback.extract_tb(error.__traceback__)[-1]
        return Outcome(INTERNAL, f"{Path(last.filename).name}:{last.lineno}:"
                                 f" {type(error).__name__}: {error}")
    return Outcome(ACCEPTED)


def refused(message: str) -> Outcome:
    """A refusal is one line that fits a terminal and moves no cursor."""
    if message and message.isprintable() and len(message) <= MOST_CHARACTERS:
        return Outcome(REFUSED, message)
    return Outcome(INTERNAL, f"not one printable line of {MOST_CHARACTERS} characters: {message!r}")


def attempted(kind: str, draw: Draw, folder: Path) -> Outcome:
    """One input, made and tried with a deadline."""
    attempt = KINDS[kind](draw, folder)
    began = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, HANG_S)
    signal.setitimer(signal.ITIMER_REAL, WAIT_S)
    try:
        outcome = tried(attempt)
    except Expired as expiry:
        return Outcome(HANG, f"no end within {expiry}")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
    took_s = time.process_time() - began
    return (Outcome(SLOW, f"{took_s:.1f} s, {outcome.result}")
            if took_s > SLOW_S and outcome.result not in DEFECTS else outcome)


# Many ---------------------------------------------------------------------------------

def explore(seeds: Iterable[str], attempt: Callable[[Draw], object]) -> None:
    """An input of each seed. Hypothesis reads its choices in random bytes.

    Its own search stays near what it has had: it met 229 refusals in 1000 scenarios, this 374.
    """
    @hypothesis.settings(database=None, deadline=None)
    @hypothesis.given(st.data())
    def example(data: st.DataObject) -> None:
        attempt(data.draw)

    for seed in seeds:
        example.hypothesis.fuzz_one_input(  # type: ignore[attr-defined]
            Random(seed).randbytes(CHOICES_BYTES))


def tries(kind: str, seeds: Sequence[str], home: Path, outcomes: Connection) -> None:
    """Inputs of a kind, in this process, which has a limit of memory; outcomes: gets each result.

    Of each defect the first input stays in `kept`, and the one that this process dies of.
    """
    for limit in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(limit, expired)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    defects: set[str] = set()

    def one(draw: Draw) -> None:
        folder = Path(tempfile.mkdtemp(prefix=f"{kind}-", dir=home))
        outcome = attempted(kind, draw, folder)
        defect = outcome.result + outcome.message.replace(str(folder), "")[:40]
        if outcome.result in (REFUSED, ACCEPTED) or defect in defects:
            shutil.rmtree(folder)
        else:
            defects.add(defect)
            print(f"{outcome.result}: {outcome.message[:300]}\n  {folder}", flush=True)
        outcomes.send(outcome.result)
    explore(seeds, one)
    os._exit(OK)  # past the end of its parent's pool of threads


def share(kind: str, seeds: Sequence[str], home: Path) -> Counter[str]:
    """How many inputs had each outcome; where a process dies another goes on."""
    counts: Counter[str] = Counter()
    while counts.total() < len(seeds):
        with FORKING:  # else another process would hold this one's pipe open
            receiver, sender = Pipe(duplex=False)
            process = Process(target=tries, args=(kind, seeds[counts.total():], home, sender))
            process.start()
            sender.close()
        with contextlib.suppress(EOFError):
            while True:
                counts[receiver.recv()] += 1
        process.join()
        if process.exitcode == 0:
            break
        counts[DIED] += 1
        print(f"{DIED} with status {process.exitcode}, of the newest {kind} in\n  {home}",
              flush=True)
    return counts


def fuzz(counts: Mapping[str, int], seed: int, home: Path, jobs: int) -> dict[str, Counter[str]]:
    """How many inputs of each kind had each outcome; so many processes at a time."""
    with ThreadPoolExecutor(jobs) as pool:
        shares = [(kind, pool.submit(share, kind, [f"{seed} {kind} {number}" for number in range(
            place, count, jobs)], home)) for kind, count in counts.items() for place in range(jobs)]
        return {kind: sum((done.result() for name, done in shares if name == kind), Counter())
                for kind in counts}


def table(counts: Mapping[str, Counter[str]]) -> str:
    results = (REFUSED, ACCEPTED, *DEFECTS, SLOW)
    rows = [(kind, row.total(), *(row[result] for result in results))
            for kind, row in counts.items()]
    rows.append(("all", *(sum(row[place] for row in rows)  # type: ignore[misc]
                          for place in range(1, len(results) + 2))))
    heads = ("kind", "inputs", *results)
    return "\n".join("".join(f"{cell!s:>{len(head) + 3}}" for cell, head in zip(row, heads))
                     for row in (heads, *rows))


def shared(inputs: int, kinds: Sequence[str]) -> dict[str, int]:
    """So many inputs, of each kind as many as its part."""
    parts = [SLOW_KINDS.get(kind, 1.0) for kind in kinds]
    counts = [max(1, int(inputs * part / sum(parts))) for part in parts]
    counts[0] += inputs - sum(counts)
    return dict(zip(kinds, counts))


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
    counts = shared(arguments.inputs, arguments.kind)
    outcomes = fuzz(counts, arguments.seed, folder, arguments.jobs)
    print(table(outcomes))
    if not any(folder.iterdir()):
        folder.rmdir()
    failed = any(of_kind[defect] for of_kind in outcomes.values() for defect in DEFECTS)
    return FAILED if failed else OK


if __name__ == "__main__":
    command.run("fuzz", main)
