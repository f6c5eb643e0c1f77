"""The report of a run: what it says where something lacks, and what decided besides the window."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firstflight.findings.charts import GroupChart
from firstflight.findings.findings import Finding, Report
from firstflight.runs import runs, scenario_file
from firstflight.runs.kinds import Overrides, RunData, Study
from firstflight.runs.results.records import FAIL, SKIPPED
from firstflight.study import registry
from firstflight.study.fetches import reading
from firstflight.study.fetches.record import Record
from firstflight.study.fetches.scenario.scenario import Scenario
from firstflight.study.fetches.scenario.server import OWN
from firstflight.study.population import ablation
from tests.golden import stored, stored_fetches, stored_questions
from tests.golden.stored_fetches import RAW_AND_CAUSES


def zhao(records: Any, **facts: Any) -> Report:
    return stored_fetches.report("zhao2019", records, **facts)


def changed(records: list[Record], **by_place: Record) -> list[Record]:
    return [by_place.get(f"at{place}", record) for place, record in enumerate(records)]


def finding(report: Report, name: str) -> Finding:
    return next(each for each in report.findings if each.name == name)


def failed(record: Record) -> Record:
    return replace(record, ok=False, verdict=SKIPPED, error="curl 28: timed out", total_ms=None)


def test_a_check_that_is_not_known_any_more_has_its_row(stored: list[Record]) -> None:
    """Of a run that an older version judged."""
    refused = replace(stored[40], verdict=FAIL, verdict_reason="RTT: observed 90.000 ms, expected"
                      " 100 ms; new check: observed 1, asked 2")
    report = zhao(changed(stored, at5=failed(stored[5]), at40=refused))
    assert report.checks is not None
    judged = {row[0]: row[2:] for row in report.checks.rows}
    assert judged["RTT"] == (126, 1, 1) and judged["size"] == (127, 0, 1)
    assert judged["new check"] == (None, 1, None)
    in_real_time = zhao(stored, virtual_time=False).checks
    assert in_real_time is not None and "model" not in in_real_time.column("check")


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


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_metric_that_is_nothing_in_some_repeats_has_a_percentage(stored: list[Record]) -> None:
    """Of a baseline that was resampled to nothing, too: it is none, not an error."""
    network = stored[0].trial.bandwidth_kbps
    repeats = [replace(record, trial=replace(record.trial, repeat=repeat), total_ms=float(
        repeat == 1 and record.trial.bandwidth_kbps == network) * record.trial.initcwnd)
        for record in stored for repeat in (1, 2)]
    percents = finding(zhao(repeats), "fig5_rtt").tables[0].column("", "improved")
    assert percents and all(value == value for value in percents)


# What is told where something lacks ---------------------------------------------------

NGINX, PLAIN = stored.load("nginx"), stored.load("nginx_plain")


def without_data(trial: stored.Stored) -> stored.Stored:
    """As if its server had never answered."""
    return trial.captured(*([packet for packet in stored.read(side)
                             if not (packet.to_client and packet.payload_bytes)]
                            for side in (trial.client, trial.server)))


# In the packets ----------------------------------------------------------------------

def test_a_server_that_did_not_answer_is_a_failed_verdict() -> None:
    record = without_data(PLAIN).judge()
    assert (record.verdict, record.verdict_reason) == (
        FAIL, "capture: no request with an answer to it")


def test_the_certificate_of_ones_own_server_has_no_size_to_compare() -> None:
    own = json.dumps({"command": "serve {p}", "ca": "/c/root.pem"})
    mine = NGINX.requested(server=OWN, own_server=own, chain_bytes=0)
    record = mine.judge()
    assert record.counts and record.flight_bytes == NGINX.judge().flight_bytes


# In the records ----------------------------------------------------------------------

def requested(change: Callable[[Record], Record] = lambda record: record,
          **lists: list[float]) -> Report:
    """A question of which zhao2019's golden run knows the answer."""
    made = registry.own_question("own", Overrides({
        "rtt_ms": [20, 50, 100], "bandwidth_kbps": [1000], "response_bytes": [9000],
        "initcwnd": [3, 10], "initrwnd": [27], "queue": ["1000"], **lists}, client="curl"))
    assert isinstance(made, Study)
    cells = {replace(trial, scenario="zhao2019") for trial in made.trials}
    return made.report(RunData(Path("own"), stored_fetches.FACTS, [
        change(record) for record in stored_fetches.stored("zhao2019") if record.trial in cells]))


def names(report: Report) -> list[str]:
    return [finding.name for finding in report.findings]


def test_a_map_of_one_window_compares_nothing() -> None:
    grid: dict[str, list[float]] = {"bandwidth_kbps": [56, 1000]}
    assert "map" in names(requested(**grid)) and "map" not in names(requested(**grid, initcwnd=[3]))


