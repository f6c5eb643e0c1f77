"""Compares runs: the difference of each cell that they share, and of what was requested.

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
FIRST, OTHER = "first", "other"  # the run of a row, in a comparison of two
# By the name of each further run: the values of the cells that it shares with the first run, those
# of the first run included.
SharedCells = Mapping[str, Sequence[Row]]
# What _difference_cells returns.
_DIFFERENCE_COLUMNS = (Column("first", "ms", "mean"), Column("this", "ms", "mean"),
                       Column("mean", "ms", "difference", digits=3, signed=True),
                       Column("95 % interval", "ms", "difference"))


def names(folders: Sequence[Path]) -> dict[Path, str]:
    """A name for each run: its scenario, or its folder where several runs have one scenario."""
    of_scenario = {folder: folder.resolve().parent.name for folder in folders}
    counts = Counter(of_scenario.values())
    return {folder: name if counts[name] == 1 else folder.resolve().name
            for folder, name in of_scenario.items()}


def report(runs: Sequence[tuple[str, AnyRun]]) -> Report:
    """How further runs differ from the first. runs: with their names. Raises UsageError."""
    (base_name, base), *others = runs
    metric = _compared_metric(base)
    if metric is None:
        raise UsageError(f"{base.folder}: holds nothing that can be compared")

    shared = {name: _shared_cells(base, run, metric.name) for name, run in others}
    for name, rows in shared.items():
        if not rows:
            raise UsageError(f"{name}: shares no cell with {base_name}; runs are compared where"
                             " they measured the same network, response and window")

    settings = _settings_table(runs, metric.name)
    tables = (settings, _overall_table(shared, metric), *_other_metrics_tables(base, others),
              _cells_table(shared))
    finding = Finding("comparison", "The same cells in each run", tables,
                      chart=_chart(base_name, shared, metric))
    overall = [_overall_sentence(name, rows) for name, rows in shared.items()]
    records = [record for _, run in runs for record in run.records]
    return Report(
        name="comparison", title=f"{base_name} beside {', '.join(shared)}", claim="Runs compared",
        source="", path="", facts={}, verified=sum(record.counts for record in records),
        count=len(records), findings=(finding,),
        summary=(_settings_sentence(settings), *overall))


def _compared_metric(run: AnyRun) -> Quantity | None:
    """What runs of this kind are compared by; None where a run holds nothing of it."""
    kind: type[Record] = type(run.records[0]) if run.records else Record
    return quantity_of(kind, kind.COMPARED) if kind.COMPARED else None


# Cells -------------------------------------------------------------------------------

def _shared_cells(first: AnyRun, second: AnyRun, metric: str) -> list[Row]:
    """The values of the cells that both runs have, in the order of the first run.

    A parameter of the hosts that has one value in each run does not distinguish their cells: so a
    run with Reno is compared with one with CUBIC.
    """
    without = [name for name in OF_HOSTS
               if len(_parameter_values(first, name)) == 1
               and len(_parameter_values(second, name)) == 1]
    base = _values_by_cell(first, metric, without)
    other = _values_by_cell(second, metric, without)
    rows = []
    for cell in base:
        if cell in other:
            for run, values in ((FIRST, base[cell]), (OTHER, other[cell])):
                rows += [Row(cell, run, draw, 1.0, value) for draw, value in values.items()]
    return rows


def _parameter_values(run: AnyRun, name: str) -> set[Any]:
    """The values of a parameter in a run's trials; set() for a kind of run without it."""
    return {getattr(record.trial, name) for record in run.records if hasattr(record.trial, name)}


