"""run.sh --check: whether a scenario's file can be measured, and how long that takes."""

from __future__ import annotations

import os
from collections.abc import Callable

from firstflight.base import errors
from firstflight.base.argument_types import nonempty
from firstflight.base.words import escaped
from firstflight.commands.request import Request
from firstflight.commands.run import study_of


def add_flags(add: Callable[..., object]) -> None:
    add("--check", metavar="FILE", type=nonempty,
        help="read a scenario, expand it and print how long it takes; measure nothing")


def is_requested(request: Request) -> bool:
    return request.check is not None


def run(request: Request) -> int:
    """Read a scenario, expand it and print what it costs. Raises UsageError."""
    from firstflight.runs.expected import expected_time
    assert request.check is not None
    study = study_of(request.check, request)
    print(escaped(f"{request.check}: {study.head.claim}"))

    jobs = request.measuring.jobs or os.cpu_count() or 1
    time = expected_time(study, "uml", jobs, request.measuring.results)
    print(f"{len(study.trials)} trials; nothing is wrong with it; expected time: {time}"
          " (uml engine)")
    return errors.OK
