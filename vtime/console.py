"""Reads what a guest printed, and defines the errors of engines."""

from __future__ import annotations

from pathlib import Path

from firstflight.base.untrusted import quoted
from vtime.shared_folder import ends_within
from vtime.watch import KILLED, MARK

CONSOLE = "console.log"
CONSOLE_BYTES = 1 << 17  # of the console's beginning and end are read, so many together
TRUSTED = ("a kernel that keeps to its memory does not: ./install.sh --force builds the default one"
           " again")


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
    """Whether SIGKILL ended a guest, as the kernel does if memory runs out.

    Its watcher says so. If that was killed, too, unshare is the parent, which passes other signals
    on by dying of them. It cannot do so with this one, prints a message, and ends with status 1.
    """
    return KILLED in printed or "unshare: sigprocmask unblock failed" in printed


def excess_in(printed: str) -> str:
    """What a guest took of the machine so that its watcher ended it; "" if it did not."""
    _, mark, reason = printed.rpartition(MARK)
    if not mark:
        return ""
    return f"{quoted(reason.partition(chr(10))[0])}; {TRUSTED}"


def last_words_of(printed: str) -> str:
    """The end of what was printed, on one line."""
    if was_killed(printed):
        return "it was killed, by the system if memory has run out"
    words = " | ".join(quoted(line) for line in printed.strip().splitlines()[-3:])
    return f"it printed: {words}" if words else "it printed nothing"
