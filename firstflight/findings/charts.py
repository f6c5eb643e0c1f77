"""Charts: what figures show, as points with their units; findings/drawing draws each class.

Nothing here knows of ink or paper. A kind of study fills these in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from firstflight.base.stats import Estimate
from firstflight.findings.bar import Bar
from firstflight.findings.claims import Ends
from firstflight.findings.difference import Difference

Points = Sequence[tuple[float, float]]

NARROW = 0.05  # an interval that prints as a single value


def is_wide(ends: Ends | None) -> bool:
    """Whether an interval is more than the one value that every repeat gave."""
    return ends is not None and ends[1] - ends[0] > NARROW


@dataclass(frozen=True)
class Chart:
    """What every figure has around its axes.

    context: the lines under the title, what was measured and how. compared: which measurements are
    compared; the line says by which marks of its own a picture shows them. foot: below the axes,
    what was counted; caption: below that, how the run was measured,
    of whoever draws (Report.caption). alarm: what was excluded or differs, "" for
    nothing; it is drawn to be seen. is_measured: whether the run's own trials are in it.
    """

    title: str
    context: tuple[str, ...]
    foot: str = ""
    alarm: str = ""
    caption: str = field(default="", kw_only=True)
    compared: str = field(default="", kw_only=True)
    is_measured: bool = field(default=True, kw_only=True)


# Bars --------------------------------------------------------------------------------

@dataclass(frozen=True)
class BarChart(Chart):
    """Two bars a bucket like the paper's Figure 5: the absolute at the left, percent at the right.

    axis: of the buckets. publisher: behind "published" in the legend, such as
    "in the paper". above: what stands over the bars. over: what the intervals are over.
    is_like_the_papers: the bars stand on a logarithmic axis, as the paper's.
    """

    bars: tuple[Bar, ...] = ()
    axis: str = ""
    unit: str = "ms"
    publisher: str = ""
    above: str = ""
    over: str = ""
    is_like_the_papers: bool = False


@dataclass(frozen=True)
class TimeChart(Chart):
    """A bar for each initial window like the paper's Figure 2.

    bars: value is the window; baseline: the one that the others are compared with. The interval of
    a bar is that of what it improves, drawn at the baseline's value less it.
    measured, improved: what the bars are of, and what becomes of it, in a word. over: what the
    intervals are over.
    """

    bars: tuple[Bar, ...] = ()
    baseline: str = ""
    axis: str = ""
    unit: str = "ms"
    publisher: str = ""
    measured: str = "time"
    improved: str = "saved"
    over: str = ""


@dataclass(frozen=True)
class BarPage(Chart):
    """Several charts of bars under each other, like the paper's page with its Figure 5."""

    charts: tuple[BarChart, ...] = ()


def bar_page(title: str, charts: Sequence[BarChart]) -> BarPage:
    """Several charts on one page; below its title stands what all of them share."""
    first, *others = charts
    return BarPage(
        title, tuple(line for line in first.context if all(line in other.context
                                                           for other in others)),
        charts=tuple(charts), compared=first.compared if all(
            other.compared == first.compared for other in others) else "")


# Lines -------------------------------------------------------------------------------

LOOKS = 7  # that lines of one plot are told apart by


