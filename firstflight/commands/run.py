"""Measures the scenarios of a command line, or its question by flags; or plans them (--dry-run)."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from firstflight.base import errors
from firstflight.base.errors import UsageError
from firstflight.commands.dry_run import dry_run
from firstflight.commands.overrides import overrides_of
from firstflight.runs import scenario_file
from firstflight.runs.kinds import Overrides, Study
from firstflight.runs.scenario_file import ScenarioFile
from firstflight.study import registry


def read(arguments: argparse.Namespace) -> list[Study]:
    """The studies of the named scenarios, or of the question by flags. Raises UsageError."""
    return [study_of(name, arguments) for name in arguments.scenario or [""]]


def run(arguments: argparse.Namespace,
        read: Callable[[argparse.Namespace], Sequence[Study]] = read) -> int:
    """Measure each study, or print what would be measured; return the exit status.

    All are read before the first is measured, which may take hours. Raises UsageError, and
    CannotError where this machine certainly cannot measure.
    """
    if arguments.dry_run:
        for study in read_all(arguments, read):
            dry_run(study, arguments)
        return errors.OK
    # These boot guests, judge and draw: a dry run does not load them.
    from firstflight.commands import measure, runners
    runners.check_rights(arguments)
    studies = read_all(arguments, read)
    runners.check_kernels(arguments)
    return measure.worst([measure.run_study(study, arguments) for study in studies])


def read_all(arguments: argparse.Namespace,
             read: Callable[[argparse.Namespace], Sequence[Study]]) -> list[Study]:
    """The studies, once each --fail-if was checked with all of them. Raises UsageError."""
    studies = list(read(arguments))
    for study in studies:
        for condition in arguments.fail_if:
            condition.check(study)
    return studies


def study_of(name: str, arguments: argparse.Namespace) -> Study:
    """The study of a scenario; name: "" for the question by flags. Raises UsageError."""
    requested = overrides_of(arguments)
    if not name:
        return registry.own_question(arguments.name or "own", requested, arguments.seed)
    file = allowed(scenario_file.find(name), arguments)
    if isinstance(arguments.sample, int):
        return sampled_study(file, arguments.sample, requested, arguments.seed)
    return registry.study_of(file, requested, arguments.seed)


def sampled_study(file: ScenarioFile, one_in: int, requested: Overrides, seed: int) -> Study:
    """The study of one in `one_in` networks or clients (--sample 1/N).

    Raises UsageError, of the whole file where that is wrong already.
    """
    try:
        return registry.study_of(file.sampled(one_in), requested, seed)
    except UsageError as error:
        registry.study_of(file, requested, seed)
        raise UsageError(
            f"--sample: {file.name} cannot be measured in part: that takes a population, or a grid"
            " of which no figure shows every network, such as dukkipati2010 or map_of_windows;"
            " flags such as --rtt or --iw choose a part of the others") from error


def allowed(file: ScenarioFile, arguments: argparse.Namespace) -> ScenarioFile:
    """The file. Raises UsageError if it names a command and --allow-commands is missing."""
    if file.names_command and not (arguments.allow_commands or arguments.check):
        raise UsageError(f"{file.where}: names a command, [own_server], which would run on this"
                         " machine: read it, then allow it with --allow-commands")
    return file
