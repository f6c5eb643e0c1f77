"""The fetching client refuses wrong requests, and misbehaving clients do not harm a server."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from firstflight.testbed.hosts import http_client
from tests.conftest import PROJECT
from tests.programs.hosts.running import Program
from tests.running import HANGS_S, wait_until


@pytest.mark.parametrize(("program", "library"), [
    ("curl", "/libcurl.so.4"), ("libcurl", "/pycurl."), ("wget", "")])
def test_a_clients_library_is_loaded_before_it_fetches(program: str, library: str) -> None:
    """A guest would have to read it again, since it forgets a file that nobody has open."""
    with subprocess.Popen([sys.executable, "-S", "-E", "-m", "client"], cwd=PROJECT, text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        assert started.stdin and started.stdout
        mapped = Path(f"/proc/{started.pid}/maps")
        for request in ({"load": "nothing"}, {"load": program}):
            started.stdin.write(json.dumps(request) + "\n")
            started.stdin.flush()
            assert json.loads(started.stdout.readline()) == {"loaded": request["load"]}
            loaded = [name for name in ("/libcurl.so.4", "/pycurl.") if name in mapped.read_text()]
            assert loaded == ([library] if library and request["load"] == program else [])
        started.stdin.close()
    assert started.returncode == 0


@pytest.mark.parametrize(("line", "words"), [
    ("hello", "not JSON: "),
    pytest.param("[" * 100_000, "not JSON: ", id="deep"),
    ("[]", "a request is an object"),
    ("{}", 'the request has no "program"'),
    ('{"program": "curl", "urls": ["http://127.0.0.1/"]}', 'the request has no "deadline_s"'),
    ('{"program": "curl", "urls": "http://127.0.0.1/", "deadline_s": 9}', '"urls" has to be a l'),
    ('{"program": "curl", "urls": [], "deadline_s": 9}', '"urls" has to be a list of strings'),
    ('{"program": "curl", "urls": [9], "deadline_s": 9}', '"urls" has to be a list of strings'),
    ('{"program": "curl", "urls": ["x"], "deadline_s": "9"}', '"deadline_s" has to be a number'),
    ('{"program": "curl", "urls": ["x"], "deadline_s": 0}', '"deadline_s" has to be above 0'),
    ('{"program": "crul", "urls": ["x"], "deadline_s": 9}', "'crul', and has to be curl or")])
def test_a_wrong_request_is_answered_in_one_line(line: str, words: str) -> None:
    done = subprocess.run([sys.executable, "-S", "-E", "-m", "client"], cwd=PROJECT, text=True,
                          input=f"{line}\n", capture_output=True, timeout=HANGS_S, check=False)
    assert done.returncode == 2 and not done.stdout
    assert done.stderr.startswith("client.py: ") and done.stderr.count("\n") == 1
    assert words in done.stderr


@pytest.mark.parametrize(("flags", "status", "words"), [
    (("--port", "99999"), 2, "'99999' is no TCP port"),
    (("--port", "http"), 2, "'http' is no TCP port"),
    (("--secure-port", "-1"), 2, "no TCP port"),
    (("--address", "192.0.2.1", "--port", "0"), 1, "server.py: 192.0.2.1:0: Cannot assign")])
def test_a_server_that_cannot_listen_names_its_address_or_port(flags: tuple[str, ...], status: int,
                                                               words: str) -> None:
    done = subprocess.run([sys.executable, "server.py", *flags], cwd=PROJECT, text=True,
                          capture_output=True, timeout=HANGS_S, check=False)
    assert (done.returncode, done.stdout) == (status, "")
    assert words in done.stderr and "Traceback" not in done.stderr


def test_a_wget_is_ended_at_its_deadline(tmp_path: Path) -> None:
    """Its server accepts the connection and sends nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/9000"
        (answer,) = http_client.fetch_with_wget([url], 0.3, tmp_path)
    assert not answer["ok"] and answer["error"] == "wget did not finish in 0.3 s"


