"""What a command line requests: scenarios, or a question by flags; measured, or what would be."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from firstflight.base import errors
from firstflight.base.errors import UsageError
from firstflight.commands.dry_run import dry_run
from firstflight.findings.quantities import FLAGS
from firstflight.runs import scenario_file
from firstflight.runs.kinds import Overrides, Study
from firstflight.runs.scenario_file import ScenarioFile
from firstflight.study import registry


def read(arguments: argparse.Namespace) -> list[Study]:
    """The scenarios that are named, or a question of one's own by flags. Raises UsageError."""
    return [study_of(name, arguments) for name in arguments.scenario or [""]]


def run(arguments: argparse.Namespace,
        read: Callable[[argparse.Namespace], Sequence[Study]] = read) -> int:
    """Measure each of them, or print what that would be; the exit status.

    All are read before the first is measured, which may take hours. Raises UsageError, and
    CannotError where it is certain by now.
    """
    if arguments.dry_run:
        for study in read_all(arguments, read):
            dry_run(study, arguments)
        return errors.OK
    # What boots guests, judges and draws, which a dry run does not load.
    from firstflight.commands import measure, runners
    runners.check_rights(arguments)
    studies = read_all(arguments, read)
    runners.check_kernels(arguments)
    return measure.worst([measure.run_study(study, arguments) for study in studies])


def read_all(arguments: argparse.Namespace,
             read: Callable[[argparse.Namespace], Sequence[Study]]) -> list[Study]:
    """The studies, with which each --fail-if goes. Raises UsageError."""
    studies = list(read(arguments))
    for study in studies:
        for condition in arguments.fail_if:
            condition.check(study)
    return studies


def study_of(name: str, arguments: argparse.Namespace) -> Study:
    """A scenario and all that can be known before measuring; "" for flags. Raises UsageError."""
    requested = overrides_of(arguments)
    return (registry.study_of(allowed(part_of(name, arguments), arguments), requested,
                              arguments.seed)
            if name else
            registry.own_question(arguments.name or "own", requested, arguments.seed))


def part_of(name: str, arguments: argparse.Namespace) -> ScenarioFile:
    """A scenario, or of its networks one in so many. Raises UsageError."""
    file = scenario_file.find(name)
    return file.sampled(arguments.sample) if isinstance(arguments.sample, int) else file


def allowed(file: ScenarioFile, arguments: argparse.Namespace) -> ScenarioFile:
    """The file, unless it names a command that nobody has allowed. Raises UsageError."""
    if file.names_command and not (arguments.allow_commands or arguments.check):
        raise UsageError(f"{file.where}: names a command, [own_server], which would run on this"
                         " machine: read it, then allow it with --allow-commands")
    return file


def overrides_of(arguments: argparse.Namespace) -> Overrides:
    lists = {name: getattr(arguments, name) for name in FLAGS
             if getattr(arguments, name) is not None}
    return Overrides(lists, arguments.repeat, arguments.client,
                     many=arguments.yes or arguments.dry_run, sysctls=tuple(arguments.sysctl),
                     sample="full" if arguments.sample == "full" else "",
                     own_server=own_server(arguments))


def own_server(arguments: argparse.Namespace) -> dict[str, object]:
    """The flags of a server of one's own, by name; {} without its command."""
    given = {"command": arguments.server_command, "ready": arguments.server_ready,
             "url_path": arguments.url_path, "name": arguments.server_name,
             "ca": arguments.ca and str(arguments.ca.absolute()),
             "folders": [str(folder.absolute()) for folder in arguments.server_folder]}
    return {name: value for name, value in given.items() if value not in (None, [])}
