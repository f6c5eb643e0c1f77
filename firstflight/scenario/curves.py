"""Published distribution functions of RTTs, bandwidths and response sizes, as points of curves.

This module needs numpy: import it only where values are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy
from numpy.typing import NDArray

from firstflight.base.errors import UsageError
from firstflight.base.words import nearest_or_known
from firstflight.scenario import published
from firstflight.scenario.published import PAPER

Numbers = NDArray[numpy.float64]

# The ends of the buckets that the paper leaves open. In Figure 3 the RTT curves of both data
# centres end at 5000.2 ms, which is the end of the axis and no maximum. A tail through percentiles
# 95 to 99 has one response in ten thousand above 10 s.
RTT_ENDS_MS = (1.0, 10_000.0)
# The bandwidth curves start with a step at 1 kbit/s, the end of the axis, and stop at maxima of 160
# and 257 Mbit/s. No bearer is slower than GSM's 9.6 kbit/s, and a tail through percentiles 95 to 99
# has one response in a thousand above 10 Mbit/s.
BANDWIDTH_ENDS_KBPS = (9.6, 10_000.0)

LAST_PERCENTILE = 0.98  # only curves that are known up to here are continued
SIZE_AXIS_END_BYTES = 499_000.0  # the right end of Figure 1
# The points of a tail are rounded to so many decimals. numpy's powers differ in the last place
# between processors, and a seed has to request the same responses on each.
TAIL_DECIMALS = 6  # of a value
SHARE_DECIMALS = 12


@dataclass(frozen=True)
class CdfCurve:
    """A distribution function that is known at points and linear between them."""

    where: str  # its file and series, for messages
    values: tuple[float, ...]  # ascending, shape (points,)
    cdf: tuple[float, ...]  # ascending from 0 to 1, shape (points,)

    def __post_init__(self) -> None:
        """Refuse points that do not make a distribution function. Raises UsageError."""
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
        """The share of the distribution at or below each value, in the shape of the values."""
        return numpy.interp(values, self.values, self.cdf, left=0.0, right=self.cdf[-1])

    def quantile(self, share: float | Numbers) -> Numbers:
        """The value at or below which each share of the distribution lies, in the shape of `share`.

        A share below that of the first point has the first point's value, and one above that of the
        last point has the last point's: what a curve does not show is not invented. Raises
        UsageError for a share outside 0 to 1.
        """
        shares = numpy.asarray(share, dtype=float)
        if not bool(numpy.all((shares >= 0) & (shares <= 1))):
            if shares.size == 1:
                raise UsageError(f"{self.where}: a percentile is a share between 0 and 1, not"
                                 f" {float(shares.flat[0]):g}")
            raise UsageError(f"{self.where}: percentiles are shares between 0 and 1")
        return numpy.interp(shares, self.cdf, self.values)

    def continued(self, highest: float) -> CdfCurve:
        """The curve with a Pareto tail instead of its last step, up to the value `highest`.

        A straight line from percentile 99 to the maximum would put more weight there than other
        figures of the paper allow (Figure 5: 0.08 % of RTTs above 3 s, Figure 7: 0.11 % of
        responses above 50 segments). Percentiles 95 to 99 give the exponent of the tail, which
        agrees with both. A curve that ends below LAST_PERCENTILE is returned unchanged.
        """
        values, cdf = numpy.array(self.values), numpy.array(self.cdf)
        if cdf[-2] < LAST_PERCENTILE or values[-2] >= highest:
            return self

        # The exponent follows from the share above the tail's start and from five times that share.
        start, left = values[-2], 1 - cdf[-2]
        nearer = float(numpy.interp(1 - 5 * left, cdf, values))
        if nearer >= start:  # no exponent: the curve is flat there, or has no point before
            return self
        exponent = math.log(5) / math.log(start / nearer)

        # The share above each point of the tail, scaled so that none is left at the end.
        tail = numpy.geomspace(start, highest, 33)[1:].round(TAIL_DECIMALS)
        survival = left * (tail / start) ** -exponent
        last = survival[-1]
        tail_cdf = (1 - left * (survival - last) / (left - last)).round(SHARE_DECIMALS)
        return CdfCurve(self.where, values=tuple(map(float, (*values[:-1], *tail))),
                        cdf=tuple(map(float, (*cdf[:-1], *tail_cdf))))


def network_curve(quantity: str, datacenter: str, folder: Path = PAPER) -> CdfCurve:
    """Figure 3's curve of a quantity (rtt_ms, bandwidth_kbps) at a data centre (AvgDC, SlowDC).

    Raises UsageError.
    """
    curve = _curve(folder / "paper_figure3_cdf.csv", ("quantity", "datacenter"), "value",
                   f"{quantity} {datacenter}")
    _, highest = RTT_ENDS_MS if quantity == "rtt_ms" else BANDWIDTH_ENDS_KBPS
    return curve.continued(highest)


def size_curve(series: str = "web_search", folder: Path = PAPER) -> CdfCurve:
    """Figure 1's distribution of the response sizes of one service, in bytes.

    The last point lies on the figure's right edge, and not on a percentile, so the curve has a tail
    instead (CdfCurve.continued). With the tail, Web search has a mean of 10.2 kB; a straight line
    would give 12.2, and the paper states 10.5 (section 4.1). Raises UsageError.
    """
    curve = _curve(folder / "paper_figure1_cdf.csv", ("series",), "response_bytes", series)
    return curve.continued(SIZE_AXIS_END_BYTES)


def _curve(path: Path, named_by: Sequence[str], column: str, name: str) -> CdfCurve:
    """The curve of one series of a file: values from `column`, shares from the column cdf.

    named_by: the columns whose words, with spaces between them, are the name of a series. name: of
    the series. Raises UsageError.
    """
    points: dict[str, list[tuple[float, float]]] = {}
    for row in published.rows(path, (*named_by, column, "cdf")):
        series = " ".join(row[word] for word in named_by)
        value = published.number(row, column, path.name)
        share = published.number(row, "cdf", path.name)
        points.setdefault(series, []).append((value, share))
    if name not in points:
        raise UsageError(f"paper/{path.name}: has no series {name!r}"
                         f"{nearest_or_known(name, sorted(points))}")
    values, cdf = zip(*points[name])
    return CdfCurve(f"paper/{path.name}, {name}", tuple(values), tuple(cdf))