def test_a_refused_wget_reports_a_network_failure(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/9000"
        (answer,) = http_client.fetch_with_wget([url], HANGS_S, tmp_path)
    assert (answer["exit_status"], answer["error"]) == (4, "wget 4: network failure")
    assert answer["total_ms"] > 0 and answer["size"] == 0


def test_curls_report_without_certificates_is_read(tmp_path: Path,
                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    """curl 8.14 writes this line if a chain with ML-DSA is too long for it. It is not JSON."""
    line = (b'{"certs":,"time_connect":0.1,"time_appconnect":0,"time_starttransfer":0.2,'
            b'"time_total":0.3,"local_port":5,"exitcode":0,"http_code":200}\n')
    monkeypatch.setattr(http_client.subprocess, "run", lambda *_, **__: subprocess.CompletedProcess(
        [], 0, stdout=line, stderr=b""))
    (fetch,) = http_client.fetch_with_curl(["https://10.0.0.2/1"], 1.0, tmp_path)
    assert fetch["ok"] and fetch["total_ms"] == 300


def test_a_client_that_never_connected_has_no_port(tmp_path: Path) -> None:
    """curl 8.14 reports −1 then, which is no port."""
    row = {"time_connect": 0, "time_appconnect": 0, "time_starttransfer": 0, "time_total": 3.1,
           "local_port": -1, "exitcode": 7, "http_code": 0, "errormsg": "Could not connect"}
    fetch = http_client.curl_answer(row, tmp_path / "body")
    assert (fetch["ok"], fetch["port"], fetch["error"]) == (False, 0, "curl 7: Could not connect")


# The servers as processes -------------------------------------------------------------

FILES = 40  # that a server may have open in these tests, which is enough for 8 connections
REQUEST = b"GET /9 HTTP/1.1\r\n\r\n"
Start = Callable[..., tuple[Program, dict[str, Any]]]


@pytest.fixture
def start() -> Iterator[Start]:
    """A function that starts a server on a free port, and returns it with its first line."""
    started: list[Program] = []

    def run(*words: str) -> tuple[Program, dict[str, Any]]:
        program = Program((*words, "--port", "0"), ("prlimit", f"--nofile={FILES}"))
        started.append(program)
        return program, program.line()
    yield run
    for program in started:
        program.end()


def connect(said: dict[str, Any], address: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection((address, said["port"]), timeout=HANGS_S)


def answer(client: socket.socket) -> bytes:
    """What arrives up to the end of the head or of the stream; b"" if the stream was reset."""
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
def test_a_server_listens_only_at_its_address(start: Start, words: tuple[str, ...]) -> None:
    _, by_default = start(*words)
    assert (by_default["event"], by_default["address"]) == ("listening", "127.0.0.1")
    _, said = start(*words, "--address", "127.0.0.2")
    assert said["address"] == "127.0.0.2"
    connect(said, "127.0.0.2").close()
    with pytest.raises(ConnectionRefusedError):
        connect(said, "127.0.0.1")


def test_a_request_that_is_too_long_ends_its_connection_only(start: Start) -> None:
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


def test_an_unfinished_request_is_ended_at_the_deadline(start: Start) -> None:
    for deadline_s in ("0.5", "5", "50"):  # longer if a busy machine's client was too late
        _, said = start("server", "--deadline", deadline_s)
        with connect(said) as slow, connect(said) as kept:
            slow.sendall(REQUEST[:-1])
            kept.sendall(REQUEST)
            if answer(kept).startswith(b"HTTP/1.1 200 OK"):
                assert answer(slow) == b""
                kept.sendall(REQUEST)  # a pause as long between two requests is allowed
                assert answer(kept)
                return
    pytest.fail("no request was answered")


def test_silent_connections_are_closed_for_others(start: Start) -> None:
    program, said = start("server", "--deadline", "0.2")
    silent = [connect(said) for _ in range(FILES)]
    wait_until(lambda: answers(said, REQUEST), "room for others, after the deadline")
    assert program.process.poll() is None
    for connection in silent:
        connection.close()


def test_the_load_server_closes_connections_beyond_its_limit_and_goes_on(start: Start) -> None:
    program, said = start("firstflight.testbed.hosts.load_server", "/dev/null")
    connections = [connect(said) for _ in range(FILES)]
    assert answer(connections[-1]) == b""  # closed at once
    for connection in connections:
        connection.close()
    wait_until(lambda: answers(said, b"GET /9?id=1 HTTP/1.1\r\n\r\n"),
               "room for others, after those connections have ended")
    assert program.process.poll() is None


def answers(said: dict[str, Any], request: bytes) -> bool:
    """Whether the server answers a new connection."""
    with connect(said) as client:
        try:
            client.sendall(request)
        except ConnectionError:
            return False
        return answer(client).startswith(b"HTTP/1.1 200 OK")
