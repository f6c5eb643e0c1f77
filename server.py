#!/usr/bin/env python3
"""The HTTP server that runs on the server host.

Serves bodies of any size, made on the fly, and writes one JSON line to its
standard output for every response, with what TCP knew about it:

    GET /<bytes>                         a body of that many bytes
    GET /<bytes>?burst=<n>&gap_ms=<ms>   headers and the first n bytes at once,
                                         the rest when the back-end has answered
    GET /<bytes>?at=<ms>:<n>;…           headers at once, n bytes of the body at
                                         each time; <from>..<to>/<every>:<n> for
                                         a train of them; the rest at the end
    … &trace_ms=<ms>                     TCP_INFO of the connection from here on,
                                         at that interval while data is under
                                         way and after every write; told when
                                         the connection ends
    … &nagle=1                           with Nagle's algorithm
    … &head=<n>,<n>,…                    headers in writes of these sizes
    … &until_close=1                     no Content-Length; closed after it
    … &sndbuf=<bytes>                    with SO_SNDBUF set to that

Else headers and body leave in one write, with TCP_NODELAY: two small ones would
meet Nagle's algorithm. With a gap they are two, like the paper's Web search
(section 4.1). The response latency is the paper's (section 2): from the first
byte sent to the acknowledgement of the last one, the latter with the kernel's
own time stamp (SOF_TIMESTAMPING_TX_ACK, Documentation/networking/timestamping.rst).

A request has to be here whole DEADLINE_S after its beginning. Where there are
as many connections as the process may have files, one that was silent for that
long makes room for a new one, or the new one is closed.

One process, one event loop, no thread: `server.py [--address A] [--port 80]`.
"""

from __future__ import annotations

import argparse
import heapq
import select
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable
from functools import partial

from hosts import time_stamps
from hosts.connection import Connection
from hosts.reports import report
from hosts.request import BadRequest, parse_path, parse_request
from hosts.response import Response, respond
from hosts.serving import add_flags, listening, most_connections, where
from hosts.tcp_info import SAMPLE_FIELDS, TcpInfo

MAX_REQUEST_BYTES, DEADLINE_S = 16384, 120.0
LONG_WAIT_NS = 5_000_000


