"""What stands behind the fit of a scenario with populations: simulated, stored, told on its page.

    /usr/bin/python3 -m paper.fit evidence        writes scenarios/fits/dukkipati2010.json
    /usr/bin/python3 -m paper.fit check RUN       the simulation beside a measured run
    /usr/bin/python3 -m paper.fit fit --seeds 1 2 --rounds 1      fits, and prints

`check` ends with 1 where the medians without loss differ by more than 0.5 % or the means with
loss by more than 5 %. It also says how long 20,000 responses take, where a second is asked for.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from benchmarks import command
from lab.core import files
from lab.core.command_line import Parser
from lab.core.scenario import scenario_file
from lab.fetches.features.population.feature import drawn
from lab.fetches.features.population.fit import FITS
from lab.fetches.features.population.population import Population
from lab.fetches.scenario import reading
from paper.fit.check import RESPONSES as TIMED
from paper.fit.check import WITHIN_S, check, seconds
from paper.fit.evidence import CLIENTS, EVALUATIONS, RESPONSES, evidence
from paper.fit.fit import search
from paper.fit.objective import ALL

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
    return {each.name: each for each in drawn(scenario).populations}


def _evidence() -> int:
    made = _populations()
    found = evidence(made["avgdc"], made["slowdc"], made["windows"],
                     lambda line: print(line, flush=True))
    path = files.make_folder(FITS) / f"{SCENARIO}.json"
    files.write(path, json.dumps(found, indent=1) + "\n")
    print(f"written: scenarios/fits/{path.name}")
    return 0


def _check(run: Path) -> int:
    apart = 0
    for each in check(run):
        apart += not each.near
        print(f"{each.part}, IW {each.initcwnd}, {each.responses} responses: median without loss"
              f" {100 * each.lossless_median:+.3f} %, mean with loss {100 * each.lossy_mean:+.1f} %"
              + ("" if each.near else "  TOO FAR"), flush=True)
    taken = seconds(_populations()["avgdc"])
    print(f"{TIMED} responses under two windows: {taken:.2f} s of processor time"
          + ("" if taken <= WITHIN_S else f", more than {WITHIN_S:g} s"))
    return 1 if apart else 0


def _fit(seeds: list[int], rounds: int) -> int:
    made = replace(_populations()["avgdc"], clients=CLIENTS, responses=RESPONSES, explained=0)
    found = search(made, ALL, seeds, rounds, evaluations=EVALUATIONS)
    print(f"distance {found.loss:.2f}")
    for name, value in asdict(found.mechanism).items():
        print(f"{name} = {value}")
    return 0


if __name__ == "__main__":
    command.run("paper", main)
