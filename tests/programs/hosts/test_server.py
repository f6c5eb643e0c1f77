"""server.py, on this machine, sends what is requested when it is due, and reports on it."""

from __future__ import annotations

import hashlib
import os
import socket
import struct
import time
from collections.abc import Iterator
from typing import Any

import pytest

from firstflight.testbed.hosts.kernel import SAMPLE_FIELDS, TcpInfo
from firstflight.testbed.hosts.connections import ServedConnection
from firstflight.testbed.hosts.http_messages import parse_path
from firstflight.testbed.hosts.serving import body_of
from tests.programs.hosts.running import (Program, connect, received, running,
                                          wait_until_server_waits)
from tests.running import HANGS_S


@pytest.fixture(name="server", scope="module")
def _server() -> Iterator[tuple[Program, int]]:
    with running("server", "--port", "0") as program:
        yield program, program.line()["port"]


class Client:
    """A connection to the server, and the server's reports on it."""

    def __init__(self, server: tuple[Program, int]) -> None:
        self.program, port = server
        self.socket = connect(port)
        self.port = self.socket.getsockname()[1]

    def ask(self, *paths: str, more: str = "", method: str = "GET") -> int:
        """Send requests in one write. Returns the length of the first one."""
        requests = [f"{method} {path} HTTP/1.1\r\nHost: it\r\n{more}\r\n" for path in paths]
        self.socket.sendall("".join(requests).encode())
        return len(requests[0])

    def report(self) -> dict[str, Any]:
        """The next report on this connection."""
        while (line := self.program.line())["client_port"] != self.port:
            pass
        return line

    def told(self, event: str) -> dict[str, Any]:
        """The next report on this connection, which has to be about this event."""
        line = self.report()
        assert line["event"] == event, line
        return line

    def head(self) -> bytes:
        """The head of the next response, up to its empty line."""
        got = b""
        while b"\r\n\r\n" not in got:
            more = self.socket.recv(1)
            assert more, got
            got += more
        return got

    def answer(self, body_bytes: int) -> bytes:
        """The head of the next response; its body is checked."""
        head = self.head()
        assert received(self.socket, body_bytes) == body_of(body_bytes)
        return head


@pytest.fixture(name="client")
def _client(server: tuple[Program, int]) -> Iterator[Client]:
    client = Client(server)
    yield client
    client.socket.close()


def test_each_response_on_a_connection_is_reported_after_its_acknowledgement(
        client: Client) -> None:
    began = time.monotonic()
    window, first = TcpInfo.of_socket(client.socket).congestion_window, 0
    control = client.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    for number, size in enumerate((5000, 30), start=1):
        request_bytes = client.ask(f"/{size}")
        head = client.answer(size)
        assert head == b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size
        told = client.told("response")
        most_ms = (time.monotonic() - began) * 1000
        assert 0 < told.pop("latency_ms") < most_ms and 0 < told.pop("min_rtt_ms") < most_ms
        assert told.pop("mss") > 10_000  # the loopback's segments are large
        assert told.pop("pacing_bytes_per_s") > 0 and told.pop("send_buffer_bytes") > 10_000
        assert told.pop("first_buffer_bytes") > 10_000
        assert told.pop("reordering") >= 3  # tcp_reordering, and more once it has met some
        first = first or told["connection"]
        assert told == {
            "event": "response", "connection": first, "client_port": client.port,
            "path": f"/{size}", "number_on_connection": number,
            "initial_window": window, "fixed_send_buffer": False, "is_pacing_limited": False,
            "has_nagle": False,
            "congestion_control": control.rstrip(b"\0").decode(),
            "request_bytes": request_bytes, "header_bytes": len(head), "body_bytes": size,
            "sha256": hashlib.sha256(body_of(size)).hexdigest(), "retransmissions": 0,
            "final_window": told["final_window"]}
    client.socket.close()
    closed = client.told("closed")
    assert (closed["connection"], closed["error"], closed["unacknowledged"]) == (
        first, "", 0)


def test_connections_are_numbered_in_order(server: tuple[Program, int]) -> None:
    numbers = []
    for _ in range(2):
        client = Client(server)
        client.socket.close()
        numbers.append(client.told("closed")["connection"])
    assert numbers[1] == numbers[0] + 1


