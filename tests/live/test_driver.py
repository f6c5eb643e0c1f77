"""The driver measures end to end, with real Mininet, real netem and real TCP in the guest."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from firstflight.findings.render import data, markdown
from firstflight.net.segments import client_ports
from firstflight.runs import runs
from firstflight.runs.measuring import capture_path
from firstflight.runs.results.records import PASS, read_records
from firstflight.study import registry
from firstflight.workloads.fetch.record.record import Record
from tests.golden import documents
from tests.live.conftest import PROJECT, Driver, command, rows
from tests.running import mounts_a_disk, run_program, small_disk
from vtime import uml

# At 56 kbit/s TCP's timers send probes and segments again.
SMALL = ("--scenario", "zhao2019", "--rtt", "20,100", "--bw", "56,1000", "--iw", "3,10",
         "--keep-captures")


# All parameters that can be used together, each with another value than its default.
EVERY_PARAMETER = """# What changes where every parameter is another one?
title = "every parameter"
source = "a test"
[[sweep]]
name = "all"
rtt_ms = [101.25]
bandwidth_kbps = [4000.5]
uplink = 3000.25
queue = 999
loss_percent = [0.5]
loss_burst = [1.5]
jitter_ms = [0.125]
response_bytes = [30001]
initcwnd = [3, 10]
initrwnd = 44
congestion_control = "reno"
mss = [1200]
gap_ms = [12.5]
nagle = ["on"]
framing = ["close"]
head = ["17+38+2"]
loss_probes = ["off"]
receive_rules = ["linux3"]
acts_as = ["10=7,16=8"]
send_buffer_bytes = [100000]
chain_bytes = [4000]
signature = ["ecdsa"]
intermediates = [1]
tickets = [1]
record_bytes = [4096]
buffer_bytes = [0]
module_parameter = ["tcp_cubic.hystart=0+tcp_cubic.beta=512"]
htb_burst_bytes = [15360]
arp_ms = [1000]
client = "curl"
repeat = 1
"""


@pytest.fixture(scope="module")
def small(kernel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of a small part of a scenario, by run.sh itself."""
    results = tmp_path_factory.mktemp("small") / "results"
    done = run_program(command(results, *SMALL))
    assert done.returncode == 0, done.stderr
    return results


def test_a_small_scenario_passes_end_to_end(small: Path) -> None:
    measured = rows(small)
    assert len(measured) == 8
    for row in measured:
        assert row["ok"] == "true" and row["verdict"] == "pass", row["verdict_reason"]
        assert row["seen_initcwnd"] == row["initcwnd"]
        assert int(row["seen_first_flight"]) == min(int(row["initcwnd"]), 7)
        assert abs(float(row["seen_rtt_ms"]) - float(row["rtt_ms"])) < 0.05
        if row["retransmissions"] == "0":
            assert abs(float(row["total_ms"]) - float(row["model_ms"])) < 1.0
    # At 100 ms and 1 Mbit/s the larger window saves most of a round trip.
    total = {row["initcwnd"]: float(row["total_ms"]) for row in measured
             if row["rtt_ms"] == "100" and row["bandwidth_kbps"] == "1000"}
    assert 70 < total["3"] - total["10"] < 100
    facts = json.loads((small / "zhao2019" / "latest-partial" / "run.json").read_text())
    assert facts["state"] == "complete" and facts["virtual_time"] is True
    assert facts["confined"] == uml.walls()
    assert facts["emulated_s"] > 3 * 0.1
    assert {*facts} == {*documents.RUN_JSON, "what_ifs"}, "docs/REFERENCE.md has to have every key"


@pytest.mark.skipif(shutil.which("tshark") is None, reason="no tshark: apt-get install tshark")
def test_tshark_observes_the_same_first_flights(small: Path) -> None:
    done = run_program(["/usr/bin/python3", "-m", "benchmarks.outside.first_flights",
                        str(small / "zhao2019" / "latest-partial")])
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    assert done.stdout.startswith("8 of 8 transfers")


def test_measuring_again_gives_the_kept_findings(drive: Driver, results: Path) -> None:
    """The scenario is a quick one. docs/REPRODUCE.md and README quote kept findings."""
    assert drive("--scenario", "zhao2019", "--no-figures").returncode == 0
    now, before = (markdown.chapter(report).partition("### ")[2] for report in (
        registry.stored_report(runs.newest_whole("zhao2019", results)),
        data.read(PROJECT / "docs" / "results" / "zhao2019.json")))
    assert now == before


def test_a_question_with_wget_passes(drive: Driver, results: Path) -> None:
    done = drive("--rtt", "77", "--bw", "1234", "--iw", "4", "--size", "20000", "--client", "wget",
                 "--no-figures")
    assert done.returncode == 0, done.stderr
    (row,) = rows(results, "own")
    assert row["client"] == "wget" and row["verdict"] == "pass"
    # wget's time is that of its process, and starting a process takes no virtual time.
    assert abs(float(row["total_ms"]) - float(row["model_ms"])) < 1.0
    assert (row["rtt_ms"], row["bandwidth_kbps"], row["seen_initcwnd"]) == ("77", "1234", "4")
    assert abs(float(row["seen_bandwidth_kbps"]) - 1234) < 2


@mounts_a_disk
def test_a_disk_that_fills_up_stops_a_run_and_fails_no_trial(small: Path, results: Path) -> None:
    """The disk may be full first for a guest's folder, for a capture, or for the records."""
    with small_disk(results, "size=36k"):
        for size in ("36k", "60k", "9m"):
            subprocess.run(["mount", "-o", f"remount,size={size}", str(results)], check=True)
            done = run_program(command(results, *SMALL, "--no-figures"))
            if size != "9m":
                assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
                assert "No space left on device" in done.stderr.splitlines()[-1], done.stderr
            assert all(row["verdict"] == "pass" for row in rows(results))
        assert done.returncode == 0, done.stderr
        found, meant = ([{name: value for name, value in row.items() if name != "measured_at"}
                         for row in sorted(rows(home), key=str)] for home in (results, small))
        assert sorted(found, key=str) == sorted(meant, key=str)


def test_packets_of_a_trial_with_every_parameter_are_kept(drive: Driver, results: Path,
                                                          tmp_path: Path) -> None:
    """The id of such a trial has more bytes than the name of a file may have."""
    scenario = tmp_path / "every.toml"
    scenario.write_text(EVERY_PARAMETER)
    done = drive("--scenario", str(scenario), "--keep-captures", "--no-figures", "--no-reasons")
    assert done.returncode == 0, done.stderr
    folder = results / "every" / "latest"
    records = read_records(folder / runs.TRIALS_CSV, Record)
    assert [record.verdict for record in records] == [PASS, PASS]
    for record in records:
        assert len(record.trial.id) > 255
        for side in ("client", "server"):
            packets = capture_path(folder, record.trial.id, side).read_bytes()
            assert len(client_ports(packets)) == 1
