"""Fetches over TLS, with 0-RTT and post-quantum algorithms; nginx, and a user's own server."""

from __future__ import annotations

import json
import os
import ssl
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firstflight.base import files
from firstflight.base.errors import UsageError
from firstflight.base.words import to_cell
from firstflight.net.segments import CaptureError
from firstflight.runs.kinds import Overrides
from firstflight.runs.results.records import SKIPPED
from firstflight.runs.scenario_file import find, parse
from firstflight.setting.server import HERE, NEWER, OWN, OwnServer, parse_own_server
from firstflight.study import registry
from firstflight.study.fetches import KIND
from firstflight.testbed.hosts import tls_records as request
from firstflight.testbed.hosts.certificates import ChainFiles, HostChain
from firstflight.testbed.hosts.tls_records import LEAST_BYTES, SIGNATURE_BYTES
from firstflight.testbed.network.commands import commands_of, curves_of, named_of
from firstflight.testbed.servers import nginx
from firstflight.wire.exchange import read_exchange
from firstflight.wire.messages import Early, Messages, find_early, find_messages, retime
from firstflight.workloads.fetch.figures.swept_bars import counting
from firstflight.workloads.fetch.figures.timelines import by_effect, timelines
from firstflight.workloads.fetch.trial import Trial
from firstflight.workloads.fetch.verify import zero_rtt
from firstflight.workloads.fetch.record.evidence import Evidence
from firstflight.workloads.fetch.record.observed import EXACT
from firstflight.workloads.fetch.record.transfers import computed
from tests.golden import stored
from tests.golden.stored import Packet, read
from vtime import system

NGINX, HTTP_2, PLAIN = map(stored.load, ("nginx", "nginx_http2", "nginx_plain"))


@pytest.mark.parametrize("name", ["https", "https_records", "iw10", "persistent"])
def test_packets_show_the_messages_that_our_server_reports(name: str) -> None:
    """Flight and response begin and end at the reported bytes. Tickets are not compared."""
    ours = stored.load(name)
    record = ours.judge()
    port = ours.observation["server"]["client_port"]
    exchange = read_exchange(ours.client, ours.server, port)
    found = find_messages(exchange, bool(ours.trial.chain_bytes), len(ours.trial.before))
    assert found is not None and found.flight_bytes == (record.flight_bytes or 0)
    reported = ours.observation["server"]
    if "tls" in reported:
        assert found.before_request_bytes == (reported["tls"]["hello_bytes"]
                                              + reported["tls"]["finished_bytes"])
        response_bytes = sum(reported["tls"]["response"])
    else:
        response_bytes = reported["header_bytes"] + reported["body_bytes"]
    assert found.end - found.start == response_bytes
    assert retime(exchange, found).latency_ms == record.wire_latency_ms


def test_a_response_over_http_2_follows_tickets_and_settings() -> None:
    """nginx sends two tickets, its settings and an acknowledgement before the response."""
    port = HTTP_2.observation["server"]["client_port"]
    found = find_messages(read_exchange(HTTP_2.client, HTTP_2.server, port), True)
    assert found is not None and found.flight_bytes == 4373
    assert found.start == 4373 + 271 + 271 + 62 + 31


def test_a_fetch_from_a_missing_server_is_skipped() -> None:
    why = "nginx is missing: ./install.sh --with-nginx brings it"
    record = replace(NGINX, observation={"trial": "x", "skipped": why}).judge()
    assert (record.ok, record.verdict, record.outcome, record.why_not) == (
        True, SKIPPED, "skipped", why)
    assert not record.counts and record.total_ms is None
    values, excluded = counting([record, NGINX.judge()], "total_ms")
    assert len(values) == 1 and str(excluded) == "1 skipped trial"


# A user's own server -----------------------------------------------------------------

COMMAND = {"command": "serve 'a  b' --port={p}"}


def question(own: dict[str, Any], client: str | None = None, **lists: Any) -> Trial:
    (trial,) = registry.own_question("own", Overrides(
        {"initcwnd": [10], **lists}, client=client, own_server=own)).trials
    return trial


def test_a_question_about_ones_own_server_has_its_command_and_paths() -> None:
    trial = question(COMMAND, response_bytes=[20000])
    assert trial.server == OWN and trial.client == "libcurl" and "-own-" in trial.id
    job = trial.job()
    assert job["own"]["command"] == ["serve", "a  b", "--port={p}"]
    assert job["paths"] == ["/20000"] and "tls" not in job
    assert "libcurl http://10.0.0.2:8080/20000" in commands_of(job)
    text = to_cell(trial.own_server)
    assert json.loads(text)["command"] == COMMAND["command"], "a column keeps its blanks"


