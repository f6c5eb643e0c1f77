"""Scenario files and overrides: what expands, and what is refused with which words."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from lab.errors import USAGE, UsageError
from lab.scenario import QUANTITIES, SCENARIOS, Overrides, covers, expand, load, names

SMALL = """\
# A claim.
title = "t"
source = "s"
[defaults]
response_bytes = [9000]
initcwnd = [3, 10]
initrwnd = 27
congestion_control = "cubic"
client = "curl"
repeat = 1
queue_packets = 1000
loss_percent = 0
uplink = "same"
[[sweep]]
name = "grid"
rtt_ms = [20, 50]
bandwidth_kbps = [56, 256]
[[axis]]
by = "rtt_ms"
values = [20, 50]
shares_percent = [40, 60]
[[axis]]
by = "bandwidth_kbps"
values = [56, 256]
shares_percent = [25, 75]
[[figure]]
name = "by_rtt"
title = "By RTT"
kind = "improvement"
sweep = "grid"
by = "rtt_ms"
weights = "bandwidth_kbps"
baseline_initcwnd = 3
experiment_initcwnd = 10
metric = "total_ms"
"""


def small(folder: Path, *changes: tuple[str, str]) -> Path:
    """SMALL with replacements, as folder/small.toml; returns the folder."""
    text = SMALL
    for old, new in changes:
        assert text.count(old) >= 1, old
        text = text.replace(old, new)
    (folder / "small.toml").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", names())
def test_every_scenario_loads_and_expands(name: str) -> None:
    scenario = load(name)
    trials = expand(scenario)
    assert trials and len(set(trials)) == len(trials)
    assert len({trial.id for trial in trials}) == len(trials)
    assert scenario.claim and scenario.claim.endswith(".") and "\n" not in scenario.claim
    assert trials == expand(load(name))


def test_zhao2019_is_the_published_grid() -> None:
    scenario = load("zhao2019")
    trials = expand(scenario)
    assert len(trials) == 8 * 8 * 2
    assert {trial.initcwnd for trial in trials} == {3, 10}
    assert all((trial.response_bytes, trial.initrwnd, trial.client, trial.congestion_control)
               == (9000, 27, "curl", "cubic") for trial in trials)
    assert all(trial.uplink_kbps == trial.bandwidth_kbps for trial in trials)
    assert [figure.name for figure in scenario.figures] == ["fig5_rtt", "fig5_bw", "fig5_bdp"]
    assert scenario.text == (SCENARIOS / "zhao2019.toml").read_text(encoding="utf-8")


def test_trials_of_one_network_are_adjacent_and_windows_alternate(tmp_path: Path) -> None:
    trials = expand(load("small", small(tmp_path)), Overrides(repeat=3))
    shapes = [(trial.rtt_ms, trial.bandwidth_kbps) for trial in trials]
    changes = sum(before != after for before, after in zip(shapes, shapes[1:]))
    assert changes == len(set(shapes)) - 1
    assert [(trial.repeat, trial.initcwnd) for trial in trials[:6]] == [
        (1, 3), (1, 10), (2, 3), (2, 10), (3, 3), (3, 10)]


def test_sweeps_are_united_without_duplicates(tmp_path: Path) -> None:
    folder = small(tmp_path, ("[[axis]]\nby = \"rtt_ms\"", """[[sweep]]
name = "again"
rtt_ms = [20]
bandwidth_kbps = [56, 999]
[[sweep]]
name = "lossy"
pairs = [[20, 56], [70, 1200]]
loss_percent = 2
uplink = 128
initcwnd = [4]
[[axis]]
by = "rtt_ms\""""))
    trials = expand(load("small", folder))
    assert len(trials) == 8 + 2 + 2
    assert [trial.uplink_kbps for trial in trials if trial.loss_percent == 2] == [128, 128]
    # The same RTT and bandwidth with loss is another network shape.
    assert [trial.initcwnd for trial in trials if trial.loss_percent == 2] == [4, 4]


