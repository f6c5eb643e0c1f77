"""What users gain and lose, by hand, and windows told by a quantity of which more is better."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy
import pytest

from firstflight.study.fetches.figures import summary
from firstflight.study.fetches.figures.buckets import published_bars
from firstflight.study.fetches.figures.kinds import panels
from firstflight.study.fetches.verify import verify
from firstflight.study.users.analysis import Measured, recommend
from tests.golden import stored, stored_fetches


def measured() -> Measured:
    """Four users, of whom the third stands for two and is slower with the larger window."""
    base, larger = numpy.array([100.0, 200.0, 300.0, 400.0]), numpy.array([90, 199.5, 310, 300.0])
    zero, weight = numpy.zeros(4), numpy.array([1.0, 1.0, 2.0, 1.0])
    return Measured({10: base, 32: larger}, {10: zero, 32: numpy.array([0.0, 0, 1, 3])},
                    {10: zero, 32: numpy.array([0.0, 5, 0, 0])}, weight,
                    numpy.array([0, 0, 1, 1]), numpy.array([5.0, 10, 20, 30]), 0)


def test_shares_are_by_weight() -> None:
    """Of five, two gain more than a millisecond (10 and 100), two lose 10, one is the same."""
    found = recommend(measured(), 10)
    base, larger = found.outcomes
    assert (larger.gain_percent, larger.lose_percent) == (40, 40)
    assert (base.gain_percent, base.lose_percent) == (0, 0)
    assert larger.mean_ms == pytest.approx((90 + 199.5 + 620 + 300) / 5)
    assert larger.saved.absolute.value == pytest.approx((10 + 0.5 - 20 + 100) / 5)
    assert larger.retransmitted_percent == pytest.approx(100 * (2 + 3) / (5 + 10 + 40 + 30))
    assert larger.queue_drops == 1 and found.fits_percent == 40
    assert larger.percentiles_ms == (300, 310, 310) and base.percentiles_ms == (300, 400, 400)
    assert larger.to_best.absolute.value == 0 and base.to_best.absolute.value == pytest.approx(larger.saved.absolute.value)


def test_one_group_alone() -> None:
    other = measured().only(1)
    assert other.total_ms[32].tolist() == [310, 300] and other.weight.tolist() == [2, 1]
    assert other.segments.tolist() == [20, 30] and other.left_out == 0
    with pytest.raises(ValueError, match="no user counts under every window"):
        recommend(measured().only(7), 10)


def test_goodput_is_better_where_there_is_more_of_it(tmp_path: Path) -> None:
    """The best window has the most, and what it gains is more, not less."""
    scenario = stored_fetches.scenario("marrama2012")
    figure = next(each for each in scenario.figures if each.name == "fig2")
    records = [replace(record, goodput_kbps=1e6 / record.total_ms)
               for record in stored_fetches.stored("marrama2012") if record.total_ms]
    (panel,) = panels(replace(scenario, figures=(replace(figure, metric="goodput_kbps",
                                                         published=""),)), records)[0].values()
    said = summary._best_window(panel)
    assert said.startswith("Of the windows ") and " 16 had the most goodput: " in said
    assert " % more than 3." in said
    times = stored_fetches.panels("marrama2012")["fig2"]
    assert "16 took the least time: " in summary._best_window(times)
    assert " % less than 3; published: 16 took the least, 641 ms." in summary._best_window(times)


def test_a_percentage_of_the_experiment_is_another_where_more_is_better() -> None:
    """24 % of the experiment's time are 24 / 124 of the baseline's; of a goodput, 24 / 76."""
    figure = next(each for each in stored_fetches.scenario("marrama2012").figures
                  if each.name == "fig5_rtt")
    assert figure.percent_of == "experiment"
    for metric, percent in (("total_ms", 100 * 24 / 124), ("goodput_kbps", 100 * 24 / 76)):
        assert published_bars(replace(figure, metric=metric))["500"].percent == pytest.approx(
            percent)
    assert published_bars(replace(figure, percent_of="baseline"))["500"].percent == 24
    assert published_bars(replace(figure, published="")) == {}


def test_what_a_server_says_is_told_as_the_servers() -> None:
    trial = stored.load("iw10")
    assert trial.said("server", error="no such path").judge().error == "server: no such path"
    assert verify._failure({"error": "no network"}) == "no network"
