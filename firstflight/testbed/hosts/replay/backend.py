"""The server behind nginx: finds the recorded answer to a request, waits, and answers.

nginx speaks TLS and HTTP/2 with the browser, and passes each request on over a Unix socket, as
HTTP/1.1, with X-First-Flight: SCHEME PORT, where PORT is the client's. In a guest this takes no
time. On standard input it reads JSON lines, and answers each with one:

    {"begin": FILE}     answers a new load from this recording        {"error": ""}
    {"report": true}    what it answered since                        {"served": [[…], …]}

A row is [number of the answer, -1 for none; client's port, method, URL, ns of the clock when the
request came and when the answer left, status, bytes of the body as it is sent].

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
from typing import Any

from firstflight.net.waiting import Timer
from firstflight.testbed.hosts.control import STANDARD_INPUT, Orders, report
from firstflight.testbed.hosts.replay import recording
from firstflight.testbed.hosts.replay.recording import Answer, Recording, Replay

HEADER = "x-first-flight"  # nginx tells by it what the connection with the client is
MOST_HEAD_BYTES, MOST_BODY_BYTES = 1 << 18, 64 << 20
MOST_ROWS, MOST_URL = 20_000, 2000
WEB_SOCKET = "WebSocket"  # in place of a method; none is recorded
_ENDS = b"\r\n\r\n"
_WITHOUT_BODY = (204, 304)
# Of the connection between a server and a client, not of the answer (RFC 9110, 7.6.1); nginx and
# this program write their own.
DROPPED = frozenset(("connection", "keep-alive", "proxy-connection", "transfer-encoding",
                     "upgrade", "content-length", "date", "server", "trailer"))


class BadRequest(Exception):
    """nginx passed on what is no request."""


class Passed:
    """A connection from nginx."""

    def __init__(self, opened: socket.socket) -> None:
        self.socket = opened
        self.received = b""
        self.unsent = memoryview(b"")
        self.is_busy = False  # it waits to answer
        self.is_closed = False


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
        # By time: answers that wait.
        self.due: list[tuple[int, int, Passed, bytes, list[object]]] = []
        self.number = 0
        self.recordings: dict[str, Recording] = {}
        self.replay: Replay | None = None
        self.served: list[list[object]] = []

    def serve(self) -> None:
        while not self.orders.ended:
            for key, mask in self.events.select():
                if isinstance(key.data, Passed):
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
        self.events.register(opened, selectors.EVENT_READ, Passed(opened))

    def _service(self, passed: Passed, mask: int) -> None:
        try:
            if mask & selectors.EVENT_WRITE:
                self._send(passed)
            if mask & selectors.EVENT_READ and not passed.is_closed:
                more = passed.socket.recv(1 << 18)
                passed.received += more
                if not more or len(passed.received) > MOST_HEAD_BYTES + MOST_BODY_BYTES:
                    self._close(passed)
                    return
                self._read_requests(passed)
        except (OSError, BadRequest):
            self._close(passed)

    def _close(self, passed: Passed) -> None:
        if not passed.is_closed:
            passed.is_closed = True
            self.events.unregister(passed.socket)
            passed.socket.close()

    def _read_requests(self, passed: Passed) -> None:
        """Take the next whole request, and answer it when its time has come."""
        if passed.is_busy or passed.unsent:
            return
        head, end, rest = passed.received.partition(_ENDS)
        if not end:
            if len(head) > MOST_HEAD_BYTES:
                raise BadRequest
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = dict((name.lower(), value.strip()) for name, _, value in
                       (line.partition(":") for line in lines))
        size = headers.get("content-length", "0")
        if not size.isdecimal() or int(size) > MOST_BODY_BYTES:
            raise BadRequest
        if len(rest) < int(size):
            return
        passed.received = rest[int(size):]
        passed.is_busy = True
        self._plan(passed, first, headers, rest[:int(size)])

    def _plan(self, passed: Passed, first: str, headers: dict[str, str], body: bytes) -> None:
        try:
            method, target, _ = first.split(" ")
            scheme, words = headers[HEADER].split(" ")
            port = int(words)
            named = WEB_SOCKET if "sec-websocket-key" in headers else method
            origin = f"{scheme}://{headers['host'].lower()}"
        except (KeyError, ValueError) as error:
            raise BadRequest from error
        number = None if self.replay is None else self.replay.find(origin, method, target, body)
        answer = (NOT_RECORDED if number is None or self.replay is None else
                  self.replay.recording.answers[number])
        now_ns = time.monotonic_ns()
        message = response(answer, with_body=method != "HEAD")
        size = len(answer.body) if has_body(answer, method) else 0
        row: list[object] = [-1 if number is None else number, port, named,
                             f"{origin}{target}"[:MOST_URL], time.time_ns(), 0, answer.status, size]
        if answer.wait_ms <= 0:
            self._give(passed, message, row)
            return
        self.number += 1
        heapq.heappush(self.due, (now_ns + round(answer.wait_ms * 1e6), self.number, passed,
                                  message, row))
        self.timer.set(self.due[0][0])

    def _answer_due(self) -> None:
        while self.due and self.due[0][0] <= time.monotonic_ns():
            _, _, passed, message, row = heapq.heappop(self.due)
            if not passed.is_closed:
                try:
                    self._give(passed, message, row)
                except (OSError, BadRequest):
                    self._close(passed)
        self.timer.set(self.due[0][0] if self.due else 0)

    def _give(self, passed: Passed, message: bytes, row: list[object]) -> None:
        row[5] = time.time_ns()
        if row[2] != WEB_SOCKET:  # which a browser reports as none of its requests
            self.served.append(row)
        passed.is_busy = False
        passed.unsent = memoryview(message)
        self._send(passed)

    def _send(self, passed: Passed) -> None:
        while passed.unsent:
            try:
                passed.unsent = passed.unsent[passed.socket.send(passed.unsent):]
            except BlockingIOError:
                break
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if passed.unsent else 0)
        self.events.modify(passed.socket, wanted, passed)
        if not passed.unsent:
            self._read_requests(passed)


NOT_RECORDED = Answer(0, "GET", "", 404, (("content-type", "text/plain"),), b"not recorded\n")


def has_body(answer: Answer, method: str) -> bool:
    return method != "HEAD" and answer.status not in _WITHOUT_BODY


def response(answer: Answer, with_body: bool = True) -> bytes:
    """The answer as a message of HTTP/1.1."""
    lines = [f"HTTP/1.1 {answer.status} -"]
    lines += [f"{name}: {value}" for name, value in answer.headers if name not in DROPPED]
    if answer.status not in _WITHOUT_BODY:
        lines.append(f"content-length: {len(answer.body)}")
    body = answer.body if with_body and answer.status not in _WITHOUT_BODY else b""
    return "\r\n".join(lines).encode("latin-1", "replace") + _ENDS + body


if __name__ == "__main__":
    Backend(sys.argv[1]).serve()
