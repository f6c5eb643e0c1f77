"""Responses in two stages, on kept connections, with loss: on the real kernel."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from firstflight.runs import scenario_file
from firstflight.runs.results.records import PASS
from firstflight.study.fetches import reading
from firstflight.study.fetches.scenario.trial import Trial
from firstflight.study.fetches.verify.record import Record
from firstflight.study.fetches.verify.verify import judge_fetch
from firstflight.testbed.guests import UmlEngine
from tests.unit.core.example import whole

SCENARIO = reading.read_scenario(scenario_file.find("dukkipati2010"))
SYSCTLS = SCENARIO.head.sysctls
PLAIN = Trial(scenario="live", rtt_ms=100, bandwidth_kbps=8000, uplink_kbps=8000,
              queue_packets=1000, loss_percent=0, initcwnd=3, initrwnd=64,
              congestion_control="cubic", client="libcurl", response_bytes=9000, repeat=1)
# Three segments, headers (56 bytes and four digits) included: all that a window of three lets out.
STAGED = replace(PLAIN, burst_bytes=3 * 1448 - 60, gap_ms=250)


def measured(kernel: Path, folder: Path, trials: list[Trial], jobs: int = 1) -> dict[str, Record]:
    by_id = {trial.id: trial for trial in trials}
    return {seen.trial_id: judge_fetch(by_id[seen.trial_id], seen.content, seen.client_pcap,
                                 seen.server_pcap, exact=True, sysctls=SYSCTLS)
            for seen in UmlEngine(kernel, jobs).run([trial.job() for trial in trials],
                                                    SYSCTLS, folder)}


def test_a_gap_longer_than_the_rtt_hides_the_window(kernel: Path, tmp_path: Path) -> None:
    """The paper's section 4.1: the burst is acknowledged while the back-end works."""
    near = [replace(STAGED, initcwnd=window) for window in (3, 10)]
    far = [replace(STAGED, rtt_ms=400, initcwnd=window) for window in (3, 10)]
    records = measured(kernel, tmp_path, [*near, *far])
    assert [record.verdict for record in records.values()] == [PASS] * 4
    latency = [records[trial.id].latency_ms for trial in (*near, *far)]
    assert all(value is not None for value in latency)
    assert abs(latency[0] - latency[1]) < 2  # at 100 ms IW 3 has become 6 by then
    assert latency[2] - latency[3] > 150  # at 400 ms it has not


def test_a_kept_connection_hides_the_window(kernel: Path, tmp_path: Path) -> None:
    trials = [replace(PLAIN, initcwnd=window, earlier_bytes=earlier)
              for earlier in (0, 30_000) for window in (3, 10)]
    records = measured(kernel, tmp_path, trials)
    assert {record.verdict for record in records.values()} == {PASS}
    new, kept = ([records[trial.id].latency_ms or 0 for trial in trials[start:start + 2]]
                 for start in (0, 2))
    assert new[0] - new[1] > 90
    assert abs(kept[0] - kept[1]) < 2


def test_random_loss_repeats_whatever_ran_before(kernel: Path, tmp_path: Path) -> None:
    """Also where FINs are lost, so that a connection would live on into the next trial."""
    trials = [replace(PLAIN, response_bytes=response_bytes, loss_percent=loss_percent, seed=seed,
                      repeat=seed, initcwnd=window)
              for response_bytes, loss_percent in ((40_000, 5), (1000, 20))
              for seed in range(1, 9) for window in (3, 10)]
    first = measured(kernel, tmp_path / "first", trials)
    again = measured(kernel, tmp_path / "again", trials[::-1], jobs=2)
    assert {record.verdict for record in first.values()} == {PASS}
    for few in (trials[:16], trials[16:]):
        assert sum(first[trial.id].retransmissions or 0 for trial in few) > 0
    for trial_id, record in first.items():
        other = again[trial_id]
        assert (other.retransmissions, other.lost_segments) \
            == (record.retransmissions, record.lost_segments)
        # A system call that fails counts 1 µs, and how many fail depends on what is cached.
        assert abs((other.total_ms or 0) - (record.total_ms or 0)) < 0.0025


def test_a_small_population_passes_its_verdicts(kernel: Path, tmp_path: Path) -> None:
    """One in 66 responses, under every window, with every mechanism."""
    trials = [trial for trial in whole("dukkipati2010").trials
              if trial.part == "avgdc" and trial.sample % 66 == 0]
    records = measured(kernel, tmp_path, trials, jobs=2)
    assert len(records) == len(trials) == 164
    failed = [record.verdict_reason for record in records.values() if record.verdict != PASS]
    assert not failed, failed
