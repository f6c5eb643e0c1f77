"""Populations: what they say in a scenario's file, and what is drawn of them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy
import pytest

from lab.core.errors import UsageError
from lab.fetches.features.population import draws
from lab.fetches.scenario import population
from lab.fetches.scenario.population import Mechanism, Population
from lab.fetches.scenario.trial import Trial

LIKE = Trial(scenario="test", rtt_ms=1, bandwidth_kbps=1, uplink_kbps=1, queue_packets=1000,
             loss_percent=0.0, initcwnd=3, initrwnd=64, congestion_control="cubic",
             client="libcurl", response_bytes=1, repeat=1)
TABLE: dict[str, Any] = {"name": "some", "title": "some", "datacenter": "average",
                         "sizes": "web_search", "clients": 300, "responses": 2,
                         "initcwnd": [3, 10]}


def read(*tables: dict[str, Any]) -> tuple[Population, ...]:
    return population.read({"population": list(tables)}, "test")


@cache
def drawn(seed: int = 1, **mechanism: Any) -> list[Trial]:
    (made,) = read({**TABLE, "mechanism": mechanism})
    return draws.trials(made, LIKE, seed)


def test_a_seed_gives_the_same_trials_and_another_others() -> None:
    assert drawn(1) == drawn.__wrapped__(1)
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
    seeds = [trial.seed for trial in trials if trial.loss_percent]
    assert min(seeds) > 0 and 2 * len({*seeds}) == len(seeds), "one of each response"
    assert {trial.seed for trial in trials if not trial.loss_percent} == {0}
    for trial in trials:
        assert trial.key_rtt_ms is not None and trial.key_bandwidth_kbps is not None
        assert trial.bandwidth_kbps == pytest.approx(4 * trial.key_bandwidth_kbps, abs=0.01)
        assert trial.rtt_ms == pytest.approx(2 * trial.key_rtt_ms, abs=0.01)
        if trial.gap_ms:
            # headers and burst fill whole segments, and leave something for later
            headers = draws.HEADER_BYTES + len(str(trial.response_bytes))
            assert (trial.burst_bytes + headers) % draws.SEGMENT_BYTES == 0
            assert trial.burst_bytes < trial.response_bytes


def test_a_back_end_of_less_than_a_millisecond_is_one_too() -> None:
    """Only responses that leave in one burst of two segments have none."""
    (made,) = read({**TABLE, "mechanism": {"two_stages": True, "gap_mean_ms": 0.5,
                                           "burst_segments": [2]}})
    trials = draws.trials(made, LIKE, 1)
    assert {trial.gap_ms > 0 for trial in trials} == {True, False}
    for trial in trials:
        headers = draws.HEADER_BYTES + len(str(trial.response_bytes))
        assert (trial.gap_ms > 0) == (headers + trial.response_bytes > 2 * draws.SEGMENT_BYTES)


def test_what_is_drawn_has_the_means_that_the_mechanism_says() -> None:
    (made,) = read({**TABLE, "mechanism": {
        "two_stages": True, "gap_mean_ms": 200.0, "gap_shape": 4.0, "no_gap_share": 0.4,
        "burst_segments": [1, 2, 2, 2], "queueing_bytes": 3000.0}})
    found = draws.responses(made, 1)
    large = found.response_bytes > 2 * draws.SEGMENT_BYTES  # than any burst
    gaps_ms = found.gap_ms[large & (found.gap_ms > 0)]
    assert len(gaps_ms) / large.sum() == pytest.approx(0.6, abs=0.04)
    # A gamma distribution: its deviation is the mean by the root of its shape.
    assert gaps_ms.mean() == pytest.approx(200, rel=0.05)
    assert gaps_ms.std() == pytest.approx(100, rel=0.1)
    bursts = found.burst_bytes[found.burst_bytes > 0]
    assert (bursts < draws.SEGMENT_BYTES).mean() == pytest.approx(0.25, abs=0.05)
    queueing_ms = found.rtt_ms - found.key_rtt_ms
    assert queueing_ms.min() >= 0
    in_bytes = queueing_ms * found.key_bandwidth_kbps / 8
    assert in_bytes.mean() == pytest.approx(3000, rel=0.03)
    assert in_bytes.std() == pytest.approx(3000, rel=0.1)  # exponential


@pytest.mark.parametrize(("change", "named"), [
    ({"datacenter": "big"}, "datacenter"), ({"clients": 0}, "clients"),
    ({"mechanism": {"first_share": 1.5}}, "first_share"),
    ({"mechanism": {"gap_mean_ms": 0}}, "gap_mean_ms"),
    ({"mechanism": {"los_percent": 1}}, "los_percent"), ({"like": "other"}, "other"),
    ({"colour": 1}, "colour"), ({"initcwnd": [3, 0]}, "initcwnd: an initial window of 0"),
    ({"name": "a b"}, "becomes a file name"), ({"mechanism": 3}, "mechanism has to be a table"),
])
def test_what_makes_no_sense_is_named(change: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError, match=named):
        read({**TABLE, **change})


def test_like_takes_over_what_is_not_said_again() -> None:
    first, second = read(
        {**TABLE, "mechanism": {"two_stages": True, "burst_segments": [3, 3, 4]}},
        {"name": "more", "like": "some", "clients": 7, "mechanism": {"first_share": 0.3}})
    assert second.clients == 7 and second.sizes == first.sizes
    assert second.mechanism == Mechanism(two_stages=True, burst_segments=(3, 3, 4),
                                         first_share=0.3)


def test_new_mechanisms_are_neutral_where_they_are_not_asked_for() -> None:
    requested = drawn(far_and_slow=0.0, very_far_and_slow=0.0, baseline_week=0.0, baseline_gap=0.0,
                  link_spread=0.0, queue_packets=0)
    assert requested == drawn() and {trial.queue_packets for trial in requested} == {1000}


def test_the_queue_holds_what_the_mechanism_says() -> None:
    assert {trial.queue_packets for trial in drawn(queue_packets=25)} == {25}


def test_the_baselines_week_leans_to_the_far_and_slow_and_changes_no_trial() -> None:
    leaning = drawn(baseline_week=0.1)
    assert [replace(trial, weight=1) for trial in leaning] == [
        replace(trial, weight=1) for trial in drawn()]
    base, experiment = leaning[::2], leaning[1::2]
    assert sum(trial.weight for trial in base) == pytest.approx(1)
    assert [trial.weight for trial in experiment] == [trial.weight for trial in drawn()[1::2]]
    odds = [one.weight / other.weight for one, other in zip(base, experiment)]
    scale = odds[0] / _lean(base[0], 0.1)
    assert odds == pytest.approx([scale * _lean(trial, 0.1) for trial in base], rel=1e-3)
    assert max(odds) > 1.3 and min(odds) < 0.9


def _lean(trial: Trial, exponent: float) -> float:
    assert trial.key_rtt_ms and trial.key_bandwidth_kbps
    return (trial.key_rtt_ms / trial.key_bandwidth_kbps) ** exponent


@pytest.mark.parametrize("mean_ms", [200.0, 0.5])
def test_the_baselines_week_leans_to_long_back_end_times(mean_ms: float) -> None:
    staged = {"two_stages": True, "gap_mean_ms": mean_ms, "no_gap_share": 0.3}
    leaning, plain = drawn(**staged, baseline_gap=0.4), drawn(**staged)
    assert [replace(trial, weight=1) for trial in leaning] == [
        replace(trial, weight=1) for trial in plain]
    odds = [one.weight / other.weight for one, other in zip(leaning[::2], leaning[1::2])]
    wanted = [(trial.gap_ms / mean_ms if trial.gap_ms else 1.0) ** 0.4 for trial in leaning[::2]]
    assert 1.0 in wanted and max(wanted) > 1.2
    assert odds == pytest.approx([odds[0] / wanted[0] * each for each in wanted], rel=1e-3)


def test_links_of_one_key_differ_about_the_same_middle() -> None:
    same, apart = drawn(link_factor=2.0), drawn(link_factor=2.0, link_spread=0.5)
    assert {trial.bandwidth_kbps for trial in same} != {trial.bandwidth_kbps for trial in apart}
    logs = numpy.log([trial.bandwidth_kbps / (trial.key_bandwidth_kbps or 0) for trial in apart])
    assert numpy.median(logs) == pytest.approx(numpy.log(2), abs=0.05)
    assert logs.std() == pytest.approx(0.5, rel=0.1)
    assert all(trial.uplink_kbps == trial.bandwidth_kbps for trial in apart)
    assert [replace(trial, bandwidth_kbps=1, uplink_kbps=1) for trial in apart] == [
        replace(trial, bandwidth_kbps=1, uplink_kbps=1) for trial in same]


def test_far_and_slow_go_together_and_the_shares_stay() -> None:
    def correlation(trials: list[Trial]) -> float:
        logs = numpy.log([[trial.key_rtt_ms or 0, 1 / (trial.key_bandwidth_kbps or 0)]
                          for trial in trials[1::2]]).T
        spread = numpy.cov(logs, aweights=[trial.weight for trial in trials[1::2]])
        return float(spread[0, 1] / numpy.sqrt(spread[0, 0] * spread[1, 1]))

    apart, together = (draws.trials(read({
        **TABLE, "clients": 1200, "responses": 1, "mechanism": {"far_and_slow": theta}})[0],
        LIKE, 1) for theta in (0.0, 0.5))
    assert correlation(together) > correlation(apart) + 0.05
    slow = sum(trial.weight for trial in together[1::2] if trial.key_bandwidth_kbps is not None
               and trial.key_bandwidth_kbps <= 256)
    assert slow == pytest.approx(0.0377, abs=1e-5)  # Figure 5: 0.64 and 3.13 %


def test_clients_up_to_an_rtt_keep_their_proportions() -> None:
    (made,) = read({**TABLE, "rtt_at_most_ms": 300})
    trials = draws.trials(made, LIKE, 1)[::2]
    assert max(trial.key_rtt_ms or 0 for trial in trials) <= 300
    near = sum(trial.weight for trial in trials if trial.key_rtt_ms and trial.key_rtt_ms <= 20)
    assert near == pytest.approx(0.0429 / 0.955, rel=0.03)  # Figures 5 and 3
    (nobody,) = read({**TABLE, "rtt_at_most_ms": 0.5})
    with pytest.raises(UsageError, match="no client has an RTT up to 0.5 ms"):
        draws.trials(nobody, LIKE, 1)
