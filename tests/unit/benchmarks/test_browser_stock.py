"""Chromium on a stock kernel: which differences agree, and which loads count."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.outside import browser_stock
from benchmarks.outside.browser_stock import CELLS, Cell, Times, compare, times_of, trials_of
from firstflight.base.errors import CannotError
from firstflight.testbed.messages import ObservedTrial


def with_saving(saved_ms: float, more_ms: float = 0.0) -> dict[Cell, list[Times]]:
    """Loads of all cells: each larger window saves saved_ms, and each load takes more_ms more."""
    steps = {3: 2, 10: 1, 32: 0}
    times: dict[Cell, list[Times]] = {}
    for sweep, _, http, *windows in CELLS:
        for window in windows:
            event_ms = 1000 + steps[window] * saved_ms + more_ms
            times[sweep, http, window] = [Times(event_ms + spread_ms, event_ms)
                                          for spread_ms in (0, 1, 300)]
    return times


@pytest.mark.parametrize(("saved_ms", "stock_saved_ms", "wrong"), [
    (200, 219, 0), (200, 221, 8), (200, 181, 0), (200, 179, 8), (10, 14, 0), (10, 16, 8)])
def test_a_difference_agrees_within_a_tenth_or_5_ms_however_long_computing_takes(
        saved_ms: float, stock_saved_ms: float, wrong: int,
        capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(with_saving(saved_ms), with_saving(stock_saved_ms, more_ms=50)) == wrong
    assert capsys.readouterr().out.count(" no ") == wrong


def test_a_cell_without_a_load_does_not_agree(capsys: pytest.CaptureFixture[str]) -> None:
    stock = with_saving(200)
    stock["mobile_text", "2", 3] = []
    assert compare(with_saving(200), stock) == 1
    assert "text   2      3 → 10 │ not measured" in capsys.readouterr().out


def test_a_load_that_failed_is_named_and_does_not_count(
        capsys: pytest.CaptureFixture[str]) -> None:
    trials = trials_of(1)
    good, bad = trials[:2]
    load: Any = {"load_ms": 1747.5, "requests": [{"end_ms": 869.2}, {"end_ms": 1747.0},
                                            {"end_ms": None}, {"end_ms": 1990.0}]}
    times = times_of(trials, [ObservedTrial(good.id, {"load": load}, b"", b""),
                              ObservedTrial(bad.id, {"error": "it crashed"}, b"", b"")])
    assert times[good.part, good.http, good.initcwnd] == [Times(1747.5, 1747.0)]
    assert times[bad.part, bad.http, bad.initcwnd] == []
    assert f"{bad.id}: it crashed" in capsys.readouterr().err


def test_all_cells_are_loaded_each_time_at_another_phase_and_none_is_filmed() -> None:
    trials = trials_of(2)
    windows = {(sweep, http, window) for sweep, _, http, *pair in CELLS for window in pair}
    assert [sum(trial.repeat == repeat for trial in trials) for repeat in (2, 3)] == [12, 12]
    assert {(trial.part, trial.http, trial.initcwnd) for trial in trials} == windows
    assert len({trial.phase_ms for trial in trials}) == 2
    assert not any("filmed" in trial.job() for trial in trials)


def test_without_the_browser_it_says_what_brings_it(
        monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(browser_stock, "PROGRAM", tmp_path / "none")
    with pytest.raises(CannotError, match="--with-browser"):
        browser_stock.main(["--kernel", "vmlinuz", "--initrd", "initrd"])
