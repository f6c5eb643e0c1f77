"""Judges figures of bars: one result for every bar with a published value, and for every claim.

A bar is compared in the unit of its metric and in percent. A published value that was rounded, or
read from a figure, has an error, which is the tolerance where findings.claims allows less.

The 95 % interval of a bar decides (findings.claims). For a bar that chance cannot change, both ends
are its value. A bar of too few values has no interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from firstflight.base import words
from firstflight.figures.claims import claims_on, qualify
from firstflight.figures.judging import judge, judge_equal, judge_highest, judge_larger
from firstflight.findings.bar import Bar
from firstflight.findings.charts import is_wide
from firstflight.findings.findings import Statement
from firstflight.scenario.claims import ALIKE, MORE, MOST
from firstflight.workloads.fetch.figures.bar_cells import beside_baseline
from firstflight.workloads.fetch.figures.bar_figure import BarFigure
from firstflight.workloads.fetch.scenario.scenario import Claim


def judge_bars(bar_figure: BarFigure, stated: Sequence[Claim], exact: bool = False) -> BarFigure:
    """The figure with a result for every bar, and with the statements on its claims.

    stated: all claims of the scenario. exact: whether the run was in virtual time. There a fetch
    without loss gives the same packets each time, so one fetch is enough.
    """
    bars = tuple(_judged(bar, bar_figure.metric.unit, exact) for bar in beside_baseline(bar_figure))
    statements = tuple(qualify(claim, _tested(claim, bar_figure, bars))
                       for claim in claims_on(bar_figure.figure, stated))
    return replace(bar_figure, bars=bars, statements=statements)


def _judged(bar: Bar, unit: str, exact: bool) -> Bar:
    """The bar with its result. exact: whether chance cannot change values without an interval."""
    interval = bar.difference.absolute.interval
    varies = not exact if interval is None else is_wide(interval)
    change = replace(bar.difference, exact=bar.difference.lossless and not varies)
    return replace(bar, difference=change,
                   result=judge(bar.published, change, unit, bar.of_experiment))


# What was published in words ---------------------------------------------------------

def _name(bar_figure: BarFigure, bar: Bar) -> str:
    """How a sentence names a bar, such as "bar IW 10". Words are quoted, such as "not set"."""
    label = bar_figure.label_of(bar)
    name = label if label == bar.label else f'"{label}"'
    return f"bar IW {name}" if bar_figure.is_sweep else f"bar {name}"


def _tested(claim: Claim, bar_figure: BarFigure, bars: Sequence[Bar]) -> Statement:
    """The statement on a claim: what the bars show about it, and its result."""
    if claim.published is not None:
        highest = max(bars, key=lambda bar: bar.percent.value)
        return Statement(claim.says, f"{words.format_number(highest.percent.value)} %, in"
                         f" {_name(bar_figure, highest)}", judge_highest(highest, claim.published))

    by_label = {bar.label: bar for bar in bars}
    compared = [by_label[label] for label in claim.compares]
    if claim.expects == MOST:
        highest = max(compared, key=lambda bar: bar.percent.value)
        others = [bar for bar in bars if bar.label not in claim.compares]
        second = max(others, key=lambda bar: bar.percent.value)
        measured = (f"{words.format_number(highest.percent.value)} % in"
                    f" {_name(bar_figure, highest)}, at most"
                    f" {words.format_number(second.percent.value)} % in the {len(others)} others,"
                    f" in {_name(bar_figure, second)}")
        return Statement(claim.says, measured, judge_larger(highest, *others))

    # The bar that is expected to be larger comes first.
    first, second = reversed(compared) if claim.expects == MORE else compared
    unit = bar_figure.metric.unit
    measured = " and ".join(
        f"{words.format_number(bar.difference.percent.value)} %"
        f" ({words.format_number(bar.difference.absolute.value)} {unit}) in"
        f" {_name(bar_figure, bar)}" for bar in (first, second))
    if claim.expects == ALIKE:
        return Statement(claim.says, measured, judge_equal(first, second))
    return Statement(claim.says, measured, judge_larger(first, second))
