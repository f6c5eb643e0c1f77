"""The tags in a trial's id, which name the parameters of its setting that are not at their default.
"""

from __future__ import annotations

from dataclasses import fields
from functools import lru_cache
from typing import Any

from firstflight.base.words import format_lossless
from firstflight.parameters import Parameter, of_subject

# The parameters that stand first in ids. The others follow in the order of PARAMETERS.
_FIRST = ("loss_percent", "jitter_ms", "loss_burst", "qdisc")


def tags_of(trial: object, subject: str) -> str:
    """The tags of a subject's parameters that are not at their default, such as "-loss1-mss536".

    "" where all are at their default.
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
    """The rows of a subject that have a tag, in the order of ids.

    kind: a class of trials. A parameter that its trials lack is left out: the dumbbell has fewer
    than the star.
    """
    has = {field.name for field in fields(kind)}
    rows = [row for row in of_subject(subject) if row.tag is not None and row.field in has]
    first = [row for name in _FIRST for row in rows if row.name == name]
    return (*first, *(row for row in rows if row not in first))