@dataclass(frozen=True)
class Line:
    """One line, or one series of bars or markers, of a plot.

    name: in the legend, "" for none. x, y: of one length; ends: 95 %
    intervals of y, () where there are none. look: which of the colours and
    markers, in their order. window: the initial window that it is of, which then decides on its
    colour; 0 for none. style: "curve" has no markers; "steps" are joined by steps; "points"
    not; "faint", with open markers, is for what others are compared with; "published" are
    diamonds; "bars" stand beside those of other lines.
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    ends: tuple[Ends | None, ...] = ()
    look: int = 0
    style: Literal["line", "steps", "curve", "dashed", "faint", "points", "published", "bars"
                   ] = "line"
    window: int = 0


@dataclass(frozen=True)
class Plot:
    """One pair of axes with their lines.

    ticks: (place, label) along x; () for the axis's own. zero: a line at
    y = 0. limit: a line at y that nothing passes, and its name. whole: ticks
    along y are whole numbers. legend: whether it has one of its own.
    """

    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    title: str = ""
    ticks: tuple[tuple[float, str], ...] = ()
    x_scale: Literal["linear", "log"] = "linear"
    y_scale: Literal["linear", "log"] = "linear"
    x_ends: Ends | None = None
    y_ends: Ends | None = None
    zero: bool = False
    limit: tuple[float, str] | None = None
    whole: bool = False
    legend: bool = False


@dataclass(frozen=True)
class LineChart(Chart):
    """Plots in columns, each column's under each other.

    widths: of the columns, in proportion; () for even. plot_inches: the height of one plot, with
    the labels of its axes. legend: one for the lines of all plots.
    palette: "distinct" colours, or "ordered" ones from light to dark.
    """

    columns: tuple[tuple[Plot, ...], ...] = ()
    widths: tuple[float, ...] = ()
    plot_inches: float = 2.7
    legend: bool = False
    palette: Literal["distinct", "ordered"] = "distinct"


# A connection over time --------------------------------------------------------------

@dataclass(frozen=True)
class TraceRow:
    """One connection. Times in seconds after the request, the rest in segments.

    sent, again: data sent for the first time, and retransmitted; acked: the
    acknowledged sequence number, a step at each point. window, ssthresh,
    in_flight: steps; ssthresh only where it is finite. rtt_ms: smoothed.
    absent: why there is nothing to draw, "" if there is. flagged: its verdict
    failed.
    """

    title: str
    sent: Points = ()
    again: Points = ()
    acked: Points = ()
    window: Points = ()
    ssthresh: Points = ()
    in_flight: Points = ()
    rtt_ms: Points = ()
    absent: str = ""
    flagged: bool = False


@dataclass(frozen=True)
class TraceChart(Chart):
    """What was sent and acknowledged beside the window, a row for each connection.

    from_s, to_s: what is shown; sequence_s: in the time–sequence plots, None for
    the same. rtt: whether the RTT is.
    """

    rows: tuple[TraceRow, ...] = ()
    from_s: float = 0.0
    to_s: float = 1.0
    rtt: bool = False
    sequence_s: Ends | None = None


# A distribution in two dimensions ----------------------------------------------------

@dataclass(frozen=True)
class GridChart(Chart):
    """Shares in percent over two quantities, both axes logarithmic.

    x, y: the middles of the cells, arrays of shape (x,), (y,); shares:
    array of shape (x, y). diagonals: (x·y constant, label) lines.
    """

    x: Any = None
    y: Any = None
    shares: Any = None
    x_label: str = ""
    y_label: str = ""
    colour_label: str = ""
    diagonals: tuple[tuple[float, str], ...] = ()


# Cells: bars in groups, squares in maps --------------------------------------------

@dataclass(frozen=True)
class GroupChart(Chart):
    """Groups of bars of a metric, a bar for each window; windows: in segments, the baseline first.

    groups: the label of each and what each window changes against the baseline, None where nothing
    counts; the bars are of the experiments, with their intervals. axis: of the groups;
    measured: of the bars' lengths, with its unit.
    """

    windows: tuple[int, ...] = ()
    groups: tuple[tuple[str, tuple[Difference | None, ...]], ...] = ()
    axis: str = ""
    measured: str = ""
    unit: str = "ms"


@dataclass(frozen=True)
class Square:
    """One square: its number, in what the chart's scale is of.

    percent: of the baseline, where it is improved; unsure: whether the 95 % interval of that holds
    zero. n: fetches; left_out: those that do not count. is_near: to what is published.
    """

    value: float
    percent: float = 0.0
    unsure: bool = False
    n: int = 0
    left_out: int = 0
    is_near: bool = False


@dataclass(frozen=True)
class SquareMap:
    """Rows of squares, the first at the bottom; None where nothing counts.

    title: what distinguishes it from the others. columns: the labels of its columns.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Square | None, ...], ...]


