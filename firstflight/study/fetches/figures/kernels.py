"""What another guest kernel, or another parameter of its modules, changed in each cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from firstflight.base.words import format_brief, format_number, join_words
from firstflight.findings.findings import Column, Table
from firstflight.parameters import default
from firstflight.runs.results.cells import grouped
from firstflight.study.fetches.figures.cells import (CellSetting, WindowChange, change_between,
                                                     mean)
from firstflight.study.fetches.scenario.sweep import KERNEL
from firstflight.study.fetches.scenario.varied_parameters import (REQUESTED, requested_columns,
                                                                  setting_words)

SAME_MS = 1e-6  # a nanosecond: exact times that differ by less are equal


def kernel_changes(cells: Iterable[CellSetting]) -> list[WindowChange]:
    """Every kernel of a cell against the first that counts there, in the order of the cells."""
    counting = [cell for cell in cells if cell.total_ms is not None]
    if len({tuple(getattr(cell.requested, name) for name in KERNEL) for cell in counting}) < 2:
        return []  # one kernel, as in most runs, which may have thousands of cells
    of_cell = grouped(counting, lambda cell: replace(cell.requested, **{
        name: default(name) for name in KERNEL}))
    return [change_between(base, other) for base, *others in of_cell.values() for other in others]


def pair(change: WindowChange) -> str:
    return f"{change.base.requested.kernel_words} → {change.experiment.requested.kernel_words}"


def kernel_answer(changes: Sequence[WindowChange]) -> str:
    """A sentence for each pair of kernels: its largest differences, and how many there are."""
    return " ".join(_of_pair(words, of_pair) for words, of_pair in grouped(changes, pair).items())


def _of_pair(words: str, changes: Sequence[WindowChange]) -> str:
    equal = sum(abs(change.saved_ms) < SAME_MS for change in changes)
    if equal == len(changes):
        return (f"Kernel {words}: no difference" + (
            f", {format_brief(changes[0].saved.base.value)} ms with both." if equal == 1 else
            f" in any of {equal} cells, to the nanosecond."))
    best = max(changes, key=lambda change: change.saved_ms)
    worst = min(changes, key=lambda change: change.saved_ms)
    ends = [change for change, sign in ((best, 1), (worst, -1)) if sign * change.saved_ms > 0]
    ends.sort(key=lambda change: -abs(change.saved_ms))
    text = f"Kernel {words} " + ", and ".join(_effect(change, changes) for change in ends)
    if len(changes) == 1:
        return f"{text}."
    counted = [f"{count} {what}" for count, what in (
        (sum(change.saved_ms >= SAME_MS for change in changes), "faster"),
        (sum(change.saved_ms <= -SAME_MS for change in changes), "slower"),
        (equal, "equal to the nanosecond")) if count]
    return f"{text}. Of {len(changes)} cells: {join_words(counted)}."


def _effect(change: WindowChange, changes: Sequence[WindowChange]) -> str:
    saved = change.saved
    verb, behind = ("saves", "") if change.saved_ms > 0 else ("takes", " longer")
    unsure = ("" if saved.absolute.interval is None or saved.absolute.sign
              else " (no sure effect)")
    text = (f"{verb} {'up to ' if len(changes) > 1 else ''}{format_brief(abs(change.saved_ms))} ms"
            f" ({format_number(abs(saved.percent.value), 1)} %){behind}{unsure}, from"
            f" {format_brief(saved.base.value)} to {format_brief(saved.experiment.value)} ms")
    at = setting_words(change.base.requested, [other.base.requested for other in changes],
                       differing=True) if len(changes) > 1 else []
    at = [word for word in at if not word.startswith(("kernel ", "module parameter "))]
    if len({other.base.requested.initcwnd for other in changes}) > 1:
        at.append(f"IW {change.base.requested.initcwnd}")
    return text + (f" (at {', '.join(at)})" if at else "")


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
