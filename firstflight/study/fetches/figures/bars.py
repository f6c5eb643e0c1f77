"""Figures of bars: the table, with all numbers that are known of each, and the chart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

from firstflight.base.stats import Estimate
from firstflight.findings.bar import Bar
from firstflight.findings.charts import BarChart, Chart, LineChart, TimeChart
from firstflight.findings.claims import LEAST_DRAWS, UNDECIDED
from firstflight.findings.difference import Difference
from firstflight.findings.findings import Cell, Column, Finding, Table
from firstflight.findings.quantities import quantity
from firstflight.net.segments import MSS
from firstflight.study.fetches.figures import summary
from firstflight.study.fetches.figures.bar_figure import BarFigure, NoPanel
from firstflight.study.fetches.figures.figure import Analysis, fixed, interval
from firstflight.study.fetches.figures.recovery import (ABOVE_LOSS, beyond_lossless, effect,
                                                        lines_above)
from firstflight.study.fetches.scenario.scenario import JOINT, OF_EXPERIMENT, Figure, Scenario
from firstflight.study.scenario import published

TWO_WEEKS = ("Improved: the paper's comparison of two weeks, each window with the responses of its"
             " own week. The baseline's week has more far and slow responses. The window alone:"
             " the same responses under both windows. This is what the window does.")
IN_SEGMENTS = "send_buffer_bytes"  # a quantity that sources give in segments
MEDIANS_DIFFER = 0.1  # from the means, to be worth a column

ColumnGetter = tuple[Column, Callable[[Bar], Cell]]
_AVERAGED = {JOINT: "the joint distribution of RTT and bandwidth",
             "response_bytes": "response sizes by the paper's shares",
             "bdp_bytes": "bandwidth-delay products by the paper's shares"}


def bars(analysis: Analysis, figure: Figure) -> list[Finding]:
    """What a larger window improves, a bar for each bucket; or a bar for each window.

    Raises NoPanel where there are no bars.
    """
    if figure.name in analysis.missing:
        raise NoPanel(analysis.missing[figure.name])
    scenario, panel = analysis.scenario, analysis.panels[figure.name]
    drawn = chart(scenario, panel)
    return [Finding(
        figure.name, figure.title, tables=(figure_table(scenario, panel),),
        statements=panel.statements, sentence=summary.figure_sentence(panel),
        bars=panel.counts, chart=drawn, held_out=figure.held_out,
        published=f"{published.source(figure.published)} (paper/{figure.published})"
        if figure.is_published else ""),
        *(Finding(f"{figure.name}_{name}", further.title, chart=further)
          for name in figure.also for further in [also(name)(panel, drawn)])]


def also(name: str) -> Callable[[BarFigure, Chart], LineChart]:
    """What draws a further chart of what is behind bars (study.fetches.scenario.figures.ALSO)."""
    chart: Callable[[BarFigure, Chart], LineChart] = import_module(
        f"{__package__}.{name}").chart
    return chart


def figure_table(scenario: Scenario, panel: BarFigure) -> Table:
    """The numbers of one figure; columns that hold nothing are left out."""
    figure, unit = panel.figure, panel.metric.unit
    means: list[ColumnGetter] = [(Column(f"IW{figure.baseline_initcwnd}", unit, "mean", rank=3),
                                  lambda bar: bar.difference.base.value),
                                 (Column(f"IW{figure.experiment_initcwnd}", unit, "mean", rank=3),
                                  lambda bar: bar.difference.experiment.value)]
    columns = [*_first_columns(panel), *(_window_columns(panel) if panel.is_sweep else means),
               *_improved_columns(panel), *_further_columns(panel), *_published_columns(panel)]
    return Table(figure.title, tuple(column for column, _ in columns),
                 tuple(tuple(cell(bar) for _, cell in columns) for bar in panel.bars),
                 tuple(_notes(scenario, panel))).without_empty()


def averaged(figure: Figure) -> str:
    """What a figure's bars are averaged over, "" for nothing."""
    if not figure.weights or figure.weights in _AVERAGED:
        return _AVERAGED.get(figure.weights, "")
    name = quantity(figure.weights).label or quantity(figure.weights).head
    whose = "the paper's" if published.is_of_the_paper(figure.published) else "its"
    return f"{name} by {whose} shares"


def _window_columns(panel: BarFigure) -> list[ColumnGetter]:
    unit = panel.metric.unit
    medians = any(abs(bar.difference.experiment_median - bar.difference.experiment.value)
                  > MEDIANS_DIFFER for bar in panel.bars)
    return [(Column("mean", unit, "under this window"),
             lambda bar: bar.difference.experiment.value),
            (Column("median", unit, "under this window", rank=1),
             lambda bar: bar.difference.experiment_median if medians else ""),
            (Column("published", unit, "under this window"), lambda bar: bar.published.level),
            (Column("off", "%", "under this window", signed=True, rank=0),
             lambda bar: (bar.difference.experiment.value / level - 1) * 100
             if (level := bar.published.level) else None)]


