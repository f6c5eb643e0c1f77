"""The probe observes the first flight of servers on this machine, over one connection."""

from __future__ import annotations

import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from firstflight.net import bpf
from firstflight.probe import client, tap
from firstflight.probe.verdict import ProbedConnection
from firstflight.testbed.hosts.certificates import ChainSpec, make_chain
from firstflight.testbed.hosts.kernel import TcpInfo
from tests.programs.hosts.running import connect, running
from tests.running import HANGS_S, wait_until

needs_capture = pytest.mark.skipif(os.geteuid() != 0, reason="a tap needs root")


@contextmanager
def serving(answer: Callable[[socket.socket], None], family: int = socket.AF_INET,
            peeked: bool = False) -> Iterator[tuple[int, list[bytes]]]:
    """A server that calls `answer` for every connection: its port, and the requests that it got.

    peeked: whether the request stays in the socket for `answer` to read.
    """
    listener = socket.create_server(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0),
                                    family=family)
    requested: list[bytes] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                requested.append(connection.recv(65536, socket.MSG_PEEK if peeked else 0))
                answer(connection)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1], requested
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def says(head: bytes, body: int = 0) -> Callable[[socket.socket], None]:
    """An answer with this head and so many bytes of body."""
    return lambda connection: connection.sendall(head + b"\r\n\r\n" + bytes(body))


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 300"


def observed(port: int, host: str = "127.0.0.1", capture: bool = True) -> ProbedConnection:
    """Probe a server with a URL that has to be escaped."""
    return client.observe(urlsplit(f"http://{host}:{port}/a b?c=\r\nX: é"), capture)


def may_filter() -> bool:
    """Whether this kernel lets this user set a filter on a socket. Some let only root."""
    with socket.socket() as one:
        try:
            bpf.attach(one, client._NO_DATA)
        except PermissionError:
            return False
    return True


filters = pytest.mark.skipif(not may_filter(), reason="this kernel lets only root set a filter")


@needs_capture
@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"),
                                              (socket.AF_INET6, "[::1]")])
def test_a_probe_captures_the_packets_of_its_own_connection(family: int, host: str) -> None:
    with serving(says(OK, 300), family) as (port, requested):
        seen = observed(port, host)
    assert seen.captured and (seen.response.status, seen.response.ended) == (200, True)
    size = len(OK) + 4 + 300
    assert (seen.response.response_bytes, seen.response.size_bytes) == (size, size)
    request, *_ = [packet for packet in seen.packets if not packet.to_client]
    assert request.payload_bytes == len(requested[0]) and request.window << seen.scale > 60_000
    segment, again = [packet for packet in seen.packets
                      if packet.to_client and packet.payload_bytes]
    assert segment.payload_bytes == again.payload_bytes == size
    assert segment.seq == again.seq == request.ack and again.time_ns > segment.time_ns
    assert len(seen.before) == 3 and seen.before[1].flags == 0x12


@filters
def test_without_the_right_to_capture_segments_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(client, "ConnectionTap", refused)
    retransmissions: list[int] = []

    def answer(connection: socket.socket) -> None:
        says(OK, 300)(connection)
        connection.recv(1)  # until the probe has ended
        retransmissions.append(TcpInfo.of_socket(connection).retransmissions)

    with serving(answer) as (port, _):
        seen = observed(port)
    assert not seen.captured and seen.packets == []
    # How long the probe waits, and how often a timer sends the segment, depends on the machine.
    assert 1 <= seen.counts[-1][1] <= 1 + retransmissions[0]
    assert seen.response.response_bytes == len(OK) + 304 and seen.window_bytes in (0, 65536)


