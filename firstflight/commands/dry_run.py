"""run.sh --dry-run: what a run would do."""

from __future__ import annotations

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
    with engine_errors():
        engine, jobs = plan_engine(measuring, memory_mb_of(study.trials))

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

    print(f"expected time: {expected_time(study, engine, jobs, measuring.results)}"
          f" ({engine} engine)")
