"""Writes the tables of a scenario's file, for scenarios built from flags or from users."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firstflight.base.words import format_toml
from firstflight.runs import schema
from firstflight.runs.scenario_file import Head


def head(of: Head, others: Mapping[str, Any]) -> list[str]:
    """The lines before the tables, beginning with the claim, and [sysctls].

    others: further keys, of the kind.
    """
    lines = [f"# {of.claim}", "", *table("", {**schema.values_of(of), **others})]
    if of.sysctls:
        lines += table("[sysctls]", {f'"{name}"': value for name, value in of.sysctls.items()})
    return lines


def table(heading: str, values: Mapping[str, Any], comments: Mapping[str, str] | None = None
          ) -> list[str]:
    """The lines of a table, and an empty line. comments: behind keys, by key."""
    behind = {key: f"  # {comment}" for key, comment in (comments or {}).items() if comment}
    lines = [f"{key} = {format_toml(value)}{behind.get(key, '')}" for key, value in values.items()]
    return [*filter(None, [heading]), *lines, ""]
