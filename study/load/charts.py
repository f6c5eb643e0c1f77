"""The charts of load's figures: distributions, mixes, gains along an axis, hit transfers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy

from base.stats import Estimate
from findings.charts import Line, LineChart, Plot
from runs.results.cells import grouped
from study.load import analysis
from study.load.analysis import (PLACES, QUEUE_SMOOTHED_S, Distribution, Gain, GainPoint, Hit,
                                 Mixes, Runs, Shared, describe, name_of, named)
from study.load.scenario import DECK_COLUMNS, DECK_FILE, deck_rows
from study.scenario import published

ASIDE = 0.05  # of the distance between ticks: intervals beside each other, not on each other
TAIL = 99.5  # percentile at which a distribution's axis ends
MOST_POINTS = 2000  # of one curve, roughly: more is not visible
HALVES = (0.42, 0.4)  # widths of two columns


def _chart(runs: Runs, columns: tuple[tuple[Plot, ...], ...], **more: Any) -> LineChart:
    """A chart with the title of its figure, and what was measured below it."""
    records, figure = runs.records, runs.figure
    seeds = len({record.trial.repeat for record in records})
    spans_s = sorted({record.trial.counted_span_s for record in records})
    counted, bars = ((f" {seeds} seeds,", "bars: 95 % intervals over seeds") if seeds > 1 else
                     ("", "one seed: no interval"))
    return LineChart(
        figure.title, (), f"{records[0].trial.scenario} · {len(records)} runs,{counted}"
        f" {' or '.join(f'{span_s:g}' for span_s in spans_s)} s each after the warm-up · {bars}",
        next(iter(runs.exclusion_notes), ""),
        columns=columns, **more)


def _estimates(name: str, points: Sequence[tuple[float, Estimate]], look: int) -> Line:
    """Estimates with their intervals, joined."""
    return Line(name, tuple(x for x, _ in points), tuple(estimate.value for _, estimate in points),
                tuple(estimate.interval for _, estimate in points), look)


# Distributions --------------------------------------------------------------------

def distribution(runs: Runs, distributions: Sequence[Distribution]) -> LineChart:
    """Completion times, what each percentile gains, and the queue of the first seed."""
    return _chart(runs, ((_curves(distributions),), (_gains(distributions), _queue(runs))),
                  widths=HALVES, height_inches=5.4)


def deck(runs: Runs, distributions: Sequence[Distribution]) -> LineChart:
    """Distributions, and what each percentile gains beside what was published."""
    # What was published, by percentile; None for the average.
    known: dict[float | None, float] = {}
    if runs.figure.published:
        row = next(row for row in deck_rows(runs.figure.published) if row["row"] == "% Impr.")
        known = {None if column == "Avg." else float(column):
                 published.number(row, column, DECK_FILE) for column in DECK_COLUMNS if row[column]}
    theirs = Line("the deck", tuple(float(PLACES.index(place)) for place in known),
                     tuple(known.values()), style="published")
    gains = _gains(distributions, (theirs,) if known else ())
    return _chart(runs, ((_curves(distributions),), (gains,)), widths=HALVES)


def mix(runs: Runs, mixes: Mixes) -> LineChart:
    """Each group of a mix beside the runs where everybody has its window."""
    looks = {window: look for look, window in enumerate(mixes.alone)}
    groups = [group for parts in mixes.groups.values() for group in parts]
    # A window keeps its colour: whole lines by itself, dashed in the mix.
    dashed = [_curve(group, looks[group.window], "dashed") for group in groups
              if group.window in looks]
    saved = [line for group in groups if group.window in looks
             for line in _gain_lines(mixes.alone[group.window], group, looks[group.window])]
    return _chart(runs, (
        (_curves(list(mixes.alone.values()), dashed, groups),),
        (_gain_plot("saved by the mix, against everybody\nwith that window (%)", saved),)),
        widths=HALVES)


def shared(runs: Runs, costs: Sequence[Shared]) -> LineChart:
    """What each window of your users saves them, and the others, of the mean and of p99."""
    ticks = tuple((float(place), str(cost.initcwnd)) for place, cost in enumerate(costs))

    def plot(what: str, gains: Sequence[tuple[Gain | None, Gain | None]]) -> Plot:
        lines = [_estimates(name, [(x + (look - 0.5) * ASIDE, gain.percent) for x, gain
                                   in enumerate(part) if gain is not None], look)
                 for look, (name, part) in enumerate(zip(("your users", "the others"),
                                                         zip(*gains)))]
        return Plot("initial window of your users (segments)",
                    f"saved of the {what} (%)", tuple(lines), ticks=ticks, zero=True)

    return _chart(runs, (
        (plot("mean", [(cost.first, cost.second) for cost in costs]),),
        (plot("99th percentile", [(cost.first_p99, cost.second_p99) for cost in costs]),)),
        legend=True)


def _curves(distributions: Sequence[Distribution], more: Sequence[Line] = (),
            others: Sequence[Distribution] = ()) -> Plot:
    """Distribution functions of the completion time; more: lines of the others."""
    curves = [distribution.curve_ms for distribution in (*distributions, *others)]
    ends = (min(float(curve[0]) for curve in curves) * 0.95,
            max(float(numpy.percentile(curve, TAIL)) for curve in curves) * 1.02)
    return Plot("completion time, SYN to last byte (ms)", "connections completed (%)",
                (*(_curve(distribution, look, "curve")
                   for look, distribution in enumerate(distributions)), *more),
                x_ends=ends, y_ends=(0, 100), legend=True)


def _curve(distribution: Distribution, look: int, style: Any) -> Line:
    share = numpy.arange(1, len(distribution.curve_ms) + 1) / distribution.count * 100
    step = max(1, len(share) // MOST_POINTS)
    return Line(f"{distribution.name} (n = {distribution.count})",
                tuple(distribution.curve_ms[::step].tolist()),
                tuple(share[::step].tolist()), look=look, style=style)


def _gains(distributions: Sequence[Distribution], first: Sequence[Line] = ()) -> Plot:
    """What all but the first save against it."""
    return _gain_plot(f"saved against {distributions[0].name} (%)", [
        *first, *(line for look, distribution in enumerate(distributions) if look
                  for line in _gain_lines(distributions[0], distribution, look))])


def _gain_lines(base: Distribution, other: Distribution, look: int) -> tuple[Line, Line]:
    """By percentile; and the mean at the left, which is none and joined with none."""
    gains = [other.gain_over(base, percentile) for percentile in PLACES]
    known = [(x, gain.percent) for x, gain in enumerate(gains) if gain is not None]
    mean = _estimates("", [point for point in known if point[0] == 0], look)
    return (_estimates(other.name, [point for point in known if point[0] > 0], look),
            replace(mean, style="points"))


def _gain_plot(y_label: str, lines: Sequence[Line]) -> Plot:
    return Plot("percentile of the completion time", y_label, tuple(lines), ticks=tuple(
        (x, "mean" if place is None else f"{place:g}") for x, place in enumerate(PLACES)),
        zero=True, legend=True)


def _queue(runs: Runs) -> Plot:
    """The bottleneck's queue over time, of the first seed."""
    lines = []
    for look, window in enumerate(runs.figure.windows):
        records = runs.at(window)
        times_s, packets = runs.queue(records[min(records)])
        lines.append(Line(analysis.window_label(window), tuple(times_s.tolist()),
                          tuple(packets.tolist()), look=look, style="curve"))
    trial = runs.records[0].trial
    return Plot("time (s), first seed", f"queue, mean of {QUEUE_SMOOTHED_S:g} s (packets)",
                tuple(lines), x_ends=(0, trial.duration_s),
                y_ends=(0, trial.queue_packets * 1.08), limit=trial.queue_packets)


