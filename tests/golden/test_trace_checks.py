"""Every check of a trace fails on a stored trial that was tampered with."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest

from firstflight.runs.results import checks
from firstflight.runs.results.records import FAIL, PASS
from firstflight.workloads.trace import verify
from firstflight.workloads.trace.record import TraceRecord
from firstflight.workloads.trace.replay import Restart
from firstflight.workloads.trace.verify import CHECKS, judge_trace
from tests.golden import stored_trace
from tests.golden.stored_trace import Observed, changed, seen, trial, window_text

NAME = "idle-linux-iw10"  # the stored trial: a burst, two idle seconds, and another burst
STARTED_S = 1795256648.714574  # a tick of the guest's clock, as the worker reports it
LONGEST_BYTES = 131  # of the request, if curl's library has a version of eight characters
RECORD = struct.Struct("<IIII")  # a packet's head: seconds, nanoseconds, bytes kept, on the wire
HEADERS_BYTES = 66  # of a segment without data, before its body


# Captures ----------------------------------------------------------------------------

@dataclass(frozen=True)
class Capture:
    """A pcap file as its header and its records."""

    header: bytes
    packets: tuple[bytes, ...]

    @classmethod
    def of(cls, pcap: bytes) -> Capture:
        packets, place = [], 24
        while place < len(pcap):
            size = RECORD.size + RECORD.unpack_from(pcap, place)[2]
            packets.append(pcap[place:place + size])
            place += size
        return cls(pcap[:24], tuple(packets))

    def place(self, number: int, data: bool = True) -> int:
        """The place of the server's packet that has this number, from 0.

        data: whether only packets with data are counted.
        """
        # From port 80: the source port is at 34 of a frame, which follows the record's head.
        places = [place for place, packet in enumerate(self.packets)
                  if packet[16 + 34:16 + 36] == b"\x00\x50"
                  and (not data or RECORD.unpack_from(packet)[3] > HEADERS_BYTES)]
        return places[number]

    def with_packets(self, place: int, *instead: bytes) -> bytes:
        """The file with other packets in place of one."""
        return b"".join([self.header, *self.packets[:place], *instead,
                         *self.packets[place + 1:]])


def drop(pcap: bytes, number: int) -> bytes:
    """The capture without a segment of data."""
    capture = Capture.of(pcap)
    return capture.with_packets(capture.place(number))


def repeat(pcap: bytes, number: int) -> bytes:
    """The capture with a segment of data repeated 1 ns later, in another IPv4 packet."""
    capture = Capture.of(pcap)
    packet = capture.packets[capture.place(number)]
    time_s, time_ns, *sizes = RECORD.unpack_from(packet)
    again = bytearray(RECORD.pack(time_s, time_ns + 1, *sizes) + packet[RECORD.size:])
    again[16 + 18] ^= 0x80  # a bit of IP's identification
    return capture.with_packets(capture.place(number), packet, bytes(again))


def delay(packet: bytes, by_ns: int) -> bytes:
    """The packet as if it had been captured so much later."""
    time_s, time_ns, *sizes = RECORD.unpack_from(packet)
    return RECORD.pack(*divmod(time_s * 10**9 + time_ns + by_ns, 10**9), *sizes
                       ) + packet[RECORD.size:]


def remove_option(pcap: bytes, option: str) -> bytes:
    """The capture with padding in place of an option of its first SYN. option: in hexadecimal."""
    return pcap.replace(bytes.fromhex(option), b"\x01" * (len(option) // 2), 1)


def delay_syn_ack(pcap: bytes, by_ns: int = 100_000) -> bytes:
    capture = Capture.of(pcap)
    place = capture.place(0, data=False)
    return capture.with_packets(place, delay(capture.packets[place], by_ns))


def delay_write(pcap: bytes, by_ns: int = 100_000) -> bytes:
    """The capture with all packets delayed from the first segment after the idle time on."""
    capture = Capture.of(pcap)
    place = capture.place(26)  # 26 segments leave before the idle time
    return b"".join([capture.header, *capture.packets[:place],
                     *(delay(packet, by_ns) for packet in capture.packets[place:])])


# Tampering ---------------------------------------------------------------------------

def reported(side: str, **changes: Any) -> Observed:
    """The stored trial as if other values were reported: by the client of its fetch (side
    "fetches"), or by the server of its response ("responses").
    """
    observed = seen(trial(NAME))
    (answer,) = observed.content[side]
    return replace(observed, content={**observed.content, side: [{**answer, **changes}]})


def sampled(row: int | None, column: str, by: int) -> Observed:
    """The stored trial with a number of a sample changed, or of all samples if row is None."""
    return seen(trial(NAME), window=changed(window_text(NAME), row, column, by))


def captured(client: Callable[[bytes], bytes] = bytes,
             server: Callable[[bytes], bytes] = bytes) -> Observed:
    """The stored trial with changed captures of the client and of the server."""
    observed = seen(trial(NAME))
    return replace(observed, client_pcap=client(observed.client_pcap),
                   server_pcap=server(observed.server_pcap))


def delay_write_slightly(pcap: bytes) -> bytes:
    """The second write 20 µs later, which its schedule allows, and no longer on a tick."""
    return delay_write(pcap, 20_000)


def started(observed: Observed) -> Observed:
    """The trial as if its worker had reported when a tick was."""
    return replace(observed, content={**observed.content, "started_at": STARTED_S})


def lost() -> Observed:
    """The stored trial as if a segment of data had left the server and not arrived."""
    return captured(client=lambda pcap: drop(pcap, 30))


# By the name of a check: what is requested in place of the stored trial's columns; an observation
# that the check then passes; one that it fails; and the reason, with its numbers and units.
Tampered = tuple[dict[str, Any], Callable[[], Observed], Callable[[], Observed], str]
TAMPERED: dict[str, Tampered] = {
    "size": ({}, captured, lambda: reported("fetches", size=66_499),
             "size: observed 66499 bytes of 66500 sent, expected 66500"),
    "digest": ({}, captured, lambda: reported("fetches", sha256="other"),
               "digest: observed other…, expected same… as sent"),
    "initial window": ({}, captured, lambda: reported("responses", initial_window=9),
                       "initial window: observed 9 segments, expected 10"),
    "segment size": ({}, captured, lambda: sampled(None, "mss", -4),
                     "segment size: observed 1444 bytes, expected 1448"),
    "TCP options": ({}, captured, lambda: captured(client=lambda pcap: remove_option(pcap, "0402")),
                    "TCP options: observed client's sack False, expected True"),
    "server's socket": ({}, lambda: reported("responses", congestion_control="reno"),
                        lambda: reported("responses", congestion_control="cubic"),
                        "server's socket: observed congestion control cubic, expected reno"),
    "requests": ({}, lambda: reported("responses", request_bytes=LONGEST_BYTES),
                 lambda: reported("responses", request_bytes=LONGEST_BYTES + 1),
                 "requests: observed 132 bytes, expected 128 to 131"),
    "causes": ({}, lambda: started(captured()),
               lambda: started(captured(client=delay_write_slightly, server=delay_write_slightly)),
               "causes: observed 11 that left although nothing had arrived and no timer was due"
               " (at 101.000 ms, at 2200.023 ms, at 2200.023 ms, …), expected none"),
    "path": ({}, captured, lambda: captured(client=lambda pcap: delay_syn_ack(pcap, 50_000)),
             "path: observed 1 of 50 packets to client differ (packet 2 arrived 50.000 µs too"
             " late)"),
    "RTT": ({}, captured, lambda: captured(client=lambda pcap: delay_syn_ack(pcap, 3_100_000)),
            "RTT: observed 103.100 ms, expected 100 ms"),
    "receive window": ({"receive_window": 57, "initrwnd": 57}, captured,
                       lambda: sampled(None, "send_window_bytes", -2 * 1448),
                       "receive window: observed 54.40 segments, expected 57"),
    "lost packets": ({}, captured, lost, "lost packets: observed 1, expected none"),
    "retransmissions": ({}, captured, lambda: captured(
        client=lambda pcap: repeat(pcap, 30), server=lambda pcap: repeat(pcap, 30)),
                        "retransmissions: observed 1, expected none"),
    "outage": ({"outage_to_ms": 80.0}, lost, captured,
               "outage: observed 0 data segments lost in it, expected one or more"),
    "schedule": ({}, captured, lambda: captured(client=delay_write, server=delay_write),
                 "schedule: observed 0.103 ms late, expected at most 0.05"),
    "window": ({}, captured, lambda: sampled(2, "ssthresh", -1),
               "window: observed 2 of 8 samples differ, first at 0.0000 s: cwnd and ssthresh"
               " (10, 2147483646), by the rules (10, 2147483647), expected none"),
    "restart": ({}, captured, lambda: sampled(5, "cwnd", 1),
                "restart at 2.200 s: observed (11, 2147483647), 10 segments sent, expected"
                " (10, 2147483647), 11")}


# Checks that judge only in real time, where packets are not judged one by one.
IN_REAL_TIME = {"RTT", "lost packets"}


def failed(record: TraceRecord) -> list[str]:
    return checks.failed_checks(record)


def test_every_check_has_a_tampering() -> None:
    assert {check.name for check in CHECKS} == {*TAMPERED} and len(CHECKS) == 17


@pytest.mark.parametrize("name", TAMPERED)
def test_a_tampered_trace_fails_its_check_with_the_reason(name: str) -> None:
    requested, good, bad, said = TAMPERED[name]
    requested_trial, exact = replace(trial(NAME), **requested), name not in IN_REAL_TIME
    assert name not in failed(judge_trace(requested_trial, good(), exact))
    record = judge_trace(requested_trial, bad(), exact)
    assert record.ok and record.verdict == FAIL and name in failed(record)
    assert any(reason.startswith(said) for reason in record.verdict_reason.split("; "))


@pytest.mark.parametrize(("name", "late", "by_ms", "verdict"), [
    ("RTT", delay_syn_ack, 2.9, PASS), ("RTT", delay_syn_ack, 3.1, FAIL),
    ("schedule", delay_write, 9.9, PASS), ("schedule", delay_write, 10.1, FAIL)])
def test_in_real_time_times_may_deviate_by_milliseconds(name: str, late: Any, by_ms: float,
                                                        verdict: str) -> None:
    def seen_late(pcap: bytes) -> bytes:
        return bytes(late(pcap, round(by_ms * 1e6)))

    observed = (captured(client=seen_late) if name == "RTT"
                else captured(client=seen_late, server=seen_late))
    record = judge_trace(trial(NAME), observed, exact=False)
    assert (record.verdict, failed(record)) == (verdict, [name] if verdict == FAIL else [])


# The receive window of the stored trial, in most samples and in the last one.
USUAL_BYTES, LAST_BYTES = 81_664, 86_272


@pytest.mark.parametrize(("usual_bytes", "verdict"), [
    (56 * 1448, FAIL), (56 * 1448 + 1, PASS), (57 * 1448 + 144, PASS), (57 * 1448 + 146, FAIL)])
def test_a_receive_window_may_be_rounded_by_less_than_a_segment(usual_bytes: int,
                                                                verdict: str) -> None:
    record = judge_trace(replace(trial(NAME), receive_window=57, initrwnd=57),
                         sampled(None, "send_window_bytes", usual_bytes - USUAL_BYTES), exact=True)
    # The stored trial's SYN had no limited window.
    assert failed(record) == ["TCP options", *["receive window"] * (verdict == FAIL)]


@pytest.mark.parametrize(("initrwnd", "passes"), [(44, True), (57, True), (58, False)])
def test_a_receive_window_need_not_grow_to_its_limit(initrwnd: int, passes: bool) -> None:
    """The window is 56.4 segments in most samples."""
    record = judge_trace(replace(trial(NAME), receive_window=60, initrwnd=initrwnd), captured(),
                         exact=True)
    assert ("receive window" not in failed(record)) == passes


@pytest.mark.parametrize(("usual_bytes", "passes"), [
    (65_535, True), (65_535 - 1448, False), (65_535 + 146, False)])
def test_a_receive_window_without_scale_is_at_most_what_a_header_holds(usual_bytes: int,
                                                                       passes: bool) -> None:
    record = judge_trace(replace(trial(NAME), receive_window=57, initrwnd=57,
                                 sysctl="net.ipv4.tcp_window_scaling=0"),
                         sampled(None, "send_window_bytes", usual_bytes - USUAL_BYTES), exact=True)
    assert ("receive window" not in failed(record)) == passes


@pytest.mark.parametrize(("early", "usual", "passes"), [
    (0, 57.0, True), (0, 57.2, False), (1, 60.9, True), (1, 61.1, False), (5, 68.9, True)])
def test_a_receive_window_may_grow_beyond_its_limit_with_early_data(
        early: int, usual: float, passes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "count_early_data", lambda _: early)
    record = judge_trace(
        replace(trial(NAME), receive_window=57, initrwnd=57),
        sampled(None, "send_window_bytes", round(usual * 1448) - USUAL_BYTES), exact=True)
    assert ("receive window" not in failed(record)) == passes


@pytest.mark.parametrize(("usual", "last", "passes"), [
    (58.9, 57.0, True), (58.9, 58.9, False), (55.9, 57.0, False)])
def test_a_receive_window_may_return_to_its_limit_in_the_end(usual: float, last: float,
                                                             passes: bool) -> None:
    more_bytes = round(usual * 1448) - USUAL_BYTES
    window = changed(window_text(NAME), None, "send_window_bytes", more_bytes)
    ended = seen(trial(NAME), window=changed(window, -1, "send_window_bytes",
                                             round(last * 1448) - (LAST_BYTES + more_bytes)))
    record = judge_trace(replace(trial(NAME), receive_window=57, initrwnd=57), ended, exact=True)
    assert ("receive window" not in failed(record)) == passes


def test_the_first_three_of_many_differing_restarts_are_reported() -> None:
    differing = [Restart(second * 10**9, 300, 200, before=(36, 9), after=(11, 9), rule=(10, 9),
                         flight=10, may_send=11) for second in range(5)]
    agreeing = replace(differing[0], rule=(11, 9), flight=11)
    evidence: Any = SimpleNamespace(
        exact=True, rules_judge=True, replayed=SimpleNamespace(restarts=[agreeing, *differing]),
        view=SimpleNamespace(seconds=lambda time_ns: time_ns / 1e9))
    assert [compared.name for compared in verify._compare_restarts(evidence)] == [
        f"restart at {second}.000 s" for second in range(3)]


def test_a_loss_in_each_direction_counts() -> None:
    """One segment of data is lost, and one acknowledgement."""
    def without_an_acknowledgement(pcap: bytes) -> bytes:
        capture = Capture.of(pcap)
        of_client = [place for place, packet in enumerate(capture.packets)
                     if packet[16 + 34:16 + 36] != b"\x00\x50"]  # not from port 80
        return capture.with_packets(next(place for place in of_client if place > 40))

    with_losses = captured(client=lambda pcap: drop(pcap, 30),
                           server=without_an_acknowledgement)
    record = judge_trace(trial(NAME), with_losses, exact=False)
    assert "lost packets: observed 2, expected none" in record.verdict_reason
    exact = judge_trace(trial(NAME), with_losses, exact=True).verdict_reason
    assert "path: observed 7 of 50 packets to client differ" in exact, "the lost one and six later"
    assert "path: observed 1 of 51 packets to server differ" in exact


def test_a_failed_restart_stands_in_its_line_of_the_table() -> None:
    record = judge_trace(trial(NAME), TAMPERED["restart"][2](), exact=True)
    table = checks.table(CHECKS, [*stored_trace.run().records, record])
    _, _, *counts = dict(zip(table.column("check"), table.rows))["restart"]
    passed, failed_count, not_judged = counts
    assert (passed, failed_count, not_judged) == (5, 1, 4)


def test_every_trial_stands_once_in_every_line_of_the_table() -> None:
    records = stored_trace.run().records
    table = checks.table(CHECKS, records)
    for name, _, passed, wrong, not_judged in table.rows:
        assert isinstance(passed, int) and isinstance(not_judged, int), name
        assert (passed + not_judged, wrong) == (len(records), 0)


def test_in_real_time_the_rules_judge_nothing() -> None:
    for name in ("window", "restart"):
        record = judge_trace(trial(NAME), TAMPERED[name][2](), exact=False)
        assert record.rule_wrong and not set(failed(record)) & {"window", "restart"}
        assert not any(check.applies_to(record) for check in CHECKS
                       if check.name in ("window", "restart"))


@pytest.mark.parametrize(("exact", "quiet"), [(True, 0.0), (False, 200.0)])
def test_in_real_time_only_a_pause_of_two_round_trips_begins_a_write(exact: bool,
                                                                     quiet: float) -> None:
    """Data that is sent after two quiet round trips counts as another write."""
    evidence: Any = SimpleNamespace(exact=exact, trial=trial(NAME), view=SimpleNamespace(
        lateness_ms=lambda quiet_ms: quiet_ms))
    (compared,) = verify._compare_schedule(evidence)
    assert (compared.observed, compared.passed) == (f"{quiet:.3f} ms late", exact)


@pytest.mark.parametrize(("name", "of_trial", "judged"), [
    ("receive window", {"receive_window": 1}, True), ("receive window", {}, False),
    ("outage", {"outage_to_ms": 0.5}, True), ("outage", {}, False),
    ("lost packets", {"outage_to_ms": 0.5}, False), ("lost packets", {"may_lose": True}, False),
    ("lost packets", {}, True), ("retransmissions", {}, True),
    ("retransmissions", {"may_lose": True}, True), ("retransmissions", {"jitter_ms": 1.0}, False),
    ("lost packets", {"loss_percent": 1.0}, False), ("lost packets", {"qdisc": "cake"}, False),
    ("schedule", {"writes": ()}, False), ("schedule", {"qdisc": "fq"}, False),
    ("schedule", {"congestion_control": "bbr"}, False)])
def test_a_check_applies_only_where_something_was_requested(name: str, of_trial: dict[str, Any],
                                                            judged: bool) -> None:
    (check,) = (one for one in CHECKS if one.name == name)
    kept = next(record for record in stored_trace.run().records if record.trial.id == NAME)
    record = replace(kept, trial=replace(kept.trial, **of_trial))  # type: ignore[type-var]
    assert check.applies_to(record) == judged
    assert not check.applies_to(replace(record, ok=False))


def test_the_check_of_the_rtt_does_not_apply_without_a_handshake() -> None:
    (check,) = (one for one in CHECKS if one.name == "RTT")
    (kept,) = (record for record in stored_trace.run().records if record.trial.id == NAME)
    assert isinstance(kept, TraceRecord) and check.applies_to(kept)
    assert not check.applies_to(replace(kept, seen_rtt_ms=None))
    assert not check.applies_to(replace(kept, ok=False))
