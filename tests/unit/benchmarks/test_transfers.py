"""The benchmark of random transfers: what it samples, and what it counts."""

from __future__ import annotations

import shlex
from dataclasses import replace
from itertools import combinations

import pytest

from benchmarks.outside.transfers import (AMPLE_PACKETS, CLOSE_BYTES, HEADER_BYTES, REQUEST_BYTES,
                                          WORST, Tally, command_of, requested_sysctls, sample,
                                          sample_crossed, sample_tls)
from firstflight.base.errors import UsageError
from firstflight.commands.flags import parse
from firstflight.commands.overrides import overrides_of
from firstflight.runs.kinds import NOTHING
from firstflight.runs.results.records import FAIL, SKIPPED
from firstflight.study.fetches.record import Record
from firstflight.study.fetches.study import KIND
from firstflight.study.questions import question
from tests.golden import stored


@pytest.fixture(scope="module")
def passed() -> Record:
    return stored.load("iw10").judge()


def tallied(*records: Record) -> Tally:
    tally = Tally("--seed 7")
    for record in records:
        tally.add(record)
    return tally


def test_a_seed_and_a_number_are_a_transfer() -> None:
    assert sample(3, 14) == sample(3, 14) != sample(3, 15)
    assert sample(3, 14) != sample(4, 14)


def test_samples_reach_all_that_is_promised() -> None:
    trials = [sample(1, number) for number in range(1, 200)]
    assert min(trial.rtt_ms for trial in trials) < 2 and max(t.rtt_ms for t in trials) > 3000
    assert max(trial.bandwidth_kbps for trial in trials) > 5_000_000
    assert {trial.congestion_control for trial in trials} == {"cubic", "reno"}
    assert any(trial.gap_ms for trial in trials) and any(t.earlier_bytes for t in trials)
    assert any(trial.uplink_kbps < trial.bandwidth_kbps for trial in trials)
    assert any(trial.queue_packets < 1000 for trial in trials)


def test_samples_over_tls_have_all_that_decides_and_say_it() -> None:
    trials = [sample_tls(1, number) for number in range(1, 200)]
    assert trials[13] == sample_tls(1, 14) != sample_tls(2, 14)
    assert {trial.tickets for trial in trials} == {0, 1, 2}
    assert {trial.buffer_bytes for trial in trials} == {0, 1024, 4096}
    assert len({trial.record_bytes for trial in trials}) > 20 < len({t.chain_bytes for t in trials})
    assert not any(t.gap_ms or t.burst_bytes or t.earlier_bytes for t in trials)
    one = trials[13]
    assert (one.rtt_ms, one.bandwidth_kbps) == (sample(1, 14).rtt_ms, sample(1, 14).bandwidth_kbps)
    assert f"--chain {one.chain_bytes} --tickets {one.tickets} " in command_of(one)


def test_a_short_queue_is_that_of_the_bytes_that_will_be_sent() -> None:
    told = stored.load("iw10").observation["server"]
    path = len("/9000")
    assert told["header_bytes"] == HEADER_BYTES + len("9000") + CLOSE_BYTES
    assert told["request_bytes"] == REQUEST_BYTES + path + CLOSE_BYTES
    requested = [trial for trial in (sample(5, number) for number in range(1, 100))
             if trial.queue_packets < AMPLE_PACKETS]
    assert any(trial.uplink_kbps < trial.bandwidth_kbps for trial in requested)
    assert any(trial.earlier_bytes for trial in requested)


def test_what_is_off_counts_and_the_worst_are_told(passed: Record,
                                                   capsys: pytest.CaptureFixture[str]) -> None:
    assert passed.model_ms is not None and passed.model_latency_ms is not None
    late = replace(passed, total_ms=passed.model_ms + 1.5)
    slow = replace(passed, latency_ms=passed.model_latency_ms - 0.2)
    tally = tallied(passed, late, slow, *[passed] * WORST)
    assert (tally.modelled, tally.beyond, tally.beyond_tenth) == (WORST + 3, 1, 2)
    assert len(tally.worst) == WORST
    tally.show()
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("deviates ")]
    assert told[0].startswith("deviates by 1.500 ms") and told[1].startswith("deviates by 0.200 ms")
    assert "ms: --seed 7 --only" in told[0]


def test_what_was_sent_again_is_predicted_or_not() -> None:
    again = stored.load("queue_timer").judge()
    other = replace(again, retransmissions=2)
    tally = tallied(again, other)
    (line,) = tally.lines["unpredicted"]
    assert (tally.predicted, tally.modelled) == (1, 1)
    assert "2 segments retransmitted, predicted 1" in line


