"""What a run of pages says: the answer, its limits, and what is drawn."""

from __future__ import annotations

from dataclasses import replace

import pytest

from firstflight.base.errors import FirstFlightError
from firstflight.findings.charts import ObjectChart, PageChart
from firstflight.runs.kinds import RunData
from firstflight.runs.results.records import FAIL
from firstflight.study.page import analysis, findings
from firstflight.study.page.record import PageRecord, read_file
from tests.golden import stored_page


def two(**changes: float) -> list[PageRecord]:
    """One page under 3 and 10 segments; changes: of the latter."""
    records = [record for record in stored_page.run().records
               if record.trial.part == "plain" and record.trial.connections == 2]
    assert [record.trial.initcwnd for record in records] == [3, 10]
    return [records[0], replace(records[1], **changes)]  # type: ignore[arg-type]


def said(records: list[PageRecord]) -> str:
    those = analysis.settings(records)
    return findings.sentence(those, analysis.labels(those, {}))


def test_a_faster_page_is_told_with_its_document() -> None:
    assert said(two(page_ms=200.0, document_ms=100.0)) == (
        "With 10 instead of 3 segments, the page is there 92.7 ms earlier, after 200 instead of"
        " 293 ms (31.7 %); its document 31.1 ms earlier.")


def test_a_slower_page_is_told() -> None:
    assert said(two(page_ms=300.0)) == (
        "3 segments are the fastest: the page is there after 293 ms, and 7.3 ms later with 10.")


def test_a_page_that_no_window_changes_is_told() -> None:
    (first, second) = two()
    assert said([first, replace(second, page_ms=first.page_ms)]) == (
        "No window changes the page: with 3 and 10 it takes 293 ms.")


def test_several_settings_are_told_by_what_distinguishes_them() -> None:
    records = [record for record in stored_page.run().records if record.trial.part == "versions"]
    assert said(records).startswith("HTTP/1.1: 10 instead of 3 segments save ")
    assert "; HTTP/2: 10 instead of 3 segments save " in said(records)


def notes(records: list[PageRecord]) -> list[str]:
    (setting,) = analysis.settings(records)
    return findings.notes(setting, "")


def test_drops_of_the_queue_are_told() -> None:
    assert notes(two(queue_drops=4))[0] == "The queue drops none with 3 and 4 packets with 10."
    assert "drops" not in notes(two())[0]


@pytest.mark.parametrize(("idle_ms", "is_limit"), [(83.1, True), (89.0, True), (98.0, False)])
def test_the_bandwidth_is_named_where_the_packets_fill_the_link(idle_ms: float, is_limit: bool
                                                               ) -> None:
    """From the first byte, at 83.1 ms, to the end, at 283.1, it may send nothing for 10 ms."""
    text = " ".join(notes(two(idle_ms=idle_ms, page_ms=283.1, first_byte_ms=83.1)))
    assert ("its bandwidth is the limit" in text) == is_limit


def test_a_page_that_does_not_count_is_in_no_number() -> None:
    records = two(page_ms=1.0)
    records[1] = replace(records[1], verdict=FAIL, verdict_reason="path: wrong")
    assert said(records) == "With 3 segments the page is there after 293 ms, its document after 131 ms."
    (setting,) = analysis.settings(records)
    assert setting.saved(10) is None and setting.saved_percent(10) is None


def test_losses_are_compared_pair_by_pair() -> None:
    records = [record for record in stored_page.run().records if record.trial.part == "lossy"]
    (setting,) = analysis.settings(records)
    saved = setting.saved(10)
    assert saved is not None and saved.draws == 2 and saved.absolute.interval is not None
    by = {(record.trial.initcwnd, record.trial.repeat): record.page_ms or 0 for record in records}
    assert saved.absolute.value == pytest.approx(
        ((by[3, 1] - by[10, 1]) + (by[3, 2] - by[10, 2])) / 2)


def test_what_the_interval_holds_is_no_difference() -> None:
    """Two repeats, one with a timeout: their interval is wider than the difference."""
    lossy = [record for record in stored_page.run().records if record.trial.part == "lossy"]
    assert said(lossy).startswith("No window differs significantly from 3 segments, with which the"
                                  " page takes 800 ms: it is there 37.6 ± 274 ms earlier with 10")
    (setting,) = analysis.settings(lossy)
    (made,) = [finding.chart for finding in findings.findings(
        stored_page.study().scenario, stored_page.run()) if finding.name == "times"]
    assert isinstance(made, PageChart)
    assert [bar.unsure for _, group in made.groups for bar in group if bar] == [False] * 4
    unsure = findings._bar(setting, 10)
    assert unsure is not None and unsure.unsure and unsure.percent
    alike = [replace(record, page_ms=800.0 - 10 * record.trial.initcwnd - record.trial.repeat)
             for record in lossy]
    assert said(alike).startswith("With 10 instead of 3 segments, the page is there 70.0 ms earlier")


def test_the_waterfall_shows_the_objects_that_were_measured() -> None:
    made = {finding.name: finding for finding in findings.findings(
        stored_page.study().scenario, stored_page.run())}
    chart = made["waterfall"].chart
    assert isinstance(chart, ObjectChart) and len(chart.panels) == 2
    first, second = chart.panels
    assert [len(panel.objects) for panel in chart.panels] == [4, 4]
    assert first.objects[2].due_ms - first.objects[2].named_ms == 3.25
    assert chart.to_ms == max(each.end_ms for panel in chart.panels for each in panel.objects)
    assert first.objects[0].opens and not first.objects[3].opens
    times = made["times"].chart
    assert isinstance(times, PageChart) and times.windows == (3, 10)
    assert [name for name, _ in times.groups] == ["1 connection", "2 connections"]


def test_a_missing_or_damaged_file_is_told_in_one_line() -> None:
    run = stored_page.run()
    with pytest.raises(FirstFlightError, match="objects.csv: cannot be read"):
        findings.findings(stored_page.study().scenario,
                          RunData(run.folder / "captures", run.facts, run.records))
    for content in (b"", b"number\n1\n", b"\xff", b"number,size_bytes,connection,is_first,"
                    b"named_ms,start_ms,first_byte_ms,end_ms\n1,2,1,1,0,0,0,nan\n"):
        with pytest.raises(FirstFlightError, match="objects.csv: is damaged"):
            read_file(content, "objects.csv")
