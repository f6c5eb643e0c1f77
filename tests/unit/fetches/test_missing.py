"""What is told where something lacks: cells, windows, captures, an answer, or what counts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from firstflight.findings.charts import GroupChart
from firstflight.findings.findings import Report
from firstflight.net.pcap import HEADER as PCAP_HEADER
from firstflight.runs import scenario_file
from firstflight.runs.kinds import Overrides, RunData, Study
from firstflight.runs.results.records import FAIL
from firstflight.study import registry
from firstflight.study.fetches import reading
from firstflight.study.fetches.figures.timelines import timelines
from firstflight.study.fetches.scenario.server import OWN
from firstflight.study.fetches.verify.record import Record
from firstflight.study.population import ablation
from tests.golden import stored, stored_fetches, stored_questions
from tests.golden.stored_fetches import RAW_AND_CAUSES

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


@pytest.mark.parametrize("kept", [(), ("client",), ("client", "server")])
def test_captures_without_a_response_draw_nothing(kept: tuple[str, ...], tmp_path: Path) -> None:
    """Not kept, of one side alone, or without data."""
    trial = without_data(stored.load("iw3"))
    record = stored.load("iw3").judge()
    for side in kept:
        (tmp_path / f"{record.trial.id}-{side}.pcap").write_bytes(
            PCAP_HEADER + getattr(trial, side))
    assert timelines([record], tmp_path) == ()


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
    report = requested(lambda record: replace(record, verdict=FAIL, verdict_reason="RTT: observed 1")
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