def test_requests_in_one_write_are_answered_in_order(client: Client) -> None:
    client.ask("/100", "/7?burst=2&gap_ms=20", "/300")
    for size in (100, 7, 300):
        assert b"Content-Length: %d\r\n" % size in client.answer(size)
    assert [client.told("response")["path"] for _ in range(3)] == [
        "/100", "/7?burst=2&gap_ms=20", "/300"]


def test_a_request_in_pieces_is_answered_as_one(client: Client) -> None:
    client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for piece in (b"GET /9 HT", b"TP/1.1\r\n", b"\r\n"):
        client.socket.sendall(piece)
    assert client.answer(9).startswith(b"HTTP/1.1 200 OK")
    assert client.told("response")["request_bytes"] == len(b"GET /9 HTTP/1.1\r\n\r\n")


def test_a_connection_with_a_close_header_is_closed(client: Client) -> None:
    client.ask("/10", more="Connection: close\r\n")
    assert b"Connection: close" in client.answer(10) and client.socket.recv(1) == b""
    client.socket.close()
    assert client.told("response")["body_bytes"] == 10
    assert client.told("closed")["unacknowledged"] == 0


def test_the_server_writes_its_head_in_the_requested_pieces(client: Client) -> None:
    """Over the loopback each write arrives by itself."""
    client.ask("/30000?head=17,60,2&until_close=1")
    first = client.socket.recv(17)
    assert first == b"HTTP/1.1 200 OK\r\n"
    assert client.answer(30000).endswith(b"\r\n\r\n") and client.socket.recv(1) == b""
    client.socket.close()
    told = client.told("response")
    assert told["header_bytes"] == 79 and told["latency_ms"] > 0


def test_the_server_sets_the_requested_send_buffer() -> None:
    wanted = parse_path("/9?sndbuf=9000")
    assert wanted is not None
    with socket.socket() as tcp:
        ServedConnection(tcp, ("", 0), TcpInfo.of_socket(tcp), 1, 0.0).set_up(wanted)
        assert tcp.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == 18000


def test_an_unknown_path_is_answered_with_404(client: Client) -> None:
    client.ask("/much")
    assert client.answer(0).startswith(b"HTTP/1.1 404 Not Found")
    assert client.told("response")["body_bytes"] == 0


def test_a_response_leaves_after_the_whole_body_of_its_request(client: Client) -> None:
    client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    head, body = b"POST /9 HTTP/1.1\r\nContent-Length: 200000\r\n\r\n", body_of(200_000)
    client.socket.sendall(head + body[:30_000])
    client.socket.settimeout(0.2)
    with pytest.raises(TimeoutError):
        client.socket.recv(1)
    client.socket.settimeout(HANGS_S)
    client.socket.sendall(body[30_000:] + b"GET /8 HTTP/1.1\r\n\r\n")
    assert client.answer(9).startswith(b"HTTP/1.1 200 OK")
    told = client.told("response")
    assert (told["request_bytes"], told["request_body_bytes"]) == (len(head), 200_000)
    assert told["request_sha256"] == hashlib.sha256(body).hexdigest()
    client.answer(8)
    assert "request_body_bytes" not in client.told("response")


def test_an_unfinished_body_ends_its_connection_at_the_deadline() -> None:
    with running("server", "--port", "0", "--deadline", "0.3") as program:
        client = Client((program, program.line()["port"]))
        client.socket.sendall(b"POST /9 HTTP/1.1\r\nContent-Length: 20\r\n\r\n123")
        assert client.told("closed")["error"] == "no whole request in 0.3 s"
        client.socket.close()


@pytest.mark.parametrize("request_bytes, error", [
    (b"PUT /9 HTTP/1.1\r\n\r\n", "BadRequest: not a request: 'PUT /9 HTTP/1.1'"),
    (b"POST /9 HTTP/1.1\r\nContent-Length: x\r\n\r\n", "BadRequest: Content-Length: 'x'"),
    (b"GET /" + b"9" * 16_380, "BadRequest: request too long")])
def test_a_malformed_request_ends_its_connection_with_an_error(client: Client, request_bytes: bytes,
                                                               error: str) -> None:
    client.socket.sendall(request_bytes)
    closed = client.told("closed")
    assert (closed["error"], closed["unacknowledged"]) == (error, 0)


def test_the_longest_request_is_answered(client: Client) -> None:
    request = b"GET /9 HTTP/1.1\r\na: \r\n\r\n"
    client.socket.sendall(request.replace(b"a: ", b"a: " + b"b" * (16_384 - len(request))))
    client.answer(9)
    assert client.told("response")["request_bytes"] == 16_384


