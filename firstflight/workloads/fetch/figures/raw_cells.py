"""Compares published raw values of single cells with ours (the table [raw] of a scenario)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from firstflight.base import stats
from firstflight.base.words import format_number, plain
from firstflight.findings.findings import Column, Finding, Table
from firstflight.runs.results.cells import Cells, grouped
from firstflight.scenario import published
from firstflight.workloads.fetch.figures.bar_cells import of_sweep
from firstflight.workloads.fetch.figures.bar_figure import NoBars
from firstflight.workloads.fetch.figures.swept_bars import counting
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.scenario.scenario import Raw, Scenario
from firstflight.workloads.fetch.scenario.sweep import bucket_value
from firstflight.workloads.fetch.trial import Trial
from firstflight.workloads.fetch.scenario.varied_parameters import shown


@dataclass(frozen=True)
class PublishedCell:
    """One published raw value and the measured one."""

    initcwnd: int
    rtt_ms: float
    bandwidth_kbps: float
    n: int  # records that count
    measured_ms: float | None  # the mean of these records
    published_ms: float
    # The published value without the extra round trips that it includes; None with a defect.
    comparable_ms: float | None
    mark: str  # the mark of the value's defect; "" for none


@dataclass(frozen=True)
class PublishedCells:
    """All published raw values."""

    raw: Raw
    rows: Sequence[PublishedCell]  # in the order of the published file
    of_trial: Mapping[Trial, PublishedCell]  # the row of each trial

    def explain_marks(self, rows: Iterable[PublishedCell]) -> list[str]:
        """Notes on the marks of these rows, and on the round trips that published times include.

        [] for no row.
        """
        marks = {row.mark for row in rows}
        lines = [f"{defect.mark}: {defect.why}" for defect in self.raw.defects
                 if defect.mark in marks]
        if marks and self.raw.extra_rtts:
            lines.append(f"The published times include {plain(self.raw.extra_rtts)} RTT more:"
                         f" {self.raw.extra_why}.")
        return lines


def published_cells(scenario: Scenario, records: Sequence[Record]) -> PublishedCells | None:
    """The scenario's published raw values next to the records; None where it has no [raw].

    Raises NoBars where the records mix clients.
    """
    return _compared(scenario, scenario.raw, records) if scenario.raw else None


def _compared(scenario: Scenario, raw: Raw, records: Sequence[Record]) -> PublishedCells:
    """Each published value with the mean of its cell. Raises NoBars where records mix clients."""
    measured_cells = Cells(of_sweep(scenario.sweep(raw.sweep), records))
    by_cell = measured_cells.by("initcwnd", "rtt_ms", "bandwidth_kbps")
    rows: list[PublishedCell] = []
    of_trial: dict[Trial, PublishedCell] = {}
    for fetch in published.fetches(raw.file):
        cell = by_cell.get((fetch.initcwnd, fetch.rtt_ms, fetch.bandwidth_kbps))
        records_of_cell = cell.records if cell else ()
        measured, _ = counting(records_of_cell, raw.metric)
        values = [value for _, value in measured]
        # The last defect that a value has is the one that is marked.
        mark = next((defect.mark for defect in reversed(raw.defects)
                     if bucket_value(defect.by, fetch) in defect.values), "")
        comparable_ms = None if mark else fetch.total_ms - raw.extra_rtts * fetch.rtt_ms

        row = PublishedCell(
            fetch.initcwnd, fetch.rtt_ms, fetch.bandwidth_kbps, n=len(values),
            measured_ms=sum(values) / len(values) if values else None,
            published_ms=fetch.total_ms, comparable_ms=comparable_ms, mark=mark)
        rows.append(row)
        of_trial.update((record.trial, row) for record in records_of_cell)
    return PublishedCells(raw, rows, of_trial)


def finding(scenario: Scenario, raw: Raw, records: Sequence[Record]) -> Finding:
    """A table for each window: measured / published ms by RTT (rows) and bandwidth (columns)."""
    try:
        cells = _compared(scenario, raw, records)
    except NoBars as error:
        return Finding("raw", f"paper/{raw.file}", missing=str(error))

    counts = sorted({row.n for row in cells.rows})
    n = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    by_window = grouped(cells.rows, lambda row: row.initcwnd)
    tables = [_grid(initcwnd, by_window[initcwnd]) for initcwnd in sorted(by_window)]
    notes = (*cells.explain_marks(cells.rows), *_differences(cells))
    return Finding("raw", f"every cell, measured / published (paper/{cells.raw.file}), ms;"
                   f" n = {n} here, 1 there",
                   tables=(*tables[:-1], replace(tables[-1], notes=notes)))


def _grid(initcwnd: int, cells: Sequence[PublishedCell]) -> Table:
    """The cells of one window, measured / published ms: a row for each RTT."""
    texts: dict[tuple[float, float], str] = {}
    for cell in cells:
        compared = f"{format_number(cell.measured_ms, 0)}/{format_number(cell.published_ms, 0)}"
        texts[cell.rtt_ms, cell.bandwidth_kbps] = f"{compared}{cell.mark or ' '}"

    bandwidths = list(dict.fromkeys(bandwidth for _, bandwidth in texts))
    columns = (Column("RTT", "ms"),
               *(Column(plain(bandwidth), "kbit/s") for bandwidth in bandwidths))
    rows = []
    for rtt_ms in dict.fromkeys(rtt_ms for rtt_ms, _ in texts):
        rows.append((shown(rtt_ms), *(texts[rtt_ms, bandwidth] for bandwidth in bandwidths)))
    return Table(f"IW{initcwnd}", columns, tuple(rows))


def _differences(cells: PublishedCells) -> list[str]:
    """A sentence on the median and the largest deviation from comparable published values."""
    deviations_ms = [abs(row.measured_ms - row.comparable_ms) for row in cells.rows
                     if row.measured_ms is not None and row.comparable_ms is not None]
    if not deviations_ms:
        return []
    without = "Without it the" if cells.raw.extra_rtts else "The"
    median_ms = stats.weighted_quantile(deviations_ms, [1.0] * len(deviations_ms), 0.5)
    return [f"{without} {len(deviations_ms)} comparable cells differ by"
            f" {format_number(median_ms)} ms (median) and by"
            f" {format_number(max(deviations_ms))} ms at most."]
