"""The verdicts of traces for the terminal: what does not count, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lab.records import PASS
from lab.trace.records import TraceRecord


def of_records(records: Sequence[TraceRecord]) -> str:
    """How many traces have which verdict, and a line for each that did not pass."""
    counted = Counter("failed" if not record.ok else record.verdict for record in records)
    lines = ["traces: " + ", ".join(f"{count} {word}" for word, count in counted.items())]
    lines += [f"  {record.trial.id}: {record.error or f'{record.verdict}: {record.verdict_reason}'}"
              for record in records if not record.ok or record.verdict != PASS]
    checked = sum(record.rule_checked or 0 for record in records)
    wrong = sum(record.rule_wrong or 0 for record in records)
    lines.append(f"window samples that are what the TCP's rules say, to the segment:"
                 f" {checked - wrong} of {checked}")
    restarts = sum(record.restarts or 0 for record in records if record.verdict == PASS)
    lines.append(f"restarts after more than an RTO, window and flight as the rule says: {restarts}")
    return "\n".join(lines) + "\n"
