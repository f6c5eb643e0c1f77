"""ML-DSA, SLH-DSA and ML-KEM as properties of a fetch: where they run, their bytes, what is refused."""

from __future__ import annotations

import ssl
from typing import Any

import pytest

from firstflight.base.errors import UsageError
from firstflight.runs.kinds import Overrides
from firstflight.runs.results.records import PASS, SKIPPED
from firstflight.runs.scenario_file import parsed
from firstflight.study import registry
from firstflight.study.fetches.scenario.server import HERE, NEWER
from firstflight.study.fetches.scenario.trial import Trial
from firstflight.study.fetches.verify.transfers import computed
from firstflight.testbed.hosts.tls_records import LEAST_BYTES, SIGNATURE_BYTES
from firstflight.testbed.network.commands import curves_of
from tests.golden import stored
from vtime import system

GOOD = stored.load("https")
NEW = stored.load("mldsa")


def trials(**lists: list[Any]) -> list[Trial]:
    one = {"rtt_ms": [100], "initcwnd": [10], "chain_bytes": [20000]}
    return list(registry.own_question("own", Overrides({**one, **lists})).trials)


@pytest.mark.parametrize(("lists", "where"), [
    ({}, HERE), ({"signature": ["rsa2048"]}, HERE), ({"signature": ["mldsa44"]}, NEWER),
    ({"signature": ["ed25519", "mldsa65"]}, NEWER), ({"key_share": ["x25519mlkem768"]}, NEWER),
    ({"signature": ["slhdsa128s"], "intermediates": [1]}, NEWER), ({"system": [NEWER]}, NEWER)])
def test_what_is_compared_runs_in_one_system(lists: dict[str, list[Any]], where: str) -> None:
    assert {trial.system for trial in trials(**lists)} == {where}


def test_a_trial_says_its_system_where_it_is_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    (here,), (newer,) = trials(), trials(signature=["mldsa44"], key_share=["x25519mlkem768"])
    assert "system" not in here.job() and system.HERE == HERE
    monkeypatch.setattr(ssl, "OPENSSL_VERSION_INFO", (3, 4, 9, 15, 0))
    assert curves_of(here.job()) == ""
    monkeypatch.setattr(ssl, "OPENSSL_VERSION_INFO", (3, 5, 0, 0, 0))
    assert curves_of(here.job()) == "X25519"
    assert newer.job()["system"] == system.NEWER == NEWER
    assert curves_of(newer.job()) == "X25519MLKEM768"
    assert "-signaturemldsa44-keyx25519mlkem768-debian13-" in newer.id and NEWER not in here.id
    (same,) = trials(system=[NEWER])
    assert curves_of(same.job()) == "X25519"


@pytest.mark.parametrize(("lists", "words"), [
    ({"signature": ["mldsa44"], "system": [HERE]}, "mldsa44 needs Debian 13's programs"),
    ({"key_share": ["x25519mlkem768"], "system": [HERE, NEWER]}, "x25519mlkem768 needs Debian"),
    ({"signature": ["mldsa44"], "chain_bytes": [3979]}, "too small for 1 certificate with mldsa44"),
    ({"signature": ["slhdsa128s"], "intermediates": [1], "chain_bytes": [16299]}, "at least 16300"),
    ({"signature": ["mldsa444"]}, "did you mean 'mldsa44'"), ({"system": ["debian14"]}, "debian13")])
