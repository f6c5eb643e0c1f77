"""Progress: a bar on a terminal, a few lines elsewhere."""

from __future__ import annotations

import os
import pty
import queue
import select

import pytest

from firstflight.base import command_line
from firstflight.base.command_line import Progress


def test_off_a_terminal_a_line_at_the_start_and_one_now_and_then(
        monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    said: queue.Queue[str] = queue.Queue()
    monkeypatch.setattr(command_line, "say", said.put)
    monkeypatch.setattr(command_line, "PLAIN_INTERVAL_S", 1000.0)
    with Progress(5, 2, "zhao2019") as shown:
        assert said.get_nowait() == "zhao2019: 3 of 5 trials to measure"
        shown.step()
    assert shown.done == 3 and said.empty() and not shown.reporter.is_alive()
    monkeypatch.setattr(command_line, "PLAIN_INTERVAL_S", 0.001)
    with Progress(5, 2, "zhao2019"):  # also where no trial ends
        assert said.get(timeout=120).endswith("to measure")
        assert said.get(timeout=120) == said.get(timeout=120) == "zhao2019: 2 of 5 trials"
    assert capsys.readouterr().err == ""


def test_a_line_says_how_long_the_rest_takes() -> None:
    shown = Progress(10, 2, "zhao2019")
    assert shown.line(30.0) == "zhao2019: 2 of 10 trials"  # nobody knows yet
    shown.step("3 machines")
    assert shown.line(30.0) == "zhao2019: 3 of 10 trials, 3 machines, about 4 min left"
    shown.step()  # two in half a minute; what was there before took none of it
    assert shown.line(30.0) == "zhao2019: 4 of 10 trials, about 90.0 s left"
    shown.done = 10
    assert shown.line(30.0) == "zhao2019: 10 of 10 trials"


def test_nobody_knows_how_long_the_rest_takes_from_a_few_trials() -> None:
    """The first ones of a population waited half a minute for a guest that took as long as all."""
    shown = Progress(31_780, 0, "dukkipati2010")
    shown.done = 162
    assert shown.line(30.0) == "dukkipati2010: 162 of 31780 trials"
    shown.done = 3178
    assert shown.line(30.0).endswith(", about 4 min left")


def test_nothing_to_measure_and_quiet_say_nothing(monkeypatch: pytest.MonkeyPatch,
                                                  capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(command_line, "PLAIN_INTERVAL_S", 0.001)
    for shown in (Progress(0, 0, "nothing"), Progress(5, 0, "zhao2019", quiet=True)):
        with shown as same:
            assert same is shown
            shown.step()
            assert not shown.reporter.is_alive()
    assert capsys.readouterr().err == ""


def read(terminal: int) -> bytes:
    """What has been written to it; it fails where nothing comes."""
    assert select.select([terminal], [], [], 10)[0], "the terminal shows nothing"
    return os.read(terminal, 4096)


def test_on_a_terminal_a_bar_that_is_gone_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, terminal = pty.openpty()
    with os.fdopen(terminal, "w", buffering=1) as stream, os.fdopen(ours, "rb"):
        monkeypatch.setattr("sys.stderr", stream)
        with Progress(5, 2, "zhao2019") as shown:
            begun = read(ours)
            assert b"zhao2019:  40%" in begun and b"2/5" in begun
            assert shown.bar is not None
            shown.bar.mininterval = 0
            shown.step()
            assert b"3/5" in read(ours) and b"trial" in begun
        ended = read(ours)
        assert b"to measure" not in begun and ended
        assert ended.replace(b"\r", b"").strip() == b""
