"""Change the code in one place at a time, and count the changes that no fast test notices.

    /usr/bin/python3 -m benchmarks.faults.mutants --only lab/core --only lab/tcp/model/window.py:87
    /usr/bin/python3 -m benchmarks.faults.mutants --sample 800 --seed 1 --jobs 2

Every change (benchmarks/faults/mutant_changes.py says which there are, and which are left out
and why) is put into a copy of the tree, and of tests/unit and tests/golden those that
execute the changed line are run, those of its room first and of them the fastest, until
one fails. For a line that runs while modules are imported these are the tests that
execute a line with a name that it binds (benchmarks/faults/mutant_users.py), for one that
nothing was seen to execute those that import its module. A change that no test notices
has survived, and so has one for which there is no test. A change that makes a test loop
counts as noticed (several times the processor time that the test took).

Needs Debian's python3-coverage, which tells once what each test executes; that is kept in
~/.cache/first-flight/mutants. As root the copies live in a name space of their own, where
everything else is read-only; a test that does not pass there is told and not used.
Prints the survivors, and killed of all by file.
"""

from __future__ import annotations

import ast
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from benchmarks import command
from benchmarks.faults.mutant_changes import Change, changed, changes
from benchmarks.faults.mutant_reach import Reach, apart, reach
from benchmarks.faults.mutant_tests import TESTS, files_of_tests, near_to
from benchmarks.faults.mutant_users import Users
from benchmarks.faults.mutant_worker import CANNOT, READY, SURVIVED
from lab.core.command_line import Parser, positive
from lab.core.errors import OK

PROJECT = Path(__file__).resolve().parent.parent.parent
SOURCES = ("lab", "server.py", "client.py", "hosts", "engines", "topo.py", "drawing",
           "probe", "commands", "experiment.py", "plot.py", "report.py", "results.py")
# What runs in a network of Mininet or as a guest's first process only: tests/live.
LIVE = ("topo.py", *(f"engines/{name}.py" for name in (
    "guest/init", "bench", "worker/fetches", "worker/load", "worker/trace", "network/namespaces",
    "network/nodes")))
NOT_RUN = "not run"  # by any test
SERVE = "import sys; from benchmarks.faults.mutant_worker import serve; serve(*sys.argv[1:])"


@dataclass(frozen=True)
class Mutant:
    """A change of a file. tests: those to run, with their seconds; fresh: see mutant_worker."""

    path: str
    number: int
    change: Change
    tests: dict[str, float]
    fresh: bool

    @property
    def place(self) -> str:
        return f"{self.path}:{self.change.line}"

    @property
    def near(self) -> dict[str, float]:
        """The tests of its room and the golden ones, which notice most."""
        folders = near_to(self.path)
        return {test: seconds for test, seconds in self.tests.items() if test.startswith(folders)}

    @property
    def stages(self) -> list[dict[str, float]]:
        near = self.near
        far = {test: seconds for test, seconds in self.tests.items() if test not in near}
        return [tests for tests in (near, far) if tests]


