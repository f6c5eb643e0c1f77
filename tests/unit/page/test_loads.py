"""Loads of one page that should be equal: differences are named, and more loads are measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from firstflight.base.errors import FirstFlightError
from firstflight.runs.kinds import RunData
from firstflight.runs.measuring import JudgedTrial, save_trial_files
from firstflight.setting import draws
from firstflight.study import pages
from firstflight.testbed import site_store
from firstflight.testbed.hosts.browser.frames import PHASES
from firstflight.workloads.page import analysis, loads
from firstflight.workloads.page.record import PageRecord
from tests.golden import stored_browsed

Change = Callable[[str], str]


def run_of_loads(folder: Path, change: Change, columns: dict[str, float] | None = None
                 ) -> list[PageRecord]:
    """Three loads in a run's folder.

    change: of the text of requests.csv of the third load. columns: other values of its record.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(site_store, "folder", lambda: stored_browsed.SITES)
        record, files = stored_browsed.load("http2").judged()
    records = []
    for repeat in (1, 2, 3):
        one = replace(record, trial=replace(record.trial, repeat=repeat))
        kept = dict(files)
        if repeat == 3:
            text = files[loads.REQUESTS_FILE].decode()
            kept[loads.REQUESTS_FILE] = change(text).encode()
            one = replace(one, **(columns or {}))
        save_trial_files(folder, JudgedTrial(one, {}, kept, 0.0))
        records.append(one)
    return records


def later(by_ms: float) -> Change:
    """The fifth request ends later."""
    def change(text: str) -> str:
        lines = text.splitlines()
        cells = lines[5].split(",")  # lines[0] is the head
        end_ms = lines[0].split(",").index("end_ms")
        cells[end_ms] = f"{float(cells[end_ms]) + by_ms:.3f}"
        lines[5] = ",".join(cells)
        return "\n".join(lines) + "\n"
    return change


def without_the_last_request(text: str) -> str:
    return "\n".join(text.splitlines()[:-1]) + "\n"


def at_another_time_of_day(text: str) -> str:
    """A URL has another time of day in its query."""
    assert "&t=1767" in text
    return text.replace("&t=1767", "&t=1768")


@pytest.mark.parametrize(("change", "columns", "words"), [
    (str, {}, ""), (later(0.09), {}, ""), (at_another_time_of_day, {}, ""),
    (str, {"paint_ms": 900.0, "largest_paint_ms": 900.0}, ""),
    (later(3.2), {}, "stats.example.com/t.js) ends 3.2 ms later in load 3 than in load 1"),
    (later(-3.2), {}, "ends 3.2 ms earlier in load 3"),
    (str, {"page_ms": 800.0}, "its load event comes 6.1 ms later in load 3 than in load 1"),
    (without_the_last_request, {},
     "pixel.gif?z=0.9971327925079954 is requested in load 1 and not in load 3")])
def test_a_difference_among_equal_loads_is_named(tmp_path: Path, change: Change,
                                                 columns: dict[str, float], words: str) -> None:
    records = run_of_loads(tmp_path, change, columns)
    found = loads.difference(tmp_path, records)
    assert words in found and bool(words) == bool(found)
    (setting,) = analysis.group_settings(records)
    assert len(loads.notes(tmp_path, setting, "")) == bool(words)


# number: of loads in all. drawn: those with an RTT that was drawn at random.
@pytest.mark.parametrize(("by_ms", "drops", "number", "drawn"), [
    (0.0, 0, PHASES, 0), (1.0, 0, draws.REPEATS, draws.REPEATS - PHASES),
    (0.0, 2, draws.REPEATS, draws.REPEATS - 1)])
def test_a_page_whose_loads_differ_is_loaded_more_often(
        tmp_path: Path, by_ms: float, drops: int, number: int, drawn: int) -> None:
    records = [replace(record, queue_drops=drops)
               for record in run_of_loads(tmp_path, later(by_ms))]
    trials = [replace(records[0].trial, repeat=repeat) for repeat in range(1, PHASES + 1)]
    study = pages.PageStudy(pages.KIND, None, trials, True,  # type: ignore[arg-type]
                            draws.REPEATS)
    found = pages.with_draws(study, RunData(tmp_path, {}, records), seed=1)
    assert len(found) == number
    assert sum(trial.drawn_rtt_ms is not None for trial in found) == drawn
    assert len({trial.phase_ms for trial in found}) == number


def test_a_damaged_file_of_requests_is_refused(tmp_path: Path) -> None:
    for change in (lambda text: text.replace("number,", "n,"),  # an unknown column
                   lambda text: text + "x,1\n",  # a short row
                   lambda text: text.replace("0.000", "1e300", 1)):  # a time out of range
        with pytest.raises(FirstFlightError, match="is damaged"):
            loads.difference(tmp_path, run_of_loads(tmp_path, change))
