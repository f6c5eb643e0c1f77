"""Every flag of a network, a sender and a client, as the guest measures it."""

from __future__ import annotations

from pathlib import Path

import pytest

import experiment
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


def test_what_cannot_be_saved_is_told_and_the_rest_is_saved(drive: Driver, results: Path,
                                                             tmp_path: Path) -> None:
    (tmp_path / "figures" / "part_packets.png").mkdir(parents=True)
    done = drive("--rtt", "25", "--iw", "3,10", "--size", "9000", "--name", "part")
    assert done.returncode == 1 and "part_packets.png: cannot be written: Is a directory" in done.stderr
    assert (results / "part" / "latest" / "report.html").is_file()
    assert (tmp_path / "figures" / "part_windows.png").is_file()
