"""Renders a report for the terminal: the whole report with its tables, or its answer in brief."""

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

WIDTH = 110  # characters of a line; wider tables are hard to read in a terminal


def text(report: Report, width: int = WIDTH) -> str:
    """The whole report without the table of trials and the provenance, which only the page has.

    The claim is left out for a run of a part of its scenario, which does not test the claim.
    """
    parts = []
    if not report.facts.get("partial"):
        parts.append(wrapped(f"{report.name}: {report.claim}", width))
    parts.append("\n".join(wrapped(line, width, "    ") for line in report.summary))
    parts += [_finding(finding, width) for finding in report.findings
              if finding.missing or finding.tables or finding.statements]
    parts.append("\n".join(counted(report.findings)))
    return clean_lines("\n\n".join(part for part in parts if part))


def clean_lines(rendered: str) -> str:
    """The text without invisible characters and spaces at line ends, with a newline at its end."""
    return "\n".join(visible_line(line).rstrip() for line in rendered.split("\n")) + "\n"


def _finding(finding: Finding, width: int) -> str:
    """A finding's title, tables and statements.

    A table without a title of its own stands right below the finding's title.
    """
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

    counts_of_bars = claims.summarize_counts(finding.bars)
    if counts_of_bars:
        parts[-1] += f"\n{counts_of_bars}"
    parts += [wrapped(statement_text(statement), width, "  ") for statement in finding.statements]
    return "\n\n".join(parts)


def statement_text(statement: Statement) -> str:
    """A statement in one line, such as "“The claim” Here: what was measured → the result"."""
    if not statement.outcome:
        return f"{statement.text} {statement.measured}"
    return f"“{statement.text}” Here: {statement.measured} → {in_full(statement.outcome)}"


def wrapped(paragraph: str, width: int, indent: str = "", first_indent: str = "") -> str:
    """The paragraph in lines of at most `width` characters.

    first_indent stands before the first line, and indent before every other line.
    """
    return textwrap.fill(paragraph, width, initial_indent=first_indent, subsequent_indent=indent,
                         break_on_hyphens=False)


# Tables ------------------------------------------------------------------------------

def table_text(table: Table, width: int) -> str:
    """The table with as many columns as fit into the width.

    Where they do not all fit, a column with one value in all rows goes first: a note below the
    table has this value. Then columns of the lowest rank go.
    """
    rows = [list(map(written, row, table.columns)) for row in table.rows]
    if table.wraps:
        rows = _wrapped(table.columns, rows, width)

    # Three lists of columns, by their index in the table.
    shown = list(range(len(table.columns)))
    constant = _constant_columns(table.columns, rows)
    in_a_note: list[int] = []
    while True:
        lines = _aligned(*_columns_at(shown, table.columns, rows))
        if max(map(len, lines)) <= width:
            break

        if constant:
            in_a_note.append(constant.pop(0))
            shown.remove(in_a_note[-1])
            continue

        lowest = min(table.columns[index].rank for index in shown)
        of_higher_rank = [index for index in shown if table.columns[index].rank > lowest]
        if not of_higher_rank:
            break
        shown = of_higher_rank

    notes = [f"{shortened(table)}."] if table.hidden_rows else []
    notes += table.notes
    constants = [_name_and_value(table.columns[index], rows[0][index]) for index in in_a_note]
    if constants:
        notes.append(f"In all rows: {'; '.join(constants)}.")
    hidden = [head(column) for index, column in enumerate(table.columns)
              if index not in (*shown, *in_a_note)]
    if hidden:
        notes.append(f"Too wide to show: {'; '.join(hidden)}.")
    return "\n".join([*lines, *(wrapped(note, width) for note in notes)])


def _columns_at(indices: Sequence[int], columns: Sequence[Column], rows: Sequence[Sequence[str]]
                ) -> tuple[list[Column], list[list[str]]]:
    """The columns with these indices, and the cells of every row in these columns."""
    shown = []
    for row in rows:
        shown.append([row[index] for index in indices])
    return [columns[index] for index in indices], shown


