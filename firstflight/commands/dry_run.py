"""run.sh --dry-run: what a run would do, and how long it would take."""

from __future__ import annotations

from collections.abc import Sequence

from firstflight.base.terminal import say
from firstflight.base.words import escaped
from firstflight.commands.engines import plan_engine
from firstflight.commands.request import Measuring
from firstflight.runs.expected import expected_time
from firstflight.runs.kinds import AnyStudy, Overrides, memory_mb_of
from firstflight.testbed.engine_errors import engine_errors
from firstflight.testbed.network.commands import commands_of

MOST_LISTED = 20  # trials


def dry_run(study: AnyStudy, measuring: Measuring, overrides: Overrides) -> None:
    """Print what a run would do.

    Raises CannotError where a run would: for more guests than this machine can have, and for a
    missing kernel that a flag names.
    """
    time, engine = expected_time_of(study, measuring)
    if "kernel" in overrides.lists:
        from firstflight.commands.runners import check_kernels  # imports all that boots guests
        check_kernels(overrides)

    print(f"{study.head.name}: {len(study.trials)} trials")
    for trial in study.trials[:MOST_LISTED]:
        print(f"  {trial.id}")
    if len(study.trials) > MOST_LISTED:
        print(f"  … and {len(study.trials) - MOST_LISTED} more")
    if study.trials:
        print("commands of the first trial:")
        for command in commands_of(study.trials[0].job(), study.head.sysctls):
            print(escaped(f"  {command}"))

    print(f"expected time: {time} ({engine} engine)")


def say_expected_times(studies: Sequence[AnyStudy], measuring: Measuring) -> None:
    """Say how long each study will take, so that nobody waits for the last one unawares.

    Raises CannotError as expected_time_of does.
    """
    for study in studies:
        time, _ = expected_time_of(study, measuring)
        say(f"{study.head.name}: expected time {time}")


def expected_time_of(study: AnyStudy, measuring: Measuring) -> tuple[str, str]:
    """How long a study will take, in words, and the engine that will measure it.

    Raises CannotError for more guests than this machine can have.
    """
    with engine_errors():
        engine, jobs = plan_engine(measuring, memory_mb_of(study.trials))
    return expected_time(study, engine, jobs, measuring.results), engine
