"""Weighted statistics, and intervals of values measured in pairs."""

from __future__ import annotations

import random
import statistics

import pytest

from firstflight.base import stats


def test_weighted_statistics_agree_with_the_unweighted() -> None:
    generator = random.Random(2)
    for count in range(1, 12):
        values = [generator.uniform(-5, 5) for _ in range(count)]
        for weight in (0.1, 1e9 / 3):
            ones = [weight] * count
            assert stats.weighted_mean(values, ones) == pytest.approx(statistics.fmean(values))
            assert stats.weighted_quantile(values, ones, 0.5) == pytest.approx(
                statistics.median(values))
    assert stats.weighted_quantile([1, 2, 3], [98, 1, 1], 0.5) == 1
    assert stats.weighted_quantile([1, 2, 3], [0, 1, 0], 0.0) == 2
    assert stats.weighted_quantile([1, 2, 3], [1, 1, 1], 1.0) == 3
    for bad in (lambda: stats.weighted_mean([], []), lambda: stats.weighted_mean([1], [0]),
                lambda: stats.weighted_mean([1, 2], [1]),
                lambda: stats.weighted_quantile([1], [1], 2)):
        with pytest.raises(ValueError):
            bad()


def test_pairs_narrow_the_interval() -> None:
    """Two windows under the same random numbers: their difference hardly varies."""
    generator = stats.generator(5)
    common = generator.normal(1000, 300, 200)
    pairs = [(float(value), float(value - 50 + generator.normal(0, 5))) for value in common]
    base, experiment = stats.resampled_pairs([pairs], [1.0], stats.generator(1))
    low, high = stats.percentile_interval(base - experiment)
    assert low < 50 < high and high - low < 4
    apart = (stats.resampled_means([[one for one, _ in pairs]], [1.0], stats.generator(1))
             - stats.resampled_means([[other for _, other in pairs]], [1.0], stats.generator(2)))
    far_low, far_high = stats.percentile_interval(apart)
    assert far_high - far_low > 50


def test_portions_draw_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [float(value) for value in stats.generator(3).normal(100, 20, 37)]
    pairs = [(value, value / 2) for value in values]

    def drawn() -> list[float]:
        means = stats.resampled_means([values, values[:5]], [1.0, 2.0], stats.generator(1))
        both = stats.resampled_pairs([pairs, pairs[:5]], [1.0, 2.0], stats.generator(1))
        return [*means.tolist(), *both[0].tolist(), *both[1].tolist()]

    whole = drawn()
    for at_once in (10, 1000):
        monkeypatch.setattr(stats, "AT_ONCE", at_once)
        assert drawn() == pytest.approx(whole, rel=1e-12)


def test_strata_count_by_their_weights() -> None:
    """Those that do not vary give their weighted mean, whatever is drawn."""
    means = stats.resampled_means([[1.0] * 3, [4.0] * 2], [1.0, 2.0], stats.generator(1), 7)
    assert means.shape == (7,) and set(means) == {3.0}
    base, other = stats.resampled_pairs([[(1.0, 10.0)] * 3, [(4.0, 40.0)] * 2], [1.0, 2.0],
                                        stats.generator(1), 7)
    assert set(base.round(9)) == {3.0} and set(other.round(9)) == {30.0}
    assert len(stats.resampled_means([[1.0, 2.0]], [1.0], stats.generator(1))) == stats.RESAMPLES


def test_a_percentile_interval_leaves_as_much_on_both_sides() -> None:
    values = stats.generator(1).permutation(1001).astype(float)
    assert stats.percentile_interval(values) == pytest.approx((25, 975))
    assert stats.percentile_interval(values, 0.5) == pytest.approx((250, 750))


def test_an_estimate_is_students() -> None:
    assert stats.estimate([4.0]) == stats.Estimate(4.0, None, 1)
    made = stats.estimate([1.0, 2.0, 3.0, 6.0])
    # t(0.975, 3) = 3.1824, and the spread is 2.1602.
    assert made.value == 3.0 and made.n == 4
    assert made.interval == pytest.approx((3 - 3.4374, 3 + 3.4374), abs=1e-3)
    with pytest.raises(ValueError, match="no values"):
        stats.estimate([])


@pytest.mark.parametrize("interval, sign", [
    (None, 0), ((0.1, 2.0), 1), ((0.0, 2.0), 0), ((-2.0, -0.1), -1), ((-2.0, 0.0), 0),
    ((-1.0, 1.0), 0)])
def test_a_sign_is_only_told_where_the_interval_excludes_0(
        interval: tuple[float, float] | None, sign: int) -> None:
    assert stats.Estimate(1.0, interval).sign == sign


def test_an_estimate_in_another_unit() -> None:
    assert stats.Estimate(2.0, (1.0, 4.0), 3).scaled(10) == stats.Estimate(20.0, (10.0, 40.0), 3)
    assert stats.Estimate(2.0).scaled(0.5) == stats.Estimate(1.0)
