"""What one kernel changes against another, in words and as a table."""

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
    """What a kernel changes in one cell."""

    pair: str  # such as "default → mine"
    place: str  # the cell, in words; "" for the only one
    saved: Difference  # of a time in ms

    @property
    def saved_ms(self) -> float:
        return self.saved.absolute.value


def note_on_windows(trials: Iterable[Any], how: str) -> list[str]:
    """A note that a route sets the window, where kernels may have others of their own.

    how: how to measure these, behind a colon.
    """
    compared = {trial.kernel for trial in trials}
    if len(compared) < 2 or any(getattr(trial, "window_by", "") == "kernel" for trial in trials):
        return []
    return [f"A route sets the initial window of these trials, whatever a kernel has of its own:"
            f" {how}."]


def kernel_answer(changes: Sequence[KernelChange]) -> str:
    """A sentence for each pair of kernels: its largest differences, and how many there are."""
    by_pair = grouped(changes, lambda change: change.pair)
    return " ".join(_pair_sentence(pair, of_pair) for pair, of_pair in by_pair.items())


def _pair_sentence(pair: str, changes: Sequence[KernelChange]) -> str:
    """What the second kernel of a pair changes in its cells."""
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
    ends = [best] if best.saved_ms > 0 else []
    if worst.saved_ms < 0:
        ends.append(worst)
    ends.sort(key=lambda change: -abs(change.saved_ms))
    effects = ", and ".join(_effect(change, len(changes)) for change in ends)
    if len(changes) == 1:
        return f"Kernel {pair} {effects}."

    counts = ((faster, "faster"), (slower, "slower"), (equal, "equal to the nanosecond"))
    counted = join_words([f"{count} {what}" for count, what in counts if count])
    return f"Kernel {pair} {effects}. Of {len(changes)} cells: {counted}."


def _effect(change: KernelChange, count: int) -> str:
    """What a kernel saves in a cell. count: of the cells of its pair."""
    saved = change.saved
    verb, behind = ("saves", "") if change.saved_ms > 0 else ("takes", " longer")
    up_to = "up to " if count > 1 else ""
    is_sure = saved.absolute.interval is None or saved.absolute.sign
    unsure = "" if is_sure else " (no sure effect)"
    place = f" (at {change.place})" if change.place else ""
    return (f"{verb} {up_to}{format_brief(abs(change.saved_ms))} ms"
            f" ({format_number(abs(saved.percent.value), 1)} %){behind}{unsure}, from"
            f" {format_brief(saved.base.value)} to {format_brief(saved.experiment.value)} ms"
            f"{place}")


def findings(changes: Sequence[KernelChange], time: str) -> tuple[Finding, ...]:
    """What further kernels changed; () where there was one. time: as of kernels_table."""
    if not changes:
        return ()
    return (Finding("kernel_changes", "What the kernel changed", (kernels_table(changes, time),),
                    sentence=kernel_answer(changes)),)


def kernels_table(changes: Sequence[KernelChange], time: str) -> Table:
    """A row for each cell and pair. time: what the ms are of, such as "page"."""
    columns = (
        Column("", is_text=True), Column("kernel", is_text=True, is_filter=True),
        Column("from", "ms", time), Column("to", "ms", time), Column("improved", "ms"),
        Column("improved", "%"))
    rows = tuple(
        (change.place, change.pair, change.saved.base, change.saved.experiment,
         change.saved.absolute, change.saved.percent) for change in changes)
    return Table("What the kernel changed", columns, rows).without_empty()
