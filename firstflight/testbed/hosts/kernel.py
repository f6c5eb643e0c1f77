"""Reads the state of a TCP connection from the kernel: TCP_INFO, samples of it, time stamps."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

# The fields of TcpInfo in struct tcp_info, each padded (x) up to the next; the offsets below.
_LAYOUT = struct.Struct("=xB5xB I4xI4xIIII 28x I4xII 4xI8x I QQ 24x II 48x QQ 12x I")
#                         1   7 8  16  24..36   68  76,80  100,104,112 144,148 200,208 228
UNLIMITED_RATE = 2**64 - 1


class TcpInfo(NamedTuple):
    """Fields of struct tcp_info (include/uapi/linux/tcp.h), 0 if a kernel lacks one.

    Windows and counts are in segments unless the name ends in bytes; times are in microseconds.
    """

    congestion_state: int  # TCP_CA_Open (0) … TCP_CA_Loss (4)
    flags: int  # bit 0: limited by the application (tcpi_delivery_rate_app_limited)
    retransmission_timeout_us: int
    mss: int
    unacknowledged: int
    selectively_acknowledged: int
    lost: int
    retransmitted_in_flight: int
    rtt_us: int
    slow_start_threshold: int
    congestion_window: int
    reordering: int  # tcp_reordering at first
    retransmissions: int  # of the whole connection
    pacing_rate: int  # bytes a second
    most_pacing_rate: int  # SO_MAX_PACING_RATE; UNLIMITED_RATE if it is not set
    unsent_bytes: int
    min_rtt_us: int
    sent_bytes: int
    retransmitted_bytes: int
    send_window_bytes: int  # the peer's; since Linux 5.4

    @classmethod
    def of_socket(cls, connection: socket.socket) -> TcpInfo:
        return cls.read(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LAYOUT.size))

    @classmethod
    def read(cls, raw: bytes) -> TcpInfo:
        """raw: struct tcp_info, which is shorter in older kernels and longer in newer ones."""
        return cls(*_LAYOUT.unpack(raw[:_LAYOUT.size].ljust(_LAYOUT.size, b"\0")))


# The values of a sample in order; workloads.trace.window reads them. Times are in µs except the
# first; windows and counts are in segments.
SAMPLE_FIELDS = ("time_ns", "state", "cwnd", "ssthresh", "unacked", "sacked", "lost",
                 "retransmitted", "rtt_us", "rto_us", "total_retransmissions", "app_limited",
                 "notsent_bytes", "mss", "send_window_bytes")


def sample_of(info: TcpInfo, time_ns: int) -> tuple[int, ...]:
    """The state of a connection at a time, in the order of SAMPLE_FIELDS."""
    return (time_ns, info.congestion_state, info.congestion_window, info.slow_start_threshold,
            info.unacknowledged, info.selectively_acknowledged, info.lost,
            info.retransmitted_in_flight, info.rtt_us, info.retransmission_timeout_us,
            info.retransmissions, info.flags & 1, info.unsent_bytes, info.mss,
            info.send_window_bytes)


@dataclass
class InfoTrace:
    """The samples of one connection; one that equals the last is not stored."""

    interval_ns: int
    samples: list[tuple[int, ...]] = field(default_factory=list)
    due: bool = False  # whether the next sample is scheduled

    def take(self, connection: socket.socket) -> bool:
        """Take a sample; return whether anything is under way or waiting."""
        info = TcpInfo.of_socket(connection)
        sample = sample_of(info, time.time_ns())
        if not self.samples or sample[1:] != self.samples[-1][1:]:
            self.samples.append(sample)
        return bool(info.unacknowledged or info.unsent_bytes)


_SO_BUF_LOCK, _SEND_LOCKED = 72, 1  # since Linux 5.14
_TCP_CONGESTION, _CONTROL_BYTES = 13, 16  # TCP_CA_NAME_MAX


def congestion_control(connection: socket.socket) -> str:
    """The name of a socket's congestion control."""
    name = connection.getsockopt(socket.IPPROTO_TCP, _TCP_CONGESTION, _CONTROL_BYTES)
    return name.split(b"\0")[0].decode("ascii", "replace")


def is_pacing_limited(info: TcpInfo) -> bool:
    """Whether a program has limited the rate (SO_MAX_PACING_RATE)."""
    return info.most_pacing_rate != UNLIMITED_RATE


def send_buffer_bytes(connection: socket.socket) -> int:
    return connection.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)


def has_fixed_send_buffer(connection: socket.socket) -> bool | None:
    """Whether a program has set SO_SNDBUF, so that the buffer never grows; None on old kernels."""
    try:
        return bool(connection.getsockopt(socket.SOL_SOCKET, _SO_BUF_LOCK) & _SEND_LOCKED)
    except OSError:
        return None


_TCP_REPAIR = 19
_SO_TIMESTAMPING = 37
_MSG_ERRQUEUE = 0x2000
_SOF_TX_ACK = 1 << 9
_SOF_SOFTWARE = 1 << 4
_SOF_OPT_ID = 1 << 7
_SOF_OPT_TSONLY = 1 << 11
_SCM_TSTAMP_ACK = 2
_SO_EE_ORIGIN_TIMESTAMPING = 4
_IP_RECVERR = 11

# Ancillary data for sendmsg() that requests a time stamp when the last byte is acknowledged.
ACK_STAMP = [(socket.SOL_SOCKET, _SO_TIMESTAMPING, struct.pack("=I", _SOF_TX_ACK))]


def silence(connection: socket.socket) -> None:
    """Let a connection end without a packet when it is closed (tcp_close). Needs CAP_NET_ADMIN."""
    connection.setsockopt(socket.IPPROTO_TCP, _TCP_REPAIR, 1)


def number_bytes(connection: socket.socket) -> None:
    """Let time stamps identify bytes by their offset from here on."""
    connection.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING,
                          _SOF_SOFTWARE | _SOF_OPT_ID | _SOF_OPT_TSONLY)


def acknowledgements(connection: socket.socket) -> Iterator[tuple[int, int]]:
    """(time in ns, offset of the byte) of every acknowledgement in the error queue."""
    while True:
        try:
            _, control, _, _ = connection.recvmsg(0, 256, _MSG_ERRQUEUE)
        except BlockingIOError:
            return
        stamp_ns, offset = acknowledgement(control)
        if offset is not None:
            yield stamp_ns, offset


def acknowledgement(control: list[tuple[int, int, bytes]]) -> tuple[int, int | None]:
    """(time in ns, offset of the byte) from a message of the error queue; None for other messages.
    """
    stamp_ns, offset = 0, None
    for level, kind, data in control:
        if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPING:
            seconds, nanoseconds = struct.unpack_from("=qq", data)
            stamp_ns = seconds * 1_000_000_000 + nanoseconds
        elif level == socket.IPPROTO_IP and kind == _IP_RECVERR:
            _, origin, _, _, _, info, key = struct.unpack_from("=IBBBBII", data)
            if origin == _SO_EE_ORIGIN_TIMESTAMPING and info == _SCM_TSTAMP_ACK:
                offset = key
    return stamp_ns, offset
