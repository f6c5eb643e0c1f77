"""What a machine or a shell lacks for any guest: one line before it starts, or it works anyway."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from firstflight.base.errors import CANNOT, OK
from firstflight.base.files import PROJECT
from vtime import uml
from vtime.console import EngineCannot
from vtime.mounts import mount

RUN, EXPERIMENT = str(PROJECT / "run.sh"), [sys.executable, str(PROJECT / "experiment.py")]
WITHOUT_PROC = ["unshare", "--mount", "sh", "-c", 'umount -l /proc && exec "$@"', "sh"]
COMMANDS = (["--", "true"], ["--rtt", "5", "--bw", "1000", "--iw", "3", "--engine", "uml"])


def ended(words: list[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False,
                          errors="surrogateescape", timeout=120, env={**os.environ, **variables})


@pytest.mark.parametrize("words", COMMANDS, ids=("command", "question"))
@pytest.mark.parametrize("files", ["64", "40"])
def test_a_low_limit_of_open_files_is_a_line(words: list[str], files: str, tmp_path: Path) -> None:
    done = ended(["prlimit", f"--nofile={files}:{files}", *EXPERIMENT, "--results", "results",
                  *words], tmp_path)
    assert done.returncode == CANNOT, done.stderr
    assert done.stderr.startswith(f"run.sh: only {files} files may be open at once")
    assert "ulimit" in done.stderr and done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_low_limit_that_may_be_raised_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[tuple[int, int]] = [(64, 1 << 20)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, limit: limits.append(limit))
    uml.check_machine()
    assert limits[1:] == [(uml.MOST_FILES, 1 << 20)]
    uml.check_machine()
    assert len(limits) == 2


def test_programs_that_no_folder_of_path_has_are_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(EngineCannot, match="setpriv and taskset: not found on PATH"):
        uml.check_machine()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can unmount /proc")
@pytest.mark.parametrize("program", [[RUN], EXPERIMENT], ids=("run.sh", "experiment.py"))
@pytest.mark.parametrize("words", COMMANDS, ids=("command", "question"))
def test_without_proc_there_is_a_line(words: list[str], program: list[str],
                                      tmp_path: Path) -> None:
    done = ended([*WITHOUT_PROC, *program, "--results", "results", *words], tmp_path)
    assert done.returncode == CANNOT, done.stderr
    assert "/proc is not mounted" in done.stderr and done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", ["", "/nowhere"])
def test_a_path_that_leads_nowhere_is_completed(path: str, tmp_path: Path) -> None:
    for program in ([RUN], EXPERIMENT):
        done = ended([*program, "--rtt", "5", "--dry-run"], tmp_path, PATH=path)
        assert (done.returncode, done.stderr) == (OK, "") and "expected time" in done.stdout


def test_what_an_encoding_lacks_is_escaped(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    program = ("import sys; from firstflight.base.command_line import run_main, say;"
               "run_main('x', lambda words: [print('10 · ' + words[0]), say(words[0]), 0][-1])")
    for encoding, dot in (("ascii", r"\xb7"), ("utf-8", "·")):
        done = ended([sys.executable, "-c", program, str(folder)], PROJECT,
                     PYTHONIOENCODING=encoding)
        assert (done.returncode, done.stdout) == (
            OK, f"10 {dot} {tmp_path}/caf\\udce9\n"), done.stderr
        assert done.stderr == f"{tmp_path}/caf\\udce9\n"


def test_a_name_that_is_not_utf_8_can_be_mounted(tmp_path: Path) -> None:
    with pytest.raises(OSError) as error:
        mount(os.fsdecode(b"/\xff\xfe"), str(tmp_path / os.fsdecode(b"\xff")), "nosuch")
    assert error.value.errno in (errno.ENOENT, errno.EPERM, errno.ENODEV)
