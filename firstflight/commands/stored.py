"""What the programs that render stored runs share: flags that choose runs, and how errors end."""

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
    """The stored runs that a user wants rendered."""

    # Names of folders below `results`: of a scenario, of a sample (dukkipati2010_1in8), or of own
    # questions. The newest whole run of each is rendered. () for all folders that there are.
    names: Sequence[str]
    # The folder of one run, whole or not, which is rendered instead of any names.
    run: Path | None
    results: Path


def add_runs(parser: Parser, of_scenarios: str, of_run: str) -> None:
    """Add NAME, --scenario, --run and --results to a parser.

    of_scenarios: the help of NAME. of_run: the help of --run.
    """
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


# The errors of code that meets a row with values that no scenario has together.
CONTRADICTION_ERRORS = (ValueError, ArithmeticError, LookupError, TypeError, AttributeError)


@contextmanager
def report_contradictions(folder: Path) -> Iterator[None]:
    """End without a traceback where the files of a run contradict each other.

    Each value of a stranger's run may be valid, and all together make no sense. Raises
    FirstFlightError if the run cannot be rendered.
    """
    try:
        yield
    except CONTRADICTION_ERRORS as error:
        crash = write_crash(traceback.format_exc())
        raise FirstFlightError(
            f"{folder}: its files contradict each other ({type(error).__name__}: {error});"
            f" measure again with --fresh, or report it with {crash} if nobody has changed it"
        ) from error


def with_each_run(program: str, chosen: ChosenRuns, render: Callable[[Path], object],
                  nothing: str) -> int:
    """Render each of the chosen runs; return the exit status.

    program: begins messages. nothing: the message where no name is given and no run is stored.
    """
    stored_names = [] if chosen.run else _names_in(chosen.results)

    def render_run(folder: Path) -> None:
        with report_contradictions(folder):
            render(folder)

    def render_newest(name: str) -> None:
        if name not in stored_names:
            scenario_file.find(name)  # refuses a name that no scenario has
        render_run(runs.newest_whole(name, chosen.results))

    if chosen.run is not None:
        return with_each(program, [chosen.run], render_run)
    names = chosen.names or stored_names
    if not names:
        say(f"{program}: {chosen.results}: {nothing}")
        return errors.FAILED
    return with_each(program, names, render_newest)


def _names_in(results: Path) -> list[str]:
    """The names of folders of results. A folder counts if it holds a run, or has a scenario's name.
    """
    known = scenario_file.names()
    return sorted(home.name for home in results.glob("*")
                  if home.is_dir() and (home.name in known or runs.newest_first(home)))


def with_each(program: str, items: Iterable[T], render: Callable[[T], object]) -> int:
    """Render each item, even if another one fails; return the first exit status that is not 0."""
    status = errors.OK
    for item in items:
        try:
            render(item)
        except FirstFlightError as error:
            say(f"{program}: {error}")
            status = status or error.exit_status
    return status
