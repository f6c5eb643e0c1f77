"""What packets show of one trial: first flight, its limit, latency, phase of the client's clock."""

from __future__ import annotations

import copy
import ssl
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from firstflight.model.predict import Prediction, predict
from firstflight.net.headers import ACK, PUSH, SYN
from firstflight.net.segments import MS
from firstflight.wire.exchange import clock_phases_ns, nearest_phase_ns, read_exchange
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.verify import verify
from firstflight.workloads.fetch.record import transfers
from firstflight.workloads.fetch.record.evidence import Evidence
from firstflight.workloads.fetch.record.observed import EXACT
from firstflight.workloads.fetch.record.transfers import computed
from tests.golden import stored
from tests.golden.stored import Packet, Stored
from tests.unit.tcp.conversation import MSS, Conversation

TICKET, RESPONSE = 255, 500  # bytes of payload


def evidence(latency_ms: float, qdisc: str = "fifo", tls: bool = True,
             control: str = "cubic") -> Evidence:
    """A trial whose server sends a ticket at 150 ms, and the response at 260 ms.

    The server hears of a part of the ticket at 260 ms, of all of it at 300 ms, and of all of the
    response at 460 ms. Packets thus show a latency of 200 ms, from 260 to 460 ms.
    latency_ms: what the server reports.
    """
    packets = Conversation().handshake()
    packets.send(150, True, ACK, seq=1, ack=96, payload=TICKET)
    packets.send(210, False, ACK, seq=96, ack=100)
    packets.send(260, True, ACK, seq=1 + TICKET, ack=96, payload=RESPONSE)
    packets.send(250, False, ACK, seq=96, ack=1 + TICKET)
    packets.send(410, False, ACK, seq=96, ack=1 + TICKET + RESPONSE)
    trial = replace(stored.load("iw3").trial, qdisc=qdisc, congestion_control=control)
    said: dict[str, Any] = {"latency_ms": latency_ms,
                            **({"tls": {"tickets": [TICKET]}} if tls else {})}
    return Evidence(trial, {}, said, packets.read(response_bytes=RESPONSE), EXACT, {})


def passes(seen: Evidence) -> bool:
    (compared,) = verify._compare_server_latency(seen)
    return compared.passed


@pytest.mark.parametrize("latency_ms, otherwise, right", [
    (200.0, {}, True), (200.04, {}, True), (200.06, {}, False), (199.94, {}, False),
    (160.0, {}, True), (159.9, {}, False),  # heard of at 300 ms
    (0.0, {}, True),  # heard of at 460 ms, with the end of the response
    (250.0, {}, False),  # before the response left
    (160.0, {"tls": False}, False), (200.0, {"tls": False}, True),  # nothing left before
    (160.0, {"tls": False, "control": "bbr"}, True),
    # fq may hold back what TCP sent when the request arrived, at 150 ms.
    (310.0, {}, False), (310.0, {"qdisc": "fq"}, True), (309.9, {"qdisc": "fq"}, True),
    (310.1, {"qdisc": "fq"}, False),
])
def test_a_reported_latency_passes_when_the_response_left_or_its_server_could_hear_of_that(
        latency_ms: float, otherwise: dict[str, str], right: bool) -> None:
    assert passes(evidence(latency_ms, **otherwise)) is right  # type: ignore[arg-type]


def test_the_latency_is_that_of_the_packets_where_the_server_heard_late() -> None:
    assert evidence(160.0).latency_ms == 200.0
    assert evidence(160.0, tls=False, control="bbr").latency_ms == 200.0
    # Nothing explains why this server heard late, so its wrong latency stays visible.
    assert evidence(160.0, tls=False).latency_ms == 160.0
    assert evidence(200.02).latency_ms == 200.02
    assert evidence(310.0, qdisc="fq").latency_ms == 310.0


@pytest.mark.parametrize("latency_ms, right", [(190.0, True), (188.1, True), (179.9, False)])
def test_a_reported_latency_may_be_that_of_the_second_write_in_a_shared_skb(latency_ms: float,
                                                                            right: bool) -> None:
    """The second write comes a pause of gap_ms after the first one, here 12 ms."""
    seen = evidence(latency_ms)
    assert not passes(seen)
    assert passes(replace(seen, trial=replace(seen.trial, gap_ms=12.0))) is right


