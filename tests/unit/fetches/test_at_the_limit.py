"""What a verdict allows, to the last step: the path, the transfer's integrity, TLS."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from firstflight.base.comparison import Comparison
from firstflight.base.errors import UsageError
from firstflight.findings.difference import Excluded
from firstflight.model.predict import predict
from firstflight.model.receiver import receive_window
from firstflight.runs import scenario_file
from firstflight.study.fetches import reading, study
from firstflight.study.cliff import search
from firstflight.study.compare import Row
from firstflight.study.population import ablation
from firstflight.study.fetches.figures import bars, figure, swept_bars
from firstflight.study.fetches.scenario.server import NEWER, OwnServer, parsed
from firstflight.study.fetches.verify import path
from firstflight.study.fetches.verify.evidence import Evidence
from firstflight.study.fetches.verify.integrity import INTEGRITY
from firstflight.study.fetches.verify.observed import EXACT, REAL_TIME
from firstflight.study.fetches.verify.record import Record
from tests.golden import stored
from tests.golden.stored import Stored
from firstflight.wire.exchange import read_exchange
from tests.transfers import transfer

PLAIN, RESUMED, NEWEST = (stored.load(name) for name in ("iw10", "https_resumed", "mldsa"))


def evidence(of: Stored, **trial: Any) -> Evidence:
    """What both ends said of a stored trial; trial: as if something else had been asked."""
    seen = copy.deepcopy(of.observation)
    return Evidence(replace(of.trial, **trial), seen["fetch"], seen["server"], None, EXACT, {},
                    {"to_client": {"queue": 2, "random": 1}, "to_server": {"queue": 0, "random": 0}})


def agrees(compared: Iterable[Comparison]) -> bool | None:
    """Whether all agree; None where nothing was compared."""
    found = list(compared)
    return all(each.passed for each in found) if found else None


# The path ----------------------------------------------------------------------------

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
    assert agrees(path.compare_bandwidth(evidence(PLAIN, bandwidth_kbps=1000), kbps, took_ms)) is is_near


# Integrity ---------------------------------------------------------------------------

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
def test_a_transfer_is_whole_and_the_one_that_was_asked_for(name: str, said: dict[str, Any],
                                                            is_so: bool | None) -> None:
    seen = evidence(PLAIN)
    seen.fetch.update(said)  # type: ignore[attr-defined]
    assert agrees(CHECKS[name](seen)) is is_so


def test_a_body_is_held_against_what_was_sent_and_what_was_asked() -> None:
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
    (NEWEST, {"library": "OpenSSL 3.5.0"}, {}, True), (NEWEST, {"library": "OpenSSL 4.0"}, {}, True),
    (NEWEST, {"library": "LibreSSL 4.9"}, {}, False),
    (NEWEST, {"resumed": True}, {}, False), (RESUMED, {"resumed": False}, {}, False),
    # A chain of 8002 bytes and at most 4096 with what is around it, and a signature of 2420.
    (NEWEST, {"flight": [8002]}, {}, False), (NEWEST, {"flight": [8000, 3]}, {}, True),
    (NEWEST, {"flight": [8002 + 4096 + 2420]}, {}, True),
    (NEWEST, {"flight": [8002 + 4096 + 2421]}, {}, False),
    (RESUMED, {"flight": [9]}, {}, True)])  # no chain at all
def test_tls_is_as_asked(of: Stored, tls: dict[str, Any] | None, requested: dict[str, Any],
                         is_so: bool) -> None:
    seen = evidence(of, **requested)
    if tls is not None:
        seen.report["tls"].update(tls)
    assert NEWEST.trial.system == NEWER and agrees(CHECKS["TLS"](seen)) is is_so


def test_what_was_to_be_resumed_or_new_is_said() -> None:
    for of, seen_so, asked_so in ((NEWEST, "resumed", "a new session"),
                                  (RESUMED, "a new session", "resumed")):
        seen = evidence(of)
        seen.report["tls"]["resumed"] = not seen.report["tls"]["resumed"]
        (failed,) = (each for each in CHECKS["TLS"](seen) if not each.passed)
        assert (failed.observed, failed.requested) == (seen_so, asked_so)


def test_a_server_that_tells_nothing_of_tls_is_not_judged_by_it() -> None:
    seen = evidence(NEWEST)
    del seen.report["latency_ms"]  # type: ignore[attr-defined]
    assert agrees(CHECKS["TLS"](seen)) is None
    assert EXACT.model_ms is not None and REAL_TIME.model_ms is None


# A server of one's own ---------------------------------------------------------------

@pytest.mark.parametrize("server", [
    OwnServer("serve  --root  'a  b'"), OwnServer("serve {p}", "/ok", "/page?id=1", "own.pem",
                                                  "example.org", ("here", "/srv"))])
def test_what_is_said_of_a_server_is_read_back_from_its_column(server: OwnServer) -> None:
    assert "  " not in server.text and parsed(server.text) == server


@pytest.mark.parametrize(("server", "key"), [
    (OwnServer("'"), "command"), (OwnServer(" "), "command"), (OwnServer("x", url_path="a"), "url_path"),
    (OwnServer("x", ready="a b"), "ready"), (OwnServer("x", name="a_b"), "name")])
def test_what_makes_no_sense_is_refused_by_its_key(server: OwnServer, key: str) -> None:
    with pytest.raises(UsageError, match=f"^here: {key}: "):
        server.check("here")


def test_a_worker_gets_words_and_whole_paths() -> None:
    job = OwnServer("serve 'a b' {p}", ca="own.pem", folders=("here", "/srv")).job()
    assert job == {"command": ["serve", "a b", "{p}"], "ready": "", "name": "",
                   "ca": os.path.abspath("own.pem"), "folders": [os.path.abspath("here"), "/srv"]}
    assert OwnServer("serve").job()["ca"] == "" and OwnServer("serve").job()["folders"] == []


# What the model adds -----------------------------------------------------------------

def test_wget_counts_what_was_fetched_before() -> None:
    """It tells no times of its own: its total is its process's."""
    kept = predict(transfer(rtt_ms=100, bandwidth_kbps=10_000, uplink_kbps=10_000, initcwnd=10,
                            initrwnd=64, response_bytes=5000, request_bytes=90,
                            earlier_bytes=9000, earlier_request_bytes=90))
    assert kept.started_ms > 150  # a handshake, and a response before
    assert evidence(PLAIN)._total_ms(kept) == kept.total_ms
    assert evidence(PLAIN, client="wget")._total_ms(kept) == kept.total_ms + kept.started_ms


