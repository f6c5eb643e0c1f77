"""Stored runs of every kind of question on fetches, and studies whose times are a formula.

fetches/<name> holds the text of the scenario (run.json's scenario_file), the trials.csv of a whole
run in the guest, and captures where a figure reads them. fetches/users is a run's whole folder, but
for most of its sysctls. A population and a grid have too many trials to store, so `took` computes
their times.
"""

from __future__ import annotations

import math
import ssl
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from firstflight.findings.findings import Report
from firstflight.model.predict import predict
from firstflight.net.headers import MSS
from firstflight.runs import scenario_file
from firstflight.runs.kinds import RunData, Study
from firstflight.runs.results.records import PASS
from firstflight.study import compared_runs, registry
from firstflight.study.fetches import KIND
from firstflight.study.population.findings import fit_findings
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.scenario import rows
from firstflight.workloads.fetch.trial import Trial
from firstflight.workloads.fetch.record.transfers import computed
from tests.golden import stored as stored_trials
from tests.golden.rows import read_rows, stored_run
from tests.golden.stored_fetches import FACTS

FOLDER = Path(__file__).resolve().parent / "fetches"
QUESTIONS = ("bars", "map", "reasons", "windows")


@cache
def question(name: str) -> Report:
    """The report of the stored run of a question."""
    requested, run = stored(name)
    return requested.report(run)


@cache
def users() -> Report:
    """The report on which window the users of a file need, made from the run's folder."""
    run = stored_run(FOLDER / "users", Record)
    file = scenario_file.of_run(run.facts["scenario"], run.facts["scenario_file"])
    return registry.study_of(file).report(run)


def stored(name: str, **facts: Any) -> tuple[Study, RunData]:
    """The study of a stored run, and the run. facts: of its run.json, in addition to FACTS."""
    folder = FOLDER / name
    requested = registry.study_of(scenario_file.of_run(
        name, (folder / "scenario.toml").read_text(encoding="utf-8")))
    records, what_ifs = (read_rows(path, requested.kind.record) if path.exists() else []
                         for path in (folder / "trials.csv", folder / "what_if.csv"))
    return requested, RunData(folder, {**FACTS, "scenario": name, **facts}, records, what_ifs)


@cache
def compared() -> Report:
    """The comparison of a run with loss, the same without SACK, and a part of the first."""
    def facts(sack: str, jobs: int) -> dict[str, Any]:
        return {"sysctls": {"server": {"net.ipv4.tcp_sack": sack}}, "jobs": jobs,
                "confined": True, "tools": {"curl": "7.88.1"}}

    _, base = stored("bars", **facts("1", 1))
    _, without = stored("no_sack", **facts("0", 2))
    part = replace(base, records=base.records[12:])
    return compared_runs.report([("bars", base), ("no_sack", without), ("part", part)])


@cache
def population() -> Report:
    """The report of a small population, whose times `took` computes."""
    with patch.object(rows, "FOLDER", FOLDER.parent / "populations"):
        study = KIND.study(scenario_file.read(FOLDER / "population.toml"))
        return study.report(RunData(FOLDER, {**FACTS, "scenario": "population"},
                                    population_records()))


@cache
def population_records() -> list[Record]:
    """The records of all trials of the small population."""
    with patch.object(rows, "FOLDER", FOLDER.parent / "populations"):
        return [took(trial) for trial in KIND.study(
            scenario_file.read(FOLDER / "population.toml")).trials]


@cache
def best() -> Report:
    """The report on the best window in each cell of a coarse grid, by the ideal TCP of `took`."""
    one_in = 196  # cells of the scenario
    study: Any = registry.study_of(scenario_file.find("map_of_windows").sampled(one_in))
    records = [took(trial) for trial in study.trials]
    report = study.report(RunData(FOLDER, {**FACTS, "scenario": study.head.name}, records))
    return replace(report, findings=report.findings[-1:])  # without the table of every cell


def goodput_study() -> Study:
    return KIND.study(scenario_file.read(FOLDER / "goodput.toml"))


@cache
def goodput() -> Report:
    """The report with goodput, of which more is better, in every kind of figure with a metric."""
    requested = goodput_study()
    records = [replace(record, goodput_kbps=8 * record.trial.response_bytes
                       / (record.total_ms or 1.0)) for record in map(took, requested.trials)]
    return requested.report(RunData(FOLDER, {**FACTS, "scenario": "goodput"}, records))


@cache
def fitted() -> Report:
    """The report on the parameters that were fitted for dukkipati2010."""
    found = fit_findings("dukkipati2010")
    return Report("dukkipati2010", "What was fitted", "A claim.", "A source.", "", {}, 0, 0,
                  found)


@cache
def steps() -> Report:
    """The report on first byte and round trips by the length of a chain, by the model."""
    return steps_of(slice(None))


def steps_of(part: slice) -> Report:
    """The report of steps() for some of the trials.

    The model takes OpenSSL 3.0, whatever this machine has, since 3.5 sends 22 bytes more.
    """
    requested = KIND.study(scenario_file.read(FOLDER / "steps.toml"))
    with patch.object(ssl, "OPENSSL_VERSION_INFO", (3, 0, 0, 0, 0)):
        return requested.report(RunData(FOLDER, {**FACTS, "scenario": "steps"},
                                    as_modelled(requested.trials[part])))


def as_modelled(trials: Iterable[Trial]) -> list[Record]:
    """Records with the times that the model computes, and other columns of a stored trial."""
    good, found = stored_trials.load("https").judge(), []
    for trial in trials:
        prediction = predict(computed(trial, {}))
        found.append(replace(good, trial=trial, first_byte_ms=prediction.first_byte_ms,
                             total_ms=prediction.total_ms, model_ms=prediction.total_ms,
                             handshake_round_trips=prediction.handshake_round_trips))
    return found


def took(trial: Trial) -> Record:
    """The record of a trial by an ideal TCP.

    Its window doubles each round trip on an empty link, and each percent of loss costs an RTT.
    """
    segments = math.ceil(trial.response_bytes / MSS)
    window = trial.initcwnd + trial.earlier_bytes // MSS
    rounds = 1 + max(0, math.ceil(math.log2(1 + segments / window) - 1))
    latency_ms = (trial.rtt_ms * (rounds + trial.loss_percent) + trial.gap_ms
                  + 8 * (trial.response_bytes + trial.burst_bytes) / trial.bandwidth_kbps)
    return Record(trial, True, verdict=PASS, latency_ms=latency_ms,
                  total_ms=latency_ms + trial.rtt_ms, seen_initcwnd=trial.initcwnd,
                  retransmissions=int(trial.loss_percent > 0))
