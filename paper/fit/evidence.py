"""What stands behind a fit: hold-outs, how far each parameter is fixed, each mechanism off in turn.

All of it is simulated, and stored with the scenario for its page
(lab.fetches.features.population.fit).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from typing import Any

import numpy

from lab.core.scenario.curves import Numbers
from lab.fetches.features.population.draws import Drawn
from lab.fetches.features.population.population import Population
from paper.fit.bars import panel, percentiles, place_of, sample, windows
from paper.fit.fit import FIGURE5, Judged, Objective, search
from paper.fit.proposal import LINKS, WEIGHED, Proposal, mixed, propose
from paper.fit.state import Kernels

EXPONENTS = (-0.2, -0.1, 0.1, 0.2)
SHARES = (0.25, 0.5)
OLD_KERNELS = Kernels(syn_timer_ms=3000.0)
PATIENT = Kernels(quick_acks=0, patience_ms=200.0)  # of a class of clients


def tried(population: Population, own: Proposal, seed: int) -> Iterator[tuple[str, Judged]]:
    """What it is, and how the bars are then; the best of the strengths that were tried."""
    drawn = own.sample.drawn
    far, slow = (numpy.log(drawn.key_rtt_ms / 70), numpy.log(1200 / drawn.key_bandwidth_kbps))
    size = numpy.log(drawn.response_bytes / 9000)
    gap = numpy.where(drawn.gap_ms > 0, numpy.log(numpy.maximum(drawn.gap_ms, 1) / 280), 0.0)
    lossy = (drawn.loss_percent > 0) - 0.3
    first = (drawn.earlier_bytes == 0) - 0.2
    link = numpy.log(drawn.link_kbps / drawn.key_bandwidth_kbps / population.mechanism.link_factor)
    for name, factor in (("larger responses to slow clients", size * slow),
                         ("larger responses to far clients", size * far),
                         ("longer back-end times for far clients", gap * far),
                         ("longer back-end times for large responses", gap * size),
                         ("more loss on long paths", lossy * far),
                         ("more loss on slow ones", lossy * slow),
                         ("more new connections on long paths", first * far),
                         ("faster links than their key on long paths", link * far)):
        yield _best(name, population, [
            (f"to the power of {exponent:+.1f}", _leaning(own, factor, exponent))
            for exponent in EXPONENTS])
    patient = propose(population, seed, PATIENT)
    yield _best("clients that delay acknowledgements by 200 ms", population, [
        (f"{100 * share:.0f} % of them", mixed(own, patient, share)) for share in SHARES])
    yield _best("kernels of that time, with SYN timers of 3 s", population,
                [("all", propose(population, seed, OLD_KERNELS))])
    yield _best("bandwidth keys estimated from the transfers themselves", population,
                [("ranks of the mean throughput", _estimated(own))])


def _best(name: str, population: Population, variants: list[tuple[str, Proposal]]
          ) -> tuple[str, Judged]:
    judged = [(strength, Objective(proposal).judge(proposal.under(population.mechanism)))
              for strength, proposal in variants]
    strength, best = min(judged, key=lambda pair: pair[1].loss)
    return f"{name} ({strength})", best


def _leaning(own: Proposal, factor: Numbers, exponent: float) -> Proposal:
    """Other weights; the shares of each pair of RTT and bandwidth buckets stay."""
    drawn = own.sample.drawn
    weight = drawn.weight * numpy.exp(numpy.clip(exponent * factor, -2, 2))
    cell = place_of("RTT", drawn) * 100 + place_of("BW", drawn)
    count = int(cell.max()) + 1
    weight *= (numpy.bincount(cell, drawn.weight, count)
               / numpy.maximum(numpy.bincount(cell, weight, count), 1e-300))[cell]
    return _with(own, replace(drawn, weight=weight))


def _estimated(own: Proposal) -> Proposal:
    """Bandwidth by the rank of the mean throughput that a client's own transfers reach."""
    drawn, responses = own.sample.drawn, own.sample.population.responses
    reached = drawn.response_bytes * 8 / own.sample.latency_ms[0]
    mean = numpy.repeat(reached.reshape(-1, responses).mean(axis=1), responses)
    order, by_key = numpy.argsort(mean), numpy.argsort(drawn.key_bandwidth_kbps)
    key = numpy.empty_like(mean)
    key[order] = numpy.interp(numpy.cumsum(drawn.weight[order]),
                              numpy.cumsum(drawn.weight[by_key]),
                              drawn.key_bandwidth_kbps[by_key])
    return _with(own, replace(drawn, key_bandwidth_kbps=key))