def test_losses_and_failures_are_told(passed: Record) -> None:
    tally = tallied(stored.load("full_queue").judge(),
                    replace(passed, verdict=FAIL, verdict_reason="model: late"))
    assert tally.lost == 1 and ": model: late\n    ./run.sh " in tally.lines["failed"][0]


def test_sysctls_are_asked_for_by_name() -> None:
    small = "net.ipv4.tcp_rmem=4096 20000 60000"
    assert requested_sysctls([small]) == {"net.ipv4.tcp_rmem": "4096 20000 60000"}
    assert requested_sysctls([]) == {}
    with pytest.raises(UsageError, match="unknown 'net.ipv4.tcp_rme'"):
        requested_sysctls(["net.ipv4.tcp_rme=1"])


# Crossed ------------------------------------------------------------------------------

def test_crossed_samples_meet_in_every_pair() -> None:
    trials = [sample_crossed(1, number) for number in range(1, 1500)]
    assert trials[13] == sample_crossed(1, 14) != sample_crossed(2, 14)
    unusual = {
        "think": lambda t: t.gap_ms and not t.burst_bytes, "burst": lambda t: t.burst_bytes,
        "fq": lambda t: t.qdisc == "fq", "fq_codel": lambda t: t.qdisc == "fq_codel",
        "cake": lambda t: t.qdisc == "cake", "queue of 1": lambda t: t.queue_packets == 1,
        "short queue": lambda t: 1 < t.queue_packets < 13, "queue in ms": lambda t: t.queue_from,
        "uplink": lambda t: t.uplink_kbps < t.bandwidth_kbps, "mss": lambda t: t.mss < 1448,
        "loss": lambda t: t.loss_percent, "burst loss": lambda t: t.loss_burst > 1,
        "jitter": lambda t: t.jitter_ms, "bbr": lambda t: t.congestion_control == "bbr",
        "kept": lambda t: t.kept, "idle": lambda t: t.idle_ms, "chain": lambda t: t.chain_bytes,
        "earlier": lambda t: t.earlier_bytes}
    cannot = [{"kept", "chain"}, {"idle", "chain"}, {"kept", "earlier"}, {"idle", "earlier"},
              {"chain", "earlier"}]
    by_name = {name: {t.sample for t in trials if has(t)} for name, has in unusual.items()}
    kinds = [{"fq", "fq_codel", "cake"}, {"queue of 1", "short queue"}, {"think", "burst"}]
    missing = [f"{one} with {other}" for one, other in combinations(unusual, 2)
               if not by_name[one] & by_name[other] and {one, other} not in cannot
               and not any({one, other} <= kind for kind in kinds)]
    assert not missing


def test_the_command_of_a_crossed_transfer_is_that_transfer() -> None:
    shown = 0
    for number in range(1, 40):
        trial = sample_crossed(4, number)
        command = command_of(trial)
        if not command:
            assert trial.earlier_bytes or trial.burst_bytes
            continue
        shown += 1
        arguments = parse(shlex.split(command)[1:])
        made = question.scenario("own", overrides_of(arguments))
        (requested,) = KIND.study_of(made, overrides=NOTHING, seed=arguments.seed).trials
        assert replace(trial, scenario="own", part="", sample=0) == requested, command
    assert shown > 15


def test_crossed_transfers_are_counted_by_result_and_check(
        passed: Record, capsys: pytest.CaptureFixture[str]) -> None:
    trial = sample_crossed(9, 1)
    wrong = replace(passed, trial=replace(passed.trial, sample=12), verdict=FAIL,
                    verdict_reason="path: observed 1 of 2 packets differ, expected none; TLS:"
                                   " observed 1, expected 2")
    late = replace(passed, trial=trial, ok=False, verdict=SKIPPED, judged_by="",
                   error="curl 28: timed out")
    tally = Tally("--seed 9 --crossed")
    for record in (passed, wrong, late):
        tally.add(record)
    tally.show()
    told = capsys.readouterr().out.splitlines()
    counts = {line[:38].strip(): line[38:].split()[0] for line in told if line[38:].strip()}
    assert counts["transfers"] == "3" and counts["passed"] == "1"
    assert counts["failed verdicts"] == "1" and counts["not finished, so not judged"] == "1"
    path = next(line for line in told if line.startswith("  path "))
    assert path.split()[1:] == ["2", "66.7", "%", "1", "failed"]
    assert "failed: --seed 9 --crossed --only 12: path: observed 1 of 2" in "\n".join(told)
    assert "not finished: --seed 9 --crossed --only 1: curl 28: timed out" in "\n".join(told)
