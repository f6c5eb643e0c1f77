"""Populations that are drawn from the paper's numbers, and the sums that its numbers allow."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy
import pytest

from firstflight.base.errors import UsageError
from firstflight.findings.claims import Published
from firstflight.scenario import published
from firstflight.scenario.curves import Numbers, network_curve
from firstflight.workloads.fetch.scenario import rows
from paper import draw
from paper.draw import Joint, Population
from tests.running import run_program


@pytest.fixture(scope="module")
def average() -> Joint:
    return draw.average_datacenter()


def bars(*shares_by_label: tuple[str, float]) -> dict[str, Published]:
    return {label: Published(1.0, 1.0, responses_percent=share) for label, share in shares_by_label}


# The files ---------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["dukkipati2010", "population"])
def test_drawing_again_gives_the_stored_populations(name: str, tmp_path: Path,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    stored = (rows.FOLDER if name == "dukkipati2010" else
              Path(__file__).resolve().parents[2] / "golden" / "populations")
    (tmp_path / f"{name}.toml").write_bytes((stored / f"{name}.toml").read_bytes())
    monkeypatch.setattr(rows, "FOLDER", tmp_path)
    draw.write(name, full=False, seed=1)
    files = sorted(path.name for path in tmp_path.glob("*.xz"))
    assert files == sorted(path.name for path in stored.glob(f"{name}*.xz"))
    for file in files:
        (head, *ours), (stored_head, *theirs) = (rows.table(folder / file)
                                                 for folder in (tmp_path, stored))
        assert len(ours) == len(theirs)
        for name, *columns in zip(head, zip(*ours), zip(*theirs)):
            if name == "part":
                assert columns[0] == columns[1]
                continue
            # Processors differ in the last digit of a power, which rounds once in a while.
            of_thousandths = name in rows.COLUMNS and "weight" not in name
            assert numpy.allclose(*(numpy.array(column, dtype=float) for column in columns),
                                  rtol=1e-5, atol=0.0011 if of_thousandths else 0,
                                  equal_nan=True), (file, name)
        assert head[0] == stored_head[0]  # how it was made


def test_the_shares_of_cells_are_those_of_the_joint_distribution() -> None:
    stored = {(row["RTT"], row["BW"], row["BDP"]): float(row["share"]) for row in published.rows(
        published.path_of("joint_shares.csv"), ())}
    assert stored == pytest.approx(draw.bucket_shares(), abs=1e-12)


def test_like_copies_the_keys_that_are_not_given_again(tmp_path: Path) -> None:
    (tmp_path / "some.toml").write_text("""
