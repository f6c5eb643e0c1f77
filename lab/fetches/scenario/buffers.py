"""TCP's windows and buffers: a trial has those that its own windows need, whatever else is asked.

Half of a receive buffer is offered as a window (tcp_select_initial_window), and one
segment of it is kept back (tcp_init_buffer_space).
"""

from __future__ import annotations

from collections.abc import Mapping

from lab.tcp.model.receiver import RECEIVE_BUFFERS
from lab.tcp.model.writer import BUFFER_PER_SEGMENT, SEND_BUFFERS

RECEIVE, SEND = "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"
_PINNED = {RECEIVE: RECEIVE_BUFFERS, SEND: SEND_BUFFERS}  # engines.network.kernel.TCP_SYSCTLS
LEAST_SEND_BUFFER = 4608  # SOCK_MIN_SNDBUF
_LEAST_BYTES = 4096  # the first number of either sysctl
# Segments that a client offers unless it is said: more than servers begin with, so that it limits
# none of them, and no more than the pinned tcp_rmem can grow to.
AMPLE_WINDOW = 1000


def limits(sysctls: Mapping[str, str], name: str) -> tuple[int, int]:
    """Bytes at first and at most, by a sysctl or as it is pinned."""
    if name not in sysctls:
        return _PINNED[name]
    _, first, most = map(int, sysctls[name].split())
    return first, most


def locked(asked_bytes: int) -> tuple[int, int]:
    """A send buffer that SO_SNDBUF asks for: twice as much, and it never grows (sk_setsockopt)."""
    taken = max(2 * asked_bytes, LEAST_SEND_BUFFER)
    return taken, taken


def needed(initcwnd: int, initrwnd: int, syn_mss: int) -> dict[str, str]:
    """The sysctls that a trial needs beside the pinned ones, {} for most.

    The client's tcp_rmem follows the trial's receive window, whose bytes are counted in
    syn_mss, and the server's tcp_wmem its initial window.
    """
    found: dict[str, str] = {}
    received, sent = 2 * syn_mss * (initrwnd + 1), BUFFER_PER_SEGMENT * initcwnd
    if initrwnd * syn_mss > RECEIVE_BUFFERS[0] // 2:
        found[RECEIVE] = f"{_LEAST_BYTES} {received} {max(received, RECEIVE_BUFFERS[1])}"
    if sent > SEND_BUFFERS[1]:
        found[SEND] = f"{_LEAST_BYTES} {SEND_BUFFERS[0]} {sent}"
    return found
