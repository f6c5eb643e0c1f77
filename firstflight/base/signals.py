"""Lets signals interrupt a command: only once, and never in the middle of an import."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType

RESEND_SIGNAL_S = 0.02  # until a signal that arrived during an import is sent again
_interrupting: set[int] = set()  # the signals that interrupt the command


def interrupt_on(*numbers: int, by: Callable[[int, FrameType | None], None] | None = None) -> None:
    """Let these signals interrupt the command, except those it was started to ignore (nohup).

    by: handles the signals instead of `interrupt`. Once the command has its status, the signals are
    ignored: as Python ends, it removes its handlers, and a signal would then change the status.
    """
    for number in numbers:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, by or interrupt)
            _interrupting.add(number)


def interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt for a signal, but only after an import that it meets has ended.

    During an import, numpy's C code would print a traceback and raise ImportError. An impatient
    user sends more signals while the command is cleaning up: only the first one counts.
    """
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            _send_later(number)
            return
        frame = frame.f_back
    ignore_signals()
    raise KeyboardInterrupt


def ignore_signals() -> None:
    """Ignore the signals that could interrupt the command, from now on."""
    for number in _interrupting:
        signal.signal(number, signal.SIG_IGN)


def _send_later(number: int) -> None:
    """Send this signal to this process again after RESEND_SIGNAL_S."""
    timer = threading.Timer(RESEND_SIGNAL_S, os.kill, (os.getpid(), number))
    timer.daemon = True
    timer.start()


def resend_unraisable(what: sys.UnraisableHookArgs) -> None:
    """Send a signal again whose KeyboardInterrupt was raised in a finalizer, where it is lost."""
    if not isinstance(what.exc_value, KeyboardInterrupt) or not _interrupting:
        sys.__unraisablehook__(what)
        return
    for number in _interrupting:
        signal.signal(number, interrupt)
    _send_later(min(_interrupting))  # nobody knows which one it was
