"""Scenario files of fetches as they are read, and the results of their claims at each limit."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from firstflight.base.errors import UsageError
from firstflight.base.stats import Estimate
from firstflight.findings import claims
from firstflight.findings.bar import Bar
from firstflight.findings.claims import (DIRECTION, LEAST_DRAWS, NOT_REPRODUCED, REPRODUCED,
                                         UNDECIDED, Published)
from firstflight.findings.difference import Difference, of_baseline, percent_of
from firstflight.findings.quantities import QUANTITIES
from firstflight.runs import scenario_file
from firstflight.runs.kinds import Overrides, Study
from firstflight.runs.results.records import columns_of
from firstflight.study.fetches import KIND
from firstflight.study.users import recommendation
from firstflight.workloads.fetch.figures.bar_figure import BarFigure
from firstflight.workloads.fetch.figures.claims import judge_bars
from firstflight.workloads.fetch.figures.recovery import beyond_lossless, effect, sentence_of_run
from firstflight.workloads.fetch.figures.summary import figure_sentence
from firstflight.workloads.fetch.record.record import METRICS, Record
from firstflight.workloads.fetch.scenario.scenario import OF_EXPERIMENT, Claim, Figure
from firstflight.workloads.fetch.trial import Trial
from tests.golden import stored
from tests.unit.fetches.small import SMALL, WITHOUT_FIGURES, small


def test_one_value_needs_no_brackets(tmp_path: Path) -> None:
    (sweep,) = small(tmp_path, WITHOUT_FIGURES, ("rtt_ms = [20, 50]", "rtt_ms = 20"),
                     ("initcwnd = [3, 10]", "initcwnd = 3")).sweeps
    assert (sweep.lists["rtt_ms"], sweep.initcwnd) == ((20,), (3,))


def test_percents_are_of_the_baseline_or_of_the_experiment(tmp_path: Path) -> None:
    for word in ("baseline", "experiment"):
        made = small(tmp_path, ("windows = [3, 10]\n",
                                f"windows = [3, 10]\npercent_of = '{word}'\n"))
        assert made.figures[0].percent_of == word


def test_an_axis_without_labels_is_labelled_by_its_values(tmp_path: Path) -> None:
    named = small(tmp_path).axes[0]
    assert named.labels == ("20", "50") and named.label(50) == "50"
    assert named.share_percent(50) == 60
    labelled = small(tmp_path, ("values = [20, 50]", 'values = [20, 50]\nlabels = ["a", ">a"]'))
    assert labelled.axes[0].label(50) == ">a"


def test_the_values_of_an_axis_have_the_range_of_its_quantity(tmp_path: Path) -> None:
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


def test_a_metric_is_a_declared_column_of_a_record_and_no_parameter() -> None:
    measured = columns_of(Record)[len(fields(Trial)):]
    assert [*METRICS] == [column for column in measured if column in METRICS]
    assert "goodput_kbps" in METRICS and "seen_initcwnd" in {*measured} - {*METRICS}
    assert not METRICS.keys() & QUANTITIES.keys()


def test_a_figure_accepts_each_metric_and_no_other_column(tmp_path: Path) -> None:
    for name in METRICS:
        (figure,) = small(tmp_path, ('"total_ms"', f'"{name}"')).figures
        assert figure.metric == name
    with pytest.raises(UsageError, match="metric: unknown 'seen_initcwnd'"):
        small(tmp_path, ('"total_ms"', '"seen_initcwnd"'))


# Contradictions within a scenario of fetches, and between its file and flags ----------

def test_one_in_makes_a_grid_coarse_and_is_refused_without_a_grid(tmp_path: Path) -> None:
    one_in_two = ("[defaults]", "one_in = 2\n[defaults]")
    assert len(small(tmp_path, one_in_two, ("rtt_ms = [20, 50]", "rtt_ms = [20, 30, 40, 50]"),
                     WITHOUT_FIGURES).sweeps[0].lists["rtt_ms"]) == 3
    with pytest.raises(UsageError, match="^scenarios/small.toml: one_in: sweep 'grid' has pairs"):
        small(tmp_path, one_in_two, ("rtt_ms = [20, 50]\nbandwidth_kbps = [56, 256]",
                               "pairs = [[1, 2]]"), WITHOUT_FIGURES)
    with pytest.raises(UsageError, match="^scenarios/small.toml: one_in: it needs a grid"):
        small(tmp_path, one_in_two, (SMALL[SMALL.index("[[sweep]]"):], ""))


def requested(folder: Path, **more: Any) -> Study:
    """The study of SMALL without figures. more: flags, with lists by name in "lists"."""
    small(folder, WITHOUT_FIGURES)
    return KIND.study(scenario_file.read(folder / "small.toml"), Overrides(
        more.pop("lists", {}), **more))


def test_cake_with_a_queue_of_one_packet_is_refused(tmp_path: Path) -> None:
    """CAKE's memory then holds no full packet: every transfer would time out."""
    with pytest.raises(UsageError, match="^small: cake lets nothing through a queue of 1 packet"):
        requested(tmp_path, lists={"queue": ["1"], "qdisc": ["fifo", "cake"]})
    assert requested(tmp_path, lists={"queue": ["2"], "qdisc": ["cake"]}).trials
    assert requested(tmp_path, lists={"queue": ["1"], "qdisc": ["fifo", "fq_codel"]}).trials


