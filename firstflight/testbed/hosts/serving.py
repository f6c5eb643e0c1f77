"""What every server needs: flags and a start, a listening socket, limits, and bodies to send."""

from __future__ import annotations

import argparse
import hashlib
import resource
import socket
import sys
from collections.abc import Callable

LISTEN_BACKLOG = 4096
OTHER_FILES = 32  # a server has no more files open besides its connections
# A body repeats this block, which is long enough to show a lost or doubled byte.
BLOCK = hashlib.sha256(b"First Flight").hexdigest().encode() * 1024


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--address", default="127.0.0.1",
                        help="IPv4 address to listen on, and on no other (default %(default)s)")
    parser.add_argument("--port", type=tcp_port, default=80,
                        help="TCP port (default %(default)s)")


def tcp_port(text: str) -> int:
    """A TCP port; 0: any that is free. Raises ArgumentTypeError."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 5 and int(text) < 1 << 16):
        raise argparse.ArgumentTypeError(f"{text!r} is no TCP port, which is 0 to 65535")
    return int(text)


def run_server(program: str, address: str, port: int, serve: Callable[[], None]) -> int:
    """Serve until something ends it; the exit status. program, address, port: for messages."""
    try:
        serve()
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        print(f"{program}: {address}:{port}: {error.strerror or error}", file=sys.stderr)
        return 1
    return 0


def listening_socket(address: str, port: int) -> socket.socket:
    """A non-blocking socket that listens on one address. Raises OSError."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    listener.listen(LISTEN_BACKLOG)
    listener.setblocking(False)
    return listener


def address_report(listener: socket.socket) -> dict[str, object]:
    """The report that a server listens, and where."""
    address, port = listener.getsockname()
    return {"event": "listening", "address": address, "port": port}


def most_connections() -> int:
    """How many connections a server may have open, by the limit of open files."""
    _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    return files - OTHER_FILES


def body_of(size: int) -> bytes:
    """A body of `size` bytes, the same for the same size."""
    return (BLOCK * (size // len(BLOCK) + 1))[:size]
