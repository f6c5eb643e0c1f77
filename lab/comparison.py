"""Measured beside published: a deviation and one word for every bar, and the test behind it.

A bar is "reproduced" where its improvement lies within 30 % of the published
milliseconds and within 3 points of the published percentage, or the published
value lies inside the 95 % interval of ours, for either; "direction only" where
it does not but has the published sign; else "not reproduced". A published
value that is rounded or read from a figure is allowed its own error, where
that is more. A bar without a published value has no word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from lab.analysis import Bucket, Panel, of_experiment, percent_of
from lab.scenario import OF_EXPERIMENT, WINDOW_SWEEP, Claim, Figure

REPRODUCED, DIRECTION_ONLY, NOT_REPRODUCED = "reproduced", "direction only", "not reproduced"
WORDS = (REPRODUCED, DIRECTION_ONLY, NOT_REPRODUCED)
WITHIN_PERCENT = 30.0  # of the published milliseconds
WITHIN_POINTS = 3.0  # of the published percentage
EQUAL_PERCENT = 1.0  # of the baseline's time: bars that a source calls equal
NARROW_MS = 0.05  # an interval that prints as a single value

HELPS, HARMS, UNDECIDED = "helps", "harms", "undecided"

Interval = tuple[float, float]


@dataclass(frozen=True)
class Row:
    """One bar: our improvement beside the published one.

    percent, published_percent and percent_interval as the source counts
    percentages; bucket has them as parts of the baseline. deviation_percent:
    of our milliseconds from the published; deviation_points: of the
    percentages. exact: nothing varies between repeats. word, test: "" where
    nothing is published.
    """

    bucket: Bucket
    percent: float
    percent_interval: Interval | None
    published_percent: float | None
    deviation_percent: float | None
    deviation_points: float | None
    exact: bool
    word: str
    test: str


@dataclass(frozen=True)
class Said:
    """A published sentence beside what was found."""

    claim: Claim
    found: str
    word: str


@dataclass(frozen=True)
class Recovery:
    """What a window gains under random loss, beyond what it gains without. Times in ms.

    part_ms = the improvement less that of the lossless network; helps, harms
    or undecided by its 95 % interval.
    """

    bucket: Bucket
    part_ms: float
    interval_ms: Interval
    word: str


def rows(panel: Panel, deterministic: bool = False) -> list[Row]:
    """One row per bar. deterministic: the run was in virtual time, where a fetch
    without loss gives the same packets whenever it is repeated, so that one is enough."""
    buckets = (_improvements(panel) if panel.figure.kind == WINDOW_SWEEP else panel.buckets)
    return [_row(panel.figure, bucket, deterministic) for bucket in buckets]


def _improvements(panel: Panel) -> list[Bucket]:
    """The windows of a sweep, each published time as an improvement over the baseline's."""
    base = next((bucket for bucket in panel.buckets
                 if bucket.value == panel.figure.baseline_initcwnd), None)
    if base is None or base.published_ms is None:
        return list(panel.buckets)
    return [bucket if bucket is base or bucket.published_ms is None else replace(
        bucket, published_absolute_ms=base.published_ms - bucket.published_ms,
        published_percent=percent_of(base.published_ms, bucket.published_ms),
        published_error_ms=base.published_error_ms + bucket.published_error_ms)
        for bucket in panel.buckets]


def counts(compared: Iterable[Row | Said]) -> dict[str, int]:
    """How many bars or sentences have each word, in the order of WORDS; "" is left out."""
    found = Counter(one.word for one in compared if one.word)
    return {word: found[word] for word in WORDS}


def summary(counted: dict[str, int]) -> str:
    """Such as "5 of 8 reproduced, 2 direction only, 1 not reproduced"; "" for no bar."""
    total = sum(counted.values())
    if not total:
        return ""
    return (f"{counted[REPRODUCED]} of {total} {REPRODUCED}, {counted[DIRECTION_ONLY]}"
            f" {DIRECTION_ONLY}, {counted[NOT_REPRODUCED]} {NOT_REPRODUCED}")


def as_printed(figure: Figure, percent: float) -> float:
    """A percentage of the baseline in the definition of the figure's source."""
    return of_experiment(percent) if figure.percent_of == OF_EXPERIMENT else percent


