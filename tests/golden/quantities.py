"""Every quantity in the words that users meet: heads, axes, --help, and refusals of values."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from firstflight.base.errors import UsageError
from firstflight.base.quantity import Quantity
from firstflight.findings.quantities import QUANTITIES
from firstflight.workloads.fetch.record.record import METRICS
from firstflight.workloads.fetch.scenario import users
from firstflight.workloads.load import trial

# Values that each quantity is tried with, and those for quantities that take words as well.
ALWAYS: tuple[Any, ...] = (True, "x y", float("nan"), 2 ** 70, 0.5, [], "")
WORDS: tuple[Any, ...] = ("fifo", "reno", "ms", "0.5bdp", "bdp", "50ms", "7", 7, "1e3", "17+38",
                          "0+1", "10=7,16=8", "10=0", "a" * 15, "a" * 16)


def text() -> str:
    """A paragraph for each quantity: its words, and its answers to values that are tried."""
    quantities = (*QUANTITIES.values(), *METRICS.values(), *_quantities_of_modules())
    return "\n".join("\n".join(_lines(quantity)) for quantity in quantities) + "\n"


def _quantities_of_modules() -> list[Quantity]:
    """Quantities that are in no table of all: a module's, and those that read keys of its tables.
    """
    found: dict[Quantity, None] = {}
    for module in (users, trial):
        members: dict[str, Any] = vars(module)
        options = [option for table in members.values() if is_dataclass(table)
                   for field in fields(table) for option in field.metadata.values()
                   if isinstance(option, dict)]
        for reader in (*members.values(), *(option.get("reader") for option in options)):
            quantity = getattr(reader, "__self__", reader)  # the reader may be its method
            if isinstance(quantity, Quantity):
                found[quantity] = None
    return [quantity for quantity in found if quantity not in QUANTITIES.values()]


def _lines(quantity: Quantity) -> list[str]:
    takes_words = type(quantity) is not Quantity
    has_range = takes_words or abs(quantity.highest) < 1e300

    tried = [*ALWAYS]
    if takes_words:
        tried += WORDS
    else:
        tried[:0] = [value for end in (quantity.lowest, quantity.highest) if abs(end) < 1e300
                     for value in _values_near(end)]

    lines = [f"{quantity.name}: {quantity.what}; {quantity.unit}; {quantity.head};"
             f" {quantity.axis}{f'; {quantity.range}' if has_range else ''}"]
    if quantity.flag:
        lines.append(f"  {quantity.flag} {quantity.metavar} {quantity.help}")
    return lines + [f"  {_answer(quantity, value)}" for value in tried]


def _values_near(end: float) -> tuple[float, float, float]:
    """The end of a range, and a value below and above it: by a millionth, or by 1 if it is 0."""
    step = abs(end) / 1e6 if end else 1.0
    return end - step, end, end + step


def _answer(quantity: Quantity, value: Any) -> str:
    """What a value is read as, or why it is refused."""
    try:
        return f"{value!r} is {quantity.check(value, 'here')!r}"
    except UsageError as refused:
        return str(refused)
