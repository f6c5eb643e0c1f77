"""Figures of single cells over one quantity: a line, or a column of squares, for each window."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from firstflight.base.quantity import in_words
from firstflight.base.words import plain, format_brief
from firstflight.figures.claims import as_read, claims_on
from firstflight.findings.charts import (LOOKS, Chart, Line, LineChart, Plot, Square, SquareChart,
                                         SquareMap)
from firstflight.findings.claims import NOT_MEASURED, outcome_of
from firstflight.findings.findings import Column, Finding, Rounded, Statement, Table
from firstflight.model.predict import Prediction, predict
from firstflight.runs.results.cells import Cells
from firstflight.runs.results.records import value_of
from firstflight.scenario import published
from firstflight.scenario.claims import MORE_WHERE
from firstflight.workloads.fetch.figures.bar_cells import by_cell
from firstflight.workloads.fetch.figures.bar_figure import NoBars
from firstflight.workloads.fetch.figures.figure import Analysis, heading
from firstflight.workloads.fetch.record.record import Record, own_window, quantity
from firstflight.workloads.fetch.scenario.scenario import Claim, Figure
from firstflight.workloads.fetch.trial import Trial
from firstflight.workloads.fetch.record.transfers import computed, is_computable


def test_claim(claim: Claim, metric: str, records: Sequence[Record]) -> Statement:
    """Test a claim on the trials of a figure; NOT_MEASURED unless all of them count."""
    return as_read(claim, _test_claim(claim, metric, records))


def _test_claim(claim: Claim, metric: str, records: Sequence[Record]) -> Statement:
    columns = (metric, *claim.compares)
    known = [tuple(map(float, values)) for record in records if record.counts
             and None not in (values := [value_of(record, column) for column in columns])]
    if len(known) < len(records):
        return Statement(claim.says, f"undetermined: {len(records) - len(known)} of"
                         f" {len(records)} trials do not count.", NOT_MEASURED)
    if claim.expects == MORE_WHERE:
        return _more_where(claim, metric, known)
    over, equal = (sum(compare(*values) for values in known)
                   for compare in (operator.gt, operator.eq))
    return Statement(claim.says, f"in {len(known) - over} of {len(known)} trials"
                     f" {quantity(metric).what} is at most {quantity(claim.compares[0]).what}, in"
                     f" {equal} of them both are equal.", outcome_of(not over))


def _more_where(claim: Claim, metric: str, trials: Sequence[tuple[float, ...]]) -> Statement:
    second, first = (quantity(column).what for column in claim.compares)
    least = min(value for value, _, _ in trials)
    larger, others = ([value > least for value, base, other in trials
                       if (other > base) == is_larger] for is_larger in (True, False))
    if not larger or not others:
        return Statement(claim.says, f"undetermined: {first} is larger than {second} in"
                         f" {len(larger)} of {len(trials)} trials.", NOT_MEASURED)
    sentence = (f"in {len(larger)} of {len(trials)} trials {first} is larger than {second}:"
             f" {sum(larger)} of these have more {quantity(metric).head} than {plain(least)}, and"
             f" {sum(others)} of the others.")
    return Statement(claim.says, sentence, outcome_of(
        all(larger) and not any(others),
        sum(larger) / len(larger) > sum(others) / len(others)))


CURVE_POINTS = 160  # of the model's curve, across the figure
DECADES = 2  # values over as many may be drawn on a logarithmic axis
SMALL_SHARE = 0.1  # of the largest value: smaller ones are close to each other on an even axis
FLAT_SHARE = 0.5  # of the highest: an axis of lines that are all higher does not begin at zero
# Metrics that change gradually with a size or a queue; others are counts, or wait for a flight.
GRADUAL = ("total_ms", "latency_ms", "goodput_kbps")
STEP_PART = 0.1  # a rise of more than this share of the curve's height is a step
ONE_ROUND_TRIP = "handshake_round_trips"
# The metrics that the model predicts.
PREDICTED: Mapping[str, Callable[[Prediction], float]] = {
    "total_ms": lambda prediction: prediction.total_ms,
    "latency_ms": lambda prediction: prediction.latency_ms,
    "first_byte_ms": lambda prediction: prediction.first_byte_ms,
    "appconnect_ms": lambda prediction: prediction.appconnect_ms}


@dataclass(frozen=True)
class CellMeans:
    """The means of a figure by (value of `by`, value of `of`); no entry where no record counts.

    of: the quantity that distinguishes the lines, initcwnd or the figure's `down`. requested: one
    trial of each cell. labels: of values, from the scenario's axes. is_modelled: whether each
    record that counts has a time of the model. scenario_lines: all values of `of` in the scenario.
    records: those of the figure. published: levels, as means.
    """

    by: str
    of: str
    across: tuple[Any, ...]
    lines: tuple[Any, ...]
    means: Mapping[tuple[Any, Any], float]
    requested: Mapping[tuple[Any, Any], Trial]
    labels: Mapping[Any, str]
    is_modelled: bool
    scenario_lines: tuple[object, ...]
    records: Sequence[Record]
    published: Mapping[tuple[Any, Any], float]

    def look(self, line: object) -> int:
        """The index of a line's colour: that of its value in the scenario, the same in all figures.

        The lightest colour is used only where there are as many lines as colours.
        """
        return self.scenario_lines.index(line) + (len(self.scenario_lines) < LOOKS)

    def window(self, line: Any) -> int:
        """The initial window of a line, 0 where the lines are not windows."""
        return int(line) if self.of == "initcwnd" else 0

    def label(self, value: Any) -> str:
        return self.labels.get(value, plain(value))

    def named(self, line: Any) -> str:
        """A line's name: "IW10", "record 4096 bytes"; the label alone where values are words."""
        if self.of == "initcwnd":
            own = own_window(self.records)
            return f"IW {own}" if own else f"IW{line}"
        named = quantity(self.of)
        if line in self.labels:
            label = self.labels[line]
            return label if isinstance(line, str) else f"{named.head} {label}"
        return f"{named.head} {plain(line)} {named.unit}".rstrip()

    @property
    def decimals(self) -> int:
        """How many decimals the means need: 0 where all are whole numbers."""
        return 0 if all(value == int(value) for value in self.means.values()) else 1


