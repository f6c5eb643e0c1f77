"""--explain: which part of a number the window can be, and what would make up the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from base.errors import UsageError
from commands import explain as command
from runs.kinds import Overrides
from study import registry
from study.fetches.features.explain import search
from study.fetches.features.explain.search import Times
from study.fetches.verify.record import Record

ASKED = Overrides({"rtt_ms": [50.0], "bandwidth_kbps": [200_000.0], "response_bytes": [10_000_000],
                   "initcwnd": [10, 100]})
TRIALS = registry.own_question("own", ASKED).trials
SEEN_MS = 3500.0


def found(base_ms: float = 800.0, larger_ms: float = 600.0) -> Times:
    made = search.times([Record(trial, True, total_ms=(
        base_ms if trial.initcwnd == 10 else larger_ms), verdict="pass") for trial in TRIALS])
    assert made is not None
    return made


def path(requested: Overrides, by: str) -> Mapping[float, float]:
    """A path on which four round trips and the link's time are all; loss adds 2 s for each per cent.

    Nothing of the window.
    """
    assert list(requested.lists["initcwnd"]) == [10]
    took = {}
    for value in requested.lists[by]:
        given: dict[str, Any] = {name: values[0] for name, values in requested.lists.items()}
        given[by] = value
        took[value] = (4 * given["rtt_ms"] + 8 * given["response_bytes"] / given["bandwidth_kbps"]
                       + 2000 * given.get("loss_percent", 0))
    return took


def test_the_window_is_what_the_best_of_them_saves() -> None:
    assert search.of_window(SEEN_MS, found()) == (
        "Of your 3500 ms this path takes 800 ms with IW 10. The window can be at most 200 ms of it:"
        " IW 100 takes 600 ms. The other 2700 ms have another cause.")
    assert "None of it is the window: no larger one is faster." in search.of_window(
        SEEN_MS, found(larger_ms=900.0))
    assert "no longer than what this path takes, 800 ms with IW 10: nothing is left" in (
        search.of_window(810.0, found()))
    one = replace(found(), by_window={10: 800.0})
    assert "nothing says what a larger one saves: add --iw 10,20,40." in search.of_window(
        SEEN_MS, one)


def test_each_cause_alone_takes_as_long() -> None:
    """By hand: 80 Mbit in 3.3 s are 24.2 Mbit/s; (3500 − 400) / 4 ms; 1.5 of 2 s a per cent."""
    bandwidth, rtt, loss, window, server = search.causes(SEEN_MS, found(600.0), ASKED, path)
    kbps, took_ms = float(bandwidth.split()[3]), float(bandwidth.split()[-2])
    assert bandwidth.startswith("a bandwidth of ") and "instead of 200000: " in bandwidth
    assert 23_000 < kbps < 25_500 and took_ms == pytest.approx(SEEN_MS, rel=search.NEAR)
    assert rtt.startswith("an RTT of ") and 740 < float(rtt.split()[3]) < 800
    assert loss.startswith("random loss between 1 % (2600 ms) and 3 % (6600 ms)")
    assert window.startswith("a receive window that stays at 143 kB (computed")
    assert server == "a server that answers 2900 ms later (--think)"


def test_a_cause_that_cannot_be_it_is_said() -> None:
    lines = list(search.causes(60_000.0, found(600.0), ASKED, path))
    assert any(line == "random loss: not even with 3 % (6600 ms)" for line in lines)
    some = list(search.causes(610.0, found(600.0), ASKED, path))
    assert any("random loss of 0.01 % (620 ms) or less" in line for line in some)


def test_what_nobody_could_measure_is_left_out() -> None:
    lines = list(search.causes(SEEN_MS, found(), ASKED, lambda requested, by: {}))
    assert not any(line.startswith(("a bandwidth", "an RTT")) for line in lines)
    assert "random loss: not known" in lines
    assert search.times([Record(TRIALS[0], False, error="no answer")]) is None


def test_of_several_networks_no_number_is_explained() -> None:
    several = Overrides({**ASKED.lists, "rtt_ms": [50.0, 100.0]})
    with pytest.raises(UsageError, match="^--explain: a time belongs to one network"):
        search.check(registry.own_question("own", several).trials)
    search.check(TRIALS)


@pytest.mark.parametrize(("word", "ms"), [("3500", 3500), ("3500ms", 3500), ("3.5s", 3500),
                                          ("3.5 S", 3500)])
def test_a_time_is_read_as_it_is_typed(word: str, ms: float) -> None:
    assert command.milliseconds(word) == ms


@pytest.mark.parametrize("word", ["soon", "0", "-3s", "3kB", "1e12"])
def test_what_is_no_time_is_refused(word: str) -> None:
    with pytest.raises(command.argparse.ArgumentTypeError):
        command.milliseconds(word)
