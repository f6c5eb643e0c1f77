"""Another system for guests: what is looked at before it is used, without one being made."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from firstflight.base.files import PROJECT
from firstflight.testbed.guests import UmlEngine
from vtime import confine, system
from vtime.console import EngineCannot
from vtime.kernel import debian
from vtime.uml import confining, guest_command

TRIAL = {"id": "t", "kind": "fetch", "network": {}, "system": system.NEWER}
HERE = {"id": "h", "kind": "fetch", "network": {}}
ANSWERS = """while read -r line; do case $line in *'"h"'*)
    echo '{"trial": "h"}' >> observations.jsonl;; esac; done < trials.jsonl"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return system.cache()


@pytest.fixture
def made(cache: Path) -> Path:
    """A small one, in the place of the real."""
    root = system.folder()
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/bin/curl").write_text("a program")
    (root / "bin").symlink_to("usr/bin")
    system.describe(root, {"curl": "8.14", "base-files": "13"}, root / system.CONTENTS)
    return root


def engine(tmp_path: Path) -> UmlEngine:
    kernel = tmp_path / "linux"
    kernel.write_text(f"#!/bin/sh\n{ANSWERS}\n")
    kernel.chmod(0o755)
    return UmlEngine(kernel, 1)


def test_what_was_unpacked_is_found_whole(made: Path) -> None:
    assert system.check(made) == system.check_content(made) == {"curl": "8.14", "base-files": "13"}
    os.utime(made / "usr/bin/curl", (1, 1))
    assert system.check(made), "another time with the same content is no damage"
    assert system.shown_versions(system.check(made)) == {"curl": "8.14"}


@pytest.mark.parametrize(("harm", "words"), [
    (lambda root: (root / "usr/bin/curl").write_text("another program"), "usr/bin/curl was changed"),
    (lambda root: (root / "usr/bin/curl").unlink(), "usr/bin/curl is gone"),
    (lambda root: (root / "usr/bin/more").touch(), "usr/bin/more was added"),
    (lambda root: (root / "bin").unlink() or (root / "bin").symlink_to("/bin"), "bin was changed"),
    (lambda root: (root / system.CONTENTS).unlink(), "No such file"),
    (lambda root: (root / system.CONTENTS).write_text("{}"), "files"),
    (lambda root: (root / system.CONTENTS).write_text("{"), "damaged")])
def test_what_was_changed_is_not_used(made: Path, tmp_path: Path, harm: Callable[[Path], None],
                                      words: str) -> None:
    harm(made)
    with pytest.raises(system.Damaged, match=words):
        system.check(made)
    with pytest.raises(EngineCannot, match=f"{words}.*; ./install.sh --with-pq builds it again"):
        list(engine(tmp_path).run([TRIAL], {}, tmp_path / "work"))


def test_a_change_that_keeps_size_and_time_shows_in_the_content(made: Path) -> None:
    file = made / "usr/bin/curl"
    before = file.stat()
    file.write_text("A program")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    system.check(made)
    with pytest.raises(system.Damaged, match="curl was changed"):
        system.check_content(made)


def test_trials_whose_system_is_not_here_are_skipped_and_the_others_run(tmp_path: Path) -> None:
    seen = {each.trial_id: each.content
            for each in engine(tmp_path).run([TRIAL, HERE], {}, tmp_path / "work")}
    assert seen["t"] == {"skipped": "needs Debian 13's programs, which are not here:"
                                    " ./install.sh --with-pq brings them"}
    assert seen["h"] == {"trial": "h"}


def test_a_guest_of_another_system_mounts_the_project_and_reads_that_system(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confine, "lacking", lambda: "")
    words = guest_command(tmp_path / "linux", tmp_path / "a root")
    root = words.index(str(tmp_path / "a root"))
    assert words[root - 1] == "--read" and words[root + 1] == str(tmp_path / "linux")
    assert f'rootflags="{tmp_path}/a root"' in words and f"init={system.PYTHON}" in words
    assert words[-2] == '"-c"' and str(PROJECT) in words[-1] and '"' not in words[-1][1:-1]
    compile(words[-1][1:-1], "the first process", "exec")
    with pytest.raises(EngineCannot, match="path"):
        guest_command(tmp_path / "linux", tmp_path / 'a "root"')


