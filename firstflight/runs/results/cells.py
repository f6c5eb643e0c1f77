"""Groups the records of a run by what was varied, for the figures of every kind."""

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
    """The items by their key; keys and items keep their order."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


@dataclass(frozen=True)
class Cells(Generic[R]):
    """Some records of a run, and ways to group and choose them.

    Names in the methods are columns, of the trial or of the record.
    """

    records: Sequence[R]

    def by(self, *names: str) -> dict[tuple[Any, ...], Cells[R]]:
        """The records with each combination of values of these columns, by that combination."""
        def values_of(record: R) -> tuple[Any, ...]:
            return tuple(value_of(record, name) for name in names)

        return {values: Cells(records)
                for values, records in grouped(self.records, values_of).items()}

    def at(self, **values: object) -> Cells[R]:
        """The records with these values; the name "" is ignored."""
        wanted = [(name, value) for name, value in values.items() if name]

        def has_all(record: R) -> bool:
            return all(value_of(record, name) == value for name, value in wanted)

        return Cells(list(filter(has_all, self.records)))

    def values(self, name: str) -> list[Any]:
        """The distinct values of a column, in order; [""] for the name ""."""
        return list(dict.fromkeys(value_of(record, name) if name else ""
                                  for record in self.records))

    @property
    def counting(self) -> Cells[R]:
        """The records that count."""
        return Cells([record for record in self.records if record.counts])

    def numbers(self, metric: str) -> list[float]:
        """The values of a metric in the records that count and have a value."""
        return [value for record in self.records
                if record.counts and (value := value_of(record, metric)) is not None]

    def mean(self, metric: str) -> float | None:
        """The mean of numbers(metric); None if there are no numbers."""
        numbers = self.numbers(metric)
        return math.fsum(numbers) / len(numbers) if numbers else None
