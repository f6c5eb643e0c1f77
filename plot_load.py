"""What plot.py draws of load scenarios: distributions, mixes, gains along an axis, hit transfers.

Called by plot.py only; drawing only, the numbers come from lab.load.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from lab.load import analysis
from lab.load.analysis import Distribution, Estimate, Gain, Line, Runs
from lab.load.findings import AXIS_NAMES
from lab.load.published import improvement_percent
from lab.load.record import PERCENTILES
from lab.load.scenario import (DECK, DISTRIBUTION, GAIN, HIT, MIX, LoadScenario, describe, load)
from lab.load.study import records_of

DPI = 150
INK, GREY, ALARM = "#222222", "#666666", "#B00020"
# Okabe and Ito (2008), dark enough for lines; the styles tell them apart in grey.
COLOURS = ("#222222", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#8F6200", "#56B4E9")
STYLES = ("-", "-", "-", "--", "--", ":", ":")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
ASIDE = 0.05  # of the distance between ticks: intervals beside each other, not on each other
TAIL = 99.5  # percentile at which a distribution's axis ends


def figures(name: str, folder: Path) -> dict[str, Figure]:
    """The figures of a run of a load scenario, by name. Raises FirstFlightError."""
    scenario, records = load(name), records_of(folder)
    return {figure.name: KINDS[figure.kind](scenario, Runs.of(figure, records, folder))
            for figure in scenario.figures}


def sheet(scenario: LoadScenario, runs: Runs, width: float = 10.0,
          height: float = 5.6) -> Figure:
    """An empty figure with its title, and below it what was measured."""
    drawn = Figure(figsize=(width, height), dpi=DPI)
    FigureCanvasAgg(drawn)
    drawn.text(0.02, 1 - 0.3 / height, runs.figure.title, fontsize=12, weight="bold", color=INK)
    seeds = len({record.trial.repeat for record in runs.records})
    spans_s = sorted({record.trial.counted_s[1] - record.trial.counted_s[0]
                      for record in runs.records})
    each_s = " or ".join(f"{span_s:g}" for span_s in spans_s)
    drawn.text(0.02, 0.12 / height,
               f"{scenario.name} · {len(runs.records)} runs, {seeds} seeds, {each_s} s each after"
               " the warm-up · bars: 95 % intervals over seeds", fontsize=8, color=GREY)
    if runs.left_out:
        drawn.text(0.98, 0.12 / height, f"{runs.left_out} runs left out: verdict failed",
                   fontsize=8, color=ALARM, ha="right")
    return drawn


def plain(axes: Axes, x_name: str, y_name: str) -> None:
    axes.set_xlabel(x_name, fontsize=9)
    axes.set_ylabel(y_name, fontsize=9)
    axes.tick_params(labelsize=8)
    axes.grid(color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


# Distributions --------------------------------------------------------------------

def distribution_figure(scenario: LoadScenario, runs: Runs) -> Figure:
    """Completion times, what each percentile gains, and the queue of the first seed."""
    drawn = sheet(scenario, runs, height=6.2)
    found = analysis.distributions(runs)
    draw_curves(drawn.add_axes((0.07, 0.12, 0.42, 0.76)), found)
    draw_gains(drawn.add_axes((0.58, 0.58, 0.4, 0.3)), found[0], found[1:])
    draw_queue(drawn.add_axes((0.58, 0.12, 0.4, 0.3)), runs)
    return drawn


def mix_figure(scenario: LoadScenario, runs: Runs) -> Figure:
    """Each group of a mix beside the runs where everybody has its window."""
    drawn = sheet(scenario, runs)
    alone = [each for each in analysis.distributions(runs) if not each.name.startswith("mix")]
    mixes = [window for window in runs.figure.windows if "+" in window]
    groups = [group for window in mixes for group in analysis.groups_of_mix(runs, window)]
    names = [each.name for each in alone]
    # A window keeps its colour: whole lines by itself, dashed in the mix.
    looks = [(colour(place), "-") for place in range(len(alone))] + [
        (colour(names.index(window_of(group))), "--") for group in groups
        if window_of(group) in names]
    draw_curves(drawn.add_axes((0.07, 0.13, 0.42, 0.74)), [*alone, *groups], looks)
    axes = drawn.add_axes((0.58, 0.13, 0.4, 0.74))
    for group in groups:
        if window_of(group) in names:
            place = names.index(window_of(group))
            draw_gain_line(axes, group.name, alone[place], group, place)
    finish_gains(axes, "saved by the mix, against everybody\nwith that window (%)")
    return drawn


def window_of(group: Distribution) -> str:
    """The name of the unmixed runs with the window of a mix's group."""
    return group.name.removesuffix(" in the mix")


