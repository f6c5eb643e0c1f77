"""What another guest kernel, or a parameter of its modules, changes in each cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from firstflight.figures import kernel_changes as of_kernels
from firstflight.figures.window_changes import mean
from firstflight.findings.findings import REQUESTED, Column, Table
from firstflight.parameters import default
from firstflight.runs.results.cells import grouped
from firstflight.setting.kernels import KERNEL, pair_words
from firstflight.workloads.fetch.figures.cells import (CellSetting, WindowChange, change_between,
                                                       largest_changes)
from firstflight.workloads.fetch.scenario.varied_parameters import (requested_columns,
                                                                    setting_words)


def kernel_changes(cells: Iterable[CellSetting]) -> list[WindowChange]:
    """Every kernel of a cell against the cell's first kernel with a record that counts."""
    counting = [cell for cell in cells if cell.total_ms is not None]
    kernels = {(cell.requested.kernel, cell.requested.module_parameter) for cell in counting}
    if len(kernels) < 2:
        return []  # one kernel, as in most runs, which may have thousands of cells

    usual = {name: default(name) for name in KERNEL}
    by_cell = grouped(counting, lambda cell: replace(cell.requested, **usual))
    return [change_between(base, other) for base, *others in by_cell.values() for other in others]


def kernel_answer(changes: Sequence[WindowChange]) -> str:
    """A sentence for each pair of kernels: its largest differences, and how many there are."""
    named_changes = []
    for pair, of_pair in grouped(changes, kernel_pair).items():
        named_changes += [of_kernels.KernelChange(pair, _name_cell(change, of_pair), change.saved)
                          for change in of_pair]
    return of_kernels.kernel_answer(named_changes)


def kernel_pair(change: WindowChange) -> str:
    """The two kernels in words, such as "default → mine"."""
    return pair_words(change.base.requested, change.experiment.requested)


def _name_cell(change: WindowChange, changes: Sequence[WindowChange]) -> str:
    """What distinguishes the cell of a change from those of the others, in words; "" for one cell.
    """
    if len(changes) < 2:
        return ""
    requested = change.base.requested
    of_all = [compared.base.requested for compared in changes]
    words = [word for word in setting_words(requested, of_all, differing=True)
             if not word.startswith(("kernel ", "module parameter "))]
    if len({trial.initcwnd for trial in of_all}) > 1:
        words.append(f"IW {requested.initcwnd}")
    return ", ".join(words)


def kernels_table(changes: Sequence[WindowChange], most: int) -> Table:
    """A row for each comparison; of more than `most`, for those with the largest effect."""
    shown = largest_changes(changes, most)
    requested = requested_columns([change.base.requested for change in changes], without=KERNEL)
    columns = (*(column for column, _ in requested),
               Column("kernel", "", REQUESTED, is_text=True, is_filter=True),
               Column("from", "ms", "total time", rank=4),
               Column("to", "ms", "total time", rank=5), Column("improved", "ms"),
               Column("improved", "%"), Column("n", rank=1),
               Column("from", "", "retransmissions", rank=3),
               Column("to", "", "retransmissions", rank=3))

    rows = []
    for change in shown:
        cells = [show(change.base.requested) for _, show in requested]
        saved = change.saved
        base, experiment = change.base.counting, change.experiment.counting
        rows.append((*cells, kernel_pair(change), saved.base.value, saved.experiment.value,
                     saved.absolute, saved.percent.value, f"{len(base)}, {len(experiment)}",
                     mean(base, "retransmissions"), mean(experiment, "retransmissions")))

    table = Table("What the kernel changed", columns, tuple(rows)).without_empty()
    return replace(table, hidden_rows=len(changes) - len(shown))
