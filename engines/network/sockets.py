"""What a kernel's TCP knows of the connections of a server that is not ours, by sock_diag.

The socket is the server's and tells its TCP_INFO to whoever asks the kernel
(Documentation/networking, include/uapi/linux/inet_diag.h): nothing of the server's
is touched. Samples are taken while the client fetches, several in a round trip, in
which neither window nor counters change without a packet.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from typing import NamedTuple

from engines.network.netlink import Netlink, attributes
from hosts.kernel import TcpInfo

SOCK_DIAG = 4  # NETLINK_SOCK_DIAG
_BY_FAMILY, _EXTENSION_INFO, _INFO = 20, 1 << 1, 2  # INET_DIAG_INFO is 2
_ESTABLISHED, _LISTEN = 1 << 1, 1 << 10  # states, by TCP's numbers of them
_OPEN = 0xFFF & ~(_LISTEN | 1 << 3 | 1 << 6 | 1 << 7)  # not SYN_RECV, TIME_WAIT, CLOSE
# struct inet_diag_req_v2: family, protocol, extensions, states, and no socket by name.
_REQUEST = struct.Struct("=BBBxI48x")
# struct inet_diag_msg: family, state, …, ports, …; the attributes follow.
_MESSAGE = struct.Struct("=BBBB")
_PORTS = struct.Struct(">HH")
_MESSAGE_BYTES = 72
_COUNTERS = struct.Struct("=QQ")  # tcpi_bytes_acked, tcpi_bytes_received
_COUNTERS_AT = 120


class SocketSample(NamedTuple):
    """What was known of one connection: bytes since its beginning, windows in segments."""

    client_port: int
    acknowledged_bytes: int
    received_bytes: int
    congestion_window: int
    mss: int
    min_rtt_us: int


class Sockets:
    """The TCP sockets of one host. Closed by `close`."""

    def __init__(self, pid: int) -> None:
        """pid: a process in the host's namespace. Raises OSError; needs CAP_SYS_ADMIN."""
        self.netlink = Netlink(pid, SOCK_DIAG)

    def close(self) -> None:
        self.netlink.close()

    def listening(self) -> list[int]:
        """The ports that somebody listens on. Raises Refused, OSError."""
        return sorted({_PORTS.unpack_from(answer, 4)[0] for answer in self._answers(_LISTEN)})

    def open(self, port: int) -> list[SocketSample]:
        """The connections of a server's port. Raises Refused, OSError."""
        return [_sample(answer) for answer in self._answers(_OPEN)
                if _PORTS.unpack_from(answer, 4)[0] == port]

    def _answers(self, states: int) -> list[bytes]:
        """Of IPv4, and of IPv6 where a server listens to both."""
        return [answer for family in (socket.AF_INET, socket.AF_INET6)
                for answer in self.netlink.ask([], _BY_FAMILY, _REQUEST.pack(
                    family, socket.IPPROTO_TCP, _EXTENSION_INFO, states))]


def _sample(answer: bytes) -> SocketSample:
    _, client_port = _PORTS.unpack_from(answer, 4)
    raw = attributes(answer[_MESSAGE_BYTES:]).get(_INFO, b"")
    raw = raw.ljust(_COUNTERS_AT + _COUNTERS.size, b"\0")
    info = TcpInfo.read(raw)
    acknowledged, received = _COUNTERS.unpack_from(raw, _COUNTERS_AT)
    return SocketSample(client_port, acknowledged, received, info.congestion_window, info.mss,
                  info.min_rtt_us)


@dataclass
class Watch:
    """The samples of a port's connections, a new one only where something has changed.

    every_s: how often to look. until_bytes: after so many are acknowledged on one
    connection nothing more is of interest.
    """

    sockets: Sockets
    port: int
    every_s: float
    until_bytes: int

    def __post_init__(self) -> None:
        self.samples: list[SocketSample] = []
        self.last: dict[int, SocketSample] = {}

    def look(self) -> float | None:
        """Take samples; in how many seconds to look again, None for not any more."""
        found = self.sockets.open(self.port)
        for sample in found:
            if self.last.get(sample.client_port) != sample:
                self.samples.append(sample)
                self.last[sample.client_port] = sample
        done = any(sample.acknowledged_bytes > self.until_bytes for sample in found)
        return None if done else self.every_s

    def of(self, client_port: int) -> list[SocketSample]:
        """The samples of one client's connection, in order of time."""
        return [sample for sample in self.samples if sample.client_port == client_port]
