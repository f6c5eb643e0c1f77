"""Single cells: their means, what windows changed, and what tells trials apart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from firstflight.base.stats import Estimate
from firstflight.findings.findings import Rounded, Table
from firstflight.runs.kinds import Overrides
from firstflight.study.fetches.figures import cells
from firstflight.study.fetches.figures.cell_tables import cells_finding, trials_table
from firstflight.study.fetches.scenario.scenario import Scenario
from firstflight.study.fetches.scenario.trial import Trial
from firstflight.study.fetches.scenario.varied_parameters import (order, requested_columns,
                                                                  setting_words)
from firstflight.study.fetches.study import expand
from firstflight.study.fetches.verify.record import Record


def many(records: list[Record], repeats: int) -> list[Record]:
    return [replace(record, trial=replace(record.trial, repeat=repeat, seed=repeat))
            for record in records for repeat in range(1, repeats + 1)]


def names(table: Table, group: str) -> list[str]:
    return [column.name for column in table.columns if column.group == group]


def test_settings_average_what_counts_and_tell_why_the_rest_does_not(
        scenario: Scenario) -> None:
    trials = expand(scenario, Overrides({"rtt_ms": [77], "bandwidth_kbps": [1234]}, repeat=3))
    times = {3: (300.0, 310.0), 10: (200.0, 220.0)}
    records = [Record(trial=trial, ok=True, verdict="pass", model_ms=200.0,
                      total_ms=times[trial.initcwnd][trial.repeat - 1])
               if trial.repeat < 3 else Record(trial=trial, ok=False, error="no route")
               for trial in reversed(trials)]
    small, large = cells.settings(records)
    assert (small.requested.initcwnd, small.total_ms) == (3, 305)
    (table,) = cells_finding([small], ()).tables
    assert table.column("diff.") == [105] and table.column("verdict") == ["2/3 [1]"]
    assert table.notes == ("[1] no route",)
    (change,) = cells.changes([small, large])
    assert change.saved_ms == 95 and change.saved.percent.value == pytest.approx(95 / 305 * 100)
    assert cells.changes([small]) == []


def test_the_finding_has_a_row_for_each_cell_and_a_note_for_each_reason(
        stored: list[Record]) -> None:
    pair = [replace(record, model_ms=(record.total_ms or 0) - 0.04, retransmissions=1,
                    retransmission_cause="a timer below the wait")
            for record in stored if record.trial.rtt_ms == 100
            and record.trial.bandwidth_kbps == 1000]
    failed = replace(pair[0], ok=False, error="curl 28: timed out", total_ms=None,
                     trial=replace(pair[0].trial, repeat=2))
    settings = cells.settings([*pair, failed])
    changed, seen = cells_finding(settings, cells.changes(settings)).tables
    assert names(seen, "requested") == ["RTT", "BW", "IW", "size"]
    assert seen.column("verdict") == ["1/2 [1] [2]", "1/1 [1]"]
    assert seen.notes == ("[1] a timer below the wait", "[2] curl 28: timed out")
    assert seen.column("IW", "requested") == [3, 10] and seen.column("total")[1] == pair[1].total_ms
    assert seen.column("diff.")[0] == pytest.approx(0.04)
    (row,) = changed.rows
    # These records are older than the columns of flights: no cause is said of them.
    assert row[:4] == (100, 1000, 9000, "3 → 10") and row[-1] == "1, 1"
    assert isinstance(row[-3], Estimate) and row[-3].value == pytest.approx(76.3, abs=0.05)
    assert row[-2] == pytest.approx(21.4, abs=0.05)


def test_records_without_any_measurement(stored: list[Record]) -> None:
    settings = cells.settings([Record(trial=stored[0].trial, ok=False, error="killed")])
    (table,) = cells_finding(settings, cells.changes(settings)).tables
    assert table.column("total") == [None] and table.notes == ("[1] killed",)


def test_what_distinguishes_trials_has_a_column(stored: list[Record]) -> None:
    """Whatever field it is; a default is not shown, nor an uplink as fast as the downlink.

    But where others lose packets, a network that loses none says so.
    """
    trials = [record.trial for record in stored[:4]]

    def heads(*changed: Trial) -> list[str]:
        return [column.name for column, _ in requested_columns([*trials, *changed])]

    always = ["RTT", "BW", "IW", "size"]
    assert heads() == always
    for name, value, head in (("uplink_kbps", 9.0, "uplink"), ("queue_packets", 5, "queue"),
                              ("initrwnd", 10, "rwnd"), ("gap_ms", 0.5, "gap"),
                              ("congestion_control", "reno", "congestion control"),
                              ("earlier_bytes", 9, "earlier bytes"), ("part", "web", "part"),
                              ("repeat", 2, "repeat")):
        assert sorted(heads(replace(trials[0], **{name: value}))) == sorted([*always, head])
    lossy = [replace(trial, loss_percent=0.5) for trial in trials]
    columns = {column.name: [cell(trial) for trial in (*lossy, trials[0])]
               for column, cell in requested_columns(lossy)}
    assert columns["loss"] == [*[Rounded(0.5, 1)] * 4, 0]
    assert setting_words(trials[0], trials)[0] == "RTT 20 ms" and "loss" not in str(setting_words(trials[0], trials))
    assert "loss 0 %" in setting_words(trials[0], [*lossy, trials[0]])
    assert "loss 0.5 %" in setting_words(lossy[0], [*lossy, trials[0]])
    reno = replace(trials[0], congestion_control="reno")
    assert "congestion control reno" in setting_words(reno, [trials[0], reno])


def test_windows_stand_side_by_side(stored: list[Record]) -> None:
    trials = [record.trial for record in stored]
    again = sorted(reversed(trials), key=order)
    assert [trial.initcwnd for trial in again] == [3, 10] * 64
    assert again[0].rtt_ms == 20 and again[-1].bandwidth_kbps == 7000


# Every trial -------------------------------------------------------------------------

def test_many_trials_are_shown_by_cell_with_their_count(stored: list[Record]) -> None:
    table = trials_table(many(stored, 5))
    assert table.title == "Every cell" and len(table.rows) == 128 and table.left_out == 0
    assert names(table, "requested") == ["RTT", "BW", "IW", "size"]
    assert table.column("n", "observed") == [5] * 128 and table.rows[0][-1] == "5/5 pass"
    failed = [replace(record, verdict="fail", total_ms=1e6)
              if record.trial.repeat == 1 else record for record in many(stored, 5)]
    some = trials_table(failed)
    assert some.rows[0][-1] == "4/5 pass"
    assert some.column("total", "measured")[0] == table.column("total", "measured")[0]
    each = trials_table(stored[:2])
    assert each.title == "Every trial" and each.column("verdict") == ["pass", "pass"]
    assert "n" not in names(each, "observed")


def test_more_rows_than_a_page_holds_are_named(stored: list[Record]) -> None:
    table = trials_table([replace(stored[0], trial=replace(stored[0].trial, response_bytes=size))
                          for size in range(1, 1200)])
    assert (len(table.rows), table.left_out) == (500, 699)


def test_a_population_is_shown_by_the_papers_buckets(stored: list[Record]) -> None:
    drawn = [replace(record, trial=replace(
        record.trial, part="web", sample=sample, key_rtt_ms=40.0 + sample / 10,
        key_bandwidth_kbps=900.0, weight=1.0 + sample))
        for sample in range(300) for record in stored[:2]]
    table = trials_table(drawn)
    assert [column.group for column in table.columns[:4]] == ["", "filed under", "filed under",
                                                              "requested"]
    assert {row[:4] for row in table.rows} == {("web", limit, "≤ 1000", window) for limit in
                                               ("≤ 50", "≤ 100") for window in (3, 10)}
    assert sum(count for count in table.column("n", "observed") if isinstance(count, int)) == 600
