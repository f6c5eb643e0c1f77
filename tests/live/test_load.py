"""Load runs in the guest: the offered load, the open loop, the model, a server that dies."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from firstflight.model.predict import predict
from firstflight.runs.results.records import FAIL, PASS
from firstflight.study.load.record import Connections, LoadRecord, join_rows, parse_connections
from firstflight.study.load.trial import LoadTrial, wire_bytes
from firstflight.study.load.verify import judge_load
from firstflight.testbed.guests import UmlEngine
from tests.live.conftest import Driver, rows
from tests.transfers import transfer
from vtime.kernel.init import RESULTS
from vtime.uml import guest_command

TRIAL = LoadTrial(
    scenario="live", part="live", window="10", clients="iw10*0.5@100ms+iw10*0.5@100ms",
    bandwidth_kbps=10_000, rtt_ms=100, queue_packets=83, queue_bdp=1, queue="droptail", load=0.5,
    connections=1, response_bytes=20_000, sizes="fixed", initrwnd=100, congestion_control="cubic",
    paced=False, access_queue_packets=50, servers=2, duration_s=30, warmup_s=5, cooldown_s=5,
    repeat=1, seed=1)


def measured(kernel: Path, folder: Path, *trials: LoadTrial) -> list[tuple[LoadRecord, Connections]]:
    """The trials' records and all their connections, in order."""
    by_id = {trial.id: trial for trial in trials}
    found = {seen.trial_id: (judge_load(by_id[seen.trial_id], seen)[0], parse_connections(join_rows(seen.files)))
             for seen in UmlEngine(kernel, 2).run([trial.job() for trial in trials], {}, folder)}
    return [found[trial.id] for trial in trials]


def test_the_load_is_what_was_asked_and_the_link_carries_it(kernel: Path, tmp_path: Path) -> None:
    half, same = measured(kernel, tmp_path, TRIAL, replace(TRIAL, repeat=2))
    record = half[0]
    assert (record.verdict, record.verdict_reason) == (PASS, "")
    mean, sigma = TRIAL.expected_arrivals
    assert record.arrivals is not None and abs(record.arrivals - mean) < 3 * sigma
    # The link's own counter: what was offered, to what lies in it at both ends of the time.
    assert record.utilisation == pytest.approx(record.offered_load, abs=0.01)
    assert record.utilisation == pytest.approx(0.5, abs=3 * 0.5 * sigma / mean + 0.01)
    assert (record.failed, record.unfinished, record.drops) == (0, 0, 0)
    assert (record.seen_initcwnd, record.seen_first_flight, record.wire_first_flight) == (
        "10", "10", "10")
    # The same seed again, in another guest: the same to the last connection.
    assert half[1].total_ms.tobytes() == same[1].total_ms.tobytes()
    assert replace(same[0], trial=TRIAL) == record


def test_an_empty_link_takes_what_the_model_says(kernel: Path, tmp_path: Path) -> None:
    """A connection that meets no other takes the closed form, to the millisecond."""
    quiet = replace(TRIAL, load=0.02, duration_s=60)
    ((record, connections),) = measured(kernel, tmp_path, quiet)
    head = len("HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n\r\n")
    asked = transfer(
        rtt_ms=100, bandwidth_kbps=10_000, uplink_kbps=1e9, initcwnd=10, initrwnd=100,
        response_bytes=20_000 + head, request_bytes=35)
    predicted = predict(asked).total_ms
    assert record.p50_ms == pytest.approx(predicted, abs=1.0)
    assert record.p10_ms == pytest.approx(record.p50_ms, abs=1.0)
    assert len(connections) > 5


def test_an_overloaded_network_does_not_slow_the_arrivals(kernel: Path, tmp_path: Path) -> None:
    full = replace(TRIAL, load=0.99, queue_packets=5, duration_s=12)
    (_, free), (record, jammed) = measured(kernel, tmp_path,
                                           replace(full, queue_packets=10_000), full)
    assert free.arrival_s.tobytes() == jammed.arrival_s.tobytes()
    assert (record.drop_percent or 0) > 5
    assert jammed.retransmission_percent > free.retransmission_percent == 0
    # What leaves the link is what the servers sent less what it dropped: nothing is invented.
    assert (record.utilisation or 0) <= 1.0


def test_a_server_killed_in_mid_run_is_failures(kernel: Path, tmp_path: Path) -> None:
    short = replace(TRIAL, duration_s=10, warmup_s=1, cooldown_s=1, servers=1)
    (tmp_path / "trial.json").write_text(json.dumps(short.job()))
    (tmp_path / "command.json").write_text(json.dumps(
        ["/usr/bin/python3", "-c", KILLING, RESULTS]))
    done = subprocess.run(guest_command(kernel), cwd=tmp_path, check=False,
                          capture_output=True, text=True, timeout=120)
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
    kept = list((results / "ietf78_losses" / "latest-partial" / "files").glob("*connections.csv.gz"))
    assert len(kept) == 1


def test_wire_bytes_are_those_of_the_wire(kernel: Path, tmp_path: Path) -> None:
    """The bottleneck's own counter against the formula that offered load is counted by."""
    quiet = replace(TRIAL, load=0.1, duration_s=30)
    (seen,) = UmlEngine(kernel, 1).run([quiet.job()], {}, tmp_path)
    everything = parse_connections(join_rows(seen.files))
    *_, last = seen.files["bottleneck.csv"].decode().splitlines()
    carried, finished = int(last.split(",")[1]), len(everything.ended("ok"))
    # Less a last acknowledgement or two, or more by what lies open at the end.
    assert finished > 100
    assert -2 * 66 <= carried - finished * wire_bytes(20_000) <= (
        len(everything) - finished) * wire_bytes(20_000)
