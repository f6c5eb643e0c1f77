"""Cells in which one measurement is one draw: what is repeated, how, and what the answer says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firstflight.figures.reasons import CHANCE, MOST_PROPOSED, reasons
from firstflight.figures.what_ifs import what_if_trials
from firstflight.runs.kinds import Overrides, RunData
from firstflight.runs.results.records import PASS
from firstflight.setting import draws
from firstflight.study import fetches, pages as page_study
from firstflight.study.questions import page as pages, question
from firstflight.workloads.fetch.figures.answer import answer_of_cells
from firstflight.workloads.fetch.figures.cells import changes, settings
from firstflight.workloads.fetch.figures.reasons import WhatIfs
from firstflight.workloads.fetch.record.record import Record, is_one_draw
from firstflight.workloads.page import analysis
from firstflight.workloads.page.record import PageRecord

REQUESTED: dict[str, Any] = {
    "rtt_ms": (50.0,), "bandwidth_kbps": (3000.0,), "response_bytes": (150_000,),
    "initcwnd": (10, 40), "queue": ("20",)}


def study_of(repeat: int | None = None, **lists: Any) -> Any:
    """The study of REQUESTED, with these lists in place of its own."""
    scenario = question.scenario("own", Overrides({**REQUESTED, **lists}, repeat=repeat))
    return fetches.KIND.study_of(scenario)


def first_records(study: Any, **columns: Any) -> list[Record]:
    """A record of the first repeat of each cell, with these columns."""
    return [Record(trial, True, total_ms=500.0, verdict=PASS, **columns) for trial in study.trials
            if trial.repeat == 1]


def run_of(records: Sequence[Any], folder: Path = Path()) -> RunData[Any]:
    return RunData(folder, {}, records)


def first_run(study: Any, **columns: Any) -> RunData[Any]:
    return run_of(first_records(study, **columns))


@pytest.mark.parametrize(("lists", "columns", "number"), [
    ({}, {"queue_drops": 0}, 1),
    ({}, {"queue_drops": 1}, draws.REPEATS),
    ({}, {"uplink_queue_drops": 1}, draws.REPEATS),
    ({"qdisc": ("cake",)}, {}, draws.REPEATS), ({"qdisc": ("fq_codel",)}, {}, draws.REPEATS),
    ({"congestion_control": ("bbr",)}, {"response_round_trips": 9}, draws.REPEATS),
    ({"congestion_control": ("bbr",)}, {"response_round_trips": 4}, 1),
    ({"congestion_control": ("cubic",)}, {"response_round_trips": 9}, 1)])
def test_a_cell_in_which_one_measurement_is_one_draw_is_repeated(
        lists: dict[str, Any], columns: dict[str, Any], number: int) -> None:
    study = study_of(**lists)
    trials = fetches.KIND.with_draws(study, first_run(study, **columns), seed=1)
    assert len(trials) == 2 * number
    assert trials[:2] == list(study.trials)  # the network that was requested is one of them


def test_a_study_with_random_loss_gets_no_draws_besides_its_repeats() -> None:
    study = study_of(loss_percent=(1.0,), repeat=3)
    trials = fetches.KIND.with_draws(study, first_run(study, queue_drops=4), seed=1)
    assert list(trials) == list(study.trials)


def test_a_record_with_queue_drops_is_one_draw_unless_it_is_of_a_population() -> None:
    record = first_records(study_of(), queue_drops=4)[0]
    assert is_one_draw(record)
    assert not is_one_draw(replace(record, trial=replace(record.trial, part="users")))


def test_all_windows_have_the_same_draws_and_each_repeat_its_own() -> None:
    study = study_of()
    added = fetches.KIND.with_draws(study, first_run(study, queue_drops=1), seed=7)[2:]
    networks = [(trial.drawn_rtt_ms, trial.drawn_queue_packets, trial.seed) for trial in added]
    assert networks[::2] == networks[1::2] and len(set(networks)) == draws.REPEATS - 1
    assert all(abs(rtt_ms - 50) <= 1 and abs(queue - 20) <= 1 for rtt_ms, queue, _ in networks)
    assert {queue for _, queue, _ in networks} == {19, 20, 21}
    assert {trial.path.rtt_ms for trial in added} == {rtt_ms for rtt_ms, _, _ in networks}
    assert {trial.path.down.queue_packets for trial in added} == {19, 20, 21}
    assert len({trial.id for trial in (*study.trials, *added)}) == 2 * draws.REPEATS
    again = fetches.KIND.with_draws(study, first_run(study, queue_drops=1), seed=8)[2:]
    assert {trial.drawn_rtt_ms for trial in again}.isdisjoint(rtt_ms for rtt_ms, _, _ in networks)


@pytest.mark.parametrize("queue_packets", [1, 2, 1000, 100_000])
def test_a_drawn_queue_is_near_the_one_requested_and_holds_a_packet(queue_packets: int) -> None:
    most = max(1, round(0.02 * queue_packets))
    found = {draws.draw_network(50, queue_packets, seed)["drawn_queue_packets"]
             for seed in range(200)}
    assert min(found) >= max(1, queue_packets - most) and max(found) <= queue_packets + most
    assert len(found) > 1


@pytest.mark.parametrize(("drops", "drawn"), [(0, 0), (1, 4)])
def test_a_cell_whose_repeats_are_requested_has_that_number(drops: int, drawn: int) -> None:
    study = study_of(repeat=5)
    trials = fetches.KIND.with_draws(study, first_run(study, queue_drops=drops), seed=1)
    assert len(trials) == 10
    assert sum(trial.drawn_rtt_ms is not None for trial in trials) == 2 * drawn


@pytest.mark.parametrize(("repeat", "drops", "number"), [
    (None, 0, 1), (None, 1, draws.REPEATS), (3, 0, 3), (3, 1, 3), (1, 1, 1)])
def test_pages_are_repeated_as_fetches_are(repeat: int | None, drops: int, number: int) -> None:
    made = pages.scenario("own", pages.RequestedPage(None, 18), Overrides(
        {"rtt_ms": (150.0,), "bandwidth_kbps": (3000.0,), "initcwnd": (4, 10)}, repeat=repeat))
    study = page_study.KIND.study_of(made)
    records = [PageRecord(trial, True, page_ms=900.0, queue_drops=drops, verdict=PASS)
               for trial in study.trials if trial.repeat == 1]
    trials = page_study.KIND.with_draws(study, run_of(records), seed=1)
    assert len(trials) == 2 * number
    drawn = [trial for trial in trials if trial.drawn_rtt_ms is not None]
    assert len(drawn) == (2 * (number - 1) if drops else 0)
    assert all(trial.path.rtt_ms == trial.drawn_rtt_ms for trial in drawn)


# What the answer says of draws ---------------------------------------------------------

def drawn_records(slower_ms: list[float], **lists: Any) -> list[Record]:
    """Records of 10 segments, which take 500 ms, and of 40, which take so much longer."""
    study = study_of(repeat=len(slower_ms), **lists)
    trials = fetches.KIND.with_draws(study, first_run(study, queue_drops=1), seed=1)
    records = []
    for trial in trials:
        longer_ms = slower_ms[trial.repeat - 1] if trial.initcwnd == 40 else 0.0
        records.append(Record(trial, True, total_ms=500.0 + longer_ms, queue_drops=1, verdict=PASS))
    return records


def test_an_effect_that_its_draws_do_not_share_has_no_sign_and_no_reason() -> None:
    records = drawn_records([300.0, -280.0, 310.0, -330.0])
    (change,) = changes(settings(records))
    assert change.effect == 0
    assert [reason.label for reason in reasons(change, WhatIfs())] == [CHANCE]
    assert what_if_trials([change], WhatIfs()) == []


def test_the_answer_to_a_question_has_two_notes_on_its_draws() -> None:
    cells = settings(drawn_records([300.0, -280.0, 310.0, -330.0]))
    assert len(answer_of_cells(cells, changes(cells), is_question=True).notes) == 2


def test_single_draws_are_noted_in_a_questions_answer_and_in_no_scenarios() -> None:
    records = drawn_records([300.0, -280.0, 310.0, -330.0])
    single = [record for record in records if record.trial.repeat == 1]
    assert draws.note_on_draws([record.trial for record in single], False) == []
    cells = settings(single)
    assert len(answer_of_cells(cells, changes(cells), is_question=True).notes) == 2
    assert not answer_of_cells(cells, changes(cells), is_question=False).notes


def test_an_effect_that_all_draws_share_has_an_interval() -> None:
    (change,) = changes(settings(drawn_records([300.0, 280.0, 310.0, 330.0])))
    assert change.effect == -1 and change.saved.absolute.interval is not None


@pytest.mark.parametrize("slower_ms", [
    [300.0, -280.0, 310.0, -331.0] * 5, [300.0, -200.0, 310.0, -300.0] * 5,
    [100.0, -10.0, 90.0, -40.0]])
def test_an_effect_that_may_be_chance_names_the_repeats_that_would_decide(
        slower_ms: list[float]) -> None:
    (change,) = changes(settings(drawn_records(slower_ms)))
    (reason,) = reasons(change, WhatIfs())
    needed = len(slower_ms) * (change.half_ms / change.saved_ms) ** 2
    found = re.search(r"--repeat (\d+)", reason.text)
    assert (needed > MOST_PROPOSED) == (found is None)
    assert found is None or needed <= int(found[1]) <= 1.1 * needed + 1


@pytest.mark.parametrize(("slower_ms", "count"), [
    ([300.0, 301.0, 299.0, 300.0] * 5, 5), ([300.0, 360.0, 240.0, 310.0] * 5, 10),
    ([300.0, 600.0, 100.0, 310.0] * 5, 20)])
def test_a_what_if_trial_is_repeated_until_its_interval_is_narrow(
        slower_ms: list[float], count: int) -> None:
    """Narrow is a tenth of the effect. It has never more repeats than the requested trials."""
    (change,) = changes(settings(drawn_records(slower_ms, qdisc=("fq",))))
    repeats = {trial.repeat for trial in what_if_trials([change], WhatIfs())
               if trial.what_if == "pacing"}
    assert len(repeats) == count


def test_a_what_if_trial_has_the_draws_where_the_queue_still_decides() -> None:
    (change,) = changes(settings(drawn_records([0.0, 1.0, 2.0, 3.0])))
    tried: dict[bool, set[float | None]] = {True: set(), False: set()}
    for trial in what_if_trials([change], WhatIfs()):
        tried["queue" in trial.what_if.split("_")].add(trial.drawn_rtt_ms)
    assert tried[True] == {None} and len(tried[False]) == 4


def page_settings(*page_ms: list[float]) -> list[analysis.Setting]:
    """One setting under 4, 10, … segments, with these times of its pages."""
    made = pages.scenario("own", pages.RequestedPage(None, 18), Overrides(
        {"rtt_ms": (150.0,), "bandwidth_kbps": (3000.0,),
         "initcwnd": (4, 10, 25)[:len(page_ms)]}, repeat=len(page_ms[0])))
    study = page_study.KIND.study_of(made)
    times = dict(zip((4, 10, 25), page_ms))
    records = [PageRecord(trial, True, page_ms=times[trial.initcwnd][trial.repeat - 1],
                          document_ms=300.0, queue_drops=1, verdict=PASS)
               for trial in study.trials]
    return analysis.group_settings(records)


def test_a_page_has_no_faster_window_where_its_draws_differ() -> None:
    (setting,) = page_settings([900.0, 905.0, 910.0, 895.0], [1700.0, 300.0, 1400.0, 200.0])
    assert setting.fastest.window == 4 and setting.effect(10) == 0


def test_a_page_names_the_fastest_of_those_that_are_faster_for_sure() -> None:
    """The lowest mean may be chance."""
    (setting,) = page_settings([900.0, 905.0, 910.0, 895.0], [850.0, 856.0, 861.0, 846.0],
                               [1700.0, 300.0, 1100.0, 200.0])
    assert setting.fastest.window == 10 and (setting.effect(10), setting.effect(25)) == (1, 0)


def test_equal_pages_have_no_interval() -> None:
    (setting,) = page_settings([900.0] * 3, [900.0] * 3)
    assert setting.windows[4].page.interval is None
    saved = setting.saved(10)
    assert saved is not None and saved.absolute.interval is None
