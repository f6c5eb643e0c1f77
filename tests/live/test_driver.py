"""The driver end to end: real Mininet, real netem, real TCP, in the guest."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from firstflight.findings.render import data, markdown
from firstflight.runs import runs
from firstflight.study import registry
from tests.golden import documents
from tests.live.conftest import PROJECT, Driver, command, rows
from tests.running import mounts_a_disk, run_program, small_disk
from vtime import uml

# At 56 kbit/s timers send probes and segments again.
SMALL = ("--scenario", "zhao2019", "--rtt", "20,100", "--bw", "56,1000", "--iw", "3,10",
         "--keep-captures")


@pytest.fixture(scope="module")
def small(kernel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of a small part of a scenario, by run.sh itself."""
    results = tmp_path_factory.mktemp("small") / "results"
    done = run_program(command(results, *SMALL))
    assert done.returncode == 0, done.stderr
    return results


def test_small_scenario_end_to_end(small: Path) -> None:
    measured = rows(small)
    assert len(measured) == 8
    for row in measured:
        assert row["ok"] == "true" and row["verdict"] == "pass", row["verdict_reason"]
        assert row["seen_initcwnd"] == row["initcwnd"]
        assert int(row["seen_first_flight"]) == min(int(row["initcwnd"]), 7)
        assert abs(float(row["seen_rtt_ms"]) - float(row["rtt_ms"])) < 0.05
        if row["retransmissions"] == "0":
            assert abs(float(row["total_ms"]) - float(row["model_ms"])) < 1.0
    # 100 ms, 1 Mbit/s: the larger window saves most of one round trip.
    total = {row["initcwnd"]: float(row["total_ms"]) for row in measured
             if row["rtt_ms"] == "100" and row["bandwidth_kbps"] == "1000"}
    assert 70 < total["3"] - total["10"] < 100
    facts = json.loads((small / "zhao2019" / "latest-partial" / "run.json").read_text())
    assert facts["state"] == "complete" and facts["virtual_time"] is True
    assert facts["confined"] == uml.walls()
    assert facts["emulated_s"] > 3 * 0.1
    assert {*facts} == {*documents.RUN_JSON, "what_ifs"}, "docs/REFERENCE.md tells every key"


@pytest.mark.skipif(shutil.which("tshark") is None, reason="no tshark: apt-get install tshark")
def test_tshark_reads_the_same_first_flights(small: Path) -> None:
    done = run_program(["/usr/bin/python3", "-m", "benchmarks.outside.first_flights",
                        str(small / "zhao2019" / "latest-partial")])
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    assert done.stdout.startswith("8 of 8 transfers")


def test_the_kept_findings_are_what_is_measured(drive: Driver, results: Path) -> None:
    """Of the scenario that is quick; docs/REPRODUCE.md and README rest on what is kept."""
    assert drive("--scenario", "zhao2019", "--no-figures").returncode == 0
    now, before = (markdown.chapter(report).partition("### ")[2] for report in (
        registry.stored_report(runs.newest_whole("zhao2019", results)),
        data.read(PROJECT / "docs" / "results" / "zhao2019.json")))
    assert now == before


def test_values_outside_the_scenario_are_measured_of_wget_too(drive: Driver, results: Path) -> None:
    done = drive("--rtt", "77", "--bw", "1234", "--iw", "4", "--size", "20000", "--client", "wget",
                 "--no-figures")
    assert done.returncode == 0, done.stderr
    (row,) = rows(results, "own")
    assert row["client"] == "wget" and row["verdict"] == "pass"
    # wget's time is that of its process; in virtual time starting costs nothing.
    assert abs(float(row["total_ms"]) - float(row["model_ms"])) < 1.0
    assert (row["rtt_ms"], row["bandwidth_kbps"], row["seen_initcwnd"]) == ("77", "1234", "4")
    assert abs(float(row["seen_bandwidth_kbps"]) - 1234) < 2


@mounts_a_disk
def test_a_disk_that_fills_up_is_no_failed_trial(small: Path, results: Path) -> None:
    """Wherever it happens first: in a guest's folder, a capture, or the records."""
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
