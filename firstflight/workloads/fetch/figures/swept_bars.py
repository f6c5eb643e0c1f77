"""Computes the bars of a sweep's figures from its records.

Only a record that counts enters a number: its transfer succeeded and its verdict is pass. All other
records are counted as excluded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product

from firstflight.figures.compare import Row, Rows, difference, resampled_in_cells
from firstflight.findings.bar import Bar
from firstflight.findings.claims import Published
from firstflight.findings.difference import Difference, Excluded
from firstflight.net.link import MANAGED
from firstflight.runs.results.records import PASS
from firstflight.workloads.fetch.figures.bar_cells import (ByCell, by_cell, published_bars, sign_of,
                                                           weighted_cells)
from firstflight.workloads.fetch.figures.bar_figure import BarFigure, NoBars, Sample
from firstflight.workloads.fetch.record.record import Record, own_window
from firstflight.workloads.fetch.scenario.scenario import OF_EXPERIMENT, Axis, Figure, Scenario
from firstflight.workloads.fetch.scenario.sweep import CellKey, Value
from firstflight.workloads.fetch.verify import notes


@dataclass(frozen=True)
class CellRows:
    """The values of one cell that count, under two windows, and what was excluded."""

    weight: float
    # Empty unless both windows have values. The unit of a row is its repeat with its seed.
    rows: Rows
    excluded: Excluded
    lossless: bool  # whether chance plays no part in the cell

    def under(self, initcwnd: int) -> list[float]:
        """The values under a window."""
        return [row.value for row in self.rows if row.window == initcwnd]


def improvement(scenario: Scenario, figure: Figure, records: Sequence[Record],
                is_whole: bool = True) -> BarFigure:
    """The bars of one improvement figure.

    A bar is the mean over its cells, weighted by the shares of the other axis. If no record of a
    cell counts, the other cells have all the weight, and the bar's cells and excluded show it. A
    part of a scenario has the bars whose cells were all measured. Raises NoBars where a cell was
    not measured at all, or no record of a bar counts.
    """
    windows = (figure.baseline_initcwnd, figure.experiment_initcwnd)
    chosen, cells = by_cell(scenario, figure, windows, records, is_whole)
    axis = scenario.axis_of(figure)
    known = published_bars(figure)
    bars = []
    rows_by_cell: dict[CellKey, CellRows] = {}
    weighted_rows: list[tuple[CellRows, float]] = []
    for value, weighted in zip(axis.values, weighted_cells(scenario, figure, axis)):
        needed = product((cell for cell, _ in weighted), windows)
        if not is_whole and any(cell_and_window not in cells for cell_and_window in needed):
            continue
        in_bar = []
        for cell, weight in weighted:
            rows_by_cell[cell] = rows_of(figure, cells, cell, weight=weight, windows=windows)
            in_bar.append(rows_by_cell[cell])
        bars.append(_bar(figure, axis, value, cells=in_bar, windows=windows, known=known))

        # Shares of all responses: the bar's, of which each cell has its part.
        share = axis.share_percent(value) or 1.0
        total = sum(cell.weight for cell in in_bar)
        weighted_rows += [(rows, share * rows.weight / total) for rows in in_bar]
    if not bars:
        raise NoBars("no bucket was measured in all of its cells")

    excluded = sum((rows.excluded for rows in rows_by_cell.values()), Excluded())
    return BarFigure(figure, tuple(bars), client=chosen[0].trial.client,
                     congestion_control=chosen[0].trial.congestion_control,
                     fetch_count=sum(len(rows.rows) for rows in rows_by_cell.values()),
                     fetches_excluded=excluded, remarks=_remarks(cells, windows),
                     samples=tuple(_sample(window, weighted_rows) for window in windows))


def window_sweep(scenario: Scenario, figure: Figure, records: Sequence[Record],
                 is_whole: bool = True) -> BarFigure:
    """The bars of a figure with a bar for each window, which is compared with the baseline.

    A bar's n counts the fetches under its window. Raises NoBars, as improvement() does.
    """
    sweep = scenario.sweep(figure.sweep)
    measured = {record.trial.initcwnd for record in records}
    windows = [window for window in sweep.initcwnd
               if is_whole or window in measured or window == figure.baseline_initcwnd]

    chosen, cells = by_cell(scenario, figure, windows, records)
    (cell,) = sweep.cells
    axis = scenario.axis_of(figure)
    known = published_bars(figure)
    bars, samples = [], []
    for initcwnd in windows:
        pair = figure.baseline_initcwnd, initcwnd
        rows = rows_of(figure, cells, cell, weight=1.0, windows=pair)
        bar = _bar(figure, axis, initcwnd, cells=[rows], windows=pair, known=known)
        values, excluded = counting(cells[cell, initcwnd], figure.metric)
        change = replace(bar.difference, n=len(values), excluded=excluded)
        bars.append(replace(bar, difference=change))
        samples.append(_sample(initcwnd, [(rows, 1.0)]))

    return BarFigure(figure, tuple(bars), client=chosen[0].trial.client,
                     congestion_control=chosen[0].trial.congestion_control,
                     samples=tuple(samples), remarks=_remarks(cells, windows),
                     own_window=own_window(chosen))


def _remarks(cells: ByCell, windows: Sequence[int]) -> tuple[str, ...]:
    """What limited the trials that count under these windows, in sentences."""
    counting = []
    for (_, initcwnd), records in cells.items():
        if initcwnd in windows:
            counting += [record for record in records if record.counts]
    return notes.limiting_notes(counting)


def _sample(initcwnd: int, cells: Sequence[tuple[CellRows, float]]) -> Sample:
    """All values under one window. The repeats of a cell share the cell's weight."""
    values: list[float] = []
    weights: list[float] = []
    for cell, weight in cells:
        of_cell = cell.under(initcwnd)
        values += of_cell
        if of_cell:
            weights += [weight / len(of_cell)] * len(of_cell)
    return Sample(initcwnd, values, weights)


