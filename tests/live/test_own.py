"""Questions of one's own in the guest: every flag, where results go, and the reasons."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import experiment
from tests.live.conftest import PROJECT, Driver, rows
from tests.running import run_program


@pytest.mark.parametrize("flags", [
    "--qdisc fifo,fq,fq_codel,cake,fifo --cc cubic,bbr --queue 20", "--queue 10,bdp,50ms",
    "--loss 5 --burst-loss 1,5 --repeat 4", "--mss 536,1448 --rwnd 5,100 --uplink 64,5000",
    "--kept 0,1,3 --think 0,100", "--kept 2 --idle 0,2000", "--jitter 2 --repeat 3",
    "--sysctl net.ipv4.tcp_sack=0 --sysctl net.ipv4.tcp_ecn=1"])
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


# Where results and figures go ---------------------------------------------------------

def test_results_and_figures_may_be_relative_and_of_any_name(kernel: Path, tmp_path: Path) -> None:
    name = "-a b,c=\"ü'\ntwo \N{SNOWMAN} $(id)" + "x" * 100
    done = run_program(
        [str(PROJECT / "run.sh"), "--rtt", "25", "--iw", "3,10", f"--results={name}/r",
         f"--figures={name}/f"], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (run,) = (tmp_path / name / "r" / "own").glob("*-uml")
    assert (run / "trials.csv").read_text().count("\n") > 1
    figures = list((tmp_path / name / "f").iterdir())
    assert figures and f"{name}/f" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == [name]


# Why a larger window helps, or does not -----------------------------------------------

def answer_of(done_stdout: str) -> str:
    """The answer on one line."""
    return " ".join(done_stdout.split())


@pytest.mark.parametrize(("question", "answer"), [
    ("--rtt 12 --bw 2M --size 22kB --iw 10,32 --rwnd 10",
     "The receive window and bandwidth: without any limit 32 segments save 6.6 ms, and each alone"
     " takes that away."),
    ("--rtt 25 --bw 1M --size 90kB --iw 10,20 --rwnd 10 --queue 18",
     "The receive window protects: with an ample receive window 20 segments take 22.8 ms longer."),
    ("--rtt 30 --bw 2M --size 100kB --iw 10,64 --queue 40",
     "The queue: with an endless queue 64 segments take as long as 10."),
    ("--rtt 100 --bw 1M --size 15kB --iw 3,10",
     "The response takes 3 flights with 3 segments (3+6+2) and 2 with 10 (10+1), and the link is"
     " idle 116.3 ms less."),
    ("--rtt 200 --bw 512k --size 10kB --iw 3,10",
     "The response takes 2 flights with 3 segments (3+4) and 1 with 10 (7), and the link is idle"
     " 153.7 ms less."),
    ("--rtt 600 --bw 60M --size 600kB --iw 10,16 --qdisc fq",
     "The response takes 6 flights with 10 segments (10+20+40+80+160+105) and 5 with 16"
     " (16+32+64+128+175), and the link is idle 458.7 ms less."),
    ("--rtt 130 --bw 150M --size 60kB --iw 10,32 --kept 1 --rwnd 18",
     "The connection was used before: the response takes 1 flight with either window"
     " (42 segments)."),
    ("--rtt 25 --bw 20M --iw 10,40 --size 60kB --rwnd 20",
     "The response takes 3 flights with 10 segments (10+20+12) and 2 with 40 (21+22), and the link"
     " is idle 19.7 ms less; with an ample receive window it would save 31.7 ms."),
    ("zhao2019 --rtt 5000 --bw 7M --iw 6,16",
     "The response takes 2 flights with 6 segments")])
def test_a_reason_is_accounted_for_or_measured(drive: Driver, results: Path, question: str,
                                               answer: str) -> None:
    done = drive(*question.split(), "--quiet", "--no-figures")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert answer in answer_of(done.stdout), done.stdout
    assert "not known" not in done.stdout and "set initrwnd" not in done.stdout
    (name,) = (path.name for path in results.iterdir())
    newest = next(results.glob(f"{name}/*-uml/trials.csv"))
    with newest.open(encoding="utf-8", newline="") as file:
        asked = [row for row in csv.DictReader(file) if row["what_if"]]
    assert all(row["verdict"] == "pass" for row in asked) and len(asked) <= 40
    assert f"{len(rows(results, name))} of {len(rows(results, name))} trials" in done.stdout


def test_no_reason_is_asked_where_none_is_wanted(drive: Driver, results: Path) -> None:
    done = drive("--rtt", "30", "--bw", "2M", "--size", "100kB", "--iw", "10,64", "--queue", "40",
                 "--no-reasons", "--quiet", "--no-figures")
    assert done.returncode == 0 and "The queue: " not in done.stdout
    with next(results.glob("own/*-uml/trials.csv")).open(encoding="utf-8") as file:
        assert len(file.readlines()) == 3
