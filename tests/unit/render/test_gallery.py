"""The gallery: every scenario with a picture, and pictures that are small."""

from __future__ import annotations

import io
from pathlib import Path

import numpy
from PIL import Image

from findings import drawing
from findings.charts import LineChart
from findings.findings import Finding
from findings.render import markdown
from results import FURTHER
from runs import scenario_file
from tests.unit.render.reports import report

PROJECT = Path(__file__).resolve().parent.parent.parent.parent
MOST_BYTES = 60_000


def test_an_entry_has_claim_picture_and_command() -> None:
    chart = LineChart("title", ())
    told = report(findings=(Finding("windows", "Windows", text="What <is> seen.", chart=chart),))
    made = markdown.gallery([told], {told.name: ["gallery/x.png"]})
    assert f"## {told.name}" in made and "](gallery/x.png)" in made
    assert "![What \\<is> seen.]" in made and f"`./run.sh {told.name}`" in made
    assert f"## {told.name}" not in markdown.gallery([told], {})


def test_what_is_not_measured_here_keeps_its_words() -> None:
    kept = report(findings=(Finding("windows", "Windows", chart=LineChart("title", ())),))
    pictures = {kept.name: ["gallery/x.png"]}
    before = "![Ten \\<b> twenty.](gallery/x.png)"
    assert before in markdown.gallery([kept], pictures, before)
    assert "![Windows](gallery/x.png)" in markdown.gallery([kept], pictures)


def test_a_picture_is_made_smaller() -> None:
    noise = numpy.random.default_rng(1).integers(0, 255, (75, 1000, 3), dtype=numpy.uint8)
    png = io.BytesIO()
    Image.fromarray(noise).save(png, "PNG", compress_level=1)
    small = drawing.small({"x": png.getvalue()})["x"]
    with Image.open(io.BytesIO(small)) as image:
        assert image.size == (1000, 75)
    assert len(small) < len(png.getvalue()) / 3


def test_what_is_kept_is_small_and_named_by_a_scenario() -> None:
    text = (PROJECT / "docs" / "GALLERY.md").read_text(encoding="utf-8")
    for path in (PROJECT / "docs" / "gallery").glob("*.png"):
        assert path.stat().st_size <= MOST_BYTES, path.name
        assert f"(gallery/{path.name})" in text
        assert any(path.stem in (name, *(f"{name}_{figure}" for figure in FURTHER.get(name, ())))
                   for name in scenario_file.names()), path.name
