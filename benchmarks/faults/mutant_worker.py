"""Runs chosen tests on changed code, each time in a new fork.

Mode "warm": pytest has collected all tests, and a fork puts the changed code into the functions
of the file, which is right where nothing of it ran while modules were imported. Mode
"fresh": a fork imports the project and collects the files of the chosen tests anew.
A line of JSON comes in for each change and one goes out (`Job`, an outcome); before the first
READY goes out: from then on the files may change.
"""

from __future__ import annotations

import ast
import gc
import json
import os
import resource
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, TextIO

import pytest

from benchmarks.faults.mutant_changes import changed

SURVIVED, KILLED, TIMEOUT, CANNOT = "survived", "killed", "timeout", "cannot"
READY = "ready"
CANNOT_STATUS, NO_TESTS = 77, 5
# What a test may take of the processor, beside what it took, and all of them of the wall clock.
CPU_FACTOR, CPU_S, WALL_S = 5, 4, 180


@dataclass(frozen=True)
class Job:
    """path: of the changed file in the tree; function: see Change; tests: names and seconds."""

    path: str
    source: str
    number: int
    function: tuple[str, int] | None
    tests: dict[str, float]


class Chosen:
    """pytest's plugin in a fork: the tests of one job, fastest first, each with a limit."""

    def __init__(self, job: Job) -> None:
        self.tests = job.tests
        self.files = {test.split("::")[0] for test in job.tests}

    def choose(self, items: list[pytest.Item], known: set[str]) -> None:
        """Of the collected tests those of the job, and those that only the change brought."""
        items[:] = [item for item in items if item.nodeid in self.tests or item.nodeid not in known]
        items.sort(key=lambda item: self.tests.get(item.nodeid, 0.0))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        limit(CPU_S + CPU_FACTOR * self.tests.get(item.nodeid, 1.0))


class FreshlyChosen(Chosen):
    def __init__(self, job: Job, known: set[str]) -> None:
        super().__init__(job)
        self.known = known

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self.choose(items, self.known)


class Serve:
    """pytest's plugin of the warm worker: in place of the tests it serves jobs."""

    def __init__(self, lines: TextIO, answers: TextIO) -> None:
        self.lines, self.answers = lines, answers

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> object:
        functions = [each for each in gc.get_objects() if isinstance(each, FunctionType)]
        gc.freeze()
        for job in jobs(self.lines, self.answers):
            if not patch(job, functions):
                os._exit(CANNOT_STATUS)
            chosen = Chosen(job)
            session.config.pluginmanager.register(chosen)
            chosen.choose(session.items, {item.nodeid for item in session.items})
            session.config.option.maxfail = 1
            return None  # the fork's own loop goes on with its tests
        return True


def jobs(lines: TextIO, answers: TextIO) -> Iterator[Job]:
    """Each job, within a fork; the parent tells what became of it and takes the next."""
    answers.write(f"{READY}\n")
    answers.flush()
    for line in lines:
        words = json.loads(line)
        job = Job(**words | {"function": words["function"] and tuple(words["function"])})
        process = os.fork()
        if not process:
            os.setsid()
            silence = os.open(os.devnull, os.O_RDWR)
            for stream in (1, 2):
                os.dup2(silence, stream)
            limit(CPU_S + CPU_FACTOR * 2.0)
            yield job
            os._exit(0)
        answers.write(f"{outcome(process, WALL_S + 10 * sum(job.tests.values()))}\n")
        answers.flush()
        kill_leftovers()


def outcome(process: int, wall_s: float) -> str:
    """What became of a fork; it is gone afterwards."""
    handle = os.pidfd_open(process)
    ended = select.select([handle], [], [], wall_s)[0]
    os.close(handle)
    if not ended:
        os.kill(process, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    if not ended or status == -signal.SIGXCPU:
        return TIMEOUT
    return {0: SURVIVED, NO_TESTS: SURVIVED, CANNOT_STATUS: CANNOT}.get(status, KILLED)


def kill_leftovers() -> None:
    """Processes that a test has left behind: in a namespace of its own they are this one's."""
    me = os.getpid()
    children = Path(f"/proc/{me}/task/{me}/children")
    while left := children.read_text(encoding="ascii").split():
        for process in map(int, left):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)


def limit(more_s: float) -> None:
    """The kernel ends this process after so many more seconds of the processor."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime + more_s) + 1, hard))


def patch(job: Job, functions: list[FunctionType]) -> bool:
    """Put the changed code into the functions that exist; whether that was possible."""
    path = str(Path(job.path).absolute())
    found: dict[tuple[str, int], CodeType] = {}

    def collect(code: CodeType) -> None:
        found[code.co_name, code.co_firstlineno] = code
        for each in code.co_consts:
            if isinstance(each, CodeType):
                collect(each)

    collect(compile(changed(job.source, job.number), path, "exec"))
    done = False
    for function in functions:
        code = function.__code__
        if code.co_filename == path and (code.co_name, code.co_firstlineno) == job.function:
            new = found[job.function]
            if new.co_freevars != code.co_freevars:
                return False
            function.__code__ = new
            done = True
    return done


def preload(tree: Path) -> None:
    """Import what the tree imports that is not its own, for all forks to have."""
    own = {path.stem for path in tree.glob("*")}
    names = {alias.name if isinstance(node, ast.Import) else node.module
             for path in sorted(tree.rglob("*.py"))
             for node in ast.parse(path.read_text(encoding="utf-8")).body
             if isinstance(node, (ast.Import, ast.ImportFrom)) for alias in node.names}
    for name in sorted(filter(None, names)):
        if name.split(".")[0] not in own:
            with suppress(ImportError):  # of another version of Python, say
                import_module(name)


def serve(mode: str, jobs_from: str, answers_to: str) -> None:
    """Until no more jobs come; both are numbers of open files."""
    lines, answers = os.fdopen(int(jobs_from)), os.fdopen(int(answers_to), "w")
    common: list[Any] = ["-q", "-x", "-p", "no:cacheprovider"]
    tests = os.environ["FIRST_FLIGHT_MUTANT_TESTS"].split(":")
    preload(Path.cwd())
    if mode == "warm":
        status = pytest.main([*common, *tests], plugins=[Serve(lines, answers)])
        os._exit(status)  # of a fork, or of this process at its end
    known = set(json.loads(lines.readline()))
    for job in jobs(lines, answers):
        sys.dont_write_bytecode = True
        plugin = FreshlyChosen(job, known)
        os._exit(pytest.main([*common, *sorted(plugin.files)], plugins=[plugin]))
