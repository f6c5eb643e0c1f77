"""Figures of bars: weighted means, what is excluded, intervals, other metrics, other windows."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from firstflight.base import stats
from firstflight.base.errors import FirstFlightError
from firstflight.findings.difference import Excluded
from firstflight.findings.render import text
from firstflight.runs import scenario_file
from firstflight.study.fetches import KIND
from firstflight.workloads.fetch.figures import kinds
from firstflight.workloads.fetch.figures.bar_cells import by_cell, weighted_cells
from firstflight.workloads.fetch.figures.bar_figure import BarFigure, NoBars
from firstflight.workloads.fetch.figures.grid import cell_difference, mean_interval
from firstflight.workloads.fetch.figures.swept_bars import improvement, window_sweep
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.scenario import rows
from firstflight.workloads.fetch.scenario.figures import FIGURES
from firstflight.workloads.fetch.scenario.scenario import Scenario
from firstflight.workloads.fetch.trial import Trial
from tests.golden import stored_fetches, stored_questions
from tests.golden.stored_questions import FOLDER, took


def bar_figures(scenario: Scenario, records: list[Record]) -> list[BarFigure]:
    """All figures of the scenario. None may be missing."""
    made, missing = kinds.bar_figures(scenario, records)
    assert not missing, missing
    return list(made.values())


def why_missing(scenario: Scenario, records: list[Record]) -> str:
    """Why the first figure of the scenario is missing."""
    return kinds.bar_figures(scenario, records)[1][scenario.figures[0].name]


def fail(record: Record) -> Record:
    """The record as if its transfer had failed."""
    return replace(record, ok=False, error="timed out", verdict="skipped", total_ms=None)


def changed(records: list[Record], when: Callable[[Trial], bool],
            change: Callable[[Record], Record]) -> list[Record]:
    """The records, with a change of those whose trial meets a condition."""
    return [change(record) if when(record.trial) else record for record in records]


def test_stored_data_give_the_rows_worked_out_by_hand(scenario: Scenario,
                                                      stored: list[Record]) -> None:
    by_rtt, by_bandwidth, by_product = bar_figures(scenario, stored)
    total = {(record.trial.rtt_ms, record.trial.bandwidth_kbps, record.trial.initcwnd):
             record.total_ms or 0 for record in stored}
    shares = {56: 0.64, 256: 3.13, 512: 15.39, 1000: 29.99, 2000: 28.34, 3000: 10.71,
              5000: 9.79, 7000: 2.01}
    base, experiment = (sum(share * total[100, bandwidth, initcwnd]
                            for bandwidth, share in shares.items()) / sum(shares.values())
                        for initcwnd in (3, 10))
    bucket = by_rtt.bars[2]
    assert (bucket.label, bucket.value, bucket.share_percent,
            bucket.difference.n) == ("100", 100, 48.36, 16)
    change = bucket.difference
    assert change.base.value == pytest.approx(base) and change.experiment.value == pytest.approx(
        experiment)
    assert bucket.difference.absolute.value == pytest.approx(base - experiment)
    assert bucket.difference.percent.value == pytest.approx((base - experiment) / base * 100)
    assert (bucket.published.absolute, bucket.published.percent) == (21.77, 5.17)
    # Fewer than half of the responses have less than 2 Mbit/s, and 77 % have 2 Mbit/s or less, so
    # the median is the time at 2 Mbit/s.
    assert bucket.difference.base_median == total[100, 2000, 3]
    assert bucket.difference.absolute.interval is None
    assert by_bandwidth.bars[-1].label == ">5000"
    assert by_bandwidth.bars[0].published.absolute == 614.81
    assert by_rtt.n == by_bandwidth.n == by_product.n == 128 and by_rtt.excluded.total == 0
    assert not by_product.excluded.total
    assert (by_rtt.client, by_rtt.congestion_control) == ("curl", "cubic")


def test_every_record_is_either_in_a_mean_or_counted(scenario: Scenario,
                                                     stored: list[Record]) -> None:
    generator = random.Random(7)

    def spoil(record: Record) -> Record:
        return generator.choice([*[record] * 8, fail(record),
                                 replace(record, verdict="fail"),
                                 replace(record, verdict="skipped"),
                                 replace(record, total_ms=None)])
    for _ in range(6):
        records = [spoil(record) for record in stored]
        panel = improvement(scenario, scenario.figures[0], records)
        assert panel.n + panel.excluded.total == len(records)


def test_a_cell_without_a_counting_record_loses_its_weight(scenario: Scenario,
                                                           stored: list[Record]) -> None:
    records = changed(stored, lambda trial: (trial.rtt_ms, trial.bandwidth_kbps) == (100, 56)
                      and trial.initcwnd == 3, lambda record: replace(record, verdict="fail"))
    bucket = improvement(scenario, scenario.figures[0], records).bars[2]
    assert (bucket.difference.n, bucket.difference.cells,
            bucket.difference.cells_requested) == (14, 7, 8)
    assert bucket.difference.excluded == Excluded(failed_verdicts=1, unpaired=1)
    assert str(bucket.difference.excluded) == "1 failed verdict, 1 record without its counterpart"
    kept = [record for record in stored if record.trial.rtt_ms == 100
            and record.trial.bandwidth_kbps != 56 and record.trial.initcwnd == 3]
    axis = scenario.axis("bandwidth_kbps")
    assert axis is not None
    weights = [axis.share_percent(record.trial.bandwidth_kbps) or 0 for record in kept]
    assert bucket.difference.base.value == pytest.approx(
        stats.weighted_mean([record.total_ms or 0 for record in kept], weights))


def test_a_figure_without_some_cells_names_the_command_that_measures_these(
        scenario: Scenario, stored: list[Record]) -> None:
    lacking = [record for record in stored if (record.trial.rtt_ms, record.trial.bandwidth_kbps)
               not in ((20, 56), (20, 256)) or record.trial.initcwnd == 3]
    why = why_missing(scenario, lacking)
    assert why.endswith("./run.sh --scenario zhao2019 --rtt 20 --bw 56,256")
    assert "2 of 64 cells (RTT 20 ms at 56 kbit/s, RTT 20 ms at 256" in why
    assert why_missing(scenario, []).endswith("run.sh --scenario zhao2019")


def test_records_of_other_networks_do_not_enter(scenario: Scenario,
                                                stored: list[Record]) -> None:
    others = [replace(record, trial=replace(record.trial, **{key: value}), total_ms=1e9)
              for record in stored[:8]
              for key, value in (("loss_percent", 1.0), ("uplink_kbps", 9.0), ("initrwnd", 10),
                                 ("queue_packets", 5), ("response_bytes", 9001),
                                 ("initcwnd", 16), ("rtt_ms", 21.0))]
    assert bar_figures(scenario, stored + others) == bar_figures(scenario, stored)


def test_another_client_is_drawn_but_never_mixed(scenario: Scenario,
                                                 stored: list[Record]) -> None:
    wget = [replace(record, trial=replace(record.trial, client="wget")) for record in stored]
    assert bar_figures(scenario, wget)[0].client == "wget"
    assert bar_figures(scenario, wget + stored)[0].client == "curl"
    library = [replace(record, trial=replace(record.trial, client="libcurl"))
               for record in stored]
    assert "mix libcurl and wget" in why_missing(scenario, wget + library)
    reno = [replace(record, trial=replace(record.trial, congestion_control="reno"))
            for record in stored]
    assert "were not measured" in why_missing(scenario, reno)


def test_intervals_cover_the_truth_and_repeat_exactly(scenario: Scenario,
                                                      stored: list[Record]) -> None:
    generator = random.Random(1)
    repeats = [replace(record, trial=replace(record.trial, repeat=repeat),
                       total_ms=(record.total_ms or 0) * generator.gauss(1, 0.05))
               for record in stored for repeat in range(1, 11)]
    panel = improvement(scenario, scenario.figures[0], repeats)
    truth = improvement(scenario, scenario.figures[0], stored)
    covered = 0
    for bucket, true in zip(panel.bars, truth.bars):
        assert bucket.difference.absolute.interval and bucket.difference.percent.interval
        assert bucket.difference.n == 160
        low, high = bucket.difference.absolute.interval
        assert low < bucket.difference.absolute.value < high
        covered += low <= true.difference.absolute.value <= high
    assert covered >= 6
    assert panel == improvement(scenario, scenario.figures[0], repeats)


def test_repeats_that_are_all_the_same_have_an_interval_of_no_width(
        scenario: Scenario, stored: list[Record]) -> None:
    twice = [replace(record, trial=replace(record.trial, repeat=repeat))
             for record in stored for repeat in (1, 2)]
    once, panel = (improvement(scenario, scenario.figures[0], records)
                   for records in (stored, twice))
    for single, bucket in zip(once.bars, panel.bars):
        assert single.difference.absolute.interval is None is single.difference.percent.interval
        assert bucket.difference.absolute.interval == pytest.approx(
            (single.difference.absolute.value,) * 2)
        assert bucket.difference.percent.interval == pytest.approx(
            (single.difference.percent.value,) * 2)
    mixed = [record for record in twice if record.trial.repeat == 1 or record.trial.rtt_ms > 20]
    first, *others = improvement(scenario, scenario.figures[0], mixed).bars
    assert first.difference.absolute.interval is None  # single values of a cell tell none
    assert all(bucket.difference.absolute.interval for bucket in others)


def test_the_mean_of_one_cell_has_an_interval_from_two_values_on() -> None:
    assert mean_interval((5.0,)) is None
    assert mean_interval((5.0, 5.0)) == (5.0, 5.0)
    assert mean_interval((1.0, 2.0)) == (1.0, 2.0)
    draw = random.Random(3)
    values = tuple(draw.gauss(100, 10) for _ in range(50))
    interval = mean_interval(values)
    assert interval is not None and interval == mean_interval(values)
    mean, error = sum(values) / 50, 1.96 * statistics.stdev(values) / 50 ** 0.5
    assert interval == pytest.approx((mean - error, mean + error), abs=0.3)


def test_records_of_lossy_networks_are_paired_by_their_seed() -> None:
    scenario, records = (stored_fetches.scenario("marrama2012"),
                         stored_fetches.stored("marrama2012"))
    whole = stored_fetches.bar_figures("marrama2012")["loss"]
    shuffled = improvement(scenario, whole.figure, [
        replace(record, trial=replace(record.trial, seed=record.trial.seed + 1))
        if record.trial.initcwnd == 10 else record for record in records])
    for paired, apart in zip(whole.bars[1:], shuffled.bars[1:]):
        assert paired.difference.absolute.interval and apart.difference.absolute.interval
        assert paired.difference.n == 30
        assert paired.difference.absolute.value == apart.difference.absolute.value
        widths = [high - low for low, high in (paired.difference.absolute.interval,
                                               apart.difference.absolute.interval)]
        assert widths[0] < widths[1]
    assert whole.bars[0].difference.lossless and not whole.bars[1].difference.lossless


@pytest.mark.parametrize(("changed", "exact"), [
    ({}, True), ({"qdisc": "fq"}, True), ({"qdisc": "cake"}, False),
    ({"qdisc": "fq_codel"}, False), ({"jitter_ms": 1.0}, False), ({"loss_percent": 1.0}, False)])
def test_what_chance_decides_is_not_called_exact(changed: dict[str, Any], exact: bool) -> None:
    scenario, records = (stored_fetches.scenario("marrama2012"),
                         stored_fetches.stored("marrama2012"))
    figure = stored_fetches.bar_figures("marrama2012")["fig2"].figure
    (cell,) = scenario.sweep(figure.sweep).cells
    _, cells = by_cell(scenario, figure, (3, 10), records)
    other = replace(cell, **changed)
    found = cell_difference(figure,
                            {(other, initcwnd): cells[cell, initcwnd] for initcwnd in (3, 10)},
                      other, (3, 10))
    assert found is not None and found.lossless is exact


def test_what_a_window_sweep_lacks_of_its_baseline_is_counted_once() -> None:
    scenario, records = (stored_fetches.scenario("marrama2012"),
                         stored_fetches.stored("marrama2012"))
    figure = stored_fetches.bar_figures("marrama2012")["fig2"].figure
    _, cells = by_cell(scenario, figure, (3,), records)
    (cell,) = scenario.sweep(figure.sweep).cells
    (fetch,) = cells[cell, 3]
    spoiled = [replace(record, ok=False) if record is fetch else record for record in records]
    with pytest.raises(NoBars, match=r"of bucket 3 counts \(1 failed transfer\)"):
        window_sweep(scenario, figure, spoiled)


def test_every_bdp_bucket_has_the_published_share(scenario: Scenario) -> None:
    """Weights of the joint distribution: all cells together carry each bucket's share."""
    figure = next(figure for figure in scenario.figures if figure.name == "fig5_bdp")
    axis = scenario.axis_of(figure)
    weighted = weighted_cells(scenario, figure, axis)
    for share, cells in zip(axis.shares_percent, weighted):
        assert sum(weight for _, weight in cells) == pytest.approx(share, abs=0.02)
    by_rtt = {rtt: sum(weight for cells in weighted for cell, weight in cells
                       if cell.rtt_ms == rtt) for rtt in (20, 1000)}
    assert by_rtt[20] == pytest.approx(4.29, abs=0.02)
    assert by_rtt[1000] == pytest.approx(1.58, abs=0.02)
    # The smallest products are those of short RTTs or narrow links.
    assert all(cell.rtt_ms * cell.bandwidth_kbps / 8 < 1000 * 40 for cell, weight in weighted[0]
               if weight > 0.01)
    other = replace(scenario, axes=tuple(replace(axis, labels=axis.labels[::-1])
                                         if axis.by == "rtt_ms" else axis
                                         for axis in scenario.axes))
    with pytest.raises(FirstFlightError, match="the axis of rtt_ms has the buckets >3000"):
        weighted_cells(other, figure, axis)


