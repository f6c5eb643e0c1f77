"""`--help all` has every flag of every command line, and no other; documents have what it has."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from firstflight.base import files
from firstflight.base.command_line import Parser
from firstflight.commands import flags
from firstflight.commands.virtual import captured, command

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
