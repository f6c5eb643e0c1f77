"""Checks of the SYNs of a connection: MSS, SACK, time stamps, scale, ECN and window.

Requested settings are compared, and so are those left at Linux's default (wire.offers).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from firstflight.base.comparison import Comparison
from firstflight.model.receiver import first_window, window_unit
from firstflight.net.headers import TIMESTAMP_BYTES
from firstflight.setting.server import OWN
from firstflight.setting.setting import Setting
from firstflight.setting.tcp import ETHERNET_MSS, MOST_IN_A_SYN_BYTES, RECEIVE, buffer_sizes
from firstflight.wire.exchange import Exchange
from firstflight.wire.offers import expected_offer, has_timestamps, offers_of, sysctl

NAME = "TCP options"
WHY = "MSS, SACK, time stamps, scale, ECN and window of the SYNs"


def compare_syns(setting: Setting, sysctls: Mapping[str, str], wire: Exchange, has_scale: bool
                 ) -> Iterable[Comparison]:
    """Compare each SYN and SYN-ACK that left, except the SYN-ACKs of a user's own server.

    sysctls: of both hosts (TcpParameters.host_settings). has_scale: whether the scale follows from
    the buffers alone; on other kernels it also follows from net.core.rmem_max.
    """
    receive = buffer_sizes(setting.with_buffers(sysctls), RECEIVE)
    asks = sysctl(sysctls, "ecn") == "1"
    sides = [("client", wire.syns, expected_offer(
        sysctls, setting.syn_mss, window_unit(receive, setting.most_window_bytes), asks))]
    if setting.server != OWN:
        of_server = window_unit(buffer_sizes(sysctls, RECEIVE))
        sides.append(("server", wire.syn_acks, expected_offer(
            sysctls, ETHERNET_MSS, of_server, asks)))
    for side, segments, expected in sides:
        for offered in offers_of(segments, side == "client", asks,
                                 was_repeated=len(wire.syns) + len(wire.syn_acks) > 2):
            if not has_scale:
                offered, expected = (offer._replace(scale=None) for offer in (offered, expected))
            yield from offered.compared(side, expected)
    # The window of a SYN is never scaled.
    window = min(first_window(setting.client_window, receive, setting.syn_mss),
                 MOST_IN_A_SYN_BYTES)
    for value in dict.fromkeys(segment.window for segment in wire.syns):
        yield Comparison(value == window, f"client's first window {value}", f"{window}")


def mss_of(setting: Setting, sysctls: Mapping[str, str]) -> int:
    """The data in a full segment; without time stamps there is room for more."""
    return setting.mss + (0 if has_timestamps(sysctls) else TIMESTAMP_BYTES)
