"""What people type: each is understood, or answered in one line that says what to type."""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from firstflight.base import files, typed
from firstflight.base.command_line import Parser
from firstflight.base.errors import UsageError
from firstflight.commands import flags, run, without_trials
from firstflight.commands.virtual import command
from firstflight.findings.quantities import FLAGS

# What is typed, and the values that are read.
UNDERSTOOD: list[tuple[str, dict[str, list[Any]]]] = [
    ("--rtt 50ms", {"rtt_ms": [50]}), ("--rtt 50MS", {"rtt_ms": [50]}),
    ("--rtt 1.5s", {"rtt_ms": [1500]}), ("--rtt 500us", {"rtt_ms": [0.5]}),
    ("--rtt '20 ms, 0.05 s'", {"rtt_ms": [20, 50]}), ("--rtt 1e2", {"rtt_ms": [100]}),
    ("--rtt 10..50:20", {"rtt_ms": [10, 30, 50]}), ("--rtt 20,5 --rtt 30", {"rtt_ms": [20, 5, 30]}),
    ("--bw 10M", {"bandwidth_kbps": [10_000]}), ("--bw 10Mbit", {"bandwidth_kbps": [10_000]}),
    ("--bw 10mbps", {"bandwidth_kbps": [10_000]}), ("--bw 10Mbit/s", {"bandwidth_kbps": [10_000]}),
    ("--bw 1G", {"bandwidth_kbps": [1_000_000]}), ("--bw 1.1g", {"bandwidth_kbps": [1_100_000]}),
    ("--bw 256k", {"bandwidth_kbps": [256]}), ("--bw 10000", {"bandwidth_kbps": [10_000]}),
    ("--bw 512kbps,1Gbps", {"bandwidth_kbps": [512, 1_000_000]}),
    ("--uplink 5Mb/s", {"uplink_kbps": [5000]}),
    ("--size 100k", {"response_bytes": [100_000]}), ("--size 1MB", {"response_bytes": [1_000_000]}),
    ("--size 100KiB", {"response_bytes": [102_400]}), ("--size 1e6", {"response_bytes": [10 ** 6]}),
    ("--size 1.5kb", {"response_bytes": [1500]}), ("--size 30kB,1mib", {
        "response_bytes": [30_000, 1_048_576]}),
    ("--loss 1%", {"loss_percent": [1]}), ("--loss 0.5", {"loss_percent": [0.5]}),
    ("--loss 1%,5%", {"loss_percent": [1, 5]}), ("--rtt 5,50", {"rtt_ms": [5, 50]}),
    ("--rtt 50,100ms", {"rtt_ms": [50, 100]}), ("--idle 0,2000", {"idle_ms": [0, 2000]}), ("--kept 0,1", {"kept": [0, 1]}),
    ("--loss 0.01%", {"loss_percent": [0.01]}), ("--iw '14600 segments'", {"initcwnd": [14600]}),
    ("--iw 1000..3000:460", {"initcwnd": [1000, 1460, 1920, 2380, 2840]}),
    ("--jitter 5ms", {"jitter_ms": [5]}), ("--think 0.1s", {"gap_ms": [100]}),
    ("--idle 2min", {"idle_ms": [120_000]}),
    ("--iw 10-12", {"initcwnd": [10, 11, 12]}), ("--iw 10..12", {"initcwnd": [10, 11, 12]}),
    ("--iw 10..100:30", {"initcwnd": [10, 40, 70, 100]}), ("--iw '10, 20'", {"initcwnd": [10, 20]}),
    ("--iw=10,20", {"initcwnd": [10, 20]}), ("--iw 20,10", {"initcwnd": [20, 10]}),
    ("--iw '10 segments'", {"initcwnd": [10]}), ("--rwnd 100..300:100", {
        "initrwnd": [100, 200, 300]}),
    ("--queue 1BDP", {"queue": ["1bdp"]}), ("--queue 50MS,100", {"queue": ["50ms", "100"]}),
    ("--queue 0.05s", {"queue": ["50ms"]}), ("--queue '100 packets'", {"queue": ["100"]}),
    ("--queue AUTO", {"queue": ["auto"]}), ("--cc BBR", {"congestion_control": ["bbr"]}),
    ("--cc 'cubic, bbr'", {"congestion_control": ["cubic", "bbr"]}),
    ("--chain 4kB", {"chain_bytes": [4000]}), ("--mss 1400", {"mss": [1400]})]

