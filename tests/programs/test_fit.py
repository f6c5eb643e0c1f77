"""The fast simulation of populations, beside the model of TCP; and how it is weighed and judged."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy
import pytest

from lab.core.scenario import scenario_file
from lab.fetches.features.population import draws
from lab.fetches.features.population.draws import Drawn
from lab.fetches.features.population import feature
from lab.fetches.features.population.population import Mechanism, Population
from lab.fetches.scenario import reading
from lab.tcp.model.predict import predict
from lab.tcp.model.transfer import Transfer
from paper.fit import bars, path, simulation
from paper.fit.fit import FIGURE5, Objective, weigh
from paper.fit.proposal import propose

REQUEST_BYTES = 103


@cache
def panel() -> Population:
    return feature.drawn(reading.read(scenario_file.find("dukkipati2010"))).populations[0]


@cache
def drawn(**mechanism: float) -> Drawn:
    made = panel()
    return draws.responses(replace(made, clients=240, responses=1,
                                   mechanism=replace(made.mechanism, **mechanism)), 3)


def simulated(of: Drawn, initcwnd: int, queue: int = 1000) -> simulation.Simulated:
    every = numpy.arange(len(of.weight))
    return simulation.simulate(of, every, numpy.full(len(every), initcwnd),
                               numpy.full(len(every), queue))


def predicted_ms(of: Drawn, row: int, initcwnd: int) -> float:
    def whole(size_bytes: int) -> int:
        return size_bytes + draws.HEADER_BYTES + len(str(size_bytes)) if size_bytes else 0

    size, burst, earlier = (int(getattr(of, name)[row]) for name in (
        "response_bytes", "burst_bytes", "earlier_bytes"))
    return predict(Transfer(
        rtt_ms=float(of.rtt_ms[row]), bandwidth_kbps=float(of.link_kbps[row]),
        uplink_kbps=float(of.link_kbps[row]), initcwnd=initcwnd, initrwnd=64,
        response_bytes=whole(size), request_bytes=REQUEST_BYTES,
        burst_bytes=burst + whole(size) - size, gap_ms=float(of.gap_ms[row]),
        restart_after_idle=False, loss_probes=False, earlier_bytes=whole(earlier),
        earlier_request_bytes=REQUEST_BYTES if earlier else 0)).latency_ms


@pytest.mark.parametrize("initcwnd", [3, 10, 42])
def test_lossless_transfers_take_what_the_model_says(initcwnd: int) -> None:
    of = drawn(lossy_share=0.0)
    ours = simulated(of, initcwnd).latency_ms
    rows = [row for row in range(0, len(ours), 2) if of.rtt_ms[row] < 900]  # no SYN is repeated
    off = numpy.array([ours[row] / predicted_ms(of, row, initcwnd) - 1 for row in rows])
    assert len(rows) > 60
    assert numpy.median(numpy.abs(off)) < 0.0005
    assert numpy.percentile(numpy.abs(off), 90) < 0.01 and abs(off.mean()) < 0.005


def test_losses_are_those_of_the_kernels_own_generator() -> None:
    """lib/random32.c, test1: the first number after ten, of these seeds."""
    for seed, result in ((1, 3484351685), (2, 2623130059), (3, 3125133893), (4, 984847254)):
        state, parts = seed, []
        for least in (2, 8, 16, 128):  # prandom_seed_early
            state = state * 69069 % 2**32
            state = state + least if state < least else state
            parts.append(state)
        chance = numpy.array([parts], numpy.uint32)
        only = numpy.array([0])
        for _ in range(10):
            path.dropped(chance, only, numpy.array([0.5]))
        for share, is_lost in ((result / 2**32, True), ((result - 1) / 2**32, False)):
            assert path.dropped(chance.copy(), only, numpy.array([share]))[0] == is_lost


def test_losses_cost_time_and_are_the_same_under_every_window() -> None:
    clean, lossy = drawn(lossy_share=0.0), drawn(lossy_share=0.5, loss_percent=8.0)
    with_losses = {window: simulated(lossy, window) for window in (3, 10)}
    without = simulated(clean, 3)
    spared = lossy.loss_percent == 0
    assert (with_losses[3].latency_ms[spared] == without.latency_ms[spared]).all()
    near = lossy.rtt_ms < 900  # elsewhere timers send again what was not lost
    assert not with_losses[3].retransmitted[spared & near].any()
    met = with_losses[3].retransmitted > 0
    assert 0.1 < met[~spared].mean() < 0.9
    assert with_losses[3].latency_ms[met].mean() > 1.3 * without.latency_ms[met].mean()
    assert with_losses[10].latency_ms.mean() < with_losses[3].latency_ms.mean()


def test_a_short_queue_drops_what_a_large_window_sends_at_once() -> None:
    of = drawn(lossy_share=0.0)
    near = of.rtt_ms < 900
    again = {(window, queue): int(simulated(of, window, queue).retransmitted[near].sum())
             for window, queue in ((3, 10), (42, 10), (42, 1000))}
    assert again[42, 10] > 3 * again[3, 10] and again[42, 1000] == 0


def test_weights_of_the_own_mechanism_change_nothing_and_others_do() -> None:
    made = replace(panel(), clients=400, responses=1)
    proposal = propose(made, 1)
    own = proposal.sample.population.mechanism
    same = proposal.under(own).drawn
    assert same.weight == pytest.approx(proposal.sample.drawn.weight, rel=0.06)
    requested = proposal.under(replace(own, lossy_share=0.1, first_share=0.5)).drawn
    assert requested.weight[requested.loss_percent > 0].sum() == pytest.approx(0.1, abs=0.03)
    assert requested.weight[requested.earlier_bytes == 0].sum() == pytest.approx(0.5, abs=0.06)
    assert requested.weight.sum() == pytest.approx(requested.baseline_weight.sum()) == pytest.approx(1)


def test_weights_follow_other_links_and_keep_the_printed_shares() -> None:
    proposal = propose(replace(panel(), clients=1500, responses=2), 1)
    own = proposal.sample.population.mechanism
    before = proposal.under(own).drawn
    after = proposal.under(replace(own, link_factor=own.link_factor * 1.2, link_spread=0.45,
                                   very_far_and_slow=0.2)).drawn
    factor = numpy.log(after.link_kbps / after.key_bandwidth_kbps)
    middle = float(after.weight @ factor)
    assert middle == pytest.approx(numpy.log(own.link_factor * 1.2), abs=0.04)
    assert float(numpy.sqrt(after.weight @ (factor - middle) ** 2)) == pytest.approx(0.45, abs=0.04)
    for group in FIGURE5:
        place = bars.place_of(group, after)
        assert numpy.bincount(place, after.weight) == pytest.approx(
            numpy.bincount(place, before.weight), rel=0.02)


def test_a_fit_goes_back_to_where_the_bars_are_near() -> None:
    proposal = propose(replace(panel(), clients=500, responses=2), 4)
    objective, own = Objective(proposal), panel().mechanism
    away = replace(own, baseline_week=0.0, baseline_gap=0.0, first_share=0.3)
    found = weigh([objective], away, 500)
    assert found.loss == pytest.approx(objective.loss(found.mechanism))
    assert found.loss < objective.loss(away) - 4
    assert found.mechanism.baseline_week > 0.02 and found.mechanism.first_share < 0.27
    held = weigh([objective], away, 200, fixed=("baseline_week",))
    assert held.mechanism.baseline_week == 0 and held.loss > found.loss


def test_the_objective_counts_the_bars_that_are_near() -> None:
    proposal = propose(replace(panel(), clients=500, responses=2), 2)
    objective, mechanism = Objective(proposal), panel().mechanism
    found = proposal.under(mechanism)
    judged = objective.judge(found)
    assert judged.near == {
        **{group: sum(bar.close for bar in bars.panel(group, found))
           for group in (*FIGURE5, "Fig. 7")},
        "Table 3": sum(bar.close for bar in bars.percentiles("table3_avgdc", found))}
    clean = Mechanism(lossy_share=0.01, first_share=0.99, no_gap_share=0.99,
                      link_factor=mechanism.link_factor, link_spread=mechanism.link_spread)
    assert objective.loss(replace(mechanism, baseline_week=0.0)) != judged.loss
    assert objective.loss(replace(clean, queueing_bytes=600.0)) > judged.loss + 5
