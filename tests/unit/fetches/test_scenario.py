"""Scenario files: what they say, and what is refused with which words. What a scenario of fetches may not say together, and what may not be said in its place."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from firstflight.base.errors import USAGE, UsageError
from firstflight.findings.quantities import METRICS, QUANTITIES
from firstflight.runs import scenario_file
from firstflight.runs.kinds import Overrides, Study
from firstflight.runs.results.records import columns_of, read_records
from firstflight.study.fetches.scenario.scenario import Scenario
from firstflight.study.fetches.scenario.trial import Trial
from firstflight.study.fetches.study import KIND
from firstflight.study.fetches.verify.record import Record
from firstflight.study.users import findings
from tests.golden import stored
from tests.unit.fetches.conftest import GOLDEN
from tests.unit.fetches.small import scenario_of, SMALL, small, WITHOUT_FIGURES


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


# What a scenario of fetches may not say together, and what may not be said in its place ---

BY = 'by = "rtt_ms"\nweights = "bandwidth_kbps"'
BDP = """[[axis]]
by = "bdp_bytes"
values = [140, 350, 640, 1600]
shares_percent = [25, 25, 25, 25]
[[figure]]"""


@pytest.mark.parametrize("changes, message", [
    (((BY, ""),), '"by_rtt": by is missing'),
    (((BY, BY + '\ndown = "bandwidth_kbps"'),), 'down is a quantity of a figure of kind "map",'
     ' "window_map", "steps" or "levels", another one than by'),
    ((('kind = "improvement"\nsweep = "grid"\n' + BY, 'kind = "map"\nsweep = "grid"\nby = "rtt_ms"'
       '\ndown = "rtt_ms"'),), 'or "levels", another one than by'),
    ((("[[figure]]", BDP), (BY, 'by = "bdp_bytes"\nweights = "joint"'),
      ("[9000]", "[9000, 20000]")), 'weights = "joint" takes one response size and loss rate'),
    (((SMALL[SMALL.index("[[sweep]]"):], ""),), "has no [[sweep]], no [[population]] and no"
     " [users], so nothing to measure")])
def test_what_does_not_go_together_is_one_line(tmp_path: Path, changes: tuple[tuple[str, str], ...],
                                               message: str) -> None:
    with pytest.raises(UsageError) as refused:
        small(tmp_path, *changes)
    assert str(refused.value).startswith("scenarios/small.toml: ") and message in str(
        refused.value)


FIGURE = '[[figure]] "by_rtt": '
MAP_OF = 'kind = "improvement"\nsweep = "grid"\n' + BY
CLAIM = "[[claim]]\nfigure = 'by_rtt'\nsays = 'x'\n"


@pytest.mark.parametrize("old, new, message", [
    ("initcwnd = [3, 10]", "initcwnd = [3]", FIGURE + "sweep 'grid' has no initcwnd 10"),
    ("values = [20, 50]", "values = [20, 51]",
     FIGURE + "rtt_ms: the axis and sweep 'grid' differ in 50, 51"),
    ("values = [56, 256]", "values = [56, 255]",
     FIGURE + "bandwidth_kbps: the axis and sweep 'grid' differ in 255, 256"),
    ('sweep = "grid"', 'sweep = "gird"', FIGURE + "sweep: unknown 'gird' (did you mean 'grid'?)"),
    (MAP_OF, 'kind = "map"\nsweep = "grid"\nby = "bdp_bytes"', FIGURE + "by: unknown 'bdp_bytes'"),
    (MAP_OF, 'kind = "map"\nsweep = "grid"\nby = "rtt_ms"\ndown = "bdp_bytes"',
     FIGURE + "by: unknown 'bdp_bytes'"),
    (MAP_OF, 'kind = "levels"\nsweep = "grid"\nby = "bdp_bytes"', FIGURE + "by: unknown 'bdp_by"),
    (MAP_OF, 'kind = "groups"\nsweep = "grid"\nby = "mss"', FIGURE + "several cells fall in one"),
    (BY, 'by = "bdp_bytes"\nweights = "joint"', FIGURE + 'there is no [[axis]] with by = "bdp_by'),
    ("initcwnd = 10\n", "initcwnd = 10\npublished = 'x.csv'\n", FIGURE + "published: paper/x.csv: cannot be read"),
    ("[[figure]]", f"{CLAIM}equal = ['20', '51']\n[[figure]]",
     '[[claim]] "x": bar: unknown \'51\''),
    ("[[figure]]", f"{CLAIM}at_most = 'initcwnd'\n[[figure]]",
     '[[claim]] "x": figure: larger, most, equal, highest_percent apply to figures of bars, and'
     " at_most and more_where to figures of steps and levels; 'by_rtt' is of kind 'improvement'"),
    ("[[figure]]", CLAIM.replace("by_rtt", "by") + "highest_percent = 1\n[[figure]]",
     '[[claim]] "x": figure: unknown \'by\''),
    ("[defaults]", "one_in = 0\n[defaults]", "one_in: "),
    ('rtt_ms = [20, 50]\nbandwidth_kbps = [56, 256]', "pairs = [[1, 2]]\n[[sweep]]\nname = 'x'",
     "[[sweep]] \"x\": rtt_ms is missing"),
    ("[defaults]", "[own_server]\ncomand = 'x'\n[defaults]", "[own_server]: unknown key 'comand'"),
    ("[defaults]", "[users]\ninitcwnd = [1]\n[defaults]", "[users]: baseline_initcwnd is missing"),
    ("[defaults]", "cells = 1\n[defaults]", "cells"),
    ("repeat = 1\n", "repeat = 1\nname = 'x'\n", "[defaults]: unknown key 'name'"),
    ("[defaults]", "[raw]\nfile = 'x.csv'\nsweep = 'grid'\nmetric = 'total_ms'\n[defaults]",
     "[raw]: file: paper/x.csv")])
def test_a_fault_is_told_with_the_table_and_the_key_that_it_is_in(
        tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        small(tmp_path, (old, new))
    assert str(refused.value).startswith(f"scenarios/small.toml: {message}")


def test_a_grid_is_made_coarse_where_there_is_one(tmp_path: Path) -> None:
    part = ("[defaults]", "one_in = 2\n[defaults]")
    assert len(small(tmp_path, part, ("rtt_ms = [20, 50]", "rtt_ms = [20, 30, 40, 50]"),
                     WITHOUT_FIGURES).sweeps[0].lists["rtt_ms"]) == 3
    with pytest.raises(UsageError, match="^scenarios/small.toml: one_in: sweep 'grid' has pairs"):
        small(tmp_path, part, ("rtt_ms = [20, 50]\nbandwidth_kbps = [56, 256]",
                               "pairs = [[1, 2]]"), WITHOUT_FIGURES)
    with pytest.raises(UsageError, match="^scenarios/small.toml: one_in: it needs a grid"):
        small(tmp_path, part, (SMALL[SMALL.index("[[sweep]]"):], ""))


def requested(folder: Path, **more: Any) -> Study:
    small(folder, WITHOUT_FIGURES)
    return KIND.study(scenario_file.read(folder / "small.toml"), Overrides(
        more.pop("lists", {}), **more))


@pytest.mark.parametrize("more, message", [
    ({"sysctls": ("net.ipv4.tcp_sack=0",)}, "small: --sysctl: those of a scenario are in its"
     " file, under [sysctls]"),
    ({"lists": {"load": [0.5]}}, "small: --load: it has one transfer at a time; only scenarios"
     " of kind load take this flag (--list)")])
def test_flags_that_mean_nothing_there_are_refused(tmp_path: Path, more: dict[str, Any],
                                                   message: str) -> None:
    with pytest.raises(UsageError) as refused:
        requested(tmp_path, **more)
    assert str(refused.value).startswith(message)


def test_a_cake_that_lets_nothing_through_is_refused(tmp_path: Path) -> None:
    """Its memory holds no full packet: every transfer would time out."""
    with pytest.raises(UsageError, match="^small: cake lets nothing through a queue of 1 packet"):
        requested(tmp_path, lists={"queue": ["1"], "qdisc": ["fifo", "cake"]})
    assert requested(tmp_path, lists={"queue": ["2"], "qdisc": ["cake"]}).trials
    assert requested(tmp_path, lists={"queue": ["1"], "qdisc": ["fifo", "fq_codel"]}).trials


def test_flags_take_the_place_of_what_the_file_says(tmp_path: Path) -> None:
    made = requested(tmp_path, lists={"rtt_ms": [7.5], "loss_percent": [1]}, client="wget", repeat=3)
    assert not made.whole and len(made.trials) == 2 * 2 * 3
    assert {(trial.rtt_ms, trial.client, trial.loss_percent) for trial in made.trials} == {
        (7.5, "wget", 1)}
    assert {trial.repeat for trial in made.trials} == {1, 2, 3}
    assert requested(tmp_path, repeat=1).whole  # as the file has it


@pytest.mark.parametrize("more", [{"lists": {"initcwnd": [3]}}, {"client": "curl"}, {"repeat": 2}])
def test_a_sample_of_users_takes_no_flags(more: dict[str, Any]) -> None:
    file = scenario_file.of_run("users_of_x", USERS)
    with pytest.raises(UsageError, match="^users_of_x is a sample of users: its file says"):
        KIND.study(file, Overrides(more.pop("lists", {}), **more))


USERS = """# Which window?
title = "t"
source = "x.csv"
note = "A note"
[defaults]
client = "libcurl"
congestion_control = "bbr"
queue_packets = ["50ms"]
loss_percent = 0.5
jitter_ms = 3
uplink = 300
kept = 2
initrwnd = 44
repeat = 1
[users]
initcwnd = [10, 32]
baseline_initcwnd = 10
groups = [""]
group = [0, 0]
times = [1, 1]
rtt_ms = [20, 200]
bandwidth_kbps = [9000, 9000]
response_bytes = [9000, 60000]
"""


def test_what_is_assumed_of_users_is_told_with_its_numbers() -> None:
    made = KIND.study(scenario_file.of_run("users_of_x", USERS))
    users = made.scenario.users
    assert users is not None
    assert findings._assumed(made.scenario, users) == (
        "A note. Each user fetches once, after 2 earlier responses on it, alone on the link, by"
        " bbr, and offers a receive window of 44 segments; the bottleneck's queue holds 50ms"
        " (fifo), the uplink has 300 kbit/s, 0.5 % of packets are lost at random, the delay varies"
        " by 3 ms.")
    said_less = replace(made.scenario, head=replace(made.scenario.head, note=""))
    assert findings._assumed(said_less, users).startswith("Each user fetches once, after")


# Judging ------------------------------------------------------------------------------

def test_a_study_judges_with_its_sysctls(tmp_path: Path) -> None:
    """The model is told of buffers that a scenario sets; the verdict then differs."""
    made, trial = requested(tmp_path), stored.load("iw10")
    observed = type("Seen", (), {
        "trial_id": "x", "content": trial.observation, "client_pcap": trial.client,
        "server_pcap": trial.server, "files": {"a": b"b"}})()
    record, files = made.kind.judge(trial.trial, observed, True, {})
    assert isinstance(record, Record) and record.counts and files == {"a": b"b"}
    assert isinstance(record.trial, Trial)
    small_buffer, _ = made.kind.judge(trial.trial, observed, True,
                                 {"net.ipv4.tcp_rmem": "4096 5000 6000"})
    assert small_buffer.verdict_reason != record.verdict_reason
    real, _ = made.kind.judge(replace(trial.trial, rtt_ms=102.0), observed, False, {})
    assert "RTT" not in real.verdict_reason, "in real time 2 % are within the limits"


def test_a_label_of_other_buckets_than_the_published_is_refused_before_measuring() -> None:
    """Their joint distribution is of the published buckets: another one has no share."""
    text = scenario_file.find("zhao2019").text
    for old, new in (('labels = ["20", "50",', 'labels = ["21", "50",'),
                     ('"5000", ">5000"]', '"5000", ">6000"]'), ('">100000"]', '"200000"]')):
        assert old in text
        with pytest.raises(UsageError, match='^scenarios/x.toml: .*"fig5_bdp": the axis of .* has'
                                             " the buckets .*; the joint distribution has "):
            KIND.study(scenario_file.parsed("x", text.replace(old, new, 1)))
