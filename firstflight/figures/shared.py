"""What all trials of a figure share, and how many of a run have each verdict, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from firstflight.base.quantity import in_words
from firstflight.findings.quantities import quantity
from firstflight.runs.results.records import Record, Value


def shared_values(trials: Iterable[object], names: Iterable[str]) -> dict[str, Value]:
    """The values that all of these trials have in common, by name."""
    trials = list(trials)
    values = {name: {getattr(trial, name) for trial in trials} for name in names}
    return {name: known.pop() for name, known in values.items() if len(known) == 1}


def named(name: str, value: object) -> str:
    """A value with the name and unit of its quantity, such as "RTT 20 ms"."""
    known = quantity(name)
    return f"{known.head} {in_words(value, known.unit)}"


def verdict_lines(records: Sequence[Record], what: str) -> tuple[str, ...]:
    """How many trials have each verdict, and each that does not count, with its reason.

    what: the trials' name, such as "pages".
    """
    counted = Counter("failed" if not record.ok else record.verdict for record in records)
    words = ", ".join(f"{count} {word}" for word, count in counted.items())
    return (f"{what}: {words}", *(
        f"  {record.trial.id}: {record.error or f'{record.verdict}: {record.verdict_reason}'}"
        for record in records if not record.counts))