def test_a_first_flight_of_a_paced_sender_may_be_one_segment_larger_than_the_window() -> None:
    paced = stored.load("paced")
    assert paced.judge().counts

    def with_window(window: int, bbrs_rate: int) -> Record:
        return paced.requested(initcwnd=window).said(
            "server", initial_window=window, pacing_bytes_per_s=bbrs_rate).judge()

    assert with_window(9, 618_361).counts
    assert (with_window(8, 549_545).verdict_reason
            == "first flight: observed 10 segments, expected 1 to 9")
    assert "initial window" in paced.requested(initcwnd=9).judge().verdict_reason


# A write that a back-end delayed belongs to the first flight; a timer's probe does not ---

@pytest.mark.parametrize("gap_ms, initcwnd, left_ms, flight", [
    # The response begins at 150 ms: a back-end that takes 110 ms answers from 260 to 262 ms.
    (110.0, 3, 259.9, 2), (110.0, 3, 260.0, 3), (110.0, 3, 262.0, 3), (110.0, 3, 262.1, 2),
    (0.0, 3, 260.0, 2),  # no back-end
    (110.0, 2, 260.0, 2)])  # the window is full
def test_a_lone_segment_that_leaves_when_the_back_end_answers_is_of_the_first_flight(
        gap_ms: float, initcwnd: int, left_ms: float, flight: int) -> None:
    packets = Conversation().handshake().flight(0, 1)
    packets.send(left_ms, True, ACK, seq=1 + 2 * MSS, ack=96, payload=MSS)
    packets.acknowledge(330, 3)
    trial = replace(stored.load("iw3").trial, gap_ms=gap_ms, initcwnd=initcwnd)
    assert Evidence(trial, {}, {}, packets.read(), EXACT, {}).first_flight == flight


def test_a_connection_without_a_response_has_no_first_flight() -> None:
    packets = Conversation().handshake()
    trial = replace(stored.load("iw3").trial, gap_ms=110.0)
    assert Evidence(trial, {}, {}, packets.read(), EXACT, {}).first_flight is None


REPORTED = {"latency_ms": 0.0, "header_bytes": 57, "request_bytes": 95}
GAP_MS, DUE_MS = 150.0, 300.1  # the back-end's pause after the headers, and when it has answered


def paused(segments: int, initcwnd: int = 9, control: str = "cubic", lost: bool = True,
           **otherwise: float) -> Evidence:
    """Headers of 57 bytes leave at 150 ms, and full segments when the back-end has answered.

    lost: whether the headers are. otherwise: times in ms of further packets, "again" when the
    headers leave once more, "acknowledged" when the server hears of them, and "more" when one
    segment more leaves.
    """
    packets = Conversation().handshake()
    packets.send(150, True, ACK, seq=1, ack=96, payload=57, lost=lost)
    if "acknowledged" in otherwise:
        packets.send(otherwise["acknowledged"] - 50, False, ACK, seq=96, ack=58)
    if "again" in otherwise:
        packets.send(otherwise["again"], True, ACK, seq=1, ack=96, payload=57, lost=True)
    for number in range(segments):
        packets.send(DUE_MS, True, ACK, seq=58 + number * MSS, ack=96, payload=MSS)
    if "more" in otherwise:
        packets.send(otherwise["more"], True, ACK, seq=58 + segments * MSS, ack=96, payload=MSS)
    trial = replace(stored.load("iw3").trial, gap_ms=GAP_MS, initcwnd=initcwnd, initrwnd=64,
                    response_bytes=30_000, congestion_control=control)
    return Evidence(trial, {}, REPORTED, packets.read(), EXACT, {})


def compared(evidence: Evidence) -> tuple[bool, str, str]:
    """Whether the check of the first flight passes; the observed and the expected segments."""
    (found,) = verify._compare_first_flight(evidence)
    return found.passed, found.observed, found.requested


