"""The brief report of a run: the answer, what counts against it, nothing wider than asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from firstflight.findings.findings import Answer, Column, Report, Table
from firstflight.findings.render import text
from tests.golden import rendering


@pytest.mark.parametrize("name", ["zhao2019", "map", "load", "trace", "users", "judged"])
@pytest.mark.parametrize("width", [60, 80, 110])
def test_no_line_of_words_is_wider_than_asked_and_few_lines_are_printed(name: str, width: int
                                                                        ) -> None:
    report = rendering.REPORTS[name]()
    lines = [line for line in text.brief(report, width).splitlines()
             if not report.answer.command or report.answer.command not in line]
    assert len(lines) <= 40 * 110 // width
    assert all(len(line) <= width for line in lines if not line.startswith(text.INDENT + "─"))


def test_a_command_is_on_one_line() -> None:
    """However narrow the terminal is: it is copied."""
    report = rendering.REPORTS["users"]()
    assert report.answer.command.startswith("ip route change ")
    assert f"\n{2 * text.INDENT}{report.answer.command}\n" in text.brief(report, 60)


def test_the_run_the_scenario_and_then_the_claim_answer() -> None:
    report: Report = rendering.REPORTS["zhao2019"]()
    own = replace(report, answer=Answer("The answer."), opening="Not said.")
    assert text.answer_of(own).sentence == "The answer."
    words = replace(report, answer=Answer(), opening="Ten save {fig5_rtt / 100 / improved: ms} ms.")
    assert text.answer_of(words).sentence == "Ten save 78.9 ms."
    lacking = replace(words, opening="{nothing / 1 / 2}", findings=())
    assert text.answer_of(lacking).sentence == f"Claim: {report.claim}"


def test_a_table_has_its_rows_and_how_many_are_left_out() -> None:
    table = Table("", (Column("RTT", "ms"),), ((20,), (50,)), left_out=3)
    report: Report = replace(rendering.REPORTS["zhao2019"](), answer=Answer("So.", table))
    assert "\n  RTT\n   ms\n   20\n   50\n  The first 2 of 5 rows.\n" in text.brief(report)
