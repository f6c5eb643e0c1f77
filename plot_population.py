"""What plot.py draws of a population besides its panels: the joint distribution and the causes.

Called by plot.py only; drawing only, the numbers come from lab.
"""

from __future__ import annotations

import numpy
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from lab.analysis import Bucket, Panel
from lab.population import Joint
from lab.population_analysis import Cause

DPI = 150
INK, GREY = "#222222", "#666666"
ABSOLUTE, PERCENT = "#0072B2", "#E69F00"
# From the clean mechanism to everything: light to dark, apart in grey too.
SHADES = ("#BBBBBB", "#88CCEE", "#44AA99", "#DDAA33", "#CC6677", "#332288", "#000000")
AXIS_NAMES = {"RTT": "RTT (ms)", "BW": "bandwidth (kbit/s)", "BDP": "BDP (bytes)"}


def page(panels: list[Panel], title: str) -> Figure:
    """Several panels under each other, like the paper's page with its Figure 5."""
    drawn = Figure(figsize=(8.0, 3.1 * len(panels) + 1.0), dpi=DPI)
    FigureCanvasAgg(drawn)
    height = 1 / (3.1 * len(panels) + 1.0)
    for number, panel in enumerate(panels):
        bottom = 1 - (3.1 * number + 3.0) * height
        left = drawn.add_axes((0.11, bottom, 0.78, 2.15 * height))
        _pair_of_bars(left, panel)
    drawn.text(0.5, 1 - 0.28 * height, title, ha="center", fontsize=12, weight="bold", color=INK)
    drawn.text(0.5, 0.25 * height, "blue: absolute improvement, ms (left, log) · orange: per cent"
               " (right) · open markers: the paper · lines: 95 % intervals", ha="center",
               fontsize=8.5, color=GREY)
    return drawn


def _pair_of_bars(left: Axes, panel: Panel) -> None:
    right = left.twinx()
    places = numpy.arange(len(panel.buckets))
    rows = panel.buckets
    lowest = min(0.5, *(bucket.absolute_ms for bucket in rows if bucket.absolute_ms > 0))
    left.set_yscale("log")
    for axes, side, color, marker, values, ends, known in (
            (left, -0.19, ABSOLUTE, "o", [row.absolute_ms for row in rows],
             [row.absolute_interval_ms for row in rows],
             [row.published_absolute_ms for row in rows]),
            (right, 0.19, PERCENT, "D", [row.percent for row in rows],
             [row.percent_interval for row in rows], [row.published_percent for row in rows])):
        axes.bar(places + side, values, 0.38, color=color)
        for place, between in zip(places + side, ends):
            if between is not None:
                axes.plot([place, place], between, color=INK, linewidth=1.1)
        shown = [(place, value) for place, value in zip(places + side, known) if value]
        if shown:
            axes.plot(*zip(*shown), marker, markerfacecolor="white", markeredgecolor=INK,
                      markersize=5, linestyle="none", zorder=5)
    left.set_ylim(bottom=lowest)
    right.set_ylim(bottom=min(0.0, *(row.percent for row in rows)))
    left.set_xticks(places, [row.label for row in rows])
    left.set_xlabel({"rtt_ms": "RTT (ms)", "bandwidth_kbps": "bandwidth (kbit/s)",
                     "bdp_bytes": "BDP (bytes)"}.get(panel.figure.by, panel.figure.by))
    left.set_ylabel("improvement (ms)", color=ABSOLUTE)
    right.set_ylabel("improvement (%)", color="#8A5F00")
    for place, row in zip(places, rows):
        if row.share_percent is not None:
            left.text(place, 1.02, f"{row.share_percent:.2f} %", ha="center", fontsize=8,
                      color=GREY, transform=left.get_xaxis_transform())


def joint_figure(joint: Joint, title: str) -> Figure:
    """The share of responses by RTT and bandwidth, and the BDP buckets as lines."""
    names = [known.name for known in joint.marginals]
    how = ("maximum entropy among all that meet the paper's shares of RTT, bandwidth and BDP"
           if "BDP" in names else "the paper's shares of RTT and bandwidth, and AvgDC's odds"
           " ratios between them")
    drawn = Figure(figsize=(8.0, 6.0), dpi=DPI)
    FigureCanvasAgg(drawn)
    axes = drawn.add_axes((0.1, 0.1, 0.72, 0.78))
    share = numpy.where(joint.share.T > 1e-9, 100 * joint.share.T, numpy.nan)
    mesh = axes.pcolormesh(joint.rtt_ms, joint.bandwidth_kbps, share, cmap="viridis",
                           norm=LogNorm(vmin=1e-5), shading="nearest", rasterized=True)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("RTT (ms)")
    axes.set_ylabel("bandwidth (kbit/s)")
    span = numpy.array([joint.rtt_ms[0], joint.rtt_ms[-1]])
    for bdp_bytes in (1000, 5000, 10000, 50000, 100000):
        axes.plot(span, 8 * bdp_bytes / span, color="white", linewidth=0.8, linestyle="--")
        across = 8 * bdp_bytes / 30.0
        if joint.bandwidth_kbps[0] < across < joint.bandwidth_kbps[-1]:
            axes.text(30, across, f"BDP {bdp_bytes} B", fontsize=7.5, color="white", va="bottom")
    axes.set_xlim(*span)
    axes.set_ylim(joint.bandwidth_kbps[0], joint.bandwidth_kbps[-1])
    drawn.colorbar(mesh, cax=drawn.add_axes((0.85, 0.1, 0.03, 0.78)),
                   label="share of responses per grid cell (%)")
    drawn.text(0.1, 0.945, title, fontsize=12, weight="bold", color=INK)
    drawn.text(0.1, 0.905, how, fontsize=9, color=GREY)
    return drawn


def causes_figure(causes: list[Cause], title: str) -> Figure:
    """Absolute improvement by bucket, a line per set of causes, the paper's as markers."""
    drawn = Figure(figsize=(9.0, 9.6), dpi=DPI)
    FigureCanvasAgg(drawn)
    for number, axis in enumerate(AXIS_NAMES):
        axes = drawn.add_axes((0.09, 0.665 - 0.305 * number, 0.87, 0.215))
        _cause_lines(axes, [(cause, cause.panels[axis]) for cause in causes])
        axes.set_xlabel(AXIS_NAMES[axis])
        axes.set_ylabel("improvement (ms)")
        if number == 0:
            drawn.legend(*axes.get_legend_handles_labels(), loc="upper left", ncol=2,
                         bbox_to_anchor=(0.08, 0.965), fontsize=8, frameon=False)
    drawn.text(0.5, 0.975, title, ha="center", fontsize=12, weight="bold", color=INK)
    return drawn


def _cause_lines(axes: Axes, rows: list[tuple[Cause, list[Bucket]]]) -> None:
    axes.set_yscale("symlog", linthresh=1.0)
    for (cause, buckets), shade in zip(rows, SHADES):
        axes.plot(range(len(buckets)), [bucket.absolute_ms for bucket in buckets], "-",
                  color=shade, marker=".", linewidth=1.6,
                  label=f"{cause.title} ({cause.within} of 22 close)")
    buckets = rows[0][1]
    axes.plot(range(len(buckets)), [bucket.published_absolute_ms or numpy.nan
                                    for bucket in buckets], "o", markerfacecolor="white",
              markeredgecolor=INK, markersize=7, label="the paper", zorder=5)
    axes.set_xticks(range(len(buckets)), [bucket.label for bucket in buckets])
    axes.grid(axis="y", color="#DDDDDD", linewidth=0.6)
    axes.axhline(0, color=GREY, linewidth=0.6)
