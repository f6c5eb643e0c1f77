"""A stranger's run or command, whose files hold anything: one line of what is wrong, never more."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import plot
from firstflight.base.errors import FAILED, OK, FirstFlightError
from firstflight.commands import without_trials
from firstflight.commands.flags import parse
from firstflight.commands.virtual import captured
from firstflight.findings.drawing.style import even_ticks
from firstflight.runs import runs
from firstflight.runs.results.facts import COMMAND, RUN, read_facts_file
from firstflight.runs.results.records import LARGEST, RecordsError
from tests.programs.inputs import stored
from tests.programs.stored_commands import FACTS, packets

pytestmark = pytest.mark.usefixtures("few_dots")
DEEP = "[" * 100_000
WRONG: list[Any] = [5, "x", [5], {"a": {"b": {}}}, True, [[[[[[[[[[1]]]]]]]]]], 1e400]


def ended(main: Any, words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The status, and what was printed to standard error but for what is no fault."""
    status = main(words)
    return status, "".join(line for line in capsys.readouterr().err.splitlines(keepends=True)
                           if "run.json does not say what" not in line)


@pytest.mark.parametrize("content", [DEEP, '{"command": 5}', '{"virtual_s": 1e400}', "{", "[]",
                                     '{"command": [[]]}', '{"left": ' + "[" * 50 + "]" * 50 + "}",
                                     "\udcff", '{"wall_s": ' + "9" * 9999 + "}"], ids=range(9))
def test_a_damaged_command_json(content: str, tmp_path: Path) -> None:
    (tmp_path / "capture.pcapng").write_bytes(packets())
    (tmp_path / "command.json").write_text(content, errors="surrogateescape")
    with pytest.raises(RecordsError, match=r"command\.json: is damaged \("):
        captured.run(["--report", str(tmp_path)])


def test_a_command_of_another_version_is_read(tmp_path: Path) -> None:
    (tmp_path / "command.json").write_text(json.dumps({**FACTS, "more": [1], "wall_s": None}))
    read = read_facts_file(tmp_path / "command.json", COMMAND)
    assert read["command"] == FACTS["command"] and read["more"] == [1] and "wall_s" not in read


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_each_fact_of_a_run_in_a_wrong_shape_is_a_line_or_read(
        wrong: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home, known = stored("packetdrill", tmp_path)
    names = {*known, "trials", "partial", "first_record_after_s", "resumed", "asked", "systems"}
    refused = 0
    for name in sorted(names - {"scenario", "scenario_file"}):
        (home / "run.json").write_text(json.dumps({**known, name: wrong}))
        status, said = ended(plot.main, ["--run", str(home), "--figures", str(tmp_path / "f")], capsys)
        assert status in (OK, FAILED) and said.count("\n") == (status == FAILED), (name, said)
        refused += status == FAILED
        assert runs.read_facts(home) == {} or status == OK
    assert refused > 9


def test_a_deep_run_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home, _ = stored("zhao2019", tmp_path)
    (home / "run.json").write_text(DEEP)
    assert ended(plot.main, ["--run", str(home)], capsys) == (
        FAILED, f"plot.py: {home / 'run.json'}: is damaged (its lists and tables are nested too"
        " deep)\n")
    with pytest.raises(RecordsError, match="nested too deep"):
        without_trials.compare(parse(["--compare", str(home), str(home)]))


def with_column(home: Path, column: str, value: str) -> None:
    """Let all rows of a run have a value under a column, which it may lack so far."""
    path = home / "trials.csv"
    head, *rows = csv.reader(path.read_text().splitlines())
    place = head.index(column) if column in head else len(head)
    with path.open("w") as file:
        csv.writer(file, lineterminator="\n").writerows(
            [[*row[:place], cell, *row[place + 1:]] for row, cell in zip(
                (head, *rows), (column, *[value] * len(rows)))])


@pytest.mark.parametrize(("name", "column", "value"), [
    ("tselentis2013", "response_flights", "1e308"), ("zhao2019", "response_flights", "3+x"),
    ("zhao2019", "response_flights", "9" * 5000), ("zhao2019", "total_ms", ""), ("zhao2019", "weight", "-1"),
    ("zhao2019", "own_server", "5"), ("zhao2019", "own_server", DEEP), ("small", "window", "1e15"),
    ("small", "window", ""), ("small", "clients", "iw3"), ("packetdrill", "sysctls", "x")],
    ids=range(11))
def test_a_value_that_no_trial_has(name: str, column: str, value: str, tmp_path: Path,
                                   capsys: pytest.CaptureFixture[str]) -> None:
    home, _ = stored(name, tmp_path)
    with_column(home, column, value)
    status, said = ended(plot.main, ["--run", str(home)], capsys)
    assert status == FAILED and said.count("\n") == 1 and "trials.csv, " in said, said
    with pytest.raises(RecordsError, match="trials.csv, "):
        without_trials.compare(parse(["--compare", str(home), str(home)]))


def test_values_that_do_not_go_together_are_a_line(
        tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
        ) -> None:
    """Whatever code meets them: here a sum that none of its checks foresees."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    home, _ = stored("zhao2019", tmp_path)

    def nonsense(folder: Path, *_: object) -> None:
        raise KeyError(10)

    monkeypatch.setattr(plot, "draw_run", nonsense)
    monkeypatch.setattr(without_trials.compared_runs, "report", nonsense)
    status, said = ended(plot.main, ["--run", str(home), "--figures", str(tmp_path / "f")], capsys)
    assert status == FAILED and "its files contradict each other (KeyError: 10)" in said
    with pytest.raises(FirstFlightError, match="its files contradict each other"):
        without_trials.compare(parse(["--compare", str(home), str(home)]))


def test_an_axis_has_ticks_for_all_that_a_record_may_hold() -> None:
    assert 2 <= len(even_ticks(0, LARGEST)) <= 10 and 2 <= len(even_ticks(0, 5 * LARGEST)) <= 10


def test_a_whole_run_json_is_read(tmp_path: Path) -> None:
    home, known = stored("zhao2019", tmp_path)
    assert read_facts_file(home / "run.json", RUN) == known
