"""Runs side by side: the same cells paired, what differs in numbers, and in what was requested.

A cell is all parameters of a trial but for its number and what is drawn at random.
Of each cell the runs' means are compared, over repeats; the whole is the mean
difference over all cells that the runs share.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from base import words
from base.errors import UsageError
from base.stats import Estimate, estimate
from findings import quantities
from findings.charts import Line, LineChart, Plot
from findings.findings import Cell, Column, Finding, Interval, Report, Table
from runs.kinds import RunData
from runs.reporting import MOST_ROWS, mapping
from runs.results.cells import Cells, grouped
from runs.results.records import Record, varied

METRICS = ("total_ms", "mean_ms", "finish_ms")  # the first that a kind's records have
DRAWN = ("scenario", "repeat", "seed", "weight")  # of a trial, and no part of its cell
# Keys of run.json that hold what was requested and with what, and what differs each time anyway.
OF_ONE_RUN = {"arguments", "asked", "finished_at", "first_record_after_s", "resumed",
              "scenario_file", "started_at", "trials", "wall_s", "emulated_s", "state"}

Key = tuple[tuple[str, object], ...]


@dataclass(frozen=True)
class ComparedCells:
    """One cell of two runs: the means in both, and the second less the first."""

    cell: dict[str, object]
    first: float
    second: float
    difference: Estimate


def names(folders: Sequence[Path]) -> dict[Path, str]:
    """A name for each run: its scenario, and its folder where several are of one."""
    of_scenario = {folder: folder.resolve().parent.name for folder in folders}
    alone = Counter(of_scenario.values())
    return {folder: name if alone[name] == 1 else folder.resolve().name
            for folder, name in of_scenario.items()}


def report(runs: Sequence[tuple[str, RunData]]) -> Report:
    """What the second and further runs have otherwise than the first. Raises UsageError.

    runs: each with a name for the reader.
    """
    (base_name, base), *others = runs
    metric = _metric(base)
    pairs = {name: _pairs(base, run, metric) for name, run in others}
    for name, cells in pairs.items():
        if not cells:
            raise UsageError(f"{name}: shares no cell with {base_name}; runs are compared where"
                             " they measured the same network, response and window")
    return Report(
        name="comparison", title=f"{base_name} beside {', '.join(pairs)}",
        claim="Runs compared", source="", path="", facts={},
        verified=sum(record.counts for _, run in runs for record in run.records),
        count=sum(len(run.records) for _, run in runs),
        findings=(Finding(
            "comparison", "The same cells in each run",
            (_whole(pairs, metric), _differs(runs), _each(pairs, metric)),
            text="The difference of each cell that the runs share. " + " ".join(
                _sentence(name, cells) for name, cells in pairs.items()),
            chart=_chart(base_name, pairs, metric)),),
        summary=tuple(_sentence(name, cells) for name, cells in pairs.items()))


# Cells -------------------------------------------------------------------------------

def _metric(run: RunData) -> str:
    for name in METRICS:
        if run.records and hasattr(run.records[0], name):
            return name
    raise UsageError(f"{run.folder}: holds nothing that can be compared: none of"
                     f" {', '.join(METRICS)}")


def _pairs(first: RunData, second: RunData, metric: str) -> list[ComparedCells]:
    """The cells that both runs have, in the order of the first; values in that of the repeats."""
    base, other = ({cell: numbers for cell, records in grouped(run.records, _cell).items()
                    if (numbers := Cells(records).numbers(metric))} for run in (first, second))
    return [ComparedCells(dict(cell), sum(values) / len(values),
                          sum(other[cell]) / len(other[cell]), _difference(values, other[cell]))
            for cell, values in base.items() if cell in other]


def _cell(record: Record) -> Key:
    return tuple((column.name, getattr(record.trial, column.name))
                 for column in fields(record.trial) if column.name not in DRAWN)


def _difference(first: Sequence[float], second: Sequence[float]) -> Estimate:
    """Paired where both were measured as often: repeats of one number meet the same chance."""
    if len(first) == len(second):
        return estimate([after - before for before, after in zip(first, second)])
    return Estimate(sum(second) / len(second) - sum(first) / len(first), None, len(second))


# Tables ------------------------------------------------------------------------------

def _sentence(name: str, pairs: Sequence[ComparedCells]) -> str:
    over = estimate([pair.difference.value for pair in pairs])
    interval = f" ({words.between(over.interval)})" if over.interval else ""
    return (f"{name}: {words.number(over.value, signed=True)} ms{interval} in the mean of"
            f" {len(pairs)} cells.")


def _whole(pairs: Mapping[str, Sequence[ComparedCells]], metric: str) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name, cells in pairs.items():
        over = estimate([pair.difference.value for pair in cells])
        rows.append((name, len(cells), sum(pair.first for pair in cells) / len(cells),
                     sum(pair.second for pair in cells) / len(cells), over.value,
                     "" if over.interval is None else Interval(*over.interval),
                     min(pair.difference.value for pair in cells),
                     max(pair.difference.value for pair in cells)))
    what = quantities.quantity(metric).head or metric
    return Table(f"All shared cells: {what} in ms", (
        Column("run", is_text=True), Column("cells"), Column("first", "ms", "mean"),
        Column("this", "ms", "mean"), Column("mean", "ms", "difference", digits=3, signed=True),
        Column("95 % interval", "ms", "difference"),
        Column("least", "ms", "difference", digits=3, signed=True),
        Column("most", "ms", "difference", digits=3, signed=True)), tuple(rows))


def _differs(runs: Sequence[tuple[str, RunData]]) -> Table:
    """What differs between the runs' run.json: kernel, sysctls, seed, tools, machine."""
    descriptions = [dict(_flat(run.facts)) for _, run in runs]
    names = sorted({name for facts in descriptions for name in facts})
    rows = [(name, *(facts.get(name, "") for facts in descriptions)) for name in names
            if len({facts.get(name, "") for facts in descriptions}) > 1]
    return Table("What was requested or used differently", (
        Column("of run.json", is_text=True), *(Column(name, is_text=True) for name, _ in runs)),
        tuple(rows), () if rows else ("Nothing: the runs say the same of themselves.",))