def test_the_weighted_samples_of_a_figure_have_the_means_of_its_bars(
        scenario: Scenario, stored: list[Record]) -> None:
    """The values behind a figure, with weights of which the bars' own are parts."""
    for panel in bar_figures(scenario, stored)[:2]:
        shares = [bucket.share_percent or 0 for bucket in panel.bars]
        for sample, means in zip(panel.samples,
                                 ([bucket.difference.base.value for bucket in panel.bars],
                                                 [bucket.difference.experiment.value
                                                  for bucket in panel.bars])):
            assert stats.weighted_mean(sample.values, sample.weights) == pytest.approx(
                stats.weighted_mean(means, shares))
        assert [sample.name for sample in panel.samples] == ["IW 3", "IW 10"]


@pytest.mark.parametrize(("rtts", "row"), [
    ({200}, ("fig5_rtt", "3 → 10", "177 ms", "26.8 %", "45.2 ms", "7.6 %")),
    ({20, 200}, ("fig5_rtt", "3 → 10", "6.8 to 177 ms", "5.3 to 26.8 %", "9.6 to 45.2 ms",
                 "3.1 to 7.6 %"))])
def test_a_part_has_the_buckets_that_it_measured(stored: list[Record], rtts: set[int],
                                                 row: tuple[str, ...]) -> None:
    """With their published values; a bucket of which a cell is missing is none."""
    part = [record for record in stored if record.trial.rtt_ms in rtts]
    report = stored_fetches.report("zhao2019", part, whole=False)
    assert report.answer.table is not None and report.answer.table.rows[0] == row
    assert [finding.name for finding in report.findings if finding.bars] == ["fig5_rtt"]
    lacking = stored_fetches.report("zhao2019", part[1:], whole=False)
    assert sum(sum(finding.bars.values()) for finding in lacking.findings) == len(rtts) - 1


