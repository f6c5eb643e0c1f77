"""Differences of two windows with their intervals, and the results of published numbers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given, settings, strategies as some

from firstflight.figures import compare
from firstflight.figures.compare import Estimator, Row, difference
from firstflight.figures.judging import Expected, judge
from firstflight.findings.charts import is_wide
from firstflight.findings.claims import (
    DIRECTION, NOT_REPRODUCED, OUTCOMES, REBUILT, REPRODUCED, UNDECIDED, ComparedNumber,
    Ends, Published, Result, count_outcomes, equivalent, judge as judge_numbers, larger,
    summarize_counts,
)
from firstflight.findings.difference import Difference, Excluded, of_baseline
from firstflight.runs import scenario_file


BASE, EXPERIMENT = 3, 10
# Two cells or clients: the values under BASE, those under EXPERIMENT, unit by unit, and the weight.
VALUES = {"near": ([100.0, 110.0, 120.0], [80.0, 100.0, 95.0], 1.0),
          "far": ([400.0, 430.0, 420.0], [350.0, 340.0, 390.0], 3.0)}


def table(values: dict[str, tuple[list[float], list[float], float]] = VALUES) -> list[Row]:
    """The rows of these values. The first cell has the units 0 to 2, the second one 3 to 5."""
    rows: list[Row] = []
    for place, (cell, (base, experiment, weight)) in enumerate(values.items()):
        for window, measured in ((BASE, base), (EXPERIMENT, experiment)):
            rows += [Row(cell, window, unit, weight, value)
                     for unit, value in enumerate(measured, start=3 * place)]
    return rows


# Each estimator, and whether it weights the rows.
ESTIMATORS: dict[str, tuple[Estimator, bool]] = {
    "by seed": (compare.student_by_seed, False), "of repeats": (compare.student_of_repeats, True),
    "over draws": (compare.student_over_draws, False),
    "over clients": (partial(compare.student_over_draws, of_clients=True), False),
    "users": (compare.resampled_users, True), "in cells": (compare.resampled_in_cells, True),
    "clients": (partial(compare.resampled_clients, clients=6), True)}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_difference_is_base_less_experiment(name: str) -> None:
    """Swapped windows turn its sign and interval, and so does a metric of which more is better."""
    estimator, weighted = ESTIMATORS[name]
    made = difference(table(), BASE, EXPERIMENT, estimator)
    weights = (1, 3) if weighted else (1, 1)
    means = [(weights[0] * near + weights[1] * far) / sum(weights)
             for near, far in ((110, 416 + 2 / 3), (91 + 2 / 3, 360))]
    assert (made.base.value, made.experiment.value) == pytest.approx(means)
    assert made.absolute.value == pytest.approx(means[0] - means[1])
    assert made.absolute.interval is not None
    low, high = made.absolute.interval
    assert low < made.absolute.value < high
    swapped = difference(table(), EXPERIMENT, BASE, estimator)
    assert swapped.absolute.interval == pytest.approx((-high, -low), rel=1e-9)
    turned = difference(table(), BASE, EXPERIMENT, estimator, sign=-1)
    assert turned.absolute.value == -made.absolute.value and turned.sign == -1
    assert turned.absolute.interval == pytest.approx((-high, -low), rel=1e-9)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_weights_change_the_difference_of_weighted_estimators_only(name: str) -> None:
    estimator, weighted = ESTIMATORS[name]
    made, even = (difference(rows, BASE, EXPERIMENT, estimator) for rows in (
        table(), [row._replace(weight=1.0) for row in table()]))
    assert (made.absolute.value != even.absolute.value) is weighted
    assert (made.absolute.interval != even.absolute.interval) is (
        weighted and name != "of repeats")  # whose interval is that of the unweighted pairs


def test_only_seeds_that_both_windows_have_are_compared() -> None:
    rows = [Row(None, 0, 1, 1.0, 7.0), Row(None, 0, 2, 1.0, 4.0), Row(None, 1, 2, 1.0, 3.0)]
    made = difference(rows, 0, 1, compare.student_by_seed)
    assert (made.absolute.value, made.percent.value, made.draws) == (1, 25, 1)
    assert made.absolute.interval is None
    with pytest.raises(ValueError, match="no seed"):
        difference([rows[0], rows[2]], 0, 1, compare.student_by_seed)
    with pytest.raises(ValueError, match="no value under 1"):
        difference(rows[:2], 0, 1, compare.student_by_seed)


def test_repeats_that_do_not_vary_have_no_interval() -> None:
    alike = {"one": ([100.0, 120.0], [90.0, 110.0005], 1.0)}
    made = difference(table(alike), BASE, EXPERIMENT, compare.student_of_repeats)
    assert made.absolute.interval is None and made.absolute.value == pytest.approx(9.99975)
    alike["one"][1][1] += 0.001
    made = difference(table(alike), BASE, EXPERIMENT, compare.student_of_repeats)
    assert made.absolute.interval is not None


def test_a_draw_of_several_cells_moves_them_together() -> None:
    """The two cells vary in opposite directions from repeat to repeat, so their mean does not."""
    rows = [row._replace(unit=row.unit % 3) for row in table({
        "a": ([10.0, 20.0], [0.0, 0.0], 1.0), "b": ([20.0, 10.0], [0.0, 0.0], 1.0)})]
    made = difference(rows, BASE, EXPERIMENT, compare.student_over_draws)
    assert made.absolute.interval == (15, 15) and (made.cells, made.draws) == (2, 2)
    apart = difference(rows[:4], BASE, EXPERIMENT, compare.student_over_draws)
    assert apart.absolute.interval is not None and apart.absolute.interval[0] < -40


def test_a_difference_has_its_paired_interval_and_its_exclusions() -> None:
    made: Difference = difference(table(), BASE, EXPERIMENT, compare.student_by_seed)
    low, high = made.absolute.interval or (0.0, 0.0)
    assert made.paired_interval == (made.base.value - high, made.base.value - low)
    assert replace(made, absolute=replace(made.absolute, interval=(-1.0, 2.0))).is_unsure
    assert not made.is_unsure
    assert str(Excluded(1, 2) + Excluded(unpaired=1)) == (
        "1 failed transfer, 2 failed verdicts, 1 record without its counterpart")
    for percent in (-30.0, 0.0, 3.0, 64.3):
        assert of_baseline(made.as_printed(percent, True)) == pytest.approx(percent)


def test_an_interval_over_clients_has_the_spread_among_them() -> None:
    """Clients measured once vary from each other. Cells measured once have no interval."""
    rows = table({"a": ([10.0], [0.0], 1.0), "b": ([30.0], [0.0], 1.0)})
    clients = difference(rows, BASE, EXPERIMENT, partial(
        compare.student_over_draws, of_clients=True)).absolute
    assert clients.value == 20 and clients.interval is not None and clients.interval[0] < -100
    assert difference(rows, BASE, EXPERIMENT, compare.student_over_draws).absolute.interval is None


def test_a_difference_of_zero_is_printed_without_a_sign() -> None:
    """A stored comparison of equal runs has 0.0 and not -0.0, with either sign of the metric."""
    rows = [Row("a", run, 1, 1.0, 5.0) for run in (0, 1)]
    for sign in (1, -1):
        assert str(difference(rows, 0, 1, compare.student_over_draws, sign).absolute.value) == "0.0"


def test_repeats_are_drawn_in_pairs_where_each_has_its_counterpart() -> None:
    """Luck moves both windows alike, so their difference varies less than either time."""
    luck = {"one": ([100.0, 200.0, 300.0], [90.0, 190.0, 290.0], 1.0)}
    paired = difference(table(luck), BASE, EXPERIMENT, compare.resampled_in_cells).absolute
    assert paired.interval == pytest.approx((10, 10))
    apart = difference([row._replace(unit=row.unit + row.window) for row in table(luck)],
                       BASE, EXPERIMENT, compare.resampled_in_cells).absolute
    assert apart.interval is not None and apart.interval[0] < -50 < 70 < apart.interval[1]
    once = [row for row in table() if row.unit % 3 == 0]
    assert difference(once, BASE, EXPERIMENT,
                      compare.resampled_in_cells).absolute.interval is None


def test_repeats_share_their_cells_weight_in_a_median() -> None:
    made = difference(table(), BASE, EXPERIMENT, compare.resampled_in_cells)
    assert (made.base_median, made.experiment_median, made.median_absolute) == (410, 345, 65)


@pytest.mark.parametrize("share", [None, 0.5])
def test_an_unpaired_difference_also_has_the_paired_one(share: float | None) -> None:
    """In the base far responses have five times the weight that they have in the experiment.

    share: a quantile, None for the mean.
    """
    rows = [row._replace(weight=5 * row.weight) if row.cell == "far" and row.window == BASE
            else row for row in table()]

    def resampled(rows: list[Row], base: int, experiment: int) -> Difference:
        of_base = [row for row in rows if row.window == base]
        of_experiment = [row for row in rows if row.window == experiment]
        (made,) = compare.resampled_quantiles(of_base, of_experiment, 1, 6, [share])
        return made

    unpaired = resampled(rows, BASE, EXPERIMENT)
    alike = resampled(table(), BASE, EXPERIMENT)
    assert alike.same is None and unpaired.same is not None
    assert unpaired.same.absolute.value == pytest.approx(alike.absolute.value)
    assert unpaired.same.absolute.interval == pytest.approx(alike.absolute.interval)
    assert unpaired.experiment == alike.experiment
    if share is None:
        assert unpaired.base.value == pytest.approx((110 + 15 * (416 + 2 / 3)) / 16)
        by_sums = difference(rows, BASE, EXPERIMENT, partial(compare.resampled_clients, clients=6))
        assert by_sums.absolute.value == pytest.approx(unpaired.absolute.value)
        assert by_sums.absolute.interval == pytest.approx(unpaired.absolute.interval)
    else:
        assert (alike.base.value, alike.experiment.value, unpaired.base.value) == (400, 340, 420)
    assert unpaired.absolute.interval is not None
    low, high = unpaired.absolute.interval
    assert resampled(rows, EXPERIMENT, BASE).absolute.interval == pytest.approx((-high, -low))


# Results of claims ---------------------------------------------------------------------

def seeds(base: float, *experiment: float) -> Difference:
    """The difference of these values of the experiment from a base that does not vary."""
    rows: list[Row] = []
    for seed, value in enumerate(experiment):
        rows.append(Row(None, BASE, seed, 1.0, base))
        rows.append(Row(None, EXPERIMENT, seed, 1.0, value))
    return difference(rows, BASE, EXPERIMENT, compare.student_by_seed)


@pytest.mark.parametrize(("sign", "experiment", "word"), [
    (1, (80.0, 82.0, 81.0), DIRECTION), (1, (120.0, 122.0, 121.0), NOT_REPRODUCED),
    (-1, (120.0, 122.0, 121.0), DIRECTION), (-1, (80.0, 82.0, 81.0), NOT_REPRODUCED),
    (1, (70.0, 120.0, 95.0), UNDECIDED), (1, (80.0,), UNDECIDED),
    (0, (99.0, 100.0, 101.0), REPRODUCED), (0, (80.0, 82.0, 81.0), NOT_REPRODUCED)])
def test_a_claims_result_depends_on_the_sign_that_it_expects(
        sign: int, experiment: tuple[float, ...], word: str) -> None:
    assert judge(Expected(sign), seeds(100.0, *experiment)) == Result(word)


@pytest.mark.parametrize(("expected", "word"), [
    (Expected(1, 19.0, 4.0), REPRODUCED), (Expected(1, 40.0, 4.0), DIRECTION),
    (Expected(1, 19.0, 1.0), UNDECIDED), (Expected(-1, 19.0, 4.0), NOT_REPRODUCED),
    (Expected(1, 38.0, 6.0, is_absolute=True), REPRODUCED),
    (Expected(1, 19.0, 4.0, is_absolute=True), DIRECTION)])
def test_a_number_of_a_claim_is_in_percent_or_in_its_unit(expected: Expected, word: str) -> None:
    """Measured is a saving of 38 of 200, which is 19 %. Its interval is 33 to 43."""
    assert judge(expected, seeds(200.0, 160.0, 164.0, 162.0)).outcome == word


def test_published_numbers_are_undecided_with_too_few_draws_unless_nothing_varies() -> None:
    """Three draws are too few."""
    change = seeds(200.0, 160.0, 164.0, 162.0)
    near, far = Published(40.0, 19.0), Published(80.0, 40.0)
    assert judge(near, change).outcome == UNDECIDED
    for known in (replace(change, draws=10), replace(change, exact=True)):
        assert judge(near, known, "ms") == Result(
            REPRODUCED, "within 28.0 … 52.0 ms; within 16.0 … 22.0 %")
        assert judge(far, known).outcome == DIRECTION
        assert judge(Published(-40.0, -19.0), known).outcome == NOT_REPRODUCED
    assert judge(Published(40.0), change).outcome == UNDECIDED, "an interval within is not enough"
    assert judge(Published(), change) == Result("")


# Results of published numbers ---------------------------------------------------------

numbers = some.floats(-1e6, 1e6)
widths = some.floats(0, 1e6)


# A ComparedNumber: measured, published, allowed deviation, interval of what was measured, unit.
@pytest.mark.parametrize(("compared", "word", "test"), [
    (ComparedNumber(12, 10, 3, (12, 12), "ms"), REPRODUCED, "within 7.0 … 13.0 ms"),
    (ComparedNumber(13, 10, 3, (13, 13), "ms"), REPRODUCED, "within 7.0 … 13.0 ms"),
    (ComparedNumber(12, 10, 3, (11, 13), "ms"), REPRODUCED, "within 7.0 … 13.0 ms"),
    (ComparedNumber(12, 10, 3, (11, 13.1), "ms"), UNDECIDED, "partly within 7.0 … 13.0 ms"),
    (ComparedNumber(7.5, 10, 3, (6.9, 8), "ms"), UNDECIDED, "partly within 7.0 … 13.0 ms"),
    (ComparedNumber(10, 10, 3, (-50, 70), "ms"), UNDECIDED, "partly within 7.0 … 13.0 ms"),
    (ComparedNumber(10, 10, 3, None, "ms"), UNDECIDED, "no interval: partly within 7.0 … 13.0 ms"),
    (ComparedNumber(400, 10, 3, None, "ms"), UNDECIDED, "no interval: partly within 7.0 … 13.0 ms"),
    (ComparedNumber(14, 10, 3, (9, 19), "ms"), UNDECIDED, "partly within 7.0 … 13.0 ms"),
    (ComparedNumber(16, 10, 3, (13.1, 19), "ms"), DIRECTION, "not within 7.0 … 13.0 ms"),
    (ComparedNumber(3, 10, 3, (0.1, 6.9), "ms"), DIRECTION, "not within 7.0 … 13.0 ms"),
    (ComparedNumber(3, 10, 3, (0, 6.9), "ms"), NOT_REPRODUCED, "not within 7.0 … 13.0 ms"),
    (ComparedNumber(-14, 10, 3, (-14, -14), "ms"), NOT_REPRODUCED, "not within 7.0 … 13.0 ms"),
    (ComparedNumber(-1, 1, 3, (-1, -1)), REPRODUCED, "within −2.0 … 4.0"),
])
def test_a_single_number_is_judged_by_its_interval(compared: ComparedNumber, word: str,
                                                   test: str) -> None:
    assert judge_numbers([compared]) == Result(word, test)


def exactly(measured: float, published: float, allowed: float) -> ComparedNumber:
    """A number that was measured without any uncertainty."""
    return ComparedNumber(measured, published, allowed, (measured, measured))


def test_every_number_of_a_bar_has_to_agree() -> None:
    near, far = exactly(10, 10, 1), exactly(20, 10, 1)
    opposite = exactly(-20, 10, 1)
    unknown = ComparedNumber(10, 10, 1, (5, 15))
    assert judge_numbers([near, near]).outcome == REPRODUCED
    assert judge_numbers([near, far]) == Result(
        DIRECTION, "within 9.0 … 11.0; not within 9.0 … 11.0")
    assert judge_numbers([far, opposite]).outcome == NOT_REPRODUCED
    assert judge_numbers([near, unknown]).outcome == UNDECIDED
    assert judge_numbers([far, unknown]).outcome == DIRECTION  # one number is far for certain
    assert judge_numbers([far, ComparedNumber(10, 10, 1, (-5, 25))]).outcome == NOT_REPRODUCED


@settings(max_examples=40)
@given(some.lists(some.tuples(numbers, numbers, widths, widths, widths, widths), min_size=1,
                  max_size=3))
def test_a_wider_interval_never_makes_more_certain(bar: list[tuple[float, ...]]) -> None:
    """An interval that grows at both ends keeps its result or loses certainty."""
    narrow, wide, unknown = [], [], []
    for measured, published, allowed, below, above, more in bar:
        low, high = measured - below, measured + above
        narrow.append(ComparedNumber(measured, published, allowed, (low, high)))
        wide.append(ComparedNumber(measured, published, allowed, (low - more, high + more)))
        unknown.append(ComparedNumber(measured, published, allowed, None))

    before, after = judge_numbers(narrow).outcome, judge_numbers(wide).outcome
    # The results that a wider interval may have, by that of the narrow one.
    order = {REPRODUCED: (REPRODUCED, UNDECIDED), UNDECIDED: (UNDECIDED,),
             DIRECTION: (DIRECTION, NOT_REPRODUCED, UNDECIDED),
             NOT_REPRODUCED: (NOT_REPRODUCED, UNDECIDED)}
    assert after in order[before]
    assert judge_numbers(unknown).outcome == UNDECIDED


@pytest.mark.parametrize(("first", "second", "word"), [
    ((5, 6), (3, 4), DIRECTION), ((5, 6), (3, 5), UNDECIDED), ((3, 4), (5, 6), NOT_REPRODUCED),
    ((5, 5), (5, 5), NOT_REPRODUCED), ((3, 9), (5, 6), UNDECIDED)])
def test_an_interval_is_larger_only_where_all_of_it_is(first: Ends, second: Ends,
                                                       word: str) -> None:
    assert larger(first, second) == word


@pytest.mark.parametrize(("difference", "word"), [
    ((-5, 5), REPRODUCED), ((-5.1, 5), UNDECIDED), ((-5, 5.1), UNDECIDED), ((-9, 9), UNDECIDED),
    ((5, 9), UNDECIDED), ((5.1, 9), NOT_REPRODUCED), ((-9, -5.1), NOT_REPRODUCED)])
def test_values_are_alike_where_all_of_the_interval_is_small(difference: Ends, word: str) -> None:
    assert equivalent(difference, 5) == word


def test_counted_results_stand_in_one_order_and_sentence() -> None:
    counted = count_outcomes([REPRODUCED, "", NOT_REPRODUCED, REPRODUCED, UNDECIDED])
    assert counted == {REPRODUCED: 2, UNDECIDED: 1, DIRECTION: 0, NOT_REPRODUCED: 1}
    assert list(counted) == [word for word in OUTCOMES if word != REBUILT]
    assert summarize_counts(counted) == (
        "2 of 4 reproduced, 1 undecided (too few data), 0 direction, 1 not reproduced")
    assert summarize_counts(count_outcomes([])) == ""


@pytest.mark.parametrize(("ends", "is_one"), [
    (None, False), ((1.0, 1.0), False), ((0.0, 0.05), False), ((0.0, 0.0501), True)])
def test_an_interval_that_prints_as_one_value_is_none(ends: Ends | None, is_one: bool) -> None:
    assert is_wide(ends) is is_one


# Claims of the project's scenarios ---------------------------------------------------

CLAIMS = [(name, claim) for name in scenario_file.names()
          for claim in scenario_file.find(name).raw.get("claim", [])]
# Tolerances that every claim of a kind may have, in the unit of its number: a trace's are segments.
LEAST = {"fetches": 0.0, "load": 0.1, "trace": 1.0}
PERCENT_POINTS = 3  # the same for what a load saves of a time


@pytest.mark.parametrize("name, claim", CLAIMS, ids=lambda value: value if isinstance(
    value, str) else str(value["says"])[:40])
def test_no_claims_tolerance_exceeds_a_third_of_the_published_number(
        name: str, claim: dict[str, object]) -> None:
    if "published" not in claim:
        assert "within" not in claim or claim["expects"] == "alike"
        return
    published, within = float(str(claim["published"])), float(str(claim.get("within", 0)))
    kind = str(scenario_file.find(name).raw.get("kind", "fetches"))
    of_time = kind == "load" and not str(claim["metric"]).endswith("_percent")
    assert within <= max(0.31 * published, PERCENT_POINTS if of_time else LEAST[kind])


def test_claims_read_in_an_abstract_are_marked() -> None:
    marked = {name for name, claim in CLAIMS if claim.get("abstract_only")}
    assert marked == {"chou2026_cliffs", "chou2026_mldsa"}
    assert all(claim.get("abstract_only") for name, claim in CLAIMS if name in marked)
