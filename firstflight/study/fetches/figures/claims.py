"""Panels next to what was published: a deviation and one result for every bar and sentence.

A bar is compared in milliseconds (or its metric's unit) and in percent; a
published value that is rounded or read from a figure is allowed its own error,
where that is more than findings.claims allows. A bar without a published
value has no result.

What a bar is known by is its 95 % interval (findings.claims); what cannot vary is known
exactly, and what rests on too few values not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from firstflight.base import words
from firstflight.findings import claims
from firstflight.findings.charts import Ends, is_wide
from firstflight.findings.claims import (ANY, LEAST_DRAWS, WITHIN_PERCENT, WITHIN_POINTS,
                                         ComparedNumber)
from firstflight.findings.difference import of_experiment
from firstflight.findings.findings import Statement
from firstflight.study.fetches.figures.buckets import Bucket, Panel, beside_baseline
from firstflight.study.fetches.scenario.scenario import OF_EXPERIMENT, Claim
from firstflight.study.scenario.grammar import as_read, claims_on

EQUAL_PERCENT = 1.0  # of the baseline: bars that a source calls equal


@dataclass(frozen=True)
class JudgedBar:
    """One bar: our improvement beside the published one.

    percent, published_percent and percent_interval as the source counts
    percentages; bucket has them as parts of the baseline. off_percent: of our
    improvement from the published; off_points: of the percentages. exact:
    nothing varies between repeats. word, test: "" where nothing is published.
    """

    bucket: Bucket
    percent: float
    percent_interval: Ends | None
    published_percent: float | None
    exact: bool
    word: str
    test: str

    @property
    def absolute_ends(self) -> Ends | None:
        """What our improvement is known by; None: nothing."""
        return _known_by(self.bucket, self.exact, self.bucket.absolute,
                         self.bucket.absolute_interval)

    @property
    def percent_ends(self) -> Ends | None:
        """The same in percent, as the source counts it."""
        return _known_by(self.bucket, self.exact, self.percent, self.percent_interval)

    @property
    def off_percent(self) -> float | None:
        published = self.bucket.published.absolute
        return ((self.bucket.absolute - published) / abs(published) * 100 if published else None)

    @property
    def off_points(self) -> float | None:
        return (None if self.published_percent is None
                else self.percent - self.published_percent)


@dataclass(frozen=True)
class JudgedPanel:
    """A panel with all that it is compared with."""

    panel: Panel
    rows: tuple[JudgedBar, ...]
    statements: tuple[Statement, ...]

    @property
    def windows(self) -> set[int]:
        """The initial windows that it compares."""
        figure = self.panel.figure
        return ({int(bucket.label) for bucket in self.panel.buckets} if self.panel.is_sweep else
                {figure.baseline_initcwnd, figure.experiment_initcwnd})

    @property
    def counts(self) -> dict[str, int]:
        """How many bars have which word."""
        return claims.counts(row.word for row in self.rows if row.word)


def judge_panel(panel: Panel, stated: Sequence[Claim], exact: bool = False) -> JudgedPanel:
    """A panel beside what was published of it.

    stated: of the scenario; those of the panel's figure are tested. exact: the
    run was in virtual time, where a fetch without loss gives the same packets
    whenever it is repeated, so that one is enough.
    """
    rows = tuple(_row(panel, bucket, exact) for bucket in beside_baseline(panel))
    return JudgedPanel(panel, rows, tuple(as_read(claim, _tested(claim, panel, rows)) for claim in
                                          claims_on(panel.figure, stated)))


def _known_by(bucket: Bucket, exact: bool, value: float, interval: Ends | None) -> Ends | None:
    if exact:
        return value, value
    return interval if bucket.draws >= LEAST_DRAWS else None


def _row(panel: Panel, bucket: Bucket, exact: bool) -> JudgedBar:
    def as_printed(percent: float) -> float:
        return (of_experiment(percent, bucket.sign)
                if panel.figure.percent_of == OF_EXPERIMENT else percent)

    percent, ends = as_printed(bucket.percent), bucket.percent_interval
    percent_interval = None if ends is None else (as_printed(ends[0]), as_printed(ends[1]))
    published = bucket.published
    published_percent = None if published.percent is None else as_printed(published.percent)
    interval = bucket.absolute_interval
    varies = not exact if interval is None else is_wide(interval)
    row = JudgedBar(bucket, percent, percent_interval, published_percent,
                    exact=bucket.lossless and not varies, word="", test="")
    word, test = claims.judge(_numbers(panel, row))
    return replace(row, word=word, test=test)


def _numbers(panel: Panel, row: JudgedBar) -> list[ComparedNumber]:
    """Our improvement next to the published one, in milliseconds and in percent."""
    bucket, published, numbers = row.bucket, row.bucket.published, []
    if published.absolute is not None:
        allowed = max(WITHIN_PERCENT / 100 * abs(published.absolute), published.error)
        numbers.append(ComparedNumber(bucket.absolute, published.absolute, allowed,
                                      row.absolute_ends, panel.metric.unit))
    if row.published_percent is not None:
        numbers.append(ComparedNumber(row.percent, row.published_percent,
                                      max(WITHIN_POINTS, published.error_points), row.percent_ends,
                                      "%"))
    return numbers


# What was published in words ---------------------------------------------------------

def _tested(claim: Claim, panel: Panel, rows: Sequence[JudgedBar]) -> Statement:
    prefix = "IW " if panel.is_sweep else ""
    if claim.highest_percent is not None:
        highest = max(rows, key=lambda row: row.percent)
        return Statement(claim.says, f"{words.number(highest.percent)} %, in bar"
                         f" {prefix}{highest.bucket.label}",
                         claims.judge([ComparedNumber(highest.percent, claim.highest_percent,
                                                      WITHIN_POINTS, highest.percent_ends)])[0])
    bars = {row.bucket.label: row for row in rows}
    if claim.most:
        highest = max((bars[label] for label in claim.most), key=lambda row: row.percent)
        others = [row for row in rows if row.bucket.label not in claim.most]
        words_of_others = [claims.larger(highest.percent_ends or ANY, row.percent_ends or ANY)
                           for row in others]
        second = max(others, key=lambda row: row.percent)
        return Statement(claim.says, f"{words.number(highest.percent)} % in bar {prefix}"
                         f"{highest.bucket.label}, at most {words.number(second.percent)} % in"
                         f" the {len(others)} others, in bar {prefix}{second.bucket.label}",
                         next(word for word in (claims.NOT_REPRODUCED, claims.UNDECIDED,
                                                claims.DIRECTION) if word in words_of_others))
    first, second = (bars[label] for label in claim.larger or claim.equal)
    measured = " and ".join(f"{words.number(row.bucket.percent)} %"
                         f" ({words.number(row.bucket.absolute)} {panel.metric.unit}) in bar"
                         f" {prefix}{row.bucket.label}" for row in (first, second))
    if claim.larger:
        return Statement(claim.says, measured, claims.larger(first.percent_ends or ANY,
                                                          second.percent_ends or ANY))
    (low, high), (least, most) = (row.absolute_ends or ANY for row in (first, second))
    return Statement(claim.says, measured, claims.equivalent(
        (low - most, high - least),
        EQUAL_PERCENT / 100 * min(first.bucket.base, second.bucket.base)))
