"""The process behind nginx answers from the recording of a site."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from firstflight.base import PROJECT
from firstflight.testbed.hosts.replay.recording import Answer, Origin, Recording
from tests.running import HANGS_S

BODY = bytes(range(256)) * 4000  # 1 MB, more than a socket takes at once
SITE = Recording(
    "https://a.test/", (Origin("https://a.test", 0), Origin("http://b.test:81", 1)), (
        Answer(0, "GET", "/", 200, (("content-type", "text/html"), ("connection", "close")), b"x"),
        Answer(0, "GET", "/large", 200, (), BODY),
        Answer(1, "GET", "/slow?a=1", 302, (("location", "/x"),), b"", wait_ms=30.0),
        Answer(0, "GET", "/none", 204, (), b"")))


class Backend:
    """A running backend that takes orders."""

    def __init__(self, folder: Path) -> None:
        self.place, self.orders = str(folder / "backend"), 0
        self.process = subprocess.Popen(
            [sys.executable, "-m", "firstflight.testbed.hosts.replay.backend", self.place],
            cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def order(self, **order: object) -> dict[str, Any]:
        """Give an order, and return the answer."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.orders += 1
        self.process.stdin.write(json.dumps({**order, "number": self.orders}) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        assert answer["number"] == self.orders
        return answer

    def connect(self) -> socket.socket:
        opened = socket.socket(socket.AF_UNIX)
        opened.settimeout(HANGS_S)
        opened.connect(self.place)
        return opened


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[Backend]:
    (tmp_path / "a.site").write_bytes(SITE.pack())
    running = Backend(tmp_path)
    try:
        assert running.order(begin=str(tmp_path / "a.site")) == {"error": "", "number": 1}
        yield running
    finally:
        running.process.kill()
        running.process.communicate()


def request(target: str, host: str = "a.test", method: str = "GET", said: str = "https 4000",
            body: bytes = b"") -> bytes:
    """A request as nginx hands it on. said: the scheme and the client's port, by nginx."""
    return (f"{method} {target} HTTP/1.1\r\nHost: {host}\r\nX-First-Flight: {said}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n").encode() + body


def answer_on(opened: socket.socket, has_body: bool = True) -> tuple[int, dict[str, str], bytes]:
    """The status, headers and body of the next answer."""
    file = opened.makefile("rb")
    status = int(file.readline().split()[1])
    headers = {}
    while (line := file.readline().decode().strip()):
        name, _, value = line.partition(": ")
        headers[name] = value
    size = int(headers.get("content-length", "0"))
    return status, headers, file.read(size) if has_body else b""


def test_a_backend_answers_as_recorded_and_reports_each_request(backend: Backend) -> None:
    with backend.connect() as opened:
        opened.sendall(request("/"))
        assert answer_on(opened) == (200, {"content-type": "text/html", "content-length": "1"},
                                     b"x")
        opened.sendall(request("/large"))
        assert answer_on(opened)[2] == BODY
        opened.sendall(request("/none"))
        assert answer_on(opened) == (204, {}, b"")
        opened.sendall(request("/", method="HEAD"))
        assert answer_on(opened, has_body=False)[1]["content-length"] == "1"
        opened.sendall(request("/else?x=1", method="POST", body=b"a" * 100_000))
        assert answer_on(opened)[0] == 404
        opened.sendall(request("/slow?a=2&r=0.5", host="b.test:81", said="http 4001"))
        assert answer_on(opened)[:2] == (302, {"location": "/x", "content-length": "0"})
    rows = backend.order(report=True)["served"]
    assert [(row[0], row[1], row[2], row[3], row[6], row[7]) for row in rows] == [
        (0, 4000, "GET", "https://a.test/", 200, 1),
        (1, 4000, "GET", "https://a.test/large", 200, len(BODY)),
        (3, 4000, "GET", "https://a.test/none", 204, 0),
        (0, 4000, "HEAD", "https://a.test/", 200, 0),
        (-1, 4000, "POST", "https://a.test/else?x=1", 404, 13),
        (2, 4001, "GET", "http://b.test:81/slow?a=2&r=0.5", 302, 0)]
    begin_ns, end_ns = rows[-1][4:6]
    assert end_ns - begin_ns >= 30e6, "an answer takes as long as in the recording, 30 ms"


def test_a_web_socket_is_refused_and_not_reported(backend: Backend) -> None:
    with backend.connect() as opened:
        opened.sendall(request("/socket").replace(b"Content-Length: 0", b"Sec-WebSocket-Key: x"))
        assert answer_on(opened)[0] == 404
    assert backend.order(report=True)["served"] == []


def test_a_new_load_begins_with_an_empty_report(backend: Backend, tmp_path: Path) -> None:
    with backend.connect() as opened:
        opened.sendall(request("/"))
        answer_on(opened)
    assert backend.order(begin=str(tmp_path / "a.site"))["error"] == ""
    assert backend.order(report=True)["served"] == []
    assert "No such file" in backend.order(begin=str(tmp_path / "none"))["error"]
    (tmp_path / "b.site").write_bytes(b"{}")
    assert "is damaged" in backend.order(begin=str(tmp_path / "b.site"))["error"]


@pytest.mark.parametrize("wrong", [
    b"GET /\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", request("/", said="https x"),
    b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n", b"\r\n\r\n", b"x" * 300_000],
    ids=["short", "no port", "no number", "no length", "empty", "endless"])
def test_a_malformed_request_ends_its_connection_only(backend: Backend, wrong: bytes) -> None:
    with backend.connect() as opened, backend.connect() as other:
        with suppress(ConnectionError):
            opened.sendall(wrong)
            assert opened.recv(100) == b""
        other.sendall(request("/"))
        assert answer_on(other)[0] == 200
