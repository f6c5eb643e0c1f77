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
from firstflight.workloads.load.analysis import (MEAN_AND_PERCENTILES, QUEUE_SMOOTHED_S,
                                                 Distribution, GainPoint, Hit, Mixes, Runs,
                                                 format_named, format_value, name_of)
from firstflight.workloads.load.scenario import DECK_COLUMNS, DECK_FILE, deck_rows
from firstflight.workloads.load.trial import FIXED as FIXED_SIZE, LoadTrial

# Lines are moved sideways, so that their intervals stand next to each other, by these parts of the
# distance between ticks. Along percentiles, half the distance between two lines:
ASIDE = 0.05
# Along an axis of few ticks, the distance between two lines, and the most for all lines together:
BROAD_ASIDE, MOST_ASIDE = 0.1, 0.7
OUTLIER = 2.0  # a value is cut off if the axis would be more than so many times as long with it
LEAST_PERCENT = 0.05  # of connections: the end of a distribution's axes
CURVE_POINTS = 400  # of one curve, denser in its tail
NO_QUEUE = 0.1  # of its limit: a queue that never exceeds this is not drawn
RETRANSMITTED = "Retransmitted bytes, as a share of the bytes that were sent once"
# Named in a figure's context where all runs share one value.
FIXED = ("bandwidth_kbps", "queue_bdp", "load", "response_bytes", "connections")


def _chart(runs: Runs, *plots: Plot, side_by_side: bool = False, **more: Any) -> LineChart:
    """A chart with the figure's title, the parameters that all runs share, and the counted time.

    more: further fields of LineChart.
    """
    trials = [record.trial for record in runs.records]
    seeds = len({trial.repeat for trial in trials})
    spread = f"bars: 95 % intervals over {seeds} seeds" if seeds > 1 else "one seed: no interval"
    spans = " or ".join(f"{span_s:g}" for span_s in sorted({trial.counted_span_s
                                                            for trial in trials}))
    return LineChart(
        runs.figure.title, (_fixed(trials),), f"{spans} s after each warm-up · {spread}",
        alarm=next(iter(runs.exclusion_notes), ""),
        columns=tuple((plot,) for plot in plots) if side_by_side else (plots,), **more)


def _fixed(trials: Sequence[LoadTrial]) -> str:
    """The parameters that all runs share, with units; the range of the clients' RTTs."""
    rtts_ms = {host.rtt_ms for trial in trials for host in trial.clients}
    ends_ms = sorted({min(rtts_ms), max(rtts_ms)})
    known = {"rtt_ms": f"RTT {' to '.join(map(plain, ends_ms))} ms"}
    values = shared_values(trials, FIXED)
    for name, value in values.items():
        if value is not None:
            known[name] = shared.format_named(name, value)
    if values.get("queue_bdp") is not None:
        known["queue_bdp"] = format_named("queue_bdp", values["queue_bdp"])
    if "response_bytes" in values and trials[0].sizes != FIXED_SIZE:
        known["response_bytes"] = f"mean size {in_words(values['response_bytes'], 'bytes')}"
    if values.get("connections") == 1:
        del known["connections"]
    return ", ".join(known.values())


