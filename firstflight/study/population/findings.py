"""What a scenario with populations shows beside its figures.

The paper's Figure 5 on one page, what each cause adds to it, and the joint
distributions of RTT and bandwidth that clients are drawn from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy

from firstflight.base.words import format_number
from firstflight.findings.charts import (BarChart, GridChart, Square, SquareChart, SquareMap,
                                         bar_page)
from firstflight.findings.claims import REPRODUCED, WITHIN_PERCENT, WITHIN_POINTS
from firstflight.findings.findings import Cell, Column, Finding, Table
from firstflight.findings.quantities import quantity
from firstflight.findings.render import data
from firstflight.runs.scenario_file import SCENARIOS
from firstflight.study.fetches.figures.bar_figure import BarFigure, NoPanel
from firstflight.study.fetches.scenario import rows
from firstflight.study.fetches.scenario.population import Populations
from firstflight.study.fetches.scenario.scenario import Scenario
from firstflight.study.fetches.verify.record import Record
from firstflight.study.population.ablation import AXES, Step, close, explained
from firstflight.study.scenario import published

# What stands behind a fitted population, as findings.render.data keeps findings, since nothing
# measures it: what was fitted to what, how far the paper fixes each parameter, each mechanism off
# in turn, and what else was tried. All of it is simulated; paper/fit of commit c688d26e made it.
FITS = SCENARIOS / "fits"
DIAGONALS_BYTES = (1000, 5000, 10000, 50000, 100000)
TWINS = "kind", "by", "published", "panel"  # what the same figure of two populations shares


def population_findings(scenario: Scenario, drawn: Populations, records: Sequence[Record],
                        findings: Sequence[Finding], judged: Sequence[BarFigure]
                        ) -> list[Finding]:
    """findings: of the scenario's figures, Figure 5's are shown again, on one page;
    judged: the same."""
    of_shares = [figure for figure in scenario.figures if figure.published == published.SHARES_FILE]
    charts = tuple(finding.chart for finding in findings
                   if finding.name in {figure.name for figure in of_shares}
                   and isinstance(finding.chart, BarChart))
    made = [Finding("fig5", "The panels together", chart=bar_page(
        f"Figure 5 of the paper, {of_shares[0].baseline_initcwnd} →"
        f" {of_shares[0].experiment_initcwnd} segments", charts))
            ] if charts else []
    try:
        levels = explained(drawn, records)
        made += [_causes(levels), _two_weeks(levels[-1], _printed_mean_ms(scenario, drawn))
                 ] if levels else []
    except NoPanel as error:
        made.append(Finding("causes", "What each cause adds", missing=str(error)))
    return [*made, *_held_out(judged, drawn), *_joints(scenario.name), *fit_findings(scenario.name)]


# Causes ------------------------------------------------------------------------------

def _causes(levels: Sequence[Step]) -> Finding:
    """A row for each step, the panel itself last, and the paper below."""
    tables = [_overview(levels), *(_by_bucket(levels, axis) for axis in AXES)]
    maps = tuple(SquareMap(
        f"by {quantity(AXES[axis]).axis}",
        tuple(bar.label for bar in levels[0].panels[axis]),
        (tuple(None if bar.published.absolute is None else Square(bar.published.absolute)
               for bar in levels[0].panels[axis]),
         *(tuple(Square(bar.difference.absolute.value, is_near=close(bar))
                 for bar in step.panels[axis])
           for step in reversed(levels)))) for axis in AXES)
    slower = " ".join(filter(None, map(_slower, levels)))
    return Finding(
        "causes", "What each cause adds", tables=tuple(tables),
        sentence=f"From {levels[0].title} to everything, the bars near the paper's are "
                 + ", ".join(str(step.near) for step in levels)
                 + f" of {levels[0].count}. {slower}",
        chart=SquareChart(
            "What each cause adds to Figure 5",
            (f"Milliseconds saved by {levels[-1].windows[-1]} segments, of the panel's own"
             " responses. Each row adds a cause; the last is the panel.",),
            "At the right: how many of all bars are near the paper's.", scale="published",
            maps=maps, rows=("the paper", *(f"{place}  {step.title}" for place, step in
                                            reversed(list(enumerate(levels, start=1))))),
            notes=("", *(f"{step.near} of {step.count}" for step in reversed(levels)))))


def _overview(levels: Sequence[Step]) -> Table:
    base, larger = (f"IW{window}" for window in levels[-1].windows)
    columns = (Column("causes, one more in each line", is_text=True), Column("n"),
               Column(base, "ms", "mean"), Column(larger, "ms", "mean"),
               Column("", "ms", "saved"), Column("", "%", "saved"),
               *(Column(axis, "", "bars near") for axis in AXES), Column("all", "", "bars near"),
               Column(f"slower with {larger}", rank=1))
    rows: tuple[tuple[Cell, ...], ...] = tuple((
        step.title, step.n, step.base_ms, step.experiment_ms,
        step.base_ms - step.experiment_ms, 100 * (1 - step.experiment_ms / step.base_ms),
        *(sum(map(close, step.panels[axis])) for axis in AXES), step.near,
        sum(step.slower.values())) for step in levels)
    return Table("What each cause adds", columns, rows, (
        "n: responses, each under both windows. Slower: by more than 1 ms.",
        *filter(None, map(_slower, levels))))


def _by_bucket(levels: Sequence[Step], axis: str) -> Table:
    of_last = levels[-1].panels[axis]
    head = quantity(AXES[axis])
    columns = (Column("ms saved", is_text=True),
               *(Column(bar.label, head.unit) for bar in of_last))
    rows: list[tuple[Cell, ...]] = [
        (step.title, *(bar.difference.absolute.value for bar in step.panels[axis]))
        for step in levels]
    rows.append(("the paper", *(bar.published.absolute for bar in of_last)))
    return Table(f"Step by step, by {head.head}", columns, tuple(rows))


def _slower(step: Step) -> str:
    """Why the larger window makes some responses of a step slower."""
    if not step.slower:
        return ""
    why = "; ".join(f"{count}: {reason}" for reason, count in
                    sorted(step.slower.items(), key=lambda counted: -counted[1]))
    return (f"{step.title[0].upper()}{step.title[1:]}: {sum(step.slower.values())} of {step.n}"
            f" responses are slower with {step.windows[-1]} segments ({why}).")


def _printed_mean_ms(scenario: Scenario, drawn: Populations) -> float | None:
    """What the paper's table of percentiles of the explained population saves of the mean."""
    made = drawn.explained
    return next((bars["mean"].absolute for figure in scenario.figures
                 if made is not None and figure.sweep == made.name and figure.by == "percentile"
                 and "mean" in (bars := published.buckets(figure.published, figure.panel))), None)


