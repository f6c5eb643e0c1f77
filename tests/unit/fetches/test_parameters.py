"""Every parameter of a network, a sender or a client reaches trials, jobs and the path."""

from __future__ import annotations

from dataclasses import MISSING, fields, replace
from functools import cache
from typing import Any

import pytest

from firstflight.base.errors import UsageError
from firstflight.findings.quantities import FLAGS, QUANTITIES
from firstflight.parameters import NETWORK, OVERTAKEN, PARAMETERS, PUBLISHED, Parameter, of_subject
from firstflight.runs.kinds import Overrides
from firstflight.runs.results import checks
from firstflight.runs.results.checks import failed_checks
from firstflight.runs.results.records import FAIL, PASS
from firstflight.runs.scenario_file import ScenarioFile, find, parsed
from firstflight.study.fetches.record import Record
from firstflight.study.fetches.scenario.response import segments_at_once
from firstflight.study.fetches.scenario.sweep import queue_of
from firstflight.study.fetches.scenario.trial import Trial
from firstflight.study.fetches.study import KIND
from firstflight.study.fetches.verify.verify import every_check
from firstflight.testbed.network.commands import commands_of
from firstflight.wire.delivery.packet_path import PATH
from tests.golden import stored
from tests.parameters import another

GOOD = stored.load("iw10")
ONE = {"rtt_ms": [40], "bandwidth_kbps": [2000], "initcwnd": [10], "response_bytes": [60000]}


@cache
def asked() -> ScenarioFile:
    """Without axes and figures, which nothing here looks at."""
    return parsed("zhao2019", find("zhao2019").text.partition("[[axis]]")[0])


def trials(client: str = "libcurl", **lists: list[Any]) -> list[Trial]:
    """What zhao2019 asks for with these lists in the place of its own."""
    return list(KIND.study(asked(), Overrides({**ONE, **lists}, client=client)).trials)


def test_a_parameter_is_a_field_of_a_trial_with_its_default() -> None:
    """Only what a trial always has, and what follows from other values, has another one."""
    of_trial = {column.name: column.default for column in fields(Trial)}
    for row in PARAMETERS.values():
        assert row.field in of_trial, f"{row.name} is no field of its subject's class"
        if of_trial[row.field] is not MISSING and not row.follows:
            assert of_trial[row.field] == row.default, row.name
    needed = {name for name, default in of_trial.items() if default is MISSING}
    assert needed - {"scenario", "repeat", "client"} == {
        row.field for row in PARAMETERS.values() if row.required} | {"initrwnd"}


def test_only_what_published_set_ups_did_has_no_flag() -> None:
    without = {name for name in PARAMETERS if name not in FLAGS}
    assert without == {"htb_burst_bytes", *(row.name for row in of_subject(PUBLISHED))}


def test_earlier_responses_and_a_pause_reach_the_client() -> None:
    (trial,) = trials(kept=[2], idle_ms=[1500])
    assert trial.job()["paths"] == ["/60000"] * 3
    assert trial.job()["think_s"] == [0.0, 0.0, 1.5]


@pytest.mark.parametrize(("lists", "more_s"), [
    ({}, 0), ({"rtt_ms": [5000]}, 20 * 4.96), ({"response_bytes": [120_000]}, 0.72),
    ({"bandwidth_kbps": [20]}, 71.28), ({"kept": [2]}, 2 * 0.8 + 2 * 0.72),
    ({"kept": [1], "idle_ms": [1500]}, 0.8 + 0.72 + 1.5), ({"gap_ms": [700]}, 0.7),
    ({"loss_percent": [1]}, 0),
    ({"loss_percent": [1], "loss_burst": [2]}, 930)])
def test_a_client_gives_up_when_no_transfer_could_still_end(lists: dict[str, Any],
                                                            more_s: float) -> None:
    """A minute, 20 RTTs of 40 ms for each response, and thrice the bytes: 0.72 s at 2 Mbit/s."""
    assert trials(**lists)[0].deadline_s == pytest.approx(60 + 0.8 + 0.72 + more_s)


