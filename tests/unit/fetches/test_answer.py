"""The answer of a run in one sentence: the largest effect first, and nothing that is not sure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from firstflight.findings.findings import Answer
from firstflight.study.fetches import answer
from firstflight.study.fetches.figures.cells import CellSetting, changes
from firstflight.study.fetches.verify.record import Record
from tests.golden import stored_fetches

ONE = next(record for record in stored_fetches.stored("zhao2019")
           if (record.trial.rtt_ms, record.trial.bandwidth_kbps) == (100, 1000))


def cell(initcwnd: int, *total_ms: float, **requested: Any) -> CellSetting:
    """A cell with one transfer for each time."""
    records: list[Record] = []
    for repeat, time_ms in enumerate(total_ms, 1):
        trial = replace(ONE.trial, initcwnd=initcwnd, repeat=repeat, response_bytes=60_000, **requested)
        records.append(replace(ONE, trial=trial, total_ms=time_ms))
    return CellSetting(replace(records[0].trial, repeat=1), records)


def answered(*cells: CellSetting, is_question: bool = True) -> Answer:
    return answer.answer_of_cells(cells, changes(cells), is_question)


def test_one_network_has_each_windows_saving() -> None:
    said = answered(cell(10, 200.0), cell(20, 160.0), cell(40, 150.0)).sentence
    assert said == ("IW 10 → 20 saves 40.0 ms (20 %), from 200 to 160 ms; → 40 saves 50.0 ms"
                    " (25 %).")
    assert answered(cell(10, 200.0), cell(20, 199.7)).sentence == (
        "IW 10 → 20 changes nothing, from 200 to 200 ms.")


def test_the_largest_effect_comes_first_be_it_a_loss() -> None:
    fast = {"queue_packets": 50}
    gain, loss = (cell(10, 200.0, **fast), cell(20, 150.0, **fast)), (cell(10, 200.0),
                                                                      cell(20, 500.0))
    said = answered(*gain, *loss).sentence
    assert said.startswith("A larger window takes up to 300 ms (150 %) longer, at queue 1000")
    assert "and saves up to 50.0 ms (25 %), at queue 50" in said
    assert said.endswith("Of 2 comparisons: 1 faster, 1 slower.")


@pytest.mark.parametrize(("times_ms", "words"), [
    ((180.0, 181.0, 179.0), "saves 20.0 ± "), ((150.0, 260.0, 190.0), "has no sure effect"),
    ((220.0, 221.0, 219.0), "takes 20.0 ± ")])
def test_what_chance_may_have_done_is_not_claimed(times_ms: tuple[float, ...], words: str) -> None:
    assert words in answered(cell(10, 200.0, 200.0, 200.0), cell(20, *times_ms)).sentence


def test_one_window_is_compared_with_nothing() -> None:
    said = answered(cell(10, 200.0))
    assert "takes 200 ms" in said.sentence and "--iw 10,20,40" in said.sentence
    assert answered().sentence == "No transfer counts, so there is no answer."


def test_more_comparisons_than_a_reader_takes_in_are_those_with_the_largest_effect() -> None:
    cells = [one for queue in range(30, 60) for one in (
        cell(10, 200.0, queue_packets=queue), cell(20, 200.0 - queue, queue_packets=queue))]
    table = answered(*cells).table
    assert table is not None and (len(table.rows), table.left_out) == (answer.MOST_ROWS, 10)
    assert min(row[0] for row in table.rows) == 40  # of the queues; equal columns are left out


@pytest.mark.parametrize(("queue", "drops", "words"), [
    (3, 2, "The queue of 3 packets is 36 % of the path's bandwidth-delay product"),
    (3, 0, ""), (100, 0, "times the path's bandwidth-delay product"), (10, 0, "")])
def test_a_queue_far_from_one_product_is_named_where_it_matters(queue: int, drops: int,
                                                                words: str) -> None:
    """100 ms at 1 Mbit/s are 8.3 packets."""
    cells = [cell(10, 200.0, queue_packets=queue), cell(20, 150.0, queue_packets=queue)]
    cells = [replace(each, records=[replace(record, queue_drops=drops)
                                    for record in each.records]) for each in cells]
    named = [note for note in answered(*cells).notes if "product" in note]
    assert bool(named) == bool(words) and words in " ".join(named)
    assert not [note for note in answered(*cells, is_question=False).notes if "product" in note]
