"""What else could move the bars: each tried on the fitted parameters, with nothing fitted again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy

from benchmarks.paper.bars import place_of
from benchmarks.paper.objective import Judged, Objective
from benchmarks.paper.proposal import Proposal, mixed, propose
from benchmarks.paper.state import Kernels
from lab.core.curves import Numbers
from lab.fetches.draws import Drawn
from lab.fetches.population import Population

EXPONENTS = (-0.2, -0.1, 0.1, 0.2)
SHARES = (0.25, 0.5)
OLD_KERNELS = Kernels(syn_timer_ms=3000.0)
PATIENT = Kernels(quick_acks=0, patience_ms=200.0)  # of a class of clients


def tried(made: Population, own: Proposal, seed: int) -> Iterator[tuple[str, Judged]]:
    """What it is, and how the bars are then; the best of the strengths that were tried."""
    drawn = own.found.drawn
    far, slow = (numpy.log(drawn.key_rtt_ms / 70), numpy.log(1200 / drawn.key_bandwidth_kbps))
    size = numpy.log(drawn.response_bytes / 9000)
    gap = numpy.where(drawn.gap_ms > 0, numpy.log(numpy.maximum(drawn.gap_ms, 1) / 280), 0.0)
    lossy = (drawn.loss_percent > 0) - 0.3
    first = (drawn.earlier_bytes == 0) - 0.2
    link = numpy.log(drawn.link_kbps / drawn.key_bandwidth_kbps / made.mechanism.link_factor)
    for name, factor in (("larger responses to slow clients", size * slow),
                         ("larger responses to far clients", size * far),
                         ("longer back-end times for far clients", gap * far),
                         ("longer back-end times for large responses", gap * size),
                         ("more loss on long paths", lossy * far),
                         ("more loss on slow ones", lossy * slow),
                         ("more new connections on long paths", first * far),
                         ("faster links than their key on long paths", link * far)):
        yield _best(name, made, [
            (f"to the power of {exponent:+.1f}", _leaning(own, factor, exponent))
            for exponent in EXPONENTS])
    patient = propose(made, seed, PATIENT)
    yield _best("clients that delay acknowledgements by 200 ms", made, [
        (f"{100 * share:.0f} % of them", mixed(own, patient, share)) for share in SHARES])
    yield _best("kernels of that time, with SYN timers of 3 s", made,
                [("all", propose(made, seed, OLD_KERNELS))])
    yield _best("bandwidth keys estimated from the transfers themselves", made,
                [("ranks of the mean throughput", _estimated(own))])


def _best(name: str, made: Population, variants: list[tuple[str, Proposal]]) -> tuple[str, Judged]:
    judged = [(strength, Objective(proposal).judge(proposal.under(made.mechanism)))
              for strength, proposal in variants]
    strength, found = min(judged, key=lambda each: each[1].loss)
    return f"{name} ({strength})", found


def _leaning(own: Proposal, factor: Numbers, exponent: float) -> Proposal:
    """Other weights; the shares of each pair of RTT and bandwidth buckets stay."""
    drawn = own.found.drawn
    weight = drawn.weight * numpy.exp(numpy.clip(exponent * factor, -2, 2))
    cell = place_of("RTT", drawn) * 100 + place_of("BW", drawn)
    count = int(cell.max()) + 1
    weight *= (numpy.bincount(cell, drawn.weight, count)
               / numpy.maximum(numpy.bincount(cell, weight, count), 1e-300))[cell]
    return _with(own, replace(drawn, weight=weight))


def _estimated(own: Proposal) -> Proposal:
    """Bandwidth by the rank of the mean throughput that a client's own transfers reach."""
    drawn, responses = own.found.drawn, own.found.made.responses
    reached = drawn.response_bytes * 8 / own.found.latency_ms[0]
    mean = numpy.repeat(reached.reshape(-1, responses).mean(axis=1), responses)
    order, by_key = numpy.argsort(mean), numpy.argsort(drawn.key_bandwidth_kbps)
    key = numpy.empty_like(mean)
    key[order] = numpy.interp(numpy.cumsum(drawn.weight[order]),
                              numpy.cumsum(drawn.weight[by_key]),
                              drawn.key_bandwidth_kbps[by_key])
    return _with(own, replace(drawn, key_bandwidth_kbps=key))


def _with(own: Proposal, drawn: Drawn) -> Proposal:
    return replace(own, found=replace(own.found, drawn=drawn))
