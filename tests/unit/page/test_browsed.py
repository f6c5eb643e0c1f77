"""Stored loads in a browser: judged again, and tampered with."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from firstflight.net.headers import ACK
from firstflight.net.segments import Segment
from firstflight.runs.results.records import FAIL, PASS, SKIPPED
from firstflight.testbed import observations, site_store
from firstflight.testbed.hosts.replay.recording import Answer
from firstflight.testbed.network.commands import commands_of
from firstflight.workloads.page import browsed
from firstflight.workloads.page.record import FILE, read_file
from tests.golden import stored_browsed
from tests.golden.stored import Packet
from tests.unit.page.altered import data, later, without


@pytest.fixture(autouse=True)
def stored_sites(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_store, "folder", lambda: stored_browsed.SITES)


@pytest.mark.parametrize(("name", "load_ms"), [("http1", 812.111), ("http2", 793.906)])
def test_a_stored_load_passes(name: str, load_ms: float) -> None:
    record, files = stored_browsed.load(name).judged()
    assert (record.ok, record.verdict, record.verdict_reason) == (True, PASS, "")
    assert (record.page_ms, record.requests, record.not_recorded) == (load_ms, 14, 1)
    assert record.document_ms is not None and record.first_byte_ms is not None
    assert record.first_byte_ms <= record.document_ms < load_ms, "the redirect is not the document"
    assert {*record.seen_initcwnd.split()} == {"4"}
    objects = read_file(files[FILE], FILE)
    assert len(objects) == 14
    first_on_connection = [row for row in objects if row.is_first]
    assert len(first_on_connection) <= (record.opened_connections or 0)
    rows = list(csv.DictReader(io.StringIO(files[browsed.REQUESTS_FILE].decode())))
    assert [row["status"] for row in rows].count("404") == 1
    assert [row["recorded"] for row in rows].count("0") == 1


def of_load(change: Callable[[dict[str, Any]], object]) -> Callable[[dict[str, Any]], object]:
    """A change of an observation, from a change of its load."""
    return lambda observation: change(observation["load"])


def of_request(number: int, **values: object) -> Callable[[dict[str, Any]], object]:
    """The browser reports other values of a request, numbered from 0."""
    return lambda observation: observation["load"]["requests"][number].update(values)


def earlier(number: int, name: str, by_ms: float) -> Callable[[dict[str, Any]], object]:
    """The browser reports a time of a request by_ms earlier."""
    def change(observation: dict[str, Any]) -> None:
        observation["load"]["requests"][number][name] -= by_ms
    return change


# Tampered reports, each with the check that refuses it; "" where no check does.
REPORTS: list[tuple[Callable[[dict[str, Any]], object], str]] = [
    (of_request(4, status=404), "HTTP status"),
    (of_request(4, content_bytes=7), "contents"),
    (of_request(4, sha256="0" * 64), "contents"),
    (of_request(4, url="https://www.example.org/else"), "requests"),
    (of_request(4, failure="net::ERR_FAILED", end_ms=None), ""),
    (earlier(5, "end_ms", 1.0), "client times"),
    (earlier(5, "first_byte_ms", 1.2), "client times"),
    (earlier(5, "sent_ms", 1.7), "client times"),
    (lambda observation: observation["served"].pop(), "requests"),
    (lambda observation: observation["served"].append(
        [0, 40000, "GET", "https://www.example.org/more", 1, 2, 200, 5]), "requests"),
    (of_load(lambda load: load.update(begun_ns=load["begun_ns"] + 10**6)), "client times"),
    (of_load(lambda load: load.update(phase_ms=load["phase_ms"] + 1.5)), "frame phase")]


@pytest.mark.parametrize("name", stored_browsed.NAMES)
@pytest.mark.parametrize(("change", "check"), REPORTS)
def test_a_report_that_the_packets_contradict_is_refused_by_its_check(
        name: str, change: Callable[[dict[str, Any]], object], check: str) -> None:
    record = stored_browsed.load(name).reported(change).judge()
    if check:
        assert record.verdict == FAIL and check in record.failed_checks.split("; ")
    else:
        assert record.ok and record.verdict == PASS


@pytest.mark.parametrize("name", stored_browsed.NAMES)
def test_a_response_reported_to_end_before_its_last_byte_is_refused(name: str) -> None:
    """Its reported end is when the segment before its last one arrived."""
    stored = stored_browsed.load(name)
    requests = stored.observation["load"]["requests"]
    number = max(range(len(requests)), key=lambda place: requests[place]["content_bytes"])
    end_ns = stored.observation["load"]["begun_ns"] + round(requests[number]["end_ms"] * 1e6)
    arrived_ns = [packet.time_ns for packet in data(stored_browsed.read(stored.client))
                  if packet.time_ns < end_ns - 10**6 and packet.payload_bytes > 1000]
    before_ms = (arrived_ns[-1] - stored.observation["load"]["begun_ns"]) / 1e6
    record = stored.reported(of_request(number, end_ms=before_ms)).judge()
    assert record.failed_checks == "client times"
    assert "before its last byte came" in record.verdict_reason


@pytest.mark.parametrize("name", stored_browsed.NAMES)
@pytest.mark.parametrize(("by_ms", "failed"), [(0.9, ""), (2.0, "client times")])
def test_a_response_may_be_read_a_millisecond_after_its_last_byte_came(
        name: str, by_ms: float, failed: str) -> None:
    stored = stored_browsed.load(name)
    requests = stored.observation["load"]["requests"]
    last = max((place for place, request in enumerate(requests) if request["end_ms"]),
               key=lambda place: requests[place]["end_ms"])
    assert stored.reported(earlier(last, "end_ms", -by_ms)).judge().failed_checks == failed


@pytest.mark.parametrize(("under_way", "leaves_ms", "held"), [
    (10, 80, True), (9, 80, False), (10, 70, False), (10, None, False)])
def test_a_request_is_held_where_ten_segments_are_under_way_until_the_server_answers(
        under_way: int, leaves_ms: int | None, held: bool) -> None:
    def segment(time_ms: int, to_client: bool, seq: int, ack: int) -> Segment:
        return Segment(
            time_ms * 10**6, to_client, 1024, seq=seq, ack=ack,
            payload_bytes=0 if to_client else 66, frame_bytes=132, flags=ACK, window=500,
            stamp=None, echo=None, sacked=(), identification=0)

    requests = [segment(number, False, 1 + 66 * number, 1) for number in range(under_way)]
    answer = segment(80, True, 1, 1 + 66 * 5)
    following = [] if leaves_ms is None else [segment(leaves_ms, False, 1 + 66 * under_way, 1)]
    at_client = sorted([*requests, answer, *following], key=lambda sent: sent.time_ns)
    assert browsed.is_held(at_client, 50 * 10**6, allowed_ms=0.3) is held


@pytest.mark.parametrize("name", stored_browsed.NAMES)
@pytest.mark.parametrize(("side", "change"), [
    ("client", without(3)), ("client", later(3, 5400)), ("client", later(0, -5400)),
    ("client", without(1, to_client=False)), ("client", later(1, 20_400, to_client=False)),
    ("server", without(3)), ("server", later(5, 5400)), ("server", later(1, 5400, False)),
    ("client", lambda packets: packets[:-8]), ("server", lambda packets: packets[8:])])
def test_a_load_whose_packets_are_missing_or_moved_in_one_capture_fails(
        name: str, side: str, change: Callable[[list[Packet]], list[Packet]]) -> None:
    record = stored_browsed.load(name).captured(side, change).judge()
    assert record.verdict == FAIL or not record.ok, "a tampered capture passed"


def test_data_that_leaves_without_a_cause_is_refused() -> None:
    """Both captures agree, so the check of the path does not refuse it."""
    def change(packets: list[Packet]) -> list[Packet]:
        late = data(packets)[-1]
        return [replace(packet, time_ns=packet.time_ns + 3_400_000) if packet is late else packet
                for packet in packets]
    stored = stored_browsed.load("http2")
    record = stored.captured("client", change).captured("server", change).judge()
    assert "causes" in record.failed_checks.split("; ")


# Parameters that the stored load did not have, each with the check that refuses it.
SETTINGS: list[tuple[dict[str, Any], str]] = [
    ({"rtt_ms": 40.01}, "path"), ({"bandwidth_kbps": 5001.0}, "path"),
    ({"uplink_kbps": 990.0}, "path"), ({"initcwnd": 5}, "initial window"),
    ({"initcwnd": 3}, "first flight"), ({"mss": 1000}, "TCP options"),
    ({"initrwnd": 20}, "TCP options"), ({"chain_bytes": 9000}, "TLS"),
    ({"mss": 1400}, "segment size"), ({"record_bytes": 5200}, "TLS records")]


@pytest.mark.parametrize(("wrong", "named"), SETTINGS)
def test_a_load_under_another_setting_than_requested_fails(wrong: dict[str, Any],
                                                           named: str) -> None:
    record = stored_browsed.load("http2").requested(**wrong).judge()
    assert record.ok and record.verdict == FAIL and named in record.failed_checks.split("; ")


def acknowledging_more(packets: list[Packet]) -> list[Packet]:
    """The client's first acknowledgement of data covers one byte more."""
    place = next(place for place, packet in enumerate(packets)
                 if not packet.to_client and packet.frame[47] == ACK)
    frame = packets[place].frame
    number = (int.from_bytes(frame[42:46], "big") + 1) % 2**32
    changed = replace(packets[place], frame=frame[:42] + number.to_bytes(4, "big") + frame[46:])
    return [*packets[:place], changed, *packets[place + 1:]]


