"""What Debian 13's programs bring, in guests: ML-DSA, SLH-DSA, ML-KEM and early data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from firstflight.runs import runs
from tests.live.conftest import Driver, rows, unwrapped
from vtime import system

IS_HERE = system.folder().is_dir()
needs = pytest.mark.skipif(not IS_HERE, reason=system.MISSING)


@needs
@pytest.mark.parametrize(("signature", "chain", "intermediates"), [
    ("mldsa65", "16598", "2"), ("slhdsa128s", "16314", "1"), ("ed25519", "12588,12566,12567", "0")])
def test_what_openssl_3_5_sends_is_measured_as_the_model_says(
        drive: Driver, results: Path, signature: str, chain: str, intermediates: str) -> None:
    done = drive("--rtt", "100", "--bw", "10000", "--iw", "3,10", "--size", "10000", "--signature",
                 signature, "--chain", chain, "--intermediates", intermediates, "--key-share",
                 "x25519,x25519mlkem768", "--system", "debian13", "--repeat", "2", "--no-figures")
    assert done.returncode == 0, done.stdout + done.stderr
    found = rows(results, "own")
    assert all(row["verdict"] == "pass" and row["model_appconnect_ms"] for row in found)
    assert all(abs(float(row["total_ms"]) - float(row["model_ms"])) < 0.1 for row in found)
    assert len({(row["initcwnd"], row["chain_bytes"], row["key_share"], row["total_ms"])
                for row in found}) == len(found) / 2, "repeats are identical"
    facts = json.loads((runs.newest_first(results / "own")[0] / "run.json").read_text())
    assert facts["systems"]["debian13"]["libssl3t64"].startswith("3.5")


def test_without_that_system_its_trials_are_skipped_and_the_run_ends_well(
        results: Path, drive: Driver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kernels = system.cache().parent / "kernel"
    (tmp_path / "cache" / "first-flight").mkdir(parents=True)
    (tmp_path / "cache" / "first-flight" / "kernel").symlink_to(kernels)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    done = drive("--rtt", "20", "--chain", "4000", "--system", "here,debian13", "--no-figures")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {(row["system"], row["verdict"]) for row in rows(results, "own")} == {
        ("here", "pass"), ("debian13", "skipped")}
    assert system.MISSING in unwrapped(done)
    done = drive("chou2026_mldsa", "--no-figures", "--full")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "8 of 137 trials verified" in done.stdout and "no table: its 45 trials" in done.stdout


@needs
def test_early_data_saves_a_round_trip_and_is_seen_to(drive: Driver, results: Path) -> None:
    """Beside the same resumed session without; what passes the client's window saves nothing."""
    done = drive("--rtt", "100", "--bw", "100000", "--iw", "10", "--size", "9000", "--server",
                 "nginx", "--chain", "4000", "--resumed", "1", "--early-data", "0,1,3000,16384",
                 "--repeat", "2", "--no-figures")
    assert done.returncode == 0, done.stdout + done.stderr
    found = {row["early_data_bytes"]: row for row in rows(results, "own")}
    assert {row["verdict"] for row in rows(results, "own")} == {"pass"}
    times = {size: float(row["first_byte_ms"]) for size, row in found.items()}
    assert all(abs(times["0"] - times[size] - 100) < 1 for size in ("1", "3000")), times
    assert abs(times["0"] - times["16384"]) < 2
    assert [found[size]["accepted_early_bytes"] for size in ("0", "3000", "16384")] == [
        "", "3000", "16384"]
    assert [found[size]["request_round_trips"] for size in ("1", "3000", "16384")] == [
        "1", "1", "2"]


@needs
def test_the_cliff_of_early_data_is_the_clients_ten_segments(drive: Driver) -> None:
    """The hello has 554 bytes; of ten segments the third ends with a write of 4096 bytes."""
    done = drive("--find-cliff", "early", "--rtt", "100", "--bw", "100000")
    assert done.returncode == 0, done.stdout + done.stderr
    most = 4096 + 7 * 1448 - 554 - 22
    assert f"is {most} bytes, measured of the server nginx" in unwrapped(done)
    assert "it leaves in 10 segments" in unwrapped(done)