@pytest.mark.parametrize(("length", "packets"), [("1", 1), ("0.01ms", 1), ("0.001bdp", 1),
                                                 ("60ms", 50), ("60.1ms", 51)])
def test_a_queue_in_time_holds_whole_packets(length: str, packets: int) -> None:
    """At 10.092 Mbit/s a full packet, 1514 bytes, takes 1.2 ms."""
    assert queue_of(length, 100.0, 12112 / 1.2)["queue_packets"] == packets


def test_a_shaper_with_a_bucket_lets_the_first_packet_through() -> None:
    """The handshake's RTT is then judged without the time that the SYN-ACK takes at the rate."""
    assert GOOD.judge().seen_rtt_ms == pytest.approx(GOOD.trial.rtt_ms, abs=0.002)
    in_a_bucket = GOOD.requested(qdisc="cake").judge().seen_rtt_ms
    assert in_a_bucket == pytest.approx(GOOD.trial.rtt_ms + 0.592, abs=0.002)  # 74 bytes, 1 Mbit/s


def switched(**switches: Any) -> Trial:
    """The trial of ONE, with what a published set-up did otherwise."""
    (trial,) = trials()
    return replace(trial, **switches)


@pytest.mark.parametrize(("switches", "words"), [
    ({"htb_burst_bytes": 15360}, "htb rate 2000000bit burst 15360b"),
    ({"integer_kbps": 5e5, "bandwidth_kbps": 512.0}, "rate 500000000bit"),
    ({"arp_ms": 940}, "sysctl -w net.ipv4.neigh.client-eth0.retrans_time_ms=940"),
    ({"head": "17+38+2"}, "?head=17,38,2"), ({"nagle": "on"}, "?nagle=1"),
    ({"framing": "close"}, "?until_close=1"),
    ({"loss_probes": "off"}, "sysctl -w net.ipv4.tcp_early_retrans='0'"),
    ({"receive_rules": "linux3", "initrwnd": 45}, "initrwnd 10"),
    ({"acts_as": "3=2,10=7"}, "initcwnd 7"), ({"send_buffer_bytes": 4344}, "?sndbuf=4344")])
def test_what_a_published_set_up_did_is_installed(switches: dict[str, Any], words: str) -> None:
    (plain,), trial = trials(), switched(**switches)
    told, usual = commands_of(trial.job()), commands_of(plain.job())
    assert any(words in command for command in told)
    assert not any(words in command for command in usual) and trial.id != plain.id


def test_whole_megabits_are_as_they_were_asked() -> None:
    assert switched(integer_kbps=5e5, bandwidth_kbps=3000.0).down_kbps == 3000
    assert switched(integer_kbps=5e5, bandwidth_kbps=1999.0).down_kbps == 1000
    assert switched(uplink_kbps=999.0).up_kbps == 999


def test_a_receive_window_that_fits_in_a_syn_does_not_fall_back() -> None:
    assert switched(receive_rules="linux3", initrwnd=44).client_window == 44
    assert switched(initrwnd=45).client_window == 45


@pytest.mark.parametrize(("writes", "total", "nagle", "room", "segments"), [
    ((17, 38, 2), 9057, True, 60000, 8), ((17, 38, 2), 9057, False, 60000, 10),
    ((17,), 17 + 1448, True, 60000, 2), ((17, 170), 42179, True, 14600, 11),
    # A segment leaves where the client has room for all of it.
    ((100,), 5000, False, 1548, 2), ((100,), 5000, False, 1547, 1), ((100,), 5000, False, 99, 0)])
def test_how_many_segments_writes_are(writes: tuple[int, ...], total: int, nagle: bool, room: int,
                                      segments: int) -> None:
    assert segments_at_once(writes, total, 1448, nagle, room) == segments


def test_a_list_of_writes_does_not_end_open() -> None:
    """What else is refused of switches: golden/rendered/quantities.words."""
    with pytest.raises(UsageError, match=r"^here: '17\+' is not a list of write sizes"):
        QUANTITIES["head"].check("17+", "here")


