"""Formats values for terminal, Markdown and page, and fills in the quotes of sentences.

Sentences that people write quote numbers from findings, so that no number is typed. A quote stands
in braces, and " / " separates its parts:

    {fig5_rtt / 100 / improved: ms}          a cell: the finding, how its row begins, the column
    {load / IW 10 & 5 kB & 0.5 / saved, %}   the same, by several cells of the row
    {fig5_rtt / 100 / improved: % / 0}       with this many decimals, without sign or interval
    {load / IW 10 / saved, % / less|more}    a word for a number above zero, and one for below;
                                             zero itself has none
    {think / 3 / IW 3 / first word}          the first word of a text such as "421.5 (3)"
    {kb15 / How much IW 10 saves / 2}        the second number of the statement that begins so
    {kb15 / Who keeps IW3 / result}          the result of the claim that begins so
    {fig5_rtt / bars}                        how many of its published bars have each result
    {fig5_rtt + fig5_bw / bars}              the same for several figures together
    {photos + maps / statements}             how many of their statements have each result
    {zhao2019 / minutes}                     how long the run of the whole scenario took
    {zhao2019 / trials}                      how many trials it had

The name of a finding of another scenario begins with that scenario: {zhao2019.fig5_rtt / …}.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

from firstflight.base.errors import FirstFlightError
from firstflight.base.stats import Estimate
from firstflight.base.words import MINUS, UNKNOWN, format_interval, visible_line, format_number
from firstflight.findings import claims
from firstflight.findings.findings import (Cell, Column, Finding, Interval, Report, Rounded, Table,
                                           count_bars, count_statements, write_counts)


def written(cell: Cell, column: Column) -> str:
    """A cell as text, with the decimals of its column; a Rounded cell has its own.

    An Estimate is written as "1205 ± 3", with half of its interval, and an Interval as
    "1202 … 1208". Integers have no decimals, whatever the column has.
    """
    if isinstance(cell, Rounded):
        return _value(cell.value, cell.digits, cell.signed)
    return _value(cell, column.digits, column.signed)


def _value(value: str | int | float | Estimate | Interval | None, digits: int,
           signed: bool) -> str:
    """A cell's value as text, with `digits` decimals."""
    if value is None:
        return UNKNOWN
    if isinstance(value, str):
        return visible_line(value)
    if isinstance(value, bool):
        return str(value).lower()  # as in trials.csv
    if isinstance(value, int):
        return f"{value:{'+' if signed else ''}d}".replace("-", MINUS)

    if isinstance(value, Interval):
        return format_interval((value.low, value.high), digits)
    if isinstance(value, Estimate):
        text = format_number(value.value, digits, signed)
        if value.interval is None:
            return text
        low, high = value.interval
        return f"{text} ± {format_number((high - low) / 2, digits)}"
    return format_number(value, digits, signed)


def head(column: Column) -> str:
    """The head of a column in one line, such as "published: saved, ms"."""
    name = ", ".join(part for part in (column.name, column.unit) if part)
    return ": ".join(part for part in (column.group, name) if part)


def shortened(table: Table) -> str:
    """A note that a table shows only some of its rows; "" where it shows all."""
    if not table.hidden_rows:
        return ""
    shown = len(table.rows)
    total = shown + table.hidden_rows
    if table.picked:
        return f"The {shown} of {total} rows {table.picked}"
    return f"The first {shown} of {total} rows"


def counted(findings: Iterable[Finding], in_short: bool = False) -> list[str]:
    """Lines with how many published bars, held-out bars and statements have each result.

    in_short: leave out results that no bar has, as in "bars: 12 reproduced, 50 undecided".
    """
    every = list(findings)
    write_bars = write_counts if in_short else claims.summarize_counts
    lines = (("bars", write_bars(count_bars(every))),
             ("bars held out", write_bars(count_bars(every, held_out=True))),
             ("statements", write_counts(count_statements(every))))
    return [f"{what}: {counts}" for what, counts in lines if counts]


def counted_for_readers(findings: Iterable[Finding]) -> list[str]:
    """Lines like those of counted(), in which each result is explained where it occurs first."""
    every = list(findings)
    counts_of = {
        "published bars": count_bars(every),
        "published statements": count_statements(every),
        "bars held out (no parameter was chosen by them)": count_bars(every, held_out=True)}

    lines = []
    unexplained = dict(claims.MEANINGS)
    for what, counts in counts_of.items():
        total = counts.total()
        if not total:
            continue
        if total == 1:
            what = re.sub(r"(bar|statement)s", r"\1", what)
        lines.append(f"Of {total} {what}: {claims.explain_counts(counts, unexplained)}.")
        unexplained = {outcome: meaning for outcome, meaning in unexplained.items()
                       if not counts[outcome]}
    return lines


