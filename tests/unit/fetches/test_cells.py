"""Tables and figures of cells, and the report of a run: means, answers, notes, missing data."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest
from matplotlib.text import Text

from firstflight.base.stats import Estimate
from firstflight.figures.compare import Row
from firstflight.findings import drawing
from firstflight.findings.charts import BarChart, GroupChart, TimeChart
from firstflight.findings.difference import Excluded
from firstflight.findings.findings import Finding, Report, Rounded
from firstflight.runs import runs, scenario_file
from firstflight.runs.kinds import Overrides, RunData, Study
from firstflight.runs.results.records import FAIL, SKIPPED
from firstflight.setting.server import OWN
from firstflight.study import registry
from firstflight.study.fetches import expand
from firstflight.study.population import ablation
from firstflight.workloads.fetch.figures import answer
from firstflight.workloads.fetch.scenario import reading
from firstflight.workloads.fetch.figures import bars, ccdf, cells, figure, swept_bars
from firstflight.workloads.fetch.figures.bar_figure import BarFigure, Sample
from firstflight.workloads.fetch.figures.bars import chart
from firstflight.workloads.fetch.figures.cell_tables import cells_finding, trials_table
from firstflight.workloads.fetch.figures.claims import judge_bars
from firstflight.workloads.fetch.figures.raw_cells import PublishedCells, finding, published_cells
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.scenario.figures import ALSO
from firstflight.workloads.fetch.scenario.population import Population, Populations
from firstflight.workloads.fetch.scenario.scenario import Figure, Scenario
from firstflight.workloads.fetch.trial import Trial
from firstflight.workloads.fetch.scenario.varied_parameters import requested_columns, setting_words
from tests.golden import stored, stored_fetches, stored_questions
from tests.golden.answers import answered, cell
from tests.golden.stored import load
from tests.golden.stored_fetches import RAW_AND_CAUSES
from tests.unit.drawing import samples


def test_the_table_of_cells_averages_what_counts_and_says_why_the_rest_does_not(
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


def test_a_cell_without_a_measurement_has_a_row_with_its_error(stored: list[Record]) -> None:
    settings = cells.settings([Record(trial=stored[0].trial, ok=False, error="killed")])
    (table,) = cells_finding(settings, cells.changes(settings)).tables
    assert table.column("total") == [None] and table.notes == ("[1] killed",)


def test_each_parameter_in_which_trials_differ_has_a_column(stored: list[Record]) -> None:
    """A parameter at its default has no column, nor has an uplink as fast as the downlink.

    But where another trial loses packets, the words of a network without loss name its loss.
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
    with_bbr = [replace(trial, congestion_control="bbr") for trial in trials]
    assert "congestion control" in [column.name for column, _ in requested_columns(with_bbr)]
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


# Every trial -------------------------------------------------------------------------


def test_a_table_of_trials_shows_500_rows_and_counts_the_hidden_ones(stored: list[Record]) -> None:
    table = trials_table([replace(stored[0], trial=replace(stored[0].trial, response_bytes=size))
                          for size in range(1, 1200)])  # 1199 records
    assert (len(table.rows), table.hidden_rows) == (500, 699)


# The answer of a run: its sentences are in tests/golden/answers.py -------------------

def test_an_answer_shows_the_comparisons_with_the_largest_effects_and_counts_the_others() -> None:
    cells = []
    for queue in range(30, 60):  # 30 comparisons; as many ms are saved as the queue has packets
        cells.append(cell(10, 200.0, queue_packets=queue))
        cells.append(cell(20, 200.0 - queue, queue_packets=queue))

    table = answered(*cells).table
    assert table is not None and (len(table.rows), table.hidden_rows) == (answer.MOST_ROWS, 10)
    # The queue is the first column, as all cells are alike in the other parameters.
    assert min(row[0] for row in table.rows) == 40


# Published raw values -----------------------------------------------------------------

def cells_of(scenario: Scenario, records: Sequence[Record]) -> PublishedCells:
    cells = published_cells(scenario, records)
    assert isinstance(cells, PublishedCells)
    return cells


