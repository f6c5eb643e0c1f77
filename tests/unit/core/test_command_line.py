"""Command lines: how a program ends, and that an impossible request is refused in one line."""

from __future__ import annotations

import errno
import os
import re
import signal
import stat
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

import experiment
import plot
from docs import update
from firstflight.base import __version__, signals
from firstflight.base.errors import (CANNOT, FAILED, INTERRUPTED, MESSAGE_CHARACTERS, UNREAD, USAGE,
                                     FirstFlightError, UsageError, mark_resumable, one_line)
from firstflight.base.main import run_main, write_crash
from firstflight.base.parser import Parser
from tests.running import run_program


@pytest.fixture(autouse=True)
def _restore_standard_output() -> Iterator[None]:
    """Gives standard output back after a test that closed or replaced it."""
    out = os.dup(1)
    yield
    sys.stdout.flush()
    os.dup2(out, 1)
    os.close(out)


def ended(main: Callable[[Sequence[str]], int]) -> object:
    """The exit status of a main. It does not see the threads that the tests have."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as status:
        patch.setattr(threading, "active_count", lambda: 1)
        run_main("x", main)
    return status.value.code


def raising(error: BaseException) -> Callable[[Sequence[str]], int]:
    """A main that raises this error."""
    def main(words: Sequence[str]) -> int:
        raise error
    return main


def no_space(name: str | None = None) -> OSError:
    """The error of a full disk, while a file of this name was written."""
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)


@pytest.mark.parametrize("error, status, said", [
    (UsageError("no\nsuch flag"), USAGE, "x: no such flag\n"),
    (FirstFlightError("damaged"), FAILED, "x: damaged\n"),
    (KeyboardInterrupt(), INTERRUPTED, "x: interrupted\n"),
    (BrokenPipeError(), UNREAD, ""),
    (no_space(), FAILED, "x: writing: No space left on device\n"),
    (no_space("a/b"), FAILED, "x: a/b: No space left on device\n"),
    (no_space("a/" * 9999), FAILED, f"x: {one_line('a/' * 9999 + ': No space left on device')}\n"),
    (MemoryError(), CANNOT, "x: this machine has too little memory\n")])
def test_each_error_is_one_line_and_a_status(error: BaseException, status: int, said: str,
                                             capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(raising(error)) == status
    assert capsys.readouterr().err == said


def test_no_thread_is_waited_for_once_memory_has_run_out() -> None:
    """A thread may wait for another one for which there was no memory."""
    program = ("import threading; from firstflight.base.main import run_main\n"
               "def main(words):\n    threading.Thread(target=threading.Event().wait).start()\n"
               "    raise MemoryError\nrun_main('x', main)")
    done = run_program([sys.executable, "-c", program])
    assert (done.returncode, done.stderr) == (CANNOT, "x: this machine has too little memory\n")


@pytest.mark.parametrize("error", [
    FirstFlightError("damaged"), KeyboardInterrupt(), no_space(), MemoryError(), KeyError("x")])
def test_an_error_after_measuring_says_that_the_same_command_resumes(
        error: BaseException, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    ended(raising(error))
    assert "is kept" not in capsys.readouterr().err
    mark_resumable(error)
    ended(raising(error))
    assert capsys.readouterr().err.endswith(
        "; what is measured is kept, the same command resumes\n")


@pytest.mark.parametrize("error", [BrokenPipeError(), no_space()])
def test_nothing_more_is_written_to_standard_output_after_it_failed(error: OSError) -> None:
    reading, writing = os.pipe()
    os.dup2(writing, 1)
    os.close(writing)
    before = len(os.listdir("/proc/self/fd"))
    ended(raising(error))
    os.write(1, b"what the interpreter has still buffered")
    assert len(os.listdir("/proc/self/fd")) == before
    os.set_blocking(reading, False)
    assert os.read(reading, 100) == b"", "standard output is /dev/null now"
    os.close(reading)


def test_a_command_ends_with_the_status_that_its_main_returns(
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["x", "--a", "b"])
    seen: list[Sequence[str]] = []

    def main(words: Sequence[str]) -> int:
        seen.append(words)
        return 3
    assert ended(main) == 3 and seen == [["--a", "b"]]


@pytest.mark.parametrize("handler, during", [(signal.SIG_IGN, signal.SIG_IGN),
                                             (signal.SIG_DFL, signals.interrupt)])
def test_ctrl_c_stays_ignored_where_the_caller_ignores_it(handler: signal.Handlers,
                                                          during: object) -> None:
    """nohup ignores it, and so do shells for jobs in the background."""
    signal.signal(signal.SIGINT, handler)
    handlers: list[object] = []
    assert ended(lambda words: handlers.append(signal.getsignal(signal.SIGINT)) or 0) == 0
    assert handlers == [during]


def test_a_signal_raises_keyboard_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt):
        signals.interrupt(signal.SIGINT, sys._getframe())
    with pytest.raises(KeyboardInterrupt):
        signals.interrupt(signal.SIGINT, None)


def test_a_package_that_is_not_installed_is_reported_in_one_line(
        capsys: pytest.CaptureFixture[str]) -> None:
    def main(words: Sequence[str]) -> int:
        raise ModuleNotFoundError("No module named 'numpy.x'", name="numpy.x")
    assert ended(main) == CANNOT
    assert capsys.readouterr().err == ("x: Python's package numpy.x is missing; ./install.sh"
                                       " installs it\n")


# Command lines -----------------------------------------------------------------------

def test_a_parser_refuses_in_one_line_and_prints_the_version(capsys: pytest.CaptureFixture[str]
                                                             ) -> None:
    parser = Parser(prog="x.py")
    with pytest.raises(SystemExit) as refused:
        parser.parse_args(["--nosuch\nflag"])
    assert refused.value.code == USAGE
    said = capsys.readouterr().err
    assert said == "x.py: unrecognized arguments: --nosuch flag (--help shows every flag)\n"
    with pytest.raises(SystemExit) as shown:
        parser.parse_args(["--version"])
    assert shown.value.code == 0 and capsys.readouterr().out == f"First Flight {__version__}\n"


def test_an_internal_error_is_one_line_and_a_crash_file(monkeypatch: pytest.MonkeyPatch,
                                                        tmp_path: Path,
                                                        capsys: pytest.CaptureFixture[str]) -> None:
    """The file has all of an exception's message, however long, and the line has its beginning."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert ended(raising(ValueError("one\ntwo\x1b[2J" + "1" * 400_000))) == FAILED
    said = capsys.readouterr().err
    assert said.startswith("x: internal error, ValueError: one two\\x1b[2J111")
    assert said.count("\n") == 1 and len(said) < 700
    (crash,) = tmp_path.glob("first-flight/crash-*.txt")
    assert crash.stat().st_size > 400_000 and str(crash) in said


