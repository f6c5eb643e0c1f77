"""Runs the programs of hosts as processes of this machine: sends them lines and reads reports."""

from __future__ import annotations

import json
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.conftest import PROJECT
from tests.running import HANGS_S, wait_until


class Program:
    """A program that takes lines and reports in lines of JSON."""

    def __init__(self, words: tuple[str, ...], prefix: tuple[str, ...] = ()) -> None:
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-m", *words], cwd=PROJECT, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE)
        self.said = b""  # what was read after the last whole line

    def line(self) -> dict[str, Any]:
        """The next line that it reports."""
        assert self.process.stdout is not None
        while b"\n" not in self.said:
            assert select.select([self.process.stdout], [], [], HANGS_S)[0], "it reports nothing"
            more = self.process.stdout.read1(65536)  # type: ignore[attr-defined]
            assert more, "it has ended"
            self.said += more
        line, _, self.said = self.said.partition(b"\n")
        report = json.loads(line)
        assert isinstance(report, dict)
        return report

    def ask(self, line: dict[str, Any]) -> None:
        """Send the program a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(line).encode() + b"\n")
        self.process.stdin.flush()

    def end(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(HANGS_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()


@contextmanager
def running(*words: str, prefix: tuple[str, ...] = ()) -> Iterator[Program]:
    """A module that runs with arguments, and ends with the block. prefix: a program that starts it.
    """
    program = Program(words, prefix)
    try:
        yield program
    finally:
        program.end()


def connect(port: int, address: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection((address, port), timeout=HANGS_S)


def wait_until_server_waits(client: socket.socket) -> None:
    """Wait until bytes are queued at the server, since the client reads nothing.

    Its window is full then.
    """
    (_, ours), (_, theirs) = client.getsockname(), client.getpeername()

    def queued_bytes() -> int:
        for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
            _, local, remote, _, queues, *_ = line.split()
            ports = [int(address.partition(":")[2], 16) for address in (local, remote)]
            if ports == [theirs, ours]:
                return int(queues.partition(":")[0], 16)
        return 0

    wait_until(queued_bytes, "a full window")


def received(client: socket.socket, size: int) -> bytes:
    """The next bytes of a connection: `size` of them, or fewer if it ends before."""
    got = b""
    while len(got) < size and (more := client.recv(size - len(got))):
        got += more
    return got
