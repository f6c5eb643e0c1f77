"""Verdicts: what they name, count and allow, and what is not judged.

What is tampered with is refused in test_tamperings.py.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from firstflight.base.comparison import Comparison
from firstflight.model.predict import predict
from firstflight.model.receiver import receive_window
from firstflight.runs.results.records import FAIL, PASS, SKIPPED
from firstflight.setting.server import NEWER
from firstflight.wire.delivery.packet_path import Delivery
from firstflight.wire.exchange import read_exchange
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.verify import path
from firstflight.workloads.fetch.record.evidence import Evidence
from firstflight.workloads.fetch.record.observed import EXACT, REAL_TIME, Observed
from firstflight.workloads.fetch.verify.verify import INTEGRITY, ON_THE_WIRE, judge_fetch
from tests.golden import stored
from tests.golden.stored import Stored
from tests.transfers import transfer
from tests.unit.fetches.tampering import drops, later, without


PLAIN, RESUMED, NEWEST = (stored.load(name) for name in ("iw10", "https_resumed", "mldsa"))


def fails(trial: Stored, *names: str, exact: bool = True) -> Record:
    """Judge; the verdict is fail for these reasons and no other."""
    record = trial.judge(exact)
    named = [reason.partition(":")[0] for reason in record.verdict_reason.split("; ")]
    assert record.verdict == FAIL and set(named) == set(names), record.verdict_reason
    assert not record.counts
    return record


@pytest.mark.parametrize(("htb_burst_bytes", "expected"), [(1600, (9, 5)), (0, (14, 0))])
def test_under_htb_the_packets_show_which_drop_was_the_queues(htb_burst_bytes: int,
                                                              expected: tuple[int, int]) -> None:
    """HTB's netem counts drops of the queue and random losses as one (path.compare_packets)."""
    trial = stored.load("queue_and_loss")
    counted = {"to_client": {"queue": 14, "random": 0}, "to_server": {"queue": 0, "random": 0}}
    to_client = Delivery(sent=60, events=(), queue_drops=[*range(9)], random_drops=[*range(5)])
    to_server = Delivery(sent=40, events=())
    seen = Observed(replace(trial.trial, htb_burst_bytes=htb_burst_bytes), {}, {}, None, EXACT, {},
                    counted, path=(to_client, to_server))
    assert (seen.queue_drops, seen.random_drops) == expected
    assert (replace(seen, path=None).queue_drops, replace(seen, path=None).random_drops) == (14, 0)


def test_a_loss_of_the_connection_before_is_one_that_the_qdiscs_counted() -> None:
    """A resumed session has another connection in the same queues."""
    lossy = stored.load("https_resumed").requested(loss_percent=1.0)
    one_lost = without("client", 2)(lossy)
    packet = stored.nth_data(stored.read(lossy.client), 2)
    client_port = int.from_bytes(packet.frame[36:38], "big")  # the destination in TCP's header
    assert client_port != lossy.observation["fetch"]["port"]
    assert drops(0, 1)(one_lost).judge(exact=False).counts
    fails(drops(0, 0)(one_lost), "lost packets", exact=False)
    fails(drops(0, 1)(lossy), "lost packets", exact=False)
    record = fails(drops(0, 1)(stored.load("https_resumed")), "path")  # both connections are judged
    assert "0 lost to client at random, expected 1" in record.verdict_reason


def evidence_of(trial: Stored) -> Evidence:
    return Evidence(trial.trial, trial.observation["fetch"], trial.observation["server"],
                    read_exchange(trial.client, trial.server), EXACT, {})


def test_a_window_of_one_after_lost_syn_acks_is_right() -> None:
    """RFC 6928 section 2, tcp_init_transfer; but not after repeated ones that did arrive."""
    trial = stored.load("long_rtt")  # three SYN-ACKs too many
    fails(trial.said("server", initial_window=1), "initial window")
    arrived = evidence_of(trial.said("server", initial_window=1))
    assert len(arrived.wire.syn_acks) > 2
    lost = replace(arrived, exchange=replace(arrived.wire,
                                             lost_to_client=arrived.wire.syn_acks[:2]))
    windows = [check for check in ON_THE_WIRE if check.name in ("initial window", "first flight")]
    assert [len(list(check.compare(arrived))) for check in windows] == [1, 1]
    assert [len(list(check.compare(lost))) for check in windows] == [0, 0]


