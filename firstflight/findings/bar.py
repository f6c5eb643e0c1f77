"""A bar: what a larger window changes in one bucket, what was published of it, and the result.

Whoever makes bars, judges them, draws them or writes their table has the same ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from firstflight.base.stats import Estimate
from firstflight.findings.claims import LEAST_DRAWS, NOTHING_PUBLISHED, Result
from firstflight.findings.difference import Difference, Ends, of_experiment


@dataclass(frozen=True)
class Published:
    """What was published of a bar, in the unit of the figure's metric.

    absolute, percent: the improvement, of the baseline, converted where it was
    printed otherwise; level: of a window sweep, the value under this window.
    error, error_points: see study.scenario.published.
    """

    absolute: float | None = None
    percent: float | None = None
    level: float | None = None
    error: float = 0.0
    error_points: float = 0.0


@dataclass(frozen=True)
class Bar:
    """One bucket of a figure of improvements, or one window of a window sweep.

    difference: of the figure's metric; in a window sweep the experiment is the bar's window.
    value: what the label names. share_percent: of all responses. of_experiment: the source prints
    percentages of the experiment's value, not of the base's. exact: nothing varies between
    repeats. above: two lines of text over the bar.
    """

    label: str
    difference: Difference
    published: Published = Published()
    value: float | str = ""
    share_percent: float | None = None
    of_experiment: bool = False
    exact: bool = False
    result: Result = NOTHING_PUBLISHED
    above: tuple[str, str] = ("", "")

    def _printed(self, percent: float) -> float:
        return of_experiment(percent, self.difference.sign) if self.of_experiment else percent

    @property
    def percent(self) -> Estimate:
        """The improvement in percent, as the source counts percentages."""
        ours = self.difference.percent
        return replace(ours, value=self._printed(ours.value), interval=None if ours.interval is None
                       else (self._printed(ours.interval[0]), self._printed(ours.interval[1])))

    @property
    def published_percent(self) -> float | None:
        """The published percentage, as the source printed it."""
        percent = self.published.percent
        return None if percent is None else self._printed(percent)

    @property
    def absolute_ends(self) -> Ends | None:
        """Between which values our improvement is known to lie; None where nothing is known."""
        return self._known(self.difference.absolute)

    @property
    def percent_ends(self) -> Ends | None:
        """The same in percent, as the source counts it."""
        return self._known(self.percent)

    def _known(self, ours: Estimate) -> Ends | None:
        if self.exact:
            return ours.value, ours.value
        return ours.interval if self.difference.draws >= LEAST_DRAWS else None

    @property
    def off_percent(self) -> float | None:
        """How far our improvement is from the published one, in percent of that."""
        published = self.published.absolute
        return ((self.difference.absolute.value - published) / abs(published) * 100
                if published else None)

    @property
    def off_points(self) -> float | None:
        """How far the percentages are from each other."""
        published = self.published_percent
        return None if published is None else self.percent.value - published
