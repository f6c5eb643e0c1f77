"""The bars of a population are the published ones: what says them is looked at before measuring."""

from __future__ import annotations

from dataclasses import replace

import pytest

from firstflight.base.errors import UsageError
from firstflight.runs import scenario_file
from firstflight.runs.results.records import FAIL, PASS
from firstflight.study.fetches import study
from firstflight.study.population import ablation
from firstflight.study.population.ablation import Step
from firstflight.study.population.findings import _slower
from tests.golden import stored

TEXT = scenario_file.find("dukkipati2010").text
RTT = 'published = "paper_figure5.csv"\npanel = "RTT"'


@pytest.mark.parametrize("old, new, words", [
    (RTT, "", "published is missing: it says what the bars"),
    (RTT, 'published = "paper_figure5.csv"\npanel = "X"', "has no panel 'X'"),
    (RTT, 'published = "paper_tables.csv"\npanel = "table3_avgdc"',
     "bars are named by their upper ends, .* not mean"),
    ('published = "paper_tables.csv"\npanel = "table3_avgdc"', RTT, "is not a percentile"),
    ('by = "rtt_ms"', 'by = "loss_percent"', "by: unknown 'loss_percent'"),
    ("experiment_initcwnd = 10", "experiment_initcwnd = 11",
     'figure.. "fig5_rtt": \'avgdc\' has no initcwnd 11'),
    ('kind = "improvement"', 'kind = "groups"',
     'figure.. "fig5_rtt": kind: unknown \'groups\'; known: improvement, window_sweep')])
def test_what_says_the_bars_is_checked(old: str, new: str, words: str) -> None:
    assert old in TEXT
    before, figures = TEXT.split("[[figure]]", 1)
    with pytest.raises(UsageError, match=f"^scenarios/own.toml: .*{words}|{words}"):
        study.read_scenario(scenario_file.parsed(
            "own", f"{before}[[figure]]{figures.replace(old, new, 1)}"))


def test_what_makes_responses_slower_is_told_the_most_frequent_first() -> None:
    step = Step("clean", (3, 10), 100.0, 90.0, {}, 50, {"loss": 2, "the queue": 7, "a timer": 3})
    assert _slower(step) == ("Clean: 12 of 50 responses are slower with 10 segments (7: the"
                             " queue; 3: a timer; 2: loss).")
    assert _slower(Step("clean", (3, 10), 100.0, 90.0, {}, 50, {})) == ""


@pytest.mark.parametrize(("more_ms", "verdict", "is_slower"), [
    (1.5, PASS, True), (0.9, PASS, False), (-5.0, PASS, False), (1.5, FAIL, False),
    (None, PASS, False)])
def test_a_response_is_slower_from_a_millisecond_on(more_ms: float | None, verdict: str,
                                                    is_slower: bool) -> None:
    base = stored.load("iw3").judge()
    latency_ms = None if more_ms is None else (base.latency_ms or 0.0) + more_ms
    assert ablation._is_slower(base, replace(base, latency_ms=latency_ms,
                                              verdict=verdict)) is is_slower