def test_a_reset_connection_is_reported_with_its_unacknowledged_responses(client: Client) -> None:
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("=ii", 1, 0))
    client.ask(f"/{50 << 20}")
    received(client.socket, 1000)
    client.socket.close()
    closed = client.told("closed")
    assert closed["error"].startswith(("ConnectionResetError", "BrokenPipeError"))
    assert closed["unacknowledged"] == 1


def test_a_response_larger_than_the_buffers_arrives_whole(client: Client) -> None:
    size = 12 << 20
    client.ask(f"/{size}")
    wait_until_server_waits(client.socket)
    client.answer(size)
    assert client.told("response")["body_bytes"] == size


def test_a_queued_responses_latency_begins_when_it_leaves(server: tuple[Program, int]) -> None:
    client = Client.__new__(Client)
    client.program, port = server
    client.socket = socket.socket()
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.socket.settimeout(HANGS_S)
    client.socket.connect(("127.0.0.1", port))
    client.port = client.socket.getsockname()[1]
    client.ask("/30000", "/30")
    wait_until_server_waits(client.socket)
    began = time.monotonic()
    client.answer(30_000)
    client.answer(30)
    client.told("response")
    latency_ms = client.told("response")["latency_ms"]
    assert 0 <= latency_ms <= (time.monotonic() - began) * 1000
    client.socket.close()


def test_a_back_ends_part_comes_after_its_gap(client: Client) -> None:
    began = time.monotonic()
    client.ask("/1000?burst=100&gap_ms=60")
    client.head()
    # The first 100 bytes come at once, and byte 101 after the gap of 60 ms.
    assert received(client.socket, 101) == body_of(101)
    assert time.monotonic() - began > 0.058
    assert received(client.socket, 899) == body_of(1000)[101:]
    assert client.told("response")["latency_ms"] > 58


def test_no_write_of_a_schedule_leaves_before_its_time(client: Client) -> None:
    began, arrived = time.monotonic(), 0
    client.ask("/90?at=0:30;30..50/10:20;70:10")
    client.head()
    while arrived < 90:
        arrived += len(client.socket.recv(90))
        at_ms = (time.monotonic() - began) * 1000
        assert arrived <= sum(size for due_ms, size in ((0, 30), (30, 20), (40, 20), (70, 20))
                              if at_ms > due_ms - 2)
    assert arrived == 90 and at_ms > 68
    assert client.told("response")["body_bytes"] == 90


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may set so large a send buffer")
def test_a_traced_connection_reports_its_samples_at_its_end(client: Client) -> None:
    client.ask("/20000?trace_ms=1")
    client.answer(20_000)
    told = client.told("response")
    client.ask("/20000?trace_ms=1")
    client.answer(20_000)
    client.told("response")
    client.socket.close()
    trace = client.told("trace")
    assert trace["connection"] == told["connection"]
    assert trace["fields"] == list(SAMPLE_FIELDS)
    samples = [dict(zip(SAMPLE_FIELDS, sample)) for sample in trace["samples"]]
    assert samples[0]["cwnd"] == told["initial_window"] and samples[0]["unacked"] == 0
    assert any(sample["unacked"] for sample in samples) and samples[-1]["unacked"] == 0
    assert client.told("closed")["error"] == ""


def test_a_client_that_leaves_early_disturbs_no_other(server: tuple[Program, int],
                                                      client: Client) -> None:
    for gap_ms in (200, 2000, 20_000, 200_000):  # longer if a busy machine's client left too late
        leaving = Client(server)
        leaving.ask(f"/1000?burst=100&gap_ms={gap_ms}")
        received(leaving.socket, 50)
        leaving.socket.close()
        if leaving.report()["event"] == "closed":
            break
    time.sleep(gap_ms / 1000 + 0.1)  # the rest is due
    client.ask("/5")
    client.answer(5)


def test_a_server_with_a_foreign_address_ends_with_status_1() -> None:
    with running("server", "--port", "0", "--address", "192.0.2.1") as program:
        assert program.process.wait(HANGS_S) == 1


def test_a_server_ends_with_status_0_on_sigterm() -> None:
    with running("server", "--port", "0") as program:
        program.line()
        program.process.terminate()
        assert program.process.wait(HANGS_S) == 0
