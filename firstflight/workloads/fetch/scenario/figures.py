"""The kinds of figures of fetches: how each is checked in its scenario.

A new kind is a line in FIGURES, and one in MAKERS of workloads/fetch/figures/kinds.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from firstflight.base.errors import UsageError
from firstflight.base.words import plain
from firstflight.parameters import SWEPT
from firstflight.runs import schema
from firstflight.scenario import published
from firstflight.scenario.claims import MOST, check_expects
from firstflight.scenario.figure_kinds import ANY, FigureKind, check_keys
from firstflight.setting.kernels import KERNEL, kernel_words
from firstflight.workloads.fetch.record.record import METRICS
from firstflight.workloads.fetch.scenario.population import percentile_of
from firstflight.workloads.fetch.scenario.scenario import (JOINT, OF_BARS, OF_TRIALS, Figure,
                                                           Scenario, read_published)
from firstflight.workloads.fetch.scenario.sweep import Sweep, Value

COLUMNS = (*METRICS, "initcwnd")  # the columns of trials that a claim may compare
LOST = "lost_segments"  # the second metric of a figure of kernels, below its own metric
# Further charts of the samples behind bars (workloads.fetch.figures.bars.CHARTS).
ALSO = ("ccdf",)
# The kinds of figures of a population, and the quantities of their buckets.
_DRAWN_KINDS = ("improvement", "window_sweep", "percentiles")
_DRAWN_BY = ("rtt_ms", "bandwidth_kbps", "bdp_bytes", "response_segments")


@dataclass(frozen=True)
class FetchFigureKind(FigureKind[Scenario, Figure]):
    """One kind of figure: what a figure of this kind has to have, and what it is for."""

    is_answer: bool = False  # whether the figure's sentence answers the question of the run
    # Whether its published file has levels by panel and bucket. Then `check` reads the file.
    has_levels: bool = False

    @property
    def is_of_pairs(self) -> bool:
        """Whether a figure of this kind compares exactly two windows."""
        return self.windows == PAIR


def check(scenario: Scenario, where: str) -> None:
    """Check that the scenario has what its figures and claims need. Raises UsageError."""
    for figure in scenario.figures:
        _check_figure(scenario, figure, schema.place_of(where, "figure", figure.name))

    figures = {figure.name: figure for figure in scenario.figures}
    for claim in scenario.claims:
        place = schema.place_of(where, "claim", claim.says)
        figure = figures[claim.figure]
        check_expects(claim, figure, FIGURES, place)
        compared = COLUMNS if claim.expects in OF_TRIALS else _labels(scenario, figure)
        for name in claim.compares:
            schema.one_of(name, compared, f"{place}: compares")
        if claim.expects == MOST and set(claim.compares) >= set(compared):
            raise UsageError(f"{place}: compares: names every bar, so that none is left to compare")


def _check_figure(scenario: Scenario, figure: Figure, where: str) -> None:
    """Check that the scenario has what a figure needs. Raises UsageError."""
    check_keys(figure, FIGURES, where)
    kind = FIGURES[figure.kind]
    _check_quantities(figure, kind, where)

    population = scenario.population(figure.sweep)
    if population is not None:
        _check_windows(figure, population.initcwnd, f"{where}: {figure.sweep!r}")
        _check_drawn_figure(figure, where)
    else:
        schema.one_of(figure.sweep, [sweep.name for sweep in scenario.sweeps], f"{where}: sweep")
        _check_windows(figure, scenario.sweep(figure.sweep).initcwnd,
                       f"{where}: sweep {figure.sweep!r}")
        kind.check(scenario, figure, where)

    if figure.published and not kind.has_levels:
        known = read_published(f"{where}: published",
                               lambda: published.buckets(figure.published, figure.panel))
        labels = _labels(scenario, figure)
        if not set(labels) & set(known):
            raise UsageError(f"{where}: published: {figure.published} has {', '.join(known)}, and"
                             f" the figure has {', '.join(labels)}; for bars that nobody published"
                             " delete the lines published and panel")


def _check_quantities(figure: Figure, kind: FetchFigureKind, where: str) -> None:
    """Check that the quantities of a figure may stand together. Raises UsageError."""
    if figure.is_of_windows and kind.by != figure.by:
        of_windows = next(name for name, other in FIGURES.items() if other.by == figure.by)
        raise UsageError(f'{where}: by = "{figure.by}" needs kind = "{of_windows}"')
    for name in figure.also:
        schema.one_of(name, ALSO if kind.expects == OF_BARS else [], f"{where}: also")
    if figure.weights and figure.weights == figure.by:
        raise UsageError(f"{where}: weights: has to be another axis than by")


def _labels(scenario: Scenario, figure: Figure) -> Sequence[str]:
    """The labels of a figure's bars. For a population they are those of the published bars."""
    population = scenario.population(figure.sweep)
    if population is None:
        return scenario.axis_of(figure).labels
    if figure.is_of_windows:
        return list(map(str, population.initcwnd))
    return list(published.buckets(figure.published, figure.panel))


