"""Words that reports of several workloads need: shared values, a value with its name, verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from firstflight.base.quantity import in_words
from firstflight.findings.quantities import quantity
from firstflight.runs.results.records import Record, Value


def shared_values(trials: Iterable[object], names: Iterable[str]) -> dict[str, Value]:
    """The values that all of these trials have in common, by name."""
    trials = list(trials)
    shared = {}
    for name in names:
        values = {getattr(trial, name) for trial in trials}
        if len(values) == 1:
            shared[name] = values.pop()
    return shared


def format_named(name: str, value: object) -> str:
    """A value with the name and unit of its quantity, such as "RTT 20 ms"."""
    known = quantity(name)
    return f"{known.head} {in_words(value, known.unit)}"


def verdict_lines(records: Sequence[Record], what: str) -> tuple[str, ...]:
    """A line that counts the verdicts, then a line for each trial that does not count and why.

    what: the plural name of the trials, such as "pages".
    """
    counted = Counter(record.verdict if record.ok else "failed" for record in records)
    words = ", ".join(f"{count} {word}" for word, count in counted.items())
    lines = [f"{what}: {words}"]
    for record in records:
        if not record.counts:
            reason = record.error or f"{record.verdict}: {record.verdict_reason}"
            lines.append(f"  {record.trial.id}: {reason}")
    return tuple(lines)
