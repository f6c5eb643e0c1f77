"""What a load scenario says: tables of values, words for claims, charts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from firstflight.base.stats import Estimate
from firstflight.findings.claims import DIRECTION, NOT_MEASURED, NOT_REPRODUCED, UNDECIDED
from firstflight.runs import scenario_file
from firstflight.runs.kinds import Overrides, RunData
from firstflight.study.load import analysis, charts, findings
from firstflight.study.load.analysis import Runs
from firstflight.study.load.record import LoadRecord
from firstflight.study.load.scenario import LoadClaim
from firstflight.study.load.study import KIND
from tests.golden import stored_load
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
    words = {expects: findings.statement(runs, replace(CLAIM, expects=expects)).word
             for expects in ("less", "more", "alike")}
    assert words["more"] != NOT_REPRODUCED
    assert words["less"] == words["alike"] == NOT_REPRODUCED
    # Two seeds that differ widely: it is left open.
    assert findings.statement(runs, replace(CLAIM, quantity="mean_ms")).word == UNDECIDED


def test_a_claim_may_be_on_some_cells_only(records: list[LoadRecord]) -> None:
    runs = Runs.of_figure(FIGURES["gain"], records, RUN)
    full = findings.statement(runs, replace(CLAIM, where=(("load", (0.9,)),)))
    gain = analysis.gain(runs.at("3", load=0.9), runs.at("10", load=0.9),
                         "retransmission_percent")
    assert gain is not None and full.word == DIRECTION
    assert f"from {gain.base.value:.3f} ±" in full.found and "cells" not in full.found
    nowhere = findings.statement(runs, replace(CLAIM, where=(("load", (0.7,)),)))
    assert (nowhere.found, nowhere.word) == ("no run measured it.", NOT_MEASURED)


def test_a_claim_may_be_on_a_part_of_a_mix(records: list[LoadRecord]) -> None:
    runs = Runs.of_figure(FIGURES["mix"], records, RUN)
    claim = replace(CLAIM, figure="mix", compares=("3 in 3+10", "10 in 3+10"),
                    quantity="mean_ms", expects="alike")
    sentence = findings.statement(runs, claim).found
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
