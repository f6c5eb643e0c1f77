"""--export: where findings go, and where the text goes then."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import pytest

from firstflight.commands import export, flags
from firstflight.commands.request import Export, Output
from firstflight.findings.findings import Answer, Report


def report(name: str = "own") -> Report:
    return Report(name=name, title="Title ±", claim="Claim", source="Source", path="", facts={},
                  verified=1, count=1, findings=(),
                  answer=Answer("Sentence", values={"recommended_iw": 20}))


def test_standard_output_carries_data_alone_and_the_text_goes_to_standard_error(
        capsys: pytest.CaptureFixture[str]) -> None:
    output = flags.parse(["--rtt", "50", "--export", "json", "-"]).output
    assert export.print_text(output, "a text") and export.print_data(output, report())
    assert export.write_files(output, report()) == []
    printed = capsys.readouterr()
    values = json.loads(printed.out)
    assert values["recommended_iw"] == 20 and values["scenario"] == "own"
    assert printed.err == "a text\n"


def test_quiet_with_export_prints_data_alone(capsys: pytest.CaptureFixture[str]) -> None:
    output = flags.parse(["--rtt", "50", "--export", "csv", "-", "--quiet"]).output
    assert export.print_text(output, "a text") and export.print_data(output, report())
    printed = capsys.readouterr()
    assert printed.err == "" and len(list(csv.reader(io.StringIO(printed.out)))) == 1


def test_without_export_the_text_goes_to_standard_output(
        capsys: pytest.CaptureFixture[str]) -> None:
    output = Output()
    assert export.print_text(output, "a text") and export.print_data(output, report())
    assert capsys.readouterr() == ("a text\n", "")


def test_data_is_utf_8_whatever_the_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON is UTF-8, and its parsers refuse the \\x that Python writes for what ASCII lacks."""
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, "ascii", errors="backslashreplace"))
    export.print_data(Output(exports=[Export("json", "-")]), report())
    assert json.loads(raw.getvalue().decode())["title"] == "Title ±"


def test_each_scenario_is_exported_to_one_file_a_format_with_its_name(tmp_path: Path) -> None:
    place = str(tmp_path / "found-{name}")
    request = flags.parse(["zhao2019", "pq_chains", "--export", "json", f"{place}.json",
                           "--export", "md", f"{place}.md"])
    for name in ("zhao2019", "pq_chains"):
        export.write_files(request.output, report(name))
    assert {path.name for path in tmp_path.iterdir()} == {
        "found-zhao2019.json", "found-zhao2019.md", "found-pq_chains.json", "found-pq_chains.md"}
    assert json.loads((tmp_path / "found-pq_chains.json").read_text())["scenario"] == "pq_chains"


@pytest.mark.parametrize("words", [
    "--probe http://192.0.2.1/", "--users x.csv", "--compare one two", "--objects 3",
    "--find-cliff response --rtt 50", "--rtt 50", "zhao2019", "ietf78_load"])
def test_every_command_that_measures_takes_export(words: str) -> None:
    request = flags.parse([*words.split(), "--export", "json", "-"])
    assert request.output.exports == (Export("json", "-"),)
