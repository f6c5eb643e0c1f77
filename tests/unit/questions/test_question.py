"""A question by flags: its defaults, its scenario, its figures, and the same trials in any list."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firstflight.findings.charts import SquareChart
from firstflight.findings.findings import Finding, Report
from firstflight.findings.quantities import FLAGS
from firstflight.parameters import NETWORK, PARAMETERS, RESPONSE, TCP
from firstflight.runs import scenario_file
from firstflight.runs.kinds import NOTHING, Overrides, RunData, Study
from firstflight.study import registry
from firstflight.study.fetches.figures import grid
from firstflight.study.fetches.record import Record
from firstflight.study.fetches.scenario import varied_parameters
from firstflight.study.fetches.scenario.sweep import Sweep
from firstflight.study.fetches.scenario.trial import Trial
from firstflight.study.fetches.study import KIND, read_scenario
from firstflight.study.questions import question
from tests.golden import stored_fetches
from tests.golden.requested import QUESTIONS
from tests.parameters import another

GRID: dict[str, list[Any]] = {  # what zhao2019 asks for, in part
    "rtt_ms": [20, 50, 100], "bandwidth_kbps": [56, 1000], "response_bytes": [9000],
    "initcwnd": [3, 10], "initrwnd": [27], "queue": ["1000"]}


def study(client: str | None = None, **lists: list[Any]) -> Any:
    return registry.own_question("own", Overrides(lists, client=client))


def report(**lists: list[Any]) -> Report:
    """What the golden run of zhao2019 says of a question."""
    requested = study("curl", **{**GRID, **lists})
    cells = {replace(trial, scenario="zhao2019") for trial in requested.trials}
    records = [record for record in stored_fetches.stored("zhao2019") if record.trial in cells]
    assert len(records) == len(requested.trials)
    made: Report = requested.report(RunData(Path("own"), stored_fetches.FACTS, records))
    return made


def finding(of: Report, name: str) -> Finding:
    return next(each for each in of.findings if each.name == name)


def test_what_is_not_said_has_the_default_of_help() -> None:
    small, large = study(rtt_ms=[35]).trials
    assert (small.initcwnd, large.initcwnd, small.initrwnd) == (10, 30, 1000)
    told = {name: getattr(small, name) for name in FLAGS
            if name not in ("load", "initcwnd", "initrwnd", "uplink_kbps", "system")}
    assert told == {"rtt_ms": 35, **{name: FLAGS[name].check(FLAGS[name].parsed(
        FLAGS[name].default), "") for name in told if name != "rtt_ms"}}
    assert small.uplink_kbps == small.bandwidth_kbps and small.client == "libcurl"
    assert small.system == "here"


OTHERS = {
    "tls": Overrides({"chain_bytes": [4000, 9000], "signature": ["ecdsa", "mldsa44"],
                      "http": ["2"], "server": ["nginx"]}),
    "own_server": Overrides({"response_bytes": [1]}, own_server={
        "command": "serve  'a b\\n' {p}", "url_path": "/x?a=\"", "folders": ["/a b"]})}


@pytest.mark.parametrize("name", [*QUESTIONS, *OTHERS])
def test_a_question_is_written_so_that_an_equal_one_is_read(name: str) -> None:
    made = question.scenario("own", {**QUESTIONS, **OTHERS}[name])
    assert read_scenario(scenario_file.parsed("own", made.head.text)) == made


def test_chance_is_asked_a_hundred_times_unless_said() -> None:
    assert len(study(loss_percent=[0, 1]).trials) == 2 + 200
    assert len(registry.own_question("own", Overrides({"loss_percent": [1]}, repeat=3)).trials
               ) == 6


@pytest.mark.parametrize(("lists", "figures"), [
    ({}, [("windows", "window_sweep", "initcwnd", "")]),
    ({"qdisc": ["fifo", "fq"]}, [("bars", "groups", "qdisc", "")]),
    ({"initcwnd": [10]}, [("windows", "window_sweep", "initcwnd", "")]),
    ({"rtt_ms": [20, 50], "bandwidth_kbps": [1e3, 1e4]},
     [("map", "map", "rtt_ms", "bandwidth_kbps")]),
    ({"rtt_ms": [20, 50], "initcwnd": [1, 2, 3, 4, 5, 6, 7]}, [("map", "map", "rtt_ms", "")])])
def test_what_varies_decides_on_the_figure(lists: dict[str, list[Any]],
                                           figures: list[tuple[str, ...]]) -> None:
    requested = study(**lists)
    assert requested.whole and [(each.name, each.kind, each.by, each.down) for each in
                            requested.scenario.figures] == [
                                *figures, ("packets", "packets", "", "")]


def test_the_kept_text_asks_the_same() -> None:
    """A stored run is read with it again, and resumed by it."""
    requested = registry.own_question("dsl", Overrides(
        {"queue": ["bdp", "20"], "rtt_ms": [0.2], "idle_ms": [10], "congestion_control": ["bbr"]},
        sysctls=("net.ipv4.tcp_sack=0", "net.ipv4.tcp_rmem=4096 65536 65536")))
    again = registry.study_of(scenario_file.of_run("dsl", requested.head.text))
    assert again.trials == requested.trials and {trial.kept for trial in requested.trials} == {1}
    assert again.head == requested.head and requested.head.sysctls[
        "net.ipv4.tcp_rmem"].endswith("65536")


def test_a_map_for_each_window_and_what_else_varies() -> None:
    chart = finding(report(**{"initcwnd": [10, 3]}), "map").chart
    assert isinstance(chart, SquareChart) and chart.maps[0].rows[1][2].value < 0  # type: ignore
    requested = study(rtt_ms=[1, 2], bandwidth_kbps=[1e3, 1e4], qdisc=["fifo", "fq"],
                  initcwnd=[1, 2, 3])
    assert len(requested.trials) == 2 * 2 * 2 * 3


def test_more_maps_than_a_reader_takes_in_are_left_out_and_told(
        monkeypatch: pytest.MonkeyPatch) -> None:
    assert "maps are shown" not in finding(report(), "map").sentence
    monkeypatch.setattr(grid, "MOST_MAPS", 0)
    told = finding(report(), "map")
    assert isinstance(told.chart, SquareChart) and told.chart.maps == () == told.tables
    words = " The first 0 of 1 maps are shown, one for each window;"
    assert words in told.sentence and words in told.chart.foot


def test_a_map_of_thousands_is_not_looked_through_for_each_of_its_cells(
        monkeypatch: pytest.MonkeyPatch) -> None:
    """A map of 1,024 networks took eleven minutes to tell: its cells were listed for each cell."""
    listed: list[Sweep] = []
    requested: list[object] = []
    cells, columns = Sweep._cells, varied_parameters.requested_columns
    monkeypatch.setattr(Sweep, "_cells", lambda sweep: (listed.append(sweep), cells(sweep))[1])
    monkeypatch.setattr(varied_parameters, "requested_columns", lambda *given, **more: (
        requested.append(given), columns(*given, **more))[1])
    study = registry.own_question("own", Overrides({
        "rtt_ms": [20, 50, 100, 200], "bandwidth_kbps": [1000, 2000, 5000, 10_000],
        "response_bytes": [15_000, 60_000], "initcwnd": [10, 30]}))
    records = [Record(trial, True, total_ms=trial.rtt_ms * (3 if trial.initcwnd == 10 else 2),
                      verdict="pass") for trial in study.trials]
    listed.clear()
    report = study.report(RunData(Path("own"), stored_fetches.FACTS, records))
    assert report.answer.sentence and len(listed) < 12 and len(requested) < 24


# A cell's trial is the same in any list -----------------------------------------------

# Values to draw lists from. The client and whose programs run are the question's.
VALUES: dict[str, tuple[Any, ...]] = {
    "rtt_ms": (1, 20.5, 100, 3000), "bandwidth_kbps": (56, 1000, 20_000.5, 10_000_000),
    "uplink_kbps": (28, 1000), "queue": ("1", "100", "50ms", "0.5bdp"),
    "qdisc": ("fifo", "fq", "fq_codel", "cake"), "loss_percent": (0, 1, 5), "jitter_ms": (0, 2),
    "initcwnd": (1, 10, 44, 45, 64, 910, 911, 3000), "initrwnd": (2, 44, 45, 64, 400, 3000),
    "congestion_control": ("cubic", "reno", "bbr"), "mss": (1448, 536),
    "response_bytes": (1, 9000, 183_173), "gap_ms": (0, 50), "kept": (1, 2), "idle_ms": (0, 500)}
# Those of TLS and of servers go with few others, and bursts only with losses.
VALUES |= {name: (row.default, another(row, row.default)) for name, row in PARAMETERS.items()
           if row.quantity.flag and row.subject in (NETWORK, TCP, RESPONSE)
           and name not in (*VALUES, "loss_burst")}


def requested(lists: dict[str, list[Any]]) -> Study:
    made: Study = KIND.study_of(
        question.scenario("own", Overrides(lists, client="libcurl", repeat=2)), NOTHING, 7)
    return made


def told(of: Study) -> dict[Trial, tuple[Any, ...]]:
    """By trial, what the worker gets of it, and what is set for the whole run."""
    return {trial: (trial.job(), sorted(of.head.sysctls.items())) for trial in of.trials}


@pytest.mark.parametrize("seed", range(12))
def test_a_trial_is_the_same_in_any_list(seed: int) -> None:
    draw = random.Random(seed)
    lists = {name: draw.sample(values, draw.randint(1, min(3, len(values))))
             for name, values in VALUES.items()
             if name == "initcwnd" or draw.random() < 0.4}
    whole = told(requested(lists))
    if "idle_ms" in lists or "kept" not in lists:
        lists.setdefault("kept", [1] if any(lists.get("idle_ms", ())) else [0])
    parts: dict[Trial, tuple[Any, ...]] = {}
    split = max(lists, key=lambda name: len(lists[name]))
    for value in lists[split]:
        parts |= told(requested({**lists, split: [value]}))
    assert parts == whole
    assert len(whole) >= len(lists["initcwnd"]) * 2
