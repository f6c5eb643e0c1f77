"""Findings as data: stored, exported, quoted, and shown as pictures."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import numpy
import pytest
from PIL import Image

from docs.update import FURTHER, for_gallery
from firstflight.base.argument_types import EXPORTS
from firstflight.base.errors import FirstFlightError
from firstflight.base.stats import Estimate
from firstflight.findings import drawing
from firstflight.findings.charts import (BarPage, Chart, Line, LineChart, Plot, Square,
                                         SquareMap)
from firstflight.findings.drawing import connections, lines, squares, style
from firstflight.findings.findings import Column, Finding, Rounded, Statement, Table
from firstflight.findings.render import data
from firstflight.findings.render.data import exported
from firstflight.findings.render.values import quoted
from firstflight.runs import scenario_file
from tests.golden import stored_fetches
from tests.unit.drawing import samples
from tests.unit.render.reports import FINDINGS, report


KEPT = {"engine": "uml", "kernel": "7.2.11", "machine": "a machine", "virtual_time": True,
        "seed": 7, "started_at": "2026-01-01", "finished_at": "2026-01-02", "emulated_s": 12.5,
        "wall_s": 3.5, "project": "1.0", "partial": False}


def test_the_facts_of_a_run_that_documents_need_are_kept_and_its_command_is_not() -> None:
    whole = report(facts={**KEPT, "command": ["./run.sh"], "sysctls": {"a": "b"}})
    again = data.loads(data.dumps(whole))
    assert again.facts == KEPT
    assert (again.name, again.claim, again.verified, again.count, again.summary) == (
        whole.name, whole.claim, whole.verified, whole.count, whole.summary)


def test_findings_are_kept_but_for_what_only_a_figure_shows() -> None:
    whole = report(findings=FINDINGS)
    first, mix, last = data.loads(data.dumps(whole)).findings
    assert (first.tables, first.bars, first.published) == (
        FINDINGS[0].tables, FINDINGS[0].bars, FINDINGS[0].published)
    assert first.sentence == ""
    assert first.chart == Chart("", ()) and last.chart is None
    assert mix.statements == FINDINGS[1].statements and last.missing == FINDINGS[2].missing


@pytest.mark.parametrize(("content", "why"), [
    ("{", "holds no findings: Expecting"), ("3", "holds no findings: is not a report"),
    ('{"is": "Table", "title": ""}', "holds no findings: "),
    ('{"is": "Other"}', "holds no findings: 'Other'"),
    *((content, "holds no findings") for content in (
        "", "[1]", "{}", "\x00", '{"is": "Report"}', '{"is": "Report", "other": 1}')),
    (None, "cannot be read: No such file")])
def test_a_damaged_kept_report_is_refused_by_its_name(tmp_path: Path, content: str | None,
                                                      why: str) -> None:
    path = tmp_path / "kept.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(FirstFlightError, match=f"kept.json: {why}"):
        data.read(path)


# Exports ------------------------------------------------------------------------------

@pytest.mark.parametrize("text", ['=HYPERLINK("x")', "+1", "-1+1", "@SUM(A1)", "\t=1", "\x1b[2J=1",
                                  "two\nlines"])
def test_texts_of_an_exported_table_begin_no_formula_of_a_spreadsheet(text: str) -> None:
    """The text is in each place that a scenario's file may set. A number stays a number."""
    table = Table(text, (Column(text, text, text, is_text=True), Column("less")), ((text, -1.5),))
    hostile = report(findings=(Finding(text, text, (table,)),))
    _, words, number = csv.reader(io.StringIO(exported("csv", hostile)))
    for cell in (*words, *number[:6]):
        assert cell.isprintable() and cell[:1] not in ("=", "+", "-", "@")
    assert number[6] == "-1.5" and words[6].lstrip("'") == " ".join(text.split()).replace("\x1b",
                                                                                          "")


@pytest.mark.parametrize("form", EXPORTS)
def test_every_format_of_the_command_line_is_written_and_ends_in_one_new_line(form: str) -> None:
    text = exported(form, report())
    assert text.endswith("\n") and not text.endswith("\n\n")


