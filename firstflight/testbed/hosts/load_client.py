"""The traffic generator of the load experiments: an open loop of Poisson arrivals.

A task comes as one JSON line on standard input:

    {"servers": ["10.0.2.1"], "port": 80, "name": "1", "seed": 7,
     "arrivals_per_s": 47.5, "connections": 1, "sizes": [[1.0, 50000]],
     "start_s": 12.3, "duration_s": 300, "file": "client1.csv"}

An arrival opens `connections` connections at once, to the servers in turn, and requests one
response on each. Its size is drawn from `sizes`: points of the distribution function,
[share, bytes]; one point is a fixed size. Arrivals wait for nothing, so that an overloaded network
has ever more connections. Everything is drawn from the seed, and nothing depends on how the network
behaves.

Every connection is recorded in a CSV file with a header: when it was due, when its handshake and
its response were done, and how it ended. It is ok, failed with a reason, or open when duration_s is
over; CLOCK_MONOTONIC counts, from start_s on.

One process with asyncio's event loop: `-m firstflight.testbed.hosts.load_client`.
"""

from __future__ import annotations

import asyncio
import errno
import itertools
import os
import random
import select
import selectors
import socket
import struct
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from firstflight.testbed.hosts.bound_ports import all_ports, bind_next
from firstflight.testbed.hosts.control import report, requests, write_records

COLUMNS = ("id", "arrival_s", "connect_ms", "total_ms", "asked_bytes", "got_bytes", "end",
           "error")
OK, FAILED, OPEN = "ok", "failed", "open"
READ_BYTES = 1 << 20
EARLY = 0.998  # the part of a timeout after which ExactSelector wakes
_NO_LINGER = struct.pack("=ii", 1, 0)


@dataclass(frozen=True)
class Task:
    """The traffic to generate; the module's docstring describes the fields."""

    servers: list[str]
    port: int
    name: str
    seed: int
    arrivals_per_s: float
    connections: int
    sizes: list[list[float]]
    start_s: float
    duration_s: float
    file: str


@dataclass(slots=True, eq=False)
class LoadConnection:
    """One open connection. Times are in s of CLOCK_MONOTONIC."""

    socket: socket.socket
    id: str
    due_us: int  # when it was to be opened, microseconds from the start
    opened_s: float
    requested_bytes: int  # of the body
    connected_s: float = 0.0  # 0 before that
    got_bytes: int = 0  # of headers and body
    head: bytes = b""  # the response's first bytes, with its headers
    expected_bytes: int = 0  # of headers and body, 0 while the headers are not complete


class ExactSelector(selectors.EpollSelector):
    """epoll that waits exactly to the microsecond.

    epoll's timeout counts in milliseconds, select's in microseconds, but the kernel lets both be
    late by a thousandth of the timeout (select_estimate_accuracy). So this one wakes early by more
    than that. The event loop finds nothing due and waits again for the short rest.
    """

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout > 0:
            select.select([self.fileno()], [], [], timeout * EARLY)
            timeout = 0
        return super().select(timeout)


