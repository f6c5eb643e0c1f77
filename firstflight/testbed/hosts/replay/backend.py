"""The server behind nginx: finds the recorded answer to a request, waits, and answers.

nginx speaks TLS and HTTP/2 with the browser, and passes each request on over a Unix socket, as
HTTP/1.1, with X-First-Flight: SCHEME PORT, where PORT is the client's. In a guest this takes no
time. On standard input it reads JSON lines, and answers each with one:

    {"begin": FILE}     answers a new load from this recording        {"error": ""}
    {"report": true}    what it answered since                        {"served": [[…], …]}

A row is [number of the answer, -1 for none; client's port, method, URL, ns of the clock when the
request came, the same when the answer left, status, bytes of the body as it is sent].

One process, one event loop, no thread.
"""

from __future__ import annotations

import heapq
import os
import selectors
import socket
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from firstflight.net.waiting import Timer
from firstflight.testbed.hosts.control import STANDARD_INPUT, Orders, report
from firstflight.testbed.hosts.replay import recording
from firstflight.testbed.hosts.replay.recording import Answer, Recording, Replay

HEADER = "x-first-flight"  # by which nginx describes its connection with the client
MOST_HEAD_BYTES, MOST_BODY_BYTES = 1 << 18, 64 << 20
MOST_ROWS, MOST_URL = 20_000, 2000
WEB_SOCKET = "WebSocket"  # in place of a method; none is recorded
_METHOD_AT, _LEFT_AT = 2, 5  # places in a row
_ENDS = b"\r\n\r\n"
_WITHOUT_BODY = (204, 304)
# Of the connection between a server and a client, not of the answer (RFC 9110, 7.6.1); nginx and
# this program write their own.
DROPPED = frozenset(("connection", "keep-alive", "proxy-connection", "transfer-encoding",
                     "upgrade", "content-length", "date", "server", "trailer"))


class BadRequest(Exception):
    """nginx passed on what is no request."""


class NginxConnection:
    """A connection from nginx."""

    def __init__(self, opened: socket.socket) -> None:
        self.socket = opened
        self.received = b""
        self.unsent = memoryview(b"")
        self.is_busy = False  # its request waits for the answer
        self.is_closed = False


class Due(NamedTuple):
    """An answer that waits for its time."""

    due_ns: int  # monotonic
    number: int  # of those that waited, so that no others are compared
    connection: NginxConnection
    message: bytes
    row: list[object]  # of the report