# Gains along an axis -----------------------------------------------------------------

def gain(runs: Runs, points: Sequence[GainPoint]) -> LineChart:
    """What is saved of the mean, and what retransmissions it costs."""
    figure, base = runs.figure, analysis.window_label(runs.figure.windows[0])
    places = {x: place for place, x in enumerate(dict.fromkeys(point.x for point in points))}
    lines = grouped(points, lambda point: (point.window, point.series))
    saved, retransmitted = [], []
    for number, ((window, series), of_line) in enumerate(lines.items()):
        words = [named(figure.series, series)] if figure.series else []
        words += [f"IW {window}"] if window and len(figure.windows) > 2 else []
        name, look = ", ".join(words) or f"IW {window}", number + 1
        xs = [places[point.x] + (number - (len(lines) - 1) / 2) * ASIDE for point in of_line]
        saved.append(_estimates(name, list(zip(xs, (
            point.mean.percent for point in of_line))), look))
        retransmitted.append(_estimates(name, list(zip(xs, (
            point.retransmission.experiment for point in of_line))), look))
        if window == figure.windows[1]:
            retransmitted.append(Line("", tuple(xs), tuple(
                point.retransmission.base.value for point in of_line), look=look, style="faint"))
    ticks = tuple((float(place), describe(figure.by, x)) for x, place in places.items())
    axis, faint = name_of(figure.by), "" if figure.by == "window" else f"; faint: {base}"
    return _chart(runs, (
        (Plot(axis, f"mean completion time saved against {base} (%)", tuple(saved), ticks=ticks,
              zero=True),),
        (Plot(axis, f"retransmitted bytes (% of unique{faint})", tuple(retransmitted),
              ticks=ticks),)),
        widths=(0.37, 0.37), legend=len(lines) > 1 or any(window for window, _ in lines))


# Transfers that retransmitted -------------------------------------------------------

def hit(runs: Runs, measured: Sequence[Hit]) -> LineChart:
    """How long transfers took that retransmitted: each window's own, and the same arrivals."""
    return _chart(runs, (
        (_hits(runs, measured, [hit.own for hit in measured], "transfers that each window hit"),),
        (_hits(runs, measured, [hit.same for hit in measured],
               "the same transfers: hit under either window"),)), widths=(0.42, 0.42))


def _hits(runs: Runs, hits: Sequence[Hit], gains: Sequence[Gain | None], title: str) -> Plot:
    by = runs.figure.by
    known = [(float(place), gain) for place, gain in enumerate(gains) if gain is not None]
    return Plot(
        name_of(by), "mean completion time (ms)", tuple(
            Line(f"IW {window}", tuple(place for place, _ in known),
                 tuple(mean.value for mean in means), tuple(mean.interval for mean in means),
                 look, "bars")
            for look, (window, means) in enumerate(zip(runs.figure.windows, (
                [gain.base for _, gain in known], [gain.experiment for _, gain in known])))),
        title=title, ticks=tuple((float(place), describe(by, hit.x))
                                 for place, hit in enumerate(hits)), legend=True)
