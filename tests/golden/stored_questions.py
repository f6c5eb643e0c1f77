"""Runs of every kind of question to fetches, as experiment.py left them, and a population.

fetches/<name> holds the text of the scenario (run.json's scenario_file), the
trials.csv of a whole run in the guest, and captures where a figure reads them;
that of users is a whole folder, but for most of its sysctls. A population has
too many trials to store: their times are a formula here.
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
    """What the stored run of a question says."""
    requested, run = stored(name)
    return requested.report(run)


@cache
def users() -> Report:
    """Which window for the users of a file, told from the run's folder."""
    run = stored_run(FOLDER / "users", Record)
    file = scenario_file.of_run(run.facts["scenario"], run.facts["scenario_file"])
    return registry.study_of(file).report(run)


def stored(name: str, **facts: Any) -> tuple[Study, RunData]:
    """A stored run with its study; facts: of its run.json, beside FACTS."""
    folder = FOLDER / name
    requested = registry.study_of(scenario_file.of_run(
        name, (folder / "scenario.toml").read_text(encoding="utf-8")))
    records, what_ifs = (read_rows(path, requested.kind.record) if path.exists() else []
                         for path in (folder / "trials.csv", folder / "what_if.csv"))
    return requested, RunData(folder, {**FACTS, "scenario": name, **facts}, records, what_ifs)


@cache
def compared() -> Report:
    """Transfers with loss beside those without SACK, and with a part of themselves."""
    def sack(value: str, packets: int) -> dict[str, Any]:
        return {"sysctls": {"server": {"net.ipv4.tcp_sack": value}}, "jobs": packets,
                "confined": True, "tools": {"curl": "7.88.1"}}

    (_, base), (_, without) = stored("bars", **sack("1", 1)), stored("no_sack", **sack("0", 2))
    return compared_runs.report([("bars", base), ("no_sack", without), (
        "part", replace(base, records=base.records[12:]))])


@cache
def population() -> Report:
    """Of a small population, whose trials took what `took` says."""
    with patch.object(rows, "FOLDER", FOLDER.parent / "populations"):
        drawn = KIND.study(scenario_file.read(FOLDER / "population.toml"))
        return drawn.report(RunData(FOLDER, {**FACTS, "scenario": "population"},
                                    population_records()))


@cache
def population_records() -> list[Record]:
    """The records of the same trials."""
    with patch.object(rows, "FOLDER", FOLDER.parent / "populations"):
        return [took(trial) for trial in KIND.study(
            scenario_file.read(FOLDER / "population.toml")).trials]


@cache
def best() -> Report:
    """The best window of every cell of a coarse grid, were every TCP an ideal one."""
    requested: Any = registry.study_of(scenario_file.find("map_of_windows").sampled(196))
    told = requested.report(RunData(FOLDER, {**FACTS, "scenario": requested.head.name},
                                [took(trial) for trial in requested.trials]))
    return replace(told, findings=told.findings[-1:])  # without every cell


def goodput_study() -> Study:
    return KIND.study(scenario_file.read(FOLDER / "goodput.toml"))


@cache
def goodput() -> Report:
    """Every kind of figure that has a metric, of one of which more is better."""
    requested = goodput_study()
    records = [replace(record, goodput_kbps=8 * record.trial.response_bytes
                       / (record.total_ms or 1.0)) for record in map(took, requested.trials)]
    return requested.report(RunData(FOLDER, {**FACTS, "scenario": "goodput"}, records))


@cache
def fitted() -> Report:
    """What stands behind the kept fit, which stands beside the scenario."""
    found = fit_findings("dukkipati2010")
    return Report("dukkipati2010", "What was fitted", "A claim.", "A source.", "", {}, 0, 0,
                  found)


@cache
def steps() -> Report:
    """The time to the first byte, and round trips, over the length of a chain, as modelled."""
    return steps_of(slice(None))


def steps_of(part: slice) -> Report:
    """The same of some of its trials.

    Of OpenSSL 3.0, whatever this machine has: 3.5 sends 22 bytes more.
    """
    requested = KIND.study(scenario_file.read(FOLDER / "steps.toml"))
    with patch.object(ssl, "OPENSSL_VERSION_INFO", (3, 0, 0, 0, 0)):
        return requested.report(RunData(FOLDER, {**FACTS, "scenario": "steps"},
                                    as_modelled(requested.trials[part])))


def as_modelled(trials: Iterable[Trial]) -> list[Record]:
    """Records that have what the model says of their trials, and the rest of another's."""
    good, found = stored_trials.load("https").judge(), []
    for trial in trials:
        prediction = predict(computed(trial, {}))
        found.append(replace(good, trial=trial, first_byte_ms=prediction.first_byte_ms,
                             total_ms=prediction.total_ms, model_ms=prediction.total_ms,
                             handshake_round_trips=prediction.handshake_round_trips))
    return found


def took(trial: Trial) -> Record:
    """Doubling windows on an empty link, and an RTT for each per cent of loss: an ideal TCP."""
    segments = math.ceil(trial.response_bytes / MSS)
    window = trial.initcwnd + trial.earlier_bytes // MSS
    rounds = 1 + max(0, math.ceil(math.log2(1 + segments / window) - 1))
    latency_ms = (trial.rtt_ms * (rounds + trial.loss_percent) + trial.gap_ms
                  + 8 * (trial.response_bytes + trial.burst_bytes) / trial.bandwidth_kbps)
    return Record(trial, True, verdict=PASS, latency_ms=latency_ms,
                  total_ms=latency_ms + trial.rtt_ms, seen_initcwnd=trial.initcwnd,
                  retransmissions=int(trial.loss_percent > 0))