# What a client reports, and by how much it may differ from its capture, in ms: a system call that
# fails takes a microsecond of a guest's clock.
CLIENTS = [(name, time)
           for name in ("iw10", "paced", "jitter_and_bursts", "nginx_plain", "cake_full")
           for time in ("connect_ms", "first_byte_ms", "total_ms")] + [
    (name, time) for name in ("https", "https_resumed", "mldsa")
    for time in ("connect_ms", "appconnect_ms", "first_byte_ms", "total_ms")] + [
    ("persistent", "connect_ms"), ("persistent", "first_byte_ms"), ("persistent", "total_ms"),
    ("nginx_http2", "total_ms"),
    ("nginx_resumed", "connect_ms"), ("nginx_early", "total_ms"), ("wget", "total_ms")]


@pytest.mark.parametrize(("name", "time"), CLIENTS, ids=map("-".join, CLIENTS))
def test_a_clients_times_are_those_of_its_capture(name: str, time: str) -> None:
    """Also where no model says what they have to be."""
    trial = stored.load(name)
    assert trial.judge().counts
    for by_ms in (5.0, -0.05, max(0.2 * trial.observation["fetch"][time], 1.0)):
        assert "client times" in later("fetch", time,
                                       by_ms)(trial).judge().failed_checks.split("; ")
    late = later("fetch", time, 0.05)(trial).judge()
    assert late.counts == (name == "wget"), "wget's process has to start and to end"


def test_a_kernel_that_the_model_does_not_know_is_judged_by_its_packets_alone(good: Stored) -> None:
    def judged(trial: Stored) -> Record:
        return judge_fetch(trial.trial, trial.observation, trial.client, trial.server, exact=True,
                     sysctls={}, known_kernel=False)
    other = judged(good.requested(congestion_control="reno", initcwnd=3))
    assert (other.verdict, other.judged_by) == (PASS, "path") and other.model_ms is not None
    slow = judged(later("fetch", "total_ms", 50)(good))
    assert slow.failed_checks == "client times"
    assert judged(good.requested(rtt_ms=100.004)).verdict == FAIL


@pytest.mark.parametrize(("segments", "first_flight"), [(0, None), (1, 1)])
def test_fewer_than_two_segments_show_no_bandwidth(segments: int,
                                                   first_flight: int | None) -> None:
    """What cannot be seen is left out, not failed."""
    full = stored.load("iw10").requested(bandwidth_kbps=1000.0)
    captures = []
    for packets in (stored.read(full.client), stored.read(full.server)):
        data = [packet for packet in packets if packet.to_client and packet.payload_bytes]
        left_out = data[segments:]
        captures.append([packet for packet in packets if packet not in left_out])
    record = full.captured(*captures).judge()
    assert record.seen_bandwidth_kbps is None and record.seen_first_flight == first_flight
    assert "bandwidth" not in record.verdict_reason
    assert ("first flight" in record.verdict_reason) == (first_flight is not None)


# What failed is not judged, and says why ----------------------------------------------

def failed(trial: Stored, **fetch: Any) -> Stored:
    return trial.said("fetch", ok=False, **fetch)


def test_a_failed_transfer_is_not_judged(good: Stored) -> None:
    """curl prints a time for failures too; it must not get into a mean."""
    trial = failed(good, error="curl 28: Operation timed out", exit_status=28, http_status=0)
    record = trial.judge()
    assert (record.ok, record.verdict) == (False, SKIPPED)
    assert record.error == "curl 28: Operation timed out"
    assert record.total_ms is record.connect_ms is record.first_byte_ms is None
    assert record.latency_ms is None and record.model_ms is None
    assert record.seen_rtt_ms == pytest.approx(100, abs=0.01)  # the wire may still tell why


@pytest.mark.parametrize(("observation", "error"), [
    ({"trial": "x"}, ""), ({"trial": "x", "error": "no end of the fetch within 90 s"}, "no end"),
    ({"trial": "x", "fetch": {"ok": False, "error": "curl is not installed"}, "server": {}},
     "curl is not installed"),
    ({**PLAIN.observation, "error": "3 packets still under way"}, "3 packets"),
    ({**PLAIN.observation, "server": {"error": "ConnectionResetError: reset"}},
     "ConnectionResetError")])
def test_a_failure_at_either_end_is_an_error_and_not_judged(observation: dict[str, Any],
                                                            error: str) -> None:
    """Also where the fetch itself was good."""
    record = replace(PLAIN, observation=observation).judge()
    assert not record.ok and record.error and error in record.error
    assert record.verdict == SKIPPED


