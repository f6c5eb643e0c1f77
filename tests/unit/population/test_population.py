"""Drawn populations: their fit, their bars by weight, what is held out, and the causes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy
import pytest

from firstflight.base.errors import FirstFlightError, UsageError
from firstflight.base.words import plain
from firstflight.findings.charts import BarPage, GridChart, LineChart, SquareChart
from firstflight.findings.findings import Report, bars
from firstflight.runs import scenario_file
from firstflight.runs.results.records import FAIL, PASS
from firstflight.study.fetches import reading
from firstflight.study.fetches.figures import kinds
from firstflight.study.fetches.figures.bar_figure import BarFigure, NoBars
from firstflight.study.fetches.figures.bars import figure_table
from firstflight.study.fetches.figures.claims import judge_bars
from firstflight.study.fetches.figures.drawn_bars import bar_figure, pair_of, responses_of
from firstflight.study.fetches.record import Record
from firstflight.study.fetches.scenario import rows
from firstflight.study.fetches.scenario.population import percentile_of
from firstflight.study.fetches.scenario.scenario import Scenario
from firstflight.study.fetches.scenario.trial import Trial
from firstflight.study.population import ablation, findings as fit
from firstflight.study.population.ablation import close
from firstflight.study.population.findings import population_findings
from tests.golden import stored, stored_fetches
from tests.unit.core.example import whole

NAME = "dukkipati2010"


def test_the_parameters_that_are_told_are_those_that_the_rows_were_drawn_with() -> None:
    drawn = {table["name"]: table for table in scenario_file.read(
        rows.FOLDER / f"{NAME}.toml", "x").raw["population"]}
    told = dict(zip(*(fit.fit_findings(NAME)[0].tables[0].column(name)
                      for name in ("parameter", "value"))))

    def word(value: object) -> str:
        return ("yes" if value is True else ", ".join(map(str, value)) if isinstance(value, list)
                else plain(value))  # type: ignore[arg-type]

    assert {name: told[name] for name in list(told)[:17]} == {
        name: word(value) for name, value in drawn["avgdc"]["mechanism"].items()}
    own = {"windows": "AvgDC, six windows", "slowdc": "SlowDC"}
    assert {name: told[name] for name in list(told)[17:]} == {
        f"{name}, {title}": word(value) for part, title in own.items() for name, value in (
            *drawn[part]["mechanism"].items(), *((name, drawn[part][name]) for name in drawn[part]
                                                 if name == "rtt_at_most_ms"))}


def test_what_is_held_out_has_no_parameter_of_its_own() -> None:
    """Every figure that says so is of a population with all of the fitted one's values."""
    scenario = reading.read_scenario(scenario_file.find(NAME))
    held_out = {figure.sweep for figure in scenario.figures if figure.held_out}
    assert held_out == {"slowdc_held_out"}
    avgdc, _, slowdc, apart = scenario_file.read(rows.FOLDER / f"{NAME}.toml",
                                                 "x").raw["population"]
    assert {**avgdc["mechanism"], **slowdc["mechanism"], **apart["mechanism"]} == avgdc["mechanism"]
    slow = {figure.name for figure in scenario.figures if figure.sweep == "slowdc"}
    assert slow == {"fig6", "table3_slowdc", "table4"}  # fitted: three parameters of their own


def test_three_findings_are_told_of_the_fit() -> None:
    fitted, profiles, without = fit.fit_findings(NAME)
    parameters, free, numbers, held = fitted.tables
    assert free.column("how many") == [15, 2, 2, 79] and "correlated" in free.notes[0]
    rests_on = parameters.column("from")
    assert (rests_on[:17].count("fitted"), rests_on[:17].count("by hand")) == (15 - 1, 1)
    assert sum(int(str(count)) for used, count in zip(numbers.column("used"),
               numbers.column("how many")) if str(used).startswith("fitted")) == 79
    assert fitted.sentence.startswith("15 parameters are fitted to 79 correlated numbers, 2 are"
                                      " set by hand, and 2 belong to SlowDC. They are compatible")
    assert "Table 3, SlowDC 0 of 7" in fitted.sentence  # it has parameters of its own
    chart = profiles.chart
    assert len(held.rows) == 15 and isinstance(chart, LineChart)
    assert sum(map(len, chart.columns)) == 15
    off, tried = without.tables
    assert len(off.rows) == 13 and tried.rows


