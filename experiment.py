#!/usr/bin/env python3
"""Measure scenarios: scenario → trials → engine → records → findings → text, page, figures."""

from __future__ import annotations

if __name__ == "__main__":
    from firstflight.commands.interrupted import quietly
    quietly("run.sh")

import signal
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from firstflight.base import errors
from firstflight.base.main import run_main
from firstflight.base.signals import interrupt_on
from firstflight.commands.flags import parse
from firstflight.commands.request import Request
from firstflight.commands.table import command_of, studies_of

# run.sh puts this before the flags where something has to be installed first: mistakes in them are
# reported before that, as far as they can be found without the packages that are missing.
READ_ONLY = "--only-read-flags"


class Program(Protocol):
    """A module that takes a whole command line, whose flags are its own."""

    def read(self, argv: Sequence[str]) -> int:
        """Refuse what is wrong, and run nothing; the exit status."""

    def run(self, argv: Sequence[str]) -> int:
        """Run it; the exit status."""


def main(argv: Sequence[str]) -> int:
    interrupt_on(signal.SIGTERM, signal.SIGHUP)
    reads_only = list(argv[:1]) == [READ_ONLY]
    argv = argv[reads_only:]
    if program := program_of(argv):
        return program.read(argv) if reads_only else program.run(argv)

    request = parse(argv)
    if reads_only:
        refuse_wrong(request)
        return errors.OK
    return command_of(request).run(request)


def program_of(argv: Sequence[str]) -> Program | None:
    """The program that a command line is for; None for the commands of commands.table.

    What stands behind -- is somebody's command; --report reads what such a command left with
    --capture. Each is imported only where it is selected, since it loads the machine or numpy.
    """
    flags = {word.partition("=")[0] for word in argv if not word.startswith("--=")}  # no "--"
    if "--" in flags:
        from firstflight.commands.virtual import command
        return command
    if "--report" in flags:
        from firstflight.commands.virtual import captured
        return captured
    return None


def refuse_wrong(request: Request) -> None:
    """Read what would be measured, as far as that goes before everything is installed.

    Raises UsageError, CannotError.
    """
    with suppress(ModuleNotFoundError):  # of a package that is going to be installed
        from firstflight.commands import runners
        if not request.dry_run:
            runners.check_rights(request.measuring.engine)
        if studies_of(request):
            runners.check_kernels(request.overrides)


if __name__ == "__main__":
    run_main("run.sh", main)
