"""Every quantity in the words that people meet: heads, axes, --help, and what is refused."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from firstflight.base.errors import UsageError
from firstflight.base.quantity import Quantity
from firstflight.findings.quantities import QUANTITIES
from firstflight.workloads.fetch.record.record import METRICS
from firstflight.workloads.fetch.scenario import users
from firstflight.workloads.load import trial

# Beyond and at the ends of each range, and what is no number or word at all.
ALWAYS: tuple[Any, ...] = (True, "x y", float("nan"), 2 ** 70, 0.5, [], "")
WORDS: tuple[Any, ...] = ("fifo", "reno", "ms", "0.5bdp", "bdp", "50ms", "7", 7, "1e3", "17+38",
                          "0+1", "10=7,16=8", "10=0", "a" * 15, "a" * 16)


def text() -> str:
    """A paragraph for each, with what it answers to values at and beyond its ends."""
    return "\n".join("\n".join(_lines(each))
                     for each in (*QUANTITIES.values(), *METRICS.values(), *_of_their_own())) + "\n"


def _of_their_own() -> list[Quantity]:
    """Those of a module alone, and of the keys of its tables."""
    found: dict[Quantity, None] = {}
    for module in (users, trial):
        kept: dict[str, Any] = vars(module)
        keys = [option.get("reader") for table in kept.values() if is_dataclass(table)
                for each in fields(table) for option in each.metadata.values()
                if isinstance(option, dict)]
        for reader in (*kept.values(), *keys):
            if isinstance(each := getattr(reader, "__self__", reader), Quantity):
                found[each] = None
    return [each for each in found if each not in QUANTITIES.values()]


def _lines(each: Quantity) -> list[str]:
    words = type(each) is not Quantity
    ranged = words or abs(each.highest) < 1e300
    ends: tuple[Any, ...] = () if words else tuple(
        value for end in (each.lowest, each.highest) if abs(end) < 1e300
        for value in (end - abs(end) / 1e6 - (not end), end, end + abs(end) / 1e6 + (not end)))
    return [f"{each.name}: {each.what}; {each.unit}; {each.head}; {each.axis}"
            f"{f'; {each.range}' if ranged else ''}",
            *([f"  {each.flag} {each.metavar} {each.help}"]
              if each.flag else []),
            *(f"  {_answer(each, value)}" for value in (*ends, *ALWAYS, *(WORDS if words else ())))]


def _answer(each: Quantity, value: Any) -> str:
    try:
        return f"{value!r} is {each.check(value, 'here')!r}"
    except UsageError as refused:
        return str(refused)