def test_a_server_with_its_own_certificate_is_fetched_over_https() -> None:
    own = {**COMMAND, "ca": "/c/root.pem", "name": "example.org", "url_path": "/page?x=1",
           "folders": ["/srv/mine"]}
    trial = question(own, response_bytes=[20000], http=["2"])
    job = trial.job()
    assert trial.is_secure and trial.client == "curl" and not trial.chain_bytes
    assert named_of(job) == "example.org:8443:10.0.0.2"
    assert "curl --http2 https://example.org:8443/page?x=1" in commands_of(job)
    assert job["own"]["folders"] == ["/srv/mine"] and job["own"]["ca"] == "/c/root.pem"


def test_a_scenario_is_measured_with_ones_own_server_instead() -> None:
    made = KIND.study(find("zhao2019"), Overrides({"rtt_ms": [20]}, own_server=COMMAND))
    assert {trial.server for trial in made.trials} == {OWN} and not made.whole
    assert all(trial.own_server for trial in made.trials)
    both = KIND.study(find("zhao2019"),
                      Overrides({"server": ["builtin", "own"]}, own_server=COMMAND))
    assert {(trial.server, bool(trial.own_server)) for trial in both.trials} == {
        ("builtin", False), (OWN, True)}


def test_a_repeat_with_other_bytes_than_the_first_is_refused() -> None:
    mine = replace(PLAIN, trial=replace(PLAIN.trial, server=OWN, own_server=json.dumps(COMMAND)))
    assert mine.judge().counts
    assert "as it came at first" in mine.said("server", sha256="0" * 64).judge().error


# How a user's own server is written in a column, and checked --------------------------

@pytest.mark.parametrize("server", [
    OwnServer("serve  --root  'a  b'"), OwnServer("serve {p}", "/ok", "/page?id=1", "own.pem",
                                                  "example.org", ("here", "/srv"))])
def test_an_own_server_is_read_back_from_its_column(server: OwnServer) -> None:
    assert "  " not in server.text and parse_own_server(server.text) == server


@pytest.mark.parametrize(("server", "key"), [
    (OwnServer("'"), "command"), (OwnServer(" "), "command"),
    (OwnServer("x", url_path="a"), "url_path"),
    (OwnServer("x", ready="a b"), "ready"), (OwnServer("x", name="a_b"), "name")])
def test_an_invalid_server_of_ones_own_is_refused_by_its_key(server: OwnServer, key: str) -> None:
    with pytest.raises(UsageError, match=f"^here: {key}: "):
        server.check("here")


def test_the_job_of_an_own_server_has_the_words_of_its_command_and_absolute_paths() -> None:
    job = OwnServer("serve 'a b' {p}", ca="own.pem", folders=("here", "/srv")).job()
    assert job == {"command": ["serve", "a b", "{p}"], "ready": "", "name": "",
                   "ca": os.path.abspath("own.pem"), "folders": [os.path.abspath("here"), "/srv"]}
    assert OwnServer("serve").job()["ca"] == "" and OwnServer("serve").job()["folders"] == []


# HTTPS: its trials, early data, and post-quantum algorithms ---------------------------

GOOD = stored.load("https")


def trials(client: str = "curl", **lists: list[Any]) -> list[Trial]:
    one = {"rtt_ms": [40], "bandwidth_kbps": [2000], "initcwnd": [10], "response_bytes": [60000]}
    return list(KIND.study(find("zhao2019"), Overrides({**one, **lists}, client=client)).trials)


def test_a_slow_link_has_time_for_the_connection_before() -> None:
    """The pause before the second connection is 2 s, ten RTTs, and the time of two chains.

    A chain of 40,000 bytes takes 5 s at 64 kbit/s.
    """
    (trial,) = trials(chain_bytes=[40_000], resumed=[1], rtt_ms=[1000], bandwidth_kbps=[64])
    assert trial.job()["tls"]["apart_s"] == 2 + 10 + 10
    # A minute; 20 RTTs; three times the 17.5 s that the response of 60,000 bytes and both chains
    # take; the 930 s after which TCP gives up, and a timer of 2.4 s for each of 97 segments.
    assert trial.job()["deadline_s"] == pytest.approx(60 + 20 + 3 * 17.5 + 930 + 97 * 2.4)


