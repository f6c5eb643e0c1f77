"""What is computed of a trial that nobody has measured is what the guest's kernel was given."""

from __future__ import annotations

import ssl
from dataclasses import replace
from typing import Any

import pytest

from firstflight.study.fetches.verify import transfers
from firstflight.study.fetches.verify.evidence import Evidence
from firstflight.study.fetches.verify.observed import EXACT
from firstflight.study.fetches.verify.transfers import computed
from firstflight.wire.exchange import read_exchange
from tests.golden import stored

PLAIN = ("fin_probe", "full_queue", "iw10", "long_rtt", "receive_window")
SECURED = {"https": (3, 0), "https_records": (3, 0), "mldsa": (3, 5)}


@pytest.mark.parametrize("name", PLAIN)
def test_a_plain_transfer_has_the_bytes_that_were_sent(name: str) -> None:
    trial, record = stored.load(name), stored.load(name).judge()
    made = computed(trial.trial, {})
    assert made.request_bytes == record.request_bytes
    assert made.response_bytes == (record.header_bytes or 0) + trial.trial.response_bytes
    assert made.secure is None and made.writes == ()


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
    assert made.request_bytes == (record.request_bytes or 0) + 22


# What the model does not follow ----------------------------------------------------------

def evidence(sysctls: dict[str, str] | None = None, **trial: Any) -> Evidence:
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
    {"framing": "close"}, {"sysctls": {"net.ipv4.tcp_sack": "0"}}])
def test_what_the_model_does_not_follow_it_does_not_judge(requested: dict[str, Any]) -> None:
    """Each alone is enough."""
    seen = evidence(**requested)
    assert not seen.is_modelled and seen.model_ms is None
    assert seen.compare_total() == seen.compare_latency() == [] and not seen.model_retransmissions


@pytest.mark.parametrize("requested, most", [
    ({}, 108_601_447), ({"mss": 100}, 7_500_099), ({"kept": 99}, 1_086_014)])
def test_it_follows_so_many_segments_of_all_responses(requested: dict[str, int], most: int) -> None:
    assert evidence(**requested, response_bytes=most).is_modelled
    assert not evidence(**requested, response_bytes=most + 1).is_modelled


@pytest.mark.parametrize("requested", [
    {}, {"congestion_control": "reno"}, {"kept": 1}, {"gap_ms": 5.0},
    {"mss": 536}, {"kept": 5}, {"idle_ms": 5.0, "kept": 2}, {"chain_bytes": 4000},
    {"sysctls": {"net.ipv4.tcp_slow_start_after_idle": "0"}}])
def test_what_it_follows_it_judges(requested: dict[str, Any]) -> None:
    assert evidence(**requested).is_modelled
    assert evidence().model_ms == pytest.approx(evidence().fetch["total_ms"], abs=0.025)


def test_what_was_fetched_before_is_the_models_too() -> None:
    requested = evidence(kept=3, idle_ms=250.0).transfer
    size = 9000 + stored.load("iw10").observation["server"]["header_bytes"]
    assert (requested.earlier_count, requested.earlier_bytes, requested.idle_ms) == (3, size, 250.0)
    once = evidence(earlier_bytes=500).transfer
    assert (once.earlier_count, once.earlier_bytes) == (1, 500 + size - 9000 - 1)