def steps(analysis: Analysis, figure: Figure) -> list[Finding]:
    """The metric over `by`, with a line for each window or value of `down`."""
    values = _cell_means(analysis, figure)
    curves = _curves(figure, values, analysis.scenario.head.sysctls)
    return _finding(analysis, figure, values,
                 _lines(figure, values, curves))


def levels(analysis: Analysis, figure: Figure) -> list[Finding]:
    """The metric in squares: `by` upwards, and windows or values of `down` across."""
    values = _cell_means(analysis, figure)
    metric, downwards = quantity(figure.metric), tuple(reversed(values.across))
    rows = tuple(tuple(None if (level := values.means.get((x, line))) is None else Square(level)
                       for line in values.lines) for x in downwards)
    return _finding(analysis, figure, values, SquareChart(
        figure.title, heading(values.records),
        f"In each square: {metric.axis[0].lower()}{metric.axis[1:]}.", scale="level",
        maps=(SquareMap("", tuple(map(values.label, values.lines)), rows),),
        rows=tuple(map(values.label, downwards)), x_label=quantity(values.of).axis,
        y_label="" if any(x in values.labels for x in values.across) else quantity(figure.by).axis,
        whole=not values.decimals))


def _finding(analysis: Analysis, figure: Figure, values: CellMeans, chart: Chart) -> list[Finding]:
    return [Finding(
        figure.name, figure.title, tables=(_table(figure, values),),
        sentence=_sentence(figure, values), chart=chart, statements=tuple(
            test_claim(claim, figure.metric, values.records)
            for claim in claims_on(figure, analysis.scenario.claims)))]