# To the last step: the path, integrity, TLS, what came before -------------------------


def evidence(of: Stored, **trial: Any) -> Evidence:
    """What both ends said of a stored trial; trial: as if something else had been asked."""
    seen = copy.deepcopy(of.observation)
    return Evidence(replace(of.trial, **trial), seen["fetch"], seen["server"], None, EXACT, {},
                    {"to_client": {"queue": 2, "random": 1},
                     "to_server": {"queue": 0, "random": 0}})


def agrees(compared: Iterable[Comparison]) -> bool | None:
    """Whether all agree; None where nothing was compared."""
    found = list(compared)
    return all(each.passed for each in found) if found else None


@pytest.mark.parametrize(("asked_ms", "seen_ms", "jitter_ms", "is_near"), [
    (10, 10.049, 0, True), (10, 10.051, 0, False), (10, 9.949, 0, False),
    (200, 200.199, 0, True), (200, 200.201, 0, False),
    (10, 14.049, 1, True), (10, 14.051, 1, False), (10, None, 0, None)])
def test_an_rtt_is_near_within_50_us_or_a_thousandth_and_four_sigmas(
        asked_ms: float, seen_ms: float | None, jitter_ms: float, is_near: bool | None) -> None:
    seen = evidence(PLAIN, rtt_ms=asked_ms, jitter_ms=jitter_ms)
    assert agrees(path.compare_rtt(seen, seen_ms)) is is_near


@pytest.mark.parametrize(("kbps", "took_ms", "is_near"), [
    (1000.9, 100, True), (1001.1, 100, False), (998.9, 100, False),  # a thousandth
    (1004.9, 1, True), (1005.1, 1, False), (1051, 0.1, False)])  # 5 µs of a short flight
def test_a_bandwidth_is_near_within_a_thousandth_or_5_us(kbps: float, took_ms: float,
                                                         is_near: bool) -> None:
    assert agrees(
        path.compare_bandwidth(evidence(PLAIN, bandwidth_kbps=1000), kbps, took_ms)) is is_near


CHECKS: dict[str, Callable[[Evidence], Iterable[Comparison]]] = {
    check.name: check.compare for check in INTEGRITY}


@pytest.mark.parametrize(("name", "said", "is_so"), [
    ("exit status", {}, True), ("exit status", {"exit_status": 18}, False),
    ("exit status", {"exit_status": None}, False),
    ("HTTP status", {}, True), ("HTTP status", {"http_status": None}, True),
    ("HTTP status", {"http_status": 206}, False),
    ("size", {}, True), ("size", {"size": 8999}, False),
    ("digest", {}, True), ("digest", {"sha256": "00"}, False),
    ("HTTP version", {}, None), ("HTTP version", {"http_version": "1.1"}, True),
    ("HTTP version", {"http_version": "2"}, False)])
def test_a_transfer_of_another_size_digest_or_http_version_is_refused(
        name: str, said: dict[str, Any], is_so: bool | None) -> None:
    seen = evidence(PLAIN)
    seen.fetch.update(said)  # type: ignore[attr-defined]
    assert agrees(CHECKS[name](seen)) is is_so


def test_a_body_of_another_size_than_sent_or_requested_is_refused() -> None:
    for requested, sent, is_so in ((9000, 9000, True), (9000, 9001, False), (9001, 9000, False)):
        seen = evidence(PLAIN, response_bytes=requested)
        seen.report["body_bytes"] = sent  # type: ignore[index]
        assert agrees(CHECKS["size"](seen)) is is_so


