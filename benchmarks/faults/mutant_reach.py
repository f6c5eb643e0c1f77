"""Which test executes which line, and how long it takes: recorded once for each file of tests.

`record` runs files of tests in a copy of the tree under Debian's python3-coverage, with
this module as pytest's plugin, and keeps what it finds under a hash of all that
can change it: the file itself and everything in the tree that is no test. What a
fixture of several tests executes counts for each of them, and what a program
executes that a test starts. Functions that remember results forget them before each test.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import _lru_cache_wrapper
from pathlib import Path
from typing import Any

import pytest

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "first-flight/mutants"
FOLDER = "FIRST_FLIGHT_MUTANT_REACH"  # the variable that names where a recording run writes
TEST = "FIRST_FLIGHT_MUTANT_TEST"     # and the one that names its test to the programs it starts
SETTINGS = """[run]
parallel = true
sigterm = true
context = ${{FIRST_FLIGHT_MUTANT_TEST-}}
data_file = {folder}/data
source = {tree}
omit = */tests/*
"""
# As root: what a changed program may do to other files, processes and mounts ends here.
SHELL = 'mount --bind "$0" "$0" && mount -o remount,bind,ro / && cd "$0/tree" && exec "$@"'
APART = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", SHELL)
# What each program runs first. A test's limit of the size of files (a soft one) is for what the
# program writes, not for coverage's notes, which are written after this function has run.
STARTS = """
import atexit, resource
try:
    import coverage
except ImportError:  # a test's program has started another Python, which has none
    pass
else:
    coverage.process_startup()
    atexit.register(lambda: resource.setrlimit(
        resource.RLIMIT_FSIZE, (resource.getrlimit(resource.RLIMIT_FSIZE)[1],) * 2))
"""


@dataclass
class Reach:
    """tests: seconds of each test that passes. lines: path → line → the tests that execute it.

    imported: path → lines that run when a module is imported.
    """

    tests: dict[str, float] = field(default_factory=dict)
    lines: dict[str, dict[int, set[str]]] = field(default_factory=dict)
    imported: dict[str, set[int]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def add(self, stored: Mapping[str, Any]) -> None:
        names = list(stored["tests"])
        self.tests |= {name: float(seconds) for name, seconds in stored["tests"].items()}
        self.failed += stored["failed"]
        for path, lines in stored["lines"].items():
            mine = self.lines.setdefault(path, defaultdict(set))
            for line, places in lines.items():
                mine[int(line)].update(names[place] for place in places)
        for path, numbers in stored["imported"].items():
            self.imported.setdefault(path, set()).update(numbers)

    def of(self, path: str, first: int, last: int) -> set[str]:
        """The tests that execute one of the lines."""
        found = self.lines.get(path, {})
        return {test for line in range(first, last + 1) for test in found.get(line, ())}


def reach(tree: Path, files: Sequence[Path]) -> Reach:
    """What files of tests (relative to the tree) execute; recorded where it is not known yet.

    Raises: RuntimeError if pytest does not get through.
    """
    keys = _keys(tree, files)
    unknown = [file for file in files if not (CACHE / keys[file]).exists()]
    if unknown:
        print(f"recording what {len(unknown)} files of tests execute …", file=sys.stderr)
        CACHE.mkdir(parents=True, exist_ok=True)
        for name, content in record(tree, unknown).items():
            made = CACHE / f"{keys[Path(name)]}.{os.getpid()}"
            made.write_text(json.dumps(content), encoding="utf-8")
            made.rename(CACHE / keys[Path(name)])
    found = Reach()
    for file in files:
        found.add(json.loads((CACHE / keys[file]).read_text(encoding="utf-8")))
    return found


def _keys(tree: Path, files: Sequence[Path]) -> dict[Path, str]:
    """The names in the cache."""
    common = hashlib.sha256()
    for path in sorted(path for path in tree.rglob("*") if path.is_file()):
        if not path.name.startswith("test_") and "__pycache__" not in path.parts:
            common.update(f"{path.relative_to(tree)}\0".encode() + path.read_bytes())
    return {file: hashlib.sha256(common.digest() + str(file).encode()
                                 + (tree / file).read_bytes()).hexdigest() for file in files}


def apart(folder: Path, words: Sequence[str]) -> list[str]:
    """A command in a folder's tree, that may write to that folder only, where we are root."""
    return [*APART, str(folder), *words] if os.geteuid() == 0 else list(words)


def record(tree: Path, files: Sequence[Path]) -> dict[str, dict[str, Any]]:
    """What each file of tests executes, by its path; where changes will be tested, too."""
    with tempfile.TemporaryDirectory(dir=tree.parent) as name:
        folder = Path(name)
        (folder / "tmp").mkdir()
        settings = folder / "settings"
        settings.write_text(SETTINGS.format(folder=folder, tree=tree), encoding="utf-8")
        (folder / "sitecustomize.py").write_text(STARTS, encoding="utf-8")
        more = {FOLDER: str(folder), "TMPDIR": str(folder / "tmp"), TEST: "",
                "COVERAGE_PROCESS_START": str(settings),
                "PYTHONPATH": f"{folder}:{os.environ.get('PYTHONPATH', '')}".rstrip(":")}
        words = [sys.executable, "-m", "pytest", "-q", "-p", "benchmarks.faults.mutant_reach", "-p",
                 "no:cacheprovider", *map(str, files)]
        done = subprocess.run(apart(tree.parent, words), cwd=tree, text=True,
                              capture_output=True, env=os.environ | more, check=False)
        if done.returncode not in (0, 1):
            raise RuntimeError(f"pytest ended with {done.returncode}:\n{done.stdout[-3000:]}"
                               f"{done.stderr[-3000:]}")
        return _by_file(folder, tree, [str(file) for file in files])


def _by_file(folder: Path, tree: Path, files: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The recorded lines, put in order."""
    told = json.loads((folder / "told.json").read_text(encoding="utf-8"))
    made: dict[str, dict[str, Any]] = {
        file: {"tests": {test: seconds for test, seconds in told["seconds"].items()
                         if test.split("::")[0] == file},
               "failed": [test for test in told["failed"] if test.split("::")[0] == file],
               "lines": {}, "imported": {}} for file in files}
    places = {test: place for content in made.values()
              for place, test in enumerate(content["tests"])}
    for (name, line), contexts in _contexts(folder).items():
        path = str(Path(name).relative_to(tree))
        tests = {test for context in contexts for test in told["shared"].get(context, [context])}
        if "" in contexts:
            for content in made.values():
                content["imported"].setdefault(path, []).append(line)
        for test in tests & places.keys():
            lines = made[test.split("::")[0]]["lines"].setdefault(path, {})
            lines.setdefault(line, []).append(places[test])
    return made


def _contexts(folder: Path) -> dict[tuple[str, int], set[str]]:
    """Who executed a line of a file. Each process wrote a file of its own.

    coverage's `combine` reads all that it has once more for each of them, and there are hundreds.
    """
    from coverage import CoverageData  # only this program needs it
    from coverage.exceptions import CoverageException

    found: dict[tuple[str, int], set[str]] = defaultdict(set)
    for path in sorted(folder.glob("data.*")):
        data = CoverageData(str(path))
        with suppress(CoverageException):  # of a program that a test killed
            data.read()
            for name in data.measured_files():
                for line, contexts in data.contexts_by_lineno(name).items():
                    found[name, line].update(contexts)
    return found


# What follows is pytest's plugin of a recording run ----------------------------------------

class Recorder:
    """Tells coverage whose lines come next."""

    def __init__(self, folder: Path) -> None:
        import coverage

        self.folder = folder
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()
        self.shared: dict[str, list[str]] = {}
        self.items: list[pytest.Item] = []
        self.remembering: list[_lru_cache_wrapper[Any]] = []
        found = coverage.Coverage.current()
        assert found is not None, "coverage has not started with the process"
        self.coverage = found
        self.context = ""

    def next(self, context: str) -> str:
        """Lines from now on are those of a test, or of a fixture of several; → the one before."""
        before, self.context = self.context, context
        self.coverage.switch_context(context)
        os.environ[TEST] = context
        return before

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.items = session.items
        own = {path.stem for path in Path.cwd().iterdir()}
        self.remembering = [each for each in gc.get_objects()
                            if isinstance(each, _lru_cache_wrapper)
                            and str(each.__module__).split(".")[0] in own]

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        for each in self.remembering:
            each.cache_clear()
        self.next(item.nodeid)
        started = sum(os.times()[:4])
        yield
        self.seconds[item.nodeid] = round(sum(os.times()[:4]) - started, 3)
        self.next("")

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        if fixturedef.scope == "function":
            yield
            return
        name = f"{fixturedef.baseid} {fixturedef.argname}"
        self.shared[name] = [
            item.nodeid for item in self.items if isinstance(item, pytest.Function)
            and fixturedef in item._fixtureinfo.name2fixturedefs.get(fixturedef.argname, ())]
        before = self.next(name)
        yield
        self.next(before)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        told = {"seconds": {test: seconds for test, seconds in self.seconds.items()
                            if test not in self.failed},
                "failed": sorted(self.failed), "shared": self.shared}
        (self.folder / "told.json").write_text(json.dumps(told), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    if FOLDER in os.environ:
        config.pluginmanager.register(Recorder(Path(os.environ[FOLDER])))
