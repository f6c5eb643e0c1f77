"""The findings of a scenario with populations, besides its own figures.

The paper's Figure 5 on one page, what each cause adds to it, and the joint distributions of RTT and
bandwidth from which clients are drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy

from firstflight.base.words import format_number
from firstflight.findings.charts import (BarChart, GridChart, Square, SquareChart, SquareMap,
                                         bar_page)
from firstflight.findings.claims import REPRODUCED, WITHIN_PERCENT, WITHIN_POINTS
from firstflight.findings.findings import Cell, Column, Finding, Table
from firstflight.findings.quantities import quantity
from firstflight.findings.render import data
from firstflight.runs.scenario_file import SCENARIOS
from firstflight.scenario import published
from firstflight.study.population.ablation import AXES, Step, is_near, measured_steps
from firstflight.workloads.fetch.figures.bar_figure import BarFigure, NoBars
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.scenario import rows
from firstflight.workloads.fetch.scenario.population import Populations
from firstflight.workloads.fetch.scenario.scenario import Scenario

# Findings on how each population was fitted, as findings.render.data writes them: what was fitted
# to what, how far the paper fixes each parameter, each mechanism switched off in turn, and what
# else was tried. All of it is simulated, by paper/fit of commit c688d26e, and nothing measures it.
FITS = SCENARIOS / "fits"
# The bandwidth-delay products of which the joint distribution has a line.
DIAGONALS_BYTES = (1000, 5000, 10000, 50000, 100000)
# The keys of [[figure]] that are equal where two populations have the same figure.
TWIN_KEYS = "kind", "by", "published", "panel"


def population_findings(scenario: Scenario, drawn: Populations, records: Sequence[Record],
                        findings: Sequence[Finding], judged: Sequence[BarFigure]
                        ) -> list[Finding]:
    """The findings that a scenario with populations adds to the findings of its figures.

    findings: the findings of its figures; the panels of Figure 5 are shown again, on one page.
    judged: its figures of bars.
    """
    made = []
    panels = [figure for figure in scenario.figures if figure.published == published.SHARES_FILE]
    names = {figure.name for figure in panels}
    charts = tuple(finding.chart for finding in findings
                   if finding.name in names and isinstance(finding.chart, BarChart))
    if charts:
        title = (f"Figure 5 of the paper, {panels[0].baseline_initcwnd} →"
                 f" {panels[0].experiment_initcwnd} segments")
        made.append(Finding("fig5", "The panels together", chart=bar_page(title, charts)))

    try:
        steps = measured_steps(drawn, records)
        if steps:
            printed_ms = _printed_mean_ms(scenario, drawn)
            made += [_causes(steps), _two_weeks(steps[-1], printed_ms)]
    except NoBars as error:
        made.append(Finding("causes", "What each cause adds", missing=str(error)))
    return [*made, *_held_out(judged, drawn), *_joints(scenario.name), *fit_findings(scenario.name)]


# Causes ------------------------------------------------------------------------------

def _causes(steps: Sequence[Step]) -> Finding:
    """What each cause adds: a row for each step, and then a row for the paper.

    The last step has all causes, so it is the population itself.
    """
    tables = [_overview(steps), *(_by_bucket(steps, axis) for axis in AXES)]
    slower = " ".join(filter(None, map(_slower, steps)))
    near = ", ".join(str(step.near) for step in steps)
    sentence = (f"From {steps[0].title} to everything, the bars near the paper's are {near} of"
                f" {steps[0].count}. {slower}")

    numbered = [f"{place}  {step.title}" for place, step in enumerate(steps, start=1)]
    chart = SquareChart(
        "What each cause adds to Figure 5",
        (f"Milliseconds saved by {steps[-1].windows[-1]} segments, with the same responses in"
         " each row. Each row adds a cause; the last is the whole population.",),
        "At the right: how many of all bars are near the paper's.", scale="published",
        maps=tuple(_map(steps, axis) for axis in AXES),
        rows=("the paper", *reversed(numbered)),
        notes=("", *(f"{step.near} of {step.count}" for step in reversed(steps))))
    return Finding("causes", "What each cause adds", tables=tuple(tables), sentence=sentence,
                   chart=chart)


def _map(steps: Sequence[Step], axis: str) -> SquareMap:
    """The squares of a panel: a row for the paper, then one for each step, the last step first."""
    of_first = steps[0].bars[axis]
    squares: list[tuple[Square | None, ...]] = [tuple(
        None if bar.published.absolute is None else Square(bar.published.absolute)
        for bar in of_first)]
    for step in reversed(steps):
        squares.append(tuple(Square(bar.difference.absolute.value, is_near=is_near(bar))
                             for bar in step.bars[axis]))
    labels = tuple(bar.label for bar in of_first)
    return SquareMap(f"by {quantity(AXES[axis]).axis}", labels, tuple(squares))


def _overview(steps: Sequence[Step]) -> Table:
    base, larger = (f"IW{window}" for window in steps[-1].windows)
    columns = (Column("causes, one more in each line", is_text=True), Column("n"),
               Column(base, "ms", "mean"), Column(larger, "ms", "mean"),
               Column("", "ms", "saved"), Column("", "%", "saved"),
               *(Column(axis, "", "bars near") for axis in AXES), Column("all", "", "bars near"),
               Column(f"slower with {larger}", rank=1))
    rows: list[tuple[Cell, ...]] = []
    for step in steps:
        saved_ms = step.base_ms - step.experiment_ms
        saved_percent = 100 * (1 - step.experiment_ms / step.base_ms)
        near_by_axis = (sum(map(is_near, step.bars[axis])) for axis in AXES)
        rows.append((step.title, step.n, step.base_ms, step.experiment_ms, saved_ms,
                     saved_percent, *near_by_axis, step.near, sum(step.slower.values())))
    return Table("What each cause adds", columns, tuple(rows), (
        "n: responses, each under both windows. Slower: by more than 1 ms.",
        *filter(None, map(_slower, steps))))


def _by_bucket(steps: Sequence[Step], axis: str) -> Table:
    """The milliseconds saved in each bucket of an axis: a row for each step, and one for the paper.
    """
    of_last = steps[-1].bars[axis]
    head = quantity(AXES[axis])
    columns = (Column("ms saved", is_text=True),
               *(Column(bar.label, head.unit) for bar in of_last))
    rows: list[tuple[Cell, ...]] = []
    for step in steps:
        saved = (bar.difference.absolute.value for bar in step.bars[axis])
        rows.append((step.title, *saved))
    rows.append(("the paper", *(bar.published.absolute for bar in of_last)))
    return Table(f"Step by step, by {head.head}", columns, tuple(rows))


def _slower(step: Step) -> str:
    """A sentence on the responses that the larger window makes slower; "" if there are none."""
    if not step.slower:
        return ""
    by_count = ((count, reason) for reason, count in step.slower.items())
    most_first = sorted(by_count, key=lambda counted: counted[0], reverse=True)
    why = "; ".join(f"{count}: {reason}" for count, reason in most_first)
    return (f"{step.title[0].upper()}{step.title[1:]}: {sum(step.slower.values())} of {step.n}"
            f" responses are slower with {step.windows[-1]} segments ({why}).")


def _printed_mean_ms(scenario: Scenario, drawn: Populations) -> float | None:
    """The paper's saving of the mean, from its table of percentiles; None without such a table."""
    if drawn.explained is None:
        return None
    for figure in scenario.figures:
        if figure.sweep == drawn.explained.name and figure.by == "percentile":
            bars = published.buckets(figure.published, figure.panel)
            if "mean" in bars:
                return bars["mean"].absolute
    return None