def test_flags_replace_the_values_of_the_file(tmp_path: Path) -> None:
    made = requested(tmp_path, lists={"rtt_ms": [7.5], "loss_percent": [1]},
                     client="wget", repeat=3)
    assert not made.whole and len(made.trials) == 2 * 2 * 3
    assert {(trial.rtt_ms, trial.client, trial.loss_percent) for trial in made.trials} == {
        (7.5, "wget", 1)}
    assert {trial.repeat for trial in made.trials} == {1, 2, 3}
    assert requested(tmp_path, repeat=1).whole  # the file has the same repeat


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
queue = ["50ms"]
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


def test_assumptions_about_users_are_listed_with_their_numbers() -> None:
    made = KIND.study(scenario_file.of_run("users_of_x", USERS))
    users = made.scenario.users
    assert users is not None
    assert recommendation._assumed(made.scenario, users, {}) == (
        "A note. Each user fetches once, after 2 earlier responses on it, alone on the link, by"
        " bbr, and offers a receive window of 44 segments; the bottleneck's queue holds 50ms"
        " (fifo), the uplink has 300 kbit/s, 0.5 % of packets are lost at random, the delay varies"
        " by 3 ms.")
    without_note = replace(made.scenario, head=replace(made.scenario.head, note=""))
    assert recommendation._assumed(without_note, users, {}).startswith(
        "Each user fetches once, after")


# Judging ------------------------------------------------------------------------------

def test_a_study_judges_with_its_sysctls(tmp_path: Path) -> None:
    """The model takes the buffers that a scenario sets, and the verdict then differs."""
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
    in_real_time, _ = made.kind.judge(replace(trial.trial, rtt_ms=102.0), observed, False, {})
    assert "RTT" not in in_real_time.verdict_reason, "in real time 2 % are within the limits"


FIGURE = Figure(name="f", title="t", kind="improvement", sweep="s", by="rtt_ms",
                windows=(3, 10), metric="total_ms")


def bucket(base: float, experiment: float, label: str = "20", **changes: Any) -> Bar:
    """A bar of a network without loss, with means of base and experiment in ms.

    changes: other fields of the bar, of its difference or of its published values;
    absolute_interval and percent_interval: of the measured difference.
    """
    absolute_interval = changes.pop("absolute_interval", None)
    percent_interval = changes.pop("percent_interval", None)
    of_class: dict[Any, dict[str, Any]] = {Published: {}, Difference: {}, Bar: {}}
    for kind, values in of_class.items():
        for field in fields(kind):
            if field.name in changes:
                values[field.name] = changes.pop(field.name)
    assert not changes

    difference = Difference(
        Estimate(base), Estimate(experiment), Estimate(base - experiment, absolute_interval),
        Estimate(percent_of(base, experiment), percent_interval), base_median=base,
        experiment_median=experiment)
    return Bar(label, **{"value": 20.0, **of_class[Bar]},
               published=Published(**of_class[Published]),
               difference=replace(difference, **{"n": 2, "lossless": True, "draws": LEAST_DRAWS,
                                                 **of_class[Difference]}))


def panel(*bars: Bar, figure: Figure = FIGURE) -> BarFigure:
    """A figure of these bars, measured by curl with CUBIC."""
    return BarFigure(figure, tuple(replace(
        bar, of_experiment=figure.percent_of == OF_EXPERIMENT) for bar in bars), "curl", "cubic")


def judged(bar_figure: BarFigure, exact: bool = True) -> tuple[Bar, ...]:
    return judge_bars(bar_figure, (), exact).bars


