"""Benchmarks: what side_by_side.py judges, and what the random transfers sample and count."""

from __future__ import annotations

import copy
import json
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from benchmarks.outside import side_by_side
from benchmarks.outside.side_by_side_table import TOLERANCES, Case, Row, document, judged
from benchmarks.outside.transfers import (AMPLE_PACKETS, CLOSE_BYTES, HEADER_BYTES, REQUEST_BYTES,
                                          WORST, Tally, command_of, requested_sysctls, sample,
                                          sample_crossed, sample_tls, sample_upload)
from firstflight.base import PROJECT
from firstflight.base.errors import UsageError
from firstflight.commands.flags import parse
from firstflight.runs.kinds import NOTHING
from firstflight.runs.results.records import FAIL, SKIPPED
from firstflight.study.fetches import KIND
from firstflight.study.questions import question
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.trial import Trial
from tests.golden import stored

OBSERVED = json.loads((Path(__file__).parent / "side_by_side_observed.json").read_text())
CASE = Case("netcat", "netcat takes 1 MB to b", sh="true", rate_mbit=4)
THROUGHPUT, TIME, AGAIN = "throughput, Mbit/s", "time, s", "retransmitted"
CWND, WINDOW = "cwnd, segments", "receive window, kB"


def changed(run: dict[str, Any], **new: object) -> dict[str, Any]:
    return {**copy.deepcopy(run), **new}


def flagged(row: Row) -> set[str]:
    """The measures that differ."""
    return {compared.measure for compared in row.differences()}


def sides(name: str) -> list[list[dict[str, Any]]]:
    """The stored runs of a case in each world, in the order of judged()'s arguments."""
    return [[OBSERVED[name][world]] for world in ("virtual", "counted", "real")]


def test_a_stored_difference_is_flagged() -> None:
    """A window of 64 kB: stock's 9.17 Mbit/s are 8 % from 8.43, by stored observations."""
    case = Case("delay-small-window", "a window of 64 kB", sh="true", rate_mbit=7)
    row = judged(case, *sides(case.name))
    assert flagged(row) == {THROUGHPUT, WINDOW}
    assert row.unexplained() == [THROUGHPUT, WINDOW]
    page = document([row], {}, "")
    assert "| **8.43 / 9.17 (8.4)** |" in page and "**not known**" in page


def test_the_same_runs_do_not_differ() -> None:
    run = OBSERVED["netcat"]["counted"]
    row = judged(CASE, [run], [run], [])
    assert len(row.compared) == 4 and not row.differences()


@pytest.mark.parametrize(("printed", "measure", "within", "beyond"), [
    ("throughput_mbit", THROUGHPUT, 3.84, 3.76), ("time_s", TIME, 4.19, 4.21),
    ("rtt_ms", "RTT, ms", 4.07, 4.09), ("loaded_rtt_ms", "RTT, ms", 3.93, 3.91),
    ("lost_percent", "lost, %", 4.7, 4.9)])
def test_a_difference_within_the_tolerance_is_none(
        printed: str, measure: str, within: float, beyond: float) -> None:
    """The stock kernel has 4, in the unit of the measure."""
    def run(number: float) -> dict[str, Any]:
        return {"output": f"= {printed} {number}\n", "connections": [], "busy_percent": 10.0}
    assert not flagged(judged(CASE, [run(within)], [run(4)], []))
    assert flagged(judged(CASE, [run(beyond)], [run(4)], [])) == {measure}


@pytest.mark.parametrize("change", [
    lambda case, run: (Case(case.name, case.about, case.sh, rate_mbit=0), run),
    lambda case, run: (case, changed(run, busy_percent=60.0))], ids=["no rate", "busy"])
def test_rates_are_compared_only_where_they_can_be(
        change: Callable[[Case, dict[str, Any]], tuple[Case, dict[str, Any]]]) -> None:
    run = {"output": "= throughput_mbit 4\n", "connections": [], "busy_percent": 10.0}
    faster = changed(run, output="= throughput_mbit 5\n")
    assert flagged(judged(CASE, [faster], [run], [])) == {THROUGHPUT}
    case, stock = change(CASE, run)
    row = judged(case, [faster], [stock], [])
    assert row.compared and not row.differences()


def run_with_retransmissions(count: int) -> dict[str, Any]:
    """A stored run whose connection has retransmitted this many segments."""
    run = changed(OBSERVED["netcat"]["counted"])
    run["connections"][0]["retransmissions"] = count
    return run


