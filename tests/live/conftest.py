"""Fixtures of live tests: the guest kernel, engines that share guests, and runs of the driver."""

from __future__ import annotations

import csv
import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

import experiment
from firstflight.base.main import run_main
from firstflight.runs import runs
from firstflight.testbed import engine
from firstflight.testbed.guests import UmlEngine
from firstflight.testbed.messages import Job, ObservedTrial
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.trial import Trial
from firstflight.workloads.fetch.verify.verify import judge_fetch
from tests.conftest import PROJECT
from vtime.uml import find_kernel

Driver = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def kernel() -> Path:
    """The guest kernel. A live test fails without it, since ./test.sh builds it first."""
    found = find_kernel()
    assert found is not None, "no guest kernel: run ./install.sh"
    return found


class Sharing(UmlEngine):
    """An engine that takes guests which other tests have started, and leaves its guests to others.

    A guest takes a second to start. It is taken for trials that need the same of it
    (guests.GuestFor). test_fetches.py tests that a kept guest measures as a new one.
    """

    kept: UmlEngine  # the engine that has the waiting guests, and for what each may be used
    folder: Path  # of guests, since the folder of a run is removed

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.keeps_guests = True
        for name in ("idle", "bound", "named", "purposes"):
            setattr(self, name, getattr(self.kept, name))

    def keeping_guests(self) -> AbstractContextManager[None]:
        """Guests are always kept, so there is nothing to do."""
        return nullcontext()

    def run(self, trials: list[Job], sysctls: dict[str, str],
            folder: Path) -> Iterator[ObservedTrial]:
        return super().run(trials, sysctls, Path(mkdtemp(dir=self.folder)))


@pytest.fixture(scope="session")
def sharing(kernel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[type[Sharing]]:
    Sharing.kept, Sharing.folder = UmlEngine(kernel, 1), tmp_path_factory.mktemp("guests")
    with Sharing.kept.keeping_guests():
        yield Sharing


@pytest.fixture(scope="session")
def shared(sharing: type[Sharing], kernel: Path) -> UmlEngine:
    """An engine for tests that change nothing but trials."""
    return sharing(kernel, 1)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "results"


@pytest.fixture
def drive(results: Path, sharing: type[Sharing], monkeypatch: pytest.MonkeyPatch) -> Driver:
    """The driver with flags, its results and figures in a folder of the test's own.

    It runs in this process, which has imported all of it by then, and with a guest that tests
    share; `command` is for tests that need run.sh itself, or several guests.
    """
    def run(*flags: str) -> subprocess.CompletedProcess[str]:
        words = command(results, "--jobs", "1", *flags)
        heeded = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        handlers = [signal.getsignal(number) for number in heeded]
        with (redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err,
              monkeypatch.context() as patch, pytest.raises(SystemExit) as ended):
            patch.setattr(sys, "argv", words)
            patch.setattr(engine, "UmlEngine", sharing)
            run_main("run.sh", experiment.main)
        for number, handler in zip(heeded, handlers):
            signal.signal(number, handler)  # which it leaves ignored
        return subprocess.CompletedProcess(words, int(ended.value.code or 0), out.getvalue(),
                                           err.getvalue())
    return run


def command(results: Path, *flags: str) -> list[str]:
    return [str(PROJECT / "run.sh"), "--results", str(results),
            "--figures", str(results.parent / "figures"), *flags]


def watched(results: Path, *flags: str) -> list[str]:
    """The driver's command line for a run that a test strikes while it measures.

    The run gets a processor after the test: on a busy machine it may otherwise be over before the
    test has seen that it is under way.
    """
    return ["nice", "-n", "19", *command(results, *flags)]


def rows(results: Path, scenario: str = "zhao2019") -> list[dict[str, str]]:
    """The rows in trials.csv of the newest run, complete or not, as text."""
    with (runs.newest_first(results / scenario)[0] / runs.TRIALS_CSV).open(newline="") as file:
        return [*csv.DictReader(file)]


def processes_with(word: str) -> list[int]:
    """The live processes whose command line or working folder contains a word."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        try:
            if (word.encode() in (entry / "cmdline").read_bytes()
                    or word in os.readlink(entry / "cwd")):
                found.append(int(entry.name))
        except OSError:
            continue  # it has ended meanwhile
    return found


def measured(by: UmlEngine, folder: Path, trials: Sequence[Trial],
             sysctls: Mapping[str, str] = {}) -> dict[Trial, Record]:
    """The record of each trial, without the time of its measurement.

    One guest measures them in order.
    """
    by_id = {trial.id: trial for trial in trials}
    seen = by.run([trial.job() for trial in trials], dict(sysctls), folder)
    return {by_id[each.trial_id]: replace(judge_fetch(
        by_id[each.trial_id], each.content, each.client_pcap, each.server_pcap, exact=True,
        sysctls=sysctls), measured_at="") for each in seen}


def unwrapped(done: subprocess.CompletedProcess[str]) -> str:
    """The output of a command on one line, where no end of a line breaks a sentence."""
    return " ".join(done.stdout.split())