# What is typed, and words of the answer.
ANSWERED = [
    (f"--tickets {'1' * 400}", "1… is out of any range"), ("--rtt 1e400", "out of any range"),
    ("--bw 1e300..1e301:1e299", "out of any range"), ("--queue 1e99ms", "1e99ms"),
    (f"--iw 1..{'9' * 400}", "out of any range"), ("--size 1e19", "out of any range"),
    ("--iw 14600", "write 10, or '14600 segments'"), ("--iw 3,2896", "write 2, or '2896 segments'"),
    ("--loss 0.01", "Write 0.01% or 1%"), ("--queue 0.5", "write 0.5bdp, 0.5ms or whole packets"),
    ("fig5", "did you mean dukkipati2010 or zhao2019?"), ("figure99", "./run.sh --list shows all"),
    ("python3 x.py --size 3", "-- before it: ./run.sh -- python3 x.py --size 3"),
    ("x.py", "./run.sh -- x.py"), ("--capture", "./run.sh --capture -- COMMAND"),
    ("--output x.csv", "--export csv FILE is one file"), ("--json", "--export json FILE"),
    ("--find-cliff", "--find-cliff {chain,response,early}"), ("--probe", "--probe URL"),
    ("--iw 10 20", "commas and without spaces, such as --iw 10,20"),
    ("--iw 10 20 30 --rtt 5", "such as --iw 10,20,30"), ("100ms", "such as --rtt 100ms"), ("20M", "such as --bw 20M"),
    ("--iw '10 20'", "write 10,20"), ("--iw 10,", "write 10"), ("--iw ,10,,20", "write 10,20"),
    ("--rtt 100 ms", "write --rtt 100ms"), ("--bw=5 Mbit", "write --bw 5Mbit"), ("--loss 1 %", "write --loss 1%"),
    ("iw=20", "write --iw 20"), ("initcwnd=20", "write --iw 20"), ("--IW 20", "write --iw 20"),
    ("--delay 100ms", "write --rtt 100ms"), ("--delay=100ms", "write --rtt 100ms"), ("--Delay 100ms", "write --rtt 100ms"),
    ("--delay 100kB", "write --rtt 50ms"), ("--cwnd 4", "write --iw 4"), ("--bandwith 5M", "write --bw 5M"),
    ("--rwnd 64kB", "write 44"), ("--iw 14480B", "write 10"),
    ("--timeout 60 x", "./run.sh --timeout 60 -- COMMAND"), ("--write-back", "./run.sh --write-back -- COMMAND"),
    ("--env", "./run.sh --env NAME -- COMMAND"),
    ("--loss '1,5 %'", "Write 1%,5% for two, or 1.5% for one"), ("--loss 1,5", "Write 1%,5% for two, or 1.5% for one"),
    ("--loss 1,25", "or 1.25% for one"), ("--rtt 1,5s", "Write 1s,5s for two, or 1.5s for one"),
    ("--jitter 0,5", "Write 0ms,5ms for two, or 0.5ms for one"), ("--bw 10,20M", "Write 10M,20M for two"),
    ("--size 10,20kB", "Write 10kB,20kB for two"), ("--queue 0,5bdp", "or 0.5bdp for one"),
    ("--export xml f --rtt 5", "'xml' is none of json, md, csv"), ("--export csv f", "not of the default ones"),
    ("--iw 10:20", "'10:20' is not a number; write 10"), ("--iw 10.5", "'10.5' is not a whole number of segments"),
    ("--iw 1..1000", "is 1000 values, more than 200; give a step"),
    ("--iw 20-10", "runs downwards; write 10..20"), ("--rtt 10-50", "needs a step, such as 10..50:10"),
    ("--rtt 50,000", "a comma separates values; write 50000"),
    ("--rtt 0", "an RTT of 0 ms is out of range; it can be 0.1 to"),
    ("--rtt -5", "an RTT of -5 ms is out of range"), ("--rtt 0,5", "or 0.5ms for one"),
    ("--rtt fast", "'fast' is not a number; write 50, 50ms or 1.5s"),
    ("--rtt 50kB", "'kB' is not a unit of a value in ms; write 50, 50ms or 1.5s"),
    ("--bw 10MB/s", "write 80M for bytes a second, or 10M if bits were meant"),
    ("--bw 10MBps", "write 80M for bytes a second"), ("--bw 10X", "'X' is not a unit of a value"
     " in kbit/s"),
    ("--queue 64KB", "here 43 of 1514 bytes: write 43, 50ms or 1bdp"),
    ("--queue long", "'long' is not a queue length"),
    ("--size 60000000", "a response of 60000000 bytes is out of range; it can be 1 to 50000000"),
    ("--size 30ms", "'ms' is not a unit of a value in bytes; write 30000, 100kB or 1MB"),
    ("--cc bbr3", "(did you mean 'bbr'?); it has reno, cubic, bbr"),
    ("--cc bbr2", "the guest's kernel has no 'bbr2'"), ("--cc 'b b r'", "has no 'b b r'"),
    ("--qdisc pfifo", "(did you mean 'fifo'?); known: fifo, fq, fq_codel, cake"),
    ("--rt 5", "did you mean --rtt?"), ("--client lynx", "invalid choice: 'lynx'"),
    ("--scenario zhao2019 --name other", "--name names a question of your own"),
    ("--repeat 0", "'0' is not a whole number above 0"), ("--jobs -1", "'-1' is not a whole number above 0"),
    ("--jobs 0", "'0' is not a whole number above 0"), ("--seed abc", "'abc' is not a whole number"),
    ("--jobs 1 --jobs 2", "--jobs: is given twice"), ("--seed 1 --seed=2", "--seed: is given twice"),
    ("--name a --name b", "--name: is given twice"),
    ("--initcwnd", "write --iw 10,20"), ("--iws 10", "write --iw 10"),
    ("--latency 50", "write --rtt 50"), ("--bandwidth", "write --bw 10M"),
    ("--scenarios", "write --list"), ("--buffer 100", "write --queue 100"),
    ("--connections 6", "goes with --objects N or --page FILE"),
    ("--pages 3", "write --page 3"), ("--verbose", "--full prints every table"),
    ("-v", "--version prints the version"), ("--help-all", "write --help all"),
    ("--dryrun", "did you mean --dry-run?"), ("--userss f", "did you mean --users?"),
    ("help", "write --help"), ("list", "write --list"),
    ("zhao2018", "did you mean zhao2019"), ("Zhao2019", "did you mean zhao2019"),
    ("dukkipati", "did you mean dukkipati2010"), ("nonsense", "./run.sh --list shows all"),
    ("zhao2019.toml", "there is no such file; the scenario zhao2019 is named without .toml"),
    ("nofile.toml", "nofile.toml: there is no such file"),
    ("/tmp", "'/tmp' is a folder: name a scenario"), ("scenarios", "'scenarios' is a folder"),
    ("README.md", "a file that does not end in .toml")]


