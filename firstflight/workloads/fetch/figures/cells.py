"""The cells of fetches: their settings, and what larger windows change in them."""

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
    """The settings in the order of their records.

    The settings of a cell follow each other, in the order of their windows.
    """
    by_setting = grouped(records, lambda record: without_repeat(record.trial))
    ordered = []
    for cell in _cells_of(list(starmap(CellSetting, by_setting.items()))):
        ordered += sorted(cell, key=lambda row: (row.requested.initcwnd,
                                                 row.requested.uploading_window))
    return ordered


def _cells_of(rows: Sequence[CellSetting]) -> Iterable[list[CellSetting]]:
    """The settings grouped by cell. Those of a cell differ in the window only.

    It is the server's window, or the client's where only that varies.
    """
    windows = {(row.requested.initcwnd, row.requested.client_initcwnd) for row in rows}
    has_one_server_window = len({initcwnd for initcwnd, _ in windows}) == 1
    if has_one_server_window and len(windows) > 1:
        return grouped(rows, lambda row: replace(row.requested, client_initcwnd=0)).values()
    return grouped(rows, lambda row: replace(row.requested, initcwnd=1)).values()


def change_between(base: CellSetting, experiment: CellSetting) -> WindowChange:
    """What one setting changes against another. Raises ValueError where one has no mean."""
    saved = saved_between(base, experiment)
    of_base, of_experiment = base.requested, experiment.requested
    if of_base.client_initcwnd != of_experiment.client_initcwnd:
        return WindowChange(base, experiment, saved, varied="client_initcwnd",
                            windows=(of_base.uploading_window, of_experiment.uploading_window))
    return WindowChange(base, experiment, saved,
                        windows=(of_base.initcwnd, of_experiment.initcwnd))


def changes(rows: Sequence[CellSetting]) -> list[WindowChange]:
    """What each larger window of a cell changes against its smallest window with a mean."""
    found = []
    for cell in _cells_of(rows):
        timed = [row for row in cell if row.total_ms is not None]
        found += [change_between(timed[0], larger) for larger in timed[1:]]
    return found


def largest_changes(changes: Sequence[WindowChange], most: int) -> Sequence[WindowChange]:
    """The changes in their order; of more than `most`, those with the largest effect."""
    if len(changes) <= most:
        return changes
    by_effect = sorted(changes, key=lambda change: -abs(change.saved_ms))
    largest = set(map(id, by_effect[:most]))
    return [change for change in changes if id(change) in largest]


def where(change: WindowChange, changes: Sequence[WindowChange]) -> str:
    """The parameters that distinguish a comparison from the others, and its windows, in words."""
    of_all = [compared.base.requested for compared in changes]
    words = setting_words(change.base.requested, of_all, differing=True)
    return ", ".join([*words, " → ".join(map(str, change.windows))])
