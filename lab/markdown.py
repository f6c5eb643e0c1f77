"""docs/RESULTS.md: every published bar beside ours, with the deviation and one word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import analysis, comparison, findings, published, table
from lab.analysis import MissingCells, NothingCounts, Panel
from lab.comparison import Recovery, Row
from lab.errors import FirstFlightError
from lab.findings import Finding
from lab.records import Record
from lab.scenario import LOSS, OF_EXPERIMENT, WINDOW_SWEEP, Figure, Scenario
from lab.table import UNKNOWN, ends, number

Run = tuple[Scenario, Sequence[Record], Mapping[str, Any]]


@dataclass(frozen=True)
class Other:
    """A scenario that is not of fetches: what its run.json says, {} without a run, and findings.

    verified, count: its trials.
    """

    name: str
    claim: str
    facts: Mapping[str, Any]
    findings: tuple[Finding, ...]
    verified: int = 0
    count: int = 0


HEAD = f"""\
# Results: measured beside published

Written by `/usr/bin/python3 results.py` from the newest whole run of every scenario; no number
here was typed. How it is measured: [METHOD.md](METHOD.md).

Every bar has one word, by a test on two numbers, the improvement in milliseconds and in percent:

- **{comparison.REPRODUCED}**: within {comparison.WITHIN_PERCENT:g} % of the published milliseconds and within \
{comparison.WITHIN_POINTS:g} points of the published
  percentage, or the published value lies inside our 95 % interval. A published value that was
  rounded or read from a figure is allowed its own error where that is more.
- **{comparison.DIRECTION_ONLY}**: not so, but both have the published sign.
- **{comparison.NOT_REPRODUCED}**: neither.

"% of the baseline" is the paper's definition: (baseline − experiment) / baseline. Some
reproductions print baseline / experiment − 1, which is larger (25 % there are 20 % in the paper);
their tables show both, and compare in theirs. Intervals are 95 % bootstrap intervals; "exact" means
that nothing varies: without loss, in virtual time, a repeated fetch gives the same packets.
n counts fetches.

