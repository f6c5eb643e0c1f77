#!/usr/bin/env python3
"""Measure scenarios: scenario → trials → engine → records → findings → text, page, figures."""

from __future__ import annotations

if __name__ == "__main__":
    from commands.interrupted import quietly
    quietly("run.sh")

import argparse
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress

from commands import cliff, compare, probe, run, scenarios, users
from commands.flags import parse
from commands.runners import check_rights
from lab.core import errors
from lab.core.command_line import heed, run_main

# run.sh sets it where something has to be installed first: what is wrong with the flags is told
# before that, as far as it can be seen without what is missing.
READ_ONLY = "FIRST_FLIGHT_READ_ONLY"
# The flags that are a command of their own, the first that is given; without one it is run.run.
COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "list": scenarios.show, "new": scenarios.new, "check": scenarios.check, "probe": probe.run,
    "find_cliff": cliff.run, "compare": compare.run, "users": users.run}
READERS: dict[str, Callable[[argparse.Namespace], object]] = {
    "find_cliff": cliff.read, "users": users.read, "": run.read}


def main(argv: Sequence[str]) -> int:
    arguments = parse(argv)
    heed(signal.SIGTERM, signal.SIGHUP)
    flag = next((flag for flag in COMMANDS if getattr(arguments, flag)), "")
    if READ_ONLY in os.environ:
        with suppress(ModuleNotFoundError):  # of a package that is going to be installed
            check_rights(arguments)
            if flag in READERS:
                READERS[flag](arguments)
        return errors.OK
    return COMMANDS[flag](arguments) if flag else run.run(arguments)


if __name__ == "__main__":
    run_main("run.sh", main, kept=run.KEPT)
