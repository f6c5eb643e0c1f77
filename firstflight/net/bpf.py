"""Filters of sockets: classic BPF programs (include/uapi/linux/filter.h)."""

from __future__ import annotations

import ctypes
import socket
import struct
from collections.abc import Sequence

_SO_ATTACH_FILTER, _SO_DETACH_FILTER = 26, 27

Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, value


def attach(filtered: socket.socket, program: Sequence[Instruction]) -> None:
    """Set a socket's filter (SO_ATTACH_FILTER with a struct sock_fprog). Raises OSError."""
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in program))
    sock_fprog = struct.pack("HL", len(program), ctypes.addressof(code))
    filtered.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, sock_fprog)


def detach(filtered: socket.socket) -> None:
    """Remove a socket's filter."""
    filtered.setsockopt(socket.SOL_SOCKET, _SO_DETACH_FILTER, 0)
