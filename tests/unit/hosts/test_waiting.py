"""How the server waits: for what is due, and for nothing that is an earlier connection's."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from firstflight.net.waiting import waited_ns
from firstflight.testbed.hosts.kernel import TcpInfo
from firstflight.testbed.hosts.server.connections import EventLoop, ServedConnection


@pytest.fixture
def loop() -> Iterator[EventLoop]:
    loop = EventLoop()
    yield loop
    loop.selector.close()
    loop.timer.close()


def connection() -> ServedConnection:
    return ServedConnection(socket.socket(), ("", 0), TcpInfo.read(b""), 1, 0.0)


def test_a_wait_is_over_when_something_is_due_and_not_before(loop: EventLoop) -> None:
    open_one, done = connection(), []
    loop.at(time.monotonic_ns() + 7_000_000, open_one, done.append)
    loop.wait()
    loop.do_what_is_due()
    assert done == [open_one] and not loop.due
    open_one.socket.close()


def test_what_is_due_on_a_closed_connection_wakes_nobody(loop: EventLoop) -> None:
    closed, open_one, done = connection(), connection(), []
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
    closed = connection()
    closed.socket.close()
    loop.at(time.monotonic_ns(), connection(), lambda open_one: open_one.socket.close())
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
