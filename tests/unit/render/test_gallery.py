"""The gallery: every scenario with a picture, and pictures that are small."""

from __future__ import annotations

import io
from pathlib import Path

import numpy
from PIL import Image

from firstflight.findings import drawing
from firstflight.findings.charts import BarPage, Line, LineChart, Plot
from firstflight.findings.drawing import connections, lines, style
from firstflight.findings.render import markdown
from docs.update import FURTHER, in_gallery
from firstflight.runs import scenario_file
from tests.golden import stored_fetches
from tests.unit.drawing import samples
from tests.unit.render.reports import report

PROJECT = Path(__file__).resolve().parent.parent.parent.parent
MOST_BYTES = 60_000


def test_an_entry_has_name_picture_and_page() -> None:
    told = report()
    made = markdown.gallery([told], {told.name: ["gallery/x.png"]})
    assert made == (f"## {told.name}\n\n[![{told.name}](gallery/x.png)]"
                    f"(results/{told.name}.md)\n")
    assert markdown.gallery([told], {}) == ""


def test_bars_of_buckets_come_before_bars_of_windows() -> None:
    """Of a reproduction its Figure 5 is shown, not its Figure 2."""
    shown = in_gallery(stored_fetches.whole_report("tselentis2013")).findings[0].chart
    assert isinstance(shown, BarPage)
    assert [chart.axis.partition(" ")[0] for chart in shown.charts] == ["RTT", "Bandwidth",
                                                                       "Bandwidth-delay"]


def test_a_picture_is_made_smaller() -> None:
    noise = numpy.random.default_rng(1).integers(0, 255, (75, 1000, 3), dtype=numpy.uint8)
    png = io.BytesIO()
    Image.fromarray(noise).save(png, "PNG", compress_level=1)
    small = drawing.small({"x": png.getvalue()})["x"]
    with Image.open(io.BytesIO(small)) as image:
        assert image.size == (1000, 75)
    assert len(small) < len(png.getvalue()) / 3


def test_colours_that_tell_series_apart_stay_as_they_are() -> None:
    """Those of lines and bars, whatever shades the edges of letters have beside them."""
    shown = tuple(Line(f"IW {window}", (1.0, 2.0), (1.0, float(window)), window=window)
                  for window in (3, 10, 16, 32))
    with style.settings():
        png = style.image(lines.draw(LineChart("Four windows", ("context",), columns=(
            (Plot("x", "y", shown),),), legend=True)), "png")
    with Image.open(io.BytesIO(drawing.small({"x": png})["x"])) as image:
        left = {colour for _, colour in image.convert("RGB").getcolors(1 << 20)}
    for line in shown:
        colour = style.window_colour(line.window)
        assert tuple(bytes.fromhex(colour[1:])) in left


def test_a_thin_line_keeps_its_colour_beside_many_letters() -> None:
    """Acknowledgements and the congestion window of a trace got one blue."""
    with style.settings():
        png = style.image(drawing.figure_of(samples.trace_chart()), "png")
    with Image.open(io.BytesIO(drawing.small({"x": png})["x"])) as image:
        left = {colour for _, colour in image.convert("RGB").getcolors(1 << 20)}
    for colour in (connections.ACKED, connections.WINDOW, connections.RETRANSMITTED,
                   connections.SSTHRESH):
        wanted = numpy.array(list(bytes.fromhex(colour[1:])))
        assert min(numpy.linalg.norm(wanted - other) for other in left) < 20, colour


def test_what_is_kept_is_small_and_named_by_a_scenario() -> None:
    text = (PROJECT / "docs" / "GALLERY.md").read_text(encoding="utf-8")
    for path in (PROJECT / "docs" / "gallery").glob("*.png"):
        assert path.stat().st_size <= MOST_BYTES, path.name
        assert f"(gallery/{path.name})" in text
        assert any(path.stem in (name, *(f"{name}_{figure}" for figure in FURTHER.get(name, ())))
                   for name in scenario_file.names()), path.name
