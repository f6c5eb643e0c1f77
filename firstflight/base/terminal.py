"""Prints what a command says, and cares for the streams that it prints to."""

from __future__ import annotations

import io
import os
import shutil
import sys

from firstflight.base.words import escaped


def say(message: str) -> None:
    """Print a message of one line to standard error, or nothing if nobody reads it.

    Invisible characters, which names from a stranger may have, are shown as escapes.
    """
    try:
        print(escaped(message), file=sys.stderr, flush=True)
    except OSError:
        discard_output(2)


def print_while_read(text: str) -> bool:
    """Print the text. False if the reader has left (`| head -1`), so that nothing was printed."""
    try:
        print(escaped(text), flush=True)
    except BrokenPipeError:
        discard_output(1)
        return False
    return True


def terminal_width() -> int:
    """Characters in a line: the terminal's width, from 60 to 110; 110 without a terminal."""
    return max(60, min(110, shutil.get_terminal_size((110, 24)).columns))


def open_streams() -> None:
    """Make the standard streams and the PATH fit to use, however the program was started.

    /dev/null is opened for a stream that the caller closed: else the next file that is opened would
    become that stream. What a stream cannot encode is escaped. Without a usable PATH, the system's
    is added.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.open(os.devnull, os.O_RDWR)  # it gets the lowest free number, which is this one
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        # A stream may be in ASCII (PYTHONIOENCODING), and the name of a folder not in UTF-8.
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")
    if not shutil.which("env"):  # PATH is empty, or its folders do not exist
        os.environ["PATH"] = ":".join(filter(None, (os.environ.get("PATH"), os.defpath)))


def discard_output(stream: int) -> None:
    """Point a stream at /dev/null, so that Python does not try to flush it again as it exits."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream)
    os.close(nowhere)