def test_a_damaged_file_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(fit, "FITS", tmp_path)
    assert fit.fit_findings(NAME) == ()
    for damaged in ("{", "[]", '{"is": "Finding"}'):
        (tmp_path / f"{NAME}.json").write_text(damaged, encoding="utf-8")
        with pytest.raises(FirstFlightError, match="dukkipati2010.json: holds no findings"):
            fit.fit_findings(NAME)


# The bars of a population are the published ones --------------------------------------


@pytest.mark.parametrize(("more_ms", "verdict", "is_slower"), [
    (1.5, PASS, True), (0.9, PASS, False), (-5.0, PASS, False), (1.5, FAIL, False),
    (None, PASS, False)])
def test_a_response_is_slower_from_a_millisecond_on(more_ms: float | None, verdict: str,
                                                    is_slower: bool) -> None:
    base = stored.load("iw3").judge()
    latency_ms = None if more_ms is None else (base.latency_ms or 0.0) + more_ms
    assert ablation.is_slower(base, replace(base, latency_ms=latency_ms,
                                              verdict=verdict)) is is_slower


# Drawn populations --------------------------------------------------------------------

# Milliseconds that each segment of a window saves, where it is not 1.
SAVED = {"avgdc-clean": 2.0, "avgdc-network": 4.0, "avgdc-lossy": -1.0}


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return stored_fetches.scenario(NAME)


@pytest.fixture(scope="module")
def records(scenario: Scenario) -> list[Record]:
    """Of each part some clients in every bucket of Figure 5, two responses each; every window
    saves a millisecond for each segment."""
    made = []
    parts = [(part.name, part.initcwnd) for part in scenario.drawn.populations]
    # What the steps change: of the last two that trials are measured for, all but a third.
    parts += [(f"avgdc-{cause.name}", (3, 10)) for cause in scenario.drawn.steps[:5]]
    for part, windows in parts:
        clients = [(rtt, bandwidth) for rtt in (15.0, 40, 90, 150, 400, 900, 2500, 4000)
                   for bandwidth in (40.0, 200, 400, 900, 1500, 2500, 4500, 9000)]
        for number, (rtt_ms, bandwidth_kbps) in enumerate(clients * 2):
            if part in ("avgdc-network", "avgdc-lossy") and number % 3 == 0:
                continue
            for initcwnd in windows:
                trial = Trial(
                    **scenario.drawn.template.fields, scenario=NAME, uplink_kbps=1.0,
                    queue_packets=1000, rtt_ms=rtt_ms, bandwidth_kbps=bandwidth_kbps,
                    key_rtt_ms=rtt_ms, key_bandwidth_kbps=bandwidth_kbps, part=part,
                    sample=number, weight=1.0 + number, initcwnd=initcwnd,
                    response_bytes=1430 * (1, 4, 7, 10, 15, 30, 50, 90)[number % 8])
                made.append(Record(trial=trial, ok=True, verdict="pass",
                                   latency_ms=1000 + rtt_ms - SAVED.get(part, 1) * initcwnd))
    return made


@pytest.fixture(scope="module")
def report(records: list[Record]) -> Report:
    return stored_fetches.report(NAME, records)


@pytest.fixture(scope="module")
def bar_figures(scenario: Scenario, records: list[Record]) -> dict[str, BarFigure]:
    made, missing = kinds.bar_figures(scenario, records)
    assert not missing, missing
    return made


