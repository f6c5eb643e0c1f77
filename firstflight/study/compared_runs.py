"""Compare runs: the difference of each cell that they share, and of what was requested.

A cell has all parameters of a trial except its repeat and what is drawn at random. The means of
each cell are compared, and the mean over all shared cells. Intervals are over what was drawn,
repeats or clients; cells were chosen, not drawn.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from firstflight.base import words
from firstflight.base.errors import UsageError
from firstflight.base.quantity import Quantity
from firstflight.figures.compare import Row, by_cell, difference, student_over_draws
from firstflight.findings.charts import Line, LineChart, Plot
from firstflight.findings.claims import Ends
from firstflight.findings.difference import Difference
from firstflight.findings.findings import Cell, Column, Finding, Interval, Report, Table
from firstflight.findings.quantities import FLAGS, of_column
from firstflight.parameters import SERVER, TCP, TLS, of_subject
from firstflight.runs.kinds import AnyRun
from firstflight.runs.reporting import MOST_ROWS, mapping
from firstflight.runs.results.cells import Cells, grouped
from firstflight.runs.results.records import Record, quantity_of, requested_fields, varied
from firstflight.setting import draws

# Fields of a trial that its cell does not have.
DRAWN = ("scenario", "repeat", "seed", "weight", "phase_ms", *draws.NOT_DRAWN)
# The hosts' own parameters: runs that have one value each are compared although it differs.
OF_HOSTS = tuple(row.name for subject in (TCP, TLS, SERVER) for row in of_subject(subject))
MOST_NAMED = 6  # differences in a sentence
# Keys of run.json that differ between any two runs.
OF_ONE_RUN = {"arguments", "asked", "earlier_runs", "emulated_s", "finished_at",
              "first_record_after_s", "resumed", "scenario_file", "started_at", "state", "trials",
              "wall_s", "what_ifs"}

Key = tuple[tuple[str, object], ...]
Tables = Mapping[str, Sequence[Row]]  # for each further run by name, its values and the first's
FIRST, OTHER = "first", "other"  # the run of a row in such a table


def names(folders: Sequence[Path]) -> dict[Path, str]:
    """A name for each run: its scenario, or its folder where several runs have one scenario."""
    of_scenario = {folder: folder.resolve().parent.name for folder in folders}
    alone = Counter(of_scenario.values())
    return {folder: name if alone[name] == 1 else folder.resolve().name
            for folder, name in of_scenario.items()}


def report(runs: Sequence[tuple[str, AnyRun]]) -> Report:
    """How further runs differ from the first. runs: with their names. Raises UsageError."""
    (base_name, base), *others = runs
    metric = _compared(base)
    if metric is None:
        raise UsageError(f"{base.folder}: holds nothing that can be compared")

    tables = {name: _shared(base, run, metric.name) for name, run in others}
    for name, rows in tables.items():
        if not rows:
            raise UsageError(f"{name}: shares no cell with {base_name}; runs are compared where"
                             " they measured the same network, response and window")

    differs = _differs(runs, metric.name)
    return Report(
        name="comparison", title=f"{base_name} beside {', '.join(tables)}",
        claim="Runs compared", source="", path="", facts={},
        verified=sum(record.counts for _, run in runs for record in run.records),
        count=sum(len(run.records) for _, run in runs),
        findings=(Finding(
            "comparison", "The same cells in each run",
            (differs, _whole(tables, metric), *_others(base, others), _each(tables)),
            chart=_chart(base_name, tables, metric)),),
        summary=(_different(differs), *(_sentence(name, rows) for name, rows in tables.items())))


def _compared(run: AnyRun) -> Quantity | None:
    """What runs of this kind are compared by; None where a run holds nothing of it."""
    kind: type[Record] = type(run.records[0]) if run.records else Record
    return quantity_of(kind, kind.COMPARED) if kind.COMPARED else None


# Cells -------------------------------------------------------------------------------

def _shared(first: AnyRun, second: AnyRun, metric: str) -> list[Row]:
    """The values of the cells that both runs have, in the order of the first run."""
    without = [name for name in OF_HOSTS
               if len(_ones(first, name)) == len(_ones(second, name)) == 1]
    base, other = _values(first, metric, without), _values(second, metric, without)
    rows = []
    for cell in base:
        if cell in other:
            for run, values in ((FIRST, base[cell]), (OTHER, other[cell])):
                rows += [Row(cell, run, draw, 1.0, value) for draw, value in values.items()]
    return rows


def _ones(run: AnyRun, name: str) -> set[Any]:
    """The values of a parameter that a run's trials have; none of a kind without it."""
    return {getattr(record.trial, name) for record in run.records if hasattr(record.trial, name)}


