"""Entering the network namespace of a host, for what the kernel tells or takes only there."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def network_of(pid: int) -> Iterator[None]:
    """Be in the network namespace of process `pid`. Raises OSError; needs CAP_SYS_ADMIN."""
    here = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    try:
        _enter(there)
        yield
    finally:
        _enter(here)
        os.close(here)
        os.close(there)


def _enter(namespace: int) -> None:
    # os.setns() came with Python 3.12.
    if _libc.setns(namespace, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "setns")
