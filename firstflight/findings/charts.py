"""Charts: the content of figures, as points with units. findings/drawing draws each class.

A kind of study fills them in; nothing here depends on how they are drawn.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Literal

from firstflight.base.stats import Estimate
from firstflight.base.words import join_words
from firstflight.findings.bar import Bar
from firstflight.findings.claims import Ends
from firstflight.findings.difference import Difference

Points = Sequence[tuple[float, float]]

JOINING = ("of", "over", "at", "IW")  # words behind which a title needs another one
NARROW = 0.05  # narrower intervals print as a single value


def is_wide(ends: Ends | None) -> bool:
    """Whether an interval prints as more than a single value."""
    return ends is not None and ends[1] - ends[0] > NARROW


@dataclass(frozen=True)
class Chart:
    """The texts that every figure has around its axes.

    context: lines under the title: what was measured, and how. compared: which measurements are
    compared; the drawing adds its marks for them. foot: below the axes, what was counted. caption:
    below that, how the run was measured (Report.caption). alarm: what was excluded or differs, in
    red; "" for nothing. is_measured: whether it shows trials of the run.
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

    axis: of the buckets. publisher: follows "published" in the legend, such as "in the paper".
    above: the meaning of the lines above the bars. over: what the intervals are over, such as
    clients. is_like_the_papers: the axis is logarithmic, as in the paper.
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

    bars: their value is the window. baseline: the window that the others are compared with. The
    interval of a bar is the baseline's value less the interval of the improvement. measured,
    improved: what the bars show, and its improvement, in a word each, such as "time" and "saved".
    over: what the intervals are over.
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
    """Several charts on one page; the lines and notes that all of them share stand there once."""
    first = charts[0]
    contexts = [chart.context for chart in charts]
    feet = [_sentences(chart.foot) for chart in charts]
    is_one_comparison = len({chart.compared for chart in charts}) == 1
    return BarPage(title, _in_all(contexts), " ".join(_in_all(feet)), charts=tuple(charts),
                   compared=first.compared if is_one_comparison else "")


def _in_all(texts: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The lines that stand in each of these texts, in the order of the first one."""
    return tuple(line for line in texts[0] if all(line in text for text in texts))


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=\.) ", text)


def joint_title(charts: Sequence[BarChart]) -> str:
    """A title for charts of bars together: the words that their own titles have in common, and the
    axes.

    "Improvement of 37 kB by RTT at 3 Mbit/s: 3 → 26 segments" and another one by bandwidth become
    "Improvement of 37 kB by RTT and bandwidth: 3 → 26 segments".
    """
    words = [chart.title.partition(":")[0].split() for chart in charts]
    same = [first for first, *_ in takewhile(lambda of_all: len({*of_all}) == 1, zip(*words))]
    same = list(takewhile(lambda word: word != "by", same))
    while same and same[-1] in JOINING:
        same.pop()
    axes = dict.fromkeys(chart.axis.partition(" (")[0] for chart in charts)
    named = join_words([name if name.isupper() else f"{name[:1].lower()}{name[1:]}"
                        for name in axes])
    ends = {chart.title.partition(":")[2] for chart in charts}
    return f"{' '.join(same) or 'Improvement'} by {named}" + (
        f":{ends.pop()}" if len(ends) == 1 and any(ends) else "")


# Lines -------------------------------------------------------------------------------

LOOKS = 7  # colours and markers that distinguish the lines of one plot


@dataclass(frozen=True)
class Line:
    """One line, or one series of bars or markers, of a plot.

    name: in the legend, "" for none. x, y: of equal length. ends: 95 % intervals of y, () where
    there are none. look: the index of its colour and marker. window: its initial window, which then
    decides on the colour; 0 for none. style: a "curve" has no markers; "steps" are joined by steps,
    "points" are not joined; "faint" lines, with open markers, are what others are compared with;
    "published" are diamonds; "bars" stand next to those of other lines.
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

    ticks: (place, label) along x; () for automatic ones. zero: whether there is a line at y = 0.
    limit: a line at a y that nothing exceeds, with its name. whole: ticks along y are whole
    numbers. legend: whether the plot has its own legend.
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
    """Columns of plots.

    widths: relative widths of the columns; () for equal ones. plot_inches: the height of a plot
    with the labels of its axes. legend: whether there is one for all plots. palette: "distinct"
    colours, or "ordered" ones from light to dark.
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

    sent, retransmitted: data sent for the first time, and again. acked: the acknowledged sequence
    number, with a step at each point. window, ssthresh, in_flight: steps; ssthresh only where it is
    finite. rtt_ms: smoothed. absent: why there is nothing to draw, "" if there is. flagged: whether
    its verdict failed.
    """

    title: str
    sent: Points = ()
    retransmitted: Points = ()
    acked: Points = ()
    window: Points = ()
    ssthresh: Points = ()
    in_flight: Points = ()
    rtt_ms: Points = ()
    absent: str = ""
    flagged: bool = False


@dataclass(frozen=True)
class TraceChart(Chart):
    """A row for each connection: what was sent and acknowledged, and the window.

    from_s, to_s: the time that is shown; sequence_s: that of the time–sequence plots, None for the
    same. rtt: whether the RTT is shown.
    """

    rows: tuple[TraceRow, ...] = ()
    from_s: float = 0.0
    to_s: float = 1.0
    rtt: bool = False
    sequence_s: Ends | None = None


# A distribution in two dimensions ----------------------------------------------------

@dataclass(frozen=True)
class GridChart(Chart):
    """Shares in percent by two quantities, on logarithmic axes.

    x, y: the middles of the cells, arrays of shape (x,) and (y,). shares: an array of shape (x, y).
    diagonals: lines of constant x·y, as (x·y, label).
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
    """Groups of bars of a metric, with a bar for each window.

    windows: in segments, the baseline first. own_window: how to name the only one where no route
    sets it. groups: each with its label and what each window changes against the baseline, None
    where no record counts; the bars are the experiments' means with their intervals. axis: of the
    groups. measured: what the bars show, with its unit.
    """

    windows: tuple[int, ...] = ()
    own_window: str = ""
    groups: tuple[tuple[str, tuple[Difference | None, ...]], ...] = ()
    axis: str = ""
    measured: str = ""
    unit: str = "ms"


@dataclass(frozen=True)
class Square:
    """One square with its number, in the unit of the chart's scale.

    percent: the improvement in percent of the baseline; unsure: whether its 95 % interval includes
    zero. n: fetches; excluded: those that do not count. is_near: whether it is near the published
    value.
    """

    value: float
    percent: float = 0.0
    unsure: bool = False
    n: int = 0
    excluded: int = 0
    is_near: bool = False


@dataclass(frozen=True)
class SquareMap:
    """Rows of squares, the first at the bottom; None where no record counts.

    title: what distinguishes the map from the others. columns: labels of the columns.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Square | None, ...], ...]


