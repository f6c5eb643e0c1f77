"""What a run comes to, for the terminal: a sentence, some rows, and what counts against it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from lab.core.errors import FirstFlightError
from lab.core.findings.findings import Answer, Cell, Finding, Report, Table
from lab.core.words import duration
from lab.render.placeholders import quoted
from lab.render.text import WIDTH, counted, lines_of, statement_text, table_text, wrapped

MOST_ROWS = 20
MOST_POINTS = 6  # of findings without a table of their own
MOST_FAILURES = 3
INDENT = "  "


def brief(report: Report, width: int = WIDTH) -> str:
    """The answer of a run, without any table that is longer than some 20 rows."""
    answer = answer_of(report)
    parts = [wrapped(_head(report), width, INDENT), *_paragraphs(answer.sentence, width)]
    if answer.table is not None and answer.table.rows:
        parts.append(_indented(table_text(replace(answer.table, title="", notes=()),
                                          width - len(INDENT))))
    elif not report.answer.sentence:
        points = _points(report, answer.sentence)
        parts += [line for point in points for line in _paragraphs(point, width)]
        if not points and not answer.sentence:
            parts += _first_table(report, width)
    for note in (*_failures(report), *answer.notes):
        parts += _paragraphs(note, width)
    if answer.command:
        parts.append(f"{INDENT * 2}{answer.command}")  # on one line, however long: it is copied
    for note in counted(report.findings):
        parts += _paragraphs(note, width)
    return lines_of("\n".join(parts))


def answer_of(report: Report) -> Answer:
    """The run's own answer; else the scenario's words, the first statement, or the claim."""
    answer = report.answer
    if answer.sentence:
        return answer
    answers = [statement_text(statement) for finding in report.findings
               for statement in finding.statements if not statement.word]
    missing = [finding.missing for finding in report.findings if finding.missing]
    nothing = missing[0] if missing and len(missing) == len(report.findings) else ""
    sentence = _opening(report) or next(iter(answers), "") or nothing or (
        "" if report.facts.get("partial") else f"Claim: {report.claim}")
    return replace(answer, sentence=sentence)


def _opening(report: Report) -> str:
    """The scenario's own words with their numbers; "" where this run lacks one of them."""
    try:
        return quoted(report.opening, [report])
    except FirstFlightError:
        return ""


def _head(report: Report) -> str:
    """Such as "zhao2019 · 128 of 128 transfers verified · 350 s of network in 1.9 s"."""
    parts = [report.name + (" (a part)" if report.facts.get("partial") else "")]
    if report.count:
        parts.append(f"{report.verified} of {report.count} trials verified")
    emulated_s, wall_s = (report.facts.get(name) for name in ("emulated_s", "wall_s"))
    if isinstance(emulated_s, (int, float)) and isinstance(wall_s, (int, float)) and emulated_s:
        parts.append(f"{duration(emulated_s)} of network in {duration(wall_s)}")
    return " · ".join(parts)


def _points(report: Report, said: str) -> list[str]:
    """What each finding shows, in a sentence; without one its statements."""
    points = [point for finding in report.findings if not finding.missing
              for point in _of_finding(finding) if said.split("? ")[-1] not in point or not said]
    more = len(points) - MOST_POINTS
    return [*points[:MOST_POINTS], *([f"… and {more} more"] if more > 0 else [])]


def _of_finding(finding: Finding) -> list[str]:
    if finding.sentence:
        return [f"{finding.title}: {finding.sentence}"]
    return list(map(statement_text, finding.statements))


def _failures(report: Report) -> list[str]:
    """Why trials do not count: the most frequent reasons, each with its number of trials."""
    failures: Table | None = report.failures
    if failures is None:
        return []
    first: dict[tuple[Cell, Cell], Cell] = {}  # of each reason its first trial
    for trial, *why in failures.rows:
        first.setdefault((why[0], why[1]), trial)
    counts = Counter((verdict, reason) for _, verdict, reason in failures.rows)
    shown = counts.most_common(MOST_FAILURES)
    more = len(failures.rows) + failures.left_out - sum(count for _, count in shown)
    return [f"{len(failures.rows) + failures.left_out} of {report.count} trials do not count:",
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
