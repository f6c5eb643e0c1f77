"""What is asked of a network, and when; what its answers say is in tests/golden/reasons.py."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from firstflight.base.stats import Estimate
from firstflight.runs.kinds import RunData, is_what_if
from firstflight.study.fetches.figures import reasons
from firstflight.study.fetches.figures.cells import WindowChange, changes, settings
from firstflight.study.fetches.figures.reasons import WhatIfs, explained, what_if_trials
from firstflight.study.fetches.scenario.trial import Trial
from firstflight.study.fetches.scenario.what_if import LIMITS, limits_of, without
from tests.golden.reasons import ONE, asked, of_larger, saves


def test_what_was_not_asked_has_no_reason() -> None:
    """A stored run of an earlier version: nothing is inferred."""
    change, _, _ = asked(of_larger(lambda without: saves(-50.0)))
    assert explained([change], WhatIfs()) == []
    old = replace(change, base=replace(change.base, records=[
        replace(record, link_idle_ms=None) for record in change.base.records]))
    faster = replace(old.saved, experiment=Estimate(400.0), absolute=Estimate(100.0))
    assert explained([replace(old, saved=faster)], WhatIfs()) == []


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
    assert reasons.changes_to_explain(all_changes, is_question=False) == all_changes[1::2]
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
