"""Measures the scenarios of a command line, or its question by flags; or plans them (--dry-run)."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from firstflight.base import errors
from firstflight.base.errors import UsageError
from firstflight.commands.dry_run import dry_run
from firstflight.commands.overrides import overrides_of
from firstflight.runs import scenario_file
from firstflight.runs.kinds import Study
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
    return (registry.study_of(allowed(part_of(name, arguments), arguments), requested,
                              arguments.seed)
            if name else
            registry.own_question(arguments.name or "own", requested, arguments.seed))


def part_of(name: str, arguments: argparse.Namespace) -> ScenarioFile:
    """A scenario's file, or a sample of its networks (--sample 1/N). Raises UsageError."""
    file = scenario_file.find(name)
    return file.sampled(arguments.sample) if isinstance(arguments.sample, int) else file


def allowed(file: ScenarioFile, arguments: argparse.Namespace) -> ScenarioFile:
    """The file. Raises UsageError if it names a command and --allow-commands is missing."""
    if file.names_command and not (arguments.allow_commands or arguments.check):
        raise UsageError(f"{file.where}: names a command, [own_server], which would run on this"
                         " machine: read it, then allow it with --allow-commands")
    return file
