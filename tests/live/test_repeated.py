"""A trial has the same numbers at any place in a run, even if kernel and servers draw numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

import pytest

from firstflight.testbed.guests import UmlEngine
from firstflight.testbed import restart
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.trial import Trial
from tests.live.conftest import measured

PLAIN = Trial(scenario="live", rtt_ms=50, bandwidth_kbps=3000, uplink_kbps=3000,
              queue_packets=20, loss_percent=0, initcwnd=40, initrwnd=1000,
              congestion_control="cubic", client="libcurl", response_bytes=150_000, repeat=1)
# In these the kernel draws: cake's drops, which flows share a queue, and BBR's phase of probing.
DRAWING = (replace(PLAIN, qdisc="cake"), replace(PLAIN, qdisc="fq_codel"),
           replace(PLAIN, congestion_control="bbr", response_bytes=3_000_000))
# In these the server draws the length of a signature, and a date over HTTP/2 has its length.
SECURE = replace(PLAIN, client="curl", response_bytes=20_000, chain_bytes=2000, signature="ecdsa")
SERVED = (SECURE, replace(SECURE, server="nginx"),
          replace(SECURE, server="nginx", http="2", signature="ed25519"))


def in_places(trial: Trial) -> Iterator[Trial]:
    """The same trial as first and as later ones of a guest, among others."""
    for repeat in range(1, 5):
        yield replace(trial, repeat=repeat)
        # This one has another length, so that the next trial meets other timers and another date.
        yield replace(trial, repeat=repeat, response_bytes=trial.response_bytes + 7919 * repeat)


def outcomes(records: dict[Trial, Record], trial: Trial) -> set[tuple[object, ...]]:
    """The different results of all repeats of a trial."""
    return {tuple(getattr(record, field.name) for field in fields(record) if field.name != "trial")
            for measured_trial, record in records.items()
            if replace(measured_trial, repeat=1) == trial}


@pytest.mark.parametrize("trial", [*DRAWING, *SERVED], ids=lambda trial: trial.id)
def test_a_trial_has_the_same_numbers_at_any_place_and_in_another_guest(
        kernel: Path, shared: UmlEngine, tmp_path: Path, trial: Trial) -> None:
    """The other guest has measured trials of other tests before."""
    first = measured(UmlEngine(kernel, 1), tmp_path / "first", list(in_places(trial)))
    second = measured(shared, tmp_path / "second", [trial])
    both = outcomes(first, trial) | outcomes(second, trial)
    assert all(record.counts for record in (*first.values(), *second.values()))
    assert len(both) == 1


def test_other_seeds_give_other_numbers(shared: UmlEngine, tmp_path: Path) -> None:
    records = measured(shared, tmp_path, [
        replace(DRAWING[0], repeat=number, seed=number) for number in range(1, 7)])
    assert len({record.total_ms for record in records.values()}) > 1


def test_each_trial_begins_at_the_same_date(shared: UmlEngine, tmp_path: Path) -> None:
    jobs = [replace(PLAIN, repeat=number).job() for number in (1, 2)]
    seen = shared.run(jobs, {}, tmp_path)
    assert [observed.content["started_at"] for observed in seen] == [restart.BEGINS_S] * 2