def _values_by_cell(run: AnyRun, metric: str,
                    without: Collection[str] = ()) -> dict[Key, dict[Key, float]]:
    """The values of a metric that count, by cell and by draw.

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
            values.update((_draw_of(record), number)
                          for number in Cells([record]).numbers(metric))
        if values:
            by_cell_key[cell] = values
    return by_cell_key


def _draw_of(record: Record) -> Key:
    """What was drawn for a record: its client if it has one, and its repeat or seed."""
    trial = record.trial
    names = ["repeat" if hasattr(trial, "repeat") else "seed"]
    if hasattr(trial, "part") and hasattr(trial, "sample") and trial.part:  # of a population
        names = ["part", "sample", *names]
    return tuple((name, getattr(trial, name)) for name in names)


def _kind_of_draws(rows: Sequence[Row]) -> str:
    """What the intervals are over: "clients", "repeats" or "seeds"."""
    first_name, _ = rows[0].unit[0]
    return "clients" if first_name == "part" else f"{first_name}s"


def _difference(rows: Sequence[Row]) -> Difference:
    """How much more the other run has than the first."""
    of_clients = _kind_of_draws(rows) == "clients"
    return difference(rows, FIRST, OTHER, partial(student_over_draws, of_clients=of_clients), -1)


# Tables ------------------------------------------------------------------------------

def _overall_sentence(name: str, rows: Sequence[Row]) -> str:
    """How much more a run takes than the first, in the mean of all shared cells."""
    overall = _difference(rows)
    more = overall.absolute
    sentence = f"{name}: {words.format_number(more.value, signed=True)} ms"
    if more.interval:
        interval = words.format_interval(more.interval)
        sentence += f" ({interval}, over {more.n} {_kind_of_draws(rows)})"
    sentence += f" in the mean of {overall.cells} cells."
    if not more.interval:
        sentence += " No cell was measured twice, so there is no interval."
    return sentence


def _difference_cells(change: Difference) -> tuple[Cell, ...]:
    """The cells of a difference below _DIFFERENCE_COLUMNS."""
    interval = change.absolute.interval
    return (change.base.value, change.experiment.value, change.absolute.value,
            "" if interval is None else Interval(*interval))


def _metric_name(metric: Quantity) -> str:
    return (metric.head or metric.name).removesuffix(" ms")


def _overall_table(shared: SharedCells, metric: Quantity) -> Table:
    """A row for each further run: its difference in the mean of all shared cells."""
    rows: list[tuple[Cell, ...]] = []
    for name, values in shared.items():
        overall = _difference(values)
        of_cells = [_difference(cell).absolute.value for cell in by_cell(values).values()]
        rows.append((name, overall.cells, *_difference_cells(overall), min(of_cells),
                     max(of_cells)))
    return Table(f"All shared cells: {_metric_name(metric)} in ms", (
        Column("run", is_text=True), Column("cells"), *_DIFFERENCE_COLUMNS,
        Column("least", "ms", "difference", digits=3, signed=True),
        Column("most", "ms", "difference", digits=3, signed=True)), tuple(rows))


def _other_metrics_tables(base: AnyRun, runs: Sequence[tuple[str, AnyRun]]) -> list[Table]:
    """The table of the other metrics, over all shared cells that have them; [] if none has."""
    kind: type[Record] = type(base.records[0])
    rows: list[tuple[Cell, ...]] = []
    for metric_name in kind.ALSO_COMPARED:
        metric = quantity_of(kind, metric_name)
        for name, run in runs:
            if values := _shared_cells(base, run, metric_name):
                overall = _difference(values)
                rows.append((_metric_name(metric), name, overall.cells,
                             *_difference_cells(overall)))
    if not rows:
        return []
    return [Table("All shared cells: other times in ms", (
        Column("what", is_text=True), Column("run", is_text=True), Column("cells"),
        *_DIFFERENCE_COLUMNS), tuple(rows))]


def _settings_sentence(settings: Table) -> str:
    """The first rows of the settings' table, in a sentence."""
    named = []
    for name, *values in settings.rows[:MOST_NAMED]:
        shown = " / ".join(str(value)[:24] or "not recorded" for value in values)
        named.append(f"{name} ({shown})")
    if len(settings.rows) > len(named):
        named.append(f"{len(settings.rows) - len(named)} more")
    return f"Different: {', '.join(named)}." if named else settings.notes[0]


