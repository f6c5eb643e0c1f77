"""Pages of docs/results and their index: one form for reports of all kinds; text of others stays text."""

from __future__ import annotations

import re

from firstflight.findings.findings import Finding
from firstflight.findings.render.markdown import chapter, escaped, index, page
from tests.unit.render.reports import FINDINGS, HOSTILE, hostile, report


def test_what_is_missing_is_told_in_its_place() -> None:
    """What else is in a chapter: golden/rendered/*.md, and the documents themselves."""
    assert chapter(report(findings=FINDINGS[2:])).endswith(
        "\n\n## fig2: Time by window\n\nNot available: lacks IW 42; measure with ./run.sh --iw 42.\n")


def test_the_index_names_every_scenario_and_links_to_its_page() -> None:
    said = report(opening="It saves {fig5_rtt / 20 / improvement: saved, ms / 1} ms. And more.")
    silent = report(name="silent", findings=(Finding("a", "b"),))
    table = index([said, silent], ["dukkipati2010"], "pages")
    assert table.splitlines()[2:] == [
        "| [zhao2019](pages/zhao2019.md) | It saves 6.9 ms. |"
        " bars: 1 reproduced, 1 not reproduced; statements: 1 direction |",
        "| [silent](pages/silent.md) | Ten segments are faster than three. |  |",
        "| dukkipati2010 | not measured: `./run.sh dukkipati2010` | |"]


def test_a_page_shows_the_scenarios_pictures_below_what_came_out() -> None:
    assert "\n\n".join(("Ten segments are faster than three.",
                        "![Ten segments are faster than three.](../x.png)", "Run `")) in page(
        report(), "../R.md", ["../x.png"])


def test_a_run_that_says_little_of_itself_is_told_so() -> None:
    assert "\n\nRun `a b`, finished at an unknown time, engine None, kernel unknown; " in chapter(
        report(facts={}, path="a`b"))
    told = chapter(report(facts={"engine": "host", "kernel": "6.1",
                                 "project": {"commit": "0123456789abcdef"}}))
    assert ", engine host, kernel 6.1, commit 0123456789ab; " in told


def test_the_scenarios_own_words_have_the_numbers_that_were_found() -> None:
    assert "\n\nIt saves 6.9 ms.\n\n" in chapter(report(
        opening="It saves {fig5_rtt / 20 / improvement: saved, ms / 1} ms."))
    assert ("\n\nThe result cannot be rendered: {fig6}: there is no such finding.\n\n"
            in chapter(report(opening="It saves {fig6}.")))


def test_rows_that_are_left_out_are_counted() -> None:
    table = FINDINGS[0].tables[0].first(1)
    text = chapter(report(findings=(Finding("a", "b", (table,)),)))
    assert "\n\nThe first 1 of 2 rows.\n\naveraged over bandwidth\n" in text


def test_text_of_others_stays_text() -> None:
    assert escaped("a | b \\| <i> $x$ `c` [t](u) (v) 3 > 2\n") == (
        r"a \| b \\\| \<i> \$x\$ \`c\` [t]\(u) (v) 3 > 2 ")
    text = chapter(hostile())
    unescaped = re.sub(r"`[^`]*`", "", re.sub(r"\\.", "", text))
    assert "`" not in unescaped
    assert "<" not in unescaped and "$" not in unescaped and "](" not in unescaped
    assert "\x1b" not in text and "\n# d" not in text and HOSTILE not in text
    rows = [line for line in unescaped.splitlines() if line.startswith("|")]
    assert len(rows) == 3 and all(row.count("|") == 3 for row in rows)
