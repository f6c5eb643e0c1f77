"""Runs side by side: the same cells paired, what differs in numbers, and in what was requested.

A cell is all parameters of a trial but for its number and what is drawn at random.
Of each cell the runs' means are compared, over repeats; the whole is the mean
difference over all cells that the runs share. Its interval is over what was drawn, repeats or
clients: which cells there are was chosen.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from base import words
from base.errors import UsageError
from base.stats import CONFIDENCE, Estimate
from findings import quantities
from findings.charts import Line, LineChart, Plot
from findings.findings import Cell, Column, Finding, Interval, Report, Table
from runs.kinds import RunData
from runs.reporting import MOST_ROWS, mapping
from runs.results.cells import Cells, grouped
from runs.results.records import Record, requested_fields, varied

DRAWN = ("scenario", "repeat", "seed", "weight")  # of a trial, and no part of its cell
MOST_TOLD = 6  # differences, in a sentence
# Keys of run.json that hold what was requested and with what, and what differs each time anyway.
OF_ONE_RUN = {"arguments", "asked", "finished_at", "first_record_after_s", "resumed",
              "scenario_file", "started_at", "trials", "wall_s", "emulated_s", "state"}

Key = tuple[tuple[str, object], ...]


@dataclass(frozen=True)
class ComparedCells:
    """One cell of two runs: of both the values by what was drawn for them; _drawn()."""

    cell: dict[str, object]
    first: Mapping[Key, float]
    second: Mapping[Key, float]

    @cached_property
    def difference(self) -> Estimate:
        return _over([self])


def names(folders: Sequence[Path]) -> dict[Path, str]:
    """A name for each run: its scenario, and its folder where several are of one."""
    of_scenario = {folder: folder.resolve().parent.name for folder in folders}
    alone = Counter(of_scenario.values())
    return {folder: name if alone[name] == 1 else folder.resolve().name
            for folder, name in of_scenario.items()}


def report(runs: Sequence[tuple[str, RunData]]) -> Report:
    """How further runs differ from the first. Raises UsageError.

    runs: each with a name for the reader.
    """
    (base_name, base), *others = runs
    metric = base.records[0].COMPARED if base.records else ""
    if not metric:
        raise UsageError(f"{base.folder}: holds nothing that can be compared")
    pairs = {name: _pairs(base, run, metric) for name, run in others}
    for name, cells in pairs.items():
        if not cells:
            raise UsageError(f"{name}: shares no cell with {base_name}; runs are compared where"
                             " they measured the same network, response and window")
    differs = _differs(runs, metric)
    return Report(
        name="comparison", title=f"{base_name} beside {', '.join(pairs)}",
        claim="Runs compared", source="", path="", facts={},
        verified=sum(record.counts for _, run in runs for record in run.records),
        count=sum(len(run.records) for _, run in runs),
        findings=(Finding(
            "comparison", "The same cells in each run",
            (differs, _whole(pairs, metric), _each(pairs, metric)),
            chart=_chart(base_name, pairs, metric)),),
        summary=(_different(differs), *(_sentence(name, cells) for name, cells in pairs.items())))


# Cells -------------------------------------------------------------------------------

def _pairs(first: RunData, second: RunData, metric: str) -> list[ComparedCells]:
    """The cells that both runs have, in the order of the first; values in that of the repeats."""
    base, other = _values(first, metric), _values(second, metric)
    return [ComparedCells(dict(cell), values, other[cell])
            for cell, values in base.items() if cell in other]


def _values(run: RunData, metric: str) -> dict[Key, dict[Key, float]]:
    """The values that count, by cell and by what was drawn for each."""
    if not run.records:
        return {}
    names = [column.name for column in requested_fields(type(run.records[0].trial))
             if column.name not in DRAWN]

    def cell_of(record: Record) -> Key:
        return tuple((name, getattr(record.trial, name)) for name in names)

    return {cell: values for cell, records in grouped(run.records, cell_of).items()
            if (values := {_drawn(record): number for record in records
                           for number in Cells([record]).numbers(metric)})}


def _drawn(record: Record) -> Key:
    """What was drawn for a record: its client where it has one, and its repeat, or its seed."""
    trial = record.trial
    names = (*(("part", "sample") if hasattr(trial, "part") and trial.part else ()),
             "repeat" if hasattr(trial, "repeat") else "seed")
    return tuple((name, getattr(trial, name)) for name in names)


def _what_was_drawn(pairs: Sequence[ComparedCells]) -> str:
    """What intervals are over: "clients", or "repeats", or "seeds"."""
    named = next(iter(pairs[0].first))[0][0]
    return {"part": "clients"}.get(named, f"{named}s")


def _mean(values: Mapping[Key, float]) -> float:
    return math.fsum(values.values()) / len(values)


def _over(pairs: Sequence[ComparedCells]) -> Estimate:
    """The mean difference, and its Student interval over what was drawn.

    Each draw moves the mean by how far its values are from what is expected of them: the mean of
    their cell, and of a client's, which no other client has, that of all. One draw's values in
    several cells, and in both runs, move it together.
    """
    moved: dict[Key, float] = {}
    ends, draws, of_clients = [], [], pairs[0].cell.get("part")
    for sign, side in ((-1, [pair.first for pair in pairs]), (1, [pair.second for pair in pairs])):
        means = list(map(_mean, side))
        whole = math.fsum(means) / len(means)
        for values, mean in zip(side, means):
            expected = whole if of_clients else mean
            for draw, value in values.items():
                moved[draw] = moved.get(draw, 0.0) + sign * (value - expected) / len(values)
        ends.append(whole)
        draws.append(len(set().union(*side)) if of_clients else max(map(len, side)))
    mean, n = ends[1] - ends[0], min(draws)
    if n == 1:
        return Estimate(mean, None, n)
    from scipy import stats
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1)) / len(pairs) * math.sqrt(
        math.fsum(by ** 2 for by in moved.values()) * n / (n - 1))
    return Estimate(mean, (mean - half, mean + half), n)


# Tables ------------------------------------------------------------------------------

def _sentence(name: str, pairs: Sequence[ComparedCells]) -> str:
    over = _over(pairs)
    interval = (f" ({words.between(over.interval)}, over {over.n} {_what_was_drawn(pairs)})"
                if over.interval else "")
    return (f"{name}: {words.number(over.value, signed=True)} ms{interval} in the mean of"
            f" {len(pairs)} cells{'.' if interval else ', with nothing drawn more than once.'}")


def _whole(pairs: Mapping[str, Sequence[ComparedCells]], metric: str) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name, cells in pairs.items():
        over = _over(cells)
        rows.append((name, len(cells), math.fsum(_mean(pair.first) for pair in cells) / len(cells),
                     math.fsum(_mean(pair.second) for pair in cells) / len(cells), over.value,
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


def _different(differs: Table) -> str:
    """The first differences, in a sentence."""
    told = [f"{name} ({' / '.join(str(value)[:24] or 'not recorded' for value in values)})"
            for name, *values in differs.rows[:MOST_TOLD]]
    if len(differs.rows) > len(told):
        told.append(f"{len(differs.rows) - len(told)} more")
    return f"Different: {', '.join(told)}." if told else differs.notes[0]


def _differs(runs: Sequence[tuple[str, RunData]], metric: str) -> Table:
    """What differs between the runs: cells, repeats; of run.json kernel, sysctls, seed, tools."""
    descriptions = []
    for _, run in runs:
        counts = sorted(map(len, _values(run, metric).values()))
        repeats = "–".join(dict.fromkeys((str(counts[0]), str(counts[-1])))) if counts else "0"
        descriptions.append({"cells": str(len(counts)), "repeats of a cell": repeats}
                            | dict(_flat(run.facts)))
    names = list(dict.fromkeys(("cells", "repeats of a cell", *sorted(
        name for facts in descriptions for name in facts))))
    rows = [(name, *(facts.get(name, "") for facts in descriptions)) for name in names
            if len({facts.get(name, "") for facts in descriptions}) > 1]
    return Table("What was requested or used differently", (
        Column("what", is_text=True), *(Column(name, is_text=True) for name, _ in runs)),
        tuple(rows), () if rows else ("Nothing: the runs record the same facts.",))


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
            base, difference = _mean(pair.first), pair.difference
            rows.append((name, *(_plain(pair.cell.get(column)) for column in swept), base,
                         _mean(pair.second), difference.value,
                         "" if difference.interval is None else Interval(*difference.interval),
                         100 * difference.value / base if base else None))
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
    over = next((f"bars: 95 % intervals over {_what_was_drawn(cells)}"
                 for cells in pairs.values() for pair in cells if pair.difference.interval),
                "no bars: nothing was drawn twice for a cell")
    lines = tuple(Line(name, tuple(map(float, range(1, len(cells) + 1))),
                       tuple(pair.difference.value for pair in cells),
                       tuple(pair.difference.interval for pair in cells), look, "points")
                  for look, (name, cells) in enumerate(pairs.items(), start=1))
    return LineChart(
        "The same cells in each run", (f"{quantities.quantity(metric).axis}, less that of"
                                       f" {base_name}",),
        f"cells in the order of the first run · {over}",
        columns=((Plot("cell", "difference (ms)", lines, zero=True, whole=False),),),
        legend=True)