@dataclass(frozen=True)
class SquareChart(Chart):
    """Maps of squares: colour and number in every square.

    scale: what the numbers are: what is improved, in `unit` and percent; a window of `windows`, all
    that there are, the smallest first; a level, whole ones without decimals; or what is compared
    with the published values, which are the first row.
    rows: labels of the rows, the first one's at the bottom; notes: at the right of them.
    """

    maps: tuple[SquareMap, ...] = ()
    rows: tuple[str, ...] = ()
    x_label: str = ""
    y_label: str = ""
    scale: Literal["improved", "window", "level", "published"] = "improved"
    unit: str = "ms"
    windows: tuple[int, ...] = ()
    whole: bool = False
    notes: tuple[str, ...] = ()


# A number reached in steps ------------------------------------------------------------

@dataclass(frozen=True)
class WaterfallStep:
    """One step; value: of the number behind it.

    sure: how it is known, which the look of its bar shows; "start" is no step,
    but where they begin.
    """

    label: str
    value: float
    sure: Literal["start", "code", "kernel", "calibrated", "inferred"]


@dataclass(frozen=True)
class StepChart(Chart):
    """A waterfall: a row for each step, its bar from the number before it to the number behind it.

    most: what the number can be at most, None for no such thing. axis: of the number.
    """

    steps: tuple[WaterfallStep, ...] = ()
    axis: str = ""
    most: float | None = None


# The packets of a connection as captured at its server --------------------------------

@dataclass(frozen=True)
class Mark:
    """A segment of data in a timeline: from byte to byte, when it left.

    kind: handshake and ticket are TLS's messages before the response, data the rest.
    """

    kind: Literal["handshake", "ticket", "data", "retransmitted", "lost"]
    time_ms: float
    from_bytes: float
    to_bytes: float


@dataclass(frozen=True)
class Timeline:
    """The packets of one connection as captured at its server.

    acknowledged, offered: (ms, bytes), a step at each point; offered: the end of
    the receive window. text: the same in words. end_ms: when all was
    acknowledged, None where it was not.
    to_ms, to_bytes: ends of the axes, shared by timelines that are compared.
    """

    title: str
    text: str
    marks: tuple[Mark, ...]
    acknowledged: tuple[tuple[float, float], ...]
    to_ms: float
    to_bytes: float
    offered: tuple[tuple[float, float], ...] = ()
    end_ms: float | None = None


@dataclass(frozen=True)
class PacketsChart(Chart):
    """Timelines beside each other. y_label: what its kB are."""

    timelines: tuple[Timeline, ...] = ()
    y_label: str = "kB from the server, headers included"


# A page of many objects ---------------------------------------------------------------

@dataclass(frozen=True)
class PageBar:
    """The time of a page under one window; its parts in ms.

    document_ms: of it, until the document was there; first_screen_ms: until the first screen,
    None where nothing says. percent: earlier than with the first window, None for that itself.
    unsure: whether the 95 % interval of what is earlier holds zero.
    """

    page: Estimate
    document_ms: float
    first_screen_ms: float | None = None
    percent: float | None = None
    n: int = 0
    left_out: int = 0
    unsure: bool = False


@dataclass(frozen=True)
class PageChart(Chart):
    """Groups of bars, a bar for each window, each with the share of the document.

    windows: in segments, the baseline first. groups: the label of each and its bars, None where
    nothing counts. axis: of the groups.
    """

    windows: tuple[int, ...] = ()
    groups: tuple[tuple[str, tuple[PageBar | None, ...]], ...] = ()
    axis: str = ""


@dataclass(frozen=True)
class ObjectBar:
    """One object over time, in ms: named, parsed, requested, its first byte, all of it.

    opens: whether its request opened a connection.
    """

    named_ms: float
    due_ms: float
    start_ms: float
    first_byte_ms: float
    end_ms: float
    opens: bool = False


@dataclass(frozen=True)
class ObjectPanel:
    """The objects of a page under one window, the document first. marks: moments, (ms, name)."""

    title: str
    objects: tuple[ObjectBar, ...]
    marks: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True)
class ObjectChart(Chart):
    """Waterfalls under each other, on one axis of time."""

    panels: tuple[ObjectPanel, ...] = ()
    to_ms: float = 1.0