def _estimates(name: str, points: Sequence[tuple[float, Estimate]], look: int,
               initcwnd: int = 0) -> Line:
    """A line through estimates, with their intervals."""
    estimates = [estimate for _, estimate in points]
    return Line(name, tuple(x for x, _ in points), tuple(estimate.value for estimate in estimates),
                ends=tuple(estimate.interval for estimate in estimates), look=look,
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
        lines.append(Line("", (float(place),), (share.value,), ends=(share.interval,), look=place,
                          style="points", window=distribution.window.initcwnd))
    ticks = tuple((float(place), distribution.name)
                  for place, distribution in enumerate(distributions))
    return Plot("", "retransmitted (%)", tuple(lines), title=RETRANSMITTED, ticks=ticks,
                x_ends=(-0.5, len(distributions) - 0.5), y_ends=_from_zero(lines))


def _from_zero(lines: Sequence[Line]) -> Ends:
    """An axis from zero to the highest end of an interval."""
    highest = max(value for line in lines for value in _values(line))
    return 0.0, 1.1 * highest or 1.0


def deck(runs: Runs, distributions: Sequence[Distribution]) -> LineChart:
    """Completion times, and what each percentile saves, measured and published."""
    return _chart(runs, _curves(distributions), _gains(runs, distributions))


def mix(runs: Runs, mixes: Mixes) -> LineChart:
    """Charts of the groups of mixes, and of the runs where everybody has one window.

    They have the distributions, what a larger window saves within the mix and between runs, and
    what each group saves because of the other groups.
    """
    looks = {window: look for look, window in enumerate(mixes.alone)}
    groups = [group for parts in mixes.groups.values() for group in parts]
    # A window has one colour: solid lines for unmixed runs, dashed lines in the mix.
    dashed: list[Line] = []
    because_of_others: list[Line] = []
    for group in groups:
        own = mixes.alone.get(group.window.name)
        if own is not None:
            look = looks[group.window.name]
            dashed.append(_curve(group, look, "dashed"))
            because_of_others += _gain_lines(own, group, look)

    alone = list(mixes.alone.values())
    compared = [(alone[0], replace(own, name=f"{own.name} everywhere")) for own in alone[1:]]
    for first, *others in mixes.groups.values():
        compared += [(first, group) for group in others]
    by_window: list[Line] = []
    for look, (base, larger) in enumerate(compared):
        by_window += _gain_lines(base, larger, look)

    ends = _ends([*by_window, *because_of_others])
    plots = [_curves(alone, dashed, groups)]
    if by_window:
        plots.append(_gain_plot("What a larger window saves: within the mix, and where everybody"
                                " has it", by_window, ends))
    plots.append(_gain_plot("What each group saves, against runs in which everybody has its window",
                            because_of_others, ends))
    return _chart(runs, *plots)


def _values(line: Line) -> list[float]:
    """The values of a line, and the ends of their intervals."""
    return [*line.y, *(end for ends in line.ends if ends for end in ends)]


def _ends(lines: Sequence[Line]) -> Ends:
    """The common ends of plots of what is saved, with room for a legend above the points.

    Values far from all others are outside: next to them the others would look alike. Intervals
    widen the axis on either side by the range of the values at most.
    """
    low, high = _without_outliers([value for line in lines for value in line.y])
    room = high - low or 1.0
    interval_ends: list[float] = []
    for line in lines:
        for value, ends in zip(line.y, line.ends):
            if ends and low <= value <= high:
                interval_ends += ends
    low = max(min([low, *interval_ends]), low - room)
    high = min(max([high, *interval_ends]), high + room)
    return low - 0.05 * (high - low), high + 0.35 * (high - low or 1.0)


def _without_outliers(values: Sequence[float]) -> Ends:
    """The range of the values and of zero, without the ends that make it OUTLIER times as long."""
    shown = sorted([0.0, *values])
    while len(shown) > 2:
        below, above = shown[1:], shown[:-1]
        inner = min(below, above, key=lambda part: part[-1] - part[0])
        cut = shown[0] if inner is below else shown[-1]
        is_zero = not cut  # which the axis always has
        if is_zero or shown[-1] - shown[0] <= OUTLIER * (inner[-1] - inner[0]):
            break
        shown = inner
    return shown[0], shown[-1]


def _curves(distributions: Sequence[Distribution], more: Sequence[Line] = (),
            others: Sequence[Distribution] = ()) -> Plot:
    """The share of connections that take longer, on logarithmic axes.

    more: further lines. others: the distributions of these lines.
    """
    curves_ms = [distribution.curve_ms for distribution in (*distributions, *others)]
    least_ms = min(float(curve_ms[0]) for curve_ms in curves_ms)
    most_ms = max(float(numpy.percentile(curve_ms, 100 - LEAST_PERCENT)) for curve_ms in curves_ms)
    lines = [_curve(distribution, look, "curve") for look, distribution in enumerate(distributions)]

    # Here the seeds are pooled. The tables have means over the seeds, which differ in the tail.
    is_pooled = any(len(distribution.by_seed[None]) > 1 for distribution in distributions)
    title = f"{'All seeds together; in' if is_pooled else 'In'} brackets: how many connections"
    return Plot("completion time, SYN to last byte (ms)", "connections that take longer (%)",
                (*lines, *more), title=title, x_scale="log", y_scale="log",
                x_ends=(least_ms * 0.95, most_ms * 1.1), y_ends=(LEAST_PERCENT, 100), legend=True)


def _curve(distribution: Distribution, look: int, style: Any) -> Line:
    """The distribution of completion times; transfers that never completed lie beyond its end."""
    longer = numpy.unique(numpy.geomspace(1, distribution.count, CURVE_POINTS).astype(int))[::-1]
    longer = longer[longer > distribution.count - len(distribution.curve_ms)]
    return Line(f"{distribution.name} ({distribution.count})",
                tuple(distribution.curve_ms[distribution.count - longer].tolist()),
                tuple((longer / distribution.count * 100).tolist()), look=look, style=style,
                window=distribution.window.initcwnd)


def _gains(runs: Runs, distributions: Sequence[Distribution]) -> Plot:
    """What each distribution but the first one saves against the first, measured and published."""
    lines: list[Line] = []
    if runs.figure.published:
        row = next(row for row in deck_rows(runs.figure.published) if row["row"] == "% Impr.")
        xs, values = [], []
        for column in DECK_COLUMNS:
            if row[column]:
                percentile = None if column == "Avg." else float(column)
                xs.append(MEAN_AND_PERCENTILES.index(percentile) - ASIDE)
                values.append(published.number(row, column, DECK_FILE))
        lines.append(Line("the deck", tuple(xs), tuple(values), style="published"))

    base, *others = distributions
    for look, distribution in enumerate(others, start=1):
        lines += _gain_lines(base, distribution, look)
    return _gain_plot(f"What is saved against {base.name}, by percentile", lines, _ends(lines))


def _gain_lines(base: Distribution, other: Distribution, look: int) -> tuple[Line, Line]:
    """The gains by percentile as a line, and the gain of the mean as a point at the left."""
    gains = [other.gain_over(base, percentile) for percentile in MEAN_AND_PERCENTILES]
    known = [(x + 2 * look * ASIDE, gain.percent) for x, gain in enumerate(gains)
             if gain is not None]
    initcwnd = other.window.initcwnd
    mean = _estimates("", [(x, gain) for x, gain in known if x < 1], look, initcwnd=initcwnd)
    percentiles = _estimates(other.name, [(x, gain) for x, gain in known if x >= 1], look,
                             initcwnd=initcwnd)
    return percentiles, replace(mean, style="points")


def _gain_plot(title: str, lines: Sequence[Line], ends: Ends) -> Plot:
    """A plot of what is saved, by percentile. ends: of the axis along y."""
    ticks = tuple((x, "mean" if percentile is None else f"{percentile:g}")
                  for x, percentile in enumerate(MEAN_AND_PERCENTILES))
    return Plot("percentile of the completion time", "saved (%)", tuple(lines), title=title,
                ticks=ticks, y_ends=ends, zero=True, legend=True)


def _queue(runs: Runs) -> Plot:
    """The bottleneck's queue over time, of the first seed."""
    lines = []
    for look, window in enumerate(runs.figure.windows):
        records = runs.at(window)
        times_s, packets = runs.queue(records[min(records)])
        requested = runs.window(window)
        lines.append(Line(requested.label, tuple(times_s.tolist()), tuple(packets.tolist()),
                          look=look, style="curve", window=requested.initcwnd))
    trial = runs.records[0].trial
    return Plot("time (s)", "packets queued", tuple(lines),
                title=f"The bottleneck's queue, means of {QUEUE_SMOOTHED_S:g} s, first seed",
                x_ends=(0, trial.duration_s), y_ends=(0, trial.queue_packets * 1.25),
                limit=(trial.queue_packets, "full"))


# Gains along an axis -----------------------------------------------------------------

def gain(runs: Runs, points: Sequence[GainPoint]) -> LineChart:
    """Charts of what is saved of the mean and of the 99th percentile, and of retransmissions."""
    figure, base = runs.figure, runs.window(runs.figure.windows[0])
    places = {x: place for place, x in enumerate(dict.fromkeys(point.x for point in points))}
    lines = grouped(points, lambda point: (point.window, point.series))
    aside = min(BROAD_ASIDE, MOST_ASIDE / len(lines))
    is_a_window_each = len({window for window, _ in lines}) == len(lines)
    saved, of_p99, retransmitted = [], [], []
    is_base_named = False
    for number, ((window, series), of_line) in enumerate(lines.items()):
        has_window = bool(window)  # a line has none of its own where the windows are the axis
        words = [format_named(figure.down, series)] if figure.down else []
        if has_window and len(figure.windows) > 2:
            words.append(f"IW {window}")
        name = ", ".join(words) or f"IW {window}"
        look = number + 1
        initcwnd = runs.window(window).initcwnd if has_window and is_a_window_each else 0

        xs = [places[point.x] + (number - (len(lines) - 1) / 2) * aside for point in of_line]
        placed = list(zip(xs, of_line))
        means = [(x, point.mean.percent) for x, point in placed]
        p99s = [(x, point.p99.percent) for x, point in placed if point.p99 is not None]
        shares = [(x, _no_less_than_none(point.retransmission.experiment)) for x, point in placed]
        saved.append(_estimates(name, means, look, initcwnd=initcwnd))
        of_p99.append(_estimates(name, p99s, look, initcwnd=initcwnd))
        retransmitted.append(_estimates(name, shares, look, initcwnd=initcwnd))

        # The base's retransmissions are drawn once a series: with its first line.
        if has_window and window == figure.windows[1]:
            retransmitted.append(Line(
                "" if is_base_named else f"{base.label} (open)", tuple(xs),
                tuple(point.retransmission.base.value for point in of_line), look=look,
                style="faint", window=base.initcwnd if initcwnd else 0))
            is_base_named = True

    ticks = tuple((float(place), format_value(figure.by, x)) for x, place in places.items())
    axis = name_of(figure.by)
    plots = [Plot(axis, "saved (%)", tuple(saved), ticks=ticks, zero=True, y_ends=_ends(saved),
                  title=f"What is saved of the mean against {base.label}")]
    if any(line.y for line in of_p99):
        plots.append(Plot(axis, "saved (%)", tuple(of_p99), ticks=ticks, zero=True,
                          y_ends=_ends(of_p99),
                          title=f"What is saved of the 99th percentile against {base.label}"))
    plots.append(Plot(axis, "retransmitted (%)", tuple(retransmitted), title=RETRANSMITTED,
                      ticks=ticks, y_ends=_from_zero(retransmitted)))
    return _chart(runs, *plots, legend=len(lines) > 1 or any(window for window, _ in lines))


def _no_less_than_none(share: Estimate) -> Estimate:
    """A share whose interval begins at 0 or above, since no share is negative."""
    if share.interval is None:
        return share
    low, high = share.interval
    return replace(share, interval=(max(low, 0.0), high))


# Transfers that retransmitted -------------------------------------------------------

def hit(runs: Runs, measured: Sequence[Hit]) -> LineChart:
    """Mean times of transfers that retransmitted, under both windows.

    The left plot has the transfers that retransmitted under each window, which are not the same.
    The right one has those that retransmitted under either window, which are the same under both.
    """
    own = [point.own for point in measured]
    same = [point.same for point in measured]
    values = []
    for compared in filter(None, (*own, *same)):
        for mean in (compared.base, compared.experiment):
            values += [mean.value, *(mean.interval or ())]
    ends = 0.0, 1.25 * max(values)

    ticks = tuple((float(place), format_value(runs.figure.by, point.x))
                  for place, point in enumerate(measured))
    return _chart(
        runs, Plot(name_of(runs.figure.by), "mean completion time (ms)", _hit_bars(runs, own),
                   title="each window's own: not the same transfers", ticks=ticks, y_ends=ends,
                   legend=True),
        Plot(name_of(runs.figure.by), "mean completion time (ms)", _hit_bars(runs, same),
             title="the same transfers: hit under either window", ticks=ticks, y_ends=ends,
             legend=True),
        side_by_side=True)


def _hit_bars(runs: Runs, gains: Sequence[Difference | None]) -> tuple[Line, ...]:
    """Bars of the means under both windows. gains: at each place of the axis."""
    known = [(float(place), gain) for place, gain in enumerate(gains) if gain is not None]
    places = tuple(place for place, _ in known)
    sides = [gain.base for _, gain in known], [gain.experiment for _, gain in known]
    lines = []
    for look, (window, means) in enumerate(zip(runs.figure.windows, sides)):
        lines.append(Line(f"IW {window}", places, tuple(mean.value for mean in means),
                          ends=tuple(mean.interval for mean in means), look=look, style="bars",
                          window=runs.window(window).initcwnd))
    return tuple(lines)
