"""What another kernel changes, compared with the first one: in words and as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from firstflight.base.words import format_brief, format_number, join_words
from firstflight.findings.difference import Difference
from firstflight.findings.findings import Column, Finding, Table
from firstflight.runs.results.cells import grouped

SAME_MS = 1e-6  # a nanosecond: exact times that differ by less are equal


@dataclass(frozen=True)
class KernelChange:
    """What the second kernel of a pair changes in one cell."""

    pair: str  # such as "default → mine"
    place: str  # the cell, in words; "" for the only one
    saved: Difference  # of the time that the workload compares, in ms

    @property
    def saved_ms(self) -> float:
        return self.saved.absolute.value


def note_on_windows(trials: Iterable[Any], how: str) -> list[str]:
    """A note that the kernels' own initial windows were not compared, since a route sets one.

    [] if one kernel was measured, or if each used its own window. how: says how to measure each
    kernel's own window; it follows a colon.
    """
    compared = {trial.kernel for trial in trials}
    if len(compared) < 2 or any(getattr(trial, "window_by", "") == "kernel" for trial in trials):
        return []
    return ["A route sets the initial window of these trials, so no kernel uses its own default:"
            f" {how}."]


def kernel_answer(changes: Sequence[KernelChange]) -> str:
    """A sentence for each pair of kernels: its largest differences, and how many there are."""
    by_pair = grouped(changes, lambda change: change.pair)
    return " ".join(_pair_sentence(pair, its_changes) for pair, its_changes in by_pair.items())


def _pair_sentence(pair: str, changes: Sequence[KernelChange]) -> str:
    """One or two sentences on what the second kernel of a pair changes. changes: one a cell."""
    faster = sum(change.saved_ms >= SAME_MS for change in changes)
    slower = sum(change.saved_ms <= -SAME_MS for change in changes)
    equal = len(changes) - faster - slower
    if equal == len(changes) == 1:
        both_ms = format_brief(changes[0].saved.base.value)
        return f"Kernel {pair}: no difference, {both_ms} ms with both."
    if equal == len(changes):
        return f"Kernel {pair}: no difference in any of {equal} cells, to the nanosecond."

    best = max(changes, key=lambda change: change.saved_ms)
    worst = min(changes, key=lambda change: change.saved_ms)
    extremes = [best] if best.saved_ms > 0 else []
    if worst.saved_ms < 0:
        extremes.append(worst)
    extremes.sort(key=lambda change: -abs(change.saved_ms))

    is_one = len(changes) == 1
    effects = ", and ".join(_effect(change, is_one) for change in extremes)
    if is_one:
        return f"Kernel {pair} {effects}."

    counts = ((faster, "faster"), (slower, "slower"), (equal, "equal to the nanosecond"))
    counted = join_words([f"{count} {what}" for count, what in counts if count])
    return f"Kernel {pair} {effects}. Of {len(changes)} cells: {counted}."


def _effect(change: KernelChange, is_only_cell: bool) -> str:
    """What a kernel does: "saves up to 12 ms (3.4 %), from 350 to 338 ms (at RTT 20 ms)"."""
    saved = change.saved
    up_to = "" if is_only_cell else "up to "
    size = (f"{up_to}{format_brief(abs(change.saved_ms))} ms"
            f" ({format_number(abs(saved.percent.value), 1)} %)")
    effect = f"saves {size}" if change.saved_ms > 0 else f"takes {size} longer"

    holds_zero = saved.absolute.interval is not None and saved.absolute.sign == 0
    caveat = " (not significant)" if holds_zero else ""
    place = f" (at {change.place})" if change.place else ""
    return (f"{effect}{caveat}, from {format_brief(saved.base.value)} to"
            f" {format_brief(saved.experiment.value)} ms{place}")


def findings(changes: Sequence[KernelChange], time: str) -> tuple[Finding, ...]:
    """A finding on what the other kernels changed; () if only one kernel was measured.

    time: as for kernels_table.
    """
    if not changes:
        return ()
    table = kernels_table(changes, time)
    return (Finding("kernel_changes", "What the kernel changed", (table,),
                    sentence=kernel_answer(changes)),)


def kernels_table(changes: Sequence[KernelChange], time: str) -> Table:
    """A table with a row for each cell and pair. time: which time is compared, such as "page"."""
    columns = (
        Column("", is_text=True), Column("kernel", is_text=True, is_filter=True),
        Column("from", "ms", time), Column("to", "ms", time), Column("improved", "ms"),
        Column("improved", "%"))
    rows = tuple(
        (change.place, change.pair, change.saved.base, change.saved.experiment,
         change.saved.absolute, change.saved.percent) for change in changes)
    return Table("What the kernel changed", columns, rows).without_empty()