def _two_weeks(step: Step, printed_ms: float | None) -> Finding:
    """How much of the paper's saving is the window's, and how much is the other week's.

    A table has our means and the paper's, as the panels of Figure 5 add up to them. step: the last
    one. printed_ms: the paper's saving of the mean, None where the paper prints none.
    """
    columns = [Column("panel", is_text=True), Column("near"), Column("of")]
    for window in step.windows:
        columns += [Column("ours", "ms", f"IW {window}"), Column("paper", "ms", f"IW {window}"),
                    Column("off", "%", f"IW {window}", signed=True)]
    columns += [Column("ours", "ms", "saved"), Column("paper", "ms", "saved"),
                Column("window alone", "ms", "saved")]

    sums = {axis: _sums_of(step, axis) for axis in step.bars}
    rows: list[tuple[Cell, ...]] = []
    for axis, panel in sums.items():
        bars, paper_after = step.bars[axis], panel.paper_base - panel.paper_saved
        rows.append((f"Figure 5, {axis}", sum(map(is_near, bars)), len(bars),
                     panel.base, panel.paper_base, 100 * (panel.base / panel.paper_base - 1),
                     panel.experiment, paper_after, 100 * (panel.experiment / paper_after - 1),
                     panel.base - panel.experiment, panel.paper_saved, panel.alone))

    alone_ms = next(iter(sums.values())).alone
    sentence = (
        f"Of Figure 5's buckets {step.near} of {step.count} are within {WITHIN_PERCENT:.0f} % of"
        f" the paper's milliseconds and {WITHIN_POINTS:.0f} points of its percentage, compared as"
        " the paper compared: each window in a week of its own. The window alone, with the same"
        f" responses under both, saves {format_number(alone_ms)} of the"
        f" {format_number(step.base_ms - step.experiment_ms)} ms by which the two weeks differ.")
    added_up = Table("Share × mean, added up over the buckets of a panel", tuple(columns),
                     tuple(rows))
    return Finding("two_weeks", "What the window does, and what the two weeks do",
                   (added_up, _where_from(step, alone_ms, printed_ms)), sentence=sentence)


