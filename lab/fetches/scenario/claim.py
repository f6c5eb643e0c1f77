"""What a source says of a figure in words: a [[claim]] of a scenario's file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lab.core.errors import UsageError
from lab.core.scenario import schema
from lab.core.scenario.quantities import METRICS
from lab.core.scenario.schema import key


def _two(reader: schema.Reader, what: str) -> Callable[[Any, str], tuple[str, ...]]:
    def read_two(value: Any, where: str) -> tuple[str, ...]:
        if not isinstance(value, list) or len(value) != 2:
            raise UsageError(f"{where} has to be {what}")
        return tuple(reader(each, where) for each in value)
    return read_two


def _label(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{where} has to be the labels of two bars")
    return value


_COLUMN = schema.word((*METRICS, "initcwnd"))
_TWO_BARS = _two(_label, "the labels of two bars")
OF_BARS, OF_TRIALS = ("larger", "equal", "highest_percent"), ("at_most", "more_where")


@dataclass(frozen=True)
class Claim:
    """What a source says of a figure in words, as a test on its bars or its trials.

    larger: the first bar's percentage is larger than the second's; equal:
    the two are equal in ms; highest_percent: of all bars.
    at_most: a column, which no trial's metric passes. more_where: two columns; the metric is
    more than its least in the trials whose first is the larger, and in no other.
    """

    figure: str
    says: str
    larger: tuple[str, ...] = key((), reader=_TWO_BARS)
    equal: tuple[str, ...] = key((), reader=_TWO_BARS)
    highest_percent: float | None = key(None, quantity="shares_percent")
    at_most: str = key("", reader=_COLUMN)
    more_where: tuple[str, ...] = key((), reader=_two(_COLUMN, "two columns"))

    def check(self, where: str) -> None:
        """Raises UsageError unless it says one thing."""
        if len(self._said) != 1:
            *all_but_last, last = (*OF_BARS, *OF_TRIALS)
            raise UsageError(f"{where}: has to have one of {', '.join(all_but_last)} and {last}")

    @property
    def is_of_trials(self) -> bool:
        """Whether it is tested on trials, of figures of steps and levels, not on bars."""
        return self._said[0] in OF_TRIALS

    @property
    def _said(self) -> list[str]:
        return [name for name in (*OF_BARS, *OF_TRIALS)
                if getattr(self, name) not in (None, "", ())]
