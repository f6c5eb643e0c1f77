"""Runs another server as a program on its host, and samples its TCP connections.

The kernel reports TCP_INFO of the server's sockets by sock_diag (include/uapi/linux/inet_diag.h),
so that the server is not changed. Samples are taken while the client fetches, several in a round
trip; between two packets neither window nor counters change.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from firstflight.net.netlink import attributes
from firstflight.testbed.bench import WorkerError
from firstflight.testbed.hosts.kernel import TcpInfo, is_pacing_limited
from firstflight.testbed.network.kernel import Host
from firstflight.testbed.network.links import SERVER_IP
from firstflight.testbed.network.netlink import Netlink, network_of

READY_S = 20.0  # it has to be ready within this time
LOOK_S = 0.02
TERM_S = 5.0  # from SIGTERM to SIGKILL
LOG_BYTES = 1 << 20  # of the end of a log are kept
_LAST_LINES = 3
PROBE_S = 1.0  # for an answer to a question whether it is ready


class Program:
    """One running server. Raises WorkerError if it does not start, or ends too soon."""

    def __init__(self, name: str, host: Host, command: Sequence[str], log: Path,
                 folder: Path) -> None:
        """name: in messages. log: the file of its output. folder: where it runs."""
        self.name, self.host, self.log = name, host, log
        with log.open("wb") as output:
            self.process = host.popen(
                list(command), cwd=folder, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT)

    def wait_until(self, ready: Callable[[], bool], port: int) -> None:
        """Wait up to READY_S until it is ready. Raises WorkerError with the ports it listens on."""
        deadline = time.monotonic() + READY_S
        while not ready():
            self.check()
            if time.monotonic() > deadline:
                raise WorkerError(f"{self.name} was not ready in {READY_S:g} s:"
                                  f" {self._listens(port)}{self.last_words}")
            time.sleep(LOOK_S)
        self.check()

    def check(self) -> None:
        """Raises WorkerError if it has ended."""
        status = self.process.poll()
        if status is not None:
            how = f"killed by {signal.Signals(-status).name}" if status < 0 else f"status {status}"
            raise WorkerError(f"{self.name} has ended ({how}){self.last_words}")

    def _listens(self, port: int) -> str:
        """The ports on which the host's programs listen, in words."""
        sockets = Sockets(self.host.pid)
        try:
            ports = [number for number in sockets.listening() if number not in (80, 443)]
        finally:
            sockets.close()
        if port in ports:
            return f"it listens on port {port} and does not answer as it should"
        if ports:
            return (f"it listens on port {', '.join(map(str, ports))}, not on {port}, which"
                    " {p} is in its command")
        return f"nothing listens on port {port}"

    @property
    def last_words(self) -> str:
        """The end of its log on one line, or that it wrote nothing, for a message."""
        lines = self.log.read_bytes()[-4096:].decode(errors="replace").strip().splitlines()
        words = " | ".join(line.strip() for line in lines[-_LAST_LINES:])
        return f"; it said: {words}" if words else "; it said nothing"

    def stop(self) -> None:
        """End it by SIGTERM, and the rest of its process group by SIGKILL."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(TERM_S)
            except subprocess.TimeoutExpired:
                pass
        try:  # mnexec made it the leader of a session of its own
            os.killpg(self.process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        self.process.wait()


def takes_connections(host: Host, port: int) -> bool:
    """Whether the host accepts connections to a port, from the host itself."""
    with network_of(host.pid), socket.socket() as probe:
        probe.settimeout(PROBE_S)
        return probe.connect_ex((SERVER_IP, port)) == 0


def answers(host: Host, port: int, path: str, is_secure: bool) -> bool:
    """Whether the server answers a path with status 200 over HTTP/1.1, from its own host."""
    import http.client  # slow, and rarely needed
    import ssl
    with network_of(host.pid):
        probe = socket.socket()
    try:
        probe.settimeout(PROBE_S)
        probe.connect((SERVER_IP, port))
        connection = http.client.HTTPConnection(SERVER_IP, port)
        connection.sock = probe
        if is_secure:  # no certificate is checked: the measured client does that
            connection.sock = ssl._create_unverified_context().wrap_socket(probe)
        connection.request("GET", path, headers={"Connection": "close"})
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        probe.close()


# Its sockets -------------------------------------------------------------------------

SOCK_DIAG = 4  # NETLINK_SOCK_DIAG
_BY_FAMILY = 20
_INFO, _CONTROL, _MEMORY = 2, 4, 7  # INET_DIAG_INFO, INET_DIAG_CONG, INET_DIAG_SKMEMINFO
_EXTENSIONS = sum(1 << number - 1 for number in (_INFO, _CONTROL, _MEMORY))
_SEND_BUFFER_AT = 12  # SK_MEMINFO_SNDBUF, the fourth number
_LISTEN = 1 << 10  # states, by TCP's numbers of them
_OPEN = 0xFFF & ~(_LISTEN | 1 << 3 | 1 << 6 | 1 << 7)  # not SYN_RECV, TIME_WAIT, CLOSE
# struct inet_diag_req_v2: family, protocol, extensions, states, and no socket by name.
_REQUEST = struct.Struct("=BBBxI48x")
_PORTS = struct.Struct(">HH")  # in struct inet_diag_msg, behind which the attributes follow
_MESSAGE_BYTES = 72
_COUNTERS = struct.Struct("=QQ")  # tcpi_bytes_acked, tcpi_bytes_received
_COUNTERS_AT = 120


class SocketSample(NamedTuple):
    """The state of one connection: bytes since its beginning, windows in segments."""

    client_port: int
    acknowledged_bytes: int
    received_bytes: int
    congestion_window: int
    mss: int
    min_rtt_us: int
    congestion_control: str
    send_buffer_bytes: int
    pacing_bytes_per_s: int
    is_pacing_limited: bool


class Sockets:
    """The TCP sockets of one host. Closed by `close`."""

    def __init__(self, pid: int) -> None:
        """pid: a process in the host's namespace. Raises OSError; needs CAP_SYS_ADMIN."""
        self.netlink = Netlink(pid, SOCK_DIAG)

    def close(self) -> None:
        self.netlink.close()

    def listening(self) -> list[int]:
        """The ports with a listening socket. Raises RequestRefused, OSError."""
        return sorted({_PORTS.unpack_from(answer, 4)[0] for answer in self._answers(_LISTEN)})

    def open(self, port: int, known: Container[int] = ()) -> list[SocketSample]:
        """The connections of a server's port, without those from a known port of the client.

        Raises RequestRefused, OSError.
        """
        found = []
        for answer in self._answers(_OPEN):
            server_port, client_port = _PORTS.unpack_from(answer, 4)
            if server_port == port and client_port not in known:
                found.append(_sample(answer))
        return found

    def _answers(self, states: int) -> list[bytes]:
        """The kernel's answers for IPv4 and for IPv6: a server may listen to both."""
        answers = []
        for family in (socket.AF_INET, socket.AF_INET6):
            request = _REQUEST.pack(family, socket.IPPROTO_TCP, _EXTENSIONS, states)
            answers += self.netlink.ask([], _BY_FAMILY, request)
        return answers


