"""How a program begins: with the system's Python, and Ctrl-C ends it without a traceback.

Imports as good as nothing.
"""

from __future__ import annotations

import os
import signal
import sys

PYTHON = "/usr/bin/python3"  # has the packages; another one may come first on the PATH


def quietly(program: str) -> None:
    """End quietly when interrupted, until base.main.run_main takes over."""
    if sys.executable != PYTHON and os.access(PYTHON, os.X_OK):
        os.execv(PYTHON, [PYTHON, *sys.argv])

    def leave(*_: object) -> None:
        """Leave without an exception: numpy's C code would print its traceback."""
        os.write(2, f"{program}: interrupted\n".encode())
        os._exit(130)

    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, leave)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # run.sh keeps it back so far
