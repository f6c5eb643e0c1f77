"""Lets a program of ours enter namespaces of a host."""

from __future__ import annotations

import ctypes
import os

_libc = ctypes.CDLL(None, use_errno=True)


def enter(namespace: int) -> None:
    """Enter a namespace by its open file. Raises OSError; needs CAP_SYS_ADMIN."""
    # os.setns() came with Python 3.12.
    if _libc.setns(namespace, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "setns")
