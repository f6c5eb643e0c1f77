"""HTTPS as a property of a fetch: its trials, early data, and post-quantum algorithms.

What its verdict refuses stands in test_tamperings.py; what it measures in golden/rendered.
"""

from __future__ import annotations

import ssl
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firstflight.net.segments import CaptureError
from firstflight.runs.kinds import Overrides
from firstflight.runs.results.records import SKIPPED
from firstflight.runs.scenario_file import find, parsed
from firstflight.study import registry
from firstflight.study.fetches.figures.timelines import by_effect, timelines
from firstflight.study.fetches.scenario.server import HERE, NEWER
from firstflight.study.fetches.scenario.trial import Trial
from firstflight.study.fetches.study import KIND
from firstflight.study.fetches.verify import zero_rtt
from firstflight.study.fetches.verify.evidence import Evidence
from firstflight.study.fetches.verify.observed import EXACT
from firstflight.study.fetches.verify.transfers import computed
from firstflight.testbed.hosts import tls_records as request
from firstflight.testbed.hosts.certificates import ChainFiles
from firstflight.testbed.hosts.tls_records import LEAST_BYTES, SIGNATURE_BYTES
from firstflight.testbed.network.commands import commands_of, curves_of
from firstflight.testbed.servers import nginx
from firstflight.wire.exchange import read_exchange
from firstflight.wire.messages import Early, Messages, find_early
from tests.golden import stored
from tests.golden.stored import Packet, read
from vtime import system

GOOD = stored.load("https")


def trials(client: str = "curl", **lists: list[Any]) -> list[Trial]:
    one = {"rtt_ms": [40], "bandwidth_kbps": [2000], "initcwnd": [10], "response_bytes": [60000]}
    return list(KIND.study(find("zhao2019"), Overrides({**one, **lists}, client=client)).trials)


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


def test_the_model_follows_the_servers_sysctls() -> None:
    restart, probes = "net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_early_retrans"
    for value, found in (("0", False), ("1", True)):
        assert computed(GOOD.trial, {restart: value}).restart_after_idle is found
    for value, found in (("0", False), ("2", False), ("3", True), ("4", True)):
        assert computed(GOOD.trial, {probes: value}).loss_probes is found
    made = computed(GOOD.trial, {})
    assert made.restart_after_idle and made.loss_probes
    assert not computed(replace(GOOD.trial, loss_probes="off"), {}).loss_probes


# 0-RTT --------------------------------------------------------------------------------

EARLY = stored.load("nginx_early")
PORT = EARLY.observation["fetch"]["port"]
WITH_FLAGS: dict[str, list[Any]] = {"chain_bytes": [4000], "server": ["nginx"], "resumed": [1],
                               "early_data_bytes": [1], "initcwnd": [10]}


def early_trials(**lists: Any) -> tuple[Trial, ...]:
    return tuple(registry.own_question("own", Overrides({**WITH_FLAGS, **lists})).trials)


def test_early_data_is_found_behind_the_hello_and_answered_at_once() -> None:
    found = find_early(read_exchange(EARLY.client, EARLY.server, PORT), EARLY.client, 3022)
    assert found.wire_bytes == 3022 and found.answer_ms < 0.01
    assert found.messages.before_request_bytes == 548 + 6 + 3022 and found.messages.start == 282


def test_a_capture_without_a_hello_has_no_early_data() -> None:
    exchange = read_exchange(EARLY.client, EARLY.server, PORT)
    with pytest.raises(CaptureError, match="does not begin"):
        find_early(exchange, b"", 3022)


def test_what_leaves_after_an_acknowledgement_is_another_round_trip() -> None:
    """As if the last of the request had waited for the window to open."""
    def later(packets: list[Packet]) -> list[Packet]:
        mine = [each for each in packets if not each.to_client and each.payload_bytes
                and int.from_bytes(each.frame[34:36], "big") == PORT]
        last = next(each for each in mine if each.payload_bytes == 680)
        return [Packet(each.time_ns + 101_500_000, each.frame, each.wire_bytes)
                if each is last else each for each in packets]
    assert EARLY.captured(client=later(read(EARLY.client))).judge().request_round_trips == 2


@pytest.mark.parametrize(("wire_bytes", "round_trips", "holds"), [
    (3022, 1, True), (3021, 1, False), (3023, 1, False), (3021, 2, True), (3022, 2, True),
    (0, 2, False), (3023, 2, False)])
