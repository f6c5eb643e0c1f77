"""Errors that reach the user: one line each, and the exit status that goes with it."""

from __future__ import annotations

OK = 0
FAILED = 1  # a trial or the harness failed
USAGE = 2  # a flag, a scenario file or a results file is wrong
VERDICT = 3  # measured, but a verdict failed
CANNOT = 4  # this machine cannot; the message says what to do
INTERRUPTED = 130


class FirstFlightError(Exception):
    """What the user is told: what happened, and what to do about it."""

    exit_status = FAILED


class UsageError(FirstFlightError):
    """The command line or a file that the user wrote is wrong."""

    exit_status = USAGE


class CannotError(FirstFlightError):
    """This machine lacks what the measurement needs."""

    exit_status = CANNOT
