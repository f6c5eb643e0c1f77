"""Published distribution functions: RTTs, bandwidths and response sizes, as points of curves.

Needs numpy: import it only where something is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy
from numpy.typing import NDArray

from firstflight.base.errors import UsageError
from firstflight.base.words import nearest
from firstflight.study.scenario import published
from firstflight.study.scenario.published import PAPER

Numbers = NDArray[numpy.float64]

# Ends of the buckets that the paper leaves open. Both data centres' RTT curves in
# Figure 3 end at 5000.2 ms, the axis's end and not a maximum; the tail that
# percentiles 95 to 99 draw has one response in ten thousand left at 10 s. Its
# bandwidth curves start with an atom at 1 kbit/s, the axis's
# end, and stop at maxima of 160 and 257 Mbit/s: a bearer slower than GSM's
# 9.6 kbit/s does not exist, and 10 Mbit/s is where the tail that percentiles
# 95 to 99 draw has one response in a thousand left.
RTT_ENDS_MS = (1.0, 10_000.0)
BANDWIDTH_ENDS_KBPS = (9.6, 10_000.0)

LAST_PERCENTILE = 0.98  # a curve known so far is continued; one that ends below is not
SIZE_AXIS_END_BYTES = 499_000.0  # Figure 1 is cut there
# Of a tail's points: numpy's powers differ in the last place between processors, and the
# same seed is to request the same responses on each.
TAIL_DECIMALS, SHARE_DECIMALS = 6, 12


@dataclass(frozen=True)
class CdfCurve:
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

    def continued(self, highest: float) -> CdfCurve:
        """The curve with its last step, from a percentile to the maximum, drawn as a tail.

        One straight line from percentile 99 to the maximum would put more
        weight there than other figures of the paper allow (Figure 5: 0.08 %
        of RTTs above 3 s, Figure 7: 0.11 % of responses above 50 segments).
        Percentiles 95 to 99 fix the exponent of a Pareto tail that both agree
        with. A curve that ends below LAST_PERCENTILE is returned as it is.
        """
        values, cdf = numpy.array(self.values), numpy.array(self.cdf)
        if cdf[-2] < LAST_PERCENTILE or values[-2] >= highest:
            return self
        start, left = values[-2], 1 - cdf[-2]
        nearer = float(numpy.interp(1 - 5 * left, cdf, values))
        if nearer >= start:  # no exponent: also where nothing is left, or nothing came before
            return self
        exponent = math.log(5) / math.log(start / nearer)
        tail = numpy.geomspace(start, highest, 33)[1:].round(TAIL_DECIMALS)
        survival = left * (tail / start) ** -exponent
        ends = survival[-1]
        tail_cdf = (1 - left * (survival - ends) / (left - ends)).round(SHARE_DECIMALS)
        return CdfCurve(self.where, tuple(map(float, (*values[:-1], *tail))),
                     tuple(map(float, (*cdf[:-1], *tail_cdf))))


def network_curve(quantity: str, datacenter: str, folder: Path = PAPER) -> CdfCurve:
    """Figure 3's curve of rtt_ms or bandwidth_kbps at AvgDC or SlowDC. Raises UsageError."""
    curve = _curve(folder / "paper_figure3_cdf.csv", ("quantity", "datacenter"), "value",
                   f"{quantity} {datacenter}")
    return curve.continued((RTT_ENDS_MS if quantity == "rtt_ms" else BANDWIDTH_ENDS_KBPS)[1])


def size_curve(series: str = "web_search", folder: Path = PAPER) -> CdfCurve:
    """Figure 1's distribution of response sizes in bytes, of one service.

    The last point lies on the figure's right edge, not on a percentile: see
    CdfCurve.continued. With it Web search has a mean of 10.2 kB (a straight line
    would give 12.2, the paper states 10.5; section 4.1). Raises UsageError.
    """
    return _curve(folder / "paper_figure1_cdf.csv", ("series",), "response_bytes",
                  series).continued(SIZE_AXIS_END_BYTES)


def _curve(path: Path, named_by: Sequence[str], column: str, name: str) -> CdfCurve:
    """One series of a file: its values in `column`, its shares in cdf."""
    points: dict[str, list[tuple[float, float]]] = {}
    for row in published.rows(path, (*named_by, column, "cdf")):
        points.setdefault(" ".join(row[column] for column in named_by), []).append(
            (published.number(row, column, path.name), published.number(row, "cdf", path.name)))
    if name not in points:
        raise UsageError(f"paper/{path.name}: has no series {name!r}{nearest(name, points)};"
                         f" known: {', '.join(sorted(points)) or 'none'}")
    values, cdf = zip(*points[name])
    return CdfCurve(f"paper/{path.name}, {name}", tuple(values), tuple(cdf))
