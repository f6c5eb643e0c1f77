"""HTTPS as a property of a fetch: its trials, its columns, and what its verdict refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firstflight.base.errors import UsageError
from firstflight.runs.kinds import Overrides
from firstflight.runs.results.records import PASS
from firstflight.runs.scenario_file import find
from firstflight.study.fetches.figures.timelines import by_effect, timelines
from firstflight.study.fetches.scenario.trial import Trial
from firstflight.study.fetches.study import KIND
from firstflight.study.fetches.verify.transfers import computed
from firstflight.testbed.network.commands import commands_of
from tests.golden import stored
from tests.unit.fetches.test_verify import fails

GOOD = stored.load("https")


def trials(client: str = "curl", **lists: list[Any]) -> list[Trial]:
    one = {"rtt_ms": [40], "bandwidth_kbps": [2000], "initcwnd": [10], "response_bytes": [60000]}
    return list(KIND.study(find("zhao2019"), Overrides({**one, **lists}, client=client)).trials)


def said_tls(**values: Any) -> stored.Stored:
    return GOOD.said("server", tls={**GOOD.observation["server"]["tls"], **values})


def test_a_handshake_fills_its_columns() -> None:
    record = GOOD.judge()
    assert record.verdict == PASS
    assert record.appconnect_ms == pytest.approx(record.model_appconnect_ms, abs=0.01)
    assert record.first_byte_ms == pytest.approx(record.model_first_byte_ms, abs=0.01)
    assert (record.handshake_round_trips, record.flight_bytes, record.flight_writes,
            record.flight_segments, record.window_after_handshake) == (3, 16364, 3, 12, 15)


def test_a_resumed_session_has_no_chain_in_its_flight() -> None:
    record = stored.load("https_resumed").judge()
    assert record.verdict == PASS and record.limited_by == "handshake's size"
    assert (record.handshake_round_trips, record.flight_bytes) == (1, 241)


@pytest.mark.parametrize(("tampered", "names"), [
    (lambda: GOOD.requested(chain_bytes=0), {"TLS"}),
    (lambda: GOOD.requested(chain_bytes=17000), {"TLS"}), (lambda: GOOD.requested(resumed=1), {"TLS"}),
    (lambda: said_tls(version="TLSv1.2"), {"TLS"}), (lambda: said_tls(resumed=True), {"TLS"})])
def test_another_session_than_asked(tampered: Any, names: set[str]) -> None:
    record = tampered().judge()
    assert not record.counts and not record.ok
    assert {reason.partition(":")[0] for reason in record.error.split("; ")} == names


def test_what_the_server_says_of_its_flight_is_seen_on_the_wire() -> None:
    flight = list(GOOD.observation["server"]["tls"]["flight"])
    fails(said_tls(flight=[flight[0] - 100, *flight[1:]]), "TLS flight")
    fails(said_tls(window=14), "model handshake")
    later_ms = GOOD.observation["fetch"]["first_byte_ms"] + 1.1
    fails(GOOD.said("fetch", first_byte_ms=later_ms), "client times", "model handshake")


def test_a_flight_in_one_write_is_another_one() -> None:
    """12,588 bytes are the most that IW 10 holds in OpenSSL's writes; in one, 364 + 14,116."""
    (trial,) = trials(chain_bytes=[16000], buffer_bytes=[0], tickets=[1], record_bytes=[4096],
                      signature=["rsa2048"], intermediates=[2])
    assert "-chain16000-signaturersa2048-intermediates2-tickets1-record4096-buffer0-" in trial.id
    assert any("16000 bytes with rsa2048, 2 intermediates, 1 tickets; records of 4096" in command
               for command in commands_of(trial.job()))
    assert "curl https://10.0.0.2/60000" in commands_of(trial.job())


def test_a_resumed_session_needs_one_before() -> None:
    (trial,) = trials(chain_bytes=[4000], resumed=[1])
    assert trial.job()["paths"] == ["/1", "/60000"]
    assert trial.job()["tls"]["apart_s"] == 3


def test_a_slow_link_has_time_for_the_connection_before() -> None:
    """Ten RTTs, and the time in which it sends a chain of 40,000 bytes twice: 10 s of 64 kbit/s."""
    (trial,) = trials(chain_bytes=[40_000], resumed=[1], rtt_ms=[1000], bandwidth_kbps=[64])
    assert trial.job()["tls"]["apart_s"] == 2 + 10 + 10
    # A minute, 20 RTTs, and thrice the response of 60,000 bytes and both chains: 17.5 s each.
    assert trial.job()["deadline_s"] == 60 + 20 + 3 * 17.5


@pytest.mark.parametrize(("lists", "client", "words"), [
    ({"chain_bytes": [4000]}, "libcurl", "needs the client curl, not libcurl: use --client curl"),
    ({"chain_bytes": [399]}, "curl", "too small for 1 certificate with ed25519: at least 400"),
    ({"chain_bytes": [2000], "signature": ["rsa2048"], "intermediates": [2]}, "curl",
     "at least 3000"),
    ({"chain_bytes": [4000], "kept": [1]}, "curl", "go with plain HTTP only"),
    ({"resumed": [1]}, "curl", "only with TLS"),
    ({"chain_bytes": [4000], "resumed": [0, 1], "tickets": [0]}, "curl", "without a ticket"),
    ({"chain_bytes": [4000], "signature": ["ed25591"]}, "curl", "did you mean 'ed25519'"),
    ({"chain_bytes": [96001]}, "curl", "it can be 0 to 96000 bytes .OpenSSL's clients")])
def test_what_makes_no_sense_is_refused(lists: dict[str, list[Any]], client: str,
                                        words: str) -> None:
    with pytest.raises(UsageError, match=words):
        trials(client, **lists)


def test_the_smallest_chain_of_its_certificates_is_one() -> None:
    (small,) = trials(chain_bytes=[3000], signature=["rsa2048"], intermediates=[2])
    assert small.chain_bytes == 3000


def test_the_messages_of_a_connection_are_told_apart(tmp_path: Path) -> None:
    record = stored.load("https_records").judge()
    for side in ("client", "server"):
        (tmp_path / f"{record.trial.id}-{side}.pcap").write_bytes(
            (stored.FOLDER / "https_records" / f"{side}.pcap").read_bytes())
    plain = stored.load("iw10").judge()
    assert by_effect([plain, record]) == [record, plain]
    (line,) = timelines([record], tmp_path)
    kinds = [mark.kind for mark in line.marks]
    assert kinds == ["handshake"] * 4 + ["ticket"] + ["data"] * (len(kinds) - 5)
    assert len(kinds) > 20 and "behind a chain of 4000" in line.title


def test_a_staged_response_over_tls_has_no_model() -> None:
    assert GOOD.judge().model_ms is not None
    assert GOOD.requested(gap_ms=80.0).judge().model_ms is None


def test_the_model_follows_the_servers_sysctls() -> None:
    restart, probes = "net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_early_retrans"
    for value, found in (("0", False), ("1", True)):
        assert computed(GOOD.trial, {restart: value}).restart_after_idle is found
    for value, found in (("0", False), ("2", False), ("3", True), ("4", True)):
        assert computed(GOOD.trial, {probes: value}).loss_probes is found
    made = computed(GOOD.trial, {})
    assert made.restart_after_idle and made.loss_probes
    assert not computed(replace(GOOD.trial, loss_probes="off"), {}).loss_probes