@pytest.mark.parametrize(("changes", "word"), [
    # Measured are 100 of 1000 ms, which is 10 %. Each row has what was published.
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
    # Both numbers are outside the limits. An interval that reaches them leaves the result open.
    ({"absolute": 200.0, "percent": 20.0,
      "absolute_interval": (50.0, 210.0), "percent_interval": (5.0, 15.0)}, DIRECTION),
    ({"absolute": 200.0, "percent": 20.0,
      "absolute_interval": (50.0, 210.0), "percent_interval": (-5.0, 15.0)}, NOT_REPRODUCED),
    ({"absolute": 200.0, "percent": 20.0,
      "absolute_interval": (50.0, 210.0), "percent_interval": (5.0, 21.0)}, UNDECIDED),
    # Both numbers are within the limits. An interval that leaves them leaves the result open.
    ({"absolute": 100.0, "percent": 10.0,
      "absolute_interval": (80.0, 120.0), "percent_interval": (8.0, 12.0)}, REPRODUCED),
    ({"absolute": 100.0, "percent": 10.0,
      "absolute_interval": (80.0, 131.0), "percent_interval": (8.0, 12.0)}, UNDECIDED),
    ({"absolute": 100.0, "percent": 10.0,
      "absolute_interval": (80.0, 120.0), "percent_interval": (6.9, 12.0)}, UNDECIDED),
    # An interval of fewer values than LEAST_DRAWS does not count.
    ({"absolute": 100.0, "percent": 10.0, "absolute_interval": (80.0, 120.0),
      "percent_interval": (8.0, 12.0), "draws": LEAST_DRAWS - 1}, UNDECIDED),
    # Published values with an error of reading, such as ±40 ms.
    ({"absolute": 140.0, "percent": 10.0}, REPRODUCED),
    ({"absolute": 60.0, "percent": 10.0}, DIRECTION),
    ({"absolute": 60.0, "percent": 10.0, "error": 40.0}, REPRODUCED),
    ({"absolute": 100.0, "percent": 15.0, "error_points": 5.0}, REPRODUCED),
])
def test_a_bars_result_changes_at_its_limits(changes: dict[str, Any], word: str) -> None:
    (bar,) = judged(panel(bucket(1000.0, 900.0, **changes)))
    assert bar.result.outcome == word, bar.result.test
    assert bool(bar.result.test) == bool(word)


def test_a_bar_without_an_improvement_does_not_reproduce_a_published_one() -> None:
    (bar,) = judged(panel(bucket(1000.0, 1000.0, absolute=8.0, percent=0.0)))
    assert (bar.result.outcome, bar.result.test) == (
        NOT_REPRODUCED, "not within 5.6 … 10.4 ms; within −3.0 … 3.0 %")
    assert bar.deviation_percent == -100


def test_percentages_are_compared_as_percentages_of_what_was_published() -> None:
    """20 % of the baseline are 25 % of the experiment's time."""
    bar = bucket(1000.0, 800.0, absolute=200.0, percent=20.0, percent_interval=(20.0, 50.0))
    assert judged(panel(bar), exact=False)[0].difference.percent.interval == (20, 50)
    (base,) = judged(panel(bar))
    assert (base.percent.value, base.published_percent, base.deviation_points) == (20, 20, 0)
    (experiment,) = judged(panel(bar, figure=replace(FIGURE, percent_of=OF_EXPERIMENT)))
    assert experiment.percent.value == pytest.approx(25)
    assert experiment.published_percent == pytest.approx(25)
    assert experiment.percent.interval == pytest.approx((25, 100))
    for percent in (-30.0, 0.0, 3.0, 64.3):
        assert of_baseline(bar.difference.as_printed(percent, True)) == pytest.approx(percent)
    # Of a rate, 50 % more than the base is a third of the experiment.
    rate = replace(bar.difference, sign=-1)
    assert rate.as_printed(50, of_experiment=True) == pytest.approx(100 / 3)
    assert of_baseline(100 / 3, -1) == pytest.approx(50)

    # Published are 29 % of the experiment's time: 4 points from 25 %, 2.5 as percent of the base.
    bar = bucket(1000.0, 800.0, percent=of_baseline(29.0))
    (base,) = judged(panel(bar))
    (experiment,) = judged(panel(bar, figure=replace(FIGURE, percent_of=OF_EXPERIMENT)))
    assert (base.result.outcome, experiment.result.outcome) == (REPRODUCED, DIRECTION)


def test_windows_are_compared_with_the_baseline_wherever_it_stands() -> None:
    """Published times, each ±5 ms: 900 ms with 3 segments, 800 with 10, 760 with 16."""
    figure = replace(FIGURE, kind="window_sweep", by="initcwnd", windows=(10,))
    bars = [bucket(800, measured_ms, str(window), value=float(window), level=level_ms, error=5.0)
            for window, measured_ms, level_ms in ((3, 905, 900.0), (10, 800, 800.0),
                                                  (16, 770, 760.0), (42, 770, None))]
    found = [bar.published for bar in judged(panel(*bars, figure=figure))]
    assert [(published.absolute, published.percent, published.error) for published in found] == [
        (-100, -12.5, 10), (None, None, 5), (40, 5, 10), (None, None, 5)]

    without_baseline = judged(panel(*bars[2:], figure=figure))
    assert [bar.published.absolute for bar in without_baseline] == [None, None]


