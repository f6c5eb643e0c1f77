#!/usr/bin/env python3
"""Draw the figures of stored runs: of scenarios, the newest whole run of each, or of one run.

Nothing is computed here: a run is loaded, its study makes a report of it, and
drawing draws that.
"""

from __future__ import annotations

if __name__ == "__main__":
    from commands.interrupted import quietly
    quietly("plot.py")

import argparse
from collections.abc import Sequence
from pathlib import Path

from base import command_line, files
from base.command_line import Parser, output_folder, run_main, say
from base.errors import FirstFlightError
from commands.stored import add_runs, with_each_run
from findings import drawing
from study.registry import stored_report


def main(argv: Sequence[str]) -> int:
    arguments = parse(argv)
    return with_each_run(
        "plot.py", arguments,
        lambda folder: draw_run(folder, arguments.figures, arguments.format),
        lambda name: (arguments.results / name).is_dir(),
        "no results to draw; measure with ./run.sh")


def draw_run(folder: Path, figures: Path, forms: Sequence[str]) -> None:
    """Draw a stored run, print the paths, and report what of it cannot be drawn.

    Raises FirstFlightError.
    """
    report = stored_report(folder)
    for finding in report.findings:
        if finding.missing:
            say(f"plot.py: not drawn: {finding.name}: {finding.missing}")
    paths = drawing.draw(report, figures, forms)
    if not paths:
        raise FirstFlightError(f"{folder}: it has nothing to draw")
    for path in paths:
        print(path)


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = Parser(
        prog="plot.py", description="Draw the figures of scenarios from their newest results.",
        allow_abbrev=False)
    add_runs(parser, "what to draw (default: every scenario that has results)",
             "draw this run instead of a scenario's newest")
    parser.add_argument("--figures", type=output_folder, default=files.PROJECT / "figures",
                        metavar="DIR", help="where figures go (default figures)")
    parser.add_argument("--format", type=command_line.pictures, default=("png",),
                        metavar="png,svg,pdf",
                        help="which files to write (default png)")
    return parser.parse_args(argv)


if __name__ == "__main__":
    run_main("plot.py", main)
