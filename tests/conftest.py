"""Makes the project importable for every test, from whichever folder pytest is called."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))


def pytest_configure(config: pytest.Config) -> None:
    """Ctrl-C is heeded: a shell that starts tests with "&" has it ignored, and so would theirs.

    Where byte code is not kept beside sources it is kept in the user's cache, as the kernel is:
    each session, and each of hundreds of programs that tests start, would compile the project
    anew. What lay in folders of tests goes with the session.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if sys.dont_write_bytecode:
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        kept = sys.pycache_prefix = f"{cache}/first-flight/bytecode"
        os.environ["PYTHONPYCACHEPREFIX"] = kept
        config.add_cleanup(lambda: [shutil.rmtree(folder, ignore_errors=True) for folder in Path(
            f"{kept}{tempfile.gettempdir()}").glob("pytest-of-*")])
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        sys.dont_write_bytecode = False


def pytest_collection_finish() -> None:
    """What has been imported stays: garbage is looked for among what tests make, and less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def heeding() -> None:
    """Whoever runs the tests may have them ignore signals; a program that is started heeds them."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture
def impatient() -> Iterator[None]:
    """Whoever opens a FIFO and waits for its writer, who never comes, fails and does not hang."""
    def expired(*_: object) -> None:
        pytest.fail("it waits for a writer")
    before = signal.signal(signal.SIGALRM, expired)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
