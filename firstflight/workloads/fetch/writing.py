"""Write a scenario of kind fetches as TOML, for run.json: a question by flags, a sample of users.

workloads/fetch/reading.py reads it back as an equal scenario.
"""

from __future__ import annotations

from firstflight.parameters import PARAMETERS
from firstflight.runs import schema
from firstflight.runs.scenario_file import OWN_SERVER
from firstflight.scenario import writing
from firstflight.workloads.fetch.scenario.scenario import Scenario
from firstflight.workloads.fetch.scenario.sweep import CLIENTS, Sweep

# Comments after keys that are not parameters.
_COMMENTS = {
    "client": ", ".join(CLIENTS), "repeat": "times that every setting is measured",
    "repeat_with_loss": "the same, where loss or jitter decides",
    "repeat_with_drops": "the same, where a queue drops packets"}


def text(scenario: Scenario) -> str:
    """The file of a scenario that has sweeps and figures, or a sample of users."""
    lines = writing.head(scenario.head, {"cells": True} if scenario.cells else {})
    own = next((sweep.own for sweep in scenario.sweeps if sweep.own), None)
    if own:
        lines += writing.table(f"[{OWN_SERVER}]", schema.values_of(own))
    if scenario.users:
        lines += writing.table("[defaults]", _parameters(scenario.users.template, with_flags=False))
        lines += writing.table("[users]", schema.values_of(scenario.users))
    comments = {row.key: f"{row.quantity.flag_help}: {row.quantity.range}"
                for row in PARAMETERS.values()} | _COMMENTS
    for sweep in scenario.sweeps:
        lines += writing.table("[[sweep]]", _parameters(sweep, with_flags=True), comments)
    for figure in scenario.figures:
        lines += writing.table("[[figure]]", schema.values_of(figure))
    return "\n".join(lines)


def _parameters(sweep: Sweep, with_flags: bool) -> dict[str, object]:
    """The keys of a sweep without those at their default.

    with_flags: keys that have a flag are written even at their default.
    """
    unwritten = {row.key for name, row in PARAMETERS.items()
                if not (row.required or row.follows or with_flags and row.quantity.flag)
                and sweep.lists.get(name) == row.quantity.defaults}
    return {key: ["same" if value is None else value for value in values]
            if isinstance(values, tuple) else values
            for key, values in schema.values_of(sweep).items() if key not in unwritten}
