#!/usr/bin/env python3
"""Build results/<scenario>/<run>/report.html from the records of a run; measure nothing."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lab import errors, findings_page, report, scenario as scenarios
from lab.command_line import Parser, run_main
from lab.errors import FirstFlightError
from lab.report import ReportError
from lab.study import FETCHES, kind_of

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
            kind_of(name)  # an unknown name is a slip of the pen, not a lack of results
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
    name = report.scenario_of(folder)
    if kind_of(name) != FETCHES:
        with shown(name, folder, figures, True) as pictures:
            return findings_page.write(name, folder, pictures)
    run = report.read_run(folder)
    with shown(name, folder, figures, bool(run.covered[0])) as pictures:
        return report.write(run, pictures)


@contextmanager
def shown(name: str, folder: Path, figures: Path | None,
          drawable: bool) -> Iterator[dict[str, bytes]]:
    """The pictures for a run's page: those in `figures`, or else drawn now where it can be."""
    if figures is not None:
        yield stored(name, figures)
    elif not drawable:
        yield {}
    else:
        with tempfile.TemporaryDirectory(prefix="first-flight-") as scratch:
            yield drawn(name, folder, Path(scratch))


def drawn(name: str, folder: Path, scratch: Path) -> dict[str, bytes]:
    """The figures of this very run, drawn by plot.py, by name.

    plot.py draws the newest run of a results folder, so it is given one that
    has no other.
    """
    home = scratch / "results" / name
    home.mkdir(parents=True)
    (home / "latest").symlink_to(folder.resolve())
    command = [sys.executable, str(PROJECT / "plot.py"), "--scenario", name,
               "--results", str(scratch / "results"), "--figures", str(scratch / "figures")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or [f"status {done.returncode}"]
        say(f"{folder}: not all is drawn, since plot.py failed: {last[0]}")
    return stored(name, scratch / "figures")


def stored(scenario: str, figures: Path) -> dict[str, bytes]:
    """The PNG files of a scenario in a folder, by the figure's name."""
    others = [name for name in scenarios.names() if name.startswith(f"{scenario}_")]
    try:
        return {path.stem.removeprefix(f"{scenario}_"): path.read_bytes()
                for path in sorted(figures.glob(f"{scenario}_*.png"))
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
