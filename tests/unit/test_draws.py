"""Populations: what is drawn, and what is said of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lab import draws, population_analysis, scenario
from lab.analysis import MissingCells, NothingCounts
from lab.errors import UsageError
from lab.records import PASS, Record
from lab.scenario import PERCENTILES, WINDOW_SWEEP, Figure
from lab.trial import Trial

LIKE = Trial("test", 1, 1, 1, 1000, 0.0, 3, 64, "cubic", "libcurl", 1, 1)
TABLE: dict[str, Any] = {"name": "some", "title": "some", "datacenter": "average",
                         "sizes": "web_search", "clients": 300, "responses": 2,
                         "initcwnd": [3, 10]}
FIGURE = Figure(name="fig5_rtt", title="", kind="improvement", sweep="some", by="rtt_ms",
                weights="", baseline_initcwnd=3, experiment_initcwnd=10, metric="latency_ms",
                published="paper_figure5.csv", panel="RTT")


def drawn(seed: int = 1, **mechanism: Any) -> list[Trial]:
    (made,) = draws.read([{**TABLE, "mechanism": mechanism}], "test")
    return draws.trials(made, LIKE, seed)


def test_a_seed_gives_the_same_trials_and_another_others() -> None:
    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_windows_of_one_response_differ_in_nothing_else() -> None:
    trials = drawn(two_stages=True, lossy_share=0.5, loss_percent=5.0, first_share=0.5)
    for three, ten in zip(trials[::2], trials[1::2]):
        assert (three.initcwnd, ten.initcwnd) == (3, 10)
        assert replace(three, initcwnd=10) == ten
    assert len({trial.id for trial in trials}) == len(trials) == 300 * 2 * 2


def test_weights_meet_the_papers_shares() -> None:
    trials = [trial for trial in drawn() if trial.initcwnd == 3]
    assert sum(trial.weight for trial in trials) == pytest.approx(1)
    far = sum(trial.weight for trial in trials if trial.key_rtt_ms and trial.key_rtt_ms > 3000)
    assert far == pytest.approx(0.0008, abs=1e-5)  # Figure 5: 0.08 % above 3 s


def test_mechanisms_do_what_they_say() -> None:
    plain = drawn()
    assert all(trial.gap_ms == 0 and trial.earlier_bytes == 0 and trial.loss_percent == 0
               and trial.bandwidth_kbps == trial.key_bandwidth_kbps for trial in plain)
    trials = drawn(two_stages=True, no_gap_share=0.25, first_share=0.2, link_factor=4.0,
                   rtt_factor=2.0, lossy_share=0.1, loss_percent=7.0)
    share = len(trials)
    assert sum(trial.earlier_bytes == 0 for trial in trials) == pytest.approx(share * 0.2, abs=4)
    assert sum(trial.loss_percent > 0 for trial in trials) == pytest.approx(share * 0.1, abs=4)
    for trial in trials:
        assert trial.key_rtt_ms is not None and trial.key_bandwidth_kbps is not None
        assert trial.bandwidth_kbps == pytest.approx(4 * trial.key_bandwidth_kbps, abs=0.01)
        assert trial.rtt_ms == pytest.approx(2 * trial.key_rtt_ms, abs=0.01)
        if trial.gap_ms:
            # headers and burst fill whole segments, and leave something for later
            headers = draws.HEADER_BYTES + len(str(trial.response_bytes))
            assert (trial.burst_bytes + headers) % draws.SEGMENT_BYTES == 0
            assert trial.burst_bytes < trial.response_bytes


@pytest.mark.parametrize(("change", "named"), [
    ({"datacenter": "big"}, "datacenter"), ({"clients": 0}, "clients"),
    ({"mechanism": {"first_share": 1.5}}, "first_share"),
    ({"mechanism": {"gap_mean_ms": 0}}, "gap_mean_ms"),
    ({"mechanism": {"los_percent": 1}}, "los_percent"), ({"like": "other"}, "other"),
    ({"colour": 1}, "colour"),
])
def test_what_makes_no_sense_is_named(change: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError, match=named):
        draws.read([{**TABLE, **change}], "test")


def test_like_takes_over_what_is_not_said_again() -> None:
    first, second = draws.read([
        {**TABLE, "mechanism": {"two_stages": True}},
        {"name": "more", "like": "some", "clients": 7, "mechanism": {"first_share": 0.3}}], "test")
    assert second.clients == 7 and second.sizes == first.sizes
    assert second.mechanism.two_stages and second.mechanism.first_share == 0.3


def records(gain: float = 0.1) -> list[Record]:
    """Latencies that fall by a known part with the larger window."""
    return [Record(trial, ok=True, verdict=PASS, latency_ms=trial.rtt_ms
                   * (1 if trial.initcwnd == 3 else 1 - gain)) for trial in drawn()]


def with_populations(figure: Figure) -> scenario.Scenario:
    made = scenario.load("dukkipati2010")
    return replace(made, populations=draws.read([TABLE], "test"), figures=(figure,))


def test_bars_are_weighted_means_with_intervals() -> None:
    panel = population_analysis.panel(with_populations(FIGURE), FIGURE, records())
    assert [bucket.label for bucket in panel.buckets][-1] == ">3000"
    for bucket in panel.buckets:
        assert bucket.percent == pytest.approx(10)
        assert bucket.absolute_interval_ms is not None
        low, high = bucket.absolute_interval_ms
        assert low <= bucket.absolute_ms <= high
        assert bucket.published_absolute_ms is not None
    assert sum(bucket.n for bucket in panel.buckets) == 300 * 2 * 2


def test_a_record_that_fails_takes_its_counterpart_along() -> None:
    rows = records()
    rows[0] = replace(rows[0], verdict="fail")
    panel = population_analysis.panel(with_populations(FIGURE), FIGURE, rows)
    assert sum(bucket.n for bucket in panel.buckets) == 300 * 2 * 2 - 2
    assert panel.excluded.unpaired == 1  # and it is told


def test_percentiles_and_windows() -> None:
    figure = replace(FIGURE, kind=PERCENTILES, by="percentile", published="paper_tables.csv",
                     panel="table3_avgdc")
    panel = population_analysis.panel(with_populations(figure), figure, records())
    values = [bucket.base_ms for bucket in panel.buckets[1:]]
    assert values == sorted(values) and panel.buckets[0].percent == pytest.approx(10)
    assert panel.n == panel.buckets[0].n == 300 * 2 * 2  # not once for every percentile
    figure = replace(FIGURE, kind=WINDOW_SWEEP, by="initcwnd", published="paper_figure2.csv",
                     panel="", experiment_initcwnd=3)
    panel = population_analysis.panel(with_populations(figure), figure, records())
    assert [bucket.label for bucket in panel.buckets] == ["3", "10"]
    assert panel.buckets[0].absolute_ms == 0 and panel.buckets[1].percent == pytest.approx(10)


def test_an_unknown_percentile_is_named() -> None:
    for label in ("p0", "p100", "median", "pfifty"):
        with pytest.raises(UsageError, match=label):
            population_analysis.percentile_of(label)


def test_nothing_measured_and_nothing_counting_are_told_apart() -> None:
    made = with_populations(FIGURE)
    with pytest.raises(MissingCells):
        population_analysis.panel(made, FIGURE, [])
    with pytest.raises(NothingCounts):
        population_analysis.panel(made, FIGURE,
                                  [replace(record, verdict="fail") for record in records()])
