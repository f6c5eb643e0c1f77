"""What a load scenario says: tables, charts, and results of claims on both sides of each limit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from firstflight.base.errors import UsageError
from firstflight.base.stats import Estimate
from firstflight.findings.claims import (DIRECTION, NOT_MEASURED, NOT_REPRODUCED, REPRODUCED,
                                         UNDECIDED)
from firstflight.runs import scenario_file
from firstflight.runs.kinds import Overrides, RunData
from firstflight.study.load import analysis, charts, findings, tables
from firstflight.study.load.analysis import Runs
from firstflight.study.load.record import LoadRecord
from firstflight.study.load.scenario import OF_GROUPS, OF_RUNS, LoadClaim
from firstflight.study.load.study import KIND
from tests.golden import stored_load
from tests.golden.answers import stated
from tests.golden.stored_load import GOLDEN, RUN

SCENARIO = stored_load.study().scenario
FIGURES = {figure.name: figure for figure in SCENARIO.figures}
CLAIM = LoadClaim(figure="gain", says="x", compares=("3", "10"),
                  quantity="retransmission_percent", expects="more")


@pytest.fixture(name="records", scope="module")
def _records() -> list[LoadRecord]:
    return list(stored_load.run().records)


# Claims ------------------------------------------------------------------------------

def test_a_claim_needs_its_interval_on_its_side(records: list[LoadRecord]) -> None:
    runs = Runs.of_figure(FIGURES["gain"], records, RUN)
    # Ten segments at once into a buffer of 25 packets lose more than three, in every cell.
    words = {expects: findings.statement(runs, replace(CLAIM, expects=expects)).outcome
             for expects in ("less", "more", "alike")}
    assert words["more"] != NOT_REPRODUCED
    assert words["less"] == words["alike"] == NOT_REPRODUCED
    # Two seeds that differ widely: it is left open.
    assert findings.statement(runs, replace(CLAIM, quantity="mean_ms")).outcome == UNDECIDED


def test_a_claim_may_be_on_some_cells_only(records: list[LoadRecord]) -> None:
    runs = Runs.of_figure(FIGURES["gain"], records, RUN)
    full = findings.statement(runs, replace(CLAIM, where=(("load", (0.9,)),)))
    gain = analysis.gain(runs.at("3", load=0.9), runs.at("10", load=0.9),
                         "retransmission_percent")
    assert gain is not None and full.outcome == DIRECTION
    assert f"from {gain.base.value:.3f} ±" in full.measured and "cells" not in full.measured
    nowhere = findings.statement(runs, replace(CLAIM, where=(("load", (0.7,)),)))
    assert (nowhere.measured, nowhere.outcome) == ("no run measured it.", NOT_MEASURED)


def test_a_claim_may_be_on_every_number_of_a_run() -> None:
    records = [replace(record, **{name: 2.0 + record.trial.repeat for name in OF_RUNS})
               for record in stored_load.run().records if isinstance(record, LoadRecord)]
    runs = Runs.of_figure(FIGURES["gain"], records, RUN)
    assert {*OF_GROUPS} <= {*OF_RUNS}
    for name in OF_RUNS:
        found = findings.statement(runs, replace(CLAIM, quantity=name)).measured
        assert " with IW 10 instead of 3" in found, name


def test_a_claim_may_be_on_a_part_of_a_mix(records: list[LoadRecord]) -> None:
    runs = Runs.of_figure(FIGURES["mix"], records, RUN)
    claim = replace(CLAIM, figure="mix", compares=("3 in 3+10", "10 in 3+10"),
                    quantity="mean_ms", expects="alike")
    sentence = findings.statement(runs, claim).measured
    assert sentence.startswith("the mean completion time ")
    for group in analysis.groups_of_mix(runs, "3+10"):
        assert f"{group.mean.value:.0f}" in sentence


def test_an_estimate_reads_with_its_interval() -> None:
    assert findings.estimated(Estimate(-1204.6, (-1210.1, -1199.1))) == "−1205 ± 6"
    assert findings.estimated(Estimate(-0.04), 1) == "0.0"


# A part of a scenario ----------------------------------------------------------------

def test_what_tells_cells_apart_stands_in_each_row(records: list[LoadRecord]) -> None:
    some = [record for record in records if record.trial.part == "one"]
    for field, other, ending in (("rtt_ms", 80.0, "RTT 80 ms"), ("connections", 2, "at once 2"),
                                 ("bandwidth_kbps", 9e3, "bandwidth 9000 kbit/s"),
                                 ("congestion_control", "reno", ", reno"),
                                 ("paced", True, "cubic paced by fq"),
                                 ("queue", "cake", "cubic through cake"),
                                 ("part", "two", ": two, load 0.9, 15000 B, queue 25"),
                                 ("load", 0.7, ": one, load 0.7, 15000 B, queue 25"),
                                 ("response_bytes", 99, ": one, load 0.9, 99 B, queue 25"),
                                 ("queue_packets", 50, ": one, load 0.9, 15000 B, queue 50")):
        elsewhere = [replace(record, trial=replace(record.trial, **{field: other}))
                     for record in some]
        _, changes = findings.partial([*some, *elsewhere]).tables
        names = [str(row[0]) for row in changes.rows]
        assert len(names) == len(set(names)) == 4
        assert sum(name.endswith(ending) for name in names) == 2


def test_a_partial_study_reports_its_runs() -> None:
    partial = KIND.study(scenario_file.read(GOLDEN / "small.toml"), Overrides({"initcwnd": [3]}))
    report = partial.report(replace(stored_load.run(), measured=[
        record for record in stored_load.run().records if record.trial.window == "3"]))
    (finding,) = report.findings
    assert (finding.name, len(finding.tables), len(finding.tables[0].rows)) == ("runs", 1, 6)


def test_a_figure_that_lacks_runs_says_so(records: list[LoadRecord]) -> None:
    some = [record for record in records if record.trial.part == "one"]
    by_name = {finding.name: finding for finding in
               findings.findings(SCENARIO, RunData(RUN, {}, some))}
    assert "no run with the window 3 counts" in by_name["gain"].missing
    assert by_name["gain"].chart is None and by_name["gain"].tables == ()
    assert by_name["distribution"].missing == ""


# Charts ------------------------------------------------------------------------------

def test_lines_have_a_legend_where_a_reader_has_to_tell_them_apart(records: list[LoadRecord]
                                                                  ) -> None:
    runs = Runs.of_figure(FIGURES["gain"], records, RUN)
    points = analysis.points(runs)
    alone, other = ([replace(point, window="", series=series) for point in points]
                    for series in ("", "other"))
    assert [charts.gain(runs, shown).legend for shown in (points, alone, alone + other)] == [
        True, False, True]


# The result of a claim on two cells, on both sides of every limit ---------------------

GAIN = next(figure for figure in stored_load.study().scenario.figures if figure.kind == "gain")


@pytest.mark.parametrize("saved, less, more, alike", [
    ((10, 20), DIRECTION, NOT_REPRODUCED, NOT_REPRODUCED),
    ((-10, -20), NOT_REPRODUCED, DIRECTION, NOT_REPRODUCED),
    ((0, 0), NOT_REPRODUCED, NOT_REPRODUCED, REPRODUCED),
    ((0, 10), NOT_REPRODUCED, NOT_REPRODUCED, NOT_REPRODUCED),
    ((10, -10), NOT_REPRODUCED, NOT_REPRODUCED, NOT_REPRODUCED),
    ((5, -5), NOT_REPRODUCED, NOT_REPRODUCED, REPRODUCED),
    ((5.01, 5), DIRECTION, NOT_REPRODUCED, NOT_REPRODUCED),
    ((1, 0.5), DIRECTION, NOT_REPRODUCED, REPRODUCED)])
def test_two_cells_of_which_both_seeds_have_the_same(saved: tuple[float, float], less: str,
                                                     more: str, alike: str) -> None:
    cells = [(each, each) for each in saved]
    expected = ("less", "more", "alike")
    assert [stated(expects, *cells).outcome for expects in expected] == [less, more, alike]
    alone = [(each,) for each in saved]  # one seed shows nothing, whatever it has
    assert [stated(expects, *alone).outcome for expects in expected] == [UNDECIDED] * 3


@pytest.mark.parametrize("expects, first, second, word", [
    ("less", (10, 10.1), (20, 20.1), DIRECTION),
    ("less", (10, 10.1), (1, 40), UNDECIDED),  # 20 ± 248 %
    ("less", (10, 10.1), (-1, -1.1), NOT_REPRODUCED),  # for certain not in the second cell
    ("less", (10, 10.1), (-50, -50.5), NOT_REPRODUCED),
    ("less", (10, 10.1), (0, 0.2), NOT_REPRODUCED),  # 0.1 ± 1.3 %: at most alike
    ("less", (10, 10.1), (0, 1), UNDECIDED),  # 0.5 ± 6.4 %: more than alike is left open
    ("more", (-10, -10.1), (-20, -20.1), DIRECTION),
    ("alike", (4, 4.1), (-4, -4.1), REPRODUCED),
    ("alike", (4, 6), (-4, -6), UNDECIDED),  # ± 12.7 %
    ("alike", (6, 6.05), (-4, -4.1), NOT_REPRODUCED)])
def test_the_interval_over_the_seeds_decides(expects: str, first: tuple[float, float],
                                             second: tuple[float, float], word: str) -> None:
    assert stated(expects, first, second).outcome == word


@pytest.mark.parametrize("expects, saved, word", [
    ("less", (10, 10.1), REPRODUCED), ("less", (14.2, 14.25), REPRODUCED),
    ("less", (16, 16.1), DIRECTION),  # 12 ± 3 % were published
    ("less", (7, 7.1), DIRECTION), ("less", (1, 25), UNDECIDED),
    ("less", (-10, -10.1), NOT_REPRODUCED), ("more", (-12, -12.1), REPRODUCED),
    ("more", (-40, -40.1), DIRECTION), ("more", (12, 12.1), NOT_REPRODUCED)])
def test_a_published_number_has_a_tolerance(expects: str, saved: tuple[float, float],
                                            word: str) -> None:
    assert stated(expects, saved, saved, published=12, within=3).outcome == word


def test_of_a_rate_the_published_number_is_in_points() -> None:
    records: list[Any] = [
        replace(record, retransmission_percent=(2.0 if record.trial.window == "3"
                                                else 5.0)  # type: ignore[union-attr]
                + record.trial.repeat / 1000) for record in stored_load.run().records]
    runs = Runs.of_figure(GAIN, records, RUN)
    claim = LoadClaim(figure="gain", says="x", compares=("3", "10"), published=2.93, within=0.88,
                      quantity="retransmission_percent", expects="more")
    near, far = (findings.statement(runs, replace(claim, published=points))
                 for points in (2.93, 1.28))
    assert (near.outcome, far.outcome) == (REPRODUCED, DIRECTION)
    assert "3.00 ± 0.00 points, where 1.28 ± 0.88 were published" in far.measured


def test_of_an_abstract_nothing_is_reproduced() -> None:
    assert stated("alike", (1, 1), (1, 1), abstract_only=True).outcome == DIRECTION
    assert stated("less", (-9, -9), (-9, -9), abstract_only=True).outcome == NOT_REPRODUCED


def test_of_nothing_no_part_is_small() -> None:
    """From no retransmission to some: no percentage says so, and it is not alike."""
    records: list[Any] = [
        replace(record, retransmission_percent=float(record.trial.window
                                                     == "10") * (  # type: ignore[union-attr]
            9 + record.trial.repeat / 1000)) for record in stored_load.run().records]
    runs = Runs.of_figure(GAIN, records, RUN)
    words = [findings.statement(runs, LoadClaim(
        figure="gain", says="x", compares=("3", "10"), quantity="retransmission_percent",
        expects=expects)).outcome for expects
             in ("less", "more", "alike")]  # type: ignore[arg-type]
    assert words == [NOT_REPRODUCED, DIRECTION, NOT_REPRODUCED]


def test_where_nothing_was_sent_again_nothing_was_hit() -> None:
    hit = next(figure for figure in stored_load.study().scenario.figures if figure.kind == "hit")
    records: Any = stored_load.run().records
    runs = Runs.of_figure(hit, records, RUN)
    for record in records:
        own = runs.connections(record)
        runs._read[record.trial.id] = replace(own, retransmitted_bytes=own.host * 0)
    found = analysis.hits(runs)
    assert [(each.own, each.same, each.same_count) for each in found] == [(None, None, 0)] * 2
    assert findings._hit_answer(runs, found).measured == "nothing was hit."


def test_a_table_that_was_never_published_is_told_with_its_file() -> None:
    with pytest.raises(UsageError, match="^paper/ietf78.csv: unknown 'Africa'.*Africa, all"):
        tables.deck_table("Africa")