class _Sums(NamedTuple):
    """The share of each bucket times its mean, added up over the buckets of a panel, in ms."""

    base: float  # ours, under the smaller window
    experiment: float  # ours, under the larger window
    alone: float  # what the window saves with the same responses under both windows
    paper_base: float  # the paper's, under the smaller window
    paper_saved: float


def _sums_of(step: Step, axis: str) -> _Sums:
    """The sums of the panel of this axis, which is a key of AXES."""
    bars = step.bars[axis]
    share = numpy.array([bar.share_percent or 0.0 for bar in bars]) / 100
    changes = [bar.difference for bar in bars]
    base = share @ [change.base.value for change in changes]
    experiment = share @ [change.experiment.value for change in changes]
    alone = share @ [(change.same or change).absolute.value for change in changes]

    # The paper has each bucket's saving in ms and in percent, from which its mean follows.
    paper_base = paper_saved = 0.0
    for bar in published.shares(AXES[axis]).values():
        saved_ms = (bar.responses_percent or 0.0) / 100 * (bar.absolute or 0.0)
        paper_base += 100 * saved_ms / (bar.percent or numpy.nan)
        paper_saved += saved_ms
    return _Sums(float(base), float(experiment), float(alone), paper_base=paper_base,
                 paper_saved=paper_saved)


def _where_from(step: Step, alone_ms: float, printed_ms: float | None) -> Table:
    """The parts that the saving consists of.

    alone_ms: the part of the window. printed_ms: the paper's saving of the mean, None without it.
    """
    saved_ms = step.base_ms - step.experiment_ms
    # What is saved if the shares of the buckets of RTT do not change from one week to the other.
    within_ms = sum((bar.share_percent or 0.0) * bar.difference.absolute.value
                    for bar in step.bars["RTT"]) / 100
    paper_within_ms = sum((bar.responses_percent or 0.0) * (bar.absolute or 0.0)
                          for bar in published.shares("rtt_ms").values()) / 100
    paper_moved_ms = None if printed_ms is None else printed_ms - paper_within_ms

    rows: tuple[tuple[Cell, ...], ...] = (
        ("all, as the paper compared", saved_ms, printed_ms),
        ("the window alone", alone_ms, None),
        ("other responses in the other week", saved_ms - alone_ms, None),
        ("of that, more of them in far buckets (RTT)", saved_ms - within_ms, paper_moved_ms),
        ("of that, other ones within the buckets", within_ms - alone_ms, None))
    columns = (Column("part", is_text=True), Column("ours", "ms"), Column("paper", "ms"))
    return Table("Where the saving comes from", columns, rows, (
        "The paper's numbers show only what moves between its buckets. What"
        " differs within a bucket is known of the fitted population only.",))