@pytest.mark.parametrize("segments, otherwise, holds", [
    # The window is 9. In one flight the lost segment of the headers counts as one of the nine.
    (8, {}, True), (7, {}, False), (9, {}, False),
    (9, {"acknowledged": 250.0, "lost": False}, True),  # two flights: the headers arrived
    (7, {"again": 290.0}, True), (8, {"again": 290.0}, True), (9, {"again": 290.0}, False),
    (8, {"more": 330.0}, True),  # a timer sent it: the server wrote nothing at that time
    (7, {"control": "bbr"}, True), (9, {"control": "bbr"}, True), (10, {"control": "bbr"}, False),
])
def test_headers_that_are_not_acknowledged_are_in_one_flight_with_the_next_write(
        segments: int, otherwise: dict[str, float], holds: bool) -> None:
    assert compared(paused(segments, **otherwise))[0] is holds  # type: ignore[arg-type]


def test_headers_that_are_acknowledged_are_a_first_flight_of_their_own() -> None:
    evidence = paused(9, acknowledged=250.0, lost=False)
    evidence = replace(evidence, trial=replace(evidence.trial, jitter_ms=1.0))
    assert compared(evidence) == (True, "1 segments", "1")
    assert compared(paused(12)) == (False, "13 segments", "9")
    assert compared(paused(12, again=200.0)) == (False, "13 segments", "1 to 9")


@pytest.mark.parametrize("later_ms, holds", [(0.0, True), (0.059, False)])
def test_the_rtt_of_the_handshake_decides_how_many_segments_wait(later_ms: float, holds: bool
                                                                 ) -> None:
    """tcp_tso_autosize makes batches of ten segments after a handshake of 4.148 ms.

    Where the SYN-ACK waits 59 µs for the link, batches have nine segments, and three wait.
    """
    packets = Conversation(one_way_ns=round(2.074 * MS)).send(0, False, SYN)
    packets.send(2.107, True, SYN | ACK, ack=1, takes_ms=2.074 + later_ms)
    packets.send(4.181 + later_ms, False, ACK | PUSH, seq=1, ack=1, payload=121)
    for place in range(8):
        packets.send(6.3, True, ACK, seq=1 + place * MSS, ack=122, payload=MSS)
    packets.send(6.301, True, ACK | PUSH, seq=11585, ack=122, payload=109)
    for place in range(10):
        packets.send(9.599, True, ACK, seq=11694 + place * MSS, ack=122, payload=MSS)
    packets.send(8.4, False, ACK, seq=122, ack=1449)
    trial = replace(stored.load("iw3").trial, rtt_ms=4.096, bandwidth_kbps=10062.765,
                    uplink_kbps=10062.765, gap_ms=3.295, initcwnd=21, initrwnd=100,
                    qdisc="fq_codel", burst_bytes=11632, response_bytes=58317)
    reported = {"latency_ms": 0.0, "header_bytes": 61, "request_bytes": 121}
    assert compared(Evidence(trial, {}, reported, packets.read(), EXACT, {}))[0] is holds


def test_a_lone_segment_after_the_first_acknowledgement_is_not_of_the_first_flight() -> None:
    packets = Conversation().handshake().flight(0)
    packets.acknowledge(200, 1)
    packets.send(420, True, ACK, seq=1 + MSS, ack=96, payload=MSS)
    packets.acknowledge(520, 2)
    trial = replace(stored.load("iw3").trial, gap_ms=270.0)
    assert Evidence(trial, {}, {}, packets.read(), EXACT, {}).first_flight == 1


# The model predicts once more with the phase of the kernel's clock, where a timer's tick decides

PHASE_NS = 600_000  # between the last tick of a millisecond and the client's first packet


