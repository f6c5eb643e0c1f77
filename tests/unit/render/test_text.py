"""The terminal: aligned, within its width, honest about what is left out."""

from __future__ import annotations

from dataclasses import replace

from findings.findings import Column, Finding, Table
from findings.render.text import WIDTH, text
from tests.unit.render.reports import BY_RTT, FINDINGS, SEEN, hostile, report


def of_table(table: Table) -> list[str]:
    """The lines of a table alone."""
    said = text(report(claim="", summary=(), findings=(Finding("a", "b", (table,)),)))
    return said.splitlines()[3:]


def test_a_report_as_it_is_printed() -> None:
    assert text(report()) == """\
zhao2019: Ten segments are faster than three.

125 of 128 trials verified on the wire; left out: 3 failed verdicts

fig5_rtt: Improvement by RTT
     ─── mean ───  ──── improvement ────
RTT    IW3   IW10   saved  95 % interval  test          word
 ms     ms     ms      ms             ms
 20  129.5  122.6    +6.9      5.0 … 8.5  2.8 ≤ 2.9 ms  reproduced
>20   58.1  282.6  −224.5              –                not reproduced
averaged over bandwidth
1 of 2 reproduced, 0 undecided (too few data), 0 direction, 1 not reproduced

mix: A mix of windows

The runs
         n      mean
                  ms
IW 3   431  438 ± 24
IW 10  430       586

“Faster.” Here: the mean falls from 438 ± 24 to 412 ms. → direction

Where is the mean longer? In no cell.

fig2: Time by window
no table: lacks IW 42; measure with ./run.sh --iw 42

bars: 1 of 2 reproduced, 0 undecided (too few data), 0 direction, 1 not reproduced
statements: 1 direction
"""


def test_a_part_of_a_scenario_does_not_speak_for_its_claim() -> None:
    part = text(report(facts={"partial": True}, findings=()))
    assert part == "125 of 128 trials verified on the wire; left out: 3 failed verdicts\n"


def test_heads_take_the_lines_that_they_need() -> None:
    assert of_table(Table("", (Column("RTT", "ms"), Column("why", is_text=True)),
                          ((5, "a"), (5000, "bcd")))) == [
        " RTT  why", "  ms", "   5  a", "5000  bcd"]
    assert of_table(Table("", (Column("n"),), ((7,),))) == ["n", "7"]
    assert of_table(Table("", (Column("n"), Column("x", group="wider than it")), ((7, 8),))) == [
        "   wider than it", "n              x", "7              8"]


def test_columns_go_by_rank_until_the_table_fits() -> None:
    columns = (Column("kept"), Column("second", rank=2), Column("first", rank=1),
               Column("first too", rank=1), Column("text", is_text=True))

    def heads(width: int) -> list[str]:
        return of_table(Table("", columns, ((1, 2, 3, 4, "x" * width),)))[0].split()

    assert heads(WIDTH - 40) == ["kept", "second", "first", "first", "too", "text"]
    assert heads(WIDTH - 15) == ["kept", "second", "text"]
    assert heads(WIDTH - 8) == heads(WIDTH + 8) == ["kept", "text"]
    alike = tuple(replace(column, rank=1) for column in columns)
    assert len(of_table(Table("", alike, ((1, 2, 3, 4, "x" * WIDTH),)))) == 2


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


def test_rows_that_are_left_out_are_counted() -> None:
    lines = of_table(replace(BY_RTT.first(1), title=""))
    assert "The first 1 of 2 rows." in lines


def test_what_comes_from_files_cannot_steer_the_terminal() -> None:
    said = text(hostile())
    assert "\x1b" not in said and "\ud800" not in said
    assert SEEN in said  # a cell stays on its line
