"""The cells of fetches: their settings, and what larger windows changed in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import starmap

from firstflight.figures import window_changes
from firstflight.figures.window_changes import saved_between
from firstflight.runs.results.cells import grouped
from firstflight.setting.draws import NOT_DRAWN
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.trial import Trial
from firstflight.workloads.fetch.scenario.varied_parameters import setting_words

CellSetting = window_changes.CellSetting[Trial, Record]
WindowChange = window_changes.WindowChange[Trial, Record]


def without_repeat(trial: Trial) -> Trial:
    """The trial with repeat 1 and nothing drawn, the same for all repeats of a setting."""
    return replace(trial, repeat=1, seed=0, **NOT_DRAWN)


def settings(records: Iterable[Record]) -> list[CellSetting]:
    """The settings in the order of their records, windows of a cell together and ascending."""
    by_setting = grouped(records, lambda record: without_repeat(record.trial))
    ordered = []
    for cell in _cells_of(list(starmap(CellSetting, by_setting.items()))):
        ordered += sorted(cell, key=lambda row: (row.requested.initcwnd,
                                                 row.requested.uploading_window))
    return ordered


def _cells_of(rows: Sequence[CellSetting]) -> Iterable[list[CellSetting]]:
    """The settings grouped by cell: those in a group differ in the window only.

    It is the server's window; the client's, where that varies and the server's does not.
    """
    windows = {(row.requested.initcwnd, row.requested.client_initcwnd) for row in rows}
    if len(windows) > 1 == len({initcwnd for initcwnd, _ in windows}):
        return grouped(rows, lambda row: replace(row.requested, client_initcwnd=0)).values()
    return grouped(rows, lambda row: replace(row.requested, initcwnd=1)).values()


def change_between(base: CellSetting, experiment: CellSetting) -> WindowChange:
    """What one setting changes against another. Raises ValueError where one has no mean."""
    saved = saved_between(base, experiment)
    first, second = base.requested, experiment.requested
    if first.client_initcwnd != second.client_initcwnd:
        return WindowChange(base, experiment, saved, varied="client_initcwnd",
                            windows=(first.uploading_window, second.uploading_window))
    return WindowChange(base, experiment, saved, (first.initcwnd, second.initcwnd))


def changes(rows: Sequence[CellSetting]) -> list[WindowChange]:
    """Each larger window of a cell against the smallest one with a mean."""
    found = []
    for cell in _cells_of(rows):
        timed = [row for row in cell if row.total_ms is not None]
        found += [change_between(timed[0], larger) for larger in timed[1:]]
    return found


def largest_changes(changes: Sequence[WindowChange], most: int) -> Sequence[WindowChange]:
    """The changes, in their order; where there are more than `most`, those with the largest effect.
    """
    if len(changes) <= most:
        return changes
    by_effect = sorted(changes, key=lambda change: -abs(change.saved_ms))
    largest = set(map(id, by_effect[:most]))
    return [change for change in changes if id(change) in largest]


def where(change: WindowChange, changes: Sequence[WindowChange]) -> str:
    """The parameters of a comparison that distinguish it from the others, and its windows."""
    others = [other.base.requested for other in changes]
    words = setting_words(change.base.requested, others, differing=True)
    return ", ".join([*words, " → ".join(map(str, change.windows))])