def test_raw_values_mark_published_cells_with_defects_and_compare_the_others(
        scenario: Scenario, stored: list[Record]) -> None:
    cells = cells_of(scenario, stored)
    rows, of_trial = cells.rows, cells.of_trial
    assert len(rows) == len(of_trial) == 128 and all(row.n == 1 for row in rows)
    row = next(row for row in rows if (row.initcwnd, row.rtt_ms, row.bandwidth_kbps)
               == (10, 1000, 7000))
    assert row.published_ms == 3017 and row.comparable_ms == 2017 and row.mark == ""
    # Two windows at six RTTs and three bandwidths, then two windows at two RTTs and all eight.
    assert sum(row.mark == "u" for row in rows) == 2 * 6 * 3
    assert sum(row.mark == "f" for row in rows) == 2 * 2 * 8
    compared = finding(scenario, scenario.raw, stored).tables[-1].notes[-1]
    assert re.match(r"Without it the 60 comparable cells differ by \d\.\d ms", compared)
    lacking = finding(scenario, scenario.raw, []).tables
    assert "–/2203f" in lacking[0].rows[-1]
    assert not any("comparable" in note for note in lacking[-1].notes)


# Bar charts: their axes, shares, whiskers and published values ------------------------

def bars_of(name: str, figure: str, like_the_papers: bool = False, one_in: int = 1) -> BarChart:
    """The bar chart of a figure of a stored run.

    like_the_papers: the scenario has a population drawn from the paper's, one client in one_in.
    """
    scenario = stored_fetches.scenario(name)
    if like_the_papers:
        people = Population(scenario.sweeps[0].name, "", (3, 10))
        scenario = replace(scenario, drawn=Populations(
            name, (people,), (), stored_fetches.stored(name)[0].trial, table=name,
            one_in=one_in))
    made = chart(scenario, judge_bars(stored_fetches.bar_figures(name)[figure], ()))
    assert isinstance(made, BarChart)
    return made


def test_the_shares_of_a_sampled_population_are_not_called_the_papers() -> None:
    assert bars_of("zhao2019", "fig5_rtt", True).above == "share of the paper's responses"
    assert bars_of("zhao2019", "fig5_rtt", True, one_in=8).above == (
        "share of the responses of one client in 8")


def test_a_windows_whisker_is_the_paired_interval_of_its_time() -> None:
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


def test_published_values_next_to_a_population_like_the_papers_are_called_the_papers() -> None:
    assert bars_of("zhao2019", "fig5_rtt", like_the_papers=True).publisher == "in the paper"


# The complementary distribution -------------------------------------------------------

# Latencies in ms and their weights, under windows of 3 and 10 segments.
SLOW = Sample(3, [400.0, 100.0, 200.0], [1.0, 2.0, 1.0])
FAST = Sample(10, numpy.array([90.0, 150.0, 300.0]), numpy.array([2.0, 1.0, 1.0]))
PANEL = BarFigure(
    Figure(name="tail", title="Latency", kind="improvement", sweep="grid", by="rtt_ms",
           windows=(3, 10), metric="latency_ms"),
    bars=(), client="curl", congestion_control="cubic", samples=(SLOW, FAST))


@pytest.fixture(scope="module")
def drawn() -> Any:
    with drawing.style.settings():
        yield drawing.figure_of(ccdf.chart(PANEL, samples.bar_chart()))


def test_every_chart_that_a_file_can_request_with_also_has_a_function() -> None:
    assert {*bars.CHARTS} == {*ALSO}


@pytest.mark.parametrize("name", ALSO)
def test_no_text_of_a_chart_requested_with_also_is_clipped_or_overlaps(name: str) -> None:
    with drawing.style.settings():
        samples.check_fits(drawing.figure_of(bars.CHARTS[name](PANEL, samples.bar_chart())))


def test_a_curve_is_the_weight_above_each_value() -> None:
    values, percent = ccdf.curve(SLOW)
    assert list(values) == [100, 200, 400]
    assert list(percent) == [50, 25, 0]


def test_the_words_of_a_ccdf_speak_of_curves_not_of_triangles() -> None:
    chart = ccdf.chart(PANEL, replace(samples.bar_chart(), compared="two weeks"))
    words = " ".join(text.get_text() for text in drawing.figure_of(chart).findobj(Text))
    assert "Curves: two weeks" in words and "Triangles" not in words