def _constant_columns(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[int]:
    """The columns with one value in all rows, by index: requested columns, then measured ones.

    In a table of a single row only requested columns count: the measured ones are its result. At
    least one column of the table is not in the list.
    """
    constant = []
    for index in range(len(columns)):
        values = {row[index] for row in rows}
        if len(values) == 1:
            constant.append(index)
    requested = [index for index in constant if columns[index].group == REQUESTED]
    measured = [index for index in constant if columns[index].group != REQUESTED]

    in_order = [*requested, *measured] if len(rows) > 1 else requested
    return in_order[:len(columns) - 1]


def _name_and_value(column: Column, value: str) -> str:
    """A column and its value in words, such as "RTT 80 ms"."""
    group = "" if column.group in ("", REQUESTED) else f"{column.group}: "
    unit = f" {column.unit}" if value[-1:].isdigit() else ""
    return f"{group}{column.name} {value}{unit}".rstrip()


def _wrapped(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int
             ) -> list[list[str]]:
    """The rows, each as several rows where its first cell is too long for the width.

    The first of these rows has the other cells.
    """
    width_of_others = 0
    for index in range(1, len(columns)):
        cells = [columns[index].name, *(row[index] for row in rows)]
        width_of_others += 2 + max(map(len, cells))  # two spaces between columns

    wrapped_rows = []
    for row in rows:
        lines = textwrap.wrap(row[0], max(40, width - width_of_others)) or [""]
        wrapped_rows.append([lines[0], *row[1:]])
        empty_cells = [""] * (len(row) - 1)
        for line in lines[1:]:
            wrapped_rows.append([line, *empty_cells])
    return wrapped_rows


def _aligned(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table: groups, names and units, then the rows.

    Columns are two spaces apart. Texts are aligned left, and numbers right.
    """
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
    """A line with each group above its columns; [] without groups.

    Changes widths: where a group's name is wider than its columns, its last column is widened.
    """
    spans = []
    for group, indices in itertools.groupby(range(len(columns)), lambda at: columns[at].group):
        in_group = list(indices)
        # Two spaces stand between columns.
        width = sum(widths[index] for index in in_group) + 2 * (len(in_group) - 1)
        widths[in_group[-1]] += max(0, len(group) - width)

        # A rule on each side needs at least a dash and a space.
        has_rule = 0 < len(group) <= width - 4
        spans.append(f" {group} ".center(width, "─") if has_rule else group.center(width))
    line = "  ".join(spans).rstrip()
    return [line] if line else []


# In brief: the answer, some rows, and failures ------------------------------------------

MOST_ROWS = 20
MOST_POINTS = 6  # sentences or statements of a report without an answer
MOST_FAILURES = 3  # reasons why trials do not count
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
        # A command is copied, so it has one line, however long.
        parts += [f"{INDENT * 2}{command}" for command in answer.command.splitlines()]
    for note in counted_for_readers(report.findings):
        parts += _paragraphs(note, width)
    if any(" ± " in part for part in parts):
        parts.append(f"{INDENT}{INTERVALS}")
    return clean_lines("\n".join(parts))


def answer_of(report: Report) -> Answer:
    """The run's answer. One without a sentence gets the first that there is of these:

    the scenario's result in words, the answer to the first question, why no figure can be shown,
    and for a run of the whole scenario its claim.
    """
    answer = report.answer
    if answer.sentence:
        return answer
    answers = [statement_text(statement) for finding in report.findings
               for statement in finding.statements if not statement.outcome]
    first_answer = answers[0] if answers else ""

    missing = [finding.missing for finding in report.findings if finding.missing]
    has_no_figure = missing and len(missing) == len(report.findings)
    why_no_figure = missing[0] if has_no_figure else ""

    claim = "" if report.facts.get("partial") else f"Claim: {report.claim}"
    sentence = _opening(report) or first_answer or why_no_figure or claim
    return replace(answer, sentence=sentence)


def some_not_drawn(report: Report) -> str:
    """A line for each reason why some figures are not drawn, with the names of these figures.

    "" where all are drawn, or none.
    """
    if not any(finding.chart for finding in report.findings):
        return ""
    names: dict[str, list[str]] = {}
    for finding in report.findings:
        if finding.missing:
            names.setdefault(finding.missing, []).append(finding.name)
    return "".join(f"not drawn: {', '.join(names_of_one)}: {reason}\n"
                   for reason, names_of_one in names.items())


def not_drawn(report: Report, folder: Path) -> str:
    """Why no figure of a run is drawn, and the command that draws one.

    folder: the run's.
    """
    if any(finding.chart for finding in report.findings):
        return f"No figure is drawn of this part of {report.name}: ./plot.py --run {folder} does."

    arguments = report.facts.get("arguments")
    words = [str(word) for word in arguments] if isinstance(arguments, list) else []
    windows = ""
    if "--iw" in words[:-1]:
        windows = f" --iw {words[words.index('--iw') + 1]}"
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
    """The sentence of each finding, or its statements, without what `sentence` says already."""
    points = []
    for finding in report.findings:
        if finding.missing:
            continue
        if finding.sentence:
            points.append(f"{finding.title}: {finding.sentence}")
        else:
            points += map(statement_text, finding.statements)

    # The sentence may be a question with its answer.
    answer = sentence.split("? ")[-1]
    new = [point for point in points if not answer or answer not in point]
    hidden = len(new) - MOST_POINTS
    return [*new[:MOST_POINTS], *([f"… and {hidden} more"] if hidden > 0 else [])]


def _failures(report: Report) -> list[str]:
    """Lines with the most frequent reasons why trials do not count, and how many have each."""
    failures: Table | None = report.failures
    if failures is None:
        return []

    first_trials: dict[tuple[Cell, Cell], Cell] = {}  # by verdict and reason
    for trial, verdict, reason in failures.rows:
        first_trials.setdefault((verdict, reason), trial)
    counts = Counter((verdict, reason) for _, verdict, reason in failures.rows)
    shown = counts.most_common(MOST_FAILURES)

    failed = len(failures.rows) + failures.hidden_rows
    lines = [f"{failed} of {report.count} trials do not count:"]
    for (verdict, reason), count in shown:
        first_trial = first_trials[verdict, reason]
        if count > 1:
            lines.append(f"- {verdict}, {count} trials: {reason} (first {first_trial})")
        else:
            lines.append(f"- {verdict}: {reason} ({first_trial})")

    hidden = failed - sum(count for _, count in shown)
    if hidden > 0:
        lines.append(f"… and {hidden} more; the page has all of them")
    return lines


def _first_table(report: Report, width: int) -> list[str]:
    """The first rows of the first table that has any; [] without one."""
    for finding in report.findings:
        for table in finding.tables:
            if table.rows:
                first_rows = replace(table, notes=()).first(MOST_ROWS)
                return [_indented(table_text(first_rows, width - len(INDENT)))]
    return []


def _paragraphs(text: str, width: int) -> list[str]:
    return [wrapped(text, width, INDENT * 2, INDENT)] if text else []


def _indented(text: str) -> str:
    return "\n".join(f"{INDENT}{line}" for line in text.split("\n"))
