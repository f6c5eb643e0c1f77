"""Charts of one number reached in steps, and of the same bars from several sides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from lab.core.findings.charts import Chart


@dataclass(frozen=True)
class Step:
    """One step; value: of the number behind it.

    sure: how it is known, which the look of its bar tells; "start" is no step,
    but where they begin.
    """

    label: str
    value: float
    sure: Literal["start", "code", "kernel", "calibrated", "inferred"]


@dataclass(frozen=True)
class StepChart(Chart):
    """A waterfall: a row for each step, its bar from the number before it to the number behind it.

    most: what the number can be at most, None for no such thing. axis: of the number.
    """

    family: ClassVar[str] = "steps"

    steps: tuple[Step, ...] = ()
    axis: str = ""
    most: float | None = None


@dataclass(frozen=True)
class SidePlot:
    """Groups of bars, one for each side; None where a side has nothing.

    even: the axis is linear, else logarithmic from ±1 on.
    """

    y_label: str
    groups: tuple[tuple[str, tuple[float | None, ...]], ...]
    even: bool = True


@dataclass(frozen=True)
class SideChart(Chart):
    """The same bars from several sides, such as published, clean and as they measured.

    plots: under each other, with the same groups.
    """

    family: ClassVar[str] = "sides"

    sides: tuple[str, ...] = ()
    plots: tuple[SidePlot, ...] = ()
    axis: str = ""
