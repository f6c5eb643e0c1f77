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

A finding of another scenario has that name in front: {zhao2019.fig5_rtt / …}.
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
                                           bars, listed, outcome_counts)


def written(cell: Cell, column: Column) -> str:
    """A cell as text, with the decimals of its column or of its own (Rounded).

    An Estimate is "1205 ± 3", with half of its interval, and an Interval "1202 … 1208". Integers
    have no decimals, whatever the column has.
    """
    if isinstance(cell, Rounded):
        return _value(cell.value, cell.digits, cell.signed)
    return _value(cell, column.digits, column.signed)


def _value(value: str | int | float | Estimate | Interval | None, digits: int,
           signed: bool) -> str:
    """A cell's value as a text, with so many decimals."""
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
    shown, every = len(table.rows), len(table.rows) + table.hidden_rows
    return (f"The {shown} of {every} rows {table.picked}" if table.picked else
            f"The first {shown} of {every} rows")


def counted(findings: Iterable[Finding], in_short: bool = False) -> list[str]:
    """Lines with how many published bars, held-out bars and statements have each result.

    in_short: without the results that none has, "bars: 12 reproduced, 50 undecided".
    """
    every, of_bars = list(findings), listed if in_short else claims.summary
    lines = (("bars", of_bars(bars(every))), ("bars held out", of_bars(bars(every, held_out=True))),
             ("statements", listed(outcome_counts(every))))
    return [f"{what}: {how_many}" for what, how_many in lines if how_many]


def counted_for_readers(findings: Iterable[Finding]) -> list[str]:
    """The same for new readers: each result is explained where it occurs first."""
    every, lines = list(findings), []
    unexplained = dict(claims.MEANINGS)
    for what, counted in (
            ("published bars", bars(every)), ("published statements", outcome_counts(every)),
            ("bars held out (no parameter was chosen by them)", bars(every, held_out=True))):
        if total := sum(counted.values()):
            what = what if total > 1 else re.sub(r"(bar|statement)s", r"\1", what)
            lines.append(f"Of {total} {what}: {claims.explained(counted, unexplained)}.")
        for word in [word for word in unexplained if counted.get(word)]:
            del unexplained[word]
    return lines


# Quotes --------------------------------------------------------------------------------

QUOTE = re.compile(r"\{([^{}]*)\}")
FIRST_WORD = "first word"


def quoted(text: str, reports: Iterable[Report]) -> str:
    """The text with its quotes filled in. Raises FirstFlightError where one cannot be.

    reports: the reports that it may quote. Findings of the first one need no scenario's name.
    """
    findings: dict[str, Finding] = {}
    of_runs: dict[str, str] = {}
    for report in reports:
        own = not of_runs
        wall_s = report.facts.get("wall_s")
        of_runs[f"{report.name} / minutes"] = (
            str(math.ceil(wall_s / 60)) if isinstance(wall_s, (int, float)) else UNKNOWN)
        of_runs[f"{report.name} / trials"] = f"{report.count:,}"
        for finding in report.findings:
            findings[f"{report.name}.{finding.name}"] = finding
            if own:
                findings.setdefault(finding.name, finding)
    return QUOTE.sub(lambda match: of_runs.get(match[1]) or _quote(match[1], findings), text)


def _quote(words: str, findings: dict[str, Finding]) -> str:
    parts = words.split(" / ")
    if parts[1:] in (["bars"], ["statements"]):
        quoted = [findings.get(name) for name in parts[0].split(" + ")]
        known = [finding for finding in quoted if finding is not None]
        counts = outcome_counts(known)
        if parts[1] == "bars":
            counts = bars(known) + bars(known, held_out=True)
        if counts and None not in quoted:
            listed = [f"{counts[outcome]} {outcome}" for outcome in claims.OUTCOMES
                      if counts[outcome]]
            return f"of {sum(counts.values())}: {', '.join(listed)}"

    finding = findings.get(parts[0])
    if finding is not None and len(parts) == 3 and parts[2] == "result":
        for statement in finding.statements:
            if statement.outcome and statement.text.startswith(parts[1]):
                return statement.outcome
    if finding is not None and len(parts) == 3 and parts[2].isdecimal():
        for statement in finding.statements:
            if statement.text.startswith(parts[1]) and 0 < int(parts[2]) <= len(statement.numbers):
                quotable = statement.numbers[int(parts[2]) - 1]
                return format_number(bare(quotable), quotable.digits)
    if finding is not None and len(parts) in (3, 4):
        for cell, column in _cells(finding, parts[1].split(" & "), parts[2]):
            return _formed(cell, parts[3], words) if parts[3:] else written(cell, column)
    raise FirstFlightError(f"{{{words}}}: there is no such finding")


def _cells(finding: Finding, row: list[str], name: str) -> Iterator[tuple[Cell, Column]]:
    """The cells of a column, by its head, in the rows that begin with these cells."""
    for table in finding.tables:
        for cells in table.rows:
            known = list(zip(cells, table.columns))
            if [written(*pair) for pair in known[:len(row)]] == row:
                yield from (pair for pair in known if head(pair[1]) == name)


def _formed(cell: Cell, form: str, words: str) -> str:
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
    """The plain value of a cell, without an interval and decimals of its own."""
    value = cell.value if isinstance(cell, Rounded) else cell
    return value.value if isinstance(value, Estimate) else value
