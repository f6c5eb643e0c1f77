"""A report's figures: which, drawn once, in whole files; the frame that all of them share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args, get_type_hints
from xml.etree import ElementTree

import pytest
from matplotlib import cbook, rc_context
from matplotlib.text import Text

from firstflight.base.argument_types import PICTURES
from firstflight.base.errors import FirstFlightError
from firstflight.findings import drawing
from firstflight.findings.charts import Chart, Line, Plot, SquareChart, TimeChart
from firstflight.findings.drawing import lines, squares, style
from firstflight.findings.findings import Finding, Report
from firstflight.study import registry
from tests.unit.drawing import samples


def report_of(*findings: Finding) -> Report:
    return Report("sample", "A sample", "claim", "source", "sample/run", {}, 4, 4, findings)


def test_every_chart_is_drawn_under_the_name_of_its_finding_and_a_dollar_stays_a_dollar() -> None:
    """matplotlib takes what stands between two dollars for a formula: it would be set in italics
    or be refused.
    """
    charts = samples.all_charts(" $5_{ $")
    report = report_of(*(Finding(f"{place}_sample", "", chart=chart)
                         for place, chart in enumerate(charts)), Finding("words", "no chart"))
    drawn = list(drawing.figures(report))
    assert [name for name, _ in drawn] == [f"{place}_sample"
                                           for place, chart in enumerate(charts)]
    for (_, figure), chart in zip(drawn, charts):
        assert samples.texts_of(figure)[0].replace("\\", "") == chart.title
        figure.draw_without_rendering()
        texts = [text.get_text() for text in figure.findobj(Text) if text.get_visible()]
        assert sum("$" in text for text in texts) > 5, type(chart)
        assert not [text for text in texts if cbook.is_math_text(text)], type(chart)


@pytest.mark.parametrize("made", samples.CHARTS)
def test_texts_of_every_chart_lie_inside_apart_and_are_large_enough_on_a_phone(
        made: Callable[[str], Chart]) -> None:
    """On a screen 390 pixels wide, the size of every font is at least 6.5 pixels."""
    ((_, drawn),) = drawing.figures(report_of(Finding("sample", "", chart=made(""))))
    samples.check_fits(drawn)
    pixels_a_point = 390 / drawn.get_size_inches()[0] / 72
    sizes = {text.get_text(): text.get_fontsize() * pixels_a_point
             for text in drawn.findobj(Text) if text.get_text() and text.get_visible()}
    assert min(sizes.values()) >= 6.5, min(sizes, key=lambda text: sizes[text])


LONG = "tcp_rmem=4096 131072 6291456 + tcp_sack=0"  # the name of a bucket


@pytest.mark.parametrize("chart", [
    replace(samples.group_chart(), groups=tuple(
        (LONG, bars) for _, bars in samples.group_chart(count=4).groups)),
    replace(samples.page_chart(), groups=tuple(
        (LONG, bars) for _, bars in samples.page_chart().groups) * 2),
    replace(samples.bar_chart(), bars=tuple(
        replace(bar, label=LONG) for bar in samples.bar_chart().bars)),
    replace(samples.time_chart(), bars=tuple(
        replace(bar, label=LONG) for bar in samples.time_chart().bars))],
    ids=("groups", "pages", "bars", "times"))
def test_long_labels_are_broken_and_do_not_overlap(chart: Chart) -> None:
    ((_, drawn),) = drawing.figures(report_of(Finding("sample", "", chart=chart)))
    samples.check_fits(drawn)


def subclasses_of(parent: type[Chart]) -> Iterator[type[Chart]]:
    """All classes below this one."""
    for child in parent.__subclasses__():
        yield child
        yield from subclasses_of(child)


def test_every_class_of_charts_and_scale_of_squares_has_a_sample() -> None:
    """So a new class of charts, or a new scale of squares, is drawn by these tests."""
    for name in registry.KINDS:
        registry.kind(name)
    charts = samples.all_charts()
    assert {*map(type, charts)} == {*subclasses_of(Chart)}
    with pytest.raises(TypeError, match="no figure of Chart"):
        drawing.figure_of(Chart("", ()))
    scales = get_args(get_type_hints(SquareChart)["scale"])
    assert [chart.scale for chart in charts if isinstance(chart, SquareChart)] == [
        "improved", "level", "window", "published"] and {*scales} == {*squares.LOOKS} == {
            chart.scale for chart in charts if isinstance(chart, SquareChart)}


def test_a_legend_shows_special_characters_of_labels_unchanged() -> None:
    """A label may have two dollars, or begin with an underscore, by which matplotlib knows what a
    legend leaves out. This holds for the legend of a figure and for that of axes.
    """
    names = ["_a_b", "3$a_b$4"]
    plot = Plot("x", "y", (*(Line(name, (1.0, 2.0), (1.0, 2.0)) for name in (*names, "")),
                           *(Line(name, (1.0, 2.0), (1.0, 2.0), style="bars") for name in names)),
                legend=True)
    with style.settings(), rc_context({"svg.fonttype": "none"}):
        drawn: Any = lines.draw(samples.line_chart(columns=((plot,),), widths=(1.0,), legend=True))
        svg = style.image(drawn, "svg")
    for legend, times in ((drawn.legends[0], 1), (drawn.axes[0].get_legend(), 2)):
        assert [text.get_text() for text in legend.get_texts()] == times * ["_a_b", r"3\$a_b\$4"]
    written = [element.text for element in ElementTree.fromstring(svg).findall(".//{*}text")]
    assert [written.count(name) for name in names] == [3, 3]


def test_labels_in_an_svg_begin_and_end_no_element() -> None:
    hostile = ' <script>alert("1")</script>]]>--><!-- & &lt; '
    for chart in samples.all_charts(hostile)[:3]:
        with style.settings(), rc_context({"svg.fonttype": "none"}):
            (_, drawn), = drawing.figures(report_of(Finding("hostile", "", chart=chart)))
            svg = style.image(drawn, "svg")
        elements = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(svg).iter()
                    if isinstance(element.tag, str)}
        assert "text" in elements and "script" not in elements, type(chart)
        assert b"<script" not in svg and b"&lt;script&gt;" in svg, type(chart)


def test_hostile_text_cannot_leave_the_comments_of_an_svg() -> None:
    """In the SVGs of Firstflight letters are outlines, and a comment has the text."""
    hostile = ' --> <script>alert("1")</script>]]><!-- & &lt; \x1b[2J \x00 \ud800 \uffff \n --'
    with style.settings():
        (_, drawn), = drawing.figures(report_of(
            Finding("hostile", "", chart=samples.bar_chart(hostile))))
        svg = style.image(drawn, "svg")
    with_comments = ElementTree.TreeBuilder(insert_comments=True)
    root = ElementTree.fromstring(svg, ElementTree.XMLParser(target=with_comments))
    comments = [part.text or "" for part in root.iter() if part.tag is ElementTree.Comment]
    assert sum("&lt;script&gt;" in part for part in comments) > 6
    assert not [part for part in root.iter() if str(part.tag).endswith(("script", "text"))]


@pytest.mark.parametrize("name", ["../up", "a/b", "a\nb"])
def test_a_figures_name_that_leads_out_of_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(FirstFlightError, match="cannot be the name of a file"):
        drawing.save("sample", {name: {"png": b""}}, tmp_path / "figures")
    assert not list(tmp_path.iterdir())


def test_figures_drawn_twice_are_equal_byte_for_byte(tmp_path: Path) -> None:
    report = report_of(Finding("fig2", "", chart=samples.time_chart()))
    first = drawing.draw(report, tmp_path / "a", PICTURES)
    second = drawing.draw(report, tmp_path / "b", PICTURES)
    assert [path.name for path in first] == ["sample_fig2.png", "sample_fig2.svg",
                                             "sample_fig2.pdf"]
    for path, equal, start in zip(first, second, (b"\x89PNG", b"<?xml", b"%PDF")):
        content = path.read_bytes()
        assert content.startswith(start) and len(content) > 5000
        assert content == equal.read_bytes(), path.name
    assert sorted((tmp_path / "a").iterdir()) == sorted(first)  # no temporary file is left


def test_png_is_as_large_as_its_figure() -> None:
    drawn = drawing.figure_of(samples.time_chart())
    content = style.image(drawn, "png")
    width, height = (int.from_bytes(content[place:place + 4], "big") for place in (16, 20))
    assert (width, height) == tuple(int(side * style.DPI) for side in drawn.get_size_inches())


def test_a_figure_is_drawn_once_for_all_formats(tmp_path: Path,
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    calls, figure_of = [], drawing.figure_of

    def counting(chart: TimeChart) -> Any:
        calls.append(chart)
        return figure_of(chart)

    monkeypatch.setattr(drawing, "figure_of", counting)
    report = report_of(Finding("fig2", "", chart=samples.time_chart()))
    drawn = drawing.images(report, ("png", "svg"))
    paths = drawing.save("sample", drawn, tmp_path, ("svg",))
    assert len(calls) == 1 and [path.name for path in paths] == ["sample_fig2.svg"]
    assert paths[0].read_bytes() == drawn["fig2"]["svg"]
    assert drawing.pngs(drawn) == {"fig2": drawn["fig2"]["png"]}


def test_kept_captures_are_drawn_and_timelines_of_unlike_axes_have_their_own_ticks(
        tmp_path: Path) -> None:
    like = replace(samples.timeline("IW3"), to_ms=16000.0, end_ms=15020.0)
    for other, labels in ((like, [True, False]), (replace(like, to_bytes=9000), [True, True])):
        report = replace(report_of(), timelines=(like, other))
        (name, drawn), = drawing.figures(report)
        drawn.canvas.draw()
        assert name == "on_the_wire" and labels == [
            bool(axes.yaxis.get_major_ticks()[0].label1.get_visible()) for axes in drawn.axes]
        assert [bool(axes.get_ylabel()) for axes in drawn.axes] == labels
        samples.check_fits(drawn)
    assert drawing.save("sample", {name: {"png": b"only the page's"}}, tmp_path) == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    with pytest.raises(FirstFlightError, match="file: cannot be written: Not a directory"):
        drawing.save("sample", {"fig2": {"png": b"x"}}, in_the_way)


def test_every_figure_has_its_trials_kernel_engine_and_date_below() -> None:
    facts = {"kernel": "7.2.11", "engine": "uml", "finished_at": "2026-11-21T23:50:13+00:00"}
    report = replace(report_of(Finding("fig2", "", chart=samples.time_chart())),
                     facts=facts, count=12, verified=11, timelines=(samples.timeline("IW3"),))
    with style.settings():
        for name, drawn in drawing.figures(report):
            words = [text.get_text() for text in drawn.texts]
            assert ("whole run: n = 12 trials, 11 verified · Linux 7.2.11 in virtual time"
                    " · 2026-11-21" in words), name
    assert replace(report, count=0).caption == "", "computed figures have no trials"
    assert replace(report, facts={}).caption == "whole run: n = 12 trials, 11 verified"
    computed = replace(report, findings=(Finding("joint", "", chart=replace(
        samples.grid_chart(), is_measured=False)),), timelines=())
    with style.settings():
        ((_, drawn),) = drawing.figures(computed)
    assert drawing.NOT_MEASURED in [text.get_text() for text in drawn.texts]


# Frame, ticks and texts ---------------------------------------------------------------

def test_title_context_alarm_and_foot_stand_at_the_same_places_in_every_figure() -> None:
    """Places are in inches from the upper or lower edge; the height between them may differ."""
    chart = Chart("A title", ("one line", "and another"), "64 trials", "2 excluded")
    places = []
    for body_inches in (1.0, 5.0):
        drawn = style.frame(chart, body_inches).figure
        width, height = drawn.get_size_inches()
        assert width == style.WIDTH_INCHES and height > body_inches + 1
        texts = drawn.texts
        assert [text.get_text() for text in texts] == [
            "A title", "one line", "and another", "2 excluded", "64 trials"]
        assert all(text.get_position()[0] == 0.5 for text in texts)
        places.append([round(height * (1 - text.get_position()[1]), 6) for text in texts[:4]]
                      + [round(height * texts[4].get_position()[1], 6)])
        assert texts[0].get_weight() == "bold" and texts[0].get_fontsize() == style.LARGE
        assert [text.get_color() for text in texts[1:]] == [
            style.INK, style.INK, style.ALARM, style.FAINT]
    assert places[0] == places[1] and places[0][:4] == sorted(places[0][:4])


def test_long_texts_of_the_frame_are_broken_to_fit() -> None:
    chart = Chart("Mean Completion Times of 50 kB, 20 Mbit/s " * 5, ("congestion windows " * 20,),
                  "128 trials, " * 30, "2 records without their counterpart " * 9)
    assert len(style.frame(chart, 1.0).figure.texts) > 10
    samples.check_fits(style.frame(chart, 1.0).figure)


@pytest.mark.parametrize("text", [
    "The same after an early overflow of the queue, as ns's schedule has it",
    "Improvement of 28 segments by bandwidth-delay product: 3 → 10 segments", "one", ""])
def test_each_line_of_a_broken_text_has_half_of_the_mean_length_or_more(text: str) -> None:
    broken = style.fitted(text, style.LARGE, bold=True)
    assert " ".join(broken) == text
    assert all(len(line) > len(text) / len(broken) / 2 for line in broken)


def test_a_number_stays_with_its_unit() -> None:
    broken = style.fitted("Improvement of an HTTPS fetch of 9 kB by bandwidth: 3 → 10 segments",
                          style.LARGE, bold=True)
    assert len(broken) == 2 and not broken[0].endswith("9"), broken
    assert style.fitted("12 runs · " * 9, style.SMALL)[0].endswith("runs")
    # Number and unit are parted where they are too long for one line.
    assert style.fitted("1234 packets", style.SMALL, 0.5) == ["1234", "packets"]


@pytest.mark.parametrize(("lengths", "columns"), [
    ([], 1), ([10], 1), ([20, 20, 20], 3), ([30, 30, 30], 2), ([150, 150], 1),
    ([15, 15, 10, 10, 3], 4),
    # A legend is filled column by column, so that the two long labels share one.
    ([40, 40, 5, 5, 5, 5], 4)])
def test_a_legend_has_as_many_columns_as_fit(lengths: list[int], columns: int) -> None:
    assert style.legend_columns(lengths) == columns


@pytest.mark.parametrize(("span", "step"), [(9, 1), (9.1, 2), (0.03, 0.005), (163.0, 20),
                                            (8927.0, 1000)])
def test_a_tick_step_is_a_round_number(span: float, step: float) -> None:
    assert style.tick_step(span) == pytest.approx(step)


@pytest.mark.parametrize(("value", "text"), [
    (0.0, "0"), (-0.0, "0"), (-20.0, "−20"), (1e6, "1000000"), (0.00001, "0.00001"),
    (0.1 + 0.2, "0.3")])
def test_a_tick_is_a_plain_number(value: float, text: str) -> None:
    assert style.tick_label(value) == text


def test_a_users_matplotlibrc_changes_nothing() -> None:
    import matplotlib
    with matplotlib.rc_context({"font.size": 30, "savefig.bbox": "tight", "axes.grid": True}):
        with style.settings():
            assert matplotlib.rcParams["font.size"] == 10
            assert matplotlib.rcParams["savefig.bbox"] is None
            assert not matplotlib.rcParams["axes.grid"]