def test_a_message_is_one_line_without_control_characters() -> None:
    assert one_line("a\tb\nc") == "a b c" and one_line("ünï “–”") == "ünï “–”"
    assert one_line("\x1b[31m\u202e\x00\udcff") == "\\x1b[31m\\u202e\\x00\\udcff"
    long = one_line("begin" + "x\n" * 10**5 + "end")
    assert len(long) <= 500 and long.startswith("begin") and long.endswith("end")
    assert str(FirstFlightError("a\nb")) == "a b"


def failing(argv: Sequence[str]) -> int:
    raise ZeroDivisionError("a mistake")


def test_only_the_user_may_read_the_file_of_a_crash(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
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


def test_a_crash_is_written_into_a_new_folder_where_the_cache_cannot_be_written(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path = write_crash("a crash \udc80")
    assert path.read_text() == "a crash \\udc80" and path.parent.parent == tmp_path
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_crash_is_written_into_the_homes_cache_where_no_other_one_is_named(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert write_crash("a crash").parent == tmp_path / ".cache" / "first-flight"


# Impossible requests have status 2 and one line, before anything is started or written

LONG_NAME, LONG_PATH = "x" * 300, "/".join(["d" * 200] * 30)  # longer than Linux allows
PATHS = ("", LONG_NAME, LONG_PATH, "a\0b")
# Command lines with a flag that takes a path, for which {} stands.
TAKES_PATH = {
    "run.sh": ("--results={} --rtt 5", "--figures={} --rtt 5", "--compare {} {}", "--users={}",
               "--check={}", "--new={}", "--export json {} --rtt 5", "--cluster={} --rtt 5",
               "--ca={} --server-command x --rtt 5", "--server-folder={} --server-command x",
               "--scenario {}", "--report={}", "--readable={} -- true",
               "--results={} -- true"),
    "plot.py": ("--run={}", "--results={}", "--figures={}", "--scenario {}"),
    "docs/update.py": ("--run={}",)}
MAINS: dict[str, Callable[[Sequence[str]], int]] = {
    "run.sh": experiment.main, "plot.py": plot.main, "docs/update.py": update.main}
# Other command lines that are refused; {file} is an existing file, {folder} a folder.
ALONE = (
    "--readable / -- true", "--readable /proc -- true", "--readable /dev -- true",
    "--readable /sys -- true", "--readable /run -- true", "--readable /usr/../ -- true",
    "--readable /dev/null -- true", "--readable /proc/self -- true", "--readable /tmp -- true",
    "--readable /usr -- true", "--readable /bin -- true",
    "--readable /home/.. -- true", "--packetdrill", "--packetdrill one.pkt",
    "--results {file} -- true", "--results {file} --rtt 5", "--figures {file} --rtt 5",
    "--results {file}/below --rtt 5",
    "--report {folder}", "--report {file}", "--compare {folder} {file}", "--compare {folder}",
    "--users {folder}", "--users /dev/null", "--check {folder}", "--new a/b", "--new ..",
    "--export json {folder} --rtt 5", "--export json {file}/x --rtt 5", "--export yaml f --rtt 5",
    "--cluster \x01 --rtt 5", "--cluster tls:// --rtt 5",
    "--cluster tls://a\nb:1 --rtt 5", "--cluster \udcff --rtt 5", "--cluster local:0 --rtt 5",
    "--cluster local:x --rtt 5", "--cluster nowhere.json --rtt 5", "--cluster ftp://a:1 --rtt 5",
    "--cluster tls://a:99999 --rtt 5", "--cluster {folder} --rtt 5",
    "--env = -- true", "--env NO_SUCH_VARIABLE -- true", "--env A-B=1 -- true",
    "--timeout 1e300 -- true",
    "--limit 1e300 -- true", "--capture 0 -- true", "--seed 9223372036854775808 -- true",
    "--rtt 5 --loss 1..2:0", "--new=--", "--results=-- --rtt 5",
    "--timeout=-- -- true", "--probe ''", "--probe http://", "--probe http://a~b/",
    "--probe http://a\0b/", "--probe http://\udcff/",
    "--probe http://a:99999/", "--probe {file}", "--ca {folder} --server-command x --rtt 5",
    "--ca {file} --server-command x --rtt 5", "--server-folder {file} --server-command x",
    "--name '' --rtt 5", "--name a/b --rtt 5", "--name ../a --rtt 5")


@pytest.fixture(name="here")
def folder_to_start_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "one.pkt").write_text("0 `true`\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")  # no program is found, so none is started
    return tmp_path


def words_of(line: str, **places: str) -> list[str]:
    """The words of a command line: placeholders are replaced, "~" is a blank, '' an empty word."""
    meant = {"{file}": "file", "{folder}": "folder", "{}": places.get("path", "{}"), "~": " "}
    words = ["" if word == "''" else word for word in line.split(" ")]
    return [re.sub(r"\{file\}|\{folder\}|\{\}|~", lambda part: meant[part[0]], word)
            for word in words]


def refused(program: str, words: Sequence[str], here: Path,
            capsys: pytest.CaptureFixture[str]) -> None:
    """Asserts that a program refuses these words with status 2 and one line, and writes nothing."""
    before = sorted(here.rglob("*"))
    if program == "run.sh" and "--rtt" in words:
        words = [*words, "--dry-run"]  # so that a word that is not refused measures nothing
    try:
        status: object = MAINS[program](words)
        said = capsys.readouterr().err
    except SystemExit as ended:
        status, said = ended.code, capsys.readouterr().err
    except FirstFlightError as error:
        status, said = error.exit_status, f"{error}\n"
    assert status == USAGE, f"{status}: {said}"
    assert said[-1] == "\n" and said[:-1].isprintable(), said
    assert len(said) < MESSAGE_CHARACTERS + 50
    assert sorted(here.rglob("*")) == before


@pytest.mark.parametrize("path", PATHS, ids=("empty", "name", "path", "nul"))
@pytest.mark.parametrize(("program", "line"), [
    (program, line) for program, lines in TAKES_PATH.items() for line in lines])
def test_a_flag_with_an_impossible_path_is_reported_in_one_line(
        program: str, line: str, path: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused(program, words_of(line, path=path), here, capsys)


@pytest.mark.parametrize("line", ALONE, ids=range(len(ALONE)))
def test_a_word_that_no_flag_means_is_reported_in_one_line(
        line: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused("run.sh", words_of(line), here, capsys)


@pytest.mark.parametrize("line", ["--readable folder -- true", "--readable file -- true"])
def test_a_valid_command_line_is_accepted(line: str, here: Path) -> None:
    assert experiment.main([experiment.READ_ONLY, *line.split()]) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user for a while")
@pytest.mark.skipif(not all(folder.stat().st_mode & 0o001 for folder in Path(__file__).parents),
                    reason="the project is in a folder that other users may not enter")
@pytest.mark.parametrize("line", [
    "--readable {} -- true", "--results {} -- true", "--report {}",
    "--results {} --rtt 5 --dry-run",
    "--export json {} --rtt 5 --dry-run", "--users {}", "--compare {} {}", "--check {}",
    "--scenario {}", "--ca {} --server-command x --rtt 5"])
def test_a_folder_that_may_not_be_entered_is_reported_in_one_line(
        line: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "closed").mkdir(mode=0o700)
    words = words_of(line, path=str(here / "closed" / "x.toml"))
    os.seteuid(65534)
    try:
        refused("run.sh", words, Path("/nowhere"), capsys)
    finally:
        os.seteuid(0)


# One version: on every command line, and in the files that name it --------------------

PROJECT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("program", [experiment, plot, update],
                         ids=lambda module: module.__name__)
def test_every_command_prints_the_version(program: object,
                                          capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        program.main(["--version"])  # type: ignore[attr-defined]
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"First Flight {__version__}\n"


@pytest.mark.parametrize(("file", "line"), [("CITATION.cff", r"^version: (.*)$"),
                                            ("CHANGELOG.md", r"^## ([\d.]+), "),
                                            ("pyproject.toml", r"^version = \"(.*)\"$")])
def test_the_files_that_name_the_version_agree(file: str, line: str) -> None:
    found = re.search(line, (PROJECT / file).read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None and found[1] == __version__