# Quotes -------------------------------------------------------------------------------

COLUMNS = (Column("", is_text=True), Column("load", digits=2), Column("", "ms", "saved"),
           Column("saved", "%", digits=1, signed=True), Column("word", is_text=True))
ROWS = (("IW 10", 0.5, Estimate(12.34, (11.0, 14.0)), 5.25, "reproduced"),
        ("IW 10", 0.9, Rounded(-12.34, 2), -5.25, ""), ("IW 3", 0.9, None, 0.0, "421.5 (3)"))
FINDING = Finding("kb15", "15 kB", (Table("", COLUMNS[:1], ()), Table("", COLUMNS, ROWS)),
                  (Statement("How much is saved:", "from 1357 ± 34 to 25.0 %", numbers=(
                      Rounded(Estimate(1357.4, (1323.0, 1391.0)), 0), Rounded(-25.0, 1))),))


@pytest.mark.parametrize(("quote", "text"), [
    ("kb15 / IW 10 / saved: ms", "12.3 ± 1.5"), ("kb15 / IW 10 & 0.90 / saved: ms", "−12.34"),
    ("kb15 / IW 10 & 0.90 / saved: ms / 0", "12"), ("kb15 / IW 10 / saved: ms / 2", "12.34"),
    ("kb15 / IW 10 / saved, %", "+5.2"), ("kb15 / IW 10 / saved, % / 0", "5"),
    ("kb15 / IW 10 / saved, % / less|more", "less"), ("kb15 / IW 10 / word", "reproduced"),
    ("kb15 / IW 10 & 0.90 / saved, % / less|more", "more"), ("own.kb15 / IW 10 / load", "0.50"),
    ("kb15 / IW 3 / word / first word", "421.5"),
    ("kb15 / How much / 1", "1357"), ("kb15 / How much / 2", "−25.0")])
def test_a_quote_is_replaced_by_the_number_or_text_of_its_finding(quote: str, text: str) -> None:
    own = replace(report(), name="own", findings=(FINDING,))
    assert quoted(f"It is {{{quote}}}.", [own]) == f"It is {text}."


@pytest.mark.parametrize("quote", [
    "kb16 / IW 10 / load", "kb15 / IW 11 / load", "kb15 / 0.90 / load", "kb15 / IW 10 / loads",
    "kb15 / IW 10 / saved", "kb15 / How much / 3", "kb15 / How much / 0", "kb15", "",
    "kb15 / IW 10 / word / 1", "kb15 / IW 10 & 0.90 / word / first word",
    "kb15 / IW 10 / load / first word", "kb15 / IW 3 / saved, % / less|more",
    "kb15 / IW 3 / saved: ms / 1",
    "kb15 / IW 10 / load / x", "other.kb15 / IW 10 / load"])
def test_a_quote_of_what_no_finding_has_is_refused(quote: str) -> None:
    own = replace(report(), name="own", findings=(FINDING,))
    with pytest.raises(FirstFlightError) as caught:
        quoted(f"It is {{{quote}}}.", [own])
    assert quote in str(caught.value)


def test_findings_of_others_are_named_after_their_scenario() -> None:
    own, other = (replace(report(), name=name, findings=(replace(FINDING, tables=(
        Table("", COLUMNS, ((name, *ROWS[0][1:]),)),)),)) for name in ("own", "other"))
    assert quoted("{kb15 / own / load} {other.kb15 / other / load}", [own, other]) == "0.50 0.50"
    with pytest.raises(FirstFlightError):
        quoted("{kb15 / other / load}", [own, other])


def test_bars_of_several_figures_are_counted_together() -> None:
    first, second = (replace(FINDING, name=name, bars=bars) for name, bars in (
        ("rtt", {"reproduced": 4, "undecided": 4}), ("bw", {"reproduced": 2, "direction": 1})))
    told = replace(report(), name="own", findings=(first, second))
    assert quoted("{rtt / bars}", [told]) == "of 8: 4 reproduced, 4 undecided"
    assert quoted("{own.rtt + own.bw / bars}", [told]) == (
        "of 11: 6 reproduced, 4 undecided, 1 direction")
    with pytest.raises(FirstFlightError):
        quoted("{rtt + bdp / bars}", [told])