def test_what_makes_no_sense_is_refused(lists: dict[str, list[Any]], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        trials(**lists)


# What OpenSSL 3.5.7 sent of chains of 20,000 bytes, in one write; a client of its own.
@pytest.mark.parametrize(("signature", "x25519", "x25519mlkem768"), [
    ("ed25519", 20408, 21474), ("rsa2048", 20600, 21666), ("mldsa44", 22764, 23830),
    ("mldsa65", 23653, 24719), ("mldsa87", 24971, 26037), ("slhdsa128s", 20408, 21474)])
def test_the_flight_of_a_newer_library_is_known(signature: str, x25519: int,
                                                x25519mlkem768: int) -> None:
    for share, bytes_seen, hello in (("x25519", x25519, 241), ("x25519mlkem768", x25519mlkem768, 1417)):
        (trial,) = trials(signature=[signature], key_share=[share], buffer_bytes=[0],
                          system=[NEWER])
        secure = computed(trial, {}).secure
        assert secure is not None
        assert (secure.flight, secure.hello_bytes) == ((bytes_seen,), hello)


def test_every_signature_has_its_sizes() -> None:
    from firstflight.findings.quantities import QUANTITIES
    known = QUANTITIES["signature"].known  # type: ignore[attr-defined]
    assert set(known) == LEAST_BYTES.keys() == SIGNATURE_BYTES.keys()


def test_a_chain_with_ml_dsa_is_verified() -> None:
    record = NEW.judge()
    assert (record.verdict, record.verdict_reason) == (PASS, "")
    assert record.flight_bytes is not None and record.flight_bytes > 8002 + SIGNATURE_BYTES["mldsa44"]
    assert record.appconnect_ms == pytest.approx(record.model_appconnect_ms, abs=0.01)


@pytest.mark.parametrize("tampered", [
    lambda: NEW.requested(key_share="x25519"), lambda: GOOD.requested(key_share="x25519mlkem768"),
    lambda: GOOD.requested(system=NEWER), lambda: NEW.requested(signature="ed25519", chain_bytes=5000),
    lambda: NEW.requested(chain_bytes=12000)])
def test_another_key_exchange_or_library_than_asked(tampered: Any) -> None:
    record = tampered().judge()
    assert not record.ok and record.error.startswith("TLS: ")


def test_a_trial_that_was_skipped_has_neither_failed_nor_counted() -> None:
    record = stored.Stored(NEW.trial, {"trial": NEW.trial.id, "skipped": system.MISSING},
                           b"", b"").judge()
    assert record.ok and record.verdict == SKIPPED and not record.counts
    assert record.outcome == "skipped" and "./install.sh --with-pq" in record.why_not


CHAINS = """# Chains that go together.
title = "t"
source = "s"
[[sweep]]
name = "one"
rtt_ms = [100]
bandwidth_kbps = [1000]
uplink = "same"
queue_packets = 100
loss_percent = 0
response_bytes = [1000]
initcwnd = [10]
congestion_control = ["cubic"]
client = "curl"
repeat = 1
chains = CHAINS
"""


def of_chains(chains: str, **lists: list[Any]) -> list[Trial]:
    file = parsed("chains", CHAINS.replace("CHAINS", chains), "it")
    return list(registry.study_of(file, Overrides(lists), 1).trials)


def test_chains_are_combined_as_they_stand() -> None:
    made = of_chains('[["ed25519", 0, 736], ["mldsa44", 2, 12011], ["mldsa44", 0, 3993]]')
    assert [(each.signature, each.intermediates, each.chain_bytes) for each in made] == [
        ("ed25519", 0, 736), ("mldsa44", 2, 12011), ("mldsa44", 0, 3993)]
    assert {each.system for each in made} == {NEWER}, "all of a sweep in one"
    other = of_chains('[["ed25519", 0, 736], ["ed25519", 1, 900]]', chain_bytes=[5000])
    assert {(each.intermediates, each.chain_bytes) for each in other} == {(0, 5000), (1, 5000)}


@pytest.mark.parametrize(("chains", "words"), [
    ('[["mldsa44", 1, 7959]]', "7959 bytes is too small for 2 certificates with mldsa44"),
    ('[["ed25519", 736]]', "list of .signature, intermediates, chain_bytes"), ("[]", "list of"),
    ('[["ed25518", 0, 736]]', "did you mean 'ed25519'")])
def test_chains_that_cannot_be_are_refused(chains: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        of_chains(chains)
