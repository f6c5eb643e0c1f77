"""The page of a run: it stands alone, escapes what it is given, and hides nothing."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from firstflight.base.errors import FirstFlightError
from firstflight.findings.charts import PacketsChart
from firstflight.findings.findings import Finding, Statement
from firstflight.findings.render import page, page as pages
from tests.golden import rendering, stored_fetches
from tests.unit.render.reports import FINDINGS, SEEN, TIMELINE, hostile, report

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

def test_findings_come_first_and_provenance_last(shown: Outline) -> None:
    ids = [attributes["id"] for attributes in shown.of("h2")]
    assert ids == ["findings", "figures", "tables", "trials", "verdicts", "wire", "provenance"]
    links = [attributes["href"] for attributes in shown.of("a")]
    assert links[:7] == [f"#{each}" for each in ids]
    assert len(shown.of("h1")) == 1 and shown.of("html")[0]["lang"] == "en-GB"


def test_the_first_figure_comes_before_the_reasons_and_tables_last(text: str) -> None:
    assert (text.index('<div class="answer">') < text.index("<img") < text.index('id="findings"')
            < text.index('id="figures"') < text.index("<table"))


def test_the_page_of_a_part_says_so_and_has_its_answer() -> None:
    """As the terminal: what its bar shows, and why; each cell stands once."""
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


def test_the_answer_has_its_command_and_the_claim_stands_once() -> None:
    users = rendering.REPORTS["users"]()
    text = page.page(users, {})
    assert f"<pre>{users.answer.command}</pre>" in text
    assert 'class="claim"' in page.page(replace(users, claim="Another."), {})
    assert 'class="claim"' not in page.page(replace(users, claim=users.title), {})


def test_what_a_report_does_not_have_is_not_on_its_page() -> None:
    bare = Outline(pages.page(report(trials=None, checks=None, failures=None, causes=None,
                                     settings=None, timelines=(), sentences=(), findings=()), {}))
    ids = [attributes["id"] for attributes in bare.of("h2")]
    assert ids == ["findings", "verdicts", "provenance"]
    assert not bare.of("table") and not bare.of("details")
    assert "No trial failed." in bare.text and "Not in this run" not in bare.text


def test_a_finding_has_its_words_drawings_and_table(shown: Outline) -> None:
    images = shown.of("img")
    assert [image["alt"] for image in images] == [
        "10 instead of 3 segments save 6.9 ms.", "all panels", "fig5 rtt cdf"]
    assert all(image["src"].startswith("data:image/png;base64,") for image in images)
    for said in ("6.9 ms.", "10 instead of 3 segments", "−224.5", "5.0 … 8.5", "438 ± 24",
                 "averaged over bandwidth", "“Faster.” Here: the mean falls", "In no cell."):
        assert said in shown.text.replace("\u00a0", " ")
    words = [attributes["class"] for attributes in shown.of("span")
             if attributes.get("class", "").startswith("word")]
    assert words == ["word reproduced", "word not-reproduced", "word direction"]


def test_a_result_that_too_few_data_leave_open_says_so_in_a_statement() -> None:
    told = Outline(pages.page(report(findings=(replace(FINDINGS[0], statements=(
        Statement("Faster.", "4 ± 6 ms", "undecided"),)),)), DRAWINGS))
    assert "4 ± 6 ms undecided (too few data)" in told.text.replace("\u00a0", " ")
    assert "word undecided" in [each.get("class") for each in told.of("span")]


def test_what_has_no_chart_is_not_drawn() -> None:
    without = pages.page(report(findings=(Finding("cells", "What was asked"),), timelines=()), {})
    assert "Not drawn" not in without


def test_what_is_missing_is_named_and_not_drawn() -> None:
    gone = replace(FINDINGS[2], statements=(Statement("IW 42 is slow.", "no run measured it.",
                                                      "not measured"),))
    missing = Outline(pages.page(report(findings=(gone,)), {"fig2": PIXEL}))
    assert not missing.of("img")
    assert ("Not in this run Time by window: lacks IW 42; measure with ./run.sh --iw 42 “IW 42 is"
            " slow.” Here: no run measured it. not measured") in missing.text


def test_tables_have_headers_and_names(shown: Outline) -> None:
    assert len(shown.of("caption")) == len(shown.of("table")) == 7
    assert all(attributes.get("scope") in ("col", "colgroup", "row")
               for attributes in shown.of("th"))
    spans = [attributes["colspan"] for attributes in shown.of("th")
             if attributes["scope"] == "colgroup"]
    assert spans == ["2", "2", "1", "1"]


def test_a_table_without_a_title_is_named_after_its_finding() -> None:
    found = (replace(FINDINGS[1], tables=(replace(FINDINGS[1].tables[0], title=""),)),)
    assert 'aria-label="A mix of windows"' in pages.page(report(findings=found), {})


def test_trials_and_failures_can_be_sorted_and_filtered(shown: Outline) -> None:
    assert [attributes["class"] for attributes in shown.of("table")] == [
        "stick", "stick", "sortable", "", "sortable wrap", "wrap", ""]
    assert sum("data-filter" in attributes for attributes in shown.of("th")) == 1
    assert len(shown.of("script")) == 1


def test_long_tables_scroll_and_rows_that_are_left_out_are_named(shown: Outline) -> None:
    assert "The first 2 of 128 rows; all of it is in zhao2019/run-1/trials.csv ." in shown.text
    trials = report().trials
    assert trials is not None
    for rows, scrolls in ((24, False), (25, True)):
        long = report(trials=replace(trials, rows=trials.rows[:1] * rows), findings=())
        classes = [each.get("class") for each in Outline(pages.page(long, {})).of("div")]
        assert ("scroll long" in classes) is scrolls


def test_every_failure_has_its_reason(shown: Outline) -> None:
    assert "rtt20-iw3 curl 28: timed out" in shown.text and "No trial failed" not in shown.text
    assert "125 of 128 trials verified." in shown.text and "tail loss probe 2" in shown.text


# On the wire -------------------------------------------------------------------------

def test_the_packets_of_kept_captures_are_shown_once(text: str, shown: Outline) -> None:
    assert shown.text.count("Not drawn; ./plot.py draws it.") == 2  # of the mix, and of packets
    assert "IW3: RTT 20 ms: 3 data segments, 1 retransmitted." in shown.text
    drawn = Outline(page.page(report(), {"on_the_wire": PIXEL}))
    assert [image["alt"] for image in drawn.of("img")] == ["On the wire"]
    own = replace(FINDINGS[0], chart=PacketsChart("", (), timelines=(TIMELINE,)))
    assert report(findings=(own,)).packets is None and 'id="wire"' not in page.page(
        report(findings=(own,)), {})


# What it must not do -----------------------------------------------------------------

def test_nothing_is_loaded_from_outside(text: str, shown: Outline) -> None:
    for tag, attributes in shown.elements:
        assert tag not in ("link", "iframe", "object", "embed", "base")
        for name in ("src", "href", "srcset", "data", "action", "poster"):
            if name in attributes:
                assert attributes[name].startswith(("#", "data:image/png;base64,")) \
                    or attributes[name] in ("trials.csv", "run.json"), attributes
        if tag == "script":
            assert "src" not in attributes
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|https?:", text)
    policy = next(each for each in shown.of("meta") if "http-equiv" in each)
    assert "default-src 'none'" in policy["content"]


def test_the_same_report_gives_the_same_bytes(text: str) -> None:
    assert pages.page(report(), dict(reversed(DRAWINGS.items()))) == text


def test_what_comes_from_files_is_escaped(shown: Outline) -> None:
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


def test_a_page_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "report.html").mkdir()
    with pytest.raises(FirstFlightError, match="report.html: cannot be written"):
        pages.write(tmp_path, report(), {})
