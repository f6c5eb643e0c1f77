"""Fetches in the guest repeat to the byte, and pass with causes, losses and pauses."""

from __future__ import annotations

import csv
import json
import re
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firstflight.net import pcap
from firstflight.runs import scenario_file
from firstflight.runs.kinds import NOTHING, Overrides
from firstflight.runs.results.records import PASS, SKIPPED
from firstflight.study.fetches import KIND
from firstflight.study.questions import question
from firstflight.testbed import fork_server
from firstflight.testbed.guests import UmlEngine
from firstflight.workloads.fetch.scenario import reading
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.trial import Trial
from firstflight.workloads.fetch.verify.verify import judge_fetch
from tests.live.conftest import Driver, command, measured, rows, watched
from tests.running import run_program, wait_until
from tests.unit.core.example import whole

TRIAL = Trial(scenario="live", rtt_ms=100, bandwidth_kbps=1000, uplink_kbps=1000,
              queue_packets=1000, loss_percent=0, initcwnd=10, initrwnd=27,
              congestion_control="cubic", client="libcurl", response_bytes=9000, repeat=1)


def of_list(by: UmlEngine, folder: Path, lists: Mapping[str, Any]) -> dict[Trial, Record]:
    """Measure all trials of lists of values."""
    requested = KIND.study_of(question.scenario("own", Overrides(lists, repeat=1)), NOTHING, 1)
    return measured(by, folder, requested.trials, requested.head.sysctls)


