"""Findings that documents are made from: kept whole, read again, and refused where damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from firstflight.base.errors import FirstFlightError
from firstflight.findings.charts import Chart
from firstflight.findings.render import data
from tests.unit.render.reports import FINDINGS, report

KEPT = {"engine": "uml", "kernel": "7.2.11", "machine": "a machine", "virtual_time": True,
        "seed": 7, "started_at": "2026-01-01", "finished_at": "2026-01-02", "emulated_s": 12.5,
        "wall_s": 3.5, "project": "1.0", "partial": False}


def test_what_a_document_says_of_a_run_is_kept_and_nothing_of_its_folders() -> None:
    whole = report(facts={**KEPT, "command": ["./run.sh"], "sysctls": {"a": "b"}})
    again = data.loads(data.dumps(whole))
    assert again.facts == KEPT
    assert (again.name, again.claim, again.verified, again.count, again.summary) == (
        whole.name, whole.claim, whole.verified, whole.count, whole.summary)


def test_findings_are_kept_but_for_what_only_a_figure_shows() -> None:
    whole = report(findings=(FINDINGS[0],
                             *FINDINGS[1:]))
    first, mix, last = data.loads(data.dumps(whole)).findings
    assert (first.tables, first.bars, first.published) == (
        FINDINGS[0].tables, FINDINGS[0].bars, FINDINGS[0].published)
    assert first.sentence == ""
    assert first.chart == Chart("", ()) and last.chart is None
    assert mix.statements == FINDINGS[1].statements and last.missing == FINDINGS[2].missing


@pytest.mark.parametrize(("content", "why"), [
    ("{", "holds no findings: Expecting"), ("3", "holds no findings: is no report"),
    ('{"is": "Table", "title": ""}', "holds no findings: "),
    ('{"is": "Other"}', "holds no findings: 'Other'"),
    *((content, "holds no findings") for content in (
        "", "[1]", "{}", "\x00", '{"is": "Report"}', '{"is": "Report", "other": 1}')),
    (None, "cannot be read: No such file")])
def test_what_is_no_kept_report_is_refused_with_its_name(tmp_path: Path, content: str | None,
                                                         why: str) -> None:
    path = tmp_path / "kept.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(FirstFlightError, match=f"kept.json: {why}"):
        data.read(path)
