"""The kill loop sees what it is to see: lost, doubled and changed records, and what is left."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests import kills, leftovers
from tests.leftovers import CHANGED, DOUBLED, FILES, LOST, PROCESSES, WORDS, Machine
from tests.conftest import PROJECT

HEAD = "rtt_ms,bandwidth_kbps,initcwnd,repeat,total_ms,measured_at\n"
ROWS = ("20,56,3,1,100.5,10:00\n", "20,56,10,1,90.5,10:01\n")


def run(home: Path, *rows: str, state: str = "complete", name: str = "1-uml") -> Path:
    folder = home / name
    folder.mkdir(parents=True)
    (folder / "trials.csv").write_text(HEAD + "".join(rows))
    (folder / "run.json").write_text(json.dumps({"state": state}))
    return folder


@pytest.mark.parametrize(("rows", "kinds"), [
    (ROWS, []), (reversed(ROWS), []), ((ROWS[0].replace("10:00", "11:11"), ROWS[1]), []),
    (ROWS[:1], [LOST]), ((*ROWS, ROWS[0]), [DOUBLED, CHANGED]),
    ((ROWS[0].replace("100.5", "100.6"), ROWS[1]), [CHANGED])])
def test_records_are_held_against_those_of_an_undisturbed_run(
        tmp_path: Path, rows: tuple[str, ...], kinds: list[str]) -> None:
    meant = run(tmp_path / "meant", *ROWS)
    found = run(tmp_path / "found", *rows)
    assert [kind for kind, _ in leftovers.run_faults(found.parent, meant)] == kinds


@pytest.mark.parametrize(("later", "kinds"), [
    (ROWS, []), (("20,56,20,1,80.5,10:02\n", *reversed(ROWS)), []), (ROWS[1:], [LOST]),
    ((ROWS[0].replace("10:00", "11:11"), ROWS[1]), [LOST])])
def test_rows_of_a_struck_run_stay_in_whatever_order(
        tmp_path: Path, later: tuple[str, ...], kinds: list[str]) -> None:
    before, after = run(tmp_path / "before", *ROWS), run(tmp_path / "after", *later)
    faults = leftovers.earlier_row_faults(leftovers.rows(before), leftovers.rows(after))
    assert [kind for kind, _ in faults] == kinds


def test_a_run_that_never_became_whole_is_lost_and_a_file_too_many_told(tmp_path: Path) -> None:
    meant = run(tmp_path / "meant", *ROWS)
    torn = run(tmp_path / "torn", ROWS[0], ROWS[1][:-1], state="running")
    assert leftovers.rows(torn) == leftovers.rows(meant)[:1]
    assert [kind for kind, _ in leftovers.run_faults(torn.parent, meant)] == [LOST]
    more = run(tmp_path / "more", *ROWS)
    (more / "work").mkdir()
    assert leftovers.run_faults(more.parent, meant) == [(FILES, f"{more}: work")]


def test_the_stage_of_a_run_is_what_it_has_written(tmp_path: Path) -> None:
    home, seen = tmp_path / "home", [leftovers.stage(tmp_path / "home")]
    for number, (rows, state) in enumerate((([], "running"), (ROWS, "running"),
                                            (ROWS, "complete"))):
        run(home, *rows, state=state, name=f"{number}-uml")
        seen.append(leftovers.stage(home))
    assert tuple(seen) == leftovers.STAGES


def test_what_is_left_in_temporary_folders_is_found(tmp_path: Path) -> None:
    before = Machine.now(tmp_path)
    assert before.more(before) == []
    (tmp_path / "left").touch()
    assert (FILES, str(tmp_path / "left")) in before.more(Machine.now(tmp_path))


def test_an_orphan_is_found_and_ended() -> None:
    """In a process of its own: whoever adopts orphans reaps every child it has."""
    script = """
import subprocess, sys
from tests import leftovers
leftovers.GONE_S = 0.2
leftovers.adopt_orphans()
subprocess.run(["sh", "-c", "sleep 1000 & sleep 0.01 & exit"], check=True)
print(leftovers.left_processes(), leftovers.left_processes())
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=PROJECT, capture_output=True,
                          text=True, timeout=60, check=True)
    assert done.stdout == f"[({PROCESSES!r}, 'sleep 1000 ')] []\n"


@pytest.mark.parametrize(("said", "count"), [
    ("own: 3 of 4 trials to measure\nrun.sh: interrupted; the same command resumes\n", 0),
    ("Traceback (most recent call last):\n", 1), ("run.sh: internal error, KeyError: 1\n", 1),
    ("results/own/1-uml: not resumed: another seed\n", 1)])
def test_what_no_user_may_read_is_counted(said: str, count: int) -> None:
    assert [kind for kind, _ in kills.complaints(said)] == [WORDS] * count


def test_strikes_and_faults_are_counted_by_way() -> None:
    lines = kills.table(Counter({("SIGTERM", "booting"): 2, ("SIGKILL", "drawing"): 1}),
                        Counter({("SIGKILL", FILES): 1, ("SIGKILL", LOST): 1})).splitlines()
    rows = {line.rsplit(maxsplit=14)[0]: line.split()[-14:] for line in lines[1:]}
    assert lines[0].split() == ["struck", "by", "times", *leftovers.STAGES, *leftovers.FAULTS]
    assert rows["SIGTERM"] == [*"20200", *"000000000"]
    assert rows["SIGKILL"] == [*"10001", *"100000001"]
    assert rows["all"] == [*"30201", *"100000001"]
