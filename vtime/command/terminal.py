"""The terminal of whoever runs a command: raw, whether it may be read, its size."""

from __future__ import annotations

import fcntl
import os
import struct
import termios
import tty


class RawTerminal:
    """This process's terminal as a cable: what is typed reaches the command's own terminal."""

    def __enter__(self) -> None:
        self.before = termios.tcgetattr(0)
        tty.setraw(0)

    def __exit__(self, *_: object) -> None:
        termios.tcsetattr(0, termios.TCSADRAIN, self.before)


def in_foreground(number: int) -> bool:
    """Whether the terminal of a descriptor may be read; True for what is not a terminal."""
    try:
        return os.tcgetpgrp(number) == os.getpgrp()
    except OSError:
        return not os.isatty(number)


def size() -> tuple[int, int]:
    """Rows and columns of the terminal."""
    try:
        rows, columns = struct.unpack("HHHH", fcntl.ioctl(1, termios.TIOCGWINSZ, bytes(8)))[:2]
    except OSError:
        rows = columns = 0
    return rows or 24, columns or 80