class Generator:
    """Opens connections when they are due and follows each to its end."""

    def __init__(self, loop: asyncio.AbstractEventLoop, task: Task) -> None:
        self.loop = loop
        self.task = task
        self.random = random.Random(task.seed)
        self.servers = itertools.cycle(task.servers)
        self.number = itertools.count(1)
        self.rows: list[tuple[object, ...]] = []
        self.open: set[LoadConnection] = set()
        self.buffer = bytearray(READ_BYTES)
        self.ports = all_ports()

    async def run(self) -> None:
        """Generate until the end; connections that are open then are recorded as such, and reset.
        """
        arrival_s, start_s = 0.0, self.task.start_s
        while True:
            arrival_s += self.random.expovariate(self.task.arrivals_per_s)
            if arrival_s >= self.task.duration_s:
                break

            # A wait takes whole microseconds. The middle between two is requested, so that the
            # last digits of the clock never decide between them.
            due_us = int(arrival_s * 1e6)
            await asyncio.sleep(start_s + (due_us + 0.5) / 1e6 - time.monotonic())
            for _ in range(self.task.connections):
                self._connect(due_us, size_at(self.task.sizes, self.random.random()))

        end_s = start_s + self.task.duration_s
        await asyncio.sleep(end_s - time.monotonic())
        for connection in list(self.open):
            connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
            self._end(connection, OPEN)

    def _connect(self, due_us: int, size: int) -> None:
        opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        name = f"{self.task.name}.{next(self.number)}"
        connection = LoadConnection(opened, name, due_us, opened_s=time.monotonic(),
                                    requested_bytes=size)
        self.open.add(connection)
        # Wake when all of the response is here, not for every segment.
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)
        bind_next(opened, self.ports)
        code = opened.connect_ex((next(self.servers), self.task.port))
        if code == errno.EINPROGRESS:
            # By its number: with the socket itself asyncio would format it, which looks up both
            # addresses.
            self.loop.add_writer(opened.fileno(), self._connected, connection)
        else:
            self._end(connection, FAILED, os.strerror(code))

    def _connected(self, connection: LoadConnection) -> None:
        self.loop.remove_writer(connection.socket.fileno())
        code = connection.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self._end(connection, FAILED, os.strerror(code))
            return
        connection.connected_s = time.monotonic()
        request = f"GET /{connection.requested_bytes}?id={connection.id} HTTP/1.1\r\n\r\n"
        try:
            connection.socket.send(request.encode())
        except OSError as error:
            self._end(connection, FAILED, os.strerror(error.errno or 0))
            return
        self.loop.add_reader(connection.socket.fileno(), self._receive, connection)

    def _receive(self, connection: LoadConnection) -> None:
        try:
            count = connection.socket.recv_into(self.buffer)
        except BlockingIOError:
            return
        except OSError as error:
            self._end(connection, FAILED, os.strerror(error.errno or 0))
            return
        if count == 0:
            self._end(connection, FAILED, "closed before the response was whole")
            return

        if not connection.expected_bytes:
            connection.head += bytes(self.buffer[:min(count, 200)])
            connection.expected_bytes = response_bytes(connection.head)

        connection.got_bytes += count
        left = connection.expected_bytes - connection.got_bytes
        if left > 0:
            connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, left)
        elif connection.expected_bytes:
            self._end(connection, OK)

    def _end(self, connection: LoadConnection, end: str, error: str = "") -> None:
        now, start = time.monotonic(), connection.opened_s
        self.loop.remove_reader(connection.socket.fileno())
        self.loop.remove_writer(connection.socket.fileno())
        connection.socket.close()
        self.open.discard(connection)

        arrival_s = f"{connection.due_us / 1e6:.6f}"
        connect_ms = total_ms = ""
        if connection.connected_s:
            connect_ms = f"{(connection.connected_s - start) * 1000:.3f}"
        if end == OK:
            total_ms = f"{(now - start) * 1000:.3f}"
        self.rows.append((connection.id, arrival_s, connect_ms, total_ms,
                          connection.requested_bytes, connection.got_bytes, end, error))

    def write(self) -> None:
        write_records(Path(self.task.file), COLUMNS, self.rows)


def response_bytes(head: bytes) -> int:
    """Length of headers and body of a response; 0 while its headers are not complete."""
    headers, end, _ = head.partition(b"\r\n\r\n")
    _, has_length, length = headers.partition(b"Content-Length: ")
    if not end or not has_length:
        return 0
    return len(headers) + 4 + int(length.partition(b"\r\n")[0])


def size_at(points: list[list[float]], share: float) -> int:
    """The response size at a share of the distribution, interpolated between its points."""
    below_share, below_bytes = 0.0, points[0][1]
    for at_share, at_bytes in points:
        if share < at_share:
            part = (share - below_share) / (at_share - below_share)
            return max(1, round(below_bytes + part * (at_bytes - below_bytes)))
        below_share, below_bytes = at_share, at_bytes
    return max(1, round(below_bytes))


async def generate(task: Task) -> None:
    generator = Generator(asyncio.get_running_loop(), task)
    await generator.run()
    generator.write()


def main() -> int:
    for request in requests():
        task = Task(**request)
        loop = asyncio.SelectorEventLoop(ExactSelector())
        try:
            loop.run_until_complete(generate(task))
        except OSError as error:
            report({"event": "failed", "error": str(error)})
            continue
        finally:
            loop.close()
        report({"event": "done"})
    return 0


if __name__ == "__main__":
    sys.exit(main())
