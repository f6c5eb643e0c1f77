"""Ctrl-C while a program is imported ends it without a traceback; imports as good as nothing."""

from __future__ import annotations

import os
import signal


def quietly(program: str) -> None:
    """From here on, until base.command_line.run_main takes over."""
    def leave(*_: object) -> None:
        """Without raising anything: numpy's C code would print a traceback of it."""
        os.write(2, f"{program}: interrupted\n".encode())
        os._exit(130)

    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, leave)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # run.sh keeps it back so far