@pytest.mark.parametrize(("of", "tls", "requested", "is_so"), [
    (NEWEST, {}, {}, True), (RESUMED, {}, {}, True), (PLAIN, None, {}, True),
    (PLAIN, None, {"chain_bytes": 1}, False), (NEWEST, {}, {"chain_bytes": 0}, False),
    (NEWEST, {"version": "TLSv1.2"}, {}, False), (NEWEST, {"group": "X25519"}, {}, False),
    (NEWEST, {"group": ""}, {}, False),
    (NEWEST, {"library": "OpenSSL 3.4.9 1 Jan 2026"}, {}, False),
    (NEWEST, {"library": "OpenSSL 3.5.0"}, {}, True),
    (NEWEST, {"library": "OpenSSL 4.0"}, {}, True),
    (NEWEST, {"library": "LibreSSL 4.9"}, {}, False),
    (NEWEST, {"resumed": True}, {}, False), (RESUMED, {"resumed": False}, {}, False),
    # A chain of 8002 bytes, a signature of 2420, and what is around them, the first 4096 at once.
    (NEWEST, {"flight": [8002]}, {}, False), (NEWEST, {"flight": [4096, 7698]}, {}, False),
    (NEWEST, {"flight": [4096, 7699]}, {}, True), (NEWEST, {"flight": [4096, 7767]}, {}, True),
    (NEWEST, {"flight": [4096, 7768]}, {}, False), (NEWEST, {"flight": [11_830]}, {}, False),
    (NEWEST, {"tickets": [255]}, {}, False), (NEWEST, {"tickets": []}, {"tickets": 0}, True),
    (NEWEST, {"flight": [11_830]}, {"buffer_bytes": 0}, True),
    (NEWEST, {}, {"buffer_bytes": 0}, False), (RESUMED, {"tickets": [255, 255]}, {}, False),
    (RESUMED, {"flight": [9]}, {}, True), (RESUMED, {"flight": [4000]}, {}, False)])
def test_the_check_of_tls_compares_the_report_with_the_request(
        of: Stored, tls: dict[str, Any] | None, requested: dict[str, Any], is_so: bool) -> None:
    seen = evidence(of, **requested)
    if tls is not None:
        seen.report["tls"].update(tls)
    assert NEWEST.trial.system == NEWER and agrees(CHECKS["TLS"](seen)) is is_so


def test_a_server_that_reports_nothing_is_not_judged_by_its_tls() -> None:
    seen = evidence(NEWEST)
    del seen.report["latency_ms"]  # type: ignore[attr-defined]
    assert not seen.has_report
    assert agrees(CHECKS["TLS"](seen)) is None


def test_the_model_judges_times_in_virtual_time_only() -> None:
    assert EXACT.model_ms is not None and REAL_TIME.model_ms is None


def test_wget_counts_what_was_fetched_before() -> None:
    """It tells no times of its own: its total is its process's."""
    kept = predict(transfer(rtt_ms=100, bandwidth_kbps=10_000, uplink_kbps=10_000, initcwnd=10,
                            initrwnd=64, response_bytes=5000, request_bytes=90,
                            earlier_bytes=9000, earlier_request_bytes=90))
    assert kept.started_ms > 150  # a handshake, and a response before
    assert evidence(PLAIN)._total_ms(kept) == kept.total_ms
    assert evidence(PLAIN, client="wget")._total_ms(kept) == kept.total_ms + kept.started_ms


@pytest.mark.parametrize(("trial", "bodies", "requests"), [
    ({"kept": 2}, 9000 + 60, 95), ({"earlier_bytes": 90_000}, 90_000 + 60 + 1, 95 + 1),
    ({"earlier_bytes": 90}, 90 + 60 - 2, 95 - 2), ({}, 0, 0),
    ({"earlier_bytes": 9001, "gap_ms": 80.0, "burst_bytes": 1448}, 9001 + 60,
     95 - len("?burst=1448&gap_ms=80"))])
def test_earlier_responses_and_requests_have_the_heads_of_their_own_sizes(
        trial: dict[str, Any], bodies: int, requests: int) -> None:
    """A response of 9000 bytes behind a head of 60, asked for with 95."""
    requested = evidence(PLAIN, **trial).transfer
    assert (requested.earlier_bytes, requested.earlier_request_bytes) == (bodies, requests)


@pytest.mark.parametrize(("beyond", "segments"), [(0, 6), (-1, 5), (1, 5)])
def test_a_partial_segment_that_fills_the_receive_window_to_the_byte_is_expected(
        beyond: int, segments: int) -> None:
    """A first flight of 17 bytes, four full segments, and one cut to end at the window's end.

    beyond: by how many bytes that one ends beyond the window. segments: how many are expected.
    """
    trial = stored.load("as_published")
    wire = read_exchange(trial.client, trial.server,
                         trial.observation["server"]["client_port"])
    room = receive_window(4)
    *whole, last = wire.first_flight[:6]
    cut = last._replace(payload_bytes=1 + room + beyond - last.seq)
    seen = replace(evidence(trial, initrwnd=4),
                   exchange=replace(wire, first_flight=(*whole, cut)))
    assert seen.expected_first_flight == (segments, segments)
    assert replace(seen, trial=replace(seen.trial, initcwnd=3)).expected_first_flight == (3, 3)
