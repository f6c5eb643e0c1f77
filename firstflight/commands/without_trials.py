"""run.sh --list, --new, --check, --probe, --compare: what is answered without running a trial."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from firstflight.base import errors, files
from firstflight.base.errors import FirstFlightError, UsageError
from firstflight.base.terminal import say
from firstflight.base.words import escaped
from firstflight.commands import export, run
from firstflight.commands.probe import probe
from firstflight.commands.stored import of_stranger
from firstflight.findings.render import text
from firstflight.runs import scenario_file
from firstflight.runs.expected import expected_time
from firstflight.runs.kinds import Overrides
from firstflight.study import compared_runs, registry


# The files of scenarios --------------------------------------------------------------

def list_scenarios(arguments: argparse.Namespace) -> int:
    """Print what each scenario claims; a broken file is reported, and the others are listed.

    With words only of those in whose file each of them begins a word. Returns the exit status:
    USAGE where a file is broken. Raises UsageError where no file has the words.
    """
    status, names, listed = errors.OK, scenario_file.names(), 0
    width = max(map(len, names), default=0)
    for name in names:
        try:
            file = scenario_file.find(name)
            if all(re.search(rf"(?i)(?<![a-z]){re.escape(word)}", f"{name} {file.text}")
                   for word in arguments.names):
                print(escaped(f"{name:<{width}}  {file.head().claim}"))
                listed += 1
        except FirstFlightError as error:
            say(f"run.sh: {error}")
            status = error.exit_status
    if arguments.names and not listed:
        raise UsageError(f"--list: no scenario has {' and '.join(arguments.names)} in its file;"
                         f" ./run.sh --list alone shows all {len(names)}")
    return status


def check(arguments: argparse.Namespace) -> int:
    """Read a scenario, expand it and print what it costs. Raises UsageError."""
    name = arguments.check
    study = run.study_of(name, arguments)
    print(escaped(f"{name}: {study.head.claim}"))
    time = expected_time(study, "uml", arguments.jobs or os.cpu_count() or 1, arguments.results)
    print(f"{len(study.trials)} trials; nothing is wrong with it; expected time: {time}"
          " (uml engine)")
    return errors.OK


def new(arguments: argparse.Namespace) -> int:
    """Write a scenario to begin with, NAME.toml in the current folder. Raises UsageError."""
    name = arguments.new
    content = registry.own_question(name, Overrides({})).head.text  # which refuses a wrong name
    if os.path.lexists(path := Path(f"{name}.toml")):
        raise UsageError(f"--new: {path} is there already")
    files.write(path, content + "\n")
    print(f"{path}: measure it with ./run.sh {path}, after ./run.sh --check {path}")
    return errors.OK


# Stored runs -------------------------------------------------------------------------

def compare(arguments: argparse.Namespace) -> int:
    """Draw and print how stored runs differ from the first. Raises UsageError."""
    folders = arguments.compare
    if len(folders) < 2:
        raise UsageError("--compare: takes two or more runs, such as results/zhao2019/latest")
    for folder in folders:
        if not os.path.isdir(folder):
            raise UsageError(f"--compare: {folder}: there is no such run")
    names = compared_runs.names(folders)
    written: Sequence[Path] = []
    with of_stranger(folders[-1]):
        report = compared_runs.report([(names[folder], registry.stored_run(folder)[1])
                                    for folder in folders])
        if not arguments.no_figures:
            from firstflight.findings import drawing  # and with it matplotlib: only where it draws
            written = drawing.save(report.name, drawing.images(report, arguments.format),
                                   arguments.figures, arguments.format)
        written = [*written, *export.write_files(arguments, report)]
        rendered = "\n".join([text.text(report), *map(str, written)])
    was_read = export.print_text(arguments, rendered)
    was_read = export.print_data(arguments, report) and was_read
    return errors.OK if was_read else errors.UNREAD


# By the flag that selects it.
COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "list": list_scenarios, "new": new, "check": check, "probe": probe, "compare": compare}
