"""A guest that measures something else than was requested, and reads back what it was told to set.

Stored captures (tests/unit/fetches/test_tamperings.py) show what changes in a packet. What
changes in a kernel changes all that follows: here the network, its routes, sysctls and sockets
are others, each for one trial between those that are as requested.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from firstflight.runs.results.records import PASS
from firstflight.study.fetches.record import Record
from firstflight.study.fetches.scenario.trial import Trial
from firstflight.study.fetches.verify.verify import judge_fetch
from firstflight.testbed.guests import UmlEngine
from firstflight.testbed.messages import Job

# What the model computes; what it does not, since packets are lost or a timer paces.
PLAIN = Trial(scenario="live", rtt_ms=60, bandwidth_kbps=5000, uplink_kbps=5000,
              queue_packets=1000, loss_percent=0, initcwnd=10, initrwnd=40,
              congestion_control="cubic", client="libcurl", response_bytes=60_000, repeat=1)
LOSSY = replace(PLAIN, loss_percent=3.0, queue_packets=12, response_bytes=120_000, seed=5)
BBR = replace(PLAIN, congestion_control="bbr")
CODEL = replace(PLAIN, qdisc="fq_codel", queue_packets=12)
FQ = replace(PLAIN, qdisc="fq")
KEPT = replace(PLAIN, kept=1, idle_ms=2000.0)
Change = Callable[[Trial], Job]


def of_trial(**fields: str | float) -> Change:
    return lambda trial: replace(trial, **fields).job()


def shaped(**fields: str | float) -> Change:
    return lambda trial: {**trial.job(), "network": replace(trial, **fields).job()["network"]}


def with_sysctl(name: str, value: str) -> Change:
    return lambda trial: {**trial.job(), "sysctls": {f"net.ipv4.tcp_{name}": value}}


def with_buffers(name: str, value: str) -> Change:
    return lambda trial: {**trial.job(), "buffers": {f"net.ipv4.tcp_{name}": value}}


def routed(**options: int | bool) -> Change:
    return lambda trial: {**trial.job(), "options": options}


# What was requested, what the guest did, and the check that refuses it.
REFUSED: list[tuple[Trial, Change, str]] = [
    *((trial, change, check) for trial in (PLAIN, BBR, LOSSY) for change, check in (
        (of_trial(initcwnd=11), "initial window"),
        (of_trial(initrwnd=39), "TCP options"),
        (of_trial(congestion_control="reno"), "server's socket"),
        (of_trial(nagle="on"), "server's socket"),
        (of_trial(send_buffer_bytes=30_000), "server's socket"),
        (routed(advertised_mss=1459), "TCP options"),
        (with_sysctl("sack", "0"), "TCP options"),
        (with_sysctl("timestamps", "0"), "TCP options"),
        (with_sysctl("window_scaling", "0"), "TCP options"),
        (with_sysctl("mtu_probing", "2"), "segment size"),
        (with_buffers("wmem", "4096 8192 30000"), "server's socket"),
        (with_buffers("rmem", "4096 60000 60000"), "TCP options"),
        (shaped(rtt_ms=60.006), "path"),
        (shaped(bandwidth_kbps=5001.0), "path"),
        (shaped(uplink_kbps=4950.0), "path"),
        (shaped(jitter_ms=0.01, seed=3), "path"),
        (shaped(loss_percent=2.0, seed=1), "path"),
        (shaped(htb_burst_bytes=1600), "path"),
        (shaped(qdisc="fq_codel"), "path"),
        (shaped(qdisc="cake"), "path"))),
    (LOSSY, shaped(seed=99), "path"),
    (LOSSY, shaped(loss_burst=2.0), "path"),
    (LOSSY, shaped(queue_packets=6), "path"),
    (CODEL, shaped(qdisc="fifo"), "path"),
    (PLAIN, shaped(qdisc="fq"), "causes"),
    (KEPT, with_sysctl("slow_start_after_idle", "0"), "model"),
    (KEPT, of_trial(kept=1, idle_ms=2000.02), "causes")]
# docs/METHOD.md names these: whether a number changes, and in which trial nothing shows it.
PASSES: list[tuple[Trial, Change, bool]] = [
    (PLAIN, shaped(rtt_ms=60.004), True),
    (LOSSY, routed(quickack=True), True),
    (CODEL, shaped(qdisc="cake"), True),
    (FQ, shaped(qdisc="fifo"), True),
    (LOSSY, of_trial(client="curl"), True),
    *((LOSSY, with_sysctl(name, value), False) for name, value in (
        ("early_retrans", "0"), ("recovery", "0"), ("frto", "0"), ("dsack", "0"))),
    (PLAIN, shaped(queue_packets=1001), False),
    (PLAIN, shaped(seed=99), False)]


def measured(kernel: Path, folder: Path, requested: list[tuple[Trial, Change]]) -> list[Record]:
    """In one guest, in this order: each change for the trial that was requested."""
    trials = [replace(trial, repeat=number) for number, (trial, _) in enumerate(requested, 1)]
    jobs = [Job(**{**change(trial), "id": trial.id})
            for trial, (_, change) in zip(trials, requested)]
    seen = {each.trial_id: each for each in UmlEngine(kernel, 1).run(jobs, {}, folder)}
    return [judge_fetch(trial, seen[trial.id].content, seen[trial.id].client_pcap,
                        seen[trial.id].server_pcap, exact=True, sysctls={}) for trial in trials]


def numbers_of(record: Record) -> tuple[float | None, float | None]:
    return record.total_ms, record.latency_ms


def test_a_guest_that_measures_something_else_is_refused(kernel: Path, tmp_path: Path) -> None:
    sound = [(trial, Trial.job) for trial in (PLAIN, LOSSY, BBR, CODEL, FQ, KEPT)]
    requested = [*sound, *((trial, change) for trial, change, _ in REFUSED),
                 *((trial, change) for trial, change, _ in PASSES), *sound]
    records = measured(kernel, tmp_path, requested)
    before, after = records[:len(sound)], records[-len(sound):]
    assert [record.verdict for record in (*before, *after)] == [PASS] * 2 * len(sound)
    assert [numbers_of(record) for record in before] == [numbers_of(record) for record in after]
    tampered = records[len(sound):-len(sound)]
    for (_, _, check), record in zip(REFUSED, tampered):
        assert check in record.failed_checks.split("; "), (record.trial, check, record)
    usual = {trial: numbers_of(record) for (trial, _), record in zip(sound, before)}
    for (trial, _, changes), record in zip(PASSES, tampered[len(REFUSED):]):
        assert record.verdict == PASS, record.verdict_reason
        assert (numbers_of(record) != usual[trial]) == changes, record.trial
