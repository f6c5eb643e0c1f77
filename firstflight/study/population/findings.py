"""The findings of a scenario with populations, besides its own figures.

The paper's Figure 5 on one page, what each cause adds to it, and the joint distributions of RTT and
bandwidth from which clients are drawn.
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
from firstflight.scenario import published
from firstflight.study.population.ablation import AXES, Step, close, explained
from firstflight.workloads.fetch.figures.bar_figure import BarFigure, NoBars
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.scenario import rows
from firstflight.workloads.fetch.scenario.population import Populations
from firstflight.workloads.fetch.scenario.scenario import Scenario

# Findings on how each population was fitted, as findings.render.data writes them: what was fitted
# to what, how far the paper fixes each parameter, each mechanism switched off in turn, and what
# else was tried. All of it is simulated, by paper/fit of commit c688d26e, and nothing measures it.
FITS = SCENARIOS / "fits"
DIAGONALS_BYTES = (1000, 5000, 10000, 50000, 100000)
TWINS = "kind", "by", "published", "panel"  # equal in the same figure of two populations


def population_findings(scenario: Scenario, drawn: Populations, records: Sequence[Record],
                        findings: Sequence[Finding], judged: Sequence[BarFigure]
                        ) -> list[Finding]:
    """Further findings of a scenario with populations.

    findings: those of its figures; those of Figure 5 are shown again, on one page. judged: its
    figures of bars.
    """
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
    except NoBars as error:
        made.append(Finding("causes", "What each cause adds", missing=str(error)))
    return [*made, *_held_out(judged, drawn), *_joints(scenario.name), *fit_findings(scenario.name)]


# Causes ------------------------------------------------------------------------------

def _causes(levels: Sequence[Step]) -> Finding:
    """What each cause adds: a row for each step, the population itself last, then the paper."""
    tables = [_overview(levels), *(_by_bucket(levels, axis) for axis in AXES)]
    maps = tuple(SquareMap(
        f"by {quantity(AXES[axis]).axis}",
        tuple(bar.label for bar in levels[0].bars[axis]),
        (tuple(None if bar.published.absolute is None else Square(bar.published.absolute)
               for bar in levels[0].bars[axis]),
         *(tuple(Square(bar.difference.absolute.value, is_near=close(bar))
                 for bar in step.bars[axis])
           for step in reversed(levels)))) for axis in AXES)
    slower = " ".join(filter(None, map(_slower, levels)))
    return Finding(
        "causes", "What each cause adds", tables=tuple(tables),
        sentence=f"From {levels[0].title} to everything, the bars near the paper's are "
                 + ", ".join(str(step.near) for step in levels)
                 + f" of {levels[0].count}. {slower}",
        chart=SquareChart(
            "What each cause adds to Figure 5",
            (f"Milliseconds saved by {levels[-1].windows[-1]} segments, with the same responses in"
             " each row. Each row adds a cause; the last is the whole population.",),
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
        *(sum(map(close, step.bars[axis])) for axis in AXES), step.near,
        sum(step.slower.values())) for step in levels)
    return Table("What each cause adds", columns, rows, (
        "n: responses, each under both windows. Slower: by more than 1 ms.",
        *filter(None, map(_slower, levels))))


def _by_bucket(levels: Sequence[Step], axis: str) -> Table:
    of_last = levels[-1].bars[axis]
    head = quantity(AXES[axis])
    columns = (Column("ms saved", is_text=True),
               *(Column(bar.label, head.unit) for bar in of_last))
    rows: list[tuple[Cell, ...]] = [
        (step.title, *(bar.difference.absolute.value for bar in step.bars[axis]))
        for step in levels]
    rows.append(("the paper", *(bar.published.absolute for bar in of_last)))
    return Table(f"Step by step, by {head.head}", columns, tuple(rows))


def _slower(step: Step) -> str:
    """A sentence on the responses that the larger window makes slower; "" for none."""
    if not step.slower:
        return ""
    why = "; ".join(f"{count}: {reason}" for reason, count in
                    sorted(step.slower.items(), key=lambda counted: -counted[1]))
    return (f"{step.title[0].upper()}{step.title[1:]}: {sum(step.slower.values())} of {step.n}"
            f" responses are slower with {step.windows[-1]} segments ({why}).")


def _printed_mean_ms(scenario: Scenario, drawn: Populations) -> float | None:
    """The paper's saving of the mean, from its table of percentiles; None without such a table."""
    explained = drawn.explained
    return next((bars["mean"].absolute for figure in scenario.figures
                 if explained is not None and figure.sweep == explained.name
                 and figure.by == "percentile"
                 and "mean" in (bars := published.buckets(figure.published, figure.panel))), None)


