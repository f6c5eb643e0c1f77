"""The charts of load's figures: distributions, mixes, gains along an axis, hit transfers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy

from lab.core.findings.charts import Line, LineChart, Plot
from lab.core.scenario import published
from lab.core.stats import Estimate
from lab.load import analysis
from lab.load.analysis import (PLACES, QUEUE_SMOOTHED_S, Distribution, Gain, Hit, Mixes, Runs,
                               Shared, describe, name_of, named)
from lab.load.scenario import DECK_COLUMNS, DECK_FILE, deck_rows

ASIDE = 0.05  # of the distance between ticks: intervals beside each other, not on each other
TAIL = 99.5  # percentile at which a distribution's axis ends
MOST_POINTS = 2000  # of one curve, roughly: more is not to be seen
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
        next(iter(runs.notes), ""),
        columns=columns, **more)


def _estimates(name: str, points: Sequence[tuple[float, Estimate]], look: int) -> Line:
    """Estimates with their intervals, joined."""
    return Line(name, tuple(x for x, _ in points), tuple(each.value for _, each in points),
                tuple(each.interval for _, each in points), look)


# Distributions --------------------------------------------------------------------

def distribution(runs: Runs, found: Sequence[Distribution]) -> LineChart:
    """Completion times, what each percentile gains, and the queue of the first seed."""
    return _chart(runs, ((_curves(found),), (_gains(found), _queue(runs))), widths=HALVES,
                  height_inches=5.4)


def deck(runs: Runs, found: Sequence[Distribution]) -> LineChart:
    """Distributions, and what each percentile gains beside what was published."""
    known = improvement_percent(runs.figure.published) if runs.figure.published else {}
    published = Line("the deck", tuple(float(PLACES.index(each)) for each in known),
                     tuple(known.values()), style="published")
    return _chart(runs, ((_curves(found),), (_gains(found, (published,) if known else ()),)),
                  widths=HALVES)


def improvement_percent(name: str) -> dict[float | None, float]:
    """The published improvement by percentile, None for the average. Raises UsageError."""
    row = next(row for row in deck_rows(name) if row["row"] == "% Impr.")
    return {None if column == "Avg." else float(column): published.number(row, column, DECK_FILE)
            for column in DECK_COLUMNS if row[column]}


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


def shared(runs: Runs, found: Sequence[Shared]) -> LineChart:
    """What each window of your users saves them, and the others, of the mean and of p99."""
    ticks = tuple((float(place), str(each.initcwnd)) for place, each in enumerate(found))

    def plot(what: str, gains: Sequence[tuple[Gain | None, Gain | None]]) -> Plot:
        lines = [_estimates(name, [(x + (look - 0.5) * ASIDE, gain.percent) for x, gain
                                   in enumerate(part) if gain is not None], look)
                 for look, (name, part) in enumerate(zip(("your users", "the others"),
                                                         zip(*gains)))]
        return Plot("initial window of your users (segments)",
                    f"saved of the {what} (%)", tuple(lines), ticks=ticks, zero=True)

    return _chart(runs, (
        (plot("mean", [(each.first, each.second) for each in found]),),
        (plot("99th percentile", [(each.first_p99, each.second_p99) for each in found]),)),
        legend=True)


def _curves(found: Sequence[Distribution], more: Sequence[Line] = (),
            others: Sequence[Distribution] = ()) -> Plot:
    """Distribution functions of the completion time; more: lines of the others."""
    curves = [each.curve_ms for each in (*found, *others)]
    ends = (min(float(curve[0]) for curve in curves) * 0.95,
            max(float(numpy.percentile(curve, TAIL)) for curve in curves) * 1.02)
    return Plot("completion time, SYN to last byte (ms)", "connections completed (%)",
                (*(_curve(each, look, "curve") for look, each in enumerate(found)), *more),
                x_ends=ends, y_ends=(0, 100), legend=True)


def _curve(found: Distribution, look: int, style: Any) -> Line:
    share = numpy.arange(1, len(found.curve_ms) + 1) / found.count * 100
    step = max(1, len(share) // MOST_POINTS)
    return Line(f"{found.name} (n = {found.count})", tuple(found.curve_ms[::step].tolist()),
                tuple(share[::step].tolist()), look=look, style=style)


def _gains(found: Sequence[Distribution], first: Sequence[Line] = ()) -> Plot:
    """What all but the first save against it."""
    return _gain_plot(f"saved against {found[0].name} (%)", [
        *first, *(line for look, each in enumerate(found) if look
                  for line in _gain_lines(found[0], each, look))])


def _gain_lines(base: Distribution, other: Distribution, look: int) -> tuple[Line, Line]:
    """By percentile; and the mean at the left, which is none and joined with none."""
    gains = [other.gain_over(base, percentile) for percentile in PLACES]
    known = [(x, gain.percent) for x, gain in enumerate(gains) if gain is not None]
    mean = _estimates("", [each for each in known if each[0] == 0], look)
    return (_estimates(other.name, [each for each in known if each[0] > 0], look),
            replace(mean, style="points"))


def _gain_plot(y_label: str, lines: Sequence[Line]) -> Plot:
    return Plot("percentile of the completion time", y_label, tuple(lines), ticks=tuple(
        (x, "mean" if each is None else f"{each:g}") for x, each in enumerate(PLACES)),
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

def gain(runs: Runs, found: Sequence[analysis.GainLine]) -> LineChart:
    """What is saved of the mean, and what retransmissions it costs."""
    figure, base = runs.figure, analysis.window_label(runs.figure.windows[0])
    places = {x: place for place, x in enumerate(dict.fromkeys(
        point.x for line in found for point in line.points))}
    saved, again = [], []
    for number, line in enumerate(found):
        name, look = _line_name(runs, line), number + 1
        xs = [places[point.x] + (number - (len(found) - 1) / 2) * ASIDE for point in line.points]
        saved.append(_estimates(name, list(zip(xs, (
            point.mean.percent for point in line.points))), look))
        again.append(_estimates(name, list(zip(xs, (
            point.retransmission.experiment for point in line.points))), look))
        if figure.by != "window" and line.window == figure.windows[1]:
            again.append(Line("", tuple(xs), tuple(
                point.retransmission.base.value for point in line.points), look=look,
                style="faint"))
    ticks = tuple((float(place), describe(figure.by, x)) for x, place in places.items())
    axis, faint = name_of(figure.by), "" if figure.by == "window" else f"; faint: {base}"
    return _chart(runs, (
        (Plot(axis, f"mean completion time saved against {base} (%)", tuple(saved), ticks=ticks,
              zero=True),),
        (Plot(axis, f"retransmitted bytes (% of unique{faint})", tuple(again), ticks=ticks),)),
        widths=(0.37, 0.37), legend=len(found) > 1 or any(line.window for line in found))


def _line_name(runs: Runs, line: analysis.GainLine) -> str:
    window = [f"IW {line.window}"] if line.window and len(runs.figure.windows) > 2 else []
    axis = runs.figure.series
    series = [named(axis, line.series)] if axis else []
    return ", ".join([*series, *window]) or f"IW {line.window}"


# Transfers that retransmitted -------------------------------------------------------

def hit(runs: Runs, found: Sequence[Hit]) -> LineChart:
    """How long transfers took that retransmitted: each window's own, and the same arrivals."""
    return _chart(runs, (
        (_hits(runs, found, [each.own for each in found], "transfers that each window hit"),),
        (_hits(runs, found, [each.same for each in found],
               "the same transfers: hit under either window"),)), widths=(0.42, 0.42))


def _hits(runs: Runs, found: Sequence[Hit], gains: Sequence[Gain | None], title: str) -> Plot:
    by = runs.figure.by
    known = [(float(place), each) for place, each in enumerate(gains) if each is not None]
    return Plot(
        name_of(by), "mean completion time (ms)", tuple(
            Line(f"IW {window}", tuple(place for place, _ in known),
                 tuple(each.value for each in values), tuple(each.interval for each in values),
                 look, "bars")
            for look, (window, values) in enumerate(zip(runs.figure.windows, (
                [each.base for _, each in known], [each.experiment for _, each in known])))),
        title=title, ticks=tuple((float(place), describe(by, each.x))
                                 for place, each in enumerate(found)), legend=True)
