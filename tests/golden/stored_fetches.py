"""Small stored runs of fetches as they were measured in the guest, and their reports.

Each is read once.
"""

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
# Scenarios that add the causes of a published set-up one by one: EXPLAINED compares with published
# numbers, STATED with published statements.
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
    """The bars of every figure by its name; no figure lacks them."""
    figures, missing = kinds.bar_figures(scenario(name), stored(name))
    assert not missing
    return figures


@cache
def whole_report(name: str) -> Report:
    return report(name, stored(name))


def report(name: str, records: Any, whole: bool = True, **facts: Any) -> Report:
    """The report of a run with these records. facts: of its run.json, in addition to FACTS."""
    run = RunData(FOLDER.parent / f"{name}-run", {**FACTS, "scenario": name, **facts}, records)
    return Study(KIND, scenario(name), (), whole).report(run)


def raw_report() -> Report:
    """The report on raw values: the published, the clean run's, and those with the causes."""
    found, records = raw_and_causes()
    return Study(KIND, found, (), True).report(
        RunData(FOLDER.parent / "raw-run", {**FACTS, "scenario": "mine"}, records))


# A run in which much happens ------------------------------------------------------------------

def _happens(record: Record) -> dict[str, Any]:
    """The columns of a record that are changed, by its loss rate, repeat, window and RTT."""
    trial, total_ms = record.trial, record.total_ms or 0.0
    if trial.loss_percent:
        longer = {(1.0, 3): 2.0, (2.0, 10): 1.5}.get((trial.loss_percent, trial.initcwnd), 1.0)
        changed: dict[str, Any] = {"total_ms": total_ms * longer}
        return changed | {
            2: {"ok": False, "error": "curl 28: timed out", "total_ms": None, "verdict": SKIPPED},
            3: {"verdict": FAIL, "verdict_reason": "RTT: observed 90.000 ms, expected 70 ms"},
            4: {"verdict": SKIPPED, "verdict_reason": "nginx is missing"},
            5: {"total_ms": None},
            6: {"queue_drops": 3, "lost_segments": 4, "retransmissions": 4},
            7: {"retransmissions": 1, "retransmission_cause": "tail loss probe; SYN timer"},
        }.get(trial.repeat, {})
    if trial.initcwnd > 20:
        return {"limited_by": RECEIVE_WINDOW, "seen_first_flight": 20 + trial.initcwnd // 20}
    if trial.rtt_ms == 20:  # the larger window takes longer, and both differ from the model
        return {"total_ms": total_ms + (9 if trial.initcwnd == 10 else 0.75)}
    if trial.rtt_ms == 3000:
        return {"queue_drops": 2, "lost_segments": 2, "retransmissions": 2,
                "handshake_retransmissions": 1}
    return {"limited_by": PACING, "seen_first_flight": 7} if trial.rtt_ms == 1000 else {}


@cache
def eventful() -> tuple[Record, ...]:
    """The records of marrama2012 as if transfers had failed, lost packets or been limited.

    Some also differ from the model.
    """
    return tuple(replace(record, **_happens(record)) for record in stored("marrama2012"))


# A scenario with a cause that changes raw values, and one for fetches that fail ---------------

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
    """The record of a fetch as if its network had just begun, so that it waits for ARP."""
    trial = replace(record.trial, arp_ms=940)
    if trial.cannot_connect:
        return Record(trial, ok=False, error="curl 7: failed", verdict=PASS)
    assert record.total_ms is not None
    return replace(record, trial=trial, total_ms=record.total_ms + trial.rtt_ms)


@cache
def raw_and_causes() -> tuple[Scenario, tuple[Record, ...]]:
    """The scenario RAW_AND_CAUSES, and its records without and with its first cause."""
    clean = stored("zhao2019")
    found = reading.read_scenario(scenario_file.parse("mine", RAW_AND_CAUSES))
    return replace(found, figures=()), (*clean, *map(_waited, clean))
