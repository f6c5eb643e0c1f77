"""Programs end with one line, a status and no traceback; the kill loop finds what they leave.

Further tests are on the processor time of groups, and on tasks in several processes.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from benchmarks import processor
from benchmarks.timer import watched
from firstflight.base import forked
from firstflight.base.errors import INTERRUPTED, UNREAD, USAGE, FirstFlightError
from tests import kills, leftovers
from tests.conftest import PROJECT
from tests.leftovers import CHANGED, DOUBLED, FILES, LOST, PROCESSES, WORDS, Machine
from tests.running import HANGS_S, run_program

LIST = [sys.executable, str(PROJECT / "experiment.py"), "--list"]


def test_a_reader_that_has_left_ends_a_program_quietly() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(LIST, stdout=writing, stderr=subprocess.PIPE, check=False,
                          timeout=HANGS_S)
    os.close(writing)
    assert (done.returncode, done.stderr) == (UNREAD, b"")


def test_a_full_output_is_reported_in_one_line() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(LIST, stdout=full, stderr=subprocess.PIPE, text=True, check=False,
                              timeout=HANGS_S)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert "No space left on device" in done.stderr


@pytest.mark.parametrize(("words", "status"), [
    (["--rtt", "fast"], USAGE), (["--rtt", "0", "--dry-run"], USAGE), (["--list"], 0)])
def test_a_program_that_cannot_print_its_error_still_has_its_status(words: list[str],
                                                                    status: int) -> None:
    """A message that cannot be written is no other error, and is not written again at the end."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*LIST[:-1], *words], stdout=subprocess.PIPE, stderr=full,
                              check=False, timeout=HANGS_S, env=environment)
    assert done.returncode == status and bool(done.stdout) == (status == 0)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_file_opened_later_does_not_take_a_closed_streams_place(closed: str,
                                                                  tmp_path: Path) -> None:
    """Otherwise it would have the stream's number, and the stream would be written into it."""
    program = ("from firstflight.base.main import run_main\n"
               "from firstflight.base.terminal import say\n"
               "def main(argv):\n"
               "    file = open(argv[0], 'w'); print('out'); say('err')\n"
               "    return 0 if file.fileno() > 2 else 1\n"
               "run_main('x', main)")
    kept = tmp_path / "kept"
    done = run_program(["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-c", program,
                        str(kept)], text=False)
    assert done.returncode == 0 and kept.read_text() == ""
    assert done.stdout == (b"" if ">&-" in closed.replace("2>", "") else b"out\n")


