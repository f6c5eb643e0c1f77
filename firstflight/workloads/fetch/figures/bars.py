"""Figures of bars: a table with all numbers of each bar, and a chart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from firstflight.base.stats import Estimate
from firstflight.base.words import format_lossless, join_words
from firstflight.findings.bar import Bar
from firstflight.findings.charts import BarChart, Chart, LineChart, TimeChart
from firstflight.findings.claims import LEAST_DRAWS, UNDECIDED
from firstflight.findings.difference import Difference
from firstflight.findings.findings import Cell, Column, Finding, Table
from firstflight.findings.quantities import quantity
from firstflight.net.headers import MSS
from firstflight.scenario import published
from firstflight.workloads.fetch.figures import ccdf, summary
from firstflight.workloads.fetch.figures.bar_figure import BarFigure, NoBars
from firstflight.workloads.fetch.figures.figure import Analysis, fixed, interval
from firstflight.workloads.fetch.figures.recovery import (ABOVE_LOSS, beyond_lossless, effect,
                                                          lines_above)
from firstflight.workloads.fetch.scenario.scenario import JOINT, OF_EXPERIMENT, Figure, Scenario

TWO_WEEKS = ("Improved: the paper's comparison of two weeks, each window with the responses of its"
             " own week. The baseline's week has more far and slow responses. The window alone:"
             " the same responses under both windows. This is what the window does.")
IN_SEGMENTS = "send_buffer_bytes"  # a quantity that sources give in segments
# Quantities of which a bar is one value where the paper has a bucket of values.
EXACT = ("rtt_ms", "bandwidth_kbps")
# Medians have a column where one differs from its mean by more than this, in the metric's unit.
MEDIANS_DIFFER = 0.1

# Further charts of the samples (workloads.fetch.scenario.figures.ALSO).
CHARTS: dict[str, Callable[[BarFigure, Chart], LineChart]] = {"ccdf": ccdf.chart}
ColumnGetter = tuple[Column, Callable[[Bar], Cell]]  # a column, and a bar's cell in it
# What a bar is a mean over, by Figure.weights.
_AVERAGED = {JOINT: "the joint distribution of RTT and bandwidth",
             "response_bytes": "response sizes by the paper's shares",
             "bdp_bytes": "bandwidth-delay products by the paper's shares"}


def bars(analysis: Analysis, figure: Figure) -> list[Finding]:
    """The findings of a figure of bars, with its further charts. Raises NoBars without bars.

    A bar is a bucket, with what a larger window improves there, or a window.
    """
    if figure.name in analysis.missing:
        raise NoBars(analysis.missing[figure.name])
    scenario = analysis.scenario
    bar_figure = analysis.bar_figures[figure.name]
    drawn = chart(scenario, bar_figure)
    source = ""
    if figure.is_published:
        source = f"{published.source(figure.published)} (paper/{figure.published})"
    findings = [Finding(
        figure.name, figure.title, tables=(figure_table(scenario, bar_figure),),
        statements=bar_figure.statements, sentence=summary.figure_sentence(bar_figure),
        bars=bar_figure.counts, chart=drawn, held_out=figure.held_out, published=source)]

    for name in figure.also:
        further = CHARTS[name](bar_figure, drawn)
        findings.append(Finding(f"{figure.name}_{name}", further.title, chart=further))
    return findings


def figure_table(scenario: Scenario, bar_figure: BarFigure) -> Table:
    """The numbers of one figure, without empty columns."""
    means = _window_columns(bar_figure) if bar_figure.is_sweep else _pair_columns(bar_figure)
    columns = [*_first_columns(bar_figure), *means, *_improved_columns(bar_figure),
               *_further_columns(bar_figure), *_published_columns(bar_figure)]
    rows = []
    for bar in bar_figure.bars:
        rows.append(tuple(cell_of(bar) for _, cell_of in columns))
    return Table(bar_figure.figure.title, tuple(column for column, _ in columns), tuple(rows),
                 notes=tuple(_notes(scenario, bar_figure))).without_empty()


def averaged(figure: Figure) -> str:
    """What each bar of a figure is a mean over, in words; "" where a bar is one network."""
    if not figure.weights or figure.weights in _AVERAGED:
        return _AVERAGED.get(figure.weights, "")
    name = quantity(figure.weights).label or quantity(figure.weights).head
    whose = "the paper's" if published.is_of_the_paper(figure.published) else "its"
    return f"{name} by {whose} shares"


def _pair_columns(bar_figure: BarFigure) -> list[ColumnGetter]:
    """Columns of the means under both windows."""
    figure, unit = bar_figure.figure, bar_figure.metric.unit
    return [(Column(f"IW{figure.baseline_initcwnd}", unit, "mean", rank=3),
             lambda bar: bar.difference.base.value),
            (Column(f"IW{figure.experiment_initcwnd}", unit, "mean", rank=3),
             lambda bar: bar.difference.experiment.value)]


def _window_columns(bar_figure: BarFigure) -> list[ColumnGetter]:
    """Columns of the mean and the median under a bar's window, and of the published level."""
    unit = bar_figure.metric.unit
    show_medians = any(abs(bar.difference.experiment_median - bar.difference.experiment.value)
                  > MEDIANS_DIFFER for bar in bar_figure.bars)

    def deviation_percent(bar: Bar) -> Cell:
        level = bar.published.level
        return (bar.difference.experiment.value / level - 1) * 100 if level else None

    return [(Column("mean", unit, "under this window"),
             lambda bar: bar.difference.experiment.value),
            (Column("median", unit, "under this window", rank=1),
             lambda bar: bar.difference.experiment_median if show_medians else ""),
            (Column("published", unit, "under this window"), lambda bar: bar.published.level),
            (Column("off", "%", "under this window", signed=True, rank=0), deviation_percent)]