# The goodput of a transfer ------------------------------------------------------------


# Every kind of figure -------------------------------------------------------------------

def test_every_kind_of_figure_has_one_of_goodput() -> None:
    """But packets, which have no metric, and percentiles, which are of a population."""
    of_goodput = {figure.kind for figure in stored_questions.goodput_study().scenario.figures}
    assert of_goodput == {*FIGURES} - {"packets", "percentiles"}, (
        "tests/golden/fetches/goodput.toml needs a [[figure]] of each kind")


def test_no_kind_of_figure_calls_a_rate_a_time() -> None:
    report = stored_questions.goodput()
    told = text.text(report) + str([
        (each.sentence, each.chart) for each in report.findings])
    for wrong in ("saved", "fastest", "total time", "Mean time", "kbit/s less"):
        assert wrong not in told.replace("where times are saved", ""), wrong


# Runs under other windows than a scenario's -------------------------------------------

def under(records: Sequence[Record], windows: Mapping[int, int]) -> list[Record]:
    """The records of some windows, each as if it were measured under another one."""
    return [replace(record, trial=replace(record.trial, initcwnd=windows[record.trial.initcwnd]))
            for record in records if record.trial.initcwnd in windows]


def test_two_other_windows_draw_the_figures_without_published_values() -> None:
    records = under(stored_fetches.stored("zhao2019"), {3: 3, 10: 16})
    report = stored_fetches.report("zhao2019", records, whole=False, partial=True)
    drawn = [finding for finding in report.findings if finding.chart is not None]
    assert [finding.name for finding in drawn] == ["fig5_rtt_3_16", "fig5_bw_3_16",
                                                   "fig5_bdp_3_16"]
    assert drawn[0].chart is not None and drawn[0].chart.title.endswith(": 3 → 16 segments")
    assert not any(sum(finding.bars.values()) or finding.published for finding in drawn)
    said = text.brief(report)
    assert "fig5_rtt_3_16  3 → 16   6.8 to 4975 ms" in said
    assert "published" not in said and "reproduced" not in said


