"""Findings as data: every value with its unit, intervals with both ends, and provenance."""

from __future__ import annotations

import csv
import io
import json

import pytest

from firstflight.base.command_line import EXPORTS
from firstflight.base.stats import Estimate
from firstflight.findings.findings import Column, Finding, Interval, Rounded, Table
from firstflight.findings.render.data import exported
from tests.golden import stored_fetches
from tests.unit.render.reports import report


def test_json_holds_every_value_and_where_it_is_from() -> None:
    told = stored_fetches.whole_report("zhao2019")
    data = json.loads(exported("json", told))
    assert data["provenance"]["kernel under test"] == "7.2.11" and data["trials"] == told.count
    assert (data["scenario"], data["title"], data["claim"], data["source"], data["run"]) == (
        told.name, told.title, told.claim, told.source, told.path)
    assert data["verified"] == told.verified and tuple(data["sentences"]) == told.sentences
    for finding, there in zip(told.findings, data["findings"]):
        assert there["name"] == finding.name
        for table, kept in zip(finding.tables, there["tables"]):
            assert len(kept["rows"]) == len(table.rows)
            assert [each["unit"] for each in kept["columns"]] == [
                column.unit for column in table.columns]
    bars = data["findings"][0]["tables"][0]
    absolute = next(place for place, column in enumerate(bars["columns"])
                    if (column["group"], column["unit"]) == ("improved", "ms"))
    panel = stored_fetches.panels("zhao2019")["fig5_rtt"]
    assert [row[absolute] for row in bars["rows"]] == [each.difference.absolute.value for each in panel.bars]


def test_csv_has_a_line_for_each_value() -> None:
    told = report()
    rows = list(csv.DictReader(io.StringIO(exported("csv", told))))
    assert rows and {row["finding"] for row in rows} <= {each.name for each in told.findings}
    intervals = [cell for finding in told.findings for table in finding.tables
                 for row in table.rows for cell in row if isinstance(cell, Interval)]
    ends = [(float(row["low"]), float(row["high"])) for row in rows if row["low"] and
            not row["value"]]
    assert ends == [(each.low, each.high) for each in intervals]


def test_a_line_says_where_its_value_stands_and_nothing_has_none() -> None:
    columns = (Column("saved", "ms", "improvement"), Column("note", is_text=True))
    table = Table("By RTT", columns, (
        (None, ""), (Estimate(1.5, (1.0, 2.0), 3), "x"), (Interval(1.0, 2.0), None),
        (Estimate(2.5), 7), (Rounded(Estimate(0.25, (0.0, 0.5)), 1), "")))
    told = report(findings=(Finding("fig5", "Figure 5", (table,)),))
    head, *lines = csv.reader(io.StringIO(exported("csv", told)))
    assert head == ["finding", "table", "row", "group", "column", "unit", "value", "low", "high"]
    saved, note = ["improvement", "saved", "ms"], ["", "note", ""]
    assert lines == [["fig5", "By RTT", *line] for line in (
        ["2", *saved, "1.5", "1.0", "2.0"], ["2", *note, "x", "", ""],
        ["3", *saved, "", "1.0", "2.0"], ["4", *saved, "2.5", "", ""], ["4", *note, "7", "", ""],
        ["5", *saved, "0.25", "0.0", "0.5"])]


@pytest.mark.parametrize("text", ['=HYPERLINK("x")', "+1", "-1+1", "@SUM(A1)", "\t=1", "\x1b[2J=1",
                                  "two\nlines"])
def test_no_spreadsheet_takes_a_strangers_text_for_a_formula(text: str) -> None:
    """In none of the places that a scenario's file has words for; a number stays one."""
    table = Table(text, (Column(text, text, text, is_text=True), Column("less")), ((text, -1.5),))
    told = report(findings=(Finding(text, text, (table,)),))
    _, words, number = csv.reader(io.StringIO(exported("csv", told)))
    for cell in (*words, *number[:6]):
        assert cell.isprintable() and cell[:1] not in ("=", "+", "-", "@")
    assert number[6] == "-1.5" and words[6].lstrip("'") == " ".join(text.split()).replace("\x1b", "")


def test_markdown_is_the_chapter() -> None:
    assert exported("md", report()).startswith("# zhao2019\n")


@pytest.mark.parametrize("form", EXPORTS)
def test_every_format_of_the_command_line_is_written_and_ends_in_one_new_line(form: str) -> None:
    text = exported(form, report())
    assert text.endswith("\n") and not text.endswith("\n\n")
