"""Drawn populations: rows and trials, fitted parameters, weighted bars, held-out bars, causes."""

from __future__ import annotations

import hashlib
import lzma
import re
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path

import pytest

from firstflight.base.errors import FirstFlightError, UsageError
from firstflight.base.words import plain
from firstflight.findings.findings import Report, count_bars
from firstflight.runs import scenario_file
from firstflight.runs.kinds import NOTHING, Overrides
from firstflight.runs.results.records import FAIL, PASS
from firstflight.study.fetches import KIND
from firstflight.study.population import ablation, findings as fit
from firstflight.study.population.ablation import is_near
from firstflight.study.population.findings import population_findings
from firstflight.workloads.fetch.scenario import reading
from firstflight.workloads.fetch.figures import kinds
from firstflight.workloads.fetch.figures.bar_figure import BarFigure, NoBars
from firstflight.workloads.fetch.figures.drawn_bars import bar_figure, pair_of, responses_by_part
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.scenario import rows
from firstflight.workloads.fetch.scenario.population import percentile_of
from firstflight.workloads.fetch.scenario.scenario import Scenario
from firstflight.workloads.fetch.trial import Trial
from tests.golden import stored, stored_fetches
from tests.unit.core.example import whole

NAME = "dukkipati2010"


def test_reported_parameters_are_those_that_the_rows_were_drawn_with() -> None:
    drawn = {table["name"]: table for table in scenario_file.read(
        rows.FOLDER / f"{NAME}.toml", "x").raw["population"]}
    table = fit.fit_findings(NAME)[0].tables[0]
    reported = dict(zip(table.column("parameter"), table.column("value")))

    def word(value: object) -> str:
        return ("yes" if value is True else ", ".join(map(str, value)) if isinstance(value, list)
                else plain(value))  # type: ignore[arg-type]

    # First the parameters of AvgDC, then those that differ in the other two populations.
    expected = {name: word(value) for name, value in drawn["avgdc"]["mechanism"].items()}
    assert {*list(reported)[:len(expected)]} == {*expected}
    for part, title in (("windows", "AvgDC, six windows"), ("slowdc", "SlowDC")):
        differing = dict(drawn[part]["mechanism"])
        if "rtt_at_most_ms" in drawn[part]:
            differing["rtt_at_most_ms"] = drawn[part]["rtt_at_most_ms"]
        for name, value in differing.items():
            expected[f"{name}, {title}"] = word(value)
    assert reported == expected


def test_a_held_out_population_has_no_parameter_of_its_own() -> None:
    """Held-out figures are those of slowdc_held_out, which has the parameters fitted to AvgDC."""
    scenario = reading.read_scenario(scenario_file.find(NAME))
    held_out = {figure.sweep for figure in scenario.figures if figure.held_out}
    assert held_out == {"slowdc_held_out"}
    avgdc, _, slowdc, apart = scenario_file.read(rows.FOLDER / f"{NAME}.toml",
                                                 "x").raw["population"]
    assert {**avgdc["mechanism"], **slowdc["mechanism"], **apart["mechanism"]} == avgdc["mechanism"]
    slow = {figure.name for figure in scenario.figures if figure.sweep == "slowdc"}
    assert slow == {"fig6", "table3_slowdc", "table4"}  # fitted: three parameters of their own


def test_a_damaged_file_of_fits_is_refused_by_name(monkeypatch: pytest.MonkeyPatch,
                                                   tmp_path: Path) -> None:
    monkeypatch.setattr(fit, "FITS", tmp_path)
    assert fit.fit_findings(NAME) == ()
    for damaged in ("{", "[]", '{"is": "Finding"}'):
        (tmp_path / f"{NAME}.json").write_text(damaged, encoding="utf-8")
        with pytest.raises(FirstFlightError, match="dukkipati2010.json: holds no findings"):
            fit.fit_findings(NAME)


# Responses that a larger window makes slower ------------------------------------------


@pytest.mark.parametrize(("more_ms", "verdict", "is_slower"), [
    (1.5, PASS, True), (0.9, PASS, False), (-5.0, PASS, False), (1.5, FAIL, False),
    (None, PASS, False)])
