"""Verdicts: every kind of tampering with a good trial is caught, and named. What failed is not judged, and says why."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from firstflight.runs.results import checks
from firstflight.runs.results.records import FAIL, PASS, SKIPPED
from firstflight.study.fetches.verify.evidence import Evidence
from firstflight.study.fetches.verify.observed import EXACT, Observed
from firstflight.study.fetches.verify.record import Record
from firstflight.study.fetches.verify.verify import ON_THE_WIRE, every_check, judge_fetch
from firstflight.wire.delivery.packet_path import Delivery
from firstflight.wire.exchange import read_exchange
from tests.golden import stored
from tests.golden.stored import Stored
from tests.unit.fetches.tampering import cut, drops, later, without


def fails(trial: Stored, *names: str, exact: bool = True) -> Record:
    """Judge; the verdict is fail for these reasons and no other."""
    record = trial.judge(exact)
    named = [reason.partition(":")[0] for reason in record.verdict_reason.split("; ")]
    assert record.verdict == FAIL and set(named) == set(names), record.verdict_reason
    assert not record.counts
    return record


@pytest.mark.parametrize(("counted", "observed", "requested", "in_all"), [
    ((9, 4), "5 lost to client at random", "4", ("14 lost to client", "13")),
    ((10, 5), "9 lost to client by the queue", "10", ("14 lost to client", "15")),
    ((9, 5, 1), "0 lost to server by the queue", "1", ("0 lost to server", "1"))])
def test_what_was_lost_is_what_the_network_dropped(counted: tuple[int, ...], observed: str,
                                                   requested: str, in_all: tuple[str, str]) -> None:
    """Also where random loss and a short queue both take packets."""
    trial = stored.load("queue_and_loss")
    assert drops(9, 5)(trial).judge().counts
    for exact, name, expected in ((True, "path", (observed, requested)),
                                  (False, "lost packets", in_all)):
        record = fails(drops(*counted)(trial), name, exact=exact)
        assert record.verdict_reason == (f"{name}: observed {expected[0]}, expected {expected[1]}"
                                         " as the network dropped")
        assert name in fails(without("client", 0)(trial), name, exact=exact).verdict_reason


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
    trial = drops(9, 0)(stored.load("full_queue"))
    assert trial.judge().counts
    fails(without("client", 0)(trial), "path")
    fails(without("client", 0)(trial), "lost packets", exact=False)


def test_a_loss_of_the_connection_before_is_one_that_the_qdiscs_counted() -> None:
    """A resumed session has another connection in the same queues."""
    lossy = stored.load("https_resumed").requested(loss_percent=1.0)
    one_lost = without("client", 2)(lossy)
    packet = stored.nth_data(stored.read(lossy.client), 2)
    assert int.from_bytes(packet.frame[36:38], "big") != lossy.observation["fetch"]["port"]
    assert drops(0, 1)(one_lost).judge(exact=False).counts
    fails(drops(0, 0)(one_lost), "lost packets", exact=False)
    fails(drops(0, 1)(lossy), "lost packets", exact=False)
    record = fails(drops(0, 1)(stored.load("https_resumed")), "path")
    assert "0 lost to client at random, expected 1" in record.verdict_reason, "both connections are judged"


@pytest.mark.parametrize("sysctls", [{"net.ipv4.tcp_rmem": "4096 16384 16384"},
                                     {"net.ipv4.tcp_wmem": "4096 4608 4608"}])
def test_the_model_is_told_a_scenarios_buffers(sysctls: dict[str, str]) -> None:
    trial = stored.load("receive_window")
    record = judge_fetch(trial.trial, trial.observation, trial.client, trial.server, exact=True,
                   sysctls=sysctls)
    assert "first flight: observed 12 segments" in record.verdict_reason


def test_the_table_of_checks_counts_what_each_refused(good: Stored) -> None:
    """Passed, failed, not judged. A transfer that was no measurement is not judged further."""
    seconds_late, in_real_time = later("fetch", "total_ms", 1.1), good.requested(rtt_ms=110.0)
    records = [good.judge(), good.said("fetch", exit_status=18).judge(), seconds_late(good).judge(),
               cut("server", 20, known=False)(good).judge(), in_real_time.judge(exact=False)]
    counted = {row[0]: row[2:] for row in checks.table(every_check(), records, exact=True).rows}
    assert counted.keys() == {check.name for check in every_check() if not check.seldom}
    assert counted["exit status"] == (4, 1, 0)
    assert counted["capture"] == (3, 1, 1)
    assert counted["RTT"] == (0, 1, 4)
    assert counted["model"] == (2, 1, 2)
    table = checks.table(every_check(), records[:1], exact=False)
    assert [row[0] for row in table.rows] == [
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
    assert fails(without("client", 4)(good), "lost packets", exact=False).lost_segments == 1
    record = fails(without("client", 4)(good), "path")
    assert record.lost_segments == 1 and record.lost_packets == "to client: 1 data"
    assert "did not arrive though the queue held" in record.verdict_reason


def test_a_lost_acknowledgement(good: Stored) -> None:
    packets = stored.read(good.server)
    packets.remove([packet for packet in packets if not packet.to_client][-3])
    record = fails(good.captured(server=packets), "path")
    assert record.lost_segments == 0 and record.lost_packets == "to server: 1 ACK"


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
    windows = ON_THE_WIRE[2:4]
    assert [check.name for check in windows] == ["initial window", "first flight"]
    assert [len(list(check.compare(arrived))) for check in windows] == [1, 1]
    assert [len(list(check.compare(lost))) for check in windows] == [0, 0]


def test_a_transfer_that_took_longer_than_the_model(good: Stored) -> None:
    fails(later("fetch", "total_ms", 0.9)(good), "client times")
    fails(later("fetch", "total_ms", 1.1)(good), "client times", "model")
    fails(later("fetch", "total_ms", -1.1)(good), "client times", "model")


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
        assert "client times" in later("fetch", time, by_ms)(trial).judge().failed_checks.split("; ")
    late = later("fetch", time, 0.05)(trial).judge()
    assert late.counts == (name == "wget"), "wget's process has to start and to end"


def test_the_model_is_not_asked_about_what_it_does_not_know(good: Stored) -> None:
    assert later("fetch", "total_ms", 4)(good).judge(exact=False).verdict == PASS  # real time
    fails(later("fetch", "total_ms", 50)(good), "client times", exact=False)
    other = later("fetch", "total_ms", 50)(good).requested(congestion_control="bbr").judge()
    assert other.failed_checks == "client times" and other.model_ms is None


def test_a_kernel_that_the_model_does_not_know_is_judged_by_its_packets_alone(good: Stored) -> None:
    def judged(trial: Stored) -> Record:
        return judge_fetch(trial.trial, trial.observation, trial.client, trial.server, exact=True,
                     sysctls={}, known_kernel=False)
    other = judged(good.requested(congestion_control="reno", initcwnd=3))
    assert (other.verdict, other.judged_by) == (PASS, "path host") and other.model_ms is not None
    slow = judged(later("fetch", "total_ms", 50)(good))
    assert slow.failed_checks == "client times"
    assert judged(good.requested(rtt_ms=100.004)).verdict == FAIL


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
