"""Figures of single cells over one quantity: a line, or a column of squares, for each window."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

from firstflight.base.quantity import in_words
from firstflight.base.words import plain, format_brief
from firstflight.figures.claims import claims_on, qualify
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
    return qualify(claim, _test_claim(claim, metric, records))


def _test_claim(claim: Claim, metric: str, records: Sequence[Record]) -> Statement:
    """The statement on a claim, as the records have it."""
    columns = (metric, *claim.compares)
    known = []
    for record in records:
        values = [value_of(record, column) for column in columns]
        if record.counts and None not in values:
            known.append(tuple(map(float, values)))
    if len(known) < len(records):
        return Statement(claim.says, f"undetermined: {len(records) - len(known)} of"
                         f" {len(records)} trials do not count.", NOT_MEASURED)

    if claim.expects == MORE_WHERE:
        return _more_where(claim, metric, known)
    # The claim is that the metric is at most the column that it is compared with.
    over = sum(value > bound for value, bound in known)
    equal = sum(value == bound for value, bound in known)
    return Statement(claim.says, f"in {len(known) - over} of {len(known)} trials"
                     f" {quantity(metric).what} is at most {quantity(claim.compares[0]).what}, in"
                     f" {equal} of them both are equal.", outcome_of(not over))


def _more_where(claim: Claim, metric: str, trials: Sequence[tuple[float, ...]]) -> Statement:
    """The statement on a claim of kind MORE_WHERE.

    The claim: the metric is above its least value where the second column is larger than the first,
    and nowhere else. trials: the metric and both columns of each trial.
    """
    first_name, second_name = (quantity(column).what for column in claim.compares)
    least = min(value for value, _, _ in trials)
    # Whether the metric is above its least value, for trials in which the second column is larger,
    # and for all others.
    larger = [value > least for value, first, second in trials if second > first]
    others = [value > least for value, first, second in trials if second <= first]
    if not larger or not others:
        return Statement(claim.says, f"undetermined: {second_name} is larger than {first_name} in"
                         f" {len(larger)} of {len(trials)} trials.", NOT_MEASURED)

    measured = (f"in {len(larger)} of {len(trials)} trials {second_name} is larger than"
                f" {first_name}: {sum(larger)} of these have more {quantity(metric).head} than"
                f" {plain(least)},"
                f" and {sum(others)} of the others.")
    holds = all(larger) and not any(others)
    has_direction = sum(larger) / len(larger) > sum(others) / len(others)
    return Statement(claim.says, measured, outcome_of(holds, has_direction))


AXIS_CHARACTERS = 60  # of the names of ticks, which stand next to each other under an axis
CURVE_POINTS = 160  # of the model's curve, across the figure
DECADES = 2  # values that span as many powers of ten may be drawn on a logarithmic axis
SMALL_SHARE = 0.1  # of the largest value: smaller ones are close to each other on a linear axis
FLAT_SHARE = 0.5  # of the highest value: where all are higher, the axis does not begin at zero
# Of an axis: points cover a difference from what was published that is smaller.
COVERED_SHARE = 0.03
# Metrics that change gradually with a size or a queue; others are counts, or wait for a flight.
GRADUAL = ("total_ms", "latency_ms", "goodput_kbps")
STEP_PART = 0.1  # a rise of more than this share of the curve's height is a step
HANDSHAKE_METRIC = "handshake_round_trips"  # whose sentence names the smallest windows
# The metrics that the model predicts.
PREDICTED: Mapping[str, Callable[[Prediction], float]] = {
    "total_ms": lambda prediction: prediction.total_ms,
    "latency_ms": lambda prediction: prediction.latency_ms,
    "first_byte_ms": lambda prediction: prediction.first_byte_ms,
    "appconnect_ms": lambda prediction: prediction.appconnect_ms}


@dataclass(frozen=True)
class CellMeans:
    """The means of a figure's cells."""

    by: str  # the quantity across
    of: str  # the quantity that distinguishes the lines, initcwnd or the figure's `down`
    across: tuple[Any, ...]  # the values of `by`
    lines: tuple[Any, ...]  # the values of `of`
    # By (value of `by`, value of `of`); no entry where no record counts.
    means: Mapping[tuple[Any, Any], float]
    published: Mapping[tuple[Any, Any], float]  # levels, as means
    requested: Mapping[tuple[Any, Any], Trial]  # one trial of each cell
    labels: Mapping[Any, str]  # of values, from the scenario's axes
    is_modelled: bool  # whether each record that counts has a time of the model
    scenario_lines: tuple[object, ...]  # all values of `of` in the scenario
    records: Sequence[Record]  # the figure's

    def look(self, line: object) -> int:
        """The index of a line's colour: that of its value in the scenario, the same in all figures.

        The lightest colour is used only where there are as many lines as colours.
        """
        return self.scenario_lines.index(line) + (len(self.scenario_lines) < LOOKS)

    def window(self, line: Any) -> int:
        """The initial window of a line, 0 where the lines are not windows."""
        return int(line) if self.of == "initcwnd" else 0

    def label(self, value: Any) -> str:
        """The name of a value of `by` or `of`: the scenario's, else its number."""
        return self.labels.get(value, plain(value))

    def name_line(self, line: Any) -> str:
        """A line's name, such as "IW 10" or "record 4096 bytes"; for a word the label alone."""
        if self.of == "initcwnd":
            return f"IW {own_window(self.records) or line}"
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
    return [_finding(analysis, figure, values, chart=_line_chart(figure, values, curves))]


