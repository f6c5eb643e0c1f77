"""HTTP/3: what its datagrams say, and what its verdict refuses."""

from __future__ import annotations

from typing import Any

import pytest

from base.errors import UsageError
from net.segments import CaptureError
from runs.kinds import Overrides
from runs.results import checks
from runs.results.records import FAIL, PASS
from study import registry
from study.fetches.figures import summary
from study.fetches.scenario.server import NEWER
from study.fetches.scenario.tls import TlsParameters
from study.fetches.verify import quic
from study.fetches.verify.verify import every_check
from testbed.hosts.certificates import Files
from testbed.servers import nginx
from tests.golden import stored
from tests.golden.stored import Packet, Stored, read
from wire import datagrams

GOOD = stored.load("quic")


def changed(side: str, change: Any) -> Stored:
    """As if one capture had held other packets."""
    packets = change(read(getattr(GOOD, side)))
    return GOOD.captured(**{side: packets})


def is_udp(packet: Packet, to_client: bool) -> bool:
    return packet.frame[23] == 17 and packet.to_client == to_client


def last_to_client(packets: list[Packet]) -> Packet:
    return [each for each in packets if is_udp(each, True)][-1]


def later(packets: list[Packet], to_client: bool, ns: int, first: int = 0) -> list[Packet]:
    """Those of one direction, from the first so many on, as if they had come so much later."""
    found, place = [], 0
    for packet in packets:
        moved = is_udp(packet, to_client)
        found.append(Packet(packet.time_ns + ns, packet.frame, packet.wire_bytes)
                     if moved and place >= first else packet)
        place += moved
    return found


def test_the_datagrams_fill_the_record() -> None:
    record = GOOD.judge()
    assert (record.ok, record.verdict, record.verdict_reason) == (True, PASS, "")
    assert (record.unvalidated_bytes, record.allowed_bytes) == (7200, 7200)
    assert record.handshake_round_trips == 2 and record.flight_bytes == 10014
    parts = [part.split("+") for part in record.flight_datagrams.split(", ")]
    assert [sum(map(int, part)) for part in parts] == [7200, 2814]
    assert sum(map(len, parts)) == record.flight_segments
    assert record.seen_rtt_ms == pytest.approx(100, abs=0.01)
    assert record.seen_bandwidth_kbps == pytest.approx(10000, rel=0.001)
    assert record.lost_segments == record.queue_drops == 0
    assert record.seen_initcwnd is record.window_after_handshake is record.model_ms is None


@pytest.mark.parametrize(("tampered", "name"), [
    (lambda: GOOD.requested(rtt_ms=105), "QUIC RTT"),
    (lambda: changed("client", lambda packets: later(packets, True, 4_000_000)), "QUIC RTT"),
    (lambda: GOOD.requested(bandwidth_kbps=11000), "QUIC bandwidth"),
    (lambda: GOOD.requested(chain_bytes=12000), "QUIC flight"),
    (lambda: GOOD.requested(chain_bytes=3000), "QUIC flight"),
    (lambda: changed("client", lambda packets: [
        each for each in packets if each is not last_to_client(packets)]), "QUIC losses"),
    (lambda: changed("server", lambda packets: later(packets, False, 40_000_000, 2)),
     "QUIC amplification")])
def test_what_differs_is_refused(tampered: Any, name: str) -> None:
    """By an estimate in real time, packet by packet in virtual time."""
    record = tampered().judge(exact=False)
    assert record.verdict == FAIL
    assert name in checks.failed_checks(every_check(), record), record.verdict_reason
    exact = checks.failed_checks(every_check(), tampered().judge())
    assert set(exact) == {*({"path"} if name in ESTIMATED or "amplification" in name else ()),
                          *({name} - ESTIMATED)}


ESTIMATED = {"QUIC RTT", "QUIC bandwidth", "QUIC losses"}


def test_what_the_client_lost_is_not_the_servers_loss() -> None:
    sent = [each for each in read(GOOD.client) if is_udp(each, False)]
    kept = [each for each in read(GOOD.server) if each.frame != sent[-1].frame]
    assert len(kept) == len(read(GOOD.server)) - 1
    assert GOOD.captured(server=kept).judge().lost_segments == 0
    assert changed("client", lambda packets: [
        each for each in packets if each is not last_to_client(packets)]).judge().lost_segments == 1


