"""The word of every bar, from both sides of its limits; sentences; recovery; the document."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lab import analysis, comparison, markdown, stats, table
from lab.analysis import Bucket, Excluded, Panel
from lab.comparison import (DIRECTION_ONLY, HARMS, HELPS, NOT_REPRODUCED, REPRODUCED, UNDECIDED)
from lab.errors import FirstFlightError
from lab.records import Record, RecordFile, read_records
from lab.scenario import LOSS, OF_EXPERIMENT, Claim, Figure, Scenario, load

PROJECT = Path(__file__).resolve().parent.parent.parent
GOLDEN = PROJECT / "tests" / "golden"
SMALL_SCENARIOS = ("marrama2012", "tselentis2013", "zhao2019")

FIGURE = Figure(name="f", title="t", kind="improvement", sweep="s", by="rtt_ms", weights="",
                baseline_initcwnd=3, experiment_initcwnd=10, metric="total_ms", published="",
                panel="")


def stored(name: str) -> tuple[Scenario, list[Record]]:
    return load(name), read_records(GOLDEN / f"{name}_trials.csv")


def bucket(base_ms: float, experiment_ms: float, label: str = "20", **changes: object) -> Bucket:
    absolute_ms, percent = base_ms - experiment_ms, (base_ms - experiment_ms) / base_ms * 100
    made = Bucket(label=label, value=20.0, share_percent=None, n=2, excluded=Excluded(), cells=1,
                  cells_asked=1, base_ms=base_ms, experiment_ms=experiment_ms,
                  absolute_ms=absolute_ms, percent=percent, base_median_ms=base_ms,
                  experiment_median_ms=experiment_ms, median_absolute_ms=absolute_ms,
                  median_percent=percent, published_absolute_ms=None, published_percent=None,
                  absolute_interval_ms=None, percent_interval=None)
    return replace(made, **changes)  # type: ignore[arg-type]


def panel(*buckets: Bucket, figure: Figure = FIGURE) -> Panel:
    return Panel(figure, buckets, "curl", "cubic")


@pytest.mark.parametrize(("changes", "word"), [
    # 100 of 1000 ms, 10 %
    ({"published_absolute_ms": 100.0, "published_percent": 10.0}, REPRODUCED),
    ({"published_absolute_ms": 77.0, "published_percent": 13.0}, REPRODUCED),
    ({"published_absolute_ms": 76.0, "published_percent": 10.0}, DIRECTION_ONLY),
    ({"published_absolute_ms": 142.0, "published_percent": 7.0}, REPRODUCED),
    ({"published_absolute_ms": 144.0, "published_percent": 7.0}, DIRECTION_ONLY),
    ({"published_absolute_ms": 100.0, "published_percent": 13.1}, DIRECTION_ONLY),
    ({"published_absolute_ms": 100.0, "published_percent": -1.0}, NOT_REPRODUCED),
    ({"published_absolute_ms": -100.0, "published_percent": -10.0}, NOT_REPRODUCED),
    ({"published_absolute_ms": 0.0, "published_percent": 10.0}, DIRECTION_ONLY),
    ({"published_absolute_ms": None, "published_percent": 12.0}, REPRODUCED),
    ({"published_absolute_ms": 90.0, "published_percent": None}, REPRODUCED),
    ({}, ""),
    # far off, but inside the interval of one, then of both
    ({"published_absolute_ms": 200.0, "published_percent": 20.0,
      "absolute_interval_ms": (50.0, 210.0), "percent_interval": (5.0, 15.0)}, DIRECTION_ONLY),
    ({"published_absolute_ms": 200.0, "published_percent": 20.0,
      "absolute_interval_ms": (50.0, 210.0), "percent_interval": (5.0, 21.0)}, REPRODUCED),
    # a value known to ±40 ms
    ({"published_absolute_ms": 140.0, "published_percent": 10.0}, REPRODUCED),
    ({"published_absolute_ms": 60.0, "published_percent": 10.0}, DIRECTION_ONLY),
    ({"published_absolute_ms": 60.0, "published_percent": 10.0, "published_error_ms": 40.0},
     REPRODUCED),
    ({"published_absolute_ms": 100.0, "published_percent": 15.0, "published_error_points": 5.0},
     REPRODUCED),
])
def test_a_word_on_both_sides_of_its_limits(changes: dict[str, object], word: str) -> None:
    (row,) = comparison.rows(panel(bucket(1000.0, 900.0, **changes)))
    assert row.word == word, row.test
    assert bool(row.test) == bool(word)


def test_nothing_improved_and_something_published_is_not_the_direction() -> None:
    (row,) = comparison.rows(panel(bucket(1000.0, 1000.0, published_absolute_ms=8.0,
                                          published_percent=0.0)))
    assert row.word == NOT_REPRODUCED and row.test == "8.0 > 2.4 ms; 0.0 ≤ 3.0 points"
    assert row.deviation_percent == -100


def test_percentages_are_compared_as_they_were_printed() -> None:
    """20 % of the baseline are 25 % of the experiment's time."""
    bar = bucket(1000.0, 800.0, published_absolute_ms=200.0, published_percent=20.0,
                 percent_interval=(20.0, 50.0))
    (ours,) = comparison.rows(panel(bar))
    (theirs,) = comparison.rows(panel(bar, figure=replace(FIGURE, percent_of=OF_EXPERIMENT)))
    assert (ours.percent, ours.published_percent, ours.deviation_points) == (20, 20, 0)
    assert theirs.percent == pytest.approx(25) and theirs.published_percent == pytest.approx(25)
    assert theirs.percent_interval == pytest.approx((25, 100))
    for percent in (-30.0, 0.0, 3.0, 64.3):
        assert analysis.of_baseline(analysis.of_experiment(percent)) == pytest.approx(percent)
    # 4 points apart in theirs, 2.5 in the paper's: theirs decides
    bar = bucket(1000.0, 800.0, published_percent=analysis.of_baseline(29.0))
    assert comparison.rows(panel(bar))[0].word == REPRODUCED
    assert comparison.rows(panel(bar, figure=replace(FIGURE, percent_of=OF_EXPERIMENT))
                           )[0].word == DIRECTION_ONLY


