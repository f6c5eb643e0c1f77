"""The worker's loop: what it runs before anything counts, and what it writes of it."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firstflight.testbed import engine
from firstflight.testbed.job import JobFolder
from firstflight.testbed.messages import Job, Observation
from firstflight.testbed.network.kernel import KernelLacks
from firstflight.testbed.worker import worker
from vtime import shared_folder, system
from vtime.console import EngineError


class Noting:
    """A bench that notes what it is to measure, and fails on the first of it."""

    sysctls: dict[str, dict[str, str]] = {}

    def __init__(self, error: Callable[[str], Exception] = worker.WorkerError) -> None:
        self.measured: list[str] = []
        self.error = error

    def prepare(self, trial: Job) -> None:
        pass

    def measure(self, trial: Job, observation: Any) -> None:
        self.measured.append(trial["id"])
        observation["number"] = len(self.measured)
        if len(self.measured) == 1:
            raise self.error("cold")

    def add_recorded(self, observation: Observation) -> None:
        pass

    def close(self) -> None:
        pass


def fetch(name: str, client: str, deadline_s: float) -> dict[str, Any]:
    return {"id": name, "client": client, "deadline_s": deadline_s, "kind": "fetch"}


TRIALS = [fetch("slow", "curl", 90), fetch("quick", "curl", 61), fetch("other", "wget", 70)]


@pytest.mark.parametrize(("trials", "warm_up", "before"), [
    (TRIALS, True, ["quick", "other"]), (TRIALS, False, []),
    ([{"id": "load", "alone": True, "deadline_s": 9, "kind": "load"}], True, [])])
def test_what_is_fetched_before_the_first_trial_is_not_recorded(
        trials: list[dict[str, Any]], warm_up: bool, before: list[str], tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Noting()
    monkeypatch.setattr(worker, "bench_of", lambda kind: lambda *_: bench)
    folder = JobFolder(tmp_path / "job", trials, {}, warm_up=warm_up)
    assert worker.main(folder.path, tmp_path) == 0
    names = [trial["id"] for trial in trials]
    assert bench.measured == before + names
    told = [line for line in map(json.loads, folder.new_lines()) if "trial" in line]
    assert [(line["trial"], line["number"]) for line in told] == [
        (name, number) for number, name in enumerate(names, start=len(before) + 1)]
    assert ("error" in told[0]) == (not before)  # what was cold is forgotten


def test_a_program_that_ended_fails_no_other_trial(tmp_path: Path,
                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker stops at the trial whose program it was, and says that another has to go on."""
    bench = Noting(worker.ProgramEnded)
    monkeypatch.setattr(worker, "bench_of", lambda kind: lambda *_: bench)
    folder = JobFolder(tmp_path / "job", TRIALS, {})
    assert worker.main(folder.path, tmp_path) == 1
    *_, trial, end = map(json.loads, folder.new_lines())
    assert bench.measured == [TRIALS[0]["id"]] == [trial["trial"]]
    assert trial["error"] == "cold" and end == {"stage": "broken", "reason": "cold"}


