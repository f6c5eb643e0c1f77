"""The joint distribution: the published shares are met exactly, and what cannot be met is named."""

from __future__ import annotations

from dataclasses import replace

import numpy
import pytest

from lab.core.scenario.curves import Numbers, network_curve
from lab.core.errors import UsageError
from lab.core.scenario.published import PublishedBucket
from lab.fetches.features.population import draws
from lab.fetches.figures import joint
from lab.fetches.figures.joint import Joint


@pytest.fixture(scope="module")
def average() -> Joint:
    return joint.average_datacenter()


def bars(*shares_by_label: tuple[str, float]) -> dict[str, PublishedBucket]:
    return {label: PublishedBucket(label, share, 1.0, 1.0) for label, share in shares_by_label}


def test_all_22_shares_of_figure_5_are_met_exactly(average: Joint) -> None:
    found = {"RTT": average.share.sum(axis=1), "BW": average.share.sum(axis=0),
             "BDP": average.share.ravel()}
    values = {"RTT": average.rtt_ms, "BW": average.bandwidth_kbps,
              "BDP": average.bdp_bytes.ravel()}
    assert [len(known.shares) for known in average.marginals] == [8, 8, 6]
    for known in average.marginals:
        shares = numpy.bincount(known.bucket(values[known.name]), found[known.name])
        assert shares == pytest.approx(known.shares, abs=1e-8)


def mean_rtt_ms(of: Joint, above_kbps: float, upto_kbps: float) -> float:
    """Of the clients whose bandwidth lies in a range."""
    shares = of.share[:, (of.bandwidth_kbps > above_kbps) & (of.bandwidth_kbps <= upto_kbps)]
    return float(shares.sum(axis=1) @ of.rtt_ms / shares.sum())


def test_slow_networks_have_long_round_trips(average: Joint) -> None:
    assert (mean_rtt_ms(average, 0, 56) > mean_rtt_ms(average, 256, 512)
            > mean_rtt_ms(average, 5000, 1e9))


def test_slow_datacenter_is_near_the_only_joint_numbers_published() -> None:
    slow = joint.slow_datacenter()
    assert mean_rtt_ms(slow, 0, 56) == pytest.approx(343, rel=0.15)
    assert mean_rtt_ms(slow, 56, 256) == pytest.approx(250, rel=0.15)


def test_dependence_moves_the_corners_only_as_far_as_the_shares_allow(average: Joint) -> None:
    odds = joint.dependence(0.5, 0.0, numpy.array([7.0, 70, 700]), numpy.array([120.0, 1200, 12000]))
    assert odds[1] == pytest.approx([1, 1, 1]) and odds[:, 1] == pytest.approx([1, 1, 1])
    assert odds[2, 0] > 1 > odds[2, 2] == pytest.approx(odds[0, 0])
    assert odds[0, 2] == 1  # near and fast: nothing is said
    very = joint.dependence(0.0, 0.5, numpy.array([7.0, 70, 700, 7000]),
                            numpy.array([12.0, 120, 1200, 12000]))
    assert (very[:2] == 1).all() and (very[:, 2:] == 1).all()  # only the far and slow
    logs = numpy.log(very[2:, :2]) / numpy.log(10) ** 2
    assert logs == pytest.approx(numpy.array([[1.0, 0.5], [2.0, 1.0]]))
    together = joint.average_datacenter(0.5)
    for member, known in zip(together.members, together.marginals):
        assert numpy.bincount(member.ravel(), together.share.ravel()) == pytest.approx(
            known.shares, abs=1e-8)
    far, slow = average.rtt_ms > 200, average.bandwidth_kbps <= 512
    assert together.share[far][:, slow].sum() > 1.05 * average.share[far][:, slow].sum()
    assert joint.average_datacenter(0.0).share == pytest.approx(average.share)


def test_shares_that_do_not_sum_to_one_are_refused() -> None:
    with pytest.raises(UsageError, match=r"RTT: the shares of the buckets sum to 99\.5 %"):
        joint.marginal("RTT", bars(("20", 50), (">20", 49.5)), (1, 100))


