"""The terminal and Markdown: within their width, steered by nobody, cells as their column says."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from firstflight.base.stats import Estimate
from firstflight.findings.findings import (Answer, Cell, Column, Finding, Interval, Report, Rounded,
                                           Statement, Table)
from firstflight.findings.render import text as terminal
from firstflight.findings.render.markdown import chapter, escaped, index, page
from firstflight.findings.render.text import WIDTH, text
from firstflight.findings.render.values import counted, counted_for_readers, written
from tests.golden import rendering
from tests.unit.render.reports import BY_RTT, FINDINGS, HOSTILE, SEEN, hostile, report


def test_bars_and_statements_are_counted_on_a_line_each() -> None:
    assert text(report()).endswith("""
bars: 1 of 2 reproduced, 0 undecided (too few data), 0 direction, 1 not reproduced
statements: 1 direction
""")


def test_nothing_else_is_wider_than_the_terminal() -> None:
    long = " ".join(["word"] * 60)
    finding = replace(FINDINGS[1], statements=tuple(
        replace(each, found=long) for each in FINDINGS[1].statements),
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
    words = replace(stored_run, answer=Answer(), opening="Ten save {fig5_rtt / 100 / improved: ms} ms.")
    assert terminal.answer_of(words).sentence == "Ten save 78.9 ms."
    lacking = replace(words, opening="{nothing / 1 / 2}", findings=())
    assert terminal.answer_of(lacking).sentence == f"Claim: {stored_run.claim}"


def test_a_table_has_its_rows_and_how_many_are_left_out() -> None:
    table = Table("", (Column("RTT", "ms"),), ((20,), (50,)), left_out=3)
    stored_run: Report = replace(rendering.REPORTS["zhao2019"](), answer=Answer("So.", table))
    assert "\n  RTT\n   ms\n   20\n   50\n  The first 2 of 5 rows.\n" in terminal.brief(stored_run)


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


def test_words_are_counted_for_bars_and_for_statements() -> None:
    findings = (Finding("a", "", bars={"reproduced": 1, "not reproduced": 2}),
                Finding("b", "", bars={"reproduced": 3}, statements=(
                    Statement("x", "y", "not measured"), Statement("x", "y", "reproduced"),
                    Statement("x", "y"))))
    assert counted(findings) == ["bars: 4 of 6 reproduced, 0 undecided (too few data),"
                                 " 0 direction, 2 not reproduced",
                                 "statements: 1 reproduced, 1 not measured"]
    assert counted((Finding("a", ""),)) == []


def test_a_reader_is_told_what_a_result_means_where_it_is_met_first() -> None:
    findings = (Finding("a", "", bars={"reproduced": 1, "undecided": 0, "direction": 21}),
                Finding("b", "", bars={"direction": 7, "undecided": 13}, held_out=True),
                Finding("c", "", statements=(Statement("x", "y", "not reproduced"),)))
    assert counted_for_readers(findings) == [
        "Of 22 published bars: 21 direction (only the sign agrees), 1 reproduced (within the"
        " tolerance, with all of our 95 % interval).",
        "Of 1 published statement: 1 not reproduced.",
        "Of 20 bars held out (no parameter was chosen by them): 13 undecided (the interval crosses"
        " an end of the tolerance: more data would decide), 7 direction."]


def test_what_no_parameter_was_chosen_by_is_counted_apart() -> None:
    findings = (Finding("a", "", bars={"reproduced": 3, "undecided": 1}),
                Finding("b", "", bars={"reproduced": 1, "direction": 6}, held_out=True),
                Finding("c", "", statements=(Statement("x", "y", "undecided"),)))
    assert counted(findings) == [
        "bars: 3 of 4 reproduced, 1 undecided (too few data), 0 direction, 0 not reproduced",
        "bars held out: 1 of 7 reproduced, 0 undecided (too few data), 6 direction,"
        " 0 not reproduced", "statements: 1 undecided (too few data)"]


# Markdown -----------------------------------------------------------------------------

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
    made = chapter(report(findings=(Finding("a", "b", (table,)),)))
    assert "\n\nThe first 1 of 2 rows.\n\naveraged over bandwidth\n" in made


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