def test_runs_whose_ranges_overlap_do_not_differ() -> None:
    def runs(*counts: int) -> list[dict[str, Any]]:
        return [run_with_retransmissions(count) for count in counts]

    assert flagged(judged(CASE, runs(30, 40), runs(20, 22), [])) == {AGAIN}
    row = judged(CASE, runs(30, 21, 40), runs(20, 22), [])
    assert not flagged(row)
    page = document([row], {}, "")
    assert "| *30 / 21* |" in page and "| *spread* |" in page and "**" not in page


@pytest.mark.parametrize(("loss_s", "expected"), [(None, {WINDOW}), (0.15, set())])
def test_windows_are_compared_until_the_first_loss(loss_s: float | None,
                                                   expected: set[str]) -> None:
    """The third of three round trips differs."""
    def run(third: int) -> dict[str, Any]:
        connection = {"begin_s": 5.0, "retransmissions": 0, "first_loss_s": loss_s, "rounds": [
            [0.1 * number, 10, window] for number, window in enumerate((60, 90, third))]}
        return {"output": "", "connections": [connection], "busy_percent": 10.0}
    row = judged(CASE, [run(140)], [run(120)], [])
    assert flagged(row) == expected
    at = {compared.measure: compared.at for compared in row.compared}[WINDOW]
    assert at == (3 if expected else 1)


def test_a_window_within_the_range_of_real_times_windows_does_not_differ() -> None:
    def run(window: int) -> dict[str, Any]:
        connection = {"begin_s": 5.0, "retransmissions": 0, "first_loss_s": None,
                      "rounds": [[0.0, 10, window]]}
        return {"output": "", "connections": [connection], "busy_percent": 10.0}
    assert flagged(judged(CASE, [run(140)], [run(120)], [run(130)])) == {WINDOW}
    assert not flagged(judged(CASE, [run(140)], [run(120)], [run(130), run(150)]))


def test_a_known_cause_explains_a_difference() -> None:
    case = Case("netcat", "", sh="true", rate_mbit=4, causes={AGAIN: "burst"})
    row = judged(case, [run_with_retransmissions(50)], [run_with_retransmissions(20)], [])
    assert row.differences() and not row.unexplained()
    page = document([row], {"burst": "a text", "other": "not needed"}, "")
    assert "| burst |" in page and "- **burst**: a text" in page and "not needed" not in page


def test_windows_are_of_one_connection_whoever_begins_first() -> None:
    """Connections to port 5201 (cubic) and 5202 (bbr) begin at almost the same time, so that each
    may be the first.
    """
    def run(*order: int) -> dict[str, Any]:
        windows = {5201: 90, 5202: 140}
        connections = [{"to": port, "begin_s": 5.0 + place, "retransmissions": 0, "bytes": 10 ** 6,
                        "first_loss_s": None, "rounds": [[0.0, 10, windows[port]]]}
                       for place, port in enumerate(order)]
        return {"output": "", "connections": connections, "busy_percent": 10.0}
    assert not flagged(judged(CASE, [run(5202, 5201)], [run(5201, 5202)], []))
    assert flagged(judged(CASE, [run(5202)], [run(5201)], [])) == {WINDOW}