def _settings_table(runs: Sequence[tuple[str, AnyRun]], metric: str) -> Table:
    """What was set differently: cells, repeats, and run.json's kernel, sysctls, seed and tools."""
    descriptions = []
    for _, run in runs:
        counts = sorted(map(len, _values_by_cell(run, metric).values()))
        repeats = "–".join(dict.fromkeys((str(counts[0]), str(counts[-1])))) if counts else "0"
        facts = {"cells": str(len(counts)), "repeats of a cell": repeats}
        for name in OF_HOSTS:
            values = _parameter_values(run, name)
            facts[_flag_of(name)] = ", ".join(sorted(map(_value_in_words, values)))
        descriptions.append(facts | dict(_flattened(run.facts)))

    others = sorted(set(chain.from_iterable(descriptions)))
    names = dict.fromkeys(("cells", "repeats of a cell", *map(_flag_of, OF_HOSTS), *others))
    rows = []
    for name in names:
        of_runs = [facts.get(name, "") for facts in descriptions]
        if len(set(of_runs)) > 1:
            rows.append((name, *of_runs))

    columns = (Column("what", is_text=True), *(Column(name, is_text=True) for name, _ in runs))
    return Table("What was requested or used differently", columns, tuple(rows),
                 () if rows else ("Nothing: the runs record the same facts.",))


def _flag_of(name: str) -> str:
    """The flag that sets a parameter; its name where none does."""
    return FLAGS[name].flag if name in FLAGS else name


def _flattened(facts: Mapping[str, object], above: str = "") -> Iterable[tuple[str, str]]:
    """The facts of a run that another run may share, tables within tables by "table.name"."""
    for name, value in facts.items():
        if not above and name in OF_ONE_RUN:
            continue
        if inner := mapping(value):
            yield from _flattened(inner, f"{above}{name}.")
        else:
            yield f"{above}{name}", value if isinstance(value, str) else json.dumps(value)


def _cells_table(shared: SharedCells) -> Table:
    """A row for each cell, with the parameters that the cells vary."""
    cells = [dict(key) for key in chain.from_iterable(map(by_cell, shared.values()))]
    values = {}
    for name in cells[0]:
        values[name] = [_value_in_words(cell.get(name)) for cell in cells]
    swept = varied(values)
    columns = []
    for name in swept:
        is_text = any(isinstance(cell.get(name), str) for cell in cells)
        columns.append(Column(_heading(name), of_column(name).unit, is_text=is_text))

    rows: list[tuple[Cell, ...]] = []
    for run_name, of_run in shared.items():
        for key, of_cell in by_cell(of_run).items():
            parameters = dict(key)
            change = _difference(of_cell)
            rows.append((run_name, *(_value_in_words(parameters.get(name)) for name in swept),
                         *_difference_cells(change),
                         change.percent.value if change.base.value else None))

    return Table("Each cell", (
        Column("run", is_text=True, is_filter=True), *columns, *_DIFFERENCE_COLUMNS,
        Column("mean", "%", "difference", signed=True)), tuple(rows)).first(MOST_ROWS)


def _value_in_words(value: object) -> str:
    return words.plain(value) if isinstance(value, (int, float)) else str(value or "")


def _heading(name: str) -> str:
    return of_column(name).head or name.replace("_", " ")


# The figure --------------------------------------------------------------------------

def _chart(base_name: str, shared: SharedCells, metric: Quantity) -> LineChart:
    """The difference of each cell with its interval, from left to right in the run's order."""
    lines: list[Line] = []
    kinds_of_draws: list[str] = []  # of the runs that have intervals
    for look, (name, values) in enumerate(shared.items(), start=1):
        changes = [_difference(cell).absolute for cell in by_cell(values).values()]
        places = tuple(float(number) for number in range(1, len(changes) + 1))
        intervals = tuple(change.interval for change in changes)
        lines.append(Line(name, places, tuple(change.value for change in changes),
                          ends=intervals, look=look, style="points"))
        if any(intervals):
            kinds_of_draws.append(_kind_of_draws(values))

    over = "no bars: no cell was measured twice"
    if kinds_of_draws:
        over = f"bars: 95 % intervals over {kinds_of_draws[0]}"
    return LineChart(
        "The same cells in each run", (f"{metric.axis}, less that of {base_name}",),
        f"cells in the order of the first run · {over}",
        columns=((Plot("cell", "difference (ms)", tuple(lines), zero=True, whole=False),),),
        legend=True)