@dataclass(frozen=True)
class SquareChart(Chart):
    """Maps of squares, each with a colour and a number.

    scale: what the numbers are. "improved": the improvement in `unit` and in percent. "window": one
    of `windows`, the smallest first. "level": values, without decimals if they are whole.
    "published": values that are compared with the published ones in the first row.
    rows: labels of the rows, the first at the bottom; notes: at their right.
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
    """One step. value: the number after it.

    sure: how the step is known, which the bar's colour shows; "start" is not a step, but the
    beginning.
    """

    label: str
    value: float
    sure: Literal["start", "code", "kernel", "calibrated", "inferred"]


@dataclass(frozen=True)
class StepChart(Chart):
    """A waterfall: a row for each step, with a bar from the number before it to that after it.

    most: the largest possible number, None without one. axis: of the number.
    """

    steps: tuple[WaterfallStep, ...] = ()
    axis: str = ""
    most: float | None = None


# The packets of a connection as captured at its server --------------------------------

@dataclass(frozen=True)
class Mark:
    """A data segment in a timeline: when it left, and its first and last byte.

    kind: handshake and ticket are TLS's messages before the response, data the rest.
    """

    kind: Literal["handshake", "ticket", "data", "retransmitted", "lost"]
    time_ms: float
    from_bytes: float
    to_bytes: float


@dataclass(frozen=True)
class Timeline:
    """The packets of one connection as captured at its server.

    acknowledged, offered: (ms, bytes), with a step at each point; offered: the end of the receive
    window. text: the timeline in words. end_ms: when all data were acknowledged, None where they
    were not. to_ms, to_bytes: ends of the axes, common to the timelines that are compared.
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
    """Timelines next to each other. y_label: what the kB on their axis are."""

    timelines: tuple[Timeline, ...] = ()
    y_label: str = "kB from the server, headers included"


# A page of many objects ---------------------------------------------------------------

@dataclass(frozen=True)
class PageBar:
    """The time of a page under one window, in ms.

    document_ms: until the document had arrived. first_screen_ms: until the first screen, None where
    it is not known. percent: the saving against the first window, None for that window itself.
    unsure: whether the 95 % interval of the saving includes zero.
    """

    page: Estimate
    document_ms: float
    first_screen_ms: float | None = None
    percent: float | None = None
    n: int = 0
    excluded: int = 0
    unsure: bool = False


@dataclass(frozen=True)
class PageChart(Chart):
    """Groups of bars, a bar for each window, each with the share of the document.

    windows: in segments, the baseline first. groups: each with its label and bars, None where no
    record counts. axis: of the groups. y_label: of their bars.
    """

    windows: tuple[int, ...] = ()
    groups: tuple[tuple[str, tuple[PageBar | None, ...]], ...] = ()
    axis: str = ""
    y_label: str = "time of the page"


@dataclass(frozen=True)
class ObjectBar:
    """One object over time, in ms: named, parsed, requested, first byte and last byte.

    opens: whether its request opened a connection. host: that it comes from, "" for unsaid.
    """

    named_ms: float
    due_ms: float
    start_ms: float
    first_byte_ms: float
    end_ms: float
    opens: bool = False
    host: str = ""


@dataclass(frozen=True)
class ObjectPanel:
    """The objects of a page under one window, the document first. marks: moments as (ms, name)."""

    title: str
    objects: tuple[ObjectBar, ...]
    marks: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True)
class ObjectChart(Chart):
    """Waterfalls under each other, with one time axis."""

    panels: tuple[ObjectPanel, ...] = ()
    to_ms: float = 1.0


@dataclass(frozen=True)
class Shot:
    """A picture of a page as a PNG, b"" for none. moment: what happened at that time."""

    moment: str
    at_ms: float
    png: bytes = b""


@dataclass(frozen=True)
class FilmStrip:
    """The pictures of a page under one window, in the order of their times."""

    title: str
    shots: tuple[Shot, ...]


@dataclass(frozen=True)
class FilmChart(Chart):
    """Film strips side by side."""

    strips: tuple[FilmStrip, ...] = ()