def test_an_acknowledgement_of_data_that_never_arrived_is_refused() -> None:
    stored = stored_browsed.load("http2")
    for side in ("client", "server"):
        stored = stored.captured(side, acknowledging_more)
    assert "acknowledgements" in stored.judge().failed_checks.split("; ")


def test_an_answer_longer_than_its_connections_data_is_refused() -> None:
    """The server reports an answer longer than all data of its connection."""
    def longer(observation: dict[str, Any]) -> None:
        row = observation["served"][-1]
        observation["served"][-1] = [*row[:-1], row[-1] + 10**7]
    record = stored_browsed.load("http2").reported(longer).judge()
    assert "bytes" in record.failed_checks.split("; ")


def test_every_check_refuses_something() -> None:
    """The three checks that are added here have tests of their own."""
    refused = {check for _, check in (*REPORTS, *SETTINGS) if check}
    assert refused | {"acknowledgements", "bytes", "causes"} == {
        check.name for check in browsed.CHECKS}


def test_the_workers_report_is_read_by_its_schema_and_a_malformed_one_refused() -> None:
    for name in stored_browsed.NAMES:
        observation = {**stored_browsed.load(name).observation}
        observation.pop("received_at")  # the engine adds it
        assert observations.OBSERVATION(observation, "")["served"] == observation["served"]
    one_field = [1]
    too_large_a_port = [0, 70_000, "GET", "u", 1, 2, 200, 5]
    a_number_as_method = [0, 1, 2, "u", 1, 2, 200, 5]
    for wrong in (one_field, too_large_a_port, a_number_as_method):
        with pytest.raises(ValueError):
            observations.served(wrong, "served")


