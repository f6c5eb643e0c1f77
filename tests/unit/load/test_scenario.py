"""Load scenarios: what is asked, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from firstflight.base import files
from firstflight.base.errors import UsageError
from firstflight.findings.quantities import FLAGS, QUANTITIES
from firstflight.runs import scenario_file, schema
from firstflight.runs.kinds import NOTHING, Overrides
from firstflight.runs.scenario_file import ScenarioFile
from firstflight.study.load.scenario import (LoadClaim, LoadFigure, LoadPopulation, LoadScenario,
                                             LoadSweep, apply, expand, read_scenario, window_name)
from firstflight.study.load.study import KIND
from firstflight.study.load.trial import Clients, distribution, mean_bytes, wire_bytes

FILES = [file for file in map(scenario_file.find, scenario_file.names())
         if file.raw.get("kind") == "load"]
DEFAULTS: dict[str, Any] = {
    "bandwidth_kbps": 20000, "rtt_ms": 300, "queue_bdp": [1.0], "queue": ["droptail"],
    "load": [0.95], "response_bytes": [50000], "connections": [1], "initcwnd": [3, 10],
    "initrwnd": 100, "congestion_control": ["cubic"], "paced": [False], "clients": 2,
    "servers": 2, "duration_s": 300, "warmup_s": 30, "cooldown_s": 20, "repeat": 2}
MIX = [[3, 0.5], [10, 0.5]]


def made(tables: dict[str, Any] | None = None, **defaults: Any) -> LoadScenario:
    return read_scenario(ScenarioFile("made", "# c\n", {
        "kind": "load", "title": "t", "source": "s", "defaults": {**DEFAULTS, **defaults},
        "sweep": [{"name": "only"}], **(tables or {})}))


def over(repeat: int | None = None, client: str | None = None, **lists: Any) -> Overrides:
    return Overrides(lists, repeat, client)


def figure(**changes: Any) -> dict[str, Any]:
    return {"figure": [{"name": "f", "title": "t", "kind": "gain", "sweep": "only",
                        "windows": ["3", "10"], "by": "load", **changes}]}


def claim(**changes: Any) -> dict[str, Any]:
    return {**figure(), "claim": [{"figure": "f", "says": "s", "compares": ["3", "10"],
                                   "quantity": "mean_ms", "expects": "less", **changes}]}


def test_a_response_is_counted_with_all_its_headers() -> None:
    # 50 042 bytes with HTTP's headers in 35 segments; SYN-ACK, two acknowledgements, a FIN in one.
    assert wire_bytes(50000) == 50042 + 35 * 66 + 74 + 2 * 66
    assert wire_bytes(1) == 38 + 1 + 66 + 74 + 2 * 66


@pytest.mark.parametrize("file", FILES, ids=[file.name for file in FILES])
def test_every_load_scenario_expands_and_offers_what_it_says(file: ScenarioFile) -> None:
    made_ready = KIND.study(file)
    trials = made_ready.trials
    assert made_ready.whole and len({trial.id for trial in trials}) == len(trials)
    for trial in trials[:6]:
        assert sum(host.share for host in trial.hosts) == pytest.approx(1, abs=1e-4)
        per_s = sum(traffic["arrivals_per_s"] * traffic["connections"]
                    for traffic in trial.job()["traffic"])
        assert per_s == pytest.approx(trial.responses_per_s, rel=1e-4)


def test_windows_of_a_repeat_share_their_seed_and_repeats_do_not() -> None:
    trials = expand(made(), NOTHING, 1)
    seeds = {(trial.window, trial.repeat): trial.seed for trial in trials}
    assert seeds["3", 1] == seeds["10", 1] != seeds["3", 2] == seeds["10", 2]
    assert {trial.seed for trial in expand(made(), NOTHING, 2)}.isdisjoint(seeds.values())


def test_the_default_buffer_is_one_bdp_of_500_packets() -> None:
    assert expand(made(), NOTHING, 1)[0].queue_packets == 500


def test_sizes_of_a_service_have_the_papers_mean() -> None:
    assert mean_bytes(distribution("web_search")) == pytest.approx(10_300, rel=0.02)


def test_a_mix_is_named_by_its_windows() -> None:
    assert window_name(((10, 1.0),)) == "10"
    assert window_name(((3, 0.5), (10, 0.5))) == "3+10"
    assert window_name(((3, 0.9), (10, 0.1))) == "3*0.9+10*0.1"


def test_a_mix_gives_every_window_its_share_of_every_client() -> None:
    far = made({"population": [{"name": "far", "clients": [[0.25, 300, 512, 1],
                                                          [0.75, 100, 0, 0]]}]},
               population="far", initcwnd=[], mixes=[MIX])
    assert expand(far, NOTHING, 1)[0].hosts == (
        Clients(3, 0.125, 300, 512, 1), Clients(10, 0.125, 300, 512, 1),
        Clients(3, 0.375, 100), Clients(10, 0.375, 100))


@pytest.mark.parametrize(("wrong", "words"), [
    ({"load": [1.2]}, "offered load of 1.2 is out of range"),
    ({"load": [0]}, "offered load of 0 is out of range"),
    ({"queue_bdp": [0]}, "a bottleneck without a buffer passes nothing on"),
    ({"mixes": [[[3, 0.5], [10, 0.4]]]}, "0.5 + 0.4 sum to 0.9, not to 1"),
    ({"mixes": [[3, 10]]}, "list of [initial window, share]"),
    ({"initcwnd": []}, "has no initcwnd and no mixes"),
    ({"initcwnd": [0]}, "initial window of 0"),
    ({"queue": ["red"]}, "unknown 'red'"),
    ({"sizes": "web_serch"}, "'web_serch' (did you mean 'web_search'?)"),
    ({"paced": [1]}, "true or false"),
    ({"load": 0.5}, "has to be a list"),
    ({"connections": [0]}, "connections at once of 0"),
    ({"lod": [1]}, "[defaults]: unknown key 'lod' (did you mean 'load'?)"),
    ({"population": "near"}, "population: unknown 'near'"),
])
def test_what_cannot_be_is_refused_in_one_line(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as raised:
        made(**wrong)
    assert words in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize(("tables", "words"), [
    ({"sweep": []}, "has no [[sweep]], so nothing to measure"),
    ({"figures": []}, "unknown key 'figures' (did you mean 'figure'?)"),
    (figure(name="on_the_wire"), "the drawing of kept captures has this name"),
    (figure(name="sentences"), "the table of the file's own sentences has this name"),
    (figure(kind="pie"), '[[figure]] "f": kind: unknown \'pie\''),
    (figure(sweep="onyl"), "sweep: unknown 'onyl' (did you mean 'only'?)"),
    (figure(windows=["3", "16"]), "windows: unknown '16'"),
    (figure(windows=["3"]), "windows has to be a list of two or more"),
    (figure(by=""), "by: unknown ''"), (figure(by=None), "by"),
    ({"figure": [{key: value for key, value in figure()["figure"][0].items() if key != "by"}]},
     '"f": by is missing; known: load, response_bytes, queue_bdp, connections, variant, window'),
    ({"sweep": [{"name": "only", "clients": 0}]}, "clients"),
    (claim(figure="g"), '[[claim]] "s": figure: unknown \'g\''),
    (claim(compares=["3"]), "compares has to be two windows"),
    (claim(compares=["3", "16"]), "compares: unknown '16'"),
    (claim(quantity="mean"), "quantity: unknown 'mean' (did you mean"),
    (claim(expects="fewer"), "expects: unknown 'fewer'"),
    (claim(where={"lod": [1]}), "where: unknown key 'lod'"),
    (claim(where=0.5), "where has to be a table like {load = [0.5]}"),
])
def test_tables_that_do_not_fit_are_refused_by_name(tables: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as raised:
        made(tables)
    assert words in str(raised.value) and "\n" not in str(raised.value)


def test_every_key_stands_in_the_example_for_writers_of_scenarios() -> None:
    text = (files.PROJECT / "docs/examples/load.toml").read_text(encoding="utf-8")
    for table in (LoadSweep, LoadPopulation, LoadFigure, LoadClaim):
        for key in schema.keys_of(table):
            assert f"{key} = " in text, key


@pytest.mark.parametrize(("overrides", "words"), [
    (over(load=[1.5]), "--load: an offered load of 1.5"),
    (over(client="curl"), "--client: a load scenario has clients of its own"),
    (over(rtt_ms=[20, 50]), "--rtt: a load scenario takes one value at a time"),
    (over(repeat=0), "--repeat"),
    (over(load=[]), "--load: no value is given"),
])
def test_flags_that_do_not_fit_a_load_scenario_are_refused(overrides: Overrides,
                                                          words: str) -> None:
    with pytest.raises(UsageError, match=words):
        expand(made(), overrides, 1)


def test_a_flag_of_other_kinds_is_refused_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FLAGS, "mss", replace(QUANTITIES["mss"], flag="--mss"))
    with pytest.raises(UsageError, match="^made: --mss: a load scenario has none$"):
        expand(made(), over(mss=[1000]), 1)


def test_flags_replace_what_the_scenario_says() -> None:
    changed = apply(made(mixes=[MIX]), over(1, load=[0.5], initcwnd=[16], response_bytes=[9000],
                                            rtt_ms=[100], bandwidth_kbps=[5000]))
    (trial,) = expand(changed, NOTHING, 1)
    assert (trial.load, trial.window, trial.response_bytes) == (0.5, "16", 9000)
    assert {host.rtt_ms for host in trial.hosts} == {100} and trial.bandwidth_kbps == 5000


@pytest.mark.parametrize(("overrides", "whole"), [
    (NOTHING, True), (over(initcwnd=[3, 10, 42]), True), (over(initcwnd=[10]), False),
    (over(1), False)])
def test_a_study_knows_whether_its_figures_will_have_all_they_need(overrides: Overrides,
                                                                  whole: bool) -> None:
    file = ScenarioFile("made", "# c\n", {"kind": "load", "title": "t", "source": "s",
                                          "defaults": DEFAULTS, "sweep": [{"name": "only"}]})
    assert KIND.study(file, overrides).whole == whole


def test_a_published_table_is_looked_for_before_measuring() -> None:
    for name, words in (("Africa, al", "did you mean 'Africa, all'"), ("x", "unknown 'x'; known: ")):
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