def test_published_rounding_is_scaled_away() -> None:
    known = joint.marginal("RTT", bars(("20", 50), (">20", 49.95)), (1, 100))
    assert sum(known.shares) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("labels, message", [(("50", "20", ">50"), "not in order"),
                                             (("fast", "20", ">20"), "no upper end")])
def test_buckets_must_ascend(labels: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        joint.marginal("RTT", bars(*((label, 100 / 3) for label in labels)), (1, 100))


def test_marginals_that_contradict_each_other_name_a_bucket(
        average: Joint, monkeypatch: pytest.MonkeyPatch) -> None:
    by_rtt, by_bandwidth, by_bdp = average.marginals
    monkeypatch.setattr(joint, "ROUNDS", 200)
    # Half of the responses above 100 kB, though only 2.5 % have an RTT above 500 ms.
    impossible = replace(by_bdp, shares=(0.0076, 0.1, 0.1, 0.2, 0.0924, 0.5))
    with pytest.raises(UsageError, match=r"contradict each other: (RTT|BW|BDP) bucket >?\d+ mis"):
        joint.fit([by_rtt, by_bandwidth, impossible], network_curve("rtt_ms", "AvgDC"),
                  network_curve("bandwidth_kbps", "AvgDC"))


def test_a_bucket_without_networks_is_named(average: Joint) -> None:
    by_rtt, by_bandwidth, by_bdp = average.marginals
    beyond = replace(by_bdp, edges=(*by_bdp.edges[:-2], 1e9, 2e9))
    with pytest.raises(UsageError, match="nothing lies in BDP bucket >100000"):
        joint.fit([by_rtt, by_bandwidth, beyond], network_curve("rtt_ms", "AvgDC"),
                  network_curve("bandwidth_kbps", "AvgDC"))


def even(average: Joint) -> Numbers:
    return numpy.ones_like(average.share)


def test_sampled_clients_have_the_shares_and_every_bucket_has_some(
        average: Joint) -> None:
    clients = draws.sample(average, 300, 1, even(average))
    assert clients == draws.sample(average, 300, 1, even(average))
    assert clients != draws.sample(average, 300, 2, even(average))
    weights = numpy.array([client.weight for client in clients])
    assert weights.sum() == pytest.approx(1)
    for known, values in zip(average.marginals, (
            [client.rtt_ms for client in clients], [client.bandwidth_kbps for client in clients],
            [client.rtt_ms * client.bandwidth_kbps / 8 for client in clients])):
        members = known.bucket(numpy.array(values))
        assert numpy.bincount(members, weights) == pytest.approx(known.shares, abs=1e-8)
        assert numpy.bincount(members).min() >= 2


def test_rare_buckets_are_given_more_clients_than_their_share(average: Joint) -> None:
    clients = draws.sample(average, 1500, 1, even(average))
    assert sum(client.rtt_ms > 3000 for client in clients) > 5 * 0.0008 * 1500


def test_cells_that_vary_more_get_more_clients(average: Joint) -> None:
    slow = average.bandwidth_kbps[None, :] <= 56
    plain = draws.sample(average, 1000, 1, even(average))
    varied = draws.sample(average, 1000, 1, numpy.where(slow, 5.0, 1.0) * even(average))
    counts = [sum(client.bandwidth_kbps <= 56 for client in clients)
              for clients in (plain, varied)]
    assert counts[1] > 3 * counts[0]
    assert sum(client.weight for client in varied if client.bandwidth_kbps <= 56) \
        == pytest.approx(0.0064, abs=1e-6)


def test_too_few_clients_say_which_bucket_is_empty(average: Joint) -> None:
    with pytest.raises(UsageError, match="10 clients are too few"):
        draws.sample(average, 10, 1, even(average))


def test_who_is_as_far_as_the_limit_is_near(average: Joint) -> None:
    limit_ms = float(average.rtt_ms[3])
    seen = joint.near(average, limit_ms).share.sum(axis=1) > 0
    assert seen[:4].any() and seen[3] and not seen[4:].any()
