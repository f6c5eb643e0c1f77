"""A figure of bars: what makes its rows fills it in, and what draws and describes it reads it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from firstflight.base.errors import FirstFlightError
from firstflight.base.quantity import Quantity
from firstflight.findings import claims
from firstflight.findings.bar import Bar
from firstflight.findings.difference import Excluded
from firstflight.findings.findings import Statement
from firstflight.findings.quantities import quantity
from firstflight.study.fetches.scenario.scenario import Figure


class NoPanel(FirstFlightError):
    """The records do not give the bars of a figure; the message has the reason."""


@dataclass(frozen=True)
class Sample:
    """The values behind one window of a figure, for a drawing of their distribution.

    values, weights: of one length; the values in the unit of the figure's metric.
    """

    initcwnd: int
    values: Any
    weights: Any

    @property
    def name(self) -> str:
        return f"IW {self.initcwnd}"


@dataclass(frozen=True)
class BarFigure:
    """The bars of one figure, and which client and algorithm measured them.

    counted, left_out: fetches in all, where one can enter several bars;
    None where it enters one at most. samples: the values behind it, by window.
    remarks: what else than the windows decided on what is behind it. is_of_loss: whether its
    bars are shown beyond the lossless one (study.fetches.figures.recovery). statements: what was
    published of it in words, once it is judged.
    """

    figure: Figure
    bars: tuple[Bar, ...]
    client: str
    congestion_control: str
    counted: int | None = None
    left_out: Excluded | None = None
    samples: tuple[Sample, ...] = field(default=(), compare=False)
    remarks: tuple[str, ...] = ()
    is_of_loss: bool = False
    statements: tuple[Statement, ...] = ()

    @property
    def n(self) -> int:
        if self.counted is not None:
            return self.counted
        return sum(bar.difference.n for bar in self.bars)

    @property
    def excluded(self) -> Excluded:
        if self.left_out is not None:
            return self.left_out
        return sum((bar.difference.excluded for bar in self.bars), Excluded())

    @property
    def metric(self) -> Quantity:
        return quantity(self.figure.metric)

    @property
    def by(self) -> Quantity:
        """What distinguishes the bars."""
        return quantity(self.figure.by)

    @property
    def is_sweep(self) -> bool:
        """Whether each bar is a window."""
        return self.figure.is_of_windows

    @property
    def windows(self) -> set[int]:
        """The initial windows that it compares."""
        return ({int(bar.label) for bar in self.bars} if self.is_sweep else
                {self.figure.baseline_initcwnd, self.figure.experiment_initcwnd})

    @property
    def counts(self) -> dict[str, int]:
        """How many bars have which result."""
        return claims.counts(bar.result.word for bar in self.bars if bar.result.word)

    def is_baseline(self, bar: Bar) -> bool:
        """Whether a bar is the window that the others are compared with."""
        return self.is_sweep and bar.value == self.figure.baseline_initcwnd

    def named(self, bar: Bar) -> str:
        """A bar by its label and unit, such as "20 ms", or by the word that its zero has."""
        label = self.label_of(bar)
        return f"{label} {self.by.unit}".strip() if label == bar.label else label

    def label_of(self, bar: Bar) -> str:
        """The label of a bar; the word for a zero that has one, such as "not set"."""
        return self.by.zero if bar.label == "0" else bar.label
