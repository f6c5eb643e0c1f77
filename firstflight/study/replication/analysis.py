"""Counts the published numbers that agree with ours, clean and with each cause switched on in turn.

A *level* has the causes that are switched on: none at the clean level, and one more at each
further level. What was published depends on the scenario: raw values of single cells, statements
in words, or bars. Each of them counts once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Optional

from firstflight.figures.compare import exact as exact_difference
from firstflight.figures.judging import Tolerance, agrees
from firstflight.findings.bar import Bar
from firstflight.findings.claims import DIRECTION, REPRODUCED, Published
from firstflight.scenario.claims import LESS, MORE, MOST
from firstflight.workloads.fetch.figures import kinds
from firstflight.workloads.fetch.figures.bar_cells import of_sweep
from firstflight.workloads.fetch.figures.bar_figure import BarFigure, NoBars
from firstflight.workloads.fetch.figures.claims import judge_bars
from firstflight.workloads.fetch.figures.raw_cells import published_cells
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.scenario.causes import (GROUPS, GROUP_OF, AsPublished,
                                                         ClockReading, Level, levels as levels_of)
from firstflight.workloads.fetch.scenario.scenario import Figure, Scenario
from firstflight.workloads.fetch.scenario.sweep import bucket_value
from firstflight.workloads.fetch.trial import Trial

Numbers = tuple[Optional[float], Optional[float]]  # in the metric's unit, and in percent


@dataclass(frozen=True)
class Item:
    """A published bar, raw value or statement, and whether ours agrees at each level.

    A raw value is a bar of one cell. Its published number is a time under one window, not a saving.
    """

    # The name of its figure.
    figure: str
    # The label of the bar, or the statement's text.
    label: str
    published: Published
    # Our bar at each level, None at a level that lacks it; () for a statement.
    bars: tuple[Bar | None, ...]
    # Whether our bar or statement agrees, at each level.
    agrees: tuple[bool, ...]
    # Whether its numbers are times under one window, and not savings.
    is_time: bool = False
    # Whether the published number is no time: the fetch never connected, and the script of its
    # authors wrote a constant down.
    constant: bool = False

    @property
    def published_numbers(self) -> Numbers:
        """The published time or saving, and the published percentage as its source counts it."""
        if self.is_time:
            return self.published.level, None
        percents = [bar.published_percent for bar in self.bars if bar is not None]
        return self.published.absolute, percents[0] if percents else None

    def numbers_at(self, level: int) -> Numbers:
        """Our time or saving, and our percentage; level: its index, 0 for the clean one."""
        bar = self.bars[level]
        if bar is None:
            return None, None
        if self.is_time:
            return bar.difference.experiment.value, None
        return bar.difference.absolute.value, bar.percent.value


@dataclass(frozen=True)
class Measured:
    """The scenario at one level: its figures, and its records as the authors' script had them."""

    setup: AsPublished
    level: Level
    scenario: Scenario
    records: Sequence[Record]
    # By the name of the figure: its bars, or why it has none.
    bar_figures: dict[str, BarFigure]
    missing: dict[str, str]
    # Whether it was measured in virtual time.
    exact: bool
    # Trials that never connected, for which the authors' script wrote a constant down.
    constants: frozenset[Trial] = frozenset()


def as_read(reading: ClockReading, record: Record) -> Record:
    """The record with the time that the authors' script would have written down."""
    if record.failed_as_expected and reading.failed_ms:
        return replace(record, ok=True, total_ms=reading.failed_ms)
    if reading.process_ms and record.counts and record.total_ms is not None:
        return replace(record, total_ms=record.total_ms + reading.process_ms)
    return record


def read_levels(scenario: Scenario, setup: AsPublished, records: Sequence[Record],
                exact: bool) -> list[Measured]:
    """Every level, the clean one first. exact: measured in virtual time."""
    made = []
    for level in levels_of(scenario.sweeps, setup.causes):
        at_level = replace(scenario, sweeps=level.sweeps)
        read = [as_read(level.reading, record) for record in records]
        bar_figures, missing = kinds.bar_figures(at_level, read)
        constants: frozenset[Trial] = frozenset()
        if level.reading.failed_ms:
            constants = frozenset(record.trial for record in records if record.failed_as_expected)
        made.append(Measured(setup, level, at_level, records=read, bar_figures=bar_figures,
                             missing=missing, exact=exact, constants=constants))
    return made


def items(scenario: Scenario, levels: Sequence[Measured]) -> list[Item]:
    """The published numbers and statements that are counted.

    Between the first and the last level a figure may lack bars: their fetches fail, and have a time
    only once a cause reads them as the authors' script did. Such a bar does not agree at that
    level. Raises NoBars where the first or last level lacks a figure.
    """
    for level in (levels[0], levels[-1]):
        for name, why in level.missing.items():
            raise NoBars(f"{name}: {why}")
    cells = [published_cells(level.scenario, level.records) for level in levels]
    if cells[-1] is not None:
        return _raw(cells, levels)
    if scenario.claims:
        return [_statement(place, levels) for place in range(len(scenario.claims))]
    return [item for figure in scenario.figures for item in bars(figure, levels)]