def _values(run: AnyRun, metric: str,
            without: Collection[str] = ()) -> dict[Key, dict[Key, float]]:
    """The values that count, by cell and by what was drawn for each.

    without: parameters by which cells are not distinguished.
    """
    if not run.records:
        return {}
    names = [column.name for column in requested_fields(type(run.records[0].trial))
             if column.name not in (*DRAWN, *without)]

    def cell_key(record: Record) -> Key:
        return tuple((name, getattr(record.trial, name)) for name in names)

    by_cell_key = {}
    for cell, records in grouped(run.records, cell_key).items():
        values: dict[Key, float] = {}
        for record in records:
            values.update((_drawn(record), number) for number in Cells([record]).numbers(metric))
        if values:
            by_cell_key[cell] = values
    return by_cell_key


def _drawn(record: Record) -> Key:
    """What was drawn for a record: its client if it has one, and its repeat or seed."""
    trial = record.trial
    is_client = hasattr(trial, "part") and hasattr(trial, "sample") and bool(trial.part)
    names = (*(("part", "sample") if is_client else ()),
             "repeat" if hasattr(trial, "repeat") else "seed")
    return tuple((name, getattr(trial, name)) for name in names)


def _what_was_drawn(rows: Sequence[Row]) -> str:
    """What the intervals are over: "clients", "repeats" or "seeds"."""
    named = rows[0].unit[0][0]
    return {"part": "clients"}.get(named, f"{named}s")


def _difference(rows: Sequence[Row]) -> Difference:
    """How much more the other run has than the first."""
    of_clients = _what_was_drawn(rows) == "clients"
    return difference(rows, FIRST, OTHER, partial(student_over_draws, of_clients=of_clients), -1)


# Tables ------------------------------------------------------------------------------

def _sentence(name: str, rows: Sequence[Row]) -> str:
    whole = _difference(rows)
    more = whole.absolute
    interval = (f" ({words.format_interval(more.interval)}, over {more.n} {_what_was_drawn(rows)})"
                if more.interval else "")
    return (f"{name}: {words.format_number(more.value, signed=True)} ms{interval} in the mean of"
            f" {whole.cells} cells{'.' if interval else ', with nothing drawn more than once.'}")


def _interval(ends: Ends | None) -> Cell:
    return "" if ends is None else Interval(*ends)


def _name(metric: Quantity) -> str:
    return (metric.head or metric.name).removesuffix(" ms")


def _whole(tables: Tables, metric: Quantity) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name, table in tables.items():
        whole = _difference(table)
        of_cells = [_difference(cell).absolute.value for cell in by_cell(table).values()]
        rows.append((name, whole.cells, whole.base.value, whole.experiment.value,
                     whole.absolute.value, _interval(whole.absolute.interval), min(of_cells),
                     max(of_cells)))
    return Table(f"All shared cells: {_name(metric)} in ms", (
        Column("run", is_text=True), Column("cells"), Column("first", "ms", "mean"),
        Column("this", "ms", "mean"), Column("mean", "ms", "difference", digits=3, signed=True),
        Column("95 % interval", "ms", "difference"),
        Column("least", "ms", "difference", digits=3, signed=True),
        Column("most", "ms", "difference", digits=3, signed=True)), tuple(rows))


def _others(base: AnyRun, runs: Sequence[tuple[str, AnyRun]]) -> list[Table]:
    """The table of what is compared besides, over all shared cells that have it; [] for nothing."""
    kind: type[Record] = type(base.records[0])
    rows: list[tuple[Cell, ...]] = []
    for quantity in [quantity_of(kind, name) for name in kind.ALSO_COMPARED]:
        for name, run in runs:
            if table := _shared(base, run, quantity.name):
                whole = _difference(table)
                rows.append((_name(quantity), name, whole.cells, whole.base.value,
                             whole.experiment.value, whole.absolute.value,
                             _interval(whole.absolute.interval)))
    columns = (Column("what", is_text=True), Column("run", is_text=True), Column("cells"),
               Column("first", "ms", "mean"), Column("this", "ms", "mean"),
               Column("mean", "ms", "difference", digits=3, signed=True),
               Column("95 % interval", "ms", "difference"))
    return [Table("All shared cells: other times in ms", columns, tuple(rows))] if rows else []


