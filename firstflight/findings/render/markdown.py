"""Renders reports as Markdown: the pages of docs/results, and docs/GALLERY.md."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from firstflight.base.errors import FirstFlightError
from firstflight.base.words import visible_line
from firstflight.findings import claims
from firstflight.findings.claims import in_full
from firstflight.findings.findings import Finding, Report, Statement, Table
from firstflight.findings.render.values import counted, head, quoted, shortened, written

UNRENDERED = "The result cannot be rendered"


def _in_one_sentence(report: Report) -> str:
    """The first sentence of the scenario's result, else its claim."""
    result = _opening(report)[0] if report.opening else escaped(report.claim)
    return re.split(r"(?<=[.!?]) (?=[A-Z])", result, maxsplit=1)[0]


def page(report: Report, index: str, pictures: Sequence[str] = ()) -> str:
    """The page of a scenario.

    index, pictures: paths of the list of all results and of the drawings, relative to the page.
    """
    return f"[All results, and what the words mean]({index})\n\n{chapter(report, pictures)}"


def chapter(report: Report, pictures: Sequence[str] = ()) -> str:
    """One run as a Markdown document, which ends in a newline.

    pictures: paths of the drawings. Readers who cannot see them get the claim as their text.
    """
    verified = (_joined([line.strip().rstrip(".") for line in report.summary])
                or f"{report.verified} of {report.count} trials verified")
    counts = [f"{line[0].upper()}{escaped(line[1:])}." for line in counted(report.findings)]
    parts = [f"# {escaped(report.name)}",
             f"{escaped(report.title)}. {escaped(report.source)}.", escaped(report.claim),
             *_opening(report), *(f"![{escaped(report.claim)}]({picture})" for picture in pictures),
             f"{_run(report)}; {escaped(verified)}.", *counts]
    for finding in report.findings:
        parts += section(report.name, finding)
    return "\n\n".join(parts) + "\n"


def _joined(lines: Sequence[str]) -> str:
    """Lines joined to one text: ". " before those that begin a sentence, "; " before others."""
    return "".join(lines[:1]) + "".join(
        f"{'. ' if line[:1].isupper() else '; '}{line}" for line in lines[1:])


def _opening(report: Report) -> list[str]:
    """The scenario's result with its numbers, or why it cannot be rendered; [] for none."""
    if not report.opening:
        return []
    try:
        return [escaped(quoted(report.opening, [report]))]
    except FirstFlightError as error:
        return [f"{UNRENDERED}: {escaped(str(error))}."]


def _run(report: Report) -> str:
    """The run behind the numbers, in words."""
    facts = report.facts
    project = facts.get("project")
    parts = [f"finished {facts.get('finished_at', 'at an unknown time')}",
             f"engine {facts.get('engine')}", f"kernel {report.kernel or 'unknown'}"]
    if isinstance(project, dict) and project.get("commit"):
        parts.append(f"commit {str(project['commit'])[:12]}"
                     + (" with changes" if project.get("changed") else ""))
    if facts.get("wall_s") is not None:
        parts.append(f"{facts.get('emulated_s')} s of emulated time in {facts['wall_s']} s")
    return f"Run {code(report.path)}, {escaped(', '.join(parts))}"


def section(scenario: str, finding: Finding) -> list[str]:
    """The paragraphs of a finding's section."""
    parts = [f"## {escaped(finding.name)}: {escaped(finding.title)}"]
    if finding.missing:
        parts.append(f"Not available: {escaped(finding.missing)}.")

    counts_of_bars = claims.summarize_counts(finding.bars)
    sentences = [f"{counts_of_bars}."] if counts_of_bars else []
    if finding.chart is not None:
        sentences.append(f"Drawn in {code(f'figures/{scenario}_{finding.name}.png')}.")
    if sentences:
        parts.append(" ".join(sentences))

    for table in finding.tables:
        parts += _table(table, finding.title)
    if finding.statements:
        parts.append("\n".join(map(_statement, finding.statements)))
    if finding.published:
        parts.append(f"Published: {escaped(finding.published)}.")
    return parts


def _statement(statement: Statement) -> str:
    if not statement.outcome:
        return f"- {escaped(statement.text)} {escaped(statement.measured)}"
    return (f"- “{escaped(statement.text)}” Here: {escaped(statement.measured)}"
            f" **{escaped(in_full(statement.outcome))}**")


def _table(table: Table, title_above: str) -> list[str]:
    """The paragraphs of a table: its title, its rows and its notes.

    title_above: the section's title. A table with the same title does not repeat it.
    """
    title = [f"**{escaped(table.title)}**"] if table.title not in ("", title_above) else []
    rule = "|".join("---" if column.is_text else "--:" for column in table.columns)
    lines = [_row(map(head, table.columns)), f"|{rule}|"]
    for row in table.rows:
        lines.append(_row(map(written, row, table.columns)))
    notes = [f"{shortened(table)}."] if table.hidden_rows else []
    notes += table.notes
    return [*title, "\n".join(lines), *map(escaped, notes)]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(escaped, cells))} |"


def escaped(text: str) -> str:
    """Text with Markdown's special characters escaped.

    A reader sees the text as it is: no part of it becomes HTML, a formula, a link or code, or ends
    a table's cell.
    """
    return re.sub(r"[\\|<$`]|(?<=\])\(", r"\\\g<0>", visible_line(text))


def code(text: str) -> str:
    """A path or command as Markdown code."""
    return f"`{visible_line(text).replace('`', ' ')}`"


# docs/GALLERY.md -----------------------------------------------------------------------

def gallery(reports: Sequence[Report], pictures: Mapping[str, Sequence[str]],
            unmeasured: Sequence[str], folder: str, judged: Collection[str]) -> str:
    """A section for each scenario, which links to its page in `folder`.

    pictures: by scenario, the paths of its drawings, relative to the document.
    unmeasured: the names of scenarios without a run of the whole scenario.
    judged: the names of scenarios whose results another document describes in words. Their
    sections only count the results.
    """
    return "\n\n".join([
        *(_entry(report, pictures.get(report.name, ()), folder, report.name in judged)
          for report in reports),
        *(f"## {name}\n\nNot measured: {code(f'./run.sh {name}')}" for name in unmeasured)])


def _entry(report: Report, pictures: Sequence[str], folder: str, is_judged: bool) -> str:
    """A scenario's section: what came out, and its pictures, which link to the scenario's page.

    is_judged: whether another document describes the results in words.
    """
    path = f"{folder}/{report.name}.md"
    counts = "; ".join(counted(report.findings, in_short=True))
    sentences = [] if is_judged and counts else [_in_one_sentence(report)]
    if counts:
        sentences.append(escaped(f"{counts[0].upper()}{counts[1:]}."))
    links = [f"[![{escaped(report.name)}]({picture})]({path})" for picture in pictures]
    if not links:
        links = [f"[Its page]({path})"]
    return "\n\n".join([f"## {escaped(report.name)}", " ".join(sentences), *links])
