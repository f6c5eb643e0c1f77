"""A report as a page, on the terminal and in Markdown: all that it has is shown, and escaped."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from firstflight.base.errors import FirstFlightError
from firstflight.base.stats import Estimate
from firstflight.findings.charts import PacketsChart
from firstflight.findings.findings import Answer, Cell, Column, Finding, Interval, Report, Rounded
from firstflight.findings.render import markdown, page as pages, text as terminal
from firstflight.findings.render.markdown import chapter, escaped, gallery
from firstflight.findings.render.values import written
from tests.golden import rendering, stored_fetches
from tests.unit.render.reports import BY_RTT, FINDINGS, HOSTILE, SEEN, TIMELINE, hostile, report

PIXEL = b"\x89PNG not looked into"
VOID = {"meta", "img", "br", "input", "link", "hr"}


class Outline(HTMLParser):
    """The elements of a page; raises where they are not nested as they should be."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attributes}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attributes}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("script", "style"):
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    def of(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]


DRAWINGS = {"fig5_rtt": PIXEL, "fig5_rtt_cdf": PIXEL, "all_panels": PIXEL}


@pytest.fixture(scope="module")
def text() -> str:
    return pages.page(report(), DRAWINGS)


@pytest.fixture(scope="module")
def shown(text: str) -> Outline:
    return Outline(text)


# Structure ---------------------------------------------------------------------------

def test_the_first_figure_comes_before_the_reasons_and_tables_last(text: str) -> None:
    assert (text.index('<div class="answer">') < text.index("<img") < text.index('id="findings"')
            < text.index('id="figures"') < text.index("<table"))


def test_the_page_of_a_part_of_a_scenario_says_so_and_answers_for_the_part() -> None:
    """As on the terminal: the bar of the part, why it is so, and a table with a row a cell."""
    records = [record for record in stored_fetches.stored("zhao2019") if record.trial.rtt_ms == 200]
    part = stored_fetches.report("zhao2019", records, whole=False, partial=True)
    text = pages.page(part, {"fig5_rtt": PIXEL}).replace("\xa0", " ")
    answer = text[text.index('<div class="answer">'):text.index("<nav")]
    assert "10 instead of 3 segments save 177 ms" in answer and "A bar is one bucket" in answer
    assert "<p>10 instead of 3 segments save" not in text, "it stands in the answer"
    assert "zhao2019, a part of it" in text
    assert "Every cell" in text and "Every trial" not in text
    published = next(table for finding in part.findings for table in finding.tables
                     if table.title == "Every cell").column("total", "published")
    assert len(published) == len(records) and all(published)


def test_the_answer_of_a_page_has_its_command() -> None:
    users = rendering.REPORTS["users"]()
    assert f"<pre>{users.answer.command}</pre>" in pages.page(users, {})


def test_a_page_has_its_claim_unless_that_is_the_title_or_a_part_is_shown() -> None:
    users = rendering.REPORTS["users"]()
    assert 'class="claim"' in pages.page(replace(users, claim="Another."), {})
    assert 'class="claim"' not in pages.page(replace(users, claim=users.title), {})
    part = replace(users, claim="Another.", facts={**users.facts, "partial": True})
    assert 'class="claim"' not in pages.page(part, {})  # a part does not test it


# On the wire -------------------------------------------------------------------------

def test_the_packets_of_kept_captures_are_shown_once(text: str, shown: Outline) -> None:
    not_drawn = re.findall(r"Not drawn; \./plot\.py --run results/\S+ draws it\.", shown.text)
    assert len(not_drawn) == 2  # the mix, and the packets
    assert "IW3: RTT 20 ms: 3 data segments, 1 retransmitted." in shown.text
    drawn = Outline(pages.page(report(), {"on_the_wire": PIXEL}))
    assert [image["alt"] for image in drawn.of("img")] == ["On the wire"]


def test_packets_that_a_finding_draws_are_not_shown_again() -> None:
    finding = replace(FINDINGS[0], chart=PacketsChart("", (), timelines=(TIMELINE,)))
    with_packets = report(findings=(finding,))
    assert with_packets.packets is None
    assert 'id="wire"' not in pages.page(with_packets, {})


# What it must not do -----------------------------------------------------------------

def test_nothing_is_loaded_from_outside(text: str, shown: Outline) -> None:
    for tag, attributes in shown.elements:
        assert tag not in ("link", "iframe", "object", "embed", "base")
        for name in ("src", "href", "srcset", "data", "action", "poster"):
            if name in attributes:
                assert attributes[name].startswith(("#", "data:image/png;base64,")) \
                    or attributes[name] in ("trials.csv", "run.json", pages.GLOSSARY), attributes
        if tag == "script":
            assert "src" not in attributes
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|https?:", text)
    policy = next(meta for meta in shown.of("meta") if "http-equiv" in meta)
    assert "default-src 'none'" in policy["content"]


