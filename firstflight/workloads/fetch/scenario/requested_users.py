"""What the flags request for --users. Every command loads this file, so it imports little."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from firstflight.setting.kernels import KERNEL

TRIALS = 500  # under each window, if the command line does not say
WINDOWS = (10, 16, 20, 32)
LARGEST_WINDOW = 128  # to which the list grows while its largest is the best
QUANTITY_NAMES = ("rtt_ms", "bandwidth_kbps", "response_bytes")  # that a row may know
# What the operator of a server chooses: users are measured with each of several values.
CHOSEN = (*KERNEL, "congestion_control")


@dataclass(frozen=True)
class RttField:
    """Which field of a log is the round-trip time, and its unit: µs or ms.

    number: its place, from 1 on; 0 where it has a name. name: "" where it has a number.
    """

    number: int
    unit: str = "µs"
    name: str = ""

    @property
    def to_ms(self) -> float:
        return 1e-3 if self.unit == "µs" else 1.0


@dataclass(frozen=True)
class Requested:
    """What to measure of the users.

    windows: initial windows. trials: how many users under each. given: values
    for what the file does not know, by the quantity. defaults: of the network
    and TCP, by the quantity; several of what the operator chooses (CHOSEN).
    """

    windows: tuple[int, ...] = WINDOWS
    trials: int = TRIALS
    given: Mapping[str, float] | None = None
    defaults: Mapping[str, str | float | tuple[str, ...]] | None = None
