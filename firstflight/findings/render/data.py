"""Renders a report as data: the JSON of docs/results, and what --export writes (JSON, CSV)."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Union

from firstflight.base import reading
from firstflight.base.errors import FirstFlightError
from firstflight.base.stats import Estimate
from firstflight.base.words import escaped, to_cell
from firstflight.findings.charts import Chart, Line, LineChart, Plot
from firstflight.findings.findings import (Cell, Column, Finding, Interval, Report, Rounded,
                                           Statement, Table)
from firstflight.findings.render import markdown

# The classes that the JSON of docs/results may have.
KINDS = {kind.__name__: kind for kind in (
    Chart, Column, Estimate, Finding, Interval, Line, LineChart, Plot, Report, Rounded, Statement,
    Table)}
# The keys of run.json that the JSON of docs/results has.
FACTS = ("engine", "kernel", "machine", "virtual_time", "seed", "started_at", "finished_at",
         "emulated_s", "wall_s", "project", "partial")
Json = Union[None, bool, int, float, str, Sequence["Json"], Mapping[str, "Json"]]
KIND = "is"  # the key that names a value's class


def dumps(report: Report) -> str:
    """The JSON of what the Markdown page needs of a report.

    Numbers have all their digits. Each value has its own line.
    """
    facts = {name: report.facts[name] for name in FACTS if name in report.facts}
    findings = tuple(replace(finding, sentence="", answer=None,
                             chart=Chart("", ()) if finding.chart else None)
                     for finding in report.findings)
    small = Report(
        report.name, title=report.title, claim=report.claim, source=report.source,
        path=report.path, facts=facts, verified=report.verified, count=report.count,
        findings=findings, summary=report.summary, opening=report.opening)
    return escaped(json.dumps(_encoded(small), ensure_ascii=False, indent=0)) + "\n"


def loads(text: str) -> Report:
    """The report that dumps() wrote as this text. Raises ValueError, TypeError or LookupError."""
    report = _decoded(json.loads(text))
    if not isinstance(report, Report):
        raise ValueError("is not a report")
    return report


def read(path: Path) -> Report:
    """Read a report of docs/results. Raises FirstFlightError."""
    try:
        return loads(reading.content(path).decode("utf-8"))
    except OSError as error:
        raise FirstFlightError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, LookupError) as error:
        raise FirstFlightError(f"{path}: holds no findings: {error}") from error


def _encoded(value: object) -> Json:
    """A value as JSON.

    A dataclass becomes an object with the name of its class, which has to be in KINDS, and with
    the fields that differ from their defaults. Raises TypeError for values of any other class.
    """
    if is_dataclass(value):
        encoded: dict[str, Json] = {KIND: type(value).__name__}
        for field in fields(value):
            content = getattr(value, field.name)
            if content != field.default:
                encoded[field.name] = _encoded(content)
        return encoded

    if isinstance(value, Mapping):
        return {name: _encoded(item) for name, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_encoded(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"{type(value).__name__} is not kept")


def _decoded(value: Json) -> object:
    """The value that _encoded() turned into this JSON. Lists become tuples."""
    if isinstance(value, list):
        return tuple(map(_decoded, value))
    if not isinstance(value, dict):
        return value

    decoded = {name: _decoded(item) for name, item in value.items() if name != KIND}
    return KINDS[str(value[KIND])](**decoded) if KIND in value else decoded


# --export: JSON with provenance, CSV with a line for each value, or Markdown -----------

_UNITS = {"%": "percent", "kbit/s": "kbps"}  # how the names of a CSV's columns write units
# The columns of the CSV of findings. `value` is the cell's, and `row` its row's number from 1 on.
_COLUMNS = ("finding", "table", "row", "group", "column", "unit", "value", "low", "high")


def exported(form: str, report: Report) -> str:
    """The findings of a report as text. form: one of base.argument_types.EXPORTS."""
    forms: dict[str, Callable[[Report], str]] = {"json": _json, "md": markdown.chapter, "csv": _csv}
    return forms[form](report)


def _json(report: Report) -> str:
    """The report as JSON, with the values of its answer.

    An interval is [low, high], and an unknown value null.
    """
    return escaped(json.dumps({
        **report.answer.values, "answer": _in_a_sentence(report), "command": report.answer.command,
        "scenario": report.name, "title": report.title, "claim": report.claim,
        "source": report.source, "run": report.path, "verified": report.verified,
        "trials": report.count, "sentences": report.sentences,
        "provenance": {fact.name: fact.value for fact in report.provenance},
        "findings": [_finding(finding) for finding in report.findings]}, indent=1,
        ensure_ascii=False)) + "\n"


def _in_a_sentence(report: Report) -> str:
    """The answer's sentence. A run whose answer has none: the first sentence of the report."""
    sentences = [report.answer.sentence, *report.sentences, *report.summary]
    for finding in report.findings:
        sentences += [statement.measured for statement in finding.statements]
    return next(filter(None, sentences), "")


