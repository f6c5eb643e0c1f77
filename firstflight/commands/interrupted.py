"""How a program begins: with the system's Python, and so that Ctrl-C ends it without a traceback.

This module imports next to nothing, so that it is in force before anything can be interrupted.
"""

from __future__ import annotations

import os
import signal
import sys

PYTHON = "/usr/bin/python3"  # has the packages; another Python may come first on the PATH


def quietly(program: str) -> None:
    """End quietly when interrupted, until base.main.run_main takes over. Restarts another Python.
    """
    if sys.executable != PYTHON and os.access(PYTHON, os.X_OK):
        os.execv(PYTHON, [PYTHON, *sys.argv])

    def leave(*_: object) -> None:
        """Leave without an exception: numpy's C code would print its traceback."""
        os.write(2, f"{program}: interrupted\n".encode())
        os._exit(130)

    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, leave)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # run.sh starts us with it blocked
