"""Writes a scenario of kind fetches as TOML: a question by flags, or a sample of users.

The text stands in run.json. workloads/fetch/scenario/reading.py reads it as an equal scenario.
"""

from __future__ import annotations

from firstflight.runs import schema
from firstflight.runs.scenario_file import OWN_SERVER
from firstflight.scenario import writing
from firstflight.workloads.fetch.scenario.scenario import Scenario
from firstflight.workloads.fetch.scenario.sweep import CLIENTS

_COMMENTS = {"client": ", ".join(CLIENTS)}  # by key: the values that it may have


def text(scenario: Scenario) -> str:
    """The scenario file of a scenario that has sweeps and figures, or a sample of users."""
    lines = writing.head(scenario.head, {"cells": True} if scenario.cells else {})
    own = next((sweep.own for sweep in scenario.sweeps if sweep.own), None)
    if own:
        lines += writing.table(f"[{OWN_SERVER}]", schema.values_of(own))
    if scenario.users:
        shared = writing.sweep_values(scenario.users.template, with_flags=False)
        lines += writing.table("[defaults]", shared)
        lines += writing.table("[users]", schema.values_of(scenario.users))
    for sweep in scenario.sweeps:
        lines += writing.table("[[sweep]]", writing.sweep_values(sweep, with_flags=True),
                               writing.COMMENTS | _COMMENTS)
    for figure in scenario.figures:
        lines += writing.table("[[figure]]", schema.values_of(figure))
    return "\n".join(lines)
