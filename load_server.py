#!/usr/bin/env python3
"""The HTTP server of the load experiments: one response a connection, thousands at once.

    GET /<bytes>?id=<name>    a body of that many bytes; the name goes into the record

For each connection it records what TCP knew of it (tcp_info): the window it
was accepted with, how many segments left with the first write, and what was
sent again. Commands come as lines on standard input: `stop` lets it write its
records, CSV with a header, to the file named on its command line.

asyncio's event loop, one process, no thread: `load_server.py FILE [--port 80]`.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import hashlib
import socket
import struct
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

LISTEN_BACKLOG = 4096
MAX_REQUEST_BYTES = 4096
MAX_BODY_BYTES = 1 << 24
BLOCK = hashlib.sha256(b"First Flight").hexdigest().encode() * 1024

COLUMNS = ("id", "initial_window", "first_flight", "sent_bytes", "retransmitted_bytes",
           "min_rtt_ms", "end")
CLOSED, OPEN = "closed", "open"


@dataclass(slots=True, eq=False)
class Connection:
    """One client's connection. first_flight: segments out when the first write returned."""

    socket: socket.socket
    initial_window: int
    id: str = ""
    first_flight: int = 0
    pending: memoryview = memoryview(b"")


class Server:
    """Accepts, answers, waits for the client to close, and records."""

    def __init__(self, loop: asyncio.AbstractEventLoop, port: int) -> None:
        self.loop = loop
        self.rows: list[tuple[object, ...]] = []
        self.open: dict[int, Connection] = {}
        self.listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("0.0.0.0", port))
        self.listener.listen(LISTEN_BACKLOG)
        self.listener.setblocking(False)
        loop.add_reader(self.listener, self._accept)

    def _accept(self) -> None:
        while True:
            try:
                accepted, _ = self.listener.accept()
            except BlockingIOError:
                return
            accepted.setblocking(False)
            # Read before anything is sent: this is the initial window.
            (window,) = struct.unpack_from("=I", tcp_info(accepted, 84), 80)
            connection = Connection(accepted, window)
            self.open[accepted.fileno()] = connection
            self.loop.add_reader(accepted, self._receive, connection)

    def _receive(self, connection: Connection) -> None:
        try:
            data = connection.socket.recv(MAX_REQUEST_BYTES)
            if data and not connection.id:
                self._answer(connection, data)
            elif not data:
                self._close(connection, CLOSED)
        except BlockingIOError:
            pass
        except (ConnectionError, TimeoutError) as error:
            self._close(connection, type(error).__name__)

    def _answer(self, connection: Connection, request: bytes) -> None:
        """Answer a request; it fits in one segment, so it is here whole or not at all."""
        asked = parse_request(request)
        if asked is None:
            self._close(connection, "BadRequest")
            return
        size, connection.id = asked
        connection.pending = response(size)
        self._send(connection)
        (connection.first_flight,) = struct.unpack_from(
            "=I", tcp_info(connection.socket, 28), 24)

    def _send(self, connection: Connection) -> None:
        try:
            sent = connection.socket.send(connection.pending)
        except BlockingIOError:
            sent = 0
        except (ConnectionError, TimeoutError) as error:
            self._close(connection, type(error).__name__)
            return
        whole = sent == len(connection.pending)
        connection.pending = connection.pending[sent:]
        if whole:
            self.loop.remove_writer(connection.socket)
        else:
            self.loop.add_writer(connection.socket, self._send, connection)

    def _close(self, connection: Connection, end: str) -> None:
        raw = tcp_info(connection.socket, 216)
        sent_bytes, retransmitted_bytes = struct.unpack_from("=QQ", raw, 200)
        (min_rtt_us,) = struct.unpack_from("=I", raw, 148)
        self.rows.append((connection.id, connection.initial_window, connection.first_flight,
                          sent_bytes, retransmitted_bytes, min_rtt_us / 1000, end))
        del self.open[connection.socket.fileno()]
        self.loop.remove_reader(connection.socket)
        self.loop.remove_writer(connection.socket)
        connection.socket.close()

    def write(self, path: Path) -> None:
        """Write all records; connections that never ended are in them as open."""
        for connection in list(self.open.values()):
            self._close(connection, OPEN)
        with path.open("w", newline="", encoding="ascii") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            writer.writerows(self.rows)


def tcp_info(connection: socket.socket, size: int) -> bytes:
    """The first bytes of struct tcp_info (include/uapi/linux/tcp.h)."""
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, size)


def parse_request(request: bytes) -> tuple[int, str] | None:
    """(bytes, id) of `GET /<bytes>?id=<name> HTTP/1.1`, None where it is not one."""
    words = request.partition(b"\r\n")[0].split(b" ")
    if len(words) != 3 or words[0] != b"GET" or not request.endswith(b"\r\n\r\n"):
        return None
    size, _, name = words[1].lstrip(b"/").partition(b"?id=")
    if not size.isdigit() or int(size) > MAX_BODY_BYTES or not name:
        return None
    return int(size), name.decode("latin-1")


@cache
def response(size: int) -> memoryview:
    """Headers and body, in one piece: two writes would be two flights."""
    body = (BLOCK * (size // len(BLOCK) + 1))[:size]
    return memoryview(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + body)


async def serve(path: Path, port: int) -> None:
    loop = asyncio.get_running_loop()
    server, stopped = Server(loop, port), loop.create_future()
    loop.add_reader(sys.stdin, lambda: stopped.done() or stopped.set_result(None))
    print('{"event": "listening"}', flush=True)
    await stopped
    server.write(path)
    print('{"event": "written"}', flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("file", type=Path, help="where the records go")
    parser.add_argument("--port", type=int, default=80, help="TCP port (default 80)")
    arguments = parser.parse_args()
    try:
        asyncio.run(serve(arguments.file, arguments.port))
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        print(f"load_server.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
