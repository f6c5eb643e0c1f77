"""The receive window that a client offers: at first, what its packets count it in, and later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lab.tcp.packets import SYN, Segment

SYN_MSS = 1460  # what initrwnd is counted in (tcp_select_initial_window)
RECEIVE_BUFFERS = (131072, 6291456)  # tcp_rmem[1], tcp_rmem[2]
MAX_WINDOW_SCALE = 14  # TCP_MAX_WSCALE
LEAST_SCALED_FOR = 4 << 20  # net.core.rmem_max, from Linux 6.18 on; 212992 before


def window_unit(buffers: tuple[int, int]) -> int:
    """Bytes that a client's packets count the window in (tcp_select_initial_window).

    Of older kernels the SYN tells: theirs may be less, by net.core.rmem_max.
    """
    space = max(buffers[0] // 2, buffers[1], LEAST_SCALED_FOR)
    return int(1 << min(space.bit_length() - 16, MAX_WINDOW_SCALE))


def receive_window(initrwnd: int, buffers: tuple[int, int] = RECEIVE_BUFFERS,
                   syn_mss: int = SYN_MSS, unit: int = 0) -> int:
    """Bytes that the client's first acknowledgement offers, for a route's initrwnd.

    unit: that its packets count in; 0 for window_unit's.
    """
    return scaled(first_window(initrwnd, buffers, syn_mss), unit or window_unit(buffers))


def first_window(initrwnd: int, buffers: tuple[int, int], syn_mss: int = SYN_MSS) -> int:
    """Half of the buffer in whole segments, or less by the route."""
    return min(initrwnd, buffers[0] // 2 // syn_mss) * syn_mss


def scaled(window: int, unit: int) -> int:
    """A window as the header can say it, rounded up (__tcp_select_window)."""
    return -(-window // unit) * unit


@dataclass(frozen=True)
class Offered:
    """What a client offered on one connection, as its server saw it.

    least_bytes, most_bytes: of the windows while data was to be sent. waits: how often the server
    had no room for a full segment left in the window, with more to send, until the client
    offered more.
    """

    least_bytes: int
    most_bytes: int
    waits: int


def offered(at_server: Sequence[Segment], scale: int, mss: int) -> Offered | None:
    """The windows of a connection, by the packets at its server; None where none was offered.

    scale: of the client's SYN, bits; mss: bytes of a full segment.
    """
    end = max((segment.end for segment in at_server if segment.to_client
               and segment.payload_bytes), default=0)
    windows, edge, sent, waits = [], 0, 1, 0
    for segment in at_server:
        if segment.to_client:
            sent = max(sent, segment.end)
        elif segment.ack is not None and not segment.flags & SYN and segment.ack < end:
            window = segment.window << scale
            waits += bool(edge and sent < end and edge - sent < mss
                          and segment.ack + window > edge)
            edge = max(edge, segment.ack + window)
            windows.append(window)
    return Offered(min(windows), max(windows), waits) if windows else None