def _with(own: Proposal, drawn: Drawn) -> Proposal:
    return replace(own, sample=replace(own.sample, drawn=drawn))


CLIENTS, RESPONSES, SEED = 6000, 2, 101
EVALUATIONS = 1500  # of a fit, in each of its rounds
HOLD_OUT_SAMPLES = 3  # what such a fit finds depends on its sample
HELD_OUT = {"RTT": 1.0, "Table 3": 0.35}  # what the first hold-out is fitted to
NEUTRAL = {"far_and_slow": 0.0, "very_far_and_slow": 0.0, "baseline_week": 0.03,
           "baseline_gap": 0.0}  # where it starts
AVERAGE_ALONE = "AvgDC alone"
# What SlowDC has of its own was chosen by looking at it: with that nothing of it is held out.
WITH_WEEKS = "AvgDC; SlowDC's two weeks by the sum of its Figure 6 and its Table 3"
WITH_LOSSES = WITH_WEEKS + ", its losses by its Table 7"
SLOW_SHARES = (0.21, 0.31, 0.41, 0.51)  # of responses that meet losses
SIMULATED = (*LINKS, "rtt_factor", "loss_percent")  # moved by more than weights can follow
MOVES = (0.5, 0.75, 1.0, 1.3, 2.0)  # times a parameter's fitted value
QUEUES = (10, 20, 27, 35, 100)
OFF: dict[str, dict[str, Any]] = {
    "the body after the back-end's time": {"two_stages": False},
    "kept connections": {"first_share": 1.0}, "faster links": {"link_factor": 1.0},
    "links of one key that differ": {"link_spread": 0.0},
    "longer RTTs": {"rtt_factor": 1.0}, "queueing": {"queueing_bytes": 0.0},
    "random loss": {"lossy_share": 0.0}, "the queue of 27 packets": {"queue_packets": 1000},
    "far and slow together": {"far_and_slow": 0.0, "very_far_and_slow": 0.0},
    "very far and slow more so": {"very_far_and_slow": 0.0},
    "the baseline's week": {"baseline_week": 0.0, "baseline_gap": 0.0},
    "the back-end's time of that week": {"baseline_gap": 0.0}}

Say = Callable[[str], None]


def evidence(population: Population, slow: Population, six: Population, say: Say) -> dict[str, Any]:
    """Everything, as it is stored. population: AvgDC; slow: SlowDC; six: of Figure 2."""
    population, slow = (replace(whole, clients=CLIENTS, responses=RESPONSES, explained=0)
                        for whole in (population, slow))
    six = replace(six, clients=500, responses=RESPONSES)
    own = propose(population, SEED)
    judged = Objective(own).judge(own.under(population.mechanism))
    say(f"as fitted: {judged.near}")
    return {
        "mechanism": asdict(population.mechanism),
        "sample": {"responses": CLIENTS * RESPONSES, "seed": SEED},
        "as_fitted": _near(judged),
        "holdouts": [*(_without_bars(population, number, say)
                       for number in range(HOLD_OUT_SAMPLES)),
                     *_at_slow(population, slow, say)],
        "slow_losses": [[share, _retransmitted_percent(_with_losses(slow, share))]
                        for share in SLOW_SHARES],
        "profiles": {name: profile for name, profile in _profiles(population, own, say)},
        "queue": [[queue, _figure2(replace(six, mechanism=replace(
            six.mechanism, queue_packets=queue)))] for queue in QUEUES],
        "ablation": list(_ablation(population, six, say)),
        "tried": [{"what": name, **_near(bars)} for name, bars in tried(population, own, SEED)]}


def _near(judged: Judged) -> dict[str, Any]:
    return {"near": judged.near, "figure5": judged.figure5, "loss": round(judged.loss, 2),
            "base_ms": round(judged.base_ms, 1), "experiment_ms": round(judged.experiment_ms, 1)}


