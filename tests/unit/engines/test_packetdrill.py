"""What packetdrill's scripts ask for, and what its words say; usage errors of --packetdrill."""

from __future__ import annotations

import json
import queue
from collections import Counter
from pathlib import Path

import pytest

from base.errors import CannotError, UsageError
from commands.virtual import packetdrill as command
from vtime.command.frames import ERROR, OUTPUT
from vtime.command.packetdrill import (DIED, FAILED, PASSED, Hand, Result, Script, Setup,
                                       compiled, failed_at, judged, outermost, own_options, readable_for,
                                       versions)
from vtime.console import EngineCannot

SCRIPT = Script(Path("tcp/one.pkt"), "ipv4", "")
SETUP = Setup(Path("linux"), Path("packetdrill"))


@pytest.mark.parametrize(("name", "text", "requested", "expected"), [
    ("a.pkt", "0 socket()", "", ["ipv4"]),
    ("a.pkt", "0 socket()", "all", ["ipv4", "ipv6", "ipv4-mapped-ipv6"]),
    ("a.pkt", "--ip_version=ipv6\n", "", ["ipv6"]),
    ("a.pkt", "--ip_version=ipv6\n", "ipv4", []),
    ("a-v6.pkt", "", "", ["ipv6"]),
    ("a.pkt", "--remote_ip=fd00::1 --mtu=1500\n", "all", ["ipv6"]),
    ("a-v4.pkt", "", "all", ["ipv4", "ipv4-mapped-ipv6"])])
def test_a_script_runs_under_what_it_says(name: str, text: str, requested: str,
                                          expected: list[str]) -> None:
    assert versions(Path(name), text, requested) == expected


def test_what_a_script_sets_is_left_to_it_and_what_the_user_says_comes_last() -> None:
    script = Script(Path("tcp/one.pkt"), "ipv4", "--local_ip=10.0.0.1\n--mtu=900 --tolerance_usecs=7\n")
    assert own_options(script.text) == {"--local_ip": "10.0.0.1", "--mtu": "900",
                                        "--tolerance_usecs": "7"}
    words = script.words(["--tolerance_usecs=0"])
    assert words[0] == "--ip_version=ipv4" and words[-2:] == ["--tolerance_usecs=0", "one.pkt"]
    assert not any(word.startswith("--local_ip") for word in words)
    assert "--remote_ip=192.0.2.1" in words


@pytest.mark.parametrize(("status", "said", "verdict", "line", "words"), [
    (0, "", PASSED, 0, ""),
    (1, "one.pkt:7: error handling packet: timing error\nscript packet:  0.1 S", FAILED, 7,
     "error handling packet: timing error | script packet: 0.1 S"),
    (1, "deep/one.pkt:12: syntax error", FAILED, 12, "syntax error"),
    (1, "other.pkt:12: syntax error", FAILED, 0, "other.pkt:12: syntax error"),
    (1, "", FAILED, 0, "status 1"),
    (-11, "", FAILED, 0, "SIGSEGV"),
    (None, "one.pkt:3: waits", FAILED, 3, "it has not ended after 180 s of virtual time; waits")])
def test_words_of_packetdrill_become_a_line_and_a_reason(
        status: int | None, said: str, verdict: str, line: int, words: str) -> None:
    found = judged(SCRIPT, status, 0.5, said, 180.0)
    assert (found.verdict, found.line, found.words) == (verdict, line, words)


def test_the_last_line_that_it_names_counts() -> None:
    assert failed_at("a.pkt", "a.pkt:1: warning\na.pkt:9: error\n\n") == (9, "error")


@pytest.mark.parametrize("said", [
    b"nonsense\n", b'{"number": 1, "status": 0, "virtual_s": 1, "printed": ""}\n',
    b'{"number": 0, "status": 999, "virtual_s": 1, "printed": ""}\n', b"x" * 70_000])
def test_a_guest_that_says_something_else_is_not_believed(said: bytes) -> None:
    results: queue.SimpleQueue[Result | BaseException] = queue.SimpleQueue()
    hand = Hand(SETUP, [SCRIPT], results)
    with pytest.raises(ValueError):
        hand.carry(OUTPUT, 0.0, said)
    assert results.empty()


