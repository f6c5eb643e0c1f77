"""TCP of a trial: its windows, and the buffers that they need.

A host offers half of its receive buffer as a window (tcp_select_initial_window), less one segment
(tcp_init_buffer_space).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from firstflight.base.quantity import FIXED
from firstflight.net.buffers import BUFFER_PER_SEGMENT, RECEIVE_BUFFERS, SEND_BUFFERS
from firstflight.net.headers import TIMESTAMP_BYTES
from firstflight.net.sysctls import BUFFERS, settings_of
from firstflight.parameters import default
from firstflight.testbed.messages import Job

RECEIVE, SEND = BUFFERS
# The buffers that the testbed sets (testbed.network.tcp_sysctls).
_PINNED = {RECEIVE: RECEIVE_BUFFERS, SEND: SEND_BUFFERS}
# The sysctls that a congestion control needs on both hosts. DCTCP reads the marks of ECN (RFC
# 8257); without ECN Linux takes Reno instead (dctcp_init).
_NEEDED = {"dctcp": {"net.ipv4.tcp_ecn": "1"}}
LEAST_SEND_BUFFER = 4608  # bytes (SOCK_MIN_SNDBUF)
LEAST_CLAMP_BYTES = 1152  # the least window that a socket can ask for (SOCK_MIN_RCVBUF / 2)
_LEAST_BYTES = 4096  # the first number of tcp_rmem and of tcp_wmem
# Segments that a client offers unless requested otherwise: more than servers begin with, so that
# the window limits none of them, and no more than the pinned tcp_rmem can grow to.
AMPLE_WINDOW = 1000
# A client whose window stays offers so many segments more, from its first full segment on until it
# has read (tcp_measure_rcv_mss, tcp_grow_window; NarrowBody of testbed.hosts.http_client).
MOST_BEYOND_FIXED = 2
BY_KERNEL = "kernel"  # the value of window_by where no route sets the initial window
DEFAULT_RECEIVE_WINDOW = 10  # segments (TCP_INIT_DEFAULT_RCVWND)
MOST_IN_A_SYN_BYTES = 65535  # the window of a SYN has 16 bits, and is never scaled
ETHERNET_MSS = 1460  # bytes without time stamps, as tcp_select_initial_window counts


@dataclass(frozen=True, kw_only=True)
class TcpParameters:
    """TCP at server and client.

    initcwnd, initrwnd: route metrics at the server and at the client, in segments.
    rwnd_growth: "fixed" where the client never offers more than initrwnd.
    window_by: "kernel" where the server's route has no initcwnd. Then initcwnd is Linux's own, and
        a kernel that was changed may have another one (seen_initcwnd).
    mss: most data in a segment, as the client requests it.
    kernel: of the guest, by its name (vtime/KERNELS.md). module_parameter: of its modules,
        such as "tcp_cubic.hystart=0", several of them joined by +; or "none".
    sysctl: of both hosts, such as "net.ipv4.tcp_sack=0", several of them joined by +; or "none".

    How published set-ups differ:

    loss_probes: "off" for a server without tail loss probes.
    receive_rules: "linux3" for tcp_select_initial_window of Linux 2.6.39 to 3.x.
    acts_as: initial windows that act as others, such as "10=7,16=8".
    send_buffer_bytes: the server's SO_SNDBUF, 0 where it sets none.
    """

    initcwnd: int
    initrwnd: int
    congestion_control: str
    rwnd_growth: str = default("rwnd_growth")
    window_by: str = default("window_by")
    mss: int = default("mss")
    kernel: str = default("kernel")
    module_parameter: str = default("module_parameter")
    sysctl: str = default("sysctl")
    loss_probes: str = default("loss_probes")
    receive_rules: str = default("receive_rules")
    acts_as: str = default("acts_as")
    send_buffer_bytes: int = default("send_buffer_bytes")

    @property
    def server_window(self) -> int:
        """The initial window of the server's route, in segments."""
        if not self.acts_as:
            return self.initcwnd
        pairs = (pair.split("=") for pair in self.acts_as.split(",") if pair)
        effective = {int(requested): int(acting) for requested, acting in pairs}
        return effective.get(self.initcwnd, self.initcwnd)

    @property
    def route_window(self) -> int:
        """The initcwnd of the server's route, 0 for none."""
        return 0 if self.window_by == BY_KERNEL else self.server_window

    @property
    def client_window(self) -> int:
        """The initial receive window of the client's route, in segments.

        Linux 2.6.39 to 3.x did not cut a window that does not fit in a SYN, but took the default
        instead (tcp_select_initial_window).
        """
        falls_back = (self.receive_rules == "linux3"
                      and self.initrwnd * ETHERNET_MSS > MOST_IN_A_SYN_BYTES)
        return DEFAULT_RECEIVE_WINDOW if falls_back else self.initrwnd

    @property
    def is_bbr(self) -> bool:
        """Whether the server's congestion control is one of BBR's versions."""
        return self.congestion_control.startswith("bbr")

    @property
    def most_window_bytes(self) -> int:
        """The most bytes that the client ever offers; 0 for as many as its buffer allows."""
        return self.client_window * self.syn_mss if self.rwnd_growth == FIXED else 0

    @property
    def syn_mss(self) -> int:
        """The MSS in the client's SYN, which counts the bytes of the time stamps, too."""
        return self.mss + TIMESTAMP_BYTES

    def host_settings(self, sysctls: Mapping[str, str]) -> dict[str, str]:
        """The sysctls of both hosts: a scenario's, as far as this trial does not replace them."""
        return {**sysctls, **self._own_settings}

    @property
    def _own_settings(self) -> dict[str, str]:
        """The sysctls of both hosts that this trial alone has."""
        return {**_NEEDED.get(self.congestion_control, {}), **settings_of(self.sysctl)}

    def with_buffers(self, sysctls: Mapping[str, str]) -> dict[str, str]:
        """The sysctls of both hosts, with larger buffers where this trial needs them.

        tcp_rmem follows the client's receive window, in units of syn_mss. tcp_wmem follows the
        server's initial window. sysctls: a scenario's.
        """
        needed: dict[str, str] = {}
        first_receive, most_receive = RECEIVE_BUFFERS
        # A window that stays needs the segment that is reserved (tcp_init_buffer_space), too.
        segments = self.client_window + (self.rwnd_growth == FIXED)
        if segments * self.syn_mss > first_receive // 2:
            first = 2 * self.syn_mss * (self.client_window + 1)
            needed[RECEIVE] = f"{_LEAST_BYTES} {first} {max(first, most_receive)}"

        first_send, most_send = SEND_BUFFERS
        sent = BUFFER_PER_SEGMENT * self.server_window
        if sent > most_send:
            needed[SEND] = f"{_LEAST_BYTES} {first_send} {sent}"
        return {**needed, **self.host_settings(sysctls)}

    def add_sysctls(self, job: Job) -> None:
        """Add to a job the sysctls that the worker sets for this trial alone, if there are any."""
        own = self._own_settings
        if own:
            job["host_sysctls"] = dict(own)
        grown = {name: value for name, value in self.with_buffers({}).items() if name not in own}
        if grown:
            job["buffers"] = grown


def buffer_sizes(sysctls: Mapping[str, str], name: str) -> tuple[int, int]:
    """A buffer's initial and largest size in bytes, by the given sysctls or the pinned ones."""
    if name not in sysctls:
        return _PINNED[name]
    _, first, most = map(int, sysctls[name].split())
    return first, most


def fixed_send_buffer(requested_bytes: int) -> tuple[int, int]:
    """The initial and the largest size of a buffer that SO_SNDBUF sets: twice the request.

    (sk_setsockopt.)
    """
    size = max(2 * requested_bytes, LEAST_SEND_BUFFER)
    return size, size