def test_means_carry_the_weights(bar_figures: dict[str, BarFigure], records: list[Record]) -> None:
    panel = bar_figures["fig5_rtt"]
    assert len(panel.bars) == 8 and panel.n == 256
    own = [record for record in records if record.trial.part == panel.figure.sweep
           and record.trial.initcwnd == 3 and record.trial.rtt_ms == 15]
    weights = numpy.array([record.trial.weight for record in own])
    first = panel.bars[0].difference
    assert first.base.value == pytest.approx(1012) and first.absolute.value == 7
    every = sum(record.trial.weight for record in records
                if record.trial.part == panel.figure.sweep and record.trial.initcwnd == 3)
    assert panel.bars[0].share_percent == pytest.approx(100 * weights.sum() / every)
    assert first.absolute.interval == pytest.approx((7, 7))
    assert [(sample.name, len(sample.values)) for sample in panel.samples] == [
        ("IW 3", 128), ("IW 10", 128)]
    assert numpy.average(numpy.subtract(panel.samples[0].values, panel.samples[1].values),
                         weights=panel.samples[0].weights) == pytest.approx(7)


def test_every_window_is_compared_with_the_baseline(bar_figures: dict[str, BarFigure]) -> None:
    sweep = bar_figures["fig2"]
    windows = [bucket.value for bucket in sweep.bars]
    assert windows == [3, 6, 10, 16, 26, 42]
    assert [bucket.difference.absolute.value for bucket in sweep.bars] == pytest.approx(
        [window - 3 for window in windows])
    assert all(bucket.difference.n == 128 for bucket in sweep.bars)
    assert [sample.name for sample in sweep.samples] == [f"IW {each:.0f}" for each in windows]


def test_percentiles_are_values_that_were_measured(bar_figures: dict[str, BarFigure],
                                                   records: list[Record]) -> None:
    table = bar_figures["table3_avgdc"]
    assert [bucket.label for bucket in table.bars][:3] == ["mean", "p10", "p50"]
    own = sorted((record.latency_ms or 0, record.trial.weight) for record in records
                 if record.trial.part == table.figure.sweep and record.trial.initcwnd == 3)
    cumulated = numpy.cumsum([weight for _, weight in own])
    half = own[int(numpy.searchsorted(cumulated, cumulated[-1] / 2))][0]
    median = table.bars[2].difference
    assert median.base.value == half and median.absolute.value == 7
    assert table.n == table.bars[0].difference.n == 256  # of the same records: they count once
    slow = bar_figures["table4"]
    assert slow.bars[0].difference.n == 2 * 16  # of the clients up to 56 kbit/s


def test_two_weeks_are_told_beside_the_window_alone(scenario: Scenario,
                                                    records: list[Record]) -> None:
    """The baseline's week has the far ones thrice as often: what is saved has two parts."""
    figure = next(each for each in scenario.figures if each.name == "table3_avgdc")
    far = {record.trial.sample for record in records if (record.trial.key_rtt_ms or 0) > 300}
    leaning = [replace(record, trial=replace(record.trial, weight=3 * record.trial.weight))
               if record.trial.initcwnd == 3 and record.trial.sample in far else record
               for record in records]
    side_by_side, two_weeks = (bar_figure(
        scenario.drawn, figure, responses_of(figure.sweep, each)).bars[0].difference
        for each in (records, leaning))
    assert side_by_side.same is None and two_weeks.same is not None
    alone = two_weeks.same.absolute
    assert alone.value == pytest.approx(side_by_side.absolute.value) == pytest.approx(7)
    assert alone.interval == pytest.approx((7, 7))
    assert two_weeks.experiment.value == pytest.approx(side_by_side.experiment.value)
    assert two_weeks.absolute.value > 2 * alone.value
    own = [record for record in leaning if record.trial.part == figure.sweep
           and record.trial.initcwnd == 3]
    assert two_weeks.base.value == pytest.approx(numpy.average(
        [record.latency_ms or 0 for record in own],
        weights=[record.trial.weight for record in own]))
    table = figure_table(scenario, judge_bars(
        bar_figure(scenario.drawn, figure, responses_of(figure.sweep, leaning)), ()))
    assert "the window alone" in {column.group for column in table.columns}
    assert any("what the window does" in note for note in table.notes)