class Server:
    """Accepts, answers, and reports; `serve` runs until the process is told to end."""

    def __init__(self, address: str, port: int, deadline_s: float = DEADLINE_S) -> None:
        self.selector = selectors.DefaultSelector()
        self.listener = listening(address, port)
        self.deadline_s = deadline_s
        self.most = most_connections()
        self.selector.register(self.listener, selectors.EVENT_READ, None)
        self.accepted = 0
        # What is to be done when: (monotonic time in ns, in which order, connection, what).
        self.due: list[tuple[int, int, Connection, Callable[[Connection], None]]] = []
        self.tasks = 0

    def serve(self) -> None:
        report(where(self.listener))
        while True:
            for key, events in self._wait():
                if key.data is None:
                    self._accept()
                else:
                    self._service(key.data, events)
            while self.due and self.due[0][0] <= time.monotonic_ns():
                _, _, connection, act = heapq.heappop(self.due)
                if connection.socket.fileno() >= 0:  # else the client has left meanwhile
                    act(connection)

    def _wait(self) -> list[tuple[selectors.SelectorKey, int]]:
        """What has happened, at the latest when something is due.

        epoll waits whole milliseconds; select() on the epoll itself waits as long as it
        is told, and up to a thousandth of it longer (select_estimate_accuracy in
        fs/select.c): long waits are made in steps, the last of which is short.
        """
        if not self.due:
            return self.selector.select(None)
        wait_ns = max(0, self.due[0][0] - time.monotonic_ns())
        wait_ns = wait_ns * 99 // 100 if wait_ns > LONG_WAIT_NS else wait_ns
        # Up to whole microseconds; as Python does so too, half a one less hits that one.
        select.select([self.selector], [], [], max(0.0, -(-wait_ns // 1000) - 0.5) / 1e6)
        return self.selector.select(0)

    def _at(self, due_ns: int, connection: Connection, act: Callable[[Connection], None]) -> None:
        self.tasks += 1
        heapq.heappush(self.due, (due_ns, self.tasks, connection, act))

    def _accept(self) -> None:
        try:
            accepted, peer = self.listener.accept()
        except BlockingIOError:
            return
        if not self._has_room():
            accepted.close()
            return
        # Read before anything is sent: this is the initial window.
        at_accept = TcpInfo.of(accepted)
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        time_stamps.number_bytes(accepted)
        self.accepted += 1
        connection = Connection(accepted, peer, at_accept, self.accepted, time.monotonic())
        self.selector.register(accepted, selectors.EVENT_READ, connection)

    def _has_room(self) -> bool:
        """Whether one more connection may be open, if need be in place of a silent one."""
        open_ones: list[Connection] = [key.data for key in self.selector.get_map().values()
                                       if key.data]
        if len(open_ones) < self.most:
            return True
        longest = min(open_ones, key=lambda connection: connection.heard)
        if time.monotonic() - longest.heard < self.deadline_s:
            return False
        self._close(longest, error="silent for too long")
        return True

    def _continue(self, connection: Connection) -> None:
        """More of the response may leave."""
        response = connection.sending
        if response is None:
            return
        _, response.released = response.writes.popleft()
        self._schedule(connection, response)
        self._service(connection, selectors.EVENT_WRITE)

    def _schedule(self, connection: Connection, response: Response) -> None:
        if response.writes:
            self._at(response.started_ns + round(response.writes[0][0] * 1e6), connection,
                     self._continue)

    def _sample(self, connection: Connection) -> None:
        """A sample that was due, or one after a write; the next follows while data is under way."""
        trace = connection.trace
        if trace is None:
            return
        if trace.take(connection.socket) and not trace.due:
            trace.due = True
            self._at(time.monotonic_ns() + trace.interval_ns, connection, self._sample_again)

    def _sample_again(self, connection: Connection) -> None:
        assert connection.trace is not None
        connection.trace.due = False
        self._sample(connection)

    def _service(self, connection: Connection, events: int) -> None:
        connection.heard = time.monotonic()
        try:
            # epoll reports a time stamp as an error, selectors passes that on
            # as readable and writable: look here first, whatever it is.
            self._read_acknowledgements(connection)
            if connection.sending is not None and events & selectors.EVENT_WRITE:
                self._send(connection)
            if events & selectors.EVENT_READ:
                self._receive(connection)
        except (ConnectionError, TimeoutError, BadRequest) as error:
            self._close(connection, error=f"{type(error).__name__}: {error}")

    def _receive(self, connection: Connection) -> None:
        try:
            data = connection.socket.recv(65536)
        except BlockingIOError:
            return
        if not data:
            # The ACK of the last bytes may have come with the FIN.
            self._read_acknowledgements(connection)
            self._close(connection)
            return
        began = not connection.received
        connection.received += data
        if len(connection.received) > MAX_REQUEST_BYTES:
            raise BadRequest("request too long")
        self._answer_next(connection)
        if began and connection.received:
            self._at(time.monotonic_ns() + round(self.deadline_s * 1e9), connection,
                     partial(self._expect, connection.responses))

    def _expect(self, responses: int, connection: Connection) -> None:
        """Close a connection whose next request has begun and is still not here."""
        if connection.responses == responses and connection.received and not connection.sending:
            self._close(connection, error=f"no whole request in {self.deadline_s:g} s")

    def _answer_next(self, connection: Connection) -> None:
        """Start the next response if a whole request is here and none is being sent."""
        if connection.sending is not None:
            return
        head, end, rest = connection.received.partition(b"\r\n\r\n")
        if not end:
            return
        connection.received = rest
        started_ns = time.monotonic_ns()
        response = connection.sending = self._respond(connection, head)
        connection.unacknowledged.append(response)
        response.started_ns = started_ns
        self._schedule(connection, response)
        self._send(connection)

    def _respond(self, connection: Connection, head: bytes) -> Response:
        request = parse_request(head)
        wanted = parse_path(request[1])
        response = respond(request, wanted, len(head) + 4, connection.sent_bytes)
        if wanted:
            connection.set_up(wanted)
        connection.responses += 1
        return response

    def _send(self, connection: Connection) -> None:
        response = connection.sending
        if response is None:
            return
        if connection.trace:
            connection.trace.take(connection.socket)
        while response.sent < response.released:
            try:
                sent = connection.socket.sendmsg([response.pending], time_stamps.WANTED)
            except BlockingIOError:
                self._watch(connection, selectors.EVENT_READ | selectors.EVENT_WRITE)
                return
            connection.sent_bytes += sent
            response.sent += sent
        self._sample(connection)
        self._watch(connection, selectors.EVENT_READ)
        if response.writes:
            return
        connection.sending = None
        if response.close:
            connection.socket.shutdown(socket.SHUT_WR)
        else:
            self._answer_next(connection)

    def _read_acknowledgements(self, connection: Connection) -> None:
        """Report every response whose last byte the kernel saw acknowledged."""
        for stamp_ns, offset in time_stamps.acknowledgements(connection.socket):
            while connection.unacknowledged \
                    and offset >= connection.unacknowledged[0].end_offset:
                report(connection.told(connection.unacknowledged.pop(0), stamp_ns))

    def _close(self, connection: Connection, error: str = "") -> None:
        if connection.trace:
            connection.trace.take(connection.socket)
            report({"event": "trace", "connection": connection.number,
                    "client_port": connection.peer[1], "fields": SAMPLE_FIELDS,
                    "samples": connection.trace.samples})
        self.selector.unregister(connection.socket)
        connection.socket.close()
        report({"event": "closed", "connection": connection.number,
                "client_port": connection.peer[1], "error": error,
                "unacknowledged": len(connection.unacknowledged)})

    def _watch(self, connection: Connection, events: int) -> None:
        self.selector.modify(connection.socket, events, connection)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    add_flags(parser)
    parser.add_argument("--deadline", type=float, default=DEADLINE_S, metavar="S",
                        help="in which a request has to come (default %(default)g)")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        Server(arguments.address, arguments.port, arguments.deadline).serve()
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        print(f"server.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