def test_a_timeline_distinguishes_handshake_tickets_and_data(tmp_path: Path) -> None:
    record = stored.load("https_records").judge()
    for side in ("client", "server"):
        files.save(tmp_path, f"captures/{record.trial.id}-{side}.pcap",
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


def test_a_request_whose_last_segment_waits_for_an_acknowledgement_has_two_round_trips() -> None:
    """The last segment leaves 101.5 ms later here, as if the window had been full."""
    def later(packets: list[Packet]) -> list[Packet]:
        def source_port(packet: Packet) -> int:
            return int.from_bytes(packet.frame[34:36], "big")

        last = next(packet for packet in packets if not packet.to_client
                    and packet.payload_bytes == 680 and source_port(packet) == PORT)
        return [replace(packet, time_ns=packet.time_ns + 101_500_000)
                if packet is last else packet for packet in packets]

    assert EARLY.captured(client=later(read(EARLY.client))).judge().request_round_trips == 2


@pytest.mark.parametrize(("wire_bytes", "round_trips", "holds"), [
    (3022, 1, True), (3021, 1, False), (3023, 1, False), (3021, 2, True), (3022, 2, True),
    (0, 2, False), (3023, 2, False)])
def test_early_data_passes_where_all_of_it_follows_the_hello_or_it_fills_the_window(
        wire_bytes: int, round_trips: int, holds: bool) -> None:
    found = Early(Messages(282, 3576, 282, 9578), wire_bytes, answer_ms=0.0,
                  round_trips=round_trips, segments=3)
    evidence = Evidence(EARLY.trial, EARLY.observation["fetch"], {}, None, EXACT, {}, early=found)
    assert all(comparison.passed for comparison in zero_rtt.compare_early_data(evidence)) == holds


def test_a_trial_with_early_data_runs_in_newer_programs_with_a_server_that_takes_it(
        tmp_path: Any) -> None:
    (trial,) = early_trials()
    assert trial.system == NEWER and "-resumed1-early1-" in trial.id
    job = trial.job()
    assert job["tls"]["early_data_bytes"] == 1
    assert any(line.startswith("curl --tls-earlydata https://") for line in commands_of(job))
    files = ChainFiles(tmp_path / "chain", tmp_path / "key", tmp_path / "root")
    texts = [nginx.configuration(nginx.Settings.of_trial("10.0.0.2", 8443, [HostChain((), files)], {
        **job["tls"], "early_data_bytes": size}, "1.1"), tmp_path, tmp_path) for size in (0, 1)]
    assert ["ssl_early_data on;" in text for text in texts] == [False, True]


@pytest.mark.parametrize("size", [128, 3000, 7100, 14_001, 16_384])
def test_a_request_is_padded_to_the_byte(size: int) -> None:
    """The padding is in header lines that nginx accepts, of 8000 bytes at most."""
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
def test_all_trials_of_a_question_run_in_one_system(lists: dict[str, list[Any]],
                                                    where: str) -> None:
    assert {trial.system for trial in question_trials(**lists)} == {where}


def test_the_job_and_id_of_a_trial_name_its_system_only_where_it_is_not_this_one(
        monkeypatch: pytest.MonkeyPatch) -> None:
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


# Bytes of a flight that OpenSSL 3.5.7 sent in one write with a chain of 20,000 bytes, by key share.
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


# A scenario in which tests replace the word CHAINS.
CHAINS = """# Chains that go together.
title = "t"
source = "s"
[[sweep]]
name = "one"
rtt_ms = [100]
bandwidth_kbps = [1000]
uplink = "same"
queue = 100
loss_percent = 0
response_bytes = [1000]
initcwnd = [10]
congestion_control = ["cubic"]
client = "curl"
repeat = 1
chains = CHAINS
"""


def of_chains(chains: str, **lists: list[Any]) -> list[Trial]:
    file = parse("chains", CHAINS.replace("CHAINS", chains), "it")
    return list(registry.study_of(file, Overrides(lists), 1).trials)


def test_each_chain_of_a_sweep_keeps_its_signature_intermediates_and_size_together() -> None:
    made = of_chains('[["ed25519", 0, 736], ["mldsa44", 2, 12011], ["mldsa44", 0, 3993]]')
    assert [(trial.signature, trial.intermediates, trial.chain_bytes) for trial in made] == [
        ("ed25519", 0, 736), ("mldsa44", 2, 12011), ("mldsa44", 0, 3993)]
    assert {trial.system for trial in made} == {NEWER}, "all of a sweep run in one system"
    by_flag = of_chains('[["ed25519", 0, 736], ["ed25519", 1, 900]]', chain_bytes=[5000])
    assert {(trial.intermediates, trial.chain_bytes) for trial in by_flag} == {
        (0, 5000), (1, 5000)}