@filters
@pytest.mark.parametrize("head", [OK, OK + b"\r\nServer: one", OK + b" \t\r\nETag: 300"])
def test_the_size_is_read_from_the_head_wherever_it_stands(head: bytes) -> None:
    """Most servers have other headers after Content-Length. The connection stays open here."""
    def answer(connection: socket.socket) -> None:
        says(head, 300)(connection)
        connection.recv(1)

    with serving(answer) as (port, _):
        seen = observed(port, capture=False)
    assert seen.response.ended and seen.response.size_bytes == seen.response.response_bytes == len(
        head) + 304
    large = head.replace(b": 300", b": 200000", 1)
    with serving(says(large, 200_000)) as (port, _):
        seen = observed(port, capture=False)
    assert seen.response.size_bytes == len(large) + 200_004


@filters
def test_a_probe_sends_one_request_with_its_url_escaped() -> None:
    with serving(says(OK, 300)) as (port, requested):
        observed(port, capture=False)
    (request,) = requested
    head, _, rest = request.partition(b"\r\n\r\n")
    lines = head.decode("ascii").split("\r\n")
    assert lines[0] == "GET /a%20b?c=X:%20%C3%A9 HTTP/1.1" and rest == b""
    assert lines[1:] == [f"Host: 127.0.0.1:{port}", "User-Agent: first-flight-probe",
                         "Accept: */*", "Connection: close"]


@filters
@pytest.mark.parametrize(("head", "status", "location"), [
    (b"HTTP/1.1 301 Moved\r\nLocation: https://elsewhere/\x1b[2J\r\nContent-Length: 0", 301,
     "https://elsewhere/\x1b[2J"),
    (b"HTTP/1.0 404 Not Found", 404, "")])
def test_a_redirect_or_an_error_is_reported_and_not_followed(head: bytes, status: int,
                                                             location: str) -> None:
    with serving(says(head)) as (port, requested):
        seen = observed(port, capture=False)
    assert (seen.response.status,
            seen.response.location) == (status, location) and len(requested) == 1


@filters
def test_a_server_without_an_answer_in_http_is_refused_with_the_reason(
        monkeypatch: pytest.MonkeyPatch) -> None:
    for answer, within_s, words in (
            (says(b"SSH-2.0-something"), HANGS_S, "does not answer in HTTP/1.1"),
            (lambda connection: None, HANGS_S, "closes the connection without an answer"),
            (lambda connection: connection.recv(1), 0.3, "sends nothing for 0.3 s")):
        monkeypatch.setattr(client, "ANSWER_S", within_s)
        with serving(answer) as (port, _):
            for capture in (True, False):
                with pytest.raises(client.ProbeFailed, match=words):
                    observed(port, capture=capture)
    with socket.socket() as taken:  # where nobody listens
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(client.ProbeFailed, match="cannot be reached: Connection refused"):
            observed(taken.getsockname()[1])
    with pytest.raises(client.ProbeFailed, match="has no address"):
        client.observe(urlsplit("http://nowhere.invalid/"))


ENDED = "has not finished within 1 s|does not answer$"  # by which wait the deadline comes first


def for_ever(connection: socket.socket, piece: bytes, pause_s: float = 0.0) -> None:
    """Send the same piece again and again until the other side closes the connection."""
    until = time.monotonic() + HANGS_S
    with suppress(OSError):
        while time.monotonic() < until:
            connection.sendall(piece)
            time.sleep(pause_s)


@pytest.mark.parametrize(("all_s", "rest_s", "what", "words"), [
    (0.05, 20.0, None, "has not finished within 0.05 s"),
    (20.0, 0.05, None, "sends nothing for 0.05 s"),
    (20.0, 20.0, b"", client.CLOSED), (20.0, 20.0, b"220 mail", "does not answer in HTTP")])
def test_a_silent_server_is_distinguished_from_one_that_closes(
        monkeypatch: pytest.MonkeyPatch, all_s: float, rest_s: float, what: bytes | None,
        words: str) -> None:
    monkeypatch.setattr(client, "ALL_S", all_s)
    monkeypatch.setattr(client, "REST_S", rest_s)
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(client.ProbeFailed, match=words):
        if what is not None:
            theirs.sendall(what)
            theirs.shutdown(socket.SHUT_WR)
        client._read_rest(ours, client.PlainProbe(ours, client.Deadline()), 0)


