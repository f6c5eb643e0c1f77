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
                                         way and after every write; reported when
                                         the connection ends
    … &nagle=1                           with Nagle's algorithm
    … &head=<n>,<n>,…                    headers in writes of these sizes
    … &until_close=1                     no Content-Length; closed after it
    … &sndbuf=<bytes>                    with SO_SNDBUF set to that
    … &think_ms=<ms>                     nothing leaves before that time

POST has the same paths; the response leaves once the request's body has come whole.
Without such a parameter headers and body leave in one write, with TCP_NODELAY: two
small writes would meet Nagle's algorithm. With a gap there are two writes, as in the
paper's Web search (section 4.1). The response latency is the paper's (section 2): from the
first byte sent to the acknowledgement of the last one. The kernel's time stamps give the
end, and also the start if tickets fill the window
(SOF_TIMESTAMPING_TX_ACK, Documentation/networking/timestamping.rst).

A request has to be complete DEADLINE_S after its beginning. If there are as many
connections as the process may open files, a new one replaces one that was silent for
that long; if there is none, the new one is closed.

With --secure-port it speaks TLS 1.3 there, and reads from its standard input how,
a JSON line each, which it answers (firstflight/testbed/hosts/tls.py):

    {"chain": FILE, "key": FILE, "tickets": 2, "record_bytes": 16384, "buffer_bytes": 4096}
    {"event": "secured", "error": ""}

or to listen on new sockets, which begin with today's sysctls, or to close the connections that
their clients have given up, without a packet:

    {"listen": true}
    {"event": "listening again"}
    {"forget": true}
    {"event": "forgotten"}

