#!/usr/bin/env python3
"""Draw the figures of stored runs: of scenarios, the newest whole run of each, or of one run.

Nothing is computed here: a run is loaded, its study makes a report of it, and
drawing draws that.
"""

from __future__ import annotations

import signal

if __name__ == "__main__":  # Ctrl-C while the rest is imported ends it without a traceback
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import argparse
from collections.abc import Sequence
from pathlib import Path

import drawing
from lab.core import command_line, errors
from lab.core.command_line import Parser, run_main
from lab.core.errors import FirstFlightError
from lab.core.run import runs
from lab.core.scenario import scenario_file
from lab.registry import stored_report

PROJECT = Path(__file__).resolve().parent


def main(argv: Sequence[str]) -> int:
    arguments = parse(argv)
    if arguments.run is not None:
        draw_run(arguments.run, arguments.figures, arguments.format)
        return errors.OK
    chosen = arguments.scenario or [name for name in scenario_file.names()
                                    if (arguments.results / name).is_dir()]
    if not chosen:
        say(f"{arguments.results}: no results to draw; measure with ./run.sh")
        return errors.FAILED
    status = errors.OK
    for name in chosen:
        try:
            scenario_file.find(name)  # a wrong name, before its results are searched
            folder = runs.newest_whole(name, arguments.results)
            draw_run(folder, arguments.figures, arguments.format)
        except FirstFlightError as error:
            say(str(error))
            status = status or error.exit_status
    return status


def draw_run(folder: Path, figures: Path, forms: Sequence[str]) -> None:
    """Draw a stored run, print the paths, and tell what of it cannot be drawn.

    Raises FirstFlightError.
    """
    report = stored_report(folder)
    for finding in report.findings:
        if finding.missing:
            say(f"not drawn: {finding.name}: {finding.missing}")
    paths = drawing.draw(report, figures, forms)
    if not paths:
        raise FirstFlightError(f"{folder}: there is nothing to draw of it")
    for path in paths:
        print(path)


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = Parser(
        prog="plot.py", description="Draw the figures of scenarios from their newest results.",
        allow_abbrev=False)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--scenario", nargs="+", metavar="NAME",
                      help="what to draw (default: every scenario that has results)")
    what.add_argument("--run", type=Path, metavar="FOLDER",
                      help="draw this run instead of a scenario's newest")
    parser.add_argument("--results", type=Path, default=PROJECT / "results", metavar="DIR",
                        help="where results are (default results)")
    parser.add_argument("--figures", type=Path, default=PROJECT / "figures", metavar="DIR",
                        help="where figures go (default figures)")
    parser.add_argument("--format", type=command_line.pictures, default=("png",),
                        metavar="png,svg,pdf",
                        help="which files to write (default png)")
    return parser.parse_args(argv)


def say(message: str) -> None:
    command_line.say(f"plot.py: {message}")


if __name__ == "__main__":
    run_main("plot.py", main)
