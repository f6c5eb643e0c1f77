"""Tampered traces on random networks, each with the check that refuses it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from firstflight.net.pcap import HEADER
from firstflight.runs import scenario_file
from firstflight.runs.kinds import NOTHING
from firstflight.runs.results import checks
from firstflight.runs.results.records import PASS
from firstflight.study.traces import KIND
from firstflight.workloads.trace.record import TraceRecord
from firstflight.workloads.trace.trial import TraceTrial
from firstflight.workloads.trace.verify import judge_trace
from tests.golden.stored import Packet, read, write
from tests.golden.stored_trace import FOLDER, Observed, changed, seen, window_text

CHANCE = FOLDER / "chance"  # the stored run
SEED = 4  # of the stored run
OBSERVED = json.loads((CHANCE / "observed.json").read_text(encoding="utf-8"))
TRIALS = {trial.trace: trial for trial in KIND.study(
    scenario_file.read(FOLDER / "chance.toml"), NOTHING, SEED).trials}
HEADERS_BYTES = 66  # of a segment without data
BURSTS, JITTER, CAKE, FQ = "bursts", "jitter", "cake", "fq"


@dataclass(frozen=True)
class Stored:
    """A stored trace: what was requested, and what was observed of it."""

    trial: TraceTrial
    observed: Observed

    def judge(self, **how: Any) -> TraceRecord:
        return judge_trace(self.trial, self.observed, exact=True, **how)


Change = Callable[[Stored], Stored]


def load(name: str) -> Stored:
    """The stored trace of this name, one of TRIALS."""
    trial = TRIALS[name]
    return Stored(trial, seen(trial, folder=CHANCE, **OBSERVED[trial.id]))


def requested(**changes: Any) -> Change:
    """Other parameters were requested."""
    return lambda stored: replace(stored, trial=replace(stored.trial, **changes))


def reported(side: str, **changes: Any) -> Change:
    """The client reported other values ("fetches"), or the server ("responses")."""
    def change(stored: Stored) -> Stored:
        content = stored.observed.content
        (answer,) = content[side]
        return replace(stored, observed=replace(
            stored.observed, content={**content, side: [{**answer, **changes}]}))
    return change


def dropped(queue: int, random: int) -> Change:
    """Other counts of drops towards the client were reported: by the queue, and at random."""
    def change(stored: Stored) -> Stored:
        content = stored.observed.content
        drops = {**content["drops"], "to_client": {"queue": queue, "random": random}}
        return replace(stored, observed=replace(stored.observed,
                                                content={**content, "drops": drops}))
    return change


def sampled(row: int, column: str, by: int) -> Change:
    """One sample of the window has another value. row: its line, counted from the end below 0."""
    def change(stored: Stored) -> Stored:
        text = window_text(stored.trial.id, CHANCE)
        place = row if row > 0 else len(text.splitlines()) + row
        files = {"window.csv": changed(text, place, column, by).encode()}
        return replace(stored, observed=replace(stored.observed, files=files))
    return change


def optioned(side: str, old: str, new: str, number: int = 1) -> Change:
    """TCP options, in hexadecimal, are replaced in the first number of places of a capture."""
    def change(stored: Stored) -> Stored:
        pcap = getattr(stored.observed, f"{side}_pcap")
        other = pcap.replace(bytes.fromhex(old), bytes.fromhex(new), number)
        assert other != pcap
        return replace(stored, observed=replace(stored.observed, **{f"{side}_pcap": other}))
    return change


def late(number: int, by_ns: int) -> Change:
    """The server's data leaves and arrives by_ns later, from this packet with data on."""
    def change(stored: Stored) -> Stored:
        def identification(packet: Packet) -> bytes:
            return packet.frame[18:20]  # IPv4's, which is the same in both captures

        packets = {side: read(getattr(stored.observed, f"{side}_pcap")[len(HEADER):])
                   for side in ("client", "server")}
        moved = [identification(packet) for packet in packets["server"]
                 if packet.to_client and packet.wire_bytes > HEADERS_BYTES][number:]
        captures = {}
        for side, of_side in packets.items():
            captures[f"{side}_pcap"] = HEADER + write([
                replace(packet, time_ns=packet.time_ns + by_ns)
                if packet.to_client and identification(packet) in moved else packet
                for packet in of_side])
        return replace(stored, observed=replace(stored.observed, **captures))
    return change


