"""Figures of bars: the table, with all numbers that are known of each, and the chart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firstflight.base.stats import Estimate
from firstflight.findings.charts import Bar, BarChart, Chart, TimeBar, TimeChart
from firstflight.findings.claims import LEAST_DRAWS, UNDECIDED
from firstflight.findings.findings import Cell, Column, Finding, Table
from firstflight.findings.quantities import quantity
from firstflight.net.segments import MSS
from firstflight.study.fetches.figures import ccdf, summary
from firstflight.study.fetches.figures.buckets import Bucket, NoPanel, Panel, SameResponses
from firstflight.study.fetches.figures.claims import JudgedBar, JudgedPanel, judge_panel
from firstflight.study.fetches.figures.figure import Analysis, FigureResult, fixed, interval
from firstflight.study.fetches.figures.recovery import (ABOVE_LOSS, beyond_lossless, effect,
                                                        lines_above)
from firstflight.study.fetches.scenario.scenario import JOINT, OF_EXPERIMENT, Figure, Scenario
from firstflight.study.scenario import published

TWO_WEEKS = ("Improved: the paper's comparison of two weeks, each window with the responses of its"
             " own week. The baseline's week has more far and slow responses. The window alone:"
             " the same responses under both windows. This is what the window does.")
IN_SEGMENTS = "send_buffer_bytes"  # a quantity that sources give in segments
MEDIANS_DIFFER = 0.1  # from the means, to be worth a column

ALSO = {"ccdf": ccdf.chart}  # further charts of what is behind the bars, by their names

ColumnGetter = tuple[Column, Callable[[JudgedBar], Cell]]
_AVERAGED = {JOINT: "the joint distribution of RTT and bandwidth",
             "response_bytes": "response sizes by the paper's shares",
             "bdp_bytes": "bandwidth-delay products by the paper's shares"}


def bars(analysis: Analysis, figure: Figure) -> FigureResult:
    """What a larger window improves, a bar for each bucket; or a bar for each window.

    Raises NoPanel where there are no rows.
    """
    if figure.name in analysis.missing:
        raise NoPanel(analysis.missing[figure.name])
    scenario = analysis.scenario
    panel = analysis.panels[figure.name]
    labels = {bucket.label for bucket in panel.buckets}
    of_figure = judge_panel(panel, [
        claim for claim in scenario.claims if analysis.is_whole  # else the highest is not known
        or not claim.is_of_all_bars and labels.issuperset((*claim.larger, *claim.equal))],
        analysis.run.exact)
    drawn = chart(scenario, of_figure)
    return FigureResult(Finding(
        figure.name, figure.title, tables=(figure_table(scenario, of_figure),),
        statements=of_figure.statements, sentence=summary.figure_sentence(of_figure),
        bars=of_figure.counts, chart=drawn,
        held_out=figure.held_out,
        published=f"{published.source(figure.published)} (paper/{figure.published})"
        if figure.is_published else ""), of_figure, tuple(
            Finding(f"{figure.name}_{name}", further.title, chart=further)
            for name in figure.also for further in [ALSO[name](panel, drawn)]))


def figure_table(scenario: Scenario, judged: JudgedPanel) -> Table:
    """The numbers of one figure; columns that hold nothing are left out."""
    panel = judged.panel
    figure, unit = panel.figure, panel.metric.unit
    means: list[ColumnGetter] = [(Column(f"IW{figure.baseline_initcwnd}", unit, "mean", rank=3),
                            lambda row: row.bucket.base),
                           (Column(f"IW{figure.experiment_initcwnd}", unit, "mean", rank=3),
                            lambda row: row.bucket.experiment)]
    columns = [*_first_columns(panel), *(_window_columns(panel) if panel.is_sweep else means),
               *_improved_columns(panel), *_further_columns(panel), *_published_columns(panel)]
    return Table(figure.title, tuple(column for column, _ in columns),
                 tuple(tuple(cell(row) for _, cell in columns) for row in judged.rows),
                 tuple(_notes(scenario, judged))).without_empty()


def averaged(figure: Figure) -> str:
    """What a figure's bars are averaged over, "" for nothing."""
    if not figure.weights or figure.weights in _AVERAGED:
        return _AVERAGED.get(figure.weights, "")
    name = quantity(figure.weights).label or quantity(figure.weights).head
    whose = "the paper's" if published.is_of_the_paper(figure.published) else "its"
    return f"{name} by {whose} shares"