def test_each_drawn_picture_is_shown_with_its_sentence_as_its_text(shown: Outline) -> None:
    images = shown.of("img")
    assert [image["alt"] for image in images] == [
        "10 instead of 3 segments save 6.9 ms.", "all panels", "fig5 rtt cdf"]
    assert all(image["src"].startswith("data:image/png;base64,") for image in images)
    missing = Outline(pages.page(report(findings=FINDINGS[2:]), {"fig2": PIXEL}))
    assert not missing.of("img")


def test_long_tables_scroll() -> None:
    trials = report().trials
    assert trials is not None
    for rows, scrolls in ((24, False), (25, True)):
        long = report(trials=replace(trials, rows=trials.rows[:1] * rows), findings=())
        classes = [div.get("class") for div in Outline(pages.page(long, {})).of("div")]
        assert ("scroll long" in classes) is scrolls


def test_the_same_report_gives_the_same_bytes(text: str) -> None:
    assert pages.page(report(), dict(reversed(DRAWINGS.items()))) == text


def test_hostile_texts_from_files_are_escaped(shown: Outline) -> None:
    source = pages.page(hostile(), {"fig": PIXEL, "<b>": PIXEL})
    outline = Outline(source)
    assert len(outline.of("script")) == 1 and len(outline.of("img")) == 2
    assert {tag for tag, _ in outline.elements} <= {tag for tag, _ in shown.elements}
    assert not any("onerror" in attributes for _, attributes in outline.elements)
    assert outline.text.count(" ".join(SEEN.split())) >= 40
    assert outline.of("img")[0]["alt"] == SEEN
    assert not re.search("[\x00-\x09\x0b-\x1f\ud800-\udfff]", source)


# The file ----------------------------------------------------------------------------

def test_the_page_is_written_whole(tmp_path: Path) -> None:
    path = pages.write(tmp_path, hostile(), {})
    assert path == tmp_path / "report.html" and list(tmp_path.iterdir()) == [path]
    assert Outline(path.read_text(encoding="utf-8")).of("h1")


def test_a_page_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "report.html").mkdir()
    with pytest.raises(FirstFlightError, match="report.html: cannot be written"):
        pages.write(tmp_path, report(), {})


# The terminal --------------------------------------------------------------------------

def test_long_words_and_tables_stay_within_the_terminals_width() -> None:
    long = " ".join(["word"] * 60)
    finding = replace(FINDINGS[1], statements=tuple(
        replace(statement, measured=long) for statement in FINDINGS[1].statements),
        tables=(replace(BY_RTT, notes=(long, long)),))
    lines = terminal.text(
        report(claim=long, summary=(f"  {long}",), findings=(finding,))).splitlines()
    assert 100 < max(map(len, lines)) <= terminal.WIDTH
    assert all(line == line.rstrip() for line in lines)
    assert sum(line.startswith("  word") for line in lines) >= 4  # what goes on is indented


def test_a_word_with_a_hyphen_stays_whole() -> None:
    assert "\n    well-known\n" in terminal.text(
        report(summary=("x" * (terminal.WIDTH - 7) + " well-known",)))


def test_hostile_texts_from_files_do_not_steer_the_terminal() -> None:
    printed = terminal.text(hostile())
    assert "\x1b" not in printed and "\ud800" not in printed
    assert SEEN in printed  # a cell stays on its line


# The brief report ---------------------------------------------------------------------

@pytest.mark.parametrize("name", ["zhao2019", "map", "load", "trace", "users", "judged"])
@pytest.mark.parametrize("width", [60, 80, 110])
def test_the_brief_report_has_few_lines_within_the_width(name: str, width: int) -> None:
    """Its command is on one line, however long, and so is a rule."""
    stored_run = rendering.REPORTS[name]()
    lines = [line for line in terminal.brief(stored_run, width).splitlines()
             if not stored_run.answer.command or stored_run.answer.command not in line]
    assert len(lines) <= 40 * 110 // width
    assert all(len(line) <= width for line in lines if not line.startswith(terminal.INDENT + "─"))


def test_a_command_is_on_one_line() -> None:
    """However narrow the terminal is: it is copied."""
    stored_run = rendering.REPORTS["users"]()
    assert stored_run.answer.command.startswith("ip route change ")
    assert f"\n{2 * terminal.INDENT}{stored_run.answer.command}\n" in terminal.brief(stored_run, 60)


