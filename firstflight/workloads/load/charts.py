"""The charts of load's figures: distributions, mixes, gains along an axis, hit transfers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy

from firstflight.base.quantity import in_words
from firstflight.base.stats import Estimate
from firstflight.base.words import plain
from firstflight.figures import shared
from firstflight.figures.shared import shared_values
from firstflight.findings.charts import Line, LineChart, Plot
from firstflight.findings.claims import Ends
from firstflight.findings.difference import Difference
from firstflight.runs.results.cells import grouped
from firstflight.scenario import published
from firstflight.workloads.load.analysis import (PLACES, QUEUE_SMOOTHED_S, Distribution, GainPoint,
                                                 Hit, Mixes, Runs, describe, name_of, named)
from firstflight.workloads.load.scenario import DECK_COLUMNS, DECK_FILE, deck_rows
from firstflight.workloads.load.trial import FIXED as FIXED_SIZE, LoadTrial

ASIDE = 0.05  # of the distance between ticks: intervals stand next to each other
BROAD_ASIDE, MOST_ASIDE = 0.1, 0.7  # along an axis of few ticks: of two lines, and of all together
OUTLIER = 2.0  # so many times as long an axis would be with a value that is cut
LEAST_PERCENT = 0.05  # of connections: the end of a distribution's axes
CURVE_POINTS = 400  # of one curve, denser in its tail
NO_QUEUE = 0.1  # of its limit: a queue that never exceeds this is not drawn
RETRANSMITTED = "Retransmitted bytes, as a share of the bytes that were sent once"
# Named in a figure's context where all runs share one value.
FIXED = ("bandwidth_kbps", "queue_bdp", "load", "response_bytes", "connections")


def _chart(runs: Runs, *plots: Plot, side_by_side: bool = False, **more: Any) -> LineChart:
    """A chart with its figure's title, the parameters that all runs share, and the time measured.
    """
    records, figure = runs.records, runs.figure
    seeds = len({record.trial.repeat for record in records})
    spans_s = sorted({record.trial.counted_span_s for record in records})
    spread = f"bars: 95 % intervals over {seeds} seeds" if seeds > 1 else "one seed: no interval"
    return LineChart(
        figure.title, (_fixed([record.trial for record in records]),),
        f"{' or '.join(f'{span_s:g}' for span_s in spans_s)} s after each warm-up · {spread}",
        next(iter(runs.exclusion_notes), ""),
        columns=tuple((plot,) for plot in plots) if side_by_side else (plots,), **more)


def _fixed(trials: Sequence[LoadTrial]) -> str:
    """The parameters that all runs share, with units; the range of the clients' RTTs."""
    rtts = {host.rtt_ms for trial in trials for host in trial.clients}
    known = {"rtt_ms": f"RTT {' to '.join(map(plain, sorted({min(rtts), max(rtts)})))} ms"}
    values = shared_values(trials, FIXED)
    known |= {name: shared.named(name, value) for name, value in values.items()
              if value is not None}
    if values.get("queue_bdp") is not None:
        known["queue_bdp"] = named("queue_bdp", values["queue_bdp"])
    if "response_bytes" in values and trials[0].sizes != FIXED_SIZE:
        known["response_bytes"] = f"mean size {in_words(values['response_bytes'], 'bytes')}"
    if values.get("connections") == 1:
        del known["connections"]
    return ", ".join(known.values())


def _estimates(name: str, points: Sequence[tuple[float, Estimate]], look: int,
               initcwnd: int = 0) -> Line:
    """A line through estimates, with their intervals."""
    return Line(name, tuple(x for x, _ in points), tuple(estimate.value for _, estimate in points),
                tuple(estimate.interval for _, estimate in points), look,
                window=initcwnd)


# Distributions --------------------------------------------------------------------

def distribution(runs: Runs, distributions: Sequence[Distribution]) -> LineChart:
    """Completion times, what each percentile saves, and the queue of the first seed.

    Where the bottleneck has no queue, as behind slower links of the clients, the retransmissions of
    each window are drawn in its place.
    """
    queue = _queue(runs)
    assert queue.limit is not None  # it has one
    is_used = max(max(line.y) for line in queue.lines) > NO_QUEUE * queue.limit[0]
    return _chart(runs, _curves(distributions), _gains(runs, distributions),
                  queue if is_used else _retransmitted(distributions))