def test_every_stored_run_of_a_case_is_read(tmp_path: Path) -> None:
    """A case may have more runs in virtual time than otherwise."""
    for folder, name in (("virtual-0", "netcat"), ("virtual-11", "netcat"), ("virtual-1", "curl"),
                         ("counted-0", "netcat")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{name}.json").write_text(json.dumps({"folder": folder}))
    runs = side_by_side.observed_of(tmp_path, "virtual", CASE)
    assert [run["folder"] for run in runs] == ["virtual-0", "virtual-11"]


def test_the_printed_page_has_each_case_and_cause() -> None:
    """The page in vtime/ was printed from these cases, and each of its differences has a cause."""
    page = (PROJECT / "vtime" / "SIDE_BY_SIDE.md").read_text()
    cases, causes = side_by_side.cases((side_by_side.CASES / "cases.toml").read_text())
    assert re.findall(r"^\| `(.+?)`: (.+?) \|", page, re.MULTILINE) == [
        (case.name, case.about) for case in cases]
    assert re.findall(r"^- \*\*(\w+)\*\*: (.+)$", page, re.MULTILINE) == list(causes.items())
    assert "**not known**" not in page


def test_without_observations_nothing_is_judged() -> None:
    assert judged(CASE, [], [run_with_retransmissions(1)], []).compared == ()
    with_real_time = judged(CASE, [run_with_retransmissions(1)], [], [run_with_retransmissions(1)])
    assert with_real_time.compared


def test_each_case_has_one_script_and_known_causes() -> None:
    cases, causes = side_by_side.cases((side_by_side.CASES / "cases.toml").read_text())
    names = [case.name for case in cases]
    assert len(names) == len(set(names)) >= 30
    for case in cases:
        assert bool(case.sh) != bool(case.python), case.name
        assert set(case.causes) <= set(TOLERANCES) and set(case.causes.values()) <= set(causes)


# Random transfers: samples, and the tally of their records ----------------------------

@pytest.fixture(scope="module")
def passed() -> Record:
    return stored.load("iw10").judge()


def tallied(*records: Record) -> Tally:
    """The tally of these records."""
    tally = Tally("--seed 7")
    for record in records:
        tally.add(record)
    return tally


def test_a_sample_follows_from_its_seed_and_number() -> None:
    assert sample(3, 14) == sample(3, 14) != sample(3, 15)
    assert sample(3, 14) != sample(4, 14)


def test_samples_reach_from_short_to_long_and_from_slow_to_fast_paths() -> None:
    trials = [sample(1, number) for number in range(1, 200)]
    assert min(trial.rtt_ms for trial in trials) < 2 and max(t.rtt_ms for t in trials) > 3000
    assert max(trial.bandwidth_kbps for trial in trials) > 5_000_000
    assert {trial.congestion_control for trial in trials} == {"cubic", "reno"}
    assert any(trial.gap_ms for trial in trials) and any(t.earlier_bytes for t in trials)
    assert any(trial.uplink_kbps < trial.bandwidth_kbps for trial in trials)
    assert any(trial.queue_packets < 1000 for trial in trials)


def test_samples_over_tls_vary_chain_tickets_records_and_buffer() -> None:
    trials = [sample_tls(1, number) for number in range(1, 200)]
    assert trials[13] == sample_tls(1, 14) != sample_tls(2, 14)
    assert {trial.tickets for trial in trials} == {0, 1, 2}
    assert {trial.buffer_bytes for trial in trials} == {0, 1024, 4096}
    assert len({trial.record_bytes for trial in trials}) > 20 < len({t.chain_bytes for t in trials})
    assert not any(t.gap_ms or t.burst_bytes or t.earlier_bytes for t in trials)
    secure, plain = trials[13], sample(1, 14)
    assert (secure.rtt_ms, secure.bandwidth_kbps) == (plain.rtt_ms, plain.bandwidth_kbps)
    assert f"--chain {secure.chain_bytes} --tickets {secure.tickets} " in command_of(secure)


def test_a_short_queue_is_drawn_by_the_headers_bytes_that_are_sent() -> None:
    observed = stored.load("iw10").observation["server"]
    path_bytes = len("/9000")
    assert observed["header_bytes"] == HEADER_BYTES + len("9000") + CLOSE_BYTES
    assert observed["request_bytes"] == REQUEST_BYTES + path_bytes + CLOSE_BYTES
    requested = [trial for trial in (sample(5, number) for number in range(1, 100))
             if trial.queue_packets < AMPLE_PACKETS]
    assert any(trial.uplink_kbps < trial.bandwidth_kbps for trial in requested)
    assert any(trial.earlier_bytes for trial in requested)


def test_deviations_are_counted_and_the_worst_are_listed_first(
        passed: Record, capsys: pytest.CaptureFixture[str]) -> None:
    assert passed.model_ms is not None and passed.model_latency_ms is not None
    late = replace(passed, total_ms=passed.model_ms + 1.5)
    slow = replace(passed, latency_ms=passed.model_latency_ms - 0.2)
    tally = tallied(passed, late, slow, *[passed] * WORST)
    assert (tally.modelled, tally.beyond, tally.beyond_tenth) == (WORST + 3, 1, 2)
    assert len(tally.worst) == WORST
    tally.show()
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("deviates ")]
    assert lines[0].startswith("deviates by 1.500 ms")
    assert lines[1].startswith("deviates by 0.200 ms")
    assert "ms: --seed 7 --only" in lines[0]


