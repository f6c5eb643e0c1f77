"""Populations: the published shares are met exactly, and what cannot be met is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy
import pytest

from lab import population
from lab.errors import UsageError
from lab.published import PAPER, PublishedBucket


@pytest.fixture(scope="module")
def average() -> population.Joint:
    return population.average_datacenter()


def bars(*shares_by_label: tuple[str, float]) -> dict[str, PublishedBucket]:
    return {label: PublishedBucket(label, share, 1.0, 1.0) for label, share in shares_by_label}


def test_all_22_shares_of_figure_5_are_met_exactly(average: population.Joint) -> None:
    found = {"RTT": average.share.sum(axis=1), "BW": average.share.sum(axis=0),
             "BDP": average.share.ravel()}
    values = {"RTT": average.rtt_ms, "BW": average.bandwidth_kbps,
              "BDP": average.bdp_bytes.ravel()}
    assert [len(known.shares) for known in average.marginals] == [8, 8, 6]
    for known in average.marginals:
        shares = numpy.bincount(known.bucket(values[known.name]), found[known.name])
        assert shares == pytest.approx(known.shares, abs=1e-8)


def test_slow_networks_have_long_round_trips(average: population.Joint) -> None:
    assert average.mean_rtt_ms(0, 56) > average.mean_rtt_ms(256, 512) > average.mean_rtt_ms(5000, 1e9)


def test_slow_datacenter_is_near_the_only_joint_numbers_published() -> None:
    slow = population.slow_datacenter()
    assert slow.mean_rtt_ms(0, 56) == pytest.approx(343, rel=0.15)
    assert slow.mean_rtt_ms(56, 256) == pytest.approx(250, rel=0.15)
    independent = population.slow_datacenter(dependence=0)
    assert independent.mean_rtt_ms(0, 56) == pytest.approx(independent.mean_rtt_ms(2000, 5000))


def test_no_client_in_a_range_is_an_error(average: population.Joint) -> None:
    with pytest.raises(UsageError, match="between 1 and 2 kbit/s"):
        average.mean_rtt_ms(1, 2)


def test_shares_that_do_not_sum_to_one_are_refused() -> None:
    with pytest.raises(UsageError, match=r"RTT: the shares of the buckets sum to 99\.5 %"):
        population.marginal("RTT", bars(("20", 50), (">20", 49.5)), (1, 100))


def test_published_rounding_is_scaled_away() -> None:
    known = population.marginal("RTT", bars(("20", 50), (">20", 49.95)), (1, 100))
    assert sum(known.shares) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("labels, message", [(("50", "20", ">50"), "not in order"),
                                             (("fast", "20", ">20"), "no upper end")])
def test_buckets_must_ascend(labels: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        population.marginal("RTT", bars(*((label, 100 / 3) for label in labels)), (1, 100))


def test_marginals_that_contradict_each_other_name_the_bucket(average: population.Joint) -> None:
    by_rtt, by_bandwidth, by_bdp = average.marginals
    # Half of the responses above 100 kB, though only 2.5 % have an RTT above 500 ms.
    impossible = replace(by_bdp, shares=(0.0076, 0.1, 0.1, 0.2, 0.0924, 0.5))
    with pytest.raises(UsageError, match=r"BDP bucket >100000 asks for 50\.00 %.*at most"):
        population.fit([by_rtt, by_bandwidth, impossible],
                       population.network_curve("rtt_ms", "AvgDC"),
                       population.network_curve("bandwidth_kbps", "AvgDC"))


def test_a_bucket_without_networks_is_named(average: population.Joint) -> None:
    by_rtt, by_bandwidth, by_bdp = average.marginals
    beyond = replace(by_bdp, edges=(*by_bdp.edges[:-2], 1e9, 2e9))
    with pytest.raises(UsageError, match="BDP bucket >100000"):
        population.fit([by_rtt, by_bandwidth, beyond],
                       population.network_curve("rtt_ms", "AvgDC"),
                       population.network_curve("bandwidth_kbps", "AvgDC"))


def test_sampled_clients_have_the_shares_and_every_bucket_has_some(
        average: population.Joint) -> None:
    clients = population.sample(average, 300, seed=1)
    assert clients == population.sample(average, 300, seed=1)
    assert clients != population.sample(average, 300, seed=2)
    weights = numpy.array([client.weight for client in clients])
    assert weights.sum() == pytest.approx(1)
    for known, column in zip(average.marginals, ("rtt_ms", "bandwidth_kbps", "bdp_bytes")):
        values = numpy.array([getattr(client, column) for client in clients])
        members = known.bucket(values)
        assert numpy.bincount(members, weights) == pytest.approx(known.shares, abs=1e-8)
        assert numpy.bincount(members).min() >= 2


def test_evenness_gives_rare_buckets_more_clients(average: population.Joint) -> None:
    def rarest(evenness: float) -> int:
        return sum(client.rtt_ms > 3000
                   for client in population.sample(average, 1500, 1, evenness))
    assert rarest(1.0) > rarest(0.5) > rarest(0.0)


def test_cells_that_vary_more_get_more_clients(average: population.Joint) -> None:
    slow = average.bandwidth_kbps[None, :] <= 56
    spread = numpy.where(slow, 5.0, 1.0) * numpy.ones_like(average.share)
    plain = population.sample(average, 1000, 1)
    varied = population.sample(average, 1000, 1, spread=spread)
    counts = [sum(client.bandwidth_kbps <= 56 for client in clients) for clients in (plain, varied)]
    assert counts[1] > 3 * counts[0]
    assert sum(client.weight for client in varied if client.bandwidth_kbps <= 56) \
        == pytest.approx(0.0064, abs=1e-6)


def test_too_few_clients_say_which_bucket_is_empty(average: population.Joint) -> None:
    with pytest.raises(UsageError, match="10 clients are too few"):
        population.sample(average, 10, seed=1)


def test_web_search_sizes_have_the_published_quantiles_and_mean() -> None:
    curve = population.size_curve("web_search")
    assert curve.quantile(numpy.array([0.1, 0.5, 0.9])) == pytest.approx([2600, 8830, 17000],
                                                                         rel=0.03)
    sizes = population.sample_sizes(curve, 20_000, numpy.random.default_rng(1))
    assert sum(sizes) / len(sizes) == pytest.approx(10_500, rel=0.03)
    assert sizes == population.sample_sizes(curve, 20_000, numpy.random.default_rng(1))


def test_a_stratified_sample_of_sizes_follows_the_curve() -> None:
    curve = population.size_curve("web_search")
    sizes = numpy.sort(population.sample_sizes(curve, 100, numpy.random.default_rng(1)))
    middles = (numpy.arange(100) + 0.5) / 100
    assert numpy.abs(curve.at(sizes.astype(float)) - middles)[2:].max() < 0.011


def test_an_unknown_series_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'web_search'"):
        population.size_curve("websearch")
    with pytest.raises(UsageError, match="has no series 'rtt_ms Avg'"):
        population.network_curve("rtt_ms", "Avg")


@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan"), 95])
def test_an_unknown_percentile_is_an_error(share: float) -> None:
    with pytest.raises(UsageError, match="between 0 and 1"):
        population.size_curve().quantile(share)


@pytest.mark.parametrize("values, cdf, message", [
    ((), (), "two points"), ((1.0, 3.0, 2.0), (0.1, 0.2, 0.3), "value 2 follows 3"),
    ((1.0, 2.0), (0.5, 0.4), "cdf 0.4 follows 0.5"), ((1.0, 2.0), (0.5, 1.4), "within 0 to 1"),
    ((0.0, 2.0), (0.5, 0.9), "positive"), ((1.0, float("nan")), (0.5, 0.9), "not sorted")])
def test_a_bad_curve_says_what_is_wrong(values: tuple[float, ...], cdf: tuple[float, ...],
                                        message: str) -> None:
    with pytest.raises(UsageError, match=message):
        population.Curve("somewhere", values, cdf)


def test_a_bad_file_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="paper_figure1_cdf.csv: cannot be read"):
        population.size_curve(folder=tmp_path)
    text = (PAPER / "paper_figure1_cdf.csv").read_text(encoding="utf-8")
    (tmp_path / "paper_figure1_cdf.csv").write_text(text.replace("0.0198", "many", 1))
    with pytest.raises(UsageError, match="paper_figure1_cdf.csv.*many"):
        population.size_curve(folder=tmp_path)


def test_a_tail_is_continued_only_where_percentile_98_is_known() -> None:
    assert population.size_curve("top100_sites").cdf[-1] < 0.95
    beyond_50_segments = 1 - float(population.size_curve().at(numpy.array(50 * 1430.0)))
    assert beyond_50_segments == pytest.approx(0.0011, abs=0.0006)  # Figure 7: 0.11 %
    beyond_3_s = 1 - float(population.network_curve("rtt_ms", "AvgDC").at(numpy.array(3000.0)))
    assert beyond_3_s == pytest.approx(0.0008, abs=0.0006)  # Figure 5: 0.08 %