def _first_columns(bar_figure: BarFigure) -> list[ColumnGetter]:
    """Columns of the bars' labels and shares, and of how many fetches a bar has and excludes."""
    any_excluded = bar_figure.excluded.total > 0
    return [(Column(bar_figure.by.head, bar_figure.by.unit),
             lambda bar: bar_figure.own_window or bar.label),
            (Column("share", "%", digits=2, rank=2), lambda bar: bar.share_percent),
            (Column("n"), lambda bar: bar.difference.n),
            (Column("excluded"), lambda bar: bar.difference.excluded.total if any_excluded else "")]


def _improved_columns(bar_figure: BarFigure) -> list[ColumnGetter]:
    """Columns of what the larger window saves; of medians where they differ from the means."""
    unit, group = bar_figure.metric.unit, "improved"
    is_of_experiment = bar_figure.figure.percent_of == OF_EXPERIMENT
    show_medians = False
    if not bar_figure.is_sweep and bar_figure.figure.by != "percentile":
        changes = [bar.difference for bar in bar_figure.bars]
        show_medians = any(abs(change.median_absolute - change.absolute.value) > MEDIANS_DIFFER
                           for change in changes)

    return [(Column("", unit, group), lambda bar: bar.difference.absolute.value),
            (Column("95 % interval", unit, group),
             lambda bar: _interval_cell(bar, bar.difference.absolute)),
            (Column("", "%", group), lambda bar: bar.difference.percent.value),
            (Column("95 % interval", "%", group, rank=0),
             lambda bar: _interval_cell(bar, bar.percent)),
            (Column("as printed", "%", group),
             lambda bar: bar.percent.value if is_of_experiment else ""),
            (Column("of medians", unit, group, rank=1),
             lambda bar: bar.difference.median_absolute if show_medians else "")]


def _interval_cell(bar: Bar, estimate: Estimate) -> Cell:
    """The cell of an interval: a word where chance cannot change the bar."""
    return "exact" if bar.difference.exact else interval(estimate.interval)


def _further_columns(bar_figure: BarFigure) -> list[ColumnGetter]:
    """Columns of the gain beyond the lossless bar, and of the paired comparison."""
    unit = bar_figure.metric.unit
    recovery, paired = "recovery", "the window alone"  # groups of columns

    def of_gain(bar: Bar, cell_of: Callable[[Estimate], Cell]) -> Cell:
        gain = beyond_lossless(bar_figure, bar)
        return "" if gain is None else cell_of(gain)

    def of_paired(bar: Bar, cell_of: Callable[[Difference], Cell]) -> Cell:
        return "" if bar.difference.same is None else cell_of(bar.difference.same)

    return [(Column("beyond lossless", unit, recovery),
             lambda bar: of_gain(bar, lambda gain: gain.value)),
            (Column("95 % interval", unit, recovery),
             lambda bar: of_gain(bar, lambda gain: interval(gain.interval))),
            (Column("word", "", recovery, is_text=True), lambda bar: effect(bar_figure, bar)),
            (Column("", unit, paired),
             lambda bar: of_paired(bar, lambda change: change.absolute.value)),
            (Column("95 % interval", unit, paired, rank=0),
             lambda bar: of_paired(bar, lambda change: interval(change.absolute.interval))),
            (Column("", "%", paired),
             lambda bar: of_paired(bar, lambda change: change.percent.value))]