# Bars --------------------------------------------------------------------------------

def rows_of(figure: Figure, cells: ByCell, cell: CellKey, weight: float,
            windows: tuple[int, int]) -> CellRows:
    """The rows of one cell under two windows, which may be the same."""
    excluded = Excluded()
    sides = []  # the rows under each window
    is_drawn = False
    for initcwnd in dict.fromkeys(windows):
        records = cells[cell, initcwnd]
        is_drawn |= any(record.trial.drawn_rtt_ms is not None for record in records)
        values, excluded_here = counting(records, figure.metric)
        excluded += excluded_here
        sides.append([Row(cell, initcwnd, unit, weight=weight, value=value)
                      for unit, value in values])

    rows = list(chain.from_iterable(sides))
    if not all(sides):
        excluded += Excluded(unpaired=len(rows))
        rows = []
    is_chance = cell.is_random or cell.qdisc in MANAGED or is_drawn
    return CellRows(weight, rows, excluded, lossless=not is_chance)


def counting(records: Iterable[Record],
             metric: str) -> tuple[list[tuple[tuple[int, int], float]], Excluded]:
    """The values of the records that count, and how many records are excluded.

    Each value follows its repeat and seed. They are sorted, so that resampling does not depend on
    which guest finished first.
    """
    values: list[tuple[tuple[int, int], float]] = []
    excluded = Excluded()
    for record in records:
        value: float | None = getattr(record, metric)

        if not record.ok:
            excluded += Excluded(failed_transfers=1)
        elif record.was_skipped:
            excluded += Excluded(skipped=1)
        elif record.verdict != PASS:
            excluded += Excluded(failed_verdicts=1)
        elif value is None:
            excluded += Excluded(without_value=1)
        else:
            values.append(((record.trial.repeat, record.trial.seed), value))
    return sorted(values), excluded


def difference_of(figure: Figure, cells: Sequence[CellRows],
                  windows: tuple[int, int]) -> Difference | None:
    """What the second window changes in the mean of these cells; None where no record counts."""
    used = [cell for cell in cells if cell.rows and cell.weight > 0]
    if not used:
        return None
    base, experiment = windows
    rows = list(chain.from_iterable(cell.rows for cell in used))
    change = difference(rows, base, experiment, estimator=resampled_in_cells,
                        sign=sign_of(figure.metric))
    return replace(
        change, excluded=sum((cell.excluded for cell in cells), Excluded()),
        cells_requested=len(cells), lossless=all(cell.lossless for cell in cells))


def _bar(figure: Figure, axis: Axis, value: Value, cells: Sequence[CellRows],
         windows: tuple[int, int], known: Mapping[str, Published]) -> Bar:
    """The bar of one value of the axis: the weighted mean of its cells.

    known: the published bars, by label. Raises NoBars where no record of the cells counts.
    """
    label = axis.label(value)
    change = difference_of(figure, cells, windows)
    if change is None:
        excluded = sum((cell.excluded for cell in cells), Excluded())
        raise NoBars(f"no record of bucket {label} counts ({excluded}); see"
                      " verdict_reason and error in trials.csv, then measure again with --fresh")
    return Bar(label, change, known.get(label, Published()), value=value,
               share_percent=axis.share_percent(value),
               of_experiment=figure.percent_of == OF_EXPERIMENT)
