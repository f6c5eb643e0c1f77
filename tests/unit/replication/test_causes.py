"""Causes: what each switches on, and how many published numbers agree with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from firstflight.base.errors import UsageError
from firstflight.figures import compare, judging
from firstflight.findings.bar import Bar
from firstflight.findings.charts import StepChart
from firstflight.findings.claims import Published
from firstflight.findings.findings import Finding, Report
from firstflight.runs import scenario_file
from firstflight.runs.kinds import Overrides
from firstflight.runs.results.records import FAIL
from firstflight.study import fetches
from firstflight.study.replication import analysis, findings
from firstflight.testbed.network.commands import commands_of
from firstflight.workloads.fetch.scenario import reading
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.scenario.causes import AsPublished, Cause, ClockReading
from firstflight.workloads.fetch.scenario.scenario import Scenario
from tests.golden import stored_fetches

MARRAMA, RAW = stored_fetches.EXPLAINED, stored_fetches.RAW_AND_CAUSES
NAMES = ("zhao2019_as_published", MARRAMA, "tselentis2013_as_published")

# A part of a command that each cause adds, or the reading of the clock that it leads to.
SWITCHED = {
    "a new network for every fetch": "ip neigh del", "whole Mbit/s": "rate 500000000bit",
    "HTB in the place of a rate": "htb rate", "headers in writes of their own": "nagle=1",
    "a failure's time is taken for a fetch's": ClockReading(failed_ms=2200),
    "8 ms for processes": ClockReading(process_ms=8),
    "13 ms for processes": ClockReading(process_ms=13),
    "29 segments, not 28": "/41992", "27 segments for the windows": "/39096",
    "numbers cut to whole ones": ClockReading(truncated=True),
    "no tail loss probes": "tcp_early_retrans='0'",
    "a first flight of eight packets": "initcwnd 8",
}


@cache
def scenario(name: str) -> Scenario:
    return reading.read_scenario(scenario_file.find(name))


def as_published(name: str) -> AsPublished:
    found = scenario(name).as_published
    assert found is not None
    return found


def installed(of: Scenario, cause: Cause, initcwnd: int = 10) -> set[str]:
    """Commands of all trials with this cause alone."""
    return {command for sweep in of.sweeps
            for trial in replace(cause.switch_on(sweep), initcwnd=(initcwnd,)).trials("x", 1)
            for command in commands_of(trial.job())}


@pytest.mark.parametrize(("name", "cause"), [(name, cause) for name in NAMES
                                             for cause in as_published(name).causes],
                         ids=lambda value: value if isinstance(value, str) else value.name)
def test_a_cause_switches_on_what_it_says(name: str, cause: Cause) -> None:
    """A cause that is not listed above fails here."""
    expected = SWITCHED[cause.name]
    if isinstance(expected, ClockReading):
        assert cause.change_reading(ClockReading()) == expected
        assert all(cause.switch_on(sweep) == sweep for sweep in scenario(name).sweeps)
    else:
        usual = installed(scenario(name), replace(cause, switches=()))
        assert any(expected in command for command in installed(scenario(name), cause) - usual)
        assert not any(expected in command for command in usual)
        assert cause.change_reading(ClockReading()) == ClockReading()


def test_a_cause_of_some_sweeps_leaves_the_others() -> None:
    cause = next(cause for cause in as_published(MARRAMA).causes if cause.sweeps == ("windows",))
    changed = {sweep.name: cause.switch_on(sweep).lists["response_bytes"]
               for sweep in scenario(MARRAMA).sweeps}
    assert changed["windows"] == (39096,)
    assert changed["rtts"] == (40483,)
    assert cause.in_words == "response_bytes = 39096 in windows"


def test_a_set_up_takes_the_published_figures_of_the_other_scenario() -> None:
    """It does not take the sweep of losses, of which Marrama and Dubie have no numbers."""
    found = scenario(MARRAMA)
    assert {sweep.name for sweep in found.sweeps} == {"windows", "rtts", "bandwidths", "products",
                                                     "fast"}
    assert all(figure.published for figure in found.figures)
    trials = fetches.expand(found)
    assert len(trials) == len({trial.id for trial in trials}) == 288
    assert len(found.levels) == 1 + len(as_published(MARRAMA).causes)
    clean = {trial.id for sweep in found.sweeps for trial in sweep.trials(found.name, 1)}
    assert clean < {trial.id for trial in trials}


def test_a_single_cell_of_a_set_up_is_measured_at_every_level() -> None:
    requested = Overrides({"rtt_ms": [100], "bandwidth_kbps": [512]})
    trials = fetches.KIND.study(scenario_file.find("zhao2019_as_published"), requested).trials
    assert {trial.arp_ms for trial in trials} == {0, 940} and len(trials) == 10
    assert {trial.down_kbps for trial in trials} == {512, 500_000}


# How many published numbers agree -----------------------------------------------------

def finding(report: Report, name: str) -> Finding:
    return next(found for found in report.findings if found.name == name)


def report_of_marrama(change: Callable[[Record], Record]) -> Report:
    """The report on the stored records, after this change of each."""
    return stored_fetches.report(MARRAMA, [change(record) for record
                                           in stored_fetches.stored(MARRAMA)])


def agreeing_by_causes(report: Report) -> dict[Any, Any]:
    """How many published numbers agree, by the causes that are switched on."""
    table = finding(report, "causes").tables[0]
    return dict(zip(table.column("causes"), table.column("agree")))


def test_slower_measurements_reproduce_fewer_published_numbers() -> None:
    """Fetches under larger windows that act as others take 30 % longer."""
    def slower(record: Record) -> Record:
        assert record.total_ms is not None
        return (replace(record, total_ms=1.3 * record.total_ms)
                if record.trial.acts_as and record.trial.initcwnd > 3 else record)

    found = agreeing_by_causes(report_of_marrama(slower))
    assert found["with what is inferred"] < 16 == found["with what is calibrated"]


def test_a_record_that_does_not_count_is_missed() -> None:
    def failed(record: Record) -> Record:
        return replace(record, verdict=FAIL, verdict_reason="RTT: observed 1, expected 2") \
            if record.trial.acts_as and record.trial.rtt_ms == 3000 else record

    causes = finding(report_of_marrama(failed), "causes")
    assert "no record of bucket 3000 counts (2 failed verdicts)" in causes.missing


def test_a_level_without_records_agrees_with_nothing() -> None:
    """Here only fetches of the first and the last level succeed, and their levels are reported."""
    found = scenario(MARRAMA)
    ends = {trial.id for level in (found.levels[0], found.levels[-1]) for sweep in level
            for trial in sweep.trials(found.name, 1)}
    report = report_of_marrama(lambda record: record if record.trial.id in ends else replace(
        record, ok=False, error="curl 7: failed", total_ms=None))
    steps = finding(report, "causes").chart
    assert isinstance(steps, StepChart)
    counted = [step.value for step in steps.steps]
    assert counted[0] == 10 and counted[-1] == 24 and 0 in counted
    for name in ("fig2", "fig5_rtt", "fig5_bw"):
        whole, lacking = finding(stored_fetches.whole_report(MARRAMA), name), finding(report, name)
        assert (lacking.tables, lacking.chart) == (whole.tables, whole.chart)


def test_a_bar_agrees_within_the_bounds_of_its_published_number() -> None:
    bounds = analysis.tolerance(AsPublished("x", 10, 5, 3))

    def agrees(saved_ms: float, known: Published, truncated: bool = False) -> bool:
        """The base is 100 ms, so that as many percent are saved."""
        return judging.agrees(Bar("", compare.exact(100.0, 100.0 - saved_ms), known),
                              replace(bounds, truncated=truncated))

    assert agrees(99, Published(90)) and not agrees(99.1, Published(90))
    assert agrees(25, Published(20)) and not agrees(25.1, Published(20))
    assert agrees(25.9, Published(20), truncated=True)
    assert not agrees(14.9, Published(20), truncated=True)
    assert agrees(27.5, Published(percent=24.0), truncated=True)
    assert not agrees(27.5, Published(percent=24.0))
    assert agrees(20.9, Published(percent=24.0, error_points=3.2))
    assert not agrees(25, Published(20, percent=21.9)) and agrees(25, Published(20, percent=22.1))
    assert agrees(45, Published(level=50.0)) and not agrees(44, Published(level=50.0))
    assert agrees(44, Published())


def test_a_window_sweep_shows_times_and_other_figures_what_is_saved() -> None:
    """Here nothing was published of the bar."""
    bar = Bar("16", compare.exact(500.0, 400.0))
    saved = analysis.Item("f", "16", Published(), (bar, None), (True, False))
    assert (saved.numbers_at(0), saved.numbers_at(1)) == ((100.0, 20.0), (None, None))
    assert replace(saved, is_time=True).numbers_at(0) == (400.0, None)


# Raw values, and fetches that fail ----------------------------------------------------

def test_points_below_a_logarithmic_axis_lie_on_it_and_a_side_without_values_has_none() -> None:
    plot = findings._plot("RTT (ms)", "saved (ms)", ["20", "50"],
                          [(None, -0.4, 6.8), (None, 33.0, None)], is_log=True)
    clean, measured = plot.lines
    assert (clean.name, clean.x, clean.y) == ("clean", (0.0, 1.0), (1.0, 33.0))
    assert (measured.name, measured.y, plot.y_ends) == ("as they measured it", (6.8,), (1.0, 66.0))
    assert findings._plot("", "", ["20"], [(None, -0.4, 0)], is_log=False).lines[0].y == (-0.4,)


@pytest.mark.parametrize(("bars", "aside"), [(1, 0.26 / 6), (2, 0.26 / 3), (6, 0.26), (8, 0.26)])
def test_the_sides_of_a_bar_stand_close_to_each_other_where_bars_are_few(bars: int, aside: float
                                                                         ) -> None:
    plot = findings._plot("", "", ["1"] * bars, [(1.0, 2.0, 3.0)] * bars, is_log=False)
    assert [line.x[0] for line in plot.lines] == pytest.approx([-aside, 0.0, aside])


def test_process_time_is_added_only_to_records_that_count() -> None:
    _, records = stored_fetches.raw_and_causes()
    read = [analysis.as_read(ClockReading(process_ms=8), record) for record in records]
    assert read[0].total_ms == pytest.approx((records[0].total_ms or 0) + 8)
    assert read[-1].total_ms is None and not read[-1].ok


# Bad input ----------------------------------------------------------------------------

def test_causes_without_the_scenario_that_they_explain_are_refused() -> None:
    head, _, causes = RAW.partition("[as_published]")
    text = head + "[[cause]]" + causes.partition("[[cause]]")[2]
    with pytest.raises(UsageError, match=r"\[\[cause\]\] tables explain another scenario's"):
        reading.read_scenario(scenario_file.parse("mine", text))
    with pytest.raises(UsageError, match="has no .*cause.* to switch on"):
        reading.read_scenario(scenario_file.parse("mine", RAW.partition("[[cause]]")[0]))
