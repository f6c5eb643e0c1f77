"""Findings as data: JSON with provenance, CSV with a line for each value, or Markdown."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from lab.core.findings.findings import Cell, Finding, Interval, Report, Rounded, Table
from lab.core.results.records import to_text
from lab.core.stats import Estimate
from lab.render import markdown

_COLUMNS = ("finding", "table", "row", "group", "column", "unit", "value", "low", "high")


def exported(form: str, report: Report) -> str:
    """The findings of a report; form: of lab.core.command_line.EXPORTS."""
    return {"json": _json, "md": markdown.chapter, "csv": _csv}[form](report)


def _json(report: Report) -> str:
    """Intervals are [low, high]; what is not known is null."""
    return json.dumps({
        "scenario": report.name, "title": report.title, "claim": report.claim,
        "source": report.source, "run": report.path, "verified": report.verified,
        "trials": report.count, "sentences": report.sentences,
        "provenance": {fact.name: fact.value for fact in report.provenance},
        "findings": [_finding(each) for each in report.findings]}, indent=1,
        ensure_ascii=False) + "\n"


def _finding(finding: Finding) -> dict[str, Any]:
    return {"name": finding.name, "title": finding.title, "sentence": finding.sentence,
            "missing": finding.missing, "published": finding.published,
            "statements": [asdict(each) for each in finding.statements],
            "tables": [{
                "title": table.title, "notes": table.notes, "left_out": table.left_out,
                "columns": [{"name": column.name, "unit": column.unit, "group": column.group}
                            for column in table.columns],
                "rows": [[_value(cell) for cell in row] for row in table.rows]}
                for table in finding.tables]}


def _value(cell: Cell) -> Any:
    if isinstance(cell, Rounded):
        return _value(cell.value)
    if isinstance(cell, Interval):
        return [cell.low, cell.high]
    if isinstance(cell, Estimate):
        return {"value": cell.value, "interval": cell.interval, "n": cell.n}
    return cell


def _csv(report: Report) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for finding in report.findings:
        for table in finding.tables:
            writer.writerows(map(_harmless, (finding.name, *line)) for line in _lines(table))
    return text.getvalue()


def _harmless(cell: Any) -> Any:
    """Text that no spreadsheet takes for a formula: titles and names are a stranger's, too."""
    return to_text(cell) if isinstance(cell, str) else cell


def _lines(table: Table) -> Iterator[tuple[Any, ...]]:
    for number, row in enumerate(table.rows, start=1):
        for column, cell in zip(table.columns, row):
            value = _value(cell)
            low, high = "", ""
            if isinstance(value, dict):
                low, high = value["interval"] or ("", "")
                value = value["value"]
            elif isinstance(value, list):
                (low, high), value = value, ""
            if value is not None and (value != "" or low != ""):
                yield (table.title, number, column.group, column.name, column.unit, value, low,
                       high)
