"""What every server needs: a socket that listens, limits, and bodies to send."""

from __future__ import annotations

import argparse
import hashlib
import resource
import socket

LISTEN_BACKLOG = 4096
OTHER_FILES = 32  # that a server has open besides its connections, or a few more
# The body is this block over and over: enough to show a byte lost or doubled.
BLOCK = hashlib.sha256(b"First Flight").hexdigest().encode() * 1024


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--address", default="127.0.0.1",
                        help="IPv4 address to listen on, and on no other (default %(default)s)")
    parser.add_argument("--port", type=int, default=80, help="TCP port (default %(default)s)")


def listening(address: str, port: int) -> socket.socket:
    """A socket that listens on one address and never waits. Raises OSError."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    listener.listen(LISTEN_BACKLOG)
    listener.setblocking(False)
    return listener


def where(listener: socket.socket) -> dict[str, object]:
    """The report of a server that listens."""
    address, port = listener.getsockname()
    return {"event": "listening", "address": address, "port": port}


def most_connections() -> int:
    """How many connections a server may have open: as many as it may have files, but for some."""
    _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    return files - OTHER_FILES


def body_of(size: int) -> bytes:
    """A body of `size` bytes, the same for the same size."""
    return (BLOCK * (size // len(BLOCK) + 1))[:size]
