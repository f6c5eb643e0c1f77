"""Two kernels side by side: what counts as a difference, and what the row shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from base.errors import FAILED, OK
from benchmarks.outside import stock_kernel
from benchmarks.outside.stock_kernel import differ, row
from runs.results.records import FAIL
from tests.golden.stored_fetches import stored

RECORD = next(record for record in stored("zhao2019") if not record.retransmissions)


@pytest.mark.parametrize("change", [
    {"seen_initcwnd": 4}, {"seen_first_flight": 2}, {"verdict": FAIL}])
def test_another_window_first_flight_or_verdict_is_a_difference(change: dict[str, Any]) -> None:
    assert not differ(RECORD, replace(RECORD, total_ms=1.0))
    assert differ(RECORD, replace(RECORD, **change))
    assert differ(replace(RECORD, **change), RECORD)


def test_the_row_has_both_times_and_how_much_more_the_stock_kernel_takes() -> None:
    assert RECORD.total_ms is not None
    more = replace(RECORD, total_ms=RECORD.total_ms + 1.25)
    shown = row(RECORD, more)
    assert f"{RECORD.total_ms:.2f}" in shown and "+1.25" in shown and "+0.00" in shown


def test_the_model_is_no_measure_of_what_was_sent_again() -> None:
    assert row(RECORD, replace(RECORD, retransmissions=1)).endswith("–")


@pytest.mark.parametrize(("wrong", "status", "count"), [(0, OK, "4 of 4"), (1, FAILED, "3 of 4")])
def test_the_command_fails_where_the_kernels_differ(
        monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], wrong: int,
        status: int, count: str) -> None:
    monkeypatch.setattr(stock_kernel, "built_kernel", lambda: "linux")
    monkeypatch.setattr(stock_kernel, "compare", lambda requested, kernel: (wrong, 4))
    assert stock_kernel.main(["--kernel", "vmlinuz", "--initrd", "initrd"]) == status
    assert capsys.readouterr().out.startswith(f"{count} cells: the same window and first flight")
    with pytest.raises(SystemExit):
        stock_kernel.main([])
    assert "start benchmarks/outside/stock_kernel.sh" in capsys.readouterr().err