@pytest.mark.skipif(bool(confine.lacking()), reason=f"lacks {confine.lacking()}")
def test_a_confined_process_reads_that_system_and_not_what_lies_beside(tmp_path: Path) -> None:
    for name in ("root", "beside", "own"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("a secret")
    done = subprocess.run(
        [*confining([str(tmp_path / "root")], around=()), "/bin/sh", "-c",
         'for each; do cat "$each"; done; : > "$1"', "sh",
         str(tmp_path / "root/file"), str(tmp_path / "beside/file")],
        cwd=tmp_path / "own", capture_output=True, text=True, check=False)
    assert done.stdout == "a secret" and done.stderr.count("Permission denied") == 2
    assert (tmp_path / "root/file").read_text() == "a secret"


def test_mirrors_are_those_of_apt_or_the_one_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(debian.MIRROR, "http://mirror.example/debian")
    assert debian.mirrors() == [("trixie", "http://mirror.example/debian")]
    monkeypatch.delenv(debian.MIRROR)

    def told(lines: str) -> None:
        monkeypatch.setattr(debian.subprocess, "run", lambda *_, **__: subprocess.CompletedProcess(
            [], 0, stdout=lines))
    told("Debian http://a/debian\nDebian http://a/debian\nDebian-Security http://a/security\n"
         "Other http://b/\nnone\n")
    assert debian.mirrors() == [("trixie", "http://a/debian"),
                                ("trixie-security", "http://a/security")]
    told("Ubuntu http://b/\n")
    with pytest.raises(debian.Cannot, match="FIRST_FLIGHT_DEBIAN_MIRROR=http"):
        debian.mirrors()


def test_apt_uses_folders_and_lists_of_its_own(tmp_path: Path,
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(debian.MIRROR, "http://mirror.example/debian")
    words = debian.apt(tmp_path)
    told = subprocess.run([words[0].replace("get", "config"), "-c", words[2], "dump"],
                          capture_output=True, text=True, check=True).stdout
    assert f'Dir::State::status "{tmp_path}/status"' in told
    assert f'Dir::Cache::archives "{tmp_path}/archives"' in told
    assert 'APT::Update::Post-Invoke' not in told and 'DPkg::Post-Invoke' not in told
    assert f"signed-by={debian.KEYRING}" in (tmp_path / "sources.list").read_text()


def test_a_mirror_that_does_not_answer_is_said_in_one_line_and_the_same_command_goes_on(
        cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
        capfd: pytest.CaptureFixture[str]) -> None:
    if not debian.KEYRING.exists():
        pytest.skip(f"{debian.KEYRING} is missing")
    once = tmp_path / "apt.conf"
    once.write_text('Acquire::Retries "0";')  # apt waits before it tries again
    monkeypatch.setenv("APT_CONFIG", str(once))
    monkeypatch.setenv(debian.MIRROR, "http://127.0.0.1:9/debian")
    assert debian.main(["make"]) == 4
    last = capfd.readouterr().err.splitlines()[-1]
    assert "no package lists" in last and "./install.sh --with-pq goes on" in last
    assert not system.folder().exists()


def test_a_full_disk_and_a_missing_keyring_are_said_before(
        cache: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(debian, "NEEDED_MB", 10**9)
    assert debian.main(["make"]) == 4
    assert "MB free, 1000000000 are needed; free some, or set" in capfd.readouterr().err
    monkeypatch.setattr(debian, "NEEDED_MB", 0)
    monkeypatch.setattr(debian, "KEYRING", cache / "none")
    assert debian.main(["make"]) == 4
    assert "is missing: apt install debian-archive-keyring" in capfd.readouterr().err
    assert debian.main(["check"]) == 4
    assert "./install.sh --with-pq brings them" in capfd.readouterr().err


def test_what_is_whole_is_left_and_what_is_not_is_removed(made: Path) -> None:
    contents = made / system.CONTENTS
    before = contents.stat()
    assert debian.main(["make"]) == debian.main(["check"]) == 0
    assert contents.stat().st_ino == before.st_ino  # which a file written anew does not keep
    assert contents.stat().st_mtime_ns == before.st_mtime_ns
    assert debian.main(["remove"]) == 0 and not made.exists()