def in_phase(**fetch: Any) -> Evidence:
    """A trial whose SYN-ACK a timer repeats, and whose time stamps show PHASE_NS.

    fetch: other values in the client's report.
    """
    trial = stored.load("syn_timer")
    reported = copy.deepcopy(trial.observation)
    wire = read_exchange(trial.client, trial.server, reported["server"]["client_port"])
    start_ns = wire.at_client[0].time_ns
    stamped = tuple(segment if segment.to_client else segment._replace(
        stamp=1000 + (PHASE_NS + segment.time_ns - start_ns) // MS) for segment in wire.at_client)
    return Evidence(trial.trial, {**reported["fetch"], **fetch}, reported["server"],
                    replace(wire, at_client=stamped), EXACT, {})


def predicted() -> tuple[Prediction, Prediction]:
    """Predictions with the usual phase, and with the nearest of those that the packets allow."""
    seen = in_phase()
    phases_ns = clock_phases_ns(seen.wire)
    assert phases_ns is not None and phases_ns[0] <= PHASE_NS <= phases_ns[1]
    return predict(seen.transfer), predict(replace(seen.transfer, clock_phase_ns=phases_ns[1]))


def test_the_phase_changes_the_predicted_time_by_more_than_the_tolerance() -> None:
    first, again = predicted()
    assert first.total_ms - again.total_ms > 0.1 and first.latency_ms == again.latency_ms


@pytest.mark.parametrize(("off_ms", "is_first"), [(0.0, True), (0.099, True), (0.101, False),
                                                  (-0.099, True), (-0.101, False)])
def test_the_first_prediction_counts_where_its_times_are_within_a_tenth_of_a_ms(
        off_ms: float, is_first: bool) -> None:
    first, again = predicted()
    seen = in_phase(total_ms=first.total_ms + off_ms)
    seen = replace(seen, report={**seen.report, "latency_ms": first.latency_ms})
    assert seen.prediction == (first if is_first else again)


@pytest.mark.parametrize("missing", ["total_ms", "latency_ms"])
def test_a_transfer_without_a_time_is_predicted_with_its_packets_phase(missing: str) -> None:
    first, again = predicted()
    seen = in_phase(total_ms=first.total_ms)
    seen = replace(seen, report={**seen.report, "latency_ms": first.latency_ms})
    lacking = (replace(seen, fetch={**seen.fetch, missing: None}) if missing == "total_ms" else
               replace(seen, report={**seen.report, missing: None}))
    assert (seen.prediction, lacking.prediction) == (first, again)


def test_packets_without_time_stamps_show_no_clock_phase() -> None:
    first, _ = predicted()
    seen = in_phase(total_ms=1.0)
    unstamped = replace(seen.wire, at_client=tuple(segment._replace(stamp=None)
                                                   for segment in seen.wire.at_client))
    assert replace(seen, exchange=unstamped).prediction == first


@pytest.mark.parametrize(("phases_ns", "expected_ns", "nearest_ns"), [
    # 11 µs before the least phase, and phases repeat every millisecond.
    ((432, 221_407), 989_432, 1_000_432),
    ((432, 221_407), 300_000, 221_407), ((432, 221_407), 1_000, 1_000),
    ((5, 9), 2_000_007, 2_000_007), ((5, 9), 2_000_017, 2_000_009), ((5, 9), 2_999_990, 3_000_005),
    ((700_000, 999_990), 2_002, 999_990), ((500_000, 600_000), 2_002, 600_000)])
def test_the_nearest_phase_is_found_across_the_end_of_a_tick(
        phases_ns: tuple[int, int], expected_ns: int, nearest_ns: int) -> None:
    assert nearest_phase_ns(phases_ns, expected_ns) == nearest_ns


# What limited a first flight ----------------------------------------------------------

Tamper = Callable[[Stored], Stored]


def offering(trial: Stored, window: int) -> Stored:
    """As if the header of each of the client's packets had this window, before scaling."""
    def changed(packet: Packet) -> Packet:
        if packet.to_client:
            return packet
        return replace(packet, frame=packet.frame[:48] + struct.pack(">H", window)
                       + packet.frame[50:])
    return trial.captured(*([changed(packet) for packet in stored.read(side)]
                            for side in (trial.client, trial.server)))


def paced(trial: Stored) -> Stored:
    """As if the second segment had left 2 ms later than the first."""
    sent = stored.read(trial.server)
    late = [stored.nth_data(sent, number) for number in (1, 2)]
    return trial.captured(server=[replace(packet, time_ns=packet.time_ns + 2_000_000)
                                  if packet in late else packet for packet in sent])


@pytest.mark.parametrize(("limit", "tampered"), [
    ("", lambda good: good),
    ("congestion window", lambda good: good.requested(initcwnd=5)),
    # SYN-ACKs were retransmitted, after which the kernel began with less than was requested.
    ("repeated handshake", lambda good: stored.load("syn_timer").requested(initcwnd=5)),
    ("send buffer", lambda good: good.requested(initcwnd=5).said("server", initial_window=5)),
    # Room for 3 segments of 1448 bytes, and for less than another one. Windows count 128 bytes.
    ("receive window", lambda good: offering(
        good.requested(initcwnd=5).said("server", initial_window=5), (4344 + 1447) // 128)),
    ("send buffer", lambda good: offering(
        good.requested(initcwnd=5).said("server", initial_window=5), (4344 + 1448) // 128 + 1)),
    ("pacing", lambda good: paced(good.requested(initcwnd=5).said("server", initial_window=5))),
    ("wait for an acknowledgement", lambda good: paced(
        good.requested(initcwnd=5, gap_ms=50.0,
                       burst_bytes=1000).said("server", initial_window=5))),
    ("response size", lambda good: stored.load("iw10")),
    ("response size", lambda good: stored.load("iw10").requested(initcwnd=12).said(
        "server", initial_window=12)),
    ("first write", lambda good: good.requested(
        initcwnd=5, gap_ms=50.0, burst_bytes=4344 - good.observation["server"]["header_bytes"])
        .said("server", initial_window=5)),
])
def test_the_packets_show_what_limited_the_first_flight(limit: str, tampered: Tamper,
                                                        good: Stored) -> None:
    assert tampered(good).judge().limited_by == limit


@pytest.mark.parametrize("syn_acks", [1, 2, 3])
def test_a_smaller_flight_is_due_to_a_repeated_handshake_only_where_a_syn_ack_was_repeated(
        syn_acks: int, good: Stored) -> None:
    first = next(packet for packet in stored.read(good.server) if packet.to_client)
    repeated = [first.retransmitted(1000 * number, 65000 + number)
                for number in range(1, syn_acks)]
    trial = good.captured(*([*stored.read(side), *repeated]
                            for side in (good.client, good.server)))
    assert trial.requested(initcwnd=5).judge().limited_by == (
        "congestion window" if syn_acks == 1 else "repeated handshake")


def test_a_later_flight_that_waits_for_the_window_is_counted(good: Stored) -> None:
    """A first flight of 3 passes; before the second the client has room for less than 3 more."""
    usual = good.judge()
    assert (usual.least_offered_segments, usual.most_offered_segments) == (27.2, 39.2)
    assert usual.receive_window_waits == 0
    first = stored.load("receive_window").judge()
    assert (first.limited_by, first.receive_window_waits) == ("receive window", 2)
    short = offering(good, (3 * 1448 + 100) // 128).judge()
    assert short.receive_window_waits and not short.limited_by
    assert short.least_offered_segments == short.most_offered_segments == 3.0


# Sizes that are computed before a trial is measured are those that were measured -------------

PLAIN = ("fin_probe", "full_queue", "iw10", "long_rtt", "receive_window")
# Stored trials with TLS, and the version of OpenSSL that measured each.
SECURED = {"https": (3, 0), "https_records": (3, 0), "mldsa": (3, 5)}


@pytest.mark.parametrize("name", PLAIN)
def test_the_computed_sizes_of_a_plain_transfer_are_those_that_were_sent(name: str) -> None:
    trial, record = stored.load(name), stored.load(name).judge()
    made = computed(trial.trial, {})
    assert made.request_bytes == record.request_header_bytes
    assert made.response_bytes == (record.header_bytes or 0) + trial.trial.response_bytes
    assert made.secure is None and made.writes == ()


def test_trials_that_lose_or_queue_differently_share_a_prediction() -> None:
    """The model computes a transfer without loss, so one prediction serves all of these trials."""
    trial = stored.load("iw10").trial
    made = computed(trial, {})
    assert computed(replace(trial, loss_percent=2, seed=7, queue_packets=9), {}) == made
    assert computed(replace(trial, rtt_ms=trial.rtt_ms + 1), {}) != made
    assert computed(replace(trial, bandwidth_kbps=trial.bandwidth_kbps + 1), {}) != made


def test_a_kept_connection_has_shorter_headers_and_the_response_before() -> None:
    trial, record = stored.load("persistent"), stored.load("persistent").judge()
    made = computed(trial.trial, {})
    assert made.response_bytes == (record.header_bytes or 0) + trial.trial.response_bytes
    assert (made.earlier_count, made.earlier_bytes) == (1, 5000 + 41)
    # Sizes as client.py measured them, for 20,000 bytes after one previous response.
    kept = computed(replace(stored.load("iw10").trial, response_bytes=20_000, kept=1), {})
    assert (kept.response_bytes, kept.request_bytes, kept.earlier_request_bytes) == (
        20_042, 77, 77)


@pytest.mark.parametrize("name", SECURED)
def test_the_computed_writes_of_a_tls_session_are_those_that_its_server_reported(
        name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hello, flight, tickets and records have the right sizes, to the byte, with both OpenSSLs."""
    trial, record = stored.load(name), stored.load(name).judge()
    reported = trial.observation["server"]
    monkeypatch.setattr(ssl, "OPENSSL_VERSION_INFO", (*SECURED[name], 0, 0, 0))
    made = computed(trial.trial, {})
    assert made.secure == transfers.secure_of(reported)
    assert made.writes == tuple(reported["tls"]["response"])
    assert made.response_bytes == sum(made.writes) == transfers.wire_bytes(reported)
    # A TLS record adds 22 bytes to its plaintext.
    assert made.request_bytes == (record.request_header_bytes or 0) + 22


# What the model does not follow ----------------------------------------------------------

def as_requested(sysctls: dict[str, str] | None = None, **trial: Any) -> Evidence:
    """The evidence of a stored trial, as if other parameters had been requested."""
    measured = stored.load("iw10")
    server = measured.observation["server"]
    return Evidence(replace(measured.trial, **trial), measured.observation["fetch"], server,
                    read_exchange(measured.client, measured.server, server["client_port"]), EXACT,
                    sysctls or {})


@pytest.mark.parametrize("requested", [
    {"jitter_ms": 1.0}, {"congestion_control": "bbr"}, {"qdisc": "fq"},
    {"htb_burst_bytes": 15360}, {"arp_ms": 940},
    {"head": "17+38"}, {"chain_bytes": 4000, "gap_ms": 5.0}, {"nagle": "on"},
    {"framing": "close"}, {"sysctls": {"net.ipv4.tcp_sack": "0"}},
    {"sysctls": {"net.ipv4.tcp_ecn": "1"}}])
def test_a_transfer_that_the_model_does_not_follow_is_not_judged_by_it(
        requested: dict[str, Any]) -> None:
    """Each of these parameters alone is enough."""
    seen = as_requested(**requested)
    assert not seen.is_modelled and seen.model_ms is None
    assert seen.compare_total() == seen.compare_latency() == [] and not seen.model_retransmissions


@pytest.mark.parametrize("requested, most", [
    ({}, 108_601_447), ({"mss": 100}, 7_500_099), ({"kept": 99}, 1_086_014)])
def test_the_model_follows_a_limited_number_of_segments_of_all_responses(
        requested: dict[str, int], most: int) -> None:
    assert as_requested(**requested, response_bytes=most).is_modelled
    assert not as_requested(**requested, response_bytes=most + 1).is_modelled


@pytest.mark.parametrize("requested", [
    {}, {"congestion_control": "reno"}, {"kept": 1}, {"gap_ms": 5.0},
    {"mss": 536}, {"kept": 5}, {"idle_ms": 5.0, "kept": 2}, {"chain_bytes": 4000},
    {"sysctls": {"net.ipv4.tcp_slow_start_after_idle": "0"}},
    {"sysctls": {"net.ipv4.tcp_recovery": "1"}}])
def test_a_transfer_that_the_model_follows_is_judged_by_it(requested: dict[str, Any]) -> None:
    assert as_requested(**requested).is_modelled
    assert as_requested().model_ms == pytest.approx(as_requested().fetch["total_ms"], abs=0.025)


def test_the_model_has_the_previous_responses_of_a_connection() -> None:
    requested = as_requested(kept=3, idle_ms=250.0).transfer
    size = 9000 + stored.load("iw10").observation["server"]["header_bytes"]
    assert (requested.earlier_count, requested.earlier_bytes, requested.idle_ms) == (3, size, 250.0)
    once = as_requested(earlier_bytes=500).transfer
    assert (once.earlier_count, once.earlier_bytes) == (1, 500 + size - 9000 - 1)
