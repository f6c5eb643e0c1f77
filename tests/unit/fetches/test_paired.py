"""Drawn populations: pairs, buckets, percentiles, windows, causes, all by the weights."""

from __future__ import annotations

from dataclasses import replace

import numpy
import pytest

from lab.core.charts import BarPage, GridChart, LineChart
from lab.core.errors import UsageError
from lab.fetches import analysis, paired
from lab.fetches.buckets import NoPanel, Panel
from lab.fetches.paired import Responses
from lab.fetches.population_findings import close, population_findings
from lab.fetches.record import Record
from lab.fetches.scenario import Scenario
from tests.golden import stored_fetches

NAME = "dukkipati2010"


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return stored_fetches.scenario(NAME)


@pytest.fixture(scope="module")
def records(scenario: Scenario) -> list[Record]:
    """Of each part some clients in every bucket of Figure 5, two responses each; every window
    saves a millisecond for each segment."""
    assert scenario.like is not None
    made = []
    for part in scenario.populations:
        clients = [(rtt, bandwidth) for rtt in (15.0, 40, 90, 150, 400, 900, 2500, 4000)
                   for bandwidth in (40.0, 200, 400, 900, 1500, 2500, 4500, 9000)]
        for number, (rtt_ms, bandwidth_kbps) in enumerate(clients * 2):
            for initcwnd in part.initcwnd:
                trial = replace(
                    scenario.like, rtt_ms=rtt_ms, bandwidth_kbps=bandwidth_kbps,
                    key_rtt_ms=rtt_ms, key_bandwidth_kbps=bandwidth_kbps, part=part.name,
                    sample=number, weight=1.0 + number, initcwnd=initcwnd,
                    response_bytes=1430 * (1, 4, 7, 10, 15, 30, 50, 90)[number % 8])
                made.append(Record(trial=trial, ok=True, verdict="pass",
                                   latency_ms=1000 + rtt_ms - initcwnd))
    return made


@pytest.fixture(scope="module")
def panels(scenario: Scenario, records: list[Record]) -> dict[str, Panel]:
    made, missing = analysis.panels(scenario, records)
    assert not missing, missing
    return made


def test_means_carry_the_weights(panels: dict[str, Panel], records: list[Record]) -> None:
    panel = panels["fig5_rtt"]
    assert len(panel.buckets) == 8 and panel.n == 256
    own = [record for record in records if record.trial.part == panel.figure.sweep
           and record.trial.initcwnd == 3 and record.trial.rtt_ms == 15]
    weights = numpy.array([record.trial.weight for record in own])
    assert panel.buckets[0].base == pytest.approx(1012) and panel.buckets[0].absolute == 7
    every = sum(record.trial.weight for record in records
                if record.trial.part == panel.figure.sweep and record.trial.initcwnd == 3)
    assert panel.buckets[0].share_percent == pytest.approx(100 * weights.sum() / every)
    assert panel.buckets[0].absolute_interval == pytest.approx((7, 7))
    assert [(sample.name, len(sample.values)) for sample in panel.samples] == [
        ("IW 3", 128), ("IW 10", 128)]
    assert numpy.average(panel.samples[0].values - panel.samples[1].values,
                         weights=panel.samples[0].weights) == pytest.approx(7)


def test_every_window_is_compared_with_the_baseline(panels: dict[str, Panel]) -> None:
    sweep = panels["fig2"]
    windows = [bucket.value for bucket in sweep.buckets]
    assert windows == [3, 6, 10, 16, 26, 42]
    assert [bucket.absolute for bucket in sweep.buckets] == pytest.approx(
        [window - 3 for window in windows])
    assert all(bucket.n == 128 for bucket in sweep.buckets)
    assert [sample.name for sample in sweep.samples] == [f"IW {each:.0f}" for each in windows]


def test_percentiles_are_values_that_were_measured(panels: dict[str, Panel],
                                                   records: list[Record]) -> None:
    table = panels["table3_avgdc"]
    assert [bucket.label for bucket in table.buckets][:3] == ["mean", "p10", "p50"]
    own = sorted((record.latency_ms or 0, record.trial.weight) for record in records
                 if record.trial.part == table.figure.sweep and record.trial.initcwnd == 3)
    cumulated = numpy.cumsum([weight for _, weight in own])
    half = own[int(numpy.searchsorted(cumulated, cumulated[-1] / 2))][0]
    assert table.buckets[2].base == half and table.buckets[2].absolute == 7
    assert table.n == table.buckets[0].n == 256  # of the same records: they count once
    slow = panels["table4"]
    assert slow.buckets[0].n == 2 * 16  # of the clients up to 56 kbit/s