def test_a_difference_is_exact_only_where_nothing_can_vary() -> None:
    for lossless, interval, deterministic, exact in (
            (True, (5.0, 5.0), False, True), (True, (5.0, 6.0), True, False),
            (True, None, True, True), (True, None, False, False),
            (False, (5.0, 5.0), True, False), (False, None, True, False)):
        (bar,) = judged(panel(bucket(10.0, 5.0, lossless=lossless, absolute_interval=interval)),
                        deterministic)
        assert bar.difference.exact == exact, (lossless, interval, deterministic)


@pytest.mark.parametrize(("interval", "unsure"), [
    (None, False), ((-0.1, 0.1), True), ((-5.0, 0.5), True), ((0.1, 9.0), False),
    ((-9.0, -0.1), False), ((0.0, 0.0), False), ((0.0, 9.0), False), ((-9.0, 0.0), False)])
def test_a_difference_is_unsure_where_its_interval_has_values_on_both_sides_of_zero(
        interval: Any, unsure: bool) -> None:
    assert bucket(1000.0, 900.0, absolute_interval=interval).difference.is_unsure is unsure


@pytest.mark.parametrize(("lossless", "exact", "word"), [
    (True, True, REPRODUCED), (False, True, UNDECIDED), (True, False, UNDECIDED)])
def test_a_single_measurement_reproduces_a_value_only_where_nothing_varies(
        lossless: bool, exact: bool, word: str) -> None:
    """A single fetch has no interval."""
    (bar,) = judged(panel(bucket(1000, 900, absolute=100.0, lossless=lossless)), exact)
    assert bar.result.outcome == word


def test_an_interval_of_no_width_from_a_few_lossy_repeats_is_undecided() -> None:
    """Two transfers without a random loss take the same time, although a third may not."""
    alike = {"absolute": 100.0, "absolute_interval": (100.0, 100.0), "lossless": False}
    (bar,) = judged(panel(bucket(1000, 900, **alike, draws=2)))
    assert (bar.result.outcome, bar.difference.exact) == (UNDECIDED, False)
    (bar,) = judged(panel(bucket(1000, 900, **alike, draws=LEAST_DRAWS)))
    assert bar.result.outcome == REPRODUCED


def test_the_results_of_a_figures_bars_are_counted_in_a_sentence() -> None:
    bars = [bucket(1000, 900, absolute=ms) for ms in (100, 90, 300, -5, None)]
    counted = judge_bars(panel(*bars), (), exact=True).counts
    assert counted == {REPRODUCED: 2, UNDECIDED: 0, DIRECTION: 1, NOT_REPRODUCED: 1}
    assert claims.summarize_counts(counted) == ("2 of 4 reproduced, 0 undecided (too few data),"
                                       " 1 direction, 1 not reproduced")
    assert claims.summarize_counts(judge_bars(panel(bucket(10, 5)), ()).counts) == ""


@pytest.mark.parametrize(("claim", "word"), [
    (Claim(figure="f", says="", compares=("20", "50"), expects="more"), DIRECTION),
    (Claim(figure="f", says="", compares=("50", "20"), expects="more"), NOT_REPRODUCED),
    (Claim(figure="f", says="", compares=("50", "50"), expects="more"), NOT_REPRODUCED),
    (Claim(figure="f", says="", compares=("50",), expects="most"), DIRECTION),
    (Claim(figure="f", says="", compares=("20", "50"), expects="most"), DIRECTION),
    # The saving is larger in 20 than in 21, and not than in 50.
    (Claim(figure="f", says="", compares=("20",), expects="most"), NOT_REPRODUCED),
    (Claim(figure="f", says="", compares=("20", "21"), expects="most"), NOT_REPRODUCED),
    (Claim(figure="f", says="", compares=("20", "21"), expects="alike"), REPRODUCED),
    (Claim(figure="f", says="", compares=("20", "21"), expects="alike", abstract_only=True),
     DIRECTION),
    (Claim(figure="f", says="", compares=("20", "50"), expects="alike"), NOT_REPRODUCED),
    (Claim(figure="f", says="", expects="most", published=42.9), REPRODUCED),
    (Claim(figure="f", says="", expects="most", published=43.1), DIRECTION),
])
def test_a_claim_is_tested_on_the_bars_that_it_compares(claim: Claim, word: str) -> None:
    # Savings of 10.0, 9.5 and 40 %.
    bars = panel(bucket(1000, 900, "20"), bucket(1000, 905, "21"), bucket(1000, 600, "50"))
    (found,) = judge_bars(bars, [claim, replace(claim, figure="other")], exact=True).statements
    assert found.outcome == word, found
    (found,) = judge_bars(bars, [claim]).statements  # single measurements that are not exact
    assert found.outcome == UNDECIDED


