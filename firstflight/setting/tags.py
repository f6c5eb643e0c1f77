"""The parts of a trial's id that tell what of its setting is not at its default."""

from __future__ import annotations

from dataclasses import fields
from functools import lru_cache
from typing import Any

from firstflight.base.words import format_lossless
from firstflight.parameters import Parameter, of_subject

# Ids have these first, in this order; the others follow in the order of PARAMETERS.
_FIRST = ("loss_percent", "jitter_ms", "loss_burst", "qdisc")


def tagged(trial: object, subject: str) -> str:
    """The part of a trial's id with a subject's parameters that are not at their default.

    Such as "-loss1-mss536"; "" where all are.
    """
    parts = []
    kind: Any = type(trial)
    for row in _tagged_rows(kind, subject):
        value = getattr(trial, row.field)
        if value != row.default:
            parts.append(f"-{row.tag}{value if isinstance(value, str) else format_lossless(value)}")
    return "".join(parts)


@lru_cache
def _tagged_rows(kind: Any, subject: str) -> tuple[Parameter, ...]:
    """The rows of a subject that have a tag, in the order of ids. kind: a class of trials.

    Those whose field its trials do not have are left out: the dumbbell lacks some of the star's.
    """
    has = {field.name for field in fields(kind)}
    rows = [row for row in of_subject(subject) if row.tag is not None and row.field in has]
    first = [row for name in _FIRST for row in rows if row.name == name]
    return (*first, *(row for row in rows if row not in first))
