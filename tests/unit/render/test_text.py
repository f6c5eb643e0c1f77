"""The terminal: within its width, and not steered. What it shows: golden/rendered/*.txt."""

from __future__ import annotations

from dataclasses import replace

from firstflight.findings.render.text import WIDTH, text
from tests.unit.render.reports import BY_RTT, FINDINGS, SEEN, hostile, report


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
