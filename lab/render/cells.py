"""How a value becomes text: the same on the terminal, in Markdown and on a page."""

from __future__ import annotations

from collections.abc import Iterable

from lab.core.findings import claims
from lab.core.findings.findings import (Cell, Column, Finding, Interval, Rounded, Table, bars,
                                        listed, words)
from lab.core.stats import Estimate
from lab.core.words import MINUS, UNKNOWN, between, clean, number


def written(cell: Cell, column: Column) -> str:
    """A cell as its column, or its Rounded, has numbers written.

    An Estimate is "1205 ± 3", half of its interval, and an Interval
    "1202 … 1208". Whole numbers have no decimals whatever the column says.
    """
    if isinstance(cell, Rounded):
        return _value(cell.value, cell.digits, cell.signed)
    return _value(cell, column.digits, column.signed)


def _value(value: str | int | float | Estimate | Interval | None, digits: int,
           signed: bool) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, bool):
        return str(value).lower()  # as in trials.csv
    if isinstance(value, int):
        return f"{value:{'+' if signed else ''}d}".replace("-", MINUS)
    if isinstance(value, Interval):
        return between((value.low, value.high), digits)
    if isinstance(value, Estimate):
        text = number(value.value, digits, signed)
        if value.interval is None:
            return text
        low, high = value.interval
        return f"{text} ± {number((high - low) / 2, digits)}"
    return number(value, digits, signed)


def head(column: Column) -> str:
    """Such as "published: saved, ms"."""
    name = ", ".join(part for part in (column.name, column.unit) if part)
    return ": ".join(part for part in (column.group, name) if part)


def shortened(table: Table) -> str:
    """That a table shows its first rows only; "" where it shows all."""
    shown = len(table.rows)
    return f"The first {shown} of {shown + table.left_out} rows" if table.left_out else ""


def counted(findings: Iterable[Finding]) -> list[str]:
    """How many published bars and how many statements have which result; held out ones apart."""
    found = list(findings)
    counted = (("bars", claims.summary(bars(found))),
               ("bars held out", claims.summary(bars(found, held_out=True))),
               ("statements", listed(words(found))))
    return [f"{what}: {how_many}" for what, how_many in counted if how_many]
