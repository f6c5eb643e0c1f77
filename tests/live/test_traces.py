"""Traces in the guest: its kernel's rules of unused windows, and the driver on them."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from firstflight.runs import scenario_file
from firstflight.runs.results.records import PASS, SKIPPED
from firstflight.study.trace.record import TraceRecord
from firstflight.study.trace.scenario import expand, read_scenario
from firstflight.study.trace.trial import TraceTrial
from firstflight.study.trace.verify import judge_trace
from firstflight.testbed.guests import UmlEngine
from tests.golden import stored_trace
from tests.live.conftest import Driver


def measured(kernel: Path, folder: Path, trials: list[TraceTrial]) -> dict[str, TraceRecord]:
    by_id = {trial.id: trial for trial in trials}
    seen = UmlEngine(kernel, 1).run([trial.job() for trial in trials], {}, folder)
    return {each.trial_id: judge_trace(by_id[each.trial_id], each, exact=True) for each in seen}


@pytest.fixture(scope="module")
def packetdrill(kernel: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, TraceRecord]:
    return measured(kernel, tmp_path_factory.mktemp("guest") / "run",
                    list(stored_trace.packetdrill().trials))


@pytest.mark.parametrize(("name", "largest", "restarts"), [
    ("idle-linux-iw10", 36, "10"),  # window 36, two seconds idle, then 10
    ("idle-restart-iw10", 36, "10"),
    ("idle-off-iw10", 44, "36"),
    ("idle-unvalidated-iw10", 57, "36"),
    ("idle-cwv-iw10", 19, "1"),
    ("nine-linux-iw10", 18, ""),  # nine of ten packets
    ("nine-off-iw10", 18, ""),
    ("nine-unvalidated-iw10", 20, ""),
])
def test_the_windows_of_the_tcps(packetdrill: dict[str, TraceRecord], name: str, largest: int,
                                 restarts: str) -> None:
    record = packetdrill[name]
    assert (record.verdict, record.verdict_reason) == (PASS, "")
    assert (record.largest_window, record.restart_windows) == (largest, restarts)
    assert record.rule_checked and record.rule_wrong == 0


def test_a_congestion_control_that_the_kernel_lacks_is_skipped(
        packetdrill: dict[str, TraceRecord]) -> None:
    record = packetdrill["idle-absent-iw10"]
    assert record.ok and record.verdict == SKIPPED
    assert record.verdict_reason.startswith("this kernel has no congestion control nosuch")


def test_the_halvings_of_an_idle_time_go_by_the_routes_rto(kernel: Path, tmp_path: Path) -> None:
    trial = stored_trace.trial("idle-linux-iw10")
    # 36 segments; RTO 100 ms + the least; idle for 2.1 s.
    trials = [replace(trial, trace=f"least{rto_min_ms}", rto_min_ms=rto_min_ms)
              for rto_min_ms in (700, 1000, 2500)]
    records = measured(kernel, tmp_path / "run", trials)
    windows = {name: record.restart_windows for name, record in records.items()}
    assert windows == {"least700-linux-iw10": "10", "least1000-linux-iw10": "18",
                       "least2500-linux-iw10": ""}
    assert all(record.verdict == PASS for record in records.values())


def test_losses_and_recovery_leave_the_rules_standing(kernel: Path, tmp_path: Path) -> None:
    trials = [trial for trial in expand(read_scenario(scenario_file.find("handley1999_modem5")))
              if trial.tcp in ("unmodified_1999", "cwv_1999")]
    records = measured(kernel, tmp_path / "run", trials)
    assert all(record.verdict == PASS for record in records.values()), records
    unmodified, validated = (records[f"ssh-{name}_1999-iw1"] for name in ("unmodified", "cwv"))
    assert (unmodified.timeouts or 0) > (validated.timeouts or 0) == 0
    assert (unmodified.lost_segments or 0) > (validated.lost_segments or 0) > 0


def test_the_driver_measures_a_trace_twice_alike(drive: Driver, results: Path) -> None:
    tables = []
    for _ in range(2):
        done = drive("--scenario", "handley1999_memory", "--no-figures", "--fresh",
                     "--full")
        assert done.returncode == 0, done.stderr
        assert "traces: 4 pass" in done.stdout and "ssthresh was increased" in done.stdout
        with (results / "handley1999_memory" / "latest" / "trials.csv").open(newline="") as file:
            tables.append([{key: value for key, value in row.items() if key != "measured_at"}
                           for row in csv.DictReader(file)])
    assert tables[0] == tables[1] and len(tables[0]) == 4