def _row(figure: Figure, bucket: Bucket, deterministic: bool) -> Row:
    percent = as_printed(figure, bucket.percent)
    interval = bucket.percent_interval
    if interval is not None:
        interval = as_printed(figure, interval[0]), as_printed(figure, interval[1])
    published = bucket.published_percent
    if published is not None:
        published = as_printed(figure, published)
    ends = bucket.absolute_interval_ms
    exact = bucket.lossless and (
        deterministic if ends is None else ends[1] - ends[0] <= NARROW_MS)
    word, test = _judge(bucket, percent, interval, published)
    published_ms = bucket.published_absolute_ms
    return Row(
        bucket=bucket, percent=percent, percent_interval=interval, published_percent=published,
        deviation_percent=(bucket.absolute_ms - published_ms) / abs(published_ms) * 100
        if published_ms else None,
        deviation_points=None if published is None else percent - published,
        exact=exact, word=word, test=test)


def _judge(bucket: Bucket, percent: float, percent_interval: Interval | None,
           published_percent: float | None) -> tuple[str, str]:
    """The word of a bar and the test that decided it."""
    published_ms = bucket.published_absolute_ms
    pairs: list[tuple[float, float]] = []
    within: list[bool] = []
    tests: list[str] = []
    for measured, published, allowed, interval, unit in (
            (bucket.absolute_ms, published_ms,
             max(WITHIN_PERCENT / 100 * abs(published_ms or 0), bucket.published_error_ms),
             bucket.absolute_interval_ms, "ms"),
            (percent, published_percent, max(WITHIN_POINTS, bucket.published_error_points),
             percent_interval, "points")):
        if published is None:
            continue
        pairs.append((measured, published))
        off = abs(measured - published)
        inside = interval is not None and interval[0] <= published <= interval[1]
        within.append(off <= allowed or inside)
        if off <= allowed:
            tests.append(f"{off:.1f} ≤ {allowed:.1f} {unit}")
        else:
            tests.append(f"{off:.1f} > {allowed:.1f} {unit}"
                         + (", inside the interval" if inside else ""))
    if not pairs:
        return "", ""
    if all(within):
        word = REPRODUCED
    elif all(measured * published > 0 for measured, published in pairs if published):
        word = DIRECTION_ONLY
    else:
        word = NOT_REPRODUCED
    return word, "; ".join(tests)


# What was said in words ----------------------------------------------------------

def said(claims: Sequence[Claim], panels: Sequence[Panel]) -> list[Said]:
    """Every claim about one of the panels, tested on its bars."""
    by_name = {panel.figure.name: panel for panel in panels}
    return [_tested(claim, by_name[claim.figure]) for claim in claims
            if claim.figure in by_name]


def _tested(claim: Claim, panel: Panel) -> Said:
    bars = {bucket.label: bucket for bucket in panel.buckets}
    prefix = "IW " if panel.figure.kind == WINDOW_SWEEP else ""
    if claim.highest_percent is not None:
        highest = max(rows(panel), key=lambda row: row.percent)
        off = abs(highest.percent - claim.highest_percent)
        return Said(claim, f"{highest.percent:.1f} %, in bar {prefix}{highest.bucket.label}",
                    REPRODUCED if off <= WITHIN_POINTS else
                    DIRECTION_ONLY if highest.percent > 0 else NOT_REPRODUCED)
    first, second = (bars[label] for label in claim.larger or claim.equal)
    found = " and ".join(f"{bucket.percent:.1f} % ({bucket.absolute_ms:.1f} ms) in bar"
                         f" {prefix}{bucket.label}" for bucket in (first, second))
    if claim.larger:
        holds = _ends(first)[0] > _ends(second)[1]
    else:
        holds = (abs(first.absolute_ms - second.absolute_ms)
                 <= EQUAL_PERCENT / 100 * min(first.base_ms, second.base_ms))
    return Said(claim, found, REPRODUCED if holds else NOT_REPRODUCED)


def _ends(bucket: Bucket) -> Interval:
    return bucket.percent_interval or (bucket.percent, bucket.percent)


# Random loss -----------------------------------------------------------------------

def recoveries(panel: Panel) -> list[Recovery]:
    """The buckets with loss of a panel by loss rate; [] without its lossless bucket or intervals."""
    lossless = next((bucket for bucket in panel.buckets if bucket.value == 0), None)
    if lossless is None:
        return []
    found = []
    for bucket in panel.buckets:
        ends = bucket.absolute_interval_ms
        if bucket is lossless or ends is None:
            continue
        low, high = (end - lossless.absolute_ms for end in ends)
        found.append(Recovery(bucket, bucket.absolute_ms - lossless.absolute_ms, (low, high),
                              HELPS if low > 0 else HARMS if high < 0 else UNDECIDED))
    return found
