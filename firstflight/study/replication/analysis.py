"""How many published numbers come out, clean and with each cause switched on in turn.

What is published is, by what a scenario has: raw values of single cells, or
statements in words, or bars. Each is one number to agree with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from firstflight.findings.bar import Bar
from firstflight.findings.claims import DIRECTION, REPRODUCED
from firstflight.study.fetches.figures import kinds
from firstflight.study.fetches.figures.bar_figure import BarFigure, NoBars
from firstflight.study.fetches.figures.bar_cells import of_sweep
from firstflight.study.fetches.figures.claims import judge_bars
from firstflight.study.fetches.figures.raw_cells import published_cells
from firstflight.study.fetches.scenario.causes import (GROUPS, GROUP_OF, AsPublished, ClockReading,
                                                       Level, levels as levels_of)
from firstflight.study.fetches.scenario.scenario import Figure, Scenario
from firstflight.study.fetches.scenario.sweep import bucket_value
from firstflight.study.fetches.scenario.trial import Trial
from firstflight.study.fetches.verify.record import Record


@dataclass(frozen=True)
class Side:
    """What one side has of a number: ms, and percent as the source counts it; None for none."""

    ms: float | None = None
    percent: float | None = None


@dataclass(frozen=True)
class Item:
    """One published number, or statement, and ours at every level.

    figure: its name; label: of the bar, or the statement. ours: () of a
    statement, which only agrees or does not. constant: its fetch never connected, so
    that no TCP decided what was published, but the number that their script then had.
    """

    figure: str
    label: str
    published: Side
    ours: tuple[Side, ...]
    agrees: tuple[bool, ...]
    constant: bool = False


@dataclass(frozen=True)
class Measured:
    """The scenario at one level: its figures, and the records as its script would read them.

    constants: trials whose time it only took for one, of fetches that never connected.
    """

    of: AsPublished
    level: Level
    scenario: Scenario
    records: Sequence[Record]
    bar_figures: dict[str, BarFigure]
    missing: dict[str, str]
    exact: bool
    constants: frozenset[Trial] = frozenset()


def as_read(reading: ClockReading, record: Record) -> Record:
    """The record with the time that such a script would have written down."""
    if record.failed_as_expected and reading.failed_ms:
        return replace(record, ok=True, total_ms=reading.failed_ms)
    if reading.process_ms and record.counts and record.total_ms is not None:
        return replace(record, total_ms=record.total_ms + reading.process_ms)
    return record


def read_levels(scenario: Scenario, setup: AsPublished, records: Sequence[Record],
             exact: bool) -> list[Measured]:
    """Every level, the clean one first; exact: measured in virtual time."""
    made = []
    for level in levels_of(scenario.sweeps, setup.causes):
        there = replace(scenario, sweeps=level.sweeps)
        read = [as_read(level.reading, record) for record in records]
        bar_figures, missing = kinds.bar_figures(there, read)
        constants = (record.trial for record in records if record.failed_as_expected)
        made.append(Measured(setup, level, there, read, bar_figures, missing, exact, frozenset(
            constants if level.reading.failed_ms else ())))
    return made


def items(scenario: Scenario, levels: Sequence[Measured]) -> list[Item]:
    """All that is counted. Raises NoBars where the first or the last level lacks a figure.

    Between the two a figure may lack bars, whose fetches fail until they are read
    as their script did; they agree with nothing there.
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
    """How many agree at each level."""
    return [sum(agrees) for agrees in zip(*(item.agrees for item in items))]


def by_group(setup: AsPublished, counted: Sequence[int]) -> list[tuple[str, int]]:
    """How many agree with all causes of a group and those before it, by the group's name.

    counted: at each level. A group of which there is no cause is left out.
    """
    last: dict[str, int] = {}
    for cause, count in zip(setup.causes, counted[1:]):
        last[GROUPS[GROUP_OF[cause.known]]] = count
    return list(last.items())


def bars(figure: Figure, levels: Sequence[Measured]) -> list[Item]:
    """The bars of a figure; what is not published of a bar cannot differ."""
    count = len(levels[0].bar_figures[figure.name].bars)
    own = [record.trial for record in of_sweep(levels[-1].scenario.sweep(figure.sweep),
                                               levels[-1].records)]
    real, constant = ({bucket_value(figure.by, trial) for trial in own
                       if (trial in levels[-1].constants) == is_constant}
                      for is_constant in (False, True))
    there = [level.bar_figures[figure.name].bars
             if figure.name in level.bar_figures else (None,) * count
             for level in levels]
    return [replace(item, constant=bar.value in constant - real) for item, bar in zip(
        (_item(figure.name, of_levels, levels) for of_levels in zip(*there)),
        levels[0].bar_figures[figure.name].bars)]


def _item(figure: str, bars: Sequence[Bar | None], levels: Sequence[Measured]) -> Item:
    """One bar at every level, None where a level lacks it; the first level has it."""
    setup, first = levels[0].of, bars[0]
    assert first is not None
    is_sweep = levels[0].bar_figures[figure].is_sweep
    published = (Side(first.published.level) if is_sweep else
                 Side(first.published.absolute, first.published_percent))
    ours, agrees = [], []
    for bar, level in zip(bars, levels):
        side = (Side() if bar is None else Side(bar.difference.experiment.value) if is_sweep else
                Side(bar.difference.absolute.value, bar.percent.value))
        cut = level.level.reading.truncated and not is_sweep
        ours.append(side)
        agrees.append((published.ms is None or setup.agrees(side.ms, published.ms, cut))
                      and (published.percent is None or setup.agrees_in_points(
                          side.percent, published.percent, cut, first.published.error_points)))
    return Item(figure, first.label, published, tuple(ours), tuple(agrees))


def _raw(cells: Sequence[Any], levels: Sequence[Measured]) -> list[Item]:
    setup, of_trial = levels[0].of, cells[-1].of_trial
    items = []
    constants = [of_trial[trial] for trial in of_trial.keys() & levels[-1].constants]
    for rows in zip(*(level.rows for level in cells)):
        row = rows[0]
        items.append(Item(
            "raw", f"IW {row.initcwnd}, {row.rtt_ms:g} ms, {row.bandwidth_kbps:g} kbit/s",
            Side(row.published_ms), tuple(Side(level_row.measured_ms) for level_row in rows),
            tuple(setup.agrees(level_row.measured_ms, row.published_ms) for level_row in rows),
            constant=rows[-1] in constants))
    return items


def _statement(place: int, levels: Sequence[Measured]) -> Item:
    claim = levels[0].scenario.claims[place]
    statements = [judge_bars(level.bar_figures[claim.figure], [claim], level.exact).statements[0]
            for level in levels]
    return Item(claim.figure, claim.says, Side(), (),
                tuple(statement.outcome == REPRODUCED or bool(claim.larger or claim.most)
                      and statement.outcome == DIRECTION for statement in statements))
