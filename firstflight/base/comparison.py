"""One comparison of what was requested, or had to happen, with what was observed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Comparison:
    """What a check of a verdict compared, in words for its reader.

    name: of what was compared, if not the name of the check.
    """

    passed: bool
    observed: str
    requested: str
    name: str = ""
