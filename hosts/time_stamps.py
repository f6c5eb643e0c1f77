"""The kernel's time stamp of an acknowledgement.

SOF_TIMESTAMPING_TX_ACK, Documentation/networking/timestamping.rst: when all
bytes up to one that was written with WANTED have been acknowledged, the
socket's error queue tells when.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

_SO_TIMESTAMPING = 37
_MSG_ERRQUEUE = 0x2000
_SOF_TX_ACK = 1 << 9
_SOF_SOFTWARE = 1 << 4
_SOF_OPT_ID = 1 << 7
_SOF_OPT_TSONLY = 1 << 11
_SCM_TSTAMP_ACK = 2
_SO_EE_ORIGIN_TIMESTAMPING = 4
_IP_RECVERR = 11

# Ancillary data for sendmsg(): when is the last byte of this acknowledged?
WANTED = [(socket.SOL_SOCKET, _SO_TIMESTAMPING, struct.pack("=I", _SOF_TX_ACK))]


def number_bytes(connection: socket.socket) -> None:
    """Let time stamps name bytes by their offset from here on."""
    connection.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING,
                          _SOF_SOFTWARE | _SOF_OPT_ID | _SOF_OPT_TSONLY)


def acknowledgements(connection: socket.socket) -> Iterator[tuple[int, int]]:
    """(time ns, offset of the byte) of every acknowledgement told and not yet read."""
    while True:
        try:
            _, control, _, _ = connection.recvmsg(0, 256, _MSG_ERRQUEUE)
        except BlockingIOError:
            return
        stamp_ns, offset = acknowledgement(control)
        if offset is not None:
            yield stamp_ns, offset


def acknowledgement(control: list[tuple[int, int, bytes]]) -> tuple[int, int | None]:
    """(time ns, offset of the byte) from an error-queue message, offset None for others."""
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