def _window_columns(panel: Panel) -> list[ColumnGetter]:
    unit = panel.metric.unit
    medians = any(abs(bucket.experiment_median - bucket.experiment) > MEDIANS_DIFFER
                  for bucket in panel.buckets)
    return [(Column("mean", unit, "under this window"), lambda row: row.bucket.experiment),
            (Column("median", unit, "under this window", rank=1),
             lambda row: row.bucket.experiment_median if medians else ""),
            (Column("published", unit, "under this window"),
             lambda row: row.bucket.published.level),
            (Column("off", "%", "under this window", signed=True, rank=0),
             lambda row: (row.bucket.experiment / level - 1) * 100
             if (level := row.bucket.published.level) else None)]


def _first_columns(panel: Panel) -> list[ColumnGetter]:
    """What the bars are of, and how many fetches are behind them."""
    left_out = panel.excluded.total
    return [(Column(panel.by.head, panel.by.unit), lambda row: row.bucket.label),
            (Column("share", "%", digits=2, rank=2), lambda row: row.bucket.share_percent),
            (Column("n"), lambda row: row.bucket.n),
            (Column("excluded"), lambda row: row.bucket.excluded.total if left_out else "")]


def _improved_columns(panel: Panel) -> list[ColumnGetter]:
    unit, group = panel.metric.unit, "improved"
    printed = panel.figure.percent_of == OF_EXPERIMENT
    medians = not panel.is_sweep and panel.figure.by != "percentile" and any(
        abs(bucket.median_absolute - bucket.absolute) > MEDIANS_DIFFER
        for bucket in panel.buckets)
    return [(Column("", unit, group), lambda row: row.bucket.absolute),
            (Column("95 % interval", unit, group),
             lambda row: "exact" if row.exact else interval(row.bucket.absolute_interval)),
            (Column("", "%", group), lambda row: row.bucket.percent),
            (Column("95 % interval", "%", group, rank=0),
             lambda row: "exact" if row.exact else interval(row.percent_interval)),
            (Column("as printed", "%", group), lambda row: row.percent if printed else ""),
            (Column("of medians", unit, group, rank=1),
             lambda row: row.bucket.median_absolute if medians else "")]


def _further_columns(panel: Panel) -> list[ColumnGetter]:
    """Columns for recovery beyond the lossless bar, and for the window alone without the weeks."""
    unit, recovered, alone = panel.metric.unit, "recovery", "the window alone"

    def recovery(row: JudgedBar, show: Callable[[Estimate], Cell]) -> Cell:
        known = beyond_lossless(panel, row.bucket)
        return "" if known is None else show(known)

    def same(row: JudgedBar, show: Callable[[SameResponses], Cell]) -> Cell:
        return "" if row.bucket.same is None else show(row.bucket.same)

    return [(Column("beyond lossless", unit, recovered),
             lambda row: recovery(row, lambda known: known.value)),
            (Column("95 % interval", unit, recovered),
             lambda row: recovery(row, lambda known: interval(known.interval))),
            (Column("word", "", recovered, is_text=True), lambda row: effect(panel, row.bucket)),
            (Column("", unit, alone), lambda row: same(row, lambda alike: alike.absolute)),
            (Column("95 % interval", unit, alone, rank=0),
             lambda row: same(row, lambda alike: interval(alike.interval))),
            (Column("", "%", alone), lambda row: same(row, lambda alike: alike.percent))]


def _published_columns(panel: Panel) -> list[ColumnGetter]:
    unit, off = panel.metric.unit, "ours less published"
    return [(Column("", unit, "published"), lambda row: row.bucket.published.absolute),
            (Column("", "%", "published"), lambda row: row.published_percent),
            (Column("off", "%", off, digits=0, signed=True, rank=0),
             lambda row: row.off_percent),
            (Column("off", "points", off, signed=True, rank=0), lambda row: row.off_points),
            (Column("result", is_text=True, is_word=True), lambda row: row.word),
            (Column("test", is_text=True, rank=0), lambda row: row.test)]


# Notes -------------------------------------------------------------------------------

def _notes(scenario: Scenario, judged: JudgedPanel) -> list[str]:
    panel, figure = judged.panel, judged.panel.figure
    over = averaged(figure)
    mean_of = ("weighted mean over a population of clients and responses"
               if scenario.population(figure.sweep) is not None else
               f"averaged over {over}" if over else "one network a bar")
    notes = [f"{panel.metric.what}; {panel.client}, {panel.congestion_control}; {mean_of}"]
    if figure.percent_of == OF_EXPERIMENT:
        notes.append("As printed: the source's own percentage, base / experiment − 1, which the"
                     " comparison uses. The other percentages are of the baseline.")
    notes += [TWO_WEEKS] if any(bucket.same for bucket in panel.buckets) else []
    few = [row.bucket.label for row in judged.rows if row.word == UNDECIDED
           and not row.exact and row.bucket.draws < LEAST_DRAWS]
    if few:
        notes.append(f"Too few for an interval (fewer than {LEAST_DRAWS} independent values):"
                     f" {', '.join(few)}.")
    return [*notes, *panel.remarks, *_left_out(panel)]


