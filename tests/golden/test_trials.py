"""Stored trials, judged again, pass; what their packets show is in rendered/judged.columns."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from firstflight.model.predict import predict
from firstflight.runs.results.records import PASS
from tests.golden import stored
from tests.transfers import transfer

@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("name", stored.NAMES)
def test_a_stored_trial_passes(name: str, exact: bool) -> None:
    """As it was measured, and as if it had been in real time."""
    record = stored.load(name).judge(exact)
    assert (record.ok, record.verdict, record.verdict_reason) == (True, PASS, "")


def measured() -> list[dict[str, float]]:
    path = Path(__file__).resolve().parent / "measured.csv"
    with path.open(newline="") as file:
        return [{name: float(value) for name, value in row.items()} for row
                in csv.DictReader(line for line in file if not line.startswith("#"))]


def test_the_model_against_what_was_measured() -> None:
    """Up to 200 kB, windows of 1 to 42: slow start, HyStart, both windows, both buffers."""
    rows = measured()
    assert rows
    for row in rows:
        seen = {name: row.pop(name) for name in ("total_ms", "latency_ms")}
        whole = {name: int(row.pop(name)) for name in list(row)
                 if name.endswith("bytes") or name in ("initcwnd", "initrwnd", "clock_phase_ns")}
        prediction = predict(transfer(**row, **whole))  # type: ignore[arg-type]
        late_ms = 2.2 if row["gap_ms"] else 0.04  # of the server's back-end timer; of curl
        for name, value in seen.items():
            assert -0.04 < value - getattr(prediction, name) < late_ms, (name, row, whole)
