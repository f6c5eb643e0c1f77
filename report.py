#!/usr/bin/env python3
"""Build results/<scenario>/<run>/report.html from the records of a run; measure nothing."""

from __future__ import annotations

if __name__ == "__main__":
    from commands.interrupted import quietly
    quietly("report.py")

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from base import files
from base.command_line import Parser, file_path, run_main, say
from base.errors import FirstFlightError
from commands.stored import add_runs, with_each_run
from findings.findings import Report
from findings.render import page
from runs import runs, scenario_file
from study.registry import stored_report

EPILOG = """\
exit status: 0 built · 1 results are missing or damaged · 2 usage · 130 interrupted
"""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = Parser(
        prog="report.py", epilog=EPILOG, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Build report.html, one page that needs nothing else, from the records of a"
                    " run. Nothing is measured.")
    add_runs(parser, "whose newest whole run (default: every scenario that has one)",
             "this run folder, whole or not, whatever its scenario")
    parser.add_argument("--figures", type=file_path, metavar="DIR",
                        help="show the figures that plot.py left there (default: draw the"
                             " run's own)")
    arguments = parser.parse_args(argv)
    if arguments.run is not None:  # latest is a link, and nothing is written through one
        arguments.run = Path(os.path.realpath(arguments.run))
    return arguments


def build(folder: Path, figures: Path | None) -> Path:
    """Write the page of one run; return its path. Raises FirstFlightError."""
    report = stored_report(folder)
    drawings = drawn(report, folder) if figures is None else stored(report.name, figures)
    return page.write(folder, report, drawings)


def drawn(report: Report, folder: Path) -> Mapping[str, bytes]:
    """The figures of this very run, drawn now, by name."""
    from findings import drawing  # and with it matplotlib: only where it draws
    try:
        return drawing.for_page(drawing.images(report))
    except FirstFlightError as error:
        say(f"report.py: {folder}: nothing is drawn: {error}")
        return {}


def stored(scenario: str, figures: Path) -> dict[str, bytes]:
    """The PNG files of a scenario in a folder, by the figure's name. Raises FirstFlightError."""
    others = [name for name in scenario_file.names() if name.startswith(f"{scenario}_")]
    try:
        return {path.stem.removeprefix(f"{scenario}_"): files.content(path)
                for path in sorted(figures.glob(f"{scenario}_*.png"))
                if not any(path.stem.startswith(f"{name}_") for name in others)}
    except OSError as error:
        raise FirstFlightError(f"{error.filename}: cannot be read: {error.strerror}") from error


def main(argv: Sequence[str]) -> int:
    arguments = parse(argv)
    return with_each_run(
        "report.py", arguments, lambda folder: print(build(folder, arguments.figures)),
        lambda name: runs.whole(name, arguments.results),
        "no results of a whole scenario; measure with ./run.sh")


if __name__ == "__main__":
    run_main("report.py", main)
