"""Published raw values: their table, their marks, and with which trials they stand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from firstflight.study.fetches.figures.cell_tables import trials_table
from firstflight.study.fetches.figures.raw_cells import PublishedCells, finding, published_cells
from firstflight.study.fetches.scenario.scenario import Scenario
from firstflight.study.fetches.verify.record import Record


def cells_of(scenario: Scenario, records: Sequence[Record]) -> PublishedCells:
    cells = published_cells(scenario, records)
    assert isinstance(cells, PublishedCells)
    return cells


def test_raw_values_set_defects_apart(scenario: Scenario, stored: list[Record]) -> None:
    cells = cells_of(scenario, stored)
    rows, of_trial = cells.rows, cells.of_trial
    assert len(rows) == len(of_trial) == 128 and all(row.n == 1 for row in rows)
    row = next(row for row in rows if (row.initcwnd, row.rtt_ms, row.bandwidth_kbps)
               == (10, 1000, 7000))
    assert row.published_ms == 3017 and row.comparable_ms == 2017 and row.mark == ""
    assert sum(row.mark == "u" for row in rows) == 2 * 6 * 3
    assert sum(row.mark == "f" for row in rows) == 2 * 2 * 8
    compared = finding(scenario, scenario.raw, stored).tables[-1].notes[-1]
    assert re.match(r"Without it the 60 comparable cells differ by \d\.\d ms", compared)
    lacking = finding(scenario, scenario.raw, []).tables
    assert "–/2203f" in lacking[0].rows[-1]
    assert not any("comparable" in note for note in lacking[-1].notes)


def test_raw_values_stand_in_a_grid_for_each_window(scenario: Scenario,
                                                    stored: list[Record]) -> None:
    many = [replace(record, trial=replace(record.trial, repeat=repeat, seed=repeat))
            for record in stored for repeat in range(1, 6)]
    made = finding(scenario, scenario.raw, many)
    assert "n = 5 here, 1 there" in made.title
    three, ten = made.tables
    assert three.column("7000")[5] == "3008/4012 " and ten.column("7000")[6] == "6011/2203f"
    notes = "\n".join(ten.notes)
    assert "ARP gives up" in notes and "60 comparable cells" in notes and not three.notes


def test_a_trial_stands_beside_its_published_time(scenario: Scenario,
                                                  stored: list[Record]) -> None:
    other = replace(stored[0], trial=replace(stored[0].trial, response_bytes=5))
    table = trials_table([*stored, other], cells_of(scenario, stored))
    assert table.column("total", "published")[:2] == ["", 107]
    assert table.column("mark", "published")[:2] == ["", "u"]
    assert any(re.match("u: the bandwidth was never limited", note) for note in table.notes)