def test_a_guest_that_ends_ends_with_the_script_it_was_at() -> None:
    results: queue.SimpleQueue[Result | BaseException] = queue.SimpleQueue()
    hand = Hand(SETUP, [SCRIPT, SCRIPT, SCRIPT], results)
    told = json.dumps({"number": 0, "status": 0, "virtual_s": 1.0, "printed": ""}).encode()
    hand.carry(OUTPUT, 0.0, told[:9])
    hand.carry(OUTPUT, 0.0, told[9:] + b"\n")
    hand.carry(ERROR, 0.0, b"Kernel panic")
    hand.end("the guest ended")
    found = [results.get_nowait() for _ in range(2)]
    assert [each.verdict for each in found if isinstance(each, Result)] == [PASSED, DIED]
    assert isinstance(found[1], Result) and "Kernel panic" in found[1].words
    assert hand.count == 2 and results.empty()
    with pytest.raises(EngineCannot, match="is not packetdrill: usage: cat"):
        hand.carry(OUTPUT, 0.0, b'{"no_program": "usage: cat"}\n')


def test_what_a_script_names_above_itself_is_readable_and_no_home(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "common").mkdir()
    (tmp_path / "tcp").mkdir()
    (tmp_path / "common" / "defaults.sh").touch()
    path = tmp_path / "tcp" / "one.pkt"
    path.write_text("`../common/defaults.sh; ../none/x.sh`\n")
    script = Script(path, "ipv4", path.read_text())
    assert readable_for([script]) == [tmp_path / "tcp", tmp_path / "common"]
    assert outermost([tmp_path / "tcp", tmp_path]) == [tmp_path]
    monkeypatch.setenv("HOME", str(tmp_path / "tcp"))
    with pytest.raises(EngineCannot, match="scripts in a folder of their own"):
        readable_for([script])


# The command line --------------------------------------------------------------------

@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    (tmp_path / "deep").mkdir()
    (tmp_path / "b.pkt").write_text("0 socket()")
    (tmp_path / "deep" / "a.pkt").write_text("--ip_version=ipv6\n")
    (tmp_path / "empty").mkdir()
    return tmp_path


def test_a_folder_means_its_scripts_in_order(folder: Path) -> None:
    found = command.scripts_of(command.parsed(["--packetdrill", str(folder)]))
    assert [(script.path.name, script.ip_version) for script in found] == [
        ("b.pkt", "ipv4"), ("a.pkt", "ipv6")]


@pytest.mark.parametrize(("words", "message"), [
    (["none.pkt"], "there is no"), (["empty"], "has no [*].pkt"),
    (["b.pkt", "--readable", "none"], "--readable: there is no"),
    (["deep", "--ip-version", "ipv4"], "none of these scripts is for ipv4")])
def test_what_is_not_there_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch,
                                   words: list[str], message: str) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(UsageError, match=message):
        command.scripts_of(command.parsed(["--packetdrill", *words]))


@pytest.mark.parametrize("words", [
    ["--jobs", "0"], ["--tolerance", "0"], ["--tolerance", "4ms"], ["-D", "=3"], ["--seed", "-1"],
    ["--ip-version", "ipv5"], ["--timeout", "0"], ["--unknown"]])
def test_wrong_flags_are_told(folder: Path, words: list[str],
                              capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        command.parsed(["--packetdrill", str(folder / "b.pkt"), *words])
    assert raised.value.code == 2 and len(capsys.readouterr().err.splitlines()) == 1


def test_a_tolerance_is_the_only_one(folder: Path) -> None:
    """Of its two packetdrill allows the larger: by default also 12.5 % of the time waited."""
    asked = command.parsed(["--packetdrill", "b.pkt", "--tolerance", "10"])
    assert command.options_of(asked) == ("--tolerance_usecs=10", "--tolerance_percent=0")
    assert command.options_of(command.parsed(["--packetdrill", "b.pkt"])) == ()


def test_a_program_is_named_or_on_the_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(CannotError, match="docs/PACKETDRILL.md"):
        command.program_of(command.parsed(["--packetdrill", "b.pkt"]))
    with pytest.raises(UsageError, match="is not a program"):
        command.program_of(command.parsed(["--packetdrill", "b.pkt", "--program", str(folder)]))
    (folder / "packetdrill").touch(mode=0o755)
    assert command.program_of(command.parsed(["--packetdrill", "b.pkt"])) == folder / "packetdrill"


def test_without_a_compiler_what_the_image_has_is_taken(
        folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr("vtime.command.packetdrill.TIMES", folder / "made.c")
    with pytest.raises(EngineCannot, match="needs gcc, and there is none"):
        compiled(folder)
    (folder / "made.so").write_bytes(b"a library")
    assert compiled(folder).read_bytes() == b"a library"


def test_what_it_says() -> None:
    failed = Result(SCRIPT, FAILED, 7, 0.1, "=late")
    assert command.line(failed) == "FAIL    0.100 s  tcp/one.pkt:7 (ipv4): =late"
    assert command.row(failed)[2:] == (FAILED, 7, "0.100000000", "'=late")
    assert command.summary(Counter({PASSED: 2, FAILED: 1}), 4) == (
        "2 of 4 scripts pass, 1 fail, 1 were not run")