def test_exact_is_said_only_of_what_cannot_vary() -> None:
    for lossless, ends, deterministic, exact in (
            (True, (5.0, 5.0), False, True), (True, (5.0, 6.0), True, False),
            (True, None, True, True), (True, None, False, False),
            (False, (5.0, 5.0), True, False), (False, None, True, False)):
        (row,) = comparison.rows(panel(bucket(10.0, 5.0, lossless=lossless,
                                              absolute_interval_ms=ends)), deterministic)
        assert row.exact == exact, (lossless, ends, deterministic)
        assert (table.interval(row) == "exact") == exact


def test_words_are_counted() -> None:
    bars = [bucket(1000, 900, published_absolute_ms=ms) for ms in (100, 90, 300, -5, None)]
    counted = comparison.counts(comparison.rows(panel(*bars)))
    assert counted == {REPRODUCED: 2, DIRECTION_ONLY: 1, NOT_REPRODUCED: 1}
    assert comparison.summary(counted) == ("2 of 4 reproduced, 1 direction only,"
                                           " 1 not reproduced")
    assert comparison.summary(comparison.counts([])) == ""


@pytest.mark.parametrize(("claim", "word"), [
    (Claim("f", "", larger=("50", "20")), REPRODUCED),
    (Claim("f", "", larger=("20", "50")), NOT_REPRODUCED),
    (Claim("f", "", larger=("50", "50")), NOT_REPRODUCED),
    (Claim("f", "", equal=("20", "21")), REPRODUCED),
    (Claim("f", "", equal=("20", "50")), NOT_REPRODUCED),
    (Claim("f", "", highest_percent=42.9), REPRODUCED),
    (Claim("f", "", highest_percent=43.1), DIRECTION_ONLY),
])
def test_sentences_are_tested_on_the_bars(claim: Claim, word: str) -> None:
    bars = panel(bucket(1000, 900, "20"), bucket(1000, 905, "21"), bucket(1000, 600, "50"))
    (found,) = comparison.said([claim], [bars])
    assert found.word == word, found
    assert comparison.said([replace(claim, figure="other")], [bars]) == []