def test_a_response_without_its_counterpart_is_counted(scenario: Scenario,
                                                       records: list[Record]) -> None:
    figure = next(each for each in scenario.figures if each.name == "fig5_rtt")
    first = next(place for place, record in enumerate(records)
                 if record.trial.part == figure.sweep and record.trial.initcwnd == 3)
    spoiled = [replace(record, verdict="fail") if place == first else record
               for place, record in enumerate(records)]
    panel = bar_figure(scenario.drawn, figure, responses_of(figure.sweep, spoiled))
    assert str(panel.excluded) == "1 record without its counterpart" and panel.n == 254
    with pytest.raises(NoBars, match="nothing of population 'other' was measured"):
        pair_of("other", responses_of("other", records), (3, 10), "latency_ms")
    with pytest.raises(NoBars, match="counts under both windows, 3 and 11"):
        pair_of(figure.sweep, responses_of(figure.sweep, records), (3, 11), "latency_ms")


@pytest.mark.parametrize("label", ["p0", "p100", "q50", "pfifty", "50", "p", "pp50", "p-1", "pnan"])
def test_a_label_that_is_no_percentile_is_named(label: str) -> None:
    assert percentile_of("mean") is None and percentile_of("p50") == 0.5
    assert (percentile_of("p0.5"), percentile_of("p99.5")) == (0.005, 0.995)
    with pytest.raises(UsageError, match=f"'{label}' is not a percentile"):
        percentile_of(label)


def test_beside_the_figures_stand_figure_5_the_causes_and_the_distributions(
        scenario: Scenario, records: list[Record], report: Report) -> None:
    drawn = {name for figure in scenario.figures for name in (
        figure.name, *(f"{figure.name}_{also}" for also in figure.also))}
    others = {each.name: each for each in report.findings if each.name not in drawn}
    assert list(others)[:6] == ["fig5", "causes", "two_weeks", "held_out", "joint_average",
                                "joint_slow"]
    near, of = others["two_weeks"].tables[0].rows[0][1:3]
    assert (near, of) == (
        sum(map(close, ablation.explained(scenario.drawn, records)[-1].bars["RTT"])), 8)
    paper = [row[4] for row in others["two_weeks"].tables[0].rows]
    assert paper == pytest.approx([560.2, 561.5, 583.4], rel=0.001)  # tests/unit/paper/test_draw.py
    page = others["fig5"].chart
    assert isinstance(page, BarPage) and [chart.axis for chart in page.charts] == [
        "RTT (ms)", "Bandwidth (kbit/s)", "Bandwidth-delay product (bytes)"]
    grid = others["joint_slow"].chart
    assert isinstance(grid, GridChart) and grid.shares.shape == (len(grid.x), len(grid.y))
    assert numpy.nansum(grid.shares) == pytest.approx(100)
    assert grid.diagonals[0] == (8000.0, "BDP 1000 B")


def test_the_steps_are_of_the_panels_own_responses_and_the_last_is_the_panel(
        scenario: Scenario, records: list[Record], bar_figures: dict[str, BarFigure]) -> None:
    found = ablation.explained(scenario.drawn, records)
    assert [step.title for step in found] == [cause.title for cause in scenario.drawn.steps]
    saved = [step.base_ms - step.experiment_ms for step in found]
    # What the network does not change keeps the step before: a third of the responses.
    assert saved[:2] == pytest.approx([14, 7])
    assert 7 < saved[3] < 28 and saved[4] < 0 and saved[5:] == pytest.approx([7, 7, 7])
    for axis, name in (("RTT", "fig5_rtt"), ("BW", "fig5_bw"), ("BDP", "fig5_bdp")):
        assert found[-1].bars[axis] == list(bar_figures[name].bars)
    assert found[4].slower == {"its last acknowledgement waited for the client's timer": 85}
    assert not found[-1].slower


