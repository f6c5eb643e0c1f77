"""The word on a claim of two cells, on both sides of every limit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lab.core.claims import DIRECTION_ONLY, NOT_REPRODUCED, REPRODUCED
from lab.core.errors import UsageError
from lab.load import analysis, deck, findings
from lab.load.runs import Runs
from lab.load.scenario import Claim
from tests.golden import stored_load
from tests.golden.stored_load import RUN

GAIN = next(figure for figure in stored_load.study().scenario.figures if figure.kind == "gain")


def told(expects: Any, *saved: tuple[float, float]) -> tuple[str, str]:
    """Of 100 ms so many are saved: by load, each of the two seeds (one, if they are alike)."""
    records: list[Any] = []
    for record in stored_load.run().records:
        trial: Any = record.trial
        cell, seed = (0.5, 0.9).index(trial.load), trial.repeat - 1
        if seed and all(first == second for first, second in saved):
            continue
        less = saved[cell][seed] if trial.window == "10" else 0
        records.append(replace(record, mean_ms=100.0 - less))
    claim = Claim(figure="gain", says="x", compares=("3", "10"), quantity="mean_ms",
                  expects=expects)
    said = findings.statement(Runs.of(GAIN, records, RUN), claim)
    return said.word, said.found


@pytest.mark.parametrize("saved, less, more, alike", [
    ((10, 20), REPRODUCED, NOT_REPRODUCED, NOT_REPRODUCED),
    ((-10, -20), NOT_REPRODUCED, REPRODUCED, NOT_REPRODUCED),
    ((0, 0), NOT_REPRODUCED, NOT_REPRODUCED, REPRODUCED),
    ((0, 10), DIRECTION_ONLY, NOT_REPRODUCED, DIRECTION_ONLY),
    ((0, -10), NOT_REPRODUCED, DIRECTION_ONLY, DIRECTION_ONLY),
    ((10, -10), NOT_REPRODUCED, NOT_REPRODUCED, DIRECTION_ONLY),
    ((5, -5), NOT_REPRODUCED, NOT_REPRODUCED, REPRODUCED),
    ((5.01, 5), REPRODUCED, NOT_REPRODUCED, NOT_REPRODUCED),
    ((1, 0.5), REPRODUCED, NOT_REPRODUCED, REPRODUCED)])
def test_one_seed_of_each_of_two_cells(saved: tuple[float, float], less: str, more: str,
                                       alike: str) -> None:
    cells = [(each, each) for each in saved]
    assert [told(expects, *cells)[0] for expects in ("less", "more", "alike")] == [
        less, more, alike]


def test_with_two_seeds_the_interval_decides() -> None:
    assert told("less", (10, 10.1), (20, 20.1))[0] == REPRODUCED
    assert told("less", (10, 10.1), (1, 40))[0] == DIRECTION_ONLY
    assert told("more", (-10, -10.1), (-20, -20.1))[0] == REPRODUCED
    assert told("alike", (4, 6), (-4, -6))[0] == REPRODUCED  # by the mean of the seeds


def test_the_cells_that_gain_least_and_most_are_told() -> None:
    assert told("less", (10, 10), (-30, -30))[1] == (
        "the mean completion time falls with IW 10 instead of 3 in 1 of 2 cells: from 100 to 130"
        " ms, from 100 to 90 ms.")
    assert told("less", (10, 10), (10, 10))[1].endswith(" in 2 of 2 cells: from 100 to 90 ms.")


@pytest.mark.parametrize("by, found", [
    (80, "IW 10, offered load 0.9 (−31.5 ± 6.4 %)."),
    (1, "IW 10, offered load 0.5 (−20.5 ± 6.4 %); IW 10, offered load 0.9 (−31.5 ± 6.4 %).")])
def test_where_the_tail_alone_gets_longer_it_is_told_of_the_tail(by: int, found: str) -> None:
    """In each cell whose interval says so, how far the seeds are apart; the mean is the same."""
    records: list[Any] = []
    for record in stored_load.run().records:
        trial: Any = record.trial
        slower = trial.window == "10" and (30 + trial.repeat if trial.load > 0.5 else
                                           20 + by * (trial.repeat - 1))
        records.append(replace(record, mean_ms=100.0, p99_ms=100.0 + slower))
    runs = Runs.of(GAIN, records, RUN)
    mean, tail = findings._gain_answers(runs, analysis.lines(runs))
    assert mean.found == "in no cell whose 95 % interval excludes zero."
    assert tail.says == "Where a larger window than 3 makes the 99th percentile longer:"
    assert tail.found == found


def test_where_nothing_was_sent_again_nothing_was_hit() -> None:
    hit = next(figure for figure in stored_load.study().scenario.figures if figure.kind == "hit")
    records: Any = stored_load.run().records
    runs = Runs.of(hit, records, RUN)
    for record in records:
        own = runs.connections(record)
        runs._read[record.trial.id] = replace(own, retransmitted_bytes=own.host * 0)
    found = analysis.hits(runs)
    assert [(each.own, each.same, each.same_count) for each in found] == [(None, None, 0)] * 2
    assert findings._hit_answer(runs, found).found == "nothing was hit."


def test_a_table_that_was_never_published_is_told_with_its_file() -> None:
    with pytest.raises(UsageError, match="^paper/ietf78.csv: unknown 'Africa'.*Africa, all"):
        deck.deck_table("Africa")