def test_statements_of_several_figures_and_trials_of_a_run_are_counted() -> None:
    first, second = (replace(FINDING, name=name, statements=tuple(
        Statement("It is.", "so", outcome) for outcome in outcomes)) for name, outcomes in (
            ("web", ("direction", "undecided", "")), ("maps", ("direction",))))
    told = replace(report(), name="own", findings=(first, second), count=12345)
    assert quoted("{web / statements}", [told]) == "of 2: 1 undecided, 1 direction"
    assert quoted("{own.web + own.maps / statements} in {own / trials}", [told]) == (
        "of 3: 1 undecided, 2 direction in 12,345")
    for quote in ("{web + news / statements}", "{other / trials}"):
        with pytest.raises(FirstFlightError):
            quoted(quote, [told])


# Pictures -----------------------------------------------------------------------------

PROJECT = Path(__file__).resolve().parent.parent.parent.parent
MOST_BYTES = 60_000


def test_bars_of_buckets_come_before_bars_of_windows() -> None:
    """The gallery shows Figure 5 of a reproduction, and not its Figure 2."""
    shown = for_gallery(stored_fetches.whole_report("tselentis2013")).findings[0].chart
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
    """Edges of letters have many shades, which take no place of a line's or a bar's colour."""
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
    """Acknowledgements and the congestion window of a trace once had the same blue."""
    with style.settings():
        png = style.image(drawing.figure_of(samples.trace_chart()), "png")
    with Image.open(io.BytesIO(drawing.small({"x": png})["x"])) as image:
        left = {colour for _, colour in image.convert("RGB").getcolors(1 << 20)}
    for colour in (connections.ACKED, connections.WINDOW, connections.RETRANSMITTED,
                   connections.SSTHRESH):
        wanted = numpy.array(list(bytes.fromhex(colour[1:])))
        assert min(numpy.linalg.norm(wanted - other) for other in left) < 20, colour


def test_a_colour_of_one_square_stays_beside_many_letters() -> None:
    """Greys at the edges of letters once took the place of the orange of worse squares, which were
    drawn in black.
    """
    levels = (3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 11.5)
    rows = tuple(tuple(map(Square, levels[place % 4:] + levels[:place % 4])) for place in range(8))
    chart = replace(
        samples.published_chart(), notes=("", *("9 of 22",) * 8),
        rows=tuple(f"{place}  faster links, longer round trips" for place in range(9)),
        maps=tuple(SquareMap(f"by {place}", tuple("12345678"), ((Square(10.0),) * 8, *rows))
                   for place in range(4)))
    with style.settings():
        png = style.image(drawing.figure_of(chart), "png")
    with Image.open(io.BytesIO(png)) as image:
        few = drawing._of_few_colours(image.convert("RGB"), drawing.COLOURS[-1])
    left = [colour for _, colour in few.convert("RGB").getcolors(1 << 20)]
    for shade in (0.0, 0.55, 1.0):
        wanted = numpy.array(squares.LOOKS["published"].colours(shade)[:3]) * 255
        assert min(numpy.linalg.norm(wanted - other) for other in left) < 30, shade


def test_each_picture_of_the_gallery_is_small_and_shown_in_a_document() -> None:
    gallery, questions = ((PROJECT / "docs" / name).read_text(encoding="utf-8")
                          for name in ("GALLERY.md", "QUESTIONS.md"))
    for path in (PROJECT / "docs" / "gallery").glob("*.png"):
        assert path.stat().st_size <= MOST_BYTES, path.name
        if f"(gallery/{path.name})" in questions:
            continue
        assert f"(gallery/{path.name})" in gallery
        assert any(path.stem in (name, *(f"{name}_{figure}" for figure in FURTHER.get(name, ())))
                   for name in scenario_file.names()), path.name
