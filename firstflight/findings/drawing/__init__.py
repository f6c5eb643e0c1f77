"""Draws the charts of a report. No other room imports matplotlib.

Each file draws some classes of charts (findings/charts.py), and `figure_of` calls the function that
draws a chart. This room computes nothing except where things stand.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, singledispatch
from pathlib import Path
from typing import TYPE_CHECKING

import numpy
from matplotlib.figure import Figure

from firstflight.base import files, forked, places
from firstflight.findings.charts import Chart
from firstflight.findings.drawing import (bars, connections, film, groups, lines, pages,
                                         squares, style)
from firstflight.findings.findings import Report
from firstflight.findings.names import ON_THE_WIRE

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL.Image import Image as PngImage

__all__ = ["draw", "figure_of", "figures", "for_page", "images", "pngs", "save", "small"]

# How many colours a picture in a document may have: the first number that makes its file no longer
# than MOST_BYTES, else the last one.
COLOURS = (64, 32, 16)
MOST_BYTES = 60_000

# Distances between two colours, in a cube whose sides (red, green, blue) go from 0 to 255. Of
# colours at most ALIKE apart, one stands for all. Colours more than FAR apart come first, if each
# has LEAST_PIXELS: a legend may have the only square of its colour, while the edges of letters
# have many greys.
ALIKE, FAR = 20, 80
LEAST_PIXELS = 50
MOST_COMPARED = 2000  # colours of a picture, the most frequent ones: comparing takes the square

NOT_MEASURED = "computed; no transfer of this run is in it"
PAGE_BYTES = 600_000  # of all PNGs of a page; a page with more takes long to load

# By the name of a figure, and then by format: the content of the figure's file.
Images = dict[str, dict[str, bytes]]


@singledispatch
def figure_of(chart: Chart) -> Figure:
    """The figure of a chart, drawn by the function that is registered for the chart's class."""
    raise TypeError(f"no figure of {type(chart).__name__}")


figure_of.register(bars.draw_bars)
figure_of.register(bars.draw_page)
figure_of.register(bars.draw_times)
figure_of.register(connections.draw_packets)
figure_of.register(connections.draw_traces)
figure_of.register(film.draw_film)
figure_of.register(groups.draw_groups)
figure_of.register(groups.draw_steps)
figure_of.register(lines.draw)
figure_of.register(pages.draw_objects)
figure_of.register(pages.draw_pages)
figure_of.register(squares.draw_shares)
figure_of.register(squares.draw_squares)


def draw(report: Report, folder: Path, formats: Sequence[str] = ("png",)) -> list[Path]:
    """Draw every figure of a report and save it; return the paths of the files.

    The files are <folder>/<scenario>_<name>.<format>. Raises FirstFlightError where one cannot be
    written.
    """
    return save(report.name, images(report, formats), folder, formats)


def images(report: Report, formats: Sequence[str] = ("png",)) -> Images:
    """Every figure of a report in these formats. All processors draw, each figure once."""
    planned = plans(report)
    with style.settings():
        contents = forked.results([partial(_contents, make_figure, formats)
                                   for _, make_figure in planned])
    return {name: content for (name, _), content in zip(planned, contents)}


def _contents(make_figure: Callable[[], Figure], formats: Sequence[str]) -> dict[str, bytes]:
    """The content of a figure's file in each format."""
    drawn = make_figure()
    return {form: style.image(drawn, form) for form in formats}


def pngs(drawn: Images) -> dict[str, bytes]:
    """A PNG of each figure, by its name."""
    return {name: contents["png"] for name, contents in drawn.items()}


def for_page(drawn: Images) -> dict[str, bytes]:
    """By the name of each figure, its PNG for a page.

    If all PNGs have more than PAGE_BYTES together, each becomes a lossless WebP of a few colours.
    """
    contents = pngs(drawn)
    if sum(map(len, contents.values())) <= PAGE_BYTES:
        return contents
    return dict(zip(contents, forked.results([partial(_webp, png)
                                              for png in contents.values()])))


def _webp(png: bytes) -> bytes:
    """The picture of a PNG as a lossless WebP of a few colours."""
    from PIL import Image
    content = io.BytesIO()
    with Image.open(io.BytesIO(png)) as image:
        few = _of_few_colours(image.convert("RGB"), COLOURS[0])
    few.convert("RGB").save(content, "webp", lossless=True, method=1)
    return content.getvalue()


