"""What load runs say in numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy
import pytest

from firstflight.base.errors import FirstFlightError
from firstflight.findings.charts import LineChart
from firstflight.runs.results.records import FAIL
from firstflight.study.load import analysis
from firstflight.study.load.analysis import MissingRuns, Runs
from firstflight.study.load.record import LoadRecord
from firstflight.study.load.scenario import LoadFigure
from tests.golden import stored_load
from tests.golden.stored_load import RUN

FIGURES = {figure.name: figure for figure in stored_load.study().scenario.figures}


@pytest.fixture(name="records", scope="module")
def _records() -> list[LoadRecord]:
    return list(stored_load.run().records)


def runs_of(figure: LoadFigure, records: list[LoadRecord]) -> Runs:
    return Runs.of_figure(figure, records, RUN)


def test_gains_are_taken_seed_by_seed() -> None:
    gain = analysis.paired({1: 100.0, 2: 200.0}, {1: 90.0, 2: 190.0})
    assert gain is not None and gain.absolute.value == 10
    assert gain.absolute.interval == pytest.approx((10, 10))  # no luck of the draw is left
    assert gain.percent.value == pytest.approx(100 * 10 / 150)
    assert analysis.paired({1: 100.0}, {1: None}) is None


def test_jains_index() -> None:
    assert analysis.jain([5, 5]) == 1
    assert analysis.jain([1, 0]) == 0.5


def test_both_windows_meet_the_same_arrivals(records: list[LoadRecord]) -> None:
    runs = runs_of(FIGURES["distribution"], records)
    for repeat, record in runs.at("3").items():
        other = runs.connections(runs.at("10")[repeat])
        assert runs.connections(record).arrival_s.tolist() == other.arrival_s.tolist()


def test_a_mix_draws_what_is_stated_of_it(records: list[LoadRecord]) -> None:
    """What the larger window saves within the mix, and where everybody has it."""
    (shown,) = [finding for finding in stored_load.report().findings if finding.name == "mix"]
    stated = [value.value for statement in shown.statements for value in statement.numbers]
    assert isinstance(shown.chart, LineChart)
    means = {line.name or before.name: line.y[0]
             for before, line in zip(shown.chart.columns[0][1].lines,
                                     shown.chart.columns[0][1].lines[1:]) if line.x[0] < 1}
    within, everywhere = stated
    assert means == {"IW 10 in the mix": pytest.approx(within.value),
                     "IW 10 everywhere": pytest.approx(everywhere.value)}
    _, compared, groups = shown.chart.columns[0]
    assert compared.y_ends == groups.y_ends is not None, "both are what is saved, in percent"


def test_the_parts_of_a_mix_are_all_of_it(records: list[LoadRecord]) -> None:
    runs = runs_of(FIGURES["mix"], records)
    found = analysis.mixes(runs)
    assert list(found.alone) == ["3", "10"] and list(found.groups) == ["3+10"]
    parts = found.groups["3+10"]
    assert [part.window for part in parts] == ["3", "10"]
    assert sum(part.count for part in parts) == analysis.whole(runs, "3+10").count


def test_without_the_handshake_every_percentile_is_earlier(records: list[LoadRecord]) -> None:
    runs = runs_of(FIGURES["distribution"], records)
    for whole, rest in zip(analysis.distributions(runs),
                           analysis.distributions(runs, with_handshake=False)):
        assert whole.mean.value - rest.mean.value > 60  # the RTT
        assert (whole.count, whole.retransmission) == (rest.count, rest.retransmission)


def test_runs_whose_verdict_failed_enter_no_figure(records: list[LoadRecord]) -> None:
    failed = [replace(record, verdict=FAIL) if record.trial.window == "10" else record
              for record in records]
    with pytest.raises(MissingRuns, match="window 10"):
        runs_of(FIGURES["gain"], failed)
    one = [replace(record, verdict=FAIL) if record.trial.repeat == 1 else record
           for record in records]
    runs = runs_of(FIGURES["gain"], one)
    assert runs.left_out == 4 and {record.trial.repeat for record in runs.records} == {2}


def test_runs_that_fall_on_one_place_are_told(records: list[LoadRecord]) -> None:
    runs = runs_of(replace(FIGURES["gain"], by="queue_bdp"), records)
    with pytest.raises(MissingRuns, match="say by which axis they differ"):
        analysis.points(runs)


def test_a_missing_file_is_told_by_its_name(records: list[LoadRecord]) -> None:
    runs = Runs.of_figure(FIGURES["distribution"], records, RUN / "nowhere")
    for read in (runs.connections, runs.queue):
        with pytest.raises(FirstFlightError, match="nowhere.*cannot be read"):
            read(records[0])


def test_windows_without_a_seed_or_arrivals_in_common_are_told(records: list[LoadRecord]) -> None:
    hit = next(figure for figure in FIGURES.values() if figure.kind == "hit")
    apart = [replace(record, verdict=FAIL) if (record.trial.window, record.trial.repeat) in
             ((hit.windows[0], 1), (hit.windows[1], 2)) else record for record in records]
    with pytest.raises(MissingRuns, match="^hit: no seed was measured with both windows at 0"):
        analysis.hits(runs_of(hit, apart))
    shorter = [replace(record, trial=replace(record.trial, duration_s=4.0))
               if record.trial.window == hit.windows[1] else record for record in records]
    with pytest.raises(MissingRuns, match="^hit: small-.*-iw3-1 and small-.*-iw10-1 had other"):
        analysis.hits(runs_of(hit, shorter))


def test_a_transfer_is_hit_by_a_byte_that_is_sent_again(records: list[LoadRecord]) -> None:
    hit = next(figure for figure in FIGURES.values() if figure.kind == "hit")
    runs, slight = runs_of(hit, records), runs_of(hit, records)
    for record in records:
        own = runs.connections(record)
        slight._read[record.trial.id] = replace(
            own, retransmitted_bytes=numpy.minimum(own.retransmitted_bytes, 1))
    found = analysis.hits(slight)
    assert found == analysis.hits(runs) and found[1].same_count > found[0].same_count > 0
