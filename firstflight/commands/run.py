"""Measures the scenarios of a command line, or its question by flags; or plans them (--dry-run)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from firstflight.base import errors
from firstflight.base.argument_types import nonempty
from firstflight.base.errors import UsageError
from firstflight.commands.request import Request
from firstflight.runs import scenario_file
from firstflight.runs.kinds import AnyStudy, Overrides
from firstflight.runs.scenario_file import ScenarioFile
from firstflight.study import registry

DEFAULT_SCENARIOS = ("zhao2019", "dukkipati2010")


def add_flags(add: Callable[..., object]) -> None:
    add("names", nargs="*", metavar="SCENARIO", type=nonempty,
        help="what to measure: names of --list, or files of your own, path/to/my.toml"
             f" (default {' '.join(DEFAULT_SCENARIOS)}; with a flag of a network, TCP or a"
             " response a question of your own)")
    add("--scenario", nargs="+", action="extend", metavar="SCENARIO", default=[], type=nonempty,
        help="names of scenarios, or files of your own, as SCENARIO")
    add("--as-published", action="store_true",
        help="measure published reproductions with the defects of their set-up switched on: the"
             " scenarios NAME_as_published (default: the clean run)")


def is_requested(request: Request) -> bool:
    """True: scenarios, and networks by flags, are measured where no other command is requested."""
    return True


def read(request: Request) -> list[AnyStudy]:
    """The studies of the named scenarios, or of the question by flags. Raises UsageError."""
    return [study_of(name, request) for name in request.scenarios or [""]]


def run(request: Request,
        read_studies: Callable[[Request], Sequence[AnyStudy]] = read) -> int:
    """Measure each study, or print what would be measured; return the exit status.

    read_studies: reads what to measure. All is read before the first study is measured, which may
    take hours. Raises UsageError, and CannotError where this machine certainly cannot measure.
    """
    if request.dry_run:
        from firstflight.commands.dry_run import dry_run
        for study in checked_studies(request, read_studies):
            dry_run(study, request.measuring, request.overrides)
        return errors.OK

    # These boot guests, judge and draw: a dry run does not load them.
    from firstflight.commands import measure, runners
    runners.check_rights(request.measuring.engine)
    studies = checked_studies(request, read_studies)
    runners.check_kernels(request.overrides)
    # How long the machines of a cluster take is not known.
    if len(studies) > 1 and not (request.output.quiet or request.measuring.cluster):
        from firstflight.commands.dry_run import say_expected_times
        say_expected_times(studies, request.measuring)
    return measure.worst([measure.run_study(study, request) for study in studies])


def checked_studies(request: Request, read_studies: Callable[[Request], Sequence[AnyStudy]]
                    ) -> list[AnyStudy]:
    """The studies, once each --fail-if was checked with all of them. Raises UsageError."""
    studies = list(read_studies(request))
    for study in studies:
        for condition in request.output.conditions:
            condition.check(study)
    return studies


def study_of(name: str, request: Request) -> AnyStudy:
    """The study of a scenario; name: "" for the question by flags. Raises UsageError."""
    overrides, seed = request.overrides, request.measuring.seed
    if not name:
        return registry.own_question(request.name or "own", overrides, seed)

    file = scenario_file.find(name)
    refuse_command(file, request)
    if request.one_in is not None:
        return sampled_study(file, request.one_in, overrides, seed)
    return registry.study_of(file, overrides, seed)


def sampled_study(file: ScenarioFile, one_in: int, requested: Overrides, seed: int) -> AnyStudy:
    """The study of one in `one_in` networks or clients (--sample 1/N).

    Raises UsageError: with what is wrong in the file, or that it cannot be measured in part.
    """
    try:
        return registry.study_of(file.sampled(one_in), requested, seed)
    except UsageError as error:
        registry.study_of(file, requested, seed)  # raises if the file is wrong without --sample
        raise UsageError(
            f"--sample: {file.name} cannot be measured in part: that takes a population, or a grid"
            " of which no figure shows every network, such as dukkipati2010 or map_of_windows;"
            " flags such as --rtt or --iw choose a part of the others") from error


def refuse_command(file: ScenarioFile, request: Request) -> None:
    """Raises UsageError if the file names a command and --allow-commands is missing."""
    only_checks = request.check is not None
    if file.names_command and not (request.allow_commands or only_checks):
        raise UsageError(f"{file.where}: names a command, [own_server], which would run on this"
                         " machine: read it, then allow it with --allow-commands")