# Each: a stored trace, what is wrong with it, the change, and the check that refuses it.
TAMPERINGS: list[tuple[str, str, Change, str]] = [
    (BURSTS, "another seed", requested(seed=1), "path"),
    (BURSTS, "single losses requested", requested(loss_burst=1.0), "path"),
    (BURSTS, "no loss requested", requested(loss_percent=0.0, loss_burst=1.0), "path"),
    (BURSTS, "1 kbit/s more requested", requested(bandwidth_kbps=2001.0), "path"),
    (BURSTS, "a shorter queue requested", requested(queue_packets=2), "path"),
    (BURSTS, "two random drops reported, one happened", dropped(0, 2), "path"),
    (BURSTS, "a drop by the queue reported, one at random happened", dropped(1, 0), "path"),
    (JITTER, "less jitter requested", requested(jitter_ms=1.5), "path"),
    (JITTER, "no jitter requested", requested(jitter_ms=0.0), "path"),
    (JITTER, "another seed", requested(seed=1), "path"),
    (JITTER, "longer segments than in the data requested", requested(mss=1000), "segment size"),
    (JITTER, "longer segments than in the SYN requested", requested(mss=1000), "TCP options"),
    (CAKE, "a fifo requested", requested(qdisc="fifo"), "path"),
    (CAKE, "no drop reported", dropped(0, 0), "path"),
    (CAKE, "an RTT longer by 4 µs requested", requested(rtt_ms=20.004), "path"),
    (CAKE, "another receive window requested", requested(initrwnd=11), "TCP options"),
    (FQ, "a faster uplink requested", requested(uplink_kbps=101.0), "path"),
    *((name, "BBR instead of Reno", reported("responses", congestion_control="bbr"),
       "server's socket") for name in TRIALS),
    *((name, "Nagle's algorithm that nobody requested", reported("responses", has_nagle=True),
       "server's socket") for name in TRIALS),
    *((name, "SO_MAX_PACING_RATE", reported("responses", is_pacing_limited=True), "server's socket")
      for name in TRIALS),
    (FQ, "tcp_reordering", reported("responses", reordering=30), "server's socket"),
    *((name, "another initial window reported", reported("responses", initial_window=9),
       "initial window") for name in TRIALS),
    *((name, "a longer request reported", reported("responses", request_bytes=1329), "requests")
      for name in TRIALS),
    *((name, "a server that pauses 3 ms", late(0, 3_000_000), "causes")
      for name in (BURSTS, JITTER, CAKE, FQ)),
    (CAKE, "a server that pauses 20 µs within its answer", late(9, 20_000), "causes"),
    *((name, "another digest of the response", reported("fetches", sha256="0" * 64), "digest")
      for name in TRIALS),
    *((name, "another size of the response", reported("fetches", size=9), "size")
      for name in TRIALS),
    *((name, "no SACK in the client's capture", optioned("client", "0402", "0101"), "TCP options")
      for name in TRIALS),
    *((name, "no SACK requested by a sysctl", requested(
        sysctls="net.ipv4.tcp_sack=0"), "TCP options") for name in TRIALS),
    # The rules judge before the first loss, and again once the window has been full.
    (BURSTS, "a larger window before the loss", sampled(2, "cwnd", 1), "window"),
    (BURSTS, "a larger window at the end", sampled(-1, "cwnd", 1), "window"),
    (JITTER, "another threshold before the disorder", sampled(2, "ssthresh", -1), "window"),
]
# Changes that no rule judges. They are counted as unjudged.
UNJUDGED: list[tuple[str, str, Change]] = [
    (FQ, "a window of a sender that paces", sampled(4, "cwnd", 1)),
    (JITTER, "a window in a recovery", sampled(12, "cwnd", 1)),
]


@pytest.mark.parametrize("name", TRIALS)
def test_a_stored_trace_on_a_random_network_passes(name: str) -> None:
    record = load(name).judge()
    assert (record.ok, record.verdict, record.verdict_reason) == (True, PASS, "")
    assert record.judged_by == "path"
    assert (record.rule_checked or 0) + (record.rule_unjudged or 0) == record.samples


@pytest.mark.parametrize(("name", "what", "change", "check"), TAMPERINGS,
                         ids=[f"{name}: {what}" for name, what, _, _ in TAMPERINGS])
def test_a_tampered_trace_is_refused_by_its_check(name: str, what: str, change: Change,
                                                  check: str) -> None:
    assert check in checks.failed_checks(change(load(name)).judge()), what


@pytest.mark.parametrize(("name", "what", "change"), UNJUDGED)
def test_a_sample_that_no_rule_judges_is_counted_and_passes(name: str, what: str,
                                                            change: Change) -> None:
    before, after = load(name).judge(), change(load(name)).judge()
    assert before.rule_unjudged and after.verdict == PASS, what
    assert after.rule_unjudged == before.rule_unjudged and not after.rule_wrong


@pytest.mark.parametrize("name", [BURSTS, JITTER, CAKE])
def test_the_rules_judge_nothing_of_an_unknown_kernel(name: str) -> None:
    tampered = sampled(2, "cwnd", 1)(load(name))
    record = tampered.judge(known_kernel=False)
    assert tampered.judge().rule_wrong and record.verdict == PASS
    assert (record.rule_checked, record.rule_wrong) == (0, 0)
    assert record.rule_unjudged == record.samples and record.judged_restarts == 0


def test_a_sysctl_of_both_hosts_that_the_syns_lack_is_refused() -> None:
    """The scenario has no SACK, and the SYNs of the capture have it."""
    record = load(BURSTS).judge(sysctls={"net.ipv4.tcp_sack": "0"})
    assert "client's sack True, expected False" in record.verdict_reason
    assert "server's sack True, expected False" in record.verdict_reason
    # A server does not offer what its client did not.
    offering = requested(sysctls="net.ipv4.tcp_sack=1")(load(BURSTS))
    reason = offering.judge(sysctls={"net.ipv4.tcp_sack": "0"}).verdict_reason
    assert "server's sack True, expected False" in reason


@pytest.mark.parametrize("how", ["by the scenario", "by the trial"])
def test_rules_do_not_judge_a_setting_that_they_do_not_follow(how: str) -> None:
    stored, setting = load(BURSTS), {"net.ipv4.tcp_min_tso_segs": "1"}
    record = (stored.judge(sysctls=setting) if how == "by the scenario" else
              requested(sysctl="net.ipv4.tcp_min_tso_segs=1")(stored).judge())
    assert stored.judge().rule_checked and (record.verdict, record.rule_checked) == (PASS, 0)
    assert record.rule_unjudged == record.samples
