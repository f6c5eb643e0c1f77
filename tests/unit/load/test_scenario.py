"""Load scenarios: how they are read, what a sweep expands into, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings, strategies as any_

from firstflight.base import PROJECT
from firstflight.base.errors import UsageError
from firstflight.findings.quantities import FLAGS, QUANTITIES
from firstflight.runs import batches, scenario_file, schema
from firstflight.runs.kinds import NOTHING, Overrides
from firstflight.runs.results.records import RowReader, RowWriter, columns_of
from firstflight.runs.scenario_file import ScenarioFile
from firstflight.scenario import requested
from firstflight.study.loads import KIND
from firstflight.testbed.network.commands import commands_of
from firstflight.workloads.load.analysis import format_named, format_value, name_of
from firstflight.workloads.load.record import LoadRecord
from firstflight.workloads.load.scenario import (TABLES, TAKEN, Compared, LoadClaim, LoadFigure,
                                                 LoadPopulation, LoadScenario, LoadSweep,
                                                 PopulationHost)
from firstflight.workloads.load.traffic import (ClientHost, MixPart, SizePoint, Window, mean_bytes,
                                                mean_wire_bytes, named_curve, single, wire_bytes)
from firstflight.workloads.load.trial import OF_SETTING, LoadTrial

FILES = [file for file in map(scenario_file.find, scenario_file.names())
         if file.raw.get("kind") == "load"]
DEFAULTS: dict[str, Any] = {
    "bandwidth_kbps": 20000, "rtt_ms": 300, "queue_bdp": [1.0],
    "load": [0.95], "response_bytes": [50000], "connections": [1], "initcwnd": [3, 10],
    "initrwnd": 100, "congestion_control": ["cubic"], "clients": 2,
    "servers": 2, "duration_s": 300, "warmup_s": 30, "cooldown_s": 20, "repeat": 2}
MIX = [{"initcwnd": 3, "share": 0.5}, {"initcwnd": 10, "share": 0.5}]
FAR = {"population": [{"name": "far", "clients": [
    {"share": 0.25, "rtt_ms": 300, "bandwidth_kbps": 512, "loss_percent": 1},
    {"share": 0.75, "rtt_ms": 100}]}]}


def made(tables: dict[str, Any] | None = None, **defaults: Any) -> LoadScenario:
    """A scenario with a sweep named "only".

    tables: its other tables. defaults: of [defaults], in place of DEFAULTS; None removes a key.
    """
    return TABLES.read(ScenarioFile("made", "# c\n", {
        "kind": "load", "title": "t", "source": "s", "defaults": {
            key: value for key, value in {**DEFAULTS, **defaults}.items() if value is not None},
        "sweep": [{"name": "only"}], **(tables or {})}))


def apply(scenario: LoadScenario, overrides: Overrides) -> LoadScenario:
    return requested.apply(scenario, overrides, TAKEN)


def expand(scenario: LoadScenario, overrides: Overrides, seed: int) -> list[LoadTrial]:
    return KIND.expand(scenario, overrides, seed)


def over(repeat: int | None = None, client: str | None = None, **lists: Any) -> Overrides:
    """Flags with these lists of values."""
    return Overrides(lists, repeat, client)


def figure(**changes: Any) -> dict[str, Any]:
    """A table with one figure. changes: of its keys."""
    return {"figure": [{"name": "f", "title": "t", "kind": "gain", "sweep": "only",
                        "windows": ["3", "10"], "by": "load", **changes}]}


def claim(**changes: Any) -> dict[str, Any]:
    """Tables with one figure and a claim on it. changes: of the claim's keys."""
    return {**figure(), "claim": [{"figure": "f", "says": "s", "compares": ["3", "10"],
                                   "metric": "mean_ms", "expects": "less", **changes}]}


def test_a_response_is_counted_with_all_its_headers() -> None:
    # 50,042 bytes with HTTP's headers need 35 segments. The SYN-ACK has 74 bytes, and an
    # acknowledgement and the FIN with one have 66.
    assert wire_bytes(50000) == 50042 + 35 * 66 + 74 + 2 * 66
    assert wire_bytes(1) == 38 + 1 + 66 + 74 + 2 * 66


