"""The paper's own arithmetic: its buckets add up to its mean for ten segments, not for three.

The target of the population rests on it (firstflight/study/population, "two weeks"). A bucket
prints its share s of the responses, what was saved a in ms, and the same p in percent of the
baseline. So its mean latency is a/p with three segments and a/p - a with ten, and a population's
mean is the sum of s times the latency. That both means take the same shares separates the window
from a change of who was measured (standardisation; Kitagawa 1955, JASA 50).
"""

from __future__ import annotations

import pytest

from firstflight.study.scenario import published

# As exactly as paper/*.csv are known, by their first lines: shares are printed with two decimals,
# means as whole ms, bars were read.
SHARE_POINTS, SAVED_PART, PERCENT_POINTS, MEAN_MS = 0.005, 0.0013, 0.007, 0.5
SIDES = (0, -1, 1)  # as printed; the least and the most that what is printed may stand for


def sums_ms(file: str, panel: str, side: int) -> tuple[float, float]:
    """The means of a panel's buckets under three segments and under ten."""
    base_ms = experiment_ms = 0.0
    for bucket in published.buckets(file, panel).values():
        assert bucket.responses_percent and bucket.absolute and bucket.percent
        share = (bucket.responses_percent + side * SHARE_POINTS) / 100
        saved_ms = bucket.absolute * (1 + side * SAVED_PART)
        latency_ms = 100 * saved_ms / (bucket.percent - side * PERCENT_POINTS)
        base_ms += share * latency_ms
        experiment_ms += share * (latency_ms - saved_ms)
    return base_ms, experiment_ms


@pytest.mark.parametrize(("file", "panel", "center", "base_ms", "other_users_ms"), [
    ("paper_figure5.csv", "RTT", "AvgDC", 560.1, 23.2),
    ("paper_figure5.csv", "BW", "AvgDC", 561.5, 20.9),
    ("paper_figure5.csv", "BDP", "AvgDC", 583.3, 0.0),
    ("paper_figure7.csv", "", "AvgDC", 583.3, 0.0),
    ("paper_figure6.csv", "", "SlowDC", 815.1, 7.9)])
def test_the_buckets_add_up_to_the_printed_means(file: str, panel: str, center: str,
                                                 base_ms: float, other_users_ms: float) -> None:
    """other_users_ms: of the saving that is printed, what the same shares do not save."""
    means = {row["data_center"]: row for row in published.rows(
        published.path_of("paper_means.csv"), ("data_center", "experiment_ms", "baseline_ms"))}
    printed = float(means[center]["baseline_ms"]), float(means[center]["experiment_ms"])
    (base, low_base, high_base), (ten, low_ten, high_ten) = zip(
        *(sums_ms(file, panel, side) for side in SIDES))
    assert low_ten <= printed[1] + MEAN_MS and printed[1] - MEAN_MS <= high_ten
    assert base == pytest.approx(base_ms, abs=0.05)
    adds_up = low_base <= printed[0] + MEAN_MS and printed[0] - MEAN_MS <= high_base
    assert adds_up == (other_users_ms == 0.0)
    rest_ms = printed[0] - printed[1] - (base - ten)
    assert rest_ms == pytest.approx(other_users_ms, abs=0.05 if other_users_ms else 0.25)