def _two_weeks(panel: Step, printed_ms: float | None) -> Finding:
    """The sums of the panels beside the paper's, and what the window does alone.

    printed_ms: what the paper has saved of the mean, None where it does not.
    """
    rows: list[tuple[Cell, ...]] = []
    for axis, bars in panel.panels.items():
        share = numpy.array([bar.share_percent or 0.0 for bar in bars]) / 100
        changes = [bar.difference for bar in bars]
        ours = [float(share @ [getattr(change, name).value for change in changes])
                for name in ("base", "experiment")]
        printed = [(bar.responses_percent or 0.0, bar.absolute or 0.0, bar.percent or numpy.nan)
                   for bar in published.shares(AXES[axis]).values()]
        base = sum(share * ms / percent for share, ms, percent in printed)
        saved = sum(share * ms for share, ms, _ in printed) / 100
        alone = float(share @ [(change.same or change).absolute.value for change in changes])
        rows.append((f"Figure 5, {axis}", sum(map(close, bars)), len(bars), ours[0], base,
                     100 * (ours[0] / base - 1), ours[1], base - saved,
                     100 * (ours[1] / (base - saved) - 1), ours[0] - ours[1], saved, alone))
    near = f"{panel.near} of {panel.count}"
    sentence = (f"Of Figure 5's buckets {near} are within {WITHIN_PERCENT:.0f} % of the paper's"
            f" milliseconds and {WITHIN_POINTS:.0f} points of its percentage, compared as the paper"
            " compared: each window in a week of its own. The window alone, with the same responses"
            f" under both, saves {format_number(float(str(rows[0][-1])))} of the"
            f" {format_number(panel.base_ms - panel.experiment_ms)} ms by which the two weeks"
            " differ.")
    return Finding("two_weeks", "What the window does, and what the two weeks do", (
        Table("Share × mean, added up over the buckets of a panel", (
            Column("panel", is_text=True), Column("near"), Column("of"),
            *(column for window in panel.windows for column in (
                Column("ours", "ms", f"IW {window}"), Column("paper", "ms", f"IW {window}"),
                Column("off", "%", f"IW {window}", signed=True))),
            Column("ours", "ms", "saved"), Column("paper", "ms", "saved"),
            Column("window alone", "ms", "saved")), tuple(rows)),
        _where_from(panel, float(str(rows[0][-1])), printed_ms)), sentence=sentence)