def test_all_of_it_leaves_right_behind_the_hello_or_fills_the_window(
        wire_bytes: int, round_trips: int, holds: bool) -> None:
    found = Early(Messages(282, 3576, 282, 9578), wire_bytes, 0.0, round_trips, 3)
    evidence = Evidence(EARLY.trial, EARLY.observation["fetch"], {}, None, EXACT, {}, early=found)
    assert all(each.passed for each in zero_rtt.compare_early_data(evidence)) == holds


def test_a_trial_with_it_runs_in_newer_programs_with_a_server_that_takes_it(
        tmp_path: Any) -> None:
    (trial,) = early_trials()
    assert trial.system == NEWER and "-resumed1-early1-" in trial.id
    job = trial.job()
    assert job["tls"]["early_data_bytes"] == 1
    assert any(line.startswith("curl --tls-earlydata https://") for line in commands_of(job))
    files = ChainFiles(tmp_path / "chain", tmp_path / "key", tmp_path / "root")
    texts = [nginx.configuration(nginx.Settings.of_trial("10.0.0.2", 8443, files, {
        **job["tls"], "early_data_bytes": size}, "1.1"), tmp_path, tmp_path) for size in (0, 1)]
    assert ["ssl_early_data on;" in text for text in texts] == [False, True]


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


# ML-DSA, SLH-DSA and ML-KEM as properties of a fetch ----------------------------------

NEW = stored.load("mldsa")


def question_trials(**lists: list[Any]) -> list[Trial]:
    one = {"rtt_ms": [100], "initcwnd": [10], "chain_bytes": [20000]}
    return list(registry.own_question("own", Overrides({**one, **lists})).trials)


@pytest.mark.parametrize(("lists", "where"), [
    ({}, HERE), ({"signature": ["rsa2048"]}, HERE), ({"signature": ["mldsa44"]}, NEWER),
    ({"signature": ["ed25519", "mldsa65"]}, NEWER), ({"key_share": ["x25519mlkem768"]}, NEWER),
    ({"signature": ["slhdsa128s"], "intermediates": [1]}, NEWER), ({"system": [NEWER]}, NEWER)])
def test_what_is_compared_runs_in_one_system(lists: dict[str, list[Any]], where: str) -> None:
    assert {trial.system for trial in question_trials(**lists)} == {where}


def test_a_trial_says_its_system_where_it_is_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    (here,), (newer,) = question_trials(), question_trials(
        signature=["mldsa44"], key_share=["x25519mlkem768"])
    assert "system" not in here.job() and system.HERE == HERE
    monkeypatch.setattr(ssl, "OPENSSL_VERSION_INFO", (3, 4, 9, 15, 0))
    assert curves_of(here.job()) == ""
    monkeypatch.setattr(ssl, "OPENSSL_VERSION_INFO", (3, 5, 0, 0, 0))
    assert curves_of(here.job()) == "X25519"
    assert newer.job()["system"] == system.NEWER == NEWER
    assert curves_of(newer.job()) == "X25519MLKEM768"
    assert "-signaturemldsa44-keyx25519mlkem768-debian13-" in newer.id and NEWER not in here.id
    (same,) = question_trials(system=[NEWER])
    assert curves_of(same.job()) == "X25519"


# What OpenSSL 3.5.7 sent of chains of 20,000 bytes, in one write; a client of its own.
@pytest.mark.parametrize(("signature", "x25519", "x25519mlkem768"), [
    ("ed25519", 20408, 21474), ("rsa2048", 20600, 21666), ("mldsa44", 22764, 23830),
    ("mldsa65", 23653, 24719), ("mldsa87", 24971, 26037), ("slhdsa128s", 20408, 21474)])
def test_the_flight_of_a_newer_library_is_known(signature: str, x25519: int,
                                                x25519mlkem768: int) -> None:
    for share, bytes_seen, hello in (("x25519", x25519, 241),
                                     ("x25519mlkem768", x25519mlkem768, 1417)):
        (trial,) = question_trials(signature=[signature], key_share=[share], buffer_bytes=[0],
                          system=[NEWER])
        secure = computed(trial, {}).secure
        assert secure is not None
        assert (secure.flight, secure.hello_bytes) == ((bytes_seen,), hello)


def test_every_signature_has_its_sizes() -> None:
    from firstflight.findings.quantities import QUANTITIES
    known = QUANTITIES["signature"].known  # type: ignore[attr-defined]
    assert set(known) == LEAST_BYTES.keys() == SIGNATURE_BYTES.keys()


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