def _cell_means(analysis: Analysis, figure: Figure) -> CellMeans:
    """The means of a figure's cells. Raises NoBars where cells are missing, or all were skipped."""
    scenario, records = analysis.scenario, analysis.records
    sweep = scenario.sweep(figure.sweep)
    windows = (figure.baseline_initcwnd,) if figure.down else sweep.initcwnd
    line_of = figure.down or "initcwnd"
    chosen, _ = by_cell(scenario, figure, windows, records)
    if all(record.was_skipped for record in chosen):
        raise NoBars(f"its {len(chosen)} trials were skipped: {chosen[0].verdict_reason}")
    levels = published.levels(figure.published) if figure.published else {}
    measured = Cells([record for record in chosen if record.trial.initcwnd in windows])
    cells = measured.by(figure.by, line_of)
    lines = tuple(measured.values(line_of))
    known = [value for sweep_of in scenario.sweeps
             for value in {**sweep_of.lists, "initcwnd": sweep_of.initcwnd}[line_of]]
    axes = [axis for by in (figure.by, figure.down) if (axis := scenario.axis(by)) is not None]
    labels = {value: label for axis in axes for value, label in zip(axis.values, axis.labels)}
    return CellMeans(
        figure.by, line_of, tuple(measured.values(figure.by)), lines,
        {(x, line): mean for (x, line), cell in cells.items()
         if (mean := cell.mean(figure.metric)) is not None},
        {(x, line): cell.records[0].trial for (x, line), cell in cells.items()}, labels,
        all(record.model_ms is not None for record in chosen if record.counts),
        tuple(in_order(dict.fromkeys((*known, *lines)))), chosen, {
            (x, line): level for x in measured.values(figure.by) for line in lines
            if (level := levels.get((plain(line), plain(x)))) is not None})


def in_order(values: Collection[Any]) -> Collection[Any]:
    """Numbers in ascending order; words in the order given."""
    return values if any(isinstance(value, str) for value in values) else sorted(values)


def _table(figure: Figure, values: CellMeans) -> Table:
    """A row for each value of `by`, a column for each line."""
    by, metric = quantity(figure.by), quantity(figure.metric)
    known = dict.fromkeys(line for _, line in values.published)
    columns = (Column(by.head, by.unit, is_text=bool(values.labels)), *(
        Column(values.named(line), metric.unit, metric.head) for line in values.lines), *(
        Column(values.named(line), metric.unit, "published") for line in known))
    return Table(figure.title, columns, tuple(
        (values.label(x), *(None if (value := values.means.get((x, line))) is None else
                            Rounded(value, values.decimals) for line in values.lines),
         *(None if (level := values.published.get((x, line))) is None else
           Rounded(level, values.decimals) for line in known))
        for x in values.across))


def _sentence(figure: Figure, values: CellMeans) -> str:
    """A sentence on the range of each line; or on the smallest windows for one round trip."""
    if figure.metric == ONE_ROUND_TRIP and values.of == "initcwnd":
        return _smallest_windows(values)
    metric, parts = quantity(figure.metric), []
    for line in values.lines:
        known = [values.means[x, line] for x in values.across if (x, line) in values.means]
        if known:
            parts.append(f"{values.named(line)}: {format_brief(min(known))} to"
                         f" {format_brief(max(known))} {metric.unit}".rstrip())
    return f"{metric.axis}: {'; '.join(parts) or 'nothing that was measured counts'}."


def _smallest_windows(values: CellMeans) -> str:
    """A sentence on the smallest window with which each handshake takes one round trip."""
    parts = []
    for x in values.across:
        known = {line: values.means[x, line] for line in values.lines if (x, line) in values.means}
        enough = [line for line, round_trips in known.items() if round_trips == 1]
        parts.append(f"{values.label(x)} {quantity(values.by).unit}".rstrip()
                     + (f": {min(enough)}" if enough else f": more than {max(known)}" if known
                        else ": nothing counts"))
    return f"The smallest window measured that needs one round trip: {'; '.join(parts)}."


# Lines -------------------------------------------------------------------------------

def _style(figure: Figure, curves: Sequence[Line]
           ) -> tuple[Literal["points", "steps", "line"], str]:
    """How measured points are joined, and a note on that."""
    if curves:
        return "points", "Points: measured. Lines: the model, computed at sizes between them too."
    if figure.metric in GRADUAL and figure.by != "chain_bytes":
        return "line", "Measured at the points."
    return "steps", "Measured at the points; a step lies anywhere between two of them."


def _is_log(across: Sequence[float]) -> bool:
    """Whether values are drawn on a logarithmic axis: far apart, and most of them small.

    On it, values of which only the least is small would run into each other at the right.
    """
    most = max(across)
    is_small = [value < most * SMALL_SHARE for value in across]
    return (min(across) > 0 and most >= 10 ** DECADES * min(across)
            and 2 * sum(is_small) >= len(across))