def levels(analysis: Analysis, figure: Figure) -> list[Finding]:
    """The metric in squares: `by` upwards, and windows or values of `down` across."""
    values = _cell_means(analysis, figure)
    metric, downwards = quantity(figure.metric), tuple(reversed(values.across))
    rows = []
    for x in downwards:
        means = [values.means.get((x, line)) for line in values.lines]
        rows.append(tuple(None if mean is None else Square(mean) for mean in means))

    has_labels = any(x in values.labels for x in values.across)
    chart = SquareChart(
        figure.title, heading(values.records),
        f"In each square: {metric.axis[0].lower()}{metric.axis[1:]}.", scale="level",
        maps=(SquareMap("", tuple(map(values.label, values.lines)), tuple(rows)),),
        rows=tuple(map(values.label, downwards)), x_label=quantity(values.of).axis,
        y_label="" if has_labels else quantity(figure.by).axis, whole=not values.decimals)
    return [_finding(analysis, figure, values, chart=chart)]


def _finding(analysis: Analysis, figure: Figure, values: CellMeans, chart: Chart) -> Finding:
    """The figure with its chart, its table, a sentence, and the claims on it."""
    statements = tuple(test_claim(claim, figure.metric, values.records)
                       for claim in claims_on(figure, analysis.scenario.claims))
    return Finding(figure.name, figure.title, tables=(_table(figure, values),),
                   sentence=_sentence(figure, values), chart=chart, statements=statements)


