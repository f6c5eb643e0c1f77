"""Numbers as a report page writes them: true minus signs, as many digits as matter."""

from __future__ import annotations

import re
from collections.abc import Iterable

from lab import table

MINUS = "−"


def number(value: float | None, digits: int = 1, signed: bool = False) -> str:
    return table.number(value, digits, signed).replace("-", MINUS)


def short(value: float | None) -> str:
    """One decimal where it matters."""
    return number(value, 1 if value is None or abs(value) < 99.95 else 0)


def count(value: float | None) -> str:
    return number(value, 0 if value is None or value == int(value) else 1)


def span(values: Iterable[float | None], unit: str) -> str:
    """From the least to the most of the values that are known."""
    known = [value for value in values if value is not None]
    low, high = short(min(known)), short(max(known))
    return f"{low} {unit}" if low == high else f"{low} to {high} {unit}"


def true_minus(text: str) -> str:
    """The text with true minus signs."""
    return text.replace("-", MINUS)


def tight(text: str) -> str:
    """The text with numbers held to their units, so that no line breaks between them."""
    return re.sub(r"(?<=\d) (?=(?:ms|s|%|kbit/s|bytes|segments|min|h)(?![\w/]))", "\u00a0", text)


def duration(seconds: float) -> str:
    if seconds < 120:
        return f"{short(seconds)} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