def test_steps_before_the_weeks_stand_for_what_they_had(scenario: Scenario,
                                                        records: list[Record]) -> None:
    """The panel's weights hold from the step that brings them, the baseline's at the last."""
    far = {record.trial.sample for record in records if (record.trial.key_rtt_ms or 0) > 300}

    def leaning(record: Record) -> Record:
        if record.trial.part != "avgdc" or record.trial.sample not in far:
            return record
        times = 6 if record.trial.initcwnd == 3 else 2
        return replace(record, trial=replace(record.trial, weight=times * record.trial.weight))

    plain, changed = (ablation.explained(scenario.drawn, each) for each in
                      (records, list(map(leaning, records))))
    assert [step.base_ms for step in changed[:6]] == [step.base_ms for step in plain[:6]]
    assert plain[6].base_ms < changed[6].base_ms < changed[7].base_ms
    assert changed[6].experiment_ms == changed[7].experiment_ms


def test_the_steps_are_told_and_drawn(report: Report) -> None:
    finding = next(each for each in report.findings if each.name == "causes")
    chart = finding.chart
    assert isinstance(chart, SquareChart) and [each.title for each in chart.maps] == [
        "by RTT (ms)", "by Bandwidth (kbit/s)", "by Bandwidth-delay product (bytes)"]
    assert len(chart.rows) == 9 and chart.rows[0] == "the paper"
    assert [len(table.rows) for table in finding.tables] == [8, 9, 9, 9]
    assert "slower with 10 segments" in finding.sentence


def test_only_what_a_step_changes_is_measured(scenario: Scenario) -> None:
    by_part: dict[str, dict[tuple[int, int], Trial]] = {}
    for trial in whole(NAME).trials:
        if trial.part.startswith("avgdc"):
            by_part.setdefault(trial.part, {})[trial.sample, trial.initcwnd] = trial
    assert list(by_part) == ["avgdc",
                             *(f"avgdc-{cause.name}" for cause in scenario.drawn.steps[:5])]
    assert len(by_part["avgdc-clean"]) == 1350 * 2
    so_far = dict(by_part["avgdc-clean"])
    for part in ("avgdc-staged", "avgdc-kept", "avgdc-network", "avgdc-lossy"):
        for place, trial in by_part[part].items():
            before = replace(so_far[place], part=part, weight=trial.weight)
            assert before != trial  # else it need not be measured
        so_far.update(by_part[part])
    panel = by_part["avgdc"]
    for place, trial in so_far.items():  # all but the queue is the panel's
        assert replace(trial, part="avgdc", queue_packets=27, weight=1) == replace(
            panel[place], weight=1)


def test_causes_that_were_not_measured_are_missing(scenario: Scenario,
                                                   records: list[Record]) -> None:
    shown = {figure.sweep for figure in scenario.figures}
    found = population_findings(scenario, scenario.drawn, [record for record in records
                                           if record.trial.part in shown], [], [])
    assert [(each.name, bool(each.missing)) for each in found][0] == ("causes", True)