Scenarios under load and traces have statements in place of bars: what the source says, what was
found, and the same three words. Under load a statement on two windows is {comparison.REPRODUCED} where
the 95 % interval of the difference, over independent seeds, lies on its side in every cell that it
speaks of, and {comparison.DIRECTION_ONLY} where only the mean over the cells does; ± is half of that interval.
"""


def results(scenarios_with_records: Sequence[Run], unmeasured: Sequence[Scenario] = (),
            others: Sequence[Other] = ()) -> str:
    """The whole document. unmeasured: scenarios of fetches of which there is no whole run."""
    described = [(scenario, facts, *_sections(scenario, records, facts))
                 for scenario, records, facts in scenarios_with_records]
    rows = [f"| [{scenario.name}](#{scenario.name}) | {_run(facts)} | {words} |"
            for scenario, facts, words, _ in described]
    rows += [f"| {scenario.name} | not measured: `{analysis.command(scenario, ())}` | |"
             for scenario in unmeasured]
    rows += [f"| [{each.name}](#{each.name}) | {_run(each.facts)} | {findings.words(each.findings)} |"
             if each.facts else
             f"| {each.name} | not measured: `./run.sh --scenario {each.name}` | |"
             for each in others]
    parts = [HEAD, "| scenario | measured | bars |\n|---|---|---|\n" + "\n".join(rows) + "\n"]
    parts += [text for _, _, _, text in described]
    parts += [f"## {each.name}\n\n{each.claim}\n\n{_run_in_words(each.facts)};"
              f" {each.verified} of {each.count} trials verified.\n\n"
              + findings.as_markdown(each.findings, f"figures/{each.name}")
              for each in others if each.facts]
    return "\n".join(parts)


def _run(facts: Mapping[str, Any]) -> str:
    date = str(facts.get("finished_at", ""))[:10]
    kernel = str(facts.get("kernel", ""))
    return ", ".join(part for part in (date, f"Linux {kernel}" if kernel else "",
                                       f"engine {facts.get('engine')}") if part)


def _sections(scenario: Scenario, records: Sequence[Record],
              facts: Mapping[str, Any]) -> tuple[str, str]:
    """The words of one scenario in short, and its chapter."""
    deterministic = facts.get("virtual_time") is True
    panels: list[Panel] = []
    sections: list[str] = []
    for figure in scenario.figures:
        try:
            panel = analysis.panel(scenario, figure, records)
        except (MissingCells, NothingCounts) as error:
            sections.append(f"### {figure.name}: {figure.title}\n\nNot to be had: {error}.\n")
            continue
        panels.append(panel)
        sections.append(_section(scenario, panel, deterministic))
    claims = comparison.said(scenario.claims, panels)
    if claims:
        sections.append("### Said in words\n\n" + grid(
            ["published", "found", "word"], [[f"{found.claim.figure}: “{found.claim.says}”",
                                              found.found, found.word] for found in claims],
            left=3))
    counted = comparison.counts(row for panel in panels
                                for row in comparison.rows(panel, deterministic))
    words = comparison.summary(counted) or "nothing published bar by bar"
    if claims:
        words += f"; of what is said in words, {comparison.summary(comparison.counts(claims))}"
    chapter = [f"## {scenario.name}\n", f"{scenario.title}. {scenario.source}.\n",
               f"{scenario.claim}\n", _provenance(records, facts), f"Bars: {words}.\n", *sections]
    return words, "\n".join(chapter)


def _provenance(records: Sequence[Record], facts: Mapping[str, Any]) -> str:
    """Which run it is from; the paragraph ends in a newline."""
    return f"{_run_in_words(facts)}; {table.of_records(records)}.\n"


def _run_in_words(facts: Mapping[str, Any]) -> str:
    parts = [f"Run `{facts['folder']}`"] if facts.get("folder") else ["Run"]
    parts.append(f"finished {facts.get('finished_at', 'at an unknown time')}, engine"
                 f" {facts.get('engine')}, kernel {facts.get('kernel') or 'unknown'}")
    project = facts.get("project")
    if isinstance(project, dict) and project.get("commit"):
        parts.append(f"commit {str(project['commit'])[:12]}"
                     + (" with changes" if project.get("changed") else ""))
    if facts.get("wall_s") is not None:
        parts.append(f"{facts.get('emulated_s')} s of emulated time in {facts['wall_s']} s")
    return ", ".join(parts)


def _section(scenario: Scenario, panel: Panel, deterministic: bool) -> str:
    figure = panel.figure
    rows = comparison.rows(panel, deterministic)
    words = comparison.summary(comparison.counts(rows))
    about = (f"{table.METRIC_NAMES[figure.metric]}; {panel.client}, {panel.congestion_control};"
             f" {table.averaged(scenario, figure)}.")
    parts = [f"### {figure.name}: {figure.title}\n",
             f"{about[0].upper()}{about[1:]}" + (f" {words}." if words else "")
             + f" Drawn in `figures/{scenario.name}_{figure.name}.png`.\n"]
    if figure.kind == WINDOW_SWEEP:
        parts.append(_times(panel))
    parts.append(_improvements(figure, rows))
    if panel.excluded.total:
        parts.append(f"Left out: {panel.excluded}.\n")
    if figure.kind == LOSS:
        parts += [_recovery(figure, found) for found in comparison.recoveries(panel)]
    if figure.published:
        parts.append(f"Published: {published.source(figure.published)} (`paper/{figure.published}`).\n")
    return "\n".join(parts)


def _times(panel: Panel) -> str:
    """Times against windows; the improvements follow."""
    return grid(["IW", "n", "mean, ms", "median, ms", "published, ms", "deviation, %"], [[
        bucket.label, str(bucket.n), number(bucket.experiment_ms),
        number(bucket.experiment_median_ms), number(bucket.published_ms),
        number((bucket.experiment_ms / bucket.published_ms - 1) * 100, signed=True)
        if bucket.published_ms else UNKNOWN] for bucket in panel.buckets])


def _improvements(figure: Figure, rows: Sequence[Row]) -> str:
    """The table of one figure; columns that would be empty are left out."""
    shown = [row for row in rows if figure.kind != WINDOW_SWEEP
             or row.bucket.value != figure.baseline_initcwnd]
    name, unit = table.QUANTITY_NAMES.get(figure.by, (figure.by, ""))
    head = f"{name}, {unit}" if unit else name
    baseline = f"IW{figure.baseline_initcwnd}"
    columns: list[tuple[str, list[str]]] = [
        (head, [row.bucket.label for row in shown]),
        ("n", [str(row.bucket.n) for row in shown])]
    if figure.kind != WINDOW_SWEEP:
        columns += [(f"{baseline}, ms", [number(row.bucket.base_ms) for row in shown]),
                    (f"IW{figure.experiment_initcwnd}, ms",
                     [number(row.bucket.experiment_ms) for row in shown])]
    columns += [("improved, ms", [number(row.bucket.absolute_ms) for row in shown]),
                ("95 % interval", [table.interval(row) for row in shown])]
    if any(abs(row.bucket.median_absolute_ms - row.bucket.absolute_ms) > 0.1 for row in shown):
        columns.append(("of medians, ms", [number(row.bucket.median_absolute_ms)
                                           for row in shown]))
    columns += [("published, ms", [number(row.bucket.published_absolute_ms) for row in shown]),
                ("deviation, %", [number(row.deviation_percent, 0, signed=True)
                                  for row in shown]),
                ("% of the baseline", [number(row.bucket.percent) for row in shown]),
                ("95 % interval, %", [_percent_interval(row) for row in shown])]
    if figure.percent_of == OF_EXPERIMENT:
        columns.append(("% as they count", [number(row.percent) for row in shown]))
    columns += [("published, %", [number(row.published_percent) for row in shown]),
                ("deviation, points", [number(row.deviation_points, signed=True)
                                       for row in shown]),
                ("word", [row.word or UNKNOWN for row in shown]),
                ("test", [row.test or UNKNOWN for row in shown])]
    kept = [(title, cells) for title, cells in columns if any(cell != UNKNOWN for cell in cells)]
    return grid([title for title, _ in kept], list(zip(*(cells for _, cells in kept))))


def _percent_interval(row: Row) -> str:
    return "exact" if row.exact else ends(row.percent_interval)


def _recovery(figure: Figure, found: Recovery) -> str:
    """A finding in a sentence."""
    low, high = (number(end) for end in found.interval_ms)
    n = found.bucket.n // 2
    change = f"IW{figure.experiment_initcwnd} {found.word}" if found.word != comparison.UNDECIDED \
        else f"whether IW{figure.experiment_initcwnd} helps is undecided"
    return (f"- {found.bucket.label} % loss: {number(found.bucket.absolute_ms)} ms gained, of which"
            f" {number(found.part_ms)} ms ({low} … {high}, {n} pairs) beyond the lossless network:"
            f" for recovery, {change}.\n")


def grid(headers: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """A Markdown table, the first `left` columns left-aligned, numbers to the right."""
    lines = [headers, ["---" if place < left else "---:" for place in range(len(headers))],
             *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def write(path: Path, text: str) -> None:
    """Write aside, then rename: the document is whole at any moment. Raises FirstFlightError."""
    aside = path.with_name(f".{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        aside.write_text(text, encoding="utf-8")
        aside.replace(path)
    except OSError as error:
        raise FirstFlightError(f"{path}: cannot be written: {error.strerror or error}") from error
