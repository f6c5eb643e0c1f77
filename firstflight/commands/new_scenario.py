"""run.sh --new: a scenario's file to begin with."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from firstflight.base import errors, files
from firstflight.base.argument_types import nonempty
from firstflight.base.errors import UsageError
from firstflight.commands.request import Request
from firstflight.runs.kinds import Overrides
from firstflight.study import registry


def add_flags(add: Callable[..., object]) -> None:
    add("--new", metavar="NAME", type=nonempty,
        help="write NAME.toml here, a scenario with every key explained; it runs as it is")


def is_requested(request: Request) -> bool:
    return request.new is not None


def run(request: Request) -> int:
    """Write a scenario to begin with, NAME.toml in the current folder. Raises UsageError."""
    assert request.new is not None
    # Refuses a name that a scenario cannot have, before a file is written.
    content = registry.own_question(request.new, Overrides({})).head.text
    path = Path(f"{request.new}.toml")
    if os.path.lexists(path):
        raise UsageError(f"--new: {path} is there already")
    files.write(path, content + "\n")
    print(f"{path}: measure it with ./run.sh {path}, after ./run.sh --check {path}")
    return errors.OK
