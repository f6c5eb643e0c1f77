"""Flags: conditions, help, and what earlier versions had."""

from __future__ import annotations

import argparse
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from firstflight.base import errors, files
from firstflight.base.command_line import Parser
from firstflight.base.errors import FirstFlightError
from firstflight.commands import conditions, flags
from firstflight.commands.virtual import captured, command
from firstflight.runs.kinds import Overrides, Study
from firstflight.runs.results.records import FAIL, PASS
from firstflight.study import registry
from firstflight.study.fetches.record import Record


STUDY: Study = registry.own_question("own", Overrides({"initcwnd": [3, 10]}, repeat=2))
RECORDS = [Record(trial, ok=True, verdict=PASS, total_ms=1000.0 / trial.initcwnd + trial.repeat,
                  retransmissions=0) for trial in STUDY.trials]


@pytest.mark.parametrize(("text", "holds"), [
    ("total_ms(10) > 101", True), ("total_ms(10) > 101.5", False), ("total_ms(10) >= 101.5", True),
    ("total_ms(3) - total_ms(10) < 234", True), ("total_ms(3) - total_ms(10) < 233", False),
    ("(total_ms(3) - total_ms(10)) / total_ms(3) * 100 > 69", True),
    ("retransmissions > 0", False), ("-total_ms <= -200", True), ("100 < total_ms", True)])
def test_means_are_compared(text: str, holds: bool) -> None:
    condition = conditions.read(text)
    condition.check(STUDY)
    assert condition.holds(RECORDS)[0] is holds


def test_the_line_has_both_sides() -> None:
    assert conditions.read(" total_ms(10) > 300 ").holds(RECORDS)[1] == (
        "--fail-if total_ms(10) > 300: does not hold (101.5 against 300)")


@pytest.mark.parametrize("text", [
    "", "total_ms", "total_ms(10)", "1 < 2", "1 < total_ms < 3", "total_ms == 3", "total_ms > ",
    "total_ms > 'x'", "total_ms(10.5) > 1", "total_ms(a) > 1", "total_ms(iw=3) > 1",
    "total_ms(3, 4) > 1", "total_ms ** 2 > 1", "__import__('os').system('id') > 2",
    "total_ms.real > 1", "total_ms[0] > 1", "True < total_ms", "(lambda: 1)() > total_ms",
    "total_ms > 1e400", "1e400 - 1e400 < total_ms", "total_ms > 1if total_ms else 2",
    "total_ms\n> 1", "total_ms > 1 # \x1b[2J", "total_ms \u202e> 1",
    "total_ms > 1" + " " * 200 + "+ 1", "(" * 90 + "total_ms > 1", "-" * 190 + "total_ms > 1 1"])
def test_anything_else_is_no_condition(text: str) -> None:
    with pytest.raises(ValueError, match="condition|neither a number nor a column|names no column"
                       "|cannot be printed") as refused:
        conditions.read(text)
    assert str(refused.value).isprintable()


def test_only_verified_trials_count() -> None:
    records = [replace(record, verdict=PASS if record.trial.repeat == 2 else FAIL)
               for record in RECORDS]
    assert conditions.read("total_ms(10) >= 102").holds(records)[0]
    with pytest.raises(FirstFlightError, match=r"no verified trial has a value of total_ms\(10\)"):
        conditions.read("total_ms(10) > 1").holds([])


@pytest.mark.parametrize(("text", "said"), [
    ("total_ms / retransmissions > 1", "divides by a mean of 0"),
    ("total_ms * 1e200 * 1e200 - total_ms * 1e200 * 1e200 > 1", "is not a number"),
    ("1 > total_ms * 1e200 * 1e200", "is not a number")])
def test_what_cannot_be_computed_is_no_condition_that_does_not_hold(text: str, said: str) -> None:
    with pytest.raises(conditions.UndeterminedError, match=said) as ended:
        conditions.read(text).holds(RECORDS)
    assert ended.value.exit_status == errors.VERDICT


def test_python_says_nothing_about_a_condition() -> None:
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        with pytest.raises(ValueError, match="is not a condition"):
            conditions.read("total_ms > 1if total_ms else 2")
    assert not noted


# Help ---------------------------------------------------------------------------------

EVERYWHERE = {"-h", "--help", "--version"}
_FLAG = re.compile(r"^  (?:-\w[^,\n]*, )?(--[a-z-]+)\b", re.MULTILINE)  # at the begin of its text


def flags_of(monkeypatch: pytest.MonkeyPatch, module: ModuleType, read: Callable[[], object]
             ) -> set[str]:
    """The flags of the parser that a call builds."""
    built: list[Parser] = []

    def build(*words: object, **more: object) -> Parser:
        built.append(Parser(*words, **more))  # type: ignore[arg-type]
        return built[-1]
    with monkeypatch.context() as patch:
        patch.setattr(module, "Parser", build)
        read()
    return {name for action in built[0]._actions if action.help != argparse.SUPPRESS
            for name in action.option_strings[-1:]} - EVERYWHERE


def parts(capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """Of the text of --help all: what concerns trials, and what concerns commands."""
    with pytest.raises(SystemExit):
        flags.parse(["--help", "all"])
    trials, usage, commands = capsys.readouterr().out.partition("usage: ./run.sh [FLAG ...] -- ")
    assert usage
    return trials, commands


def test_help_of_all_has_each_flag_of_trials(monkeypatch: pytest.MonkeyPatch,
                                             capsys: pytest.CaptureFixture[str]) -> None:
    there = flags_of(monkeypatch, flags, lambda: flags.parse(["--rtt", "5"]))
    assert set(_FLAG.findall(parts(capsys)[0])) - EVERYWHERE == there


def test_help_of_all_has_each_flag_of_commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                                               capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "capture.pcapng").write_bytes(b"")
    there = (flags_of(monkeypatch, command, lambda: command.parsed([], ["true"]))
             | flags_of(monkeypatch, captured,
                        lambda: captured.parsed(["--report", str(tmp_path)])))
    assert set(_FLAG.findall(parts(capsys)[1])) == there


def test_a_cluster_compares_what_its_document_says(monkeypatch: pytest.MonkeyPatch) -> None:
    from firstflight.runs.results import provenance
    text = " ".join((files.PROJECT / "docs" / "INSTALL.md").read_text(encoding="utf-8").split())
    (compared,) = re.findall(r"Compared before the run begins: (.*?)\. ", text)
    monkeypatch.setattr(provenance, "first_line", lambda _: "")
    named = {word for word in re.findall(r"\w+", compared) if word in provenance.tools()}
    assert named == set(provenance.tools())


# What earlier versions had ------------------------------------------------------------