def test_of_a_cell_that_does_not_count_there_is_no_bar() -> None:
    report = requested(
        lambda record: replace(record, verdict=FAIL, verdict_reason="RTT: observed 1")
                   if record.trial.rtt_ms == 50 else record)
    (found,) = (finding for finding in report.findings if finding.name == "bars")
    assert isinstance(found.chart, GroupChart)
    assert [(label, [bar is None for bar in bars]) for label, bars in found.chart.groups] == [
        ("20", [False, False]), ("50", [True, True]), ("100", [False, False])]
    (table,) = found.tables
    assert table.rows[1][0] == "50" and set(table.rows[1][1:]) <= {None, ""}
    assert found.sentence == ("RTT 20 ms: 120 ms with 3, 120 ms with 10; RTT 50 ms: nothing"
                              " counts; RTT 100 ms: 356 ms with 3, 280 ms with 10.")


def test_of_a_map_without_a_square_the_sentence_says_so() -> None:
    report = requested(lambda record: replace(record, verdict=FAIL), bandwidth_kbps=[56, 1000])
    (found,) = (finding for finding in report.findings if finding.name == "map")
    assert found.sentence == "Nothing that was measured counts."
    assert {cell for row in found.tables[0].rows for cell in row[1:]} == {None}


def test_lines_and_squares_of_cells_that_were_not_measured_say_so() -> None:
    report = stored_questions.steps_of(slice(0, -1))
    assert [finding.missing.partition(" (")[0] for finding in report.findings] == [
        "1 of 2 cells"] * 2
    assert all("were not measured; measure with ./run.sh" in finding.missing
               for finding in report.findings)


def test_without_a_population_that_is_explained_there_are_no_steps() -> None:
    part = stored_fetches.scenario("dukkipati2010").drawn
    plain = tuple(replace(each, explained=False) for each in part.populations)
    assert ablation.explained(replace(part, populations=plain), []) == []


# In the files ------------------------------------------------------------------------

def test_sweeps_of_which_raw_values_alone_are_published_are_measured_too() -> None:
    """The figures of another scenario come along only where something is published of them."""
    own = RAW_AND_CAUSES.replace("[as_published]", """[[figure]]
name = "ours"
title = "Ours"
kind = "improvement"
sweep = "grid"
by = "rtt_ms"
baseline_initcwnd = 3
experiment_initcwnd = 10
metric = "total_ms"

[as_published]""")
    found = reading.read_scenario(scenario_file.parsed("mine", own))
    assert found.figures == () and [sweep.name for sweep in found.sweeps] == ["grid"]


# What others than the window decided is told ------------------------------------------

def met(stored: list[Record], **columns: object) -> list[Record]:
    """The run, its first fetch with a window of 10 as if it had met this."""
    place = next(place for place, record in enumerate(stored) if record.trial.initcwnd == 10
                 and not record.retransmission_cause)
    return [*stored[:place], replace(stored[place], **columns),
            *stored[place + 1:]]  # type: ignore[arg-type]


def limited(stored: list[Record]) -> list[Record]:
    return met(stored, limited_by="receive window", seen_first_flight=7)


def dropping(stored: list[Record]) -> list[Record]:
    return met(stored, queue_drops=3, random_drops=1, lost_segments=4, retransmissions=4)


def of_figures(report: Report) -> list[str]:
    """The sentence and the notes of each figure with a chart."""
    return [text for found in report.findings if found.chart for text in
            (found.sentence, " ".join(found.tables[0].notes))]


def test_what_does_not_count_is_not_told_of_a_figure(stored: list[Record]) -> None:
    records = met(stored, limited_by="receive window", verdict="fail", verdict_reason="RTT: x")
    assert not any("receive window" in text for text in of_figures(
        stored_fetches.report("zhao2019", records)))


def test_the_verdict_names_the_limit_with_numbers(stored: list[Record]) -> None:
    note = "10 requested, first flight 7: limited by the receive window"
    cells = stored_fetches.report("zhao2019", limited(stored), whole=False).findings[0].tables[1]
    (own,) = [each for each in cells.notes if each.endswith(note)]
    assert cells.column("verdict").count(f"1/1 {own.partition(' 10')[0]}") == 1


def test_losses_of_the_queue_stand_apart_from_random_ones(stored: list[Record],
                                                          scenario: Scenario) -> None:
    report = stored_fetches.report("zhao2019", dropping(stored), whole=False)
    whole = stored_fetches.report("zhao2019", dropping(stored)).trials
    assert report.trials is None, "it would repeat the table of cells"
    for table in (report.findings[0].tables[1], whole):
        assert table is not None
        for name, count in (("dropped by queue", 3), ("lost at random", 1)):
            assert [cell for cell in table.column(name, "observed") if cell != ""] == [count]
    assert report.causes is not None and {
        ("packets were lost at random", 1), ("the queue dropped packets", 1)
    } <= set(report.causes.rows)
    assert any("(the queue dropped packets in 1)" in each for each in report.sentences)
    plain = stored_fetches.report("zhao2019", stored, whole=False).findings[0].tables[1]
    assert "dropped by queue" not in [column.name for column in plain.columns]
