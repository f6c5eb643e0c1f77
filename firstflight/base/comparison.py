"""One comparison of an observed value with the value that was requested, or had to come."""

from __future__ import annotations

from typing import NamedTuple


class Comparison(NamedTuple):
    """What a check of a verdict compared, in words for its reader."""

    passed: bool
    observed: str
    requested: str
    name: str = ""  # what was compared; "" if the name of the check says it