@pytest.mark.parametrize("file", FILES, ids=[file.name for file in FILES])
def test_every_load_scenario_expands_to_trials_with_its_load(file: ScenarioFile) -> None:
    study = KIND.study(file)
    trials = study.trials
    assert study.whole and len({trial.id for trial in trials}) == len(trials)
    for trial in trials[:6]:
        assert sum(host.share for host in trial.clients) == pytest.approx(1, abs=1e-4)
        responses_per_s = sum(traffic["arrivals_per_s"] * traffic["connections"]
                              for traffic in trial.job()["traffic"])
        assert responses_per_s == pytest.approx(trial.responses_per_s, rel=1e-4)


def test_windows_of_a_repeat_share_their_seed_and_repeats_do_not() -> None:
    trials = expand(made(), NOTHING, 1)
    seeds = {(trial.window, trial.repeat): trial.seed for trial in trials}
    assert seeds["3", 1] == seeds["10", 1] != seeds["3", 2] == seeds["10", 2]
    assert {trial.seed for trial in expand(made(), NOTHING, 2)}.isdisjoint(seeds.values())


def test_the_default_buffer_is_one_bdp_of_500_packets() -> None:
    assert expand(made(), NOTHING, 1)[0].queue_packets == 500


def test_sizes_of_a_service_have_the_papers_mean() -> None:
    assert mean_bytes(named_curve("web_search")) == pytest.approx(10_300, rel=0.02)


def test_a_mix_is_named_by_its_windows() -> None:
    assert (single(10).name, single(10).label, single(10).initcwnd) == ("10", "IW 10", 10)
    even = Window((MixPart(3, 0.5), MixPart(10, 0.5)))
    assert (even.name, even.label, even.initcwnd) == ("3+10", "mix of IW 3 and 10", 0)
    assert Window((MixPart(3, 0.9), MixPart(10, 0.1))).name == "3*0.9+10*0.1"


def test_a_mix_gives_every_window_its_share_of_every_client() -> None:
    (trial, *_) = expand(made(FAR, population="far", initcwnd=[], mixes=[MIX]), NOTHING, 1)
    assert trial.clients == (
        ClientHost(0.125, 300, 3, 512, 1), ClientHost(0.125, 300, 10, 512, 1),
        ClientHost(0.375, 100, 3), ClientHost(0.375, 100, 10))
    assert (trial.window, trial.mix, trial.initcwnd) == (
        "3+10", (MixPart(3, 0.5), MixPart(10, 0.5)), 10)


