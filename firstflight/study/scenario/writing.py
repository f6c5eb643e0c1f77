"""Tables of a scenario's file, for scenarios that were made of flags or of users, not read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firstflight.base.words import format_toml
from firstflight.runs import schema
from firstflight.runs.scenario_file import Head


def head(of: Head, others: Mapping[str, Any]) -> list[str]:
    """The lines before the tables, the claim first, and [sysctls]; others: keys of the kind."""
    lines = [f"# {of.claim}", "", *table("", {**schema.values_of(of), **others})]
    if of.sysctls:
        lines += table("[sysctls]", {f'"{name}"': value for name, value in of.sysctls.items()})
    return lines


def table(heading: str, values: Mapping[str, Any], comments: Mapping[str, str] | None = None
          ) -> list[str]:
    """The lines of a table and an empty one; comments: what stands behind a key."""
    said = {key: f"  # {comment}" for key, comment in (comments or {}).items() if comment}
    lines = [f"{key} = {format_toml(value)}{said.get(key, '')}" for key, value in values.items()]
    return [*filter(None, [heading]), *lines, ""]
