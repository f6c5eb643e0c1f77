"""What flags request for --users. Every command imports this module, so it imports little."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from firstflight.setting.kernels import KERNEL

# What is measured if no flag says otherwise.
TRIALS = 500  # users under each window
WINDOWS = (10, 16, 20, 32)  # initial windows, in segments
# While the largest window is the best, a larger one is added, up to this one.
LARGEST_WINDOW = 128
QUANTITY_NAMES = ("rtt_ms", "bandwidth_kbps", "response_bytes")  # what a row of a log may have
# What the operator of a server chooses. It may have several values: users are measured with each.
CHOSEN = (*KERNEL, "congestion_control")


@dataclass(frozen=True)
class RttField:
    """Which field of a log's lines is the round-trip time: it has a number or a name."""

    number: int  # from 1 on; 0 for a field with a name
    unit: str = "µs"  # or "ms"
    name: str = ""  # "" for a field with a number

    @property
    def to_ms(self) -> float:
        """By what a value of the field is multiplied to be in ms."""
        return 1e-3 if self.unit == "µs" else 1.0


@dataclass(frozen=True)
class Requested:
    """How the users of a log are measured."""

    windows: tuple[int, ...] = WINDOWS  # initial windows, in segments
    trials: int = TRIALS  # how many users are measured under each window
    # By quantity: the value for users of whom the log does not have it.
    given: Mapping[str, float] | None = None
    # By quantity: the value of the network or TCP. CHOSEN quantities may have several values.
    defaults: Mapping[str, str | float | tuple[str, ...]] | None = None
