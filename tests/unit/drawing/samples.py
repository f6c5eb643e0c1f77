"""Small charts of every family, and functions that look at the figures drawn of them.

Each chart takes a `mark`, which is appended to all of its texts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy

from firstflight.base.stats import Estimate
from firstflight.findings.bar import Bar
from firstflight.findings.charts import (BarChart, BarPage, Chart, FilmChart, FilmStrip, GridChart,
                                         GroupChart, Line, LineChart, Mark, ObjectBar, ObjectChart,
                                         ObjectPanel, PacketsChart, PageBar, PageChart, Plot, Shot,
                                         Square, SquareChart, SquareMap, StepChart, TimeChart,
                                         Timeline, TraceChart, TraceRow, WaterfallStep)
from firstflight.findings.claims import Published
from firstflight.findings.difference import Difference, Excluded


def common_fields(mark: str = "", alarm: str = "") -> dict[str, Any]:
    """The fields that every chart has."""
    return {"title": f"Improvement{mark}", "context": (f"real Linux TCP, cubic{mark}",),
            "foot": f"64 trials{mark}", "alarm": alarm}


def bar(label: str, absolute: float, percent: float, n: int = 16, excluded: int = 0,
        **fields: Any) -> Bar:
    """A bar that saves so much, in ms and in percent. fields: other fields of the bar."""
    saved = saving(Estimate(absolute), Estimate(percent), n=n, excluded=Excluded(excluded))
    return Bar(label, saved, **fields)


def with_difference(bar: Bar, **fields: Any) -> Bar:
    """The bar with other values in some fields of its difference."""
    return replace(bar, difference=replace(bar.difference, **fields))


def saving(absolute: Estimate, percent: Estimate, **fields: Any) -> Difference:
    """A difference whose means are 0, since no chart of bars draws them."""
    return Difference(Estimate(0.0), Estimate(0.0), absolute=absolute, percent=percent, **fields)


def bar_chart(mark: str = "", **more: Any) -> BarChart:
    """Shares, published values, an interval, and excluded records."""
    middle = bar(f"100{mark}", 78.9, 21.8, n=14, excluded=2, published=Published(22.0, 5.1),
                 share_percent=48.36)
    bars = (bar(f"20{mark}", 6.8, 5.3, published=Published(9.7, 3.1), share_percent=4.29),
            with_difference(middle, absolute=Estimate(78.9, (60.0, 95.0)),
                            percent=Estimate(21.8, (18.0, 25.0)),
                            same=saving(Estimate(33.0), Estimate(9.1))),
            bar(f">3000{mark}", 4975.0, 33.0, published=Published(3350.0, 21.9),
                share_percent=0.08))
    return replace(BarChart(**common_fields(mark), bars=bars, axis=f"RTT (ms){mark}",
                            publisher=f"in the paper{mark}", above=f"share{mark}",
                            is_like_the_papers=True), **more)


def time_chart(mark: str = "", **more: Any) -> TimeChart:
    ten = time_bar(10, 615.0, 23.6, saved=(165.0, 205.0), level=665.0, mark=mark)
    bars = (time_bar(3, 805.0, 0.0, level=808.0, mark=mark),
            with_difference(ten, excluded=Excluded(1)),
            time_bar(42, 566.0, 29.8, saved=(-0.01, 0.01), level=642.0, mark=mark))
    return replace(TimeChart(**common_fields(mark), bars=bars, baseline=f"3{mark}",
                             axis=f"Initial window{mark}",
                             publisher=f"by them{mark}"), **more)


def time_bar(window: int, ms: float, percent: float, saved: tuple[float, float] | None = None,
             level: float | None = None, mark: str = "") -> Bar:
    """The time under a window, compared with 805 ms under the baseline.

    saved: the interval of the saving, in ms. level: the published time.
    """
    difference = Difference(Estimate(805.0), Estimate(ms), absolute=Estimate(805.0 - ms, saved),
                            percent=Estimate(percent), n=2)
    return Bar(f"{window}{mark}", difference, Published(level=level), window)


def bar_page(mark: str = "") -> BarPage:
    return BarPage(**common_fields(mark), charts=(bar_chart(mark), bar_chart(mark)))


def line_chart(mark: str = "", **more: Any) -> LineChart:
    """Curves on the left; on the right two plots, one above the other, the lower one of bars."""
    curves = Plot(f"time (ms){mark}", f"completed (%){mark}", (
        Line(f"IW 3{mark}", (10.0, 20.0, 30.0), (0.0, 60.0, 100.0), style="curve"),
        Line(f"IW 10{mark}", (8.0, 15.0, 30.0), (0.0, 70.0, 100.0), look=1, style="dashed")),
        x_ends=(5, 32), y_ends=(0, 100), legend=True)
    gains = Plot("", f"saved (%){mark}", (
        Line(f"IW 10{mark}", (0.0, 1.0), (12.0, -40.0), ends=((9.0, 15.0), None), look=1),
        Line("", (0.0, 1.0), (3.0, 2.0), look=1, style="faint"),
        Line(f"the deck{mark}", (0.0,), (14.0,), style="published")),
        f"gains{mark}", ticks=((0.0, f"mean{mark}"), (1.0, f"99{mark}")), zero=True)
    hits = Plot(f"load{mark}", f"mean (ms){mark}", (
        Line(f"IW 3{mark}", (0.0, 1.0), (400.0, 500.0), ends=((390.0, 410.0), None), style="bars"),
        Line(f"IW 10{mark}", (0.0, 1.0), (300.0, 450.0), look=1, style="bars")),
        f"hits{mark}", ticks=((0.0, f"0.5{mark}"), (1.0, f"0.9{mark}")),
        limit=(550.0, f"full{mark}"), legend=True)
    return replace(LineChart(**common_fields(mark), columns=((curves,), (gains, hits)),
                             widths=(2.0, 3.0)), **more)


def trace_chart(mark: str = "") -> TraceChart:
    """A connection that retransmits, one whose window nothing uses, one that failed."""
    steps = ((0.0, 2.0), (1.0, 4.0), (2.0, 8.0))
    rows = (TraceRow(f"Linux{mark}", sent=((0.1, 1.0), (1.0, 4.0)), retransmitted=((1.5, 2.0),),
                     acked=((0.0, 0.0), (1.0, 3.0)), window=steps, ssthresh=steps[1:],
                     in_flight=((0.0, 2.0), (2.0, 8.0)), rtt_ms=((0.0, 100.0), (2.0, 300.0))),
            TraceRow(f"grows unused{mark}", sent=((0.1, 1.0),), acked=((0.0, 0.0), (1.0, 1.0)),
                     window=((0.0, 2.0), (1.0, 2178.0)), in_flight=((0.0, 1.0), (1.0, 5.0)),
                     rtt_ms=((0.0, 50.0),), flagged=True),
            TraceRow(f"none{mark}", absent=f"skipped: {'the kernel lacks it ' * 9}{mark}"))
    return TraceChart(**common_fields(mark), rows=rows, to_s=3.0, rtt=True)


def grid_chart(mark: str = "") -> GridChart:
    """The shares of 3 RTTs with 4 bandwidths, in percent; one share is almost 0."""
    shares = numpy.array([[0.5, 0.02, 0.3, 1e-9], [40, 9, 0.1, 0.2], [1, 2, 3, 4]])
    return GridChart(**common_fields(mark), x=numpy.array([1.0, 30.0, 2000.0]),
                     y=numpy.array([20.0, 200.0, 2000.0, 9000.0]), shares=shares,
                     x_label=f"RTT (ms){mark}", y_label=f"bandwidth (kbit/s){mark}",
                     colour_label=f"share (%){mark}",
                     diagonals=((8000.0, f"BDP 1000 B{mark}"), (1e9, "outside")))


def step_chart(mark: str = "") -> StepChart:
    return StepChart(**common_fields(mark), axis=f"agree{mark}", most=28, steps=(
        WaterfallStep(f"none{mark}", 10, "start"),
        WaterfallStep(f"a long name of a cause (code){mark}", 14, "code"),
        WaterfallStep(f"back (kernel){mark}", 12, "kernel"),
        WaterfallStep(f"nothing (calibrated){mark}", 12, "calibrated"),
        WaterfallStep(f"fits (inferred){mark}", 24, "inferred")))


def group_chart(mark: str = "", count: int = 2, windows: int = 2) -> GroupChart:
    """So many groups of bars, one bar for each window; the second bar has an interval."""
    bars = []
    for window in range(windows):
        saved = Estimate(float(window), (-5.0, 5.0) if window == 1 else None)
        bars.append(Difference(
            Estimate(1000.0), Estimate(1000.0 - window, (980.0, 1010.0), 100),
            absolute=saved, percent=Estimate(10.5), n=100))
    return GroupChart(**common_fields(mark), axis=f"RTT (ms){mark}",
                      windows=(3, *range(10, 10 * windows, 10)),
                      groups=tuple((f"{place}{mark}", tuple(bars)) for place in range(count)))


SQUARES = ((Square(120.4, 33.3, n=2), None),
           (Square(-3.2, -0.4, unsure=True, n=200, excluded=3), Square(0, 0)))


def square_chart(mark: str = "", count: int = 1, wide: int = 1, **more: Any) -> SquareChart:
    """Maps of what is saved, one square of which is not known."""
    columns = (f"20{mark}", f"5000{mark}") * wide
    rows = tuple(row * wide for row in SQUARES)
    return replace(SquareChart(
        **common_fields(mark), maps=tuple(SquareMap(f"map {place}{mark}", columns, rows)
                                  for place in range(count)),
        rows=(f"56{mark}", f"100000{mark}"), x_label=f"RTT (ms){mark}",
        y_label=f"Bandwidth (kbit/s){mark}"), **more)


def level_chart(mark: str = "", **more: Any) -> SquareChart:
    return square_chart(mark, scale="level", rows=(f"a chain{mark}", f"another{mark}"), maps=(
        SquareMap("", (f"3{mark}", f"10{mark}"), (
            (Square(1.0), Square(2.0)), (None, Square(9.0)))),), **more)


def window_chart(mark: str = "") -> SquareChart:
    return square_chart(mark, scale="window", windows=(3, 10, 40), maps=(
        SquareMap(f"size 9000 bytes{mark}", (f"20{mark}", f"5000{mark}"), (
            (Square(3), Square(10, excluded=2)), (None, Square(40)))),))


def published_chart(mark: str = "") -> SquareChart:
    """Steps that lead to published values, two groups of columns."""
    rows = ((Square(10.0), None), (Square(9.0, is_near=True), Square(1.0)), (None, Square(0.0)))
    return square_chart(mark, scale="published", notes=("", f"1 of 4{mark}", f"0 of 4{mark}"),
                        rows=(f"the paper{mark}", f"2  loss{mark}", f"1  none{mark}"),
                        x_label="", y_label="", maps=tuple(
                            SquareMap(f"by {name}{mark}", (f"20{mark}", f">5000{mark}"), rows)
                            for name in ("RTT", "bandwidth")))


def timeline(name: str, end_ms: float | None = 90.0, mark: str = "") -> Timeline:
    """Two segments in the first flight, of which one is lost and retransmitted.

    end_ms: when all was acknowledged, None if it was not.
    """
    marks = (Mark("data", 20, 1, 1449), Mark("lost", 20, 1449, 2897),
             Mark("retransmitted", 60, 1449, 2897))
    return Timeline(f"{name}: RTT 25 ms, 1000 kbit/s, 9000 bytes{mark}",
                    f"3 data segments, 2 of them in the first flight, 1 retransmitted,"
                    f" 1 lost{mark}; all",
                    marks=marks, acknowledged=((45, 1449), (90, 2897)), to_ms=100, to_bytes=3000,
                    offered=((45, 2900), (90, 5000)), end_ms=end_ms)


def packets_chart(mark: str = "") -> PacketsChart:
    return PacketsChart(**common_fields(mark), timelines=(
        timeline(f"IW3{mark}", mark=mark), timeline(f"IW10{mark}", None, mark)))


def page_chart(mark: str = "", **more: Any) -> PageChart:
    """Two settings, a first screen, an interval, a window that does not count."""
    first = PageBar(Estimate(500.0), document_ms=150.0, first_screen_ms=200.0, n=1)
    larger = PageBar(Estimate(400.0, (380.0, 420.0), 5), document_ms=120.0, first_screen_ms=150.0,
                     percent=20.0, n=5, excluded=1)
    over_http2 = PageBar(Estimate(450.0), document_ms=150.0)
    groups = ((f"HTTP/1.1{mark}", (first, larger)), (f"HTTP/2{mark}", (over_http2, None)))
    return replace(PageChart(**common_fields(mark), windows=(3, 10),
                             axis=f"version of HTTP{mark}", groups=groups), **more)


def object_chart(mark: str = "", **more: Any) -> ObjectChart:
    """Two windows; objects that wait for a connection, that are parsed, that open one."""
    document = ObjectBar(0, 0, 0, first_byte_ms=100, end_ms=160, opens=True)
    parsed = ObjectBar(110, 115, 115, first_byte_ms=215, end_ms=260, opens=True)
    waiting = [ObjectBar(110 + number, 110 + number, 160 + 20 * number,
                         first_byte_ms=200 + 20 * number, end_ms=230 + 20 * number)
               for number in range(18)]
    marks = ((160, f"document and page are there{mark}"),)
    panels = tuple(ObjectPanel(f"Initial window {window}{mark}", (document, parsed, *waiting),
                               marks) for window in (3, 10))
    return replace(ObjectChart(**common_fields(mark), panels=panels, to_ms=600), **more)


def browser_chart(mark: str = "", **more: Any) -> ObjectChart:
    """Two windows; requests to hosts, and the moments of a load."""
    marks = ((200, "first contentful paint"), (300, "largest contentful paint"),
             (250, "DOMContentLoaded"), (420, f"load{mark}"))
    requests = []
    for number in range(30):
        named_ms = 10 * number
        requests.append(ObjectBar(
            named_ms, named_ms, named_ms + 40, first_byte_ms=named_ms + 100,
            end_ms=named_ms + 130, opens=number % 7 == 0,
            host=f"host{number % 3}.example.org{mark}"))
    panels = tuple(ObjectPanel(f"Initial window {window}{mark}", tuple(requests), marks)
                   for window in (3, 10))
    return replace(ObjectChart(**common_fields(mark), panels=panels, to_ms=450), **more)


# A PNG of one grey pixel.
PIXEL = bytes.fromhex("89504e470d0a1a0a0000000d4948445200000001000000010800000000"
                      "3a7e9b550000000a49444154789c636800000082008177cd72b60000000049454e44"
                      "ae426082")


def film_chart(mark: str = "", **more: Any) -> FilmChart:
    """Two windows; one picture is broken, and is missing from the second window's strip."""
    shots = (Shot(f"first contentful paint{mark}", 200.0, PIXEL), Shot("load", 420.0, b"\x89PNG"))
    strips = (FilmStrip(f"Initial window 3{mark}", shots),
              FilmStrip("Initial window 10", shots[:1]))
    return replace(FilmChart(**common_fields(mark), strips=strips), **more)


