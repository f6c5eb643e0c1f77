"""docs/RESULTS.md and its pages, every published bar with ours, and docs/GALLERY.md."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lab.core.errors import FirstFlightError
from lab.core.findings import claims
from lab.core.findings.claims import DIRECTION_ONLY, NOT_REPRODUCED, REPRODUCED, TOO_FEW, in_full
from lab.core.findings.findings import Finding, Report, Statement, Table
from lab.core.words import clean
from lab.render.values import counted, head, quoted, shortened, written

HEAD = """\
# Results: measured and published

One line for each scenario; its page has every table, every published number and the run that was
measured. `/usr/bin/python3 results.py` writes all of it from the findings of the newest whole run,
kept in `docs/results`; no number here was typed. How it is measured: [METHOD.md](METHOD.md).
Terms: [GLOSSARY.md](GLOSSARY.md).
"""

WORDS = f"""\
## What the results mean

Every published bar has one result, by a test on two numbers, the improvement in milliseconds and
in percent. The tolerance is {claims.WITHIN_PERCENT:g} % of the published milliseconds and \
{claims.WITHIN_POINTS:g} points of the published percentage. Where a published value was rounded or
read from a figure and its error is larger, the tolerance is that error.

- **{REPRODUCED}**: our whole 95 % interval lies within the tolerance, of both numbers.
- **{in_full(TOO_FEW)}**: it does not, but no interval lies wholly outside. More data would decide.
  It counts as neither.
- **{DIRECTION_ONLY}**: an interval lies wholly outside the tolerance, and both lie wholly on the
  published side of zero.
- **{NOT_REPRODUCED}**: an interval lies wholly outside, and the direction is not certain either.

This is a test of equivalence by intervals (two one-sided tests). Fewer data make an interval wider,
and a wider interval lies within no tolerance that the narrower one exceeds. Therefore fewer data
never make anything reproduced. Fewer than {claims.LEAST_DRAWS} independent values (clients, or \
fetches) count as no interval.

"% of the baseline" is the paper's definition: (baseline − experiment) / baseline. Some
reproductions print baseline / experiment − 1, which is larger (25 % there are 20 % in the paper).
Their tables show both, and compare in theirs. Intervals are 95 % bootstrap intervals. "exact" means
that nothing varies: without loss, in virtual time, a repeated fetch gives the same packets.
n counts fetches.

Scenarios under load and traces have statements in place of bars: what the source claims, what was
measured, and the same results. Under load a statement on two windows is {REPRODUCED} where
the 95 % interval of the difference, over independent seeds, lies on the claimed side in every cell
of the statement (for values claimed to be alike: within 5 % of zero). It is {in_full(TOO_FEW)}
where in some cells the interval reaches farther and in none it excludes the claim (one seed has no
interval). Otherwise it is {DIRECTION_ONLY} where the mean over the cells agrees. ± is half of the
interval. Figures of steps have statements too: {REPRODUCED} where every trial agrees.
"""

NOTHING = "nothing published to compare with"
UNRENDERED = "The result cannot be rendered"


def results(reports: Sequence[Report], unmeasured: Sequence[str] = (),
            folder: str = "results", text: str = "") -> str:
    """The index: a line for each scenario, with a link to its page in `folder`.

    unmeasured: scenarios of which there is no whole run. text: what comes out of all together.
    """
    rows = ["| scenario | what comes out | published bars and statements |", "|---|---|---|"]
    rows += [f"| [{report.name}]({folder}/{report.name}.md) | {_in_one_sentence(report)} |"
             f" {escaped('; '.join(counted(report.findings))) or NOTHING} |"
             for report in reports]
    rows += [f"| {name} | not measured: {code(f'./run.sh {name}')} | |" for name in unmeasured]
    together = ["## What comes out", "", text, ""] if text else []
    return "\n".join([HEAD, *rows, "", *together, WORDS])


def _in_one_sentence(report: Report) -> str:
    """The first sentence of the scenario's result, else its claim."""
    result = _opening(report)[0] if report.opening else escaped(report.claim)
    return re.split(r"(?<=[.!?]) (?=[A-Z])", result, maxsplit=1)[0]


def page(report: Report, index: str) -> str:
    """A scenario's chapter as a document. index: the path of the index as seen from there."""
    return f"[All results, and what the words mean]({index})\n\n{chapter(report)}"


def chapter(report: Report) -> str:
    """One run as a document of its own; it ends in a newline."""
    verified = (_joined([line.strip().rstrip(".") for line in report.summary])
                or f"{report.verified} of {report.count} trials verified")
    counts = [f"{line[0].upper()}{escaped(line[1:])}." for line in counted(report.findings)]
    parts = [f"# {escaped(report.name)}",
             f"{escaped(report.title)}. {escaped(report.source)}.", escaped(report.claim),
             *_opening(report),
             f"{_run(report)}; {escaped(verified)}.", *counts]
    for finding in report.findings:
        parts += section(report.name, finding)
    return "\n\n".join(parts) + "\n"


