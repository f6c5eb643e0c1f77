"""A report for the terminal: all of it with aligned tables, or the answer in brief."""

from __future__ import annotations

import itertools
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from firstflight.base.errors import FirstFlightError
from firstflight.base.words import visible_line, format_duration
from firstflight.findings import claims
from firstflight.findings.claims import in_full
from firstflight.findings.findings import (REQUESTED, Answer, Cell, Column, Finding, Report,
                                           Statement, Table)
from firstflight.findings.render.values import (counted, counted_for_readers, head, quoted,
                                                shortened, written)

WIDTH = 110  # characters; wider tables are hard to read in a terminal


def text(report: Report, width: int = WIDTH) -> str:
    """The whole report without its trials and provenance, which only the page has.

    A run of a part of a scenario does not test the scenario's claim, so it is left out.
    """
    parts = []
    if not report.facts.get("partial"):
        parts.append(wrapped(f"{report.name}: {report.claim}", width))
    parts.append("\n".join(wrapped(line, width, "    ") for line in report.summary))
    parts += [_finding(finding, width) for finding in report.findings
              if finding.missing or finding.tables or finding.statements]
    parts.append("\n".join(counted(report.findings)))
    return lines_of("\n\n".join(part for part in parts if part))


def lines_of(whole: str) -> str:
    """The text without invisible characters and spaces at line ends, with a newline at its end."""
    return "\n".join(visible_line(line).rstrip() for line in whole.split("\n")) + "\n"


def _finding(finding: Finding, width: int) -> str:
    """A finding's text. A table without its own title stands right below the finding's title."""
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
    parts += [wrapped(statement_text(statement), width, "  ") for statement in finding.statements]
    return "\n\n".join(parts)


def statement_text(statement: Statement) -> str:
    """A statement in one line, such as "“The claim” Here: what was measured → the result"."""
    if not statement.outcome:
        return f"{statement.text} {statement.measured}"
    return f"“{statement.text}” Here: {statement.measured} → {in_full(statement.outcome)}"


def wrapped(paragraph: str, width: int, indent: str = "", first: str = "") -> str:
    """The paragraph in lines. first: stands before the first line; indent: before the others."""
    return textwrap.fill(paragraph, width, initial_indent=first, subsequent_indent=indent,
                         break_on_hyphens=False)


# Tables ------------------------------------------------------------------------------

def table_text(table: Table, width: int) -> str:
    """The table with as many columns as fit.

    What is the same in all rows is said below it first. Then columns of the lowest rank go.
    """
    rows = [list(map(written, row, table.columns)) for row in table.rows]
    if table.wraps:
        rows = _wrapped(table.columns, rows, width)

    shown = list(range(len(table.columns)))
    same = _same_in_all_rows(table.columns, rows)
    told: list[int] = []
    while True:
        lines = _aligned(*_columns_at(shown, table.columns, rows))
        if max(map(len, lines)) <= width:
            break
        if same:
            told.append(same.pop(0))
            shown.remove(told[-1])
            continue
        lowest = min(table.columns[place].rank for place in shown)
        others = [place for place in shown if table.columns[place].rank > lowest]
        if not others:
            break
        shown = others

    notes = [f"{shortened(table)}."] if table.hidden_rows else []
    notes += table.notes
    equal = [_told(table.columns[place], rows[0][place]) for place in told]
    if equal:
        notes.append(f"In all rows: {'; '.join(equal)}.")
    hidden = [head(column) for place, column in enumerate(table.columns)
              if place not in (*shown, *told)]
    if hidden:
        notes.append(f"Too wide to show: {'; '.join(hidden)}.")
    return "\n".join([*lines, *(wrapped(note, width) for note in notes)])


def _columns_at(places: Sequence[int], columns: Sequence[Column], rows: Sequence[Sequence[str]]
                ) -> tuple[list[Column], list[list[str]]]:
    """The columns at these places, and the rows without the others."""
    shown = []
    for row in rows:
        shown.append([row[place] for place in places])
    return [columns[place] for place in places], shown


