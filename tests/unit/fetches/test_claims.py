"""The result of every bar and statement, from both sides of its limits."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from firstflight.base.stats import Estimate
from firstflight.findings import claims
from firstflight.findings.bar import Bar
from firstflight.findings.claims import (DIRECTION, LEAST_DRAWS, NOT_REPRODUCED, REPRODUCED,
                                         UNDECIDED, Published)
from firstflight.findings.difference import Difference, of_baseline, percent_of
from firstflight.study.fetches.figures.bar_figure import BarFigure
from firstflight.study.fetches.figures.claims import judge_bars
from firstflight.study.fetches.figures.recovery import beyond_lossless, effect, sentence_of_run
from firstflight.study.fetches.figures.summary import figure_sentence
from firstflight.study.fetches.scenario.scenario import OF_EXPERIMENT, Claim, Figure

FIGURE = Figure(name="f", title="t", kind="improvement", sweep="s", by="rtt_ms",
                baseline_initcwnd=3, experiment_initcwnd=10, metric="total_ms")


def bucket(base: float, experiment: float, label: str = "20", **changes: Any) -> Bar:
    """Of a network that loses nothing; changes: of the bar, its difference or what is published."""
    parts: dict[Any, dict[str, Any]] = {kind: {
        each.name: changes.pop(each.name) for each in fields(kind) if each.name in changes}
        for kind in (Published, Difference, Bar)}
    ends = [changes.pop(f"{name}_interval", None) for name in ("absolute", "percent")]
    assert not changes
    difference = Difference(
        Estimate(base), Estimate(experiment), Estimate(base - experiment, ends[0]),
        Estimate(percent_of(base, experiment), ends[1]), base_median=base,
        experiment_median=experiment)
    return Bar(label, **{"value": 20.0, **parts[Bar]}, published=Published(**parts[Published]),
               difference=replace(difference, **{"n": 2, "lossless": True, "draws": LEAST_DRAWS,
                                                 **parts[Difference]}))


def panel(*bars: Bar, figure: Figure = FIGURE) -> BarFigure:
    return BarFigure(figure, tuple(replace(
        bar, of_experiment=figure.percent_of == OF_EXPERIMENT) for bar in bars), "curl", "cubic")


def judged(of: BarFigure, exact: bool = True) -> tuple[Bar, ...]:
    return judge_bars(of, (), exact).bars


@pytest.mark.parametrize(("changes", "word"), [
    # 100 of 1000 ms, 10 %
    ({"absolute": 100.0, "percent": 10.0}, REPRODUCED),
    ({"absolute": 77.0, "percent": 13.0}, REPRODUCED),
    ({"absolute": 76.0, "percent": 10.0}, DIRECTION),
    ({"absolute": 142.0, "percent": 7.0}, REPRODUCED),
    ({"absolute": 144.0, "percent": 7.0}, DIRECTION),
    ({"absolute": 100.0, "percent": 13.1}, DIRECTION),
    ({"absolute": 100.0, "percent": -1.0}, NOT_REPRODUCED),
    ({"absolute": -100.0, "percent": -10.0}, NOT_REPRODUCED),
    ({"absolute": 0.0, "percent": 10.0}, DIRECTION),
    ({"absolute": None, "percent": 12.0}, REPRODUCED),
    ({"absolute": 90.0, "percent": None}, REPRODUCED),
    ({}, ""),
    # far off, but not for certain in one number, then in both
    ({"absolute": 200.0, "percent": 20.0,
      "absolute_interval": (50.0, 210.0), "percent_interval": (5.0, 15.0)}, DIRECTION),
    ({"absolute": 200.0, "percent": 20.0,
      "absolute_interval": (50.0, 210.0), "percent_interval": (-5.0, 15.0)}, NOT_REPRODUCED),
    ({"absolute": 200.0, "percent": 20.0,
      "absolute_interval": (50.0, 210.0), "percent_interval": (5.0, 21.0)}, UNDECIDED),
    # near, for certain and not
    ({"absolute": 100.0, "percent": 10.0,
      "absolute_interval": (80.0, 120.0), "percent_interval": (8.0, 12.0)}, REPRODUCED),
    ({"absolute": 100.0, "percent": 10.0,
      "absolute_interval": (80.0, 131.0), "percent_interval": (8.0, 12.0)}, UNDECIDED),
    ({"absolute": 100.0, "percent": 10.0,
      "absolute_interval": (80.0, 120.0), "percent_interval": (6.9, 12.0)}, UNDECIDED),
    # an interval of a few values is none
    ({"absolute": 100.0, "percent": 10.0, "absolute_interval": (80.0, 120.0),
      "percent_interval": (8.0, 12.0), "draws": LEAST_DRAWS - 1}, UNDECIDED),
    # a value known to ±40 ms
    ({"absolute": 140.0, "percent": 10.0}, REPRODUCED),
    ({"absolute": 60.0, "percent": 10.0}, DIRECTION),
    ({"absolute": 60.0, "percent": 10.0, "error": 40.0}, REPRODUCED),
    ({"absolute": 100.0, "percent": 15.0, "error_points": 5.0}, REPRODUCED),
])
def test_a_word_on_both_sides_of_its_limits(changes: dict[str, Any], word: str) -> None:
    (bar,) = judged(panel(bucket(1000.0, 900.0, **changes)))
    assert bar.result.outcome == word, bar.result.test
    assert bool(bar.result.test) == bool(word)


def test_nothing_improved_and_something_published_is_not_the_direction() -> None:
    (bar,) = judged(panel(bucket(1000.0, 1000.0, absolute=8.0, percent=0.0)))
    assert (bar.result.outcome, bar.result.test) == (NOT_REPRODUCED,
                                    "not within 5.6 … 10.4 ms; within −3.0 … 3.0 %")
    assert bar.deviation_percent == -100


def test_percentages_are_compared_as_they_were_printed() -> None:
    """20 % of the baseline are 25 % of the experiment's time."""
    bar = bucket(1000.0, 800.0, absolute=200.0, percent=20.0, percent_interval=(20.0, 50.0))
    assert judged(panel(bar), exact=False)[0].difference.percent.interval == (20, 50)
    (ours,) = judged(panel(bar))
    (theirs,) = judged(panel(bar, figure=replace(FIGURE, percent_of=OF_EXPERIMENT)))
    assert (ours.percent.value, ours.published_percent, ours.deviation_points) == (20, 20, 0)
    assert theirs.percent.value == pytest.approx(
        25) and theirs.published_percent == pytest.approx(25)
    assert theirs.percent.interval == pytest.approx((25, 100))
    for percent in (-30.0, 0.0, 3.0, 64.3):
        assert of_baseline(bar.difference.as_printed(percent, True)) == pytest.approx(percent)
    more = replace(bar.difference, sign=-1)  # a rate: experiment / base - 1 of the experiment's
    assert more.as_printed(50, of_experiment=True) == pytest.approx(100 / 3)
    assert of_baseline(100 / 3, -1) == pytest.approx(50)

    # 4 points apart in theirs, 2.5 in the paper's: theirs decides
    bar = bucket(1000.0, 800.0, percent=of_baseline(29.0))
    assert judged(panel(bar))[0].result.outcome == REPRODUCED
    assert judged(panel(bar, figure=replace(FIGURE, percent_of=OF_EXPERIMENT))
                           )[0].result.outcome == DIRECTION