def _joined(lines: Sequence[str]) -> str:
    """Lines as running text: a sentence of its own is one, the others are its parts."""
    return "".join(lines[:1]) + "".join(
        f"{'. ' if line[:1].isupper() else '; '}{line}" for line in lines[1:])


def _opening(report: Report) -> list[str]:
    """The scenario's result with its numbers, or what could not be quoted."""
    if not report.opening:
        return []
    try:
        return [escaped(quoted(report.opening, [report]))]
    except FirstFlightError as error:
        return [f"{UNRENDERED}: {escaped(str(error))}."]


def _run(report: Report) -> str:
    """Which run it is from, in words."""
    facts, project = report.facts, _mapping(report.facts.get("project"))
    parts = [f"finished {facts.get('finished_at', 'at an unknown time')}",
             f"engine {facts.get('engine')}", f"kernel {report.kernel or 'unknown'}"]
    if project.get("commit"):
        parts.append(f"commit {str(project['commit'])[:12]}"
                     + (" with changes" if project.get("changed") else ""))
    if facts.get("wall_s") is not None:
        parts.append(f"{facts.get('emulated_s')} s of emulated time in {facts['wall_s']} s")
    return f"Run {code(report.path)}, {escaped(', '.join(parts))}"


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def section(scenario: str, finding: Finding) -> list[str]:
    """The paragraphs of a section of the second level."""
    parts = [f"## {escaped(finding.name)}: {escaped(finding.title)}"]
    if finding.missing:
        parts.append(f"Not available: {escaped(finding.missing)}.")
    bars = claims.summary(finding.bars)
    about = [f"{bars}."] if bars else []
    if finding.chart is not None:
        files = [code(f"figures/{scenario}_{name}.png") for name in
                 (finding.name, *(f"{finding.name}_{also}" for also in finding.also))]
        about.append(f"Drawn in {', '.join(files)}.")
    parts += [" ".join(about)] if about else []
    for table in finding.tables:
        parts += _table(table, finding.title)
    if finding.statements:
        parts.append("\n".join(map(_statement, finding.statements)))
    if finding.published:
        parts.append(f"Published: {escaped(finding.published)}.")
    return parts


def _statement(statement: Statement) -> str:
    if not statement.word:
        return f"- {escaped(statement.says)} {escaped(statement.found)}"
    return (f"- “{escaped(statement.says)}” Here: {escaped(statement.found)}"
            f" **{escaped(in_full(statement.word))}**")


def _table(table: Table, known: str) -> list[str]:
    """A table, between its title, unless that is `known`, and its notes."""
    title = [f"**{escaped(table.title)}**"] if table.title not in ("", known) else []
    rule = "|".join("---" if column.is_text else "--:" for column in table.columns)
    lines = [_row(map(head, table.columns)), f"|{rule}|",
             *(_row(written(cell, column) for cell, column in zip(row, table.columns))
               for row in table.rows)]
    notes = [*([f"{shortened(table)}."] if table.left_out else []), *table.notes]
    return [*title, "\n".join(lines), *map(escaped, notes)]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(escaped, cells))} |"


def escaped(text: str) -> str:
    """Text of others that stays text: no HTML, no formula, no link, no end of a cell."""
    return re.sub(r"[\\|<$`]|(?<=\])\(", r"\\\g<0>", clean(text))


def code(text: str) -> str:
    """A path as it stands, in letters of one width."""
    return f"`{clean(text).replace('`', ' ')}`"


# docs/GALLERY.md: every scenario's figure, its words, the command that draws it ----

GALLERY_HEAD = """\
# Gallery

Written by `/usr/bin/python3 results.py --gallery` from the newest whole run of every
scenario. [RESULTS.md](RESULTS.md) has the numbers. A picture shows the first figure of
a scenario. `./run.sh` draws all of them into `figures/`.
"""


_PICTURE = re.compile(r"^!\[(.*)\]\((.*)\)$", re.MULTILINE)


def gallery(reports: Sequence[Report], pictures: Mapping[str, str], before: str = "") -> str:
    """The whole document.

    pictures: by the name of the scenario, the path of its figure as seen from
    the document. A scenario without one is excluded. before: the document as it
    stands, whose words for a picture are kept where a report has none.
    """
    words = {picture: alternative for alternative, picture in _PICTURE.findall(before)}
    return "\n".join([GALLERY_HEAD, *(_entry(report, pictures[report.name], words)
                                      for report in reports if report.name in pictures)])


def _entry(report: Report, picture: str, words: Mapping[str, str]) -> str:
    finding = next(candidate for candidate in report.findings if candidate.chart is not None)
    alternative = escaped(finding.text or finding.sentence) or words.get(
        picture, escaped(finding.title))
    parts = [f"## {escaped(report.name)}", escaped(report.claim), f"![{alternative}]({picture})",
             code(f"./run.sh {report.name}")]
    return "\n\n".join(parts) + "\n"
