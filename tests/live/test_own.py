"""Every flag of a network, a sender and a client, as the guest measures it."""

from __future__ import annotations

from pathlib import Path

import pytest

import experiment
from study.fetches.features.users import shared as shared_link
from tests.live.conftest import Driver, rows


@pytest.mark.parametrize("flags", [
    "--qdisc fifo,fq,fq_codel,cake,fifo --cc cubic,bbr --queue 20", "--queue 10,bdp,50ms",
    "--loss 5 --burst-loss 1,5 --repeat 4", "--mss 536,1448 --rwnd 5,100 --uplink 64,5000",
    "--kept 0,1,3 --think 0,100", "--kept 2 --idle 0,2000", "--jitter 2 --repeat 3", "--sysctl net.ipv4.tcp_sack=0 --sysctl net.ipv4.tcp_ecn=1"])
def test_a_question_is_measured_and_verified(results: Path, kernel: Path, flags: str) -> None:
    """In this process, which has imported all of it by then."""
    assert experiment.main(["--rtt", "50", "--bw", "5000", "--size", "60000", "--no-figures",
                            "--jobs", "1", "--results", str(results), *flags.split()]) == 0
    assert all(row["verdict"] == "pass" for row in rows(results, "own"))


def test_the_receive_window_is_named(drive: Driver, results: Path) -> None:
    done = drive("--rtt", "25", "--iw", "10,40", "--size", "60000", "--rwnd", "20", "--name", "why",
                 "--quiet", "--format", "svg,pdf")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert "with an ample receive window it would save" in " ".join(done.stdout.split())
    assert (results / "why" / "latest" / "report.html").is_file()
    assert sorted(path.name for path in (results.parent / "figures").iterdir()) == [
        f"why_{name}.{form}" for name in ("packets", "windows") for form in ("pdf", "svg")]


def test_what_larger_windows_cost_the_others(
        results: Path, kernel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str]) -> None:
    """In this process, where there are two loads and not eight, of 20 s each."""
    monkeypatch.setattr(shared_link, "LONGEST_S", 20.0)
    monkeypatch.setattr(shared_link, "SEEDS", 1)
    users = tmp_path / "near.csv"
    users.write_text("rtt_ms,bandwidth_kbps,response_bytes\n"
                     "30,50000,40000\n")
    assert experiment.main(["--users", str(users), "--iw", "10,40", "--trials", "4", "--share-link",
                            "1000", "--load", "0.7", "--no-figures", "--results", str(results)]) == 0
    said = capsys.readouterr().out
    assert "What 40 segments for your users cost the others, who have 10:" in said
    shared = rows(results, "users_of_near_shared")
    assert {row["window"] for row in shared} == {"10+10", "40+10"} and len(shared) == 2
    by_window = {window: [float(row["arrivals"]) for row in shared if row["window"] == window]
                 for window in ("10+10", "40+10")}
    assert by_window["10+10"] == by_window["40+10"], "the same arrivals"


def test_what_cannot_be_saved_is_told_and_the_rest_is_saved(drive: Driver, results: Path,
                                                             tmp_path: Path) -> None:
    (tmp_path / "figures" / "part_packets.png").mkdir(parents=True)
    done = drive("--rtt", "25", "--iw", "3,10", "--size", "9000", "--name", "part")
    assert done.returncode == 1 and "part_packets.png: cannot be written: Is a directory" in done.stderr
    assert (results / "part" / "latest" / "report.html").is_file()
    assert (tmp_path / "figures" / "part_windows.png").is_file()
