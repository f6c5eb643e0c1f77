"""Cells: the records of a run by what was varied. One grouping for the figures of every kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from firstflight.runs.results.records import Record, value_of

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
R = TypeVar("R", bound=Record)


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """The items by their key, both in the order in which they come."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


@dataclass(frozen=True)
class Cells(Generic[R]):
    """Some records. Names are those of columns, of the trials or of the records themselves."""

    records: Sequence[R]

    def by(self, *names: str) -> dict[tuple[Any, ...], Cells[R]]:
        """Those of each combination of values."""
        return {values: Cells(records) for values, records in grouped(
            self.records, lambda record: tuple(value_of(record, name) for name in names)).items()}

    def at(self, **values: object) -> Cells[R]:
        """Those with these values; "" is no name."""
        return Cells([record for record in self.records if all(
            value_of(record, name) == value for name, value in values.items() if name)])

    def values(self, name: str) -> list[Any]:
        """What there is of a quantity; "" alone for no name."""
        return list(dict.fromkeys(value_of(record, name) if name else ""
                                  for record in self.records))

    @property
    def counting(self) -> Cells[R]:
        return Cells([record for record in self.records if record.counts])

    def numbers(self, metric: str) -> list[float]:
        """The values of a metric of those that count and have one."""
        return [value for record in self.records
                if record.counts and (value := value_of(record, metric)) is not None]

    def mean(self, metric: str) -> float | None:
        """The mean of these; None if there is none."""
        numbers = self.numbers(metric)
        return math.fsum(numbers) / len(numbers) if numbers else None
