"""Errors that reach the user: one line each, and the exit status that goes with it."""

from __future__ import annotations

OK = 0
FAILED = 1  # a trial or the harness failed
USAGE = 2  # a flag, a scenario file or a results file is wrong
VERDICT = 3  # measured, but a verdict failed
CANNOT = 4  # this machine cannot; the message says what to do
CONDITION = 5  # measured and verified, and a condition of --fail-if holds
INTERRUPTED = 130
UNREAD = 141  # who read the output has left: 128 + SIGPIPE, as of Unix tools
MESSAGE_CHARACTERS = 500  # more than a reader takes in; a file may hold a value of any length


RESUME_HINT = "; what is measured is kept, the same command resumes"


def mark_resumable(error: BaseException) -> None:
    """Mark an error: whoever reports it adds that what was measured before is kept."""
    vars(error)["kept"] = RESUME_HINT


def resume_hint(error: BaseException) -> str:
    """What to add to a message of an error: KEPT where something was measured, else ""."""
    return str(vars(error).get("kept", ""))


def one_line(text: str) -> str:
    """The text on one line of at most MESSAGE_CHARACTERS, without its middle where it is longer.

    Characters that move a terminal's cursor or hide text are shown as escapes: many
    messages quote a stranger's file.
    """
    if len(text) > MESSAGE_CHARACTERS:
        text = f"{text[:MESSAGE_CHARACTERS]} … {text[-MESSAGE_CHARACTERS:]}"
    shown = "".join(character if character.isprintable() else " " if character.isspace() else
                    character.encode("unicode_escape").decode() for character in text)
    half = MESSAGE_CHARACTERS // 2 - 2
    return shown if len(shown) <= MESSAGE_CHARACTERS else f"{shown[:half]} … {shown[-half:]}"


class FirstFlightError(Exception):
    """A message for the user: what happened, and what to do about it."""

    exit_status = FAILED

    def __str__(self) -> str:
        return one_line(super().__str__())


class UsageError(FirstFlightError):
    """The command line or a file that the user wrote is wrong."""

    exit_status = USAGE


class CannotError(FirstFlightError):
    """This machine lacks what the measurement needs."""

    exit_status = CANNOT