def _first_columns(panel: BarFigure) -> list[ColumnGetter]:
    """What the bars are of, and how many fetches are behind them."""
    left_out = panel.excluded.total
    return [(Column(panel.by.head, panel.by.unit), lambda bar: bar.label),
            (Column("share", "%", digits=2, rank=2), lambda bar: bar.share_percent),
            (Column("n"), lambda bar: bar.difference.n),
            (Column("excluded"), lambda bar: bar.difference.excluded.total if left_out else "")]


def _improved_columns(panel: BarFigure) -> list[ColumnGetter]:
    unit, group = panel.metric.unit, "improved"
    printed = panel.figure.percent_of == OF_EXPERIMENT
    medians = not panel.is_sweep and panel.figure.by != "percentile" and any(
        abs(bar.difference.median_absolute - bar.difference.absolute.value) > MEDIANS_DIFFER
        for bar in panel.bars)
    return [(Column("", unit, group), lambda bar: bar.difference.absolute.value),
            (Column("95 % interval", unit, group),
             lambda bar: _ends(bar, bar.difference.absolute)),
            (Column("", "%", group), lambda bar: bar.difference.percent.value),
            (Column("95 % interval", "%", group, rank=0),
             lambda bar: _ends(bar, bar.percent)),
            (Column("as printed", "%", group), lambda bar: bar.percent.value if printed else ""),
            (Column("of medians", unit, group, rank=1),
             lambda bar: bar.difference.median_absolute if medians else "")]


def _ends(bar: Bar, ours: Estimate) -> Cell:
    return "exact" if bar.difference.exact else interval(ours.interval)


def _further_columns(panel: BarFigure) -> list[ColumnGetter]:
    """Columns for recovery beyond the lossless bar, and for the window alone without the weeks."""
    unit, recovered, alone = panel.metric.unit, "recovery", "the window alone"

    def recovery(bar: Bar, show: Callable[[Estimate], Cell]) -> Cell:
        known = beyond_lossless(panel, bar)
        return "" if known is None else show(known)

    def same(bar: Bar, show: Callable[[Difference], Cell]) -> Cell:
        return "" if bar.difference.same is None else show(bar.difference.same)

    return [(Column("beyond lossless", unit, recovered),
             lambda bar: recovery(bar, lambda known: known.value)),
            (Column("95 % interval", unit, recovered),
             lambda bar: recovery(bar, lambda known: interval(known.interval))),
            (Column("word", "", recovered, is_text=True), lambda bar: effect(panel, bar)),
            (Column("", unit, alone), lambda bar: same(bar, lambda alike: alike.absolute.value)),
            (Column("95 % interval", unit, alone, rank=0),
             lambda bar: same(bar, lambda alike: interval(alike.absolute.interval))),
            (Column("", "%", alone), lambda bar: same(bar, lambda alike: alike.percent.value))]


def _published_columns(panel: BarFigure) -> list[ColumnGetter]:
    unit, off = panel.metric.unit, "ours less published"
    return [(Column("", unit, "published"), lambda bar: bar.published.absolute),
            (Column("", "%", "published"), lambda bar: bar.published_percent),
            (Column("off", "%", off, digits=0, signed=True, rank=0),
             lambda bar: bar.off_percent),
            (Column("off", "points", off, signed=True, rank=0), lambda bar: bar.off_points),
            (Column("result", is_text=True, is_word=True), lambda bar: bar.result.word),
            (Column("test", is_text=True, rank=0), lambda bar: bar.result.test)]


# Notes -------------------------------------------------------------------------------

def _notes(scenario: Scenario, panel: BarFigure) -> list[str]:
    figure, over = panel.figure, averaged(panel.figure)
    mean_of = ("weighted mean over a population of clients and responses"
               if scenario.population(figure.sweep) is not None else
               f"averaged over {over}" if over else "one network a bar")
    notes = [f"{panel.metric.what}; {panel.client}, {panel.congestion_control}; {mean_of}"]
    if figure.percent_of == OF_EXPERIMENT:
        notes.append("As printed: the source's own percentage, base / experiment − 1, which the"
                     " comparison uses. The other percentages are of the baseline.")
    notes += [TWO_WEEKS] if any(bar.difference.same for bar in panel.bars) else []
    few = [bar.label for bar in panel.bars if bar.result.word == UNDECIDED
           and not bar.difference.exact and bar.difference.draws < LEAST_DRAWS]
    if few:
        notes.append(f"Too few for an interval (fewer than {LEAST_DRAWS} independent values):"
                     f" {', '.join(few)}.")
    return [*notes, *panel.remarks, *_left_out(panel)]