def test_a_ccdf_has_both_windows_on_logarithmic_axes(drawn: Any) -> None:
    (axes,) = drawn.axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert [list(line.get_xdata()) for line in axes.lines] == [[100, 200, 400], [90, 150, 300]]
    low, high = axes.get_xlim()
    assert low < 90 and 200 < high < 400  # nothing stands above the last step
    assert axes.get_ylim() == (ccdf.LEAST_PERCENT, 100)
    assert axes.get_xlabel() == "Latency (ms)"
    (legend,) = drawn.legends
    assert [text.get_text() for text in legend.get_texts()] == ["IW 3", "IW 10"]


# What a figure's bars are averaged over, and the servers in its heading ---------------

@pytest.mark.parametrize(("weights", "published", "over"), [
    ("", "", ""), ("joint", "", "the joint distribution of RTT and bandwidth"),
    ("response_bytes", "", "response sizes by the paper's shares"),
    ("bdp_bytes", "", "bandwidth-delay products by the paper's shares"),
    ("rtt_ms", "paper_figure5.csv", "RTT by the paper's shares"),
    ("bandwidth_kbps", "theirs.csv", "bandwidth by its shares")])
def test_a_figure_names_what_its_bars_are_averaged_over(weights: str, published: str,
                                                        over: str) -> None:
    (drawn, *_) = reading.read_scenario(scenario_file.find("zhao2019")).figures
    assert bars.averaged(replace(drawn, weights=weights, published=published)) == over


def test_a_figures_context_names_the_server() -> None:
    """The project's own server over HTTP/1.1 is not named where there is no other one."""
    def context(*servers: tuple[str, str]) -> str:
        return figure.heading([Record(replace(load("iw10").trial, server=server, http=http), True,
                                      verdict="pass") for server, http in servers])[0]

    start, rest = "real Linux TCP", ": RTT 100 ms, BW 1 Mbit/s, size 9 kB, IW 10 segments"
    assert context(("builtin", "1.1")) == f"{start}{rest}"
    assert context(("nginx", "1.1")) == f"{start}; server: nginx{rest}"
    assert context(("builtin", "1.1"), ("own", "2")) == (
        f"{start}; servers: server.py, one's own (HTTP/2){rest}")


def test_a_cells_weight_is_shared_by_its_repeats() -> None:
    cells = []
    for values in ([1.0, 2.0], [4.0]):  # two repeats in the first cell, one in the second
        rows = [Row(cell=None, window=3, unit=repeat, weight=1.0, value=value)
                for repeat, value in enumerate(values)]
        cells.append(swept_bars.CellRows(1.0, rows, Excluded(), lossless=True))

    sample = swept_bars._sample(3, [(cell, 0.5) for cell in cells])
    assert (sample.name, sample.values, sample.weights) == (
        "IW 3", [1.0, 2.0, 4.0], [0.25, 0.25, 0.5])


# The report of a run ------------------------------------------------------------------

def zhao(records: Any, **facts: Any) -> Report:
    """The report of zhao2019 with these records. facts: of the run, such as its state."""
    return stored_fetches.report("zhao2019", records, **facts)


def changed(records: list[Record], **by_place: Record) -> list[Record]:
    """The records with some of them replaced: at5=record replaces the one with index 5."""
    return [by_place.get(f"at{place}", record) for place, record in enumerate(records)]


def found_in(report: Report, name: str) -> Finding:
    return next(finding for finding in report.findings if finding.name == name)


def failed(record: Record) -> Record:
    return replace(record, ok=False, verdict=SKIPPED, error="curl 28: timed out", total_ms=None)


def test_an_unknown_check_has_a_row_in_the_table_of_checks(stored: list[Record]) -> None:
    refused = replace(stored[40], verdict=FAIL, failed_checks="RTT; new check")
    report = zhao(changed(stored, at5=failed(stored[5]), at40=refused))
    assert report.checks is not None
    judged = {row[0]: row[2:] for row in report.checks.rows}  # passed, failed, not judged
    assert judged["RTT"] == (126, 1, 1) and judged["size"] == (127, 0, 1)
    assert judged["new check"] == (None, 1, None)
    in_real_time = zhao(stored, virtual_time=False).checks
    assert in_real_time is not None and "model" not in in_real_time.column("check")


