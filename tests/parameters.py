"""Another value of any parameter, so that tests try a new parameter without a line in each."""

from __future__ import annotations

from typing import Any

from firstflight.base.quantity import KernelName, ModuleParameters, Sizes, Windows, Word
from firstflight.net.sysctls import Sysctls
from firstflight.parameters import Parameter


def another(row: Parameter, value: Any) -> Any:
    """A value in the range of a parameter that differs from the given value."""
    quantity = row.quantity
    if isinstance(quantity, KernelName):
        return "mine"
    if isinstance(quantity, ModuleParameters):
        return "tcp_cubic.hystart=0"
    if isinstance(quantity, Sysctls):
        return "net.ipv4.tcp_sack=0"
    if isinstance(quantity, Sizes):
        return "17+38+2"
    if isinstance(quantity, Windows):
        return "10=7"
    if isinstance(quantity, Word):
        return next(word for word in quantity.known if word != value)
    return quantity.check(value + 1 if value + 1 <= quantity.highest else quantity.lowest, "here")
