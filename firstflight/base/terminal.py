"""What a command prints, and the streams that it prints to."""

from __future__ import annotations

import io
import os
import shutil
import sys

from firstflight.base.words import escaped


def say(message: str) -> None:
    """Print one message line to standard error; nothing if nobody reads it.

    Invisible characters, which names from a stranger may have, are shown as escapes.
    """
    try:
        print(escaped(message), file=sys.stderr, flush=True)
    except OSError:
        discard_output(2)


def print_while_read(text: str) -> bool:
    """Print the text; False if the reader has left (`| head -1`): nothing is printed then."""
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
    """Open /dev/null for streams that the caller closed: else the next file would become one."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.open(os.devnull, os.O_RDWR)  # it gets the lowest free number, which is this one
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        # Escape what its encoding lacks (PYTHONIOENCODING=ascii, a folder's name without UTF-8).
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")
    if not shutil.which("env"):  # PATH is empty, or its folders do not exist
        os.environ["PATH"] = ":".join(filter(None, (os.environ.get("PATH"), os.defpath)))


def discard_output(stream: int) -> None:
    """Point a stream at /dev/null, so that Python does not try to flush it again as it exits."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream)
    os.close(nowhere)