def test_the_saving_is_told_in_parts_that_add_up(scenario: Scenario,
                                                 records: list[Record]) -> None:
    """The other week: more responses in far buckets, and longer ones within the buckets."""
    leaning = [replace(record, trial=replace(record.trial, weight=record.trial.weight * (
        1 + (record.trial.key_rtt_ms or 0) / 1000 + (record.trial.key_bandwidth_kbps or 0) / 9000)))
        if record.trial.initcwnd == 3 and record.trial.part == "avgdc" else record
        for record in records]
    report = stored_fetches.report(NAME, leaning)
    (weeks,) = (each for each in report.findings if each.name == "two_weeks")
    parts = weeks.tables[1]
    every, alone, other, far, within = (float(str(cell)) for cell in parts.column("ours"))
    assert every == pytest.approx(alone + other) and other == pytest.approx(far + within)
    assert alone == pytest.approx(7) and far > 10
    saved = weeks.tables[0].column("ours", "saved")[0]
    assert every - far == pytest.approx(saved) and within == pytest.approx(float(str(saved)) - 7)
    # Of the paper what it prints: Table 3, and Figure 5's RTT panel.
    assert parts.column("paper") == [68, None, None, pytest.approx(23.2, abs=0.05), None]


def test_what_is_held_out_stands_next_to_what_was_fitted(scenario: Scenario,
                                                         records: list[Record]) -> None:
    """The same published bars, once more: counted apart, and never with the others."""
    near = [replace(record, latency_ms=823.0 if record.trial.initcwnd == 3 else 751.0)
            if record.trial.part == "slowdc_held_out" else replace(record, latency_ms=823.0)
            if record.trial.part == "slowdc" else record for record in records]
    report = stored_fetches.report(NAME, near)
    found = {each.name: each for each in report.findings}
    held_out = found["held_out"].tables[0]
    assert held_out.column("of") == [8, 7, 5, 20]
    assert held_out.column("reproduced", "held out")[1] == found[
        "table3_slowdc_held_out"].bars["reproduced"] == 1  # the mean saves 72 ms, as published
    assert held_out.column("near", "held out")[1] == 1
    assert held_out.column("near", "parameters of its own")[1] == 0
    assert held_out.column("near", "held out")[-1] == sum(
        int(str(near)) for near in held_out.column("near", "held out")[:-1])
    fitted, apart = (sum(bars(report.findings, which).values()) for which in (False, True))
    assert (fitted, apart) == (62, 20)
    told = [each for each in report.sentences if each.startswith("Of the published bars")]
    assert [" held out" in each.replace("(", " ") for each in told] == [False, True]


def test_near_the_published_one_is_near_in_both_numbers(bar_figures: dict[str, BarFigure]) -> None:
    bucket = bar_figures["fig5_rtt"].bars[0]
    near = replace(bucket, published=replace(bucket.published, absolute=7.5, percent=1.0))
    assert close(near)
    assert not close(replace(near, published=replace(near.published, absolute=20.0)))
    assert not close(replace(near, published=replace(near.published, percent=9.0)))
    assert not close(replace(near, published=replace(near.published, percent=None)))


def test_what_else_decided_on_a_population_is_remarked(scenario: Scenario,
                                                       records: list[Record]) -> None:
    short = [replace(record, queue_drops=2) if record.trial.sample == 0 else record
             for record in records]
    made, _ = kinds.bar_figures(scenario, short)
    for name, panel in made.items():
        windows = len(
            scenario.drawn.population(panel.figure.sweep).initcwnd)  # type: ignore[union-attr]
        assert panel.remarks == (
            f"The queue dropped {2 * windows} packets in {windows} of {128 * windows}"
            " transfers, apart from random loss.",), name


# Reasons ------------------------------------------------------------------------------

@pytest.mark.parametrize(("seen", "said"), [
    ({"queue_drops": 1, "random_drops": 1}, "the larger flight overflowed the queue"),
    ({"random_drops": 1}, "random loss took other packets"),
    ({"lost_segments": 1}, "random loss took other packets"),
    ({"retransmissions": 1}, "the larger flight took longer than the retransmission timer"),
    ({}, "its last acknowledgement waited for the client's timer")])
def test_why_a_larger_window_makes_a_response_slower(seen: dict[str, int], said: str) -> None:
    assert ablation.why(Record(stored.load("iw10").trial, True,
                               **seen)) == said  # type: ignore[arg-type]
