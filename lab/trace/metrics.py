"""What claims compare: each metric's name in a scenario, how it is read off a view, its words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lab.core.words import plain
from lab.trace.view import View
from lab.trace.window import INFINITE, limit


@dataclass(frozen=True)
class Metric:
    """One metric.

    of: (view, from when on or at which time, s) → value. past: what the
    number is, in a sentence. at_a_time: it is of one moment, which the
    sentence says.
    """

    of: Callable[[View, float], float]
    unit: str
    digits: int = 0
    past: str = ""
    at_a_time: bool = False

    def words(self, value: float) -> str:
        """The value with its unit, as a sentence has it."""
        number = limit(int(value)) if value == INFINITE else f"{value:.{self.digits}f}"
        one = number == "1" and len(self.unit) > 2
        return f"{self.past} {number} {self.unit.removesuffix('s') if one else self.unit}".strip()

    def when(self, at_s: float) -> str:
        """" at 2.5 s" where the metric is of one moment, else nothing."""
        return f" at {plain(at_s)} s" if self.at_a_time else ""


METRICS = {
    "window": Metric(View.window, "segments", past="a window of", at_a_time=True),
    "ssthresh": Metric(View.ssthresh, "segments", past="an ssthresh of", at_a_time=True),
    "burst": Metric(View.burst, "segments", past="at once", at_a_time=True),
    "finish_s": Metric(View.finish_s, "s", 3, "finished after"),
    "lasts_s": Metric(View.lasts_s, "s", 3, "took"),
    "retransmissions": Metric(View.retransmissions, "segments", past="retransmitted"),
    "lost": Metric(View.lost, "segments", past="lost"),
    "timeouts": Metric(View.timeouts, "timeouts"),
    "rtt_ms": Metric(View.rtt_ms, "ms", past="a smoothed RTT of", at_a_time=True),
    "longest_rtt_ms": Metric(View.longest_rtt_ms, "ms", past="an RTT of up to"),
    "largest_window": Metric(View.largest_window, "segments", past="a window of up to"),
}
