"""What plot.py draws of traces: time–sequence plots beside windows over time, and warm connections.

Called by plot.py only; drawing only, the points come from lab.trace.curves.
"""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from lab import runs
from lab.trace.curves import (Points, TraceFigure, TracePanel, WarmFigure, WarmLine, WarmPanel)
from lab.trace.study import figures_of

DPI = 150
INK, FAINT, ALARM = "#222222", "#666666", "#B00020"
# Okabe and Ito (2008): data and window, acknowledgements and ssthresh, in flight.
DATA, ACKED, FLIGHT, AGAIN = "#0072B2", "#009E73", "#E69F00", "#B00020"
# By initial window, light to dark, apart in grey too.
WINDOWS = ("#BBBBBB", "#56B4E9", "#0072B2", "#332288", "#000000", "#CC6677")
MARKERS = ("o", "s", "^", "D", "v", "P")
WIDTH_INCHES, ROW_INCHES, HEAD_INCHES, FOOT_INCHES = 11.0, 1.75, 0.38, 0.95
MOST_ABOVE = 3.0  # times what is in flight: the top of a window's axis
SMALL, MEDIUM, LARGE = 7.5, 9.0, 12.0


def figures(name: str, folder: Path) -> dict[str, Figure]:
    """The figures of one run of a scenario, by name. Raises FirstFlightError."""
    known = runs.read_facts(folder).get("kernel")
    kernel = f" (kernel {known})" if isinstance(known, str) else ""
    return {shown.name: warm_page(shown, kernel) if isinstance(shown, WarmFigure)
            else trace_page(shown, kernel) for shown in figures_of(name, folder)}


def trace_page(shown: TraceFigure, kernel: str) -> Figure:
    """A row for each curve: what was sent and acknowledged, and the window."""
    rows = len(shown.panels)
    height = HEAD_INCHES + FOOT_INCHES + ROW_INCHES * rows
    drawn = Figure(figsize=(WIDTH_INCHES, height), dpi=DPI)
    FigureCanvasAgg(drawn)
    low_window, high_sequence = _ranges(shown)
    for number, panel in enumerate(shown.panels):
        bottom = (FOOT_INCHES + ROW_INCHES * (rows - 1 - number)) / height
        size = (ROW_INCHES - 0.5) / height
        left = drawn.add_axes((0.065, bottom, 0.42, size))
        right = drawn.add_axes((0.56, bottom, 0.375 if shown.rtt else 0.42, size))
        _sequence(left, panel, high_sequence)
        _window(right, panel, low_window)
        if shown.rtt and not panel.absent:
            _rtt(right.twinx(), panel, shown)
        for axes in (left, right):
            _time_axis(axes, shown, number == rows - 1)
        colour = ALARM if panel.flagged or panel.absent else INK
        flag = " (its verdict failed)" if panel.flagged else ""
        left.set_title(panel.title + flag, loc="left", fontsize=MEDIUM, color=colour, pad=3)
    _heads(drawn, shown.title, f"{shown.source}; here real Linux TCP{kernel}", height)
    differ = f", {shown.wrong} differ" if shown.wrong else ""
    drawn.text(0.5, 0.12 / height, f"{shown.checked} samples of the window compared with the rules"
               f" of each TCP, to the segment{differ}", ha="center", fontsize=SMALL,
               color=ALARM if shown.wrong else FAINT)
    _trace_legend(drawn, height, shown.rtt)
    return drawn


def _ranges(shown: TraceFigure) -> tuple[float, tuple[float, float]]:
    """The top of each window axis is its panel's own; the sequence axis is shared."""
    def within(points: Points) -> list[float]:
        return [value for time_s, value in points if shown.from_s <= time_s <= shown.to_s]
    values = [value for panel in shown.panels for value in within(panel.sent + panel.acked[1:])]
    return 0.0, (min(values, default=0.0), max(values, default=1.0))


def _sequence(axes: Axes, panel: TracePanel, ends: tuple[float, float]) -> None:
    if panel.absent:
        _say_absent(axes, panel.absent)
        return
    axes.plot(*_columns(panel.sent), ".", color=DATA, markersize=2.2, zorder=3)
    axes.step(*_columns(panel.acked), where="post", color=ACKED, linewidth=0.9, zorder=2)
    for time_s, number in panel.again:
        axes.text(time_s, number, "R", color=AGAIN, fontsize=6.5, ha="center", va="center",
                  weight="bold", clip_on=True, zorder=4)
    room = 0.06 * max(ends[1] - ends[0], 1)
    axes.set_ylim(max(ends[0] - room, 0), ends[1] + room)
    axes.set_ylabel("segment", fontsize=SMALL)
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))


def _window(axes: Axes, panel: TracePanel, low: float) -> None:
    if panel.absent:
        _say_absent(axes, "")
        return
    axes.fill_between(*_columns(panel.in_flight), step="post", color=FLIGHT, alpha=0.55,
                      linewidth=0, zorder=1)
    axes.step(*_columns(panel.window), where="post", color=DATA, linewidth=1.2, zorder=3)
    if panel.ssthresh:
        axes.step(*_columns(panel.ssthresh), where="post", color=ACKED, linewidth=1.0,
                  linestyle=(0, (4, 2)), zorder=2)
    used, largest = (max(value for _, value in points) for points in (panel.in_flight, panel.window))
    top = 1.08 * min(largest, MOST_ABOVE * max(used, 4))
    axes.set_ylim(low, top)
    if largest > top:
        axes.text(0.985, 0.9, f"up to {largest:g}", transform=axes.transAxes, ha="right", va="top",
                  fontsize=SMALL, color=DATA, bbox={"facecolor": "white", "linewidth": 0, "pad": 1})
    axes.set_ylabel("segments", fontsize=SMALL)
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))