def _same_in_all_rows(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[int]:
    """The columns that have one value, by place; those that were requested come first.

    Of a single row only these: the others are its result.
    """
    same = []
    for place in range(len(columns)):
        values = {row[place] for row in rows}
        if len(values) == 1:
            same.append(place)
    requested = [place for place in same if columns[place].group == REQUESTED]
    others = [place for place in same if columns[place].group != REQUESTED]
    return [*requested, *(others if len(rows) > 1 else [])][:len(columns) - 1]


def _told(column: Column, value: str) -> str:
    """A column and its value in words, such as "RTT 80 ms"."""
    group = "" if column.group in ("", REQUESTED) else f"{column.group}: "
    unit = f" {column.unit}" if value[-1:].isdigit() else ""
    return f"{group}{column.name} {value}{unit}".rstrip()


def _wrapped(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int
             ) -> list[list[str]]:
    """Rows whose first cell is wrapped where a line would be too long."""
    others = 0
    for place in range(1, len(columns)):
        cells = [columns[place].name, *(row[place] for row in rows)]
        others += 2 + max(map(len, cells))

    wrapped_rows = []
    for row in rows:
        first, *further = textwrap.wrap(row[0], max(40, width - others)) or [""]
        wrapped_rows.append([first, *row[1:]])
        wrapped_rows += [[line, *[""] * (len(row) - 1)] for line in further]
    return wrapped_rows


def _aligned(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table: groups, names and units above, columns two spaces apart, numbers right."""
    heads = [[column.name for column in columns], [column.unit for column in columns]]
    heads = heads if any(heads[1]) else heads[:1]
    widths = [max(map(len, cells)) for cells in zip(*heads, *rows)]
    lines = _groups(columns, widths)
    for cells in (*heads, *rows):
        aligned = [cell.ljust(width) if column.is_text else cell.rjust(width)
                   for cell, width, column in zip(cells, widths, columns)]
        lines.append("  ".join(aligned).rstrip())
    return lines


def _groups(columns: Sequence[Column], widths: list[int]) -> list[str]:
    """A line with each group above its columns, [] without groups.

    Changes widths: the last column of a group that is too narrow is widened.
    """
    spans = []
    for group, places in itertools.groupby(range(len(columns)), lambda at: columns[at].group):
        own = list(places)
        width = sum(widths[place] for place in own) + 2 * (len(own) - 1)
        widths[own[-1]] += max(0, len(group) - width)
        spans.append(f" {group} ".center(width, "─") if 0 < len(group) <= width - 4
                     else group.center(width))
    line = "  ".join(spans).rstrip()
    return [line] if line else []


# In brief: the answer, some rows, and failures ------------------------------------------

MOST_ROWS = 20
MOST_POINTS = 6  # sentences or statements, where the report has no answer
MOST_FAILURES = 3
INDENT = "  "
INTERVALS = "± x: x is half of the 95 % interval."


def brief(report: Report, width: int = WIDTH) -> str:
    """The answer of a run, with tables of at most MOST_ROWS rows."""
    answer = answer_of(report)
    parts = [wrapped(_head(report), width, INDENT), *_paragraphs(answer.sentence, width),
             *_paragraphs(report.about, width)]
    if answer.table is not None and answer.table.rows:
        table = replace(answer.table, title="", notes=())
        parts.append(_indented(table_text(table, width - len(INDENT))))
    elif not report.answer.sentence:
        points = _points(report, answer.sentence)
        for point in points:
            parts += _paragraphs(point, width)
        if not points and not answer.sentence:
            parts += _first_table(report, width)

    for note in (*_failures(report), *answer.notes):
        parts += _paragraphs(note, width)
    if answer.command:
        # Each on one line, however long: it is copied.
        parts += [f"{INDENT * 2}{command}" for command in answer.command.splitlines()]
    for note in counted_for_readers(report.findings):
        parts += _paragraphs(note, width)
    if any(" ± " in part for part in parts):
        parts.append(f"{INDENT}{INTERVALS}")
    return lines_of("\n".join(parts))


def answer_of(report: Report) -> Answer:
    """The run's answer. Without one: the scenario's result, the first statement, or the claim."""
    answer = report.answer
    if answer.sentence:
        return answer
    answers = [statement_text(statement) for finding in report.findings
               for statement in finding.statements if not statement.outcome]
    missing = [finding.missing for finding in report.findings if finding.missing]
    nothing = missing[0] if missing and len(missing) == len(report.findings) else ""
    sentence = _opening(report) or next(iter(answers), "") or nothing or (
        "" if report.facts.get("partial") else f"Claim: {report.claim}")
    return replace(answer, sentence=sentence)


def some_not_drawn(report: Report) -> str:
    """The figures that this run cannot have beside those that it has, with the reasons, or ""."""
    if not any(finding.chart for finding in report.findings):
        return ""
    names: dict[str, list[str]] = {}
    for finding in report.findings:
        if finding.missing:
            names.setdefault(finding.missing, []).append(finding.name)
    reasons = (f"{', '.join(those)}: {reason}" for reason, those in names.items())
    return "".join(f"not drawn: {reason}\n" for reason in reasons)


def not_drawn(report: Report, folder: Path) -> str:
    """Why a run has no figure, and the command that draws one. folder: of the run."""
    if any(finding.chart for finding in report.findings):
        return f"No figure is drawn of this part of {report.name}: ./plot.py --run {folder} does."
    given = report.facts.get("arguments")
    words = [str(word) for word in given] if isinstance(given, list) else []
    windows = next((f" --iw {after}" for word, after in zip(words, words[1:]) if word == "--iw"),
                   "")
    return (f"No figure is drawn: those of {report.name} have no bar at these values."
            f" ./run.sh {report.name}{windows} draws them.")


def _opening(report: Report) -> str:
    """The scenario's result with its numbers; "" where this run lacks one of them."""
    try:
        return quoted(report.opening, [report])
    except FirstFlightError:
        return ""


def _head(report: Report) -> str:
    """The first line, such as "zhao2019 · 128 of 128 trials verified · 350 s of network in 1.9 s".
    """
    parts = [report.name + (" (a part)" if report.facts.get("partial") else "")]
    if report.count:
        parts.append(f"{report.verified} of {report.count} trials verified")
    emulated_s, wall_s = (report.facts.get(name) for name in ("emulated_s", "wall_s"))
    if isinstance(emulated_s, (int, float)) and isinstance(wall_s, (int, float)) and emulated_s:
        parts.append(f"{format_duration(emulated_s)} of network in {format_duration(wall_s)}")
    return " · ".join(parts)


def _points(report: Report, sentence: str) -> list[str]:
    """The sentence of each finding, or its statements, without those in `sentence` already."""
    points = [point for finding in report.findings if not finding.missing
              for point in ([f"{finding.title}: {finding.sentence}"] if finding.sentence else
                            map(statement_text, finding.statements))
              if not sentence or sentence.split("? ")[-1] not in point]
    more = len(points) - MOST_POINTS
    return [*points[:MOST_POINTS], *([f"… and {more} more"] if more > 0 else [])]


def _failures(report: Report) -> list[str]:
    """The most frequent reasons why trials do not count, each with its number of trials."""
    failures: Table | None = report.failures
    if failures is None:
        return []
    first: dict[tuple[Cell, Cell], Cell] = {}  # by reason: its first trial
    for trial, *why in failures.rows:
        first.setdefault((why[0], why[1]), trial)
    counts = Counter((verdict, reason) for _, verdict, reason in failures.rows)
    shown = counts.most_common(MOST_FAILURES)
    more = len(failures.rows) + failures.hidden_rows - sum(count for _, count in shown)
    return [f"{len(failures.rows) + failures.hidden_rows} of {report.count} trials do not count:",
            *(f"- {verdict}{f', {count} trials' if count > 1 else ''}: {reason}"
              f" ({'first ' if count > 1 else ''}{first[verdict, reason]})"
              for (verdict, reason), count in shown),
            *([f"… and {more} more; the page has all of them"] if more > 0 else [])]


def _first_table(report: Report, width: int) -> list[str]:
    tables = (table for finding in report.findings for table in finding.tables)
    return [_indented(table_text(replace(table, notes=()).first(MOST_ROWS), width - len(INDENT)))
            for table in tables if table.rows][:1]


def _paragraphs(text: str, width: int) -> list[str]:
    return [wrapped(text, width, INDENT * 2, INDENT)] if text else []


def _indented(text: str) -> str:
    return "\n".join(f"{INDENT}{line}" for line in text.split("\n"))
