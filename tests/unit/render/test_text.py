"""The terminal and Markdown: within their width, steered by nobody, cells as their column says."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from firstflight.base.stats import Estimate
from firstflight.findings.findings import Answer, Cell, Column, Finding, Interval, Report, Rounded
from firstflight.findings.render import text as terminal
from firstflight.findings.render.markdown import chapter, escaped, gallery, page
from firstflight.findings.render.text import WIDTH, text
from firstflight.findings.render.values import written
from tests.golden import rendering
from tests.unit.render.reports import BY_RTT, FINDINGS, HOSTILE, SEEN, hostile, report


def test_nothing_else_is_wider_than_the_terminal() -> None:
    long = " ".join(["word"] * 60)
    finding = replace(FINDINGS[1], statements=tuple(
        replace(each, measured=long) for each in FINDINGS[1].statements),
        tables=(replace(BY_RTT, notes=(long, long)),))
    lines = text(report(claim=long, summary=(f"  {long}",), findings=(finding,))).splitlines()
    assert 100 < max(map(len, lines)) <= WIDTH
    assert all(line == line.rstrip() for line in lines)
    assert sum(line.startswith("  word") for line in lines) >= 4  # what goes on is indented


def test_a_word_with_a_hyphen_stays_whole() -> None:
    assert "\n    well-known\n" in text(report(summary=("x" * (WIDTH - 7) + " well-known",)))


def test_what_comes_from_files_cannot_steer_the_terminal() -> None:
    said = text(hostile())
    assert "\x1b" not in said and "\ud800" not in said
    assert SEEN in said  # a cell stays on its line


# The brief report ---------------------------------------------------------------------

@pytest.mark.parametrize("name", ["zhao2019", "map", "load", "trace", "users", "judged"])
@pytest.mark.parametrize("width", [60, 80, 110])
def test_no_line_of_words_is_wider_than_asked_and_few_lines_are_printed(name: str, width: int
                                                                        ) -> None:
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


def test_the_run_the_scenario_and_then_the_claim_answer() -> None:
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


def test_what_is_not_to_be_seen_becomes_a_space() -> None:
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


def test_the_gallery_only_counts_what_another_document_has_in_words() -> None:
    assert gallery([report()], {}, [], "pages", judged={"zhao2019"}).splitlines()[2] == (
        "Bars: 1 reproduced, 1 not reproduced; statements: 1 direction.")


def test_a_page_shows_the_scenarios_pictures_below_what_came_out() -> None:
    assert "\n\n".join(("Ten segments are faster than three.",
                        "![Ten segments are faster than three.](../x.png)", "Run `")) in page(
        report(), "../R.md", ["../x.png"])


def test_text_of_others_stays_text() -> None:
    assert escaped("a | b \\| <i> $x$ `c` [t](u) (v) 3 > 2\n") == (
        r"a \| b \\\| \<i> \$x\$ \`c\` [t]\(u) (v) 3 > 2 ")
    made = chapter(hostile())
    unescaped = re.sub(r"`[^`]*`", "", re.sub(r"\\.", "", made))
    assert "`" not in unescaped
    assert "<" not in unescaped and "$" not in unescaped and "](" not in unescaped
    assert "\x1b" not in made and "\n# d" not in made and HOSTILE not in made
    rows = [line for line in unescaped.splitlines() if line.startswith("|")]
    assert len(rows) == 3 and all(row.count("|") == 3 for row in rows)