def _left_out(panel: BarFigure) -> list[str]:
    """What the bars lack, those that lack the same in one line."""
    lacking: dict[str, list[str]] = {}
    for bar in panel.bars:
        change = bar.difference
        if change.excluded.total:
            cells = (f"{change.cells} of {change.cells_requested} cells count; "
                     if change.cells < change.cells_requested else "")
            lacking.setdefault(f"{cells}excluded: {change.excluded}", []).append(bar.label)
    return [f"{', '.join(labels)}: {what}." for what, labels in lacking.items()]


# The chart ---------------------------------------------------------------------------

def chart(scenario: Scenario, panel: BarFigure) -> Chart:
    """Improvements like the paper's Figure 5, or a bar for each window like its Figure 2."""
    figure = panel.figure
    # Whether the responses are drawn from the paper's population.
    like_the_papers = scenario.population(figure.sweep) is not None
    averages = averaged(figure)
    metric = panel.metric.what.replace("the client's", f"{panel.client}'s")
    common = "" if like_the_papers else fixed(scenario.sweep(figure.sweep).cells)
    around: dict[str, Any] = {
        "context": (f"real Linux TCP, {panel.congestion_control}; {metric}"
                    f"{f', averaged over {averages}' if averages else ''}",
                    *([_choice(figure)] if like_the_papers else [common] if common else [])),
        "compared": _weeks(panel) if like_the_papers else "",
        "foot": _percentages(panel),
        "alarm": f"excluded: {panel.excluded}" if panel.excluded.total else "",
        "axis": panel.by.axis, "unit": panel.metric.unit,
        "over": "clients" if like_the_papers else "repeats",
        "publisher": "" if not figure.is_published else
                     "by them" if not published.is_of_the_paper(figure.published) else
                     "in the paper" if like_the_papers else "in the paper, of its own users"}
    if panel.is_sweep:
        of_time = panel.metric.unit == "ms"
        return TimeChart(figure.title, **around, baseline=str(figure.baseline_initcwnd),
                         measured="time" if of_time else panel.metric.label or panel.metric.head,
                         improved=panel.metric.improved,
                         bars=panel.bars)
    # Below an open bucket each one is named by its upper end, as in the paper.
    upper = "≤ " if any(bar.label.startswith(">") for bar in panel.bars) else ""
    windows = figure.baseline_initcwnd, figure.experiment_initcwnd
    title = figure.title if all(f"IW {window} " in figure.title for window in windows) else (
        f"{figure.title}: {windows[0]} → {windows[1]} segments")
    return BarChart(
        title, **around, bars=tuple(_labelled(panel, bar, upper) for bar in panel.bars),
        above=ABOVE_LOSS if panel.is_of_loss else
        f"in segments of {MSS} bytes" if figure.by == IN_SEGMENTS else
        "share of the paper's responses" if any(bar.share_percent is not None
                                                for bar in panel.bars) else "",
        is_like_the_papers=like_the_papers)


def _choice(figure: Figure) -> str:
    """How a population's parameters were chosen. A reader has to know it before the bars."""
    return ("Held out: no parameter of this population was chosen by these published values"
            if figure.held_out else
            "Fitted: the population's parameters were chosen to match the paper")


def _weeks(panel: BarFigure) -> str:
    return ("two different weeks, as in the paper"
            if any(bar.difference.same for bar in panel.bars) else
            "the window alone, the same responses; in the paper: two different weeks")


def _percentages(panel: BarFigure) -> str:
    """What published percentages are parts of, where their source prints others."""
    return "Published percentages are converted to parts of the baseline" if (
        panel.figure.percent_of == OF_EXPERIMENT and not panel.is_sweep
        and any(bar.published_percent is not None for bar in panel.bars)) else ""


def _labelled(panel: BarFigure, bar: Bar, upper: str) -> Bar:
    """A bar as the chart names it; upper: before the label, but for the open one's."""
    label = panel.label_of(bar)
    if label == bar.label and not label.startswith(">"):
        label = f"{upper}{label}"
    return replace(bar, label=label, above=_segments(bar) if panel.figure.by == IN_SEGMENTS else
                   lines_above(panel, bar))


def _segments(bar: Bar) -> tuple[str, str]:
    """Two lines above a bar of a size in bytes that sources give in segments."""
    whole, rest = divmod(int(bar.value), MSS)
    return "", str(whole) if whole and not rest else ""