def _lines(figure: Figure, values: CellMeans, curves: Sequence[Line]) -> LineChart:
    lines, (style, how) = [], _style(figure, curves)
    for line in values.lines:
        points = [(float(x), values.means[x, line]) for x in values.across
                  if (x, line) in values.means]
        xs, ys = zip(*points) if points else ((), ())
        lines.append(Line(values.named(line), xs, ys, look=values.look(line),
                          style=style, window=values.window(line)))
    lines += curves
    if values.published:  # above the curves
        xs, ys = zip(*((float(x), level) for (x, _), level in values.published.items()))
        lines.append(Line("published", xs, ys, style="published"))
    by, is_log = quantity(figure.by), _is_log(values.across)
    ends = _ends([value for line in lines for value in line.y])
    begins = "The axis upwards does not begin at zero." if ends and ends[0] > 0 else ""
    ticks = _ticks(values, is_log)  # whose names have units
    x_label = by.axis.removesuffix(f" ({by.unit})") if ticks else by.axis
    plot = Plot(x_label, quantity(figure.metric).axis, tuple(lines), ticks=ticks,
                x_scale="log" if is_log else "linear", y_ends=ends)
    return LineChart(figure.title, heading(values.records), " ".join(filter(None, (how, begins))),
                     columns=((plot,),), legend=True, palette="ordered", plot_inches=3.6)


def _ticks(values: CellMeans, is_log: bool) -> tuple[tuple[float, str], ...]:
    """Names of the values along x: those of the scenario, or on a logarithmic axis each with its
    unit; () for an axis of plain numbers.
    """
    if any(x in values.labels for x in values.across):
        return tuple((float(x), values.label(x)) for x in values.across)
    unit = quantity(values.by).unit
    return tuple((float(x), in_words(x, unit)) for x in values.across) if is_log else ()


def _ends(values: Sequence[float]) -> tuple[float, float] | None:
    """The ends of an axis; None of no values.

    It includes zero, so that heights can be compared, unless all are so high that their differences
    would not be seen.
    """
    if not values:
        return None
    low, high = min(values), max(values)
    if low < high and low > FLAT_SHARE * high:
        room = 0.08 * (high - low)
        return low - room, high + room
    low, high = min(0.0, low), max(0.0, high)
    room = 0.06 * (high - low or 1.0)
    return (low - room if low else 0.0), high + room


def _curves(figure: Figure, values: CellMeans, sysctls: Mapping[str, str]) -> list[Line]:
    """The model's curve for each line; [] unless the model covers all trials of the figure."""
    if figure.metric not in PREDICTED or figure.by not in ("chain_bytes", "response_bytes") or not (
            values.is_modelled and all(map(is_computable, values.requested.values()))):
        return []
    least, most = min(values.across), max(values.across)
    if _is_log(values.across):
        between = {round(least * (most / least) ** (place / CURVE_POINTS))
                   for place in range(CURVE_POINTS)}
    else:
        between = {*range(least, most, max(1, math.ceil((most - least) / CURVE_POINTS)))}
    xs = sorted({*values.across, *between})
    predicted, curves = PREDICTED[figure.metric], []
    for line in values.lines:
        trial = next(trial for (_, value), trial in values.requested.items() if value == line)

        def at(x: int, like: Trial = trial) -> float:
            return predicted(predict(computed(replace(like, **{figure.by: x}), sysctls)))

        known = _steep(xs, at)
        curves.append(Line("", tuple(map(float, known)), tuple(known.values()),
                           look=values.look(line), style="curve",
                           window=values.window(line)))
    return curves


def _steep(xs: Sequence[int], at: Callable[[int], float]) -> dict[int, float]:
    """A curve's values at xs, and around each step down to one byte, so that it looks vertical."""
    known = {x: at(x) for x in xs}
    least = STEP_PART * (max(known.values()) - min(known.values()))
    for low, high in zip(xs, xs[1:]):
        while high - low > 1 and abs(known[high] - known[low]) > least > 0:
            middle = (low + high) // 2
            known[middle] = at(middle)
            if abs(known[middle] - known[low]) > abs(known[high] - known[middle]):
                high = middle
            else:
                low = middle
    return dict(sorted(known.items()))
