"""Checks: a verdict passes if all of them do. Each kind has a table of checks, run here.

A check compares what was requested with what was observed in the evidence of one trial. It may
have nothing to compare, or several things, such as one for each host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from firstflight.base.comparison import Comparison
from firstflight.findings.findings import Column, Table
from firstflight.runs.results.records import FAIL, PASS, Record

SEPARATOR = "; "  # of checks, and of reasons, in a column
Evidence = TypeVar("Evidence")
RecordKind = TypeVar("RecordKind", bound=Record)
Judged = TypeVar("Judged", bound=Record, contravariant=True)


class AnyCheck(Protocol[Judged]):
    """What the page shows of a check, whatever its evidence."""

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
    """One check of a kind's table.

    name: in verdict_reason and on the page. why: what it compares, in words. compare: takes the
    evidence and yields comparisons, none where the check does not apply. applies_to: whether it
    judged a stored record. exact_only: it judges in virtual time only. seldom: the page shows it
    only where it judged something.
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
    """A failure for each comparison that does not pass."""
    return [Failure(check.name, f"{compared.name or check.name}: observed {compared.observed},"
                                f" expected {compared.requested}")
            for check in checks for compared in check.compare(evidence) if not compared.passed]


def reasons(failed: Sequence[Failure]) -> str:
    """The differences in words, as verdict_reason has them; "" for none."""
    return SEPARATOR.join(failure.text for failure in failed)


def give_verdict(record: RecordKind, failed: Sequence[Failure]) -> RecordKind:
    """The record with its verdict, the checks that failed, and the reasons."""
    return replace(record, verdict=FAIL if failed else PASS, verdict_reason=reasons(failed),
                   failed_checks=SEPARATOR.join(dict.fromkeys(failure.check for failure in failed)))


def failed_checks(record: Record) -> list[str]:
    """The names of the checks that a record failed."""
    return record.failed_checks.split(SEPARATOR) if record.failed_checks else []


def table(checks: Sequence[AnyCheck[RecordKind]], records: Sequence[RecordKind],
          exact: bool = True) -> Table:
    """Each check with how many trials passed it, failed it, and were not judged by it.

    exact: whether the trials were measured in virtual time.
    """
    checks = [check for check in checks if exact or not check.exact_only]
    failed: dict[str, int] = {}
    judged = dict.fromkeys((check.name for check in checks), 0)
    for record in records:
        names = failed_checks(record)
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