def draw_curves(axes: Axes, found: Sequence[Distribution],
                looks: Sequence[tuple[str, str]] = ()) -> None:
    """Distribution functions of the completion time; looks: (colour, style) of each."""
    for place, each in enumerate(found):
        line_colour, line_style = looks[place] if looks else (colour(place), style(place))
        share = numpy.arange(1, len(each.curve_ms) + 1) / each.count * 100
        step = max(1, len(share) // 2000)
        axes.plot(each.curve_ms[::step], share[::step], color=line_colour, linestyle=line_style,
                  linewidth=1.6, label=f"{each.name} (n = {each.count})")
    plain(axes, "completion time, SYN to last byte (ms)", "connections completed (%)")
    ends = [float(numpy.percentile(each.curve_ms, TAIL)) for each in found]
    starts = [float(each.curve_ms[0]) for each in found]
    axes.set_xlim(min(starts) * 0.95, max(ends) * 1.02)
    axes.set_ylim(0, 100)
    axes.legend(fontsize=8, frameon=False, loc="lower right")


def draw_gains(axes: Axes, base: Distribution, others: Sequence[Distribution]) -> None:
    for place, each in enumerate(others, start=1):
        draw_gain_line(axes, each.name, base, each, place)
    finish_gains(axes, f"saved against {base.name} (%)")


def draw_gain_line(axes: Axes, name: str, base: Distribution, other: Distribution,
                   place: int) -> None:
    """By percentile, and the mean at the left."""
    gains = [other.gain_over(base, percentile) for percentile in (None, *PERCENTILES)]
    points = [(x, gain.percent) for x, gain in enumerate(gains) if gain is not None]
    draw_line(axes, points, name, place)


def finish_gains(axes: Axes, name: str) -> None:
    plain(axes, "percentile of the completion time", name)
    axes.axhline(0, color=INK, linewidth=0.8)
    labels = ["mean", *(f"{percentile:g}" for percentile in PERCENTILES)]
    axes.set_xticks(range(len(labels)), labels, fontsize=8)
    axes.legend(fontsize=8, frameon=False)


def draw_queue(axes: Axes, runs: Runs) -> None:
    """The bottleneck's queue over time, of the first seed."""
    for place, window in enumerate(runs.figure.windows):
        records = runs.at(window)
        times_s, packets = runs.queue(records[min(records)])
        axes.plot(times_s, packets, color=colour(place), linewidth=1.2,
                  label=analysis.window_label(window))
    trial = runs.records[0].trial
    axes.axhline(trial.queue_packets, color=ALARM, linewidth=0.8, linestyle="--")
    plain(axes, "time (s), first seed", f"queue, mean of {analysis.QUEUE_SMOOTHED_S:g} s (packets)")
    axes.set_xlim(0, trial.duration_s)
    axes.set_ylim(0, trial.queue_packets * 1.08)


# Gains along an axis -----------------------------------------------------------------

def gain_figure(scenario: LoadScenario, runs: Runs) -> Figure:
    """What is saved of the mean, and what retransmissions it costs."""
    drawn = sheet(scenario, runs)
    left = drawn.add_axes((0.07, 0.2, 0.37, 0.66))
    right = drawn.add_axes((0.56, 0.2, 0.37, 0.66))
    found = analysis.lines(runs)
    places = x_places(runs, found)
    base = analysis.window_label(runs.figure.windows[0])
    for place, line in enumerate(found):
        name = line_name(runs, line)
        aside = (place - (len(found) - 1) / 2) * ASIDE
        draw_line(left, [(places[point.x] + aside, point.mean.percent)
                         for point in line.points], name, place + 1)
        draw_line(right, [(places[point.x] + aside, point.retransmission.experiment)
                          for point in line.points], name, place + 1)
        if runs.figure.by != "window" and line.window == runs.figure.windows[1]:
            draw_line(right, [(places[point.x] + aside, point.retransmission.base)
                              for point in line.points], "", place + 1, faint=True)
    left.axhline(0, color=INK, linewidth=0.8)
    x_name = AXIS_NAMES[runs.figure.by]
    plain(left, x_name, f"mean completion time saved against {base} (%)")
    faint = "" if runs.figure.by == "window" else f"; faint: {base}"
    plain(right, x_name, f"retransmitted bytes (% of unique{faint})")
    for axes in (left, right):
        axes.set_xticks(list(places.values()), [describe(runs.figure.by, x) for x in places],
                        fontsize=8)
    if len(found) > 1 or found[0].window:
        drawn.legend(*left.get_legend_handles_labels(), loc="lower center", fontsize=8,
                     frameon=False, ncols=min(len(found), 6), bbox_to_anchor=(0.5, 0.045))
    return drawn


def x_places(runs: Runs, found: Sequence[Line]) -> dict[Any, int]:
    """Even steps along the axis, in the order of the file."""
    values = dict.fromkeys(point.x for line in found for point in line.points)
    return {value: place for place, value in enumerate(values)}


def line_name(runs: Runs, line: Line) -> str:
    window = [f"IW {line.window}"] if line.window and len(runs.figure.windows) > 2 else []
    axis = runs.figure.series
    called = "" if axis in ("", "variant") else f"{AXIS_NAMES[axis]} "
    series = [called + describe(axis, line.series)] if axis else []
    return ", ".join([*series, *window]) or f"IW {line.window}"


# Transfers that retransmitted -------------------------------------------------------

def hit_figure(scenario: LoadScenario, runs: Runs) -> Figure:
    """How long transfers took that retransmitted: each window's own, and the same arrivals."""
    drawn = sheet(scenario, runs)
    base, experiment = runs.figure.windows[:2]
    found = analysis.hits(runs)
    labels = [describe(runs.figure.by, hit.x) for hit in found]
    panels: list[tuple[str, Callable[[analysis.Hit], Gain | None]]] = [
        ("transfers that each window hit", lambda hit: hit.own),
        ("the same transfers: hit under either window", lambda hit: hit.same)]
    for column, (title, pick) in enumerate(panels):
        axes = drawn.add_axes((0.07 + 0.49 * column, 0.16, 0.42, 0.66))
        for side, name in ((0, f"IW {base}"), (1, f"IW {experiment}")):
            values = [(place + side * 0.38 - 0.19, gain.experiment if side else gain.base)
                      for place, hit in enumerate(found) if (gain := pick(hit)) is not None]
            axes.bar([x for x, _ in values], [value.value for _, value in values], 0.36,
                     color=COLOURS[1] if side else "#999999", label=name)
            for x, value in values:
                if value.interval is not None:
                    axes.plot([x, x], value.interval, color=INK, linewidth=1.1)
        plain(axes, AXIS_NAMES[runs.figure.by], "mean completion time (ms)")
        axes.set_title(title, fontsize=10, color=INK)
        axes.set_xticks(range(len(labels)), labels, fontsize=8)
        axes.set_ylim(top=axes.get_ylim()[1] * 1.12)  # room for the legend
        axes.legend(fontsize=8, frameon=False, loc="upper left", ncols=2)
    return drawn


# The deck's table -------------------------------------------------------------------

def deck_figure(scenario: LoadScenario, runs: Runs) -> Figure:
    """Distributions and what each percentile gains."""
    drawn = sheet(scenario, runs)
    found = analysis.distributions(runs)
    draw_curves(drawn.add_axes((0.07, 0.13, 0.42, 0.74)), found)
    axes = drawn.add_axes((0.58, 0.13, 0.4, 0.74))
    known = improvement_percent(runs.figure.published) if runs.figure.published else {}
    places: list[float | None] = [None, *PERCENTILES]
    axes.plot([places.index(percentile) for percentile in known], list(known.values()), "o",
              markersize=8, markerfacecolor="white", markeredgecolor=INK, linestyle="none",
              label="the deck", zorder=5)
    draw_gains(axes, found[0], found[1:])
    return drawn


# Lines ---------------------------------------------------------------------------------

def draw_line(axes: Axes, points: Sequence[tuple[float, Estimate]], name: str, place: int,
              faint: bool = False) -> None:
    """Estimates with their intervals, joined."""
    x, y = [x for x, _ in points], [value.value for _, value in points]
    axes.plot(x, y, color=colour(place), linestyle=":" if faint else style(place),
              linewidth=1.0 if faint else 1.6, marker=MARKERS[place % len(MARKERS)],
              markersize=3 if faint else 4.5, alpha=0.45 if faint else 1.0,
              label=name or "_nolegend_")
    for each, (_, value) in zip(x, points):
        if value.interval is not None and not faint:
            axes.plot([each, each], value.interval, color=colour(place), linewidth=1.0)


def colour(place: int) -> str:
    return COLOURS[place % len(COLOURS)]


def style(place: int) -> str:
    return STYLES[place % len(STYLES)]


KINDS: dict[str, Callable[[LoadScenario, Runs], Figure]] = {
    DISTRIBUTION: distribution_figure, MIX: mix_figure, GAIN: gain_figure, HIT: hit_figure,
    DECK: deck_figure}
