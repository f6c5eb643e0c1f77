"""What stands behind the fit of a scenario with populations: simulated, and stored for its page.

    /usr/bin/python3 -m paper.fit evidence        writes scenarios/fits/dukkipati2010.json
    /usr/bin/python3 -m paper.fit check RUN       the simulation next to a measured run
    /usr/bin/python3 -m paper.fit fit --seeds 1 2 --rounds 1      fits, and prints

`check` ends with 1 where the medians without loss differ by more than 0.5 % or the means with
loss by more than 5 %. It also prints how long 20,000 responses take; a second is the limit.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy

from benchmarks import command
from lab import registry
from lab.core import files
from lab.core.command_line import Parser
from lab.core.run import runs
from lab.core.run.kinds import RunData
from lab.core.scenario import scenario_file
from lab.fetches.features.population.draws import responses
from lab.fetches.features.population.feature import drawn
from lab.fetches.features.population.fit import FITS
from lab.fetches.features.population.population import Population
from lab.fetches.features.population.paired import Responses
from lab.fetches.scenario import reading
from lab.fetches.scenario.scenario import Scenario
from lab.fetches.study import in_full
from paper.fit.bars import sample
from paper.fit.evidence import CLIENTS, EVALUATIONS, RESPONSES, evidence
from paper.fit.fit import ALL, search
from paper.fit.simulation import simulate

# The simulation next to what the guest measured ---------------------------------------

LOSSLESS_MEDIAN, LOSSY_MEAN = 0.005, 0.05  # how far each may be
TIMED, WITHIN_S = 20_000, 1.0  # responses under two windows, seconds of processor time


@dataclass(frozen=True)
class Difference:
    """A population under a window: by how much the simulation is above the guest, as a part."""

    part: str
    initcwnd: int
    responses: int
    lossless_median: float
    lossy_mean: float

    @property
    def near(self) -> bool:
        return abs(self.lossless_median) <= LOSSLESS_MEDIAN and abs(self.lossy_mean) <= LOSSY_MEAN


def check(folder: Path) -> Iterator[Difference]:
    """Every population of a stored run under every window. Raises FirstFlightError."""
    study, run = registry.stored_run(folder)
    scenario: Scenario = getattr(study, "scenario")
    facts = runs.read_facts(folder)
    if "full" in facts.get("arguments", []):
        scenario = in_full(scenario)
    for population in drawn(scenario).populations:
        yield from _differences(population, run, int(facts["seed"]))


def seconds(population: Population) -> float:
    """Processor time to simulate TIMED responses under a population's windows, once drawn."""
    drawn = responses(replace(population, clients=TIMED // 4, responses=4, explained=0), 1)
    count, windows = len(drawn.weight), population.initcwnd
    began = time.process_time()
    simulate(drawn, numpy.tile(numpy.arange(count), len(windows)),
             numpy.repeat(windows, count),
             numpy.full(count * len(windows), population.mechanism.queue_packets))
    return time.process_time() - began


def _differences(population: Population, run: RunData, seed: int) -> Iterator[Difference]:
    simulated = sample(population, seed)
    measured = Responses(run.records).by_sample(population.name)
    drawn = simulated.drawn
    lossy = drawn.loss_percent > 0
    for place, initcwnd in enumerate(population.initcwnd):
        guest = numpy.array([
            record.latency_ms if (record := measured.get(number, {}).get(initcwnd)) is not None
            and record.counts and record.latency_ms else numpy.nan
            for number in range(len(drawn.weight))])
        ours, known = simulated.latency_ms[place], ~numpy.isnan(guest)
        clean, lost = known & ~lossy, known & lossy
        means = [float(numpy.average(values[lost], weights=drawn.weight[lost]))
                 for values in (ours, guest)]
        yield Difference(population.name, initcwnd, int(known.sum()),
                         float(numpy.median(ours[clean]) / numpy.median(guest[clean]) - 1),
                         means[0] / means[1] - 1)


# The command --------------------------------------------------------------------------

SCENARIO = "dukkipati2010"


def main(words: Sequence[str]) -> int:
    parser = Parser(prog="paper", description=__doc__,
                    formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("evidence", "check", "fit"))
    parser.add_argument("run", nargs="?", type=Path, help="a stored run, for check")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1], help="for fit (default 1)")
    parser.add_argument("--rounds", type=int, default=1, help="for fit (default 1)")
    requested = parser.parse_args(words)
    if requested.what == "check" and requested.run is None:
        parser.error("check: which run?")
    return (_check(requested.run) if requested.what == "check" else
            _evidence() if requested.what == "evidence"
            else _fit(requested.seeds, requested.rounds))


def _populations() -> dict[str, Population]:
    scenario = reading.read(scenario_file.find(SCENARIO))
    return {population.name: population for population in drawn(scenario).populations}


def _evidence() -> int:
    populations = _populations()
    results = evidence(populations["avgdc"], populations["slowdc"], populations["windows"],
                       lambda line: print(line, flush=True))
    path = files.make_folder(FITS) / f"{SCENARIO}.json"
    files.write(path, json.dumps(results, indent=1) + "\n")
    print(f"written: scenarios/fits/{path.name}")
    return 0


def _check(run: Path) -> int:
    far_off = 0
    for row in check(run):
        far_off += not row.near
        print(f"{row.part}, IW {row.initcwnd}, {row.responses} responses: median without loss"
              f" {100 * row.lossless_median:+.3f} %, mean with loss {100 * row.lossy_mean:+.1f} %"
              + ("" if row.near else "  TOO FAR"), flush=True)
    taken = seconds(_populations()["avgdc"])
    print(f"{TIMED} responses under two windows: {taken:.2f} s of processor time"
          + ("" if taken <= WITHIN_S else f", more than {WITHIN_S:g} s"))
    return 1 if far_off else 0


def _fit(seeds: list[int], rounds: int) -> int:
    population = replace(_populations()["avgdc"], clients=CLIENTS, responses=RESPONSES, explained=0)
    fitted = search(population, ALL, seeds, rounds, evaluations=EVALUATIONS)
    print(f"distance {fitted.loss:.2f}")
    for name, value in asdict(fitted.mechanism).items():
        print(f"{name} = {value}")
    return 0


if __name__ == "__main__":
    command.run("paper", main)