def _retransmitted(distributions: Sequence[Distribution]) -> Plot:
    """A bar for each window: how much of what it sent was sent once more."""
    lines = []
    for place, distribution in enumerate(distributions):
        share = _no_less_than_none(distribution.retransmission)
        lines.append(Line("", (float(place),), (share.value,), (share.interval,), place, "points",
                          distribution.window.initcwnd))
    return Plot("", "retransmitted (%)", tuple(lines), RETRANSMITTED, ticks=tuple(
        (float(place), distribution.name) for place, distribution in enumerate(distributions)),
        x_ends=(-0.5, len(distributions) - 0.5), y_ends=_from_zero(lines))


def _from_zero(lines: Sequence[Line]) -> Ends:
    """An axis from zero to the highest end of an interval."""
    highest = max(value for line in lines for value in _values(line))
    return 0.0, 1.1 * highest or 1.0


def deck(runs: Runs, distributions: Sequence[Distribution]) -> LineChart:
    """Completion times, and what each percentile saves, measured and published."""
    return _chart(runs, _curves(distributions), _gains(runs, distributions))


def mix(runs: Runs, mixes: Mixes) -> LineChart:
    """The groups of mixes and the runs where everybody has one window.

    Their distributions; what a larger window saves within the mix and between runs; and what each
    group saves because of the others.
    """
    looks = {window: look for look, window in enumerate(mixes.alone)}
    groups = [group for parts in mixes.groups.values() for group in parts]
    # A window has one colour: solid lines for unmixed runs, dashed lines in the mix.
    unmixed = [(group, group.window.name) for group in groups if group.window.name in looks]
    dashed = [_curve(group, looks[window], "dashed") for group, window in unmixed]
    saved = [line for group, window in unmixed
             for line in _gain_lines(mixes.alone[window], group, looks[window])]
    alone = list(mixes.alone.values())
    compared = [line for place, (name, base, window) in enumerate(
        [*((f"{own.name} everywhere", alone[0], own) for own in alone[1:]),
         *((group.name, first, group) for first, *parts in mixes.groups.values()
           for group in parts)])
        for line in _gain_lines(base, replace(window, name=name), place)]
    ends = _ends([*compared, *saved])
    return _chart(runs, _curves(alone, dashed, groups), *([_gain_plot(
        "What a larger window saves: within the mix, and where everybody has it", compared, ends)]
        if compared else []), _gain_plot(
        "What each group saves, against runs in which everybody has its window", saved, ends))


def _values(line: Line) -> list[float]:
    """The values of a line, and the ends of their intervals."""
    return [*line.y, *(end for ends in line.ends if ends for end in ends)]


def _ends(lines: Sequence[Line]) -> Ends:
    """The common ends of plots of what is saved, with room for a legend above the points.

    Values far from all others are outside: next to them the others would look alike. Intervals do
    not move the ends further than the values do twice.
    """
    low, high = _without_outliers([value for line in lines for value in line.y])
    room = high - low or 1.0
    of_intervals = [end for line in lines for value, ends in zip(line.y, line.ends)
                    if ends and low <= value <= high for end in ends]
    low = max(min([low, *of_intervals]), low - room)
    high = min(max([high, *of_intervals]), high + room)
    return low - 0.05 * (high - low), high + 0.35 * (high - low or 1.0)


def _without_outliers(values: Sequence[float]) -> Ends:
    """The range of the values and of zero, without the ends that make it OUTLIER times as long."""
    shown = sorted([0.0, *values])
    while len(shown) > 2:
        below, above = shown[1:], shown[:-1]
        inner = min(below, above, key=lambda part: part[-1] - part[0])
        cut = shown[0] if inner is below else shown[-1]
        if not cut or shown[-1] - shown[0] <= OUTLIER * (inner[-1] - inner[0]):
            break
        shown = inner
    return shown[0], shown[-1]


