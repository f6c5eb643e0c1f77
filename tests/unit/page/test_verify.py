"""Verdicts on stored pages as they are and tampered with, and findings on a run of pages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from firstflight.base.errors import FirstFlightError
from firstflight.findings.charts import PageChart
from firstflight.judge import records
from firstflight.model.predict import Prediction
from firstflight.model.transfer import Transfer
from firstflight.net.buffers import RECEIVE_BUFFERS
from firstflight.net.headers import ACK, SYN
from firstflight.net.segments import Segment
from firstflight.runs.kinds import RunData
from firstflight.runs.results.records import FAIL, PASS, SKIPPED
from firstflight.setting.tcp import RECEIVE, buffer_sizes
from firstflight.wire.exchange import Exchange
from firstflight.workloads.page import (analysis, findings, order, predicted, sentences, timing,
                                        verify)
from firstflight.workloads.page.objects import PageObject
from firstflight.workloads.page.record import PageEvidence, PageRecord, read_file
from tests.golden import one_page, stored_page
from tests.golden.stored import Packet
from tests.golden.stored_page import StoredPage, two
from tests.unit.page.altered import data, later, without
from tests.unit.page.test_tamperings import TAMPERINGS


@pytest.mark.parametrize("name", stored_page.NAMES)
def test_a_stored_page_is_judged_as_its_stored_record(name: str) -> None:
    page = stored_page.load(name)
    record = page.judge()
    assert (record.ok, record.verdict, record.verdict_reason) == (True, PASS, "")
    (stored,) = [other for other in stored_page.run().records if other.trial == page.trial]
    assert replace(record, measured_at=stored.measured_at) == stored


def test_the_model_has_the_buffers_that_a_window_of_short_segments_needs(
        monkeypatch: pytest.MonkeyPatch) -> None:
    """With the usual buffers it would offer 655 segments of 88 bytes instead of 1000."""
    computed: list[Transfer] = []

    def predict(transfer: Transfer) -> Prediction:
        computed.append(transfer)
        return model_of(transfer)

    model_of = predicted.predict
    monkeypatch.setattr(predicted, "predict", predict)
    page = stored_page.load("one").requested(mss=88)
    page.judge()
    buffers = page.trial.with_buffers({})
    assert {transfer.receive_buffers for transfer in computed} == {buffer_sizes(buffers, RECEIVE)}
    assert buffer_sizes(buffers, RECEIVE)[0] > RECEIVE_BUFFERS[0]


def forged(number: int) -> Callable[[list[Packet]], list[Packet]]:
    """A segment of data is repeated with another identification."""
    return lambda packets: [*packets, data(packets)[number].retransmitted(3000, 64999)]


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


def acknowledging(more: int, to_client: bool) -> Callable[[list[Packet]], list[Packet]]:
    """The first pure acknowledgement of one direction covers more bytes."""
    def change(packets: list[Packet]) -> list[Packet]:
        (place, packet), *_ = [
            (place, packet) for place, packet in enumerate(packets)
            if packet.to_client == to_client and packet.frame[47] == ACK]
        number = (int.from_bytes(packet.frame[42:46], "big") + more) % 2**32
        frame = packet.frame[:42] + number.to_bytes(4, "big") + packet.frame[46:]
        return [*packets[:place], replace(packet, frame=frame), *packets[place + 1:]]
    return change


@pytest.mark.parametrize("name", stored_page.NAMES)
@pytest.mark.parametrize("to_client", [False, True])
def test_an_acknowledgement_of_data_that_never_arrived_is_refused(name: str,
                                                                  to_client: bool) -> None:
    """Both captures agree, so the check of the path does not refuse it."""
    change = acknowledging(1, to_client)
    record = stored_page.load(name).captured("client", change).captured("server", change).judge()
    assert "acknowledgements" in record.failed_checks.split("; ")


# A stored page, parameters that it did not have, and the check that refuses them.
SETTINGS: list[tuple[str, dict[str, Any], str]] = [
    ("two", {"rtt_ms": 40.01}, "path"), ("two", {"bandwidth_kbps": 5001.0}, "path"),
    ("two", {"uplink_kbps": 4900.0}, "path"), ("waits", {"queue_packets": 6}, "path"),
    ("lossy", {"seed": 5}, "path"), ("lossy", {"loss_percent": 2.0}, "path"),
    ("tls", {"chain_bytes": 4600}, "TLS"), ("nginx_tls", {"chain_bytes": 4600}, "TLS"),
    ("http2", {"chain_bytes": 4600}, "TLS"), ("tls", {"resumed": 1}, "TLS"),
    ("http2", {"resumed": 1}, "TLS"), ("resumed", {"resumed": 0}, "TLS"),
    ("tls", {"chain_bytes": 0}, "TLS"), ("two", {"chain_bytes": 4000}, "TLS"),
    ("nginx_tls", {"tickets": 0}, "bytes"), ("tls", {"key_share": "x25519mlkem768"}, "TLS"),
    ("nginx_tls", {"record_bytes": 1000}, "bytes"), ("tls", {"record_bytes": 1000}, "bytes"),
    ("tls", {"initcwnd": 3}, "first flight"),
    ("two", {"initcwnd": 9}, "initial window"), ("http2", {"initcwnd": 11}, "initial window"),
    ("two", {"initcwnd": 5}, "first flight"), ("http2", {"initcwnd": 3}, "first flight"),
    ("six", {"objects": (PageObject(9000), *(
        PageObject(6000, 1, at_byte) for at_byte in (1500, 3000, 4500, 6000, 7500))),
             "initcwnd": 4}, "first flight"),
    ("two", {"connections": 1}, "connections"), ("two", {"connections": 3}, "order"),
    ("six", {"connections": 5}, "connections"),
    ("two", {"mss": 1000}, "TCP options"), ("http2", {"mss": 1000}, "segment size"),
    ("two", {"initrwnd": 20}, "TCP options"), ("six", {"jitter_ms": 5.0}, "path"),
    ("one", {"congestion_control": "reno", "initcwnd": 3}, "model")]


@pytest.mark.parametrize(("name", "wrong", "named"), SETTINGS)
def test_a_page_under_another_setting_than_requested_fails(name: str, wrong: dict[str, Any],
                                                           named: str) -> None:
    record = stored_page.load(name).requested(**wrong).judge()
    assert record.ok and record.verdict == FAIL and named in record.failed_checks.split("; ")


def arriving(seq: int, stamp: int, to_client: bool = True, ack: int = 1) -> Segment:
    """A segment of 100 bytes for the client, or a pure acknowledgement of the client."""
    return Segment(0, to_client, 1024, seq, ack, 100 if to_client else 0, 166, ACK, 500, stamp, 0,
                   (), 7)


def test_data_with_an_older_time_stamp_is_discarded() -> None:
    """The client discards segments that a retransmission has overtaken (PAWS)."""
    def taken(*at_client: Segment) -> list[int]:
        """The first missing sequence number after each segment."""
        return [complete for _, complete in timing.with_arrived(at_client, to_client=True)]

    syn = Segment(0, True, 1024, 0, 1, 0, 74, SYN | ACK, 500, 10, 0, (), 7)
    acked = arriving(1, 0, False)
    assert taken(syn, acked, arriving(1, 40), arriving(101, 39)) == [1, 1, 101, 201]
    assert taken(syn, acked, arriving(1, 40), arriving(101, 38)) == [1, 1, 101, 101]
    # The client keeps no stamp of data after a gap, or of data that it has acknowledged before.
    assert taken(syn, acked, arriving(101, 40), arriving(1, 20)) == [1, 1, 1, 201]
    assert taken(syn, acked, arriving(1, 20), arriving(101, 20), arriving(1, 0, False, 201),
                 arriving(1, 40), arriving(201, 20))[-2:] == [201, 301]


def test_a_paced_flight_may_be_acknowledged_before_all_of_it_has_left() -> None:
    larger = stored_page.load("one").reported(
        lambda content: content["objects"][0].update(header_bytes=3000))
    for congestion_control, fails in (("cubic", True), ("bbr", False)):
        record = larger.requested(congestion_control=congestion_control).judge()
        assert ("first flight" in record.failed_checks.split("; ")) == fails


# A stored page, the number of an object from 1, other values of it, and the refusing check.
OBJECTS: list[tuple[str, int, dict[str, Any], str]] = [
    ("two", 2, {"size_bytes": 6001}, "size"), ("two", 2, {"at_byte": 3000}, "order"),
    ("waits", 3, {"parse_ms": 4.0}, "order"), ("waits", 2, {"think_ms": 6.5}, "causes"),
    ("waits", 4, {"named_by": 3}, "order")]


@pytest.mark.parametrize(("name", "number", "changes", "named"), OBJECTS)
def test_other_objects_than_those_requested_fail(name: str, number: int, changes: dict[str, Any],
                                                 named: str) -> None:
    stored = stored_page.load(name)
    page = list(stored.trial.objects)
    page[number - 1] = replace(page[number - 1], **changes)
    record = stored.requested(objects=tuple(page)).judge()
    assert record.ok and record.verdict == FAIL and named in record.failed_checks.split("; ")


@pytest.mark.parametrize(("name", "libcurl", "to_client", "late_ns", "passes"), [
    ("six", "", False, 9_000, True), ("six", "7.88.1", False, 13_000, False),
    ("http2", "", False, 13_000, True), ("http2", "7.88.1", False, 17_000, False),
    ("six", "8.14.1", False, 27_000, True), ("six", "8.14.1", False, 31_000, False),
    ("http2", "8.23.0", False, 24_000, True), ("http2", "8.23.0", False, 31_000, False),
    ("six", "7.88.1", True, 5_000, False), ("six", "8.14.1", True, 20_000, True),
    ("six", "8.14.1", True, 24_000, False)])
def test_a_host_of_many_transfers_may_send_microseconds_later(
        name: str, libcurl: str, to_client: bool, late_ns: int, passes: bool) -> None:
    """libcurl may take a microsecond for each of the six transfers whenever data comes.

    libcurl 7.88 tries each transfer once, and over HTTP/2 only. libcurl 8 tries each up to three
    times, over both versions. The server shares the CPU, and waits as long.
    """
    evidence = evidence_of(stored_page.load(name).reported(
        lambda seen: seen.update(libcurl=libcurl)))
    (port, exchange), *others = evidence.exchanges.items()
    late = with_last_later(exchange, to_client, late_ns)
    changed = replace(evidence, exchanges={port: late, **dict(others)})
    assert (not order.uncaused_data(changed)) == passes


def evidence_of(page: StoredPage) -> PageEvidence:
    return page.evidence()


def with_last_later(exchange: Exchange, to_client: bool, late_ns: int) -> Exchange:
    """The last segment with data of one direction left its host late_ns later."""
    side = "at_server" if to_client else "at_client"
    last = [segment for segment in getattr(exchange, side)
            if segment.payload_bytes and segment.to_client == to_client][-1]
    sent = tuple(segment._replace(time_ns=segment.time_ns + late_ns)
                 if segment is last else segment for segment in getattr(exchange, side))
    return replace(exchange, **{side: sent})


@pytest.mark.parametrize(("opened", "late_ns", "passes"), [
    (5, 5_000, True), (5, 7_000, True), (5, 9_000, False), (3, 5_000, True), (1, 5_000, False),
    (0, 5_000, False)])
def test_a_server_waits_for_a_client_that_connects_to_many_hosts(opened: int, late_ns: int,
                                                                 passes: bool) -> None:
    """Each connect() takes a microsecond. A server may be 3 µs late without any.

    opened: connections that the client opens while the server waits.
    """
    evidence = evidence_of(stored_page.load("six"))
    (port, exchange), *others = evidence.exchanges.items()
    last_ns = max(segment.time_ns for segment in exchange.at_server if segment.payload_bytes)
    exchanges = {port: with_last_later(exchange, True, late_ns)}
    for place, (other_port, other) in enumerate(others):
        at_ns = last_ns + 1000 * place if place < opened else other.syns[0].time_ns
        syn = other.syns[0]._replace(time_ns=at_ns)
        exchanges[other_port] = replace(other, syns=(syn, *other.syns[1:]))
    changed = replace(evidence, exchanges=exchanges)
    assert (not order.uncaused_data(changed)) == passes


def of_object(number: int, **values: Any) -> Callable[[dict[str, Any]], object]:
    return lambda observation: observation["objects"][number].update(values)


def of_response(number: int, **values: Any) -> Callable[[dict[str, Any]], object]:
    return lambda observation: observation["responses"][number].update(values)


def of_tls(number: int, **values: Any) -> Callable[[dict[str, Any]], object]:
    return lambda observation: observation["responses"][number]["tls"].update(values)


def shifted(number: int, name: str, by_ms: float) -> Callable[[dict[str, Any]], object]:
    def change(observation: dict[str, Any]) -> None:
        observation["objects"][number][name] += by_ms
    return change


# A stored page, a tampered report, and the check that refuses it.
REPORTS: list[tuple[str, Callable[[dict[str, Any]], object], str]] = [
    ("two", of_object(2, size=5999), "size"), ("two", of_object(2, sha256="0" * 64), "digest"),
    ("two", of_object(1, header_bytes=40), "bytes"),
    ("two", shifted(3, "end_ms", 0.5), "client times"),
    ("two", shifted(3, "first_byte_ms", -0.5), "client times"),
    ("two", shifted(3, "start_ms", 0.5), "client times"),
    ("two", shifted(3, "named_ms", -1), "order"),
    ("http2", shifted(2, "end_ms", 0.5), "client times"),
    ("http2", shifted(2, "start_ms", 1), "order"),
    ("http2", shifted(2, "named_ms", 0.9), "order"),
    ("two", of_response(1, initial_window=9), "initial window"),
    ("http2", of_response(0, initial_window=9), "initial window"),
    ("tls", of_tls(0, version="TLSv1.2"), "TLS"), ("tls", of_tls(1, group="P-256"), "TLS"),
    ("tls", of_tls(1, resumed=True), "TLS"), ("resumed", of_tls(-1, resumed=False), "TLS"),
    ("tls", of_tls(0, flight=[4096, 290]), "TLS"), ("tls", of_tls(0, tickets=[255]), "bytes"),
    ("tls", of_object(0, header_bytes=2000), "bytes"),
    ("tls", shifted(2, "end_ms", 0.5), "client times"),
    ("tls", shifted(2, "first_byte_ms", 0.5), "client times"),
    ("nginx_tls", shifted(3, "named_ms", -0.9), "order"),
    ("tls", shifted(1, "start_ms", -0.5), "order"),
    ("nginx_tls", of_object(2, header_bytes=1000), "bytes"),
    ("resumed", lambda said: said.update(session_ports=[]), "connections"),
    ("two", lambda said: said["drops"]["to_client"].update(queue=1), "path"),
    ("lossy", lambda said: said["drops"]["to_client"].update(random=0), "path")]


@pytest.mark.parametrize(("name", "change", "named"), REPORTS)
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
def test_a_failed_page_is_skipped_with_its_error(change: Callable[[dict[str, Any]], object],
                                                 said: str) -> None:
    record = stored_page.load("two").reported(change).judge()
    assert not record.ok and record.verdict == SKIPPED and said in record.error


def test_a_page_that_the_machine_cannot_measure_is_skipped_with_its_reason() -> None:
    page = stored_page.load("two").reported(lambda seen: seen.update(skipped="nginx is missing"))
    record = page.judge()
    assert record.was_skipped and record.verdict_reason == "nginx is missing"


def test_the_model_predicts_only_objects_that_share_no_connection() -> None:
    """On one connection these are all objects, on two the document.

    Over TLS they are the first object of each host.
    """
    assert [stored_page.load(name).judge().model_objects
            for name in ("one", "two", "tls", "http2", "six")] == [4, 1, 2, 0, 0]


def test_the_model_judges_the_kernel_that_it_was_checked_against() -> None:
    page = stored_page.load("one").requested(congestion_control="reno", initcwnd=3)
    checks = page.judge().failed_checks
    assert "model" in checks
    assert "model" not in page.judge(known_kernel=False).failed_checks


def test_a_patched_kernel_may_send_by_timers_of_its_own() -> None:
    page = stored_page.load("waits").requested(
        objects=(PageObject(9000, is_early=True),
                 PageObject(5000, 1, 200, think_ms=6.5, is_early=True),
                 PageObject(5000, 1, 8000, parse_ms=3.25, host=1),
                 PageObject(4000, 2, 5000),))
    assert "causes" in page.judge().failed_checks.split("; ")
    assert "causes" not in page.judge(known_kernel=False).failed_checks.split("; ")


def test_in_real_time_the_times_of_single_packets_are_not_judged() -> None:
    record = stored_page.load("two").requested(rtt_ms=50.0).judge(exact=False)
    assert record.verdict == PASS and record.judged_by == ""


def test_every_check_refuses_something() -> None:
    """Another test has the check of acknowledgements."""
    refused = {named for *_, named in (*SETTINGS, *OBJECTS, *REPORTS, *TAMPERINGS)}
    assert refused == {check.name for check in verify.CHECKS} - {"acknowledgements"}


# What a run of pages shows ------------------------------------------------------------

def notes(records: list[PageRecord]) -> list[str]:
    (setting,) = analysis.group_settings(records)
    return sentences.notes(setting, "")


@pytest.mark.parametrize("idle_ms, words", [
    (83.1, "(it sends all of the time): its bandwidth is the limit"),
    (89.0, "(it sends 97"), (98.0, "")])
def test_the_bandwidth_is_the_limit_where_packets_fill_the_link(idle_ms: float,
                                                                words: str) -> None:
    """The link may be idle for 10 of the 200 ms from the first byte to the end."""
    text = " ".join(notes(two(idle_ms=idle_ms, page_ms=283.1, first_byte_ms=83.1)))
    assert words in text
    assert ("its bandwidth is the limit" in text) == bool(words)


def test_a_setting_with_a_failed_verdict_has_no_saving() -> None:
    records = two(page_ms=1.0)
    records[1] = replace(records[1], verdict=FAIL, verdict_reason="path: wrong")
    (setting,) = analysis.group_settings(records)
    assert setting.saved(10) is None


def test_pages_with_losses_are_compared_repeat_by_repeat() -> None:
    records = [record for record in stored_page.run().records if record.trial.part == "lossy"]
    (setting,) = analysis.group_settings(records)
    saved = setting.saved(10)
    assert saved is not None and saved.draws == 2 and saved.absolute.interval is not None
    by = {(record.trial.initcwnd, record.trial.repeat): record.page_ms or 0 for record in records}
    assert saved.absolute.value == pytest.approx(
        ((by[3, 1] - by[10, 1]) + (by[3, 2] - by[10, 2])) / 2)


def test_a_bar_whose_interval_holds_0_is_unsure() -> None:
    """Two repeats, one with a timeout: their interval is wider than the difference."""
    lossy = [record for record in stored_page.run().records if record.trial.part == "lossy"]
    (setting,) = analysis.group_settings(lossy)
    (made,) = [finding.chart for finding in findings.findings(
        stored_page.study().scenario, stored_page.run()) if finding.name == "times"]
    assert isinstance(made, PageChart)
    assert [bar.unsure for _, group in made.groups for bar in group if bar] == [False] * 4
    unsure = findings._bar(setting, 10)
    assert unsure is not None and unsure.unsure and unsure.percent


def test_a_figure_names_the_loss_and_the_uplink_that_its_pages_share() -> None:
    scenario, trial = stored_page.study().scenario, stored_page.run().records[0].trial
    lossy = replace(trial, loss_percent=1.5, uplink_kbps=640.0)
    _, plain_words = findings.context_of(scenario, [trial])
    _, words = findings.context_of(scenario, [lossy])
    assert {"uplink 640 kbit/s", "loss 1.5 %"} == set(words.split(", ")) - set(
        plain_words.split(", "))
    _, of_both = findings.context_of(scenario, [lossy, trial])
    assert "loss" not in of_both and "uplink" not in of_both


def test_a_missing_or_damaged_file_of_objects_is_refused() -> None:
    run = stored_page.run()
    with pytest.raises(FirstFlightError, match="objects.csv: cannot be read"):
        findings.findings(stored_page.study().scenario,
                          RunData(run.folder / "captures", run.facts, run.records))
    for content in (b"", b"number\n1\n", b"\xff", b"number,size_bytes,connection,is_first,"
                    b"named_ms,start_ms,first_byte_ms,end_ms\n1,2,1,1,0,0,0,nan\n"):
        with pytest.raises(FirstFlightError, match="objects.csv: is damaged"):
            read_file(content, "objects.csv")


@pytest.mark.parametrize(("lengths", "passes"), [
    ((271, 271, 198, 1448), True), ((271, 62, 271), False), ((287, 272), False),
    ((9, 9, 9), False), ((9000, 9000), False), ((271,), False), ((), False)])
def test_a_connection_has_to_begin_with_records_of_equal_tickets(lengths: tuple[int, ...],
                                                                 passes: bool) -> None:
    for or_more in (False, True):
        compared = records.compare_tickets(lengths, 2, "TLS records", or_more=or_more)
        assert compared.passed is passes


@pytest.mark.parametrize("or_more", [True, False])
def test_a_response_may_have_the_tickets_length_only_where_more_is_allowed(or_more: bool) -> None:
    compared = records.compare_tickets((271, 271, 271), 2, "TLS records", or_more=or_more)
    assert compared.passed is or_more


@pytest.mark.parametrize(("lengths", "passes"), [
    ((271, 271, 62, 31, *[15_168] * 12, 1260, 13_930), True),
    ((271, 271, 62, 31, *[8214, 6976] * 13), False)])
def test_a_full_socket_may_split_only_few_responses(lengths: tuple[int, ...], passes: bool) -> None:
    most_short = 2 + records.SETTINGS_RECORDS + records.most_flushes([15_000] * 13)
    compared = records.compare_filled(lengths, 16_384, most_short, "TLS records")
    assert all(one.passed for one in compared) is passes


@pytest.mark.parametrize(("name", "number", "late_ns", "found"), [
    ("http2", 8, 7500, 0), ("http2", 8, 9000, 1), ("tls", 8, 2500, 0), ("tls", 8, 7500, 1)])
def test_nginx_may_write_some_microseconds_after_a_request(
        name: str, number: int, late_ns: int, found: int) -> None:
    page = stored_page.load(name).captured("server", later(number, late_ns))
    evidence = one_page.evidence_of(page)
    assert len(order.uncaused_data(evidence)) == found
