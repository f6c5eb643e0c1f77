"""Charts: the content of figures, as points with units. findings/drawing draws each class.

Each workload makes its charts. Nothing in this file depends on how they are drawn.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from firstflight.base.stats import Estimate
from firstflight.base.words import join_words
from firstflight.findings.bar import Bar
from firstflight.findings.claims import Ends
from firstflight.findings.difference import Difference

Points = Sequence[tuple[float, float]]

JOINING = ("of", "over", "at", "IW")  # words with which a title cannot end
NARROW = 0.05  # an interval that is no wider prints as a single value


def is_wide(ends: Ends | None) -> bool:
    """Whether an interval prints as more than a single value."""
    return ends is not None and ends[1] - ends[0] > NARROW


@dataclass(frozen=True)
class Chart:
    """The texts that every figure has around its axes."""

    title: str
    context: tuple[str, ...]  # lines under the title: what was measured, and how
    foot: str = ""  # below the axes: what was counted
    alarm: str = ""  # what was excluded or differs, in red; "" for nothing
    # How the run was measured (Report.caption). It stands below the foot.
    caption: str = field(default="", kw_only=True)
    # Which measurements are compared; the drawing adds its marks for them.
    compared: str = field(default="", kw_only=True)
    is_measured: bool = field(default=True, kw_only=True)  # whether it shows trials of the run


# Bars --------------------------------------------------------------------------------

@dataclass(frozen=True)
class BarChart(Chart):
    """Two bars for each bucket, as in the paper's Figure 5.

    The left one is the absolute improvement, and the right one the improvement in percent.
    """

    bars: tuple[Bar, ...] = ()
    axis: str = ""  # of the buckets
    unit: str = "ms"
    publisher: str = ""  # follows "published" in the legend, such as "in the paper"
    above: str = ""  # the meaning of the lines above the bars
    over: str = ""  # what the intervals are over, such as clients
    is_like_the_papers: bool = False  # the axis is logarithmic, as in the paper


@dataclass(frozen=True)
class TimeChart(Chart):
    """A bar for each initial window like the paper's Figure 2.

    The interval of a bar is the baseline's value less the interval of the improvement.
    """

    bars: tuple[Bar, ...] = ()  # their value is the window
    baseline: str = ""  # the window that the others are compared with
    axis: str = ""
    unit: str = "ms"
    publisher: str = ""  # follows "published" in the legend
    measured: str = "time"  # what the bars show, in a word
    improved: str = "saved"  # the improvement of that, in a word
    over: str = ""  # what the intervals are over


@dataclass(frozen=True)
class BarPage(Chart):
    """Several charts of bars under each other, like the paper's page with its Figure 5."""

    charts: tuple[BarChart, ...] = ()


def bar_page(title: str, charts: Sequence[BarChart]) -> BarPage:
    """Several charts on one page. The page has the lines and notes that they all share."""
    first = charts[0]
    contexts = [chart.context for chart in charts]
    feet = [_sentences(chart.foot) for chart in charts]
    is_one_comparison = len({chart.compared for chart in charts}) == 1
    return BarPage(title, _in_all(contexts), " ".join(_in_all(feet)), charts=tuple(charts),
                   compared=first.compared if is_one_comparison else "")


