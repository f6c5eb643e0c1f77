"""What a report says, as JSON: what docs/RESULTS.md is rendered from, kept with the project."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from lab.core import files
from lab.core.errors import FirstFlightError
from lab.core.findings.charts import Chart
from lab.core.findings.findings import Column, Finding, Interval, Report, Rounded, Statement, Table
from lab.core.stats import Estimate

KINDS = {kind.__name__: kind for kind in (Chart, Column, Estimate, Finding, Interval, Report,
                                          Rounded, Statement, Table)}
FACTS = ("engine", "kernel", "machine", "virtual_time", "seed", "started_at", "finished_at",
         "emulated_s", "wall_s", "project", "partial")
KIND = "is"  # the key that names a value's class


def dumps(report: Report) -> str:
    """What Markdown needs of a report; of each value its whole digits, on a line of its own."""
    facts = {name: report.facts[name] for name in FACTS if name in report.facts}
    findings = tuple(replace(each, sentence="", text="", samples=(), measured="",
                             chart=Chart("", ()) if each.chart else None)
                     for each in report.findings)
    small = Report(report.name, report.title, report.claim, report.source, report.path, facts,
                   report.verified, report.count, findings, report.summary,
                   opening=report.opening)
    return json.dumps(_encoded(small), ensure_ascii=False, indent=0) + "\n"


def loads(text: str) -> Report:
    """The report again. Raises ValueError, TypeError, LookupError where it is none."""
    report = _decoded(json.loads(text))
    if not isinstance(report, Report):
        raise ValueError("is no report")
    return report


def read(path: Path) -> Report:
    """A kept report. Raises FirstFlightError."""
    try:
        return loads(files.content(path).decode("utf-8"))
    except OSError as error:
        raise FirstFlightError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, LookupError) as error:
        raise FirstFlightError(f"{path}: holds no findings: {error}") from error


def _encoded(value: Any) -> Any:
    """Values of KINDS by their class and what of them is not the default."""
    if is_dataclass(value):
        return {KIND: type(value).__name__, **{
            each.name: _encoded(getattr(value, each.name)) for each in fields(value)
            if getattr(value, each.name) != each.default}}
    if isinstance(value, Mapping):
        return {name: _encoded(each) for name, each in value.items()}
    if isinstance(value, (tuple, list)):
        return [_encoded(each) for each in value]
    return value


def _decoded(value: Any) -> Any:
    if isinstance(value, dict):
        decoded = {name: _decoded(each) for name, each in value.items() if name != KIND}
        return KINDS[value[KIND]](**decoded) if KIND in value else decoded
    return tuple(map(_decoded, value)) if isinstance(value, list) else value
