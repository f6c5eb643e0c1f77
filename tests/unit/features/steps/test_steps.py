"""Figures of steps and levels: what their lines and squares hold, and what makes no sense in them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from firstflight.base.errors import UsageError
from firstflight.findings import drawing
from firstflight.findings.charts import LineChart, SquareChart
from firstflight.findings.findings import Finding
from firstflight.runs import scenario_file
from firstflight.runs.kinds import RunData, Study
from firstflight.runs.results.records import FAIL, SKIPPED
from firstflight.study.fetches.figures.steps import _steep
from firstflight.study.fetches.study import KIND
from firstflight.study.fetches.verify.record import Record
from tests.golden import stored_questions

TEXT = (stored_questions.FOLDER / "steps.toml").read_text(encoding="utf-8")


def made(folder: Path, *changes: tuple[str, str]) -> Study:
    text = TEXT
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    path = folder / "small.toml"
    path.write_text(text, encoding="utf-8")
    return KIND.study(scenario_file.read(path))


def records(of: Study) -> list[Record]:
    return stored_questions.as_modelled(of.trials)


def numbers(chart: SquareChart) -> list[list[float | None]]:
    (only,) = chart.maps
    return [[square and square.value for square in row] for row in only.rows]


def findings(of: Study, some: list[Record], folder: Path) -> dict[str, Finding]:
    """With their figures made, which are not painted."""
    report = of.report(RunData(folder, {"virtual_time": True}, some))
    assert all(figure.axes for _, figure in drawing.figures(report))
    return {finding.name: finding for finding in report.findings}


def test_lines_of_windows_have_the_model_drawn_through(tmp_path: Path) -> None:
    of = made(tmp_path)
    chart = findings(of, records(of), tmp_path)["steps"].chart
    assert isinstance(chart, LineChart)
    points, curves = chart.columns[0][0].lines[:2], chart.columns[0][0].lines[2:]
    assert [line.name for line in points] == ["IW3", "IW10"]
    assert [len(line.x) for line in points] == [2, 2] and {each.style for each in curves} == {"curve"}
    for measured, curve in zip(points, curves):
        assert len(curve.x) > 100 and curve.look == measured.look
        model = dict(zip(curve.x, curve.y))
        assert [model[x] for x in measured.x] == list(measured.y)


def test_where_the_model_knows_not_all_there_is_no_curve(tmp_path: Path) -> None:
    of = made(tmp_path)
    some = records(of)
    some[0] = replace(some[0], model_ms=None)
    chart = findings(of, some, tmp_path)["steps"].chart
    assert isinstance(chart, LineChart)
    assert [line.style for line in chart.columns[0][0].lines] == ["steps", "steps"]


def test_squares_and_the_smallest_window_of_each_chain(tmp_path: Path) -> None:
    of = made(tmp_path)
    some = records(of)
    found = findings(of, some, tmp_path)["rounds"]
    assert isinstance(found.chart, SquareChart)
    assert found.chart.rows == ("large", "small") and found.chart.maps[0].columns == ("3", "10")
    assert numbers(found.chart) == [[3.0, 2.0], [1.0, 1.0]]  # the largest at the bottom
    assert found.sentence == ("The smallest window measured that needs one round trip: small bytes:"
                              " 3; large bytes: more than 10.")
    some[0] = replace(some[0], verdict=FAIL)  # counts no more
    found = findings(of, some, tmp_path)["rounds"]
    assert isinstance(found.chart, SquareChart) and numbers(found.chart)[1] == [None, 1.0]


def test_where_all_was_skipped_a_line_says_why_in_the_place_of_empty_tables(
        tmp_path: Path) -> None:
    of = made(tmp_path)
    some = [replace(record, verdict=SKIPPED, verdict_reason="needs Debian 13's programs")
            for record in records(of)]
    found = findings(of, some, tmp_path)["rounds"]
    assert found.missing == "its 4 trials were skipped: needs Debian 13's programs"
    assert not found.tables and found.chart is None
    some[3] = records(of)[3]
    assert findings(of, some, tmp_path)["rounds"].tables[0].rows[1][2] is not None


def test_of_what_does_not_count_no_window_is_said(tmp_path: Path) -> None:
    of = made(tmp_path)
    large = [replace(record, verdict=FAIL) if record.trial.chain_bytes == 16_000 else record
             for record in records(of)]
    assert findings(of, large, tmp_path)["rounds"].sentence.endswith(
        "small bytes: 3; large bytes: nothing counts.")
    part = [replace(record, verdict=FAIL) if record.trial.initcwnd == 10 else record
            for record in records(of)]
    found = findings(of, part, tmp_path)
    assert found["rounds"].sentence.endswith("small bytes: 3; large bytes: more than 3.")
    assert found["steps"].sentence.startswith("Time to the first byte (ms): IW3: ")
    assert "IW10" not in found["steps"].sentence
    none = findings(of, [replace(record, verdict=FAIL) for record in records(of)], tmp_path)
    assert none["steps"].sentence == (
        "Time to the first byte (ms): nothing that was measured counts.")


def test_lines_of_another_quantity_are_under_one_window(tmp_path: Path) -> None:
    of = made(tmp_path, ("chain_bytes = [2000, 16000]", "chain_bytes = [2000, 16000]\n"
                         "record_bytes = [4096, 16384]"),
              ('by = "chain_bytes"\nbaseline', 'by = "chain_bytes"\ndown = "record_bytes"\n'
               "baseline"))
    chart = findings(of, records(of), tmp_path)["steps"].chart
    assert isinstance(chart, LineChart)
    assert [line.name for line in chart.columns[0][0].lines[:2]] == ["record 4096 bytes",
                                                                     "record 16384 bytes"]


def test_a_larger_window_has_a_darker_line_whatever_its_place_in_the_file(tmp_path: Path) -> None:
    of = made(tmp_path, ("initcwnd = [3, 10]", "initcwnd = [10, 3]"))
    chart = findings(of, records(of), tmp_path)["steps"].chart
    assert isinstance(chart, LineChart)
    looks = {line.name: line.look for line in chart.columns[0][0].lines[:2]}
    assert looks == {"IW3": 1, "IW10": 2}


def test_a_line_of_a_value_with_a_name_has_that_name(tmp_path: Path) -> None:
    of = made(tmp_path, ("chain_bytes = [2000, 16000]", "chain_bytes = [2000, 16000]\n"
                         "record_bytes = [4096, 16384]"),
              ('by = "chain_bytes"\nbaseline', 'by = "record_bytes"\ndown = "chain_bytes"\n'
               "baseline"))
    found = findings(of, records(of), tmp_path)["steps"]
    assert [column.name for column in found.tables[0].columns[1:]] == ["chain small",
                                                                       "chain large"]


@pytest.mark.parametrize(("change", "words"), [
    (("rtt_ms = [100]", "rtt_ms = [50, 100]"), "several cells have one chain_bytes"),
    (('kind = "steps"\nsweep = "main"\nby = "chain_bytes"',
      'kind = "steps"\nsweep = "main"\nby = "signature"'), "is over numbers"),
    (('kind = "steps"\nsweep = "main"\nby = "chain_bytes"',
      'kind = "steps"\nsweep = "main"\nby = "chain_bytes"\ndown = "chain_bytes"'),
     "another one than by")])
def test_what_makes_no_sense_is_refused(tmp_path: Path, change: tuple[str, str],
                                        words: str) -> None:
    with pytest.raises(UsageError, match=words):
        made(tmp_path, change)


def test_a_curve_steps_at_the_byte() -> None:
    """Not at the next of the points that are drawn; a slope has no more points than asked."""
    known = _steep(range(0, 10_001, 100), lambda x: 100.0 if x < 4321 else 200.0)
    assert known[4320] == 100.0 and known[4321] == 200.0 and len(known) < 120
    assert list(known) == sorted(known)
    assert len(_steep(range(0, 1001, 100), float)) == 11
    above = _steep(range(0, 10_001, 100), lambda x: 1000.0 if x < 4321 else 1100.0)
    assert above[4320] == 1000.0 and above[4321] == 1100.0  # however high the whole curve is
    assert set(_steep([1, 50, 100], lambda x: 7.0).values()) == {7.0}
