#!/usr/bin/env python3
"""Draw the figures of stored runs, and build their pages. Nothing is measured.

The runs are the newest whole run of each scenario, or one that is named. A run is loaded, its study
makes a report of it, and the report is drawn: figures/<scenario>_<name>.png, and
results/<scenario>/<run>/report.html, a page that needs no other file.
"""

from __future__ import annotations

if __name__ == "__main__":
    from firstflight.commands.interrupted import quietly
    quietly("plot.py")

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from firstflight.base import PROJECT, argument_types
from firstflight.base.argument_types import output_folder
from firstflight.base.errors import FirstFlightError
from firstflight.base.main import run_main
from firstflight.base.parser import Parser
from firstflight.base.terminal import say
from firstflight.commands.stored import ChosenRuns, add_runs, with_each_run
from firstflight.findings import drawing
from firstflight.findings.findings import Report
from firstflight.findings.quantities import FLAGS
from firstflight.findings.render import page, text
from firstflight.study.registry import stored_report

EPILOG = """\
exit status: 0 drawn · 1 results are missing or damaged · 2 usage · 130 interrupted
"""


@dataclass(frozen=True)
class Request:
    """What a command line of plot.py asks for."""

    runs: ChosenRuns
    figures: Path  # the folder of figures
    formats: Sequence[str]  # of figures, such as png


def main(argv: Sequence[str]) -> int:
    """Draw the runs of a command line; return the exit status."""
    request = parse(argv)
    return with_each_run(
        "plot.py", request.runs,
        lambda folder: draw_run(folder, request.figures, request.formats),
        "no results to draw; measure with ./run.sh")


def draw_run(folder: Path, figures: Path, forms: Sequence[str]) -> None:
    """Draw a stored run, build its page and print their paths.

    A line on standard error says what cannot be drawn. Raises FirstFlightError.
    """
    report = stored_report(folder)
    for line in text.some_not_drawn(report).splitlines():
        say(f"plot.py: {line}")
    images = draw_figures(report, folder, forms)
    if not any(finding.chart for finding in report.findings):
        say(f"plot.py: {text.not_drawn(report, folder)}")
    for path in drawing.save(report.name, images, figures, forms):
        print(path)
    print(page.write(folder, report, drawing.for_page(images)))


def draw_figures(report: Report, folder: Path, forms: Sequence[str]) -> drawing.Images:
    """The figures of a run, in these formats and as PNG, which its page shows.

    {} where they cannot be drawn, which a line on standard error says.
    """
    try:
        return drawing.images(report, tuple(dict.fromkeys(("png", *forms))))
    except FirstFlightError as error:
        say(f"plot.py: {folder}: nothing is drawn: {error}")
        return {}


def parse(argv: Sequence[str]) -> Request:
    """Read a command line of plot.py. A wrong one ends the program with a line."""
    measuring = ("plot.py draws stored runs; ./run.sh measures, such as ./run.sh zhao2019"
                 " --rtt 200")
    parser = Parser(
        {quantity.flag: measuring for quantity in FLAGS.values()}, prog="plot.py", epilog=EPILOG,
        allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Draw the figures of scenarios from their newest results, and build the page"
                    " report.html of\neach run. Nothing is measured.")
    add_runs(parser, "a scenario, own, or another folder of results (default: all)",
             "this run folder, whole or not, instead of a scenario's newest")
    parser.add_argument("--figures", type=output_folder, default=PROJECT / "figures",
                        metavar="DIR", help="where figures go (default figures)")
    parser.add_argument("--format", type=argument_types.picture_formats, default=("png",),
                        metavar="png,svg,pdf",
                        help="which files to write (default png)")
    arguments = parser.parse_args(argv)

    run: Path | None = arguments.run
    if run is not None:  # latest is a link, and nothing is written through one
        run = Path(os.path.realpath(run))
    chosen = ChosenRuns(arguments.names or arguments.scenario or (), run, arguments.results)
    return Request(chosen, arguments.figures, arguments.format)


if __name__ == "__main__":
    run_main("plot.py", main)