@filters
@pytest.mark.parametrize("capture", [True, False])
def test_a_probe_of_a_server_that_never_ends_has_a_deadline(monkeypatch: pytest.MonkeyPatch,
                                                            tmp_path: Path, capture: bool) -> None:
    """The server goes on for ever in its handshake, after it, or in its answer."""
    chain = make_chain(tmp_path / "tls", ChainSpec(1000, "ed25519", 0, "127.0.0.1"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain.chain, chain.key)
    record = b"\x16\x03\x03\x40\x00"  # the head of a handshake's record with 16,384 bytes

    def after_the_handshake(piece: bytes, pause_s: float) -> Callable[[socket.socket], None]:
        def answer(connection: socket.socket) -> None:
            with suppress(OSError), context.wrap_socket(connection, server_side=True) as secured:
                for_ever(secured, piece, pause_s)
        return answer

    for answer, within_s, words in (
            (lambda connection: (connection.sendall(record), for_ever(connection, b"\x02", 0.03)),
             1.0, ENDED),
            (lambda connection: for_ever(connection, record + bytes(16_384)), HANGS_S,
             "sends more than"),
            (after_the_handshake(b"x", 0.05), 1.0, ENDED),
            (after_the_handshake(bytes(65536), 0), HANGS_S,
             "sends more than 1048576 bytes before the")):
        monkeypatch.setattr(client, "ALL_S", within_s)
        with serving(answer, peeked=True) as (port, _), \
                pytest.raises(client.ProbeFailed, match=words):
            client.observe(urlsplit(f"https://127.0.0.1:{port}/"), capture)
    monkeypatch.setattr(client, "ALL_S", 1.0)
    with serving(lambda connection: for_ever(connection, b"x", 0.03)) as (port, _), \
            pytest.raises(client.ProbeFailed,
                          match="has not finished within 1 s|does not answer in HTTP"):
        observed(port, capture=capture)


@filters
def test_data_that_a_socket_drops_is_retransmitted_to_it() -> None:
    with running("server", "--port", "0") as server:
        with connect(server.line()["port"]) as visitor:
            bpf.attach(visitor, client._NO_DATA)
            visitor.sendall(b"GET /100 HTTP/1.1\r\n\r\n")
            wait_until(lambda: client._drops(visitor) >= 1, "a response that is dropped")
            visitor.setblocking(False)
            with pytest.raises(BlockingIOError):
                visitor.recv(1)
            bpf.detach(visitor)
            visitor.settimeout(HANGS_S)
            assert visitor.recv(12) == b"HTTP/1.1 200"


def test_a_kernel_that_lets_only_root_set_a_filter_is_named(
        monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(client, "attach", refused)
    with socket.create_server(("127.0.0.1", 0)) as server, \
            pytest.raises(client.ProbeNotAllowed, match="lets only root set a filter"):
        client.observe(urlsplit(f"http://127.0.0.1:{server.getsockname()[1]}/"), capture=False)


def test_a_firewalls_refusal_is_not_reported_as_a_missing_right(
        monkeypatch: pytest.MonkeyPatch) -> None:
    """A prohibited route gives EACCES, and a rule that rejects packets EPERM."""
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(client, "_connect", refused)
    with pytest.raises(client.ProbeFailed, match="cannot be reached: Permission denied") as raised:
        client.observe(urlsplit("http://192.0.2.7/"))
    assert not isinstance(raised.value, client.ProbeNotAllowed)


@pytest.mark.parametrize(("options", "stamp"), [
    ("", None), ("0101080a0000000700000009", 7), ("020405b4", None), ("080a00", None),
    ("0008" + "0a" * 9, None), ("0500080a0000000700000009", 7)])
def test_a_time_stamp_is_read_among_whole_and_damaged_options(options: str,
                                                              stamp: int | None) -> None:
    assert tap.stamp_of(bytes.fromhex(options)) == stamp
