"""Verdicts: every kind of tampering with a good trial is caught, and named. What failed is not judged, and says why."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firstflight.base.words import to_cell
from firstflight.runs.results import checks
from firstflight.runs.results.records import columns_of, FAIL, PASS, SKIPPED, value_of
from firstflight.study.fetches.verify.evidence import Evidence
from firstflight.study.fetches.verify.observed import EXACT, Observed
from firstflight.study.fetches.verify.record import Record
from firstflight.study.fetches.verify.verify import every_check, judge_fetch, ON_THE_WIRE
from firstflight.wire.delivery.packet_path import Delivery
from firstflight.wire.exchange import read_exchange
from tests.golden import stored
from tests.golden.stored import Stored


def fails(trial: Stored, *names: str, exact: bool = True) -> Record:
    """Judge; the verdict is fail for these reasons and no other."""
    record = trial.judge(exact)
    named = [reason.partition(":")[0] for reason in record.verdict_reason.split("; ")]
    assert record.verdict == FAIL and set(named) == set(names), record.verdict_reason
    assert not record.counts
    return record


def test_a_good_trial_fills_every_column(good: Stored) -> None:
    record = with_drops(good, 0, 0).judge()
    assert record.verdict == PASS
    empty = {column for column in columns_of(Record) if to_cell(value_of(record, column)) == ""}
    empty -= OF_TLS
    assert empty <= {"head", "acts_as", "error", "failed_checks", "verdict_reason",
                     "retransmission_cause", "part",
                     "key_rtt_ms", "key_bandwidth_kbps", "limited_by", "queue_from",
                     "own_server", "accepted_early_bytes", "request_round_trips",
                     "request_segments", "lost_packets", "what_if"}


def with_drops(trial: Stored, queue: int, random: int, to_server: int = 0) -> Stored:
    """As if the qdiscs had counted these packets."""
    return replace(trial, observation={**trial.observation, "drops": {
        "to_client": {"queue": queue, "random": random},
        "to_server": {"queue": to_server, "random": 0}}})


@pytest.mark.parametrize(("counted", "observed", "requested", "in_all"), [
    ((9, 4), "5 lost to client at random", "4", ("14 lost to client", "13")),
    ((10, 5), "9 lost to client by the queue", "10", ("14 lost to client", "15")),
    ((9, 5, 1), "0 lost to server by the queue", "1", ("0 lost to server", "1"))])
def test_what_was_lost_is_what_the_network_dropped(counted: tuple[int, ...], observed: str,
                                                   requested: str, in_all: tuple[str, str]) -> None:
    """Also where random loss and a short queue both take packets."""
    trial = stored.load("queue_and_loss")
    assert with_drops(trial, 9, 5).judge().counts
    for exact, name, expected in ((True, "path", (observed, requested)),
                                  (False, "lost packets", in_all)):
        record = fails(with_drops(trial, *counted), name, exact=exact)
        assert record.verdict_reason == (f"{name}: observed {expected[0]}, expected {expected[1]}"
                                         " as the network dropped")
        assert name in fails(without(trial, 0), name, exact=exact).verdict_reason


def test_drops_are_judged_by_their_cause() -> None:
    """As many in all are not enough: each cause is a column."""
    trial = stored.load("queue_and_loss")
    record = fails(with_drops(trial, 5, 9), "path")
    assert "observed 9 lost to client by the queue, expected 5" in record.verdict_reason
    assert "observed 5 lost to client at random, expected 9" in record.verdict_reason
    full = with_drops(stored.load("full_queue"), 0, 9)
    fails(full, "path")
    fails(full, "lost packets", exact=False)  # nothing is lost at random where nothing may be


@pytest.mark.parametrize(("htb_burst_bytes", "expected"), [(1600, (9, 5)), (0, (14, 0))])
def test_under_htb_the_packets_show_which_drop_was_the_queues(htb_burst_bytes: int,
                                                              expected: tuple[int, int]) -> None:
    """Its netem counts both as one (path.compare_packets)."""
    trial = stored.load("queue_and_loss")
    drops = {"to_client": {"queue": 14, "random": 0}, "to_server": {"queue": 0, "random": 0}}
    path = Delivery(60, (), list(range(9)), list(range(5))), Delivery(40, ())
    seen = Observed(replace(trial.trial, htb_burst_bytes=htb_burst_bytes), {}, {}, None, EXACT, {},
                    drops, path=path)
    assert (seen.queue_drops, seen.random_drops) == expected
    assert (replace(seen, path=None).queue_drops, replace(seen, path=None).random_drops) == (14, 0)


def test_a_loss_that_no_qdisc_counted_is_told_although_the_queue_may_overflow() -> None:
    trial = with_drops(stored.load("full_queue"), 9, 0)
    assert trial.judge().counts
    fails(without(trial, 0), "path")
    fails(without(trial, 0), "lost packets", exact=False)


def test_a_loss_of_the_connection_before_is_one_that_the_qdiscs_counted() -> None:
    """A resumed session has another connection in the same queues."""
    lossy = stored.load("https_resumed").requested(loss_percent=1.0)
    one_lost = without(lossy, 2)
    packet = stored.nth_data(stored.read(lossy.client), 2)
    assert int.from_bytes(packet.frame[36:38], "big") != lossy.observation["fetch"]["port"]
    assert with_drops(one_lost, 0, 1).judge(exact=False).counts
    fails(with_drops(one_lost, 0, 0), "lost packets", exact=False)
    fails(with_drops(lossy, 0, 1), "lost packets", exact=False)
    record = fails(with_drops(stored.load("https_resumed"), 0, 1), "path")
    assert "0 lost to client at random, expected 1" in record.verdict_reason, "both connections are judged"


@pytest.mark.parametrize("sysctls", [{"net.ipv4.tcp_rmem": "4096 16384 16384"},
                                     {"net.ipv4.tcp_wmem": "4096 4608 4608"}])
def test_the_model_is_told_a_scenarios_buffers(sysctls: dict[str, str]) -> None:
    trial = stored.load("receive_window")
    record = judge_fetch(trial.trial, trial.observation, trial.client, trial.server, exact=True,
                   sysctls=sysctls)
    assert "first flight: observed 12 segments" in record.verdict_reason


def without(trial: Stored, number: int) -> Stored:
    """As if a segment of data had not reached the client."""
    packets = stored.read(trial.client)
    packets.remove(stored.nth_data(packets, number))
    return trial.captured(client=packets)


def later(trial: Stored, part: str, name: str, by_ms: float) -> Stored:
    return trial.said(part, **{name: trial.observation[part][name] + by_ms})


# Columns that plain HTTP has nothing for.
OF_TLS = {"appconnect_ms", "handshake_round_trips", "flight_bytes", "flight_writes",
          "flight_segments", "window_after_handshake", "model_appconnect_ms"}
# The trials that show what a good one, plain HTTP, does not.
OTHER_GOOD = {"TLS": "https", "TLS flight": "https", "model handshake": "https"}
# Every line of the table, with a trial that it refuses.
REFUSED: dict[str, Callable[[Stored], Stored]] = {
    "exit status": lambda good: good.said("fetch", exit_status=18),
    "HTTP status": lambda good: good.said("fetch", http_status=404),
    "size": lambda good: good.said("fetch", size=8999),
    "digest": lambda good: good.said("server", sha256="0" * 64),
    "capture": lambda good: replace(good, server=good.server[:-20]),
    "initial window": lambda good: good.said("server", initial_window=10),
    "first flight": lambda good: good.requested(initrwnd=2),
    "path": lambda good: good.requested(rtt_ms=100.004),
    "causes": lambda good: all_later(good, 4, 300_000),
    "RTT": lambda good: good.requested(rtt_ms=110.0),
    "bandwidth": lambda good: good.requested(bandwidth_kbps=1100.0),
    "lost packets": lambda good: without(good, 4),
    "retransmissions": lambda good: stored.sent_again(good, 1, later_ms=30),
    "server latency": lambda good: later(good, "server", "latency_ms", 0.2),
    "TCP options": lambda good: good.requested(mss=1400),
    "segment size": lambda good: good.requested(mss=1447),
    "server's socket": lambda good: good.said("server", congestion_control="reno"),
    "client times": lambda good: later(good, "fetch", "first_byte_ms", 5.0),
    "model": lambda good: later(good, "fetch", "total_ms", 1.1),
    "model latency": lambda good: later(good, "server", "latency_ms", 5),
    "TLS": lambda good: good.requested(resumed=1),
    "TLS flight": lambda good: with_flight(good, -100),
    "model handshake": lambda good: later(good, "fetch", "appconnect_ms", 1.1),
}


# What is estimated where packets are not judged one by one.
IN_REAL_TIME = {"RTT", "bandwidth", "lost packets"}


def all_later(trial: Stored, number: int, by_ns: int) -> Stored:
    """As if the server had sent its data from one segment on so much later, and all that follows."""
    begun = stored.nth_data(stored.read(trial.server), number)
    arrived = stored.nth_data(stored.read(trial.client), number)
    copies = [[replace(packet, time_ns=packet.time_ns + by_ns)
               if packet.time_ns >= first.time_ns and (packet.time_ns, packet.frame) >= (
                   first.time_ns, b"") and (packet.to_client or packet.time_ns > first.time_ns)
               else packet for packet in stored.read(capture)]
              for capture, first in ((trial.client, arrived), (trial.server, begun))]
    return trial.captured(*copies)


def with_flight(trial: Stored, more: int) -> Stored:
    """As if the server had told of a longer flight."""
    tls = trial.observation["server"]["tls"]
    return trial.said("server", tls={**tls, "flight": [*tls["flight"][:-1],
                                                       tls["flight"][-1] + more]})


# What is seldom to be judged is seen refused in other files.
ELSEWHERE = {"HTTP version": "test_servers.py", "early data": "test_tls.py",
             "no connection": "test_parameters.py"}
JUDGING = [check for check in every_check() if check.name in REFUSED]


def test_no_check_is_left_out() -> None:
    assert {check.name for check in every_check()} == {*REFUSED, *ELSEWHERE} and len(every_check()) == 26
    for name, file in ELSEWHERE.items():
        assert f'"{name}' in next(Path(__file__).parent.parent.rglob(file)).read_text()


@pytest.mark.parametrize("check", JUDGING, ids=[check.name for check in JUDGING])
def test_every_check_refuses_something(good: Stored, check: checks.Check) -> None:
    good = stored.load(OTHER_GOOD[check.name]) if check.name in OTHER_GOOD else good
    exact = check.name not in IN_REAL_TIME
    passed, refused = good.judge(exact), REFUSED[check.name](good).judge(exact)
    assert passed.counts and check.applies_to(passed)
    assert refused.verdict == FAIL
    assert check.name in checks.failed_checks(every_check(), refused)


def test_the_table_of_checks_counts_what_each_refused(good: Stored) -> None:
    records = [good.judge(), *(tamper(good).judge(name not in IN_REAL_TIME)
                               for name, tamper in REFUSED.items() if name not in OTHER_GOOD)]
    table = checks.table(every_check(), records, exact=True)
    counted = {row[0]: row[2:] for row in table.rows}
    assert {check.name for check in every_check() if not check.seldom} == {*REFUSED} - {*OTHER_GOOD}
    assert {*OTHER_GOOD} <= {check.name for check in every_check()} and len(counted) == 20
    assert counted["exit status"] == (20, 1, 0)  # passed, failed, not judged
    assert counted["capture"] == (16, 1, 4)  # four transfers were no measurement
    assert counted["RTT"] == (2, 1, 18)  # three were judged in real time
    assert counted["model"][1] == 2 and counted["model latency"][1] == 2
    in_real_time = checks.table(every_check(), records[:1], exact=False)
    assert [row[0] for row in in_real_time.rows] == [
        name for name in counted if name not in {"path", "causes", "model", "model latency"}]


@pytest.mark.parametrize(("requested", "names"), [
    ({"initcwnd": 10}, ("initial window", "first flight", "model", "model latency")),
    ({"initcwnd": 4}, ("initial window", "first flight", "model", "model latency")),
    ({"bandwidth_kbps": 1001.0}, ("path",)),
    ({"bandwidth_kbps": 999.0}, ("path",)),
    ({"bandwidth_kbps": 2000.0}, ("path", "model", "model latency")),
    ({"rtt_ms": 100.004}, ("path",)),
    ({"rtt_ms": 99.996}, ("path",)),
    ({"rtt_ms": 101.0}, ("path", "model", "model latency")),
    ({"uplink_kbps": 100.0}, ("path", "model", "model latency")),
    ({"queue_packets": 1}, ("path",)),
    ({"initrwnd": 2}, ("first flight", "TCP options", "model", "model latency")),
])
def test_another_network_than_asked(good: Stored, requested: dict[str, float],
                                    names: tuple[str, ...]) -> None:
    record = fails(good.requested(**requested), *names)
    assert "observed" in record.verdict_reason and "expected" in record.verdict_reason
    assert record.ok  # the transfer itself did succeed


def test_the_reason_says_what_was_seen_and_asked(good: Stored) -> None:
    record = good.requested(bandwidth_kbps=900.0).judge(exact=False)
    assert "bandwidth: observed 1000.00 kbit/s, expected 900 kbit/s" in record.verdict_reason
    record = good.requested(rtt_ms=99.9).judge()
    assert ("path: observed 10 of 10 packets to client differ (packet 2 arrived 50.558 µs too late, "
            in record.verdict_reason), "netem's ticks of 64 ns"


def test_a_lost_segment_is_counted(good: Stored) -> None:
    assert fails(without(good, 4), "lost packets", exact=False).lost_segments == 1
    record = fails(without(good, 4), "path")
    assert record.lost_segments == 1 and record.lost_packets == "to client: 1 data"
    assert "did not arrive though the queue held" in record.verdict_reason


def test_a_lost_acknowledgement(good: Stored) -> None:
    packets = stored.read(good.server)
    packets.remove([packet for packet in packets if not packet.to_client][-3])
    record = fails(good.captured(server=packets), "path")
    assert record.lost_segments == 0 and record.lost_packets == "to server: 1 ACK"


def test_loss_is_allowed_where_it_is_asked_for() -> None:
    lossy = stored.load("random_loss")
    assert lossy.judge().verdict == PASS
    record = fails(lossy.requested(loss_percent=0.0), "path")
    assert record.retransmissions == 2 and record.retransmission_cause == ""


def test_loss_is_allowed_where_the_queue_overflows() -> None:
    full = stored.load("full_queue")
    assert full.judge().verdict == PASS
    assert evidence_of(full).may_lose
    fails(full.requested(queue_packets=1000), "path")
    fails(full.requested(queue_packets=1000), "lost packets", exact=False)


def evidence_of(trial: Stored) -> Evidence:
    return Evidence(trial.trial, trial.observation["fetch"], trial.observation["server"],
                    read_exchange(trial.client, trial.server), EXACT, {})


def test_a_retransmission_that_nothing_explains(good: Stored) -> None:
    record = fails(stored.sent_again(good, 1, later_ms=30), "retransmissions", exact=False)
    assert record.retransmissions == 1 and record.retransmission_cause == ""
    assert "1 without loss or a timer to explain them (1449–2897)" in record.verdict_reason


def test_a_window_of_one_after_lost_syn_acks_is_right() -> None:
    """RFC 6928 section 2, tcp_init_transfer; but not after repeated ones that did arrive."""
    trial = stored.load("long_rtt")  # three SYN-ACKs too many
    fails(trial.said("server", initial_window=1), "initial window")
    arrived = evidence_of(trial.said("server", initial_window=1))
    assert len(arrived.wire.syn_acks) > 2
    lost = replace(arrived, exchange=replace(arrived.wire,
                                             lost_to_client=arrived.wire.syn_acks[:2]))
    windows = ON_THE_WIRE[2:4]
    assert [check.name for check in windows] == ["initial window", "first flight"]
    assert [len(list(check.compare(arrived))) for check in windows] == [1, 1]
    assert [len(list(check.compare(lost))) for check in windows] == [0, 0]


@pytest.mark.parametrize("cut_bytes", [1, 20, 300])
@pytest.mark.parametrize("side", ["client", "server"])
def test_a_cut_capture(good: Stored, side: str, cut_bytes: int) -> None:
    packets = getattr(good, side)[:-cut_bytes]
    record = fails(replace(good, **{side: packets}), "capture")
    assert record.ok and record.total_ms is not None
    assert f"{side} capture has {len(packets)} of" in record.verdict_reason


def test_a_capture_cut_by_the_worker(good: Stored) -> None:
    record = good.captured(client=stored.read(good.client)[:-1])
    cut = replace(record, client=record.client[:-7])
    cut.observation["captures"]["client"]["bytes"] -= 7
    fails(cut, "capture")


def test_a_capture_of_something_else(good: Stored) -> None:
    fails(good.said("server", client_port=1), "capture")


def test_a_latency_that_the_wire_does_not_show(good: Stored) -> None:
    fails(later(good, "server", "latency_ms", 0.2), "server latency")
    fails(later(good, "server", "latency_ms", 5), "server latency", "model latency")


def test_a_response_whose_acknowledgement_was_not_seen(good: Stored) -> None:
    packets = [packet for packet in stored.read(good.server)
               if packet.to_client or packet.time_ns < stored.read(good.server)[-4].time_ns]
    names = {reason.partition(":")[0] for reason
             in good.captured(server=packets).judge().verdict_reason.split("; ")}
    assert "server latency" in names


def test_a_transfer_that_took_longer_than_the_model(good: Stored) -> None:
    fails(later(good, "fetch", "total_ms", 0.9), "client times")
    fails(later(good, "fetch", "total_ms", 1.1), "client times", "model")
    fails(later(good, "fetch", "total_ms", -1.1), "client times", "model")


# What a client reports, and by how much it may differ from its capture, in ms: a system call that
# fails takes a microsecond of a guest's clock.
CLIENTS = [(name, time) for name in ("iw10", "paced", "jitter_and_bursts", "nginx_plain", "cake_full")
           for time in ("connect_ms", "first_byte_ms", "total_ms")] + [
    (name, time) for name in ("https", "https_resumed", "mldsa")
    for time in ("connect_ms", "appconnect_ms", "first_byte_ms", "total_ms")] + [
    ("persistent", "connect_ms"), ("persistent", "first_byte_ms"), ("persistent", "total_ms"), ("nginx_http2", "total_ms"),
    ("nginx_resumed", "connect_ms"), ("nginx_early", "total_ms"), ("wget", "total_ms")]


@pytest.mark.parametrize(("name", "time"), CLIENTS, ids=map("-".join, CLIENTS))
def test_a_clients_times_are_those_of_its_capture(name: str, time: str) -> None:
    """Also where no model says what they have to be."""
    trial = stored.load(name)
    assert trial.judge().counts
    for by_ms in (5.0, -0.05, max(0.2 * trial.observation["fetch"][time], 1.0)):
        assert "client times" in later(trial, "fetch", time, by_ms).judge().failed_checks.split("; ")
    late = later(trial, "fetch", time, 0.05).judge()
    assert late.counts == (name == "wget"), "wget's process has to start and to end"


def test_reports_that_were_swapped_between_trials_are_refused() -> None:
    """The other trial has the same path, size, digest and window: only its times differ."""
    one, other = stored.load("iw10"), stored.load("iw3")
    fetch = {name: other.observation["fetch"][name] for name in (
        "connect_ms", "first_byte_ms", "total_ms")}
    record = one.said("fetch", **fetch).requested(qdisc="fq").judge()
    assert record.failed_checks == "client times"


def test_the_model_is_not_asked_about_what_it_does_not_know(good: Stored) -> None:
    assert later(good, "fetch", "total_ms", 4).judge(exact=False).verdict == PASS  # real time
    fails(later(good, "fetch", "total_ms", 50), "client times", exact=False)
    other = later(good, "fetch", "total_ms", 50).requested(congestion_control="bbr").judge()
    assert other.failed_checks == "client times" and other.model_ms is None


def test_a_kernel_that_the_model_does_not_know_is_judged_by_its_packets_alone(good: Stored) -> None:
    def judged(trial: Stored) -> Record:
        return judge_fetch(trial.trial, trial.observation, trial.client, trial.server, exact=True,
                     sysctls={}, known_kernel=False)
    other = judged(good.requested(congestion_control="reno", initcwnd=3))
    assert (other.verdict, other.judged_by) == (PASS, "path host") and other.model_ms is not None
    slow = judged(later(good, "fetch", "total_ms", 50))
    assert slow.failed_checks == "client times"
    assert judged(good.requested(rtt_ms=100.004)).verdict == FAIL


def test_the_model_is_asked_about_what_timers_send_again() -> None:
    repeated = stored.load("queue_timer")
    record = repeated.judge()
    assert record.retransmissions == record.model_retransmissions == 1
    assert record.total_ms == pytest.approx(record.model_ms, abs=0.01)
    fails(later(repeated, "fetch", "total_ms", 2), "client times", "model")


def test_the_model_knows_what_a_repeated_handshake_delays() -> None:
    repeated = stored.load("syn_timer")
    record = repeated.judge()
    assert record.verdict == PASS and record.handshake_retransmissions
    assert record.total_ms == pytest.approx(record.model_ms, abs=0.02)
    fails(later(repeated, "fetch", "total_ms", 5), "client times", "model")


@pytest.mark.parametrize(("requested", "names"), [
    ({"rtt_ms": 103.0}, ()),
    ({"rtt_ms": 110.0}, ("RTT",)),
    ({"bandwidth_kbps": 1030.0}, ()),
    ({"bandwidth_kbps": 1100.0}, ("bandwidth",)),
    ({"initcwnd": 4}, ("initial window", "first flight")),
])
def test_real_time_is_judged_less_narrowly(good: Stored, requested: dict[str, float],
                                           names: tuple[str, ...]) -> None:
    if names:
        fails(good.requested(**requested), *names, exact=False)
    else:
        assert good.requested(**requested).judge(exact=False).verdict == PASS


def test_one_segment_shows_no_bandwidth(good: Stored) -> None:
    """What cannot be seen is left out, not failed."""
    one = stored.load("iw10").requested(bandwidth_kbps=1000.0)
    packets = [[packet for packet in stored.read(side)
                if not (packet.to_client and packet.payload_bytes) or packet is first]
               for side, first in ((one.client, None), (one.server, None))]
    record = one.captured(*packets).judge()
    assert record.seen_bandwidth_kbps is None and record.seen_first_flight is None
    assert "bandwidth" not in record.verdict_reason
    assert "first flight" not in record.verdict_reason


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


@pytest.mark.parametrize("observation", [
    {"trial": "x", "error": "no end of the fetch within 90 s"},
    {"trial": "x"},
    {"trial": "x", "fetch": {"ok": False, "error": "curl is not installed"}, "server": {}},
])
def test_a_trial_without_packets(good: Stored, observation: dict[str, Any]) -> None:
    record = replace(good, observation=observation, client=b"", server=b"").judge()
    assert not record.ok and record.error and record.verdict == SKIPPED


def test_a_worker_error_outweighs_a_good_fetch(good: Stored) -> None:
    observation = copy.deepcopy(good.observation)
    observation["error"] = "3 packets still under way 300 s after the transfer"
    record = replace(good, observation=observation).judge()
    assert not record.ok and record.error.startswith("3 packets")


def test_a_server_that_said_nothing(good: Stored) -> None:
    observation = {**good.observation, "server": {"error": "ConnectionResetError: reset"}}
    record = replace(good, observation=observation).judge()
    assert not record.ok and "ConnectionResetError" in record.error
