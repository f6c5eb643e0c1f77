"""What a sweep expands into, and the limits of its clients, windows and sizes."""

from __future__ import annotations

from typing import Any

import pytest

from firstflight.base.errors import UsageError
from firstflight.runs.kinds import NOTHING
from firstflight.study.load.scenario import expand
from firstflight.study.load.trial import (LoadTrial, distribution, mean_bytes, mean_wire_bytes,
                                          points_of, wire_bytes)
from tests.unit.load.test_scenario import MIX, made

LISTS: dict[str, list[Any]] = {
    "queue_bdp": [0.5, 2.0], "queue": ["droptail", "cake"], "load": [0.5, 0.25],
    "response_bytes": [50_000, 9000], "connections": [1, 6],
    "congestion_control": ["reno", "bbr"], "paced": [False, True]}


def trials(**defaults: Any) -> list[LoadTrial]:
    return expand(made(**defaults), NOTHING, 1)


@pytest.mark.parametrize("name", LISTS)
def test_every_value_of_a_list_is_measured_with_every_window_and_seed(name: str) -> None:
    scenario = made(**{name: LISTS[name]}, mixes=[MIX], repeat=3)
    expanded = expand(scenario, NOTHING, 1)
    assert scenario.sweeps[0].count == len(expanded) == len({trial.id for trial in expanded}) == 18
    # All windows of a seed after one another, all seeds of a value after one another.
    assert [(getattr(trial, name), trial.repeat, trial.window) for trial in expanded] == [
        (value, repeat, window) for value in LISTS[name] for repeat in (1, 2, 3)
        for window in ("3", "10", "3+10")]


def test_a_trial_is_named_by_all_that_it_may_differ_in() -> None:
    (plain,), (other,) = (trials(initcwnd=[10], repeat=1, **more) for more in (
        {}, {name: values[1:] for name, values in LISTS.items()}))
    assert plain.id == "only-rtt300-bw20000-q500-load0.95-50000B-cubic-iw10-1"
    assert other.id == "only-rtt300-bw20000-q1000-cake-load0.25-9000B-x6-bbr-paced-iw10-1"
    assert (plain.variant, other.variant) == ("cubic", "bbr paced by fq through cake")
    assert other.responses_per_s == pytest.approx(0.25 * 20_000 * 125 / wire_bytes(9000))
    assert (other.counted_s, other.counted_span_s, other.deadline_s) == ((30, 280), 250, 420)
    job = other.job()
    assert len(job["traffic"]) == 2 and len({traffic["seed"] for traffic in job["traffic"]}) == 2
    for traffic in job["traffic"]:
        assert traffic["arrivals_per_s"] == pytest.approx(other.responses_per_s / 6 / 2)
        assert (traffic["connections"], traffic["sizes"]) == (6, [[1.0, 9000.0]])


@pytest.mark.parametrize(("defaults", "hosts"), [
    ({"clients": 28}, 30), ({"clients": 29}, 31), ({"clients": 1, "servers": 29}, 30),
    ({"clients": 14, "mixes": [MIX]}, 30), ({"clients": 15, "mixes": [MIX]}, 32)])
def test_a_guest_has_memory_for_thirty_hosts(defaults: dict[str, Any], hosts: int) -> None:
    if hosts == 30:
        assert trials(**defaults)
    else:
        with pytest.raises(UsageError, match=f"{hosts} hosts are requested; a guest has memory for 30"):
            made(**defaults)


@pytest.mark.parametrize(("share", "good"), [(0.5 + 9e-7, True), (0.5 - 9e-7, True),
                                             (0.5 + 2e-6, False), (0.5 - 2e-6, False)])
def test_shares_sum_to_one_but_for_rounding(share: float, good: bool) -> None:
    wanted: dict[str, Any] = {"mixes": [[[3, 0.5], [10, share]]]}
    if good:
        assert trials(**wanted)[-1].window == "3+10"
    else:
        with pytest.raises(UsageError, match="sum to"):
            made(**wanted)


def test_mixes_may_be_none() -> None:
    assert {trial.window for trial in trials(mixes=[])} == {"3", "10"}


@pytest.mark.parametrize(("name", "what"), [("mixes", "mixes"), ("initcwnd", "numbers"),
                                            ("congestion_control", "names")])
def test_what_has_to_be_a_list_is_told_of_what(name: str, what: str) -> None:
    with pytest.raises(UsageError, match=f"{name}: has to be a list of {what}, it is 5"):
        made(**{name: 5})


def test_something_is_left_between_warmup_and_cooldown() -> None:
    with pytest.raises(UsageError, match="leave nothing of 50 s"):
        made(duration_s=50)
    assert trials(duration_s=51)[0].counted_span_s == 1


def test_sizes_of_a_distribution_are_drawn_at_even_steps() -> None:
    points = ((0.0, 100.0), (0.5, 200.0), (0.5, 400.0), (1.0, 800.0))
    assert points_of([list(point) for point in points], "sizes") == points
    assert mean_bytes(points) == pytest.approx((150 + 600) / 2, abs=0.01)
    assert points_of([[0, 500], [1, 700]], "sizes") == ((0, 500), (1, 700))
    assert mean_bytes(((1.0, 77.0),)) == 77 and mean_bytes(((0.0, 0.2), (1.0, 0.2))) == 1
    # Of one segment each, all with the same headers but for the digit of a length.
    assert mean_wire_bytes(points) == pytest.approx(mean_bytes(points) + wire_bytes(500) - 500)
    (trial, *_) = trials(sizes=[list(point) for point in points])
    assert trial.response_bytes == 375 and trial.size_points == points == distribution(trial.sizes)


@pytest.mark.parametrize(("clients", "words"), [
    ([], "list of .share, rtt_ms, kbit/s, loss %."), ([[1, 300, 512]], "list of"), ("far", "list of"), ([5], "list of"),
    ([[0.5, 300, 512, 1], [0.4, 300, 512, 1]], "the clients 0.5 \\+ 0.4 sum to 0.9, not to 1"),
    ([[1, 300, -1, 1]], "bandwidth"), ([[1, -1, 0, 1]], "RTT"), ([[1, 300, 0, 101]], "loss")])
def test_clients_that_cannot_be_are_refused(clients: Any, words: str) -> None:
    with pytest.raises(UsageError, match=f'"far": clients.*{words}'):
        made({"population": [{"name": "far", "clients": clients}]}, population="far")