class Seat:
    """A copy of the tree with its two workers."""

    def __init__(self, number: int, folder: Path, known: list[str]) -> None:
        self.folder, self.known = folder / str(number), known
        (self.folder / "tmp").mkdir(parents=True)
        copy(self.folder / "tree")
        self.workers = {mode: self.start(mode) for mode in ("warm", "fresh")}
        for worker in self.workers.values():  # else it would read what is changed for the other
            if (said := worker.hear()) != READY:
                raise RuntimeError(f"a worker said {said}")

    def start(self, mode: str) -> Worker:
        worker = Worker(self.folder, mode)
        if mode == "fresh":
            worker.say(self.known)
        return worker

    def outcome(self, mutant: Mutant) -> str:
        """What becomes of a mutant in this copy."""
        if not mutant.tests:
            return NOT_RUN
        original, copied = PROJECT / mutant.path, self.folder / "tree" / mutant.path
        source = copied.read_text(encoding="utf-8")
        copied.write_text(ast.unparse(changed(source, mutant.number)), encoding="utf-8")
        job = {"path": mutant.path, "source": source, "number": mutant.number,
               "function": mutant.change.function}
        try:
            for tests in mutant.stages:
                said = self.said({**job, "tests": tests}, mutant)
                if said != SURVIVED:
                    break
            return said
        finally:
            shutil.copy2(original, copied)
            shutil.rmtree(self.folder / "tmp", ignore_errors=True)
            (self.folder / "tmp").mkdir(exist_ok=True)

    def said(self, job: dict[str, Any], mutant: Mutant) -> str:
        for mode in ("fresh",) if mutant.fresh else ("warm", "fresh"):
            said = self.workers[mode].ask(job)
            if said != CANNOT:
                return said
        raise RuntimeError(f"{mutant.place}: cannot be run")

    def close(self) -> None:
        for worker in self.workers.values():
            worker.close()


class Worker:
    """A process of mutant_worker in a seat's folder."""

    def __init__(self, folder: Path, mode: str) -> None:
        reads, self.jobs = os.pipe()
        answers, writes = os.pipe()
        words = apart(folder, [sys.executable, "-c", SERVE, mode, str(reads), str(writes)])
        self.log = folder / f"{mode}.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                words, cwd=folder / "tree", stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                pass_fds=(reads, writes), env=os.environ | {
                    "TMPDIR": str(folder / "tmp"), "OPENBLAS_NUM_THREADS": "1",
                    "FIRST_FLIGHT_MUTANT_TESTS": ":".join(
                        name for name in TESTS if (PROJECT / name).is_dir())})
        os.close(reads)
        os.close(writes)
        self.answers = os.fdopen(answers)

    def say(self, content: object) -> None:
        with os.fdopen(os.dup(self.jobs), "w") as file:
            file.write(json.dumps(content) + "\n")

    def ask(self, job: object) -> str:
        with suppress(BrokenPipeError):
            self.say(job)
        return self.hear()

    def hear(self) -> str:
        answer = self.answers.readline().strip()
        if not answer:
            raise RuntimeError(f"a worker ended:\n{self.log.read_text()[-2000:]}")
        return answer

    def close(self) -> None:
        os.close(self.jobs)
        self.process.wait()
        self.answers.close()


