"""TCP's buffers: with which of them no first flight is limited."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lab.fetches.trial import Trial
from lab.tcp.offered import RECEIVE_BUFFERS, SYN_MSS, receive_window
from lab.tcp.packets import MSS
from lab.tcp.writer import BUFFER_PER_SEGMENT, SEND_BUFFERS

RECEIVE, SEND = "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"
_PINNED = {RECEIVE: RECEIVE_BUFFERS, SEND: SEND_BUFFERS}  # engines.kernel.TCP_SYSCTLS
LEAST_SEND_BUFFER = 4608  # SOCK_MIN_SNDBUF
_LEAST_BYTES = 4096  # the first number of either sysctl


def of(sysctls: Mapping[str, str], name: str) -> tuple[int, int]:
    """Bytes at first and at most, by a sysctl or as it is pinned."""
    if name not in sysctls:
        return _PINNED[name]
    _, first, most = map(int, sysctls[name].split())
    return first, most


def locked(asked_bytes: int) -> tuple[int, int]:
    """A send buffer that SO_SNDBUF asks for: twice as much, and it never grows (sk_setsockopt)."""
    taken = max(2 * asked_bytes, LEAST_SEND_BUFFER)
    return taken, taken


def grown(trials: Iterable[Trial]) -> dict[str, str]:
    """The sysctls that trials need beside the pinned ones, {} for most.

    Half of the receive buffer is offered as a window (tcp_select_initial_window),
    one segment of it is kept back (tcp_init_buffer_space). A window that
    initrwnd holds down on purpose asks for no more than that.
    """
    windows = {(trial.initcwnd, trial.initrwnd) for trial in trials}
    offered = max((min(window) for window in windows), default=0)
    sent = max((initcwnd for initcwnd, _ in windows), default=0)
    needed: dict[str, str] = {}
    if receive_window(offered) < offered * MSS:
        needed[RECEIVE] = _setting(2 * SYN_MSS * (offered + 1), RECEIVE_BUFFERS)
    if sent * BUFFER_PER_SEGMENT > SEND_BUFFERS[1]:
        needed[SEND] = f"{_LEAST_BYTES} {SEND_BUFFERS[0]} {sent * BUFFER_PER_SEGMENT}"
    return needed


def _setting(first: int, pinned: tuple[int, int]) -> str:
    return f"{_LEAST_BYTES} {first} {max(first, pinned[1])}"


def window_for(initrwnd: int, windows: Iterable[int], asked: Iterable[int]) -> int:
    """The receive window, segments, where other initial windows are asked than a scenario's own.

    windows: the scenario's. It follows the largest; one that is below the
    scenario's own largest is a limit on purpose and stays.
    """
    return initrwnd if initrwnd < max(windows) else max(initrwnd, *asked)
