"""./run.sh --repeat N: which runs there are, what is kept of them, and how they are stopped."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import vtime
from firstflight.base.errors import FAILED, INTERRUPTED, FirstFlightError, UsageError
from firstflight.commands.virtual import command, records, repeated
from firstflight.commands.virtual.repeated import Conversation, Run, connection_rows
from vtime import LinkTimes, Result

Answer = Callable[[int, Any], int]  # of a seed, and what watches: the status


@pytest.fixture
def runs_as(monkeypatch: pytest.MonkeyPatch) -> Callable[[Answer], list[dict[str, Any]]]:
    """No guest is booted: a run prints its seed and ends with what the function returns."""
    def use(answer: Answer) -> list[dict[str, Any]]:
        called: list[dict[str, Any]] = []

        def run(words: list[str], folder: Path, into: Path, **given: Any) -> Result:
            called.append(given)
            status = answer(given["seed"], given["watcher"])
            output = into / "output.txt"
            output.write_text(f"      0.001000 out rate {given['seed'] * 1.5} Mbit/s\n")
            return Result(status, output, into / "files", 0, None, 1.0, 1.0, (), 0, True, (), 0)
        monkeypatch.setattr(vtime, "run", run)
        monkeypatch.setattr(repeated, "interrupt_on", lambda *numbers, by: None)
        monkeypatch.setattr(records, "made_from", lambda kernel: {})
        return called
    return use


def status_of(folder: Path, *flags: str) -> int:
    arguments = command.parsed([*flags, "--results", str(folder)], ["true"])
    return repeated.run(arguments, ["true"], [], Path("kernel"), {})


def stored_in(folder: Path) -> dict[str, Any]:
    (path,) = folder.glob("commands/*/spread.json")
    stored: dict[str, Any] = json.loads(path.read_text())
    return stored


def test_each_run_has_a_seed_of_its_own_and_a_machines_noise(
        tmp_path: Path, runs_as: Callable[[Answer], list[dict[str, Any]]],
        capsys: pytest.CaptureFixture[str]) -> None:
    called = runs_as(lambda seed, watcher: 0)
    assert status_of(tmp_path, "--repeat", "3", "--seed", "5", "--packet-cost", "0") == 0
    assert [given["seed"] for given in called] == [5, 6, 7]
    assert all(given["link_times"] == LinkTimes(0, 1000, 1000) for given in called)
    told = capsys.readouterr()
    assert "rate _ Mbit/s\n    median 9, range 7.5–10.5; each: 7.5 9 10.5\n" in told.out
    assert "run 3 of 3: seed 7, status 0" in told.err
    assert stored_in(tmp_path)["seeds"] == [5, 6, 7]


def test_the_status_is_that_of_the_first_run_that_failed(
        tmp_path: Path, runs_as: Callable[[Answer], list[dict[str, Any]]],
        capsys: pytest.CaptureFixture[str]) -> None:
    runs_as(lambda seed, watcher: {2: 9, 3: 4}.get(seed, 0))
    assert status_of(tmp_path, "--repeat", "4", "--jobs", "2") == 9
    assert ("run 2 (seed 2) ended with status 9; 2 of 4 did not end with 0"
            in capsys.readouterr().err)
    assert stored_in(tmp_path)["status"] == [0, 9, 4, 0]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, INTERRUPTED),
                                                (signal.SIGTERM, 143)])
def test_a_signal_keeps_the_runs_that_have_ended(
        number: int, status: int, tmp_path: Path,
        runs_as: Callable[[Answer], list[dict[str, Any]]],
        capsys: pytest.CaptureFixture[str]) -> None:
    def answer(seed: int, watcher: Any) -> int:
        if seed == 3:
            watcher.interrupt(number, None)
        return 0
    called = runs_as(answer)
    assert status_of(tmp_path, "--repeat", "9") == status
    assert len(called) == 3 and stored_in(tmp_path)["seeds"] == [1, 2]
    assert "stopped: 2 of 9 runs had ended" in capsys.readouterr().err


def test_a_signal_stops_the_guests_that_run(
        tmp_path: Path, runs_as: Callable[[Answer], list[dict[str, Any]]]) -> None:
    class Guest:
        stopped: tuple[int, str] | None = None

        def stop_soon(self, status: int, why: str) -> None:
            self.stopped = status, why
    first, late = Guest(), Guest()

    def answer(seed: int, watcher: Any) -> int:
        watcher.begin(first)
        watcher.interrupt(signal.SIGINT, None)
        watcher.begin(late)
        return INTERRUPTED
    runs_as(answer)
    assert status_of(tmp_path, "--repeat", "2") == INTERRUPTED
    assert first.stopped == late.stopped == (INTERRUPTED, "stopped")


def test_a_run_that_cannot_be_made_keeps_the_others(
        tmp_path: Path, runs_as: Callable[[Answer], list[dict[str, Any]]]) -> None:
    def answer(seed: int, watcher: Any) -> int:
        if seed == 3:
            raise FirstFlightError("the disk is full")
        return 0
    runs_as(answer)
    with pytest.raises(FirstFlightError, match="the disk is full"):
        status_of(tmp_path, "--repeat", "5")
    assert stored_in(tmp_path)["seeds"] == [1, 2]


def test_nothing_that_ended_is_a_failure(
        tmp_path: Path, runs_as: Callable[[Answer], list[dict[str, Any]]],
        capsys: pytest.CaptureFixture[str]) -> None:
    runs_as(lambda seed, watcher: watcher.stop(FAILED) or 0)
    assert status_of(tmp_path, "--repeat", "2") == FAILED
    assert "no run has ended" in capsys.readouterr().err


@pytest.mark.parametrize(("flags", "said"), [
    (["--jobs", "2"], "--repeat 10 --jobs 2"), (["--repeat", "2", "--write-back"], "same files")])
def test_what_does_not_go_together(flags: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        command.check_request(command.parsed(flags, ["true"]))


def run_with(number: int, *conversations: Conversation) -> Run:
    result = Result(0, Path(), Path(), 0, None, 1.0, 1.0, (), 0, True, (), 0)
    return Run(number, number, result, (), conversations)


def test_connections_of_one_name_are_compared_and_small_ones_are_not() -> None:
    rows = connection_rows([
        run_with(1, Conversation("a → b:80 (1)", 0.1, 0, True),
                 Conversation("a → b:80 (2)", 9.5, 3, False)),
        run_with(2, Conversation("a → b:80 (1)", 0.2, 0, True),
                 Conversation("a → b:80 (2)", 8.5, 7, False)),
        run_with(3, Conversation("a → b:80 (1)", 0.2, 0, True))])
    assert [(row.name, row.values) for row in rows] == [
        ("a → b:80 (2): goodput", (9.5, 8.5, None)),
        ("a → b:80 (2): retransmitted segments", (3, 7, None))]
