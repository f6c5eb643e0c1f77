"""What another guest kernel, or another parameter of its modules, changed in each cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from firstflight.figures import kernel_changes as of_kernels
from firstflight.figures.window_changes import mean
from firstflight.findings.findings import REQUESTED, Column, Table
from firstflight.parameters import default
from firstflight.runs.results.cells import grouped
from firstflight.setting.kernels import KERNEL, pair_words
from firstflight.workloads.fetch.figures.cells import CellSetting, WindowChange, change_between
from firstflight.workloads.fetch.scenario.varied_parameters import (requested_columns,
                                                                    setting_words)


def kernel_changes(cells: Iterable[CellSetting]) -> list[WindowChange]:
    """Every kernel of a cell against the first that counts there, in the order of the cells."""
    counting = [cell for cell in cells if cell.total_ms is not None]
    if len({tuple(getattr(cell.requested, name) for name in KERNEL) for cell in counting}) < 2:
        return []  # one kernel, as in most runs, which may have thousands of cells
    of_cell = grouped(counting, lambda cell: replace(cell.requested, **{
        name: default(name) for name in KERNEL}))
    return [change_between(base, other) for base, *others in of_cell.values() for other in others]


def kernel_answer(changes: Sequence[WindowChange]) -> str:
    """A sentence for each pair of kernels: its largest differences, and how many there are."""
    return of_kernels.kernel_answer([
        of_kernels.KernelChange(words, _place(change, of_pair), change.saved)
        for words, of_pair in grouped(changes, pair).items() for change in of_pair])


def pair(change: WindowChange) -> str:
    return pair_words(change.base.requested, change.experiment.requested)


def _place(change: WindowChange, changes: Sequence[WindowChange]) -> str:
    """What distinguishes a cell from the others, in words; "" for the only one."""
    if len(changes) < 2:
        return ""
    at = setting_words(change.base.requested, [other.base.requested for other in changes],
                       differing=True)
    at = [word for word in at if not word.startswith(("kernel ", "module parameter "))]
    if len({other.base.requested.initcwnd for other in changes}) > 1:
        at.append(f"IW {change.base.requested.initcwnd}")
    return ", ".join(at)


def kernels_table(changes: Sequence[WindowChange], most: int) -> Table:
    """A row for each comparison; of more than `most` those with the largest effect."""
    shown = changes
    if len(changes) > most:
        largest = {id(change) for change in sorted(
            changes, key=lambda change: -abs(change.saved_ms))[:most]}
        shown = [change for change in changes if id(change) in largest]
    requested = requested_columns([change.base.requested for change in changes], without=KERNEL)
    columns = (*(column for column, _ in requested),
               Column("kernel", "", REQUESTED, is_text=True, is_filter=True),
               Column("from", "ms", "total time", rank=4),
               Column("to", "ms", "total time", rank=5), Column("improved", "ms"),
               Column("improved", "%"), Column("n", rank=1),
               Column("from", "", "retransmissions", rank=3),
               Column("to", "", "retransmissions", rank=3))
    return replace(Table("What the kernel changed", columns, tuple(
        (*(show(change.base.requested) for _, show in requested), pair(change),
         change.saved.base.value, change.saved.experiment.value, change.saved.absolute,
         change.saved.percent.value,
         f"{len(change.base.counting)}, {len(change.experiment.counting)}",
         mean(change.base.counting, "retransmissions"),
         mean(change.experiment.counting, "retransmissions"))
        for change in shown)).without_empty(), hidden_rows=len(changes) - len(shown))
