"""Charts of single cells: groups of times by one quantity, maps of squares by two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lab.core.findings.charts import Chart, TimeBar


@dataclass(frozen=True)
class GroupChart(Chart):
    """Groups of bars of a metric, a bar for each window; windows: their names, the baseline first.

    groups: the label of each and its bars, None where nothing counts. axis: of the groups;
    measured: of the bars' lengths, with its unit.
    """

    family: ClassVar[str] = "groups"

    windows: tuple[str, ...] = ()
    groups: tuple[tuple[str, tuple[TimeBar | None, ...]], ...] = ()
    axis: str = ""
    measured: str = ""
    unit: str = "ms"


@dataclass(frozen=True)
class Square:
    """One cell of a map: what was improved, in the chart's unit and in percent.

    unsure: whether the 95 % interval holds zero. n: fetches; left_out: those
    that do not count. window: of a map of windows the one that it says.
    """

    absolute: float
    percent: float
    unsure: bool = False
    n: int = 0
    left_out: int = 0
    window: int = 0


@dataclass(frozen=True)
class Map:
    """Rows of squares, None where nothing counts; title: what tells it from the others."""

    title: str
    rows: tuple[tuple[Square | None, ...], ...]


@dataclass(frozen=True)
class MapChart(Chart):
    """Maps side by side and under each other, of one size: colour and number in every square.

    columns, rows: labels of the squares, the first row at the bottom. windows: where squares say a
    window, those that there are, the smallest first.
    """

    family: ClassVar[str] = "maps"

    maps: tuple[Map, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    x_label: str = ""
    y_label: str = ""
    unit: str = "ms"
    windows: tuple[int, ...] = ()


@dataclass(frozen=True)
class LevelChart(Chart):
    """Squares with a number each; columns, rows: their labels, the first row at the bottom.

    levels: by row and column, None where nothing counts; whole: numbers without decimals.
    """

    family: ClassVar[str] = "levels"

    columns: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    levels: tuple[tuple[float | None, ...], ...] = ()
    x_label: str = ""
    y_label: str = ""
    whole: bool = False


@dataclass(frozen=True)
class ApproachRow:
    """A step: for each group of columns its values, and which of them are near the last row's.

    note: at the right, such as how many are near.
    """

    title: str
    groups: tuple[tuple[tuple[float | None, bool], ...], ...]
    note: str = ""


@dataclass(frozen=True)
class ApproachChart(Chart):
    """Steps that lead to published values: a row each, the published ones last.

    Every value has its number, and a colour that says how far it is from the
    published one. groups: title and column labels of each.
    """

    family: ClassVar[str] = "approach"

    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    rows: tuple[ApproachRow, ...] = ()
    unit: str = "ms"