def _curves(distributions: Sequence[Distribution], more: Sequence[Line] = (),
            others: Sequence[Distribution] = ()) -> Plot:
    """The share of connections that take longer, on logarithmic axes.

    more: further lines. others: the distributions of these lines.
    """
    curves = [distribution.curve_ms for distribution in (*distributions, *others)]
    ends = (min(float(curve[0]) for curve in curves) * 0.95,
            max(float(numpy.percentile(curve, 100 - LEAST_PERCENT)) for curve in curves) * 1.1)
    # The tables have means over the seeds: far down these differ from all seeds together.
    is_pooled = any(len(one.by_seed[None]) > 1 for one in distributions)
    title = f"{'All seeds together; in' if is_pooled else 'In'} brackets: how many connections"
    return Plot("completion time, SYN to last byte (ms)", "connections that take longer (%)",
                (*(_curve(distribution, look, "curve")
                   for look, distribution in enumerate(distributions)), *more),
                title, x_scale="log", y_scale="log", x_ends=ends,
                y_ends=(LEAST_PERCENT, 100), legend=True)


def _curve(distribution: Distribution, look: int, style: Any) -> Line:
    """The distribution of completion times; transfers that never completed lie beyond its end."""
    longer = numpy.unique(numpy.geomspace(1, distribution.count, CURVE_POINTS).astype(int))[::-1]
    longer = longer[longer > distribution.count - len(distribution.curve_ms)]
    return Line(f"{distribution.name} ({distribution.count})",
                tuple(distribution.curve_ms[distribution.count - longer].tolist()),
                tuple((longer / distribution.count * 100).tolist()), look=look, style=style,
                window=distribution.window.initcwnd)


def _gains(runs: Runs, distributions: Sequence[Distribution]) -> Plot:
    """What all but the first save against it, and what was published of that."""
    # What was published, by percentile; None for the average.
    known: dict[float | None, float] = {}
    if runs.figure.published:
        row = next(row for row in deck_rows(runs.figure.published) if row["row"] == "% Impr.")
        known = {None if column == "Avg." else float(column):
                 published.number(row, column, DECK_FILE) for column in DECK_COLUMNS if row[column]}
    theirs = [Line("the deck", tuple(float(PLACES.index(place)) - ASIDE for place in known),
                   tuple(known.values()), style="published")] if known else []
    lines = [*theirs, *(line for look, distribution in enumerate(distributions) if look
                        for line in _gain_lines(distributions[0], distribution, look))]
    return _gain_plot(f"What is saved against {distributions[0].name}, by percentile", lines,
                      _ends(lines))


def _gain_lines(base: Distribution, other: Distribution, look: int) -> tuple[Line, Line]:
    """The gains by percentile; the mean stands apart at the left."""
    gains = [other.gain_over(base, percentile) for percentile in PLACES]
    initcwnd = other.window.initcwnd
    known = [(x + 2 * look * ASIDE, gain.percent) for x, gain in enumerate(gains)
             if gain is not None]
    mean = _estimates("", [point for point in known if point[0] < 1], look, initcwnd)
    return (_estimates(other.name, [point for point in known if point[0] >= 1], look, initcwnd),
            replace(mean, style="points"))


def _gain_plot(title: str, lines: Sequence[Line], ends: Ends) -> Plot:
    return Plot("percentile of the completion time", "saved (%)", tuple(lines), title, ticks=tuple(
        (x, "mean" if place is None else f"{place:g}") for x, place in enumerate(PLACES)),
        y_ends=ends, zero=True, legend=True)


def _queue(runs: Runs) -> Plot:
    """The bottleneck's queue over time, of the first seed."""
    lines = []
    for look, window in enumerate(runs.figure.windows):
        records = runs.at(window)
        times_s, packets = runs.queue(records[min(records)])
        requested = runs.window(window)
        lines.append(Line(requested.label, tuple(times_s.tolist()),
                          tuple(packets.tolist()), look=look, style="curve",
                          window=requested.initcwnd))
    trial = runs.records[0].trial
    return Plot("time (s)", "packets queued", tuple(lines),
                f"The bottleneck's queue, means of {QUEUE_SMOOTHED_S:g} s, first seed",
                x_ends=(0, trial.duration_s), y_ends=(0, trial.queue_packets * 1.25),
                limit=(trial.queue_packets, "full"))


# Gains along an axis -----------------------------------------------------------------

