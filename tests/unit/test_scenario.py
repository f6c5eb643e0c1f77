"""Scenario files and overrides: what expands, and what is refused with which words."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from lab.errors import USAGE, UsageError
from lab.records import read_records
from lab.scenario import QUANTITIES, SCENARIOS, Overrides, covers, expand, load, names, seed_of
from lab.study import FETCHES, kind_of

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


@pytest.mark.parametrize("name", [name for name in names() if kind_of(name) == FETCHES])
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
    ('kind = "improvement"', 'kind = "loss"', ['has by = "loss_percent"']),
    ('kind = "improvement"', 'kind = "window_sweep"', ['has by = "initcwnd"']),
    ('by = "rtt_ms"\nweights', 'by = "initcwnd"\nweights', ['needs kind = "window_sweep"']),
    ('kind = "improvement"\nsweep = "grid"\nby = "rtt_ms"\nweights = "bandwidth_kbps"',
     'kind = "window_sweep"\nsweep = "grid"\nby = "initcwnd"', ["has 4"]),
    ('weights = "bandwidth_kbps"', 'weights = "joint"', ['needs by = "bdp_bytes"']),
    ('by = "rtt_ms"\nweights = "bandwidth_kbps"', 'by = "bdp_bytes"\nweights = "joint"',
     ['no [[axis]] with by = "bdp_bytes"']),
    ("initcwnd = 10\n", "initcwnd = 10\npercent_of = 'base'\n", ["did you mean 'baseline'?"]),
    ("loss_percent = 0", "loss_percent = [0, 101]", ["101 %"]),
    ("repeat = 1", "repeat = 1\nrepeat_with_loss = 0", ["repeat_with_loss"]),
    ("[[figure]]", "[[claim]]\nfigure = 'by_rtt'\nsays = 'x'\n[[figure]]", ["has to have one"]),
    ("[[figure]]", "[[claim]]\nfigure = 'by_rt'\nsays = 'x'\nlarger = ['20', '50']\n[[figure]]",
     ["did you mean 'by_rtt'?"]),
    ("[[figure]]", "[[claim]]\nfigure = 'by_rtt'\nsays = 'x'\nequal = ['20', '51']\n[[figure]]",
     ["bar", "'51'"]),
    ("[[figure]]", "[[claim]]\nfigure = 'by_rtt'\nsays = 'x'\nequal = ['20']\n[[figure]]",
     ["labels of two bars"]),
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


def test_marrama2012_is_what_they_measured() -> None:
    scenario = load("marrama2012")
    trials = expand(scenario)
    (headers,) = {record.header_bytes for record in read_records(
        SCENARIOS.parent / "tests" / "golden" / "marrama2012_trials.csv")}
    assert {trial.response_bytes for trial in trials} == {28 * 1448 - (headers or 0)}
    assert {trial.initrwnd for trial in trials} == {60}
    networks = {figure.name: scenario.sweep(figure.sweep).networks
                for figure in scenario.figures}
    assert networks["fig2"] == ((140, 1200),)
    assert [rtt for rtt, _ in networks["fig5_rtt"]] == [20, 50, 100, 200, 500, 1000, 3000]
    assert networks["fig5_bdp"] == ((50, 160), (100, 400), (100, 800), (200, 2000), (400, 2000))
    assert networks["fast"] == ((20, 1200), (20, 100000))


def test_both_windows_meet_the_same_loss_and_repeats_differ() -> None:
    lossy = [trial for trial in expand(load("marrama2012")) if trial.loss_percent]
    by_repeat: dict[int, set[int]] = {}
    for trial in lossy:
        by_repeat.setdefault(trial.repeat, set()).add(trial.seed)
    assert all(len(seeds) == 1 for seeds in by_repeat.values())
    assert len({trial.seed for trial in lossy}) == len(by_repeat) >= 100
    assert all(0 <= trial.seed < 2**32 for trial in lossy)
    assert {trial.seed for trial in expand(load("marrama2012")) if not trial.loss_percent} == {0}
    other = {trial.seed for trial in expand(load("marrama2012"), seed=2) if trial.loss_percent}
    assert not other & {trial.seed for trial in lossy}


def test_seeds_start_netem_at_unlike_places() -> None:
    """The kernel's generator (taus113, no warm-up) as netem is seeded: first numbers are even."""
    def first(seed: int) -> int:
        start = (seed >> 32 ^ seed << 10 ^ seed) & 0xFFFFFFFF
        number = 0
        for shift_left, shift_right, mask, shift, least in (
                (6, 13, 0xFFFFFFFE, 18, 2), (2, 27, 0xFFFFFFF8, 2, 8),
                (13, 21, 0xFFFFFFF0, 7, 16), (3, 12, 0xFFFFFF80, 13, 128)):
            state = start + least if start < least else start
            number ^= ((state & mask) << shift & 0xFFFFFFFF) ^ (
                ((state << shift_left & 0xFFFFFFFF) ^ state) >> shift_right)
        return number

    numbers = [first(seed_of(1, repeat)) for repeat in range(1, 1001)]
    quarters = [sum(number >> 30 == quarter for number in numbers) for quarter in range(4)]
    assert all(200 < count < 300 for count in quarters), quarters


def test_a_lossless_network_is_not_repeated_like_a_lossy_one(tmp_path: Path) -> None:
    folder = small(tmp_path, ("loss_percent = 0", "loss_percent = [0, 2]"),
                   ("repeat = 1", "repeat = 2\nrepeat_with_loss = 30"))
    text = (folder / "small.toml").read_text(encoding="utf-8")
    (folder / "small.toml").write_text(text[:text.index("[[figure]]")], encoding="utf-8")
    scenario = load("small", folder)
    trials = expand(scenario)
    assert sum(not trial.loss_percent for trial in trials) == 4 * 2 * 2
    assert sum(trial.loss_percent == 2 for trial in trials) == 4 * 2 * 30
    assert len(expand(scenario, Overrides(repeat=3))) == 4 * 2 * 3 * 2
    assert covers(scenario, Overrides(repeat=1))
