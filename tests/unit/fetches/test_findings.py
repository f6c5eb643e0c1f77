"""The report of a run: its figures' tables, sentences, what is left out and what is missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest


from firstflight.findings.findings import Finding, Interval, Report
from firstflight.runs import runs
from firstflight.runs.results.records import FAIL, SKIPPED
from firstflight.study.fetches.verify.record import Record
from tests.golden import stored_fetches

Change = Callable[[Record], Record]


def zhao(records: Any, **facts: Any) -> Report:
    return stored_fetches.report("zhao2019", records, **facts)


def changed(records: list[Record], **by_place: Record) -> list[Record]:
    return [by_place.get(f"at{place}", record) for place, record in enumerate(records)]


def finding(report: Report, name: str) -> Finding:
    return next(each for each in report.findings if each.name == name)


def failed(record: Record) -> Record:
    return replace(record, ok=False, verdict=SKIPPED, error="curl 28: timed out", total_ms=None)


def test_what_is_left_out_is_counted(stored: list[Record]) -> None:
    refused = replace(stored[40], verdict=FAIL,
                      verdict_reason="RTT: observed 90.000 ms, expected 100 ms; new check: observed 1,"
                                     " asked 2")
    report = zhao(changed(stored, at5=failed(stored[5]), at40=refused))
    assert report.summary == ("126 of 128 trials verified on the wire; excluded: 1 failed transfer,"
                              " 1 failed verdict",)
    assert report.sentences[0].startswith("126 of 128 transfers were verified")
    (table,) = finding(report, "fig5_rtt").tables
    assert table.column("excluded") == [2, 0, 2, 0, 0, 0, 0, 0]
    assert any(note.startswith(f"{table.rows[0][0]}: 7 of 8 cells count; excluded: 1 failed"
                               " transfer, 1 record without its counterpart")
               for note in table.notes), table.notes
    assert report.failures is not None and report.checks is not None
    assert report.failures.column("reason") == [refused.verdict_reason, "curl 28: timed out"]
    judged = {row[0]: row[2:] for row in report.checks.rows}
    assert judged["RTT"] == (126, 1, 1) and judged["size"] == (127, 0, 1)
    assert judged["new check"] == (None, 1, None)
    with_real_time = zhao(stored, virtual_time=False).checks
    assert with_real_time is not None and "model" not in with_real_time.column("check")


def test_a_figure_without_its_cells_says_how_to_get_them(stored: list[Record]) -> None:
    report = zhao(stored[:4])
    missing = [each.missing for each in report.findings if each.missing]
    assert len(missing) == 3 and all("./run.sh --scenario zhao2019" in why for why in missing)
    assert report.findings[0].name == "cells"  # where no figure has rows, the cells speak
    assert "3 → 10. Of 2 comparisons: 1 faster" in report.answer.sentence
    spoiled = zhao([failed(record) if record.trial.rtt_ms == 20 else record for record in stored])
    assert "bucket 20 counts (16 failed transfers)" in finding(spoiled, "fig5_rtt").missing
    assert finding(spoiled, "fig5_bw").chart is not None


def test_several_clients_in_the_place_of_another_are_not_told_as_one(stored: list[Record]) -> None:
    mixed = [replace(record, trial=replace(record.trial, client=("wget", "libcurl")[place % 2]))
             for place, record in enumerate(stored)]
    report = zhao(mixed)
    for name in ("fig5_rtt", "fig5_bw", "fig5_bdp", "raw"):
        assert "the records mix libcurl and wget in sweep 'grid'" in finding(report, name).missing
    assert finding(report, "raw").title == "paper/zhao2019_raw.csv"
    assert not finding(zhao([replace(record, trial=replace(record.trial, client="wget"))
                             for record in stored]), "raw").missing


def test_a_part_of_a_scenario_is_its_cells(stored: list[Record]) -> None:
    report = stored_fetches.report("zhao2019", stored[:4], whole=False)
    assert [each.name for each in report.findings] == ["cells", "sentences"]
    assert [table.title for table in report.findings[0].tables] == [
        "What the larger window changed", "Every cell"]


def test_an_interrupted_run_says_so(stored: list[Record]) -> None:
    assert "was interrupted" in zhao(stored[:4], state=runs.RUNNING).sentences[-1]
    assert "was interrupted" not in zhao(stored[:4]).sentences[-1]


def test_causes_are_counted(stored: list[Record]) -> None:
    clean = [replace(record, retransmissions=0, handshake_retransmissions=0,
                     retransmission_cause="") for record in stored]
    assert zhao(clean).causes is None
    again = [replace(record, retransmissions=1, retransmission_cause="tail loss probe"
                     if place < 2 else "", lost_segments=0 if place < 2 else 1)
             if place < 3 else record for place, record in enumerate(clean)]
    report = zhao(again)
    assert report.causes is not None
    assert report.causes.rows == (("tail loss probe", 2), ("packets were lost", 1))
    assert any("3 of 128 transfers retransmitted data, 1 of them lost data" in sentence
               for sentence in report.sentences)


@pytest.mark.filterwarnings("error")
def test_a_metric_that_is_nothing_in_some_repeats_has_a_percentage(stored: list[Record]) -> None:
    """Of a baseline that was resampled to nothing, too: it is none, not an error."""
    network = stored[0].trial.bandwidth_kbps
    repeats = [replace(record, trial=replace(record.trial, repeat=repeat), total_ms=float(
        repeat == 1 and record.trial.bandwidth_kbps == network) * record.trial.initcwnd)
        for record in stored for repeat in (1, 2)]
    percents = finding(zhao(repeats), "fig5_rtt").tables[0].column("", "improved")
    assert percents and all(value == value for value in percents)


def test_repeats_give_intervals(stored: list[Record]) -> None:
    repeats = [replace(record, trial=replace(record.trial, repeat=repeat),
                       total_ms=(record.total_ms or 0) * (1 + repeat / 50 * (
                           record.trial.initcwnd / 10)))
               for record in stored for repeat in range(1, 6)]
    table = finding(zhao(repeats), "fig5_rtt").tables[0]
    assert all(isinstance(cell, Interval)
               for cell in table.column("95 % interval", "improved"))
