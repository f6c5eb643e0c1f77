#!/usr/bin/env python3
"""Measure scenarios: scenario → trials → engine → records → findings → text, page, figures."""

from __future__ import annotations

if __name__ == "__main__":
    from firstflight.commands.interrupted import quietly
    quietly("run.sh")

import signal
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module

from firstflight.base import errors
from firstflight.base.main import run_main
from firstflight.base.signals import interrupt_on
from firstflight.commands.flags import parse
from firstflight.commands.questions import QUESTIONS

# run.sh puts this before the flags where something has to be installed first: mistakes in them are
# reported before that, as far as they can be found without the packages that are missing.
READ_ONLY = "--only-read-flags"
# Commands with flags of their own, by the word that selects them; the first word found decides.
# Their modules have read() and run(), which take the whole command line. What stands behind -- is
# somebody's command; --report reads what such a command left with --capture.
PROGRAMS = {"--": "firstflight.commands.virtual.command",
            "--report": "firstflight.commands.virtual.captured"}
# The flags of run.sh that run no trial (commands.without_trials.COMMANDS). The first one given is
# run, before QUESTIONS and before any scenario.
WITHOUT_TRIALS = ("list", "new", "check", "probe", "compare")


def main(argv: Sequence[str]) -> int:
    interrupt_on(signal.SIGTERM, signal.SIGHUP)
    reads_only = list(argv[:1]) == [READ_ONLY]
    argv = argv[reads_only:]
    flags = {word.partition("=")[0] for word in argv if not word.startswith("--=")}  # no "--"
    if program := next((name for flag, name in PROGRAMS.items() if flag in flags), ""):
        module = import_module(program)
        status: int = (module.read if reads_only else module.run)(argv)
        return status
    arguments = parse(argv)
    flag = next((flag for flag in (*WITHOUT_TRIALS, *QUESTIONS) if getattr(arguments, flag)), "")
    # Each command is imported where it is selected, and what it measures with where that begins.
    question = import_module(QUESTIONS.get(flag, "firstflight.commands.run"))
    if reads_only:
        with suppress(ModuleNotFoundError):  # of a package that is going to be installed
            runners = import_module("firstflight.commands.runners")
            runners.check_rights(arguments)
            if flag not in WITHOUT_TRIALS:
                question.read(arguments)
                runners.check_kernels(arguments)
        return errors.OK
    run = (import_module("firstflight.commands.without_trials").COMMANDS[flag]
           if flag in WITHOUT_TRIALS else question.run)
    status = run(arguments)
    return status


if __name__ == "__main__":
    run_main("run.sh", main)
