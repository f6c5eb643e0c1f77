"""What every server needs: a socket that listens, and bodies to send."""

from __future__ import annotations

import hashlib
import socket

LISTEN_BACKLOG = 4096
# The body is this block over and over: enough to show a byte lost or doubled.
BLOCK = hashlib.sha256(b"First Flight").hexdigest().encode() * 1024


def listening(port: int) -> socket.socket:
    """A socket that listens on every address and never waits. Raises OSError."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("0.0.0.0", port))
    listener.listen(LISTEN_BACKLOG)
    listener.setblocking(False)
    return listener


def body_of(size: int) -> bytes:
    """A body of `size` bytes, the same for the same size."""
    return (BLOCK * (size // len(BLOCK) + 1))[:size]