def _finding(finding: Finding) -> dict[str, Json]:
    """A finding as JSON. The keys are a format that programs read."""
    statements = [{"says": statement.text, "found": statement.measured, "word": statement.outcome}
                  for statement in finding.statements]
    return {"name": finding.name, "title": finding.title, "sentence": finding.sentence,
            "missing": finding.missing, "published": finding.published, "statements": statements,
            "tables": list(map(_table, finding.tables))}


def _table(table: Table) -> dict[str, Json]:
    """A table as JSON. The keys are a format that programs read."""
    columns = [{"name": column.name, "unit": column.unit, "group": column.group}
               for column in table.columns]
    rows: list[Json] = []
    for row in table.rows:
        rows.append([_value(cell) for cell in row])
    return {"title": table.title, "notes": table.notes, "left_out": table.hidden_rows,
            "columns": columns, "rows": rows}


def _value(cell: Cell) -> Json:
    """A cell as JSON: a plain value, [low, high] for an Interval, an object for an Estimate."""
    if isinstance(cell, Rounded):
        return _value(cell.value)
    if isinstance(cell, Interval):
        return [cell.low, cell.high]
    if isinstance(cell, Estimate):
        return {"value": cell.value, "interval": cell.interval, "n": cell.n}
    return cell


def _csv(report: Report) -> str:
    """The tables of all findings as CSV, with a line for each cell that has a value."""
    lines: list[Iterable[Json]] = [_COLUMNS]
    for finding in report.findings:
        for table in finding.tables:
            for line in _lines(table):
                lines.append(map(_harmless, (finding.name, *line)))
    return _csv_of(lines)


def _csv_of(rows: Iterable[Iterable[Json]]) -> str:
    """Rows of cells as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _harmless(cell: Json) -> Json:
    """The cell, changed so that no spreadsheet takes it for a formula.

    A stranger may have chosen titles and names.
    """
    return to_cell(cell) if isinstance(cell, str) else cell


def _lines(table: Table) -> Iterator[tuple[Json, ...]]:
    """The cells that have a value, each with the values of _COLUMNS, but for the finding's name."""
    for number, row in enumerate(table.rows, start=1):
        for column, cell in zip(table.columns, row):
            value, low, high = _bounded(cell)
            has_value = value is not None and (value != "" or low != "")
            if has_value:
                yield (table.title, number, column.group, column.name, column.unit, value, low,
                       high)


def _bounded(cell: Cell) -> tuple[Json, Json, Json]:
    """A cell's value and the two ends of its interval. What a cell lacks is ""."""
    if isinstance(cell, Rounded):
        return _bounded(cell.value)
    if isinstance(cell, Interval):
        return "", cell.low, cell.high
    if isinstance(cell, Estimate):
        low, high = cell.interval or ("", "")
        return cell.value, low, high
    return cell, "", ""


def table_csv(table: Table) -> str:
    """A whole table as CSV. The name of a column is followed by its unit and its group."""
    heads = []
    for column in table.columns:
        name = column.name.replace(" ", "_")
        unit = _UNITS.get(column.unit, column.unit)
        group = "" if column.group == "as seen" else column.group.replace(" ", "_")
        heads.append("_".join(filter(None, (name, unit, group))))
    return _csv_of([heads, *(map(_in_one_cell, row) for row in table.rows)])


def _in_one_cell(cell: Cell) -> Json:
    """A cell's value as one cell of a CSV file, without its interval.

    An Interval has no value: its two ends stand in one text.
    """
    value, low, high = _bounded(cell)
    if value == "" and low != "":
        return f"{low:.12g} … {high:.12g}"
    return f"{value:.12g}" if isinstance(value, float) else _harmless(value)
