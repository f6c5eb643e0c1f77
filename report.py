#!/usr/bin/env python3
"""Build results/<scenario>/<run>/report.html from the records of a run; measure nothing."""

from __future__ import annotations

import signal

if __name__ == "__main__":  # Ctrl-C while the rest is imported ends it without a traceback
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.core import command_line, errors, files
from lab.core.command_line import Parser, run_main
from lab.core.errors import FirstFlightError
from lab.core.findings.findings import Report
from lab.core.run import runs
from lab.core.scenario import scenario_file
from lab.registry import stored_report
from lab.render import page

PROJECT = Path(__file__).resolve().parent

EPILOG = """\
exit status: 0 built · 1 results are missing or damaged · 2 usage · 130 interrupted
"""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = Parser(
        prog="report.py", epilog=EPILOG, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Build report.html, one page that needs nothing else, from the records of a"
                    " run. Nothing is measured.")
    parser.add_argument("--scenario", nargs="+", metavar="NAME",
                        help="whose newest whole run (default: every scenario that has one)")
    parser.add_argument("--results", type=Path, default=PROJECT / "results", metavar="DIR",
                        help="where results are (default results)")
    parser.add_argument("--figures", type=Path, metavar="DIR",
                        help="show the figures that plot.py left there (default: draw the"
                             " run's own)")
    parser.add_argument("--run", type=Path, metavar="FOLDER",
                        help="this run folder, whole or not, whatever its scenario")
    arguments = parser.parse_args(argv)
    if arguments.run is not None and arguments.scenario is not None:
        parser.error("--run names one run, --scenario others: give one of them")
    return arguments


def chosen_folders(arguments: argparse.Namespace) -> list[Path]:
    """The run folders asked for. Raises FirstFlightError where there is none."""
    if arguments.run is not None:
        # latest is a link, and nothing is written through one
        return [Path(os.path.realpath(arguments.run))]
    if arguments.scenario is not None:
        for name in arguments.scenario:
            scenario_file.find(name)  # an unknown name is a slip, not a lack of results
        return [runs.newest_whole(name, arguments.results) for name in arguments.scenario]
    found = [runs.whole(name, arguments.results) for name in scenario_file.names()]
    if not any(found):
        raise FirstFlightError(f"{arguments.results}: no results of a whole scenario; measure with"
                               " ./run.sh")
    return [folders[0] for folders in found if folders]


def build(folder: Path, figures: Path | None) -> Path:
    """Write the page of one run; return its path. Raises FirstFlightError."""
    report = stored_report(folder)
    drawings = drawn(report, folder) if figures is None else stored(report.name, figures)
    return page.write(folder, report, drawings)


def drawn(report: Report, folder: Path) -> Mapping[str, bytes]:
    """The figures of this very run, drawn now, by name."""
    import drawing  # and with it matplotlib: only where it draws
    try:
        return drawing.pngs(drawing.images(report))
    except FirstFlightError as error:
        say(f"{folder}: nothing is drawn: {error}")
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


def say(message: str) -> None:
    command_line.say(f"report.py: {message}")


def main(argv: Sequence[str]) -> int:
    arguments = parse(argv)
    status = errors.OK
    try:
        folders = chosen_folders(arguments)
    except FirstFlightError as error:
        say(str(error))
        return error.exit_status
    for folder in folders:
        try:
            print(build(folder, arguments.figures))
        except FirstFlightError as error:
            say(str(error))
            status = status or error.exit_status
    return status


if __name__ == "__main__":
    run_main("report.py", main)