def _check_windows(figure: Figure, windows: Iterable[int], where: str) -> None:
    """Check that a figure's windows are measured. Raises UsageError."""
    for initcwnd in (figure.baseline_initcwnd, figure.experiment_initcwnd):
        if initcwnd and initcwnd not in windows:
            raise UsageError(f"{where} has no initcwnd {initcwnd}")


def _check_groups(scenario: Scenario, figure: Figure, where: str) -> None:
    """Check a figure with a group of bars for each value of `by`. Raises UsageError."""
    _check_swept(scenario, figure, where)
    _check_buckets(scenario, figure, where)


def _check_window_map(scenario: Scenario, figure: Figure, where: str) -> None:
    """Check a map of the windows that suffice. Raises UsageError."""
    if not figure.down:
        raise UsageError(f"{where}: down is missing")
    _check_swept(scenario, figure, where)


def _check_points(scenario: Scenario, figure: Figure, where: str) -> None:
    """Check that each value of `by`, with each of `down` if there is one, has one cell.

    Raises UsageError.
    """
    _check_swept(scenario, figure, where)
    points = scenario.sweep(figure.sweep).counted(*filter(None, (figure.by, figure.down)))
    if max(points.values()) > 1:
        raise UsageError(f"{where}: several cells have one {figure.by}: say by which other quantity"
                         " they differ (down), or ask for one of them")


def _check_numbers(scenario: Scenario, figure: Figure, where: str) -> None:
    """Check that the values of `by` are numbers, with one cell each. Raises UsageError."""
    _check_swept(scenario, figure, where)
    sweep = scenario.sweep(figure.sweep)
    values = [value for value, in sweep.counted(figure.by)]
    if any(isinstance(value, str) for value in values):
        raise UsageError(f'{where}: by: a figure of kind "{figure.kind}" is over numbers')
    _check_points(scenario, figure, where)

    if figure.published:
        lines: Iterable[Value] = sweep.initcwnd
        if figure.down:
            lines = [line for line, in sweep.counted(figure.down)]
        _check_levels(figure, map(plain, lines), list(map(plain, values)), where)


def _check_kernels(scenario: Scenario, figure: Figure, where: str) -> None:
    """Check that each kernel has one cell for each value of `by`, and that these are published.

    Raises UsageError.
    """
    _check_swept(scenario, figure, where)
    sweep = scenario.sweep(figure.sweep)
    if figure.by in KERNEL:
        raise UsageError(f"{where}: by: another quantity than {figure.by}, which its bars show")
    if max(sweep.counted(figure.by, *KERNEL).values()) > 1:
        raise UsageError(f"{where}: several cells have one {figure.by} and kernel: ask for one of"
                         " them")
    if figure.published:
        panels = []
        for value, in sweep.counted(figure.by):
            panels += [panel_of(figure.metric, value), panel_of(LOST, value)]
        _check_levels(figure, panels, [kernel_words(cell) for cell in sweep.cells], where)


def _check_levels(figure: Figure, panels: Iterable[str], buckets: Sequence[str], where: str
                  ) -> None:
    """Check that the figure shows each published value. Raises UsageError.

    panels, buckets: those of the figure.
    """
    known = read_published(f"{where}: published", lambda: published.levels(figure.published))
    shown = sorted({*panels})
    for panel, bucket in known:
        schema.one_of(panel, shown, f"{where}: published: panel")
        schema.one_of(bucket, buckets, f"{where}: published: bucket")


def panel_of(metric: str, value: Value) -> str:
    """The panel of a published file that a plot of a figure of kernels has."""
    return f"{metric} {plain(value)}"


def _check_drawn_figure(figure: Figure, where: str) -> None:
    """Check a figure of a population. Its bars are the published buckets or percentiles.

    Raises UsageError.
    """
    schema.one_of(figure.kind, _DRAWN_KINDS, f"{where}: kind")
    if figure.is_of_windows:
        return
    if not figure.published:
        raise UsageError(f"{where}: published is missing: the bars of a population are those of a"
                         " published file")

    published_bars = read_published(f"{where}: published",
                                    lambda: published.buckets(figure.published, figure.panel))
    if figure.by == "percentile":
        for label in published_bars:
            percentile_of(label)
        return

    schema.one_of(figure.by, _DRAWN_BY, f"{where}: by")
    labels = list(published_bars)
    ends = [*labels[:-1], labels[-1].removeprefix(">")] if labels else []
    if not all(re.fullmatch(r"\d+(\.\d+)?", end) for end in ends):
        raise UsageError(f"{where}: published: bars are named by their upper ends, the last may"
                         f" be open as in \">5000\", not {', '.join(published_bars)}")


def _check_swept(scenario: Scenario, figure: Figure, where: str) -> None:
    """Check that a sweep can vary the figure's quantities. Raises UsageError."""
    for by in filter(None, (figure.by, figure.down)):
        schema.one_of(by, (*SWEPT, "queue_packets"), f"{where}: by")


