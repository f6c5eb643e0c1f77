"""Writes the tables of a scenario's file, for scenarios built from flags or from users."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firstflight.base.words import format_toml
from firstflight.parameters import PARAMETERS
from firstflight.runs import schema
from firstflight.runs.scenario_file import Head
from firstflight.scenario.setting_sweep import SettingSweep

# Comments after the keys of a sweep.
COMMENTS = {
    **{row.key: f"{row.quantity.flag_help}: {row.quantity.range}" for row in PARAMETERS.values()},
    "repeat": "times that every setting is measured",
    "repeat_with_loss": "the same, where loss or jitter decides",
    "repeat_with_drops": "the same, where a queue drops packets"}


def head(of: Head, others: Mapping[str, Any]) -> list[str]:
    """The lines of a file before its tables: the claim as a comment, the keys, and [sysctls].

    others: further keys, which the kind of scenario adds.
    """
    lines = [f"# {of.claim}", "", *table("", {**schema.values_of(of), **others})]
    if of.sysctls:
        lines += table("[sysctls]", {f'"{name}"': value for name, value in of.sysctls.items()})
    return lines


def table(heading: str, values: Mapping[str, Any], comments: Mapping[str, str] | None = None
          ) -> list[str]:
    """The lines of a table, and an empty line.

    heading: such as "[[sweep]]"; "" for none. comments: those that stand after keys, by key.
    """
    lines = [heading] if heading else []
    for key, value in values.items():
        comment = (comments or {}).get(key)
        end = f"  # {comment}" if comment else ""
        lines.append(f"{key} = {format_toml(value)}{end}")
    return [*lines, ""]


def sweep_values(sweep: SettingSweep[Any], with_flags: bool) -> dict[str, object]:
    """The keys of a sweep without those at their default.

    with_flags: keys that have a flag are written even at their default.
    """
    unwritten = set()
    for name, row in PARAMETERS.items():
        is_written = row.required or row.follows or (with_flags and row.quantity.flag)
        if not is_written and sweep.lists.get(name) == row.quantity.defaults:
            unwritten.add(row.key)

    written: dict[str, object] = {}
    for key, values in schema.values_of(sweep).items():
        if key not in unwritten:
            if isinstance(values, tuple):  # None is an uplink as fast as the downlink
                written[key] = ["same" if value is None else value for value in values]
            else:
                written[key] = values
    return written
