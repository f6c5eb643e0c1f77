"""The lines that a run prints on the files that it wrote and on figures that it did not draw."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from firstflight.commands.measure import files_written
from firstflight.findings.charts import Chart
from firstflight.findings.findings import Finding
from firstflight.findings.render.text import not_drawn, some_not_drawn
from tests.unit.render.reports import report


def test_several_figures_are_counted_and_other_files_are_named() -> None:
    run = [Path("run") / name for name in ("trials.csv", "what_if.csv", "report.html")]
    four = [Path("run") / f"x_{number}.png" for number in range(4)]
    (line,) = files_written([*run, *four], full=True).splitlines()
    assert line == "trials.csv, what_if.csv, report.html, 4 figures in run"
    (line,) = files_written([*run, *four[:1]], full=True).splitlines()
    assert line.endswith("report.html, x_0.png in run")


def test_the_line_names_the_page_for_tables_only_where_a_page_was_written() -> None:
    with_page = files_written([Path("run/trials.csv"), Path("run/report.html")], full=False)
    assert "the page, or --full" in with_page
    assert files_written([Path("run/trials.csv")], full=False).endswith("(every table: --full)")


def test_the_line_has_the_command_that_draws_where_nothing_was_drawn() -> None:
    part = replace(report(findings=()), name="zhao2019", facts={
        "arguments": ["zhao2019", "--iw", "3,16", "--rtt", "300"]})
    assert "./run.sh zhao2019 --iw 3,16 draws" in not_drawn(part, Path("results/x"))
    charted = replace(part, findings=(Finding("a", "A", chart=Chart("A", ())),))
    assert "./plot.py --run results/x does" in not_drawn(charted, Path("results/x"))


def test_figures_that_a_run_lacks_are_named_with_the_reason() -> None:
    charted = Finding("a", "A", chart=Chart("A", ()))
    lacking = [Finding(name, "B", missing="none in '3000'") for name in ("b", "c")]
    assert some_not_drawn(replace(report(findings=()), findings=(charted, *lacking))) == (
        "not drawn: b, c: none in '3000'\n")
    assert some_not_drawn(replace(report(findings=()), findings=(charted,))) == ""
    assert some_not_drawn(replace(report(findings=()), findings=(*lacking,))) == ""