[[population]]
name = "some"
datacenter = "average"
clients = 300
responses = 2
mechanism = { two_stages = true, burst_segments = [3, 3, 4] }
[[population]]
name = "more"
like = "some"
clients = 7
mechanism = { first_share = 0.3 }
""", encoding="utf-8")
    first, second = draw.populations(tmp_path / "some.toml")
    assert second == replace(first, name="more", clients=7, first_share=0.3)
    assert second.two_stages and second.burst_segments == [3, 3, 4]


def test_a_misspelt_key_and_a_missing_file_are_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "some.toml").write_text(
        '[[population]]\nname = "some"\ndatacenter = "average"\nclients = 3\nresponses = 2\n'
        'mechanism = { los_percent = 1 }\n', encoding="utf-8")
    with pytest.raises(UsageError, match="some.toml: .*'los_percent'"):
        draw.populations(tmp_path / "some.toml")
    run = run_program([sys.executable, "-m", "paper.draw", "nosuch"],
                      cwd=Path(draw.__file__).parents[1])
    assert run.returncode == 1 and len(run.stderr.splitlines()) == 1
    assert run.stderr.startswith("paper.draw: ") and "nosuch.toml" in run.stderr


# The joint distribution --------------------------------------------------------------

def test_all_22_shares_of_figure_5_are_met_exactly(average: Joint) -> None:
    assert [len(known.shares) for known in average.marginals] == [8, 8, 6]
    for member, known in zip(average.members, average.marginals):
        shares = numpy.bincount(member.ravel(), average.share.ravel())
        assert shares == pytest.approx(known.shares, abs=1e-8)


def mean_rtt_ms(of: Joint, above_kbps: float, upto_kbps: float) -> float:
    """The mean RTT of the clients whose bandwidth lies in a range."""
    shares = of.share[:, (of.bandwidth_kbps > above_kbps) & (of.bandwidth_kbps <= upto_kbps)]
    return float(shares.sum(axis=1) @ of.rtt_ms / shares.sum())


def test_slow_datacenter_is_near_the_only_joint_numbers_published() -> None:
    slow = draw.slow_datacenter()
    assert mean_rtt_ms(slow, 0, 56) == pytest.approx(343, rel=0.15)
    assert mean_rtt_ms(slow, 56, 256) == pytest.approx(250, rel=0.15)


def test_dependence_moves_the_corners_only_as_far_as_the_shares_allow(average: Joint) -> None:
    odds = draw.dependence(0.5, 0.0, numpy.array([7.0, 70, 700]), numpy.array([120.0, 1200, 12000]))
    assert odds[1] == pytest.approx([1, 1, 1]) and odds[:, 1] == pytest.approx([1, 1, 1])
    assert odds[2, 0] > 1 > odds[2, 2] == pytest.approx(odds[0, 0])
    assert odds[0, 2] == 1  # near and fast: nothing is said
    very = draw.dependence(0.0, 0.5, numpy.array([7.0, 70, 700, 7000]),
                           numpy.array([12.0, 120, 1200, 12000]))
    assert (very[:2] == 1).all() and (very[:, 2:] == 1).all()  # only the far and slow
    logs = numpy.log(very[2:, :2]) / numpy.log(10) ** 2
    assert logs == pytest.approx(numpy.array([[1.0, 0.5], [2.0, 1.0]]))
    together = draw.average_datacenter(0.5)
    for member, known in zip(together.members, together.marginals):
        assert numpy.bincount(member.ravel(), together.share.ravel()) == pytest.approx(
            known.shares, abs=1e-8)
    far, slow = average.rtt_ms > 200, average.bandwidth_kbps <= 512
    assert together.share[far][:, slow].sum() > 1.05 * average.share[far][:, slow].sum()


def test_rounded_shares_are_scaled_to_a_sum_of_1() -> None:
    known = draw.marginal("RTT", bars(("20", 50), (">20", 49.95)), (1, 100))
    assert sum(known.shares) == pytest.approx(1, abs=1e-12) and known.edges == (1, 20, 100)


def test_marginals_that_contradict_each_other_are_refused_by_a_bucket(
        average: Joint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draw, "ROUNDS", 200)
    # Half of the responses above 100 kB, though only 2.5 % have an RTT above 500 ms.
    impossible = replace(average.marginals[2], shares=(0.0076, 0.1, 0.1, 0.2, 0.0924, 0.5))
    with pytest.raises(UsageError, match=r"cannot be met together: (RTT|BW|BDP) bucket >?\d+ mis"):
        draw.fit([*average.marginals[:2], impossible], network_curve("rtt_ms", "AvgDC"),
                 network_curve("bandwidth_kbps", "AvgDC"), lambda *_: numpy.array(1.0))


def even(average: Joint) -> Numbers:
    return numpy.ones_like(average.share)


def test_sampled_clients_have_the_shares_and_every_bucket_has_some(average: Joint) -> None:
    picks, (weights,) = draw.sample(average, 300, 1, even(average), average)
    again, others = (draw.sample(average, 300, seed, even(average))[0] for seed in (1, 2))
    assert (picks == again).all() and (picks != others).any()
    assert weights.sum() == pytest.approx(1)
    for member, known in zip(average.members, average.marginals):
        found = member.ravel()[picks]
        assert numpy.bincount(found, weights) == pytest.approx(known.shares, abs=1e-8)
        assert numpy.bincount(found).min() >= 2
    many = draw.sample(average, 1500, 1, even(average))[0]
    assert (average.rtt_ms[many // average.share.shape[1]] > 3000).sum() > 5 * 0.0008 * 1500


def test_cells_that_vary_more_get_more_clients(average: Joint) -> None:
    slow = numpy.broadcast_to(average.bandwidth_kbps <= 56, average.share.shape)
    plain, _ = draw.sample(average, 1000, 1, even(average))
    varied, (weights,) = draw.sample(average, 1000, 1, numpy.where(slow, 5.0, 1.0), average)
    assert slow.ravel()[varied].sum() > 3 * slow.ravel()[plain].sum()
    assert weights[slow.ravel()[varied]].sum() == pytest.approx(0.0064, abs=1e-6)


def test_too_few_clients_are_refused(average: Joint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draw, "ROUNDS", 200)
    with pytest.raises(UsageError, match="10 clients are too few"):
        draw.sample(average, 10, 1, even(average), average)


def test_a_client_exactly_at_the_limit_counts_as_near(average: Joint) -> None:
    seen = draw.near(average, float(average.rtt_ms[3])).share.sum(axis=1) > 0
    assert seen[:4].any() and seen[3] and not seen[4:].any()
    with pytest.raises(UsageError, match="no client has an RTT up to 0.5 ms"):
        draw.near(average, 0.5)


# Responses ---------------------------------------------------------------------------

@cache
def drawn(seed: int = 1, **mechanism: Any) -> dict[str, Numbers]:
    """Columns of 300 clients with two responses each."""
    made = Population(**{"name": "some", "datacenter": "average", "clients": 300, "responses": 2,
                         **mechanism})
    return {name: numpy.array(values) for name, values in draw.responses(made, seed).items()}


def different(one: dict[str, Numbers], other: dict[str, Numbers]) -> set[str]:
    return {name for name in one if (one[name] != other[name]).any()}


def test_rows_are_drawn_equal_with_the_same_seed_and_differ_with_another() -> None:
    assert tuple(drawn()) != () and {*drawn()} == {*rows.COLUMNS}
    assert not different(drawn(), drawn.__wrapped__(1))
    assert "key_rtt_ms" in different(drawn(), drawn(2))


def test_without_mechanisms_a_response_has_its_clients_network() -> None:
    plain = drawn()
    for name in ("gap_ms", "burst_bytes", "earlier_bytes", "loss_percent", "seed"):
        assert (plain[name] == 0).all(), name
    assert (plain["bandwidth_kbps"] == plain["key_bandwidth_kbps"]).all()
    assert (plain["rtt_ms"] == plain["key_rtt_ms"]).all()
    assert {*plain["queue_packets"]} == {1000}


@pytest.mark.parametrize(("gap_mean_ms", "segments"), [(250.0, (3, 4)), (0.5, (2,))])
def test_bursts_fill_whole_segments_and_leave_something_for_later(
        gap_mean_ms: float, segments: tuple[int, ...]) -> None:
    """The second back-end takes less than a millisecond."""
    made = drawn(two_stages=True, gap_mean_ms=gap_mean_ms, burst_segments=segments)
    whole = [draw.HEADER_BYTES + len(str(size)) for size in made["response_bytes"].tolist()]
    staged = made["gap_ms"] > 0
    assert ((made["burst_bytes"] + whole)[staged] % draw.SEGMENT_BYTES == 0).all()
    assert (made["burst_bytes"] < made["response_bytes"])[staged].all()
    fits = made["response_bytes"] + whole <= max(segments) * draw.SEGMENT_BYTES
    assert not staged[made["response_bytes"] + whole <= min(segments) * draw.SEGMENT_BYTES].any()
    assert staged[~fits].all() and not staged.all()


@pytest.mark.parametrize("mean_ms", [200.0, 0.5])
def test_the_baselines_week_leans_to_the_far_and_slow_and_to_long_gaps(mean_ms: float) -> None:
    staged = {"two_stages": True, "gap_mean_ms": mean_ms, "no_gap_share": 0.3}
    plain, leaning = drawn(**staged), drawn(**staged, baseline_week=0.1, baseline_gap=0.4)
    assert different(plain, leaning) == {"baseline_weight"}
    assert (plain["baseline_weight"] == plain["weight"]).all()
    assert leaning["baseline_weight"].sum() == pytest.approx(1)
    gap = numpy.where(leaning["gap_ms"] > 0, leaning["gap_ms"] / mean_ms, 1.0)
    wanted = (leaning["key_rtt_ms"] / leaning["key_bandwidth_kbps"]) ** 0.1 * gap ** 0.4
    odds = leaning["baseline_weight"] / leaning["weight"]
    assert odds == pytest.approx(odds[0] / wanted[0] * wanted, rel=2e-3)
    assert (gap == 1).any() and max(odds) > 1.3 and min(odds) < 0.9


# Arithmetic ---------------------------------------------------------------------------

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
def test_buckets_add_up_to_the_printed_means_but_for_other_users(
        file: str, panel: str, center: str, base_ms: float, other_users_ms: float) -> None:
    """other_users_ms: the part of the printed saving that the same shares do not yield."""
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
