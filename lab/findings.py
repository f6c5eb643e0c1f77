"""Findings: what a scenario of any kind found, as tables and statements, and how they are written.

A scenario's analysis makes them once; the terminal, docs/RESULTS.md and the
report page all show the same ones.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lab.comparison import WORDS

WIDTH = 110  # characters of a terminal


@dataclass(frozen=True)
class Table:
    """Columns with their units, and rows of text, as long as the columns each."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(frozen=True)
class Statement:
    """What a source says, beside what was found, and one word for it.

    word: of lab.comparison (reproduced, direction only, not reproduced); ""
    where nothing is published: then `says` is the question and `found` the
    answer.
    """

    says: str
    found: str
    word: str = ""


@dataclass(frozen=True)
class Finding:
    """What belongs to one figure: its tables, and the statements that it settles.

    name: of the figure, figures/<scenario>_<name>.png.
    """

    name: str
    title: str
    tables: tuple[Table, ...]
    statements: tuple[Statement, ...] = ()


def words(findings: Iterable[Finding]) -> str:
    """How many statements got which word: "3 reproduced, 1 direction only"."""
    counted = Counter(statement.word for finding in findings
                      for statement in finding.statements if statement.word)
    return ", ".join(f"{counted[word]} {word}" for word in (*WORDS, *sorted(set(counted)
                                                            - set(WORDS))) if counted[word])


# The terminal ----------------------------------------------------------------

def as_text(findings: Sequence[Finding]) -> str:
    """All findings for a terminal."""
    parts = []
    for finding in findings:
        parts.append(f"{finding.name}: {finding.title}")
        parts += [_text_table(table) for table in finding.tables]
        parts += [_text_statement(statement) for statement in finding.statements]
    counted = words(findings)
    return "\n\n".join([*parts, *([f"statements: {counted}"] if counted else [])]) + "\n"


def _text_table(table: Table) -> str:
    widths = [max(map(len, cells)) for cells in zip(table.columns, *table.rows)]

    def line(cells: tuple[str, ...]) -> str:
        return "  ".join(cell.ljust(width) if number == 0 else cell.rjust(width)
                         for number, (cell, width) in enumerate(zip(cells, widths))).rstrip()

    head = [table.title] if table.title else []
    note = [textwrap.fill(table.note, WIDTH)] if table.note else []
    return "\n".join([*head, line(table.columns), *map(line, table.rows), *note])


def _text_statement(statement: Statement) -> str:
    return textwrap.fill(_sentence(statement), WIDTH, subsequent_indent="  ")


def _sentence(statement: Statement) -> str:
    """"“What is said”: what was found: word"."""
    if not statement.word:
        return f"{statement.says} {statement.found}"
    return f"“{statement.says}” Here: {statement.found} → {statement.word}"


# Markdown --------------------------------------------------------------------

def as_markdown(findings: Sequence[Finding], drawing: str = "") -> str:
    """All findings as sections of the third level, for docs/RESULTS.md.

    drawing: what the names of their figures begin with, "" to name none.
    """
    parts = []
    for finding in findings:
        parts.append(f"### {finding.name}: {finding.title}")
        parts += [f"Drawn in `{drawing}_{finding.name}.png`."] if drawing else []
        parts += [_markdown_table(table) for table in finding.tables]
        if finding.statements:
            parts.append("\n".join(
                f"- {_sentence(statement)}" if not statement.word else
                f"- “{statement.says}” Here: {statement.found} **{statement.word}**"
                for statement in finding.statements))
    return "\n\n".join(parts) + "\n"


def _markdown_table(table: Table) -> str:
    rule = "|".join(["---", *["--:"] * (len(table.columns) - 1)])
    lines = [f"| {' | '.join(cells)} |" for cells in (table.columns, *table.rows)]
    head = [f"**{table.title}**\n"] if table.title else []
    note = [f"\n{table.note}"] if table.note else []
    return "\n".join([*head, lines[0], f"|{rule}|", *lines[1:], *note])