def test_a_response_without_its_counterpart_is_counted(scenario: Scenario,
                                                       records: list[Record]) -> None:
    figure = next(each for each in scenario.figures if each.name == "fig5_rtt")
    first = next(place for place, record in enumerate(records)
                 if record.trial.part == figure.sweep and record.trial.initcwnd == 3)
    spoiled = [replace(record, verdict="fail") if place == first else record
               for place, record in enumerate(records)]
    panel = paired.panel(scenario, figure, Responses(spoiled))
    assert str(panel.excluded) == "1 record without its counterpart" and panel.n == 254
    with pytest.raises(NoPanel, match="nothing of population 'other' was measured"):
        Responses(records).pair("other", (3, 10), "latency_ms")
    with pytest.raises(NoPanel, match="counts under both windows, 3 and 11"):
        Responses(records).pair(figure.sweep, (3, 11), "latency_ms")


@pytest.mark.parametrize("label", ["p0", "p100", "q50", "pfifty"])
def test_a_label_that_is_no_percentile_is_named(label: str) -> None:
    assert paired.percentile_of("mean") is None and paired.percentile_of("p50") == 0.5
    with pytest.raises(UsageError, match=f"'{label}' is no percentile"):
        paired.percentile_of(label)


def test_beside_the_figures_stand_figure_5_the_causes_and_the_distributions(
        scenario: Scenario, records: list[Record]) -> None:
    report = stored_fetches.report(NAME, records)
    others = {each.name: each for each in report.findings[len(scenario.figures):]}
    assert list(others) == ["fig5", "causes", "joint_average", "joint_slow"]
    page = others["fig5"].chart
    assert isinstance(page, BarPage) and [chart.axis for chart in page.charts] == [
        "RTT (ms)", "Bandwidth (kbit/s)", "Bandwidth-delay product (bytes)"]
    lines = others["causes"].chart
    assert isinstance(lines, LineChart) and lines.palette == "ordered"
    (plots,) = lines.columns
    assert [len(plot.lines) for plot in plots] == [len(others["causes"].tables[0].rows) + 1] * 3
    assert plots[0].lines[-1].style == "published" and plots[0].y_scale == "symlog"
    assert others["causes"].tables[0].rows[0][2] == pytest.approx(7)
    grid = others["joint_slow"].chart
    assert isinstance(grid, GridChart) and grid.shares.shape == (len(grid.x), len(grid.y))
    assert numpy.nansum(grid.shares) == pytest.approx(100)
    assert grid.diagonals[0] == (8000.0, "BDP 1000 B")


def test_causes_that_were_not_measured_are_missing(scenario: Scenario,
                                                   records: list[Record]) -> None:
    shown = {figure.sweep for figure in scenario.figures}
    found = population_findings(scenario, [record for record in records
                                           if record.trial.part in shown], [])
    assert [(each.name, bool(each.missing)) for each in found][0] == ("causes", True)


def test_near_the_published_one_is_near_in_both_numbers(panels: dict[str, Panel]) -> None:
    bucket = panels["fig5_rtt"].buckets[0]
    near = replace(bucket, published=replace(bucket.published, absolute=7.5, percent=1.0))
    assert close(near)
    assert not close(replace(near, published=replace(near.published, absolute=20.0)))
    assert not close(replace(near, published=replace(near.published, percent=9.0)))
    assert not close(replace(near, published=replace(near.published, percent=None)))


def test_what_else_decided_on_a_population_is_remarked(scenario: Scenario,
                                                       records: list[Record]) -> None:
    short = [replace(record, queue_drops=2) if record.trial.sample == 0 else record
             for record in records]
    made, _ = analysis.panels(scenario, short)
    for name, panel in made.items():
        windows = len(scenario.population(panel.figure.sweep).initcwnd)  # type: ignore[union-attr]
        assert panel.remarks == (
            f"The queue was too short for {windows} of {128 * windows} transfers and dropped"
            f" {2 * windows} of their packets, apart from random loss.",), name
