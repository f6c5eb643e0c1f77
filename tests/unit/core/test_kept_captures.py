"""Which captures are kept: across the whole range, both windows of a cell together."""

from __future__ import annotations

import itertools

import pytest

from firstflight.runs import scenario_file
from firstflight.runs.kinds import Overrides
from firstflight.runs.measuring import CAPTURES_KEPT, sample_of
from firstflight.study import registry
from tests.unit.core.example import Trial, whole


@pytest.mark.parametrize("name", ["zhao2019", "marrama2012", "ietf78_completion", "ietf78_load"])
def test_the_ends_of_every_quantity_are_in_it(name: str) -> None:
    trials = whole(name).trials
    ids = sample_of(trials)
    kept = [trial for trial in trials if trial.id in ids]
    assert CAPTURES_KEPT <= len(kept) == len(ids) <= CAPTURES_KEPT + 1
    for quantity in ("rtt_ms", "bandwidth_kbps", "response_bytes", "load", "queue_packets"):
        requested = {getattr(trial, quantity, None) for trial in trials}
        assert {min(requested), max(requested)} <= {getattr(trial, quantity, None) for trial in kept}


def test_windows_of_a_cell_stay_together() -> None:
    for windows in ((3, 10), (3, 10, 16), (3, 4, 10, 16)):
        requested = Overrides({"initcwnd": windows}, repeat=3)
        trials = registry.study_of(scenario_file.find("zhao2019"), requested).trials
        ids = sample_of(trials)
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
    assert sample_of(few) == {trial.id for trial in few} and len(few) == 4
    single = registry.study_of(scenario_file.find("zhao2019"), Overrides({"initcwnd": (10,)}))
    assert len(sample_of(single.trials)) == CAPTURES_KEPT
    assert sample_of([]) == set()


def test_the_next_is_the_farthest_from_those_chosen() -> None:
    """The ends first, then the middle of what lies open; of two quantities no edge
    whose values are all there."""
    trials = [Trial("small", 10.0 * rank, 1) for rank in range(41)]
    ids = sample_of(trials)
    assert [rank for rank, trial in enumerate(trials) if trial.id in ids] == [
        0, 5, 10, 15, 20, 25, 30, 40]
    grid = registry.study_of(scenario_file.find("zhao2019"), Overrides(
        {"rtt_ms": (20, 40, 60, 80, 100), "bandwidth_kbps": (56, 256, 512, 1000, 2000),
         "initcwnd": (10,)})).trials
    ids = sample_of(grid)
    kept = {(trial.rtt_ms, trial.bandwidth_kbps) for trial in grid if trial.id in ids}
    corners = {(20, 56), (20, 2000), (100, 56), (100, 2000)}
    assert kept & corners == {(20, 56), (100, 2000)} and (60, 512) in kept and len(kept) == 8
    assert len({rtt_ms for rtt_ms, _ in kept}) == len({kbps for _, kbps in kept}) == 5


def test_a_population_of_thousands_is_chosen_from_in_no_time() -> None:
    trials = whole("dukkipati2010").trials
    ids = sample_of(trials)
    kept = [trial for trial in trials if trial.id in ids]
    assert CAPTURES_KEPT <= len(kept) <= CAPTURES_KEPT + 1
    for quantity in ("rtt_ms", "bandwidth_kbps", "response_bytes"):
        values = {getattr(trial, quantity) for trial in kept}
        assert max(values) > 3 * min(values), quantity