def _published_columns(bar_figure: BarFigure) -> list[ColumnGetter]:
    """Columns of what was published, of how far ours is from it, and of the result."""
    unit, off = bar_figure.metric.unit, "ours less published"
    return [(Column("", unit, "published"), lambda bar: bar.published.absolute),
            (Column("", "%", "published"), lambda bar: bar.published_percent),
            (Column("off", "%", off, digits=0, signed=True, rank=0),
             lambda bar: bar.deviation_percent),
            (Column("off", "points", off, signed=True, rank=0), lambda bar: bar.deviation_points),
            (Column("result", is_text=True, is_outcome=True), lambda bar: bar.result.outcome),
            (Column("test", is_text=True, rank=0), lambda bar: bar.result.test)]


# Notes -------------------------------------------------------------------------------

def _notes(scenario: Scenario, bar_figure: BarFigure) -> list[str]:
    """Notes on what the table's values are, and on what they exclude."""
    figure = bar_figure.figure
    over = averaged(figure)
    mean_of = f"averaged over {over}" if over else "one network a bar"
    if scenario.population(figure.sweep) is not None:
        mean_of = "weighted mean over a population of clients and responses"
    notes = [f"{bar_figure.metric.what}; {bar_figure.client}, {bar_figure.congestion_control};"
             f" {mean_of}"]

    if figure.percent_of == OF_EXPERIMENT:
        notes.append("As printed: the source's own percentage, base / experiment − 1, which the"
                     " comparison uses. The other percentages are of the baseline.")
    if any(bar.difference.same for bar in bar_figure.bars):
        notes.append(TWO_WEEKS)

    few = [bar.label for bar in bar_figure.bars if bar.result.outcome == UNDECIDED
           and not bar.difference.exact and bar.difference.draws < LEAST_DRAWS]
    if few:
        notes.append(f"Too few for an interval (fewer than {LEAST_DRAWS} independent values):"
                     f" {', '.join(few)}.")
    return [*notes, *bar_figure.remarks, *_exclusions(bar_figure)]


def _exclusions(bar_figure: BarFigure) -> list[str]:
    """Lines on what the bars exclude. Bars that exclude the same share a line."""
    labels_of: dict[str, list[str]] = {}  # by what bars exclude
    for bar in bar_figure.bars:
        change = bar.difference
        if not change.excluded.total:
            continue
        what = f"excluded: {change.excluded}"
        if change.cells < change.cells_requested:
            what = f"{change.cells} of {change.cells_requested} cells count; {what}"
        labels_of.setdefault(what, []).append(bar.label)
    return [f"{', '.join(labels)}: {what}." for what, labels in labels_of.items()]


# The chart ---------------------------------------------------------------------------

def chart(scenario: Scenario, bar_figure: BarFigure) -> Chart:
    """A chart of improvements like the paper's Figure 5, or of windows like its Figure 2."""
    figure, metric = bar_figure.figure, bar_figure.metric
    # Whether the responses are drawn from the paper's population.
    like_the_papers = scenario.population(figure.sweep) is not None
    foot = (_choice(figure) if like_the_papers else "", _exact_values(scenario, bar_figure),
            _in_several(bar_figure), _percentages(bar_figure))
    around: dict[str, Any] = {
        "context": _context(scenario, bar_figure),
        "compared": _weeks(bar_figure) if like_the_papers else "",
        "foot": " ".join(filter(None, foot)),
        "alarm": f"excluded: {bar_figure.excluded}" if bar_figure.excluded.total else "",
        "axis": bar_figure.by.axis, "unit": metric.unit,
        "over": "clients" if like_the_papers else "repeats",
        "publisher": _publisher(figure, like_the_papers)}

    if bar_figure.is_sweep:
        named = tuple(replace(bar, label=bar_figure.label_of(bar)) for bar in bar_figure.bars)
        baseline = bar_figure.own_window or str(figure.baseline_initcwnd)
        measured = "time" if metric.unit == "ms" else metric.label or metric.head
        return TimeChart(figure.title, **around, baseline=baseline, measured=measured,
                         improved=metric.improved, bars=named)

    # Where the last bucket is open (">5000"), all others are named by their upper ends, as in the
    # paper.
    is_open = any(bar.label.startswith(">") for bar in bar_figure.bars)
    upper = "≤ " if is_open and not _is_exact(scenario, bar_figure) else ""
    windows = figure.baseline_initcwnd, figure.experiment_initcwnd
    title = figure.title
    if not all(f"IW {window} " in title for window in windows):
        title = f"{title}: {windows[0]} → {windows[1]} segments"
    return BarChart(
        title, **around, bars=tuple(_labelled(bar_figure, bar, upper) for bar in bar_figure.bars),
        above=_above(scenario, bar_figure), is_like_the_papers=like_the_papers)