@pytest.mark.parametrize(("words", "values"), UNDERSTOOD)
def test_it_is_understood(words: str, values: dict[str, list[Any]]) -> None:
    arguments = flags.parse(shlex.split(words))
    assert {name: getattr(arguments, name) for name in values} == values
    if "uplink" not in words:
        run.read(arguments)  # and is in range


@pytest.mark.parametrize(("words", "answer"), ANSWERED)
def test_it_is_answered_in_one_line(words: str, answer: str, monkeypatch: pytest.MonkeyPatch,
                                    capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(Path(__file__).resolve().parent.parent.parent)
    try:
        run.read(flags.parse(shlex.split(words)))
        line = "it was taken"
    except UsageError as error:
        line = str(error)
    except SystemExit as error:
        assert error.code == 2
        line = capsys.readouterr().err.rstrip("\n")
        assert line.startswith("run.sh: ")
    assert answer in line and "\n" not in line and len(line) < 400


def test_a_list_by_words_has_the_scenarios_in_whose_files_they_are(
        capsys: pytest.CaptureFixture[str]) -> None:
    assert without_trials.list_scenarios(flags.parse(["--list", "tls", "records"])) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert "tls_records" in listed and not {"zhao2019", "handley1999_clock"} & {*listed}
    with pytest.raises(UsageError, match="no scenario has nonsense in its file"):
        without_trials.list_scenarios(flags.parse(["--list", "nonsense"]))


def test_another_shell_and_another_python_do_not_matter(tmp_path: Path) -> None:
    """sh, which is no bash; and a python3 without the packages, first on the PATH."""
    other = tmp_path / "python3"
    other.write_text("#!/bin/bash\nexec -a other /usr/bin/python3 -S \"$@\"\n")
    other.chmod(0o755)
    for words in (["sh", "run.sh"], ["sh", "install.sh"], [str(other), "plot.py"]):
        said = subprocess.run([*words, "--nonsense"], cwd=files.PROJECT, capture_output=True,
                              text=True, check=False)
        assert said.returncode == 2 and "--nonsense" in said.stderr, said
        assert "Traceback" not in said.stderr and "pipefail" not in said.stderr


@pytest.mark.parametrize("words", [["http://x"], []])
def test_the_client_says_what_it_reads(words: list[str]) -> None:
    said = subprocess.run([sys.executable, "client.py", *words], cwd=files.PROJECT, input="",
                          capture_output=True, text=True, check=False)
    assert said.returncode == 2 and "a JSON request a line" in said.stderr


def test_the_test_command_says_what_it_does(tmp_path: Path) -> None:
    said = subprocess.run([files.PROJECT / "test.sh", "--help"], cwd=tmp_path, capture_output=True,
                          text=True, check=False)
    assert said.returncode == 0 and "./test.sh -k verdict" in said.stdout and not said.stderr
    assert "#" not in said.stdout and "pytest" in said.stdout and "bash" not in said.stdout


def test_help_fits_a_screen_and_all_of_it_has_every_flag(
        capsys: pytest.CaptureFixture[str]) -> None:
    for words, least, most in ((["--help"], 20, 40), (["--help", "all"], 100, 400)):
        with pytest.raises(SystemExit) as ended:
            flags.parse(words)
        lines = capsys.readouterr().out.splitlines()
        assert ended.value.code == 0 and least <= len(lines) <= most
        if words == ["--help"]:
            assert max(map(len, lines)) <= 80


def test_what_the_synonyms_say_to_write_is_taken() -> None:
    for what in set(flags.SYNONYMS.values()):
        if isinstance(what, tuple) and what[0] not in ("--list", "--help", "--version", "--users"):
            flags.parse([*filter(None, what)])


def options(monkeypatch: pytest.MonkeyPatch, module: ModuleType, read: Callable[[], object]) -> list[argparse.Action]:
    """The flags of the parser that a call makes."""
    made: list[Parser] = []
    with monkeypatch.context() as patch:
        patch.setattr(module, "Parser", lambda *words, **more: made.append(Parser(*words, **more)) or made[-1])
        read()
    return [action for action in made[0]._actions if action.option_strings]


def helped(word: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What --help says of one flag."""
    with pytest.raises(SystemExit) as ended:
        flags.parse(["--help", word])
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_each_flag_has_help_with_its_default_and_an_example_that_is_taken(
        monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for action in options(monkeypatch, flags, lambda: flags.parse(["--rtt", "5"])):
        flag = action.option_strings[-1]
        text = re.sub(r"(?<=\w-) (?=\w)", "", " ".join(helped(flag, capsys).split()))  # of a wrapped line
        assert helped(flag, capsys) == helped(flag.lstrip("-"), capsys)
        assert flag in text and flags.EXAMPLES[flag] in text, flag
        if action.option_strings[0] in {quantity.flag for quantity in FLAGS.values()}:
            (quantity,) = (each for each in FLAGS.values() if each.flag == flag)
            assert quantity.range in text and (not quantity.default or f"(default {quantity.default})" in text)
        elif action.nargs != 0 and action.default not in (None, []):
            assert "default" in text, flag
        words = shlex.split(flags.EXAMPLES[flag])[1:]
        if flag not in ("--help", "--version", "--ca", "--server-name"):  # which need a file
            flags.parse(words)


def test_help_of_all_has_the_flags_of_commands_too(
        monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    every = helped("all", capsys)
    for action in options(monkeypatch, command, lambda: command.parsed([], ["true"])):
        (flag,) = action.option_strings[-1:]
        assert flag in ("--help", "--version") or flag in helped(flag, capsys)
        assert flag in every


def test_help_about_no_flag_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    for word, answer in (("delay", "write --rtt 50ms"), ("rt", "did you mean --rtt?")):
        with pytest.raises(SystemExit) as ended:
            flags.parse(["--help", word])
        line = capsys.readouterr().err
        assert ended.value.code == 2 and answer in line and line.count("\n") == 1


@pytest.mark.parametrize(("word", "unit", "value"), [
    ("1.1k", "bytes", 1100), ("0.1s", "ms", 100), ("33.3Mbit", "kbit/s", 33_300), (".5", "%", 0.5)])
def test_digits_are_those_that_were_typed(word: str, unit: str, value: float) -> None:
    assert typed.number(word, unit) == value
