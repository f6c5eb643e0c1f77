"""mount(2) for programs in a guest: its first process, and the one that makes a command's root."""

from __future__ import annotations

import ctypes
import os

MS_BIND, MS_REC, MS_PRIVATE = 4096, 1 << 14, 1 << 18  # linux/mount.h
_libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Mount a file system. Raises OSError with the target folder."""
    words = map(os.fsencode, (source, target, kind))  # a name need not be UTF-8
    if _libc.mount(*words, flags, os.fsencode(options)) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"mount {kind or source}: {os.strerror(code)}", target)


def bind(source: str, target: str) -> None:
    """Mount a file or folder, and what is mounted below it, in another place too. Raises OSError.
    """
    mount(source, target, flags=MS_BIND | MS_REC)
