"""The page of a run: it stands alone, escapes what it is given, and hides nothing."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from firstflight.base.errors import FirstFlightError
from firstflight.findings.charts import PacketsChart
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


def test_pictures_are_of_what_there_is_and_named_by_their_sentence(shown: Outline) -> None:
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
        classes = [each.get("class") for each in Outline(pages.page(long, {})).of("div")]
        assert ("scroll long" in classes) is scrolls


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