def _flat(facts: Mapping[str, object], above: str = "") -> Iterable[tuple[str, str]]:
    for name, value in facts.items():
        if above or name not in OF_ONE_RUN:
            inner = mapping(value)
            if inner:
                yield from _flat(inner, f"{above}{name}.")
            else:
                yield f"{above}{name}", value if isinstance(value, str) else json.dumps(value)


def _each(pairs: Mapping[str, Sequence[ComparedCells]], metric: str) -> Table:
    """A row a cell; without what is the same in all of them."""
    every = [pair.cell for cells in pairs.values() for pair in cells]
    values = {name: [_plain(cell.get(name)) for cell in every] for name in every[0]}
    swept = varied(values)
    columns = [Column(_head(name), quantities.quantity(name).unit,
                      is_text=any(isinstance(cell.get(name), str) for cell in every))
               for name in swept]
    rows: list[tuple[Cell, ...]] = []
    for name, cells in pairs.items():
        for pair in cells:
            base = pair.first
            rows.append((name, *(_plain(pair.cell.get(column)) for column in swept), pair.first,
                         pair.second, pair.difference.value,
                         "" if pair.difference.interval is None else
                         Interval(*pair.difference.interval),
                         100 * pair.difference.value / base if base else None))
    return Table("Each cell", (
        Column("run", is_text=True, is_filter=True), *columns, Column("first", "ms", "mean"),
        Column("this", "ms", "mean"), Column("mean", "ms", "difference", digits=3, signed=True),
        Column("95 % interval", "ms", "difference"),
        Column("mean", "%", "difference", signed=True)), tuple(rows)).first(MOST_ROWS)


def _plain(value: object) -> str:
    return words.plain(value) if isinstance(value, (int, float)) else str(value or "")


def _head(name: str) -> str:
    return quantities.quantity(name).head or name.replace("_", " ")


# The figure --------------------------------------------------------------------------

def _chart(base_name: str, pairs: Mapping[str, Sequence[ComparedCells]], metric: str) -> LineChart:
    """The difference of each cell, with its interval, from left to right in the run's order."""
    lines = tuple(Line(name, tuple(map(float, range(1, len(cells) + 1))),
                       tuple(pair.difference.value for pair in cells),
                       tuple(pair.difference.interval for pair in cells), look, "points")
                  for look, (name, cells) in enumerate(pairs.items(), start=1))
    return LineChart(
        "The same cells in each run", (f"{quantities.quantity(metric).axis}, less that of"
                                       f" {base_name}",),
        "cells in the order of the first run · bars: 95 % intervals over repeats",
        columns=((Plot("cell", "difference (ms)", lines, zero=True, whole=False),),),
        legend=True)