def gain(runs: Runs, points: Sequence[GainPoint]) -> LineChart:
    """What is saved of the mean and of the 99th percentile, and what retransmissions it costs."""
    figure, first = runs.figure, runs.window(runs.figure.windows[0])
    base = first.label
    places = {x: place for place, x in enumerate(dict.fromkeys(point.x for point in points))}
    lines = grouped(points, lambda point: (point.window, point.series))
    aside = min(BROAD_ASIDE, MOST_ASIDE / len(lines))
    saved, of_p99, retransmitted, faint = [], [], [], False
    is_a_window_each = len({window for window, _ in lines}) == len(lines)
    for number, ((window, series), of_line) in enumerate(lines.items()):
        words = [named(figure.down, series)] if figure.down else []
        words += [f"IW {window}"] if window and len(figure.windows) > 2 else []
        name, look = ", ".join(words) or f"IW {window}", number + 1
        shown = runs.window(window).initcwnd if window and is_a_window_each else 0
        xs = [places[point.x] + (number - (len(lines) - 1) / 2) * aside for point in of_line]
        saved.append(_estimates(name, list(zip(xs, (
            point.mean.percent for point in of_line))), look, shown))
        of_p99.append(_estimates(name, [(x, point.p99.percent) for x, point in zip(xs, of_line)
                                        if point.p99 is not None], look, shown))
        retransmitted.append(_estimates(name, list(zip(xs, (
            _no_less_than_none(point.retransmission.experiment) for point in of_line))), look,
            shown))
        if window == figure.windows[1] and figure.by != "window":
            retransmitted.append(Line(
                "" if faint else f"{base} (open)", tuple(xs), tuple(
                    point.retransmission.base.value for point in of_line), look=look,
                style="faint", window=first.initcwnd if shown else 0))
            faint = True
    ticks = tuple((float(place), describe(figure.by, x)) for x, place in places.items())
    axis = name_of(figure.by)
    return _chart(
        runs, Plot(axis, "saved (%)", tuple(saved), f"What is saved of the mean against {base}",
                   ticks=ticks, zero=True, y_ends=_ends(saved)),
        *([Plot(axis, "saved (%)", tuple(of_p99),
                f"What is saved of the 99th percentile against {base}", ticks=ticks, zero=True,
                y_ends=_ends(of_p99))] if any(line.y for line in of_p99) else []),
        Plot(axis, "retransmitted (%)", tuple(retransmitted), RETRANSMITTED, ticks=ticks,
             y_ends=_from_zero(retransmitted)),
        legend=len(lines) > 1 or any(window for window, _ in lines))


def _no_less_than_none(share: Estimate) -> Estimate:
    """No share is negative, whatever the spread of few seeds."""
    return share if share.interval is None else replace(
        share, interval=(max(share.interval[0], 0.0), share.interval[1]))


# Transfers that retransmitted -------------------------------------------------------

def hit(runs: Runs, measured: Sequence[Hit]) -> LineChart:
    """How long transfers took that retransmitted: each window's own, and the same arrivals."""
    ends = 0.0, 1.25 * max(end for hit in measured for gain in (hit.own, hit.same) if gain
                           for mean in (gain.base, gain.experiment)
                           for end in (mean.value, *(mean.interval or ())))
    return _chart(
        runs, _hits(runs, measured, [hit.own for hit in measured],
                    "each window's own: not the same transfers", ends),
        _hits(runs, measured, [hit.same for hit in measured],
              "the same transfers: hit under either window", ends),
        side_by_side=True)


def _hits(runs: Runs, hits: Sequence[Hit], gains: Sequence[Difference | None], title: str,
          ends: Ends) -> Plot:
    by = runs.figure.by
    known = [(float(place), gain) for place, gain in enumerate(gains) if gain is not None]
    return Plot(
        name_of(by), "mean completion time (ms)", tuple(
            Line(f"IW {window}", tuple(place for place, _ in known),
                 tuple(mean.value for mean in means), tuple(mean.interval for mean in means),
                 look, "bars", runs.window(window).initcwnd)
            for look, (window, means) in enumerate(zip(runs.figure.windows, (
                [gain.base for _, gain in known], [gain.experiment for _, gain in known])))),
        title=title, ticks=tuple((float(place), describe(by, hit.x))
                                 for place, hit in enumerate(hits)), y_ends=ends, legend=True)