@pytest.mark.parametrize(("change", "why"), [
    (lambda observation: observation.update(error="the page's process crashed"), "crashed"),
    (lambda observation: observation.pop("load"), "the worker reported no load"),
    (of_load(lambda load: load.update(requests=[])), "no request that was answered"),
    (of_load(lambda load: load.update(load_ms=None)), "no request that was answered")])
def test_a_failed_load_has_its_reason(change: Callable[[dict[str, Any]], object], why: str) -> None:
    record = stored_browsed.load("http2").reported(change).judge()
    assert not record.ok and why in record.error


def test_the_commands_of_a_load_name_its_recorded_site() -> None:
    trial = stored_browsed.load("http1").trial
    assert f"chromium: the recorded site {trial.site[:8]} over HTTP/1.1" in commands_of(trial.job())


def test_a_trial_without_a_browser_is_skipped() -> None:
    record = stored_browsed.load("http2").reported(
        lambda observation: observation.update(skipped="the browser is missing")).judge()
    assert (record.verdict, record.verdict_reason) == (SKIPPED, "the browser is missing")


def test_a_text_in_another_charset_also_has_the_digest_of_its_utf_8() -> None:
    headers = (("content-type", 'text/html; charset="iso-8859-2"'),)
    answer = Answer(0, "GET", "/", 200, headers, "Łódź".encode("iso-8859-2"))
    digests = browsed.digests_of(answer)
    assert {sha256(answer.body).hexdigest(), sha256("Łódź".encode()).hexdigest()} <= digests
