"""Fetches and load runs in the guest: cells are their own, causes, populations, losses."""

from __future__ import annotations

import csv
import json
import random
import re
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firstflight.model.predict import predict
from firstflight.net import pcap
from firstflight.runs import scenario_file
from firstflight.runs.kinds import NOTHING, Overrides
from firstflight.runs.results.records import FAIL, PASS
from firstflight.study.fetches import reading
from firstflight.study.fetches.record import Record
from firstflight.study.fetches.scenario.trial import Trial
from firstflight.study.fetches.study import KIND
from firstflight.study.fetches.verify.verify import judge_fetch
from firstflight.study.load.record import Connections, LoadRecord, join_rows, parse_connections
from firstflight.study.load.trial import LoadTrial, wire_bytes
from firstflight.study.load.verify import judge_load
from firstflight.study.questions import question
from firstflight.testbed import fork_server
from firstflight.testbed.guests import UmlEngine
from tests.live.conftest import Driver, command, rows, watched
from tests.running import run_program
from tests.transfers import transfer
from tests.unit.core.example import whole
from vtime.kernel.init import RESULTS
from vtime.uml import guest_command

TRIAL = Trial(scenario="live", rtt_ms=100, bandwidth_kbps=1000, uplink_kbps=1000,
              queue_packets=1000, loss_percent=0, initcwnd=10, initrwnd=27,
              congestion_control="cubic", client="libcurl", response_bytes=9000, repeat=1)


def measured(kernel: Path, folder: Path, trials: Sequence[Trial],
             sysctls: Mapping[str, str] = {}) -> dict[Trial, Record]:
    """In one guest, in this order; what differs between two runs of the same left out."""
    by_id = {trial.id: trial for trial in trials}
    seen = UmlEngine(kernel, 1).run([trial.job() for trial in trials], dict(sysctls), folder)
    return {by_id[each.trial_id]: replace(
        judge_fetch(by_id[each.trial_id], each.content, each.client_pcap,
                    each.server_pcap, exact=True,
              sysctls=sysctls), measured_at="") for each in seen}


def of_list(kernel: Path, folder: Path, lists: Mapping[str, Any]) -> dict[Trial, Record]:
    requested = KIND.study_of(question.scenario("own", Overrides(lists, repeat=1)), NOTHING, 1)
    return measured(kernel, folder, requested.trials, requested.head.sysctls)