# Held out ----------------------------------------------------------------------------

def _held_out(judged: Sequence[BarFigure], drawn: Populations) -> list[Finding]:
    """A table of the figures of held-out populations.

    Each stands next to its twin: the same figure of a population that was fitted to it. [] where
    no figure has a twin.
    """
    def twin_key(bar_figure: BarFigure) -> list[object]:
        return [getattr(bar_figure.figure, name) for name in TWIN_KEYS]

    rows: list[tuple[Cell, ...]] = []
    fitted: dict[str, None] = {}  # the titles of the fitted populations, each once
    for bar_figure in judged:
        if not bar_figure.figure.held_out:
            continue
        twins = [other for other in judged
                 if not other.figure.held_out and twin_key(other) == twin_key(bar_figure)]
        if twins:
            twin = twins[0]
            rows.append((twin.figure.title, len(bar_figure.bars), *_near_and_reproduced(twin),
                         *_near_and_reproduced(bar_figure)))
            for population in drawn.populations:
                if population.name == twin.figure.sweep:
                    fitted[population.title] = None
    if not rows:
        return []

    titles, *columns = zip(*rows)
    rows.append(("all", *(sum(column) for column in columns)))
    count, near, _, held_near, held_reproduced = rows[-1][1:]
    sentence = (f"With parameters of its own, {near} of {count} bars are near the paper's. With"
                f" parameters that none of its published values chose (held out), {held_near} are,"
                f" of which {held_reproduced} {'is' if held_reproduced == 1 else 'are'}"
                " reproduced.")

    of_table = [Column("published", is_text=True), Column("of")]
    for group in ("parameters of its own", "held out"):
        of_table += [Column("near", "", group), Column(REPRODUCED, "", group)]
    table = Table(
        "Near the paper's, and reproduced", tuple(of_table), tuple(rows),
        (f"Near: within {WITHIN_PERCENT:.0f} % and {WITHIN_POINTS:.0f} points, whatever the"
         " interval. Reproduced: the whole interval.",))
    title = f"{', '.join(fitted)} with parameters of its own, and held out"
    return [Finding("held_out", title, (table,), sentence=sentence)]


def _near_and_reproduced(bar_figure: BarFigure) -> tuple[int, int]:
    """How many bars are near, and how many are reproduced."""
    return sum(map(is_near, bar_figure.bars)), bar_figure.counts[REPRODUCED]


# The joint distribution --------------------------------------------------------------

def _joints(name: str) -> list[Finding]:
    """The shares of responses by RTT and bandwidth, as drawn, with lines of equal BDP.

    There is a finding for each data centre that has a file in the folder of the populations' rows.
    name: of the scenario. Raises UsageError.
    """
    made = []
    for path in sorted(rows.FOLDER.glob(rows.joint_path_of(name, "*").name)):
        # The head of the first column says how the distribution was made; the column has RTTs.
        (how, *bandwidths), *lines = rows.table(path)
        datacenter = path.name.removesuffix(rows.ENDING).rpartition("_")[2]
        grid = numpy.array(lines, dtype=float)

        title = f"RTT and bandwidth together, {datacenter} data centre"
        chart = GridChart(
            f"RTT and bandwidth, {datacenter} data centre", (how,), x=grid[:, 0],
            y=numpy.array(bandwidths, dtype=float), shares=grid[:, 1:],
            x_label=quantity("rtt_ms").axis, y_label=quantity("bandwidth_kbps").axis,
            colour_label="share of responses per grid cell (%)",
            diagonals=tuple((8.0 * product, f"BDP {product} B") for product in DIAGONALS_BYTES),
            is_measured=False)
        made.append(Finding(f"joint_{datacenter}", title, chart=chart))
    return made


def fit_findings(name: str) -> tuple[Finding, ...]:
    """The findings on a scenario's fit; () without one. Raises FirstFlightError if damaged."""
    path = FITS / f"{name}.json"
    if not path.is_file():
        return ()

    findings = []
    for finding in data.read(path).findings:
        chart = replace(finding.chart, is_measured=False) if finding.chart else None
        findings.append(replace(finding, chart=chart))
    return tuple(findings)