def counts(items: Sequence[Item]) -> list[int]:
    """How many items agree at each level."""
    by_item = [item.agrees for item in items]
    return [sum(at_level) for at_level in zip(*by_item)]


def by_group(setup: AsPublished, counted: Sequence[int]) -> list[tuple[str, int]]:
    """Each group of causes, and how many items agree once its causes are switched on.

    The causes of the groups before it are switched on, too. Groups without a cause are skipped.
    counted: how many items agree at each level.
    """
    count_of: dict[str, int] = {}
    for cause, count in zip(setup.causes, counted[1:]):
        group = GROUPS[GROUP_OF[cause.known]]
        count_of[group] = count  # in the end that of the group's last cause, with all switched on
    return list(count_of.items())


def bars(figure: Figure, levels: Sequence[Measured]) -> list[Item]:
    """The items of a figure's bars."""
    clean, last = levels[0], levels[-1]
    measured: set[object] = set()  # buckets with a trial that was measured
    constant: set[object] = set()  # buckets with a trial of which the script wrote a constant down
    for record in of_sweep(last.scenario.sweep(figure.sweep), last.records):
        buckets = constant if record.trial in last.constants else measured
        buckets.add(bucket_value(figure.by, record.trial))

    clean_bars = clean.bar_figures[figure.name].bars
    by_level: list[Sequence[Bar | None]] = []
    for level in levels:
        found = level.bar_figures.get(figure.name)
        by_level.append(found.bars if found is not None else [None] * len(clean_bars))

    made = []
    for bar, at_each_level in zip(clean_bars, zip(*by_level)):
        item = _item(figure.name, at_each_level, levels)
        made.append(replace(item, constant=bar.value in constant - measured))
    return made


def _item(figure: str, bars: Sequence[Bar | None], levels: Sequence[Measured]) -> Item:
    """The item of one bar. bars: the bar at each level, None where a level lacks it.

    A bar of which no number was published agrees at every level.
    """
    first = bars[0]
    assert first is not None
    published = first.published
    has_number = (published.level, published.absolute, published.percent) != (None, None, None)
    is_sweep = levels[0].bar_figures[figure].is_sweep

    do_agree = []
    for bar, measured in zip(bars, levels):
        truncated = measured.level.reading.truncated and not is_sweep
        allowed = replace(tolerance(measured.setup), truncated=truncated)
        do_agree.append(not has_number if bar is None else agrees(bar, allowed))
    return Item(figure, first.label, published, bars=tuple(bars), agrees=tuple(do_agree),
                is_time=is_sweep)


def tolerance(setup: AsPublished) -> Tolerance:
    """How far a number may be from the published one and still agree."""
    return Tolerance(setup.within_percent, setup.within_ms, setup.within_points)


def _raw(cells: Sequence[Any], levels: Sequence[Measured]) -> list[Item]:
    """The items of raw values. cells: for each level, the published cells with our times."""
    allowed, row_of_trial = tolerance(levels[0].setup), cells[-1].of_trial
    constants = [row_of_trial[trial] for trial in row_of_trial.keys() & levels[-1].constants]

    items = []
    for rows in zip(*(level.rows for level in cells)):  # a row of one cell at each level
        row = rows[0]
        label = f"IW {row.initcwnd}, {row.rtt_ms:g} ms, {row.bandwidth_kbps:g} kbit/s"
        published = Published(level=row.published_ms)
        bars: list[Bar | None] = []
        for level_row in rows:
            ms = level_row.measured_ms
            # A bar needs a difference. Here only the time counts, so base and experiment have it.
            bars.append(None if ms is None else Bar(label, exact_difference(ms, ms), published))

        do_agree = tuple(bar is not None and agrees(bar, allowed) for bar in bars)
        items.append(Item("raw", label, published, bars=tuple(bars), agrees=do_agree,
                          is_time=True, constant=rows[-1] in constants))
    return items


def _statement(place: int, levels: Sequence[Measured]) -> Item:
    """The item of the claim at this place of the scenario."""
    claim = levels[0].scenario.claims[place]
    accepted = [REPRODUCED]
    if claim.expects in (LESS, MORE, MOST) and claim.published is None:
        accepted.append(DIRECTION)

    do_agree = []
    for level in levels:
        judged = judge_bars(level.bar_figures[claim.figure], [claim], level.exact)
        do_agree.append(judged.statements[0].outcome in accepted)
    return Item(claim.figure, claim.says, Published(), bars=(), agrees=tuple(do_agree))
