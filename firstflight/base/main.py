"""Runs a command, prints one line for whatever ends it early, and exits with its status."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from firstflight.base import PROJECT
from firstflight.base.errors import (CANNOT, FAILED, INTERRUPTED, UNREAD, FirstFlightError,
                                     one_line, resume_hint)
from firstflight.base.signals import ignore_signals, interrupt_on, resend_unraisable
from firstflight.base.terminal import discard_output, open_streams, say

_OUTPUT = "writing"  # begins the message of an error that names no file


def run_main(program: str, main: Callable[[Sequence[str]], int]) -> NoReturn:
    """Run a command's main and exit with its status; no traceback reaches the user."""
    open_streams()
    sys.unraisablehook = resend_unraisable
    try:
        interrupt_on(signal.SIGINT)
        status = _status_of(program, main)
        ignore_signals()
    except KeyboardInterrupt as stopped:
        ignore_signals()
        say(f"{program}: interrupted{resume_hint(stopped)}")
        status = INTERRUPTED
    sys.exit(status)


def _status_of(program: str, main: Callable[[Sequence[str]], int]) -> int:
    """The exit status of a command's main, once its error is printed. Raises KeyboardInterrupt."""
    try:
        status = main(sys.argv[1:])
        sys.stdout.flush()
        return status
    except FirstFlightError as error:
        say(f"{program}: {error}{resume_hint(error)}")
        return error.exit_status
    except BrokenPipeError:  # the reader has left, as with `| head -1`
        discard_output(1)
        return UNREAD
    except OSError as error:
        discard_output(1)
        what = one_line(f"{error.filename or _OUTPUT}: {error.strerror}")
        say(f"{program}: {what}{resume_hint(error)}")
        return FAILED
    except MemoryError as error:
        say(f"{program}: this machine has too little memory{resume_hint(error)}")
        if threading.active_count() > 1:  # another thread may wait for ever for this one
            os._exit(CANNOT)
        return CANNOT
    except Exception as error:  # our mistake: a user gets one line, and a report has the traceback
        if isinstance(error, ModuleNotFoundError) and not _is_ours(error.name or ""):
            say(f"{program}: Python's package {error.name} is missing; ./install.sh installs it")
            return CANNOT

        what = one_line(f"internal error, {type(error).__name__}: {error}")
        crash = write_crash(traceback.format_exc())
        say(f"{program}: {what}; please report it with {crash}{resume_hint(error)}")
        return FAILED


def _is_ours(module: str) -> bool:
    """Whether a module is one of the project's own."""
    return any((PROJECT / f"{module.partition('.')[0]}{end}").exists() for end in ("", ".py"))


def write_crash(text: str) -> Path:
    """Write a crash report that only the user can read, and return its path.

    It is in the user's cache, or in a temporary folder if the cache cannot be written.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "first-flight"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        file, path = tempfile.mkstemp(".txt", "crash-", cache)
    except (OSError, RuntimeError):
        file, path = tempfile.mkstemp(".txt", "crash-", tempfile.mkdtemp())
    with os.fdopen(file, "w", encoding="utf-8", errors="backslashreplace") as crash:
        crash.write(text)
    return Path(path)
