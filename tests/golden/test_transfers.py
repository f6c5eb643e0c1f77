"""The model against random transfers that a guest measured: to 0.03 ms, retransmissions too."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from lab.tcp.predict import Transfer, predict

NOT_ASKED = ("total_ms", "latency_ms", "retransmissions")


def measured() -> list[dict[str, str]]:
    path = Path(__file__).resolve().parent / "transfers.csv"
    with path.open(newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


@pytest.mark.parametrize("row", measured(), ids=lambda row: "-".join(
    row[name] for name in ("rtt_ms", "bandwidth_kbps", "initcwnd", "response_bytes")))
def test_the_model_takes_what_the_guest_took(row: dict[str, str]) -> None:
    asked = {name: value if name == "congestion_control" else
             int(value) if value.isdecimal() else float(value)
             for name, value in row.items() if name not in NOT_ASKED}
    prediction = predict(Transfer(**asked))  # type: ignore[arg-type]
    assert prediction.total_ms == pytest.approx(float(row["total_ms"]), abs=0.03)
    assert prediction.latency_ms == pytest.approx(float(row["latency_ms"]), abs=0.03)
    assert prediction.retransmissions == int(row["retransmissions"])
