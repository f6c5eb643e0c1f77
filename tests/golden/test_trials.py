"""Stored trials pass, trials keep their ids and columns, and the model predicts measured times."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firstflight.model.predict import Transfer, predict
from firstflight.model.transfer import Secure
from firstflight.runs.results.records import PASS, Record, columns_of, trial_class
from firstflight.workloads.fetch.record.record import Record as FetchRecord
from firstflight.workloads.fetch.trial import Trial
from firstflight.workloads.load.record import LoadRecord
from firstflight.workloads.load.traffic import ClientHost, MixPart
from firstflight.workloads.load.trial import LoadTrial
from firstflight.workloads.page.record import PageRecord
from firstflight.workloads.page.objects import PageObject
from firstflight.workloads.page.trial import PageTrial
from firstflight.workloads.trace.record import TraceRecord
from firstflight.workloads.trace.schedule import Request
from firstflight.workloads.trace.trial import TraceTrial
from tests.golden import stored
from tests.transfers import transfer


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("name", stored.NAMES)
def test_a_stored_trial_passes(name: str, exact: bool) -> None:
    """It is judged as measured in virtual time, and as if it had been in real time."""
    record = stored.load(name).judge(exact)
    assert (record.ok, record.verdict, record.verdict_reason) == (True, PASS, "")


def measured() -> list[dict[str, float]]:
    """The rows of measured.csv: what was requested of a transfer, and its times."""
    path = Path(__file__).resolve().parent / "measured.csv"
    with path.open(newline="") as file:
        return [{name: float(value) for name, value in row.items()} for row
                in csv.DictReader(line for line in file if not line.startswith("#"))]


def test_the_model_agrees_with_the_measured_transfers() -> None:
    """They have up to 200 kB and windows of 1 to 42, and meet each limit of a transfer."""
    rows = measured()
    assert rows
    for row in rows:
        seen = {name: row.pop(name) for name in ("total_ms", "latency_ms")}
        whole = {name: int(row.pop(name)) for name in list(row)
                 if name.endswith("bytes") or name in ("initcwnd", "initrwnd", "clock_phase_ns")}
        prediction = predict(transfer(**row, **whole))  # type: ignore[arg-type]
        # The timer of the server's back-end is late by 2.2 ms at most, and curl by 0.04.
        late_ms = 2.2 if row["gap_ms"] else 0.04
        for name, value in seen.items():
            assert -0.04 < value - getattr(prediction, name) < late_ms, (name, row, whole)


# Names --------------------------------------------------------------------------------

FETCH: dict[str, Any] = {
    "scenario": "names", "repeat": 1, "rtt_ms": 50.0, "bandwidth_kbps": 10_000.0,
    "uplink_kbps": 1000.0, "queue_packets": 20, "loss_percent": 0.0, "initcwnd": 10,
    "initrwnd": 30, "congestion_control": "cubic", "client": "curl", "response_bytes": 9000}
# Every parameter with a value that is not its default.
EVERYTHING: dict[str, Any] = {
    "scenario": "names", "repeat": 2, "rtt_ms": 33.5, "bandwidth_kbps": 1500.0,
    "uplink_kbps": 256.0, "queue_packets": 42, "queue_from": "50ms", "loss_percent": 1.5,
    "loss_burst": 3.0, "jitter_ms": 2.0, "seed": 77, "qdisc": "fq_codel",
    "htb_burst_bytes": 15_360, "integer_kbps": 500_000.0, "arp_ms": 1000, "initcwnd": 16,
    "initrwnd": 70, "congestion_control": "reno", "mss": 1000, "loss_probes": "off",
    "receive_rules": "linux3", "acts_as": "10=7,16=8", "send_buffer_bytes": 16_384,
    "client": "curl", "response_bytes": 30_000, "burst_bytes": 500, "gap_ms": 30.5,
    "earlier_bytes": 400, "kept": 2, "idle_ms": 1500.0, "head": "17+38", "nagle": "on",
    "framing": "close", "chain_bytes": 9000, "signature": "ecdsa", "intermediates": 1,
    "tickets": 0, "resumed": 1, "early_data_bytes": 1, "record_bytes": 4096, "buffer_bytes": 0,
    "key_share": "x25519mlkem768", "server": "nginx", "http": "2", "system": "debian13",
    "what_if": "queue_loss"}
LOAD = LoadTrial(
    scenario="names", part="grid", window="3+10",
    mix=(MixPart(3, 0.5), MixPart(10, 0.5)), initcwnd=10,
    clients=(ClientHost(0.5, 100.0, 3), ClientHost(0.5, 100.0, 10, 56.0, 1.0)),
    bandwidth_kbps=10_000.0, rtt_ms=100.0, queue_packets=83, queue_bdp=1.0, qdisc="cake", load=0.5,
    loss_percent=0.0, connections=4, response_bytes=15_000, sizes="fixed", initrwnd=70,
    congestion_control="cubic", access_queue_packets=50, servers=2, duration_s=60.0,
    warmup_s=5.0, cooldown_s=5.0, repeat=3, seed=9)
TRACE = TraceTrial(
    scenario="names", trace="idle", tcp="validated", congestion_control="reno", validation=True,
    rtt_ms=100.0, bandwidth_kbps=10_000.0, uplink_kbps=10_000.0, queue_packets=100, initcwnd=4,
    loss_percent=0.0, initrwnd=125, mss=512, receive_window=0, rto_min_ms=0, quickack=False,
    nagle=False, sample_ms=1.0, outage_from_ms=0.0, outage_to_ms=0.0, think_s=2.5,
    requests=(Request(100), Request(100, 2.5)), may_lose=False)
PAGE = PageTrial(
    scenario="names", part="lossy", page="made", rtt_ms=40.0, bandwidth_kbps=5000.0,
    uplink_kbps=1000.0, queue_packets=42, loss_percent=1.5, http="1.1", connections=6,
    server="nginx", initcwnd=10, initrwnd=70, congestion_control="reno", repeat=3, seed=9,
    objects=(PageObject(9000, is_early=True),
             PageObject(5000, 1, 200, think_ms=7.5, is_early=True),
             PageObject(5000, 1, 8000, parse_ms=3.25, host=1),))

IDS: list[tuple[Any, str]] = [
    (Trial(**FETCH), "rtt50-bw10000-up1000-q20-iw10-rw30-cubic-curl-9000B-1"),
    (Trial(**FETCH, queue_from="auto"),
     "rtt50-bw10000-up1000-q20-auto-iw10-rw30-cubic-curl-9000B-1"),
    (Trial(**EVERYTHING),
     "rtt33.5-bw1500-up256-q42-loss1.5-jitter2-burst3-fq_codel-htb15360-50ms-integer500000-arp1000"
     "-head17+38-nagleon-close-probesoff-linux3-acts10=7,16=8-sndbuf16384-seed77-iw16-rw70-mss1000"
     "-reno-curl-after400B-kept2-idle1500-chain9000-signatureecdsa-intermediates1-tickets0-resumed1"
     "-early1-record4096-buffer0-keyx25519mlkem768-nginx-http2-debian13-30000B-burst500-gap30.5-2"
     "-without-queue_loss"),
    (Trial(**FETCH, part="average", sample=7, key_rtt_ms=100.0, key_bandwidth_kbps=900.0,
           weight=0.5), "average-7-iw10-1"),
    (LOAD, "grid-rtt100-bw10000-q83-cake-load0.5-15000B-x4-cubic-rw70-iw3+10-3"),
    (PAGE, "lossy-made-rtt40-bw5000-up1000-q42-loss1.5-seed9-http1.1-c6-nginx-reno-rw70-iw10-3"),
    (TRACE, "idle-validated-iw4-think2.5-mss512"),
    (replace(TRACE, loss_percent=1.0, loss_burst=3.0, jitter_ms=2.5, qdisc="cake", mss=1448,
             kernel="mine", module_parameter="tcp_cubic.hystart=0", seed=7, repeat=3),
     "idle-validated-iw4-think2.5-loss1-jitter2.5-burst3-cake-kernel-mine-tcp_cubic.hystart=0"
     "-seed7-3")]

COLUMNS: dict[type[Record], str] = {
    FetchRecord: """
        scenario rtt_ms bandwidth_kbps uplink_kbps queue_packets loss_percent initcwnd initrwnd
        congestion_control client response_bytes repeat seed burst_bytes gap_ms earlier_bytes part
        sample key_rtt_ms key_bandwidth_kbps weight jitter_ms loss_burst qdisc queue_from mss kept
        idle_ms htb_burst_bytes integer_kbps arp_ms head nagle framing loss_probes receive_rules
        acts_as send_buffer_bytes chain_bytes signature intermediates tickets resumed
        early_data_bytes record_bytes buffer_bytes key_share server http system own_server what_if
        ok error connect_ms first_byte_ms total_ms latency_ms wire_latency_ms header_bytes
        request_header_bytes seen_initcwnd seen_first_flight limited_by seen_rtt_ms
        seen_bandwidth_kbps retransmissions handshake_retransmissions lost_segments queue_drops
        random_drops
        uplink_queue_drops lost_packets judged_by retransmission_cause model_ms model_latency_ms
        model_retransmissions goodput_kbps appconnect_ms handshake_round_trips flight_bytes
        flight_writes flight_segments window_after_handshake response_round_trips
        model_appconnect_ms model_first_byte_ms accepted_early_bytes request_round_trips
        request_segments least_offered_segments most_offered_segments receive_window_waits
        response_flights first_burst_segments link_idle_ms
        verdict failed_checks verdict_reason measured_at""",
    LoadRecord: """
        scenario part window clients bandwidth_kbps rtt_ms queue_packets queue_bdp qdisc load
        connections response_bytes sizes initrwnd congestion_control access_queue_packets
        servers duration_s warmup_s cooldown_s repeat seed
        ok error arrivals completed failed unfinished mean_ms mean_transfer_ms p10_ms p25_ms p50_ms
        p75_ms p90_ms p95_ms p99_ms p999_ms retransmission_percent hit_percent hit_mean_ms
        offered_load utilisation drops drop_percent queue_mean_packets queue_max_packets
        repeated_handshakes seen_initcwnd seen_first_flight wire_connections wire_first_flight
        verdict failed_checks verdict_reason measured_at""",
    PageRecord: """
        scenario part page rtt_ms bandwidth_kbps uplink_kbps queue_packets loss_percent http
        connections server initcwnd initrwnd congestion_control repeat seed objects ok error
        judged_by first_byte_ms document_ms first_screen_ms page_ms page_bytes opened_connections
        seen_initcwnd first_flights queued_ms data_segments retransmissions queue_drops random_drops
        longest_queue idle_ms model_objects model_deviation_ms verdict failed_checks verdict_reason
        measured_at""",
    TraceRecord: """
        scenario trace tcp congestion_control validation rtt_ms bandwidth_kbps uplink_kbps
        queue_packets initcwnd mss receive_window rto_min_ms quickack nagle sample_ms
        outage_from_ms outage_to_ms requests writes think_s may_lose sysctls
        ok error judged_by connect_ms latency_ms finish_ms seen_initcwnd seen_rtt_ms data_segments
        retransmissions lost_segments timeouts longest_rtt_ms largest_window restarts
        restart_windows last_window last_retransmissions samples rule_checked rule_unjudged
        rule_wrong link_idle_ms last_round_trips verdict failed_checks verdict_reason
        measured_at"""}


@pytest.mark.parametrize(("trial", "name"), IDS, ids=[name[:40] for _, name in IDS])
def test_a_trial_keeps_its_id(trial: Any, name: str) -> None:
    assert trial.id == name


@pytest.mark.parametrize("kind", COLUMNS, ids=lambda kind: trial_class(kind).__name__)
def test_columns_keep_their_order(kind: type[Record]) -> None:
    """The list has older columns. Newer ones may stand between them."""
    stored = COLUMNS[kind].split()
    assert [column for column in columns_of(kind, what_if=True) if column in stored] == stored


# Transfers ----------------------------------------------------------------------------

FOLDER = Path(__file__).resolve().parent
NOT_REQUESTED = ("total_ms", "latency_ms", "retransmissions")


def measured_transfers() -> list[dict[str, str]]:
    with (FOLDER / "transfers.csv").open(newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def deviation(row: dict[str, Any], requested: Transfer) -> str:
    """How the model deviates in time or retransmissions, in words; "" if it does not."""
    prediction = predict(requested)
    found = (prediction.total_ms, prediction.latency_ms, prediction.retransmissions)
    expected = (float(row["total_ms"]), float(row["latency_ms"]), int(row["retransmissions"]))
    alike = found == pytest.approx(expected, abs=0.03, rel=0)
    return "" if alike else f"{requested}: {found}, measured {expected}"


def test_the_model_predicts_each_measured_transfer() -> None:
    def typed(name: str, text: str) -> Any:
        if name == "congestion_control":
            return text
        return int(text) if text.isdecimal() else float(text)

    deviations = []
    for row in measured_transfers():
        requested = {name: typed(name, text) for name, text in row.items()
                     if name not in NOT_REQUESTED}
        deviations.append(deviation(row, transfer(**requested)))
    assert not list(filter(None, deviations))


def rows_of(name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return rows


def requested_transfer(row: dict[str, Any]) -> Transfer:
    """The transfer that a row of a JSON file describes."""
    def with_tuples(values: dict[str, Any]) -> dict[str, Any]:
        return {name: tuple(value) if isinstance(value, list) else value
                for name, value in values.items()}

    requested = with_tuples(row["asked"])
    if secure := requested.pop("secure", None):
        requested["secure"] = Secure(**with_tuples(secure))
    return transfer(**requested)


def test_each_rule_of_the_model_predicts_its_stored_time() -> None:
    rows = rows_of("rules.json")
    predicted = {row["rule"]: predict(requested_transfer(row)).total_ms for row in rows}
    stored_ms = {row["rule"]: row["total_ms"] for row in rows}
    assert predicted == pytest.approx(stored_ms, abs=0.01, rel=0)


def test_the_model_predicts_each_transfer_measured_under_other_settings() -> None:
    deviations = [deviation(row, requested_transfer(row)) for row in rows_of("settings.json")]
    assert not list(filter(None, deviations))
