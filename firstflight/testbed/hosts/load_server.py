"""The HTTP server of the load experiments: one response a connection, thousands at once.

    GET /<bytes>?id=<name>    a body of that many bytes; the record has the name

For each connection it records TCP's own numbers (tcp_info): the window at accept, how many segments
left with the first write, and what was retransmitted. Any line on standard input lets it write its
records, as CSV with a header, to the file on its command line.

One process with asyncio's event loop:
`-m firstflight.testbed.hosts.load_server FILE [--address A]`.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from firstflight.testbed.hosts.control import report, write_records
from firstflight.testbed.hosts.kernel import TcpInfo
from firstflight.testbed.hosts.serving import (add_flags, address_report, body_of, listening_socket,
                                               most_connections, run_server)

MAX_REQUEST_BYTES = 4096
MAX_BODY_BYTES = 1 << 24
CACHED_RESPONSES = 64

COLUMNS = ("id", "initial_window", "first_flight", "sent_bytes", "retransmitted_bytes",
           "min_rtt_ms", "end")
CLOSED, OPEN = "closed", "open"


@dataclass(slots=True, eq=False)
class AnsweredConnection:
    """One client's connection."""

    socket: socket.socket
    initial_window: int  # segments
    id: str = ""  # its client's name of it, "" before the request
    first_flight: int = 0  # segments in flight after the first write
    pending: memoryview = memoryview(b"")  # bytes that are still to be sent


class LoadServer:
    """Accepts, answers, waits for the client to close, and records."""

    def __init__(self, loop: asyncio.AbstractEventLoop, address: str, port: int) -> None:
        self.loop = loop
        self.rows: list[tuple[object, ...]] = []
        self.open: dict[int, AnsweredConnection] = {}
        self.listener: socket.socket = listening_socket(address, port)
        self.most = most_connections()
        loop.add_reader(self.listener, self._accept)

    def _accept(self) -> None:
        while True:
            try:
                accepted, _ = self.listener.accept()
            except BlockingIOError:
                return

            if len(self.open) >= self.most:
                accepted.close()
                continue

            accepted.setblocking(False)
            # Read before anything is sent: this is the initial window.
            connection = AnsweredConnection(accepted, TcpInfo.of_socket(accepted).congestion_window)
            self.open[accepted.fileno()] = connection
            # By its number: with the socket itself asyncio would format it, which looks up both
            # addresses.
            self.loop.add_reader(accepted.fileno(), self._receive, connection)

    def _receive(self, connection: AnsweredConnection) -> None:
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

    def _answer(self, connection: AnsweredConnection, request: bytes) -> None:
        """Answer a request, which fits into one segment and so always comes complete."""
        requested = parse_request(request)
        if requested is None:
            self._close(connection, "BadRequest")
            return
        size, connection.id = requested
        connection.pending = response(size)
        self._send(connection)
        if connection.socket.fileno() >= 0:  # otherwise the client has reset the connection
            connection.first_flight = TcpInfo.of_socket(connection.socket).unacknowledged

    def _send(self, connection: AnsweredConnection) -> None:
        try:
            sent = connection.socket.send(connection.pending)
        except BlockingIOError:
            sent = 0
        except (ConnectionError, TimeoutError) as error:
            self._close(connection, type(error).__name__)
            return

        connection.pending = connection.pending[sent:]
        if connection.pending:
            self.loop.add_writer(connection.socket.fileno(), self._send, connection)
        else:
            self.loop.remove_writer(connection.socket.fileno())

    def _close(self, connection: AnsweredConnection, end: str) -> None:
        info = TcpInfo.of_socket(connection.socket)
        self.rows.append((connection.id, connection.initial_window, connection.first_flight,
                          info.sent_bytes, info.retransmitted_bytes, info.min_rtt_us / 1000, end))
        del self.open[connection.socket.fileno()]
        self.loop.remove_reader(connection.socket.fileno())
        self.loop.remove_writer(connection.socket.fileno())
        connection.socket.close()

    def write(self, path: Path) -> None:
        """Write all records; connections that have not ended are recorded as open."""
        for connection in list(self.open.values()):
            self._close(connection, OPEN)
        write_records(path, COLUMNS, self.rows)


def parse_request(request: bytes) -> tuple[int, str] | None:
    """(bytes, id) of a request `GET /<bytes>?id=<name> HTTP/1.1`; None for another one."""
    words = request.partition(b"\r\n")[0].split(b" ")
    if len(words) != 3 or words[0] != b"GET" or not request.endswith(b"\r\n\r\n"):
        return None
    size, _, name = words[1].lstrip(b"/").partition(b"?id=")
    if not size.isdigit() or int(size) > MAX_BODY_BYTES or not name:
        return None
    return int(size), name.decode("latin-1")


@lru_cache(CACHED_RESPONSES)
def response(size: int) -> memoryview:
    """The response for one write: with a second one for the body the first flight would differ."""
    return memoryview(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + body_of(size))


async def serve(path: Path, address: str, port: int) -> None:
    """Serve until a line comes on standard input; then write the records to `path`."""
    loop = asyncio.get_running_loop()
    server, stop_requested = LoadServer(loop, address, port), asyncio.Event()
    loop.add_reader(sys.stdin, stop_requested.set)
    report(address_report(server.listener))
    await stop_requested.wait()
    server.write(path)
    report({"event": "written"})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("file", type=Path, help="where the records go")
    add_flags(parser)
    given = parser.parse_args()

    def run() -> None:
        asyncio.run(serve(given.file, given.address, given.port))

    return run_server("load_server.py", given.address, given.port, serve=run)


if __name__ == "__main__":
    sys.exit(main())
