"""Populations: what they say in a scenario's file, and what is drawn of them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from lab.core.errors import UsageError
from lab.fetches import draws, population
from lab.fetches.population import Mechanism, Population
from lab.fetches.trial import Trial

LIKE = Trial("test", 1, 1, 1, 1000, 0.0, 3, 64, "cubic", "libcurl", 1, 1)
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
