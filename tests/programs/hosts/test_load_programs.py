"""The load generator and its server record each connection, here on this machine."""

from __future__ import annotations

import csv
import errno
import os
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from firstflight.testbed.hosts import bound_ports, load_client, load_server
from firstflight.testbed.hosts.kernel import TcpInfo
from firstflight.testbed.hosts.load_client import response_bytes, size_at
from firstflight.testbed.hosts.load_server import parse_request
from firstflight.testbed.hosts.serving import body_of
from tests.programs.hosts.running import (Program, connect, received, running,
                                          wait_until_server_waits)
from tests.running import HANGS_S

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"  # of a response


def rows(path: Path) -> list[dict[str, str]]:
    """The records of a file."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@contextmanager
def load_server_at(path: Path) -> Iterator[tuple[Program, int]]:
    """A load server and its port. path: the file of its records."""
    with running("firstflight.testbed.hosts.load_server", str(path), "--port", "0") as program:
        said = program.line()
        assert said["event"] == "listening"
        yield program, said["port"]


def stopped(program: Program, path: Path) -> list[dict[str, str]]:
    """The records of a load server after its order to stop."""
    assert program.process.stdin is not None
    program.process.stdin.write(b"stop\n")
    program.process.stdin.flush()
    assert program.line() == {"event": "written"} and program.process.wait(HANGS_S) == 0
    assert list(rows(path)[0]) == list(load_server.COLUMNS)
    return rows(path)


# The server --------------------------------------------------------------------------

def test_the_load_server_records_every_connection(tmp_path: Path) -> None:
    path, began = tmp_path / "server.csv", time.monotonic()
    with load_server_at(path) as (program, port):
        with connect(port) as client:
            window = TcpInfo.of_socket(client).congestion_window
            client.sendall(b"GET /9000?id=one HTTP/1.1\r\nHost: it\r\n\r\n")
            assert received(client, len(HEAD % 9000) + 9000) == HEAD % 9000 + body_of(9000)
            client.sendall(b"GET /5?id=again HTTP/1.1\r\n\r\n")  # is not answered: one a connection
        with connect(port) as client:
            client.sendall(b"GET /5 HTTP/1.1\r\n\r\n")
            assert client.recv(1) == b""
        with connect(port) as client:
            client.sendall(b"GET /12000000?id=reset HTTP/1.1\r\n\r\n")
            received(client, 1000)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, load_client._NO_LINGER)
        with connect(port) as left_open, connect(port) as large:
            left_open.sendall(b"GET /7?id=open HTTP/1.1\r\n\r\n")
            large.sendall(b"GET /9000000?id=large HTTP/1.1\r\n\r\n")
            wait_until_server_waits(large)
            whole = len(HEAD % 9_000_000) + 9_000_000
            assert len(received(large, whole)) == whole
            found = {row["id"]: row for row in stopped(program, path)}
    assert {name: row["end"] for name, row in found.items()} == {
        "one": "closed", "": "BadRequest", "reset": found["reset"]["end"], "open": "open",
        "large": "open"}
    assert found["reset"]["end"] in ("ConnectionResetError", "BrokenPipeError")
    assert {row["initial_window"] for row in found.values()} == {str(window)}
    one = found["one"]
    assert (one["sent_bytes"], one["retransmitted_bytes"]) == (str(9000 + len(HEAD % 9000)), "0")
    assert 0 < float(one["min_rtt_ms"]) < (time.monotonic() - began) * 1000
    assert int(one["first_flight"]) <= 1
    sent, again = (int(found["large"][name]) for name in ("sent_bytes", "retransmitted_bytes"))
    assert sent - again == whole


@pytest.mark.parametrize("request_bytes, requested", [
    (b"GET /5?id=a HTTP/1.1\r\n\r\n", (5, "a")), (b"GET /0?id=a.1 HTTP/1.1\r\na: b\r\n\r\n",
                                                  (0, "a.1")),
    (b"GET /16777216?id=a HTTP/1.1\r\n\r\n", (1 << 24, "a")),
    (b"GET /16777217?id=a HTTP/1.1\r\n\r\n", None), (b"GET /5?id= HTTP/1.1\r\n\r\n", None),
    (b"GET /5 HTTP/1.1\r\n\r\n", None), (b"GET /x?id=a HTTP/1.1\r\n\r\n", None),
    (b"GET /?id=a HTTP/1.1\r\n\r\n", None), (b"PUT /5?id=a HTTP/1.1\r\n\r\n", None),
    (b"GET /5?id=a\r\n\r\n", None), (b"GET /5?id=a HTTP/1.1\r\n", None)])
def test_the_load_server_accepts_only_well_formed_requests(
        request_bytes: bytes, requested: tuple[int, str] | None) -> None:
    assert parse_request(request_bytes) == requested


@pytest.mark.parametrize("module", [load_server, load_client])
def test_a_file_of_records_has_one_header(tmp_path: Path, module: Any) -> None:
    load_client.write_records(tmp_path / "file", module.COLUMNS, [range(len(module.COLUMNS))])
    assert (tmp_path / "file").read_text() == (
        f"{','.join(module.COLUMNS)}\n{','.join(map(str, range(len(module.COLUMNS))))}\n")


# The generator -----------------------------------------------------------------------

def task(path: Path, port: int, **more: Any) -> dict[str, Any]:
    """A task of the generator: 12 arrivals on average. path: the file of its records."""
    return {"servers": ["127.0.0.1"], "port": port, "name": "c", "seed": 7,
            "arrivals_per_s": 60.0, "connections": 1, "sizes": [[1.0, 4000]],
            "start_s": time.monotonic() + 0.02, "duration_s": 0.2, "file": str(path), **more}


def generated(path: Path, port: int, **more: Any) -> list[dict[str, str]]:
    """The records of one task, by a generator in this process."""
    requested = load_client.Task(**task(path, port, **more))
    loop = load_client.asyncio.SelectorEventLoop(load_client.ExactSelector())
    try:
        loop.run_until_complete(load_client.generate(requested))
    finally:
        loop.close()
    assert list(rows(path)[0]) == list(load_client.COLUMNS)
    return rows(path)


def drawn(seed: int, rate: float, duration_s: float, connections: int = 1) -> list[str]:
    """When connections are due by the seed, in seconds: after exponential gaps, in whole µs."""
    draw, at, due = random.Random(seed), 0.0, []
    while (at := at + draw.expovariate(rate)) < duration_s:
        due += [f"{int(at * 1e6) / 1e6:.6f}"] * connections
        for _ in range(connections):
            draw.random()  # the size
    return due


def test_arrivals_are_those_of_the_seed_and_every_connection_is_recorded(tmp_path: Path) -> None:
    for duration_s in (0.2, 2.0, 20.0):  # longer if a busy machine has ended none by then
        path, server_path = (tmp_path / f"{name}-{duration_s}" for name in ("client", "server"))
        with load_server_at(server_path) as (program, port):
            found = generated(path, port, servers=["127.0.0.1", "127.0.0.1"], connections=2,
                              duration_s=duration_s)
            served = {row["id"]: row for row in stopped(program, server_path)}
        assert sorted(row["arrival_s"] for row in found) == sorted(drawn(7, 60.0, duration_s, 2))
        if any(row["end"] == "ok" for row in found):
            break
    else:
        pytest.fail("no connection was answered")
    assert {row["id"] for row in found} == {f"c.{number + 1}" for number in range(len(found))}
    assert {row["id"] for row in found if row["end"] == "ok"} <= set(served)
    for row in found:
        if row["end"] == "ok":
            assert 0 < float(row["connect_ms"]) < float(row["total_ms"])
        assert row["end"] in ("ok", "open") and row["error"] == "", row
        assert int(row["got_bytes"]) == (len(HEAD % 4000) + 4000 if row["end"] == "ok" else 0)
        assert row["asked_bytes"] == "4000"


Answer = Callable[[socket.socket], None]  # answers a request on a connection


def reset(accepted: socket.socket) -> None:
    accepted.recv(4096)
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, load_client._NO_LINGER)


def cut(accepted: socket.socket) -> None:
    """100 of 4000 bytes, and the end."""
    accepted.recv(4096)
    accepted.sendall(HEAD % 4000 + b"x" * 100)
    accepted.shutdown(socket.SHUT_WR)


def in_pieces(accepted: socket.socket) -> None:
    """The head in two pieces, the second with some of the body, and then the rest."""
    accepted.recv(4096)
    for piece in ((HEAD % 4000)[:20], (HEAD % 4000)[20:] + b"x" * 100, b"x" * 3900):
        accepted.sendall(piece)
        time.sleep(0.01)


@pytest.mark.parametrize("how, end, error", [
    (reset, "failed", os.strerror(errno.ECONNRESET)),
    (cut, "failed", "closed before the response was whole"), (in_pieces, "ok", "")])
def test_a_generator_records_how_each_response_ended(tmp_path: Path, how: Answer, end: str,
                                                     error: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def serve() -> None:
            accepted, _ = listener.accept()
            with accepted:
                how(accepted)
        for slower in (1, 10, 100):  # more time, if a busy machine was too late
            thread = threading.Thread(target=serve)
            thread.start()
            # This seed's first arrival is at 0.017 s and its second at 1.838 s, each times
            # `slower`.
            (row,) = generated(tmp_path / f"{slower}.csv", listener.getsockname()[1], seed=946,
                               arrivals_per_s=2.0 / slower, duration_s=1.5 * slower)
            thread.join()
            if row["end"] != "open":
                break
    assert (row["end"], row["error"]) == (end, error)
    assert bool(row["total_ms"]) == (end == "ok") and row["connect_ms"]


def test_connections_without_a_listener_fail_and_without_an_answer_stay_open(
        tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        found = generated(tmp_path / "client.csv", taken.getsockname()[1])
        assert {(row["end"], row["error"], row["connect_ms"], row["got_bytes"])
                for row in found} - {("open", "", "", "0")} == {  # the last, on a busy machine
            ("failed", os.strerror(errno.ECONNREFUSED), "", "0")}
        taken.listen()  # connections are accepted, and nobody answers
        found = generated(tmp_path / "client.csv", taken.getsockname()[1], duration_s=0.05)
    assert {(row["end"], row["error"], row["total_ms"]) for row in found} == {("open", "", "")}


def test_a_connection_to_an_unreachable_address_fails(tmp_path: Path) -> None:
    found = generated(tmp_path / "client.csv", 80, servers=["255.255.255.255"])
    assert {row["end"] for row in found} == {"failed"} and found[0]["error"]


def test_a_generator_answers_each_task_with_a_line(tmp_path: Path) -> None:
    with running("firstflight.testbed.hosts.load_client") as program:
        program.ask(task(tmp_path / "none" / "file", 9, duration_s=0.01))
        assert program.line()["event"] == "failed"
        program.ask(task(tmp_path / "file", 9, duration_s=0.01))
        assert program.line() == {"event": "done"}
        assert program.process.stdin is not None
        program.process.stdin.close()
        assert program.process.wait(HANGS_S) == 0


@pytest.mark.parametrize("share, size", [
    (0.0, 100), (0.25, 100), (0.5, 100), (0.75, 550), (0.999, 998), (1.0, 1000)])
def test_a_size_lies_on_straight_lines_between_the_points(share: float, size: int) -> None:
    assert size_at([[0.5, 100], [1.0, 1000]], share) == size


def test_a_single_point_gives_a_fixed_size() -> None:
    assert {size_at([[1.0, 4000]], share) for share in (0.0, 0.3, 0.99)} == {4000}
    assert size_at([[1.0, 0]], 0.5) == 1


@pytest.mark.parametrize("head, whole", [
    (b"", 0), (HEAD % 5, len(HEAD % 5) + 5), ((HEAD % 5)[:-1], 0), (HEAD % 5 + b"12345",
                                                                 len(HEAD % 5) + 5),
    (b"HTTP/1.1 200 OK\r\n\r\n", 0)])
def test_a_responses_length_follows_from_its_whole_head(head: bytes, whole: int) -> None:
    assert response_bytes(head) == whole


def test_a_port_in_use_is_skipped() -> None:
    with socket.socket() as taken, socket.socket() as opened:
        taken.bind(("0.0.0.0", 0))
        port = taken.getsockname()[1]
        bound_ports.bind_next(opened, iter([port, port, 0]))
        assert opened.getsockname()[1] not in (0, port)
        with socket.socket() as third, pytest.raises(OSError, match="every port is in use"):
            bound_ports.bind_next(third, iter([port, port]))
    assert next(bound_ports.all_ports()) == 1024
