"""Which captures are kept: the ends of every quantity, both windows of a cell together."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import pytest

from firstflight.runs import scenario_file
from firstflight.runs.captured import CAPTURES_KEPT, MOST_CELLS, choose_captured
from firstflight.runs.kinds import Overrides
from firstflight.study import registry
from tests.unit.core.example import whole


@pytest.mark.parametrize("name", ["zhao2019", "marrama2012", "ietf78_completion", "ietf78_load"])
def test_the_ends_of_every_quantity_are_in_it(name: str) -> None:
    trials = whole(name).trials
    ids = choose_captured(trials)
    kept = [trial for trial in trials if trial.id in ids]
    assert CAPTURES_KEPT <= len(kept) == len(ids) <= CAPTURES_KEPT + 1
    for quantity in ("rtt_ms", "bandwidth_kbps", "response_bytes", "load", "queue_packets"):
        requested = {getattr(trial, quantity, None) for trial in trials}
        assert {min(requested), max(requested)} <= {
            getattr(trial, quantity, None) for trial in kept}


def test_windows_of_a_cell_stay_together() -> None:
    for windows in ((3, 10), (3, 10, 16), (3, 4, 10, 16)):
        requested = Overrides({"initcwnd": windows}, repeat=3)
        trials = registry.study_of(scenario_file.find("zhao2019"), requested).trials
        ids = choose_captured(trials)
        kept = [trial for trial in trials if trial.id in ids]
        cells = {(trial.rtt_ms, trial.bandwidth_kbps, trial.repeat) for trial in kept}
        assert len(cells) == CAPTURES_KEPT // 2
        for (rtt_ms, bandwidth_kbps, repeat), window in itertools.product(
                cells, (windows[0], windows[-1])):
            assert any((trial.rtt_ms, trial.bandwidth_kbps, trial.repeat, trial.initcwnd)
                       == (rtt_ms, bandwidth_kbps, repeat, window) for trial in kept)


def test_few_trials_are_all_kept_and_single_windows_fill_it() -> None:
    few = registry.study_of(scenario_file.find("zhao2019"), Overrides(
        {"rtt_ms": (20, 50), "bandwidth_kbps": (1000,), "initcwnd": (3, 10)})).trials
    assert choose_captured(few) == {trial.id for trial in few} and len(few) == 4
    single = registry.study_of(scenario_file.find("zhao2019"), Overrides({"initcwnd": (10,)}))
    assert len(choose_captured(single.trials)) == CAPTURES_KEPT
    assert choose_captured([]) == set()


def test_the_next_is_the_farthest_from_those_chosen() -> None:
    """Of two quantities no edge whose values are all there."""
    grid = registry.study_of(scenario_file.find("zhao2019"), Overrides(
        {"rtt_ms": (20, 40, 60, 80, 100), "bandwidth_kbps": (56, 256, 512, 1000, 2000),
         "initcwnd": (10,)})).trials
    ids = choose_captured(grid)
    kept = {(trial.rtt_ms, trial.bandwidth_kbps) for trial in grid if trial.id in ids}
    corners = {(20, 56), (20, 2000), (100, 56), (100, 2000)}
    assert kept & corners == {(20, 56), (100, 2000)} and (60, 512) in kept and len(kept) == 8
    assert len({rtt_ms for rtt_ms, _ in kept}) == len({kbps for _, kbps in kept}) == 5


# Of trials on a line, and on two ------------------------------------------------------

@dataclass(frozen=True)
class Placed:
    rtt_ms: float | None
    loss_percent: float = 0.0
    initcwnd: int = 10
    congestion_control: str = "cubic"
    sample: int = 0

    @property
    def id(self) -> str:
        return f"{self.rtt_ms}/{self.loss_percent}/{self.congestion_control}/{self.initcwnd}"


def kept_ids(trials: list[Placed]) -> list[str]:
    ids = choose_captured(trials)
    return sorted(trial.id for trial in trials if trial.id in ids)


@pytest.mark.parametrize("values", [list(range(1, 10)), [1, 2, 3, 4, 5, 6, 7, 8, 1000],
                                    [10 ** each for each in range(9)]])
def test_on_a_line_the_ends_then_the_middle_of_the_largest_gap(values: list[float]) -> None:
    """By rank, whatever the distances: 1 and 9 of 9, 5, 3 and 7, and of the even ones the first."""
    chosen = [values.index(float(each.partition("/")[0])) + 1 for each in kept_ids(
        [Placed(value) for value in values])]
    assert sorted(chosen) == [1, 2, 3, 4, 5, 6, 7, 9]


def test_a_cell_with_more_ends_comes_before_one_that_is_farther() -> None:
    """Both windows of a cell are kept_ids, so four cells: two corners have all four ends."""
    trials = [Placed(rtt_ms, loss_percent, window) for rtt_ms in (1.0, 2.0, 3.0)
              for loss_percent in (0.0, 1.0, 2.0) for window in (3, 10)]
    cells = {each.rpartition("/")[0] for each in kept_ids(trials)}
    assert {"1.0/0.0/cubic", "3.0/2.0/cubic"} <= cells
    assert cells <= {"1.0/0.0/cubic", "3.0/2.0/cubic", "1.0/2.0/cubic", "2.0/1.0/cubic",
                     "3.0/0.0/cubic"} and len(cells) == 4


def test_words_and_what_is_not_set_have_their_place_too() -> None:
    trials = [Placed(rtt_ms, 0.0, 10, control) for rtt_ms in (None, 1.0, 2.0)
              for control in ("bbr", "cubic", "reno")]
    chosen = kept_ids(trials)
    assert len(chosen) == 8 and {"1.0/0.0/bbr/10", "None/0.0/reno/10"} <= set(chosen)
    assert len(kept_ids(trials[:3])) == 3 and kept_ids([Placed(None), Placed(1.0)]) == [
        "1.0/0.0/cubic/10", "None/0.0/cubic/10"]


def test_numbers_of_trials_are_no_axis() -> None:
    """Else the samples of a population would all lie at an end."""
    trials = [Placed(float(1 + each % 3), sample=each) for each in range(30)]
    assert sorted({each.partition("/")[0] for each in kept_ids(trials)}) == ["1.0", "2.0", "3.0"]


def test_of_many_cells_an_even_share_is_looked_at() -> None:
    values = [float(each) for each in range(2 * MOST_CELLS + 1)]
    looked_at = values[::3]  # three times as many as are looked at, rounded up
    chosen = [float(each.partition("/")[0]) for each in kept_ids([Placed(each) for each in values])]
    assert set(chosen) <= set(looked_at) and {0.0, looked_at[-1]} <= set(chosen)
