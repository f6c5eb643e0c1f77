"""What limits a page, and when its reasons are measured.

The words of the reasons are in tests/golden/page_reasons.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from firstflight.figures.reasons import reasons as reasons_of
from firstflight.figures.what_ifs import what_if_trials
from firstflight.runs.kinds import Overrides, RunData
from firstflight.setting.limits import without
from firstflight.study import pages as page_study
from firstflight.study.questions import page as pages
from firstflight.workloads.page import analysis, findings, reasons
from firstflight.workloads.page.objects import PageObject, equal_objects
from firstflight.workloads.page.reasons import PageWhatIfs
from firstflight.workloads.page.record import PageRecord
from firstflight.workloads.page.trial import PageTrial
from tests.golden import stored_page
from tests.golden.answers import browsed_pages
from tests.golden.page_reasons import ONE, asked
from tests.golden.reasons import saves

OBJECTS = (PageObject(9000), PageObject(5000, 1, 9000, parse_ms=20.0), PageObject(
    7000, 2, 5000, think_ms=30.0))
PAGE = replace(stored_page.two()[0].trial, objects=OBJECTS, initrwnd=1000, connections=2)


def lifted(tag: str, trial: PageTrial) -> PageTrial:
    """The what-if trial without the limit of this tag."""
    (limit,) = [limit for limit in PageWhatIfs().limits(trial) if limit.tag == tag]
    return without(trial, (limit,))


def test_each_limit_of_a_page_is_lifted() -> None:
    assert lifted("connections", PAGE).connections == 3
    assert [(page_object.named_by, page_object.at_byte)
            for page_object in lifted("names", PAGE).objects] == [(0, 0), (1, 0), (1, 0)]
    assert all(page_object.parse_ms == page_object.think_ms == 0
               for page_object in lifted("waits", PAGE).objects)

    over_http_2 = replace(PAGE, http="2", connections=1, chain_bytes=9000, server="nginx")
    free = lifted("shared", over_http_2)
    assert (free.http, free.connections, free.chain_bytes) == ("1.1", reasons.CONNECTIONS, 9000)
    assert lifted("chain", over_http_2).chain_bytes == 400
    assert "connections" not in {limit.tag for limit in PageWhatIfs().limits(over_http_2)}


def test_a_what_if_page_has_a_name_and_a_cell_of_its_own() -> None:
    free = lifted("waits", PAGE)
    assert free.id == f"{PAGE.id}-without-waits"
    cells = PageWhatIfs()
    assert cells.cell_of(free) != cells.cell_of(PAGE)
    assert cells.cell_of(replace(free, repeat=7, seed=3)) == cells.cell_of(free)


def scenario(**lists: Any) -> Any:
    """The scenario of a question about a page of eight equal objects."""
    return pages.scenario("own", pages.RequestedPage(None, 8), Overrides(
        {"rtt_ms": (60.0,), "initcwnd": (3, 10), **lists}))


def test_pages_have_what_if_trials_in_questions_and_not_in_scenarios_or_browsers() -> None:
    made = scenario()
    records = [replace(record, trial=replace(record.trial, objects=OBJECTS))
               for record in stored_page.two(page_ms=100.0)]
    assert reasons.what_if_trials(made, records, [])
    assert not reasons.what_if_trials(stored_page.study().scenario, records, [])
    assert not reasons.what_if_trials(made, browsed_pages(), [])
    run = RunData(stored_page.run().folder, {}, browsed_pages())
    assert reasons.sentences(made, run) == [reasons.IN_A_BROWSER]


def test_the_table_of_a_page_has_the_reason_of_each_window() -> None:
    (change,), what_ifs = asked(lambda free: saves(66.0 if "names" in free else 0.0))
    records = [*change.base.records, *change.experiment.records]
    run = RunData(stored_page.run().folder, {}, records, what_ifs.records)
    table = findings.answer(scenario(), run).table
    assert table is not None
    place = [column.name for column in table.columns].index("reason")
    assert [row[place] for row in table.rows] == ["", "late names"]


def test_a_study_of_a_question_about_a_page_has_what_if_trials() -> None:
    study = page_study.KIND.study_of(scenario())
    records = []
    for place, (record, trial) in enumerate(zip(stored_page.two(), study.trials)):
        saved_ms = 200.0 * place  # under the second window
        records.append(replace(record, page_ms=500 - saved_ms, idle_ms=300 - saved_ms,
                               trial=replace(trial, repeat=1)))

    trials = page_study.KIND.what_if_trials(study, records, [])
    assert {trial.what_if for trial in trials} == {"connections", "names"}


def test_a_what_if_trial_that_drops_packets_is_repeated_before_it_is_believed() -> None:
    """Here the queue overflows with a connection for each object.

    Then the larger window is 60 ms faster in odd repeats and 60 ms slower in even ones.
    """
    base = replace(ONE.trial, queue_packets=20, initrwnd=1000, connections=1,
                   objects=equal_objects(8, 9000, 9000))

    def overflowing(trial: PageTrial) -> PageRecord:
        drops = "connections" in trial.what_if and "queue" not in trial.what_if
        harm_ms = 60.0 * (-1) ** trial.repeat if drops and trial.initcwnd == 10 else 0.0
        return replace(ONE, trial=trial, page_ms=500.0 - harm_ms, queue_drops=9 if drops else 0)

    records = [overflowing(replace(base, initcwnd=window)) for window in (3, 10)]
    (change,), what_ifs = reasons.changes(analysis.group_settings(records)), PageWhatIfs()
    for _ in range(4):
        done = {record.trial for record in what_ifs.records}
        more = [trial for trial in what_if_trials([change], what_ifs) if trial not in done]
        what_ifs = PageWhatIfs([*what_ifs.records, *map(overflowing, more)])
    again = [record.trial for record in what_ifs.records if record.trial.repeat > 1]
    assert {trial.what_if for trial in again} == {"connections"}
    assert len({trial.drawn_rtt_ms for trial in again if trial.initcwnd == 10}) >= 4
    assert [reason.label for reason in reasons_of(change, what_ifs)] == ["same flights"]


def test_a_what_if_trial_of_one_draw_neither_adds_to_a_reason_nor_is_a_cause() -> None:
    """A what-if trial in which the queue drops packets, and that is not repeated, is one draw."""
    labels = []
    for saved_ms in (100.0, -100.0):
        (change,), what_ifs = asked(lambda without: saves(
            0.0 if "connections" in without else saved_ms), connections=2)
        for drops in (0, 9):
            once = replace(what_ifs, records=[
                replace(record, queue_drops=drops * ("connections" in record.trial.what_if))
                for record in what_ifs.records])
            labels.append([reason.label for reason in reasons_of(change, once)])
    assert labels == [["round trips, number of connections"], ["round trips"],
                      ["number of connections"], ["not found"]]
