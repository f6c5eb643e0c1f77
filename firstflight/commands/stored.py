"""What the programs that render stored runs share: which runs, and what goes wrong with each."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from firstflight.base import PROJECT, errors
from firstflight.base.argument_types import file_path, nonempty
from firstflight.base.errors import FirstFlightError
from firstflight.base.main import write_crash
from firstflight.base.parser import Parser
from firstflight.base.terminal import say
from firstflight.runs import runs, scenario_file

T = TypeVar("T")


@dataclass(frozen=True)
class ChosenRuns:
    """Which stored runs are rendered."""

    # Folders of results: a scenario's, a sample's (dukkipati2010_1in8), or one of own questions;
    # () for all that there are. Of each it is the newest whole run.
    names: Sequence[str]
    # The folder of one run, whole or not, in place of any names.
    run: Path | None
    results: Path


def add_runs(parser: Parser, of_scenarios: str, of_run: str) -> None:
    """Add NAME, --scenario, --run, --results; of_scenarios, of_run: the help of NAME, --run."""
    what = parser.add_mutually_exclusive_group()
    what.add_argument("names", nargs="*", metavar="NAME", type=nonempty, default=[],
                      help=of_scenarios)
    what.add_argument("--scenario", nargs="+", metavar="NAME", type=nonempty,
                      help="the same, as of run.sh")
    what.add_argument("--run", type=file_path, metavar="FOLDER", help=of_run)
    add_results(parser)


def add_results(parser: Parser) -> None:
    parser.add_argument("--results", type=file_path, default=PROJECT / "results",
                        metavar="DIR", help="where results are (default results)")


# What our code raises when it meets values that no scenario has together in a row.
UNFIT = (ValueError, ArithmeticError, LookupError, TypeError, AttributeError)


@contextmanager
def of_stranger(folder: Path) -> Iterator[None]:
    """A stranger's run may have valid values that together make no sense.

    Raises FirstFlightError if it cannot be rendered.
    """
    try:
        yield
    except UNFIT as error:
        crash = write_crash(traceback.format_exc())
        raise FirstFlightError(
            f"{folder}: its files contradict each other ({type(error).__name__}: {error});"
            f" measure again with --fresh, or report it with {crash} if nobody has changed it"
        ) from error


def with_each_run(program: str, chosen: ChosenRuns, render: Callable[[Path], object],
                  nothing: str) -> int:
    """Render each of the chosen runs; return the exit status.

    nothing: the message where no name is given, and there are no results.
    """
    there = [] if chosen.run else _names_in(chosen.results)

    def newest(name: str) -> None:
        if name not in there:
            scenario_file.find(name)  # a wrong name is told, and not that it lacks results
        render_run(runs.newest_whole(name, chosen.results))

    def render_run(folder: Path) -> None:
        with of_stranger(folder):
            render(folder)

    if chosen.run is not None:
        return with_each(program, [chosen.run], render_run)
    names = chosen.names or there
    if not names:
        say(f"{program}: {chosen.results}: {nothing}")
        return errors.FAILED
    return with_each(program, names, newest)


def _names_in(results: Path) -> list[str]:
    """The folders of results that hold runs, and those of scenarios that should."""
    known = scenario_file.names()
    return sorted(home.name for home in results.glob("*")
                  if home.is_dir() and (home.name in known or runs.newest_first(home)))


def with_each(program: str, items: Iterable[T], render: Callable[[T], object]) -> int:
    """Render each, whatever goes wrong with another; the first exit status that is not 0."""
    status = errors.OK
    for item in items:
        try:
            render(item)
        except FirstFlightError as error:
            say(f"{program}: {error}")
            status = status or error.exit_status
    return status
