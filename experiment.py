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

# run.sh puts this before the flags where it has to install something first. Wrong flags are then
# reported before the installation, as far as they are found without the missing packages.
READ_ONLY = "--only-read-flags"


class Program(Protocol):
    """A module that takes a whole command line, and has flags of its own."""

    def read(self, argv: Sequence[str]) -> int:
        """Refuse what is wrong, and run nothing; return the exit status."""

    def run(self, argv: Sequence[str]) -> int:
        """Run what the command line asks for; return the exit status."""


def main(argv: Sequence[str]) -> int:
    """Do what a command line of run.sh asks for; return the exit status."""
    interrupt_on(signal.SIGTERM, signal.SIGHUP)
    reads_only = list(argv[:1]) == [READ_ONLY]
    if reads_only:
        argv = argv[1:]
    if program := program_of(argv):
        return program.read(argv) if reads_only else program.run(argv)

    request = parse(argv)
    if reads_only:
        refuse_wrong(request)
        return errors.OK
    return command_of(request).run(request)


def program_of(argv: Sequence[str]) -> Program | None:
    """The program that a command line is for; None for the commands of commands.table.

    After -- stands somebody's command. --report reads what such a command left with --capture. Each
    program is imported only where it is needed, since it imports the virtual machine or numpy.
    """
    # Of a word such as --=5 the part before = would be taken for the -- before a command.
    flags = {word.partition("=")[0] for word in argv if not word.startswith("--=")}
    if "--" in flags:
        from firstflight.commands.virtual import command
        return command
    if "--report" in flags:
        from firstflight.commands.virtual import captured
        return captured
    return None


def refuse_wrong(request: Request) -> None:
    """Refuse a request that is wrong, as far as that is seen before everything is installed.

    Raises UsageError, CannotError.
    """
    with suppress(ModuleNotFoundError):  # for a package that run.sh is about to install
        from firstflight.commands import runners
        if not request.dry_run:
            runners.check_rights(request.measuring.engine)
        if studies_of(request):
            runners.check_kernels(request.overrides)


if __name__ == "__main__":
    run_main("run.sh", main)