def test_the_published_windows_keep_what_was_published_beside_a_third() -> None:
    stored = stored_fetches.stored("zhao2019")
    records = [*stored, *under(stored, {10: 16})]
    report = stored_fetches.report("zhao2019", records)
    bars = {finding.name: sum(finding.bars.values()) for finding in report.findings
            if finding.chart is not None}
    assert bars == {"fig5_rtt": 8, "fig5_bw": 8, "fig5_bdp": 6,
                    "fig5_rtt_3_16": 0, "fig5_bw_3_16": 0, "fig5_bdp_3_16": 0}


def test_a_population_is_compared_under_the_windows_that_were_measured() -> None:
    with patch.object(rows, "FOLDER", FOLDER.parent / "populations"):
        study = KIND.study(scenario_file.read(FOLDER / "population.toml"))
        scenario, stored = study.scenario, [took(trial) for trial in study.trials]
    records = under(stored, {3: 3, 10: 16})
    changed = kinds.under_measured_windows(scenario, records, is_whole=False)
    bar_figures, missing = kinds.bar_figures(changed, records, is_whole=False)
    assert {*missing} == {"size_3_16"}  # no response is as large
    assert [bucket.label for bucket in bar_figures["windows"].bars] == ["3", "16"]
    of_own = kinds.bar_figures(scenario, stored)[0]["rtt"]
    bars = bar_figures["rtt_3_16"].bars
    assert [bucket.difference.absolute.value for bucket in bars] == [
        bucket.difference.absolute.value for bucket in of_own.bars]
    assert not any(bucket.published.absolute for bucket in bars)
    assert any(bucket.published.absolute for bucket in of_own.bars)