def test_what_the_kernel_lacks_fails_no_trial(tmp_path: Path,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    """It would fail all of them: the worker says that this kernel cannot."""
    bench = Noting(KernelLacks)
    monkeypatch.setattr(worker, "bench_of", lambda kind: lambda *_: bench)
    folder = JobFolder(tmp_path / "job", TRIALS, {})
    assert worker.main(folder.path, tmp_path) == 4
    *_, end = map(json.loads, folder.new_lines())
    assert end == {"stage": "cannot", "reason": "cold"} and len(bench.measured) == 1


@pytest.mark.parametrize(("code", "is_full"), [
    (errno.ENOSPC, True), (errno.EDQUOT, True), (errno.EFBIG, True), (errno.EROFS, True),
    (errno.EIO, False)])
def test_a_folder_that_takes_no_more_is_no_failure_of_the_workers(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, is_full: bool) -> None:
    bench = Noting(lambda words: OSError(code, os.strerror(code)))
    monkeypatch.setattr(worker, "bench_of", lambda kind: lambda *_: bench)
    folder = JobFolder(tmp_path / "job", TRIALS, {})
    assert worker.main(folder.path, tmp_path) == 1
    stages = [line["stage"] for line in map(json.loads, folder.new_lines())]
    assert stages == (["ready"] if is_full else ["ready", "failed"])
    assert shared_folder.write_error(folder.path) == (os.strerror(code) if is_full else "")


def test_trials_are_read_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A million of them would not fit into a guest: the last one is not read before the first ran."""
    bench = Noting()
    monkeypatch.setattr(worker, "bench_of", lambda kind: lambda *_: bench)
    folder = JobFolder(tmp_path / "job", TRIALS, {})
    with (folder.path / "trials.jsonl").open("a") as file:
        file.write("torn")
    with pytest.raises(ValueError):
        worker.main(folder.path, tmp_path)
    assert bench.measured == [trial["id"] for trial in TRIALS]
    assert len(folder.new_lines()) == 1 + len(TRIALS)


def test_trials_begin_on_the_grid_of_the_guests_clock(tmp_path: Path,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    """So each meets the same rounding of its timers, whatever ran before it.

    To the nanosecond: the last sleep before it is always as long.
    """
    slept: list[int] = []
    monkeypatch.setattr(worker, "bench_of", lambda kind: lambda *_: Noting())
    monkeypatch.setattr(worker.time, "monotonic_ns", lambda: 10**16 + 1)
    monkeypatch.setattr(worker, "sleep_until", slept.append)
    for align_s in (4.096, 0.0):
        folder = JobFolder(tmp_path / f"job{align_s}", TRIALS, {}, align_s)
        assert worker.main(folder.path, tmp_path) == 0
    next_ns = 2_441_407 * 4_096_000_000
    assert 0 < next_ns - 10**16 < 4_096_000_000
    assert slept == [next_ns - worker.NEAR_NS, next_ns] * len(TRIALS)


def test_a_jitter_does_not_take_a_packet_back_before_the_clock_began(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[int] = []
    monkeypatch.setattr(worker, "bench_of", lambda kind: lambda *_: Noting())
    monkeypatch.setattr(worker.time, "monotonic_ns", lambda: 10**9)
    monkeypatch.setattr(worker, "sleep_until", slept.append)
    trials = [TRIALS[0] | {"network": {"down": {"jitter_ms": jitter_ms}}} for jitter_ms in (0, 2147)]
    assert worker.main(JobFolder(tmp_path / "job", trials, {}, 4.096).path, tmp_path) == 0
    assert slept[1::2] == [4_096_000_000, 3 * 4_096_000_000]


def test_a_sleep_ends_at_the_nanosecond_and_not_before() -> None:
    """Also far from 0, where a number of seconds has no nanoseconds left."""
    for later_ns in (-1, 0, 1_000_001):
        until_ns = time.monotonic_ns() + later_ns
        worker.sleep_until(until_ns)
        assert time.monotonic_ns() >= until_ns
    with pytest.raises(OSError, match="Invalid argument"):
        worker.sleep_until(-10**9)


def test_in_real_time_the_first_fetch_is_asked_not_to_count(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def started(job: JobFolder, *_: Any) -> None:
        raise EngineError((job.path / "job.json").read_text())
    monkeypatch.setattr(engine, "WorkerProcess", started)
    monkeypatch.setattr(engine.os, "geteuid", lambda: 0)
    with pytest.raises(EngineError) as requested:
        list(engine.HostEngine().run(TRIALS, {}, tmp_path))
    assert json.loads(str(requested.value))["warm_up"] is True


def test_another_systems_programs_do_not_run_on_this_kernel(tmp_path: Path) -> None:
    """Such a trial is skipped, and what would bring it is said; without others nothing starts."""
    requested = [{**TRIALS[0], "system": system.NEWER}]
    (seen,) = engine.HostEngine().run(requested, {}, tmp_path)
    assert seen.trial_id == "slow" and seen.content == {"skipped": system.ONLY_IN_GUESTS}
    assert not (tmp_path / "host").exists()
