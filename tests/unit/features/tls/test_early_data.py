"""0-RTT: what its packets say, what its verdict refuses, and what makes no sense with it."""

from __future__ import annotations

from typing import Any

import pytest

from firstflight.base.errors import UsageError
from firstflight.net.segments import CaptureError
from firstflight.runs.kinds import Overrides
from firstflight.runs.results import checks
from firstflight.runs.results.records import FAIL, PASS
from firstflight.study import registry
from firstflight.study.fetches.scenario.server import NEWER
from firstflight.study.fetches.scenario.trial import Trial
from firstflight.study.fetches.verify import notes, zero_rtt
from firstflight.study.fetches.verify.evidence import Evidence
from firstflight.study.fetches.verify.observed import EXACT
from firstflight.study.fetches.verify.verify import every_check
from firstflight.testbed.hosts import tls_records as request
from firstflight.testbed.hosts.certificates import Files
from firstflight.testbed.network.commands import commands_of
from firstflight.testbed.servers import nginx
from firstflight.wire.exchange import read_exchange
from firstflight.wire.messages import Early, Messages, find_early
from tests.golden import stored
from tests.golden.stored import Packet, Stored, read

GOOD = stored.load("nginx_early")
LATE = stored.load("nginx_resumed")  # the same without early data
PORT = GOOD.observation["fetch"]["port"]
ASKED: dict[str, list[Any]] = {"chain_bytes": [4000], "server": ["nginx"], "resumed": [1],
                               "early_data_bytes": [1], "initcwnd": [10]}


def trials(**lists: Any) -> tuple[Trial, ...]:
    return tuple(registry.own_question("own", Overrides({**ASKED, **lists})).trials)


def answered_later(ms: float) -> Stored:
    """As if the response had waited, for the client's Finished perhaps."""
    def moved(packets: list[Packet]) -> list[Packet]:
        sent = [each for each in packets if each.to_client
                and int.from_bytes(each.frame[36:38], "big") == PORT]
        flight = next(place for place, each in enumerate(sent) if each.payload_bytes)
        late = {id(each) for each in sent[flight + 1:]}
        return [Packet(each.time_ns + round(ms * 1e6), each.frame, each.wire_bytes)
                if id(each) in late else each for each in packets]
    return GOOD.captured(client=moved(read(GOOD.client)), server=moved(read(GOOD.server)))


def without_hello() -> Stored:
    """As if the client's first data had begun with another record than a handshake's."""
    def changed(packet: Packet) -> Packet:
        at = packet.frame.find(b"\x16\x03\x01", 54)
        return packet if at < 0 else Packet(
            packet.time_ns, packet.frame[:at] + b"\x17" + packet.frame[at + 1:], packet.wire_bytes)
    return GOOD.captured(client=[changed(each) for each in read(GOOD.client)])


def test_the_request_leaves_with_the_hello_and_is_answered_at_once() -> None:
    record = GOOD.judge()
    assert (record.ok, record.verdict, record.verdict_reason) == (True, PASS, "")
    assert (record.accepted_early_bytes, record.request_round_trips) == (3000, 1)
    assert record.request_segments == 3
    assert record.handshake_round_trips == record.response_round_trips == 1
    assert record.flight_bytes == 282 and record.model_ms is None
    assert record.connect_ms == pytest.approx(100, abs=0.2)
    assert record.first_byte_ms is not None and record.first_byte_ms < 215
    found = find_early(read_exchange(GOOD.client, GOOD.server, PORT), GOOD.client, 3022)
    assert found.wire_bytes == 3022 and found.answer_ms < 0.01
    assert found.messages.before_request_bytes == 548 + 6 + 3022 and found.messages.start == 282


@pytest.mark.parametrize(("tampered", "words"), [
    (lambda: LATE.requested(early_data_bytes=3000), "observed none sent, expected 3000 bytes accepted"),
    (lambda: LATE.requested(early_data_bytes=1), "observed none sent, expected accepted"),
    (lambda: LATE.requested(early_data_bytes=3000).said("fetch", early_data_bytes=-3000),
     " observed 3000 bytes sent and refused"),
    (lambda: GOOD.said("fetch", early_data_bytes=2999), "observed 2999 bytes accepted"),
    (lambda: GOOD.requested(early_data_bytes=4000), "expected 4000 bytes accepted"),
    (lambda: answered_later(100), "the response 100.0")])
def test_a_request_that_fell_back_is_refused(tampered: Any, words: str) -> None:
    assert LATE.judge().verdict == PASS
    record = tampered().judge()
    assert record.verdict == FAIL and words in record.verdict_reason, record.verdict_reason
    assert "early data" in checks.failed_checks(every_check(), record)


def test_a_client_that_says_what_no_packet_shows_is_refused() -> None:
    record = LATE.requested(early_data_bytes=3000).said("fetch", early_data_bytes=3000).judge()
    assert record.verdict == FAIL and record.verdict_reason.startswith("capture: no whole early")
    record = LATE.requested(early_data_bytes=1).said("fetch", early_data_bytes=100).judge()
    assert record.verdict == FAIL and "early data: observed -6 bytes" in record.verdict_reason


