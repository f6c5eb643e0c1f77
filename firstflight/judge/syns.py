"""Checks of the SYNs of a connection: MSS, SACK, time stamps, scale, ECN and window.

Requested settings are compared, and so are those left at Linux's default (wire.offers).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from firstflight.base.comparison import Comparison
from firstflight.judge.shared_evidence import SharedEvidence
from firstflight.model.receiver import enlarge_buffers, first_window, window_unit
from firstflight.net.headers import PUSH, TIMESTAMP_BYTES
from firstflight.net.segments import Segment
from firstflight.setting.setting import LinkSetting
from firstflight.setting.tcp import ETHERNET_MSS, MOST_IN_A_SYN_BYTES, RECEIVE, buffer_sizes
from firstflight.wire.exchange import Exchange
from firstflight.wire.offers import Offer, expected_offer, has_timestamps, offers_of, sysctl

# Up to this receive window shorter segments are not judged: a segment may have at most half of the
# window (tcp_bound_to_half_wnd).
MOST_HALVED_SEGMENTS = 4
_LEAST_JUDGED_SEGMENTS = 12  # with fewer, the share of shorter segments says nothing
_MOST_CUT_SHARE = 0.25  # of segments that are shorter in the midst of a write


def compare_all_syns(evidence: SharedEvidence) -> Iterator[Comparison]:
    """Compare the SYNs of all connections."""
    for connection in evidence.connections:
        yield from compare_syns(evidence.setting, evidence.client_sysctls, evidence.server_sysctls,
                                wire=connection.exchange, has_scale=evidence.is_exact,
                                judges_server=evidence.knows_server,
                                awaited_bytes=connection.awaited_bytes)


def compare_segment_size(evidence: SharedEvidence) -> Iterator[Comparison]:
    """Compare the lengths of a server's segments: none is longer than the MSS, and few are shorter.

    The last segment of a write is shorter, and has the flag PUSH. A segment that fills a window or
    a buffer up is shorter, too: at most 3 % of the segments of random pages and traces. With path
    MTU probing (RFC 4821) a third of all segments are.
    """
    mss = mss_of(evidence.setting, evidence.client_sysctls, evidence.server_sysctls)
    sent: list[Segment] = []
    for connection in evidence.connections:
        sent += [segment for segment in connection.exchange.at_server
                 if segment.to_client and segment.payload_bytes]

    longest = max((segment.payload_bytes for segment in sent), default=0)
    yield Comparison(longest <= mss, f"a segment of {longest} bytes", f"at most {mss}")

    has_enough = len(sent) >= _LEAST_JUDGED_SEGMENTS
    if has_enough and evidence.setting.client_window > MOST_HALVED_SEGMENTS:
        cut = sum(segment.payload_bytes < mss and not segment.flags & PUSH for segment in sent)
        yield Comparison(cut <= _MOST_CUT_SHARE * len(sent), f"{cut} of {len(sent)} segments with"
                         f" less than {mss} bytes in the midst of a write",
                         f"at most {_MOST_CUT_SHARE:.0%}")


def compare_syns(setting: LinkSetting, client: Mapping[str, str], server: Mapping[str, str],
                 wire: Exchange, has_scale: bool, judges_server: bool = True,
                 awaited_bytes: tuple[int, int] = (0, 0)) -> Iterator[Comparison]:
    """Compare each SYN and SYN-ACK that left with what follows from both hosts' settings.

    client, server: the sysctls of each host (TcpParameters.host_settings). has_scale: whether the
    window scale follows from the buffers alone; on other kernels it also follows from
    net.core.rmem_max. judges_server: whether the SYN-ACKs are those of a server that we know.
    awaited_bytes: as in ConnectionEvidence.
    """
    buffers = buffer_sizes(setting.with_buffers(client), RECEIVE)
    asks_ecn = sysctl(client, "ecn") == "1"
    takes_ecn = asks_ecn and sysctl(server, "ecn") in ("1", "2")
    was_repeated = len(wire.syns) + len(wire.syn_acks) > 2

    of_client = expected_offer(client, setting.syn_mss,
                               window_unit(buffers, setting.most_window_bytes), ecn=asks_ecn)
    # A server offers of what it can do only what the client offered.
    able = expected_offer(server, ETHERNET_MSS, window_unit(buffer_sizes(server, RECEIVE)),
                          ecn=takes_ecn)
    of_server = able._replace(sack=able.sack and of_client.sack,
                              timestamps=able.timestamps and of_client.timestamps,
                              scale=None if of_client.scale is None else able.scale)

    def judged_part(offer: Offer) -> Offer:
        return offer if has_scale else offer._replace(scale=None)

    for offered in offers_of(wire.syns, True, asks_ecn, was_repeated=was_repeated):
        yield from judged_part(offered).compare_with(judged_part(of_client), "client")
    if judges_server:
        for offered in offers_of(wire.syn_acks, False, takes_ecn, was_repeated=was_repeated):
            yield from judged_part(offered).compare_with(judged_part(of_server), "server")

    least, most = (_first_window(setting, enlarge_buffers(awaited, buffers))
                   for awaited in awaited_bytes)
    expected = f"{least}" if least == most else f"{least} to {most}"
    for value in dict.fromkeys(segment.window for segment in wire.syns):
        yield Comparison(least <= value <= most, f"client's first window {value}", expected)


def _first_window(setting: LinkSetting, buffers: tuple[int, int]) -> int:
    """The window in the client's SYN, in bytes, since it is never scaled.

    buffers: the initial and the largest size of the client's receive buffer.
    """
    window = first_window(setting.client_window, buffers, setting.syn_mss)
    if most := setting.most_window_bytes:
        window = min(window, most // setting.syn_mss * setting.syn_mss or most)
    return min(window, MOST_IN_A_SYN_BYTES)


def mss_of(setting: LinkSetting, *hosts: Mapping[str, str]) -> int:
    """How many bytes of data a full segment has.

    It has more without time stamps, which only both hosts together can use. hosts: the sysctls of
    each host.
    """
    if all(map(has_timestamps, hosts)):
        return setting.mss
    return setting.mss + TIMESTAMP_BYTES