def _sample(answer: bytes) -> SocketSample:
    _, client_port = _PORTS.unpack_from(answer, 4)
    held = attributes(answer[_MESSAGE_BYTES:])
    raw_info = held.get(_INFO, b"").ljust(_COUNTERS_AT + _COUNTERS.size, b"\0")
    info = TcpInfo.read(raw_info)
    acknowledged_bytes, received_bytes = _COUNTERS.unpack_from(raw_info, _COUNTERS_AT)
    congestion_control = held.get(_CONTROL, b"").split(b"\0")[0]
    send_buffer = held.get(_MEMORY, b"")[_SEND_BUFFER_AT:][:4]
    return SocketSample(
        client_port, acknowledged_bytes, received_bytes,
        congestion_window=info.congestion_window, mss=info.mss, min_rtt_us=info.min_rtt_us,
        congestion_control=congestion_control.decode("ascii", "replace"),
        send_buffer_bytes=int.from_bytes(send_buffer, sys.byteorder),
        pacing_bytes_per_s=info.pacing_rate, is_pacing_limited=is_pacing_limited(info))


@dataclass
class Watch:
    """The samples of a port's connections; one that equals the last is not stored."""

    sockets: Sockets
    port: int
    every_s: float  # time between two looks
    until_bytes: int  # sampling ends once so many are acknowledged on a connection
    # One sample of each connection, which is enough for its initial window: a page may have a
    # thousand connections.
    first_only: bool = False
    # How many there will be, 0 for unknown. Once each has a sample, a look asks the kernel nothing,
    # which spares processor time; it still wakes, so that packets leave on the same nanosecond.
    connections: int = 0

    def __post_init__(self) -> None:
        self.samples: list[SocketSample] = []
        self.last: dict[int, SocketSample] = {}

    def look(self) -> float | None:
        """Take samples; return the seconds until the next look, None for no more."""
        if 0 < self.connections <= len(self.last):
            return self.every_s
        samples = self.sockets.open(self.port, self.last if self.first_only else ())
        for sample in samples:
            if self.last.get(sample.client_port) != sample:
                self.samples.append(sample)
                self.last[sample.client_port] = sample
        done = any(sample.acknowledged_bytes > self.until_bytes for sample in samples)
        return None if done else self.every_s

    def of_client(self, client_port: int) -> list[SocketSample]:
        """The samples of one client's connection, in order of time."""
        return [sample for sample in self.samples if sample.client_port == client_port]