@pytest.mark.parametrize(("least", "limit"), [(1, 14_419), (14_419, 14_419), (14_420, None)])
def test_the_models_cliff_is_ten_segments_less_the_head(least: int, limit: int | None) -> None:
    """14,480 bytes, of which the head takes 61; none where the range begins beyond."""
    assert search._model_limit(search.WHATS[search.RESPONSE], PLAIN.trial, least, {}) == limit


@pytest.mark.parametrize(("trial", "bodies", "requests"), [
    ({"kept": 2}, 9000 + 60, 95), ({"earlier_bytes": 90_000}, 90_000 + 60 + 1, 95 + 1),
    ({"earlier_bytes": 90}, 90 + 60 - 2, 95 - 2), ({}, 0, 0),
    ({"earlier_bytes": 9001, "gap_ms": 80.0, "burst_bytes": 1448}, 9001 + 60,
     95 - len("?burst=1448&gap_ms=80"))])
def test_what_came_before_has_the_same_head_but_for_its_size(trial: dict[str, Any], bodies: int,
                                                             requests: int) -> None:
    """A response of 9000 bytes behind a head of 60, asked for with 95."""
    requested = evidence(PLAIN, **trial).transfer
    assert (requested.earlier_bytes, requested.earlier_request_bytes) == (bodies, requests)


def test_a_cells_weight_is_shared_by_its_repeats() -> None:
    cells = [swept_bars.CellRows(1.0, [Row(None, 3, unit, 1.0, value) for unit, value in
                                   enumerate(values)], Excluded(), lossless=True)
             for values in ([1.0, 2.0], [4.0])]
    sample = swept_bars._sample(3, [(cell, 0.5) for cell in cells])
    assert (sample.name, sample.values, sample.weights) == (
        "IW 3", [1.0, 2.0, 4.0], [0.25, 0.25, 0.5])


@pytest.mark.parametrize(("seen", "said"), [
    ({"queue_drops": 1, "random_drops": 1}, "the larger flight overflowed the queue"),
    ({"random_drops": 1}, "random loss took other packets"),
    ({"lost_segments": 1}, "random loss took other packets"),
    ({"retransmissions": 1}, "the larger flight took longer than the retransmission timer"),
    ({}, "its last acknowledgement waited for the client's timer")])
def test_why_a_larger_window_makes_a_response_slower(seen: dict[str, int], said: str) -> None:
    assert ablation.why(Record(PLAIN.trial, True, **seen)) == said  # type: ignore[arg-type]


@pytest.mark.parametrize(("beyond", "segments"), [(0, 6), (-1, 5), (1, 5)])
def test_a_part_of_a_segment_fills_the_receive_window_up(beyond: int, segments: int) -> None:
    """Of 17 bytes and four full segments; then what is left of the room, to the byte."""
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


@pytest.mark.parametrize(("weights", "published", "over"), [
    ("", "", ""), ("joint", "", "the joint distribution of RTT and bandwidth"),
    ("response_bytes", "", "response sizes by the paper's shares"),
    ("bdp_bytes", "", "bandwidth-delay products by the paper's shares"),
    ("rtt_ms", "paper_figure5.csv", "RTT by the paper's shares"),
    ("bandwidth_kbps", "theirs.csv", "bandwidth by its shares")])
def test_what_bars_are_averaged_over_is_said(weights: str, published: str, over: str) -> None:
    (drawn, *_) = reading.read_scenario(scenario_file.find("zhao2019")).figures
    assert bars.averaged(replace(drawn, weights=weights, published=published)) == over


def test_who_answered_stands_in_a_figures_context() -> None:
    """Nobody, where it was our own server over HTTP/1.1 alone."""
    def told(*of: tuple[str, str]) -> str:
        return figure.heading([Record(replace(PLAIN.trial, server=server, http=http), True,
                                      verdict="pass") for server, http in of])[0]

    start, rest = "real Linux TCP", ": RTT 100 ms, BW 1 Mbit/s, size 9 kB, IW 10 segments"
    assert told(("builtin", "1.1")) == f"{start}{rest}"
    assert told(("nginx", "1.1")) == f"{start}; server: nginx{rest}"
    assert told(("builtin", "1.1"), ("own", "2")) == (
        f"{start}; servers: server.py, one's own (HTTP/2){rest}")


# Samples -----------------------------------------------------------------------------

def test_a_scenario_of_sweeps_has_no_large_sample() -> None:
    with pytest.raises(UsageError, match="--sample: it has no large sample"):
        study.in_full(reading.read_scenario(scenario_file.find("zhao2019")))