def test_overlapping_intervals_are_no_larger() -> None:
    claim = Claim("f", "", larger=("50", "20"))
    bars = [bucket(1000, 900, "20", percent_interval=(5.0, 16.0)),
            bucket(1000, 850, "50", percent_interval=(14.0, 16.0))]
    assert comparison.said([claim], [panel(*bars)])[0].word == NOT_REPRODUCED


def test_recovery_is_what_is_gained_beyond_the_lossless_network() -> None:
    figure = replace(FIGURE, kind=LOSS, by="loss_percent")
    bars = [bucket(1000, 900, "0", value=0.0),
            *(bucket(1000, 800, label, value=value, absolute_interval_ms=ends)
              for label, value, ends in (("1", 1.0, (101.0, 300.0)), ("2", 2.0, (99.0, 300.0)),
                                         ("5", 5.0, (50.0, 99.0))))]
    found = comparison.recoveries(panel(*bars, figure=figure))
    assert [recovery.word for recovery in found] == [HELPS, UNDECIDED, HARMS]
    assert found[0].part_ms == 100 and found[0].interval_ms == (1, 200)
    assert comparison.recoveries(panel(*bars[1:], figure=figure)) == []


def test_pairs_narrow_the_interval() -> None:
    """Two windows under the same random numbers: their difference hardly varies."""
    generator = stats.generator(5)
    common = generator.normal(1000, 300, 200)
    pairs = [(float(value), float(value - 50 + generator.normal(0, 5))) for value in common]
    base, experiment = stats.resampled_pairs([pairs], [1.0], stats.generator(1))
    low, high = stats.percentile_interval(base - experiment)
    assert low < 50 < high and high - low < 4
    apart = (stats.resampled_means([[one for one, _ in pairs]], [1.0], stats.generator(1))
             - stats.resampled_means([[other for _, other in pairs]], [1.0], stats.generator(2)))
    far_low, far_high = stats.percentile_interval(apart)
    assert far_high - far_low > 50


def test_records_of_lossy_networks_are_paired_by_their_seed() -> None:
    scenario, records = stored("marrama2012")
    figure = next(figure for figure in scenario.figures if figure.name == "loss")
    whole = analysis.panel(scenario, figure, records)
    shuffled = analysis.panel(scenario, figure, [
        replace(record, trial=replace(record.trial, seed=record.trial.seed + 1))
        if record.trial.initcwnd == 10 else record for record in records])
    for paired, apart in zip(whole.buckets[1:], shuffled.buckets[1:]):
        assert paired.absolute_interval_ms and apart.absolute_interval_ms and paired.n == 30
        assert paired.absolute_ms == apart.absolute_ms
        widths = [high - low for low, high in (paired.absolute_interval_ms,
                                               apart.absolute_interval_ms)]
        assert widths[0] < widths[1]
    assert whole.buckets[0].lossless and not whole.buckets[1].lossless
    assert comparison.recoveries(whole)


def test_a_window_sweep_stands_beside_the_published_times() -> None:
    scenario, records = stored("marrama2012")
    sweep = analysis.panel(scenario, scenario.figures[0], records)
    assert [bar.label for bar in sweep.buckets] == ["3", "6", "10", "16", "26", "42"]
    assert [bar.published_ms for bar in sweep.buckets] == [808, 681, 665, 641, 641, 642]
    first, second = sweep.buckets[:2]
    assert first.absolute_ms == 0 and first.n == 1
    assert second.absolute_ms == pytest.approx(first.experiment_ms - second.experiment_ms)
    rows = comparison.rows(sweep)
    assert rows[0].bucket.published_absolute_ms is None
    assert rows[1].bucket.published_absolute_ms == 127
    assert rows[1].bucket.published_error_ms == 6
    assert rows[0].word == "" and rows[1].word == REPRODUCED
    assert rows[1].published_percent == pytest.approx((808 / 681 - 1) * 100)
    assert sweep.n == 6


def test_every_bdp_bucket_has_the_published_share() -> None:
    """Weights of the joint distribution: all cells together carry each bucket's share."""
    scenario, records = stored("zhao2019")
    figure = next(figure for figure in scenario.figures if figure.name == "fig5_bdp")
    axis = scenario.axis_of(figure)
    weighted = analysis._weighted_cells(scenario, figure, axis)
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
        analysis.panel(other, figure, records)