def test_a_report_without_an_answer_has_its_opening_and_else_its_claim() -> None:
    stored_run: Report = rendering.REPORTS["zhao2019"]()
    own = replace(stored_run, answer=Answer("The answer."), opening="Not said.")
    assert terminal.answer_of(own).sentence == "The answer."
    words = replace(stored_run, answer=Answer(),
                    opening="Ten save {fig5_rtt / 100 / improved: ms} ms.")
    assert terminal.answer_of(words).sentence == "Ten save 78.9 ms."
    lacking = replace(words, opening="{nothing / 1 / 2}", findings=())
    assert terminal.answer_of(lacking).sentence == f"Claim: {stored_run.claim}"


# Cells --------------------------------------------------------------------------------

PLAIN, SIGNED, WHOLE = Column("saved"), Column("off", signed=True), Column("mean", digits=0)


@pytest.mark.parametrize("cell, column, text", [
    (None, PLAIN, "–"), ("", PLAIN, ""), ("36 → 10", PLAIN, "36 → 10"), ("−1", PLAIN, "−1"),
    (2.25, PLAIN, "2.2"), (-12.34, PLAIN, "−12.3"), (-0.04, PLAIN, "0.0"),
    (-0.04, SIGNED, "+0.0"), (1.5, SIGNED, "+1.5"), (-1.5, SIGNED, "−1.5"),
    (431, PLAIN, "431"), (-3, PLAIN, "−3"), (3, SIGNED, "+3"), (True, PLAIN, "true"),
    (Estimate(1205.4, (1202.0, 1208.2), 5), WHOLE, "1205 ± 3"),
    (Estimate(-33.81, (-51.4, -16.0), 2), PLAIN, "−33.8 ± 17.7"),
    (Estimate(41.66, (40.66, 42.66), 2), SIGNED, "+41.7 ± 1.0"),
    (Estimate(586.2), PLAIN, "586.2"), (Interval(-1.34, 0.7), PLAIN, "−1.3 … 0.7"),
    (Rounded(0.0031, 3), WHOLE, "0.003"), (Rounded(-0.5, 2, signed=True), PLAIN, "−0.50"),
    (Rounded(Estimate(0.1214, (0.0, 0.2)), 3), WHOLE, "0.121 ± 0.100")])
def test_a_cell_is_written_as_its_column_says(cell: Cell, column: Column, text: str) -> None:
    assert written(cell, column) == text


def test_a_cells_line_break_becomes_a_space() -> None:
    assert written("two\nlines", PLAIN) == "two lines"


# Markdown -----------------------------------------------------------------------------

def test_the_gallery_names_every_scenario_and_links_to_its_page() -> None:
    said = report(opening="It saves {fig5_rtt / 20 / improvement: saved, ms / 1} ms. And more.")
    silent = report(name="silent", findings=(Finding("a", "b"),))
    assert gallery([said, silent], {"zhao2019": ["g/x.png", "g/y.png"]}, ["dukkipati2010"],
                   "pages", judged={"silent"}) == (
        "## zhao2019\n\nIt saves 6.9 ms."
        " Bars: 1 reproduced, 1 not reproduced; statements: 1 direction.\n\n"
        "[![zhao2019](g/x.png)](pages/zhao2019.md)\n\n[![zhao2019](g/y.png)](pages/zhao2019.md)"
        "\n\n## silent\n\nTen segments are faster than three.\n\n[Its page](pages/silent.md)"
        "\n\n## dukkipati2010\n\nNot measured: `./run.sh dukkipati2010`")


def test_a_scenario_that_another_document_describes_has_only_counts_in_the_gallery() -> None:
    assert gallery([report()], {}, [], "pages", judged={"zhao2019"}).splitlines()[2] == (
        "Bars: 1 reproduced, 1 not reproduced; statements: 1 direction.")


def test_a_page_shows_the_scenarios_pictures_below_what_came_out() -> None:
    made = markdown.page(report(), "../R.md", ["../x.png"])
    assert "\n\n".join(("Ten segments are faster than three.",
                        "![Ten segments are faster than three.](../x.png)", "Run `")) in made


def test_markup_in_text_from_files_is_escaped_in_markdown() -> None:
    assert escaped("a | b \\| <i> $x$ `c` [t](u) (v) 3 > 2\n") == (
        r"a \| b \\\| \<i> \$x\$ \`c\` [t]\(u) (v) 3 > 2 ")
    made = chapter(hostile())
    unescaped = re.sub(r"`[^`]*`", "", re.sub(r"\\.", "", made))
    assert "`" not in unescaped
    assert "<" not in unescaped and "$" not in unescaped and "](" not in unescaped
    assert "\x1b" not in made and "\n# d" not in made and HOSTILE not in made
    rows = [line for line in unescaped.splitlines() if line.startswith("|")]
    assert len(rows) == 3 and all(row.count("|") == 3 for row in rows)
