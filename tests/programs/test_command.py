"""Flags of ./run.sh -- COMMAND, as they are typed; no guest is booted."""

from __future__ import annotations

from pathlib import Path

import pytest

import experiment
from firstflight.base.files import WriteError
from firstflight.commands.virtual import command, script
from vtime import LinkTimes


@pytest.mark.parametrize(("words", "virtual_s", "wall_s"), [
    ("60", 60, 60), ("1h,10m", 3600, 600), ("90s,1.5min", 90, 90),
    ("500ms", 0.5, 0.5)])
def test_timeouts(words: str, virtual_s: float, wall_s: float) -> None:
    assert command.limits(words) == (virtual_s, wall_s)


@pytest.mark.parametrize(("word", "mb"), [("512", 512), ("512M", 512), ("2G", 2000), ("1GB", 1000)])
def test_memory(word: str, mb: int) -> None:
    assert command.megabytes(word) == mb


@pytest.mark.parametrize(("word", "ns"), [
    ("0", 0), ("1us", 1000), ("1.5µs", 1500), ("100ns", 100), ("1s", 10 ** 9)])
def test_what_a_packet_costs(word: str, ns: int) -> None:
    assert command.nanoseconds(word) == ns
    arguments = command.parsed(["--packet-cost", word], ["true"])
    assert LinkTimes(arguments.packet_cost).words()[0] == f"packet_cost_ns={ns}"


@pytest.mark.parametrize(("flags", "said"), [
    (["--packet-cost", "1"], "with its unit"), (["--packet-cost", "2s"], "at most 1s"),
    (["--packet-cost", "soon"], "such as 1us"),
    (["--memory", "1K"], "at least 128M"), (["--memory", "x"], "not a number"),
    (["--timeout", "0"], "above 0"), (["--timeout", "1,2,3"], "at most 2"),
    (["--timeout", "soon"], "not a number"), (["--limit", "1G,0"], "above 0"),
    (["--seed", "-1"], "--seed"), (["--seed", "x"], "whole number"), (["--rtt", "5"], "--rtt"),
    (["zhao2019"], "zhao2019"), (["--seed", "1", "--seed", "2"], "given twice")])
def test_a_wrong_flag_is_a_line_and_status_2(flags: list[str], said: str,
                                             capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        experiment.main([*flags, "--", "true"])
    told = capsys.readouterr().err
    assert ended.value.code == 2 and said in told and told.count("\n") == 1


def test_nothing_behind_the_dashes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        experiment.main(["--"])
    assert ended.value.code == 2 and "-- COMMAND" in capsys.readouterr().err


def test_flags_behind_the_dashes_are_the_commands() -> None:
    flags, words = command.divided(["--quiet", "--", "true", "--seed", "x"])
    assert words == ["true", "--seed", "x"] and command.parsed(flags, words).seed == 1


def test_the_environment_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAD", "it")
    arguments = command.parsed(["--env", "HAD", "--env", "MADE=a=b"], ["true"])
    assert command.environment_of(arguments) == {"HAD": "it", "MADE": "a=b"}


@pytest.mark.parametrize(("words", "there", "missing"), [
    (["python3", "script.py"], (), ""), (["mn"], (), "ovs-vsctl"), (["mn"], ("ovs-vsctl",), ""),
    (["mn", "--switch", "lxbr"], (), "brctl"), (["/usr/bin/mn", "--switch=lxbr"], ("brctl",), ""),
    (["mn", "--test", "iperf"], ("ovs-vsctl",), "iperf, telnet"),
    (["mn", "--test=iperf"], ("ovs-vsctl", "iperf", "telnet"), ""),
    (["sh", "-c", "iperf3 -s -D; nc -l 80"], (), "iperf3, nc"), (["./first.py"], ("ping",), ""),
    (["python3", "first.py"], (), "ping"), (["python3", "second.py"], (), "ovs-vsctl, iperf3")])
def test_what_is_known_to_be_missing_is_told_before(
        words: list[str], there: tuple[str, ...], missing: str, tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "first.py").write_text("net = make(switch=UserSwitch)\nh1.cmd('ping h2')\n")
    (tmp_path / "second.py").write_text(
        "from mininet.net import Mininet\nMininet(topo=t).get('h1').cmd('iperf3 -s -D')\n")
    monkeypatch.chdir(tmp_path)
    lines = script.advice(words, {name: f"/usr/bin/{name}" for name in there}.get)
    assert len(lines) == bool(missing)
    assert not missing or lines[0].startswith(f"{missing}: used and not installed")


def test_a_link_to_a_program_that_commands_do_not_see_is_told_before(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, folder = tmp_path / "home", tmp_path / "work"
    monkeypatch.setenv("HOME", str(home))
    for prefix in (home / "own", home):
        (prefix / "bin").mkdir(parents=True)
        (prefix / "bin" / "python").touch(mode=0o755)
    (home / "key").touch(mode=0o600)
    for name, python in (("v", home / "own/bin/python"), ("w", home / "bin/python")):
        (folder / name / "bin").mkdir(parents=True)
        (folder / name / "pyvenv.cfg").touch()
        (folder / name / "bin" / "python").symlink_to(python)
    (folder / "link").symlink_to(home / "key")
    monkeypatch.chdir(folder)

    def told(*words: str, readable: Path = folder) -> list[str]:
        return [line.partition(" leads to ")[0] + line.partition(": ")[2].removesuffix(
            " shows it to this one") for line in script.hidden_programs(words, folder, [readable])]
    shown = f"v/bin/python--readable {home / 'own'}"
    assert told("v/bin/python", "x.py") == told("sh", "-c", ". v/bin/activate; python x") == [shown]
    assert told("w/bin/python") == [f"w/bin/python--readable {home / 'bin/python'}"], "no home"
    assert told("python3", "x.py") == told("./link") == told("v/bin/python", readable=home) == []


def test_no_link_of_a_results_folder_is_followed(tmp_path: Path) -> None:
    """It may be a stranger's; a killed guest's folder is removed in none but our own."""
    (theirs := tmp_path / "theirs").mkdir()
    (elsewhere := tmp_path / "elsewhere" / ".guest").mkdir(parents=True)
    (theirs / "packetdrill").symlink_to("../elsewhere")
    with pytest.raises(WriteError, match="packetdrill is a link, which is not followed"):
        command.new_folder(theirs, "packetdrill")
    (theirs / "commands").mkdir()
    (theirs / "commands" / "link").symlink_to("../../elsewhere")
    (dead := theirs / "commands" / "killed" / ".guest").mkdir(parents=True)
    made = command.new_folder(theirs, "commands")
    assert made.parent == theirs / "commands" and not dead.exists() and elsewhere.exists()
