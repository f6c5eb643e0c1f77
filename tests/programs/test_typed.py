"""Typed values with units are read, and there is help about every flag.

Typed words that are refused are in tests/refusals/slips.py.
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from firstflight.base import PROJECT, typed
from firstflight.base.errors import UsageError
from firstflight.base.parser import Parser
from firstflight.commands import flags, list_scenarios, run
from firstflight.commands.virtual import command_line
from firstflight.findings.quantities import FLAGS
from tests.running import run_program

# Typed words, and the values that are read.
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
    ("--rtt 50,100ms", {"rtt_ms": [50, 100]}), ("--idle 0,2000", {"idle_ms": [0, 2000]}),
    ("--kept 0,1", {"kept": [0, 1]}),
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


@pytest.mark.parametrize(("words", "values"), UNDERSTOOD)
def test_a_typed_value_with_its_unit_is_read(words: str, values: dict[str, list[Any]]) -> None:
    request = flags.parse(shlex.split(words))
    assert request.overrides.lists == values
    if "uplink" not in words:
        run.read(request)  # raises UsageError if a value is out of range


def test_a_list_by_words_has_the_scenarios_whose_files_contain_them(
        capsys: pytest.CaptureFixture[str]) -> None:
    assert list_scenarios.run(flags.parse(["--list", "tls", "records"])) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert "tls_records" in listed and not {"zhao2019", "handley1999_clock"} & {*listed}
    with pytest.raises(UsageError, match="no scenario has nonsense in its file"):
        list_scenarios.run(flags.parse(["--list", "nonsense"]))


def test_programs_run_under_another_shell_and_another_python(tmp_path: Path) -> None:
    """They are started by sh, which is not bash, or by a python3 without the packages."""
    other = tmp_path / "python3"
    other.write_text("#!/bin/bash\nexec -a other /usr/bin/python3 -S \"$@\"\n")
    other.chmod(0o755)
    for words in (["sh", "run.sh"], ["sh", "install.sh"], [str(other), "plot.py"]):
        said = run_program([*words, "--nonsense"], cwd=PROJECT)
        assert said.returncode == 2 and "--nonsense" in said.stderr, said
        assert "Traceback" not in said.stderr and "pipefail" not in said.stderr


@pytest.mark.parametrize("words", [["http://x"], []])
def test_the_client_started_by_hand_says_what_it_reads(words: list[str]) -> None:
    said = run_program([sys.executable, "client.py", *words], cwd=PROJECT, input="")
    assert said.returncode == 2 and "a JSON request a line" in said.stderr


def test_the_help_of_the_test_command_says_what_it_does(tmp_path: Path) -> None:
    said = run_program([PROJECT / "test.sh", "--help"], cwd=tmp_path)
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


def test_a_flag_that_a_synonym_suggests_is_accepted() -> None:
    ends_or_reads = ("--list", "--help", "--version", "--users")  # cannot be parsed alone
    for suggested in set(flags.SYNONYMS.values()):
        if isinstance(suggested, tuple) and suggested[0] not in ends_or_reads:
            flags.parse([*filter(None, suggested)])


def options(monkeypatch: pytest.MonkeyPatch, module: ModuleType,
            read: Callable[[], object]) -> list[argparse.Action]:
    """The flags of the parser that a module makes when `read` is called."""
    parsers: list[Parser] = []

    def make(*words: Any, **more: Any) -> Parser:
        parsers.append(Parser(*words, **more))
        return parsers[-1]

    with monkeypatch.context() as patch:
        patch.setattr(module, "Parser", make)
        read()
    return [action for action in parsers[0]._actions if action.option_strings]


def helped(word: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The help on one flag."""
    with pytest.raises(SystemExit) as ended:
        flags.parse(["--help", word])
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_each_flag_has_help_with_its_default_and_a_valid_example(
        monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for action in options(monkeypatch, flags, lambda: flags.parse(["--rtt", "5"])):
        flag = action.option_strings[-1]
        text = re.sub(r"(?<=\w-) (?=\w)", "",
                      " ".join(helped(flag, capsys).split()))  # of a wrapped line
        assert helped(flag, capsys) == helped(flag.lstrip("-"), capsys)
        assert flag in text and flags.EXAMPLES[flag] in text, flag
        if action.option_strings[0] in {quantity.flag for quantity in FLAGS.values()}:
            (quantity,) = (known for known in FLAGS.values() if known.flag == flag)
            default = f"(default {quantity.default})" if quantity.default else ""
            assert quantity.range in text and (default in text or "default: " in text), flag
        elif action.nargs != 0 and action.default not in (None, []):
            assert "default" in text, flag
        words = shlex.split(flags.EXAMPLES[flag])[1:]
        if flag not in ("--help", "--version", "--ca", "--server-name"):  # which need a file
            flags.parse(words)


def test_help_of_all_has_the_flags_of_commands_too(
        monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    every = helped("all", capsys)
    for action in options(monkeypatch, command_line, lambda: command_line.parse(["--", "true"])):
        (flag,) = action.option_strings[-1:]
        assert flag in ("--help", "--version") or flag in helped(flag, capsys)
        assert flag in every


def test_help_about_an_unknown_flag_is_refused_in_one_line(
        capsys: pytest.CaptureFixture[str]) -> None:
    for word, answer in (("delay", "write --rtt 50ms"), ("rt", "did you mean --rtt?")):
        with pytest.raises(SystemExit) as ended:
            flags.parse(["--help", word])
        line = capsys.readouterr().err
        assert ended.value.code == 2 and answer in line and line.count("\n") == 1


@pytest.mark.parametrize(("word", "unit", "value"), [
    ("1.1k", "bytes", 1100), ("0.1s", "ms", 100), ("33.3Mbit", "kbit/s", 33_300), (".5", "%", 0.5)])
def test_a_typed_number_keeps_its_digits(word: str, unit: str, value: float) -> None:
    assert typed.number(word, unit) == value
