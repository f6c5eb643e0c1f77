#!/usr/bin/env python3
"""Measure scenarios: scenario → trials → engine → records → findings → text, page, figures."""

from __future__ import annotations

if __name__ == "__main__":
    from commands.interrupted import quietly
    quietly("run.sh")

import argparse
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module

from commands import compare, probe, scenarios
from commands.flags import QUESTIONS, parse
from commands.run import KEPT
from commands.runners import check_rights
from lab.core import errors
from lab.core.command_line import heed, run_main

# run.sh sets it where something has to be installed first: what is wrong with the flags is told
# before that, as far as it can be seen without what is missing.
READ_ONLY = "FIRST_FLIGHT_READ_ONLY"
# The flags that are a command of their own, the first that is given: before QUESTIONS, or a run.
COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "list": scenarios.show, "new": scenarios.new, "check": scenarios.check, "probe": probe.run,
    "compare": compare.run}

# Those whose flags are their own, by a flag that each has: other people's programs.
VIRTUAL = {"--report": "commands.virtual.captured",  # of a command that ran with --capture
           "--packetdrill": "commands.virtual.packetdrill"}


def main(argv: Sequence[str]) -> int:
    heed(signal.SIGTERM, signal.SIGHUP)
    if "--" in argv:  # what stands behind it is somebody's command
        place = list(argv).index("--")
        command = import_module("commands.virtual.command")
        does = command.read if READ_ONLY in os.environ else command.run
        status: int = does(argv[:place], argv[place + 1:])
        return status
    for flag, name in VIRTUAL.items():
        if any(word.partition("=")[0] == flag for word in argv):
            module = import_module(name)
            status = module.read(argv) if READ_ONLY in os.environ else module.run(argv)
            return status
    arguments = parse(argv)
    flag = next((flag for flag in (*COMMANDS, *QUESTIONS) if getattr(arguments, flag)), "")
    question = import_module(QUESTIONS.get(flag, "commands.run"))
    if READ_ONLY in os.environ:
        with suppress(ModuleNotFoundError):  # of a package that is going to be installed
            check_rights(arguments)
            if flag not in COMMANDS:
                question.read(arguments)
        return errors.OK
    status = COMMANDS.get(flag, question.run)(arguments)
    return status


if __name__ == "__main__":
    run_main("run.sh", main, kept="" if "--" in sys.argv else KEPT)