def _left_out(panel: Panel) -> list[str]:
    """What the buckets lack, those that lack the same in one line."""
    lacking: dict[str, list[str]] = {}
    for bucket in panel.buckets:
        if bucket.excluded.total:
            cells = (f"{bucket.cells} of {bucket.cells_requested} cells count; "
                     if bucket.cells < bucket.cells_requested else "")
            lacking.setdefault(f"{cells}excluded: {bucket.excluded}", []).append(bucket.label)
    return [f"{', '.join(labels)}: {what}." for what, labels in lacking.items()]


# The chart ---------------------------------------------------------------------------

def chart(scenario: Scenario, judged: JudgedPanel) -> Chart:
    """Improvements like the paper's Figure 5, or a bar for each window like its Figure 2."""
    panel, figure = judged.panel, judged.panel.figure
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
        "foot": _percentages(judged),
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
                         bars=tuple(_time_bar(panel, bucket) for bucket in panel.buckets))
    # Below an open bucket each one is named by its upper end, as in the paper.
    upper = "≤ " if any(bucket.label.startswith(">") for bucket in panel.buckets) else ""
    windows = figure.baseline_initcwnd, figure.experiment_initcwnd
    title = figure.title if all(f"IW {window} " in figure.title for window in windows) else (
        f"{figure.title}: {windows[0]} → {windows[1]} segments")
    return BarChart(
        title, **around, bars=tuple(_bar(panel, row, upper) for row in judged.rows),
        above=ABOVE_LOSS if panel.is_of_loss else
        f"in segments of {MSS} bytes" if figure.by == IN_SEGMENTS else
        "share of the paper's responses" if any(bucket.share_percent is not None
                                                for bucket in panel.buckets) else "",
        is_like_the_papers=like_the_papers)


def _choice(figure: Figure) -> str:
    """How a population's parameters were chosen. A reader has to know it before the bars."""
    return ("Held out: no parameter of this population was chosen by these published values"
            if figure.held_out else
            "Fitted: the population's parameters were chosen to match the paper")


def _weeks(panel: Panel) -> str:
    return ("two different weeks, as in the paper" if any(bucket.same for bucket in panel.buckets)
            else "the window alone, the same responses; in the paper: two different weeks")


def _percentages(judged: JudgedPanel) -> str:
    """What published percentages are parts of, where their source prints others."""
    return "Published percentages are converted to parts of the baseline" if (
        judged.panel.figure.percent_of == OF_EXPERIMENT and not judged.panel.is_sweep
        and any(row.published_percent is not None for row in judged.rows)) else ""


def _time_bar(panel: Panel, bucket: Bucket) -> TimeBar:
    """One window; its whisker is what differs from the baseline, whose responses were the same."""
    window = int(bucket.value) if panel.is_sweep else 0
    if panel.is_baseline(bucket):
        return TimeBar(bucket.label, Estimate(bucket.experiment, None, bucket.n), None,
                       bucket.published.level, bucket.n, bucket.excluded.total,
                       window=window)
    return TimeBar(bucket.label, Estimate(bucket.experiment, bucket.paired_interval, bucket.n),
                   bucket.percent, bucket.published.level, bucket.n, bucket.excluded.total,
                   bucket.is_unsure, window)


def _bar(panel: Panel, row: JudgedBar, upper: str) -> Bar:
    """upper: before the label of a bucket, but for the open one."""
    bucket = row.bucket
    label = (panel.by.zero if bucket.label == "0" else bucket.label
             if bucket.label.startswith(">") else f"{upper}{bucket.label}")
    alone, alone_percent = (bucket.same.absolute, bucket.same.percent) if bucket.same else (
        None, None)
    return Bar(label, Estimate(bucket.absolute, bucket.absolute_interval, bucket.n),
               Estimate(bucket.percent, bucket.percent_interval, bucket.n),
               bucket.published.absolute, bucket.published.percent, alone, alone_percent,
               bucket.share_percent, bucket.n, bucket.excluded.total,
               _segments(bucket) if panel.figure.by == IN_SEGMENTS else lines_above(panel, bucket))


def _segments(bucket: Bucket) -> tuple[str, str]:
    """Two lines above a bar of a size in bytes that sources give in segments."""
    whole, rest = divmod(int(bucket.value), MSS)
    return "", str(whole) if whole and not rest else ""