def test_a_response_is_slower_from_a_millisecond_on(more_ms: float | None, verdict: str,
                                                    is_slower: bool) -> None:
    base = stored.load("iw3").judge()
    latency_ms = None if more_ms is None else (base.latency_ms or 0.0) + more_ms
    assert ablation.is_slower(base, replace(base, latency_ms=latency_ms,
                                              verdict=verdict)) is is_slower


# Drawn populations --------------------------------------------------------------------

# What each segment of a window saves in these parts, in ms; in the others it is 1.
SAVED = {"avgdc-clean": 2.0, "avgdc-network": 4.0, "avgdc-lossy": -1.0}


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return stored_fetches.scenario(NAME)


@pytest.fixture(scope="module")
def records(scenario: Scenario) -> list[Record]:
    """Two responses of a client in every bucket of Figure 5, for each part.

    Each segment of a window saves a millisecond, or what SAVED has.
    """
    made = []
    parts = [(part.name, part.initcwnd) for part in scenario.drawn.populations]
    # The first five steps are measured. The network and the losses leave every third response as it
    # was, and a step has only the responses that it changes.
    parts += [(f"avgdc-{cause.name}", (3, 10)) for cause in scenario.drawn.steps[:5]]
    for part, windows in parts:
        clients = [(rtt, bandwidth) for rtt in (15.0, 40, 90, 150, 400, 900, 2500, 4000)
                   for bandwidth in (40.0, 200, 400, 900, 1500, 2500, 4500, 9000)]
        for number, (rtt_ms, bandwidth_kbps) in enumerate(clients * 2):
            if part in ("avgdc-network", "avgdc-lossy") and number % 3 == 0:
                continue
            for initcwnd in windows:
                trial = Trial(
                    **scenario.drawn.template.fields, scenario=NAME, uplink_kbps=1.0,
                    queue_packets=1000, rtt_ms=rtt_ms, bandwidth_kbps=bandwidth_kbps,
                    key_rtt_ms=rtt_ms, key_bandwidth_kbps=bandwidth_kbps, part=part,
                    sample=number, weight=1.0 + number, initcwnd=initcwnd,
                    response_bytes=1430 * (1, 4, 7, 10, 15, 30, 50, 90)[number % 8])
                made.append(Record(trial=trial, ok=True, verdict="pass",
                                   latency_ms=1000 + rtt_ms - SAVED.get(part, 1) * initcwnd))
    return made


@pytest.fixture(scope="module")
def report(records: list[Record]) -> Report:
    return stored_fetches.report(NAME, records)


@pytest.fixture(scope="module")
def bar_figures(scenario: Scenario, records: list[Record]) -> dict[str, BarFigure]:
    made, missing = kinds.bar_figures(scenario, records)
    assert not missing, missing
    return made


def test_a_response_without_its_counterpart_is_excluded_and_counted(scenario: Scenario,
                                                                    records: list[Record]) -> None:
    figure = next(figure for figure in scenario.figures if figure.name == "fig5_rtt")
    first = next(place for place, record in enumerate(records)
                 if record.trial.part == figure.sweep and record.trial.initcwnd == 3)
    spoiled = [replace(record, verdict="fail") if place == first else record
               for place, record in enumerate(records)]
    panel = bar_figure(scenario.drawn, figure, responses_by_part(spoiled)[figure.sweep])
    count = 2 * 8 * 8 * 2  # records: two responses of each client, under two windows
    assert str(panel.excluded) == "1 record without its counterpart" and panel.n == count - 2
    with pytest.raises(NoBars, match="nothing of population 'other' was measured"):
        pair_of("other", responses_by_part(records)["other"], (3, 10), "latency_ms")
    with pytest.raises(NoBars, match="counts under both windows, 3 and 11"):
        pair_of(figure.sweep, responses_by_part(records)[figure.sweep], (3, 11), "latency_ms")


def test_a_figure_of_slow_clients_is_missing_where_none_was_measured(
        scenario: Scenario, records: list[Record]) -> None:
    slow = next(figure for figure in scenario.figures if figure.bandwidth_at_most_kbps)
    fast = [record for record in records
            if record.trial.key_bandwidth_kbps > slow.bandwidth_at_most_kbps]
    _, missing = kinds.bar_figures(scenario, fast)
    assert missing[slow.name] == "no response is of a client with at most 56 kbit/s"


