"""How programs end: one line, a status, and no traceback, whatever becomes of their streams."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from lab.core.command_line import run_main, write_crash
from lab.core.errors import FAILED, INTERRUPTED, UNREAD, USAGE, FirstFlightError, one_line

PROJECT = Path(__file__).resolve().parent.parent.parent.parent
LIST = [sys.executable, str(PROJECT / "experiment.py"), "--list"]


def test_a_reader_that_has_left_ends_a_program_quietly() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(LIST, stdout=writing, stderr=subprocess.PIPE, check=False, timeout=60)
    os.close(writing)
    assert (done.returncode, done.stderr) == (UNREAD, b"")


def test_what_cannot_be_written_is_told_once() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(LIST, stdout=full, stderr=subprocess.PIPE, text=True, check=False,
                              timeout=60)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert "No space left on device" in done.stderr


@pytest.mark.parametrize(("words", "status"), [
    (["--rtt", "fast"], USAGE), (["--rtt", "0", "--dry-run"], USAGE), (["--list"], 0)])
def test_where_nobody_can_be_told_the_status_tells(words: list[str], status: int) -> None:
    """A message that cannot be written is no error of its own."""
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*LIST[:-1], *words], stdout=subprocess.PIPE, stderr=full,
                              check=False, timeout=60)
    assert done.returncode == status and bool(done.stdout) == (status == 0)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_lead_nowhere(closed: str, tmp_path: Path) -> None:
    """No file that is opened later takes the number of a stream, and is written to as one."""
    program = ("import sys; from lab.core.command_line import run_main, say\n"
               "def main(argv):\n"
               "    file = open(argv[0], 'w'); print('out'); say('err')\n"
               "    return 0 if file.fileno() > 2 else 1\n"
               "run_main('x', main)")
    kept = tmp_path / "kept"
    done = subprocess.run(["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-c", program,
                           str(kept)], cwd=PROJECT, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0 and kept.read_text() == ""
    assert done.stdout == (b"" if ">&-" in closed.replace("2>", "") else b"out\n")


@pytest.mark.parametrize("program", ["experiment.py", "plot.py", "report.py", "results.py"])
def test_ctrl_c_while_modules_are_imported_is_quiet(program: str) -> None:
    started = subprocess.Popen([sys.executable, "-X", "importtime", str(PROJECT / program),
                                "--help"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               text=True, preexec_fn=heeding)
    assert started.stderr is not None
    next(line for line in started.stderr if line.rstrip().endswith("| argparse"))
    started.send_signal(signal.SIGINT)
    said = started.stderr.read()
    assert started.wait(60) in (-signal.SIGINT, INTERRUPTED)
    assert "Traceback" not in said and "KeyboardInterrupt" not in said


def heeding() -> None:
    """Whoever runs the tests in the background may have them ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_a_signal_within_an_import_waits_for_its_end(number: str, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(f"import os, signal\nos.kill(os.getpid(), signal.{number})\n"
                                      "for _ in range(9): pass\nprint('imported', flush=True)\n")
    program = ("import signal, time; from lab.core.command_line import interrupt, run_main\n"
               "def main(argv):\n"
               "    signal.signal(signal.SIGTERM, interrupt)\n"
               "    import slow; time.sleep(60); return 0\n"
               "run_main('x', main)")
    done = subprocess.run([sys.executable, "-c", program], cwd=PROJECT, capture_output=True,
                          text=True, check=False, timeout=30,
                          env={**os.environ, "PYTHONPATH": str(tmp_path)},
                          preexec_fn=heeding)
    assert (done.returncode, done.stdout, done.stderr) == (INTERRUPTED, "imported\n",
                                                           "x: interrupted\n")


def test_a_message_is_one_line_that_moves_no_cursor() -> None:
    assert one_line("a\tb\nc") == "a b c" and one_line("ünï “–”") == "ünï “–”"
    assert one_line("\x1b[31m\u202e\x00\udcff") == "\\x1b[31m\\u202e\\x00\\udcff"
    long = one_line("begin" + "x\n" * 10**5 + "end")
    assert len(long) <= 500 and long.startswith("begin") and long.endswith("end")
    assert str(FirstFlightError("a\nb")) == "a b"


def failing(argv: Sequence[str]) -> int:
    raise ZeroDivisionError("a mistake")


def test_a_crash_is_written_for_its_user_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                              capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "argv", ["plot.py"])
    before = os.umask(0)
    try:
        for _ in range(2):
            with pytest.raises(SystemExit) as ended:
                run_main("plot.py", failing)
            assert ended.value.code == FAILED
    finally:
        os.umask(before)
    said = capsys.readouterr().err.splitlines()
    crashes = sorted((tmp_path / "cache" / "first-flight").iterdir())
    assert len(said) == len(crashes) == 2 and {str(path) for path in crashes} == {
        line.split(" with ")[1] for line in said}
    for path in crashes:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600 and str(os.getpid()) not in path.name
        assert "ZeroDivisionError: a mistake" in path.read_text()


def test_where_the_cache_cannot_be_written_it_is_a_folder_of_its_own(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path = write_crash("a crash \udc80")
    assert path.read_text() == "a crash \\udc80" and path.parent.parent == tmp_path
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_without_a_cache_of_its_own_it_is_the_homes(tmp_path: Path,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert write_crash("a crash").parent == tmp_path / ".cache" / "first-flight"
