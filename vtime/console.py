"""Reads what a guest printed, and defines the errors of engines."""

from __future__ import annotations

from pathlib import Path

from firstflight.base.untrusted import quoted
from vtime.shared_folder import ends_within

CONSOLE = "console.log"
CONSOLE_BYTES = 1 << 17  # of the console's beginning and end are read, so many together


class EngineError(Exception):
    """An engine failed; the message has what was awaited and what came instead."""


class EngineCannot(EngineError):
    """This machine cannot run the engine; the message has what to do."""


def printed_in(folder: Path) -> str:
    """What a guest or worker with this folder has printed: the beginning and the end of it.

    "" if that is lost.
    """
    try:
        return ends_within(folder, CONSOLE, CONSOLE_BYTES).decode(errors="replace")
    except (OSError, ValueError):
        return ""


def was_killed(printed: str) -> bool:
    """Whether SIGKILL ended a guest in namespaces, as the kernel does if memory runs out.

    unshare is then its parent, which passes other signals on by dying of them. It cannot do so
    with this one, prints a message, and ends with status 1.
    """
    return "unshare: sigprocmask unblock failed" in printed


def last_words_of(printed: str) -> str:
    """The end of what was printed, on one line."""
    if was_killed(printed):
        return "it was killed, by the system if memory has run out"
    words = " | ".join(quoted(line) for line in printed.strip().splitlines()[-3:])
    return f"it printed: {words}" if words else "it printed nothing"