def test_overrides_replace_lists_and_may_leave_the_scenario(tmp_path: Path) -> None:
    scenario = load("small", small(tmp_path))
    trials = expand(scenario, Overrides(rtt_ms=(77,), bandwidth_kbps=[1234.5], initcwnd=[4],
                                        response_bytes=[20000], client="wget",
                                        congestion_control="reno", repeat=2))
    assert [(trial.rtt_ms, trial.bandwidth_kbps, trial.uplink_kbps, trial.initcwnd,
             trial.response_bytes, trial.client, trial.congestion_control, trial.repeat)
            for trial in trials] == [
        (77, 1234.5, 1234.5, 4, 20000, "wget", "reno", repeat) for repeat in (1, 2)]
    assert len(expand(scenario, Overrides(rtt_ms=[20, 20.0]))) == 4


def test_overrides_reach_pairs(tmp_path: Path) -> None:
    folder = small(tmp_path, ("rtt_ms = [20, 50]\nbandwidth_kbps = [56, 256]",
                              "pairs = [[20, 56], [20, 256], [50, 56], [50, 256]]"))
    trials = expand(load("small", folder), Overrides(rtt_ms=[5]))
    assert {(trial.rtt_ms, trial.bandwidth_kbps) for trial in trials} == {(5, 56), (5, 256)}


def test_partial_and_covering(tmp_path: Path) -> None:
    scenario = load("small", small(tmp_path))
    assert covers(scenario, Overrides(repeat=5)) and covers(scenario, Overrides(initcwnd=[3, 10]))
    assert not covers(scenario, Overrides(rtt_ms=[20]))