def test_windows_are_compared_with_the_baseline_wherever_it_stands() -> None:
    """As published, 10 took 800 ms: 3 took 100 ms more, and 16 took 40 ms less, of either ±5."""
    figure = replace(FIGURE, kind="window_sweep", by="initcwnd", baseline_initcwnd=10)
    bars = [bucket(800, ours, str(window), value=float(window), level=level, error=5.0)
            for window, ours, level in ((3, 905, 900.0), (10, 800, 800.0), (16, 770, 760.0),
                                        (42, 770, None))]
    found = [bar.published for bar in judged(panel(*bars, figure=figure))]
    assert [(each.absolute, each.percent, each.error) for each in found] == [
        (-100, -12.5, 10), (None, None, 5), (40, 5, 10), (None, None, 5)]
    alone = judged(panel(*bars[2:], figure=figure))  # without the baseline nothing is compared
    assert [bar.published.absolute for bar in alone] == [None, None]


def test_exact_is_said_only_of_what_cannot_vary() -> None:
    for lossless, ends, deterministic, exact in (
            (True, (5.0, 5.0), False, True), (True, (5.0, 6.0), True, False),
            (True, None, True, True), (True, None, False, False),
            (False, (5.0, 5.0), True, False), (False, None, True, False)):
        (bar,) = judged(panel(bucket(10.0, 5.0, lossless=lossless,
                                              absolute_interval=ends)), deterministic)
        assert bar.difference.exact == exact, (lossless, ends, deterministic)


