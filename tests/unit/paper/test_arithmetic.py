"""The paper's own arithmetic: by hand, from paper/*.csv, and with numbers that were changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from base.errors import UsageError
from experiment import main
from paper import arithmetic
from paper.arithmetic import PANELS, Bounded, add_up, derive_means
from runs import scenario_file
from study.registry import study_of
from study.scenario import published
from study.scenario.published import PublishedBucket

BDP = PANELS[2]
MEANS = {"experiment_ms": "514", "baseline_ms": "582"}


def test_a_bucket_by_hand() -> None:
    """10 ms are 5 % of 200 ms; 10.013 / 4.993 % and 9.987 / 5.007 % are the ends."""
    bucket = PublishedBucket("20", 25.0, 10.0, 5.0)
    assert derive_means(bucket) == pytest.approx((0.25, 200, 190))
    most_ms, least_ms = 10.013 / 0.04993, 9.987 / 0.05007
    assert derive_means(bucket, 1) == pytest.approx((0.25005, most_ms, most_ms - 10.013))
    assert derive_means(bucket, -1) == pytest.approx((0.24995, least_ms, least_ms - 9.987))


@pytest.mark.parametrize(("ends", "meets"), [
    ((1.0, 2.0), False), ((1.0, 3.0), True), ((3.5, 3.6), True), ((4.0, 9.0), True),
    ((4.1, 9.0), False)])
def test_numbers_meet_where_their_ends_overlap(ends: tuple[float, float], meets: bool) -> None:
    one, other = Bounded(3.5, 3.0, 4.0), Bounded(sum(ends) / 2, *ends)
    assert one.meets(other) is meets and other.meets(one) is meets


def test_a_changed_share_is_seen_and_else_nothing_follows() -> None:
    buckets = published.buckets(BDP.file, BDP.panel)
    same = add_up(BDP, buckets.values(), MEANS)
    first = buckets["1000"]
    assert first.responses_percent is not None
    changed = {**buckets, "1000": replace(first, responses_percent=first.responses_percent + 1)}
    assert not add_up(BDP, changed.values(), MEANS).baseline.meets(same.printed_baseline)
    assert arithmetic.show_sums([same]).statements[2].found == (
        "The buckets add up to the printed means with both windows: 1 of 1 panels.")


def test_the_page_is_what_the_program_writes(tmp_path: Path) -> None:
    arithmetic.main(tmp_path / "page.md")
    assert (tmp_path / "page.md").read_text() == arithmetic.PAGE.read_text()


def test_who_asks_for_the_scenario_is_told_where_it_went(
        capsys: pytest.CaptureFixture[str]) -> None:
    """By its name, and where a file or a stored run is of its kind."""
    with pytest.raises(UsageError, match="docs/results/paper_arithmetic.md has"):
        main(["paper_arithmetic"])
    file = scenario_file.parsed(
        "own", '# A claim.\nkind = "arithmetic"\ntitle = "t"\nsource = "s"\n')
    with pytest.raises(UsageError, match="docs/results/paper_arithmetic.md has"):
        study_of(file)
