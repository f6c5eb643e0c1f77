"""Small runs of fetches as they were measured in the guest, read once, and their reports."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from firstflight.findings.findings import Report
from firstflight.runs import runs, scenario_file
from firstflight.runs.kinds import RunData, Study
from firstflight.runs.results.records import FAIL, PASS, SKIPPED
from firstflight.study.fetches import KIND
from firstflight.workloads.fetch.scenario import reading
from firstflight.workloads.fetch.figures import kinds
from firstflight.workloads.fetch.figures.bar_figure import BarFigure
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.scenario.scenario import Scenario
from firstflight.workloads.fetch.record.limits import PACING, RECEIVE_WINDOW
from tests.golden.rows import read_rows
from tests.golden.stored import FOLDER

SMALL_SCENARIOS = ("marrama2012", "tselentis2013", "zhao2019")
# Those whose published numbers, or statements, are explained, with all of their causes in turn.
EXPLAINED, STATED = "marrama2012_as_published", "tselentis2013_as_published"
FACTS = {"state": runs.COMPLETE, "virtual_time": True, "engine": "uml", "kernel": "7.2.11",
         "emulated_s": 600.0, "wall_s": 5.0}


@cache
def scenario(name: str) -> Scenario:
    return reading.read_scenario(scenario_file.find(name))


@cache
def stored(name: str) -> tuple[Record, ...]:
    return tuple(read_rows(FOLDER.parent / f"{name}_trials.csv", Record))


@cache
def bar_figures(name: str) -> dict[str, BarFigure]:
    """The rows of every figure by its name; all have some."""
    made, missing = kinds.bar_figures(scenario(name), stored(name))
    assert not missing
    return made


@cache
def whole_report(name: str) -> Report:
    return report(name, stored(name))


def report(name: str, records: Any, whole: bool = True, **facts: Any) -> Report:
    """What such a run says; facts: of its run.json, beside FACTS."""
    run = RunData(FOLDER.parent / f"{name}-run", {**FACTS, "scenario": name, **facts}, records)
    return Study(KIND, scenario(name), (), whole).report(run)


def raw_report() -> Report:
    """What is told of every raw value from three sides."""
    found, records = raw_and_causes()
    return Study(KIND, found, (), True).report(
        RunData(FOLDER.parent / "raw-run", {**FACTS, "scenario": "mine"}, records))


# A run in which much happens ------------------------------------------------------------------

def _happens(record: Record) -> dict[str, Any]:
    """What is otherwise with a record, by its place among those of its kind."""
    trial, total_ms = record.trial, record.total_ms or 0.0
    if trial.loss_percent:
        found: dict[str, Any] = {"total_ms": total_ms * {
            (1.0, 3): 2.0, (2.0, 10): 1.5}.get((trial.loss_percent, trial.initcwnd), 1.0)}
        return found | {
            2: {"ok": False, "error": "curl 28: timed out", "total_ms": None, "verdict": SKIPPED},
            3: {"verdict": FAIL, "verdict_reason": "RTT: observed 90.000 ms, expected 70 ms"},
            4: {"verdict": SKIPPED, "verdict_reason": "nginx is missing"},
            5: {"total_ms": None},
            6: {"queue_drops": 3, "lost_segments": 4, "retransmissions": 4},
            7: {"retransmissions": 1, "retransmission_cause": "tail loss probe; SYN timer"},
        }.get(trial.repeat, {})
    if trial.initcwnd > 20:
        return {"limited_by": RECEIVE_WINDOW, "seen_first_flight": 20 + trial.initcwnd // 20}
    if trial.rtt_ms == 20:  # a larger window that takes longer, and other than the model
        return {"total_ms": total_ms + (9 if trial.initcwnd == 10 else 0.75)}
    if trial.rtt_ms == 3000:
        return {"queue_drops": 2, "lost_segments": 2, "retransmissions": 2,
                "handshake_retransmissions": 1}
    return {"limited_by": PACING, "seen_first_flight": 7} if trial.rtt_ms == 1000 else {}


@cache
def eventful() -> tuple[Record, ...]:
    """marrama2012 as if transfers had failed, lost, been limited, and differed from the model."""
    return tuple(replace(record, **_happens(record)) for record in stored("marrama2012"))


# Raw values, and fetches that fail: one cause of each ---------------------------------------

RAW_AND_CAUSES = """# Some of the causes.

title = "t"
source = "s"

[as_published]
of = "zhao2019"
within_percent = 3
within_ms = 10

[[cause]]
name = "new network"
says = "…"
known = "code"
where = "here"
set = {arp_ms = 940}

[[cause]]
name = "failures count"
says = "…"
known = "kernel"
where = "there"
set = {failed_ms = 2200}
"""


def _waited(record: Record) -> Record:
    """A fetch of a network that has just begun, as it would have been."""
    trial = replace(record.trial, arp_ms=940)
    if trial.cannot_connect:
        return Record(trial, ok=False, error="curl 7: failed", verdict=PASS)
    assert record.total_ms is not None
    return replace(record, trial=trial, total_ms=record.total_ms + trial.rtt_ms)


@cache
def raw_and_causes() -> tuple[Scenario, tuple[Record, ...]]:
    """Some of the causes of raw values, and the records with and without them."""
    clean = stored("zhao2019")
    found = reading.read_scenario(scenario_file.parsed("mine", RAW_AND_CAUSES))
    return replace(found, figures=()), (*clean, *map(_waited, clean))
