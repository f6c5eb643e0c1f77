"""Figures of kernels: a bar for each kernel and its module's parameters, with published values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from firstflight.base.words import format_brief, plain
from firstflight.figures.shared import format_named
from firstflight.figures.window_changes import mean
from firstflight.findings.charts import Line, LineChart, Plot
from firstflight.findings.findings import Cell, Column, Finding, Table
from firstflight.parameters import default
from firstflight.scenario import published
from firstflight.setting.kernels import kernel_words
from firstflight.workloads.fetch.figures.bar_cells import by_cell
from firstflight.workloads.fetch.figures.bar_figure import NoBars
from firstflight.workloads.fetch.figures.figure import Analysis, heading
from firstflight.workloads.fetch.record.record import Record, quantity
from firstflight.workloads.fetch.scenario.figures import LOST, panel_of
from firstflight.workloads.fetch.scenario.scenario import Figure
from firstflight.workloads.fetch.scenario.sweep import CellKey, Value

LOST_HEAD = "lost segments"
# From the middle of the first and the last bar to the ends of the axis, as a part of the distance
# between bars.
ASIDE = 0.6
_COLOUR = 2  # the bars' (Line.look)


@dataclass(frozen=True)
class KernelBar:
    """One cell: its kernel, and the means of the figure's metric and of lost segments."""

    cell: CellKey
    # Two means; None where no record counts.
    value: float | None  # of the figure's metric
    lost: float | None  # of lost segments
    # What was published of them; None where nothing was.
    published: float | None
    published_lost: float | None
    skipped: bool  # whether all trials were skipped, such as without the kernel installed

    @property
    def label(self) -> str:
        """The kernel, and the parameters set in its modules, without the modules' names."""
        words = [self.cell.kernel]
        if self.cell.module_parameter != default("module_parameter"):
            words += [parameter.partition(".")[2]
                      for parameter in self.cell.module_parameter.split("+")]
        if self.skipped:
            words.append("skipped")
        return ", ".join(words)


Bars = dict[Value, list[KernelBar]]  # by the value of `by`


def kernels(analysis: Analysis, figure: Figure) -> list[Finding]:
    """A figure with two plots for each value of `by`: the metric, and lost segments.

    Raises NoBars where cells are missing, or all trials were skipped.
    """
    sweep = analysis.scenario.sweep(figure.sweep)
    window = figure.baseline_initcwnd
    records, cells = by_cell(analysis.scenario, figure, [window], analysis.records)
    chosen = [record for record in records if record.trial.initcwnd == window]
    if all(record.was_skipped for record in chosen):
        raise NoBars(f"its {len(chosen)} trials were skipped: {chosen[0].verdict_reason}")

    levels = published.levels(figure.published) if figure.published else {}
    bars: Bars = {}
    for cell in sweep.cells:
        by = getattr(cell, figure.by)
        bars.setdefault(by, []).append(_bar(figure, cell, cells[cell, window], levels))
    return [Finding(figure.name, figure.title, tables=(_table(figure, bars),),
                    sentence=_sentence(figure, bars), chart=_chart(figure, bars, chosen))]


def _bar(figure: Figure, cell: CellKey, records: Sequence[Record],
         levels: Mapping[tuple[str, str], float]) -> KernelBar:
    """The bar of a cell. levels: the published values, by panel and kernel."""
    counting = [record for record in records if record.counts]
    by = getattr(cell, figure.by)
    kernel = kernel_words(cell)
    return KernelBar(
        cell, value=mean(counting, figure.metric), lost=mean(counting, LOST),
        published=levels.get((panel_of(figure.metric, by), kernel)),
        published_lost=levels.get((panel_of(LOST, by), kernel)),
        skipped=all(record.was_skipped for record in records))


def _table(figure: Figure, bars: Bars) -> Table:
    """A row for each value of `by` and kernel."""
    by, metric = quantity(figure.by), quantity(figure.metric)
    columns = (Column(by.head, by.unit, is_filter=True), Column("kernel", is_text=True),
               Column(metric.head, metric.unit), Column(metric.head, metric.unit, "published"),
               Column(LOST_HEAD), Column(LOST_HEAD, "", "published"))
    rows: list[tuple[Cell, ...]] = []
    for value, of_value in bars.items():
        rows += [(value, kernel_words(bar.cell), bar.value, bar.published, bar.lost,
                  bar.published_lost) for bar in of_value]
    return Table(figure.title, columns, tuple(rows)).without_empty()


def _sentence(figure: Figure, bars: Bars) -> str:
    """The metric and the losses of each kernel, with the published ones, in sentences."""
    metric = quantity(figure.metric)
    sentences = []
    for value, of_value in bars.items():
        parts = []
        for bar in of_value:
            if bar.value is None:
                continue
            shown = (f"{kernel_words(bar.cell)} {metric.with_unit(format_brief(bar.value))}"
                     f"{_published(bar.published)}")
            if bar.lost is not None:
                shown += f", {plain(bar.lost)} lost{_published(bar.published_lost)}"
            parts.append(shown)
        sentences.append(f"{metric.axis}, {format_named(figure.by, value)}:"
                         f" {'; '.join(parts) or 'nothing that was measured counts'}.")
    return " ".join(sentences)


def _published(known: float | None) -> str:
    """A published value in words; "" where nothing was published."""
    return "" if known is None else f" (published {plain(known)})"


def _chart(figure: Figure, bars: Bars, records: Sequence[Record]) -> LineChart:
    """Two plots for each value of `by`, the metric above the lost segments."""
    metric = quantity(figure.metric)
    plots = []
    for value, of_value in bars.items():
        ticks = tuple((float(place), bar.label) for place, bar in enumerate(of_value))
        ends = -ASIDE, len(ticks) - 1 + ASIDE
        of_metric = _lines([bar.value for bar in of_value], [bar.published for bar in of_value])
        of_lost = _lines([bar.lost for bar in of_value], [bar.published_lost for bar in of_value])
        plots.append(Plot("", metric.axis, of_metric, title=format_named(figure.by, value),
                          ticks=ticks, x_ends=ends))
        plots.append(Plot("", "segments lost", of_lost, ticks=ticks, x_ends=ends))
    return LineChart(figure.title, heading(records), "Below each bar: the guest's kernel, and what"
                     " is set in its modules.", columns=(tuple(plots),), plot_inches=1.75,
                     legend=True)


def _lines(measured: Sequence[float | None], known: Sequence[float | None]) -> tuple[Line, ...]:
    """The series of bars, and of diamonds for published values if there are any."""
    bars = Line("measured", *_points(measured), look=_COLOUR, style="bars")
    diamonds = Line("published", *_points(known), style="published")
    return (bars, diamonds) if diamonds.x else (bars,)


def _points(values: Sequence[float | None]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The places and the values of all values but None."""
    places = [place for place, value in enumerate(values) if value is not None]
    return tuple(map(float, places)), tuple(value for value in values if value is not None)