@pytest.mark.parametrize(("old", "new", "words"), [
    ("rtt_ms = [20, 50]", "rtt_ms = [0, 50]", ["[[sweep]]", "rtt_ms", "0 ms", "600000"]),
    ("rtt_ms = [20, 50]", "rtt_ms = [-20, 50]", ["-20 ms"]),
    ("rtt_ms = [20, 50]", "rtt_ms = [nan, 50]", ["nan", "finite"]),
    ("rtt_ms = [20, 50]", "rtt_ms = [inf, 50]", ["inf", "finite"]),
    ("rtt_ms = [20, 50]", "rtt_ms = ['20']", ["'20' is not a number"]),
    ("rtt_ms = [20, 50]", "rtt_ms = [true]", ["True is not a number"]),
    ("rtt_ms = [20, 50]", "rtt_ms = 20", ["list of numbers"]),
    ("rtt_ms = [20, 50]", "rtt_ms = []", ["list of numbers"]),
    ("rtt_ms = [20, 50]", "rtt_ms = [20, 20]", ["twice"]),
    ("rtt_ms = [20, 50]", "rtt_ms = [600001]", ["600001 ms", "out of range"]),
    ("rtt_ms = [20, 50]\n", "", ["rtt_ms is missing"]),
    ("rtt_ms = [20, 50]", "pairs = [[1, 2]]", ["pairs", "cannot have"]),
    ("rtt_ms = [20, 50]\nbandwidth_kbps = [56, 256]", "pairs = [[1]]", ["[rtt_ms, bandw"]),
    ("bandwidth_kbps = [56, 256]", "bandwidth_kbps = [0.5]", ["0.5 kbit/s"]),
    ("bandwidth_kbps = [56, 256]", "bandwidth_kbps = [1e8]", ["100000000 kbit/s"]),
    ("initcwnd = [3, 10]", "initcwnd = [0]", ["0 segments"]),
    ("initcwnd = [3, 10]", "initcwnd = [65536]", ["65536 segments"]),
    ("initcwnd = [3, 10]", "initcwnd = [3.5]", ["whole"]),
    ("initcwnd = [3, 10]", "initcwnd = [3]", ["no initcwnd 10"]),
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
    ("values = [20, 50]", "values = [20, 51]", ["differ in 50, 51"]),
    ("shares_percent = [25, 75]\n", "", ["weights", "bandwidth_kbps", "shares_percent"]),
    ('weights = "bandwidth_kbps"\n', "", ["several cells"]),
    ('kind = "improvement"', 'kind = "improvment"', ["did you mean 'improvement'?"]),
    ('metric = "total_ms"', 'metric = "total"', ["did you mean 'total_ms'?"]),
    ('sweep = "grid"', 'sweep = "gird"', ["did you mean 'grid'?"]),
    ('name = "by_rtt"', 'name = "../by"', ["file name"]),
    ('title = "t"', "title = 3", ["title has to be a string"]),
    ('weights = "bandwidth_kbps"', 'weights = "rtt_ms"', ["another axis"]),
    ("initcwnd = [3, 10]", f"initcwnd = [{10**400}]", ["hexadecimal digits"]),
    ("initcwnd = [3, 10]", f"initcwnd = [{'9' * 5000}]", ["small.toml"]),
    ("# A claim.\n", "", ["line 1", "claim"]),
    ("rtt_ms = [20, 50]", "rtt_ms = [20, 50", ["line "]),
    ("repeat = 1", "repeat = = 1", ["line 10"]),
    ('title = "t"', 'title = "t"\ntitle = "t"', ["line 3"]),
    ("[[axis]]", "[axis]", ["line "]),
    ('source = "s"', 'source = "s"\n[sysctls]\nsack = "0"', ["sysctls", "sack"]),
    ("[[sweep]]", "[[sweep]]\nname = 'grid'\nrtt_ms = [1]\nbandwidth_kbps = [1]\n[[sweep]]",
     ["two of them"]),
    ("[defaults]", "[raw]\nfile = 'f'\nsweep = 'gird'\nmetric = 'total_ms'\n[defaults]",
     ["[raw]: sweep", "did you mean 'grid'?"]),
    ("[defaults]", "[raw]\nfile = 'f'\nsweep = 'grid'\nmetrics = 'total_ms'\n[defaults]",
     ["[raw]", "did you mean 'metric'?"]),
])
def test_faults_are_told_in_one_line(tmp_path: Path, old: str, new: str,
                                     words: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        load("small", small(tmp_path, (old, new)))
    message = str(caught.value)
    assert message.startswith("scenarios/small.toml") and "\n" not in message
    for word in words:
        assert word in message, message
    assert caught.value.exit_status == USAGE


def test_unknown_scenario_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'zhao2019'"):
        load("zhao2091")
    with pytest.raises(UsageError, match="unknown scenario '../zhao2019'"):
        load("../zhao2019")


@pytest.mark.parametrize(("overrides", "words"), [
    (Overrides(rtt_ms=[0]), "--rtt: an RTT of 0 ms"),
    (Overrides(rtt_ms=[-1]), "--rtt: an RTT of -1 ms"),
    (Overrides(rtt_ms=[math.nan]), "--rtt: nan"),
    (Overrides(rtt_ms=[]), "--rtt: no value"),
    (Overrides(bandwidth_kbps=[math.inf]), "--bw: inf"),
    (Overrides(bandwidth_kbps=[1e300]), "--bw: a bandwidth of 1e\\+300 kbit/s"),
    (Overrides(initcwnd=[0]), "--iw: an initial window of 0 segments"),
    (Overrides(response_bytes=[0]), "--size: a response of 0 bytes"),
    (Overrides(initcwnd=[10**400]), "--iw: a number of"),
    (Overrides(rtt_ms=range(1, 1001), bandwidth_kbps=range(1, 1001)), "2000000 trials"),
    (Overrides(rtt_ms=range(1, 60001), bandwidth_kbps=range(1, 60001)), "3600000000 trials"),
    (Overrides(repeat=0), "--repeat"),
    (Overrides(repeat=10**9), "--repeat"),
    (Overrides(client="wgt"), "--client: unknown 'wgt' \\(did you mean 'wget'\\?\\)"),
    (Overrides(congestion_control="; rm"), "no name of an algorithm"),
])
def test_bad_overrides_name_the_flag(overrides: Overrides, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        expand(load("zhao2019"), overrides)


def test_limits_themselves_are_allowed() -> None:
    for quantity in QUANTITIES.values():
        for end in (quantity.lowest, quantity.highest):
            assert quantity.check(end, "here") == end
