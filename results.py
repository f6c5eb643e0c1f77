#!/usr/bin/env python3
"""Write docs/RESULTS.md from the newest whole run of every scenario; measures nothing."""

from __future__ import annotations

import signal

if __name__ == "__main__":  # Ctrl-C while the rest is imported ends it without a traceback
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import argparse
from collections.abc import Sequence
from pathlib import Path

from lab.core import command_line, errors, files, runs, scenario_file
from lab.core.command_line import Parser, run_main
from lab.core.errors import FirstFlightError
from lab.core.findings import Report
from lab.registry import stored_report
from lab.tell import markdown

PROJECT = Path(__file__).resolve().parent
OUTPUT = PROJECT / "docs" / "RESULTS.md"


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = Parser(
        prog="results.py", allow_abbrev=False,
        description="Write docs/RESULTS.md, every published bar and statement beside ours, from"
                    " the newest whole run of every scenario.")
    parser.add_argument("--results", type=Path, default=PROJECT / "results", metavar="DIR",
                        help="where results are (default results)")
    parser.add_argument("--output", type=Path, metavar="FILE",
                        help="what to write (default docs/RESULTS.md; with --run standard"
                             " output)")
    parser.add_argument("--run", type=Path, metavar="FOLDER",
                        help="the chapter of this run alone, whatever its scenario")
    return parser.parse_args(argv)


def newest(name: str, results: Path) -> Report | None:
    """Of the newest whole run that can be read; a damaged one is told and passed over."""
    for folder in runs.whole(name, results):
        try:
            return stored_report(folder)
        except FirstFlightError as error:
            say(f"passed over: {error}")
    say(f"{results / name}: there is no whole run; measure it with ./run.sh --scenario {name}")
    return None


def say(message: str) -> None:
    command_line.say(f"results.py: {message}")


def one(folder: Path, output: Path | None) -> int:
    """The chapter of one run, to a file or to standard output."""
    try:
        chapter = markdown.chapter(stored_report(folder))
        if output is None:
            print(chapter, end="")
        else:
            print(files.write(output, chapter))
    except FirstFlightError as error:
        say(str(error))
        return error.exit_status
    return errors.OK


def main(argv: Sequence[str]) -> int:
    arguments = parse(argv)
    if arguments.run is not None:
        return one(arguments.run, arguments.output)
    reports = {name: newest(name, arguments.results) for name in scenario_file.names()}
    print(files.write(arguments.output or OUTPUT, markdown.results(
        [report for report in reports.values() if report is not None],
        [name for name, report in reports.items() if report is None])))
    return errors.OK


if __name__ == "__main__":
    run_main("results.py", main)