@pytest.mark.parametrize("windows, names, titles", [
    ((3, 32), ["iw10_3_32"], ["What IW 32 saves against IW 3 by response size, DC 1"]),
    ((3, 10, 32), ["iw10", "iw10_3_32"], [
        "What IW 10 saves against IW 3 by response size, DC 1",
        "What IW 32 saves against IW 3 by response size, DC 1"]),
    ((3, 10, 16), ["iw10", "iw16"], [
        "What IW 10 saves against IW 3 by response size, DC 1",
        "What IW 16 saves against IW 10 by response size, DC 1"])])
def test_a_pair_of_windows_has_one_figure_and_a_title_that_names_it(
        windows: tuple[int, ...], names: list[str], titles: list[str]) -> None:
    scenario: Scenario = stored_fetches.scenario("ietf78_dc1")
    trial = next(scenario.sweeps[0].trials("ietf78_dc1", 1))
    records = [replace(stored_fetches.stored("zhao2019")[0],
                       trial=replace(trial, initcwnd=window)) for window in windows]
    changed = kinds.under_measured_windows(scenario, records, is_whole=False)
    pairs = [figure for figure in changed.figures if figure.experiment_initcwnd]
    assert [figure.name for figure in pairs] == names
    assert [figure.title for figure in pairs] == titles
    claimed = {claim.figure for claim in changed.claims}
    assert claimed == {claim.figure for claim in scenario.claims} & {
        figure.name for figure in changed.figures}
