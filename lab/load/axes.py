"""The axes of load's figures: where a run stands on each, and how that reads."""

from __future__ import annotations

from typing import Any

from lab.core.quantities import quantity
from lab.core.words import plain
from lab.load.trial import DROPTAIL, LoadTrial

AXES = ("load", "response_bytes", "queue_bdp", "connections", "variant", "window")


def variant(trial: LoadTrial) -> str:
    """What sends and what queues: "cubic", "cubic paced by fq", "cubic through cake"."""
    queue = "" if trial.queue == DROPTAIL else f" through {trial.queue}"
    return f"{trial.congestion_control}{' paced by fq' if trial.paced else ''}{queue}"


def place(trial: LoadTrial, axis: str) -> Any:
    """Where a trial stands on one of AXES; "" for no axis."""
    if axis == "variant":
        return variant(trial)
    return getattr(trial, axis) if axis else ""


def name_of(axis: str) -> str:
    """In the head of a column, and at an axis."""
    known = quantity(axis)
    return known.label or known.head


def describe(axis: str, value: Any) -> str:
    """A place on an axis for a reader: "50 kB", "0.95", "2 BDP"."""
    if axis == "response_bytes":
        return f"{plain(value / 1000)} kB"
    if axis == "queue_bdp":
        return f"{plain(value)} BDP"
    return plain(value) if isinstance(value, (int, float)) else str(value)


def named(axis: str, value: Any) -> str:
    """A place with its axis's name, where the value alone does not say it: "buffer 2 BDP"."""
    name = "" if axis == "variant" else f"{name_of(axis)} "
    return name + describe(axis, value)