def _context(scenario: Scenario, bar_figure: BarFigure) -> tuple[str, ...]:
    """Lines on what was measured and averaged, and on the parameters that all cells share."""
    figure = bar_figure.figure
    averages = averaged(figure)
    metric = bar_figure.metric.what.replace("the client's", f"{bar_figure.client}'s")
    line = f"real Linux TCP, {bar_figure.congestion_control}; {metric}"
    if averages:
        line += f", averaged over {averages}"
    if scenario.population(figure.sweep) is not None:
        return (line,)
    return tuple(filter(None, (line, fixed(scenario.sweep(figure.sweep).cells))))


def _publisher(figure: Figure, like_the_papers: bool) -> str:
    """Who published the values of a figure, in words; "" for none."""
    if not figure.is_published:
        return ""
    if not published.is_of_the_paper(figure.published):
        return "by them"
    return "in the paper" if like_the_papers else "in the paper, of its own users"


def _above(scenario: Scenario, bar_figure: BarFigure) -> str:
    """The meaning of the text above each bar; "" where there is none."""
    if bar_figure.is_of_loss:
        return ABOVE_LOSS
    if bar_figure.figure.by == IN_SEGMENTS:
        return f"in segments of {MSS} bytes"
    has_shares = any(bar.share_percent is not None for bar in bar_figure.bars)
    return _of_shares(scenario) if has_shares else ""


def _of_shares(scenario: Scenario) -> str:
    """The meaning of the shares above the bars.

    Where only one client in several is measured, they are not the shares of the paper.
    """
    one_in = scenario.drawn.one_in if scenario.drawn else 1
    if one_in == 1:
        return "share of the paper's responses"
    return f"share of the responses of one client in {one_in}"


def _is_exact(scenario: Scenario, bar_figure: BarFigure) -> bool:
    """Whether each bar was measured at one value, where the paper has a bucket."""
    figure = bar_figure.figure
    return scenario.population(figure.sweep) is None and figure.by in EXACT


def _exact_values(scenario: Scenario, bar_figure: BarFigure) -> str:
    """A sentence on the values at which bars were measured, where the paper has buckets; or ""."""
    opened = [bar for bar in bar_figure.bars if bar.label.startswith(">")]
    if not (opened and _is_exact(scenario, bar_figure)):
        return ""
    values = join_words([f"{bar.label} at {format_lossless(float(bar.value))}" for bar in opened])
    theirs = "; the paper's are buckets that end there" if bar_figure.figure.is_published else ""
    return f"Measured at exactly these values, {values} {bar_figure.by.unit}{theirs}."


def _in_several(bar_figure: BarFigure) -> str:
    """A note where a trial counts in more than one bucket; "" where no trial does."""
    if bar_figure.is_sweep or bar_figure.figure.by == "percentile":
        return ""  # all bars of these figures have the same trials
    counted = sum(bar.difference.n for bar in bar_figure.bars)
    return "A trial may be in several bars." if counted > bar_figure.n else ""


def _choice(figure: Figure) -> str:
    """How the population's parameters were chosen, in a sentence."""
    if figure.held_out:
        return "Held out: no parameter of this population was chosen by these published values."
    return "Fitted: the population's parameters were chosen to match the paper."


def _weeks(bar_figure: BarFigure) -> str:
    """Which weeks the bars compare, and which the paper compared."""
    if any(bar.difference.same for bar in bar_figure.bars):
        return "two different weeks, as in the paper"
    return "the window alone, the same responses; in the paper: two different weeks"


def _percentages(bar_figure: BarFigure) -> str:
    """A note where published percentages were converted; "" where none was."""
    if bar_figure.figure.percent_of != OF_EXPERIMENT or bar_figure.is_sweep:
        return ""
    if all(bar.published_percent is None for bar in bar_figure.bars):
        return ""
    return "Published percentages are converted to parts of the baseline."


def _labelled(bar_figure: BarFigure, bar: Bar, upper: str) -> Bar:
    """The bar with its label in the chart and the text above it.

    upper: a prefix for closed buckets, such as "≤ ".
    """
    label = bar_figure.label_of(bar)
    if label == bar.label and not label.startswith(">"):
        label = f"{upper}{label}"
    above = lines_above(bar_figure, bar)
    if bar_figure.figure.by == IN_SEGMENTS:
        above = _segments(bar)
    return replace(bar, label=label, above=above)


def _segments(bar: Bar) -> tuple[str, str]:
    """Two lines above a bar: an empty one, and its size in segments if that is a whole number."""
    segments, rest = divmod(int(bar.value), MSS)
    return "", str(segments) if segments and not rest else ""