One process, one event loop, no thread: `server.py [--address A] [--port 80]`.
"""

from __future__ import annotations

import argparse
import contextlib
import selectors
import signal
import socket
import sys
import time
from functools import partial
from typing import TYPE_CHECKING

from firstflight.testbed.hosts import kernel
from firstflight.testbed.hosts.control import report
from firstflight.testbed.hosts.kernel import SAMPLE_FIELDS, TcpInfo
from firstflight.testbed.hosts.connections import Listener, ServedConnection
from firstflight.testbed.hosts.http_messages import (BadRequest, RequestBody, Response, Sending,
                                                   body_length, message, parse_path,
                                                   parse_request, respond)
from firstflight.testbed.hosts.serving import add_flags, run_server, tcp_port

if TYPE_CHECKING:  # it imports ssl, which plain HTTP does without
    from firstflight.testbed.hosts.tls import Tls

MAX_REQUEST_BYTES, DEADLINE_S = 16384, 120.0  # of a head; in which it has to come
READ_BYTES = 65536


class Server(Listener):
    """Accepts, answers, and reports; `serve` runs until the process is ended."""

    def serve(self) -> None:
        report(self.address_report)
        while True:
            for key, events in self.wait():
                if isinstance(key.data, ServedConnection):
                    self._service(key.data, events)
                else:
                    key.data()
            self.run_due()

    def _continue(self, connection: ServedConnection) -> None:
        """Release and send the next part of the response."""
        response = connection.sending
        if response is None:
            return
        _, response.released = response.writes.popleft()
        self._schedule(connection, response)
        self._service(connection, selectors.EVENT_WRITE)

    def _schedule(self, connection: ServedConnection, response: Sending) -> None:
        """Have the next part of a response sent when it is due."""
        if response.writes:
            due_ms, _ = response.writes[0]
            self.call_at(response.started_ns + round(due_ms * 1e6), connection, self._continue)

    def _sample(self, connection: ServedConnection) -> None:
        """Take a sample; schedule the next one while data is under way."""
        trace = connection.trace
        if trace is None:
            return
        if trace.take(connection.socket) and not trace.due:
            trace.due = True
            self.call_at(time.monotonic_ns() + trace.interval_ns, connection, self._sample_due)

    def _sample_due(self, connection: ServedConnection) -> None:
        assert connection.trace is not None
        connection.trace.due = False
        self._sample(connection)

    def _service(self, connection: ServedConnection, events: int) -> None:
        connection.heard = time.monotonic()
        try:
            # epoll reports a time stamp as an error, which selectors passes on as readable and
            # writable. So look for time stamps first.
            self._read_acknowledgements(connection)
            if connection.sending is not None and events & selectors.EVENT_WRITE:
                self._send(connection)
            if events & selectors.EVENT_READ:
                self._receive(connection)
        except (OSError, BadRequest) as error:
            self.close(connection, error=f"{type(error).__name__}: {error}")

    def _receive(self, connection: ServedConnection) -> None:
        try:
            data = connection.socket.recv(READ_BYTES)
        except BlockingIOError:
            return

        if not data:
            # The ACK of the last bytes may have come with the FIN.
            self._read_acknowledgements(connection)
            self.close(connection)
            return
        if connection.ended:  # OpenSSL 3.5's clients call an end without close_notify an error
            return

        if connection.tls is not None:
            data = self._through_tls(connection, connection.tls, data)
        began = not (connection.received or connection.body)
        if connection.body is not None:
            data = self._take_body(connection, connection.body, data)
        connection.received += data
        self._answer_next(connection)
        if len(connection.received) > MAX_REQUEST_BYTES:  # behind a response that is being sent
            raise BadRequest("request too long")

        if began and (connection.received or connection.body):
            self.call_at(time.monotonic_ns() + round(self.deadline_s * 1e9), connection,
                         partial(self._expect, connection.responses))

    def _take_body(self, connection: ServedConnection, body: RequestBody, data: bytes) -> bytes:
        """Take data of a body, and what else has come of it; return what follows it."""
        rest = body.take(data)
        while len(data) == READ_BYTES and body.left:
            try:
                data = connection.socket.recv(READ_BYTES)
            except BlockingIOError:
                break
            rest = body.take(data)
        return rest

    def _through_tls(self, connection: ServedConnection, tls: Tls, data: bytes) -> bytes:
        """The plain text of received bytes; answers of the handshake are sent."""
        if tls.done:
            return tls.decrypt(data)
        try:
            answer, writes = tls.continue_handshake(data)
        except OSError:  # ssl.SSLError is one
            with contextlib.suppress(OSError):
                connection.socket.send(tls.alert())
            raise
        if tls.done:
            connection.after_handshake = TcpInfo.of_socket(connection.socket)
        if answer:
            self._start(connection, message(answer, writes))
        return tls.decrypt(b"") if tls.done else b""

    def _start(self, connection: ServedConnection, sending: Sending) -> None:
        """Send this after what is being sent now."""
        if connection.sending is not None:
            connection.behind.append(sending)
            return
        sending.started_ns = time.monotonic_ns()
        connection.sending = sending
        self._schedule(connection, sending)
        self._send(connection)

    def _expect(self, responses: int, connection: ServedConnection) -> None:
        """Close a connection whose next request has begun but is not complete.

        A body has as long from each part of it to the next.
        """
        if connection.responses != responses or connection.sending:
            return
        left_s = connection.heard + self.deadline_s - time.monotonic()
        if connection.body is not None and left_s > 0:
            self.call_at(time.monotonic_ns() + round(left_s * 1e9), connection,
                         partial(self._expect, responses))
        elif connection.received or connection.body is not None:
            self.close(connection, error=f"no whole request in {self.deadline_s:g} s")

    def _answer_next(self, connection: ServedConnection) -> None:
        """Start the next response if a request is complete and no response is being sent."""
        if connection.sending is not None:
            return

        if connection.body is None:
            head, end, rest = connection.received.partition(b"\r\n\r\n")
            if len(head) > MAX_REQUEST_BYTES:
                raise BadRequest("request too long")
            if not end:
                return
            connection.body = RequestBody(head, body_length(head))
            connection.received = connection.body.take(rest)
        if connection.body.left:
            return

        started_ns = time.monotonic_ns()
        body, connection.body = connection.body, None
        response = connection.sending = self._respond(connection, body)
        connection.unacknowledged.append(response)
        response.started_ns = started_ns
        self._schedule(connection, response)
        self._send(connection)

    def _respond(self, connection: ServedConnection, body: RequestBody) -> Response:
        request = parse_request(body.head)
        spec = parse_path(request[1])
        encrypt = connection.tls.encrypt if connection.tls is not None else None
        response = respond(request, spec, request_bytes=len(body.head) + 4,
                           offset=connection.sent_bytes, encrypt=encrypt)
        if body.received_bytes:
            response.request_body = body
        if spec:
            connection.set_up(spec)
        connection.responses += 1
        return response

    def _send(self, connection: ServedConnection) -> None:
        response = connection.sending
        if response is None:
            return
        if connection.trace:
            connection.trace.take(connection.socket)

        while response.sent < response.released:
            now_ns = time.time_ns()
            try:
                sent = connection.socket.sendmsg([response.pending], kernel.ACK_STAMP)
            except BlockingIOError:
                self._watch(connection, selectors.EVENT_READ | selectors.EVENT_WRITE)
                return
            connection.sent_bytes += sent
            response.sent += sent
            connection.note_start(now_ns)

        self._sample(connection)
        self._watch(connection, selectors.EVENT_READ)
        if response.writes:
            return
        connection.sending = None
        if response.close:
            connection.socket.shutdown(socket.SHUT_WR)
            connection.ended = True
        elif connection.behind:
            self._start(connection, connection.behind.popleft())
        else:
            self._answer_next(connection)

    def _read_acknowledgements(self, connection: ServedConnection) -> None:
        """Report every response whose last byte was acknowledged, by the kernel's time stamps."""
        for stamp_ns, offset in kernel.acknowledgements(connection.socket):
            connection.note_start(stamp_ns)
            unacknowledged = connection.unacknowledged
            while unacknowledged and offset >= unacknowledged[0].end_offset:
                report(connection.report(unacknowledged.pop(0), stamp_ns))

    def close(self, connection: ServedConnection, error: str = "") -> None:
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

    def _watch(self, connection: ServedConnection, events: int) -> None:
        self.selector.modify(connection.socket, events, connection)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    add_flags(parser)
    parser.add_argument("--deadline", type=float, default=DEADLINE_S, metavar="S",
                        help="in which a request has to come (default %(default)g)")
    parser.add_argument("--secure-port", type=tcp_port, metavar="PORT",
                        help="for TLS 1.3, with a certificate chain that standard input names"
                             " (default none)")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    given = parser.parse_args()

    def serve() -> None:
        Server(given.address, given.port, given.deadline, secure_port=given.secure_port).serve()

    return run_server("server.py", given.address, given.port, serve=serve)


if __name__ == "__main__":
    sys.exit(main())