AS_PUBLISHED = stored.load("as_published")


def unconnected(client: bytes = b"", exit_status: int = 7) -> Record:
    trial = AS_PUBLISHED.requested(rtt_ms=3000.0).said("fetch", ok=False, exit_status=exit_status,
                                                   error=f"curl {exit_status}: failed")
    return replace(trial, client=client, server=b"").judge()


def test_a_fetch_that_has_to_fail_passes_only_without_a_packet() -> None:
    record = unconnected()
    assert (record.ok, record.verdict, record.total_ms) == (False, PASS, None)
    assert record.failed_as_expected and not record.counts
    assert record.outcome == "failed as expected" and record.error == "curl 7: failed"
    for wrong, words in ((unconnected(AS_PUBLISHED.client), "packets of IP, expected none"),
                         (unconnected(exit_status=28), "expected that curl cannot connect")):
        assert wrong.verdict == FAIL and words in wrong.verdict_reason
    assert AS_PUBLISHED.requested(rtt_ms=2820.0).trial.cannot_connect is False
    told = {row[0]: row[2:] for row in checks.table(every_check(), [
        unconnected(), unconnected(exit_status=28), AS_PUBLISHED.judge()]).rows}
    assert told["no connection"] == (1, 1, 1)  # passed, failed, not judged
    assert "no connection" not in {row[0] for row in checks.table(
        every_check(), [AS_PUBLISHED.judge()]).rows}


# Jitter is asked for like any parameter of the network, and hides what it has to ------

def test_the_rtt_may_be_four_standard_deviations_off() -> None:
    """In real time. And there is no prediction, nor a bandwidth: jitter spreads the flight."""
    record = GOOD.requested(jitter_ms=1.0, rtt_ms=GOOD.trial.rtt_ms + 6.9).judge(exact=False)
    assert record.verdict == PASS
    assert (record.model_ms, record.model_latency_ms, record.seen_bandwidth_kbps) == (None,) * 3
    assert GOOD.requested(rtt_ms=GOOD.trial.rtt_ms + 6.9).judge(exact=False).verdict == FAIL
    far = GOOD.requested(jitter_ms=1.0, rtt_ms=GOOD.trial.rtt_ms + 7.3).judge(exact=False)
    assert far.verdict == FAIL and far.verdict_reason.startswith("RTT: ")


def test_in_virtual_time_each_packets_delay_follows_from_the_seed() -> None:
    record = GOOD.requested(jitter_ms=1.0, seed=1006759911).judge()
    assert record.verdict == FAIL and record.verdict_reason.startswith("path: ")


def test_packets_may_overtake_each_other() -> None:
    again = stored.sent_again(GOOD, 1, later_ms=30)
    assert again.judge(exact=False).verdict == FAIL
    record = again.requested(jitter_ms=1.0).judge(exact=False)
    assert (record.verdict, record.retransmission_cause) == (PASS, OVERTAKEN)


# Of every parameter of the network ------------------------------------------------------

@pytest.mark.parametrize("row", of_subject(NETWORK), ids=lambda row: row.name)
def test_every_parameter_of_the_network_is_part_of_the_path(row: Parameter) -> None:
    """Else it would not be installed."""
    row = replace(row, quantity=QUANTITIES[row.field])  # a queue's length in packets
    changed = replace(GOOD.trial, **{row.field: another(row, getattr(GOOD.trial, row.field))})
    assert changed.path != GOOD.trial.path, "PathParameters.path has to hand it to Link"


def test_what_cannot_be_computed_is_neither_judged_by_packet_nor_estimated(
        monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = GOOD.requested(rtt_ms=GOOD.trial.rtt_ms + 10)
    assert PATH in GOOD.judge().judged_by.split()
    assert {"path", "model"} <= set(failed_checks(every_check(), wrong.judge()))
    monkeypatch.setattr(Trial, "is_computed", False)
    assert PATH not in GOOD.judge().judged_by.split()
    assert not {"path", "RTT", "bandwidth"} & set(failed_checks(every_check(), wrong.judge()))