def test_unpredicted_retransmissions_are_listed_with_both_numbers() -> None:
    predicted = stored.load("queue_timer").judge()
    unpredicted = replace(predicted, retransmissions=2)
    tally = tallied(predicted, unpredicted)
    (line,) = tally.lines["unpredicted"]
    assert (tally.predicted, tally.modelled) == (1, 1)
    assert "2 segments retransmitted, predicted 1" in line


def test_losses_are_counted_and_failures_listed(passed: Record) -> None:
    tally = tallied(stored.load("full_queue").judge(),
                    replace(passed, verdict=FAIL, verdict_reason="model: late"))
    assert tally.lost == 1 and ": model: late\n    ./run.sh " in tally.lines["failed"][0]


def test_a_sysctl_is_requested_by_a_known_name() -> None:
    small = "net.ipv4.tcp_rmem=4096 20000 60000"
    assert requested_sysctls([small]) == {"net.ipv4.tcp_rmem": "4096 20000 60000"}
    assert requested_sysctls([]) == {}
    with pytest.raises(UsageError, match="unknown 'net.ipv4.tcp_rme'"):
        requested_sysctls(["net.ipv4.tcp_rme=1"])


# Random transfers with several unusual parameters -------------------------------------

def test_crossed_samples_have_each_pair_of_unusual_parameters() -> None:
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


def test_samples_of_uploads_have_small_and_large_bodies_with_each_unusual_parameter() -> None:
    trials = [sample_upload(1, number) for number in range(1, 400)]
    assert trials[13] == sample_upload(1, 14) != sample_upload(2, 14)
    assert not any(trial.is_secure or trial.server != "builtin" for trial in trials)
    unusual = (lambda t: t.kept, lambda t: t.idle_ms, lambda t: t.earlier_bytes,
               lambda t: t.loss_percent, lambda t: t.congestion_control == "bbr",
               lambda t: t.uplink_kbps < t.bandwidth_kbps, lambda t: t.gap_ms,
               lambda t: t.client_initcwnd > 10, lambda t: not t.client_initcwnd)
    for has in unusual:
        sizes = [trial.request_bytes for trial in trials if has(trial)]
        assert min(sizes) < 1448 < 1 << 16 < max(sizes)


@pytest.mark.parametrize("sample", [sample_crossed, sample_upload])
def test_the_command_of_a_crossed_transfer_is_that_transfer(
        sample: Callable[[int, int], Trial]) -> None:
    shown = 0
    for number in range(1, 40):
        trial = sample(4, number)
        command = command_of(trial)
        if not command:
            assert trial.earlier_bytes or trial.burst_bytes
            continue
        shown += 1
        request = parse(shlex.split(command)[1:])
        made = question.scenario("own", request.overrides)
        seed = request.measuring.seed
        (requested,) = KIND.study_of(made, overrides=NOTHING, seed=seed).trials
        assert replace(trial, scenario="own", part="", sample=0) == requested, command
    assert shown > 15


def test_crossed_transfers_are_counted_by_result_and_check(
        passed: Record, capsys: pytest.CaptureFixture[str]) -> None:
    trial = sample_crossed(9, 1)
    wrong = replace(passed, trial=replace(passed.trial, sample=12), verdict=FAIL,
                    failed_checks="path; TLS",
                    verdict_reason="path: observed 1 of 2 packets differ, expected none; TLS:"
                                   " observed 1, expected 2")
    late = replace(passed, trial=trial, ok=False, verdict=SKIPPED, judged_by="",
                   error="curl 28: timed out")
    tally = Tally("--seed 9 --crossed")
    for record in (passed, wrong, late):
        tally.add(record)
    tally.show()
    lines = capsys.readouterr().out.splitlines()
    counts = {line[:38].strip(): line[38:].split()[0] for line in lines if line[38:].strip()}
    assert counts["transfers"] == "3" and counts["passed"] == "1"
    assert counts["failed verdicts"] == "1" and counts["not finished, so not judged"] == "1"
    path = next(line for line in lines if line.startswith("  path "))
    assert path.split()[1:] == ["2", "66.7", "%", "1", "failed"]
    assert "failed: --seed 9 --crossed --only 12: path: observed 1 of 2" in "\n".join(lines)
    assert "not finished: --seed 9 --crossed --only 1: curl 28: timed out" in "\n".join(lines)
