"""Hosts: requests, sockets that wait, what TCP says of itself."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator

import pytest

from firstflight.net.waiting import waited_ns
from firstflight.testbed.hosts.kernel import SAMPLE_FIELDS, InfoTrace, TcpInfo, sample_of
from firstflight.testbed.hosts.server.connections import EventLoop, ServedConnection
from firstflight.testbed.hosts.server.http import (BadRequest, PathSpec, parse_path, parse_request,
                                                   respond, write_times)


@pytest.mark.parametrize(("head", "read"), [
    (b"GET /5 HTTP/1.1\r\nHost: me", ("GET", "/5", False)),
    (b"GET /5 HTTP/1.1\r\nConnection: Close", ("GET", "/5", True)),
    (b"HEAD /5 HTTP/1.0", ("HEAD", "/5", True)),
    (b"GET /5 HTTP/1.0\r\nConnection: keep-alive", ("GET", "/5", False))])
def test_a_request_and_whether_the_connection_ends(head: bytes,
                                                   read: tuple[str, str, bool]) -> None:
    assert parse_request(head) == read


@pytest.mark.parametrize("head", [b"", b"GET /5", b"POST /5 HTTP/1.1", b"GET /5 SMTP"])
def test_what_is_no_request_is_refused(head: bytes) -> None:
    with pytest.raises(BadRequest):
        parse_request(head)


@pytest.mark.parametrize("path", ["/", "/-1", "/much", f"/{1 << 31}", "/5?burst=-1",
                                  "/5?sndbuf=-1", "/5?sndbuf=x", "/5?gap_ms=inf", "/5?trace_ms=-1"])
def test_a_path_out_of_range_is_not_there(path: str) -> None:
    assert parse_path(path) is None


def test_a_response_is_as_long_as_it_says() -> None:
    response = respond(("GET", "/1000", True), parse_path("/1000"), 20, offset=7)
    head, _, body = bytes(response.payload).partition(b"\r\n\r\n")
    assert b"200 OK" in head and b"Content-Length: 1000" in head and b"close" in head
    assert len(body) == response.body_bytes == 1000
    assert response.released == len(response.payload) and not response.writes
    assert response.end_offset == 7 + len(response.payload) - 1


def test_what_is_not_there_and_what_is_only_asked_about() -> None:
    assert b"404 Not Found" in bytes(respond(("GET", "/x", False), None, 20, 0).payload)
    asked_about = respond(("HEAD", "/9", False), parse_path("/9"), 20, 0)
    assert len(asked_about.payload) == asked_about.header_bytes


@pytest.mark.parametrize("text", ["5", "5:", "a:1", "5:-1", "5:0", "2:1;1:1", "5..4/1:1",
                                  "0..1/0:1", "nan:1", "0..inf/1:1", "-1:5", "0..1e9/1:5"])
def test_the_server_refuses_a_bad_schedule(text: str) -> None:
    assert parse_path(f"/100?at={text}") is None


def test_what_a_schedule_lets_out_when() -> None:
    def times(path: str) -> list[tuple[float, int]]:
        wanted = parse_path(path)
        assert isinstance(wanted, PathSpec)
        return list(write_times(wanted, 50, 50 + wanted.body_bytes))
    assert times("/100") == [(0.0, 150)]
    assert times("/100?burst=30&gap_ms=7") == [(0.0, 80), (7.0, 150)]
    assert times("/100?burst=300&gap_ms=7") == [(0.0, 150)]
    assert times("/100?at=0:30;5:70") == [(0.0, 80), (5.0, 150)]
    assert times("/100?at=3:30;5:30") == [(0.0, 50), (3.0, 80), (5.0, 150)]  # the rest at the end
    assert times("/100?at=0:300") == [(0.0, 150)]


def test_headers_are_as_long_as_their_writes() -> None:
    response = respond(("GET", "/9000", True), parse_path("/9000?head=17,38,37,2&until_close=1"),
                       20, 0)
    head, _, body = bytes(response.payload).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n") and len(head) + 4 == 94 == response.header_bytes
    assert b"Content-Length" not in head and len(body) == 9000
    assert tuple(response.cuts) == (17, 55, 92, 94)


def test_headers_that_cannot_be_so_short_are_not_there() -> None:
    assert b"404 Not Found" in bytes(respond(("GET", "/9", True), parse_path("/9?head=17,2"), 20,
                                             0).payload)


def test_a_body_that_the_end_of_the_connection_ends_closes_it() -> None:
    response = respond(("GET", "/9", False), parse_path("/9?until_close=1"), 20, 0)
    assert response.close and b"Connection: close" in bytes(response.payload)


@pytest.mark.parametrize("text", ["0", "-1", "17,x", "20000", ",".join(["1"] * 101)])
def test_the_server_refuses_writes_of_no_size(text: str) -> None:
    assert parse_path(f"/100?head={text}") is None


# tcp_info -----------------------------------------------------------------------------

# Offsets in struct tcp_info (include/uapi/linux/tcp.h), each field's own number there.
OFFSETS = {"congestion_state": 1, "flags": 7, "retransmission_timeout_us": 8, "mss": 16,
           "unacknowledged": 24, "selectively_acknowledged": 28, "lost": 32,
           "retransmitted_in_flight": 36, "rtt_us": 68, "slow_start_threshold": 76,
           "congestion_window": 80, "reordering": 88, "retransmissions": 100,
           "pacing_rate": 104, "most_pacing_rate": 112, "unsent_bytes": 144,
           "min_rtt_us": 148, "sent_bytes": 200, "retransmitted_bytes": 208,
           "send_window_bytes": 228}


@pytest.fixture
def connection() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with socket.create_connection(listener.getsockname()) as near, listener.accept()[0]:
            yield near


def test_every_field_is_read_where_the_kernel_has_it() -> None:
    raw = bytearray(240)
    for number, offset in enumerate(OFFSETS.values(), start=1):
        raw[offset] = number
    assert TcpInfo.read(bytes(raw[:232]))._asdict() == {
        name: number for number, name in enumerate(OFFSETS, start=1)}


def test_what_an_older_kernel_does_not_tell_is_0() -> None:
    raw = bytearray(struct.pack("=I", 7) * 48)  # up to tcpi_delivered, as Linux 4.18 has it
    info = TcpInfo.read(bytes(raw))
    assert (info.congestion_window, info.sent_bytes, info.send_window_bytes) == (7, 0, 0)


def test_a_connection_of_the_running_kernel(connection: socket.socket) -> None:
    connection.send(b"five!")
    info = TcpInfo.of_socket(connection)
    assert info.congestion_window > 0 and info.mss > 500 and info.sent_bytes == 5


def test_a_sample_is_kept_only_where_something_has_changed(connection: socket.socket) -> None:
    info = TcpInfo.of_socket(connection)
    assert len(sample_of(info, 1)) == len(SAMPLE_FIELDS)
    trace = InfoTrace(interval_ns=1_000_000)
    assert not trace.take(connection) and not trace.take(connection)
    assert len(trace.samples) == 1


# Waiting ------------------------------------------------------------------------------

@pytest.fixture
def loop() -> Iterator[EventLoop]:
    loop = EventLoop()
    yield loop
    loop.selector.close()
    loop.timer.close()


def served() -> ServedConnection:
    return ServedConnection(socket.socket(), ("", 0), TcpInfo.read(b""), 1, 0.0)


def test_a_wait_is_over_when_something_is_due_and_not_before(loop: EventLoop) -> None:
    open_one, done = served(), []
    loop.at(time.monotonic_ns() + 7_000_000, open_one, done.append)
    loop.wait()
    loop.do_what_is_due()
    assert done == [open_one] and not loop.due
    open_one.socket.close()


def test_what_is_due_on_a_closed_connection_wakes_nobody(loop: EventLoop) -> None:
    closed, open_one, done = served(), served(), []
    closed.socket.close()
    loop.at(time.monotonic_ns() + 1_000_000, closed, done.append)
    loop.at(time.monotonic_ns() + 7_000_000, open_one, done.append)
    loop.wait()
    loop.do_what_is_due()
    assert done == [open_one]
    open_one.socket.close()


def test_nothing_due_any_more_ends_no_wait(loop: EventLoop) -> None:
    ours, theirs = socket.socketpair()
    heard: list[bytes] = []
    loop.call(ours, lambda: heard.append(ours.recv(1)))
    closed = served()
    closed.socket.close()
    loop.at(time.monotonic_ns(), served(), lambda open_one: open_one.socket.close())
    loop.wait()
    loop.do_what_is_due()
    loop.at(time.monotonic_ns() + 1_000_000, closed, lambda _: None)
    theirs.send(b"x")
    events = loop.wait()
    assert [key.fileobj for key, _ in events] == [ours]
    ours.close()
    theirs.close()


@pytest.mark.parametrize(("wait_ns", "waited"), [
    (-1, 0), (0, 0), (1, 1_002), (3_184_001, 3_188_186), (3_185_000, 3_188_186),
    (5_000_000, 5_005_001),
    # 99 % of it, up to whole microseconds, and a thousandth; then the rest in the same way.
    (361_633_000, 358_017_000 + 358_017 + 1 + 3_258_000 + 3_258 + 1)])
def test_a_wait_is_as_late_as_an_undisturbed_select(wait_ns: int, waited: int) -> None:
    assert waited_ns(wait_ns) == waited
