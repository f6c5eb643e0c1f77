"""Errors that reach the user. Each is one line, and has an exit status."""

from __future__ import annotations

OK = 0
FAILED = 1  # a trial or the harness failed
USAGE = 2  # a flag, a scenario file or a results file is wrong
VERDICT = 3  # measured, but a verdict failed
CANNOT = 4  # this machine cannot; the message says what to do
CONDITION = 5  # measured and verified, and a condition of --fail-if holds
INTERRUPTED = 130
UNREAD = 141  # the reader of the output has left: 128 + SIGPIPE, as Unix tools end
MESSAGE_CHARACTERS = 500  # at most, since a message may quote a file with values of any length
RESUME_HINT = "; what is measured is kept, the same command resumes"


def mark_resumable(error: BaseException) -> None:
    """Let the message of an error end with RESUME_HINT: something was measured before it."""
    vars(error)["resume_hint"] = RESUME_HINT


def resume_hint(error: BaseException) -> str:
    """The end of an error's message: RESUME_HINT if mark_resumable marked it, else ""."""
    return str(vars(error).get("resume_hint", ""))


def one_line(text: str) -> str:
    """The text on one line of at most MESSAGE_CHARACTERS; a longer one loses its middle.

    Many messages quote a stranger's file, so characters that move a terminal's cursor or hide
    text are shown as escapes.
    """
    if len(text) > MESSAGE_CHARACTERS:  # the middle goes first: to escape it takes time
        text = f"{text[:MESSAGE_CHARACTERS]} … {text[-MESSAGE_CHARACTERS:]}"

    characters = []
    for character in text:
        if character.isprintable():
            characters.append(character)
        elif character.isspace():
            characters.append(" ")
        else:
            characters.append(character.encode("unicode_escape").decode())
    shown = "".join(characters)

    if len(shown) <= MESSAGE_CHARACTERS:
        return shown
    half = MESSAGE_CHARACTERS // 2 - 2  # both halves leave room for the " … " between them
    return f"{shown[:half]} … {shown[-half:]}"


class FirstFlightError(Exception):
    """An error whose message tells the user what happened, and what to do about it."""

    exit_status = FAILED

    def __str__(self) -> str:
        return one_line(super().__str__())


class UsageError(FirstFlightError):
    """The command line or a file that the user wrote is wrong."""

    exit_status = USAGE


class CannotError(FirstFlightError):
    """This machine lacks what the measurement needs."""

    exit_status = CANNOT


class WriteError(FirstFlightError):
    """A file or a folder cannot be written; its text has which, why, and what to do."""
