"""The servers as processes: where they listen, and what a client cannot do to them."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.programs.hosts.running import Program

FILES = 40  # that a server may have open here: 8 connections
REQUEST = b"GET /9 HTTP/1.1\r\n\r\n"
Start = Callable[..., tuple[Program, dict[str, Any]]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a server on a free port; what it says first."""
    started: list[Program] = []

    def run(*words: str) -> tuple[Program, dict[str, Any]]:
        program = Program((*words, "--port", "0"), ("prlimit", f"--nofile={FILES}"))
        started.append(program)
        return program, program.line()
    yield run
    for program in started:
        program.end()


def connect(said: dict[str, Any], address: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection((address, said["port"]), timeout=300)


def answer(client: socket.socket) -> bytes:
    """What comes until the end, or a whole response; nothing where it was reset."""
    got = b""
    try:
        while b"\r\n\r\n" not in got:
            got += (more := client.recv(4096))
            if not more:
                break
    except ConnectionResetError:
        pass
    return got


@pytest.mark.parametrize("words", [
    ("server",), ("firstflight.testbed.hosts.load_server", "/dev/null")])
def test_a_server_listens_where_it_is_told_and_nowhere_else(
        start: Start, words: tuple[str, ...]) -> None:
    _, by_default = start(*words)
    assert (by_default["event"], by_default["address"]) == ("listening", "127.0.0.1")
    _, said = start(*words, "--address", "127.0.0.2")
    assert said["address"] == "127.0.0.2"
    connect(said, "127.0.0.2").close()
    with pytest.raises(ConnectionRefusedError):
        connect(said, "127.0.0.1")


def test_a_request_has_a_most_of_bytes(start: Start) -> None:
    program, said = start("server")
    for request in (b"GET /" + b"9" * 20_000, b"GET /9 HTTP/1.1\r\n" + b"a: b\r\n" * 9000,
                    REQUEST.replace(b"\r\n\r\n", b"\r\na: " + b"b" * 20_000 + b"\r\n\r\n")):
        with connect(said) as client:
            client.sendall(request)
            assert answer(client) == b""
    with connect(said) as client:
        client.sendall(REQUEST)
        assert answer(client).startswith(b"HTTP/1.1 200 OK")
    assert program.process.poll() is None


def test_a_request_that_does_not_end_is_given_up(start: Start) -> None:
    _, said = start("server", "--deadline", "0.2")
    with connect(said) as slow, connect(said) as kept:
        slow.sendall(REQUEST[:-1])
        kept.sendall(REQUEST)
        assert answer(kept).startswith(b"HTTP/1.1 200 OK")
        assert answer(slow) == b""
        kept.sendall(REQUEST)  # which was silent for as long, between two requests
        assert answer(kept)


def test_silent_connections_make_room(start: Start) -> None:
    program, said = start("server", "--deadline", "0.2")
    silent = [connect(said) for _ in range(FILES)]
    time.sleep(0.3)  # the deadline itself is what is waited for
    with connect(said) as client:
        client.sendall(REQUEST)
        assert answer(client).startswith(b"HTTP/1.1 200 OK")
    assert program.process.poll() is None
    for connection in silent:
        connection.close()


def test_the_load_server_outlives_more_connections_than_it_may_have(start: Start) -> None:
    program, said = start("firstflight.testbed.hosts.load_server", "/dev/null")
    connections = [connect(said) for _ in range(FILES)]
    assert answer(connections[-1]) == b""  # closed at once
    for connection in connections:
        connection.close()
    deadline = time.monotonic() + 120  # until it has seen that they have ended
    while not requested(said):
        assert time.monotonic() < deadline, "it takes none after those that have ended"
    assert program.process.poll() is None


def requested(said: dict[str, Any]) -> bool:
    """Whether the load server answers a new connection."""
    with connect(said) as client:
        try:
            client.sendall(b"GET /9?id=1 HTTP/1.1\r\n\r\n")
        except ConnectionError:
            return False
        return answer(client).startswith(b"HTTP/1.1 200 OK")