class Backend:
    """Answers until its standard input ends."""

    def __init__(self, place: str) -> None:
        self.events = selectors.DefaultSelector()
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(place)
        os.chmod(place, 0o600)
        self.listener.listen(1024)
        self.listener.setblocking(False)
        self.orders = Orders()
        self.timer = Timer()
        self.events.register(self.listener, selectors.EVENT_READ, self._accept)
        self.events.register(STANDARD_INPUT, selectors.EVENT_READ, self._take_orders)
        self.events.register(self.timer.fd, selectors.EVENT_READ, self._answer_due)

        self.due: list[Due] = []  # a heap
        self.number = 0  # of answers that have waited
        self.recordings: dict[str, Recording] = {}
        self.replay: Replay | None = None
        self.served: list[list[object]] = []

    def serve(self) -> None:
        while not self.orders.ended:
            for key, mask in self.events.select():
                if isinstance(key.data, NginxConnection):
                    self._service(key.data, mask)
                else:
                    key.data()

    def _take_orders(self) -> None:
        for order in self.orders.take():
            report({"number": order["number"], **self._obey(order)})

    def _obey(self, order: dict[str, Any]) -> dict[str, object]:
        if "begin" in order:
            place = order["begin"]
            try:
                if place not in self.recordings:
                    self.recordings[place] = recording.read(Path(place))
            except (OSError, ValueError) as error:
                return {"error": str(error)}
            self.replay, self.served = Replay(self.recordings[place]), []
            return {"error": ""}
        return {"served": self.served[:MOST_ROWS], "count": len(self.served)}

    def _accept(self) -> None:
        try:
            opened, _ = self.listener.accept()
        except BlockingIOError:
            return
        opened.setblocking(False)
        self.events.register(opened, selectors.EVENT_READ, NginxConnection(opened))

    def _service(self, connection: NginxConnection, mask: int) -> None:
        try:
            if mask & selectors.EVENT_WRITE:
                self._send(connection)
            if mask & selectors.EVENT_READ and not connection.is_closed:
                more = connection.socket.recv(1 << 18)
                connection.received += more
                if not more or len(connection.received) > MOST_HEAD_BYTES + MOST_BODY_BYTES:
                    self._close(connection)
                    return
                self._read_requests(connection)
        except (OSError, BadRequest):
            self._close(connection)

    def _close(self, connection: NginxConnection) -> None:
        if not connection.is_closed:
            connection.is_closed = True
            self.events.unregister(connection.socket)
            connection.socket.close()

    def _read_requests(self, connection: NginxConnection) -> None:
        """Take the next whole request, and answer it when its time has come."""
        if connection.is_busy or connection.unsent:
            return
        head, end, rest = connection.received.partition(_ENDS)
        if not end:
            if len(head) > MOST_HEAD_BYTES:
                raise BadRequest
            return

        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > MOST_BODY_BYTES:
            raise BadRequest
        size = int(length)
        if len(rest) < size:
            return

        connection.received = rest[size:]
        connection.is_busy = True
        self._plan(connection, first, headers, body=rest[:size])

    def _plan(self, connection: NginxConnection, first: str, headers: dict[str, str],
              body: bytes) -> None:
        """Answer a request, now or when its recorded wait is over. first: its first line."""
        try:
            method, target, _ = first.split(" ")
            scheme, port = headers[HEADER].split(" ")
            client_port = int(port)
            reported_method = WEB_SOCKET if "sec-websocket-key" in headers else method
            origin = f"{scheme}://{headers['host'].lower()}"
        except (KeyError, ValueError) as error:
            raise BadRequest from error

        number, answer = -1, NOT_RECORDED
        if self.replay is not None:
            found = self.replay.find(origin, method, target, body)
            if found is not None:
                number, answer = found, self.replay.recording.answers[found]
        now_ns = time.monotonic_ns()
        message = response(answer, with_body=method != "HEAD")
        body_bytes = len(answer.body) if has_body(answer, method) else 0
        row: list[object] = [number, client_port, reported_method, f"{origin}{target}"[:MOST_URL],
                             time.time_ns(), 0, answer.status, body_bytes]
        if answer.wait_ms <= 0:
            self._give(connection, message, row)
            return

        self.number += 1
        due_ns = now_ns + round(answer.wait_ms * 1e6)
        heapq.heappush(self.due, Due(due_ns, self.number, connection, message=message, row=row))
        self.timer.set(self.due[0].due_ns)

    def _answer_due(self) -> None:
        while self.due and self.due[0].due_ns <= time.monotonic_ns():
            due = heapq.heappop(self.due)
            if not due.connection.is_closed:
                try:
                    self._give(due.connection, due.message, due.row)
                except (OSError, BadRequest):
                    self._close(due.connection)
        self.timer.set(self.due[0].due_ns if self.due else 0)

    def _give(self, connection: NginxConnection, message: bytes, row: list[object]) -> None:
        """Send an answer, and note its row for the report."""
        row[_LEFT_AT] = time.time_ns()
        if row[_METHOD_AT] != WEB_SOCKET:  # which a browser reports as none of its requests
            self.served.append(row)
        connection.is_busy = False
        connection.unsent = memoryview(message)
        self._send(connection)

    def _send(self, connection: NginxConnection) -> None:
        while connection.unsent:
            try:
                connection.unsent = connection.unsent[connection.socket.send(connection.unsent):]
            except BlockingIOError:
                break

        events = selectors.EVENT_READ
        if connection.unsent:
            events |= selectors.EVENT_WRITE
        self.events.modify(connection.socket, events, connection)
        if not connection.unsent:
            self._read_requests(connection)


NOT_RECORDED = Answer(0, "GET", "", status=404, headers=(("content-type", "text/plain"),),
                      body=b"not recorded\n")


def has_body(answer: Answer, method: str) -> bool:
    return method != "HEAD" and answer.status not in _WITHOUT_BODY


def response(answer: Answer, with_body: bool = True) -> bytes:
    """The answer as a message of HTTP/1.1."""
    lines = [f"HTTP/1.1 {answer.status} -"]
    lines += [f"{name}: {value}" for name, value in answer.headers if name not in DROPPED]
    body = b""
    if answer.status not in _WITHOUT_BODY:
        lines.append(f"content-length: {len(answer.body)}")
        if with_body:
            body = answer.body
    return "\r\n".join(lines).encode("latin-1", "replace") + _ENDS + body


def main() -> None:
    Backend(sys.argv[1]).serve()


if __name__ == "__main__":
    main()