def test_a_capture_without_it_is_refused() -> None:
    record = changed("server", lambda packets: []).judge()
    assert record.verdict == FAIL and record.verdict_reason.startswith("capture: ")
    with pytest.raises(CaptureError, match="no datagram"):
        datagrams.read_datagrams(b"", b"")
    twice = read(GOOD.client)
    with pytest.raises(CaptureError, match="nobody sent"):
        datagrams.read_datagrams(stored.write([*twice, last_to_client(twice).again(10, 1)]), GOOD.server)


def test_each_check_is_told_only_where_it_judged() -> None:
    names = {check.name for check in quic.ON_THE_WIRE}
    told = {row[0]: row for row in checks.table(every_check(), [GOOD.judge(exact=False)]).rows}
    assert names <= told.keys() and all(told[name][2] == 1 for name in names)
    exact = {row[0]: row for row in checks.table(every_check(), [GOOD.judge()]).rows}
    assert exact["path"][2] == 1 and not ESTIMATED & exact.keys()
    assert told["retransmissions"][2] == 0, "TCP's judge nothing of it"
    plain = {row[0] for row in checks.table(every_check(), [stored.load("iw10").judge()]).rows}
    assert not names & plain
    assert "Over QUIC (1) the datagrams" in summary._verified([GOOD.judge()])


@pytest.mark.parametrize(("lists", "words"), [
    ({"server": ["builtin"]}, "speaks HTTP/1.1 only"), ({"chain_bytes": [0]}, "over TLS"),
    ({"system": ["here"]}, "3 needs Debian 13's programs")])
def test_what_makes_no_sense_is_refused(lists: dict[str, list[Any]], words: str) -> None:
    one: dict[str, list[Any]] = {"http": ["3"], "server": ["nginx"], "chain_bytes": [4000]}
    (trial,) = registry.own_question("own", Overrides({**one, "initcwnd": [10]})).trials
    assert trial.system == NEWER and trial.job()["http"] == "3"
    with pytest.raises(UsageError, match=words):
        registry.own_question("own", Overrides({**one, **lists}))


def test_nginx_listens_to_quic_only_where_it_is_asked(tmp_path: Any) -> None:
    tls = TlsParameters(tickets=2, record_bytes=16384).tls_settings(0)
    files = Files(tmp_path / "chain", tmp_path / "key", tmp_path / "root")
    texts = [nginx.configuration(nginx.Settings.of_trial("10.0.0.2", 8443, files, tls, http), tmp_path,
                                 tmp_path) for http in ("2", "3")]
    assert [" quic;" in text for text in texts] == [False, True]
    assert "listen 10.0.0.2:8443 quic;" in texts[1]


def test_a_bandwidth_is_compared_only_where_it_can_be_seen() -> None:
    """Not where jitter spreads what left at once, nor where nothing left at once."""
    assert "QUIC bandwidth" in GOOD.requested(bandwidth_kbps=11000).judge(exact=False).verdict_reason
    assert "QUIC bandwidth" not in GOOD.requested(
        bandwidth_kbps=11000, jitter_ms=5.0).judge(exact=False).verdict_reason

    def apart(packets: list[Packet]) -> list[Packet]:
        return [Packet(packet.time_ns + 2000 * place, packet.frame, packet.wire_bytes)
                for place, packet in enumerate(packets)]
    lonely = GOOD.captured(apart(read(GOOD.client)), apart(read(GOOD.server)))
    record = lonely.requested(bandwidth_kbps=11000).judge(exact=False)
    assert record.seen_bandwidth_kbps is None and record.verdict == PASS


def test_every_check_of_a_fetch_says_what_it_compares() -> None:
    """As the page of a run shows it; a name is one check's alone."""
    assert len({check.name for check in every_check()}) == len(every_check()) > 20
    assert all(len(check.why.split()) > 2 for check in every_check()), [
        (check.name, check.why) for check in every_check()]
