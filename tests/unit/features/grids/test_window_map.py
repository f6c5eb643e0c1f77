"""Maps of windows: which one is the smallest that is about as fast as the fastest."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firstflight.base.errors import UsageError
from firstflight.commands import flags
from firstflight.findings import drawing
from firstflight.findings.charts import SquareChart
from firstflight.runs import scenario_file
from firstflight.runs.kinds import RunData, Study
from firstflight.runs.results.records import FAIL, PASS
from firstflight.study import registry
from firstflight.study.fetches.figures import kinds
from firstflight.study.fetches.findings import analyse
from firstflight.study.fetches.study import KIND
from firstflight.study.fetches.verify.record import Record
from tests.unit.core.example import whole
from tests.unit.drawing import samples
from tests.unit.fetches.small import SMALL, small

MAP = """\
[[figure]]
name = "map"
title = "Windows"
kind = "window_map"
sweep = "grid"
by = "rtt_ms"
down = "bandwidth_kbps"
baseline_initcwnd = 10
metric = "total_ms"
"""
WINDOWS = (3, 10, 20, 40)
AXES = SMALL[SMALL.index("[[axis]]"):]


def scenario(folder: Path, *changes: tuple[str, str]) -> Any:
    return small(folder, (AXES, MAP), ("initcwnd = [3, 10]", f"initcwnd = {list(WINDOWS)}"),
                 ("response_bytes = [9000]", "response_bytes = [9000, 60000]"), *changes)


def run(study: Study, times_ms: Any) -> RunData:
    """Records whose time is a function of their trial, None for one that does not count."""
    records = []
    for trial in study.trials:
        time_ms = times_ms(trial)
        verdict = FAIL if time_ms is None else PASS
        records.append(Record(trial, True, verdict=verdict, total_ms=time_ms or 1.0))
    return RunData(Path("run"), {"kernel": "7.2", "virtual_time": True}, records)


def found(folder: Path, times_ms: Any) -> Any:
    requested = scenario(folder)
    study = Study(KIND, requested, tuple(trial for sweep in requested.sweeps
                                 for trial in sweep.trials(requested.name, 1)), True)
    ((_, made),) = kinds.figures(analyse(requested, run(study, times_ms), True))
    return made[0]


def windows(finding: Any) -> list[list[list[int]]]:
    return [[[square.value for square in row] for row in each.rows]
            for each in finding.chart.maps]


@pytest.mark.parametrize(("times_ms", "window"), [
    ({3: 400, 10: 300, 20: 200, 40: 200}, 20),  # the smaller of two that are as fast
    ({3: 102, 10: 101, 20: 100, 40: 100}, 3),  # two percent are not worth a larger one
    ({3: 102.1, 10: 102.0, 20: 100, 40: 100}, 10),
    ({3: 400, 10: 100, 20: 150, 40: 180}, 10),  # larger ones are slower
    ({3: None, 10: 300, 20: 200, 40: None}, 20)])
def test_the_smallest_within_two_percent_of_the_fastest(times_ms: dict[int, float | None],
                                                        window: int, tmp_path: Path) -> None:
    told = found(tmp_path, lambda trial: times_ms[trial.initcwnd])
    assert windows(told) == [[[window] * 2] * 2] * 2
    enough = "8 of 8 cells (100 %)" if window <= 10 else "0 of 8 cells (0 %)"
    assert f"10 segments is enough in {enough}; " in told.sentence
    left_out = sum(each is None for each in times_ms.values())
    assert {square.left_out for each in told.chart.maps for row in each.rows
            for square in row} == {left_out}


def test_a_map_for_each_size_and_a_row_for_each_cell(tmp_path: Path) -> None:
    """Long responses over the faster link need 40 segments, at the longer RTT."""
    def time_ms(trial: Any) -> float:
        needs = (40 if trial.response_bytes == 60000 and trial.bandwidth_kbps == 256
                 and trial.rtt_ms == 50 else 3)
        return 100.0 if trial.initcwnd >= needs else 125.0

    told = found(tmp_path, time_ms)
    chart = told.chart
    assert isinstance(chart, SquareChart) and chart.windows == WINDOWS
    assert [each.title for each in chart.maps] == ["size 9 kB", "size 60 kB"]
    assert (chart.maps[0].columns, chart.rows) == (("20", "50"), ("56 kbit/s", "256 kbit/s"))
    assert windows(told) == [[[3, 3], [3, 3]], [[3, 3], [3, 40]]]
    small_map, large_map, every = told.tables
    assert large_map.rows == (("56", "3", "3"), ("256", "3", "40"))
    assert len(every.rows) == 8
    assert every.rows[-1] == ("60000", "50", "256", 40, 100.0, 125.0, 20.0)
    assert told.sentence == ("A window of 10 segments is enough in 7 of 8 cells (88 %); 1 needs the"
                             " largest, 40.")


def test_where_nothing_counts_it_says_so(tmp_path: Path) -> None:
    told = found(tmp_path, lambda trial: None)
    assert told.sentence == "Nothing that was measured counts."
    assert told.chart.maps[0].rows == ((None, None), (None, None))
    assert told.tables[0].rows[0] == ("56", None, None)
    samples.check_fits(drawing.figure_of(told.chart))


def test_a_cell_that_was_not_measured_is_named(tmp_path: Path) -> None:
    requested = scenario(tmp_path)
    study = Study(KIND, requested, tuple(requested.sweeps[0].trials(requested.name, 1))[:-1], True)
    ((_, told),) = kinds.figures(analyse(requested, run(study, lambda trial: 1.0), True))
    assert "1 of 8 cells (RTT 50 ms at 256 kbit/s)" in told[0].missing


def test_squares_say_their_window_in_a_colour_of_its_own(tmp_path: Path) -> None:
    told = found(tmp_path, lambda trial: 100.0 if trial.initcwnd >= (
        40 if trial.rtt_ms == 50 else 3) else 200.0)
    few = replace(told.chart, maps=told.chart.maps[:1])
    drawn = drawing.figure_of(few)
    samples.check_fits(drawn)
    (axes,) = drawn.axes
    assert [text.get_text() for text in axes.texts] == ["3", "40", "3", "40"]
    light, dark = (sum(patch.get_facecolor()[:3]) for patch in axes.patches[:2])
    assert light > dark
    assert [text.get_color() for text in axes.texts[:2]][1] == "#FFFFFF"
    many = replace(few, rows=tuple(map(str, range(14))))
    rows = tuple((few.maps[0].rows[0] * 7) for _ in range(14))
    many = replace(many, maps=tuple(replace(each, columns=tuple(map(str, range(14))), rows=rows)
                                   for each in many.maps))
    samples.check_fits(drawing.figure_of(many))


@pytest.mark.parametrize(("old", "new", "words"), [
    ('down = "bandwidth_kbps"\n', "", "down is missing"),
    ("baseline_initcwnd = 10", "baseline_initcwnd = 12", "has no initcwnd 12")])
def test_what_makes_no_map_of_windows(old: str, new: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=words):
        scenario(tmp_path, (old, new))


# A part of a grid --------------------------------------------------------------------

@pytest.mark.parametrize(("part", "rtts_ms", "bandwidths"), [
    (16, 4, 4), (4, 7, 7), (1, 14, 14), (196, 2, 2)])
def test_a_coarse_grid_has_the_ends_and_values_between(part: int, rtts_ms: int,
                                                       bandwidths: int) -> None:
    study = (registry.study_of(scenario_file.find("map_of_windows").sampled(part)) if part > 1
             else whole("map_of_windows"))
    (sweep,) = study.scenario.sweeps  # type: ignore[attr-defined]
    rtt_ms, bandwidth_kbps = sweep.lists["rtt_ms"], sweep.lists["bandwidth_kbps"]
    assert (len(rtt_ms), len(bandwidth_kbps)) == (rtts_ms, bandwidths)
    assert (rtt_ms[0], rtt_ms[-1]) == (5, 2000)
    assert (bandwidth_kbps[0], bandwidth_kbps[-1]) == (250, 1e6)
    assert study.whole and len(study.trials) == rtts_ms * bandwidths * 8 * 8
    assert study.head.name == ("map_of_windows" if part == 1 else f"map_of_windows_1in{part}")


def test_a_part_is_read_again_from_the_text_that_its_run_keeps() -> None:
    part = registry.study_of(scenario_file.find("map_of_windows").sampled(16))
    again = registry.study_of(scenario_file.of_run(part.head.name, part.head.text))
    assert again.trials == part.trials and again.head == part.head


@pytest.mark.parametrize(("name", "why"), [
    ("marrama2012", "one_in: .*has pairs"), ("dukkipati2010", "one_in: it needs a grid"),
    ("ietf78_load", "unknown key 'one_in'")])
def test_what_is_no_grid_has_no_coarse_one(name: str, why: str) -> None:
    with pytest.raises(UsageError, match=f"scenarios/{name}.toml, one in 4: {why}"):
        registry.study_of(scenario_file.find(name).sampled(4))


@pytest.mark.parametrize(("word", "read"), [("full", "full"), ("1/16", 16), ("1/2", 2)])
def test_a_part_is_said_as_one_in_so_many(word: str, read: str | int) -> None:
    assert flags.sample(word) == read


@pytest.mark.parametrize("word", ["", "1/1", "1/0", "1/x", "16", "2/16", "1/10001", "Full"])
def test_what_says_no_part(word: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not full, nor 1/N"):
        flags.sample(word)
