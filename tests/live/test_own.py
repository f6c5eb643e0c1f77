"""Questions are measured in the guest with every flag, keep their results, and have reasons."""

from __future__ import annotations

import csv
from itertools import combinations
from pathlib import Path

import pytest

from firstflight.commands import flags
from firstflight.runs.kinds import NOTHING
from firstflight.runs.results.records import PASS
from firstflight.study.fetches import KIND
from firstflight.study.questions import question
from firstflight.testbed.guests import UmlEngine
from firstflight.workloads.fetch.trial import Trial
from tests.live.conftest import PROJECT, Driver, measured, rows, unwrapped
from tests.running import run_program

QUESTIONS = ("--qdisc fifo,fq,fq_codel,cake,fifo --cc cubic,bbr --queue 20", "--queue 10,bdp,50ms",
             "--loss 5 --burst-loss 1,5 --repeat 4", "--mss 536,1448 --rwnd 5,100 --uplink 64,5000",
             "--kept 0,1,3 --think 0,100", "--kept 2 --idle 0,2000", "--jitter 2 --repeat 3")


def test_questions_are_measured_and_verified(shared: UmlEngine, tmp_path: Path) -> None:
    trials: dict[Trial, None] = {}
    for words in QUESTIONS:
        typed = flags.parse(["--rtt", "50", "--bw", "5000", "--size", "60000", *words.split()])
        scenario = question.scenario("own", typed.overrides)
        trials |= dict.fromkeys(KIND.study_of(scenario, NOTHING, 1).trials)
    records = measured(shared, tmp_path / "guest", [*trials])
    assert len(records) > 60
    assert {record.verdict for record in records.values()} == {PASS}, records


def test_sysctls_by_flag_are_measured_without_what_if_trials(drive: Driver, results: Path) -> None:
    done = drive("--rtt", "30", "--bw", "2M", "--size", "100kB", "--iw", "10,64", "--queue", "40",
                 "--sysctl", "net.ipv4.tcp_sack=0", "--sysctl", "net.ipv4.tcp_ecn=1",
                 "--repeat", "1", "--no-reasons", "--quiet", "--no-figures")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    with next(results.glob("own/*-uml/trials.csv")).open(encoding="utf-8") as file:
        assert [row["verdict"] for row in csv.DictReader(file)] == ["pass"] * 2
    assert not [*results.glob("own/*-uml/what_if.csv")]


def test_figures_are_drawn_in_each_format(drive: Driver, results: Path) -> None:
    done = drive("--rtt", "25", "--iw", "10,40", "--size", "60000", "--rwnd", "20", "--name", "why",
                 "--no-reasons", "--quiet", "--format", "svg,pdf")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert (results / "why" / "latest" / "report.html").is_file()
    assert sorted(path.name for path in (results.parent / "figures").iterdir()) == [
        f"why_{name}.{form}" for name in ("packets", "windows") for form in ("pdf", "svg")]


def test_a_figure_that_cannot_be_saved_is_named_and_the_rest_is_saved(drive: Driver, results: Path,
                                                                      tmp_path: Path) -> None:
    (tmp_path / "figures" / "part_packets.png").mkdir(parents=True)
    done = drive("--rtt", "25", "--iw", "3,10", "--size", "9000", "--name", "part", "--no-reasons")
    assert done.returncode == 1
    assert "part_packets.png: cannot be written: Is a directory" in done.stderr
    assert (results / "part" / "latest" / "report.html").is_file()
    assert (tmp_path / "figures" / "part_windows.png").is_file()


# Where results and figures go ---------------------------------------------------------

def test_results_and_figures_may_be_relative_and_of_any_name(kernel: Path, tmp_path: Path) -> None:
    name = "-a b,c=\"ü'\ntwo \N{SNOWMAN} $(id)" + "x" * 100
    done = run_program(
        [str(PROJECT / "run.sh"), "--rtt", "25", "--iw", "3,10", "--no-reasons",
         f"--results={name}/r", f"--figures={name}/f"], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (run,) = (tmp_path / name / "r" / "own").glob("*-uml")
    assert (run / "trials.csv").read_text().count("\n") > 1
    figures = list((tmp_path / name / "f").iterdir())
    assert figures and f"{name}/f" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == [name]


# Reasons why a larger window helps or does not; their sentences: tests/golden/reasons.py ---

@pytest.mark.parametrize(("words", "lifted", "together", "told"), [
    ("--rtt 12 --bw 2M --size 22kB --iw 10,32 --rwnd 10", "receive-window bandwidth queue",
     (1, 2, 3), "save 12.0 ms"),
    ("--rtt 25 --bw 1M --size 90kB --iw 10,20 --rwnd 10 --queue 18",
     "receive-window bandwidth queue", (1, 3), "take 241.7 ms longer"),
    ("--rtt 30 --bw 2M --size 100kB --iw 10,64 --queue 40", "queue", (1,), "as long as 10")])
def test_a_questions_reasons_are_measured_by_lifting_limits(
        drive: Driver, results: Path, words: str, lifted: str, together: tuple[int, ...],
        told: str) -> None:
    """lifted: the limits that what-if trials lift. together: how many of them are lifted at once.

    All limits but one are lifted only where a limit hides a saving.
    """
    done = drive(*words.split(), "--repeat", "1", "--quiet", "--no-figures")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    with next(results.glob("own/*-uml/what_if.csv")).open(encoding="utf-8", newline="") as file:
        what_ifs = [*csv.DictReader(file)]
    limits = lifted.split()
    assert {row["what_if"] for row in what_ifs} == {
        "_".join(some) for count in together for some in combinations(limits, count)}
    assert all(row["verdict"] == "pass" for row in what_ifs)
    assert told in unwrapped(done) and len(rows(results, "own")) == 2
