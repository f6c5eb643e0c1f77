"""docs/REPRODUCE.md, the scenarios' pages and README have the numbers of the kept findings."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.outside import examples
from docs import update as results
from firstflight.base.errors import FirstFlightError
from firstflight.base.stats import Estimate
from firstflight.findings.findings import Cell, Finding, Report, Rounded
from firstflight.findings.render import data, markdown
from firstflight.runs import scenario_file
from tests.golden.rendering import REPORTS

ANEW = "/usr/bin/python3 docs/update.py writes it again"
MOST_BYTES = 1_200_000  # of all kept findings together, of which the map of windows is a sixth


def pages(reports: dict[str, Report]) -> dict[Path, str]:
    return results.pages(reports, results.OUTPUT, results.FINDINGS)


def readme(reports: dict[str, Report]) -> str:
    return results.in_readme(results.README, reports.values())


def reproduce(reports: dict[str, Report]) -> str:
    return results.reproduce(reports)


@pytest.fixture(name="reports", scope="module")
def _reports() -> dict[str, Report]:
    return results.kept_reports(results.FINDINGS)


def test_the_pages_render_the_kept_findings(reports: dict[str, Report]) -> None:
    written = pages(reports)
    assert set(results.FINDINGS.glob("*.md")) == set(written)
    for path, text in written.items():
        assert text == path.read_text(encoding="utf-8"), ANEW
        assert markdown.UNRENDERED not in text


def test_the_kept_findings_have_the_words_of_their_scenarios(reports: dict[str, Report]) -> None:
    for name, report in reports.items():
        path = results.FINDINGS / f"{name}.json"
        assert data.dumps(report) == path.read_text(encoding="utf-8"), ANEW


def test_titles_claims_and_notes_of_kept_findings_are_their_scenarios(
        reports: dict[str, Report]) -> None:
    """update.py copies figures' titles, statements and a trace's note only with a newer run."""
    for name, report in reports.items():
        scenario, _ = results.SAMPLES.get(name, (name, ""))
        file = scenario_file.find(scenario)
        titles = {figure["name"]: figure["title"] for figure in file.raw.get("figure", [])
                  if "title" in figure}
        statements = {statement.text for found in report.findings for statement in found.statements}
        notes = {note for found in report.findings for table in found.tables
                 for note in table.notes}

        for found in report.findings:
            assert found.title == titles.get(found.name, found.title), name
        assert {claim["says"] for claim in file.raw.get("claim", [])} <= statements, name
        if file.head().kind == "trace" and file.head().note:
            assert " ".join(file.head().note.split()) in notes, name


def test_a_page_has_the_first_rows_of_a_long_table_and_says_so(reports: dict[str, Report]) -> None:
    whole = reports["map_of_windows"]
    assert max(len(table.rows) for found in whole.findings for table in found.tables) > 200
    for report in reports.values():
        for found, short in zip(report.findings, results.with_short_tables(report).findings):
            for table, first in zip(found.tables, short.tables):
                assert len(first.rows) <= results.MOST_ROWS
                said = f"{report.name}.json in this folder has all {len(table.rows)} rows."
                assert (said in first.notes) == (len(table.rows) > results.MOST_ROWS)
                assert first.rows == table.rows[:results.MOST_ROWS]


def test_readme_quotes_the_kept_findings(reports: dict[str, Report]) -> None:
    assert readme(reports) == results.README.read_text(encoding="utf-8"), ANEW


def test_the_round_trip_that_readme_names_is_that_of_100_ms(reports: dict[str, Report]) -> None:
    """It is what the fastest cell saves at this RTT, which is the median of all RTTs."""
    (saved,) = re.findall(r"one\s+round\s+trip\s+on\s+fast\s+links,\s+([\d.]+)\s+ms",
                          readme(reports))
    (raw,) = (finding for finding in reports["zhao2019"].findings if finding.name == "raw")
    total_ms = []
    for table in raw.tables:  # of 3 segments, and of 10
        (row,) = [row for row in table.rows if row[0] == 100]
        ours, _, _ = str(row[-1]).partition("/")  # in the column of the fastest link
        total_ms.append(int(ours))
    with_3, with_10 = total_ms
    assert with_3 - with_10 == round(float(saved)) and 95 < float(saved) <= 100


def test_reproduce_quotes_the_kept_findings(reports: dict[str, Report]) -> None:
    written = reproduce(reports)
    assert written == results.OUTPUT.read_text(encoding="utf-8"), ANEW
    assert markdown.UNRENDERED not in written and not re.search(r"\{\w+\}", written)


def test_an_answer_in_questions_is_on_the_page_of_its_scenario() -> None:
    """Whole scenarios take minutes, so their answers are looked up on pages.

    benchmarks.outside.examples runs every other command.
    """
    commands, _, _ = examples.examples(examples.QUESTIONS.read_text(encoding="utf-8"))
    answers = [(results.FINDINGS / f"{words[1]}.md", lines) for typed, lines in commands
               if (words := typed.split())[1] in scenario_file.names()]
    assert answers
    for page, lines in answers:
        assert not [line for line in lines if line.strip() not in page.read_text(encoding="utf-8")]


def test_the_gallery_renders_the_kept_findings(reports: dict[str, Report]) -> None:
    written = results.gallery(results.OUTPUT, reports, results.FINDINGS)
    assert written == (results.DOCS / "GALLERY.md").read_text(encoding="utf-8"), ANEW
    assert markdown.UNRENDERED not in written
    assert re.findall(r"^## (\w+)$", written, re.MULTILINE) == list(reports)


def change_number(cell: Cell) -> Cell:
    """The cell with another number, and with another digit for each of its digits but 9."""
    if isinstance(cell, Rounded):
        return replace(cell, value=change_number(cell.value))  # type: ignore[arg-type]
    if isinstance(cell, Estimate):
        return replace(cell, value=cell.value * 1.1 + 1)
    if isinstance(cell, str):
        return re.sub(r"[0-8]", lambda digit: str(int(digit[0]) + 1), cell)
    return cell * 1.1 + 1 if isinstance(cell, (int, float)) else cell


def change_numbers(finding: Finding) -> Finding:
    """The finding as if other numbers had been measured. The first cell names a row, and stays."""
    tables = []
    for table in finding.tables:
        rows = tuple((row[0], *map(change_number, row[1:])) for row in table.rows)
        tables.append(replace(table, rows=rows))
    statements = tuple(replace(statement, numbers=tuple(map(change_number, statement.numbers)))
                       for statement in finding.statements)
    return replace(finding, tables=tuple(tables), statements=statements)


@pytest.mark.parametrize("name", sorted(path.stem for path in results.FINDINGS.glob("*.json")))
def test_a_changed_number_in_a_finding_changes_what_quotes_it(name: str,
                                                              reports: dict[str, Report]) -> None:
    # Without the opening sentence, which looks up cells by numbers of other cells.
    kept = replace(reports[name], opening="")
    changed = replace(kept, findings=tuple(map(change_numbers, kept.findings)))
    assert markdown.page(changed, "") != markdown.page(kept, "")
    after = {**reports, name: changed}
    before = {**reports, name: kept}
    for document, template in ((readme, "README"), (reproduce, "REPRODUCE")):
        quotes = re.findall(rf"{{{name}\.([^}}]*)}}", results.template(template))
        has_numbers = any(quote.rpartition(" / ")[2] not in ("bars", "result") for quote in quotes)
        assert (document(after) != document(before)) == has_numbers


def test_readme_is_refused_without_the_findings_that_it_quotes() -> None:
    with pytest.raises(FirstFlightError, match="zhao2019.fig5_bw / >5000 .*: there is no such"):
        readme({})


@pytest.mark.parametrize("name", sorted(REPORTS))
def test_a_kept_report_is_rendered_as_the_run_itself(name: str) -> None:
    report = REPORTS[name]()
    text = data.dumps(report)
    assert markdown.chapter(data.loads(text)) == markdown.chapter(report)
    assert data.dumps(data.loads(text)) == text


def test_the_kept_findings_are_small_and_of_whole_runs() -> None:
    files = sorted(results.FINDINGS.glob("*.json"))
    assert {path.stem for path in files} <= {*scenario_file.names(), *results.SAMPLES}
    assert sum(path.stat().st_size for path in files) < MOST_BYTES
    for path in files:
        facts = json.loads(path.read_text())["facts"]
        assert facts["finished_at"] and not facts.get("partial")


def test_the_published_set_ups_first_line_has_the_numbers_that_were_found(
        reports: dict[str, Report]) -> None:
    """Nothing fills in the numbers of a scenario's first line."""
    report = reports["zhao2019_as_published"]
    (causes,) = (finding for finding in report.findings if finding.name == "causes")
    reproduced, times = causes.bars["reproduced"], sum(causes.bars.values())
    constants = re.match(r"(\d+) of (\d+) ", causes.statements[0].measured)
    assert constants is not None
    other_numbers, numbers = constants.groups()
    assert times + int(other_numbers) == int(numbers)
    assert f"{reproduced} of the {times} times" in report.claim
    assert f"its other {other_numbers} numbers are" in report.claim
