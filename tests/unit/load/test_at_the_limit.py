"""The verdict on a load run on both sides of each limit, of connections made by hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from firstflight.findings.findings import Compared
from firstflight.net.segments import MSS
from firstflight.study.load import verify
from firstflight.study.load.record import LoadEvidence, LoadRecord
from tests.unit.load.test_record import TRIAL, bottleneck, connections


def evidence(*rows: dict[str, Any], sent_bytes: float = 0, **of_trial: Any) -> LoadEvidence:
    """Of these connections; so many bytes passed the bottleneck in 40 s."""
    return LoadEvidence(replace(TRIAL, **of_trial), connections(*rows), bottleneck(
        (10.0, 0, 0, 0, 0), (50.0, sent_bytes, 1, 0, 0)), {}, ())


def held(found: Iterator[Compared]) -> list[bool]:
    return [each.passed for each in found]


def test_arrivals_may_be_four_standard_deviations_off() -> None:
    mean, sigma = TRIAL.expected_arrivals
    assert mean == pytest.approx(TRIAL.responses_per_s * 40) and sigma == mean ** 0.5
    for seen, good in ((mean - 4 * sigma + 1, True), (mean - 4 * sigma - 1, False),
                       (mean + 4 * sigma - 1, True), (mean + 4 * sigma + 1, False)):
        run = evidence(*[{}] * round(seen))
        assert held(verify._compare_arrivals(run)) == [good], seen


@pytest.mark.parametrize(("sent_bytes", "good"), [(5_000_500, True), (5_000_501, False)])
def test_a_bottleneck_lets_through_what_it_may_to_a_ten_thousandth(sent_bytes: float,
                                                                   good: bool) -> None:
    (compared,) = verify._compare_utilisation(evidence({}, sent_bytes=sent_bytes))
    assert (compared.passed, compared.observed) == (good, "1.0001")


@pytest.mark.parametrize(("asked_bytes", "flight", "found"), [
    (3 * MSS, 3, [True]), (3 * MSS, 2, [False]), (3 * MSS - 1, 2, [])])
def test_a_response_that_fills_the_first_window_leaves_with_it(asked_bytes: int, flight: int,
                                                              found: list[bool]) -> None:
    run = evidence({"asked_bytes": asked_bytes, "first_flight": flight})
    assert held(verify._compare_first_flight(run)) == found
    for given in ({"paced": True}, {"congestion_control": "bbr"}):
        assert not held(verify._compare_first_flight(replace(run, trial=replace(run.trial, **given))))


@pytest.mark.parametrize(("flights", "found"), [([3, 2], [True]), ([3, 4], [False]), ([], [])])
def test_no_flight_on_the_wire_is_longer_than_the_window(flights: list[int],
                                                         found: list[bool]) -> None:
    run = replace(evidence({}), flights={"10.0.1.1": flights, "10.0.1.9": [99]})
    assert held(verify._compare_flight_on_wire(run)) == found


@pytest.mark.parametrize(("given", "fills"), [
    ({"response_bytes": 3 * MSS}, True), ({"response_bytes": 3 * MSS - 1}, False),
    ({"response_bytes": 1, "sizes": "0:1;1:9"}, True)])
def test_small_responses_have_no_flight_to_be_judged(given: dict[str, Any], fills: bool) -> None:
    (check,) = (each for each in verify.CHECKS if each.name == "first flight")
    record = LoadRecord(replace(TRIAL, **given), True, seen_first_flight="3")
    assert check.applies_to(record) == fills