@pytest.mark.parametrize("program", ["experiment.py", "plot.py", "docs/update.py"])
def test_ctrl_c_while_modules_are_imported_is_quiet(program: str) -> None:
    started = subprocess.Popen([sys.executable, "-X", "importtime", str(PROJECT / program),
                                "--help"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               text=True)
    assert started.stderr is not None
    next(line for line in started.stderr if line.rpartition("|")[2].strip() == "argparse")
    started.send_signal(signal.SIGINT)
    printed = started.stderr.read()
    assert started.wait(HANGS_S) in (-signal.SIGINT, INTERRUPTED)
    assert "Traceback" not in printed and "KeyboardInterrupt" not in printed


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_a_signal_during_an_import_takes_effect_after_it(number: str, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(f"import os, signal\nos.kill(os.getpid(), signal.{number})\n"
                                      "for _ in range(9): pass\nprint('imported', flush=True)\n")
    program = ("import signal, time\n"
               "from firstflight.base.main import run_main\n"
               "from firstflight.base.signals import interrupt\n"
               "def main(argv):\n"
               "    signal.signal(signal.SIGTERM, interrupt)\n"
               "    import slow; time.sleep(60); return 0\n"
               "run_main('x', main)")
    done = run_program([sys.executable, "-c", program],
                       env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stdout, done.stderr) == (INTERRUPTED, "imported\n",
                                                           "x: interrupted\n")


# Sends itself SIGINT at a moment, which its argument names.
STRUCK = """
import atexit, os, signal, sys, time
signal.signal(signal.SIGINT, signal.SIG_DFL)
from firstflight.base import main
from firstflight.base.errors import FirstFlightError

def strike():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0)

class Dying:
    def __del__(self):
        strike()

def twice(words):
    try:
        strike()
        time.sleep(60)
    finally:
        strike()
        strike()

def by_a_finalizer(words):
    dying = Dying()
    del dying
    time.sleep(60)

def while_its_error_is_told(words):
    said = main.say
    def say(line):
        strike()
        said(line)
    main.say = say
    raise FirstFlightError("an error")

def while_its_interruption_is_told(words):
    said = main.say
    def say(line):
        strike()
        said(line)
    main.say = say
    strike()

def at_the_end(words):
    leave = sys.exit
    def struck(status):
        strike()
        leave(status)
    sys.exit = struck
    atexit.register(strike)
    return 3

main.run_main("x", globals()[sys.argv[1]])
"""


@pytest.mark.parametrize("moment, status, line", [
    ("twice", INTERRUPTED, "x: interrupted\n"),
    ("by_a_finalizer", INTERRUPTED, "x: interrupted\n"),
    ("while_its_error_is_told", INTERRUPTED, "x: interrupted\n"),
    ("while_its_interruption_is_told", INTERRUPTED, "x: interrupted\n"),
    ("at_the_end", 3, "")])
def test_ctrl_c_at_any_time_and_any_number_of_times_is_one_line(moment: str, status: int,
                                                                line: str) -> None:
    done = run_program([sys.executable, "-c", STRUCK, moment])
    assert (done.returncode, done.stderr) == (status, line)


# Ctrl-C while run.sh starts -----------------------------------------------------------

RUN = PROJECT / "run.sh"


@pytest.mark.parametrize("after_ms", [*range(2, 62, 5), 100, 150])
def test_ctrl_c_at_any_moment_of_the_start_is_quiet(after_ms: int) -> None:
    """In its first 60 ms bash becomes env, env becomes Python, and Python imports site."""
    with subprocess.Popen([RUN, "--list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, start_new_session=True) as started:
        time.sleep(after_ms / 1000)
        started.send_signal(signal.SIGINT)
        _, printed = started.communicate(timeout=HANGS_S)
    # If the signal comes later, the line is that of a command that measures.
    assert printed in ("", "run.sh: interrupted\n", "run.sh: interrupted; what is measured is"
                       " kept, the same command resumes\n")
    # Before bash has read its first line the signal ends it. After the end of --list it does
    # nothing.
    assert started.returncode in (0, 130, -signal.SIGINT)


def test_ctrl_c_while_the_driver_imports_modules_is_one_line(tmp_path: Path) -> None:
    """One of its imports waits for the signal."""
    (tmp_path / "argparse.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)\n")
    done = run_program(["/usr/bin/python3", "-c", "import runpy, sys; sys.path[:0] = sys.argv[1:];"
                        " runpy.run_path(f'{sys.argv[2]}/experiment.py', run_name='__main__')",
                        tmp_path, RUN.parent])
    assert (done.returncode, done.stderr) == (130, "run.sh: interrupted\n")


# The kill loop finds faults -------------------------------------------------------------

HEAD = "rtt_ms,bandwidth_kbps,initcwnd,repeat,total_ms,measured_at\n"
ROWS = ("20,56,3,1,100.5,10:00\n", "20,56,10,1,90.5,10:01\n")


def run(home: Path, *rows: str, state: str = "complete", name: str = "1-uml") -> Path:
    """Store a run with these rows, in a folder of this name."""
    folder = home / name
    folder.mkdir(parents=True)
    (folder / "trials.csv").write_text(HEAD + "".join(rows))
    (folder / "run.json").write_text(json.dumps({"state": state}))
    return folder


@pytest.mark.parametrize(("rows", "kinds"), [
    (ROWS, []), (reversed(ROWS), []), ((ROWS[0].replace("10:00", "11:11"), ROWS[1]), []),
    (ROWS[:1], [LOST]), ((*ROWS, ROWS[0]), [DOUBLED, CHANGED]),
    ((ROWS[0].replace("100.5", "100.6"), ROWS[1]), [CHANGED])])
def test_records_that_differ_from_an_undisturbed_runs_are_faults(
        tmp_path: Path, rows: tuple[str, ...], kinds: list[str]) -> None:
    meant = run(tmp_path / "meant", *ROWS)
    found = run(tmp_path / "found", *rows)
    assert [kind for kind, _ in leftovers.run_faults(found.parent, meant)] == kinds


@pytest.mark.parametrize(("later", "kinds"), [
    (ROWS, []), (("20,56,20,1,80.5,10:02\n", *reversed(ROWS)), []), (ROWS[1:], [LOST]),
    ((ROWS[0].replace("10:00", "11:11"), ROWS[1]), [LOST])])
def test_a_row_of_a_struck_run_that_is_gone_is_a_fault_in_any_order(
        tmp_path: Path, later: tuple[str, ...], kinds: list[str]) -> None:
    before, after = run(tmp_path / "before", *ROWS), run(tmp_path / "after", *later)
    faults = leftovers.earlier_row_faults(leftovers.rows(before), leftovers.rows(after))
    assert [kind for kind, _ in faults] == kinds


def test_an_unfinished_run_and_a_file_too_many_are_faults(tmp_path: Path) -> None:
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


def test_a_file_left_in_a_temporary_folder_is_found(tmp_path: Path) -> None:
    before = Machine.now(tmp_path)
    assert before.more(before) == []
    (tmp_path / "left").touch()
    assert (FILES, str(tmp_path / "left")) in before.more(Machine.now(tmp_path))


def test_an_orphan_is_found_and_ended() -> None:
    """It is looked for in another process, since whoever adopts orphans reaps all its children."""
    script = """
import os, subprocess
from tests import leftovers, running
leftovers.adopt_orphans()
subprocess.run(["sh", "-c", "sleep 0.01 & exit"], check=True)  # this orphan ends by itself
print(leftovers.left_processes())
subprocess.run(["sh", "-c", "sleep 1000 & exit"], check=True)
running.wait_until(lambda: all(b"sleep" == leftovers.command_of(child).partition(b"\\0")[0]
                               for child in leftovers.children(os.getpid())), "the orphan")
leftovers.GONE_S = 0.0
print(leftovers.left_processes())
leftovers.GONE_S = running.HANGS_S
print(leftovers.left_processes())
"""
    done = run_program([sys.executable, "-c", script])
    assert done.stdout == f"[]\n[({PROCESSES!r}, 'sleep 1000 ')]\n[]\n", done.stderr


@pytest.mark.parametrize(("said", "count"), [
    ("own: 3 of 4 trials to measure\nrun.sh: interrupted; the same command resumes\n", 0),
    ("Traceback (most recent call last):\n", 1), ("run.sh: internal error, KeyError: 1\n", 1),
    ("results/own/1-uml: not resumed: another seed\n", 1)])
def test_a_line_that_no_user_may_read_is_counted(said: str, count: int) -> None:
    assert [kind for kind, _ in kills.complaints(said)] == [WORDS] * count


def test_strikes_and_faults_are_counted_by_signal() -> None:
    lines = kills.table(Counter({("SIGTERM", "booting"): 2, ("SIGKILL", "drawing"): 1}),
                        Counter({("SIGKILL", FILES): 1, ("SIGKILL", LOST): 1})).splitlines()
    rows = {line.rsplit(maxsplit=14)[0]: line.split()[-14:] for line in lines[1:]}
    assert lines[0].split() == ["struck", "by", "times", *leftovers.STAGES, *leftovers.FAULTS]
    assert rows["SIGTERM"] == [*"20200", *"000000000"]
    assert rows["SIGKILL"] == [*"10001", *"100000001"]
    assert rows["all"] == [*"30201", *"100000001"]


# A control group also counts processes that nobody waits for ---------------------------

# A child that is left behind works for half a second; its parent ends at once.
LEFT_BEHIND = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    end = time.process_time() + 0.5
    while time.process_time() < end:
        pass
    sys.stdout.close()
"""


def test_work_of_a_process_that_nobody_waits_for_is_counted() -> None:
    with processor.group() as group:
        if group is None:
            pytest.skip("no control group can be made here: it takes root")
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        command = group.command([sys.executable, "-c", LEFT_BEHIND])
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.read()  # until the child has closed it, too
        assert process.wait() == 0
        assert group.used_s >= 0.5
        waited_s = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        assert waited_s < 0.5, "the time that wait reports would be enough"
    assert not group.folder.exists()


# As LEFT_BEHIND, but the parent ends when the work is done, which it knows by the end of a pipe.
UNWAITED = """
import os, time
told, tell = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        end = time.process_time() + 0.5
        while time.process_time() < end:
            pass
    os._exit(0)
os.wait()
os.close(tell)
os.read(told, 1)
"""


def test_a_benchmarks_command_is_counted_with_it() -> None:
    timing, _ = watched([sys.executable, "-c", UNWAITED])
    if timing.processor_s is None:
        pytest.skip("no control group can be made here: it takes root")
    assert timing.processor_s >= 0.5
    with pytest.raises(FirstFlightError, match="ended with status 3: no room"):
        watched(["sh", "-c", "echo no room >&2; exit 3"])


# Tasks in processes of their own: in order, with their errors, and no process left ----

@pytest.fixture
def three_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2})


def children() -> str:
    """The numbers of this process's children."""
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text()


def square(number: int) -> tuple[int, bytes]:
    return number * number, bytes(100_000)  # more than a pipe holds


@pytest.mark.usefixtures("three_processors")
@pytest.mark.parametrize("count", [0, 1, 2, 3, 8])
def test_results_of_tasks_in_processes_keep_their_order(count: int) -> None:
    before = children()
    found = forked.results([partial(square, number) for number in range(count)])
    assert [number for number, _ in found] == [number * number for number in range(count)]
    assert children() == before


@pytest.mark.usefixtures("three_processors")
def test_tasks_run_in_a_process_for_each_processor() -> None:
    assert len(set(forked.results([os.getpid] * 6))) == 3


@pytest.mark.usefixtures("three_processors")
@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_error_of_a_task_is_raised(place: int) -> None:
    tasks = [partial(square, 1)] * 3
    tasks[place] = partial(int, "none")  # type: ignore[call-overload]
    before = children()
    with pytest.raises(ValueError, match="none"):
        forked.results(tasks)
    assert children() == before


@pytest.mark.usefixtures("three_processors")
def test_the_tasks_of_a_killed_process_are_run_again() -> None:
    parent = os.getpid()

    def dies_elsewhere() -> int:
        if os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return 7

    assert forked.results([dies_elsewhere] * 3) == [7, 7, 7]
