"""What packets show of one trial: its first flight, its limit, its latency, the clock's phase."""

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

TICKET, RESPONSE = 255, 500


def evidence(latency_ms: float, qdisc: str = "fifo", tls: bool = True,
             control: str = "cubic") -> Evidence:
    """A ticket at 150 ms; the response waits until 260, and is all acknowledged at 460.

    What is acknowledged at 260 and 300 ms is a part of the ticket, and all of it.
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
    (160.0, {}, True), (159.9, {}, False), (0.0, {}, True),  # heard at 300 ms, or at the very end
    (250.0, {}, False),  # before any of it left
    (160.0, {"tls": False}, False), (200.0, {"tls": False}, True),
    (160.0, {"tls": False, "control": "bbr"}, True),
    (310.0, {}, False), (310.0, {"qdisc": "fq"}, True), (309.9, {"qdisc": "fq"}, True),
    (310.1, {"qdisc": "fq"}, False),
])
def test_a_beginning_is_that_of_the_packets_or_when_the_server_could_hear_of_it(
        latency_ms: float, otherwise: dict[str, str], right: bool) -> None:
    assert passes(evidence(latency_ms, **otherwise)) is right  # type: ignore[arg-type]


def test_the_latency_is_the_packets_where_the_server_heard_late() -> None:
    assert evidence(160.0).latency_ms == 200.0
    assert evidence(160.0, tls=False, control="bbr").latency_ms == 200.0
    assert evidence(160.0, tls=False).latency_ms == 160.0  # nothing delays it: a fault to be shown
    assert evidence(200.02).latency_ms == 200.02
    assert evidence(310.0, qdisc="fq").latency_ms == 310.0


@pytest.mark.parametrize("latency_ms, right", [(190.0, True), (188.1, True), (179.9, False)])
def test_of_two_writes_that_share_an_skb_the_second_one_is_heard_of(latency_ms: float,
                                                                    right: bool) -> None:
    """It was written a pause later, 12 ms here."""
    seen = evidence(latency_ms)
    assert not passes(seen)
    assert passes(replace(seen, trial=replace(seen.trial, gap_ms=12.0))) is right


def test_what_paces_may_have_a_segment_more_under_way_or_fewer() -> None:
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
    # The response begins at 150 ms: a back-end of 110 ms has answered by 260 ms, or two later.
    (110.0, 3, 259.9, 2), (110.0, 3, 260.0, 3), (110.0, 3, 262.0, 3), (110.0, 3, 262.1, 2),
    (0.0, 3, 260.0, 2), (110.0, 2, 260.0, 2)])
def test_a_lone_segment_when_the_back_end_has_answered_is_of_the_first_flight(
        gap_ms: float, initcwnd: int, left_ms: float, flight: int) -> None:
    packets = Conversation().handshake().flight(0, 1)
    packets.send(left_ms, True, ACK, seq=1 + 2 * MSS, ack=96, payload=MSS)
    packets.acknowledge(330, 3)
    trial = replace(stored.load("iw3").trial, gap_ms=gap_ms, initcwnd=initcwnd)
    assert Evidence(trial, {}, {}, packets.read(), EXACT, {}).first_flight == flight


def test_before_an_earlier_response_nothing_is_told_of_the_first_flights_pause() -> None:
    packets = Conversation().handshake()
    trial = replace(stored.load("iw3").trial, gap_ms=110.0)
    assert Evidence(trial, {}, {}, packets.read(), EXACT, {}).first_flight is None


SAID = {"latency_ms": 0.0, "header_bytes": 57, "request_bytes": 95}
GAP_MS, DUE_MS = 150.0, 300.1


def paused(segments: int, initcwnd: int = 9, control: str = "cubic", lost: bool = True,
           **otherwise: float) -> Evidence:
    """Headers of 57 bytes that are lost, and so many segments when the back-end has answered.

    otherwise: ms at which the headers are repeated, a duplicate ACK arrives, or one more leaves.
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
    return Evidence(trial, {}, SAID, packets.read(), EXACT, {})


def compared(evidence: Evidence) -> tuple[bool, str, str]:
    (found,) = verify._compare_first_flight(evidence)
    return found.passed, found.observed, found.requested


@pytest.mark.parametrize("segments, otherwise, holds", [
    (8, {}, True), (7, {}, False), (9, {}, False),  # one flight: the lost segment counts
    (9, {"acknowledged": 250.0, "lost": False}, True),  # two: of the first nothing is lost
    (7, {"again": 290.0}, True), (8, {"again": 290.0}, True), (9, {"again": 290.0}, False),
    (8, {"more": 330.0}, True),  # of a timer: neither write was then
    (7, {"control": "bbr"}, True), (9, {"control": "bbr"}, True), (10, {"control": "bbr"}, False),
])
def test_a_write_whose_acknowledgement_is_lost_is_of_one_flight_with_the_next(
        segments: int, otherwise: dict[str, float], holds: bool) -> None:
    assert compared(paused(segments, **otherwise))[0] is holds  # type: ignore[arg-type]


