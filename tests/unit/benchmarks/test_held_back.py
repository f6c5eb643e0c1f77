"""Benchmarks: what held_back.py judges and prints of a flow through netem and a rate."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.outside.held_back import (
    LESS_HERE,
    LESS_THERE,
    NOT_KNOWN,
    Cell,
    Row,
    Seen,
    cells,
    kept,
    table,
)
from firstflight.base.__init__ import PROJECT

CELL = Cell("tbf", "under", 10_000, 5_000_000, 80_000)
SLOW_THERE = Cell("cake", "under", 10_000, 0)
SLOW_HERE = Cell("fq", "under", 10_000, 0)
STOCK = Seen(3584.4, 4549.3, 0, 20)


def row(*last_mbit: float, cell: Cell = CELL, stock: Seen = STOCK) -> Row:
    """A cell with draws that have these rates in their last second, next to a stock kernel's."""
    return Row(cell, tuple(Seen(stock.first_mbit, rate_mbit, 0, 1) for rate_mbit in last_mbit),
               stock)


def test_one_draw_of_five_that_a_machine_never_has_is_a_difference() -> None:
    found = row(4552, 4560, 37, 4550, 4549)
    assert found.cause() == NOT_KNOWN and found.worst_percent() < -99
    assert "| 37–4560 / 4549 | **-99.2 %** |" in table([found])
    assert row(4552, 4100, 4990).cause() == ""


def test_a_slow_first_second_of_a_flow_is_a_difference() -> None:
    draws = (Seen(3584.4, 4549.3, 0, 1), Seen(52.0, 4549.3, 0, 1))
    assert Row(CELL, draws, STOCK).cause() == NOT_KNOWN


def test_a_known_cause_explains_less_there_and_nothing_else() -> None:
    stock = Seen(450.2, 524.5, 210, 43)
    assert row(4010, 4012, cell=SLOW_THERE, stock=stock).cause() == "its processor"
    assert row(4010, 4012, stock=stock).cause() == NOT_KNOWN
    assert row(4010, 52, cell=SLOW_THERE, stock=stock).cause() == NOT_KNOWN
    assert row(52, 52, cell=SLOW_THERE, stock=stock).cause() == NOT_KNOWN


def test_a_known_cause_explains_less_here_and_nothing_else() -> None:
    stock = Seen(643.0, 3933.7, 0, 55)
    assert row(1298, 1299, cell=SLOW_HERE, stock=stock).cause() == "the end of slow start"
    assert row(1298, 1299, stock=stock).cause() == NOT_KNOWN
    assert row(1298, 52, cell=SLOW_HERE, stock=stock).cause() == NOT_KNOWN
    assert row(5000, 5001, cell=SLOW_HERE, stock=stock).cause() == NOT_KNOWN


def test_each_queue_stands_above_and_below_netem_with_each_bucket_at_each_rate() -> None:
    found = list(cells())
    names = [cell.name for cell in found]
    assert len(names) == len(set(names)) == 3 * 2 * (2 * 2 + 2) + 4 + 1
    assert {cell.rmem_bytes for cell in found if cell.bucket_bytes == 5_000_000} > {65_536, 120_000}


def test_what_a_cell_printed_is_read_whatever_else_the_console_says(tmp_path: Path) -> None:
    (tmp_path / "stock.txt").write_text(
        f"[    1.2] random: crng init done\n{CELL.name} = 3584.4 4549.3 0 20\nWarning: r2q\n")
    assert kept(tmp_path / "stock.txt") == {CELL.name: STOCK} and kept(tmp_path / "none") == {}


def test_the_printed_page_has_each_cell_and_its_cause() -> None:
    page = (PROJECT / "vtime" / "SIDE_BY_SIDE.md").read_text()
    rows = re.findall(r"^\| (?:a delay alone|\w+ (?:under|over) netem,).* \| ([^|]*) \|$", page,
                      re.MULTILINE)
    assert len(rows) == len(list(cells()))
    causes = {*LESS_HERE.values(), *LESS_THERE.values()}
    assert set(rows) == {"", *causes}
    assert all(f"- **{cause}**: " in page for cause in causes)
