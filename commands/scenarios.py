"""run.sh --list, --check, --new: the files of scenarios, of which nothing is measured."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from commands import run
from lab import registry
from lab.core import errors, files
from lab.core.command_line import say
from lab.core.errors import FirstFlightError, UsageError
from lab.core.run import measuring
from lab.core.run.kinds import Overrides
from lab.core.scenario import scenario_file


def show(arguments: argparse.Namespace) -> int:
    """Print what each scenario claims; a broken file is told, and keeps no other from being listed.

    Returns the exit status: USAGE where a file is broken.
    """
    status, names = errors.OK, scenario_file.names()
    width = max(map(len, names), default=0)
    for name in names:
        try:
            print(f"{name:<{width}}  {scenario_file.find(name).head().claim}")
        except FirstFlightError as error:
            say(f"run.sh: {error}")
            status = error.exit_status
    return status


def check(arguments: argparse.Namespace) -> int:
    """Read a scenario, expand it and say what it costs. Raises UsageError."""
    name = arguments.check
    study = run.study_of(name, arguments)
    print(f"{name}: {study.head.claim}")
    expected_s = measuring.expected_s(study, "uml", arguments.jobs or os.cpu_count() or 1)
    print(f"{len(study.trials)} trials, about {expected_s:.0f} s (uml engine); nothing is wrong"
          " with it")
    return errors.OK


def new(arguments: argparse.Namespace) -> int:
    """Write a scenario to begin with, NAME.toml in the current folder. Raises UsageError."""
    name = arguments.new
    text = registry.own_question(name, Overrides({})).head.text  # which refuses a wrong name
    if os.path.lexists(path := Path(f"{name}.toml")):
        raise UsageError(f"--new: {path} is there already")
    files.write(path, text + "\n")
    print(f"{path}: measure it with ./run.sh {path}, after ./run.sh --check {path}")
    return errors.OK