# The document ------------------------------------------------------------------------

FACTS = {"engine": "uml", "kernel": "7.2.11", "virtual_time": True, "wall_s": 9.5,
         "emulated_s": 700.25, "finished_at": "2025-03-01T10:00:00+00:00", "state": "complete",
         "project": {"commit": "0123456789abcdef", "changed": True}}


def test_the_document_has_every_bar_with_its_word() -> None:
    chosen = [(*stored(name), {**FACTS, "folder": f"{name}/x"}) for name in SMALL_SCENARIOS]
    text = markdown.results(chosen, [load("zhao2019")])
    for scenario, records, _ in chosen:
        for drawn in analysis.panels(scenario, records):
            chapter = text.split(f"## {scenario.name}\n")[1].split(f"### {drawn.figure.name}:")[1]
            section = re.split("^##", chapter, flags=re.MULTILINE)[0]
            for row in comparison.rows(drawn, deterministic=True):
                if row.word:
                    assert any(line.startswith(f"| {row.bucket.label} |")
                               and f"| {row.word} | {row.test} |" in line
                               for line in section.splitlines()), (scenario.name, row)
        assert f"Run `{scenario.name}/x`, finished 2025-03-01T10:00:00+00:00" in text
    assert "kernel 7.2.11" in text and "700.25 s of emulated time in 9.5 s" in text
    assert "| zhao2019 | not measured: `./run.sh --scenario zhao2019`" in text
    assert "of what is said in words, 4 of 5 reproduced, 1 direction only" in text
    assert "commit 0123456789ab with changes" in text
    assert "beyond the lossless network" in text and " exact |" in text
    assert "nan" not in text and "None" not in text


def test_every_row_of_a_table_has_the_cells_of_its_header() -> None:
    text = markdown.results([(*stored(name), FACTS) for name in SMALL_SCENARIOS])
    width = 0
    for line in text.splitlines():
        if line.startswith("|"):
            width = width or line.count("|")
            assert line.count("|") == width, line
        else:
            width = 0
    assert markdown.grid(["a", "b"], [["x|y", "1"]]) == (
        "| a | b |\n| --- | ---: |\n| x\\|y | 1 |\n")


def store(results: Path, name: str, stamp: str, records: list[Record], state: str) -> None:
    folder = results / name / stamp
    folder.mkdir(parents=True)
    file = RecordFile(folder / "trials.csv")
    for record in records:
        file.append(record)
    file.close()
    (folder / "run.json").write_text(json.dumps({**FACTS, "state": state}))


def test_the_command_takes_the_newest_whole_run(tmp_path: Path) -> None:
    records = stored("tselentis2013")[1]
    store(tmp_path / "r", "tselentis2013", "20250101T000000.000Z-uml", records, "complete")
    store(tmp_path / "r", "tselentis2013", "20250102T000000.000Z-uml", records, "complete")
    store(tmp_path / "r", "tselentis2013", "20250103T000000.000Z-uml", records, "running")
    store(tmp_path / "r", "tselentis2013", "20250104T000000.000Z-uml", records[:4], "complete")
    damaged = tmp_path / "r" / "tselentis2013" / "20250105T000000.000Z-uml"
    store(tmp_path / "r", "tselentis2013", damaged.name, records, "complete")
    (damaged / "trials.csv").write_text("not,these\n1,2\n")
    output = tmp_path / "docs" / "RESULTS.md"
    command = [sys.executable, str(PROJECT / "results.py"), "--results", str(tmp_path / "r"),
               "--output", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0 and done.stdout == f"{output}\n", done.stderr
    text = output.read_text(encoding="utf-8")
    assert "Run `tselentis2013/20250102T000000.000Z-uml`" in text
    assert "20250105T000000.000Z-uml" in done.stderr and "passed over" in done.stderr
    assert "zhao2019 has no whole run; measure it with ./run.sh --scenario zhao2019" in done.stderr
    assert not list(output.parent.glob(".*"))
    again = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert again.returncode == 0 and output.read_text(encoding="utf-8") == text
    output.unlink()
    output.mkdir()
    failed = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert failed.returncode == 1 and "cannot be written" in failed.stderr
