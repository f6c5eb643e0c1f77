"""The real kernel of this machine is asked: what it tells, and what it refuses and why."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator

import pytest

from net import netlink, qdiscs
from net.netlink import attribute, attributes
from testbed.network import links
from testbed.network.links import Route
from testbed.network.netlink import Netlink, RequestRefused


@pytest.fixture(name="kernel")
def fixture_kernel() -> Iterator[Netlink]:
    """Of this process's own namespace, which takes no root."""
    kernel = Netlink.__new__(Netlink)
    kernel.indices, kernel.pid = {"lo": socket.if_nametoindex("lo")}, os.getpid()
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as opened:
        kernel.socket = opened
        for option in (10, 11):
            opened.setsockopt(270, option, 1)
        yield kernel


def test_attributes_come_back_as_they_were_packed() -> None:
    packed = attribute(1, b"netem\0") + attribute(2 | 0x8000, b"") + netlink.u32(3, 7)
    assert len(packed) == 12 + 4 + 8
    assert attributes(packed) == {1: b"netem\0", 2: b"", 3: struct.pack("=I", 7)}
    for cut in (packed[:6], bytes(12)):
        with pytest.raises(ValueError, match="attribute that is cut"):
            attributes(cut)


def test_a_question_is_answered(kernel: Netlink) -> None:
    answers = kernel.ask([], links.RTM_GETROUTE, Route.question())
    assert answers and all(answer[0] == socket.AF_INET for answer in answers)
    assert kernel.ask([], qdiscs.GETQDISC, qdiscs.question()) is not None


def test_what_is_refused_is_named_and_nothing_is_left_behind(kernel: Netlink) -> None:
    """Messages that are too short to be routes: a kernel refuses them, whoever sends them."""
    short = (links.RTM_NEWROUTE, b"\2\0\0\0")
    for requests in ([short], [short, short]):
        with pytest.raises(RequestRefused, match="Invalid argument|not permitted") as refused:
            kernel.ask(requests, links.RTM_GETROUTE, Route.question())
        assert refused.value.number == 0
    answers = kernel.ask([], links.RTM_GETROUTE, Route.question())
    assert answers == kernel.ask([], links.RTM_GETROUTE, Route.question())


def test_a_question_that_is_refused_is_the_last(kernel: Netlink) -> None:
    with pytest.raises(RequestRefused) as refused:
        kernel.ask([], 0x3FF0, b"")
    assert refused.value.number == 0
