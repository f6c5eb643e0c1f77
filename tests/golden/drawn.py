"""Every bar, line and word in figures of charts that are built by hand, and where it stands.

The place of an axis is a share of the figure. The place of all else is in the values of its axes.
The bytes of a picture would depend on the versions of matplotlib and of fonts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy
from matplotlib.colors import to_hex

from firstflight.base.stats import Estimate
from firstflight.findings import drawing
from firstflight.findings.charts import BarChart, Chart, Line, LineChart, Plot, TimeChart, bar_page
from firstflight.findings.claims import Published
from firstflight.findings.drawing import style
from tests.unit.drawing import samples

SEVERAL = 12  # of a line with more values only the ends are written


def text() -> str:
    """A paragraph for each chart."""
    with style.settings():
        return "\n".join("\n".join((f"# {name}", *_figure(drawing.figure_of(chart))))
                         for name, chart in charts().items()) + "\n"


# Charts -------------------------------------------------------------------------------

BARS, TRACES = samples.bar_chart(), samples.trace_chart()


def of_first(chart: BarChart = BARS, **parts: Any) -> BarChart:
    """The chart with another first bar, and not drawn as the paper's. parts: of the difference."""
    return replace(chart, is_like_the_papers=False,
                   bars=(samples.with_difference(chart.bars[0], **parts), *chart.bars[1:]))


def plot(*lines: Line, **more: Any) -> LineChart:
    return LineChart("One", (), columns=((Plot("x", "y", lines, **more),),))


def charts() -> dict[str, Chart]:
    """A chart of each family, and charts whose values change what is drawn, by name."""
    made: dict[str, Chart] = {make.__name__: make("") for make in samples.CHARTS}
    unchanged = replace(BARS, bars=tuple(samples.with_difference(
        bar, absolute=Estimate(0.0), percent=Estimate(0.0)) for bar in BARS.bars))
    pair = (Line("a", (0.0, 1.0), (0.05, 100.0), style="curve"),)
    named = ((0.0, "10"), (1.0, "32"))
    made |= {
        "bars, one only": replace(BARS, is_like_the_papers=False, bars=BARS.bars[1:2] * 2),
        "bars, another paper": replace(BARS, is_like_the_papers=False),
        "bars, nothing changes": unchanged,
        "bars, nothing changes or is published": replace(
            unchanged, is_like_the_papers=False, bars=tuple(replace(
                samples.with_difference(bar, same=None), published=Published(None, None))
                for bar in unchanged.bars)),
        "bars, an interval leaves the axis": replace(BARS, bars=(
            BARS.bars[0], samples.with_difference(
                BARS.bars[1], absolute=Estimate(8.2, (-2.0, 20.0))))),
        "bars, a loss": of_first(absolute=Estimate(-500.0, (-530.0, -495.0)),
                                 percent=Estimate(-25.0)),
        "bars, a published zero": replace(BARS, is_like_the_papers=False, bars=(
            replace(BARS.bars[0], published=Published(0.0, 3.1)), *BARS.bars[1:])),
        "bars, a published zero and a loss": of_first(absolute=Estimate(-1.0)),
        "bars, words above": BarChart("By loss", (), bars=(
            samples.bar("0", 70.2, 14.2, n=4), samples.bar(
                "2", 90.8, 15.3, n=360, above=("20.6 ms: helps", "4.3 … 37.7"))),
            axis="loss (%)", above="beyond the lossless bar"),
        **{f"bars, {count}": BarChart("Few", (), bars=tuple(
            samples.bar(str(place), 5.0, 1.0) for place in range(count))) for count in (1, 8)},
        "bars, two weeks": replace(BARS, compared="two weeks"),
        "bars, two weeks alone": replace(BARS, compared="two weeks", bars=tuple(
            samples.with_difference(bar, same=None) for bar in BARS.bars)),
        "a page of two weeks": bar_page("a page", (replace(BARS, compared="two weeks"),) * 2),
        "a page of two quantities": replace(samples.bar_page(), charts=(
            samples.bar_chart(), samples.bar_chart(axis="BDP (bytes)"))),
        "a page of scales of its own": bar_page("a page", (BARS, of_first(
            unchanged, absolute=Estimate(5.0)))),
        "times, two weeks": replace(samples.time_chart(), compared="two weeks"),
        "times, nothing published": TimeChart("Alone", (), baseline="3", bars=(
            samples.time_bar(3, 532.0, 0.0), samples.time_bar(10, 368.0, 30.8))),
        "levels that are not whole": samples.level_chart(whole=False),
        "lines, one legend": replace(samples.line_chart(), legend=True),
        "lines, of other plots": replace(samples.line_chart(), legend=True, widths=(),
                                         columns=samples.line_chart().columns[1:]),
        "lines, ordered": replace(plot(*(Line(f"IW {look}", (1.0, 2.0), (1.0, 2.0), look=look)
                                         for look in range(7))), palette="ordered"),
        "lines, of windows": plot(*(Line(f"IW {window}", (1.0,), (1.0,), look=look, window=window)
                                    for look, window in enumerate((3, 6, 10)))),
        "lines, from zero on": plot(Line("a", (0, 1), (921, 1002))),
        "lines, an interval below zero": plot(Line("a", (0, 1), (5, 9), ((-1, 11), None))),
        "lines, ends of their own": plot(Line("a", (0, 1), (921, 1002)), y_ends=(900, 1100)),
        "lines, names": plot(Line("a", (0, 1), (3, 4)), ticks=named),
        "lines, along a quantity": plot(Line("a", (10, 32), (3, 4)),
                                        ticks=((10, "10"), (32, "32"))),
        "lines, steps": plot(Line("a", (1, 2), (3, 9), style="steps")),
        "lines, decades": plot(*pair, y_scale="log", y_ends=(0.05, 100)),
        "lines, a logarithm along x": plot(Line("a", (0.1, 300.0), (1.0, 2.0)), x_scale="log"),
        "lines, named decades": plot(Line("a", (0.1, 300.0), (1.0, 2.0)), x_scale="log",
                                     ticks=((0.1, "0.1"), (30.0, "30"))),
        "lines, whole": plot(Line("a", (0.0, 1.0), (0.0, 1.0)), y_ends=(0, 1.08), whole=True),
        "lines, a legend above points": plot(Line("a", (0.0, 1.0), (1.0, 9.0), style="points"),
                                             ticks=named, legend=True),
        "traces without RTT": replace(TRACES, rows=TRACES.rows[:1], rtt=False),
        "traces of a part": replace(TRACES, to_s=2.0, rows=(replace(
            TRACES.rows[0], sent=((0.1, 1.0), (2.5, 900.0))),)),
        "traces, another time beside": replace(TRACES, to_s=6.0, sequence_s=(4.5, 4.6))}
    return made