CHARTS: tuple[Callable[[str], Chart], ...] = (
    bar_chart, time_chart, bar_page, line_chart, trace_chart, grid_chart, step_chart,
    group_chart, square_chart, level_chart, window_chart, published_chart, packets_chart,
    page_chart, object_chart, browser_chart, film_chart)


def all_charts(mark: str = "") -> list[Chart]:
    """One of each class, and of each scale of squares."""
    return [make(mark) for make in CHARTS]


# Looking at a figure -----------------------------------------------------------------

def texts_of(part: Any) -> list[str]:
    """The texts on a figure, on axes or in a legend, except those of ticks."""
    return [text.get_text() for text in part.texts]


def tick_labels(axis: Any) -> list[str]:
    """The labels of the ticks that the axis has between its ends."""
    low, high = axis.get_view_interval()
    places = [place for place in axis.get_major_locator()() if low <= place <= high]
    return [str(label) for label in axis.get_major_formatter().format_ticks(places)]


def check_fits(drawn: Any) -> None:
    """Check that all texts lie inside the figure, and that none overlaps another."""
    drawn.draw_without_rendering()
    renderer = drawn.canvas.get_renderer()
    shown = [*_shown_texts(drawn), *drawn.legends]
    texts = [text.get_text() if hasattr(text, "get_text") else "legend" for text in shown]
    boxes = numpy.array([text.get_window_extent(renderer).extents for text in shown])
    assert len(boxes) > 5

    left, low, right, high = boxes.T
    outside = (left < 0) | (low < 0) | (right > drawn.bbox.width) | (high > drawn.bbox.height)
    assert not outside.any(), [texts[place] for place in numpy.flatnonzero(outside)]
    for number, text in enumerate(texts):
        later = slice(number + 1, None)
        overlaps = ((left[number] <= right[later]) & (left[later] <= right[number])
                    & (low[number] <= high[later]) & (low[later] <= high[number]))
        assert not overlaps.any(), (text, texts[number + 1 + int(overlaps.argmax())])


def _shown_texts(drawn: Any) -> list[Any]:
    """Every text that is drawn, except those of legends."""
    found = list(drawn.texts)
    for axes in drawn.axes:
        found += [*axes.texts, axes.title, axes._left_title, axes._right_title]
        for axis in (axes.xaxis, axes.yaxis):
            low, high = axis.get_view_interval()
            if axis.get_visible():
                found += [axis.label, *(tick.label1 if tick.label1.get_visible() else tick.label2
                                        for tick in axis.get_major_ticks()
                                        if low <= tick.get_loc() <= high)]
    return [text for text in found if text.get_text() and text.get_visible()]
