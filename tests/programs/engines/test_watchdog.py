"""A worker's silence: waiting for a processor is none of it, sleeping and spinning are."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from firstflight.testbed import job
from firstflight.testbed.job import JobFolder, Watchdog, WorkerProcess
from vtime.console import EngineError

SPIN = (sys.executable, "-S", "-c", "while True: pass")
SLEEP = ("sleep", "60")


@contextlib.contextmanager
def started(*command: str) -> Iterator[int]:
    process = subprocess.Popen(command, start_new_session=True)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def test_waiting_for_a_processor_is_no_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "LOOK_S", 0.02)
    one = ["taskset", "--cpu-list", str(min(os.sched_getaffinity(0)))]
    with contextlib.ExitStack() as others:
        for _ in range(3):
            others.enter_context(started(*one, *SPIN))
        slow = others.enter_context(started("nice", "-n", "19", *one, *SPIN))
        asleep = others.enter_context(started(*SLEEP))
        seen, took_s = Watchdog(slow), 0.0
        while took_s < 0.2 or seen.seconds() > 0.6 * took_s:
            assert took_s < 30  # a busy machine takes longer to show it
            time.sleep(0.02)
            took_s = time.monotonic() - seen.since
        seen = Watchdog(asleep)  # it has begun to sleep by now
        for _ in range(5):
            time.sleep(0.02)
            seen.seconds()
        took_s = time.monotonic() - seen.since
        assert seen.seconds() > 0.9 * took_s


def scripted(monkeypatch: pytest.MonkeyPatch, looks: list[dict[str, float]]) -> list[float]:
    """What a Watchdog says a LOOK_S after the other, where its processes have waited so long."""
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(job, "time", SimpleNamespace(monotonic=lambda: clock.now))
    monkeypatch.setattr(job, "delays_s", lambda group: dict(looks.pop(0)))
    seen, said = Watchdog(1), []
    while looks:
        clock.now += job.LOOK_S
        said.append(seen.seconds())
    clock.now += job.LOOK_S / 2
    said.append(seen.seconds())
    seen.end()
    return [*said, seen.seconds()]


@pytest.mark.parametrize(("looks", "said"), [
    # What was waited before the first look does not count; afterwards what is new does.
    ([{"1": 90.0}, {"1": 94.0}, {"1": 99.0}], [5, 6, 6, 8.5, 0]),
    # A process that begins counts from its start on, one that ends no more.
    ([{"1": 50.0}, {"2": 3.0}, {}, {"2": 3.0}], [5, 7, 12, 14, 16.5, 0]),
    # Ten that wait at once do not wait longer than the clock.
    ([{}, {str(each): 5.0 for each in range(10)}, {}], [5, 5, 10, 12.5, 0]),
    # A kernel that does not count it: the clock alone.
    ([{}, {}, {}], [5, 10, 15, 17.5, 0])])
def test_what_processes_waited_is_taken_off(monkeypatch: pytest.MonkeyPatch,
                                            looks: list[dict[str, float]],
                                            said: list[float]) -> None:
    assert scripted(monkeypatch, looks) == pytest.approx(said)


@pytest.mark.parametrize("program", [SPIN, SLEEP])
def test_a_worker_that_says_nothing_ends_a_trial(tmp_path: Path, program: tuple[str, ...]
                                                 ) -> None:
    job = JobFolder(tmp_path / "job", [], {})
    worker = WorkerProcess(job, [{"id": "t"}], list(program), job.path, start_deadline_s=0.2,
                           trial_deadline_s=60)
    with pytest.raises(EngineError, match="said nothing for [0-9]+ s while its network was awaited"):
        while time.monotonic() < worker.watchdog.since + 30:
            assert not list(worker.poll())
            time.sleep(0.02)
    worker.stop()
