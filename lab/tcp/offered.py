"""The receive window that a client offers first, and what its packets count it in."""

from __future__ import annotations

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
