"""The ids, jobs and commands of trials, and the scenarios that questions become."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from unittest import mock

from firstflight.runs import scenario_file
from firstflight.runs.kinds import Overrides, Study
from firstflight.study import registry
from firstflight.testbed import site_store
from firstflight.testbed.network.commands import commands_of
from firstflight.workloads.page.sources import Source
from tests.golden import stored
from tests.unit.core.example import whole

BROWSED = "browser2026"  # whose trials have the digests of pages that packages install
DRAWN = "dukkipati2010"  # whose thousands of trials take a second to draw
# Questions by their names. Together they have every flag of a question.
QUESTIONS: dict[str, Overrides] = {
    "plain": Overrides({"rtt_ms": [35]}),
    "switches": Overrides(
        {"rtt_ms": [7.25], "bandwidth_kbps": [1000], "uplink_kbps": [256.5], "queue": ["50ms"],
         "qdisc": ["fq_codel"], "loss_percent": [1.5], "loss_burst": [4], "jitter_ms": [2.5],
         "initcwnd": [4, 32], "initrwnd": [70], "congestion_control": ["bbr"], "mss": [1000],
         "response_bytes": [50000], "kept": [2], "idle_ms": [1500], "gap_ms": [30],
         "sysctl": ["net.ipv4.tcp_sack=0"]}, repeat=2, client="libcurl"),
    "queues": Overrides({"queue": ["bdp", "20"], "qdisc": ["fq", "cake"], "rtt_ms": [0.2]}),
    "windows": Overrides({"initcwnd": [1, 2, 3, 4, 5, 6, 7], "rtt_ms": [20, 50]}, client="wget"),
    "one_window": Overrides({"initcwnd": [10], "loss_percent": [0, 2]})}


def text() -> str:
    """A paragraph for each trial.

    They are the first and the last trial of every scenario and question, and all stored trials.
    """
    lines: list[str] = []
    for name in scenario_file.names():
        if name != DRAWN:
            lines += _trials(_without_packages(name) if name == BROWSED else whole(name))
    for name, requested in QUESTIONS.items():
        study = registry.own_question(name, requested)
        lines += [f"# {name}", *study.head.text.splitlines(), *_trials(study)]
    lines += _paragraphs([stored.load(name).trial for name in stored.NAMES], {})
    return "\n".join(lines) + "\n"


def _without_packages(name: str) -> Study:
    """The study of a scenario whose pages come from packages, as if none were installed."""
    with mock.patch.object(Source, "recorded", lambda source: (site_store.NOT_INSTALLED, 0)):
        return registry.study_of(scenario_file.find(name))


def _trials(study: Study) -> Iterator[str]:
    """The paragraphs of a study's first and last trial."""
    yield from _paragraphs((*study.trials[:1], *study.trials[-1:]), study.head.sysctls)


def _paragraphs(trials: Sequence[Any], sysctls: Mapping[str, str]) -> Iterator[str]:
    """For each trial its id, its commands and its job; of a list in the job the first two."""
    def short(value: Any) -> Any:
        if isinstance(value, list):
            return value[:2]
        return round(value, 6) if isinstance(value, float) else value

    for trial in dict.fromkeys(trials):
        job = {name: short(value) for name, value in trial.job().items()}
        yield trial.id
        yield from (f"  {command}" for command in commands_of(job, sysctls))
        yield f"  {json.dumps(job, sort_keys=True)}"
