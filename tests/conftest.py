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
# Whose tests wait most: they begin first, so that none of them is alone at the end.
FIRST = ("tests/live/", "tests/programs/")
# The longest of all, by a file or a test; what takes a minute alone begins before everything else.
LONGEST = ("tests/live/test_outside.py::test_a_stock_kernel_has_the_same_windows_and_flights",
           "tests/live/test_kernels.py", "tests/live/test_page.py", "tests/live/test_fetches.py",
           "tests/live/test_cluster.py", "tests/live/test_servers.py", "tests/live/test_driver.py",
           "tests/live/test_command_programs.py::test_ten_scripts_do_the_same_in_two_places",
           "tests/live/test_captures.py::test_forty_networks_are_reported_as_they_were",
           "tests/live/test_engines.py::test_the_host_engine_measures_in_real_time",
           "tests/programs/test_cluster.py")
# Whose tests share what a file makes once, or a guest that waits for trials like theirs.
SHARES = r'scope="module"|^@cache|drive: Driver|shared: UmlEngine'


def pytest_configure(config: pytest.Config) -> None:
    """Signals are heeded: nohup, or a shell's "&", has them ignored, and so would what tests start.

    Where byte code is not kept beside sources it is kept in the user's cache, as the kernel is:
    each session, and each of hundreds of programs that tests start, would compile the project
    anew. What lay in folders of tests goes with the session.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    if sys.dont_write_bytecode:
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        kept = sys.pycache_prefix = f"{cache}/first-flight/bytecode"
        os.environ["PYTHONPYCACHEPREFIX"] = kept
        if not hasattr(config, "workerinput"):  # one of several workers leaves it to who began them
            ours = Path(f"{kept}{tempfile.gettempdir()}")
            config.add_cleanup(lambda: [shutil.rmtree(folder, ignore_errors=True)
                                        for folder in ours.glob("pytest-of-*")])
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        sys.dont_write_bytecode = False


@pytest.fixture(autouse=True)
def _signals_as_they_were() -> Iterator[None]:
    """A command's main that ran in a test leaves signals ignored, for later tests as well."""
    before = {number: signal.getsignal(number)
              for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first, then the slow rooms; in each, the files that stay together."""
    shared = files_that_stay_together()
    items.sort(key=lambda item: (
        next((place for place, name in enumerate(LONGEST) if item.nodeid.startswith(name)),
             len(LONGEST)),
        not item.nodeid.startswith(FIRST), item.nodeid.partition("::")[0] not in shared))


def files_that_stay_together() -> set[str]:
    return {str(path.relative_to(PROJECT)) for path in (PROJECT / "tests").rglob("test_*.py")
            if re.search(SHARES, path.read_text(encoding="utf-8"), re.MULTILINE)}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Which tests a worker gets together, where several work side by side (./test.sh).

    Those of a file, which share what the file makes once. Where each test makes what it needs,
    as a guest of its own, they go one by one to whoever is free: a file of them takes a minute.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return nodeid if file.startswith(FIRST) and file not in shared else file

    shared = files_that_stay_together()
    return Scheduling(config, log)


def pytest_collection_finish() -> None:
    """What has been imported stays: garbage is looked for among what tests make, and less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@pytest.fixture
def impatient() -> Iterator[None]:
    """Who waits for the other end of a FIFO or pipe, which never comes, fails and does not hang."""
    def expired(*_: object) -> None:
        pytest.fail("it waits for the other end")
    before = signal.signal(signal.SIGALRM, expired)
    signal.alarm(int(HANGS_S))
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def few_dots(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is drawn in this process takes less time."""
    monkeypatch.setattr("firstflight.findings.drawing.style.DPI", 20)
