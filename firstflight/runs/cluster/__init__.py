"""Guests on many machines by Dask.

This file imports little, since it is needed to read flags.
"""

from __future__ import annotations

import re

_HOST = r"([\w.-]{1,200}|\[[0-9a-f:]{2,40}(%\w+)?\])"
_ADDRESS = re.compile(rf"(tls|tcp)://{_HOST}:(?P<port>\d{{1,5}})/?", re.ASCII)


def address(word: str) -> str:
    """Read the address of a scheduler. Raises ValueError."""
    match = _ADDRESS.fullmatch(word)
    if match is None or not 0 < int(match["port"]) <= 65_535:
        raise ValueError(
            f"{word[:80]!r} is not an address of a scheduler, such as tls://192.0.2.1:8786")
    return word
