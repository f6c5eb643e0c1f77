"""The columns of a load run, of connections and samples made by hand, or of none at all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy
import pytest

from firstflight.study.load.record import (COLUMNS, ENDS, QUEUE_COLUMNS, Bottleneck, Connections,
                                           LoadEvidence, record_of)
from firstflight.study.load.trial import wire_bytes
from tests.golden import stored_load

# Counts from 10 s to 50 s.
TRIAL = replace(stored_load.trial(), bandwidth_kbps=1000.0, duration_s=60.0, warmup_s=10.0,
                cooldown_s=10.0)
ONE: dict[str, Any] = {
    "host": 0, "arrival_s": 20.0, "connect_ms": 60.0, "total_ms": 300.0, "asked_bytes": 5000,
    "got_bytes": 5000, "end": "ok", "initial_window": 3, "first_flight": 3, "sent_bytes": 5042,
    "retransmitted_bytes": 0, "min_rtt_ms": 60.0}


def connections(*rows: dict[str, Any]) -> Connections:
    """ONE with these differences each."""
    return Connections(*(numpy.array([
        ENDS.index({**ONE, **row}[name]) if name == "end" else {**ONE, **row}[name]
        for row in rows], dtype=float) for name in COLUMNS[:-1]))


def bottleneck(*rows: tuple[float, ...]) -> Bottleneck:
    return Bottleneck(*numpy.array(rows, dtype=float).reshape(len(rows), len(QUEUE_COLUMNS)).T)


def columns(everything: Connections, samples: Bottleneck,
            flights: dict[str, list[int]] | None = None) -> dict[str, Any]:
    return vars(record_of(LoadEvidence(TRIAL, everything, samples, flights or {}, ())))


def told(found: dict[str, Any], *names: str) -> list[Any]:
    return [found[name] for name in names]


def test_connections_count_from_the_end_of_the_warmup_until_the_cooldown() -> None:
    found = columns(connections(*({"arrival_s": at_s} for at_s in (
        9.999, 10.0, 49.999, 50.0))), bottleneck())
    assert told(found, "arrivals", "completed", "failed", "unfinished") == [2, 2, 0, 0]
    assert found["offered_load"] == pytest.approx(2 * wire_bytes(5000) / (125_000 * 40))


def test_what_did_not_complete_is_the_slowest_and_in_no_mean() -> None:
    found = columns(connections(
        {"total_ms": 200.0}, {"total_ms": 400.0, "connect_ms": 100.0, "retransmitted_bytes": 42},
        {"end": "failed", "total_ms": numpy.nan, "retransmitted_bytes": 1000},
        {"end": "open", "total_ms": numpy.nan, "retransmitted_bytes": numpy.nan,
         "sent_bytes": numpy.nan}), bottleneck())
    assert told(found, "arrivals", "completed", "failed", "unfinished") == [4, 2, 1, 1]
    assert told(found, "mean_ms", "mean_transfer_ms") == [300, (140 + 300) / 2]
    assert told(found, "p10_ms", "p25_ms", "p50_ms", "p75_ms", "p999_ms") == [
        200, 200, 400, None, None]
    assert told(found, "hit_percent", "hit_mean_ms") == [50, 400]
    assert found["retransmission_percent"] == pytest.approx(1042 / (3 * 5042 - 1042) * 100)


def test_where_nothing_arrived_there_is_no_number_but_counts_of_none() -> None:
    found = columns(connections(), bottleneck())
    assert told(found, "arrivals", "completed", "failed", "unfinished", "repeated_handshakes",
                "wire_connections", "offered_load", "retransmission_percent") == [0] * 8
    assert told(found, "mean_ms", "mean_transfer_ms", "p10_ms", "p999_ms", "hit_percent",
                "hit_mean_ms") == [None] * 6
    assert told(found, "seen_initcwnd", "seen_first_flight", "wire_first_flight") == [""] * 3


@pytest.mark.parametrize("samples", [0, 1])
def test_one_sample_of_the_bottleneck_tells_nothing(samples: int) -> None:
    found = columns(connections({}), bottleneck(*[(10.0, 1e6, 900, 100, 7)] * samples))
    assert told(found, "utilisation", "drops", "drop_percent", "queue_mean_packets",
                "queue_max_packets") == [None] * 5


def test_counters_are_told_by_what_they_rose_by() -> None:
    found = columns(connections({}), bottleneck(
        (10.0, 1e6, 1000, 50, 7), (30.0, 2e6, 1500, 50, 8), (50.0, 3.5e6, 1900, 150, 3)))
    assert told(found, "utilisation", "drops", "drop_percent", "queue_mean_packets",
                "queue_max_packets") == [0.5, 100, 10, 6, 8]
    still = columns(connections({}), bottleneck((10.0, 5, 5, 5, 0), (50.0, 5, 5, 5, 0)))
    assert told(still, "utilisation", "drops", "drop_percent", "queue_max_packets") == [0] * 4


def test_a_handshake_of_a_second_was_repeated_and_tells_no_window() -> None:
    found = columns(connections(
        {"connect_ms": 999.9, "initial_window": 10, "first_flight": 9},
        {"connect_ms": 1000.0, "initial_window": 1, "first_flight": 1},
        {"connect_ms": numpy.nan, "initial_window": numpy.nan, "first_flight": numpy.nan},
        {"arrival_s": 1.0}), bottleneck(), {"10.0.1.1": [3, 3], "10.0.1.2": [10]})
    assert told(found, "repeated_handshakes", "seen_initcwnd", "seen_first_flight") == [
        1, "3 10", "3 9"]
    assert told(found, "wire_connections", "wire_first_flight") == [3, "3 10"]


def test_samples_of_the_bottleneck_count_with_both_ends() -> None:
    samples = bottleneck(*((at_s, 0, 0, 0, 0) for at_s in (9.998, 9.9995, 10, 50, 50.0005, 50.002)))
    assert samples.between((10, 50)).time_s.tolist() == [9.9995, 10, 50, 50.0005]
