"""Why a larger window helps, or does not: questions of which the network's answer is known."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.live.conftest import Driver, rows


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
