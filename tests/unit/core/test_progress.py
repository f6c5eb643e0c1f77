"""Progress: a bar on a terminal, a few lines elsewhere."""

from __future__ import annotations

import os
import pty

import pytest

from lab.core import progress
from lab.core.progress import Progress


def test_off_a_terminal_a_line_at_the_start_and_one_now_and_then(
        monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(progress, "PLAIN_INTERVAL_S", 1000.0)
    with Progress(5, 2, "zhao2019") as shown:
        assert capsys.readouterr().err == "zhao2019: 3 of 5 trials to measure\n"
        shown.step()
        assert capsys.readouterr().err == ""
        shown.last -= 1000.5
        shown.step()
        assert capsys.readouterr().err == "zhao2019: 4 of 5 trials\n"
        shown.step()  # the next is as long after that
        assert capsys.readouterr().err == ""
    assert shown.done == 5
    with Progress(0, 0, "nothing"):
        assert capsys.readouterr().err == ""


def test_on_a_terminal_a_bar_that_is_gone_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, terminal = pty.openpty()
    with os.fdopen(terminal, "w", buffering=1) as stream, os.fdopen(ours, "rb", buffering=0) as seen:
        monkeypatch.setattr("sys.stderr", stream)
        with Progress(5, 2, "zhao2019") as shown:
            begun = seen.read(4096)
            assert b"zhao2019:  40%" in begun and b"2/5" in begun
            assert shown.bar is not None
            shown.bar.mininterval = 0
            shown.step()
            assert b"3/5" in seen.read(4096) and b"trial" in begun
        ended = seen.read(4096)
        assert b"to measure" not in begun and ended.rstrip(b" ").endswith((b"\r", b"\r\n")) or ended
        assert ended.replace(b"\r", b"").strip() == b""
