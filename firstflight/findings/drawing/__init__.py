"""Draws the charts of a report. No other room imports matplotlib.

Each file draws similar classes of findings.charts, and `figure_of` picks the function for a chart.
This room computes nothing except where things stand.
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

# Of a picture in a document: of how many colours, fewer where it is large.
COLOURS, MOST_BYTES = (64, 32, 16), 60_000
# Of 255 in red, green and blue together: two colours that one stands for. Those further apart
# than FAR come first, if so many pixels have them: a legend may have the only square of its
# colour, while the edges of letters have many greys.
ALIKE, FAR, LEAST_PIXELS = 20, 80, 50
MOST_COMPARED = 2000  # colours of a picture, the most frequent ones
NOT_MEASURED = "computed; no transfer of this run is in it"
PAGE_BYTES = 600_000  # of PNGs; a page with more takes long to load

# Of each figure, by its name: the content of its file in each format.
Images = dict[str, dict[str, bytes]]


@singledispatch
def figure_of(chart: Chart) -> Figure:
    """The figure of a chart, by its class."""
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
    """Draw and save every figure of a report; return the files.

    They are figures/<scenario>_<name>.<format>.

    Raises FirstFlightError where a file cannot be written.
    """
    return save(report.name, images(report, formats), folder, formats)


def images(report: Report, formats: Sequence[str] = ("png",)) -> Images:
    """Every figure of a report, drawn once, on all processors."""
    planned = plans(report)
    with style.settings():
        contents = forked.results([partial(_contents, make, formats) for _, make in planned])
    return {name: content for (name, _), content in zip(planned, contents)}


def _contents(make: Callable[[], Figure], formats: Sequence[str]) -> dict[str, bytes]:
    drawn = make()
    return {form: style.image(drawn, form) for form in formats}


def pngs(drawn: Images) -> dict[str, bytes]:
    """A PNG of each figure, by its name."""
    return {name: contents["png"] for name, contents in drawn.items()}


def for_page(drawn: Images) -> dict[str, bytes]:
    """The figures by name as a page holds them: many as lossless WebP of a few colours."""
    contents = pngs(drawn)
    if sum(map(len, contents.values())) <= PAGE_BYTES:
        return contents
    return dict(zip(contents, forked.results([partial(_webp, png)
                                              for png in contents.values()])))


def _webp(png: bytes) -> bytes:
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
    return [(name, partial(figure_of, replace(
        chart, caption=report.caption if chart.is_measured else NOT_MEASURED)))
            for name, chart in charts]


def small(contents: Mapping[str, bytes]) -> dict[str, bytes]:
    """PNGs in a few colours, for a document."""
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
    """The image in fewer colours. The most frequent ones do not change: they distinguish series.

    Of similar colours only one stays, since the greys at the edges of letters are more frequent
    than a thin line. Every other colour becomes the nearest one that stays.
    """
    from PIL import Image
    listed = sorted((red << 16 | green << 8 | blue, count) for count, (red, green, blue)
                    in image.getcolors(image.width * image.height))

    found, counts = numpy.array(listed).T
    order = numpy.argsort(-counts, kind="stable")[:MOST_COMPARED]
    kept = _unlike(found[order], int((counts[order] >= LEAST_PIXELS).sum()), colours * 3 // 4)
    others = image.quantize(colours - len(kept)).getpalette()[:3 * (colours - len(kept))]
    palette = numpy.concatenate([_parts(kept), numpy.reshape(others, (-1, 3))])
    nearest = ((_parts(found)[:, None] - palette) ** 2).sum(axis=2).argmin(axis=1)

    # Of each colour its place in the palette: faster than sorting the pixels, as numpy.unique does.
    place = numpy.zeros(1 << 24, numpy.uint8)
    place[found] = nearest
    red, green, blue = numpy.moveaxis(numpy.asarray(image, numpy.int32), 2, 0)
    reduced = Image.fromarray(place[red << 16 | green << 8 | blue], "P")
    reduced.putpalette(palette.astype(numpy.uint8).tobytes())
    return reduced


def _unlike(colours: NDArray[numpy.int64], frequent: int, most: int) -> NDArray[numpy.int64]:
    """The first colours that differ from each other, `most` of them at most.

    Of the `frequent` first ones those that are far from each other come before all others.
    """
    parts, kept = _parts(colours), [0]
    for count, apart in ((frequent, FAR), (len(colours), ALIKE)):
        for place in range(1, count):
            distances = ((parts[kept] - parts[place]) ** 2).sum(axis=1)
            if len(kept) < most and distances.min() > apart ** 2:
                kept.append(place)
    return colours[kept]


def _parts(colours: NDArray[numpy.int64]) -> NDArray[numpy.int64]:
    """The parts of each colour: red, green and blue."""
    return numpy.stack([colours >> shift & 255 for shift in (16, 8, 0)], axis=1)


def figures(report: Report) -> Iterator[tuple[str, Figure]]:
    """Each figure by its name, a matplotlib Figure; to be used within style.settings()."""
    return ((name, make()) for name, make in plans(report))


def save(scenario: str, drawn: Images, folder: Path, formats: Sequence[str] = ("png",)
         ) -> list[Path]:
    """Write the figures in these formats; only a page has ON_THE_WIRE. Raises FirstFlightError."""
    return files.save_all(folder, {
        places.inside(folder, f"{scenario}_{name}.{form}").name: contents[form]
        for name, contents in drawn.items() if name != ON_THE_WIRE for form in formats})