def test_what_leaves_after_an_acknowledgement_is_another_round_trip() -> None:
    """As if the last of the request had waited for the window to open."""
    def later(packets: list[Packet]) -> list[Packet]:
        mine = [each for each in packets if not each.to_client and each.payload_bytes
                and int.from_bytes(each.frame[34:36], "big") == PORT]
        last = next(each for each in mine if each.payload_bytes == 680)
        return [Packet(each.time_ns + 101_500_000, each.frame, each.wire_bytes)
                if each is last else each for each in packets]
    assert GOOD.captured(client=later(read(GOOD.client))).judge().request_round_trips == 2


@pytest.mark.parametrize(("wire_bytes", "round_trips", "holds"), [
    (3022, 1, True), (3021, 1, False), (3023, 1, False), (3021, 2, True), (3022, 2, True),
    (0, 2, False), (3023, 2, False)])
def test_all_of_it_leaves_right_behind_the_hello_or_fills_the_window(
        wire_bytes: int, round_trips: int, holds: bool) -> None:
    found = Early(Messages(282, 3576, 282, 9578), wire_bytes, 0.0, round_trips, 3)
    evidence = Evidence(GOOD.trial, GOOD.observation["fetch"], {}, None, EXACT, {}, early=found)
    assert all(each.passed for each in zero_rtt.compare_early_data(evidence)) == holds


def test_one_that_is_cut_cannot_be_judged() -> None:
    record = without_hello().judge()
    assert record.verdict == FAIL and record.verdict_reason == (
        "capture: a connection that does not begin with a hello of TLS")
    record = GOOD.said("fetch", early_data_bytes=9000).judge()
    assert record.verdict == FAIL and record.verdict_reason.startswith("capture: no whole early")
    exchange = read_exchange(GOOD.client, GOOD.server, PORT)
    with pytest.raises(CaptureError, match="does not begin"):
        find_early(exchange, b"", 3022)


def test_the_check_is_told_where_it_judged_only() -> None:
    told = {row[0] for row in checks.table(every_check(), [GOOD.judge()]).rows}
    plain = {row[0] for row in checks.table(every_check(), [stored.load("nginx").judge()]).rows}
    assert "early data" in told - plain
    assert stored.load("nginx").judge().accepted_early_bytes is None


def test_a_run_says_how_many_requests_were_early() -> None:
    early_one, late = GOOD.judge(), LATE.judge()
    said = ("The requests of 1 of 2 trials were early data (0-RTT), 3000 bytes: they left with the"
            " client's hello, and the server took them.")
    assert said in notes.run_notes([early_one, late])
    assert not any("early" in each for each in notes.run_notes([late]))
    refused = LATE.requested(early_data_bytes=1).judge()
    assert not any("early" in each for each in notes.run_notes([refused]))


def test_a_trial_with_it_runs_in_newer_programs_with_a_server_that_takes_it(
        tmp_path: Any) -> None:
    (trial,) = trials()
    assert trial.system == NEWER and "-resumed1-early1-" in trial.id
    job = trial.job()
    assert job["tls"]["early_data_bytes"] == 1
    assert any(line.startswith("curl --tls-earlydata https://") for line in commands_of(job))
    files = Files(tmp_path / "chain", tmp_path / "key", tmp_path / "root")
    texts = [nginx.configuration(nginx.Settings.of_trial("10.0.0.2", 8443, files, {
        **job["tls"], "early_data_bytes": size}, "1.1"), tmp_path, tmp_path) for size in (0, 1)]
    assert ["ssl_early_data on;" in text for text in texts] == [False, True]


@pytest.mark.parametrize(("lists", "words"), [
    ({"resumed": [0, 1]}, r"early data \(--early-data\) goes with a session that is resumed"),
    ({"server": ["builtin"]}, "needs the server nginx"),
    ({"chain_bytes": [0]}, "early data sent, only with TLS"),
    ({"early_data_bytes": [50]}, "50 bytes are less than curl's request may have: say 1"),
    ({"early_data_bytes": [20_000]}, "out of range"), ({"http": ["2"]}, "with HTTP/1.1 only"),
    ({"system": ["here"]}, "needs Debian 13's programs"),
    ({"tickets": [0]}, "without a ticket")])
def test_what_makes_no_sense_is_refused(lists: dict[str, list[Any]], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        trials(**lists)


@pytest.mark.parametrize("size", [128, 3000, 7100, 14_001, 16_384])
def test_a_request_is_padded_to_the_byte(size: int) -> None:
    """In lines that nginx takes."""
    flags = request.flags("https://10.0.0.2:8443/9000", size)
    assert flags[0] == "--tls-earlydata" and flags[-2] == "--user-agent"
    lines = [f"User-Agent: {flags[-1]}", *(
        after for flag, after in zip(flags, flags[1:]) if flag == "--header")]
    text = "\r\n".join(["GET /9000 HTTP/1.1", "Host: 10.0.0.2:8443", *lines, "Accept: */*",
                        "Connection: close", "", ""])
    assert len(text) == size and max(map(len, lines)) <= 8000
    assert request.flags("https://10.0.0.2:8443/9000", 1) == ["--tls-earlydata"]
