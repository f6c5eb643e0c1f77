"""What the core of fetches can do without: a folder each, and its name here.

lab.fetches.scenario.feature.Feature lists what one brings. Their order is that of their findings.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

FEATURES = (
    "losses",
    "questions",
    "grids",
    "timelines",
    "steps",
    "limiting_factors",
    "tls",
    "servers",
    "users",
    "population",
    "raw",
    "replication",
    "cliff",
    "explain",
)


@cache
def registered() -> tuple[Any, ...]:
    """A Feature of each."""
    return tuple(module(name, "feature").FEATURE for name in FEATURES)


def module(feature: str, name: str) -> Any:
    """A module of a feature. Raises LookupError where the feature is not there."""
    if feature not in FEATURES:
        raise LookupError(f"this copy of First Flight has no feature {feature!r}")
    return import_module(f"{__name__}.{feature}.{name}")