@pytest.mark.parametrize(("ends", "unsure"), [
    (None, False), ((-0.1, 0.1), True), ((-5.0, 0.5), True), ((0.1, 9.0), False),
    ((-9.0, -0.1), False), ((0.0, 0.0), False), ((0.0, 9.0), False), ((-9.0, 0.0), False)])
def test_an_interval_that_reaches_beyond_zero_leaves_it_open(ends: Any, unsure: bool) -> None:
    assert bucket(1000.0, 900.0, absolute_interval=ends).difference.is_unsure is unsure


@pytest.mark.parametrize(("lossless", "exact", "word"), [
    (True, True, REPRODUCED), (False, True, UNDECIDED), (True, False, UNDECIDED)])
def test_what_was_measured_once_is_known_only_where_nothing_varies(
        lossless: bool, exact: bool, word: str) -> None:
    """One fetch gives no interval: near as it is, without one it shows nothing."""
    (bar,) = judged(panel(bucket(1000, 900, absolute=100.0, lossless=lossless)), exact)
    assert bar.result.outcome == word


def test_few_repeats_that_happened_to_be_alike_are_no_certainty() -> None:
    """Two transfers that random loss spared take the same time: an interval of no width."""
    alike = {"absolute": 100.0, "absolute_interval": (100.0, 100.0), "lossless": False}
    (bar,) = judged(panel(bucket(1000, 900, **alike, draws=2)))
    assert (bar.result.outcome, bar.difference.exact) == (UNDECIDED, False)
    (bar,) = judged(panel(bucket(1000, 900, **alike, draws=LEAST_DRAWS)))
    assert bar.result.outcome == REPRODUCED


def test_results_are_counted() -> None:
    bars = [bucket(1000, 900, absolute=ms) for ms in (100, 90, 300, -5, None)]
    counted = judge_bars(panel(*bars), (), exact=True).counts
    assert counted == {REPRODUCED: 2, UNDECIDED: 0, DIRECTION: 1, NOT_REPRODUCED: 1}
    assert claims.summary(counted) == ("2 of 4 reproduced, 0 undecided (too few data),"
                                       " 1 direction, 1 not reproduced")
    assert claims.summary(judge_bars(panel(bucket(10, 5)), ()).counts) == ""


@pytest.mark.parametrize(("claim", "word"), [
    (Claim("f", "", larger=("50", "20")), DIRECTION),
    (Claim("f", "", larger=("20", "50")), NOT_REPRODUCED),
    (Claim("f", "", larger=("50", "50")), NOT_REPRODUCED),
    (Claim("f", "", most=("50",)), DIRECTION),
    (Claim("f", "", most=("20", "50")), DIRECTION),
    (Claim("f", "", most=("20",)), NOT_REPRODUCED),  # larger than 21, and not than 50
    (Claim("f", "", most=("20", "21")), NOT_REPRODUCED),  # although 21 is larger than 20
    (Claim("f", "", equal=("20", "21")), REPRODUCED),
    (Claim("f", "", equal=("20", "21"), abstract_only=True), DIRECTION),
    (Claim("f", "", equal=("20", "50")), NOT_REPRODUCED),
    (Claim("f", "", highest_percent=42.9), REPRODUCED),
    (Claim("f", "", highest_percent=43.1), DIRECTION),
])
def test_sentences_are_tested_on_the_bars(claim: Claim, word: str) -> None:
    bars = panel(bucket(1000, 900, "20"), bucket(1000, 905, "21"), bucket(1000, 600, "50"))
    (found,) = judge_bars(bars, [claim, replace(claim, figure="other")], exact=True).statements
    assert found.outcome == word, found
    (found,) = judge_bars(bars, [claim]).statements  # measured once, where repeats would differ
    assert found.outcome == UNDECIDED


