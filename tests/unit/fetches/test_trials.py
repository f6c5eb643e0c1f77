"""Trials: what a scenario expands to, with what the command line says in place of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from firstflight.base.errors import UsageError
from firstflight.net import link
from firstflight.parameters import SWEPT
from firstflight.runs.kinds import Overrides
from firstflight.study.fetches.scenario.scenario import Scenario
from firstflight.study.fetches.scenario.sweep import cell_of, seed_of
from firstflight.study.fetches.scenario.trial import Trial
from firstflight.study.fetches.study import KIND, expand
from tests.unit.core.example import whole
from tests.unit.fetches.small import NAMES, WITHOUT_FIGURES, scenario_of, small

PLAIN = Trial(scenario="s", rtt_ms=20.0, bandwidth_kbps=56.5, uplink_kbps=56.5, queue_packets=1000,
              loss_percent=0.0, initcwnd=3, initrwnd=27, congestion_control="cubic", client="curl",
              response_bytes=9000, repeat=1)


def lists(**values: Sequence[float]) -> Overrides:
    return Overrides(values)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "dukkipati2010"])
def test_every_scenario_expands(name: str) -> None:
    """What each of them asks for is a golden: rendered/requested.words."""
    made = whole(name)
    trials = made.trials
    assert trials and len(set(trials)) == len(trials) == len({trial.id for trial in trials})
    assert made.head.claim.endswith(".")


def test_an_id_names_what_a_trial_is_asked() -> None:
    trial = PLAIN
    assert trial.id == "rtt20-bw56.5-up56.5-q1000-iw3-rw27-cubic-curl-9000B-1"
    lossy = replace(trial, loss_percent=2.0, seed=7, burst_bytes=10, gap_ms=5.0, earlier_bytes=9)
    assert lossy.id == ("rtt20-bw56.5-up56.5-q1000-loss2-seed7-iw3-rw27-cubic-curl-after9B"
                        "-9000B-burst10-gap5-1")
    assert replace(lossy, part="avgdc", sample=4).id == "avgdc-4-iw3-1"


def test_trials_of_one_network_are_adjacent_and_windows_alternate(tmp_path: Path) -> None:
    trials = expand(small(tmp_path), Overrides({}, repeat=3))
    shapes = [(trial.rtt_ms, trial.bandwidth_kbps) for trial in trials]
    changes = sum(before != after for before, after in zip(shapes, shapes[1:]))
    assert changes == len(set(shapes)) - 1
    assert [(trial.repeat, trial.initcwnd) for trial in trials[:6]] == [
        (1, 3), (1, 10), (2, 3), (2, 10), (3, 3), (3, 10)]


def test_sweeps_are_united_without_duplicates(tmp_path: Path) -> None:
    scenario = small(tmp_path, ("[[axis]]\nby = \"rtt_ms\"", """[[sweep]]
name = "again"
rtt_ms = [20]
bandwidth_kbps = [56, 999]
[[sweep]]
name = "lossy"
pairs = [[20, 56], [70, 1200]]
loss_percent = 2
uplink = 128
initcwnd = [4]
[[axis]]
by = "rtt_ms\""""))
    trials = expand(scenario)
    assert len(trials) == 8 + 2 + 2
    assert [trial.uplink_kbps for trial in trials if trial.loss_percent == 2] == [128, 128]
    # The same RTT and bandwidth with loss is another network shape.
    assert [trial.initcwnd for trial in trials if trial.loss_percent == 2] == [4, 4]


def test_overrides_replace_lists_and_may_leave_the_scenario(tmp_path: Path) -> None:
    scenario = small(tmp_path)
    trials = expand(scenario, Overrides(
        {"rtt_ms": (77,), "bandwidth_kbps": [1234.5], "initcwnd": [4], "response_bytes": [20000]},
        client="wget", repeat=2))
    assert [(trial.rtt_ms, trial.bandwidth_kbps, trial.uplink_kbps, trial.initcwnd,
             trial.response_bytes, trial.client, trial.repeat)
            for trial in trials] == [
        (77, 1234.5, 1234.5, 4, 20000, "wget", repeat) for repeat in (1, 2)]
    assert len(expand(scenario, lists(rtt_ms=[20, 20.0]))) == 4


def test_overrides_reach_pairs(tmp_path: Path) -> None:
    scenario = small(tmp_path, ("rtt_ms = [20, 50]\nbandwidth_kbps = [56, 256]",
                                "pairs = [[20, 56], [20, 256], [50, 56], [50, 256]]"))
    trials = expand(scenario, lists(rtt_ms=[5]))
    assert {(trial.rtt_ms, trial.bandwidth_kbps) for trial in trials} == {(5, 56), (5, 256)}


def test_partial_and_covering(tmp_path: Path) -> None:
    scenario = small(tmp_path)
    assert KIND.has_all_cells(expand(scenario), expand(scenario, Overrides({}, repeat=5)))
    assert KIND.has_all_cells(expand(scenario), expand(scenario, lists(initcwnd=[3, 10])))
    assert not KIND.has_all_cells(expand(scenario), expand(scenario, lists(rtt_ms=[20])))