def test_the_first_of_two_flights_is_the_headers_alone() -> None:
    evidence = paused(9, acknowledged=250.0, lost=False)
    evidence = replace(evidence, trial=replace(evidence.trial, jitter_ms=1.0))
    assert compared(evidence) == (True, "1 segments", "1")
    assert compared(paused(12)) == (False, "13 segments", "9")
    assert compared(paused(12, again=200.0)) == (False, "13 segments", "1 to 9")


@pytest.mark.parametrize("later_ms, holds", [(0.0, True), (0.059, False)])
def test_the_rtt_of_the_handshake_decides_how_much_waits(later_ms: float, holds: bool) -> None:
    """tcp_tso_autosize: batches of ten after 4.148 ms, where fq_codel let the SYN-ACK through.

    It waited 59 µs for the link of an idle path: then batches of nine leave, and three wait.
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
    said = {"latency_ms": 0.0, "header_bytes": 61, "request_bytes": 121}
    assert compared(Evidence(trial, {}, said, packets.read(), EXACT, {}))[0] is holds


def test_a_lone_segment_behind_the_first_acknowledgement_is_of_no_first_flight() -> None:
    packets = Conversation().handshake().flight(0)
    packets.acknowledge(200, 1)
    packets.send(420, True, ACK, seq=1 + MSS, ack=96, payload=MSS)
    packets.acknowledge(520, 2)
    trial = replace(stored.load("iw3").trial, gap_ms=270.0)
    assert Evidence(trial, {}, {}, packets.read(), EXACT, {}).first_flight == 1


# The model is asked again with the phase of the kernel's clock, where a timer's tick decides ---

PHASE_NS = 600_000


def shifted(**fetch: Any) -> Evidence:
    """A handshake by timers, as if its client had begun so far into a millisecond."""
    trial = stored.load("syn_timer")
    said = copy.deepcopy(trial.observation)
    wire = read_exchange(trial.client, trial.server, said["server"]["client_port"])
    start_ns = wire.at_client[0].time_ns
    stamped = tuple(each if each.to_client else each._replace(
        stamp=1000 + (PHASE_NS + each.time_ns - start_ns) // MS) for each in wire.at_client)
    return Evidence(trial.trial, {**said["fetch"], **fetch}, said["server"],
                    replace(wire, at_client=stamped), EXACT, {})


def predicted() -> tuple[Prediction, Prediction]:
    """Where trials usually begin, and at the nearest of the phases that the packets tell."""
    seen = shifted()
    phases_ns = clock_phases_ns(seen.wire)
    assert phases_ns is not None and phases_ns[0] <= PHASE_NS <= phases_ns[1]
    return predict(seen.transfer), predict(replace(seen.transfer, clock_phase_ns=phases_ns[1]))


def test_a_tick_makes_a_difference_that_a_verdict_would_see() -> None:
    first, again = predicted()
    assert first.total_ms - again.total_ms > 0.1 and first.latency_ms == again.latency_ms


@pytest.mark.parametrize(("off_ms", "is_first"), [(0.0, True), (0.099, True), (0.101, False),
                                                  (-0.099, True), (-0.101, False)])
def test_the_first_prediction_counts_where_its_times_are_within_a_tenth_of_a_ms(
        off_ms: float, is_first: bool) -> None:
    first, again = predicted()
    seen = shifted(total_ms=first.total_ms + off_ms)
    seen = replace(seen, report={**seen.report, "latency_ms": first.latency_ms})
    assert seen.prediction == (first if is_first else again)


@pytest.mark.parametrize("of", ["total_ms", "latency_ms"])
def test_a_transfer_without_a_time_is_predicted_with_its_packets_phase(of: str) -> None:
    first, again = predicted()
    seen = shifted(total_ms=first.total_ms)
    seen = replace(seen, report={**seen.report, "latency_ms": first.latency_ms})
    lacking = (replace(seen, fetch={**seen.fetch, of: None}) if of == "total_ms" else
               replace(seen, report={**seen.report, of: None}))
    assert (seen.prediction, lacking.prediction) == (first, again)


def test_packets_without_time_stamps_show_no_clock_phase() -> None:
    first, _ = predicted()
    seen = shifted(total_ms=1.0)
    blind = replace(seen.wire, at_client=tuple(each._replace(stamp=None)
                                               for each in seen.wire.at_client))
    assert replace(seen, exchange=blind).prediction == first


@pytest.mark.parametrize(("phases_ns", "expected_ns", "nearest_ns"), [
    ((432, 221_407), 989_432, 1_000_432),  # 11 µs before the least, on a circle of a millisecond
    ((432, 221_407), 300_000, 221_407), ((432, 221_407), 1_000, 1_000),
    ((5, 9), 2_000_007, 2_000_007), ((5, 9), 2_000_017, 2_000_009), ((5, 9), 2_999_990, 3_000_005),
    ((700_000, 999_990), 2_002, 999_990), ((500_000, 600_000), 2_002, 600_000)])
def test_the_nearest_phase_is_found_across_the_end_of_a_tick(
        phases_ns: tuple[int, int], expected_ns: int, nearest_ns: int) -> None:
    assert nearest_phase_ns(phases_ns, expected_ns) == nearest_ns


# What limited a first flight ----------------------------------------------------------

Tamper = Callable[[Stored], Stored]


def offering(trial: Stored, window: int) -> Stored:
    """As if all packets of the client had this in their header's window."""
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
    # SYN-ACKs were sent again, after which the kernel began with less than was asked.
    ("repeated handshake", lambda good: stored.load("syn_timer").requested(initcwnd=5)),
    ("send buffer", lambda good: good.requested(initcwnd=5).said("server", initial_window=5)),
    # 3 segments of 1448 bytes, and less than another one
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
def test_the_packets_say_what_limited_the_first_flight(limit: str, tampered: Tamper,
                                                       good: Stored) -> None:
    assert tampered(good).judge().limited_by == limit


