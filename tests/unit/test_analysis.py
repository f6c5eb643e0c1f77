"""Weighted means, what is excluded and counted, missing cells, published values."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lab import analysis, published, stats
from lab.analysis import Excluded, MissingCells, NothingCounts
from lab.errors import FirstFlightError, UsageError
from lab.records import Record
from lab.scenario import Overrides, Scenario, expand
from lab.trial import Trial


def fail(record: Record) -> Record:
    return replace(record, ok=False, error="timed out", verdict="skipped", total_ms=None)


def changed(records: list[Record], when: Callable[[Trial], bool],
            change: Callable[[Record], Record]) -> list[Record]:
    return [change(record) if when(record.trial) else record for record in records]


def test_stored_data_give_the_rows_worked_out_by_hand(scenario: Scenario,
                                                      stored: list[Record]) -> None:
    by_rtt, by_bandwidth, by_product = analysis.panels(scenario, stored)
    total = {(record.trial.rtt_ms, record.trial.bandwidth_kbps, record.trial.initcwnd):
             record.total_ms or 0 for record in stored}
    shares = {56: 0.64, 256: 3.13, 512: 15.39, 1000: 29.99, 2000: 28.34, 3000: 10.71,
              5000: 9.79, 7000: 2.01}
    base, experiment = (sum(share * total[100, bandwidth, initcwnd]
                            for bandwidth, share in shares.items()) / sum(shares.values())
                        for initcwnd in (3, 10))
    bucket = by_rtt.buckets[2]
    assert (bucket.label, bucket.value, bucket.share_percent, bucket.n) == ("100", 100, 48.36, 16)
    assert bucket.base_ms == pytest.approx(base) and bucket.experiment_ms == pytest.approx(
        experiment)
    assert bucket.absolute_ms == pytest.approx(base - experiment)
    assert bucket.percent == pytest.approx((base - experiment) / base * 100)
    assert (bucket.published_absolute_ms, bucket.published_percent) == (21.77, 5.17)
    # Half of the responses have 2 Mbit/s or less, so the median is of a 2 Mbit/s cell.
    assert bucket.base_median_ms == total[100, 2000, 3]
    assert bucket.absolute_interval_ms is None
    assert by_bandwidth.buckets[-1].label == ">5000"
    assert by_bandwidth.buckets[0].published_absolute_ms == 614.81
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
    for _ in range(20):
        records = [spoil(record) for record in stored]
        panel = analysis.improvement(scenario, scenario.figures[0], records)
        assert panel.n + panel.excluded.total == len(records)


def test_a_cell_without_a_counting_record_loses_its_weight(scenario: Scenario,
                                                           stored: list[Record]) -> None:
    records = changed(stored, lambda trial: (trial.rtt_ms, trial.bandwidth_kbps) == (100, 56)
                      and trial.initcwnd == 3, lambda record: replace(record, verdict="fail"))
    bucket = analysis.improvement(scenario, scenario.figures[0], records).buckets[2]
    assert (bucket.n, bucket.cells, bucket.cells_asked) == (14, 7, 8)
    assert bucket.excluded == Excluded(failed_verdicts=1, unpaired=1)
    assert str(bucket.excluded) == "1 failed verdict, 1 record without its counterpart"
    kept = [record for record in stored if record.trial.rtt_ms == 100
            and record.trial.bandwidth_kbps != 56 and record.trial.initcwnd == 3]
    axis = scenario.axis("bandwidth_kbps")
    assert axis is not None
    weights = [axis.share_percent(record.trial.bandwidth_kbps) or 0 for record in kept]
    assert bucket.base_ms == pytest.approx(
        stats.weighted_mean([record.total_ms or 0 for record in kept], weights))


def test_missing_cells_name_the_command(scenario: Scenario, stored: list[Record]) -> None:
    lacking = [record for record in stored if (record.trial.rtt_ms, record.trial.bandwidth_kbps)
               not in ((20, 56), (20, 256)) or record.trial.initcwnd == 3]
    with pytest.raises(MissingCells) as caught:
        analysis.panels(scenario, lacking)
    assert str(caught.value).endswith("./run.sh --scenario zhao2019 --rtt 20 --bw 56,256")
    assert "2 of 64 cells (RTT 20 ms at 56 kbit/s, RTT 20 ms at 256" in str(caught.value)
    with pytest.raises(MissingCells, match=r"run\.sh --scenario zhao2019$"):
        analysis.panels(scenario, [])


def test_a_bucket_of_failures_says_so(scenario: Scenario, stored: list[Record]) -> None:
    records = changed(stored, lambda trial: trial.rtt_ms == 5000, fail)
    with pytest.raises(NothingCounts, match="bucket >3000 counts .16 failed transfers."):
        analysis.panels(scenario, records)


def test_records_of_other_networks_do_not_enter(scenario: Scenario,
                                                stored: list[Record]) -> None:
    others = [replace(record, trial=replace(record.trial, **{key: value}), total_ms=1e9)
              for record in stored[:8]
              for key, value in (("loss_percent", 1.0), ("uplink_kbps", 9.0), ("initrwnd", 10),
                                 ("queue_packets", 5), ("response_bytes", 9001),
                                 ("initcwnd", 16), ("rtt_ms", 21.0))]
    assert analysis.panels(scenario, stored + others) == analysis.panels(scenario, stored)


def test_another_client_is_drawn_but_never_mixed(scenario: Scenario,
                                                 stored: list[Record]) -> None:
    wget = [replace(record, trial=replace(record.trial, client="wget")) for record in stored]
    assert analysis.panels(scenario, wget)[0].client == "wget"
    assert analysis.panels(scenario, wget + stored)[0].client == "curl"
    reno = [replace(record, trial=replace(record.trial, congestion_control="reno"))
            for record in stored]
    with pytest.raises(FirstFlightError, match="mix curl with reno and wget with cubic"):
        analysis.panels(scenario, wget + reno)


def test_intervals_cover_the_truth_and_repeat_exactly(scenario: Scenario,
                                                      stored: list[Record]) -> None:
    generator = random.Random(1)
    repeats = [replace(record, trial=replace(record.trial, repeat=repeat),
                       total_ms=(record.total_ms or 0) * generator.gauss(1, 0.05))
               for record in stored for repeat in range(1, 11)]
    panel = analysis.improvement(scenario, scenario.figures[0], repeats)
    truth = analysis.improvement(scenario, scenario.figures[0], stored)
    covered = 0
    for bucket, true in zip(panel.buckets, truth.buckets):
        assert bucket.absolute_interval_ms and bucket.percent_interval and bucket.n == 160
        low, high = bucket.absolute_interval_ms
        assert low < bucket.absolute_ms < high
        covered += low <= true.absolute_ms <= high
    assert covered >= 6
    assert panel == analysis.improvement(scenario, scenario.figures[0], repeats)


def test_settings_average_what_counts_and_tell_why_the_rest_does_not(
        scenario: Scenario) -> None:
    trials = expand(scenario, Overrides(rtt_ms=[77], bandwidth_kbps=[1234], repeat=3))
    times = {3: (300.0, 310.0), 10: (200.0, 220.0)}
    records = [Record(trial=trial, ok=True, verdict="pass", model_ms=200.0,
                      total_ms=times[trial.initcwnd][trial.repeat - 1])
               if trial.repeat < 3 else Record(trial=trial, ok=False, error="no route")
               for trial in reversed(trials)]
    small, large = analysis.settings(records)
    assert (small.asked.initcwnd, small.n, small.total_ms, small.deviation_ms) == (
        3, 2, 305, 105)
    assert small.excluded == Excluded(failed_transfers=1) and small.reasons == ("no route",)
    (change,) = analysis.changes([small, large])
    assert change.absolute_ms == 95 and change.percent == pytest.approx(95 / 305 * 100)
    assert analysis.changes([small]) == []


def test_raw_comparison_sets_defects_apart(scenario: Scenario, stored: list[Record]) -> None:
    rows = analysis.raw_comparison(scenario, stored)
    assert len(rows) == 128 and all(row.n == 1 for row in rows)
    row = next(row for row in rows if (row.initcwnd, row.rtt_ms, row.bandwidth_kbps)
               == (10, 1000, 7000))
    assert row.published_ms == 3017 and row.comparable_ms == 2017 and row.mark == ""
    assert row.deviation_ms == pytest.approx((row.measured_ms or 0) - 3017)
    assert sum(row.mark == "u" for row in rows) == 2 * 6 * 3
    assert sum(row.mark == "f" for row in rows) == 2 * 2 * 8
    summary = analysis.raw_summary(rows)
    assert summary is not None and summary.compared == 60 and summary.median_ms < 10
    assert analysis.raw_summary(analysis.raw_comparison(scenario, [])) is None


def test_weighted_statistics_agree_with_the_unweighted() -> None:
    generator = random.Random(2)
    for count in range(1, 12):
        values = [generator.uniform(-5, 5) for _ in range(count)]
        ones = [0.1] * count
        assert stats.weighted_mean(values, ones) == pytest.approx(statistics.fmean(values))
        assert stats.weighted_quantile(values, ones, 0.5) == pytest.approx(
            statistics.median(values))
    assert stats.weighted_quantile([1, 2, 3], [98, 1, 1], 0.5) == 1
    assert stats.weighted_quantile([1, 2, 3], [0, 1, 0], 0.0) == 2
    assert stats.weighted_quantile([1, 2, 3], [1, 1, 1], 1.0) == 3
    for bad in (lambda: stats.weighted_mean([], []), lambda: stats.weighted_mean([1], [0]),
                lambda: stats.weighted_mean([1, 2], [1]),
                lambda: stats.weighted_quantile([1], [1], 2)):
        with pytest.raises(ValueError):
            bad()


def test_published_files_are_read_as_they_stand() -> None:
    rtt = published.buckets("paper_figure5.csv", "RTT")
    assert len(rtt) == 8 and rtt[">3000"].absolute_ms == 3387.37
    assert published.buckets("paper_figure6.csv")["56"].percent == 17.92
    assert published.buckets("paper_figure7.csv")["7"].responses_percent == 65.07
    assert len(published.fetches("zhao2019_raw.csv")) == 128


@pytest.mark.parametrize(("text", "words"), [
    ("a,b\n1,2\n", "has no column responses_percent"),
    ("bucket,responses_percent,absolute_ms,percent\n1,2,x,4\n", "absolute_ms 'x'"),
    ("bucket,responses_percent,absolute_ms,percent\n1,2\n", "absolute_ms ''"),
    ("# only a comment\n", "has no column"),
])
def test_a_damaged_published_file_is_named(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(UsageError, match=f"paper/p.csv: .*{words}"):
        published.buckets("p.csv", folder=tmp_path)
    with pytest.raises(UsageError, match="none.csv: cannot be read"):
        published.fetches("none.csv", folder=tmp_path)
    with pytest.raises(UsageError, match="no panel 'RTTT'"):
        published.buckets("paper_figure5.csv", "RTTT")


def test_published_times_and_what_is_lacking(tmp_path: Path) -> None:
    windows = published.buckets("paper_figure2.csv")
    assert windows["3"].total_ms == 489.81 and windows["3"].absolute_ms is None
    rows = published.buckets("marrama2012.csv", "FAST")
    assert (rows["100000"].absolute_ms, rows["100000"].percent) == (None, 20)
    assert published.buckets("marrama2012.csv", "IW")["3"].error_ms == 3
    assert published.source("marrama2012.csv").startswith("Marrama and Dubie 2012")
    (tmp_path / "p.csv").write_text("bucket,total_ms,percent\n1,x,\n")
    with pytest.raises(UsageError, match="total_ms 'x' is not a number"):
        published.buckets("p.csv", folder=tmp_path)


def test_what_can_be_had_is_had_although_a_bar_failed(scenario: Scenario,
                                                      stored: list[Record]) -> None:
    records = changed(stored, lambda trial: trial.bandwidth_kbps == 56, fail)
    made, faults = analysis.drawable(scenario, records)
    assert [panel.figure.name for panel in made] == ["fig5_rtt", "fig5_bdp"]
    assert len(faults) == 1 and "bucket 56" in faults[0]
    with pytest.raises(MissingCells):
        analysis.drawable(scenario, stored[:9])