# Figures ------------------------------------------------------------------------------

def _figure(figure: Any) -> Iterator[str]:
    figure.draw_without_rendering()
    yield from (f"says {_colour(each.get_color())}: {each.get_text()}" for each in figure.texts)
    yield from (f"legend: {', '.join(samples.texts_of(legend))}" for legend in figure.legends)
    for axes in figure.axes:
        place = axes.get_position()
        yield (f"axes at {_numbers((place.x0, place.y0, place.x1, place.y1), 3)}"
               f" {_colour(axes._left_title.get_color())}: {axes.get_title(loc='left')}"
               f" {axes.get_title(loc='right')}".rstrip())
        for name, axis, ends in (("x", axes.xaxis, axes.get_xlim()),
                                 ("y", axes.yaxis, axes.get_ylim())):
            yield (f"  {name} {axis.get_scale()} {_numbers(ends)} {axis.get_label_text()!r}:"
                   f" {' '.join(samples.tick_labels(axis))}")
        yield from _parts(axes)


def _parts(axes: Any) -> Iterator[str]:
    for patch in axes.patches:
        box = patch.get_path().get_extents(patch.get_patch_transform())
        if numpy.isfinite(box.extents).all():
            yield (f"  box {_numbers(box.extents)} {_colour(patch.get_facecolor())}"
                   f" {patch.get_hatch() or ''}".rstrip())
    for line in axes.lines:
        marker = line.get_marker()
        yield (f"  line {_numbers(line.get_xdata())}; {_numbers(line.get_ydata())}"
               f" {_colour(line.get_color())} {line.get_linestyle()}"
               f" {marker if isinstance(marker, str) else 'letter'}"
               f" {line.get_drawstyle()} {_numbers((line.get_linewidth(), line.get_markersize()))}"
               f" {_colour(line.get_markerfacecolor())}")
    for part in axes.collections:
        shares = part.get_array()
        sizes = [_numbers(each.ravel()) for each in getattr(part, "get_segments", list)()]
        yield f"  collection {_numbers(shares.ravel()) if shares is not None else sizes}"
    for text_drawn in axes.texts:
        yield (f"  {_numbers(text_drawn.get_position())} {_colour(text_drawn.get_color())}:"
               f" {text_drawn.get_text()}")
    if axes.get_legend():
        yield f"  legend: {', '.join(samples.texts_of(axes.get_legend()))}"


def _colour(colour: Any) -> str:
    return colour if isinstance(colour, str) and colour == "none" else to_hex(colour)


def _numbers(values: Any, digits: int = 5) -> str:
    """The values with so many significant digits; of more than SEVERAL the ends and the count."""
    some = [f"{round(float(value), 9) + 0.0:.{digits}g}"
            for value in numpy.ma.filled(values, numpy.nan)]
    return " ".join(some if len(some) <= SEVERAL else [*some[:2], f"… {len(some)} …", some[-1]])
