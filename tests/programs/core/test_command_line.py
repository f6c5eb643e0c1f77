"""How programs end: one line, a status, and no traceback, whatever becomes of their streams."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from firstflight.base.errors import INTERRUPTED, UNREAD, USAGE

PROJECT = Path(__file__).resolve().parent.parent.parent.parent
LIST = [sys.executable, str(PROJECT / "experiment.py"), "--list"]


def test_a_reader_that_has_left_ends_a_program_quietly() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(LIST, stdout=writing, stderr=subprocess.PIPE, check=False, timeout=300)
    os.close(writing)
    assert (done.returncode, done.stderr) == (UNREAD, b"")


def test_what_cannot_be_written_is_told_once() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(LIST, stdout=full, stderr=subprocess.PIPE, text=True, check=False,
                              timeout=300)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert "No space left on device" in done.stderr


@pytest.mark.parametrize(("words", "status"), [
    (["--rtt", "fast"], USAGE), (["--rtt", "0", "--dry-run"], USAGE), (["--list"], 0)])
def test_where_nobody_can_be_told_the_status_tells(words: list[str], status: int) -> None:
    """A message that cannot be written is no error of its own, nor is it tried again at the end."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*LIST[:-1], *words], stdout=subprocess.PIPE, stderr=full,
                              check=False, timeout=300, env=environment)
    assert done.returncode == status and bool(done.stdout) == (status == 0)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_lead_nowhere(closed: str, tmp_path: Path) -> None:
    """No file that is opened later takes the number of a stream, and is written to as one."""
    program = ("import sys; from firstflight.base.command_line import run_main, say\n"
               "def main(argv):\n"
               "    file = open(argv[0], 'w'); print('out'); say('err')\n"
               "    return 0 if file.fileno() > 2 else 1\n"
               "run_main('x', main)")
    kept = tmp_path / "kept"
    done = subprocess.run(["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-c", program,
                           str(kept)], cwd=PROJECT, capture_output=True, check=False, timeout=300)
    assert done.returncode == 0 and kept.read_text() == ""
    assert done.stdout == (b"" if ">&-" in closed.replace("2>", "") else b"out\n")


@pytest.mark.parametrize("program", ["experiment.py", "plot.py", "docs/update.py"])
def test_ctrl_c_while_modules_are_imported_is_quiet(program: str) -> None:
    started = subprocess.Popen([sys.executable, "-X", "importtime", str(PROJECT / program),
                                "--help"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               text=True)
    assert started.stderr is not None
    next(line for line in started.stderr if line.rstrip().endswith("| argparse"))
    started.send_signal(signal.SIGINT)
    printed = started.stderr.read()
    assert started.wait(120) in (-signal.SIGINT, INTERRUPTED)
    assert "Traceback" not in printed and "KeyboardInterrupt" not in printed


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_a_signal_within_an_import_waits_for_its_end(number: str, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(f"import os, signal\nos.kill(os.getpid(), signal.{number})\n"
                                      "for _ in range(9): pass\nprint('imported', flush=True)\n")
    program = ("import signal, time\n"
               "from firstflight.base.command_line import interrupt, run_main\n"
               "def main(argv):\n"
               "    signal.signal(signal.SIGTERM, interrupt)\n"
               "    import slow; time.sleep(60); return 0\n"
               "run_main('x', main)")
    done = subprocess.run([sys.executable, "-c", program], cwd=PROJECT, capture_output=True,
                          text=True, check=False, timeout=300,
                          env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stdout, done.stderr) == (INTERRUPTED, "imported\n",
                                                           "x: interrupted\n")


STRUCK = """
import atexit, os, signal, sys, time
signal.signal(signal.SIGINT, signal.SIG_DFL)
from firstflight.base import command_line

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
    said = command_line.say
    def say(line):
        strike()
        said(line)
    command_line.say = say
    raise command_line.FirstFlightError("an error")

def while_its_interruption_is_told(words):
    said = command_line.say
    def say(line):
        strike()
        said(line)
    command_line.say = say
    strike()

def at_the_end(words):
    leave = sys.exit
    def struck(status):
        strike()
        leave(status)
    sys.exit = struck
    atexit.register(strike)
    return 3

command_line.run_main("x", globals()[sys.argv[1]])
"""


@pytest.mark.parametrize("moment, status, line", [
    ("twice", INTERRUPTED, "x: interrupted\n"),
    ("by_a_finalizer", INTERRUPTED, "x: interrupted\n"),
    ("while_its_error_is_told", INTERRUPTED, "x: interrupted\n"),
    ("while_its_interruption_is_told", INTERRUPTED, "x: interrupted\n"),
    ("at_the_end", 3, "")])
def test_ctrl_c_is_one_line_however_often_and_whenever_it_comes(moment: str, status: int,
                                                                line: str) -> None:
    done = subprocess.run([sys.executable, "-c", STRUCK, moment], capture_output=True, text=True,
                          check=False, timeout=300, cwd=PROJECT)
    assert (done.returncode, done.stderr) == (status, line)
