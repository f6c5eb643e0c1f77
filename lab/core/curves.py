"""Published distribution functions: the curves of paper/*_cdf.csv, known at points.

Needs numpy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy
from numpy.typing import NDArray

from lab.core.errors import UsageError
from lab.core.published import PAPER, number, rows
from lab.core.words import nearest

Numbers = NDArray[numpy.float64]

LAST_PERCENTILE = 0.98  # a curve known so far is continued; one that ends below is not
SIZE_AXIS_END_BYTES = 499_000.0  # Figure 1 is cut there


@dataclass(frozen=True)
class Curve:
    """A distribution function known at points, linear between them.

    values: ascending, shape (n,); cdf: ascending, 0 to 1, shape (n,).
    where: file and series, for messages.
    """

    where: str
    values: tuple[float, ...]
    cdf: tuple[float, ...]

    def __post_init__(self) -> None:
        """Raises UsageError where the points are no distribution function."""
        if len(self.values) < 2 or len(self.values) != len(self.cdf):
            raise UsageError(f"{self.where}: a CDF needs two points or more, with a value and a"
                             f" share each; found {len(self.values)} and {len(self.cdf)}")
        for name, numbers in (("value", self.values), ("cdf", self.cdf)):
            for before, after in zip(numbers, numbers[1:]):
                if not after >= before:
                    raise UsageError(f"{self.where}: the CDF is not sorted: {name}"
                                     f" {after:g} follows {before:g}")
        if not (self.cdf[0] >= 0 and self.cdf[-1] <= 1 + 1e-9 and self.cdf[-1] > self.cdf[0]):
            raise UsageError(f"{self.where}: the CDF must rise within 0 to 1; it goes from"
                             f" {self.cdf[0]:g} to {self.cdf[-1]:g}")
        if not self.values[0] > 0:
            raise UsageError(f"{self.where}: the CDF has the value {self.values[0]:g};"
                             " all must be positive")

    def at(self, values: Numbers) -> Numbers:
        """The share of the distribution at or below each value; same shape."""
        return numpy.interp(values, self.values, self.cdf, left=0.0, right=self.cdf[-1])

    def quantile(self, share: float | Numbers) -> Numbers:
        """The value at or below which `share` (0 to 1) lies; same shape.

        Below the first point its value, above the last its value: what a
        curve does not show is not invented. Raises UsageError for a share
        that is none.
        """
        shares = numpy.asarray(share, dtype=float)
        if not bool(numpy.all((shares >= 0) & (shares <= 1))):
            raise UsageError(f"{self.where}: a percentile is a share between 0 and 1, not"
                             f" {float(shares.flat[0]):g}" if shares.size == 1 else
                             f"{self.where}: percentiles are shares between 0 and 1")
        return numpy.interp(shares, self.cdf, self.values)

    def continued(self, highest: float) -> Curve:
        """The curve with its last step, from a percentile to the maximum, drawn as a tail.

        One straight line from percentile 99 to the maximum would put more
        weight there than other figures of the paper allow (Figure 5: 0.08 %
        of RTTs above 3 s, Figure 7: 0.11 % of responses above 50 segments).
        Percentiles 95 to 99 fix the exponent of a Pareto tail that both agree
        with. A curve that ends below LAST_PERCENTILE is returned as it is.
        """
        values, cdf = numpy.array(self.values), numpy.array(self.cdf)
        if len(values) < 3 or cdf[-2] < LAST_PERCENTILE or cdf[-2] >= 1 or values[-2] >= highest:
            return self
        start, left = values[-2], 1 - cdf[-2]
        nearer = float(numpy.interp(1 - 5 * left, cdf, values))
        if not 0 < nearer < start:
            return self
        exponent = math.log(5) / math.log(start / nearer)
        tail = numpy.geomspace(start, highest, 33)[1:]
        survival = left * (tail / start) ** -exponent
        ends = survival[-1]
        tail_cdf = 1 - left * (survival - ends) / (left - ends)
        return Curve(self.where, tuple(map(float, (*values[:-1], *tail))),
                     tuple(map(float, (*cdf[:-1], *tail_cdf))))


def size_curve(series: str = "web_search", folder: Path = PAPER) -> Curve:
    """Figure 1's distribution of response sizes in bytes, of one service.

    The last point lies on the figure's right edge, not on a percentile: see
    Curve.continued. With it Web search has a mean of 10.2 kB (a straight line
    would give 12.2, the paper states 10.5; section 4.1). Raises UsageError.
    """
    return read_curve("paper_figure1_cdf.csv", "response_bytes", ("series",), series,
                      folder).continued(SIZE_AXIS_END_BYTES)


def read_curve(file: str, column: str, named_by: tuple[str, ...], name: str,
               folder: Path = PAPER) -> Curve:
    """One series of a file: the points of `column` whose `named_by` columns make the name.

    Raises UsageError.
    """
    points: dict[str, list[tuple[float, float]]] = {}
    for row in rows(folder / file, (*named_by, column, "cdf")):
        series = " ".join(row[each] for each in named_by)
        points.setdefault(series, []).append((number(row, column, file),
                                              number(row, "cdf", file)))
    if name not in points:
        raise UsageError(f"paper/{file}: has no series {name!r}{nearest(name, points)};"
                         f" known: {', '.join(sorted(points)) or 'none'}")
    values, cdf = zip(*points[name])
    return Curve(f"paper/{file}, {name}", values, cdf)
