"""A report for the terminal: aligned columns, units in the head, nothing wider than requested."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Iterable, Sequence

from lab.core.findings import claims
from lab.core.findings.claims import in_full
from lab.core.findings.findings import (Cell, Column, Finding, Interval, Report, Rounded, Statement,
                                        Table, bars, listed, words)
from lab.core.stats import Estimate
from lab.core.words import MINUS, UNKNOWN, between, clean, number

WIDTH = 110  # characters; a table that needs more is hard to read in a terminal


def text(report: Report, width: int = WIDTH) -> str:
    """All that a run says, but for its trials and its provenance, which a page has.

    A part of a scenario does not speak for its claim, and leaves it out.
    """
    claim = ([] if report.facts.get("partial") else
             [wrapped(f"{report.name}: {report.claim}", width)])
    summary = ["\n".join(wrapped(line, width, "    ") for line in report.summary)]
    counts = ["\n".join(counted(report.findings))]
    parts = [*claim, *summary, *(_finding(finding, width) for finding in report.findings
                                 if finding.missing or finding.tables or finding.statements),
             *counts]
    return lines_of("\n\n".join(part for part in parts if part))


def lines_of(whole: str) -> str:
    """Lines without what is not to be seen, the last one ended."""
    return "\n".join(clean(line).rstrip() for line in whole.split("\n")) + "\n"


def _finding(finding: Finding, width: int) -> str:
    """A table without a title of its own is right under that of the finding."""
    parts = [f"{finding.name}: {finding.title}"]
    if finding.missing:
        parts[0] += f"\nno table: {finding.missing}"
    for table in finding.tables:
        if table.title not in ("", finding.title):
            parts.append(f"{table.title}\n{table_text(table, width)}")
        elif len(parts) == 1:
            parts[0] += f"\n{table_text(table, width)}"
        else:
            parts.append(table_text(table, width))
    bars = claims.summary(finding.bars)
    if bars:
        parts[-1] += f"\n{bars}"
    return "\n\n".join([*parts, *(wrapped(statement_text(each), width, "  ")
                                  for each in finding.statements)])


def statement_text(statement: Statement) -> str:
    """Such as "“What is said” Here: what was found → the word"."""
    if not statement.word:
        return f"{statement.says} {statement.found}"
    return f"“{statement.says}” Here: {statement.found} → {in_full(statement.word)}"


def wrapped(paragraph: str, width: int, indent: str = "", first: str = "") -> str:
    """first: before the first line, indent: before the others."""
    return textwrap.fill(paragraph, width, initial_indent=first, subsequent_indent=indent,
                         break_on_hyphens=False)


# Tables ------------------------------------------------------------------------------

def table_text(table: Table, width: int) -> str:
    """As many of the columns as fit: of those that do not, the lowest rank goes first."""
    rows = [[written(cell, column) for cell, column in zip(row, table.columns)]
            for row in table.rows]
    kept = list(range(len(table.columns)))
    while True:
        lines = _aligned([table.columns[place] for place in kept],
                         [[row[place] for place in kept] for row in rows])
        lowest = min(table.columns[place].rank for place in kept)
        others = [place for place in kept if table.columns[place].rank > lowest]
        if not others or max(map(len, lines)) <= width:
            break
        kept = others
    hidden = [head(column) for place, column in enumerate(table.columns) if place not in kept]
    notes = [*([f"{shortened(table)}."] if table.left_out else []), *table.notes,
             *([f"Too wide to show: {'; '.join(hidden)}."] if hidden else [])]
    return "\n".join([*lines, *(wrapped(note, width) for note in notes)])


def _aligned(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns two spaces apart under their groups, names and units, numbers to the right."""
    heads = [[column.name for column in columns], [column.unit for column in columns]]
    heads = heads if any(heads[1]) else heads[:1]
    widths = [max(map(len, cells)) for cells in zip(*heads, *rows)]
    groups = _groups(columns, widths)
    return [*groups, *("  ".join(
        cell.ljust(width) if column.is_text else cell.rjust(width)
        for cell, width, column in zip(line, widths, columns)).rstrip()
        for line in (*heads, *rows))]


def _groups(columns: Sequence[Column], widths: list[int]) -> list[str]:
    """A line with each group over its columns, [] without groups; widens what is too narrow."""
    spans = []
    for group, places in itertools.groupby(range(len(columns)), lambda at: columns[at].group):
        own = list(places)
        width = sum(widths[place] for place in own) + 2 * (len(own) - 1)
        widths[own[-1]] += max(0, len(group) - width)
        spans.append(f" {group} ".center(width, "─") if 0 < len(group) <= width - 4
                     else group.center(width))
    line = "  ".join(spans).rstrip()
    return [line] if line else []


# How a value becomes text: here, in Markdown and on a page ---------------------------

def written(cell: Cell, column: Column) -> str:
    """A cell as its column, or its Rounded, has numbers written.

    An Estimate is "1205 ± 3", half of its interval, and an Interval
    "1202 … 1208". Whole numbers have no decimals whatever the column says.
    """
    if isinstance(cell, Rounded):
        return _value(cell.value, cell.digits, cell.signed)
    return _value(cell, column.digits, column.signed)


def _value(value: str | int | float | Estimate | Interval | None, digits: int,
           signed: bool) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, bool):
        return str(value).lower()  # as in trials.csv
    if isinstance(value, int):
        return f"{value:{'+' if signed else ''}d}".replace("-", MINUS)
    if isinstance(value, Interval):
        return between((value.low, value.high), digits)
    if isinstance(value, Estimate):
        text = number(value.value, digits, signed)
        if value.interval is None:
            return text
        low, high = value.interval
        return f"{text} ± {number((high - low) / 2, digits)}"
    return number(value, digits, signed)


def head(column: Column) -> str:
    """Such as "published: saved, ms"."""
    name = ", ".join(part for part in (column.name, column.unit) if part)
    return ": ".join(part for part in (column.group, name) if part)


def shortened(table: Table) -> str:
    """That a table shows its first rows only; "" where it shows all."""
    shown = len(table.rows)
    return f"The first {shown} of {shown + table.left_out} rows" if table.left_out else ""


def counted(findings: Iterable[Finding]) -> list[str]:
    """How many published bars and how many statements have which result; held out ones apart."""
    found = list(findings)
    counted = (("bars", claims.summary(bars(found))),
               ("bars held out", claims.summary(bars(found, held_out=True))),
               ("statements", listed(words(found))))
    return [f"{what}: {how_many}" for what, how_many in counted if how_many]