def test_a_figure_without_its_cells_says_how_to_get_them(stored: list[Record]) -> None:
    report = zhao(stored[:4])
    missing = [finding.missing for finding in report.findings if finding.missing]
    assert len(missing) == 3 and all("./run.sh --scenario zhao2019" in why for why in missing)
    assert report.findings[0].name == "cells"  # since no figure has rows
    assert "3 → 10. Of 2 comparisons: 1 faster" in report.answer.sentence
    spoiled = zhao([failed(record) if record.trial.rtt_ms == 20 else record for record in stored])
    assert "bucket 20 counts (16 failed transfers)" in found_in(spoiled, "fig5_rtt").missing
    assert found_in(spoiled, "fig5_bw").chart is not None


def test_records_of_several_clients_are_refused_where_a_sweep_names_another(
        stored: list[Record]) -> None:
    mixed = [replace(record, trial=replace(record.trial, client=("wget", "libcurl")[place % 2]))
             for place, record in enumerate(stored)]
    report = zhao(mixed)
    for name in ("fig5_rtt", "fig5_bw", "fig5_bdp", "raw"):
        assert "the records mix libcurl and wget in sweep 'grid'" in found_in(report, name).missing
    assert found_in(report, "raw").title == "paper/zhao2019_raw.csv"
    assert not found_in(zhao([replace(record, trial=replace(record.trial, client="wget"))
                             for record in stored]), "raw").missing


def test_an_interrupted_run_says_so(stored: list[Record]) -> None:
    assert "was interrupted" in zhao(stored[:4], state=runs.RUNNING).sentences[-1]
    assert "was interrupted" not in zhao(stored[:4]).sentences[-1]


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_metric_that_is_zero_in_some_repeats_has_a_percentage(stored: list[Record]) -> None:
    """A resampled baseline of 0 gives neither a warning nor a percentage that is no number."""
    bandwidth_kbps = stored[0].trial.bandwidth_kbps
    repeats = []
    for record in stored:
        for repeat in (1, 2):
            # A time of 0 ms but in the first repeat at one bandwidth.
            is_timed = repeat == 1 and record.trial.bandwidth_kbps == bandwidth_kbps
            repeats.append(replace(record, trial=replace(record.trial, repeat=repeat),
                                   total_ms=float(record.trial.initcwnd if is_timed else 0)))

    percents = found_in(zhao(repeats), "fig5_rtt").tables[0].column("", "improved")
    assert percents and all(value == value for value in percents)  # a NaN is not equal to itself


# Reports of runs in which something is missing ----------------------------------------

NGINX, PLAIN = stored.load("nginx"), stored.load("nginx_plain")


def without_data(trial: stored.Stored) -> stored.Stored:
    """The trial as if its server had never answered."""
    return trial.captured(*([packet for packet in stored.read(side)
                             if not (packet.to_client and packet.payload_bytes)]
                            for side in (trial.client, trial.server)))


# An answer is missing in the packets -------------------------------------------------

def test_a_server_that_did_not_answer_is_a_failed_verdict() -> None:
    record = without_data(PLAIN).judge()
    assert (record.verdict, record.verdict_reason) == (
        FAIL, "capture: no request with an answer to it")


def test_the_certificate_of_ones_own_server_has_no_size_to_compare() -> None:
    own = json.dumps({"command": "serve {p}", "ca": "/c/root.pem"})
    mine = NGINX.requested(server=OWN, own_server=own, chain_bytes=0)
    record = mine.judge()
    assert record.counts and record.flight_bytes == NGINX.judge().flight_bytes


# Records do not count ----------------------------------------------------------------

def requested(change: Callable[[Record], Record] = lambda record: record,
          **lists: list[float]) -> Report:
    """The report of a question about RTT and window, with records of zhao2019's stored run.

    change: what happens to each record. lists: other values of the question's parameters.
    """
    made = registry.own_question("own", Overrides({
        "rtt_ms": [20, 50, 100], "bandwidth_kbps": [1000], "response_bytes": [9000],
        "initcwnd": [3, 10], "initrwnd": [27], "queue": ["1000"], **lists}, client="curl"))
    assert isinstance(made, Study)
    cells = {replace(trial, scenario="zhao2019") for trial in made.trials}
    return made.report(RunData(Path("own"), stored_fetches.FACTS, [
        change(record) for record in stored_fetches.stored("zhao2019") if record.trial in cells]))


