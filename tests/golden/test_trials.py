"""Stored trials, judged again: what their packets say does not change."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from model.predict import predict
from model.transfer import Transfer
from runs.results.records import PASS
from tests.golden import stored
from wire.retransmissions import PROBE, RETRANSMISSION_TIMER, SYN_ACK_TIMER, SYN_TIMER

# name: first flight, RTT ms, bandwidth kbit/s, (data, handshake, lost), cause
SEEN = {
    "iw3": (3, 100, 1000, (0, 0, 0), ""),
    "iw10": (7, 100, 1000, (0, 0, 0), ""),  # all of the response's segments
    "wget": (7, 200, 1000, (0, 0, 0), ""),
    "fin_probe": (7, 20, 256, (0, 0, 0), ""),  # a FIN sent again is no data
    "queue_timer": (3, 20, 56, (1, 0, 0), RETRANSMISSION_TIMER),
    "tail_probe": (28, 20, 256, (1, 0, 0), PROBE),
    "syn_timer": (3, 1040, 56, (0, 3, 0), f"{SYN_TIMER}; {SYN_ACK_TIMER}"),
    "long_rtt": (7, 5000, 7000, (0, 4, 0), f"{SYN_TIMER}; {SYN_ACK_TIMER}"),
    "hystart": (16, 70, 5000, (0, 0, 0), ""),
    "persistent": (3, 70, 2000, (0, 0, 0), ""),
    "random_loss": (10, None, None, (2, 0, 2), ""),
    "full_queue": (10, 100, 2000, (9, 0, 9), ""),
    "queue_and_loss": (20, None, None, (13, 0, 13), ""),
    "receive_window": (12, 100, 2000, (0, 0, 0), ""),
    # A small segment and seven, in a network of HTB whose hosts ask for addresses first.
    "as_published": (8, 100, 1000, (0, 0, 0), ""),
    "https": (3, 100, 10000, (0, 0, 0), ""),
    "https_resumed": (1, 100, None, (0, 0, 0), ""),
    "https_records": (4, 100, 10000, (0, 0, 0), ""),
    "mldsa": (9, 100, 10000, (0, 0, 0), ""),
    "nginx": (10, 100, 10000, (0, 0, 0), ""),
    "nginx_http2": (4, 100, 10000, (0, 0, 0), ""),
    "nginx_plain": (10, 100, 10000, (0, 0, 0), ""),
    "nginx_resumed": (1, 100, None, (0, 0, 0), ""),
    "nginx_early": (9, 100, None, (0, 0, 0), ""),
}


QUIC = "quic"  # has no segments: tests/unit/features/tls/test_quic.py
# What judges them, what was lost, and drops of queue and chance to the client, of the uplink's queue.
PATHS = {
    "cake_full": ("path host", "to client: 15 data", (15, 0, 0)),
    "fq_codel_full": ("path host", "to client: 15 data", (15, 0, 0)),
    "jitter_and_bursts": ("path host", "to client: 2 data", (0, 2, 0)),
    "paced": ("path", "to client: 3 data", (3, 0, 0)),
    "uplink_full": ("path host", "to client: 23 data; to server: 8 ACK", (23, 0, 8)),
}


def test_every_stored_trial_is_listed() -> None:
    assert sorted([*SEEN, *PATHS, QUIC]) == stored.NAMES


@pytest.mark.parametrize("name", PATHS)
def test_paths_of_every_kind_are_judged_packet_by_packet(name: str) -> None:
    record = stored.load(name).judge()
    assert (record.verdict, record.verdict_reason) == (PASS, "")
    drops = record.queue_drops, record.random_drops, record.uplink_queue_drops
    assert (record.judged_by, record.lost_packets, drops) == PATHS[name]


@pytest.mark.parametrize("name", SEEN)
def test_a_stored_trial_passes(name: str) -> None:
    flight, rtt_ms, bandwidth_kbps, (data, handshake, lost), cause = SEEN[name]
    trial = stored.load(name)
    record = trial.judge()
    assert (record.ok, record.verdict, record.verdict_reason) == (True, PASS, "")
    assert (record.model_ms is None) == (name == "as_published" or name.startswith("nginx"))
    assert record.counts and record.measured_at.startswith("20")
    assert record.seen_initcwnd == trial.trial.initcwnd
    assert record.seen_first_flight == flight
    assert record.seen_rtt_ms == pytest.approx(rtt_ms or trial.trial.rtt_ms, abs=0.01)
    if name == "nginx_early":  # the response waits for the rest of the request: a gap behind one
        assert record.seen_bandwidth_kbps is None
    elif flight > 1:  # one segment has no spacing
        assert record.seen_bandwidth_kbps == pytest.approx(
            bandwidth_kbps or trial.trial.bandwidth_kbps, rel=0.0005)
    assert (record.retransmissions, record.handshake_retransmissions,
            record.lost_segments) == (data, handshake, lost)
    assert record.retransmission_cause == cause
    assert record.wire_latency_ms == pytest.approx(record.latency_ms, abs=0.01)


@pytest.mark.parametrize("name", ["iw3", "iw10", "wget", "fin_probe", "long_rtt",
                                  "hystart", "persistent", "syn_timer"])
def test_the_model_is_exact_where_nothing_was_sent_again(name: str) -> None:
    record = stored.load(name).judge()
    # The rest is computing time of curl and wget.
    assert record.total_ms == pytest.approx(record.model_ms, abs=0.025)
    assert record.latency_ms == pytest.approx(record.model_latency_ms, abs=0.005)


@pytest.mark.parametrize("name", stored.NAMES)
def test_the_verdict_holds_in_real_time(name: str) -> None:
    assert stored.load(name).judge(exact=False).verdict == PASS


# The first flight's limit, and what queue and chance dropped towards the client.
LIMITS = {"iw3": ("", 0, None), "iw10": ("response size", 0, None), "wget": ("response size", 0, None),
          "persistent": ("", 0, 0), "receive_window": ("receive window", 0, 0),
          "full_queue": ("", 9, None), "random_loss": ("", 0, 2),
          "queue_and_loss": ("", 9, 5)}


@pytest.mark.parametrize("name", LIMITS)
def test_what_limited_the_first_flight_and_what_dropped(name: str) -> None:
    record = stored.load(name).judge()
    assert (record.limited_by, record.queue_drops, record.random_drops) == LIMITS[name]


def measured() -> list[dict[str, float]]:
    path = Path(__file__).resolve().parent / "measured.csv"
    with path.open(newline="") as file:
        return [{name: float(value) for name, value in row.items()} for row
                in csv.DictReader(line for line in file if not line.startswith("#"))]


def test_the_model_against_what_was_measured() -> None:
    """Up to 200 kB, windows of 1 to 42: slow start, HyStart, both windows, both buffers."""
    rows = measured()
    assert rows
    for row in rows:
        seen = {name: row.pop(name) for name in ("total_ms", "latency_ms")}
        whole = {name: int(row.pop(name)) for name in list(row)
                 if name.endswith("bytes") or name in ("initcwnd", "initrwnd", "clock_phase_ns")}
        prediction = predict(Transfer(**row, **whole))  # type: ignore[arg-type]
        late_ms = 2.2 if row["gap_ms"] else 0.04  # of the server's back-end timer; of curl
        for name, value in seen.items():
            assert -0.04 < value - getattr(prediction, name) < late_ms, (name, row, whole)
