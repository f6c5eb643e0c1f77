"""Single cells: their means, their answer in one sentence, published values beside them, charts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy
import pytest
from matplotlib.text import Text

from firstflight.base.stats import Estimate
from firstflight.findings import drawing
from firstflight.findings.charts import BarChart, TimeChart
from firstflight.findings.difference import Excluded
from firstflight.findings.findings import Rounded, Table
from firstflight.runs import scenario_file
from firstflight.runs.kinds import Overrides
from firstflight.study.compare import Row
from firstflight.study.fetches import answer, reading
from firstflight.study.fetches.figures import bars, ccdf, cells, figure, swept_bars
from firstflight.study.fetches.figures.bar_figure import BarFigure, Sample
from firstflight.study.fetches.figures.bars import chart
from firstflight.study.fetches.figures.cell_tables import cells_finding, trials_table
from firstflight.study.fetches.figures.claims import judge_bars
from firstflight.study.fetches.figures.raw_cells import PublishedCells, finding, published_cells
from firstflight.study.fetches.record import Record
from firstflight.study.fetches.scenario.figures import ALSO
from firstflight.study.fetches.scenario.population import Population, Populations
from firstflight.study.fetches.scenario.scenario import Figure, Scenario
from firstflight.study.fetches.scenario.trial import Trial
from firstflight.study.fetches.scenario.varied_parameters import (order, requested_columns,
                                                                  setting_words)
from firstflight.study.fetches.study import expand
from tests.golden import stored_fetches
from tests.golden.answers import answered, cell
from tests.golden.stored import load
from tests.unit.drawing import samples


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
    assert setting_words(trials[0], trials)[0] == "RTT 20 ms" and "loss" not in str(
        setting_words(trials[0], trials))
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
    assert table.title == "Every cell" and len(table.rows) == 128 and table.hidden_rows == 0
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
    assert (len(table.rows), table.hidden_rows) == (500, 699)


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


# The answer of a run: its sentences are in tests/golden/answers.py -------------------

def test_more_comparisons_than_a_reader_takes_in_are_those_with_the_largest_effect() -> None:
    cells = [one for queue in range(30, 60) for one in (
        cell(10, 200.0, queue_packets=queue), cell(20, 200.0 - queue, queue_packets=queue))]
    table = answered(*cells).table
    assert table is not None and (len(table.rows), table.hidden_rows) == (answer.MOST_ROWS, 10)
    assert min(row[0] for row in table.rows) == 40  # of the queues; equal columns are left out


# Published raw values -----------------------------------------------------------------

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


# What a figure shows and says of itself -----------------------------------------------

def bars_of(name: str, figure: str, like_the_papers: bool = False) -> BarChart:
    scenario = stored_fetches.scenario(name)
    if like_the_papers:
        people = Population(scenario.sweeps[0].name, "", (3, 10))
        scenario = replace(scenario, drawn=Populations(
            name, (people,), (), stored_fetches.stored(name)[0].trial))
    made = chart(scenario, judge_bars(stored_fetches.bar_figures(name)[figure], ()))
    assert isinstance(made, BarChart)
    return made


def test_what_is_left_out_alarms(scenario: Scenario, stored: list[Record]) -> None:
    records = [replace(stored[0], ok=False, error="x", verdict="skipped"), *stored[1:]]
    panel = swept_bars.improvement(scenario, scenario.figures[0], records)
    made = chart(scenario, judge_bars(panel, ()))
    assert isinstance(made, BarChart)
    assert made.alarm == "excluded: 1 failed transfer, 1 record without its counterpart"
    change = made.bars[0].difference
    assert (change.n, change.excluded.total) == (14, 2)


def test_the_whisker_of_a_window_is_what_it_saves_from_the_baseline_time() -> None:
    panel = stored_fetches.bar_figures("marrama2012")["fig2"]
    first, second, *_ = panel.bars
    change = replace(second.difference, base=Estimate(500.0), experiment=Estimate(480.0),
                     absolute=Estimate(20.0, (-5.0, 45.0)))
    made = chart(stored_fetches.scenario("marrama2012"), judge_bars(
        replace(panel, bars=(first, replace(second, difference=change))), ()))
    assert isinstance(made, TimeChart)
    base, other = made.bars
    assert base.label == made.baseline and not base.difference.is_unsure
    assert other.difference.paired_interval == (455.0, 505.0) and other.difference.is_unsure
    more_is_better = replace(change, sign=-1, absolute=Estimate(-20.0, (-25.0, -15.0)))
    assert more_is_better.paired_interval == (475.0, 485.0) and not more_is_better.is_unsure


def test_a_population_like_the_papers_is_told_from_another() -> None:
    assert bars_of("zhao2019", "fig5_rtt", like_the_papers=True).publisher == "in the paper"


# The complementary distribution -------------------------------------------------------

SLOW = Sample(3, [400.0, 100.0, 200.0], [1.0, 2.0, 1.0])
FAST = Sample(10, numpy.array([90.0, 150.0, 300.0]), numpy.array([2.0, 1.0, 1.0]))
PANEL = BarFigure(
    Figure(name="tail", title="Latency", kind="improvement", sweep="grid", by="rtt_ms",
                     baseline_initcwnd=3, experiment_initcwnd=10, metric="latency_ms"),
              (), "curl", "cubic", samples=(SLOW, FAST))


@pytest.fixture(scope="module")
def drawn() -> Any:
    with drawing.style.settings():
        yield drawing.figure_of(ccdf.chart(PANEL, samples.bar_chart()))


@pytest.mark.parametrize("name", ALSO)
def test_nothing_is_clipped_or_on_another(name: str) -> None:
    """Of any further chart of what is behind the bars."""
    with drawing.style.settings():
        samples.check_fits(drawing.figure_of(bars.also(name)(PANEL, samples.bar_chart())))


def test_a_curve_is_the_weight_above_each_value() -> None:
    values, percent = ccdf.curve(SLOW)
    assert list(values) == [100, 200, 400]
    assert list(percent) == [50, 25, 0]


def test_its_face_speaks_of_curves() -> None:
    chart = ccdf.chart(PANEL, replace(samples.bar_chart(), compared="two weeks"))
    words = " ".join(text.get_text() for text in drawing.figure_of(chart).findobj(Text))
    assert "Curves: two weeks" in words and "Triangles" not in words


def test_both_windows_stand_on_logarithmic_axes(drawn: Any) -> None:
    (axes,) = drawn.axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert [list(line.get_xdata()) for line in axes.lines] == [[100, 200, 400], [90, 150, 300]]
    low, high = axes.get_xlim()
    assert low < 90 and 200 < high < 400  # nothing stands above the last step
    assert axes.get_ylim() == (ccdf.LEAST_PERCENT, 100)
    assert axes.get_xlabel() == "Latency (ms)"
    (legend,) = drawn.legends
    assert [text.get_text() for text in legend.get_texts()] == ["IW 3", "IW 10"]


# What a figure says of itself ---------------------------------------------------------

@pytest.mark.parametrize(("weights", "published", "over"), [
    ("", "", ""), ("joint", "", "the joint distribution of RTT and bandwidth"),
    ("response_bytes", "", "response sizes by the paper's shares"),
    ("bdp_bytes", "", "bandwidth-delay products by the paper's shares"),
    ("rtt_ms", "paper_figure5.csv", "RTT by the paper's shares"),
    ("bandwidth_kbps", "theirs.csv", "bandwidth by its shares")])
def test_what_bars_are_averaged_over_is_said(weights: str, published: str, over: str) -> None:
    (drawn, *_) = reading.read_scenario(scenario_file.find("zhao2019")).figures
    assert bars.averaged(replace(drawn, weights=weights, published=published)) == over


def test_who_answered_stands_in_a_figures_context() -> None:
    """Nobody, where it was our own server over HTTP/1.1 alone."""
    def told(*of: tuple[str, str]) -> str:
        return figure.heading([Record(replace(load("iw10").trial, server=server, http=http), True,
                                      verdict="pass") for server, http in of])[0]

    start, rest = "real Linux TCP", ": RTT 100 ms, BW 1 Mbit/s, size 9 kB, IW 10 segments"
    assert told(("builtin", "1.1")) == f"{start}{rest}"
    assert told(("nginx", "1.1")) == f"{start}; server: nginx{rest}"
    assert told(("builtin", "1.1"), ("own", "2")) == (
        f"{start}; servers: server.py, one's own (HTTP/2){rest}")


def test_a_cells_weight_is_shared_by_its_repeats() -> None:
    cells = [swept_bars.CellRows(1.0, [Row(None, 3, unit, 1.0, value) for unit, value in
                                   enumerate(values)], Excluded(), lossless=True)
             for values in ([1.0, 2.0], [4.0])]
    sample = swept_bars._sample(3, [(cell, 0.5) for cell in cells])
    assert (sample.name, sample.values, sample.weights) == (
        "IW 3", [1.0, 2.0, 4.0], [0.25, 0.25, 0.5])
