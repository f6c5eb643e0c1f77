"""The simulation beside what the guest measured: the same responses, and the same losses."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy

from lab import registry
from lab.core.run import runs
from lab.core.run.kinds import RunData
from lab.fetches.features.population.draws import responses
from lab.fetches.features.population.feature import drawn
from lab.fetches.features.population.population import Population
from lab.fetches.features.population.paired import Responses
from lab.fetches.scenario.scenario import Scenario
from lab.fetches.study import in_full
from paper.fit.bars import sample
from paper.fit.simulation import simulate

LOSSLESS_MEDIAN, LOSSY_MEAN = 0.005, 0.05  # how far each may be
RESPONSES, WITHIN_S = 20_000, 1.0  # under two windows, of processor time


@dataclass(frozen=True)
class Beside:
    """A population under a window: by how much the simulation is above the guest, as a part."""

    part: str
    initcwnd: int
    responses: int
    lossless_median: float
    lossy_mean: float

    @property
    def near(self) -> bool:
        return abs(self.lossless_median) <= LOSSLESS_MEDIAN and abs(self.lossy_mean) <= LOSSY_MEAN


def check(folder: Path) -> Iterator[Beside]:
    """Every population of a stored run under every window. Raises FirstFlightError."""
    study, run = registry.stored_run(folder)
    scenario: Scenario = getattr(study, "scenario")
    facts = runs.read_facts(folder)
    if "full" in facts.get("arguments", []):
        scenario = in_full(scenario)
    for made in drawn(scenario).populations:
        yield from _beside(made, run, int(facts["seed"]))


def seconds(made: Population) -> float:
    """Processor time to simulate RESPONSES of a population under its windows, already drawn."""
    drawn = responses(replace(made, clients=RESPONSES // 4, responses=4, explained=0), 1)
    count, windows = len(drawn.weight), made.initcwnd
    began = time.process_time()
    simulate(drawn, numpy.tile(numpy.arange(count), len(windows)),
             numpy.repeat(windows, count),
             numpy.full(count * len(windows), made.mechanism.queue_packets))
    return time.process_time() - began


def _beside(made: Population, run: RunData, seed: int) -> Iterator[Beside]:
    found, measured = sample(made, seed), Responses(run.records).by_sample(made.name)
    drawn = found.drawn
    lossy = drawn.loss_percent > 0
    for place, initcwnd in enumerate(made.initcwnd):
        guest = numpy.array([
            record.latency_ms if (record := measured.get(number, {}).get(initcwnd)) is not None
            and record.counts and record.latency_ms else numpy.nan
            for number in range(len(drawn.weight))])
        ours, known = found.latency_ms[place], ~numpy.isnan(guest)
        clean, lost = known & ~lossy, known & lossy
        means = [float(numpy.average(values[lost], weights=drawn.weight[lost]))
                 for values in (ours, guest)]
        yield Beside(made.name, initcwnd, int(known.sum()),
                     float(numpy.median(ours[clean]) / numpy.median(guest[clean]) - 1),
                     means[0] / means[1] - 1)
