"""Checks: what a verdict rests on. Each kind has one table of them; this has the loop.

A check compares what was requested with what was observed in the evidence of one
trial. It may have nothing to compare, or several things (one for each host).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from firstflight.base.comparison import Comparison
from firstflight.findings.findings import Column, Table
from firstflight.runs.results.records import FAIL, PASS, Record

BETWEEN = "; "  # checks, and their reasons, in a column
Evidence = TypeVar("Evidence")
RecordKind = TypeVar("RecordKind", bound=Record)


@dataclass(frozen=True)
class Check(Generic[Evidence, RecordKind]):
    """One line of a kind's table.

    name: in verdict_reason and on the page. why: what it compares, for a
    reader. compare: (evidence) → comparisons, none where it does not apply.
    applies_to: whether a stored record was one for it to judge. exact_only: it
    judges in virtual time only. seldom: it is reported where it judged something.
    """

    name: str
    why: str
    compare: Callable[[Evidence], Iterable[Comparison]]
    applies_to: Callable[[RecordKind], bool]
    exact_only: bool = False
    seldom: bool = False


@dataclass(frozen=True)
class Failure:
    """One deviation that a check reports; check: its name."""

    check: str
    text: str


def failures(checks: Sequence[Check[Evidence, RecordKind]], evidence: Evidence) -> list[Failure]:
    """A failure for each comparison that fails; [] where all that applies pass."""
    return [Failure(check.name, f"{compared.name or check.name}: observed {compared.observed},"
                                f" expected {compared.requested}")
            for check in checks for compared in check.compare(evidence) if not compared.passed]


def reasons(failed: Sequence[Failure]) -> str:
    """What differed, in words; "" for nothing."""
    return BETWEEN.join(failure.text for failure in failed)


def give_verdict(record: RecordKind, failed: Sequence[Failure]) -> RecordKind:
    """The record with its verdict: what failed, and why."""
    return replace(record, verdict=FAIL if failed else PASS, verdict_reason=reasons(failed),
                   failed_checks=BETWEEN.join(dict.fromkeys(failure.check for failure in failed)))


def failed_checks(checks: Sequence[Check[Evidence, RecordKind]], record: RecordKind) -> list[str]:
    """The names of the checks that a stored record failed.

    Rows of versions before there was a column have them in their verdict_reason alone.
    """
    if record.failed_checks:
        return record.failed_checks.split(BETWEEN)
    if not record.verdict_reason:  # most records, each of which is asked once for each check
        return []
    parts = record.verdict_reason.split(BETWEEN)
    names = sorted((check.name for check in checks), key=len, reverse=True)  # "model latency" first
    return [next((name for name in names if part.startswith(name)), part.partition(":")[0])
            for part in parts if ":" in part]


def table(checks: Sequence[Check[Evidence, RecordKind]], records: Sequence[RecordKind],
          exact: bool = True) -> Table:
    """Each check with how many trials passed, failed, and were not for it to judge.

    exact: whether they were measured in virtual time.
    """
    checks = [check for check in checks if exact or not check.exact_only]
    failed: dict[str, int] = {}
    judged = dict.fromkeys((check.name for check in checks), 0)
    for record in records:
        names = failed_checks(checks, record)
        for name in set(names):
            failed[name] = failed.get(name, 0) + 1
        for check in checks:
            judged[check.name] += check.applies_to(record) or check.name in names
    rows: list[tuple[str | int | None, ...]] = []
    for check in checks:
        wrong = failed.pop(check.name, 0)
        if check.seldom and not judged[check.name]:
            continue
        rows.append((check.name, check.why, judged[check.name] - wrong, wrong,
                     len(records) - judged[check.name]))
    rows += [(name, "", None, count, None) for name, count in sorted(failed.items())]
    return Table("Checks", (Column("check", is_text=True), Column("what", is_text=True),
                            Column("passed"), Column("failed"), Column("not judged")),
                 tuple(rows))
