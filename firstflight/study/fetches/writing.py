"""A scenario of kind fetches as TOML, as run.json keeps it: a question by flags, a sample of users.

study/fetches/reading.py reads an equal scenario of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from firstflight.base.words import format_toml
from firstflight.parameters import PARAMETERS
from firstflight.runs import schema
from firstflight.runs.scenario_file import OWN_SERVER
from firstflight.study.fetches.scenario.scenario import Scenario
from firstflight.study.fetches.scenario.sweep import CLIENTS, Sweep

# What stands behind a key that is no parameter's.
_COMMENTS = {
    "client": ", ".join(CLIENTS), "repeat": "times that every setting is measured",
    "repeat_with_loss": "the same, where loss or jitter decides"}


def text(scenario: Scenario) -> str:
    """The file of a scenario that has sweeps and figures, or a sample of users."""
    head = {name: value for name, value in schema.values_of(scenario.head).items()
            if name != "kind"}
    if scenario.cells:
        head["cells"] = True
    tables: list[tuple[str, Mapping[str, object]]] = [
        (f"# {scenario.head.claim}", {}), ("", head)]
    if scenario.head.sysctls:
        tables.append(("[sysctls]", {f'"{name}"': value for name, value
                                     in scenario.head.sysctls.items()}))
    own = next((sweep.own for sweep in scenario.sweeps if sweep.own), None)
    if own:
        tables.append((f"[{OWN_SERVER}]", schema.values_of(own)))
    if scenario.users:
        tables += [("[defaults]", _parameters(scenario.users.like, with_flags=False)),
                   ("[users]", schema.values_of(scenario.users))]
    lines = [line for heading, values in tables for line in (
        *filter(None, [heading]), *_lines(values), "")]
    for sweep in scenario.sweeps:
        lines += ["[[sweep]]", *_lines(_parameters(sweep, with_flags=True), commented=True), ""]
    for figure in scenario.figures:
        lines += ["[[figure]]", *_lines(schema.values_of(figure)), ""]
    return "\n".join(lines)


def _parameters(sweep: Sweep, with_flags: bool) -> dict[str, object]:
    """The keys of a sweep, but for what is at its default; with_flags: of what has no flag only."""
    left_out = {row.key for name, row in PARAMETERS.items()
                if not (row.required or row.follows or with_flags and row.quantity.flag)
                and sweep.lists.get(name) == row.quantity.defaults}
    return {key: ["same" if value is None else value for value in values]
            if isinstance(values, tuple) else values
            for key, values in schema.values_of(sweep).items() if key not in left_out}


def _lines(values: Mapping[str, Any], commented: bool = False) -> Iterator[str]:
    keys = {row.key: row.quantity for row in PARAMETERS.values()} if commented else {}
    for key, value in values.items():
        comment = (f"{keys[key].flag_help}: {keys[key].range}" if key in keys
                   else _COMMENTS.get(key, "") if commented else "")
        yield f"{key} = {format_toml(value)}" + (f"  # {comment}" if comment else "")