@pytest.mark.parametrize("claim", [
    Claim("f", "", larger=("50", "0")), Claim("f", "", most=("0",)),
    Claim("f", "", highest_percent=50.0)])
def test_a_zero_that_has_a_word_is_called_by_it(claim: Claim) -> None:
    """A send buffer of 0 is one that nobody set; a loss of 0 % is 0."""
    bars = (bucket(1000, 400, "0"), bucket(1000, 600, "50"))
    buffers = panel(*bars, figure=replace(FIGURE, by="send_buffer_bytes"))
    (found,) = judge_bars(buffers, [claim], exact=True).statements
    assert 'bar "not set"' in found.measured and "bar 0" not in found.measured
    assert "(at not set)" in figure_sentence(buffers)
    (found,) = judge_bars(panel(*bars, figure=replace(FIGURE, by="loss_percent")), [claim],
                           exact=True).statements
    assert "bar 0" in found.measured


def test_bars_that_change_nothing_are_said_to() -> None:
    none = panel(bucket(1000, 1000, "20"), bucket(500, 500, "50"))
    assert figure_sentence(none) == "10 instead of 3 segments change nothing in any of 2 bars."
    some = panel(bucket(1000, 1000, "20"), bucket(500, 499, "50"))
    assert "save 0.0 ms (at 20 ms) to 1.0 ms (at 50 ms)" in figure_sentence(some)


def test_a_highest_improvement_of_nothing_is_not_in_its_direction() -> None:
    bars = panel(bucket(1000, 1000, "20"), bucket(1000, 1000, "50"))
    (found,) = judge_bars(bars, [Claim("f", "", highest_percent=43.0)], exact=True).statements
    assert found.outcome == NOT_REPRODUCED
    bars = panel(bucket(1000, 1000, "20"), bucket(1000, 999, "50"))
    (found,) = judge_bars(bars, [Claim("f", "", highest_percent=43.0)], exact=True).statements
    assert found.outcome == DIRECTION


@pytest.mark.parametrize(("first", "second", "absolute", "word"), [
    ((17.0, 19.0), (5.0, 16.0), (140.0, 160.0), DIRECTION),
    ((14.0, 16.0), (5.0, 16.0), (95.0, 109.0), UNDECIDED),
    ((4.0, 5.0), (5.0, 16.0), (96.0, 104.0), NOT_REPRODUCED)])
def test_overlapping_intervals_leave_it_open(first: Any, second: Any, absolute: Any,
                                             word: str) -> None:
    bars = [bucket(1000, 900, "20", percent_interval=second, absolute_interval=(98.0, 102.0)),
            bucket(1000, 850, "50", percent_interval=first, absolute_interval=absolute)]
    (larger, equal) = judge_bars(panel(*bars), [Claim("f", "", larger=("50", "20")),
                                            Claim("f", "", equal=("50", "20"))]).statements
    assert larger.outcome == word
    assert equal.outcome == {DIRECTION: NOT_REPRODUCED, UNDECIDED: UNDECIDED,
                          NOT_REPRODUCED: REPRODUCED}[word]


# What is gained under random loss beyond the lossless network -------------------------

def test_recovery_is_what_is_gained_beyond_the_lossless_network() -> None:
    figure = replace(FIGURE, kind="loss", by="loss_percent")
    bars = (bucket(1000, 900, "0", value=0.0),
            *(bucket(1000, 800, label, value=value, absolute_interval=ends)
              for label, value, ends in (("1", 1.0, (101.0, 300.0)), ("2", 2.0, (99.0, 300.0)),
                                         ("5", 5.0, (50.0, 99.0)))))
    panel = BarFigure(figure, bars, "curl", "cubic", is_of_loss=True)
    assert [effect(panel, bar) for bar in bars] == ["", "helps", "undecided", "harms"]
    assert effect(panel,
                  replace(bars[1], difference=replace(bars[1].difference, draws=1))) == "undecided"
    assert beyond_lossless(panel, bars[1]) == Estimate(100, (1, 200))
    (sentence, *_) = sentence_of_run([panel])
    assert "gains more than without loss in 1 of 3 bars and less in 1" in sentence
    without = BarFigure(figure, bars[1:], "curl", "cubic", is_of_loss=True)
    assert not any(beyond_lossless(without, bar) for bar in bars[1:])
    assert not sentence_of_run([without])
