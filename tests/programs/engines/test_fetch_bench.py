"""The bench of fetches sees when a connection is over, and which request a line answers."""

from __future__ import annotations

import array
import contextlib
import fcntl
import socket
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from firstflight.testbed.bench import LineProcess, ProgramEnded, WorkerError
from firstflight.testbed.worker.fetches import measured_of, open_connections
from tests.running import HANGS_S

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt\n"


def row(state: str) -> str:
    """A row of /proc/net/tcp. state: the kernel's number of the TCP state, in hexadecimal."""
    return f"   0: 0200000A:0050 0100000A:C53A {state} 00000000:00000000 01:00000018 00000001\n"


@pytest.mark.parametrize("state, count", [
    ("01", 1), ("04", 1), ("05", 1), ("09", 1), ("06", 0), ("0A", 0)])
def test_only_connections_that_may_still_send_are_open(state: str, count: int,
                                                       tmp_path: Path) -> None:
    """These are ESTABLISHED, FIN_WAIT_1, FIN_WAIT_2 and LAST_ACK; not TIME_WAIT or the listener."""
    table = tmp_path / "tcp"
    table.write_text(HEAD + row("0A") + row("06") * 500 + row(state))
    with table.open("rb") as opened:
        for _ in range(2):  # the table is read from its beginning each time
            assert open_connections(opened.fileno()) == count


def test_connections_beyond_the_first_page_of_the_kernels_table_are_counted() -> None:
    with contextlib.ExitStack() as kept, open("/proc/net/tcp", "rb") as table:
        listener = kept.enter_context(socket.create_server(("127.0.0.1", 0)))
        for _ in range(60):
            kept.enter_context(socket.create_connection(listener.getsockname()))
            kept.enter_context(listener.accept()[0])
        # Both ends of 60 connections; other programs of this machine may have more.
        assert open_connections(table.fileno()) >= 120


def test_the_first_failed_fetch_of_a_connection_is_reported() -> None:
    """The client goes on with another connection, whose response is not the requested one."""
    good = {"ok": True, "error": "", "port": 2}
    late = {"ok": False, "error": "curl 28: timed out", "port": 1}
    assert measured_of([good, late]) is late and measured_of([good, good]) is good
    assert measured_of([late, good]) == {**late, "error": "the response before: curl 28: timed out"}


def test_lines_that_nobody_waits_for_are_discarded() -> None:
    """The second line was read with the first one. The third one is still in the pipe."""
    lines = ['{"event": "first"}', '{"event": "closed"}', '{"event": "response"}']
    with subprocess.Popen(["sh", "-c", 'echo "$0"; echo "$1"; read go; echo "$2"; read go',
                           *lines], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        answers = LineProcess("sh", process)
        await_bytes(process, len(lines[0]) + len(lines[1]) + 2)
        assert answers.receive(HANGS_S, "first line") == {"event": "first"}
        assert answers.buffer
        answers.discard()
        answers.send({"go": 1})
        await_bytes(process, len(lines[2]) + 1)
        answers.discard()
        answers.send({"go": 1})
        process.wait()
        with pytest.raises(ProgramEnded):
            answers.discard()


def await_bytes(process: subprocess.Popen[bytes], count: int) -> None:
    """Wait until so many bytes are in a process's pipe."""
    assert process.stdout is not None
    waiting = array.array("i", [0])
    while waiting[0] < count:
        assert process.poll() is None
        fcntl.ioctl(process.stdout.fileno(), termios.FIONREAD, waiting)


def test_a_late_answer_is_not_taken_for_that_of_the_next_request(tmp_path: Path) -> None:
    """A client that did not answer in time answers its first request before the second one."""
    program = ("import json, os, sys\n"
               "for line in sys.stdin:\n"
               "    request = json.loads(line)\n"
               "    while not os.path.exists(request['wait_for']): pass\n"
               "    print(json.dumps({'said': request['word'], 'number': request['number']}),"
               " flush=True)\n")
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        client = LineProcess("client", process)
        client.order({"word": "slow", "wait_for": str(tmp_path / "go")})
        with pytest.raises(WorkerError, match="no answer within 0.01 s"):
            client.answer(0.01, "answer")
        (tmp_path / "go").touch()
        client.order({"word": "next", "wait_for": "/"})
        assert client.answer(HANGS_S, "answer")["said"] == "next"
        process.kill()