def _in_all(texts: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The lines that stand in each of these texts, in the order of the first one."""
    first, *others = texts
    lines = list(first)
    for text in others:
        lines = [line for line in lines if line in text]
    return tuple(lines)


def _sentences(text: str) -> list[str]:
    """The sentences of a text."""
    return re.split(r"(?<=\.) ", text)


def joint_title(charts: Sequence[BarChart]) -> str:
    """One title for several charts of bars: the words with which all titles begin, and the axes.

    "Improvement of 37 kB by RTT at 3 Mbit/s: 3 → 26 segments" and another one by bandwidth become
    "Improvement of 37 kB by RTT and bandwidth: 3 → 26 segments".
    """
    words_of_titles = [chart.title.partition(":")[0].split() for chart in charts]
    common: list[str] = []
    for word, *others in zip(*words_of_titles):
        if word == "by" or any(other != word for other in others):
            break
        common.append(word)
    while common and common[-1] in JOINING:
        common.pop()

    axes = []
    for axis in dict.fromkeys(chart.axis.partition(" (")[0] for chart in charts):
        axes.append(axis if axis.isupper() else f"{axis[:1].lower()}{axis[1:]}")

    title = f"{' '.join(common) or 'Improvement'} by {join_words(axes)}"
    ends = {chart.title.partition(":")[2] for chart in charts}
    if len(ends) == 1 and any(ends):
        title += f":{ends.pop()}"
    return title


# Lines -------------------------------------------------------------------------------

LOOKS = 7  # colours and markers that distinguish the lines of one plot


@dataclass(frozen=True)
class Line:
    """One line, or one series of bars or markers, of a plot."""

    name: str  # in the legend; "" for none
    x: tuple[float, ...]
    y: tuple[float, ...]  # as many as x
    ends: tuple[Ends | None, ...] = ()  # 95 % intervals of y; () where there are none
    look: int = 0  # the index of its colour and marker
    # A "line" has markers, and a "curve" and a "dashed" line have none. "steps" are joined by
    # steps, and "points" are not joined. A "faint" line, with open markers, is what other lines are
    # compared with. "published" values are diamonds. "bars" stand next to the bars of other lines.
    style: Literal["line", "steps", "curve", "dashed", "faint", "points", "published", "bars"
                   ] = "line"
    window: int = 0  # its initial window, which then decides on the colour; 0 for none


@dataclass(frozen=True)
class Plot:
    """One pair of axes with their lines."""

    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    title: str = ""
    ticks: tuple[tuple[float, str], ...] = ()  # (place, label) along x; () for automatic ones
    x_scale: Literal["linear", "log"] = "linear"
    y_scale: Literal["linear", "log"] = "linear"
    # The ends of the axes; None for ends that fit the values.
    x_ends: Ends | None = None
    y_ends: Ends | None = None
    zero: bool = False  # whether there is a line at y = 0
    limit: tuple[float, str] | None = None  # a line at a y that nothing exceeds, with its name
    whole: bool = False  # whether ticks along y are whole numbers
    legend: bool = False  # whether the plot has its own legend


@dataclass(frozen=True)
class LineChart(Chart):
    """Columns of plots."""

    columns: tuple[tuple[Plot, ...], ...] = ()
    widths: tuple[float, ...] = ()  # of the columns, relative to each other; () for equal ones
    plot_inches: float = 2.7  # the height of a plot with the labels of its axes
    legend: bool = False  # whether all plots share a legend
    # Distinct colours, or ordered ones from light to dark.
    palette: Literal["distinct", "ordered"] = "distinct"


# A connection over time --------------------------------------------------------------

@dataclass(frozen=True)
class TraceRow:
    """One connection. Times are in seconds after the request, and the values of points in segments.
    """

    title: str
    sent: Points = ()  # data sent for the first time
    retransmitted: Points = ()
    acked: Points = ()  # the acknowledged sequence number, with a step at each point
    window: Points = ()  # steps
    ssthresh: Points = ()  # steps, where it is finite
    in_flight: Points = ()  # steps
    rtt_ms: Points = ()  # smoothed
    absent: str = ""  # why there is nothing to draw; "" if there is
    flagged: bool = False  # whether its verdict failed


@dataclass(frozen=True)
class TraceChart(Chart):
    """A row for each connection: what was sent and acknowledged, and the window."""

    rows: tuple[TraceRow, ...] = ()
    # The time that the plots show.
    from_s: float = 0.0
    to_s: float = 1.0
    rtt: bool = False  # whether the RTT is shown
    # The time that the time–sequence plots show; None for that of the other plots.
    sequence_s: Ends | None = None


# A distribution in two dimensions ----------------------------------------------------

@dataclass(frozen=True)
class GridChart(Chart):
    """Shares in percent by two quantities, on logarithmic axes."""

    x: Any = None  # the middles of the cells along x, an array of shape (x,)
    y: Any = None  # the middles of the cells along y, an array of shape (y,)
    shares: Any = None  # an array of shape (x, y)
    x_label: str = ""
    y_label: str = ""
    colour_label: str = ""
    diagonals: tuple[tuple[float, str], ...] = ()  # lines of constant x·y, as (x·y, label)


# Cells: bars in groups, squares in maps --------------------------------------------

@dataclass(frozen=True)
class GroupChart(Chart):
    """Groups of bars of a metric, with a bar for each window.

    The bars are the experiments' means with their intervals.
    """

    windows: tuple[int, ...] = ()  # in segments, the baseline first
    own_window: str = ""  # how to name the only window where no route sets it
    # The label of each group, and what each window changes against the baseline. A window of which
    # no record counts has None.
    groups: tuple[tuple[str, tuple[Difference | None, ...]], ...] = ()
    axis: str = ""  # of the groups
    measured: str = ""  # what the bars show, with its unit
    unit: str = "ms"


@dataclass(frozen=True)
class Square:
    """One square with its number, in the unit of the chart's scale."""

    value: float
    percent: float = 0.0  # the improvement in percent of the baseline
    unsure: bool = False  # whether the 95 % interval of the improvement includes zero
    n: int = 0  # fetches that count
    excluded: int = 0  # fetches that do not count
    is_near: bool = False  # whether it is near the published value


@dataclass(frozen=True)
class SquareMap:
    """One map: rows of squares."""

    title: str  # what distinguishes the map from the chart's other maps
    columns: tuple[str, ...]  # labels of the columns
    # The first row is at the bottom. None stands where no record counts.
    rows: tuple[tuple[Square | None, ...], ...]


@dataclass(frozen=True)
class SquareChart(Chart):
    """Maps of squares, each with a colour and a number."""

    maps: tuple[SquareMap, ...] = ()
    rows: tuple[str, ...] = ()  # labels of the rows, the first at the bottom
    x_label: str = ""
    y_label: str = ""
    # What the numbers are: "improved", the improvement in `unit` and in percent; "window", one of
    # `windows`; "level", values; "published", values that are compared with the published ones in
    # the first row.
    scale: Literal["improved", "window", "level", "published"] = "improved"
    unit: str = "ms"
    windows: tuple[int, ...] = ()  # the smallest first
    whole: bool = False  # whether levels are whole numbers, without decimals
    notes: tuple[str, ...] = ()  # at the right of the rows


# A number reached in steps ------------------------------------------------------------

@dataclass(frozen=True)
class WaterfallStep:
    """One step of a waterfall."""

    label: str
    value: float  # the number after the step
    # How the step is known, which the bar's colour shows; "start" is no step, but the beginning.
    sure: Literal["start", "code", "kernel", "calibrated", "inferred"]


@dataclass(frozen=True)
class StepChart(Chart):
    """A waterfall: a row for each step, with a bar from the number before the step to the next one.
    """

    steps: tuple[WaterfallStep, ...] = ()
    axis: str = ""  # the name of the number
    most: float | None = None  # the largest possible number; None without one


# The packets of a connection as captured at its server --------------------------------

@dataclass(frozen=True)
class Mark:
    """A data segment in a timeline: when it left, and its first and last byte."""

    # "handshake" and "ticket" are TLS's messages before the response. All others are data.
    kind: Literal["handshake", "ticket", "data", "retransmitted", "lost"]
    time_ms: float
    from_bytes: float
    to_bytes: float


@dataclass(frozen=True)
class Timeline:
    """The packets of one connection as captured at its server."""

    title: str
    text: str  # the timeline in words
    marks: tuple[Mark, ...]
    acknowledged: tuple[tuple[float, float], ...]  # (ms, bytes), with a step at each point
    # The ends of the axes. Timelines that are compared have the same ends.
    to_ms: float
    to_bytes: float
    # The end of the receive window: (ms, bytes), with a step at each point.
    offered: tuple[tuple[float, float], ...] = ()
    end_ms: float | None = None  # when all data was acknowledged; None where it was not


@dataclass(frozen=True)
class PacketsChart(Chart):
    """Timelines next to each other."""

    timelines: tuple[Timeline, ...] = ()
    y_label: str = "kB from the server, headers included"


# A page of many objects ---------------------------------------------------------------

@dataclass(frozen=True)
class PageBar:
    """The time of a page under one window, in ms."""

    page: Estimate
    document_ms: float  # until the document had arrived
    first_screen_ms: float | None = None  # until the first screen; None for unknown
    # How much of the first window's time is saved; None for the first window.
    percent: float | None = None
    n: int = 0  # loads that count
    excluded: int = 0  # loads that do not count
    unsure: bool = False  # whether the 95 % interval of the saving includes zero


@dataclass(frozen=True)
class PageChart(Chart):
    """Groups of bars, with a bar for each window. A bar shows the document's part of its time."""

    windows: tuple[int, ...] = ()  # in segments, the baseline first
    # The label of each group, and a bar for each window. A window of which no record counts has
    # None.
    groups: tuple[tuple[str, tuple[PageBar | None, ...]], ...] = ()
    axis: str = ""  # of the groups
    y_label: str = "time of the page"  # of the bars


@dataclass(frozen=True)
class ObjectBar:
    """One object of a page over time, in ms."""

    named_ms: float  # when the client knew of the object: bytes that name it had arrived
    due_ms: float  # when these bytes were parsed, so that the object could be requested
    start_ms: float  # when the object was requested
    first_byte_ms: float
    end_ms: float
    opens: bool = False  # whether its request opened a connection
    host: str = ""  # the object's host; "" where hosts are not named


@dataclass(frozen=True)
class ObjectPanel:
    """The objects of a page under one window, the document first."""

    title: str
    objects: tuple[ObjectBar, ...]
    marks: tuple[tuple[float, str], ...] = ()  # moments as (ms, name)


@dataclass(frozen=True)
class ObjectChart(Chart):
    """Waterfalls under each other, with one time axis."""

    panels: tuple[ObjectPanel, ...] = ()
    to_ms: float = 1.0


@dataclass(frozen=True)
class Shot:
    """A picture of a page."""

    moment: str  # what happened at that time
    at_ms: float
    png: bytes = b""  # b"" for none


@dataclass(frozen=True)
class FilmStrip:
    """The pictures of a page under one window, in the order of their times."""

    title: str
    shots: tuple[Shot, ...]


@dataclass(frozen=True)
class FilmChart(Chart):
    """Film strips side by side."""

    strips: tuple[FilmStrip, ...] = ()
