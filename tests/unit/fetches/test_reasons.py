"""What is asked of the network, and what its answers say: by made-up networks with known limits."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from firstflight.base.stats import Estimate
from firstflight.runs.kinds import RunData, is_what_if
from firstflight.study.fetches.figures import reasons
from firstflight.study.fetches.figures.cells import WindowChange, changes, settings
from firstflight.study.fetches.figures.reasons import WhatIfs, explained, what_if_trials
from firstflight.study.fetches.record import Record
from firstflight.study.fetches.scenario.trial import Trial
from firstflight.study.fetches.scenario.what_if import LIMITS, limits_of, without
from tests.golden import stored_fetches

ONE = next(record for record in stored_fetches.stored("zhao2019") if record.trial.initcwnd == 3)
# The time of a trial in ms, and how long its link was idle.
Network = Callable[[Trial], tuple[float, float]]


def measured(network: Network, trial: Trial) -> Record:
    total_ms, idle_ms = network(trial)
    return replace(ONE, trial=trial, total_ms=total_ms, link_idle_ms=idle_ms,
                   response_round_trips=2 if trial.initcwnd == 10 else 3,
                   response_flights="10+11" if trial.initcwnd == 10 else "3+6+12")


def asked(network: Network, trials: int = reasons.MOST_TRIALS, **values: object
          ) -> tuple[WindowChange, WhatIfs, int]:
    """A comparison on a network, all that it asks there, and how many trials that took."""
    base = replace(ONE.trial, rtt_ms=100.0, bandwidth_kbps=1000.0, uplink_kbps=1000.0,
                   queue_packets=20, initrwnd=10, **values)  # type: ignore[arg-type]
    records = [measured(network, replace(base, initcwnd=window, repeat=repeat))
               for window in (3, 10) for repeat in ((1, 2, 3) if base.is_random else (1,))]
    (change,) = changes(settings(records))
    what_ifs = WhatIfs()
    for _ in range(3):
        done = {record.trial for record in what_ifs.records}
        more = [trial for trial in what_if_trials([change], what_ifs) if trial not in done]
        what_ifs = WhatIfs([*what_ifs.records, *(measured(network, trial) for trial in more)])
    return change, what_ifs, len(what_ifs.records)


def told(network: Network, **values: object) -> str:
    change, what_ifs, _ = asked(network, **values)
    return " ".join(explained([change], what_ifs))


def lifted(trial: Trial) -> set[str]:
    """The limits that a what-if trial is without."""
    return {*filter(None, trial.what_if.split("_"))}


def saves(saved_ms: float, idle_ms: float | None = None) -> tuple[float, float]:
    """Of the larger window: of 500 ms so much less, and of 300 idle ones."""
    return 500.0 - saved_ms, 300.0 - (saved_ms if idle_ms is None else idle_ms)


def of_larger(effect: Callable[[set[str]], tuple[float, float]]) -> Network:
    return lambda trial: effect(lifted(trial)) if trial.initcwnd == 10 else saves(0.0)


# A saving ------------------------------------------------------------------------------

def test_a_saving_is_round_trips_where_the_link_is_idle_for_so_much_less() -> None:
    line = told(of_larger(lambda without: saves(100.0)))
    assert line == ("The response takes 3 flights with 3 segments (3+6+12) and 2 with 10 (10+11),"
                    " and the link is idle 100.0 ms less.")
    assert "idle 97.0 ms less" in told(of_larger(lambda without: saves(100.0, 97.0)))
    assert "idle" not in told(of_larger(lambda without: saves(100.0, 90.0)))


def test_a_receive_window_may_add_to_a_saving_but_bandwidth_never_does() -> None:
    line = told(of_larger(lambda without: saves(150.0 if without else 100.0)))
    assert line.endswith("idle 100.0 ms less; with an ample receive window it would save 150.0 ms.")

    def slower_base(trial: Trial) -> tuple[float, float]:
        """Without the limit both get slower, the smaller window by more."""
        more_ms = 100.0 if trial.what_if else 0.0
        return (420.0 if trial.initcwnd == 10 else 500.0 + more_ms), (
            220.0 if trial.initcwnd == 10 else 300.0)
    assert "it would save" not in told(slower_base)


def test_a_saving_that_is_no_waiting_is_what_takes_it_away() -> None:
    """Random loss that met the smaller window alone."""
    line = told(of_larger(lambda without: saves(0.0 if "loss" in without else 60.0, 10.0)),
                loss_percent=1.0)
    assert line == "The random loss: with no random loss 10 segments take as long as 3."


# Nothing -------------------------------------------------------------------------------

def test_each_limit_that_alone_takes_the_gain_away_is_named() -> None:
    line = told(of_larger(lambda without: saves(
        66.0 if {"receive-window", "bandwidth"} <= without else 0.0)))
    assert line == ("The receive window and bandwidth: without any limit 10 segments save 66.0 ms,"
                    " and each alone takes that away.")
    line = told(of_larger(lambda without: saves(66.0 if "bandwidth" in without else 0.0)))
    assert line == ("The bandwidth: without any limit 10 segments save 66.0 ms, and it alone takes"
                    " that away.")


def test_limits_that_take_it_away_only_together_are_told_so() -> None:
    assert "several limits together" in told(of_larger(lambda without: saves(
        66.0 if {"receive-window", "queue"} & without else 0.0))).lower()


def test_a_limit_that_protects_is_told_and_nothing_advised() -> None:
    line = told(of_larger(lambda without: saves(-22.8 if without == {"receive-window"} else 0.0)))
    assert line == ("The receive window protects: with an ample receive window 10 segments take"
                    " 22.8 ms longer.")


def test_where_no_limit_hides_anything_both_sent_the_same() -> None:
    def same(trial: Trial) -> tuple[float, float]:
        return saves(0.0)
    assert "the response takes 3 flights with 3 segments" in told(same).lower()
    assert told(same, kept=1).startswith("The connection was used before: ")


# Harm ----------------------------------------------------------------------------------

@pytest.mark.parametrize(("left_ms", "is_cause"), [(0.0, True), (-8.0, True), (-12.0, False)])
def test_a_harm_is_what_takes_four_fifths_of_it_away(left_ms: float, is_cause: bool) -> None:
    line = told(of_larger(lambda without: saves(left_ms if "queue" in without else -50.0)))
    assert line.startswith("The queue: with an endless queue" if is_cause else
                           "No single reason was found: with an endless queue"), line


def test_two_harmful_limits_are_asked_together_where_none_is_enough() -> None:
    line = told(of_larger(lambda without: saves(
        0.0 if {"queue", "jitter"} <= without else -50.0)), jitter_ms=5.0)
    assert line == ("The queue and jitter: with an endless queue and no jitter 10 segments take as"
                    " long as 3.")


def test_what_was_not_asked_has_no_reason() -> None:
    """A stored run of an earlier version: nothing is inferred."""
    change, _, _ = asked(of_larger(lambda without: saves(-50.0)))
    assert explained([change], WhatIfs()) == []
    old = replace(change, base=replace(change.base, records=[
        replace(record, link_idle_ms=None) for record in change.base.records]))
    faster = replace(old.saved, experiment=Estimate(400.0), absolute=Estimate(100.0))
    assert explained([replace(old, saved=faster)], WhatIfs()) == []


# The trials ----------------------------------------------------------------------------

def test_each_limit_is_lifted_and_named() -> None:
    trial = replace(ONE.trial, initrwnd=10, queue_packets=20, loss_percent=1.0, loss_burst=2.0,
                    jitter_ms=5.0, qdisc="fq", send_buffer_bytes=9000, chain_bytes=9000, seed=7)
    limits = limits_of(trial)
    assert limits == LIMITS
    for limit in limits:
        free = without(trial, (limit,))
        assert limit not in limits_of(replace(free, what_if="")) or limit.tag == "bandwidth"
        assert free.what_if == limit.tag and free.seed == trial.seed
        assert free.id.endswith(f"-without-{limit.tag}") and is_what_if(free)
    every = without(trial, limits)
    assert re.fullmatch(Trial.PATTERNS["what_if"], every.what_if)
    assert (every.initrwnd, every.bandwidth_kbps, every.qdisc) == (
        1000, 10 * trial.bandwidth_kbps, "fifo")
    assert (every.loss_percent, every.loss_burst, every.jitter_ms) == (0, 1, 0)
    assert every.queue_packets == 1_000_000 and every.chain_bytes < 1000
    assert without(replace(trial, qdisc="cake"), limits).qdisc == "fifo"
    assert without(replace(trial, congestion_control="bbr"), limits).congestion_control == "cubic"


def test_an_answer_asks_at_most_forty_trials_and_nothing_by_halves() -> None:
    change, _, count = asked(of_larger(lambda without: saves(0.0)))
    assert count == 14  # all, three put back, three alone, under two windows
    several = [replace(change, base=replace(change.base, requested=replace(
        change.base.requested, rtt_ms=100.0 + place)), experiment=replace(
            change.experiment, records=[replace(record, trial=replace(
                record.trial, rtt_ms=100.0 + place)) for record in change.experiment.records]))
        for place in range(5)]
    trials = what_if_trials(several, WhatIfs())
    assert len(trials) <= reasons.MOST_TRIALS
    assert {len([trial for trial in trials if trial.rtt_ms == 100.0 + place and
                 trial.initcwnd == 10]) for place in range(5)} == {0, 7}
    huge = replace(change, experiment=replace(change.experiment, records=[replace(
        record, trial=replace(record.trial, response_bytes=50_000_000))
        for record in change.experiment.records]))
    assert what_if_trials([huge], WhatIfs()) == []


def test_where_chance_decides_several_repeats_are_asked_and_one_without_it() -> None:
    change, what_ifs, _ = asked(of_larger(lambda without: saves(-50.0)), loss_percent=1.0)
    by_limits: dict[str, int] = {}
    for record in what_ifs.records:
        by_limits[record.trial.what_if] = by_limits.get(record.trial.what_if, 0) + 1
    assert by_limits == {"queue": 6, "loss": 2, "queue_loss": 2}


def test_what_if_trials_are_in_no_count_and_no_mean() -> None:
    change, what_ifs, count = asked(of_larger(lambda without: saves(0.0)))
    requested = [*change.base.records, *change.experiment.records]
    run = RunData(Path(), {}, [*requested, *what_ifs.records])
    assert run.records == requested and len(run.what_ifs) == count > 0


def test_a_scenario_asks_about_its_largest_saving_and_its_largest_harm() -> None:
    def at(rtt_ms: float, saved_ms: float) -> WindowChange:
        change, _, _ = asked(of_larger(lambda without: saves(saved_ms)))
        return replace(change, base=replace(change.base, requested=replace(
            change.base.requested, rtt_ms=rtt_ms)))
    all_changes = [at(1, 10.0), at(2, 90.0), at(3, -30.0), at(4, -70.0)]
    assert reasons.changes_to_explain(all_changes, is_question=False) == [all_changes[1], all_changes[3]]
    assert reasons.changes_to_explain(all_changes[:2], is_question=False) == [all_changes[1]]
    assert reasons.changes_to_explain(all_changes, is_question=True)[0] is all_changes[1]
    assert reasons.changes_to_explain([], is_question=False) == []


def test_the_reason_of_one_comparison_among_several_names_its_place() -> None:
    """A link that is idle 4996.6 ms less is of no network that a reader knows."""
    one, what_ifs, _ = asked(lambda trial: saves(120.0 if trial.initcwnd == 10 else 0.0))
    other = changes(settings([replace(record, trial=replace(record.trial, rtt_ms=5000.0))
                              for cell in (one.base, one.experiment) for record in cell.records]))
    (alone,) = explained([one], what_ifs)
    (among,) = explained([one], what_ifs, among=[one, *other])
    assert "RTT" not in alone and "(RTT 100 ms, 3 → 10)" in among