def copy(tree: Path) -> None:
    """The files of the project, as they are in its folder, without what is ignored."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            cwd=PROJECT, check=True, stdout=subprocess.PIPE).stdout
    for name in filter(None, listed.decode().split("\0")):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        if (PROJECT / name).exists():
            shutil.copy2(PROJECT / name, tree / name)


def sources() -> list[str]:
    found = (path for name in SOURCES
             for path in [*PROJECT.glob(name), *sorted((PROJECT / name).rglob("*.py"))])
    return [name for path in found if path.suffix == ".py"
            and (name := str(path.relative_to(PROJECT))) not in LIVE]


def places(only: Sequence[str]) -> list[tuple[str, int, Change]]:
    """Every change of the files or lines asked for, with its file and number."""
    return [(path, number, change) for path in sources()
            if any(path.startswith(each.partition(":")[0]) for each in only)
            for number, change in enumerate(changes(parsed(path)))
            if any(path.startswith(each) or f"{path}:{change.line}" == each for each in only)]


def parsed(path: str) -> ast.Module:
    return ast.parse((PROJECT / path).read_text(encoding="utf-8"))


def mutants(chosen: Iterable[tuple[str, int, Change]], found: Reach) -> Iterator[Mutant]:
    """The changes with the tests that can notice them."""
    users = Users(PROJECT, sources(), {test.split("::")[0] for test in found.tests})
    known: dict[frozenset[str], set[str]] = {}
    for path, number, change in chosen:
        first, last = change.lines
        tests = found.of(path, first, last)
        fresh = (change.function is None
                 or not found.imported.get(path, set()).isdisjoint(range(first, last + 1)))
        if fresh:
            if change.names not in known:
                lines, files = users.of(change.names)
                known[change.names] = {test for file, line in lines
                                       for test in found.of(file, line, line)}
                known[change.names] |= {test for test in found.tests
                                        if test.split("::")[0] in files}
            tests = tests | known[change.names]
        if not tests:  # of a process that became another program nobody could record it
            tests = {test for test in found.tests
                     if test.split("::")[0] in users.importing[path]}
        yield Mutant(path, number, change, {test: found.tests[test] for test in tests}, fresh)


def outcomes(chosen: Sequence[Mutant], found: Reach, jobs: int) -> Iterator[tuple[Mutant, str]]:
    """Each mutant with what became of it, as they end."""
    with tempfile.TemporaryDirectory(prefix="first-flight-mutants-") as folder:
        seats: queue.SimpleQueue[Seat] = queue.SimpleQueue()
        made = [Seat(number, Path(folder), [*found.tests, *found.failed]) for number in range(jobs)]
        for seat in made:
            seats.put(seat)

        def run(mutant: Mutant) -> str:
            seat = seats.get()
            try:
                return seat.outcome(mutant)
            finally:
                seats.put(seat)

        with ThreadPoolExecutor(jobs) as pool:
            running = {pool.submit(run, mutant): mutant for mutant in chosen}
            for future in as_completed(running):
                yield running[future], future.result()
        for seat in made:
            seat.close()


def table(seen: Sequence[tuple[Mutant, str]]) -> str:
    """Killed of all by file and by folder."""
    total, killed = Counter[str](), Counter[str]()
    for mutant, outcome in seen:
        folders = mutant.path.split("/")[:-1]
        for name in {mutant.path, *("/".join(folders[:depth + 1]) + "/"
                                    for depth in range(len(folders))), "all"}:
            total[name] += 1
            killed[name] += outcome not in (SURVIVED, NOT_RUN)
    return "\n".join(f"{name:36}{killed[name]:6}{total[name]:6}{killed[name] / total[name]:7.0%}"
                     for name in sorted(total, key=lambda name: (name == "all", name)))


def main(words: Sequence[str]) -> int:
    parser = Parser(prog="mutants", description="Count the changes that no fast test notices.")
    parser.add_argument("--only", action="append", metavar="PATH[:LINE]",
                        help="files that begin so, or one line (default: all)")
    parser.add_argument("--sample", type=positive, help="how many changes (default: all)")
    parser.add_argument("--seed", type=int, default=1, help="of the sample (default 1)")
    parser.add_argument("--near", action="store_true", help="stop after the tests of its room")
    parser.add_argument("--jobs", type=positive, default=os.cpu_count() or 1,
                        help="copies of the tree (default: one for each processor)")
    arguments = parser.parse_args(words)
    chosen = places(arguments.only or [""])
    if arguments.sample is not None and arguments.sample < len(chosen):
        chosen = Random(arguments.seed).sample(chosen, arguments.sample)
    chosen.sort(key=lambda place: place[:2])
    near = {path for path, _, _ in chosen} if arguments.near else None
    with tempfile.TemporaryDirectory(prefix="first-flight-mutants-") as folder:
        copy(tree := Path(folder) / "tree")
        found = reach(tree, files_of_tests(tree, near))
    for test in found.failed:
        print(f"fails unchanged, not used: {test}")
    seen = []
    made = [each if near is None else replace(each, tests=each.near)
            for each in mutants(chosen, found)]
    for mutant, outcome in outcomes(made, found, arguments.jobs):
        seen.append((mutant, outcome))
        if outcome in (SURVIVED, NOT_RUN):
            print(f"{mutant.place}: {outcome}: {mutant.change.words}", flush=True)
    print(table(seen))
    return OK


if __name__ == "__main__":
    command.run("mutants", main)
