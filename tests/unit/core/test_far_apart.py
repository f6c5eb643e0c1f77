"""Which captures are kept of trials on a line, and on two: ends first, then what is farthest."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from firstflight.runs.measuring import MOST_LOOKED_AT, sample_of


@dataclass(frozen=True)
class Trial:
    rtt_ms: float | None
    loss_percent: float = 0.0
    initcwnd: int = 10
    congestion_control: str = "cubic"
    sample: int = 0

    @property
    def id(self) -> str:
        return f"{self.rtt_ms}/{self.loss_percent}/{self.congestion_control}/{self.initcwnd}"


def kept(trials: list[Trial]) -> list[str]:
    ids = sample_of(trials)
    return sorted(trial.id for trial in trials if trial.id in ids)


@pytest.mark.parametrize("values", [list(range(1, 10)), [1, 2, 3, 4, 5, 6, 7, 8, 1000],
                                    [10 ** each for each in range(9)]])
def test_on_a_line_the_ends_then_the_middle_of_the_largest_gap(values: list[float]) -> None:
    """By rank, whatever the distances: 1 and 9 of 9, 5, 3 and 7, and of the even ones the first."""
    chosen = [values.index(float(each.partition("/")[0])) + 1 for each in kept(
        [Trial(value) for value in values])]
    assert sorted(chosen) == [1, 2, 3, 4, 5, 6, 7, 9]


def test_a_cell_with_more_ends_comes_before_one_that_is_farther() -> None:
    """Both windows of a cell are kept, so four cells: two corners have all four ends."""
    trials = [Trial(rtt_ms, loss_percent, window) for rtt_ms in (1.0, 2.0, 3.0)
              for loss_percent in (0.0, 1.0, 2.0) for window in (3, 10)]
    cells = {each.rpartition("/")[0] for each in kept(trials)}
    assert {"1.0/0.0/cubic", "3.0/2.0/cubic"} <= cells
    assert cells <= {"1.0/0.0/cubic", "3.0/2.0/cubic", "1.0/2.0/cubic", "2.0/1.0/cubic",
                     "3.0/0.0/cubic"} and len(cells) == 4


def test_words_and_what_is_not_set_have_their_place_too() -> None:
    trials = [Trial(rtt_ms, 0.0, 10, control) for rtt_ms in (None, 1.0, 2.0)
              for control in ("bbr", "cubic", "reno")]
    chosen = kept(trials)
    assert len(chosen) == 8 and {"1.0/0.0/bbr/10", "None/0.0/reno/10"} <= set(chosen)
    assert len(kept(trials[:3])) == 3 and kept([Trial(None), Trial(1.0)]) == [
        "1.0/0.0/cubic/10", "None/0.0/cubic/10"]


def test_numbers_of_trials_are_no_axis() -> None:
    """Else the samples of a population would all lie at an end."""
    trials = [Trial(float(1 + each % 3), sample=each) for each in range(30)]
    assert sorted({each.partition("/")[0] for each in kept(trials)}) == ["1.0", "2.0", "3.0"]


def test_of_many_cells_an_even_share_is_looked_at() -> None:
    values = [float(each) for each in range(2 * MOST_LOOKED_AT + 1)]
    looked_at = values[::3]  # three times as many as are looked at, rounded up
    chosen = [float(each.partition("/")[0]) for each in kept([Trial(each) for each in values])]
    assert set(chosen) <= set(looked_at) and {0.0, looked_at[-1]} <= set(chosen)
