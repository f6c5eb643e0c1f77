"""What a figure shows and says of itself: titles, counts, publishers, published values."""

from __future__ import annotations

from dataclasses import replace

from firstflight.base.stats import Estimate
from firstflight.findings.charts import BarChart, TimeChart
from firstflight.study.fetches.figures import panels
from firstflight.study.fetches.figures.bars import chart
from firstflight.study.fetches.figures.claims import judge_panel
from firstflight.study.fetches.scenario.population import Population, Populations
from firstflight.study.fetches.scenario.scenario import Scenario
from firstflight.study.fetches.verify.record import Record
from tests.golden import stored_fetches


def bars_of(name: str, figure: str, like_the_papers: bool = False) -> BarChart:
    scenario = stored_fetches.scenario(name)
    if like_the_papers:
        people = Population(scenario.sweeps[0].name, "", (3, 10))
        scenario = replace(scenario, drawn=Populations(
            name, (people,), (), stored_fetches.stored(name)[0].trial))
    made = chart(scenario, judge_panel(stored_fetches.panels(name)[figure], ()))
    assert isinstance(made, BarChart)
    return made


def test_what_is_left_out_alarms(scenario: Scenario, stored: list[Record]) -> None:
    records = [replace(stored[0], ok=False, error="x", verdict="skipped"), *stored[1:]]
    panel = panels.improvement(scenario, scenario.figures[0], records)
    made = chart(scenario, judge_panel(panel, ()))
    assert isinstance(made, BarChart)
    assert made.alarm == "excluded: 1 failed transfer, 1 record without its counterpart"
    change = made.bars[0].difference
    assert (change.n, change.excluded.total) == (14, 2)


def test_the_whisker_of_a_window_is_what_it_saves_from_the_baseline_time() -> None:
    panel = stored_fetches.panels("marrama2012")["fig2"]
    first, second, *_ = panel.bars
    change = replace(second.difference, base=Estimate(500.0), experiment=Estimate(480.0),
                     absolute=Estimate(20.0, (-5.0, 45.0)))
    made = chart(stored_fetches.scenario("marrama2012"), judge_panel(
        replace(panel, bars=(first, replace(second, difference=change))), ()))
    assert isinstance(made, TimeChart)
    base, other = made.bars
    assert base.label == made.baseline and not base.difference.is_unsure
    assert other.difference.paired_interval == (455.0, 505.0) and other.difference.is_unsure
    more_is_better = replace(change, sign=-1, absolute=Estimate(-20.0, (-25.0, -15.0)))
    assert more_is_better.paired_interval == (475.0, 485.0) and not more_is_better.is_unsure


def test_a_population_like_the_papers_is_told_from_another() -> None:
    assert bars_of("zhao2019", "fig5_rtt", like_the_papers=True).publisher == "in the paper"
