"""Compares differences with published numbers and with what claims expect.

`judge` gives the result of a published number or of a claim. `judge_larger`, `judge_equal` and
`judge_highest` give the results of claims on bars. `agrees` compares estimates without intervals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from firstflight.findings import claims
from firstflight.findings.bar import Bar
from firstflight.findings.claims import (ANY, DIRECTION, NOT_REPRODUCED, UNDECIDED, WITHIN_PERCENT,
                                         WITHIN_POINTS, ComparedNumber, Ends, Published, Result,
                                         equivalent)
from firstflight.findings.difference import Difference

# Two values that a source calls alike may differ by this percentage of the base.
ALIKE_PERCENT = 5.0
# Two bars that a source calls equal may differ by this percentage of the smaller base.
EQUAL_PERCENT = 1.0


# Results -------------------------------------------------------------------------------

@dataclass(frozen=True)
class Expected:
    """What a claim expects of the experiment, compared with the base."""

    sign: int  # 1 for less, −1 for more, 0 for alike
    published: float | None = None  # the difference, if the source has a number
    # How far a difference may be from the published one, or from 0 if the values are alike.
    within: float = ALIKE_PERCENT
    # Whether `published` and `within` are in the metric's unit, not in percent of the base.
    is_absolute: bool = False


def judge(expected: Published | Expected, change: Difference, unit: str = "",
          of_experiment: bool = False) -> Result:
    """The result of a difference, by published numbers or by what a claim expects.

    Published numbers are compared in the metric's unit and in percent. Where a claim's number is
    too far away, the claim may still be reproduced in its direction. unit: the metric's.
    of_experiment: whether the source prints percentages of the experiment, not of the base
    (Difference.printed).
    """
    if isinstance(expected, Published):
        return claims.judge(_numbers(expected, change, unit, of_experiment))

    ends = (change.absolute.interval or ANY) if expected.is_absolute else _percent_ends(change)
    if expected.sign == 0:
        return Result(equivalent(ends, expected.within))
    of_direction = _direction(expected.sign, change)
    if expected.published is None:
        return Result(of_direction)

    # By how much the difference exceeds the published one, in the direction of the claim.
    low, high = sorted(expected.sign * end - expected.published for end in ends)
    of_number = equivalent((low, high), expected.within)
    if of_number == NOT_REPRODUCED and of_direction == DIRECTION:
        return Result(DIRECTION)
    return Result(of_number)


def _numbers(source: Published, change: Difference, unit: str,
             of_experiment: bool) -> list[ComparedNumber]:
    """The improvement in the metric's unit and in percent, measured and published.

    A number that was not published is left out. The interval of each is what is known of it
    (Difference.known): both ends are the number itself where every repeat gives the same one.
    """
    numbers = []
    if source.absolute is not None:
        allowed = max(WITHIN_PERCENT / 100 * abs(source.absolute), source.error)
        numbers.append(ComparedNumber(change.absolute.value, source.absolute, allowed,
                                      interval=change.known(change.absolute), unit=unit))
    if source.percent is not None:
        # Ours and the published one, both of the base or of the experiment as the source has it.
        percent = change.printed(of_experiment)
        published = change.as_printed(source.percent, of_experiment)
        allowed = max(WITHIN_POINTS, source.error_points)
        numbers.append(ComparedNumber(percent.value, published, allowed,
                                      interval=change.known(percent), unit="%"))
    return numbers


def _direction(sign: int, change: Difference) -> str:
    """The result of a claim on the sign of a difference, 1 or −1, by its 95 % interval.

    It is DIRECTION if the whole interval has that sign, NOT_REPRODUCED if the interval reaches at
    most ALIKE_PERCENT on that side, and UNDECIDED otherwise.
    """
    if change.absolute.sign == sign:
        return DIRECTION
    farthest = max(sign * end for end in _percent_ends(change))
    return NOT_REPRODUCED if farthest <= ALIKE_PERCENT else UNDECIDED


def _percent_ends(change: Difference) -> Ends:
    """The interval of the difference in percent; ANY if it has none.

    If the base is 0, each end is 0 or infinite.
    """
    if change.absolute.interval is None or change.percent.interval is None:
        return ANY
    if change.base.value:
        return change.percent.interval
    low, high = (math.copysign(math.inf, end) if end else 0.0 for end in change.absolute.interval)
    return low, high


# Claims on bars ------------------------------------------------------------------------

def judge_larger(bar: Bar, *others: Bar) -> str:
    """The result of a claim that a bar saves a larger percentage than each of the other bars."""
    def percent_ends(compared: Bar) -> Ends:
        return compared.difference.known(compared.percent) or ANY

    return claims.worst(claims.larger(percent_ends(bar), percent_ends(other)) for other in others)


def judge_equal(first: Bar, second: Bar) -> str:
    """The result of a claim that two bars save the same, within EQUAL_PERCENT."""
    def ends(bar: Bar) -> Ends:
        return bar.difference.known(bar.difference.absolute) or ANY

    first_low, first_high = ends(first)
    second_low, second_high = ends(second)
    smaller_base = min(first.difference.base.value, second.difference.base.value)
    return equivalent((first_low - second_high, first_high - second_low),
                      EQUAL_PERCENT / 100 * smaller_base)


def judge_highest(bar: Bar, published_percent: float) -> str:
    """The result of a claim that the highest bar has the percentage that its source prints."""
    interval = bar.difference.known(bar.percent)
    number = ComparedNumber(bar.percent.value, published_percent, WITHIN_POINTS, interval=interval)
    return claims.judge([number]).outcome


# Agreement of estimates ----------------------------------------------------------------

@dataclass(frozen=True)
class Tolerance:
    """How far an estimate may be from a published number and still agree."""

    # A number may be off by a percentage of the published one, or by so much of its unit, whichever
    # is more.
    percent: float
    absolute: float
    # A percentage may be off by so many percentage points.
    points: float = 0.0
    # Whether the source cut off decimals, so that its 12 is any number from 12 to 13.
    truncated: bool = False


def agrees(bar: Bar, tolerance: Tolerance) -> bool:
    """Whether a bar's estimates are near all published numbers; intervals do not count.

    In a window sweep the published number is the value under the bar's window.
    """
    source, change = bar.published, bar.difference

    def is_near(ours: float, published: float) -> bool:
        allowed = max(tolerance.percent / 100 * abs(published), tolerance.absolute)
        return _is_within(allowed, ours, published, tolerance.truncated)

    if source.level is not None:
        return is_near(change.experiment.value, source.level)
    if source.absolute is not None and not is_near(change.absolute.value, source.absolute):
        return False
    if bar.published_percent is None:
        return True
    points = max(tolerance.points, source.error_points)
    return _is_within(points, bar.percent.value, bar.published_percent, tolerance.truncated)


def _is_within(allowed: float, ours: float, published: float, is_truncated: bool) -> bool:
    """Whether a number is near a published one. allowed: how far it may be.

    is_truncated: the published number stands for all numbers from it up to 1 more.
    """
    deviation = ours - published
    lowest = deviation - 1 if is_truncated else deviation
    return equivalent((lowest, deviation), allowed) != NOT_REPRODUCED
