"""Rows of a file on users: one connection or response each, with its quantities.

No address is read here, so none can be stored.
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
from firstflight.workloads.fetch.scenario.requested_users import QUANTITY_NAMES

Numbers = NDArray[numpy.float64]
T = TypeVar("T")

MOST_SKIPPED = 0.1  # of all rows: a file with more skipped rows has another format
MOST_CHARACTERS = 60  # in a group's name
MOST_GROUPS = 1000  # each has tables on the page
MOST_WEIGHT = 1e12  # larger weights would lose small ones in sums, or overflow
EVERYBODY = ""  # the group of rows without one
EMPTY_RESPONSE = "without a body"  # a redirect or a cached page; nothing is wrong with the row
QUIC = "over QUIC, which has no round trip of TCP"
ANOTHER_EVENT = "of another event of the connection"
LATER_REQUEST = "on connections that were in use"
BOT = "of bots, by their user agent"
EMPTY_LINE = "empty lines"
# Files of the right format have such rows, too: any number of them may be skipped.
_EXPECTED = (EMPTY_RESPONSE, QUIC, ANOTHER_EVENT, LATER_REQUEST, BOT, EMPTY_LINE)


class Row(NamedTuple):
    """One connection or response; None for a quantity that the file does not have.

    is_first: whether the file says that it is the first one of its connection. connection: what
    distinguishes its connection from others, "" where the file does not say.
    """

    rtt_ms: float | None
    bandwidth_kbps: float | None
    response_bytes: float | None
    group: str = EVERYBODY
    weight: float = 1.0
    is_first: bool = False
    connection: str = ""


class Skipped(Exception):
    """A row that cannot be used; the message is the reason, by which such rows are counted.

    connection: as in Row. The next row of this connection is not its first one.
    """

    connection = ""


@dataclass(frozen=True)
class UserTable:
    """All usable rows of a file.

    format: how the file was read. rtt_ms, bandwidth_kbps, response_bytes, weight: shape (n,), NaN
    where not known. group: the index of each row's group in groups, shape (n,). skipped: how many
    rows were skipped, by reason. estimated: for quantities that are estimates, how they were
    estimated, in words. rtt_from: the field of the RTT, and its unit. are_first_requests: whether
    the file says of each row that it is the first one of its connection.
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
    are_first_requests: bool = False

    @property
    def count(self) -> int:
        return len(self.weight)

    def missing(self) -> list[str]:
        """The quantities that some row lacks."""
        return [name for name in QUANTITY_NAMES if bool(numpy.isnan(getattr(self, name)).any())]


def collect(items: Iterable[T], parse: Callable[[T], Row | None], form: str, where: str,
            estimated: dict[str, str] | None = None, rtt_from: str = "",
            first_requests: bool = False) -> UserTable:
    """The usable rows of a file.

    parse: returns the row of an item, None where it has none; raises Skipped. first_requests: only
    the first row of each connection is usable. Raises UsageError where no row is usable, or more
    than MOST_SKIPPED are skipped.
    """
    columns: list[list[float]] = [[], [], [], []]
    groups: dict[str, int] = {}
    group: list[int] = []
    skipped: Counter[str] = Counter()
    are_first_requests = True
    connections: set[str] = set()

    for item in items:
        try:
            if isinstance(item, str) and not item.strip():
                raise Skipped(EMPTY_LINE)
            row = parse(item)
            if row is None:
                continue
            if first_requests:
                row = _first_of(connections, row)
            _check(row)
        except Skipped as why:
            skipped[str(why)] += 1
            connections.add(why.connection)
            continue

        for column, value in zip(columns, (*row[:3], row.weight)):
            column.append(math.nan if value is None else value)
        are_first_requests = are_first_requests and row.is_first
        group.append(groups.setdefault(row.group, len(groups)))
        if len(groups) > MOST_GROUPS:
            raise UsageError(f"{where}: has more than {MOST_GROUPS} groups; leave the column out,"
                             " or give fewer")

    unusable = skipped.total() - sum(skipped[why] for why in _EXPECTED)
    usable = len(group)
    reasons = "; ".join(f"{count} {why}" for why, count in skipped.most_common(3))
    if first_requests and not connections - {""}:
        raise UsageError(f"{where}: --first-requests: no field of it distinguishes connections: add"
                         " connection=$connection to nginx's log_format, client_ip=%ci"
                         " client_port=%cp to HAProxy's, connection_id=%CONNECTION_ID% to Envoy's")
    if not usable:
        raise UsageError(f"{where}: has no usable row" + (f": {reasons}" if reasons else ""))
    if unusable > MOST_SKIPPED * (unusable + usable):
        raise UsageError(f"{where}: {unusable} of {unusable + usable} rows cannot be used, more"
                         f" than a tenth: {reasons}")

    rtt_ms, bandwidth_kbps, response_bytes, weight = map(numpy.array, columns)
    return UserTable(
        form, rtt_ms, bandwidth_kbps, response_bytes=response_bytes, weight=weight,
        group=numpy.array(group), groups=tuple(groups), skipped=dict(skipped),
        estimated=estimated or {}, rtt_from=rtt_from, are_first_requests=are_first_requests)


def _first_of(connections: set[str], row: Row) -> Row:
    """The row as the first one of its connection, which is added. Raises Skipped for later ones."""
    if not row.connection:
        raise Skipped("that name no connection")
    if row.connection in connections:
        raise Skipped(LATER_REQUEST)
    connections.add(row.connection)
    return row._replace(is_first=True)


def _check(row: Row) -> None:
    """Check that a network or response can have these values. Raises Skipped."""
    for name, value in zip(QUANTITY_NAMES, row[:3]):
        limits = QUANTITIES[name]
        if value is not None and not limits.lowest <= value <= limits.highest:
            raise Skipped(f"with {limits.what} out of range")
    if row.weight > MOST_WEIGHT:
        raise Skipped(f"with a weight above {MOST_WEIGHT:g}")
    if not row.weight > 0:
        raise Skipped("with a weight that is not above 0")


def value_of(text: str, what: str) -> float | None:
    """A number in a file; None where it is empty or a dash. Raises Skipped."""
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
    """The name of a group, which has to fit in a table. Raises Skipped."""
    name = (text or EVERYBODY).strip()
    if len(name) > MOST_CHARACTERS or not name.isprintable():
        raise Skipped("with a group's name that is too long or not printable")
    return name


def summary(users: UserTable) -> str:
    """A sentence on how many rows were read and excluded, and on the RTT."""
    low, median, high = (format_number(float(value)) for value in
                         numpy.nanpercentile(users.rtt_ms, (0, 50, 100)))
    left = "; ".join(f"{count} {why}" for why, count in users.skipped.items())
    return (f"{users.count} rows read as {users.format}"
            + (f", {sum(users.skipped.values())} excluded ({left})" if left else "")
            + f"; the RTT is {users.rtt_from or 'rtt_ms'}: median {median} ms, {low} to {high}")