@pytest.mark.parametrize("label", ["p0", "p100", "q50", "pfifty", "50", "p", "pp50", "p-1", "pnan"])
def test_a_label_that_is_no_percentile_is_refused(label: str) -> None:
    assert percentile_of("mean") is None and percentile_of("p50") == 0.5
    assert (percentile_of("p0.5"), percentile_of("p99.5")) == (0.005, 0.995)
    with pytest.raises(UsageError, match=f"'{label}' is not a percentile"):
        percentile_of(label)


def test_the_steps_explain_the_bars_of_figure_5_and_the_last_step_has_these_bars(
        scenario: Scenario, records: list[Record], bar_figures: dict[str, BarFigure]) -> None:
    found = ablation.measured_steps(scenario.drawn, records)
    assert [step.title for step in found] == [cause.title for cause in scenario.drawn.steps]
    saved = [step.base_ms - step.experiment_ms for step in found]
    # Ten segments are 7 more than three, and each saves what SAVED has. The network and the losses
    # do not change a third of the responses: these save as much as in the step before.
    clean_ms, staged_ms, _, network_ms, lossy_ms, *later_ms = saved
    assert (clean_ms, staged_ms) == pytest.approx((2 * 7, 7))
    assert 7 < network_ms < 4 * 7 and lossy_ms < 0 and later_ms == pytest.approx([7, 7, 7])
    for axis, name in (("RTT", "fig5_rtt"), ("BW", "fig5_bw"), ("BDP", "fig5_bdp")):
        assert found[-1].bars[axis] == list(bar_figures[name].bars)
    responses = 2 * 8 * 8
    assert found[4].slower == {
        "its last acknowledgement waited for the client's timer": responses * 2 // 3}
    assert not found[-1].slower


def test_the_weights_of_both_weeks_hold_from_the_steps_that_add_them(scenario: Scenario,
                                                                     records: list[Record]) -> None:
    """The next to last step adds the weights of the experiment's week, the last one the baseline's.

    The steps before these two have weights of their own (step_weight).
    """
    far = {record.trial.sample for record in records if (record.trial.key_rtt_ms or 0) > 300}

    def leaning(record: Record) -> Record:
        if record.trial.part != "avgdc" or record.trial.sample not in far:
            return record
        times = 6 if record.trial.initcwnd == 3 else 2
        return replace(record, trial=replace(record.trial, weight=times * record.trial.weight))

    plain = ablation.measured_steps(scenario.drawn, records)
    changed = ablation.measured_steps(scenario.drawn, [leaning(record) for record in records])
    assert [step.base_ms for step in changed[:6]] == [step.base_ms for step in plain[:6]]
    assert plain[6].base_ms < changed[6].base_ms < changed[7].base_ms
    assert changed[6].experiment_ms == changed[7].experiment_ms


def test_a_step_measures_only_the_responses_that_it_changes(scenario: Scenario) -> None:
    by_part: dict[str, dict[tuple[int, int], Trial]] = {}
    for trial in whole(NAME).trials:
        if trial.part.startswith("avgdc"):
            by_part.setdefault(trial.part, {})[trial.sample, trial.initcwnd] = trial
    assert list(by_part) == ["avgdc",
                             *(f"avgdc-{cause.name}" for cause in scenario.drawn.steps[:5])]
    assert len(by_part["avgdc-clean"]) == 1350 * 2
    so_far = dict(by_part["avgdc-clean"])
    for part in ("avgdc-staged", "avgdc-kept", "avgdc-network", "avgdc-lossy"):
        for place, trial in by_part[part].items():
            before = replace(so_far[place], part=part, weight=trial.weight)
            assert before != trial  # else it need not be measured
        so_far.update(by_part[part])
    of_figure_5 = by_part["avgdc"]
    # After these steps the responses differ from those of Figure 5 only in queue and weight.
    for place, trial in so_far.items():
        assert replace(trial, part="avgdc", queue_packets=27, weight=1) == replace(
            of_figure_5[place], weight=1)


def test_the_finding_of_causes_is_missing_where_they_were_not_measured(
        scenario: Scenario, records: list[Record]) -> None:
    shown = {figure.sweep for figure in scenario.figures}
    found = population_findings(scenario, scenario.drawn, [record for record in records
                                           if record.trial.part in shown], [], [])
    assert [(each.name, bool(each.missing)) for each in found][0] == ("causes", True)


def test_held_out_bars_are_counted_next_to_fitted_ones_and_never_with_them(
        scenario: Scenario, records: list[Record]) -> None:
    """Both are compared with the same published bars."""
    def with_published_mean(record: Record) -> Record:
        """Held out, the mean saves 72 ms, as published. With own parameters it saves nothing."""
        is_held_out = record.trial.part == "slowdc_held_out"
        if not is_held_out and record.trial.part != "slowdc":
            return record
        saves = is_held_out and record.trial.initcwnd != 3
        return replace(record, latency_ms=751.0 if saves else 823.0)

    report = stored_fetches.report(NAME, list(map(with_published_mean, records)))
    found = {finding.name: finding for finding in report.findings}
    held_out = found["held_out"].tables[0]
    assert held_out.column("of") == [8, 7, 5, 20]
    assert held_out.column("reproduced", "held out")[1] == found[
        "table3_slowdc_held_out"].bars["reproduced"] == 1
    assert held_out.column("near", "held out")[1] == 1
    assert held_out.column("near", "parameters of its own")[1] == 0
    assert held_out.column("near", "held out")[-1] == sum(
        int(str(near)) for near in held_out.column("near", "held out")[:-1])
    fitted, apart = (sum(count_bars(report.findings, which).values()) for which in (False, True))
    assert (fitted, apart) == (62, 20)
    sentences = [text for text in report.sentences if text.startswith("Of the published bars")]
    assert [bool(re.search("[ (]held out", text)) for text in sentences] == [False, True]


def test_a_bar_is_close_to_the_published_one_only_in_both_numbers(
        bar_figures: dict[str, BarFigure]) -> None:
    bucket = bar_figures["fig5_rtt"].bars[0]
    near = replace(bucket, published=replace(bucket.published, absolute=7.5, percent=1.0))
    assert is_near(near)
    assert not is_near(replace(near, published=replace(near.published, absolute=20.0)))
    assert not is_near(replace(near, published=replace(near.published, percent=9.0)))
    assert not is_near(replace(near, published=replace(near.published, percent=None)))


def test_queue_drops_of_a_population_are_a_remark_of_its_figure(scenario: Scenario,
                                                                records: list[Record]) -> None:
    dropped = [replace(record, queue_drops=2) if record.trial.sample == 0 else record
               for record in records]
    made, _ = kinds.bar_figures(scenario, dropped)
    for name, panel in made.items():
        windows = len(
            scenario.drawn.population(panel.figure.sweep).initcwnd)  # type: ignore[union-attr]
        assert panel.remarks == (
            f"The queue dropped {2 * windows} packets in {windows} of {128 * windows}"
            " transfers, apart from random loss.",), name


# Why a response was slower ------------------------------------------------------------

@pytest.mark.parametrize(("observed", "reason"), [
    ({"queue_drops": 1, "random_drops": 1}, "the larger flight overflowed the queue"),
    ({"random_drops": 1}, "random loss took other packets"),
    ({"lost_segments": 1}, "random loss took other packets"),
    ({"retransmissions": 1}, "the larger flight took longer than the retransmission timer"),
    ({}, "its last acknowledgement waited for the client's timer")])
def test_each_reason_for_a_slower_response_follows_from_its_record(observed: dict[str, int],
                                                                   reason: str) -> None:
    assert ablation.why(Record(stored.load("iw10").trial, True,
                               **observed)) == reason  # type: ignore[arg-type]


# Rows: the trials that they make, and what is refused of a table ----------------------

ROW: dict[str, object] = {
    "part": "some", "key_rtt_ms": 100, "key_bandwidth_kbps": 900, "weight": 0.5,
    "baseline_weight": 0.4, "step_weight": 0.3, "rtt_ms": 150, "bandwidth_kbps": 1800,
    "queue_packets": 27, "loss_percent": 4, "seed": 7, "response_bytes": 9000,
    "earlier_bytes": 400, "burst_bytes": 300, "gap_ms": 250}


def trials(folder: Path, *drawn: dict[str, object], overrides: Overrides = NOTHING, seed: int = 1,
           population: str = "", one_in: int = 1) -> Sequence[Trial]:
    """The trials of a table's rows. Its population is explained in three steps."""
    if drawn:
        rows.write(rows.path_of("own"), rows.COLUMNS, (row.values() for row in drawn))
    text = f"""# A claim.
title = "t"
source = "s"
[defaults]
congestion_control = "cubic"
client = "libcurl"
queue = 1000
loss_percent = 0
[[population]]
name = "some"
title = "some"
initcwnd = [3, 10]
{population}
[[step]]
name = "clean"
title = "clean"
adds = []
[[step]]
name = "network"
title = "network"
adds = ["rtt_ms", "bandwidth_kbps", "queue_packets", "loss_percent", "seed"]
[[step]]
name = "all"
title = "all"
adds = ["earlier_bytes", "burst_bytes", "gap_ms", "weight", "baseline_weight"]
"""
    file = scenario_file.parse("own", text)
    return KIND.study(file.sampled(one_in) if one_in > 1 else file, overrides, seed).trials


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(rows, "FOLDER", tmp_path)
    yield tmp_path
    rows.read.cache_clear()


def test_the_populations_31780_trials_do_not_change() -> None:
    """Their ids, and all parameters that are not their default, as commit c688d26e drew them."""
    usual = {column.name: column.default for column in fields(Trial)}
    digest = hashlib.sha256()
    for trial in whole(NAME).trials:
        changed = [(name, getattr(trial, name)) for name in sorted(usual)
                   if getattr(trial, name) != usual[name]]
        digest.update(f"{trial.id} {changed}\n".encode())
    assert len(whole(NAME).trials) == 31_780
    assert digest.hexdigest() == "2919441587c89eca39d51461b029c28529bef8a11c8269ec40d444ac2d745a9e"


def test_the_two_windows_of_a_response_differ_only_in_their_weeks_weight() -> None:
    avgdc = [trial for trial in whole(NAME).trials if trial.part == "avgdc"]
    assert len(avgdc) == 2 * 5400
    baselines, experiments = avgdc[::2], avgdc[1::2]
    for three, ten in zip(baselines, experiments):
        assert (three.initcwnd, ten.initcwnd) == (3, 10)
        assert replace(three, initcwnd=10, weight=ten.weight) == ten
    for week in (baselines, experiments):
        assert sum(trial.weight for trial in week) == pytest.approx(1)
    far = sum(trial.weight for trial in experiments if (trial.key_rtt_ms or 0) > 3000)
    assert far == pytest.approx(0.0008, abs=1e-5)  # Figure 5: 0.08 % above 3 s


def test_the_trials_of_a_row_have_its_values(folder: Path) -> None:
    three, ten = trials(folder, ROW)
    assert (three.id, ten.id) == ("some-0-iw3-1", "some-0-iw10-1")
    assert (three.weight, ten.weight) == (0.4, 0.5)
    for name in set(ROW) - {"weight", "baseline_weight", "step_weight"}:
        assert getattr(ten, name) == ROW[name]
    assert ten.uplink_kbps == 1800


def test_each_step_adds_its_causes_to_the_responses_that_they_change(folder: Path) -> None:
    other = {**ROW, "step_weight": 0}  # the steps do not measure it
    same = {**ROW, "rtt_ms": 100, "bandwidth_kbps": 900, "queue_packets": 1000, "loss_percent": 0,
            "seed": 0}  # the second step changes nothing of it
    made = trials(folder, ROW, other, same, population="explained = true")
    assert [trial.id for trial in made[6:]] == [f"some-{step}-iw{window}-1" for step in (
        "clean-0", "clean-2", "network-0") for window in (3, 10)]
    clean, network = made[6], made[-1]
    assert (clean.rtt_ms, clean.bandwidth_kbps, clean.uplink_kbps, clean.queue_packets) == (
        100, 900, 900, 1000)
    assert (clean.loss_percent, clean.seed, clean.earlier_bytes, clean.burst_bytes, clean.gap_ms,
            clean.weight) == (0, 0, 0, 0, 0, 0.3)
    assert (network.rtt_ms, network.queue_packets, network.seed, network.gap_ms,
            network.weight) == (150, 27, 7, 0, 0.3)


def test_a_sample_has_every_nth_client_with_all_responses_and_windows(folder: Path) -> None:
    """The sample is taken from the same rows."""
    drawn = [{**ROW, "key_rtt_ms": key_rtt_ms, "response_bytes": size}
             for key_rtt_ms in (10, 20, 30, 40, 50) for size in (5000, 6000)]
    every, second, fourth = (trials(folder, *drawn, one_in=one_in) for one_in in (1, 2, 4))
    assert [(trial.key_rtt_ms, trial.response_bytes, trial.initcwnd) for trial in second] == [
        (key_rtt_ms, size, initcwnd) for key_rtt_ms in (10, 30, 50) for size in (5000, 6000)
        for initcwnd in (3, 10)]
    assert {trial.key_rtt_ms for trial in fourth} == {10, 50}
    assert {trial.scenario for trial in fourth} == {"own_1in4"}
    whole_client = [trial for trial in every if trial.key_rtt_ms == 50]
    assert [replace(trial, scenario="own", sample=0) for trial in fourth[4:]] == [
        replace(trial, sample=0) for trial in whole_client]


def test_another_seed_and_the_full_sample_have_rows_of_their_own(folder: Path) -> None:
    trials(folder, ROW)
    full = Overrides({}, sample="full", many=True)
    for flags, overrides, seed, rtt_ms in (("--seed 2", NOTHING, 2, 201), ("--full", full, 1, 202),
                                           ("--full --seed 2", full, 2, 203)):
        with pytest.raises(UsageError, match=f"^own: its rows are not drawn: /usr/bin/python3 -m"
                                             f" paper.draw own {flags} draws them$"):
            trials(folder, overrides=overrides, seed=seed)
        rows.write(rows.path_of("own", bool(overrides.sample), seed), rows.COLUMNS,
                   [{**ROW, "rtt_ms": rtt_ms}.values()])
        assert {trial.rtt_ms for trial in trials(folder, overrides=overrides, seed=seed)} == {
            rtt_ms}
    assert {trial.rtt_ms for trial in trials(folder)} == {150}


@pytest.mark.parametrize(("change", "words"), [
    ({"gap_ms": 10**9}, "row 2: a pause of .* out of range"),
    ({"bandwidth_kbps": 0.5}, "row 2: a bandwidth of .* out of range"),
    ({"rtt_ms": "nan"}, "row 2: nan"), ({"seed": "x"}, "row 2: invalid literal"),
    ({"weight": ""}, "row 2: could not convert")])
def test_a_row_that_no_network_can_have_is_refused_by_its_number(
        folder: Path, change: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=f"^scenarios/populations/own.csv.xz: {words}"):
        trials(folder, ROW, {**ROW, **change})


def test_rows_of_another_population_are_not_used(folder: Path) -> None:
    other = {**ROW, "part": "other"}
    assert len(trials(folder, ROW, other)) == 2
    rows.read.cache_clear()
    with pytest.raises(UsageError, match="own.csv.xz: has no row of population 'some'"):
        trials(folder, other)


@pytest.mark.parametrize(("content", "words"), [
    (b"no xz", "cannot be read"), (lzma.compress(b"part,rtt_ms\n"), "its columns have to be part,"),
    (lzma.compress(b"part,rtt_ms\nx\n"), "different numbers of cells"),
    (lzma.compress(b""), "different numbers"),
    (lzma.compress(b"\xff"), "cannot be read"), (lzma.compress(b"x" * 100)[:-20], "cut off")])
def test_a_damaged_table_of_rows_is_refused_by_name(folder: Path, content: bytes,
                                                    words: str) -> None:
    rows.path_of("own").write_bytes(content)
    with pytest.raises(UsageError, match=f"^scenarios/populations/own.csv.xz: .*{words}"):
        trials(folder)
