"""BarFigure: the bars of one figure, which are judged, drawn and described."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from firstflight.base.quantity import Quantity
from firstflight.figures.making import NothingToShow
from firstflight.findings import claims
from firstflight.findings.bar import Bar
from firstflight.findings.difference import Excluded
from firstflight.findings.findings import Statement
from firstflight.workloads.fetch.record.record import quantity
from firstflight.workloads.fetch.scenario.scenario import Figure


class NoBars(NothingToShow):
    """Raised where records have no bars for a figure. The message has the reason."""


@dataclass(frozen=True)
class Sample:
    """The values of a figure under one window, whose distribution can be drawn."""

    initcwnd: int
    values: Any  # in the unit of the figure's metric
    weights: Any  # one for each value

    @property
    def name(self) -> str:
        """The window in words."""
        return f"IW {self.initcwnd}"


@dataclass(frozen=True)
class BarFigure:
    """The bars of one figure, with the client and the congestion control that measured them."""

    figure: Figure
    bars: tuple[Bar, ...]
    client: str
    congestion_control: str
    # How many fetches the whole figure has and excludes. None where a fetch is in one bar at most,
    # so that the bars' numbers can be added.
    fetch_count: int | None = None
    fetches_excluded: Excluded | None = None
    samples: tuple[Sample, ...] = field(default=(), compare=False)  # one for each window
    remarks: tuple[str, ...] = ()  # what limited the transfers, besides the windows
    # Whether bars also show their gain beyond the lossless bar (workloads.fetch.figures.recovery).
    is_of_loss: bool = False
    # How to name the window that no route sets (workloads.fetch.record.record.own_window).
    own_window: str = ""
    statements: tuple[Statement, ...] = ()  # the published claims, once the figure is judged

    @property
    def n(self) -> int:
        """How many fetches the bars have."""
        if self.fetch_count is not None:
            return self.fetch_count
        return sum(bar.difference.n for bar in self.bars)

    @property
    def excluded(self) -> Excluded:
        """How many fetches the bars exclude, by reason."""
        if self.fetches_excluded is not None:
            return self.fetches_excluded
        return sum((bar.difference.excluded for bar in self.bars), Excluded())

    @property
    def metric(self) -> Quantity:
        """The quantity that the bars show."""
        return quantity(self.figure.metric)

    @property
    def by(self) -> Quantity:
        """The quantity that distinguishes the bars."""
        return quantity(self.figure.by)

    @property
    def is_sweep(self) -> bool:
        """Whether each bar is a window."""
        return self.figure.is_of_windows

    @property
    def windows(self) -> set[int]:
        """The initial windows that the figure compares."""
        if self.is_sweep:
            return {int(bar.label) for bar in self.bars}
        return {self.figure.baseline_initcwnd, self.figure.experiment_initcwnd}

    @property
    def counts(self) -> dict[str, int]:
        """How many bars have each outcome."""
        return claims.count_outcomes(bar.result.outcome for bar in self.bars if bar.result.outcome)

    def is_baseline(self, bar: Bar) -> bool:
        """Whether a bar is the window that the others are compared with."""
        return self.is_sweep and bar.value == self.figure.baseline_initcwnd

    def name_of(self, bar: Bar) -> str:
        """A bar's label with its unit, such as "20 ms", or the word for zero, such as "not set"."""
        label = self.label_of(bar)
        return f"{label} {self.by.unit}".strip() if label == bar.label else label

    def label_of(self, bar: Bar) -> str:
        """A bar's label. Zero has a word where the quantity has one, such as "not set".

        A window that no route sets is called the kernel's default.
        """
        if self.is_sweep and self.own_window:
            return self.own_window
        return self.by.zero if bar.label == "0" else bar.label
