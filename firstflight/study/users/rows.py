"""Rows about users: one connection or response each, as far as a file knows it.

Addresses are read by nothing here: what a row does not hold cannot be stored.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy
from numpy.typing import NDArray

from firstflight.base.errors import UsageError
from firstflight.base.words import format_number
from firstflight.findings.quantities import QUANTITIES
from firstflight.study.users.requested import QUANTITY_NAMES

Numbers = NDArray[numpy.float64]
T = TypeVar("T")

MOST_SKIPPED = 0.1  # of all rows: a file with more of them is not what it was taken for
MOST_CHARACTERS = 60  # of a group's name
MOST_GROUPS = 1000  # each has its tables on the page
MOST_WEIGHT = 1e12  # sums of more lose what is smaller, or overflow
EVERYBODY = ""  # the group of rows that name none
EMPTY_RESPONSE = "without a body"  # a redirection or a cached page: nothing is wrong with the row


class Row(NamedTuple):
    """One connection or response; None for what the file does not know."""

    rtt_ms: float | None
    bandwidth_kbps: float | None
    response_bytes: float | None
    group: str = EVERYBODY
    weight: float = 1.0


class Skipped(Exception):
    """A row that cannot be used; its words say why, and are counted."""


@dataclass(frozen=True)
class UserTable:
    """All usable rows of a file.

    format: how the file was read. rtt_ms, bandwidth_kbps, response_bytes,
    weight: shape (n,), NaN where not known. group: the place of each row's
    group in groups, shape (n,). skipped: rows left out, by the reason.
    estimated: what was not measured but estimated, in words, by the quantity. rtt_from: which
    field the RTT is, and its unit.
    """

    format: str
    rtt_ms: Numbers
    bandwidth_kbps: Numbers
    response_bytes: Numbers
    weight: Numbers
    group: NDArray[numpy.intp]
    groups: tuple[str, ...]
    skipped: dict[str, int] = field(default_factory=dict)
    estimated: dict[str, str] = field(default_factory=dict)
    rtt_from: str = ""

    @property
    def count(self) -> int:
        return len(self.weight)

    def missing(self) -> list[str]:
        """The quantities that some row lacks."""
        return [name for name in QUANTITY_NAMES if bool(numpy.isnan(getattr(self, name)).any())]


def collect(items: Iterable[T], parse: Callable[[T], Row | None], form: str, where: str,
            estimated: dict[str, str] | None = None, rtt_from: str = "") -> UserTable:
    """The usable rows of a file.

    parse: of an item its row, None where it has none; raises Skipped. Raises UsageError where
    nothing is left, or more than MOST_SKIPPED is left out.
    """
    columns: list[list[float]] = [[], [], [], []]
    groups: dict[str, int] = {}
    group: list[int] = []
    skipped: Counter[str] = Counter()
    for item in items:
        try:
            row = parse(item)
            if row is None:
                continue
            _check(row)
        except Skipped as why:
            skipped[str(why)] += 1
            continue
        for column, value in zip(columns, (*row[:3], row.weight)):
            column.append(math.nan if value is None else value)
        group.append(groups.setdefault(row.group, len(groups)))
        if len(groups) > MOST_GROUPS:
            raise UsageError(f"{where}: has more than {MOST_GROUPS} groups; leave the column out,"
                             " or give fewer")
    lost, kept = skipped.total() - skipped[EMPTY_RESPONSE], len(group)
    reasons = "; ".join(f"{count} {why}" for why, count in skipped.most_common(3))
    if not kept:
        raise UsageError(f"{where}: has no usable row" + (f": {reasons}" if reasons else ""))
    if lost > MOST_SKIPPED * (lost + kept):
        raise UsageError(f"{where}: {lost} of {lost + kept} rows cannot be used, more than a"
                         f" tenth: {reasons}")
    rtt_ms, bandwidth_kbps, response_bytes, weight = map(numpy.array, columns)
    return UserTable(form, rtt_ms, bandwidth_kbps, response_bytes, weight, numpy.array(group),
                 tuple(groups), dict(skipped), estimated or {}, rtt_from)


def _check(row: Row) -> None:
    """Raises Skipped where no network or response is like this."""
    for name, value in zip(QUANTITY_NAMES, row[:3]):
        limits = QUANTITIES[name]
        if value is not None and not limits.lowest <= value <= limits.highest:
            raise Skipped(f"with {limits.what} out of range")
    if row.weight > MOST_WEIGHT:
        raise Skipped(f"with a weight above {MOST_WEIGHT:g}")
    if not row.weight > 0:
        raise Skipped("with a weight that is not above 0")


def value_of(text: str, what: str) -> float | None:
    """A number of a file; None where it is empty or a dash. Raises Skipped."""
    text = text.strip()
    if text in ("", "-"):
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise Skipped(f"with {what} that is not a number")
    return value


def group_of(text: str | None) -> str:
    """The name of a group, as it may stand in a table. Raises Skipped."""
    name = (text or EVERYBODY).strip()
    if len(name) > MOST_CHARACTERS or not name.isprintable():
        raise Skipped("with a group's name that is too long or not printable")
    return name


def summary(users: UserTable) -> str:
    """How many rows were read, what the RTT is, and how many were left out, in one sentence."""
    low, median, high = (format_number(float(value)) for value in
                         numpy.nanpercentile(users.rtt_ms, (0, 50, 100)))
    left = "; ".join(f"{count} {why}" for why, count in users.skipped.items())
    return (f"{users.count} rows read as {users.format}"
            + (f", {sum(users.skipped.values())} excluded ({left})" if left else "")
            + f"; the RTT is {users.rtt_from or 'rtt_ms'}: median {median} ms, {low} to {high}")