def test_curl_linked_once_measures_as_curl(kernel: Path, tmp_path: Path,
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    """Every packet is the same to the nanosecond.

    Curl linked once makes some ten failing system calls fewer before it sends the SYN, each of
    which takes a microsecond. So only times that end with a jiffy, as a SYN's timeout, are longer
    by these.
    """
    trials = [replace(TRIAL, client="curl", initcwnd=initcwnd, rtt_ms=rtt_ms)
              for initcwnd in (3, 10) for rtt_ms in (20, 500)]
    jobs = [trial.job() for trial in trials]
    once = list(UmlEngine(kernel, 1).run(jobs, {}, tmp_path / "once"))
    with monkeypatch.context() as patch:
        patch.setattr(fork_server, "libraries", dict)
        anew = list(UmlEngine(kernel, 1).run(jobs, {}, tmp_path / "anew"))
    for linked, started in zip(once, anew, strict=True):
        assert linked.content["fetch"]["ok"]
        assert {**linked.content["fetch"], "port": 0} == {**started.content["fetch"], "port": 0}
        assert times_and_sizes(linked.client_pcap) == times_and_sizes(started.client_pcap)
        assert times_and_sizes(linked.server_pcap) == times_and_sizes(started.server_pcap)


def test_a_kept_guest_measures_as_a_new_one(kernel: Path, tmp_path: Path) -> None:
    """It also does so with trials that it gets after its kernel was stopped."""
    trials = [replace(TRIAL, client=client, initcwnd=initcwnd, loss_percent=5, repeat=repeat)
              for client in ("curl", "libcurl") for initcwnd in (3, 10) for repeat in (1, 2)]
    engine, kept = UmlEngine(kernel, 1), []
    with engine.keeping_guests():
        for number in range(0, len(trials), 2):
            jobs = [trial.job() for trial in trials[number:number + 2]]
            kept += engine.run(jobs, {}, tmp_path / str(number))
    assert engine.started == 2  # one for curl, which has the library that forks it
    anew = UmlEngine(kernel, 1).run([trial.job() for trial in trials], {}, tmp_path / "anew")
    for by_kept, by_new in zip(kept, anew, strict=True):
        assert by_kept.content["fetch"]["ok"] and by_kept.trial_id == by_new.trial_id
        assert times_and_sizes(by_kept.client_pcap) == times_and_sizes(by_new.client_pcap)
        assert times_and_sizes(by_kept.server_pcap) == times_and_sizes(by_new.server_pcap)


def times_and_sizes(packets: bytes) -> list[tuple[int, int]]:
    """For each frame the nanoseconds since the first one, and its bytes."""
    frames = [(time_ns, frame_bytes) for time_ns, _, frame_bytes in pcap.frames(packets)]
    return [(time_ns - frames[0][0], frame_bytes) for time_ns, frame_bytes in frames]


def test_a_windows_numbers_do_not_depend_on_the_other_windows(kernel: Path, shared: UmlEngine,
                                                              tmp_path: Path) -> None:
    """The client offers the requested receive window, whatever the list of initial windows is."""
    lists: dict[str, Any] = {
        "rtt_ms": [276.8], "bandwidth_kbps": [9253], "response_bytes": [183_173],
        "initrwnd": [44, 100, 400], "queue": ["5000"], "congestion_control": ["reno"]}
    few = of_list(UmlEngine(kernel, 1), tmp_path / "few", {**lists, "initcwnd": [30, 38]})
    more = of_list(shared, tmp_path / "more", {**lists, "initcwnd": [30, 38, 60, 1200]})
    assert few == {trial: more[trial] for trial in few}
    assert {record.verdict for record in more.values()} == {PASS}
    times = {trial.initrwnd: record.total_ms for trial, record in few.items()
             if trial.initcwnd == 38}
    assert times[44] != times[100]


def test_a_list_of_cells_has_the_numbers_of_its_parts(kernel: Path, shared: UmlEngine,
                                                      tmp_path: Path) -> None:
    """The list is measured in one run and in parts, and no time differs by a microsecond."""
    lists: dict[str, list[Any]] = {
        "rtt_ms": [70.5, 300], "bandwidth_kbps": [20_000], "queue": ["100"], "gap_ms": [40],
        "qdisc": ["fifo", "fq"], "initcwnd": [10, 1000], "initrwnd": [45], "kept": [1],
        "response_bytes": [70_000], "loss_percent": [0, 3], "congestion_control": ["bbr"]}
    whole = of_list(shared, tmp_path / "whole", lists)
    parts: dict[Trial, Record] = {}
    for window in (1000, 10):
        parts |= of_list(UmlEngine(kernel, 1), tmp_path / f"{window}",
                         {**lists, "initcwnd": [window]})
    assert whole == parts and len(whole) == 16


def test_a_resumed_run_has_the_rows_of_an_undisturbed_one(results: Path, kernel: Path) -> None:
    """One run has one guest. The other one has two, and was interrupted."""
    requested = ["--rtt", "30,300", "--bw", "20000", "--size", "9000,90000", "--iw", "3,30",
                 "--loss", "0%,2%", "--repeat", "1", "--quiet", "--no-figures", "--no-reasons"]
    runs_of = []
    for name, flags in (("one", ["--jobs", "1"]), ("resumed", ["--jobs", "2"])):
        folder = results / name
        if name == "resumed":
            with subprocess.Popen(watched(folder, *requested, *flags), stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) as begun:
                wait_until(lambda: begun.poll() is not None or any(
                    path.read_bytes().count(b"\n") > 2 for path in folder.glob("own/*/t*.csv")),
                    "rows")
                begun.send_signal(signal.SIGINT)
            assert begun.returncode == 130
        done = run_program(command(folder, *requested, *flags))
        assert done.returncode == 0, done.stderr
        (run,) = (path.parent for path in folder.glob("own/2*/run.json"))
        with (run / "trials.csv").open() as file:
            rows = [{**row, "measured_at": ""} for row in csv.DictReader(file)]
        facts = json.loads((run / "run.json").read_text())
        assert bool(facts.get("resumed")) == (name == "resumed")
        runs_of.append((facts["trials"]["numbers_sha256"], rows))
    assert len(runs_of[0][1]) == 2 * 2 * 2 * 2
    assert runs_of[0] == runs_of[1]


def test_a_pause_has_the_same_length_after_another_trial(kernel: Path, shared: UmlEngine,
                                                         tmp_path: Path) -> None:
    """At 58.3 s of the pause the kernel forgets the trial's connection before (TIME_WAIT)."""
    pause = replace(TRIAL, rtt_ms=10, burst_bytes=3000, gap_ms=58_900)
    (alone,) = measured(UmlEngine(kernel, 1), tmp_path / "alone", [pause]).values()
    assert measured(shared, tmp_path / "after", [TRIAL, pause])[pause] == alone


def test_a_failed_fetch_does_not_change_the_next(kernel: Path, shared: UmlEngine,
                                                 tmp_path: Path) -> None:
    """The client of the failed fetch tries a second connection; the server reports on it, too."""
    nothing_passes = replace(TRIAL, rtt_ms=268.6, qdisc="cake", queue_packets=1, kept=1)
    after = replace(TRIAL, response_bytes=14_580)
    (alone,) = measured(UmlEngine(kernel, 1), tmp_path / "alone", [after]).values()
    records = measured(shared, tmp_path / "after", [nothing_passes, TRIAL, after])
    assert records[nothing_passes].error.startswith("the response before: curl 28")
    assert records[TRIAL].verdict == alone.verdict == PASS and records[after] == alone


# A cell of each published set-up with every cause -----------------------------------------

# A cell of a scenario: its RTT in ms, its rate in kbit/s, a column that only the last cause fills,
# the size of the body with all causes, and the time with IW 10 in ms. Published are 370 ms, of
# which processes take 8, and 665 ms, of which they take 13 (within 10 %).
CELLS = [("zhao2019", "100", "1000", "head", "9000", 361.1),
         ("marrama2012", "140", "1200", "acts_as", "39096", 611.2)]


@pytest.mark.parametrize(("name", "rtt", "bandwidth", "column", "size", "total_ms"), CELLS)
def test_a_cell_of_a_set_up_is_measured_under_every_cause(
        drive: Driver, results: Path, name: str, rtt: str, bandwidth: str, column: str, size: str,
        total_ms: float) -> None:
    done = drive("--as-published", name, "--rtt", rtt, "--bw", bandwidth, "--no-figures")
    assert done.returncode == 0, done.stdout + done.stderr
    measured = rows(results, f"{name}_as_published")
    assert all((row["ok"], row["verdict"]) == ("true", "pass") for row in measured)
    (last,) = [row for row in measured if row["initcwnd"] == "10" and row[column]
               and row["response_bytes"] == size]
    assert float(last["total_ms"]) == pytest.approx(total_ms, abs=0.1)


def test_a_cell_with_an_arp_failure_fails_to_connect_as_published(drive: Driver,
                                                                  results: Path) -> None:
    done = drive("--as-published", "zhao2019", "--rtt", "3000", "--bw", "1000", "--iw", "3",
                 "--no-figures")
    assert done.returncode == 0, done.stdout + done.stderr
    measured = rows(results, "zhao2019_as_published")
    assert {(row["arp_ms"], row["ok"], row["verdict"]) for row in measured} == {
        ("0", "true", "pass"), ("940", "false", "pass")}
    assert all(re.search("Could( not|n't) connect", row["error"]) for row in measured
               if row["arp_ms"] == "940")


# Responses in two stages, on kept connections, with loss ------------------------------

SCENARIO = reading.read_scenario(scenario_file.find("dukkipati2010"))
SYSCTLS = SCENARIO.head.sysctls
PLAIN = Trial(scenario="live", rtt_ms=100, bandwidth_kbps=8000, uplink_kbps=8000,
              queue_packets=1000, loss_percent=0, initcwnd=3, initrwnd=64,
              congestion_control="cubic", client="libcurl", response_bytes=9000, repeat=1)
# The burst has three segments with the headers, which have 56 bytes and the four digits of the
# size. So a window of three lets all of it leave.
STAGED = replace(PLAIN, burst_bytes=3 * 1448 - 60, gap_ms=250)


def test_a_gap_longer_than_the_rtt_hides_the_window(shared: UmlEngine, tmp_path: Path) -> None:
    """The burst is acknowledged while the back-end works (the paper's section 4.1)."""
    near = [replace(STAGED, initcwnd=window) for window in (3, 10)]
    far = [replace(STAGED, rtt_ms=400, initcwnd=window) for window in (3, 10)]
    records = measured(shared, tmp_path, [*near, *far], SYSCTLS)
    assert [record.verdict for record in records.values()] == [PASS] * 4
    latency = [records[trial].latency_ms for trial in (*near, *far)]
    assert all(value is not None for value in latency)
    near_3, near_10, far_3, far_10 = latency
    assert abs(near_3 - near_10) < 2  # at 100 ms the window of 3 has become 6 in the gap
    assert far_3 - far_10 > 150  # at 400 ms it has not


def test_a_kept_connection_hides_the_window(shared: UmlEngine, tmp_path: Path) -> None:
    trials = [replace(PLAIN, initcwnd=window, earlier_bytes=earlier)
              for earlier in (0, 30_000) for window in (3, 10)]
    records = measured(shared, tmp_path, trials, SYSCTLS)
    assert {record.verdict for record in records.values()} == {PASS}
    new, kept = ([records[trial].latency_ms or 0 for trial in trials[start:start + 2]]
                 for start in (0, 2))
    assert new[0] - new[1] > 90
    assert abs(kept[0] - kept[1]) < 2


def test_random_loss_is_the_same_after_any_other_trials(kernel: Path, shared: UmlEngine,
                                                        tmp_path: Path) -> None:
    """Some FINs are lost, so that a connection could live on in the next trial."""
    trials = [replace(PLAIN, response_bytes=response_bytes, loss_percent=loss_percent, seed=seed,
                      repeat=seed, initcwnd=window)
              for response_bytes, loss_percent in ((40_000, 5), (1000, 20))
              for seed in range(1, 9) for window in (3, 10)]
    first = measured(shared, tmp_path / "first", trials, SYSCTLS)
    again = measured(UmlEngine(kernel, 2), tmp_path / "again", trials[::-1], SYSCTLS)
    assert {record.verdict for record in first.values()} == {PASS}
    for few in (trials[:16], trials[16:]):
        assert sum(first[trial].retransmissions or 0 for trial in few) > 0
    for trial, record in first.items():
        other = again[trial]
        assert (other.retransmissions, other.lost_segments) \
            == (record.retransmissions, record.lost_segments)
        # A system call that fails takes 1 µs, and how many fail depends on what is cached.
        assert abs((other.total_ms or 0) - (record.total_ms or 0)) < 0.0025


def test_a_small_population_passes_its_verdicts(shared: UmlEngine, tmp_path: Path) -> None:
    """The population has one in 66 responses, under every window, with every mechanism."""
    trials = [trial for trial in whole("dukkipati2010").trials
              if trial.part == "avgdc" and trial.sample % 66 == 0]
    records = measured(shared, tmp_path, trials, SYSCTLS)
    assert len(records) == len(trials) == 164
    failed = [record.verdict_reason for record in records.values() if record.verdict != PASS]
    assert not failed, failed


def test_without_time_stamps_a_first_flight_has_longer_segments(shared: UmlEngine,
                                                                tmp_path: Path) -> None:
    """The response has ten segments of 1460 bytes. Of 1448 bytes it would have eleven."""
    trial = replace(TRIAL, response_bytes=14_520, initcwnd=20,
                    sysctl="net.ipv4.tcp_timestamps=0")
    (record,) = measured(shared, tmp_path, [trial]).values()
    assert (record.verdict, record.seen_first_flight) == (PASS, 10), record.verdict_reason


def test_a_sysctl_holds_for_its_own_trial_only(shared: UmlEngine, tmp_path: Path) -> None:
    """The kernel refuses one of a trial's sysctls, and another one changes no packet of the trial.
    """
    refused = "net.ipv4.tcp_sack=0+net.ipv4.tcp_syn_retries=999"
    accurate = "net.ipv4.tcp_ecn=3"
    sysctls = ["none", refused, "none", "net.ipv4.tcp_slow_start_after_idle=0",
               accurate, f"{accurate}+net.ipv4.tcp_ecn_option=0", accurate]
    trials = [replace(TRIAL, kept=1, idle_ms=2000, response_bytes=30_000, initcwnd=3,
                      sysctl=sysctl, repeat=repeat)
              for repeat, sysctl in enumerate(sysctls, start=1)]
    seen = list(shared.run([trial.job() for trial in trials], {}, tmp_path))
    assert seen[1].content["error"].startswith(
        "client cannot have net.ipv4.tcp_syn_retries = '999'")
    packets = [times_and_sizes(observed.client_pcap) for observed in seen]
    assert packets[0] == packets[2] != packets[3]
    assert packets[4] == packets[6] != packets[5]
    judged = measured(shared, tmp_path / "judged", trials[:4]).values()
    assert [(record.ok, record.verdict) for record in judged] == [
        (True, PASS), (False, SKIPPED), (True, PASS), (True, PASS)]
    assert all("TCP" in record.judged_by.split() for record in judged if record.ok)


def test_a_fixed_receive_window_does_not_grow(shared: UmlEngine, tmp_path: Path) -> None:
    """It does not on new and on used connections, with a scale and without. Other windows grow."""
    trials = [replace(TRIAL, bandwidth_kbps=20_000, response_bytes=300_000, kept=kept,
                      initrwnd=window, rwnd_growth=growth)
              for window in (10, 90) for kept in (0, 1) for growth in ("grows", "fixed")]
    records = measured(shared, tmp_path, trials)
    assert [record.verdict for record in records.values()] == [PASS] * len(trials)
    for trial, record in records.items():
        assert record.model_ms is not None and record.most_offered_segments is not None
        stays = record.most_offered_segments < trial.initrwnd * 1460 / 1448 + 2.1
        assert stays == (trial.rwnd_growth == "fixed")


UPLOAD = replace(TRIAL, bandwidth_kbps=20_000, uplink_kbps=20_000, initrwnd=64,
                 request_bytes=30_000, response_bytes=1000)


def test_an_upload_begins_with_the_clients_window(shared: UmlEngine, tmp_path: Path) -> None:
    """The window is the default, a route's, or that after a pause; also with other algorithms."""
    windows = {window: replace(UPLOAD, client_initcwnd=window) for window in (0, 5, 21)}
    idle = {sysctl: replace(UPLOAD, kept=1, idle_ms=2000, sysctl=sysctl) for sysctl in (
        "none", "net.ipv4.tcp_slow_start_after_idle=0")}
    others = [replace(UPLOAD, request_bytes=300_000, congestion_control=control)
              for control in ("reno", "bbr")]
    records = measured(shared, tmp_path, [*windows.values(), *idle.values(), *others])
    failed = [record.verdict_reason for record in records.values() if record.verdict != PASS]
    assert not failed, failed
    assert [records[trial].seen_client_initcwnd for trial in windows.values()] == [10, 5, 21]
    assert [records[trial].upload_flights for trial in windows.values()] == [
        "10+11", "5+10+6", "21"]
    assert [records[trial].upload_round_trips for trial in idle.values()] == [2, 1]
    assert all("TCP" in record.judged_by.split() for trial, record in records.items()
               if trial.congestion_control != "bbr")


@pytest.mark.parametrize("changed, check", [
    ({"options": {"client_initcwnd": 7, "client_congestion_control": "cubic"}},
     "client's socket;client's first flight"),
    ({"options": {"client_initcwnd": 5, "client_congestion_control": "reno"}}, "client's socket"),
    ({"request_bytes": 29_999}, "request"), ({"request_bytes": 31_000}, "request")])
def test_an_upload_under_another_setting_than_requested_is_refused(
        shared: UmlEngine, tmp_path: Path, changed: Any, check: str) -> None:
    trial = replace(UPLOAD, client_initcwnd=5)
    job = trial.job()
    job.update(changed)
    (observed,) = shared.run([job], {}, tmp_path)
    record = judge_fetch(trial, observed.content, observed.client_pcap, observed.server_pcap,
                         exact=True, sysctls={})
    failed = record.failed_checks or record.error.partition(":")[0]
    assert {*check.split(";")} <= {*failed.split("; ")}, (record.verdict_reason, record.error)