def _where_from(panel: Step, alone: float, printed: float | None) -> Table:
    """The saving in its parts, by the RTT panel, and what the paper prints of each."""
    bars = panel.panels["RTT"]
    saved = panel.base_ms - panel.experiment_ms
    ours = sum((bar.share_percent or 0.0) * bar.difference.absolute.value for bar in bars) / 100
    paper = sum((bar.responses_percent or 0.0) * (bar.absolute or 0.0)
                for bar in published.shares("rtt_ms").values()) / 100
    rows: tuple[tuple[Cell, ...], ...] = (
        ("all, as the paper compared", saved, printed),
        ("the window alone", alone, None),
        ("other responses in the other week", saved - alone, None),
        ("of that, more of them in far buckets (RTT)", saved - ours,
         None if printed is None else printed - paper),
        ("of that, other ones within the buckets", ours - alone, None))
    return Table("Where the saving comes from", (
        Column("part", is_text=True), Column("ours", "ms"), Column("paper", "ms")), rows, (
            "The paper's numbers show only what moves between its buckets. What"
            " differs within a bucket is known of the fitted population only.",))


# Held out ----------------------------------------------------------------------------

def _held_out(judged: Sequence[BarFigure], drawn: Populations) -> list[Finding]:
    """Figures that no parameter was chosen by next to the same ones as they were fitted."""
    rows: list[tuple[Cell, ...]] = []
    fitted: dict[str, None] = {}  # the titles of the populations
    for panel in judged:
        figure = panel.figure
        twin = next((other for other in judged if not other.figure.held_out and [
            getattr(other.figure, name) for name in TWINS] == [
                getattr(figure, name) for name in TWINS]), None)
        if figure.held_out and twin is not None:
            rows.append((twin.figure.title, len(panel.bars), *_found(twin), *_found(panel)))
            fitted.update((population.title, None) for population in drawn.populations
                          if population.name == twin.figure.sweep)
    if not rows:
        return []
    titles, *columns = zip(*rows)
    rows.append(("all", *(sum(column) for column in columns)))
    count, near, _, held_near, held_reproduced = rows[-1][1:]
    sentence = (f"With parameters of its own {near} of {count} bars are near the paper's; with"
                " those that"
            f" nothing published of it was used for (held out) {held_near}, of which"
            f" {held_reproduced} {'is' if held_reproduced == 1 else 'are'} reproduced.")
    groups = ("parameters of its own", "held out")
    return [Finding("held_out", f"{', '.join(fitted)} with parameters of its own, and held out", (
        Table("Near the paper's, and reproduced", (
            Column("published", is_text=True), Column("of"),
            *(Column(name, "", group) for group in groups for name in ("near", REPRODUCED))),
            tuple(rows), (f"Near: within {WITHIN_PERCENT:.0f} % and {WITHIN_POINTS:.0f} points,"
                          " whatever the interval. Reproduced: the whole interval.",)),),
        sentence=sentence)]


def _found(panel: BarFigure) -> tuple[int, int]:
    """How many bars are near, and how many are reproduced."""
    return sum(map(close, panel.bars)), panel.counts[REPRODUCED]


# The joint distribution --------------------------------------------------------------

def _joints(name: str) -> list[Finding]:
    """The share of responses by RTT and bandwidth, as drawn, and products of both as lines.

    One for each data centre that has a file beside the rows. Raises UsageError.
    """
    made = []
    for path in sorted(rows.FOLDER.glob(rows.joint_path_of(name, "*").name)):
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
    """The findings of a scenario's fit, none without one. Raises FirstFlightError if damaged."""
    path = FITS / f"{name}.json"
    found = data.read(path).findings if path.is_file() else ()
    return tuple(replace(finding, chart=replace(finding.chart, is_measured=False))
                 if finding.chart else finding for finding in found)
