"""Weighted statistics, and intervals of values measured in pairs."""

from __future__ import annotations

import random
import statistics

import pytest

from lab.core import stats


def test_weighted_statistics_agree_with_the_unweighted() -> None:
    generator = random.Random(2)
    for count in range(1, 12):
        values = [generator.uniform(-5, 5) for _ in range(count)]
        ones = [0.1] * count
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
