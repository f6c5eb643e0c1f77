"""Scenario files: what they say, and what is refused with which words."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from firstflight.base.errors import USAGE, UsageError
from firstflight.findings.quantities import METRICS, QUANTITIES
from firstflight.runs import scenario_file
from firstflight.runs.results.records import columns_of, read_records
from firstflight.study.fetches.scenario.scenario import Scenario
from firstflight.study.fetches.scenario.trial import Trial
from firstflight.study.fetches.verify.record import Record
from tests.unit.fetches.conftest import GOLDEN
from tests.unit.fetches.small import WITHOUT_FIGURES, scenario_of, small


def test_zhao2019_is_the_published_grid(scenario: Scenario) -> None:
    assert [figure.name for figure in scenario.figures] == ["fig5_rtt", "fig5_bw", "fig5_bdp"]
    assert scenario.head.text == scenario_file.find("zhao2019").text
    (grid,) = scenario.sweeps
    assert len(grid.networks) == 64 and grid.count == 128
    assert (grid.initcwnd, grid.client) == ((3, 10), "curl")
    assert [grid.lists[name] for name in ("response_bytes", "initrwnd", "congestion_control",
                                          "uplink_kbps")] == [(9000,), (27,), ("cubic",), (None,)]


def test_marrama2012_is_what_they_measured() -> None:
    scenario = scenario_of("marrama2012")
    (headers,) = {record.header_bytes for record in read_records(
        GOLDEN.parent / "marrama2012_trials.csv", Record)}
    assert {(sweep.lists["response_bytes"], sweep.lists["initrwnd"])
            for sweep in scenario.sweeps} == {((28 * 1448 - (headers or 0),), (60,))}
    networks = {figure.name: scenario.sweep(figure.sweep).networks
                for figure in scenario.figures}
    assert networks["fig2"] == ((140, 1200),)
    assert [rtt for rtt, _ in networks["fig5_rtt"]] == [20, 50, 100, 200, 500, 1000, 3000]
    assert networks["fig5_bdp"] == ((50, 160), (100, 400), (100, 800), (200, 2000), (400, 2000))
    assert networks["fast"] == ((20, 1200), (20, 100000))


def test_one_value_needs_no_brackets(tmp_path: Path) -> None:
    (sweep,) = small(tmp_path, WITHOUT_FIGURES, ("rtt_ms = [20, 50]", "rtt_ms = 20"),
                     ("initcwnd = [3, 10]", "initcwnd = 3")).sweeps
    assert (sweep.lists["rtt_ms"], sweep.initcwnd) == ((20,), (3,))


@pytest.mark.parametrize(("old", "new", "words"), [
    ("rtt_ms = [20, 50]", "rtt_ms = [0, 50]", ["[[sweep]]", "rtt_ms", "0 ms", "100000"]),
    ("rtt_ms = [20, 50]", "rtt_ms = ['20']", ["'20' is not a number"]),
    ("rtt_ms = [20, 50]", "rtt_ms = []", ["list of numbers"]),
    ("rtt_ms = [20, 50]", "rtt_ms = [20, 20]", ["twice"]),
    ("rtt_ms = [20, 50]\n", "", ["rtt_ms is missing"]),
    ("rtt_ms = [20, 50]", "pairs = [[1, 2]]", ["pairs", "cannot have"]),
    ("rtt_ms = [20, 50]\nbandwidth_kbps = [56, 256]", "pairs = [[1]]", ["[rtt_ms, bandw"]),
    ("bandwidth_kbps = [56, 256]", "bandwidth_kbps = [0.5]", ["0.5 kbit/s"]),
    ("initcwnd = [3, 10]", "initcwnd = [0]", ["0 segments"]),
    ("initcwnd = [3, 10]", "initcwnd = [3.5]", ["whole"]),
    ("response_bytes = [9000]", "response_bytes = [2000000000]", ["2000000000 bytes"]),
    ("repeat = 1", "repeat = 10001", ["10001"]),
    ("loss_percent = 0", "loss_percent = 100", ["100 %"]),
    ("queue_packets = 1000", "queue_packets = 0", ["0 packets"]),
    ('uplink = "same"', 'uplink = "fast"', ["uplink", "'fast'"]),
    ('client = "curl"', 'client = "crul"', ["'crul'", "did you mean 'curl'?"]),
    ('congestion_control = "cubic"', 'congestion_control = "cu bic"', ["cu bic"]),
    ("initrwnd = 27", "initrwmd = 27", ["'initrwmd'", "did you mean 'initrwnd'?"]),
    ("[[sweep]]", "[[sweeep]]", ["'sweeep'", "did you mean 'sweep'?"]),
    ("shares_percent = [40, 60]", "shares_percent = [40, 59]", ["sum to 99.00"]),
    ("shares_percent = [40, 60]", "shares_percent = [40]", ["1 shares_percent for 2 values"]),
    ("shares_percent = [40, 60]", "labels = ['a']", ["1 labels for 2 values"]),
    ("shares_percent = [25, 75]\n", "", ["weights", "bandwidth_kbps", "shares_percent"]),
    ('weights = "bandwidth_kbps"\n', "", ["several cells"]),
    ('kind = "improvement"', 'kind = "improvment"', ["did you mean 'improvement'?"]),
    ('metric = "total_ms"', 'metric = "total"', ["did you mean 'total_ms'?"]),
    ('name = "by_rtt"', 'name = "../by"', ["file name"]),
    ('title = "t"', "title = 3", ["title has to be a string"]),
    ('weights = "bandwidth_kbps"', 'weights = "rtt_ms"', ["another axis"]),
    ("initcwnd = [3, 10]", f"initcwnd = [{'9' * 5000}]", ["small.toml"]),
    ('kind = "improvement"', 'kind = "loss"', ['has by = "loss_percent"']),
    ('kind = "improvement"', 'kind = "window_sweep"', ['has by = "initcwnd"']),
    ('by = "rtt_ms"\nweights', 'by = "initcwnd"\nweights', ['needs kind = "window_sweep"']),
    ('kind = "improvement"\nsweep = "grid"\nby = "rtt_ms"\nweights = "bandwidth_kbps"',
     'kind = "window_sweep"\nsweep = "grid"\nby = "initcwnd"', ["has 4"]),
    ('weights = "bandwidth_kbps"', 'weights = "joint"', ['needs by = "bdp_bytes"']),
    ("initcwnd = 10\n", "initcwnd = 10\npercent_of = 'base'\n", ["did you mean 'baseline'?"]),
    ("loss_percent = 0", "loss_percent = [0, 101]", ["101 %"]),
    ("repeat = 1", "repeat = 1\nrepeat_with_loss = 0", ["repeat_with_loss"]),
    ("[[figure]]", "[[claim]]\nfigure = 'by_rtt'\nsays = 'x'\n[[figure]]", ["has to have one"]),
    ("[[figure]]", "[[claim]]\nfigure = 'by_rt'\nsays = 'x'\nlarger = ['20', '50']\n[[figure]]",
     ["did you mean 'by_rtt'?"]),
    ("[[figure]]", "[[claim]]\nfigure = 'by_rtt'\nsays = 'x'\nequal = ['20']\n[[figure]]",
     ["labels of two bars"]),
    ("[[figure]]", "[[claim]]\nfigure = 'by_rtt'\nsays = 'x'\nequal = ['20', 50]\n[[figure]]",
     ["equal has to be the labels of two bars"]),
    ("repeat = 1", "repeat = 1\nframing = 'close'\nkept = 1", ["ends the connection: kept"]),
    ("# A claim.\n", "", ["line 1", "claim"]),
    ("rtt_ms = [20, 50]", "rtt_ms = [20, 50", ["line "]),
    ("repeat = 1", "repeat = = 1", ["line 10"]),
    ('title = "t"', 'title = "t"\ntitle = "t"', ["line 3"]),
    ("[[axis]]", "[axis]", ["line "]),
    ("initcwnd = 10\n", "initcwnd = 10\nalso = ['../x']\n", ["also becomes a file name"]),
    ("experiment_initcwnd = 10\n", "", ["experiment_initcwnd is missing"]),
    ("[[sweep]]", "[[population]]\nname = 'p'\n[[sweep]]", ["title is missing"]),
    ('source = "s"', 'source = "s"\n[sysctls]\nsack = "0"', ["sysctls", "sack"]),
    ("[[sweep]]", "[[sweep]]\nname = 'grid'\nrtt_ms = [1]\nbandwidth_kbps = [1]\n[[sweep]]",
     ["two of them"]),
    ("[defaults]", "[raw]\nfile = 'f'\nsweep = 'gird'\nmetric = 'total_ms'\n[defaults]",
     ["[raw]: sweep", "did you mean 'grid'?"]),
    ("[defaults]", "[raw]\nfile = 'f'\nsweep = 'grid'\nmetrics = 'total_ms'\n[defaults]",
     ["[raw]", "did you mean 'metric'?"]),
    ("[[sweep]]", "[[population]]\nname = 'p'\nlike = []\n[[sweep]]", ["unknown key 'like'"]),
    # What is published is looked for before anything is measured.
    ("initcwnd = 10\n", "initcwnd = 10\npublished = 'paper_figure5.csv'\npanel = 'X'\n",
     ["has no panel 'X'"]),
    ("initcwnd = 10\n", "initcwnd = 10\npublished = 'paper_figure3_cdf.csv'\n",
     ["has no column responses_percent, absolute_ms"]),
    ("initcwnd = 10\n", "initcwnd = 10\npublished = 'paper_figure5.csv'\npanel = 'BW'\n",
     ["of none of its bars, 20, 50; the file has"]),
    ("[defaults]", "[raw]\nfile = 'paper_figure5.csv'\nsweep = 'grid'\nmetric = 'total_ms'\n"
     "[defaults]", ["has no column initcwnd"]),
    ("[defaults]", "[raw]\nfile = 'zhao2019_raw.csv'\nsweep = 'grid'\nmetric = 'total_ms'\n"
     "[[raw.defect]]\nby = 'loss_percent'\nvalues = [1]\nmark = 'f'\nwhy = 'w'\n[defaults]",
     ["[[defect]]: by"]),
    ("[[figure]]", "[[figure]]\nname = 'by'\nalso = ['rtt']\ntitle = 't'\nkind = 'improvement'\n"
     "sweep = 'grid'\nby = 'rtt_ms'\nweights = 'bandwidth_kbps'\nbaseline_initcwnd = 3\n"
     "experiment_initcwnd = 10\nmetric = 'total_ms'\n[[figure]]",
     ["two would be drawn as 'by_rtt'"]),
])
def test_faults_are_told_in_one_line(tmp_path: Path, old: str, new: str,
                                     words: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        small(tmp_path, (old, new))
    message = str(caught.value)
    assert message.startswith("scenarios/small.toml") and "\n" not in message
    for word in words:
        assert word in message, message
    assert caught.value.exit_status == USAGE


@pytest.mark.parametrize("key", ["name", "rtt_ms", "bandwidth_kbps", "pairs"])
def test_what_is_a_sweeps_own_has_no_default(tmp_path: Path, key: str) -> None:
    with pytest.raises(UsageError, match=rf"\[defaults\]: unknown key '{key}'"):
        small(tmp_path, ("initrwnd = 27", f"{key} = 27"))


def test_percents_are_of_the_baseline_or_of_the_experiment(tmp_path: Path) -> None:
    for word in ("baseline", "experiment"):
        made = small(tmp_path, ("initcwnd = 10\n", f"initcwnd = 10\npercent_of = '{word}'\n"))
        assert made.figures[0].percent_of == word


def test_an_axis_without_labels_is_labelled_by_its_values(tmp_path: Path) -> None:
    named = small(tmp_path).axes[0]
    assert named.labels == ("20", "50") and named.label(50) == "50"
    assert named.share_percent(50) == 60
    labelled = small(tmp_path, ("values = [20, 50]", 'values = [20, 50]\nlabels = ["a", ">a"]'))
    assert labelled.axes[0].label(50) == ">a"


def test_shares_and_response_sizes_of_any_quantity_are_read(tmp_path: Path) -> None:
    """The values of an axis have the range of the quantity that it is by."""
    equal = small(tmp_path, ("shares_percent = [40, 60]", "shares_percent = [50, 50]"))
    assert equal.axes[0].shares_percent == (50, 50)
    axis = '[[axis]]\nby = "response_segments"\nvalues = [3, 10.5]\n[[figure]]'
    assert small(tmp_path, ("[[figure]]", axis)).axes[-1].values == (3, 10.5)
    with pytest.raises(UsageError, match='"response_bytes": values: a response of 0 bytes'):
        small(tmp_path, ("[[figure]]", axis.replace("segments", "bytes").replace("3,", "0,")))


def test_a_figure_of_windows_compares_with_its_baseline(tmp_path: Path) -> None:
    one = '[[sweep]]\nname = "one"\npairs = [[20, 56]]\n'
    figure = small(tmp_path, ("[[sweep]]", f"{one}[[sweep]]"),
                   ('kind = "improvement"\nsweep = "grid"\nby = "rtt_ms"\n'
                    'weights = "bandwidth_kbps"',
                    'kind = "window_sweep"\nsweep = "one"\nby = "initcwnd"\nalso = ["ccdf"]')
                   ).figures[0]
    assert (figure.baseline_initcwnd, figure.experiment_initcwnd) == (3, 10)
    assert figure.also == ("ccdf",)


def test_a_metric_is_whatever_is_measured_and_has_a_line_among_the_quantities() -> None:
    assert METRICS == tuple(column for column in columns_of(Record)[len(fields(Trial)):]
                           if column in QUANTITIES)
    assert "seen_initcwnd" not in METRICS
