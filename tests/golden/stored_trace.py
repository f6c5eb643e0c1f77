"""Stored traces as they were measured in the guest.

trace/run is a run of trace/packetdrill.toml, which repeats the kernel's own tests of slow start
after idle; its run.json is shorter. trace/lossy is a run of lossy.toml, with a queue that is too
short and an outage. trace/warm has the records of a run of handley1999_warm, without its files.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from firstflight.findings.findings import Report
from firstflight.runs import runs, scenario_file
from firstflight.runs.kinds import NOTHING, RunData, Study
from firstflight.study.traces import KIND
from firstflight.workloads.trace.record import TraceRecord
from firstflight.workloads.trace.trial import TraceTrial
from firstflight.workloads.trace.verify import judge_trace
from firstflight.workloads.trace.window import FIELDS
from tests.golden.rows import read_rows, stored_run

FOLDER = Path(__file__).resolve().parent / "trace"
RUN, LOSSY = FOLDER / "run", FOLDER / "lossy"


@dataclass(frozen=True)
class Observed:
    """What an engine brings back of a trial (firstflight.testbed.messages.ObservedTrial)."""

    trial_id: str
    content: dict[str, Any]
    client_pcap: bytes
    server_pcap: bytes
    files: dict[str, bytes]


@cache
def packetdrill() -> Study:
    return KIND.study(scenario_file.read(FOLDER / "packetdrill.toml"), NOTHING, 1)


@cache
def run() -> RunData:
    return stored_run(RUN, TraceRecord)


@cache
def warm_study() -> Study:
    return KIND.study(scenario_file.find("handley1999_warm"), NOTHING, 1)


@cache
def warm_run() -> RunData:
    """The stored run of handley1999_warm, whose figures need its records only."""
    return RunData(FOLDER / "warm", {
        "state": runs.COMPLETE, "virtual_time": True, "engine": "uml", "kernel": "7.2.11",
        "emulated_s": 6652.829, "wall_s": 8.953},
        read_rows(FOLDER / "warm" / "trials.csv", TraceRecord))


def warm() -> Report:
    return warm_study().report(warm_run())


@cache
def lossy() -> Study:
    return KIND.study(scenario_file.read(FOLDER / "lossy.toml"), NOTHING, 1)


@cache
def lossy_run() -> RunData:
    return stored_run(LOSSY, TraceRecord)


def trial(name: str) -> TraceTrial:
    return next(trial for trial in packetdrill().trials if trial.id == name)


def window_text(name: str, folder: Path = RUN) -> str:
    return (folder / "files" / f"{name}-window.csv").read_text()


def changed(text: str, row: int | None, column: str, by: int) -> str:
    """The text of window.csv with a number changed.

    row: the line of the sample, from 1, or from the end if below 0; None for all samples. by: what
    is added to the number.
    """
    lines = text.splitlines()
    place = FIELDS.index(column)
    for number in range(1, len(lines)) if row is None else (row,):
        cells = lines[number].split(",")
        cells[place] = str(int(cells[place]) + by)
        lines[number] = ",".join(cells)
    return "\n".join(lines) + "\n"


def seen(requested: TraceTrial, name: str = "", window: str | None = None, folder: Path = RUN,
         **observed: Any) -> Observed:
    """What was observed of a stored trial, as if `requested` had been requested of it.

    name: the stored trial, "" for the requested one. window: the text of another window.csv, None
    for the stored one. observed: other values of the observation.
    """
    name = name or requested.id
    sizes = requested.response_sizes
    content = {
        "fetches": [{"ok": True, "error": "", "size": size, "sha256": "same", "connect_ms": 100.0}
                    for size in sizes],
        "responses": [{"body_bytes": size, "sha256": "same", "latency_ms": 1.0,
                       "initial_window": requested.initcwnd} for size in sizes], **observed}
    client, server = ((folder / "captures" / f"{name}-{side}.pcap").read_bytes()
                      for side in ("client", "server"))
    files = {"window.csv": (window_text(name, folder) if window is None else window).encode()}
    return Observed(requested.id, content, client, server, files)


def judged(requested: TraceTrial, name: str = "", window: str | None = None,
           **observed: Any) -> TraceRecord:
    """The record of what seen() returns, with its verdict."""
    return judge_trace(requested, seen(requested, name, window, **observed), exact=True)