@pytest.mark.parametrize("sent", [1, 2, 3])
def test_one_segment_after_a_handshake_that_was_repeated_is_by_right(sent: int,
                                                                     good: Stored) -> None:
    """Any SYN-ACK but the first is a repetition; else the kernel set another window."""
    of_server = stored.read(good.server)
    syn_ack = next(packet for packet in of_server if packet.to_client)
    again = [syn_ack.retransmitted(1000 * number, 65000 + number) for number in range(1, sent)]
    trial = good.captured(*([*stored.read(side), *again] for side in (good.client, good.server)))
    assert trial.requested(initcwnd=5).judge().limited_by == (
        "congestion window" if sent == 1 else "repeated handshake")


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


# What is computed of a trial that nobody has measured is what the guest's kernel was given ---

PLAIN = ("fin_probe", "full_queue", "iw10", "long_rtt", "receive_window")
SECURED = {"https": (3, 0), "https_records": (3, 0), "mldsa": (3, 5)}


@pytest.mark.parametrize("name", PLAIN)
def test_a_plain_transfer_has_the_bytes_that_were_sent(name: str) -> None:
    trial, record = stored.load(name), stored.load(name).judge()
    made = computed(trial.trial, {})
    assert made.request_bytes == record.request_header_bytes
    assert made.response_bytes == (record.header_bytes or 0) + trial.trial.response_bytes
    assert made.secure is None and made.writes == ()


def test_trials_that_lose_or_queue_differently_share_a_prediction() -> None:
    """The model is asked once for them: it computes what happens while nothing is lost."""
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
    # As measured of 20,000 bytes after one response, by client.py.
    kept = computed(replace(stored.load("iw10").trial, response_bytes=20_000, kept=1), {})
    assert (kept.response_bytes, kept.request_bytes, kept.earlier_request_bytes) == (
        20_042, 77, 77)


@pytest.mark.parametrize("name", SECURED)
def test_a_session_has_the_writes_that_its_server_told(name: str,
                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    """Hello, flight, tickets and records, to the byte, by either OpenSSL."""
    trial, record = stored.load(name), stored.load(name).judge()
    told = trial.observation["server"]
    monkeypatch.setattr(ssl, "OPENSSL_VERSION_INFO", (*SECURED[name], 0, 0, 0))
    made = computed(trial.trial, {})
    assert made.secure == transfers.secure_of(told)
    assert made.writes == tuple(told["tls"]["response"])
    assert made.response_bytes == sum(made.writes) == transfers.wire_bytes(told)
    # A record has 22 bytes around its text.
    assert made.request_bytes == (record.request_header_bytes or 0) + 22


# What the model does not follow ----------------------------------------------------------

def as_requested(sysctls: dict[str, str] | None = None, **trial: Any) -> Evidence:
    """A stored trial's, as if something else had been asked."""
    of = stored.load("iw10")
    server = of.observation["server"]
    return Evidence(replace(of.trial, **trial), of.observation["fetch"], server,
                    read_exchange(of.client, of.server, server["client_port"]), EXACT,
                    sysctls or {})


@pytest.mark.parametrize("requested", [
    {"jitter_ms": 1.0}, {"congestion_control": "bbr"}, {"qdisc": "fq"},
    {"htb_burst_bytes": 15360}, {"arp_ms": 940},
    {"head": "17+38"}, {"chain_bytes": 4000, "gap_ms": 5.0}, {"nagle": "on"},
    {"framing": "close"}, {"sysctls": {"net.ipv4.tcp_sack": "0"}},
    {"sysctls": {"net.ipv4.tcp_ecn": "1"}}])
def test_a_transfer_that_the_model_does_not_follow_is_not_judged_by_it(
        requested: dict[str, Any]) -> None:
    """Each alone is enough."""
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


def test_what_was_fetched_before_is_the_models_too() -> None:
    requested = as_requested(kept=3, idle_ms=250.0).transfer
    size = 9000 + stored.load("iw10").observation["server"]["header_bytes"]
    assert (requested.earlier_count, requested.earlier_bytes, requested.idle_ms) == (3, size, 250.0)
    once = as_requested(earlier_bytes=500).transfer
    assert (once.earlier_count, once.earlier_bytes) == (1, 500 + size - 9000 - 1)
