"""Stored pages judged again, and tampered with: the verdict has to notice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from firstflight.runs.results.records import FAIL, PASS, SKIPPED
from firstflight.study.page import verify
from tests.golden import stored_page
from tests.golden.stored import Packet

MS = 1_000_000


@pytest.mark.parametrize("name", stored_page.NAMES)
def test_a_stored_page_passes_as_it_did(name: str) -> None:
    page = stored_page.load(name)
    record = page.judge()
    assert (record.ok, record.verdict, record.verdict_reason) == (True, PASS, "")
    (stored,) = [other for other in stored_page.run().records if other.trial == page.trial]
    assert replace(record, measured_at=stored.measured_at) == stored


def data(packets: list[Packet], to_client: bool = True) -> list[Packet]:
    return [packet for packet in packets if packet.payload_bytes and packet.to_client == to_client]


def without(number: int, to_client: bool = True) -> Callable[[list[Packet]], list[Packet]]:
    return lambda packets: [packet for packet in packets
                            if packet is not data(packets, to_client)[number]]


def later(number: int, by_ns: int, to_client: bool = True
          ) -> Callable[[list[Packet]], list[Packet]]:
    return lambda packets: [replace(packet, time_ns=packet.time_ns + by_ns)
                            if packet is data(packets, to_client)[number] else packet
                            for packet in packets]


def forged(number: int) -> Callable[[list[Packet]], list[Packet]]:
    """A segment of data twice, the second with another identification."""
    return lambda packets: [*packets, data(packets)[number].again(3000, 64999)]


@pytest.mark.parametrize("name", stored_page.NAMES)
@pytest.mark.parametrize(("side", "change"), [
    ("client", without(3)), ("client", later(3, 5400)), ("client", later(0, -5400)),
    ("client", without(1, to_client=False)), ("client", later(1, 20_400, to_client=False)),
    ("server", without(3)), ("server", later(5, 5400)), ("server", later(1, 5400, False)),
    ("client", forged(2)), ("server", forged(2)),
    ("client", lambda packets: packets[:-8]), ("server", lambda packets: packets[8:])])
def test_a_tampered_packet_is_refused(
        name: str, side: str, change: Callable[[list[Packet]], list[Packet]]) -> None:
    record = stored_page.load(name).captured(side, change).judge()
    assert record.verdict == FAIL or not record.ok, "a tampered capture passed"


@pytest.mark.parametrize(("name", "wrong", "named"), [
    ("two", {"rtt_ms": 40.01}, "path"), ("two", {"bandwidth_kbps": 5001.0}, "path"),
    ("two", {"uplink_kbps": 4900.0}, "path"), ("waits", {"queue_packets": 6}, "path"),
    ("lossy", {"seed": 5}, "path"), ("lossy", {"loss_percent": 2.0}, "path"),
    ("two", {"initcwnd": 9}, "initial window"), ("http2", {"initcwnd": 11}, "initial window"),
    ("two", {"initcwnd": 5}, "first flight"), ("http2", {"initcwnd": 3}, "first flight"),
    ("six", {"objects": "9000 6000<1@1500 6000<1@3000 6000<1@4500 6000<1@6000 6000<1@7500",
             "initcwnd": 4}, "first flight"),
    ("two", {"connections": 1}, "connections"), ("two", {"connections": 3}, "order"),
    ("six", {"connections": 5}, "connections"),
    ("one", {"congestion_control": "reno", "initcwnd": 3}, "model")])
def test_a_page_that_was_not_the_requested_one_fails(name: str, wrong: dict[str, Any],
                                                     named: str) -> None:
    record = stored_page.load(name).requested(**wrong).judge()
    assert record.ok and record.verdict == FAIL and named in record.failed_checks.split("; ")


@pytest.mark.parametrize(("name", "text", "named"), [
    ("two", "9000 6001<1@1500 6000<1@3000 6000<1@4500 6000<1@6000 6000<1@7500", "size"),
    ("two", "9000 6000<1@3000 6000<1@3000 6000<1@4500 6000<1@6000 6000<1@7500", "order"),
    ("waits", "9000! 5000<1@200~7.5! 5000<1@8000+4#1 4000<2@5000", "order"),
    ("waits", "9000! 5000<1@200~6.5! 5000<1@8000+3.25#1 4000<2@5000", "host"),
    ("waits", "9000! 5000<1@200~7.5! 5000<1@8000+3.25#1 4000<3@5000", "order")])
def test_other_objects_than_those_requested_fail(name: str, text: str, named: str) -> None:
    record = stored_page.load(name).requested(objects=text).judge()
    assert record.ok and record.verdict == FAIL and named in record.failed_checks.split("; ")


def of_object(number: int, **values: Any) -> Callable[[dict[str, Any]], object]:
    return lambda observation: observation["objects"][number].update(values)


def shifted(number: int, name: str, by_ms: float) -> Callable[[dict[str, Any]], object]:
    def change(observation: dict[str, Any]) -> None:
        observation["objects"][number][name] += by_ms
    return change


@pytest.mark.parametrize(("name", "change", "named"), [
    ("two", of_object(2, size=5999), "size"), ("two", of_object(2, sha256="0" * 64), "digest"),
    ("two", of_object(1, header_bytes=40), "bytes"), ("two", shifted(3, "end_ms", 0.5), "times"),
    ("two", shifted(3, "first_byte_ms", -0.5), "times"),
    ("two", shifted(3, "start_ms", 0.5), "times"), ("two", shifted(3, "named_ms", -1), "order"),
    ("http2", shifted(2, "end_ms", 0.5), "times"), ("http2", shifted(2, "start_ms", 1), "order"),
    ("http2", shifted(2, "named_ms", 0.9), "order"),
    ("two", lambda said: said["initial_windows"].update(
        {port: 9 for port in said["initial_windows"]}), "initial window"),
    ("two", lambda said: said["drops"]["to_client"].update(queue=1), "path"),
    ("lossy", lambda said: said["drops"]["to_client"].update(random=0), "path")])
def test_a_wrong_report_is_refused(name: str, change: Callable[[dict[str, Any]], object],
                                   named: str) -> None:
    record = stored_page.load(name).reported(change).judge()
    assert record.ok and record.verdict == FAIL and named in record.failed_checks.split("; ")


@pytest.mark.parametrize(("change", "said"), [
    (lambda seen: seen.update(error="no socket"), "no socket"),
    (lambda seen: seen.update(objects=[]), "0 objects of 6"),
    (of_object(2, ok=False, error="curl 28: too late"), "object 3: curl 28: too late"),
    (of_object(2, end_ms=None), "object 3: the client reported no times"),
    (of_object(2, port=1), "the captures lack 1 of the connections")])
def test_a_failed_page_is_told(change: Callable[[dict[str, Any]], object], said: str) -> None:
    record = stored_page.load("two").reported(change).judge()
    assert not record.ok and record.verdict == SKIPPED and said in record.error


def test_a_page_that_the_machine_cannot_measure_is_skipped_with_its_reason() -> None:
    page = stored_page.load("two").reported(lambda seen: seen.update(skipped="nginx is missing"))
    record = page.judge()
    assert record.was_skipped and record.verdict_reason == "nginx is missing"


def test_the_model_predicts_what_shares_nothing() -> None:
    """All of one connection; of two the document; of six and of HTTP/2 nothing."""
    assert [stored_page.load(name).judge().model_objects
            for name in ("one", "two", "http2", "six")] == [4, 1, 0, 0]


def test_the_model_judges_the_kernel_that_it_was_checked_against() -> None:
    page = stored_page.load("one").requested(congestion_control="reno", initcwnd=3)
    checks = page.judge().failed_checks
    assert "model" in checks
    assert "model" not in page.judge(known_kernel=False).failed_checks


def test_in_real_time_no_packet_is_judged_by_itself() -> None:
    record = stored_page.load("two").requested(rtt_ms=50.0).judge(exact=False)
    assert record.verdict == PASS and record.judged_by == ""


def test_each_check_is_known_by_its_name() -> None:
    names = [check.name for check in verify.CHECKS]
    assert len(set(names)) == len(names) == 11