def _cell_means(analysis: Analysis, figure: Figure) -> CellMeans:
    """The means of a figure's cells. Raises NoBars where cells are missing, or all were skipped."""
    scenario, records = analysis.scenario, analysis.records
    sweep = scenario.sweep(figure.sweep)
    windows = (figure.baseline_initcwnd,) if figure.down else sweep.initcwnd
    line_of = figure.down or "initcwnd"
    chosen, _ = by_cell(scenario, figure, windows, records)
    if all(record.was_skipped for record in chosen):
        raise NoBars(f"its {len(chosen)} trials were skipped: {chosen[0].verdict_reason}")

    measured = Cells([record for record in chosen if record.trial.initcwnd in windows])
    means, requested = {}, {}
    for (x, line), cell in measured.by(figure.by, line_of).items():
        requested[x, line] = cell.records[0].trial
        mean = cell.mean(figure.metric)
        if mean is not None:
            means[x, line] = mean

    across, lines = tuple(measured.values(figure.by)), tuple(measured.values(line_of))
    levels = published.levels(figure.published) if figure.published else {}
    published_means = {}
    for x, line in product(across, lines):
        level = levels.get((plain(line), plain(x)))
        if level is not None:
            published_means[x, line] = level

    labels: dict[Any, str] = {}
    for axis in filter(None, map(scenario.axis, (figure.by, figure.down))):
        labels.update(zip(axis.values, axis.labels))

    scenario_lines: list[Any] = []
    for any_sweep in scenario.sweeps:
        scenario_lines += {**any_sweep.lists, "initcwnd": any_sweep.initcwnd}[line_of]
    return CellMeans(
        by=figure.by, of=line_of, across=across, lines=lines, means=means,
        published=published_means, requested=requested, labels=labels,
        is_modelled=all(record.model_ms is not None for record in chosen if record.counts),
        scenario_lines=tuple(in_order(dict.fromkeys((*scenario_lines, *lines)))), records=chosen)


def in_order(values: Collection[Any]) -> Collection[Any]:
    """Numbers in ascending order; words in the order given."""
    return values if any(isinstance(value, str) for value in values) else sorted(values)


def _table(figure: Figure, values: CellMeans) -> Table:
    """A row for each value of `by`, a column for each line."""
    by, metric = quantity(figure.by), quantity(figure.metric)
    known = dict.fromkeys(line for _, line in values.published)
    columns = [Column(by.head, by.unit, is_text=bool(values.labels))]
    columns += [Column(values.name_line(line), metric.unit, metric.head) for line in values.lines]
    columns += [Column(values.name_line(line), metric.unit, "published") for line in known]

    rows = []
    for x in values.across:
        numbers = [values.means.get((x, line)) for line in values.lines]
        numbers += [values.published.get((x, line)) for line in known]
        cells = [None if number is None else Rounded(number, values.decimals)
                 for number in numbers]
        rows.append((values.label(x), *cells))
    return Table(figure.title, tuple(columns), tuple(rows))


def _sentence(figure: Figure, values: CellMeans) -> str:
    """A sentence on the range of each line; or on the smallest windows for one round trip."""
    if figure.metric == HANDSHAKE_METRIC and values.of == "initcwnd":
        return _smallest_windows(values)
    metric, parts = quantity(figure.metric), []
    for line in values.lines:
        known = [values.means[x, line] for x in values.across if (x, line) in values.means]
        if known:
            parts.append(f"{values.name_line(line)}: {format_brief(min(known))} to"
                         f" {format_brief(max(known))} {metric.unit}".rstrip())
    return f"{metric.axis}: {'; '.join(parts) or 'nothing that was measured counts'}."


