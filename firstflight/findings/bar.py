"""A bar: what a larger window changes in one bucket, the published value, and the result.

The same bars are built, judged, drawn and written as tables.
"""

from __future__ import annotations

from dataclasses import dataclass

from firstflight.base.stats import Estimate
from firstflight.findings.claims import NOTHING_PUBLISHED, Published, Result
from firstflight.findings.difference import Difference


@dataclass(frozen=True)
class Bar:
    """One bucket of a figure of improvements, or one window of a window sweep."""

    label: str
    # Of the figure's metric. In a window sweep the experiment is the bar's window.
    difference: Difference
    published: Published = Published()
    value: float | str = ""  # the bucket's or the window's, which the label writes
    share_percent: float | None = None  # the share that the bucket has of all responses
    # Whether the source prints percentages of the experiment's value, instead of the base's.
    of_experiment: bool = False
    result: Result = NOTHING_PUBLISHED
    above: tuple[str, str] = ("", "")  # two lines of text above the bar

    @property
    def percent(self) -> Estimate:
        """The improvement in percent, as the source counts percentages."""
        return self.difference.printed(self.of_experiment)

    @property
    def published_percent(self) -> float | None:
        """The published percentage, as the source printed it; None where it printed none."""
        percent = self.published.percent
        return None if percent is None else self.difference.as_printed(percent, self.of_experiment)

    @property
    def deviation_percent(self) -> float | None:
        """How far our improvement is from the published one, in percent of the published one.

        None where no improvement was published, or one of zero.
        """
        published = self.published.absolute
        return ((self.difference.absolute.value - published) / abs(published) * 100
                if published else None)

    @property
    def deviation_points(self) -> float | None:
        """Our percentage less the published one, in percentage points.

        None where no percentage was published.
        """
        published = self.published_percent
        return None if published is None else self.percent.value - published