def test_curl_linked_once_measures_as_curl(kernel: Path, tmp_path: Path,
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    """To the nanosecond of every packet.

    It makes some ten failing system calls fewer, a microsecond each, before it sends the SYN: only
    what ends with a jiffy, as the timeout of a SYN, is that much longer after it.
    """
    trials = [replace(TRIAL, client="curl", initcwnd=initcwnd, rtt_ms=rtt_ms)
              for initcwnd in (3, 10) for rtt_ms in (20, 500)]
    jobs = [trial.job() for trial in trials]
    once = list(UmlEngine(kernel, 1).run(jobs, {}, tmp_path / "once"))
    with monkeypatch.context() as patch:
        patch.setattr(fork_server, "library", lambda: None)
        anew = list(UmlEngine(kernel, 1).run(jobs, {}, tmp_path / "anew"))
    for each, other in zip(once, anew, strict=True):
        assert each.content["fetch"]["ok"]
        assert {**each.content["fetch"], "port": 0} == {**other.content["fetch"], "port": 0}
        for packets, others in ((each.client_pcap, other.client_pcap),
                                (each.server_pcap, other.server_pcap)):
            assert times_and_sizes(packets) == times_and_sizes(others)


def test_a_kept_guest_measures_as_a_new_one(kernel: Path, tmp_path: Path) -> None:
    """Also trials that are given to it after its kernel stood still."""
    trials = [replace(TRIAL, client=client, initcwnd=initcwnd, loss_percent=5, repeat=repeat)
              for client in ("curl", "libcurl") for initcwnd in (3, 10) for repeat in (1, 2)]
    engine, kept = UmlEngine(kernel, 1), []
    with engine.keeping_guests():
        for number in range(0, len(trials), 2):
            jobs = [trial.job() for trial in trials[number:number + 2]]
            kept += engine.run(jobs, {}, tmp_path / str(number))
    assert engine.started == 2  # the library that forks curl is in one of them
    anew = UmlEngine(kernel, 1).run([trial.job() for trial in trials], {}, tmp_path / "anew")
    for each, other in zip(kept, anew, strict=True):
        assert each.content["fetch"]["ok"] and each.trial_id == other.trial_id
        assert times_and_sizes(each.client_pcap) == times_and_sizes(other.client_pcap)
        assert times_and_sizes(each.server_pcap) == times_and_sizes(other.server_pcap)


def times_and_sizes(packets: bytes) -> list[tuple[int, int]]:
    """Of each frame: nanoseconds since the first one, bytes."""
    frames = [(time_ns, frame_bytes) for time_ns, _, frame_bytes in pcap.frames(packets)]
    return [(time_ns - frames[0][0], frame_bytes) for time_ns, frame_bytes in frames]


def test_a_window_is_the_same_beside_any_other(kernel: Path, tmp_path: Path) -> None:
    """The receive window that is asked for is offered, whatever initial windows are asked for."""
    lists: dict[str, Any] = {
        "rtt_ms": [276.8], "bandwidth_kbps": [9253], "response_bytes": [183_173],
        "initrwnd": [44, 100, 400], "queue": ["5000"], "congestion_control": ["reno"]}
    few = of_list(kernel, tmp_path / "few", {**lists, "initcwnd": [30, 38]})
    more = of_list(kernel, tmp_path / "more", {**lists, "initcwnd": [30, 38, 60, 1200]})
    assert few == {trial: more[trial] for trial in few}
    assert {record.verdict for record in more.values()} == {PASS}
    times = {trial.initrwnd: record.total_ms for trial, record in few.items()
             if trial.initcwnd == 38}
    assert times[44] != times[100]


def test_cells_of_a_list_are_those_of_its_parts(kernel: Path, tmp_path: Path) -> None:
    """Random lists, in one run and split; none of it may differ by a microsecond."""
    draw = random.Random(20261122)
    values: dict[str, list[Any]] = {
        "rtt_ms": [3, 70.5, 300], "bandwidth_kbps": [256, 20_000], "queue": ["3", "100", "1bdp"],
        "qdisc": ["fifo", "fq_codel", "fq"], "initcwnd": [3, 10, 45, 100, 1000],
        "initrwnd": [20, 45, 1000], "response_bytes": [500, 70_000], "loss_percent": [0, 3],
        "congestion_control": ["cubic", "bbr"], "kept": [0, 1], "gap_ms": [0, 40]}
    for number in range(2):
        lists = {name: draw.sample(among, draw.randint(1, 2)) for name, among in values.items()
                 if name == "initcwnd" or draw.random() < 0.5}
        whole = of_list(kernel, tmp_path / f"{number}", lists)
        split = max(lists, key=lambda name: len(lists[name]))
        parts: dict[Trial, Record] = {}
        for part in reversed(lists[split]):
            parts |= of_list(kernel, tmp_path / f"{number}-{part}", {**lists, split: [part]})
        assert whole == parts


def test_runs_of_the_same_are_the_same_but_for_when(results: Path, kernel: Path) -> None:
    """With one guest, and with two that were interrupted: each row, and their order."""
    requested = ["--rtt", "30,300", "--bw", "100,20000", "--size", "9000,90000", "--iw", "3,30",
                 "--loss", "0%,2%", "--repeat", "1", "--quiet", "--no-figures"]
    runs_of = []
    for name, flags in (("one", ["--jobs", "1"]), ("resumed", ["--jobs", "2"])):
        folder = results / name
        if name == "resumed":
            with subprocess.Popen(watched(folder, *requested, *flags), stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) as begun:
                while begun.poll() is None and not any(
                        path.read_bytes().count(b"\n") > 2 for path in folder.glob("own/*/t*.csv")):
                    time.sleep(0.02)
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
    assert len([row for row in runs_of[0][1] if not row["what_if"]]) == 2 * 2 * 2 * 2 * 2
    assert runs_of[0] == runs_of[1]


def test_a_pause_is_as_long_after_another_trial(kernel: Path, tmp_path: Path) -> None:
    """To the nanosecond: 58.3 s into it the kernel forgets the connection before (TIME_WAIT)."""
    pause = replace(TRIAL, rtt_ms=10, burst_bytes=3000, gap_ms=58_900)
    (alone,) = measured(kernel, tmp_path / "alone", [pause]).values()
    assert measured(kernel, tmp_path / "after", [TRIAL, pause])[pause] == alone


def test_a_fetch_that_failed_leaves_nothing_to_the_next(kernel: Path, tmp_path: Path) -> None:
    """Its client tries a second connection, of which the server also reports."""
    nothing_passes = replace(TRIAL, rtt_ms=268.6, qdisc="cake", queue_packets=1, kept=1)
    after = replace(TRIAL, response_bytes=14_580)
    (alone,) = measured(kernel, tmp_path / "alone", [after]).values()
    records = measured(kernel, tmp_path / "after", [nothing_passes, TRIAL, after])
    assert records[nothing_passes].error.startswith("the response before: curl 28")
    assert records[TRIAL].verdict == alone.verdict == PASS and records[after] == alone


# Every cause of a published set-up on one cell of it, as the guest measures it --------

# A cell of each, a column that only its last cause fills, the size of its body there, and what IW 10
# takes then, in ms: published are 370 (with 8 ms of processes) and 665 (with 13 ms, within 10 %).
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


def test_a_cell_that_has_to_fail_fails_without_a_packet(results: Path, kernel: Path) -> None:
    done = run_program(command(results, "--as-published", "zhao2019", "--rtt", "3000", "--bw",
                               "1000", "--iw", "3", "--no-figures"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "- failed as expected, 4 trials: curl" in done.stdout
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
# Three segments, headers (56 bytes and four digits) included: all that a window of three lets out.
STAGED = replace(PLAIN, burst_bytes=3 * 1448 - 60, gap_ms=250)


def of_population(kernel: Path, folder: Path, trials: list[Trial],
                  jobs: int = 1) -> dict[str, Record]:
    by_id = {trial.id: trial for trial in trials}
    return {seen.trial_id: judge_fetch(by_id[seen.trial_id], seen.content, seen.client_pcap,
                                 seen.server_pcap, exact=True, sysctls=SYSCTLS)
            for seen in UmlEngine(kernel, jobs).run([trial.job() for trial in trials],
                                                    SYSCTLS, folder)}


def test_a_gap_longer_than_the_rtt_hides_the_window(kernel: Path, tmp_path: Path) -> None:
    """The paper's section 4.1: the burst is acknowledged while the back-end works."""
    near = [replace(STAGED, initcwnd=window) for window in (3, 10)]
    far = [replace(STAGED, rtt_ms=400, initcwnd=window) for window in (3, 10)]
    records = of_population(kernel, tmp_path, [*near, *far])
    assert [record.verdict for record in records.values()] == [PASS] * 4
    latency = [records[trial.id].latency_ms for trial in (*near, *far)]
    assert all(value is not None for value in latency)
    assert abs(latency[0] - latency[1]) < 2  # at 100 ms IW 3 has become 6 by then
    assert latency[2] - latency[3] > 150  # at 400 ms it has not


def test_a_kept_connection_hides_the_window(kernel: Path, tmp_path: Path) -> None:
    trials = [replace(PLAIN, initcwnd=window, earlier_bytes=earlier)
              for earlier in (0, 30_000) for window in (3, 10)]
    records = of_population(kernel, tmp_path, trials)
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
    first = of_population(kernel, tmp_path / "first", trials)
    again = of_population(kernel, tmp_path / "again", trials[::-1], jobs=2)
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
    records = of_population(kernel, tmp_path, trials, jobs=2)
    assert len(records) == len(trials) == 164
    failed = [record.verdict_reason for record in records.values() if record.verdict != PASS]
    assert not failed, failed


# Load runs in the guest ---------------------------------------------------------------

LOAD = LoadTrial(
    scenario="live", part="live", window="10", clients="iw10*0.5@100ms+iw10*0.5@100ms",
    bandwidth_kbps=10_000, rtt_ms=100, queue_packets=83, queue_bdp=1, queue="droptail", load=0.5,
    connections=1, response_bytes=20_000, sizes="fixed", initrwnd=100, congestion_control="cubic",
    paced=False, access_queue_packets=50, servers=2, duration_s=30, warmup_s=5, cooldown_s=5,
    repeat=1, seed=1)


def of_load(kernel: Path, folder: Path,
             *trials: LoadTrial) -> list[tuple[LoadRecord, Connections]]:
    """The trials' records and all their connections, in order."""
    by_id = {trial.id: trial for trial in trials}
    found = {seen.trial_id: (judge_load(by_id[seen.trial_id], seen)[0],
                             parse_connections(join_rows(seen.files)))
             for seen in UmlEngine(kernel, 2).run([trial.job() for trial in trials], {}, folder)}
    return [found[trial.id] for trial in trials]


def test_the_load_is_what_was_asked_and_the_link_carries_it(kernel: Path, tmp_path: Path) -> None:
    half, same = of_load(kernel, tmp_path, LOAD, replace(LOAD, repeat=2))
    record = half[0]
    assert (record.verdict, record.verdict_reason) == (PASS, "")
    mean, sigma = LOAD.expected_arrivals
    assert record.arrivals is not None and abs(record.arrivals - mean) < 3 * sigma
    # The link's own counter: what was offered, to what lies in it at both ends of the time.
    assert record.utilisation == pytest.approx(record.offered_load, abs=0.01)
    assert record.utilisation == pytest.approx(0.5, abs=3 * 0.5 * sigma / mean + 0.01)
    assert (record.failed, record.unfinished, record.drops) == (0, 0, 0)
    assert (record.seen_initcwnd, record.seen_first_flight, record.wire_first_flight) == (
        "10", "10", "10")
    # The same seed again, in another guest: the same to the last connection.
    assert half[1].total_ms.tobytes() == same[1].total_ms.tobytes()
    assert replace(same[0], trial=LOAD) == record


def test_an_empty_link_takes_what_the_model_says(kernel: Path, tmp_path: Path) -> None:
    """A connection that meets no other takes the closed form, to the millisecond."""
    quiet = replace(LOAD, load=0.02, duration_s=60)
    ((record, connections),) = of_load(kernel, tmp_path, quiet)
    head = len("HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n\r\n")
    asked = transfer(
        rtt_ms=100, bandwidth_kbps=10_000, uplink_kbps=1e9, initcwnd=10, initrwnd=100,
        response_bytes=20_000 + head, request_bytes=35)
    predicted = predict(asked).total_ms
    assert record.p50_ms == pytest.approx(predicted, abs=1.0)
    assert record.p10_ms == pytest.approx(record.p50_ms, abs=1.0)
    assert len(connections) > 5


def test_an_overloaded_network_does_not_slow_the_arrivals(kernel: Path, tmp_path: Path) -> None:
    full = replace(LOAD, load=0.99, queue_packets=5, duration_s=12)
    (_, free), (record, jammed) = of_load(kernel, tmp_path,
                                           replace(full, queue_packets=10_000), full)
    assert free.arrival_s.tobytes() == jammed.arrival_s.tobytes()
    assert (record.drop_percent or 0) > 5
    assert jammed.retransmission_percent > free.retransmission_percent == 0
    # What leaves the link is what the servers sent less what it dropped: nothing is invented.
    assert (record.utilisation or 0) <= 1.0


def test_a_server_killed_in_mid_run_is_failures(kernel: Path, tmp_path: Path) -> None:
    short = replace(LOAD, duration_s=10, warmup_s=1, cooldown_s=1, servers=1)
    (tmp_path / "trial.json").write_text(json.dumps(short.job()))
    (tmp_path / "command.json").write_text(json.dumps(
        ["/usr/bin/python3", "-c", KILLING, RESULTS]))
    done = run_program(guest_command(kernel), cwd=tmp_path)
    assert (tmp_path / "status").read_text() == "0\n", done.stdout[-800:]
    observation = json.loads((tmp_path / "observation.json").read_text())

    class Killed:
        trial_id, content, client_pcap, server_pcap = short.id, observation, b"", b""
        files = {name: (tmp_path / place).read_bytes()
                 for name, place in observation["files"].items()}

    record, _ = judge_load(short, Killed())
    everything = parse_connections(join_rows(Killed.files))
    assert observation["ended_servers"] == [1]
    assert not record.ok and record.verdict == FAIL and "died" in record.error
    late = everything.select(everything.arrival_s > 5.5)
    assert len(late.ended("ok")) == 0 and len(late.ended("failed")) > 50
    # Those that it did answer took what a transfer takes.
    assert everything.ended("ok").total_ms.min() > 300


KILLING = """
import json, sys, threading
from pathlib import Path
from firstflight.testbed.worker.load import LoadBench
folder = Path(sys.argv[1])
trial = json.loads((folder / "trial.json").read_text())
bench = LoadBench(folder, Path.cwd(), {}, lambda: None)
bench.prepare(trial)
threading.Timer(5, bench.servers[0].process.kill).start()
observation = {}
bench.measure(trial, observation)
bench.add_recorded(observation)
(folder / "observation.json").write_text(json.dumps(observation))
bench.close()
"""


def test_the_driver_measures_a_single_cell_and_says_what_came_of_it(
        drive: Driver, results: Path) -> None:
    flags = ("--scenario", "ietf78_losses", "--load", "0.5", "--iw", "10", "--repeat", "1",
             "--rtt", "40", "--bw", "2000", "--no-figures")
    done = drive(*flags)
    assert done.returncode == 0, done.stderr
    (row,) = rows(results, "ietf78_losses")
    assert (row["window"], row["load"], row["verdict"]) == ("10", "0.5", "pass")
    assert row["arrivals"] in done.stdout and "pass" in done.stdout
    kept = list(
        (results / "ietf78_losses" / "latest-partial" / "files").glob("*connections.csv.gz"))
    assert len(kept) == 1


def test_wire_bytes_are_those_of_the_wire(kernel: Path, tmp_path: Path) -> None:
    """The bottleneck's own counter against the formula that offered load is counted by."""
    quiet = replace(LOAD, load=0.1, duration_s=30)
    (seen,) = UmlEngine(kernel, 1).run([quiet.job()], {}, tmp_path)
    everything = parse_connections(join_rows(seen.files))
    *_, last = seen.files["bottleneck.csv"].decode().splitlines()
    carried, finished = int(last.split(",")[1]), len(everything.ended("ok"))
    # Less a last acknowledgement or two, or more by what lies open at the end.
    assert finished > 100
    assert -2 * 66 <= carried - finished * wire_bytes(20_000) <= (
        len(everything) - finished) * wire_bytes(20_000)