def _two_weeks(step: Step, printed_ms: float | None) -> Finding:
    """The means by Figure 5's panels and the paper's, and what the window does alone.

    step: the last. printed_ms: the paper's saving of the mean, None where it has none.
    """
    rows: list[tuple[Cell, ...]] = []
    for axis, bars in step.bars.items():
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
    near = f"{step.near} of {step.count}"
    sentence = (f"Of Figure 5's buckets {near} are within {WITHIN_PERCENT:.0f} % of the paper's"
            f" milliseconds and {WITHIN_POINTS:.0f} points of its percentage, compared as the paper"
            " compared: each window in a week of its own. The window alone, with the same responses"
            f" under both, saves {format_number(float(str(rows[0][-1])))} of the"
            f" {format_number(step.base_ms - step.experiment_ms)} ms by which the two weeks"
            " differ.")
    return Finding("two_weeks", "What the window does, and what the two weeks do", (
        Table("Share × mean, added up over the buckets of a panel", (
            Column("panel", is_text=True), Column("near"), Column("of"),
            *(column for window in step.windows for column in (
                Column("ours", "ms", f"IW {window}"), Column("paper", "ms", f"IW {window}"),
                Column("off", "%", f"IW {window}", signed=True))),
            Column("ours", "ms", "saved"), Column("paper", "ms", "saved"),
            Column("window alone", "ms", "saved")), tuple(rows)),
        _where_from(step, float(str(rows[0][-1])), printed_ms)), sentence=sentence)


def _where_from(step: Step, alone: float, printed: float | None) -> Table:
    """The parts of the saving, by the buckets of RTT; alone: the part of the window, in ms."""
    bars = step.bars["RTT"]
    saved = step.base_ms - step.experiment_ms
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
    """Figures of held-out populations, each next to the same figure of a fitted one."""
    rows: list[tuple[Cell, ...]] = []
    fitted: dict[str, None] = {}  # the titles of the populations
    for bar_figure in judged:
        figure = bar_figure.figure
        twin = next((other for other in judged if not other.figure.held_out and [
            getattr(other.figure, name) for name in TWINS] == [
                getattr(figure, name) for name in TWINS]), None)
        if figure.held_out and twin is not None:
            rows.append((twin.figure.title, len(bar_figure.bars), *_near_and_reproduced(twin),
                         *_near_and_reproduced(bar_figure)))
            fitted.update((population.title, None) for population in drawn.populations
                          if population.name == twin.figure.sweep)
    if not rows:
        return []
    titles, *columns = zip(*rows)
    rows.append(("all", *(sum(column) for column in columns)))
    count, near, _, held_near, held_reproduced = rows[-1][1:]
    sentence = (f"With parameters of its own, {near} of {count} bars are near the paper's. With"
                f" parameters that none of its published values chose (held out), {held_near} are,"
                f" of which {held_reproduced} {'is' if held_reproduced == 1 else 'are'}"
                " reproduced.")
    groups = ("parameters of its own", "held out")
    return [Finding("held_out", f"{', '.join(fitted)} with parameters of its own, and held out", (
        Table("Near the paper's, and reproduced", (
            Column("published", is_text=True), Column("of"),
            *(Column(name, "", group) for group in groups for name in ("near", REPRODUCED))),
            tuple(rows), (f"Near: within {WITHIN_PERCENT:.0f} % and {WITHIN_POINTS:.0f} points,"
                          " whatever the interval. Reproduced: the whole interval.",)),),
        sentence=sentence)]


def _near_and_reproduced(bar_figure: BarFigure) -> tuple[int, int]:
    """How many bars are near, and how many are reproduced."""
    return sum(map(close, bar_figure.bars)), bar_figure.counts[REPRODUCED]


# The joint distribution --------------------------------------------------------------

def _joints(name: str) -> list[Finding]:
    """The shares of responses by RTT and bandwidth, as drawn, with lines of equal BDP.

    One finding for each data centre with a file next to the rows. Raises UsageError.
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
    """The findings on a scenario's fit; () without one. Raises FirstFlightError if damaged."""
    path = FITS / f"{name}.json"
    found = data.read(path).findings if path.is_file() else ()
    return tuple(replace(finding, chart=replace(finding.chart, is_measured=False))
                 if finding.chart else finding for finding in found)
