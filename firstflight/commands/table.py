"""The commands of run.sh. The first one that a request asks for is run.

Every command line reads the flags of all commands, so these modules import little at their top.
What boots guests, judges or draws is imported in the function that does it: `--help`, `--list` and
`--dry-run` answer without numpy, matplotlib and the testbed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from firstflight.commands import (check_scenario, cliff, compare_runs, list_scenarios,
                                  new_scenario, page, probe, run, users)
from firstflight.commands.request import Request
from firstflight.runs.kinds import AnyStudy


class Command(Protocol):
    """A module that does one thing with a request."""

    def add_flags(self, add: Callable[..., object]) -> None:
        """Add the command's flags to a parser; add: argparse's add_argument."""

    def is_requested(self, request: Request) -> bool: ...

    def run(self, request: Request) -> int:
        """Do what the command is for; return the exit status. Raises FirstFlightError."""


class Measurement(Command, Protocol):
    """A command that measures trials."""

    def read(self, request: Request) -> Sequence[AnyStudy]:
        """The studies that the command would measure. Raises UsageError."""


class Question(Measurement, Protocol):
    """A measurement that has flags of its own, and does not go with every other flag."""

    def check(self, request: Request) -> str:
        """Why flags of the request do not go with this question; "" if all do."""


WITHOUT_TRIALS: tuple[Command, ...] = (
    list_scenarios, new_scenario, check_scenario, probe, compare_runs)
QUESTIONS: tuple[Question, ...] = (users, cliff, page)
# Scenarios, and networks by flags, are measured where no other command is requested.
MEASUREMENTS: tuple[Measurement, ...] = (*QUESTIONS, run)


def command_of(request: Request) -> Command:
    """The command that answers a request."""
    return next(command for command in (*WITHOUT_TRIALS, *MEASUREMENTS)
                if command.is_requested(request))


def studies_of(request: Request) -> Sequence[AnyStudy]:
    """The studies that a request measures; () where it runs no trial. Raises UsageError."""
    if any(command.is_requested(request) for command in WITHOUT_TRIALS):
        return ()
    measurement = next(command for command in MEASUREMENTS if command.is_requested(request))
    return measurement.read(request)