def _different(differs: Table) -> str:
    """The first differences, in a sentence."""
    named = []
    for name, *values in differs.rows[:MOST_NAMED]:
        shown = " / ".join(str(value)[:24] or "not recorded" for value in values)
        named.append(f"{name} ({shown})")
    if len(differs.rows) > len(named):
        named.append(f"{len(differs.rows) - len(named)} more")
    return f"Different: {', '.join(named)}." if named else differs.notes[0]


def _differs(runs: Sequence[tuple[str, AnyRun]], metric: str) -> Table:
    """What differs between the runs: cells, repeats, and run.json's kernel, sysctls, seed, tools.
    """
    descriptions = []
    for _, run in runs:
        counts = sorted(map(len, _values(run, metric).values()))
        repeats = "–".join(dict.fromkeys((str(counts[0]), str(counts[-1])))) if counts else "0"
        facts = {"cells": str(len(counts)), "repeats of a cell": repeats}
        for name in OF_HOSTS:
            facts[_flag(name)] = ", ".join(sorted(map(_plain, _ones(run, name))))
        descriptions.append(facts | dict(_flat(run.facts)))

    others = sorted(set(chain.from_iterable(descriptions)))
    names = dict.fromkeys(("cells", "repeats of a cell", *map(_flag, OF_HOSTS), *others))
    rows = []
    for name in names:
        values = [facts.get(name, "") for facts in descriptions]
        if len(set(values)) > 1:
            rows.append((name, *values))

    columns = (Column("what", is_text=True), *(Column(name, is_text=True) for name, _ in runs))
    return Table("What was requested or used differently", columns, tuple(rows),
                 () if rows else ("Nothing: the runs record the same facts.",))


def _flag(name: str) -> str:
    return FLAGS[name].flag if name in FLAGS else name


def _flat(facts: Mapping[str, object], above: str = "") -> Iterable[tuple[str, str]]:
    for name, value in facts.items():
        if above or name not in OF_ONE_RUN:
            inner = mapping(value)
            if inner:
                yield from _flat(inner, f"{above}{name}.")
            else:
                yield f"{above}{name}", value if isinstance(value, str) else json.dumps(value)


def _each(tables: Tables) -> Table:
    """A row for each cell, with the parameters that the cells vary."""
    every = [dict(key) for key in chain.from_iterable(map(by_cell, tables.values()))]
    values = {}
    for name in every[0]:
        values[name] = [_plain(cell.get(name)) for cell in every]
    swept = varied(values)
    columns = []
    for name in swept:
        is_text = any(isinstance(cell.get(name), str) for cell in every)
        columns.append(Column(_head(name), of_column(name).unit, is_text=is_text))

    rows: list[tuple[Cell, ...]] = []
    for name, table in tables.items():
        for key, of_cell in by_cell(table).items():
            cell, change = dict(key), _difference(of_cell)
            rows.append((name, *(_plain(cell.get(column)) for column in swept), change.base.value,
                         change.experiment.value, change.absolute.value,
                         _interval(change.absolute.interval),
                         change.percent.value if change.base.value else None))

    return Table("Each cell", (
        Column("run", is_text=True, is_filter=True), *columns, Column("first", "ms", "mean"),
        Column("this", "ms", "mean"), Column("mean", "ms", "difference", digits=3, signed=True),
        Column("95 % interval", "ms", "difference"),
        Column("mean", "%", "difference", signed=True)), tuple(rows)).first(MOST_ROWS)


def _plain(value: object) -> str:
    return words.plain(value) if isinstance(value, (int, float)) else str(value or "")


def _head(name: str) -> str:
    return of_column(name).head or name.replace("_", " ")


# The figure --------------------------------------------------------------------------

def _chart(base_name: str, tables: Tables, metric: Quantity) -> LineChart:
    """The difference of each cell with its interval, from left to right in the run's order."""
    lines: list[Line] = []
    drawn: list[str] = []  # what was drawn, of each run that has intervals
    for look, (name, table) in enumerate(tables.items(), start=1):
        changes = [_difference(cell).absolute for cell in by_cell(table).values()]
        if any(change.interval for change in changes):
            drawn.append(_what_was_drawn(table))
        lines.append(Line(name, tuple(map(float, range(1, len(changes) + 1))),
                          tuple(change.value for change in changes),
                          tuple(change.interval for change in changes), look, "points"))

    over = (f"bars: 95 % intervals over {drawn[0]}" if drawn else
            "no bars: nothing was drawn twice for a cell")
    return LineChart(
        "The same cells in each run", (f"{metric.axis}, less that of {base_name}",),
        f"cells in the order of the first run · {over}",
        columns=((Plot("cell", "difference (ms)", tuple(lines), zero=True, whole=False),),),
        legend=True)
