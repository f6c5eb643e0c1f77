"""Judge figures of bars: one result for every bar with a published value, and for every claim.

A bar is compared in the unit of its metric and in percent. A published value that was rounded, or
read from a figure, has its own error as tolerance where that is more than findings.claims allows.

The 95 % interval of a bar decides (findings.claims). A bar that cannot vary has its value as both
ends, and a bar of too few values has no interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from firstflight.base import words
from firstflight.figures.claims import as_read, claims_on
from firstflight.figures.compare import judge, judge_equal, judge_highest, judge_larger
from firstflight.findings.bar import Bar
from firstflight.findings.charts import is_wide
from firstflight.findings.findings import Statement
from firstflight.scenario.claims import ALIKE, MORE, MOST
from firstflight.workloads.fetch.figures.bar_cells import beside_baseline
from firstflight.workloads.fetch.figures.bar_figure import BarFigure
from firstflight.workloads.fetch.scenario.scenario import Claim


def judge_bars(bar_figure: BarFigure, stated: Sequence[Claim], exact: bool = False) -> BarFigure:
    """The figure with a result for every bar, and with its statements.

    stated: the scenario's claims, of which those on this figure are tested. exact: whether the run
    was in virtual time. There a fetch without loss gives the same packets each time, so one is
    enough.
    """
    bars = tuple(_judged(bar, bar_figure.metric.unit, exact) for bar in beside_baseline(bar_figure))
    return replace(bar_figure, bars=bars, statements=tuple(
        as_read(claim, _tested(claim, bar_figure, bars))
        for claim in claims_on(bar_figure.figure, stated)))


def _judged(bar: Bar, unit: str, exact: bool) -> Bar:
    interval = bar.difference.absolute.interval
    varies = not exact if interval is None else is_wide(interval)
    change = replace(bar.difference, exact=bar.difference.lossless and not varies)
    return replace(bar, difference=change,
                   result=judge(bar.published, change, unit, bar.of_experiment))


# What was published in words ---------------------------------------------------------

def _name(bar_figure: BarFigure, bar: Bar) -> str:
    """A bar's name in a sentence; in quotes where it is a word, such as "not set"."""
    label = bar_figure.label_of(bar)
    return label if label == bar.label else f'"{label}"'


def _tested(claim: Claim, bar_figure: BarFigure, bars: Sequence[Bar]) -> Statement:
    prefix = "IW " if bar_figure.is_sweep else ""
    if claim.published is not None:
        highest = max(bars, key=lambda bar: bar.percent.value)
        return Statement(claim.says, f"{words.format_number(highest.percent.value)} %, in bar"
                         f" {prefix}{_name(bar_figure, highest)}",
                         judge_highest(highest, claim.published))
    by_label = {bar.label: bar for bar in bars}
    compared = [by_label[label] for label in claim.compares]
    if claim.expects == MOST:
        highest = max(compared, key=lambda bar: bar.percent.value)
        others = [bar for bar in bars if bar.label not in claim.compares]
        second = max(others, key=lambda bar: bar.percent.value)
        return Statement(claim.says,
                         f"{words.format_number(highest.percent.value)} % in bar {prefix}"
                         f"{_name(bar_figure, highest)}, at most"
                         f" {words.format_number(second.percent.value)} % in the"
                         f" {len(others)} others, in bar {prefix}{_name(bar_figure, second)}",
                         judge_larger(highest, *others))
    # Where one is expected to be larger, it comes first.
    first, second = reversed(compared) if claim.expects == MORE else compared
    measured = " and ".join(
        f"{words.format_number(bar.difference.percent.value)} %"
        f" ({words.format_number(bar.difference.absolute.value)} {bar_figure.metric.unit}) in bar"
        f" {prefix}{_name(bar_figure, bar)}" for bar in (first, second))
    return Statement(claim.says, measured, judge_equal(first, second)
                     if claim.expects == ALIKE else judge_larger(first, second))
