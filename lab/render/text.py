"""A report for the terminal: aligned columns, units in the head, nothing wider than WIDTH."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Sequence

from lab.core.findings import claims
from lab.core.findings.claims import in_full
from lab.core.findings.findings import Column, Finding, Report, Statement, Table
from lab.core.words import clean
from lab.render.cells import counted, shortened, written

WIDTH = 110  # characters; a table that needs more is hard to read in a terminal


def text(report: Report) -> str:
    """All that a run says, but for its trials and its provenance, which a page has.

    A part of a scenario does not speak for its claim, and leaves it out.
    """
    claim = [] if report.facts.get("partial") else [_wrapped(f"{report.name}: {report.claim}")]
    summary = ["\n".join(_wrapped(line, "    ") for line in report.summary)]
    counts = ["\n".join(counted(report.findings))]
    parts = [*claim, *summary, *map(_finding, report.findings), *counts]
    whole = "\n\n".join(part for part in parts if part)
    return "\n".join(clean(line).rstrip() for line in whole.split("\n")) + "\n"


def _finding(finding: Finding) -> str:
    """A table without a title of its own stands right under that of the finding."""
    parts = [f"{finding.name}: {finding.title}"]
    if finding.missing:
        parts[0] += f"\nno table: {finding.missing}"
    for table in finding.tables:
        if table.title not in ("", finding.title):
            parts.append(f"{table.title}\n{_table(table)}")
        elif len(parts) == 1:
            parts[0] += f"\n{_table(table)}"
        else:
            parts.append(_table(table))
    bars = claims.summary(finding.bars)
    if bars:
        parts[-1] += f"\n{bars}"
    return "\n\n".join([*parts, *map(_statement, finding.statements)])


def _statement(statement: Statement) -> str:
    """Such as "“What is said” Here: what was found → the word"."""
    if not statement.word:
        return _wrapped(f"{statement.says} {statement.found}", "  ")
    return _wrapped(f"“{statement.says}” Here: {statement.found} →"
                    f" {in_full(statement.word)}", "  ")


def _wrapped(paragraph: str, indent: str = "") -> str:
    return textwrap.fill(paragraph, WIDTH, subsequent_indent=indent, break_on_hyphens=False)


# Tables ------------------------------------------------------------------------------

def _table(table: Table) -> str:
    """As many of the columns as fit: of those that do not, the lowest rank goes first."""
    rows = [[written(cell, column) for cell, column in zip(row, table.columns)]
            for row in table.rows]
    kept = list(range(len(table.columns)))
    while True:
        lines = _aligned([table.columns[place] for place in kept],
                         [[row[place] for place in kept] for row in rows])
        lowest = min(table.columns[place].rank for place in kept)
        others = [place for place in kept if table.columns[place].rank > lowest]
        if not others or max(map(len, lines)) <= WIDTH:
            break
        kept = others
    notes = [*([f"{shortened(table)}."] if table.left_out else []), *table.notes]
    return "\n".join([*lines, *map(_wrapped, notes)])


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
