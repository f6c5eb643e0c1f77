"""What a guest printed before it ended, and the errors of guests."""

from __future__ import annotations

from pathlib import Path

from firstflight.base.untrusted import quoted
from vtime.shared_folder import ends_within

CONSOLE = "console.log"
CONSOLE_BYTES = 1 << 17  # of the console that are looked at: its beginning and its end


class EngineError(Exception):
    """An engine failed; its text names what was awaited and what came instead."""


class EngineCannot(EngineError):
    """This machine cannot run the engine; its text is what to do."""


def printed_in(folder: Path) -> str:
    """What a guest or a worker has printed, its folder given, of much the beginning and the end.

    Nothing where that is lost.
    """
    try:
        return ends_within(folder, CONSOLE, CONSOLE_BYTES).decode(errors="replace")
    except (OSError, ValueError):
        return ""


def was_killed(printed: str) -> bool:
    """Whether SIGKILL ended a guest behind namespaces, as where the machine's memory has run out.

    unshare stands before it then. It cannot die of that signal as it does of others, says so, and
    ends with status 1.
    """
    return "unshare: sigprocmask unblock failed" in printed


def last_words_of(printed: str) -> str:
    """The end of what was printed, on one line."""
    if was_killed(printed):
        return "it was killed, by the system if memory has run out"
    words = " | ".join(quoted(line) for line in printed.strip().splitlines()[-3:])
    return f"it printed: {words}" if words else "it printed nothing"