def plans(report: Report) -> list[tuple[str, Callable[[], Figure]]]:
    """The name of each figure, and a function that draws it."""
    charts = [(finding.name, finding.chart) for finding in report.findings if finding.chart]
    if report.packets is not None:
        charts.append((ON_THE_WIRE, report.packets))

    named_functions: list[tuple[str, Callable[[], Figure]]] = []
    for name, chart in charts:
        caption = report.caption if chart.is_measured else NOT_MEASURED
        named_functions.append((name, partial(figure_of, replace(chart, caption=caption))))
    return named_functions


def small(contents: Mapping[str, bytes]) -> dict[str, bytes]:
    """By name, each PNG with so few colours that a document may hold it (COLOURS, MOST_BYTES)."""
    from PIL import Image
    pictures = {}
    for name, png in contents.items():
        with Image.open(io.BytesIO(png)) as image:
            reduced = image.convert("RGB")
        for colours in COLOURS:
            content = io.BytesIO()
            _of_few_colours(reduced, colours).save(content, "png", optimize=True)
            if content.tell() <= MOST_BYTES:
                break
        pictures[name] = content.getvalue()
    return pictures


def _of_few_colours(image: PngImage, colours: int) -> PngImage:
    """The image with at most this many colours.

    Three quarters of the colours are among the most frequent ones of the image, which distinguish
    series. They do not change. Only one of several similar colours is among them, since the greys
    at the edges of letters are more frequent than a thin line. PIL chooses the remaining quarter.
    For it each colour counts once, as counting pixels takes ten times as long. Every other colour
    becomes the nearest of these.
    """
    from PIL import Image
    # A colour is one number here: its red, green and blue in eight bits each.
    listed = sorted((red << 16 | green << 8 | blue, count) for count, (red, green, blue)
                    in image.getcolors(image.width * image.height))

    found, counts = numpy.array(listed).T
    order = numpy.argsort(-counts, kind="stable")[:MOST_COMPARED]
    frequent = int((counts[order] >= LEAST_PIXELS).sum())
    kept = _unlike(found[order], frequent, most=colours * 3 // 4)
    of_pil = colours - len(kept)
    # A palette is a list of red, green, blue, red, green, blue, …
    each_once = Image.fromarray(_red_green_blue(found).astype(numpy.uint8)[numpy.newaxis])
    others = each_once.quantize(of_pil).getpalette()[:3 * of_pil]
    palette = numpy.concatenate([_red_green_blue(kept), numpy.reshape(others, (-1, 3))])
    distances = ((_red_green_blue(found)[:, None] - palette) ** 2).sum(axis=2)

    # By colour, its place in the palette. That is faster than numpy.unique, which sorts the pixels.
    place = numpy.zeros(1 << 24, numpy.uint8)
    place[found] = distances.argmin(axis=1)
    red, green, blue = numpy.moveaxis(numpy.asarray(image, numpy.int32), 2, 0)
    reduced = Image.fromarray(place[red << 16 | green << 8 | blue], "P")
    reduced.putpalette(palette.astype(numpy.uint8).tobytes())
    return reduced


def _unlike(colours: NDArray[numpy.int64], frequent: int, most: int) -> NDArray[numpy.int64]:
    """At most `most` colours that are not alike.

    The first colour is always kept. Then come those of the first `frequent` colours that are FAR
    from all that are kept already, and last those of all colours that are not ALIKE a kept one.
    """
    parts = _red_green_blue(colours)
    kept = [0]
    for count, least_distance in ((frequent, FAR), (len(colours), ALIKE)):
        for index in range(1, count):
            squares = ((parts[kept] - parts[index]) ** 2).sum(axis=1)
            if len(kept) < most and squares.min() > least_distance ** 2:
                kept.append(index)
    return colours[kept]


def _red_green_blue(colours: NDArray[numpy.int64]) -> NDArray[numpy.int64]:
    """A row for each colour: its red, green and blue."""
    return numpy.stack([colours >> shift & 255 for shift in (16, 8, 0)], axis=1)


def figures(report: Report) -> Iterator[tuple[str, Figure]]:
    """The name and the matplotlib Figure of each figure. Call it within style.settings()."""
    return ((name, make_figure()) for name, make_figure in plans(report))


def save(scenario: str, drawn: Images, folder: Path, formats: Sequence[str] = ("png",)
         ) -> list[Path]:
    """Write the figures into the folder in these formats; return the paths.

    ON_THE_WIRE is not written, since only pages show it. Raises FirstFlightError.
    """
    contents_of_files = {}
    for name, contents in drawn.items():
        if name == ON_THE_WIRE:
            continue
        for form in formats:
            path = places.inside(folder, f"{scenario}_{name}.{form}")
            contents_of_files[path.name] = contents[form]
    return files.save_all(folder, contents_of_files)