def _check_drawn_only(scenario: Scenario, figure: Figure, where: str) -> None:
    """Refuse a figure of a sweep whose kind needs a population. Raises UsageError."""
    raise UsageError(f'{where}: a figure of kind "{figure.kind}" needs a [[population]]')


def _check_one_network(scenario: Scenario, figure: Figure, where: str) -> None:
    """Check a figure that compares windows in one network. Raises UsageError."""
    sweep = scenario.sweep(figure.sweep)
    if sweep.combination_count() > 1 or figure.weights:
        raise UsageError(f"{where}: compares windows in one network; sweep {sweep.name!r} has"
                         f" {sweep.combination_count()}")


def _check_buckets(scenario: Scenario, figure: Figure, where: str) -> None:
    """Check that each value of the sweep has a bucket.

    A bucket has one cell, or several that are weighted. Raises UsageError.
    """
    if figure.weights == JOINT:
        _check_joint(scenario, figure, where)
        return

    sweep = scenario.sweep(figure.sweep)
    counts = sweep.counted(figure.by)
    _check_same_values(scenario.axis_of(figure).values, sweep, figure.by, where)
    if not figure.weights:
        if max(counts.values()) > 1:
            raise UsageError(f"{where}: several cells fall in one bucket of {figure.by};"
                             " say by which axis they are weighted")
        return

    weights = scenario.axis(figure.weights)
    if weights is None or not weights.shares_percent:
        raise UsageError(f"{where}: weights: there is no [[axis]] with"
                         f' by = "{figure.weights}" and shares_percent')
    _check_same_values(weights.values, sweep, figure.weights, where)


def _check_same_values(axis: Iterable[Value], sweep: Sweep, by: str, where: str) -> None:
    """Check that the axis has the values of the sweep. Raises UsageError."""
    of_axis = list(axis)
    swept = [value for value, in sweep.counted(by)]
    if {*of_axis} != {*swept}:
        raise UsageError(f"{where}: {by}: sweep {sweep.name!r} has {', '.join(map(plain, swept))},"
                         f" and the [[axis]] has {', '.join(map(plain, of_axis))}; give the axis"
                         " the same values, with a label, and a share if it has shares, for each")


def _check_joint(scenario: Scenario, figure: Figure, where: str) -> None:
    """Check a figure by BDP that is weighted by the joint distribution of RTT and bandwidth.

    Raises UsageError.
    """
    if figure.by != "bdp_bytes":
        raise UsageError(f'{where}: weights = "{JOINT}" needs by = "bdp_bytes"')
    sweep = scenario.sweep(figure.sweep)
    for by in published.SHARES_PANELS:
        axis = scenario.axis(by)
        if axis is None:
            raise UsageError(f'{where}: there is no [[axis]] with by = "{by}"')
        if by != "bdp_bytes":
            _check_same_values(axis.values, sweep, by, where)
    if sweep.combination_count() > len(sweep.networks):
        raise UsageError(f'{where}: weights = "{JOINT}" takes one response size and loss rate')
    check_joint_labels(scenario, where)


def check_joint_labels(scenario: Scenario, where: str) -> None:
    """Check that the axes have the buckets of the joint distribution. Raises UsageError."""
    for by in published.SHARES_PANELS:
        axis, known = scenario.axis(by), tuple(published.shares(by))
        if axis and axis.labels != known:
            raise UsageError(f"{where}: the axis of {by} has the buckets {', '.join(axis.labels)};"
                             f" the paper's joint distribution has {', '.join(known)}; with other"
                             " buckets leave this figure out")


# The kinds ---------------------------------------------------------------------------

# How many windows a figure names, at least and at most: exactly two, or the baseline and perhaps
# another one, where all windows of the sweep are compared.
PAIR, ALL = (2, 2), (1, 2)
FIGURES: dict[str, FetchFigureKind] = {
    "improvement": FetchFigureKind(_check_buckets, ANY, windows=PAIR, expects=OF_BARS),
    "window_sweep": FetchFigureKind(_check_one_network, "initcwnd", windows=ALL, expects=OF_BARS),
    "loss": FetchFigureKind(_check_buckets, "loss_percent", windows=PAIR, expects=OF_BARS),
    "groups": FetchFigureKind(_check_groups, ANY, windows=ALL),
    "map": FetchFigureKind(_check_swept, ANY, has_down=True, windows=ALL),
    "window_map": FetchFigureKind(_check_window_map, ANY, has_down=True, windows=ALL,
                                  is_answer=True),
    "packets": FetchFigureKind(lambda *_: None, windows=ALL),
    "steps": FetchFigureKind(_check_numbers, ANY, has_down=True, windows=ALL, expects=OF_TRIALS,
                             has_levels=True),
    "levels": FetchFigureKind(_check_points, ANY, has_down=True, windows=ALL, expects=OF_TRIALS),
    "kernels": FetchFigureKind(_check_kernels, ANY, windows=ALL, has_levels=True),
    "percentiles": FetchFigureKind(_check_drawn_only, "percentile", windows=PAIR, expects=OF_BARS)}