# Quotes --------------------------------------------------------------------------------

QUOTE = re.compile(r"\{([^{}]*)\}")
FIRST_WORD = "first word"


def quoted(text: str, reports: Iterable[Report]) -> str:
    """The text with its quotes filled in. Raises FirstFlightError where no finding has a quote.

    reports: the reports that the text may quote. It quotes a finding of the first report without
    the scenario's name.
    """
    findings: dict[str, Finding] = {}
    of_runs: dict[str, str] = {}  # the quotes of whole runs, with their texts
    for number, report in enumerate(reports):
        wall_s = report.facts.get("wall_s")
        of_runs[f"{report.name} / minutes"] = (
            str(math.ceil(wall_s / 60)) if isinstance(wall_s, (int, float)) else UNKNOWN)
        of_runs[f"{report.name} / trials"] = f"{report.count:,}"
        for finding in report.findings:
            findings[f"{report.name}.{finding.name}"] = finding
            if number == 0:
                findings.setdefault(finding.name, finding)
    return QUOTE.sub(lambda match: of_runs.get(match[1]) or _quote(match[1], findings), text)


def _quote(words: str, findings: dict[str, Finding]) -> str:
    """What stands in the place of one quote of findings. The module's docstring has the forms.

    words: the quote, without its braces. Raises FirstFlightError where no finding has it.
    """
    parts = words.split(" / ")
    if parts[1:] in (["bars"], ["statements"]):
        names = parts[0].split(" + ")
        known = [findings[name] for name in names if name in findings]
        counts = count_statements(known)
        if parts[1] == "bars":
            counts = count_bars(known) + count_bars(known, held_out=True)
        if counts and len(known) == len(names):
            listed = [f"{counts[outcome]} {outcome}" for outcome in claims.OUTCOMES
                      if counts[outcome]]
            return f"of {counts.total()}: {', '.join(listed)}"

    finding = findings.get(parts[0])
    if finding is not None and len(parts) == 3 and parts[2] == "result":
        for statement in finding.statements:
            if statement.outcome and statement.text.startswith(parts[1]):
                return statement.outcome
    if finding is not None and len(parts) == 3 and parts[2].isdecimal():
        place = int(parts[2])  # of the number in the statement; the first one has 1
        for statement in finding.statements:
            if statement.text.startswith(parts[1]) and 0 < place <= len(statement.numbers):
                quotable = statement.numbers[place - 1]
                return format_number(bare(quotable), quotable.digits)
    if finding is not None and len(parts) in (3, 4):
        for cell, column in _cells(finding, parts[1].split(" & "), parts[2]):
            return _formed(cell, parts[3], words) if parts[3:] else written(cell, column)
    raise FirstFlightError(f"{{{words}}}: there is no such finding")


def _cells(finding: Finding, row: list[str], name: str) -> Iterator[tuple[Cell, Column]]:
    """Each cell of a column in the rows that begin with the texts of `row`, with its column.

    name: the column's head, as head() writes it.
    """
    for table in finding.tables:
        for cells in table.rows:
            first_texts = [written(cell, column)
                           for cell, column in zip(cells[:len(row)], table.columns)]
            if first_texts == row:
                for cell, column in zip(cells, table.columns):
                    if head(column) == name:
                        yield cell, column


def _formed(cell: Cell, form: str, words: str) -> str:
    """A cell in the form that the last part of a quote names.

    words: the whole quote, for messages. Raises FirstFlightError where the cell has no such form.
    """
    value = bare(cell)
    if form == FIRST_WORD and isinstance(value, str) and value:
        return value.split()[0]
    if not isinstance(value, (int, float)):
        raise FirstFlightError(f"{{{words}}}: is not a number")
    above, _, below = form.partition("|")
    if below and value:
        return above if value > 0 else below
    if not form.isdecimal():
        raise FirstFlightError(f"{{{words}}}: {form!r} is not a form for {value:g}")
    return format_number(abs(value), int(form))


def bare(cell: Cell) -> Any:
    """The plain value of a cell: a number, a text or None, without an interval or decimals."""
    value = cell.value if isinstance(cell, Rounded) else cell
    return value.value if isinstance(value, Estimate) else value