def names(report: Report) -> list[str]:
    return [finding.name for finding in report.findings]


def test_a_map_of_one_window_compares_nothing() -> None:
    grid: dict[str, list[float]] = {"bandwidth_kbps": [56, 1000]}
    assert "map" in names(requested(**grid)) and "map" not in names(requested(**grid, initcwnd=[3]))


def test_a_cell_that_does_not_count_has_no_bar() -> None:
    report = requested(
        lambda record: replace(record, verdict=FAIL, verdict_reason="RTT: observed 1")
        if record.trial.rtt_ms == 50 else record)
    found = found_in(report, "bars")
    assert isinstance(found.chart, GroupChart)
    assert [(label, [bar is None for bar in bars]) for label, bars in found.chart.groups] == [
        ("20", [False, False]), ("50", [True, True]), ("100", [False, False])]
    (table,) = found.tables
    assert table.rows[1][0] == "50" and set(table.rows[1][1:]) <= {None, ""}
    assert found.sentence == ("RTT 20 ms: 120 ms with 3, 120 ms with 10; RTT 50 ms: nothing"
                              " counts; RTT 100 ms: 356 ms with 3, 280 ms with 10.")


def test_the_sentence_of_an_empty_map_says_that_nothing_counts() -> None:
    report = requested(lambda record: replace(record, verdict=FAIL), bandwidth_kbps=[56, 1000])
    found = found_in(report, "map")
    assert found.sentence == "Nothing that was measured counts."
    assert {cell for row in found.tables[0].rows for cell in row[1:]} == {None}


def test_steps_and_levels_name_cells_that_were_not_measured() -> None:
    report = stored_questions.steps_of(slice(0, -1))
    assert [finding.missing.partition(" (")[0] for finding in report.findings] == [
        "1 of 2 cells"] * 2
    assert all("were not measured; measure with ./run.sh" in finding.missing
               for finding in report.findings)


def test_a_population_that_is_not_explained_has_no_steps() -> None:
    drawn = stored_fetches.scenario("dukkipati2010").drawn
    plain = tuple(replace(population, explained=False) for population in drawn.populations)
    assert ablation.measured_steps(replace(drawn, populations=plain), []) == []


# Nothing is published of a scenario's figures ----------------------------------------

def test_sweeps_with_published_raw_values_only_are_measured_without_their_figures() -> None:
    """A scenario takes over the figures of another one only with their published values."""
    own = RAW_AND_CAUSES.replace("[as_published]", """[[figure]]
name = "ours"
title = "Ours"
kind = "improvement"
sweep = "grid"
by = "rtt_ms"
windows = [3, 10]
metric = "total_ms"

[as_published]""")
    found = reading.read_scenario(scenario_file.parse("mine", own))
    assert found.figures == () and [sweep.name for sweep in found.sweeps] == ["grid"]


# Notes on what limited a fetch besides its window -------------------------------------

def limited(stored: list[Record], **columns: object) -> list[Record]:
    """The records, with these columns in the first fetch that has a window of 10.

    A fetch with a retransmission is passed over.
    """
    place = next(place for place, record in enumerate(stored) if record.trial.initcwnd == 10
                 and not record.retransmission_cause)
    return [*stored[:place], replace(stored[place], **columns),
            *stored[place + 1:]]  # type: ignore[arg-type]


def sentences_of_figures(report: Report) -> list[str]:
    """The sentence and the notes of each figure with a chart."""
    return [text for found in report.findings if found.chart for text in
            (found.sentence, " ".join(found.tables[0].notes))]


def test_notes_on_a_figure_skip_records_that_do_not_count(stored: list[Record]) -> None:
    records = limited(stored, limited_by="receive window", verdict="fail", verdict_reason="RTT: x")
    assert not any("receive window" in text for text in sentences_of_figures(
        stored_fetches.report("zhao2019", records)))
