"""report.html in Chromium loads without errors, fits a phone, and can be used by keyboard.

Chromium takes 300 MB, so ./test.sh does not install it. These tests are skipped without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from firstflight.findings.render import page
from tests.golden import stored_fetches, stored_load, stored_questions, stored_trace
from tests.programs import browser
from tests.programs.browser import Browser

pytestmark = pytest.mark.skipif(browser.PROGRAM is None,
                                reason="no Chromium: apt-get install chromium (300 MB)")
PHONE, DESK = 360, 1280  # the width of each in CSS pixels
# A PNG of one pixel.
PIXEL = bytes.fromhex("89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
                      "0000000c4944415408d763f8ffff3f0005fe02fea735d1ba0000000049454e44ae426082")
REPORTS = {"fetches": lambda: stored_fetches.whole_report("zhao2019"),
           "load": stored_load.report, "trace": stored_trace.warm,
           "map": lambda: stored_questions.question("map"), "users": stored_questions.users}
# JavaScript for the first table that has buttons and several rows; then for how it is sorted, and
# the texts of the column that it is sorted by, or else of its first one.
TABLE = "[...document.querySelectorAll('table.sortable')].find(t => t.tBodies[0].rows.length > 2)"
COLUMN = f"""(() => {{ const table = {TABLE};
  const heads = [...table.querySelectorAll('tr.names th')];
  const place = heads.findIndex(head => head.hasAttribute('aria-sort'));
  const rows = [...table.tBodies[0].rows];
  return [place < 0 ? '' : heads[place].getAttribute('aria-sort'),
          rows.map(row => row.cells[Math.max(place, 0)].textContent)]; }})()"""


@pytest.fixture(scope="module")
def opened() -> Iterator[Browser]:
    browser_of_all = Browser()
    yield browser_of_all
    browser_of_all.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The page of each of REPORTS, with one-pixel figures."""
    folder = tmp_path_factory.mktemp("pages")
    written = {}
    for name, make in REPORTS.items():
        report = make()
        (folder / name).mkdir()
        pictures = {finding.name: PIXEL for finding in report.findings if finding.chart}
        written[name] = page.write(folder / name, report, pictures)
    return written


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("wide", [PHONE, DESK])
def test_a_page_loads_without_complaints_and_without_scrolling_sideways(
        opened: Browser, pages: dict[str, Path], name: str, wide: int) -> None:
    opened.said.clear()
    opened.open(pages[name], wide)
    assert opened.value("innerWidth") == wide
    assert opened.value("document.documentElement.scrollWidth") <= wide
    assert opened.value("document.images.length") > 0
    assert opened.value("[...document.images].every(each => each.naturalWidth && each.alt)")
    assert opened.said == []


def test_a_page_is_dark_where_the_reader_prefers_it(opened: Browser,
                                                    pages: dict[str, Path]) -> None:
    brightness = """(() => { const of = name => getComputedStyle(document.body)[name].match(/\\d+/g)
        .slice(0, 3).map(Number).reduce((sum, each) => sum + each) / 3;
        return [of('backgroundColor'), of('color')]; })()"""
    opened.open(pages["fetches"], DESK)
    ground, ink = opened.value(brightness)
    assert ground > 240 and ink < 60
    opened.open(pages["fetches"], DESK, dark=True)
    ground, ink = opened.value(brightness)
    assert ground < 60 and ink > 200


def test_a_table_can_be_sorted_by_keyboard(opened: Browser, pages: dict[str, Path]) -> None:
    opened.open(pages["fetches"], DESK)
    before = opened.value(COLUMN)[1]
    buttons = f"{TABLE}.querySelectorAll('thead [role=button]')"
    # As if the reader had come to the first head; the Tab key goes on from there.
    opened.value(f"{buttons}[0].focus()")
    opened.press("Tab")
    assert opened.value(f"document.activeElement === {buttons}[1]"), "each head can be reached"
    opened.value(f"{buttons}[0].focus()")
    for key, order in (("Enter", "ascending"), (" ", "descending")):
        opened.press(key)
        sort, cells = opened.value(COLUMN)
        assert sort == order and sorted(cells) == sorted(before)
        numbers = [float(cell.replace("−", "-").lstrip(">")) for cell in cells]
        assert numbers == sorted(numbers, reverse=order == "descending")


def test_every_link_and_control_is_reached_by_tab(opened: Browser, pages: dict[str, Path]) -> None:
    opened.open(pages["fetches"], DESK)
    wanted = opened.value("document.querySelectorAll('a[href], [tabindex=\"0\"], select, button,"
                          " summary').length")
    opened.value("window.reached = new Set(); addEventListener('focusin', event =>"
                 " window.reached.add(event.target)); 0")
    for _ in range(min(wanted, 25)):
        opened.press("Tab")
    assert opened.value("window.reached.size") == min(wanted, 25)
    assert opened.value("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_a_page_that_is_too_wide_or_has_an_error_is_found(opened: Browser, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text("<body style='width:2000px'><p>wide</p><script>nowhere()</script>")
    opened.said.clear()
    opened.open(bad, PHONE)
    assert opened.value("document.documentElement.scrollWidth") > PHONE
    assert "nowhere is not defined" in "".join(opened.said)