@pytest.mark.parametrize("claim", [
    Claim(figure="f", says="", compares=("0", "50"), expects="more"),
    Claim(figure="f", says="", compares=("0",), expects="most"),
    Claim(figure="f", says="", expects="most", published=50.0)])
def test_a_value_of_zero_that_has_a_word_is_named_by_it(claim: Claim) -> None:
    """A send buffer of 0 is called "not set"; a loss of 0 % has no word."""
    bars = (bucket(1000, 400, "0"), bucket(1000, 600, "50"))
    buffers = panel(*bars, figure=replace(FIGURE, by="send_buffer_bytes"))
    (found,) = judge_bars(buffers, [claim], exact=True).statements
    assert 'bar "not set"' in found.measured and "bar 0" not in found.measured
    assert "(at not set)" in figure_sentence(buffers)
    (found,) = judge_bars(panel(*bars, figure=replace(FIGURE, by="loss_percent")), [claim],
                           exact=True).statements
    assert "bar 0" in found.measured


def test_the_sentence_of_a_figure_says_that_its_bars_change_nothing_only_where_none_does() -> None:
    none = panel(bucket(1000, 1000, "20"), bucket(500, 500, "50"))
    assert figure_sentence(none) == "10 instead of 3 segments change nothing in any of 2 bars."
    some = panel(bucket(1000, 1000, "20"), bucket(500, 499, "50"))
    assert "save 0.0 ms (at 20 ms) to 1.0 ms (at 50 ms)" in figure_sentence(some)


def test_a_claim_on_the_highest_improvement_is_not_reproduced_where_nothing_improves() -> None:
    claim = Claim(figure="f", says="", expects="most", published=43.0)
    bars = panel(bucket(1000, 1000, "20"), bucket(1000, 1000, "50"))
    (found,) = judge_bars(bars, [claim], exact=True).statements
    assert found.outcome == NOT_REPRODUCED
    bars = panel(bucket(1000, 1000, "20"), bucket(1000, 999, "50"))
    (found,) = judge_bars(bars, [claim], exact=True).statements
    assert found.outcome == DIRECTION


# The bar of 20 ms has 5 to 16 %, and 98 to 102 ms.
@pytest.mark.parametrize(("percents_of_50", "absolutes_of_50", "word"), [
    ((17.0, 19.0), (140.0, 160.0), DIRECTION),  # larger
    ((14.0, 16.0), (95.0, 109.0), UNDECIDED),  # overlapping
    ((4.0, 5.0), (96.0, 104.0), NOT_REPRODUCED)])  # not larger
def test_a_claim_that_compares_bars_is_undecided_where_their_intervals_overlap(
        percents_of_50: Any, absolutes_of_50: Any, word: str) -> None:
    bars = [bucket(1000, 900, "20", percent_interval=(5.0, 16.0),
                   absolute_interval=(98.0, 102.0)),
            bucket(1000, 850, "50", percent_interval=percents_of_50,
                   absolute_interval=absolutes_of_50)]
    more = Claim(figure="f", says="", compares=("20", "50"), expects="more")
    alike = Claim(figure="f", says="", compares=("50", "20"), expects="alike")
    (larger, equal) = judge_bars(panel(*bars), [more, alike]).statements
    assert larger.outcome == word
    assert equal.outcome == {DIRECTION: NOT_REPRODUCED, UNDECIDED: UNDECIDED,
                             NOT_REPRODUCED: REPRODUCED}[word]


# Savings under random loss less the saving without loss -------------------------------

def test_a_bar_of_losses_counts_its_saving_less_that_without_loss() -> None:
    figure = replace(FIGURE, kind="loss", by="loss_percent")
    bars = (bucket(1000, 900, "0", value=0.0),
            *(bucket(1000, 800, label, value=value, absolute_interval=ends)
              for label, value, ends in (("1", 1.0, (101.0, 300.0)),  # above the lossless 100 ms
                                         ("2", 2.0, (99.0, 300.0)), ("5", 5.0, (50.0, 99.0)))))
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
