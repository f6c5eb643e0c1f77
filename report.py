#!/usr/bin/env python3
"""Build results/<scenario>/<run>/report.html from the records of a run; measure nothing."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lab import errors, report, scenario as scenarios
from lab.command_line import Parser, run_main
from lab.errors import FirstFlightError
from lab.report import ReportError, Run

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
                        help="whose latest run (default: every scenario that has results)")
    parser.add_argument("--results", type=Path, default=PROJECT / "results", metavar="DIR",
                        help="where results are (default results)")
    parser.add_argument("--figures", type=Path, metavar="DIR",
                        help="show the figures that plot.py left there (default: draw the"
                             " run's own)")
    parser.add_argument("--run", type=Path, metavar="FOLDER",
                        help="this run folder, whatever its scenario (default: the latest)")
    arguments = parser.parse_args(argv)
    if arguments.run is not None and arguments.scenario is not None:
        parser.error("--run names one run, --scenario others: give one of them")
    return arguments


def chosen_folders(arguments: argparse.Namespace) -> list[Path]:
    """The run folders asked for. Raises FirstFlightError where there is none."""
    if arguments.run is not None:
        return [arguments.run]
    if arguments.scenario is not None:
        for name in arguments.scenario:
            scenarios.load(name)  # an unknown name is a slip of the pen, not a lack of results
        return [arguments.results / name / "latest" for name in arguments.scenario]
    found = [arguments.results / name / "latest" for name in scenarios.names()
             if (arguments.results / name / "latest").is_dir()]
    if not found:
        raise FirstFlightError(f"{arguments.results}: no results; measure with ./run.sh")
    return found


def build(folder: Path, figures: Path | None) -> Path:
    """Write the page of one run; return its path. Raises FirstFlightError."""
    if not folder.is_dir():
        raise ReportError(f"{folder}: there is no such run; measure with ./run.sh")
    run = report.read_run(folder)
    if figures is not None:
        return report.write(run, stored(run, figures))
    with tempfile.TemporaryDirectory(prefix="first-flight-") as scratch:
        return report.write(run, drawn(run, Path(scratch)))


def drawn(run: Run, scratch: Path) -> dict[str, bytes]:
    """The figures of this very run, drawn by plot.py, by name; {} where it covers none.

    plot.py draws the newest run of a results folder, so it is given one that
    has no other.
    """
    if not run.covered[0]:
        return {}
    home = scratch / "results" / run.scenario.name
    home.mkdir(parents=True)
    (home / "latest").symlink_to(run.folder.resolve())
    command = [sys.executable, str(PROJECT / "plot.py"), "--scenario", run.scenario.name,
               "--results", str(scratch / "results"), "--figures", str(scratch / "figures")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or [f"status {done.returncode}"]
        say(f"{run.folder}: not all is drawn, since plot.py failed: {last[0]}")
    return stored(run, scratch / "figures")


def stored(run: Run, figures: Path) -> dict[str, bytes]:
    """The PNG files of the run's scenario in a folder, by the figure's name."""
    others = [name for name in scenarios.names() if name.startswith(f"{run.scenario.name}_")]
    try:
        return {path.stem.removeprefix(f"{run.scenario.name}_"): path.read_bytes()
                for path in sorted(figures.glob(f"{run.scenario.name}_*.png"))
                if not any(path.stem.startswith(f"{name}_") for name in others)}
    except OSError as error:
        raise ReportError(f"{error.filename}: cannot be read: {error.strerror}") from error


def say(message: str) -> None:
    print(f"report.py: {message}", file=sys.stderr)


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