@pytest.mark.parametrize(("wrong", "words"), [
    ({"load": [1.2]}, "offered load of 1.2 is out of range"),
    ({"load": [0]}, "offered load of 0 is out of range"),
    ({"queue_bdp": [0]}, "a bottleneck without a buffer passes nothing on"),
    ({"mixes": [[MIX[0], {"initcwnd": 10, "share": 0.4}]]}, "0.5 + 0.4 sum to 0.9, not to 1"),
    ({"mixes": [[3, 10]]}, "a list of tables, such as [{ initcwnd = 3, share = 0.5 }]"),
    ({"mixes": [[[3, 0.5], [10, 0.5]]]}, "such as [{ initcwnd = 3, share = 0.5 }]"),
    ({"initcwnd": []}, "has no initcwnd and no mixes"),
    ({"initcwnd": [0]}, "initial window of 0"),
    ({"qdisc": ["red"]}, "unknown 'red'"),
    ({"queue": ["droptail"]},
     """'droptail' is no length but a discipline: write qdisc = "fifo\""""),
    ({"queue": ["cake"]}, """write qdisc = "cake" (--qdisc cake)"""),
    ({"paced": [False]}, """'paced' is called 'qdisc' now: paced = true is qdisc = "fq\""""),
    ({"queue": "1bdp"}, "has queue_bdp, so it cannot have queue"),
    ({"qdisc": "cake", "queue": 1, "queue_bdp": None}, "cake lets nothing through a queue of 1"),
    ({"loss_burst": 4}, "bursts of losses (loss_burst, --burst-loss) need random loss"),
    ({"mss": 2000}, "88 to 1448 bytes"),
    ({"sizes": "web_serch"}, "'web_serch' (did you mean 'web_search'?)"),
    ({"load": "half"}, "'half' is not a number"),
    ({"connections": [0]}, "connections at once of 0"),
    ({"lod": [1]}, "[defaults]: unknown key 'lod' (did you mean 'load'?)"),
    ({"population": "near"}, "population: unknown 'near'"),
])
def test_impossible_sweeps_are_refused_in_one_line(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as raised:
        made(**wrong)
    assert words in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize(("tables", "words"), [
    ({"sweep": []}, "has no [[sweep]], so nothing to measure"),
    ({"figures": []}, "unknown key 'figures' (did you mean 'figure'?)"),
    (figure(name="on_the_wire"), "the drawing of kept captures has this name"),
    (figure(kind="pie"), '[[figure]] "f": kind: unknown \'pie\''),
    (figure(sweep="onyl"), "sweep: unknown 'onyl' (did you mean 'only'?)"),
    (figure(windows=["3", "16"]), "windows: unknown '16'"),
    (figure(windows=["3"]),
     'windows: a figure of kind "gain" compares at least 2, the baseline first'),
    (figure(by=""), "by: unknown ''"), (figure(by=None), "by"),
    ({"figure": [{key: value for key, value in figure()["figure"][0].items() if key != "by"}]},
     '"f": by is missing; known: load, response_bytes, queue_bdp, connections, variant, window'),
    ({"sweep": [{"name": "only", "clients": 0}]}, "clients"),
    (claim(figure="g"), '[[claim]] "s": figure: unknown \'g\''),
    (claim(compares=["3"]), 'compares: expects = "less" has 2 of them, the base first'),
    (claim(compares=["3", "16"]), "compares: unknown '16'"),
    (claim(metric="mean"), "metric: unknown 'mean' (did you mean"),
    (claim(expects="fewer"), "expects: unknown 'fewer'"),
    (claim(expects="most", compares=["3"]),
     'of a figure of kind "gain" a claim expects less, more, alike, not \'most\''),
    (claim(quantity="mean_ms"), "'quantity' is called 'metric' now"),
    (claim(where={"lod": [1]}), "where: unknown key 'lod'"),
    (claim(where=0.5), "where has to be a table like {load = [0.5]}"),
])
def test_invalid_tables_are_refused_by_name_and_key(tables: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as raised:
        made(tables)
    assert words in str(raised.value) and "\n" not in str(raised.value)


def test_every_key_is_in_the_example_scenario() -> None:
    text = (PROJECT / "docs/examples/load.toml").read_text(encoding="utf-8")
    for table in (LoadSweep, LoadPopulation, LoadFigure, LoadClaim):
        for key in schema.keys_of(table):
            assert f"{key} = " in text, key


def test_a_flag_of_another_workload_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FLAGS, "chirp", replace(QUANTITIES["mss"], flag="--chirp"))
    with pytest.raises(UsageError, match="^made: --chirp does not go with a scenario of kind"
                                         ' "load": the dumbbell has none$'):
        expand(made(), over(chirp=[1000]), 1)


def test_flags_replace_values_of_the_scenario() -> None:
    changed = apply(made(mixes=[MIX]), over(1, load=[0.5], initcwnd=[16], response_bytes=[9000],
                                            rtt_ms=[100], bandwidth_kbps=[5000]))
    (trial,) = expand(changed, NOTHING, 1)
    assert (trial.load, trial.window, trial.response_bytes) == (0.5, "16", 9000)
    assert {host.rtt_ms for host in trial.clients} == {100} and trial.bandwidth_kbps == 5000


def test_disciplines_controls_and_receive_windows_are_replaced_by_flags() -> None:
    trials = expand(made(), over(qdisc=["fifo", "cake"], congestion_control=["reno", "bbr"],
                                 initrwnd=[40]), 1)
    assert {(trial.qdisc, trial.congestion_control, trial.initrwnd) for trial in trials} == {
        (qdisc, control, 40) for qdisc in ("fifo", "cake") for control in ("reno", "bbr")}


@pytest.mark.parametrize(("overrides", "whole"), [
    (NOTHING, True), (over(initcwnd=[3, 10, 42]), True), (over(initcwnd=[10]), False),
    (over(load=[0.95, 0.5]), True), (over(rtt_ms=[300, 100]), False), (over(qdisc=["fq"]), False),
    (over(1), False)])
def test_a_study_is_whole_only_with_all_runs_of_its_figures(overrides: Overrides,
                                                            whole: bool) -> None:
    file = ScenarioFile("made", "# c\n", {"kind": "load", "title": "t", "source": "s",
                                          "defaults": DEFAULTS, "sweep": [{"name": "only"}]})
    assert KIND.study(file, overrides).whole == whole


def test_an_unknown_published_table_is_refused_before_measuring() -> None:
    for name, words in (("Africa, al", "did you mean 'Africa, all'"),
                        ("x", "unknown 'x'; known: ")):
        with pytest.raises(UsageError, match=f'^scenarios/made.toml.*"f": published: .*{words}'):
            made(figure(published=name))


def test_runs_are_counted_before_they_are_made() -> None:
    many = made(load=[number / 1000 for number in range(1, 1000)], repeat=10_000)
    with pytest.raises(UsageError, match="19980000 runs are requested, at most"):
        expand(many, Overrides({}, many=True), 1)
    assert made(repeat=3).sweeps[0].count == len(expand(made(repeat=3), Overrides({}), 1))


def test_a_queue_of_millions_is_refused() -> None:
    with pytest.raises(UsageError, match="sweep 'only': queue_bdp: a queue of .* out of range"):
        expand(made(queue_bdp=[100.0], bandwidth_kbps=10_000_000, rtt_ms=100_000), Overrides({}), 1)


# How values on axes are written -------------------------------------------------------

@pytest.mark.parametrize("axis, value, written, with_name", [
    ("response_bytes", 50_000, "50 kB", "response 50 kB"),
    ("response_bytes", 1500, "1.5 kB", "response 1.5 kB"),
    ("queue_bdp", 0.5, "0.5 BDP", "buffer 0.5 BDP"), ("load", 0.95, "0.95", "offered load 0.95"),
    ("connections", 4, "4", "connections at once 4"),
    ("variant", "cubic, droptail", "cubic, droptail", "cubic, droptail")])
def test_a_value_on_an_axis_is_written_with_its_unit(axis: str, value: Any, written: str,
                                                     with_name: str) -> None:
    assert format_value(axis, value) == written
    assert format_named(axis, value) == with_name
    assert name_of(axis)


# Claims and figures that are accepted, and some that are refused -------------------------

UNEVEN = [{"initcwnd": 3, "share": 0.9}, {"initcwnd": 10, "share": 0.1}]


@pytest.mark.parametrize("changes, accepted", [
    ({"compares": ["3", "10 in 3*0.9+10*0.1"], "metric": "p999_ms"}, True),
    ({"compares": ["3 in 3*0.9+10*0.1", "10 in 3*0.9+10*0.1"]}, True),
    ({"compares": ["3", "16 in 3*0.9+10*0.1"]}, False), ({"compares": ["3 in 3", "10"]}, False),
    ({"compares": ["3", "10 in 3*0.9+10*0.1"], "metric": "retransmission_percent"}, False),
    ({"compares": ["3", "3*0.9+10*0.1"], "metric": "retransmission_percent"}, True),
    ({"metric": "failed"}, True), ({"metric": "error"}, False), ({"metric": "ok"}, False),
    ({"metric": "seen_initcwnd"}, False), ({"compares": ["3", "10", "3"]}, False),
    ({"compares": "310"}, False)])
def test_a_claim_compares_windows_or_parts_of_a_mix_of_its_figure(changes: dict[str, Any],
                                                                 accepted: bool) -> None:
    tables = claim(**changes)
    tables["figure"][0].update(kind="mix", windows=["3", "10", "3*0.9+10*0.1"])
    if accepted:
        assert made(tables, mixes=[UNEVEN]).claims[0].metric == changes.get("metric", "mean_ms")
    else:
        with pytest.raises(UsageError, match='\\[\\[claim\\]\\] "s": (compares|metric)'):
            made(tables, mixes=[UNEVEN])


@pytest.mark.parametrize("where, read", [
    ({"load": 0.5}, (("load", (0.5,)),)),
    ({"load": [0.5, 0.75], "window": "3"}, (("load", (0.5, 0.75)), ("window", ("3",))))])
def test_the_cells_of_a_claim_are_given_by_one_value_or_a_list(where: Any, read: Any) -> None:
    assert made(claim(where=where)).claims[0].where == read
    assert made(claim()).claims[0].where == ()


@pytest.mark.parametrize("changes, accepted", [
    ({"sweep": "only", "windows": ["3", "10"]}, True),
    ({"sweep": "only", "windows": ["3", "16"]}, False),
    ({"sweep": "other", "windows": ["3", "16"]}, True),
    ({"sweep": ["only", "other"], "windows": ["10", "16"]}, True),
    ({"sweep": ["only", "none"], "windows": ["3", "10"]}, False),
    ({"kind": "distribution", "by": "load"}, True), ({"kind": "hit", "down": "load"}, False),
    ({"down": "load", "by": "queue_bdp"}, True), ({"down": "size"}, False)])
def test_a_figure_shows_windows_of_its_sweeps(changes: dict[str, Any], accepted: bool) -> None:
    tables = {**figure(**changes), "sweep": [{"name": "only"}, {"name": "other",
                                                                "initcwnd": [3, 16]}]}
    if accepted:
        assert len(made(tables).figures) == 1
    else:
        with pytest.raises(UsageError, match='\\[\\[figure\\]\\] "f": (sweep|windows|down)'):
            made(tables)


def test_equal_trials_of_different_values_are_measured_once() -> None:
    """With a distribution of sizes, every requested size is replaced by its mean."""
    trials = expand(made(sizes="web_search", response_bytes=[5000, 9000], repeat=1), NOTHING, 1)
    assert [trial.window for trial in trials] == ["3", "10"]
    assert len({trial.response_bytes for trial in trials}) == 1


def test_flags_for_the_network_replace_the_values_of_every_client() -> None:
    scenario = made(FAR, population="far", mixes=[UNEVEN])
    changed = apply(scenario, Overrides({"rtt_ms": [50], "bandwidth_kbps": [777],
                                         "loss_percent": [2]}, 3))
    (sweep,) = changed.sweeps
    (trial, *_) = expand(changed, NOTHING, 1)
    assert (trial.rtt_ms, trial.bandwidth_kbps, sweep.repeat) == (50, 777, 3)
    assert [(host.rtt_ms, host.bandwidth_kbps, host.loss_percent) for host in trial.clients] == [
        (50, 512, 2), (50, None, 2)]
    assert sweep.mixes
    one_window = apply(scenario, Overrides({"initcwnd": [7]}))
    assert one_window.sweeps[0].windows == (single(7),)
    assert [host.rtt_ms for host in one_window.sweeps[0].hosts] == [300, 100]
    assert apply(scenario, NOTHING) == scenario


# What a sweep expands into, and the limits of its clients, windows and sizes ----------

LISTS: dict[str, list[Any]] = {
    "queue_bdp": [0.5, 2.0], "qdisc": ["fifo", "cake"], "load": [0.5, 0.25],
    "response_bytes": [50_000, 9000], "connections": [1, 6], "rtt_ms": [40, 80],
    "bandwidth_kbps": [5000, 9000], "loss_percent": [0, 1], "jitter_ms": [0, 2],
    "congestion_control": ["reno", "bbr"], "initrwnd": [40, 100], "mss": [536, 1448],
    "module_parameter": ["none", "tcp_cubic.hystart=0"], "kernel": ["default", "mine"],
    "sysctl": ["none", "net.ipv4.tcp_sack=0"]}


def trials(**defaults: Any) -> list[LoadTrial]:
    return expand(made(**defaults), NOTHING, 1)


@pytest.mark.parametrize("name", LISTS)
def test_every_value_of_a_list_is_measured_with_every_window_and_seed(name: str) -> None:
    scenario = made(**{name: LISTS[name]}, mixes=[MIX], repeat=3)
    expanded = expand(scenario, NOTHING, 1)
    assert scenario.sweeps[0].count == len(expanded) == len({trial.id for trial in expanded}) == 18
    # The windows of a seed follow each other, and so do the seeds of a value.
    assert [(getattr(trial, name), trial.repeat, trial.window) for trial in expanded] == [
        (value, repeat, window) for value in LISTS[name] for repeat in (1, 2, 3)
        for window in ("3", "10", "3+10")]


@pytest.mark.parametrize(("defaults", "hosts"), [
    ({"clients": 28}, 30), ({"clients": 29}, 31), ({"clients": 1, "servers": 29}, 30),
    ({"clients": 14, "mixes": [MIX]}, 30), ({"clients": 15, "mixes": [MIX]}, 32)])
def test_a_guest_has_memory_for_thirty_hosts(defaults: dict[str, Any], hosts: int) -> None:
    if hosts == 30:
        assert trials(**defaults)
    else:
        with pytest.raises(UsageError,
                           match=f"{hosts} hosts are requested; a guest has memory for 30"):
            made(**defaults)


@pytest.mark.parametrize(("share", "accepted"), [(0.5 + 9e-7, True), (0.5 - 9e-7, True),
                                                 (0.5 + 2e-6, False), (0.5 - 2e-6, False)])
def test_shares_have_to_sum_to_one_except_for_rounding(share: float, accepted: bool) -> None:
    defaults: dict[str, Any] = {"mixes": [[MIX[0], {"initcwnd": 10, "share": share}]]}
    if accepted:
        assert trials(**defaults)[-1].window == "3+10"
    else:
        with pytest.raises(UsageError, match="sum to"):
            made(**defaults)


def test_a_load_may_have_no_mix() -> None:
    assert {trial.window for trial in trials(mixes=[])} == {"3", "10"}


def test_a_number_in_place_of_a_list_of_mixes_is_refused() -> None:
    with pytest.raises(UsageError, match="mixes: has to be a list of mixes, it is 5"):
        made(mixes=5)


def test_a_run_without_time_between_warmup_and_cooldown_is_refused() -> None:
    with pytest.raises(UsageError, match="leave nothing of 50 s"):
        made(duration_s=50)
    assert trials(duration_s=51)[0].counted_span_s == 1


def test_a_distribution_of_sizes_has_the_mean_of_its_quantiles() -> None:
    points = ((0.0, 100.0), (0.5, 200.0), (0.5, 400.0), (1.0, 800.0))
    assert mean_bytes(points) == pytest.approx((150 + 600) / 2, abs=0.01)
    assert mean_bytes(((1.0, 77.0),)) == 77 and mean_bytes(((0.0, 0.2), (1.0, 0.2))) == 1
    # Each size is one segment with the same headers, as all lengths have three digits.
    assert mean_wire_bytes(points) == pytest.approx(mean_bytes(points) + wire_bytes(500) - 500)
    (trial, *_) = trials(sizes=[{"share": share, "bytes": size} for share, size in points])
    assert trial.response_bytes == 375 and trial.size_curve == points
    assert trial.size_points == tuple(SizePoint(*point) for point in points)


@pytest.mark.parametrize(("clients", "words"), [
    ([], "list of tables, such as .{ share = 0.25, rtt_ms = 300, bandwidth_kbps = 512, loss_per"),
    ([[1, 300, 512, 1]], "list of tables"), ("far", "list of"), ([5], "list of"),
    ([{"share": 0.5}, {"share": 0.4}], "the clients 0.5 \\+ 0.4 sum to 0.9, not to 1"),
    ([{"share": 1, "bandwidth_kbps": -1}], "bandwidth"), ([{"share": 1, "rtt_ms": -1}], "RTT"),
    ([{"share": 1, "loss_percent": 101}], "loss"), ([{"rtt_ms": 1}], "share is missing"),
    ([{"share": 1, "kbps": 5}], "unknown key 'kbps'")])
def test_invalid_clients_of_a_population_are_refused(clients: Any, words: str) -> None:
    with pytest.raises(UsageError, match=f'"far": clients.*{words}'):
        made({"population": [{"name": "far", "clients": clients}]}, population="far")


@pytest.mark.parametrize(("host", "lists", "words"), [
    ({"jitter_ms": 30}, {"rtt_ms": 50}, "a jitter of 30 ms"),
    ({"rtt_ms": 50}, {"jitter_ms": 30}, "a jitter of 30 ms"),
    ({"loss_burst": 3}, {}, "loss_burst needs loss_percent")])
def test_a_host_that_contradicts_the_values_of_all_hosts_is_refused(host: dict[str, Any],
                                                                    lists: dict[str, Any],
                                                                    words: str) -> None:
    tables = {"population": [{"name": "far", "clients": [{"share": 1, **host}]}]}
    with pytest.raises(UsageError, match=f"population 'far': clients 1: {words}"):
        made(tables, population="far", **lists)


# Columns of a trial that hold JSON ----------------------------------------------------

COLUMNS = columns_of(LoadRecord)
positive = any_.floats(0.001, 1e5)
percents = any_.floats(0.001, 99) | any_.just(0.0)
hosts = any_.builds(
    ClientHost, any_.floats(1e-8, 1), any_.floats(0.1, 1e5), any_.integers(1, 65_535),
    any_.none() | any_.floats(1, 1e7), percents, any_.floats(1, 1000), any_.floats(0.001, 2147))
points = any_.lists(any_.tuples(any_.floats(0, 1), any_.integers(1, 50_000_000)), min_size=2,
                    max_size=9)
parts = any_.builds(MixPart, any_.integers(1, 65_535), any_.floats(0.0001, 1))


@settings(max_examples=50, deadline=None)
@given(any_.lists(hosts, min_size=1, max_size=30), any_.lists(parts, max_size=4), points)
def test_hosts_mixes_and_sizes_come_back_from_rows_and_batches_with_every_digit(
        clients: list[ClientHost], mix: list[MixPart], sizes: list[tuple[float, int]]) -> None:
    (usual, *_) = expand(made(), NOTHING, 1)
    trial = replace(usual, clients=tuple(clients), mix=tuple(mix),
                    size_points=tuple(SizePoint(*point) for point in sizes))
    row = RowWriter(LoadRecord, COLUMNS).row(LoadRecord(trial, True))
    assert RowReader(LoadRecord, COLUMNS).record(row).trial == trial
    sent = json.loads(json.dumps(batches.named_values(trial)))
    assert batches.trial_of(LoadTrial, sent) == trial


HOST = '{"share": 1, "rtt_ms": 50, "initcwnd": 10}'


@pytest.mark.parametrize(("text", "words"), [
    ("x", "Expecting value"), ("{}", "clients: is not a list"), ("[5]", "clients 1 is not a table"),
    ("[{}]", "clients 1: share is missing"), (f"[{HOST}, 5]", "clients 2 is not a table"),
    (f"[{HOST[:-1]}, \"kbps\": 5}}]", "unknown key 'kbps'"),
    (f"[{HOST.replace('50', '1e6')}]", "an RTT of"),
    (f"[{HOST.replace('50', '1e300')}]", "not a number in range"),
    (f"[{HOST.replace('50', 'NaN')}]", "NaN"),
    (f"[{HOST.replace('10', '0')}]", "an initial window of 0"),
    (f"[{HOST.replace('10', 'true')}]", "True is not a number"),
    (f"[{HOST.replace('50', '9' * 5000)}]", "5000 digits"),
    ("[" * 100_000, "nested too deep"), ("[" * 7 + "]" * 7, "nested too deep"),
    (f"[{', '.join([HOST] * 50_001)}]", "not a list of at most 50000"),
    (f'["{"x" * (4 << 20)}"]', "bytes, and may have")])
def test_hosts_of_a_row_that_no_scenario_allows_are_refused(text: str, words: str) -> None:
    (trial, *_) = expand(made(), NOTHING, 1)
    row = RowWriter(LoadRecord, COLUMNS).row(LoadRecord(trial, True))
    row[COLUMNS.index("clients")] = text
    with pytest.raises(ValueError, match="^clients") as raised:
        RowReader(LoadRecord, COLUMNS).record(row)
    assert words in str(raised.value) and "\n" not in str(raised.value)
    assert len(str(raised.value)) < 400


# Parameters of the setting reach the dumbbell ------------------------------------------

def test_a_flag_of_the_setting_reaches_every_host_and_the_job() -> None:
    scenario = made(FAR, population="far")
    flags = over(qdisc=["fq"], loss_percent=[2], loss_burst=[3], jitter_ms=[4], mss=[1000],
                  queue=["50ms"], initrwnd=[40], sysctl=["net.ipv4.tcp_sack=0"])
    (trial, *_) = expand(scenario, flags, 1)
    assert (trial.queue_packets, trial.queue_from, trial.queue_bdp) == (83, "50ms", None)
    assert all((host.loss_percent, host.loss_burst, host.jitter_ms) == (2, 3, 4)
               for host in trial.clients)
    job = trial.job()
    assert job["network"]["qdisc"] == "fq" and job["options"] == {"advertised_mss": 1012}
    assert job["host_sysctls"] == {"net.ipv4.tcp_sack": "0"} and "buffers" not in job
    assert job["network"]["clients"][0] == {
        "rtt_ms": 300, "kbps": 512, "loss_percent": 2, "loss_burst": 3, "jitter_ms": 4}
    commands = "\n".join(commands_of(job))
    for words in ("sysctl -w net.ipv4.tcp_sack='0'", "dev server1-eth0 root handle 1: fq",
                  "dev client1-eth0 initrwnd 40 advmss 1012", "4000us distribution normal",
                  "loss gemodel"):
        assert words in commands


@pytest.mark.parametrize("name", OF_SETTING)
def test_the_id_of_a_run_depends_on_each_parameter_of_the_setting(name: str) -> None:
    values = {"rtt_ms": 41, "bandwidth_kbps": 5001, "queue": "7ms", "qdisc": "cake",
              "loss_percent": 1, "jitter_ms": 2, "initrwnd": 41, "congestion_control": "reno",
              "mss": 600, "kernel": "mine", "module_parameter": "tcp_cubic.hystart=0",
              "sysctl": "net.ipv4.tcp_sack=0", "loss_burst": 3}
    base = over(loss_percent=[1]) if name == "loss_burst" else NOTHING
    changed = over(**{name: [values[name]], **base.lists})
    assert expand(made(), base, 1)[0].id != expand(made(), changed, 1)[0].id


def test_a_host_without_a_value_of_its_own_has_that_of_the_sweep() -> None:
    (trial, *_) = trials(rtt_ms=80, loss_percent=1, jitter_ms=2)
    assert {(host.rtt_ms, host.loss_percent, host.jitter_ms) for host in trial.clients} == {
        (80, 1, 2)}
    tables = {"population": [{"name": "far", "clients": [
        {"share": 0.5}, {"share": 0.5, "rtt_ms": 200, "jitter_ms": 9}]}]}
    (trial, *_) = expand(made(tables, population="far", rtt_ms=80, loss_percent=1), NOTHING, 1)
    assert [(host.rtt_ms, host.loss_percent, host.jitter_ms) for host in trial.clients] == [
        (80, 1, 0), (200, 1, 9)]
    assert LoadPopulation("far", (PopulationHost(1.0),)).clients[0].rtt_ms is None


def test_a_claim_may_name_a_part_of_a_mix() -> None:
    tables = claim(compares=["3", "10 in 3*0.9+10*0.1"])
    tables["figure"][0].update(kind="mix", windows=["3", "10", "3*0.9+10*0.1"])
    assert made(tables, mixes=[UNEVEN]).claims[0].compares == (
        Compared("3"), Compared("3*0.9+10*0.1", 10))
