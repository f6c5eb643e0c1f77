#!/usr/bin/env python3
"""Write docs/RESULTS.md from the newest whole run of every scenario; measures nothing."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lab import analysis, errors, markdown, runs, scenario as scenarios, study
from lab.analysis import MissingCells
from lab.command_line import Parser, run_main
from lab.records import PASS, Record, RecordsError, read_records
from lab.errors import FirstFlightError
from lab.scenario import Scenario
from lab.study import FETCHES, claim_of, findings_of, kind_of

PROJECT = Path(__file__).resolve().parent


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = Parser(
        prog="results.py", allow_abbrev=False,
        description="Write docs/RESULTS.md, every published bar beside ours, from the newest"
                    " whole run of every scenario.")
    parser.add_argument("--results", type=Path, default=PROJECT / "results", metavar="DIR",
                        help="where results are (default results)")
    parser.add_argument("--output", type=Path, default=PROJECT / "docs" / "RESULTS.md",
                        metavar="FILE", help="what to write (default docs/RESULTS.md)")
    return parser.parse_args(argv)


def newest_whole(scenario: Scenario,
                 results: Path) -> tuple[list[Record], Mapping[str, Any]] | None:
    """Records and facts of the newest complete run that covers every figure, None without one.

    A damaged run is told and passed over.
    """
    for folder in runs.newest_first(results / scenario.name):
        facts = runs.read_facts(folder)
        if facts.get("state") != runs.COMPLETE:
            continue
        try:
            records = read_records(folder / runs.TRIALS_CSV)
            analysis.drawable(scenario, records)
        except MissingCells:
            continue
        except RecordsError as error:
            say(f"passed over: {error}")
            continue
        return records, {**facts, "folder": f"{scenario.name}/{folder.name}"}
    return None


def other(name: str, results: Path) -> markdown.Other:
    """What a scenario that is not of fetches found in its newest whole run, if there is one."""
    try:
        folder = study.newest_whole(name, results)
        records = read_records(folder / runs.TRIALS_CSV, study.study_of(name).record)
        facts = {**runs.read_facts(folder), "folder": f"{name}/{folder.name}"}
        return markdown.Other(name, claim_of(name), facts, tuple(findings_of(name, folder)),
                              sum(record.verdict == PASS for record in records), len(records))
    except FirstFlightError as error:
        say(str(error))
        return markdown.Other(name, claim_of(name), {}, ())


def say(message: str) -> None:
    print(f"results.py: {message}", file=sys.stderr)


def main(argv: Sequence[str]) -> int:
    arguments = parse(argv)
    measured: list[markdown.Run] = []
    unmeasured: list[Scenario] = []
    others: list[markdown.Other] = []
    for name in scenarios.names():
        if kind_of(name) != FETCHES:
            others.append(other(name, arguments.results))
            continue
        scenario = scenarios.load(name)
        found = newest_whole(scenario, arguments.results)
        if found is None:
            unmeasured.append(scenario)
        else:
            measured.append((scenario, *found))
    markdown.write(arguments.output, markdown.results(measured, unmeasured, others))
    for scenario in unmeasured:
        say(f"{scenario.name} has no whole run; measure it with"
            f" {analysis.command(scenario, ())}")
    print(arguments.output)
    return errors.OK


if __name__ == "__main__":
    run_main("results.py", main)
