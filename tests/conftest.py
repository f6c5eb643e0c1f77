"""Makes the project importable for every test, from whichever folder pytest is called."""

from __future__ import annotations

import gc
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.running import HANGS_S, PROJECT

sys.path.insert(0, str(PROJECT))
# The folders with the tests that wait most. They begin first: none of them is then alone at the
# end.
FIRST = ("tests/live/", "tests/programs/")
# Files and tests that take a minute or more by themselves: they begin before all others.
LONGEST = ("tests/live/test_outside.py::test_a_stock_kernel_has_the_same_windows_and_flights",
           "tests/live/test_kernels.py", "tests/live/test_browser.py", "tests/live/test_page.py",
           "tests/live/test_fetches.py", "tests/live/test_healthy.py",
           "tests/live/test_cluster.py", "tests/live/test_servers.py", "tests/live/test_driver.py",
           "tests/live/test_command_programs.py::test_ten_scripts_do_the_same_in_two_places",
           "tests/live/test_captures.py::test_forty_networks_are_reported_as_they_were",
           "tests/live/test_engines.py::test_the_host_engine_measures_in_real_time",
           "tests/programs/test_cluster.py")
# In a file with one of these, tests share what the file makes once, or a guest that waits for
# trials like theirs.
SHARES = r'scope="module"|^@cache|drive: Driver|shared: UmlEngine'


def pytest_configure(config: pytest.Config) -> None:
    """Let the tests heed signals, start this Python, and keep byte code of the project.

    Under nohup, or behind a shell's "&", the tests would ignore signals, and so would the programs
    that they start.

    The scripts that tests start look for python3 on PATH. What is found there may be a wrapper, as
    pyenv's, which starts a dozen programs before Python: a third of a build's time.

    Where Python keeps no byte code beside sources, it is kept in the user's cache, as the kernel
    is. Otherwise each session, and each of the hundreds of programs that tests start, would compile
    the project anew. Byte code of sources that a test wrote is deleted at the end of the session.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    if sys.dont_write_bytecode:
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        kept = sys.pycache_prefix = f"{cache}/first-flight/bytecode"
        os.environ["PYTHONPYCACHEPREFIX"] = kept
        # One of several workers leaves the deletion to the process that started them.
        if not hasattr(config, "workerinput"):
            of_tests = Path(f"{kept}{tempfile.gettempdir()}")
            config.add_cleanup(lambda: [shutil.rmtree(folder, ignore_errors=True)
                                        for folder in of_tests.glob("pytest-of-*")])
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        sys.dont_write_bytecode = False
    gc.disable()  # what is collected and imported stays until the end


@pytest.fixture(autouse=True)
def _signals_as_they_were() -> Iterator[None]:
    """Undo what a test did to signals: the main() of a command leaves them ignored."""
    before = {number: signal.getsignal(number)
              for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the LONGEST tests, then the folders in FIRST, then all others.

    In each of these groups the files whose tests stay together begin.
    """
    shared = files_that_stay_together()
    items.sort(key=lambda item: (
        next((place for place, name in enumerate(LONGEST) if item.nodeid.startswith(name)),
             len(LONGEST)),
        not item.nodeid.startswith(FIRST), item.nodeid.partition("::")[0] not in shared))


def files_that_stay_together() -> set[str]:
    """The files whose tests one worker has to run, one after another."""
    return {str(path.relative_to(PROJECT)) for path in (PROJECT / "tests").rglob("test_*.py")
            if re.search(SHARES, path.read_text(encoding="utf-8"), re.MULTILINE)}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Which tests one worker gets together, where several work side by side (./test.sh).

    The tests of a file stay together where they share what the file makes once. In the slow folders
    most tests make what they need, as a guest of their own: these go one by one to any free worker,
    as a file of them takes a minute.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return nodeid if file.startswith(FIRST) and file not in shared else file

    shared = files_that_stay_together()
    return Scheduling(config, log)


def pytest_collection_finish() -> None:
    """Collect garbage less often, and only among objects of tests: imported modules stay anyway."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    gc.enable()


@pytest.fixture
def impatient() -> Iterator[None]:
    """Fail a test that waits for the other end of a FIFO or pipe, which never comes: no hang."""
    def expired(*_: object) -> None:
        pytest.fail("it waits for the other end")
    before = signal.signal(signal.SIGALRM, expired)
    signal.alarm(int(HANGS_S))
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def few_dots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw coarse figures in this process, which takes less time."""
    monkeypatch.setattr("firstflight.findings.drawing.style.DPI", 20)
