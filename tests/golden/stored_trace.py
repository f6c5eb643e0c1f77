"""Traces as they were measured in the guest: the kernel's packetdrill tests for slow start after idle.

trace/packetdrill.toml says what was measured; trace/run is the run's folder
as experiment.py left it, run.json cut down.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lab import runs
from lab.records import read_records
from lab.trace.file import load
from lab.trace.records import TraceRecord
from lab.trace.scenario import TraceScenario, TraceTrial
from lab.trace.verify import judge
from lab.trace.window import FIELDS

FOLDER = Path(__file__).resolve().parent / "trace"
RUN = FOLDER / "run"


def scenario() -> TraceScenario:
    return load("packetdrill", FOLDER)


def records() -> list[TraceRecord]:
    return read_records(RUN / runs.TRIALS_CSV, TraceRecord)


def trial(name: str) -> TraceTrial:
    return next(trial for trial in scenario().trials() if trial.id == name)


def window_text(name: str) -> str:
    return (RUN / "files" / f"{name}-window.csv").read_text()


def changed(text: str, row: int, column: str, by: int) -> str:
    """The samples with one number of theirs changed."""
    lines = text.splitlines()
    cells = lines[row].split(",")
    place = FIELDS.index(column)
    cells[place] = str(int(cells[place]) + by)
    lines[row] = ",".join(cells)
    return "\n".join(lines) + "\n"


def judged(asked: TraceTrial, name: str = "", window: str | None = None,
           **observed: Any) -> TraceRecord:
    """The verdict on a stored trial as if `asked` had been, its samples or what was observed replaced."""
    name = name or asked.id
    sizes = [int(path[1:].partition("?")[0]) for path in asked.paths.split()]
    observation: dict[str, Any] = {
        "fetches": [{"ok": True, "error": "", "size": size, "sha256": "same", "connect_ms": 100.0}
                    for size in sizes],
        "responses": [{"body_bytes": size, "sha256": "same", "latency_ms": 1.0,
                       "initial_window": asked.initcwnd} for size in sizes], **observed}
    pcaps = [(RUN / "captures" / f"{name}-{side}.pcap").read_bytes()
             for side in ("client", "server")]
    files = {"window.csv": (window_text(name) if window is None else window).encode()}
    return judge(asked, observation, pcaps[0], pcaps[1], files, exact=True)