def _rtt(axes: Axes, panel: TracePanel, shown: TraceFigure) -> None:
    """The smoothed RTT on an axis of its own, the same for all panels."""
    axes.step(*_columns(panel.rtt), where="post", color=INK, linewidth=1.1, linestyle=":", zorder=4)
    axes.set_ylim(0, 1.08 * max(value for other in shown.panels for _, value in other.rtt))
    axes.set_ylabel("RTT (ms)", fontsize=SMALL)
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.tick_params(labelsize=SMALL, length=2.5, colors=INK)


def _columns(points: Points) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def _say_absent(axes: Axes, why: str) -> None:
    axes.text(0.02, 0.5, why, transform=axes.transAxes, fontsize=SMALL, color=ALARM, wrap=True,
              va="center")
    axes.yaxis.set_major_locator(NullLocator())


def _time_axis(axes: Axes, shown: TraceFigure, last: bool) -> None:
    axes.set_xlim(shown.from_s, shown.to_s)
    axes.grid(color="#E4E4E4", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=SMALL, length=2.5, colors=INK)
    if last:
        axes.set_xlabel("seconds after the request", fontsize=MEDIUM)


def _heads(drawn: Figure, title: str, below: str, height: float) -> None:
    drawn.text(0.5, 1 - 0.26 / height, title, ha="center", va="center", fontsize=LARGE,
               weight="bold", color=INK)
    drawn.text(0.5, 1 - 0.5 / height, below, ha="center", va="center", fontsize=SMALL + 0.5,
               color=FAINT)


def _trace_legend(drawn: Figure, height: float, rtt: bool) -> None:
    handles = [Line2D([], [], color=DATA, marker=".", linestyle="none", label="data sent"),
               Line2D([], [], color=AGAIN, marker="$R$", linestyle="none", label="sent again"),
               Line2D([], [], color=ACKED, label="acknowledged"),
               Line2D([], [], color=DATA, linewidth=1.6, label="congestion window"),
               Line2D([], [], color=ACKED, linestyle=(0, (4, 2)), label="ssthresh, if finite"),
               Line2D([], [], color=FLIGHT, linewidth=5, alpha=0.55, label="in flight")]
    if rtt:
        handles.append(Line2D([], [], color=INK, linestyle=":", label="smoothed RTT (right)"))
    drawn.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 0.24 / height),
                 ncol=len(handles), frameon=False, fontsize=8, handletextpad=0.5,
                 columnspacing=1.6)


# A warm connection -------------------------------------------------------------------

def warm_page(shown: WarmFigure, kernel: str) -> Figure:
    """A row for each curve: latency, window at the restart, retransmissions by think time."""
    rows = len(shown.panels)
    row_inches = 2.5
    height = HEAD_INCHES + FOOT_INCHES + row_inches * rows
    drawn = Figure(figsize=(WIDTH_INCHES, height), dpi=DPI)
    FigureCanvasAgg(drawn)
    for number, panel in enumerate(shown.panels):
        bottom = (FOOT_INCHES + row_inches * (rows - 1 - number)) / height
        for place, column in enumerate(("latency", "window", "again")):
            axes = drawn.add_axes((0.06 + 0.325 * place, bottom, 0.265,
                                   (row_inches - 0.75) / height))
            _warm_axes(axes, panel, column, number == rows - 1)
            if place == 0:
                axes.set_title(panel.title, loc="left", fontsize=MEDIUM, color=INK, pad=5)
    _heads(drawn, shown.title, f"{shown.source}; here real Linux TCP{kernel}", height)
    left_out = f", {shown.left_out} left out" if shown.left_out else ", none left out"
    drawn.text(0.5, 0.12 / height, f"{shown.counted} connections verified on the wire{left_out}",
               ha="center", fontsize=SMALL, color=ALARM if shown.left_out else FAINT)
    handles = [Line2D([], [], color=WINDOWS[place % 6], marker=MARKERS[place % 6], markersize=4,
                      label=f"IW {line.initcwnd}")
               for place, line in enumerate(shown.panels[0].lines)]
    drawn.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 0.24 / height),
                 ncol=len(handles), frameon=False, fontsize=8)
    return drawn


def _warm_axes(axes: Axes, panel: WarmPanel, column: str, last: bool) -> None:
    for place, line in enumerate(panel.lines):
        axes.plot(line.think_s, _values(line, column), color=WINDOWS[place % 6],
                  marker=MARKERS[place % 6], markersize=3.5, linewidth=1.2)
    axes.set_xscale("log")
    thinks = panel.lines[0].think_s if panel.lines else [1.0]
    axes.xaxis.set_major_locator(FixedLocator(thinks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_ylim(0, 1.08 * max(1.0, *(value for line in panel.lines
                                       for value in _values(line, column))))
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.set_ylabel({"latency": "latency (ms)", "window": "window at the restart (segments)",
                     "again": "segments sent again for it"}[column], fontsize=SMALL)
    axes.grid(color="#E4E4E4", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=SMALL, length=2.5, colors=INK)
    if last:
        axes.set_xlabel("think time (s)", fontsize=MEDIUM)


def _values(line: WarmLine, column: str) -> list[float]:
    return {"latency": line.latency_ms, "window": line.window,
            "again": line.retransmissions}[column]