def _without_bars(population: Population, number: int, say: Say) -> dict[str, Any]:
    """Fitted on the RTT panel and the tables, predicted for BW and BDP; number: of its sample."""
    neutral = replace(population.mechanism, **NEUTRAL)
    start = replace(population, mechanism=neutral, clients=CLIENTS // 2)
    fitted = search(start, HELD_OUT, (SEED + number + 1,), rounds=1, evaluations=EVALUATIONS)
    proposal = propose(replace(population, mechanism=fitted.mechanism), SEED + number)
    predicted = Objective(proposal).judge(proposal.under(fitted.mechanism))
    say(f"hold-out: {predicted.near}")
    return {"fitted_on": "the RTT panel of Figure 5, Tables 3 and 7 at AvgDC, sample"
                         f" {number + 1}", "held_out": True,
            "predicts": [["Figure 5, BW", predicted.near["BW"], 8],
                         ["Figure 5, BDP", predicted.near["BDP"], 6]],
            "mechanism": asdict(fitted.mechanism)}


def _at_slow(population: Population, slow: Population, say: Say) -> list[dict[str, Any]]:
    """What AvgDC's parameters predict for SlowDC, and what they do with its own."""
    return [_slow(replace(slow, mechanism=population.mechanism), AVERAGE_ALONE, True, say),
            _slow(_with_losses(slow, population.mechanism.lossy_share), WITH_WEEKS, False, say),
            _slow(slow, WITH_LOSSES, False, say)]


def _slow(slow: Population, fitted_on: str, held_out: bool, say: Say) -> dict[str, Any]:
    """What is fitted otherwise, for SlowDC. held_out: nothing was chosen by looking at it."""
    drawn_sample = sample(slow, SEED)
    groups = [("Table 3, SlowDC", percentiles("table3_slowdc", drawn_sample)),
              ("Figure 6", panel("Fig. 6", drawn_sample)),
              ("Table 4", percentiles("table4_slowdc_56", drawn_sample))]
    near = [[name, sum(bar.close for bar in bars), len(bars)] for name, bars in groups]
    say(f"SlowDC: {near}")
    return {"fitted_on": fitted_on, "held_out": held_out, "predicts": near,
            "mechanism": asdict(slow.mechanism)}


def _with_losses(slow: Population, lossy_share: float) -> Population:
    return replace(slow, mechanism=replace(slow.mechanism, lossy_share=lossy_share))


def _retransmitted_percent(slow: Population) -> float:
    """Responses with retransmissions under the last window, as in Table 7."""
    simulated = sample(slow, SEED)
    return round(100 * float(simulated.drawn.weight @ simulated.retransmitted[-1]), 2)


def _profiles(population: Population, own: Proposal, say: Say
              ) -> Iterator[tuple[str, list[list[float]]]]:
    """Along each parameter: value, how many of Figure 5's bars are near, and the loss."""
    mechanism = population.mechanism
    for name in (*WEIGHED, *SIMULATED):
        rows = []
        for factor in MOVES:
            value = getattr(mechanism, name) * (factor if name != "rtt_factor"
                                                else 1 + (factor - 1) / 3)
            moved = replace(mechanism, **{name: value})
            proposal = (own if name in WEIGHED
                        else propose(replace(population, mechanism=moved), SEED))
            judged = Objective(proposal).judge(proposal.under(moved))
            rows.append([round(value, 5), judged.figure5, round(judged.loss, 2)])
        say(f"{name}: {rows}")
        yield name, rows


def _ablation(population: Population, six: Population, say: Say) -> Iterator[dict[str, Any]]:
    """Each mechanism off in turn, and nothing fitted again."""
    for title, change in OFF.items():
        changed = replace(population.mechanism, **change)
        simulated = sample(replace(population, mechanism=changed), SEED)
        near = {group: sum(bar.close for bar in panel(group, simulated)) for group in FIGURE5}
        means = [float(numpy.average(simulated.latency_ms[row], weights=weight))
                 for row, weight in ((0, simulated.drawn.baseline_weight),
                                     (-1, simulated.drawn.weight))]
        result = {"without": title, "near": near, "figure5": sum(near.values()),
                  "base_ms": round(means[0], 1), "experiment_ms": round(means[1], 1),
                  "figure2": _figure2(replace(six, mechanism=replace(six.mechanism, **change)))}
        say(f"{result}")
        yield result


def _figure2(six: Population) -> int:
    """How many of the five larger windows' gains are near."""
    return sum(bar.close for bar in windows(sample(six, SEED)))
