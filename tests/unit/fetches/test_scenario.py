"""Scenario files of fetches: what is read from them. What is refused: tests/refusals/fetches.py."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from firstflight.base.errors import UsageError
from firstflight.findings.quantities import QUANTITIES
from firstflight.runs import scenario_file
from firstflight.runs.kinds import Overrides, Study
from firstflight.runs.results.records import columns_of
from firstflight.study.fetches.record import METRICS, Record
from firstflight.study.fetches.scenario.trial import Trial
from firstflight.study.fetches.study import KIND
from firstflight.study.users import findings
from tests.golden import stored
from tests.unit.fetches.small import SMALL, WITHOUT_FIGURES, small


def test_one_value_needs_no_brackets(tmp_path: Path) -> None:
    (sweep,) = small(tmp_path, WITHOUT_FIGURES, ("rtt_ms = [20, 50]", "rtt_ms = 20"),
                     ("initcwnd = [3, 10]", "initcwnd = 3")).sweeps
    assert (sweep.lists["rtt_ms"], sweep.initcwnd) == ((20,), (3,))


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


def test_a_metric_is_a_column_that_is_declared_so_and_no_other_quantity() -> None:
    measured = columns_of(Record)[len(fields(Trial)):]
    assert [*METRICS] == [column for column in measured if column in METRICS]
    assert "goodput_kbps" in METRICS and "seen_initcwnd" in {*measured} - {*METRICS}
    assert not METRICS.keys() & QUANTITIES.keys()


def test_each_metric_can_be_that_of_a_figure_and_other_columns_cannot(tmp_path: Path) -> None:
    for name in METRICS:
        (figure,) = small(tmp_path, ('"total_ms"', f'"{name}"')).figures
        assert figure.metric == name
    with pytest.raises(UsageError, match="metric: unknown 'seen_initcwnd'"):
        small(tmp_path, ('"total_ms"', '"seen_initcwnd"'))


# What a scenario of fetches may not say together, and what may not be said in its place ---

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


def test_a_cake_that_lets_nothing_through_is_refused(tmp_path: Path) -> None:
    """Its memory holds no full packet: every transfer would time out."""
    with pytest.raises(UsageError, match="^small: cake lets nothing through a queue of 1 packet"):
        requested(tmp_path, lists={"queue": ["1"], "qdisc": ["fifo", "cake"]})
    assert requested(tmp_path, lists={"queue": ["2"], "qdisc": ["cake"]}).trials
    assert requested(tmp_path, lists={"queue": ["1"], "qdisc": ["fifo", "fq_codel"]}).trials


def test_flags_take_the_place_of_what_the_file_says(tmp_path: Path) -> None:
    made = requested(tmp_path, lists={"rtt_ms": [7.5], "loss_percent": [1]},
                     client="wget", repeat=3)
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
