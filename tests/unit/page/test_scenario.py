"""Scenarios of kind page: what a file may say, and the trials that it becomes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies

from firstflight.base import files
from firstflight.base.errors import UsageError
from firstflight.base.words import format_toml
from firstflight.runs import scenario_file, schema
from firstflight.runs.kinds import NOTHING, Overrides, Study
from firstflight.study.page import objects, scenario
from firstflight.study.page.objects import PageObject
from firstflight.study.page.study import KIND
from firstflight.study.page.trial import PageTrial
from firstflight.testbed.network.commands import commands_of

MADE = '[[page]]\nname = "p"\nobjects = 3\nbytes = 6000\n'
SWEEP = ('[[sweep]]\nname = "s"\npage = "p"\nrtt_ms = 40\nbandwidth_kbps = 5000\n'
         'initcwnd = [3, 10]\n')
FIGURE = '[[figure]]\nname = "f"\ntitle = "t"\nkind = "times"\nsweep = "s"\n'


def study(page: str = MADE, sweep: str = SWEEP, figure: str = FIGURE,
          overrides: Overrides = NOTHING) -> Study:
    text = f'# c\nkind = "page"\ntitle = "t"\nsource = "s"\n{page}{sweep}{figure}'
    return KIND.study(scenario_file.parsed("mine", text), overrides, 1)


def listed(*rows: dict[str, Any]) -> str:
    return '[[page]]\nname = "p"\n' + "".join("[[page.object]]\n" + "".join(
        f"{key} = {format_toml(value) if not isinstance(value, bool) else str(value).lower()}\n"
        for key, value in row.items()) for row in rows)


def test_a_page_is_measured_under_each_window_of_each_setting() -> None:
    trials = study(sweep=SWEEP + 'http = ["1.1", "2"]\nconnections = [1, 6]\n').trials
    assert [(trial.http, trial.connections, trial.initcwnd) for trial in trials] == [
        (http, connections, window) for http, connections in
        (("1.1", 1), ("1.1", 6), ("2", 1)) for window in (3, 10)]
    assert {trial.server for trial in trials} == {"nginx"}, "versions are compared on one server"
    assert {trial.server for trial in study().trials} == {"builtin"}
    assert len({trial.id for trial in trials}) == 6


def test_losses_are_drawn_once_for_all_windows() -> None:
    trials = study(sweep=SWEEP + "loss_percent = [0, 2]\nrepeat = 3\n").trials
    assert len(trials) == 2 + 3 * 2
    seeds = {trial.repeat: trial.seed for trial in trials if trial.loss_percent}
    assert len(set(seeds.values())) == 3 and all(
        trial.seed == seeds[trial.repeat] for trial in trials if trial.loss_percent)


def test_parse_times_are_drawn_once_for_all_windows() -> None:
    made = study(sweep=SWEEP + "spread_ms = 20\nrepeat = 3\n").trials
    assert len(made) == 3 * 2 and all(trial.seed == 0 for trial in made)
    pages = {trial.repeat: trial.objects for trial in made}
    assert len(set(pages.values())) == 3
    assert all(trial.objects == pages[trial.repeat] for trial in made)
    document, *others = made[0].requested
    assert document.parse_ms == 0 and all(0 < each.parse_ms < 20 for each in others)


@pytest.mark.parametrize(("length", "packets"), [
    ("auto", 100), ("7", 7), ("100ms", 42), ("0.5bdp", 9), ("2bdp", 34)])
def test_a_queue_has_its_length_in_packets(length: str, packets: int) -> None:
    """5 Mbit/s for 40 ms are 25 kB, 16.5 full frames."""
    (first, *_) = study(sweep=SWEEP + f'queue = ["{length}"]\n').trials
    assert first.queue_packets == packets


def test_a_made_page_names_its_objects_along_the_document() -> None:
    assert objects.equal_objects(3, 6000, 8000) == (
        PageObject(8000), PageObject(6000, 1, 2000), PageObject(6000, 1, 4000),
        PageObject(6000, 1, 6000))


def test_a_listed_page_has_defaults() -> None:
    page = listed({"bytes": 9000, "early": True}, {"bytes": 5000},
                  {"bytes": 10, "named_by": 2, "parse_ms": 1.5, "think_ms": 2, "host": 3},
                  {"bytes": 10, "named_by": 1, "at_byte": 0})
    assert study(page).trials[0].requested == (
        PageObject(9000, is_early=True), PageObject(5000, 1, 9000),
        PageObject(10, 2, 5000, 1.5, 2.0, 3), PageObject(10, 1, 0))


def test_objects_that_are_alike_are_named_evenly() -> None:
    page = listed({"bytes": 9000}, {"bytes": 50, "count": 3, "at_byte": 1000, "until_byte": 8000},
                  {"bytes": 10, "named_by": 4})
    assert study(page).trials[0].requested == (
        PageObject(9000), PageObject(50, 1, 1000), PageObject(50, 1, 4500), PageObject(50, 1, 8000),
        PageObject(10, 4, 50))


COUNTS = strategies.integers(1, 20_000)
TIMES = strategies.sampled_from((0.0, 0.5, 3.25, 1000.0))


@given(strategies.lists(strategies.tuples(COUNTS, COUNTS, COUNTS, TIMES, TIMES,
                                          strategies.integers(0, 63), strategies.booleans()),
                        min_size=1, max_size=30))
def test_the_text_of_a_page_is_read_back(rows: list[tuple[Any, ...]]) -> None:
    page: list[PageObject] = []
    for number, (size, by, at, parse_ms, think_ms, host, early) in enumerate(rows):
        by = by % number + 1 if number else 0
        page.append(PageObject(size, by, min(at, page[by - 1].size_bytes) if by else 0, parse_ms,
                               think_ms, host, early))
    assert objects.parse(objects.text_of(page)) == tuple(page)


@pytest.mark.parametrize(("page", "words"), [
    (listed({"bytes": 0}), "a response of 0 bytes is out of range"),
    (listed({"bytes": 10, "named_by": 1}), "object 1: is the document, which no object names"),
    (listed({"bytes": 10}, {"bytes": 10, "named_by": 2}), "object 2: named_by = 2: has to be"),
    (listed({"bytes": 10}, {"bytes": 10, "named_by": 3}, {"bytes": 9, "named_by": 2}),
     "object 2: named_by = 3: has to be the number of an object above it"),
    (listed({"bytes": 10}, {"bytes": 10, "at_byte": 11}), "object 1, which names it, has 10 bytes"),
    (listed({"bytes": 10}, {"bytes": 10, "host": 64}), "the number of a host of 64"),
    (listed({"bytes": 10}, {"bytes": 10, "count": 3}), "count goes with at_byte and until_byte"),
    (listed({"bytes": 10}, {"bytes": 10, "until_byte": 3}), "count goes with at_byte"),
    (listed({"bytes": 10}, {"bytes": 9, "count": 2, "at_byte": 9, "until_byte": 3}), "count goes"),
    (listed({"bytes": 10}, {"bytes": 9, "count": 2, "at_byte": 0, "until_byte": 11}),
     "object 1, which names it, has 10 bytes"),
    (listed({"bytes": 10, "parse_ms": -1}), "of -1 ms is out of range"),
    (listed({"bytes": 10, "parse": 1}), "unknown key 'parse' (did you mean 'parse_ms'?)"),
    (listed(*[{"bytes": 10}] * 1001), "a page of 1,001 objects; at most 1,000 fit"),
    (listed({"bytes": 31_000_000}), "a page of 31,000,000 bytes; at most 30,000,000 fit"),
    (MADE + "[[page.object]]\nbytes = 3\n", "either objects = N with bytes, or [[object]]s"),
    ('[[page]]\nname = "p"\n', "either objects = N with bytes"),
    ('[[page]]\nname = "p"\nobjects = 3\n', "bytes is missing"),
    ('[[page]]\nname = "q"\nobjects = 3\nbytes = 9\n', "there is no [[page]] 'p'"),
    ('[[page]]\nname = "p"\nobjects = 1000\nbytes = 9\n', "of 1000 is out of range")])
def test_a_page_that_cannot_be_is_refused_in_one_line(page: str, words: str) -> None:
    with pytest.raises(UsageError) as raised:
        study(page)
    assert words in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize(("sweep", "figure", "words"), [
    (SWEEP + 'http = ["3"]\n', FIGURE, "unknown '3'"),
    (SWEEP + 'server = "builtin"\nhttp = ["2"]\n', FIGURE, "builtin speaks HTTP/1.1 only"),
    (SWEEP + "connections = [0]\n", FIGURE, "connections at once of 0"),
    (SWEEP + 'server = "apache"\n', FIGURE, "unknown 'apache'"),
    (SWEEP, FIGURE + "windows = [3]\n", 'a figure of kind "waterfall" has one or two'),
    (SWEEP, FIGURE.replace("times", "waterfall") + "windows = [4]\n", "4 is not measured"),
    (SWEEP, FIGURE.replace('"s"', '"x"'), "sweep: unknown 'x'"), ("", FIGURE, "[[sweep]]"),
    (SWEEP, FIGURE + "[[claim]]\nfigure = 'f'\n", "unknown key 'claim'")])
def test_a_sweep_or_figure_that_cannot_be_is_refused(sweep: str, figure: str, words: str) -> None:
    with pytest.raises(UsageError) as raised:
        study(sweep=sweep, figure=figure)
    assert words in str(raised.value) and "\n" not in str(raised.value)


def test_nginx_cannot_think() -> None:
    page = listed({"bytes": 10}, {"bytes": 10, "think_ms": 5})
    with pytest.raises(UsageError, match="think_ms needs the server builtin"):
        study(page, SWEEP + 'http = ["2"]\n')
    assert study(page).trials[0].job()["objects"][1] == [10, 1, 10, 0.0, 5.0, 0]


@pytest.mark.parametrize(("lists", "words"), [
    ({"rtt_ms": [20, 50]}, "--rtt: a scenario of kind \"page\" takes one value"),
    ({"uplink_kbps": [20, 50]}, "--uplink: a scenario of kind \"page\" takes one value"),
    ({"mss": [1000]}, '--mss does not go with a scenario of kind "page"')])
def test_flags_that_do_not_go_with_a_page_are_refused(lists: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as raised:
        study(overrides=Overrides(lists))
    assert words in str(raised.value)


def test_flags_replace_what_the_file_has() -> None:
    made = study(overrides=Overrides({"rtt_ms": [20], "initcwnd": [5], "http": ["1.1"],
                                      "uplink_kbps": [700]}))
    (trial,) = made.trials
    assert (trial.rtt_ms, trial.initcwnd, trial.uplink_kbps) == (20, 5, 700)
    assert not made.whole


def test_the_worker_is_told_of_every_object() -> None:
    trial: PageTrial = study(sweep=SWEEP + 'http = ["2"]\n').trials[0]
    job = trial.job()
    assert job["paths"] == ["/6000"] and job["connections"] == 1 and job["server"] == "nginx"
    assert job["objects"][1] == [6000, 1, 1500, 0.0, 0.0, 0]
    assert any("page_client" in command for command in commands_of(job))


def test_every_key_stands_in_the_example_for_writers_of_scenarios() -> None:
    text = (files.PROJECT / "docs/examples/page.toml").read_text(encoding="utf-8")
    for table in (scenario.Page, scenario.ListedObject, scenario.PageSweep, scenario.PageFigure):
        for key in schema.keys_of(table):
            assert f"{key} = " in text or key == "object", key