def _smallest_windows(values: CellMeans) -> str:
    """A sentence on the smallest window with which each handshake takes one round trip."""
    parts = []
    for x in values.across:
        known = {line: values.means[x, line] for line in values.lines if (x, line) in values.means}
        enough = [line for line, round_trips in known.items() if round_trips == 1]
        smallest = f"more than {max(known)}" if known else "nothing counts"
        if enough:
            smallest = f"{min(enough)}"
        name = f"{values.label(x)} {quantity(values.by).unit}".rstrip()
        parts.append(f"{name}: {smallest}")
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

    Where only the least value is small, such an axis would crowd the others at its right end.
    """
    most = max(across)
    is_small = [value < most * SMALL_SHARE for value in across]
    return (min(across) > 0 and most >= 10 ** DECADES * min(across)
            and 2 * sum(is_small) >= len(across))


def _line_chart(figure: Figure, values: CellMeans, curves: Sequence[Line]) -> LineChart:
    """The measured lines, the model's curves, and above them what was published."""
    style, how = _style(figure, curves)
    lines = []
    for line in values.lines:
        measured = [x for x in values.across if (x, line) in values.means]
        lines.append(Line(values.name_line(line), tuple(map(float, measured)),
                          tuple(values.means[x, line] for x in measured),
                          look=values.look(line), style=style, window=values.window(line)))
    lines += curves
    if values.published:
        lines.append(Line("published", tuple(float(x) for x, _ in values.published),
                          tuple(values.published.values()), style="published"))

    by = quantity(figure.by)
    is_log = _is_log(values.across)
    ends = _ends([value for line in lines for value in line.y])
    begins = "The axis upwards does not begin at zero." if ends and ends[0] > 0 else ""
    # The names of ticks have units, so that the name of the axis needs none.
    ticks = _ticks(values, is_log)
    x_label = by.axis.removesuffix(f" ({by.unit})") if ticks else by.axis
    plots = [Plot(x_label, quantity(figure.metric).axis, tuple(lines), ticks=ticks,
                  x_scale="log" if is_log else "linear", y_ends=ends)]
    deviations = _covered_deviations(values, ends) if ends else []
    if deviations:
        unit = quantity(figure.metric).unit
        plots.append(replace(plots[0], y_label=f"measured less\npublished ({unit})",
                             lines=tuple(deviations), y_ends=None, zero=True))
    return LineChart(figure.title, heading(values.records), " ".join(filter(None, (how, begins))),
                     columns=(tuple(plots),), legend=True, palette="ordered",
                     plot_inches=3.6 if len(plots) == 1 else 2.7)


def _covered_deviations(values: CellMeans, ends: tuple[float, float]) -> list[Line]:
    """How far each line is from what was published, where the points of both cover each other.

    ends: of the axis on which both are drawn. [] where nothing was published, and where measured
    and published points stand so far apart that this axis shows the distance.
    """
    lines = []
    for line in values.lines:
        both = [x for x in values.across
                if (x, line) in values.means and (x, line) in values.published]
        deviations = tuple(values.means[x, line] - values.published[x, line] for x in both)
        if both:
            lines.append(Line(values.name_line(line), tuple(map(float, both)), deviations,
                              look=values.look(line), style="points", window=values.window(line)))

    low, high = ends
    furthest = max((abs(deviation) for line in lines for deviation in line.y), default=0.0)
    return lines if furthest < COVERED_SHARE * (high - low) else []


def _ticks(values: CellMeans, is_log: bool) -> tuple[tuple[float, str], ...]:
    """The ticks along x, with names of the scenario where an axis has room for them.

    Without such names, the ticks of a logarithmic axis have the values with their unit. () for an
    axis of plain numbers.
    """
    names = tuple((float(x), values.label(x)) for x in values.across)
    has_names = any(x in values.labels for x in values.across)
    if has_names and sum(len(name) for _, name in names) <= AXIS_CHARACTERS:
        return names
    if not is_log:
        return ()
    unit = quantity(values.by).unit
    return tuple((float(x), in_words(x, unit)) for x in values.across)


def _ends(values: Sequence[float]) -> tuple[float, float] | None:
    """The ends of an axis; None without values.

    The axis includes zero, so that heights can be compared, unless all values are so high that
    their differences would not be seen.
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
    if figure.metric not in PREDICTED or figure.by not in ("chain_bytes", "response_bytes"):
        return []
    if not values.is_modelled or not all(map(is_computable, values.requested.values())):
        return []

    least, most = min(values.across), max(values.across)
    if _is_log(values.across):
        between = {round(least * (most / least) ** (number / CURVE_POINTS))
                   for number in range(CURVE_POINTS)}
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
                           look=values.look(line), style="curve", window=values.window(line)))
    return curves


def _steep(xs: Sequence[int], at: Callable[[int], float]) -> dict[int, float]:
    """A curve's value at each of xs, and at further ones around steps. at: computes a value.

    A step is narrowed down to one byte, so that it looks vertical.
    """
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
