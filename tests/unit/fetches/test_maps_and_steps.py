"""Maps of windows, figures of steps with their claims, and the reasons of a saving or a loss."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firstflight.base.stats import Estimate
from firstflight.commands import flags
from firstflight.findings import drawing
from firstflight.findings.charts import LineChart
from firstflight.findings.claims import DIRECTION, NOT_MEASURED, NOT_REPRODUCED, REPRODUCED
from firstflight.findings.findings import Finding
from firstflight.runs import scenario_file
from firstflight.runs.kinds import RunData, Study
from firstflight.runs.results.records import FAIL, PASS, SKIPPED
from firstflight.study import registry
from firstflight.study.fetch_findings import analyse
from firstflight.study.fetches import KIND
from firstflight.figures.reasons import explain_changes, reasons
from firstflight.figures.what_ifs import MOST_TRIALS, changes_to_explain, what_if_trials
from firstflight.setting.limits import without
from firstflight.workloads.fetch.figures import kinds, steps
from firstflight.workloads.fetch.figures.cells import WindowChange, changes, settings
from firstflight.workloads.fetch.figures.reasons import WhatIfs, why_equal
from firstflight.workloads.fetch.figures.steps import _steep
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.scenario.scenario import Claim
from firstflight.workloads.fetch.trial import Trial
from tests.golden import stored, stored_questions
from tests.golden.reasons import ONE, asked, lifted, of_larger, saves
from tests.unit.core.example import whole
from tests.unit.drawing import samples
from tests.unit.fetches.small import MAP_OF_WINDOWS, SMALL, small


def scenario(folder: Path, *changes: tuple[str, str]) -> Any:
    """A scenario whose figure is a map of windows, at two response sizes."""
    return small(folder, (SMALL, MAP_OF_WINDOWS),
                 ("response_bytes = [9000]", "response_bytes = [9000, 60000]"), *changes)


def run(study: Study, times_ms: Any) -> RunData:
    """A run of a study. times_ms: gives the time of a trial, None for one that does not count."""
    records = []
    for trial in study.trials:
        time_ms = times_ms(trial)
        verdict = FAIL if time_ms is None else PASS
        records.append(Record(trial, True, verdict=verdict, total_ms=time_ms or 1.0))
    return RunData(Path("run"), {"kernel": "7.2", "virtual_time": True}, records)


def found(folder: Path, times_ms: Any) -> Any:
    """The finding on the map of windows. times_ms: as of run."""
    requested = scenario(folder)
    study = Study(KIND, requested, tuple(trial for sweep in requested.sweeps
                                 for trial in sweep.trials(requested.name, 1)), True)
    ((_, made),) = kinds.figures(analyse(requested, run(study, times_ms), True))
    return made[0]


def windows(finding: Any) -> list[list[list[int]]]:
    """The window in each square of each map, row by row."""
    return [[[square.value for square in row] for row in window_map.rows]
            for window_map in finding.chart.maps]


@pytest.mark.parametrize(("times_ms", "window"), [
    ({3: 400, 10: 300, 20: 200, 40: 200}, 20),  # 20 and 40 are equally fast: the smaller one
    ({3: 102, 10: 101, 20: 100, 40: 100}, 3),  # 2 % slower is sufficient
    ({3: 102.1, 10: 102.0, 20: 100, 40: 100}, 10),
    ({3: 400, 10: 100, 20: 150, 40: 180}, 10),  # larger windows are slower
    ({3: None, 10: 300, 20: 200, 40: None}, 20)])
def test_the_sufficient_window_is_the_smallest_within_two_percent_of_the_fastest(
        times_ms: dict[int, float | None], window: int, tmp_path: Path) -> None:
    finding = found(tmp_path, lambda trial: times_ms[trial.initcwnd])
    assert windows(finding) == [[[window] * 2] * 2] * 2
    enough = "8 of 8 cells (100 %)" if window <= 10 else "0 of 8 cells (0 %)"
    assert f"10 segments is enough in {enough}; " in finding.sentence
    excluded = sum(time_ms is None for time_ms in times_ms.values())
    assert {square.excluded for window_map in finding.chart.maps for row in window_map.rows
            for square in row} == {excluded}


def test_a_map_of_windows_is_empty_where_nothing_counts(tmp_path: Path) -> None:
    finding = found(tmp_path, lambda trial: None)
    assert finding.sentence == "Nothing that was measured counts."
    assert finding.chart.maps[0].rows == ((None, None), (None, None))
    assert finding.tables[0].rows[0] == ("56", None, None)
    samples.check_fits(drawing.figure_of(finding.chart))


def test_a_map_names_the_cell_that_was_not_measured(tmp_path: Path) -> None:
    requested = scenario(tmp_path)
    trials_but_the_last = tuple(requested.sweeps[0].trials(requested.name, 1))[:-1]
    study = Study(KIND, requested, trials_but_the_last, True)
    ((_, findings),) = kinds.figures(analyse(requested, run(study, lambda trial: 1.0), True))
    assert "1 of 8 cells (RTT 50 ms at 256 kbit/s)" in findings[0].missing


# One cell in so many of a grid -------------------------------------------------------

@pytest.mark.parametrize(("one_in", "rtt_count", "bandwidth_count"), [
    (16, 4, 4), (4, 7, 7), (1, 14, 14), (196, 2, 2)])
def test_a_coarse_grid_has_the_ends_and_values_between(one_in: int, rtt_count: int,
                                                       bandwidth_count: int) -> None:
    study = (registry.study_of(scenario_file.find("map_of_windows").sampled(one_in))
             if one_in > 1 else whole("map_of_windows"))
    (sweep,) = study.scenario.sweeps  # type: ignore[attr-defined]
    rtt_ms, bandwidth_kbps = sweep.lists["rtt_ms"], sweep.lists["bandwidth_kbps"]
    assert (len(rtt_ms), len(bandwidth_kbps)) == (rtt_count, bandwidth_count)
    assert (rtt_ms[0], rtt_ms[-1]) == (5, 2000)
    assert (bandwidth_kbps[0], bandwidth_kbps[-1]) == (250, 1e6)
    assert study.whole and len(study.trials) == rtt_count * bandwidth_count * 8 * 8
    assert study.head.name == ("map_of_windows" if one_in == 1 else f"map_of_windows_1in{one_in}")


def test_a_coarse_grid_is_read_again_from_the_text_that_its_run_stores() -> None:
    coarse = registry.study_of(scenario_file.find("map_of_windows").sampled(16))
    again = registry.study_of(scenario_file.of_run(coarse.head.name, coarse.head.text))
    assert again.trials == coarse.trials and again.head == coarse.head


@pytest.mark.parametrize(("word", "read"), [("full", "full"), ("1/16", 16), ("1/2", 2)])
def test_a_sample_is_read_as_one_in_so_many(word: str, read: str | int) -> None:
    assert flags.sample(word) == read


# Figures of steps ---------------------------------------------------------------------

TEXT = (stored_questions.FOLDER / "steps.toml").read_text(encoding="utf-8")


def steps_study(folder: Path, *changes: tuple[str, str]) -> Study:
    """The study of TEXT after these changes, each (old text, new text)."""
    text = TEXT
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    path = folder / "small.toml"
    path.write_text(text, encoding="utf-8")
    return KIND.study(scenario_file.read(path))


def records_of(study: Study) -> list[Record]:
    return stored_questions.as_modelled(study.trials)


def findings_of(study: Study, records: list[Record], folder: Path) -> dict[str, Finding]:
    """The findings on these records by name. Their figures are made, and not painted."""
    report = study.report(RunData(folder, {"virtual_time": True}, records))
    assert all(figure.axes for _, figure in drawing.figures(report))
    return {finding.name: finding for finding in report.findings}


def test_steps_have_no_curve_where_the_model_lacks_a_time(tmp_path: Path) -> None:
    study = steps_study(tmp_path)
    records = records_of(study)
    records[0] = replace(records[0], model_ms=None)
    chart = findings_of(study, records, tmp_path)["steps"].chart
    assert isinstance(chart, LineChart)
    assert [line.style for line in chart.columns[0][0].lines] == ["steps", "steps"]


def test_a_figure_whose_trials_were_all_skipped_says_why_and_has_no_table(
        tmp_path: Path) -> None:
    study = steps_study(tmp_path)
    records = [replace(record, verdict=SKIPPED, verdict_reason="needs Debian 13's programs")
               for record in records_of(study)]
    found = findings_of(study, records, tmp_path)["rounds"]
    assert found.missing == "its 4 trials were skipped: needs Debian 13's programs"
    assert not found.tables and found.chart is None

    records[3] = records_of(study)[3]
    assert findings_of(study, records, tmp_path)["rounds"].tables[0].rows[1][2] is not None


def test_the_sentence_on_round_trips_names_no_window_where_nothing_counts(tmp_path: Path) -> None:
    study = steps_study(tmp_path)
    without_large_chain = [
        replace(record, verdict=FAIL) if record.trial.chain_bytes == 16_000 else record
        for record in records_of(study)]
    found = findings_of(study, without_large_chain, tmp_path)
    assert found["rounds"].sentence.endswith("small bytes: 3; large bytes: nothing counts.")

    without_window_10 = [replace(record, verdict=FAIL) if record.trial.initcwnd == 10 else record
                         for record in records_of(study)]
    found = findings_of(study, without_window_10, tmp_path)
    assert found["rounds"].sentence.endswith("small bytes: 3; large bytes: more than 3.")
    assert found["steps"].sentence.startswith("Time to the first byte (ms): IW 3: ")
    assert "IW 10" not in found["steps"].sentence

    all_failed = [replace(record, verdict=FAIL) for record in records_of(study)]
    assert findings_of(study, all_failed, tmp_path)["steps"].sentence == (
        "Time to the first byte (ms): nothing that was measured counts.")


@pytest.mark.parametrize(("by", "down", "lines"), [
    ("chain_bytes", "record_bytes", ["record 4096 bytes", "record 16384 bytes"]),
    ("record_bytes", "chain_bytes", ["chain small", "chain large"])])  # the axis's labels
def test_lines_of_another_quantity_are_under_one_window(by: str, down: str, lines: list[str],
                                                        tmp_path: Path) -> None:
    study = steps_study(
        tmp_path, ("chain_bytes = [2000, 16000]",
                   "chain_bytes = [2000, 16000]\nrecord_bytes = [4096, 16384]"),
        ('by = "chain_bytes"\nwindows', f'by = "{by}"\ndown = "{down}"\nwindows'))
    chart = findings_of(study, records_of(study), tmp_path)["steps"].chart
    assert isinstance(chart, LineChart)
    assert [line.name for line in chart.columns[0][0].lines[:2]] == lines


def test_a_larger_window_has_a_darker_line_whatever_its_place_in_the_file(tmp_path: Path) -> None:
    study = steps_study(tmp_path, ("initcwnd = [3, 10]", "initcwnd = [10, 3]"))
    chart = findings_of(study, records_of(study), tmp_path)["steps"].chart
    assert isinstance(chart, LineChart)
    looks = {line.name: line.look for line in chart.columns[0][0].lines[:2]}
    assert looks == {"IW 3": 1, "IW 10": 2}


def test_a_curve_is_computed_at_the_byte_where_it_jumps() -> None:
    """A curve without a jump gets no more points than were requested."""
    known = _steep(range(0, 10_001, 100), lambda x: 100.0 if x < 4321 else 200.0)
    assert known[4320] == 100.0 and known[4321] == 200.0 and len(known) < 120
    assert list(known) == sorted(known)
    assert len(_steep(range(0, 1001, 100), float)) == 11
    above = _steep(range(0, 10_001, 100), lambda x: 1000.0 if x < 4321 else 1100.0)
    assert above[4320] == 1000.0 and above[4321] == 1100.0  # however high the whole curve is
    assert set(_steep([1, 50, 100], lambda x: 7.0).values()) == {7.0}


@pytest.mark.parametrize(("published", "deviations"), [
    ({1000: 391.7, 16_000: 2901.1}, [-1.2, -1.1]),  # of an axis of 3 s: points cover each other
    ({16_000: 2901.1}, [-1.1]), ({}, None),
    ({1000: 391.7, 16_000: 3000.0}, None)])  # 100 ms, which the axis shows
def test_deviations_are_drawn_apart_where_points_cover_what_was_published(
        published: dict[int, float], deviations: list[float] | None) -> None:
    measured = {1000: 390.5, 16_000: 2900.0}
    values = steps.CellMeans(
        by="response_bytes", of="initcwnd", across=tuple(measured), lines=(10,),
        means={(size, 10): ms for size, ms in measured.items()},
        published={(size, 10): ms for size, ms in published.items()},
        requested={}, labels={}, is_modelled=True, scenario_lines=(10,), records=())
    lines = steps._covered_deviations(values, ends=(0.0, 3100.0))
    found = [line.y for line in lines]
    assert found == ([] if deviations is None else [pytest.approx(deviations)])
    assert [line.x for line in lines] == [tuple(map(float, published))] * len(lines)


@pytest.mark.parametrize(("name", "ticks"), [
    ("today", ((1000.0, "today"), (2000.0, "today"))),
    ("ML-DSA-44 with two intermediates", ())])  # two of them would leave the figure: numbers fit
def test_an_axis_of_numbers_has_names_only_where_they_have_room(
        name: str, ticks: tuple[tuple[float, str], ...]) -> None:
    values = steps.CellMeans(
        by="chain_bytes", of="initcwnd", across=(1000, 2000), lines=(10,), means={},
        published={}, requested={}, labels={1000: name, 2000: name}, is_modelled=False,
        scenario_lines=(10,), records=())
    assert steps._ticks(values, is_log=False) == ticks


# Axes of steps -----------------------------------------------------------------------

@pytest.mark.parametrize(("values", "ends"), [
    ((1960.0, 2287.0), (1960 - 0.08 * 327, 2287 + 0.08 * 327)),  # 8 % of the range at each end
    ((305.0, 416.0), (305 - 0.08 * 111, 416 + 0.08 * 111)),
    ((100.0, 400.0), (0.0, 424.0)), ((-5.0, 10.0), (-5.9, 10.9)), ((7.0, 7.0), (0.0, 7.42))])
def test_an_axis_of_steps_begins_at_zero_only_where_differences_stay_visible(
        values: tuple[float, ...], ends: tuple[float, float]) -> None:
    assert steps._ends(values) == pytest.approx(ends)


@pytest.mark.parametrize(("values", "is_log"), [
    ((1, 10_240, 51_200, 102_400, 204_800), False),  # only one of the values is small
    ((1000, 10_000, 100_000, 1_000_000), True), ((2000, 60_000), False), ((0, 10, 5000), False)])
def test_an_axis_is_logarithmic_where_most_values_are_small(values: tuple[int, ...], is_log: bool
                                                            ) -> None:
    assert steps._is_log(values) == is_log


def test_an_axis_of_steps_has_the_scenarios_names() -> None:
    """The scenario has queues in bandwidth-delay products, so its ticks are not in packets."""
    study = KIND.study(scenario_file.find("beta_after_slow_start"))
    records = [replace(GOOD, trial=trial, verdict=PASS) for trial in study.trials]
    (chart,) = (finding.chart for finding in study.report(RunData(
        Path("run"), {"virtual_time": True}, records)).findings if finding.name == "total")
    assert isinstance(chart, LineChart)
    (plot,), = chart.columns
    assert [label for _, label in plot.ticks] == ["0.5 BDP", "1 BDP", "2 BDP"]
    assert [line.name for line in plot.lines][:2] == ["beta 0.7", "beta 0.5"]


# Claims on figures of steps -----------------------------------------------------------

CLIFFS = KIND.study(scenario_file.find("chou2026_cliffs"))
GOOD = stored.load("https").judge()


def sent_records(study: Study) -> list[Record]:
    """Records of handshakes that take a second round trip where the window holds too little."""
    records = []
    for trial in study.trials:
        segments = 1 + trial.chain_bytes // trial.mss
        records.append(replace(GOOD, trial=trial, flight_segments=segments,
                               handshake_round_trips=1 + (segments > trial.initcwnd)))
    return records


CLAIM = Claim(figure="rounds", says="s", compares=("initcwnd", "flight_segments"),
              expects="more_where")


def changed(records: list[Record], chain_bytes: int, **changes: Any) -> list[Record]:
    """The records, with changes in the trial that has this chain and a window of ten."""
    return [replace(record, **changes)
            if (record.trial.initcwnd, record.trial.chain_bytes) == (10, chain_bytes) else record
            for record in records]


def test_a_claim_on_trials_is_tested_on_each_of_them(tmp_path: Path) -> None:
    records = sent_records(CLIFFS)
    statement = steps.test_claim(CLAIM, "handshake_round_trips", records)
    assert statement.outcome == REPRODUCED and statement.measured == (
        "in 16 of 45 trials the number of segments of a server's handshake is larger than an"
        " initial window: 16 of these have more round trips than 1, and 0 of the others.")
    report = CLIFFS.report(RunData(tmp_path, {"virtual_time": True}, records))
    (reported,) = (statement for finding in report.findings if finding.name == "rounds"
                   for statement in finding.statements)
    assert reported.measured.startswith(statement.measured)
    assert reported.outcome == DIRECTION  # of the source only the abstract was read


@pytest.mark.parametrize(("chain_bytes", "changes", "word", "words"), [
    (30000, {"handshake_round_trips": 1}, DIRECTION, "15 of these"),
    (2000, {"handshake_round_trips": 2}, DIRECTION, "1 of the others"),
    (2000, {"flight_segments": 11}, DIRECTION, "in 17 of 45"),
    (2000, {"verdict": FAIL}, NOT_MEASURED, "1 of 45 trials do not count"),
    (2000, {"flight_segments": None}, NOT_MEASURED, "1 of 45 trials do not count")])
def test_a_tampered_trial_changes_the_result_of_a_claim(
        chain_bytes: int, changes: Any, word: str, words: str) -> None:
    statement = steps.test_claim(CLAIM, "handshake_round_trips",
                             changed(sent_records(CLIFFS), chain_bytes, **changes))
    assert statement.outcome == word and words in statement.measured


@pytest.mark.parametrize(("flights", "word", "words"), [
    ((9, 10), REPRODUCED, "in 2 of 2 trials"), ((9, 11), NOT_REPRODUCED, "in 1 of 2 trials"),
    ((9, None), NOT_MEASURED, "1 of 2 trials do not count")])
def test_a_claim_of_at_most_compares_two_columns_of_each_trial(
        flights: tuple[int | None, ...], word: str, words: str) -> None:
    claim = Claim(figure="flights", says="s", compares=("initcwnd",), expects="at_most")
    records = [replace(GOOD, trial=replace(GOOD.trial, initcwnd=10), flight_segments=flight)
               for flight in flights]
    statement = steps.test_claim(claim, "flight_segments", records)
    assert statement.outcome == word and words in statement.measured


def test_a_claim_on_larger_values_is_undetermined_where_none_is_larger() -> None:
    like = replace(GOOD, trial=replace(GOOD.trial, initcwnd=10))
    backwards = [replace(like, flight_segments=flight, handshake_round_trips=trips)
                 for flight, trips in ((1, 2), (90, 1))]
    assert steps.test_claim(CLAIM, "handshake_round_trips", backwards).outcome == NOT_REPRODUCED
    alone = steps.test_claim(CLAIM, "handshake_round_trips", [replace(like, flight_segments=90)])
    assert alone.outcome == NOT_MEASURED and alone.measured.startswith("undetermined: ")
    assert alone.measured.endswith("is larger than an initial window in 1 of 1 trials.")


# Which what-if trials a comparison needs. Words of its reasons: tests/golden/reasons.py ----

def test_a_comparison_without_what_if_trials_or_idle_times_has_no_reason() -> None:
    change, _, _ = asked(of_larger(lambda without: saves(-50.0)))
    assert explain_changes([change], WhatIfs()) == []
    old = replace(change, base=replace(change.base, records=[
        replace(record, link_idle_ms=None) for record in change.base.records]))
    faster = replace(old.saved, experiment=Estimate(400.0), absolute=Estimate(100.0))
    assert explain_changes([replace(old, saved=faster)], WhatIfs()) == []


def test_each_limit_is_lifted_and_named() -> None:
    trial = replace(ONE.trial, initrwnd=10, queue_packets=20, loss_percent=1.0, loss_burst=2.0,
                    jitter_ms=5.0, qdisc="fq", send_buffer_bytes=9000, chain_bytes=9000, seed=7,
                    uplink_kbps=28.0, nagle="on", kept=2, idle_ms=900.0)
    limits = WhatIfs().limits(trial)
    by_tag = {limit.tag: limit for limit in limits}
    assert [*by_tag] == [limit.tag for limit in WhatIfs().every_limit(trial)]
    for limit in limits:
        free = without(trial, (limit,))
        assert limit.tag not in {left.tag for left in WhatIfs().limits(free)}
        assert free.what_if == limit.tag and free.seed == trial.seed
        assert free.id.endswith(f"-without-{limit.tag}")
    every = without(trial, limits)
    assert re.fullmatch(Trial.PATTERNS["what_if"], every.what_if)
    assert (every.initrwnd, every.bandwidth_kbps, every.qdisc) == (
        1000, 10_000_000, "fifo")
    assert (every.uplink_kbps, every.kept, every.idle_ms) == (10_000_000, 0, 0)
    assert without(trial, (by_tag["bandwidth"],)).uplink_kbps == 28
    assert without(ONE.trial, (by_tag["bandwidth"],)).uplink_kbps == 10_000_000
    assert (every.loss_percent, every.loss_burst, every.jitter_ms) == (0, 1, 0)
    assert every.queue_packets == 1_000_000 and every.chain_bytes < 1000
    assert without(replace(trial, qdisc="cake"), limits).qdisc == "fifo"
    assert without(replace(trial, congestion_control="bbr"), limits).congestion_control == "cubic"


@pytest.mark.parametrize(("queue_from", "drawn", "packets"), [
    ("", None, (20, None)), ("1bdp", None, (82563, None)), ("auto", 21, (82563, 86691)),
    ("100000ms", None, (1_000_000, None))])
def test_a_queue_in_bdp_grows_with_the_bandwidth(
        queue_from: str, drawn: int | None, packets: tuple[int, int | None]) -> None:
    """Otherwise it would overflow at 10 Gbit/s, and the bandwidth would seem to protect."""
    trial = replace(ONE.trial, rtt_ms=100.0, queue_packets=20, queue_from=queue_from,
                    drawn_queue_packets=drawn)
    (limit,) = [limit for limit in WhatIfs().limits(trial) if limit.tag == "bandwidth"]
    free = without(trial, (limit,))
    assert (free.queue_packets, free.drawn_queue_packets) == packets


def test_an_answer_takes_at_most_forty_what_if_trials_and_all_of_a_comparison_or_none() -> None:
    change, _, count = asked(of_larger(lambda without: saves(0.0)))
    assert count == 8  # two windows: without three limits together, and without each of them
    several = [replace(change, base=replace(change.base, requested=replace(
        change.base.requested, rtt_ms=100.0 + place)), experiment=replace(
            change.experiment, records=[replace(record, trial=replace(
                record.trial, rtt_ms=100.0 + place)) for record in change.experiment.records]))
        for place in range(5)]
    trials = what_if_trials(several, WhatIfs())
    assert len(trials) <= MOST_TRIALS
    assert {len([trial for trial in trials if trial.rtt_ms == 100.0 + place and
                 trial.initcwnd == 10]) for place in range(5)} == {4}
    huge = replace(change, experiment=replace(change.experiment, records=[replace(
        record, trial=replace(record.trial, response_bytes=50_000_000))
        for record in change.experiment.records]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WhatIfs, "LONG_SECONDS", 1.0)
        assert what_if_trials([huge], WhatIfs()) == []


def test_each_limit_of_a_known_reason_is_lifted_while_there_is_time() -> None:
    """What-if trials for an unknown reason may take longer than the requested trials."""
    change, what_ifs, count = asked(of_larger(lambda without: saves(100.0)), qdisc="fq")
    assert count == 4  # receive window and pacing; the queue dropped nothing
    slow = replace(what_ifs, records=())
    cost_s = slow.cost_s(change.base.requested)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WhatIfs, "SECONDS", 0.5 * cost_s)  # with the requested trials 2.5
        patch.setattr(WhatIfs, "LONG_SECONDS", 0.5 * cost_s)
        assert {trial.what_if for trial in what_if_trials([change], slow)} == {"receive-window"}
        harm, _, _ = asked(of_larger(lambda without: saves(-50.0)), qdisc="fq")
        assert len(what_if_trials([harm], slow)) == 4  # queue and pacing, under two windows
        unchanged, _, _ = asked(of_larger(lambda without: saves(0.0)), qdisc="fq")
        assert what_if_trials([unchanged], slow) == []  # ten trials would take too long


def test_what_if_trials_have_repeats_where_chance_decides_and_one_where_loss_is_lifted() -> None:
    change, what_ifs, _ = asked(of_larger(lambda without: saves(-50.0)), loss_percent=1.0)
    by_limits: dict[str, int] = {}
    for record in what_ifs.records:
        by_limits[record.trial.what_if] = by_limits.get(record.trial.what_if, 0) + 1
    assert by_limits == {"queue": 6, "loss": 2, "receive-window": 6, "queue_loss": 2}


def test_a_limit_without_which_the_faster_window_is_slower_is_no_cause_besides_another() -> None:
    """Where nothing else is known, that limit is the reason."""
    def network(trial: Trial, pause_harms: bool) -> tuple[float, float]:
        restarts = trial.initcwnd == 10 and not (pause_harms and "restart" in lifted(trial))
        slower_ms = 50.0 if restarts or "receive-window" in lifted(trial) else 0.0
        return saves(-slower_ms)

    labels = []
    for pause_harms in (True, False):
        change, what_ifs, _ = asked(lambda trial: network(trial, pause_harms), kept=1,
                                    idle_ms=900.0)
        labels.append([reason.label for reason in reasons(change, what_ifs)])
    assert labels == [["slow start after the pause"], ["receive window"]]


def test_equal_times_of_a_busy_link_or_of_one_flight_have_a_reason_without_what_if_trials(
        ) -> None:
    equal, _, _ = asked(of_larger(lambda without: saves(0.0)))
    assert why_equal(equal, WhatIfs()) == "link busy"
    one = replace(equal, base=replace(equal.base, records=[
        replace(record, response_round_trips=1) for record in equal.base.records]),
        experiment=replace(equal.experiment, records=[
            replace(record, response_round_trips=1) for record in equal.experiment.records]))
    assert why_equal(one, WhatIfs()) == "fits one flight"
    faster, _, _ = asked(of_larger(lambda without: saves(90.0)))
    assert why_equal(faster, WhatIfs()) == ""


def test_an_inexplicable_comparison_has_a_line_alone_and_none_among_several() -> None:
    odd, what_ifs, _ = asked(lambda trial: saves(
        90.0 if trial.initcwnd == 10 else 0.0, idle_ms=0.0))
    assert explain_changes([odd], what_ifs)
    assert explain_changes([odd], what_ifs, among=[odd, odd]) == []


def test_a_scenario_explains_its_largest_saving_and_its_largest_harm() -> None:
    def at(rtt_ms: float, saved_ms: float) -> WindowChange:
        change, _, _ = asked(of_larger(lambda without: saves(saved_ms)))
        return replace(change, base=replace(change.base, requested=replace(
            change.base.requested, rtt_ms=rtt_ms)))
    all_changes = [at(1, 10.0), at(2, 90.0), at(3, -30.0), at(4, -70.0)]
    assert changes_to_explain(all_changes, is_question=False) == [all_changes[1], all_changes[3]]
    assert changes_to_explain(all_changes[:2], is_question=False) == [all_changes[1]]
    assert changes_to_explain(all_changes, is_question=True)[0] is all_changes[1]
    assert changes_to_explain([], is_question=False) == []
    assert changes_to_explain(all_changes[3:], is_question=False) == all_changes[3:]


def test_the_reason_of_one_comparison_among_several_names_its_network() -> None:
    one, what_ifs, _ = asked(lambda trial: saves(120.0 if trial.initcwnd == 10 else 0.0))
    other = changes(settings([replace(record, trial=replace(record.trial, rtt_ms=5000.0))
                              for cell in (one.base, one.experiment) for record in cell.records]))
    (alone,) = explain_changes([one], what_ifs)
    (among,) = explain_changes([one], what_ifs, among=[one, *other])
    assert "RTT" not in alone and "(RTT 100 ms, 3 → 10)" in among


def test_comparisons_without_what_if_trials_for_want_of_time_come_last_and_are_counted() -> None:
    one, what_ifs, _ = asked(of_larger(lambda without: saves(100.0)))
    records = [replace(record, trial=replace(record.trial, rtt_ms=5000.0),
                       total_ms=4 * (record.total_ms or 0), link_idle_ms=4 * record.link_idle_ms)
               for cell in (one.base, one.experiment) for record in cell.records
               if record.link_idle_ms is not None]
    lines = explain_changes([one, *changes(settings(records))], what_ifs)
    assert ["want of time" in line for line in lines] == [False, True]
