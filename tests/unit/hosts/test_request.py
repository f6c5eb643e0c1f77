"""What server.py is asked for, and when how much of its response may leave."""

from __future__ import annotations

import pytest

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
