"""Checks, and the verdict that follows from them: a trial passes if it passes all checks.

A check compares what was requested with what was observed in the evidence of one trial. It may
have nothing to compare, or several things, such as one for each host. Each kind has a table of its
checks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from firstflight.base.comparison import Comparison
from firstflight.findings.findings import Column, Table
from firstflight.runs.results.records import FAIL, PASS, Record

SEPARATOR = "; "  # between checks, and between reasons, in a column
Evidence = TypeVar("Evidence")
RecordKind = TypeVar("RecordKind", bound=Record)
Judged = TypeVar("Judged", bound=Record, contravariant=True)


class AnyCheck(Protocol[Judged]):
    """A check, whatever its evidence, as the page shows it. Its fields are those of Check."""

    @property
    def name(self) -> str: ...

    @property
    def why(self) -> str: ...

    @property
    def applies_to(self) -> Callable[[Judged], bool]: ...

    @property
    def exact_only(self) -> bool: ...

    @property
    def seldom(self) -> bool: ...


@dataclass(frozen=True)
class Check(Generic[Evidence, RecordKind]):
    """One check of a kind's table."""

    name: str  # in verdict_reason and on the page
    why: str  # what it compares, in words
    # Yields the comparisons of the evidence; none where the check does not apply.
    compare: Callable[[Evidence], Iterable[Comparison]]
    applies_to: Callable[[RecordKind], bool]  # whether it judged a stored record
    exact_only: bool = False  # whether it judges in virtual time only
    seldom: bool = False  # whether the page shows it only where it judged something


@dataclass(frozen=True)
class Failure:
    """One deviation that a check reports."""

    check: str  # the name of the check
    text: str


def failures(checks: Sequence[Check[Evidence, RecordKind]], evidence: Evidence) -> list[Failure]:
    """A failure for each comparison that does not pass."""
    failed = []
    for check in checks:
        for compared in check.compare(evidence):
            if not compared.passed:
                text = (f"{compared.name or check.name}: observed {compared.observed}, expected"
                        f" {compared.requested}")
                failed.append(Failure(check.name, text))
    return failed


def reasons(failed: Sequence[Failure]) -> str:
    """The differences in words, as verdict_reason has them; "" for none."""
    return SEPARATOR.join(failure.text for failure in failed)


def give_verdict(record: RecordKind, failed: Sequence[Failure]) -> RecordKind:
    """The record with its verdict, the checks that failed, and the reasons."""
    names = dict.fromkeys(failure.check for failure in failed)  # each once, in order
    return replace(record, verdict=FAIL if failed else PASS, verdict_reason=reasons(failed),
                   failed_checks=SEPARATOR.join(names))


def failed_checks(record: Record) -> list[str]:
    """The names of the checks that a record failed."""
    return record.failed_checks.split(SEPARATOR) if record.failed_checks else []


def table(checks: Sequence[AnyCheck[RecordKind]], records: Sequence[RecordKind],
          exact: bool = True) -> Table:
    """Each check with how many trials passed it, failed it, and were not judged by it.

    exact: whether the trials were measured in virtual time.
    """
    checks = [check for check in checks if exact or not check.exact_only]
    # How many records each check failed, and how many it judged, by its name.
    failed: Counter[str] = Counter()
    judged: Counter[str] = Counter()
    for record in records:
        failing = {*failed_checks(record)}
        failed.update(failing)
        judged.update(failing.union(check.name for check in checks if check.applies_to(record)))

    rows: list[tuple[str | int | None, ...]] = []
    for check in checks:
        count, failed_count = judged[check.name], failed.pop(check.name, 0)
        if check.seldom and not count:
            continue
        rows.append((check.name, check.why, count - failed_count, failed_count,
                     len(records) - count))
    # Checks of records that are not in the table, such as another version's.
    rows += [(name, "", None, count, None) for name, count in sorted(failed.items())]
    return Table("Checks", (Column("check", is_text=True), Column("what", is_text=True),
                            Column("passed"), Column("failed"), Column("not judged")),
                 tuple(rows))