@pytest.mark.parametrize(("overrides", "words"), [
    (lists(rtt_ms=[0]), "--rtt: an RTT of 0 ms"),
    (lists(rtt_ms=[]), "--rtt: no value"),
    (lists(bandwidth_kbps=[1e300]), "--bw: a bandwidth of 1e\\+300 kbit/s"),
    (lists(initcwnd=[0]), "--iw: an initial window of 0 segments"),
    (lists(response_bytes=[0]), "--size: a response of 0 bytes"),
    (lists(rtt_ms=range(1, 1001), bandwidth_kbps=range(1, 1001)), "2000000 trials"),
    (lists(rtt_ms=range(1, 60001), bandwidth_kbps=range(1, 60001)), "7200000000 trials"),
    (Overrides({}, repeat=0), "--repeat"),
    (Overrides({}, repeat=10**9), "--repeat"),
    (Overrides({}, client="wgt"), "--client: unknown 'wgt' \\(did you mean 'wget'\\?\\)"),
])
def test_bad_overrides_name_the_flag(scenario: Scenario, overrides: Overrides,
                                     words: str) -> None:
    with pytest.raises(UsageError, match=words):
        expand(scenario, overrides)


def test_what_a_population_draws_is_not_overridden() -> None:
    drawn = scenario_of("dukkipati2010")
    for overrides in (lists(rtt_ms=[20]), lists(response_bytes=[1]), Overrides({}, repeat=2)):
        with pytest.raises(UsageError, match="draws its clients and responses: it takes --iw"):
            expand(drawn, overrides)


def test_what_sweeps_have_lists_of_reaches_trials_cells_and_the_network(
        scenario: Scenario) -> None:
    assert {"rtt_ms", "bandwidth_kbps", "loss_percent", "response_bytes"} <= {*SWEPT}
    (trial, *_), (cell, *_) = expand(scenario), scenario.sweeps[0].cells
    assert cell_of(trial) == cell
    assert [getattr(cell, name) for name in SWEPT] == [getattr(trial, name) for name in SWEPT]
    assert link.Path.from_json(trial.job()["network"]) == trial.path


def test_both_windows_meet_the_same_loss_and_repeats_differ(tmp_path: Path) -> None:
    scenario = small(tmp_path, WITHOUT_FIGURES, ("loss_percent = 0", "loss_percent = [0, 2]"),
                     ("repeat = 1", "repeat = 100"))
    lossy = [trial for trial in expand(scenario) if trial.loss_percent]
    by_repeat: dict[int, set[int]] = {}
    for trial in lossy:
        by_repeat.setdefault(trial.repeat, set()).add(trial.seed)
    assert all(len(seeds) == 1 for seeds in by_repeat.values())
    assert len({trial.seed for trial in lossy}) == len(by_repeat) == 100
    assert all(0 <= trial.seed < 2**32 for trial in lossy)
    assert {trial.seed for trial in expand(scenario) if not trial.loss_percent} == {0}
    other = {trial.seed for trial in expand(scenario, seed=2) if trial.loss_percent}
    assert not other & {trial.seed for trial in lossy}


def test_seeds_start_netem_at_unlike_places() -> None:
    """The kernel's generator (taus113, no warm-up) as netem is seeded: first numbers are even."""
    def first(seed: int) -> int:
        start = (seed >> 32 ^ seed << 10 ^ seed) & 0xFFFFFFFF
        number = 0
        for shift_left, shift_right, mask, shift, least in (
                (6, 13, 0xFFFFFFFE, 18, 2), (2, 27, 0xFFFFFFF8, 2, 8),
                (13, 21, 0xFFFFFFF0, 7, 16), (3, 12, 0xFFFFFF80, 13, 128)):
            state = start + least if start < least else start
            number ^= ((state & mask) << shift & 0xFFFFFFFF) ^ (
                ((state << shift_left & 0xFFFFFFFF) ^ state) >> shift_right)
        return number

    numbers = [first(seed_of(1, repeat)) for repeat in range(1, 1001)]
    quarters = [sum(number >> 30 == quarter for number in numbers) for quarter in range(4)]
    assert all(200 < count < 300 for count in quarters), quarters


def test_trials_are_counted_before_they_are_made(tmp_path: Path) -> None:
    many = Overrides({"rtt_ms": [1 + each / 100 for each in range(500)]}, repeat=100)
    with pytest.raises(UsageError, match="200000 trials are requested, .*allow them with --yes"):
        expand(small(tmp_path), many)
    with pytest.raises(UsageError, match="^1840000 trials are requested, at most 1000000"):
        expand(scenario_of("dukkipati2010"), Overrides({"initcwnd": range(1, 201)}, many=True))


def test_a_lossless_network_is_not_repeated_like_a_lossy_one(tmp_path: Path) -> None:
    scenario = small(tmp_path, WITHOUT_FIGURES, ("loss_percent = 0", "loss_percent = [0, 2]"),
                     ("repeat = 1", "repeat = 2\nrepeat_with_loss = 30"))
    trials = expand(scenario)
    assert sum(not trial.loss_percent for trial in trials) == 4 * 2 * 2
    assert sum(trial.loss_percent == 2 for trial in trials) == 4 * 2 * 30
    assert len(expand(scenario, Overrides({}, repeat=3))) == 4 * 2 * 3 * 2
    assert KIND.has_all_cells(expand(scenario), expand(scenario, Overrides({}, repeat=1)))
