"""Sends requests to the kernel over netlink sockets, in the network namespace of any process.

testbed/network/links.py and net/qdiscs.py make the requests, as `ip` and `tc` would send them;
net/netlink.py has their format.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from firstflight.net import netlink
from firstflight.testbed.namespaces import enter


class Network:
    """The network namespace of a process, to work in now and again. Closed by `close`."""

    def __init__(self, pid: int) -> None:
        """Raises OSError if there is no process `pid`."""
        self.own = os.open("/proc/self/ns/net", os.O_RDONLY)
        self.other = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Work in it. Raises OSError; needs CAP_SYS_ADMIN."""
        try:
            enter(self.other)
            yield
        finally:
            enter(self.own)

    def close(self) -> None:
        os.close(self.own)
        os.close(self.other)


@contextmanager
def network_of(pid: int) -> Iterator[None]:
    """Work in the network namespace of process `pid` once. Raises OSError; needs CAP_SYS_ADMIN."""
    network = Network(pid)
    try:
        with network.entered():
            yield
    finally:
        network.close()


_SOL_NETLINK, _NETLINK_CAP_ACK, _NETLINK_EXT_ACK = 270, 10, 11
_ANSWER_BYTES = 1 << 16  # at least what a kernel sends at once


class RequestRefused(Exception):
    """A kernel refused a request. number: of the request in its list."""

    def __init__(self, number: int, code: int, words: str) -> None:
        super().__init__(f"{os.strerror(code)}{f' ({words})' if words else ''}")
        self.number = number


class Netlink:
    """A netlink socket in one network namespace. Closed by `close`."""

    def __init__(self, pid: int, family: int = socket.NETLINK_ROUTE) -> None:
        """pid: a process in the namespace. family: netlink's family.

        Raises OSError; needs CAP_SYS_ADMIN.
        """
        self.pid = pid
        with network_of(pid):
            self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, family)
        for option in (_NETLINK_CAP_ACK, _NETLINK_EXT_ACK):  # report why, and do not repeat it all
            self.socket.setsockopt(_SOL_NETLINK, option, 1)
        self.indices: dict[str, int] = {}

    def close(self) -> None:
        self.socket.close()

    def index(self, interface: str) -> int:
        """The number of an interface. Raises OSError."""
        if interface not in self.indices:
            with network_of(self.pid):
                self.indices[interface] = socket.if_nametoindex(interface)
        return self.indices[interface]

    def ask(self, requests: Sequence[tuple[int, bytes]], question: int,
            body: bytes) -> list[bytes]:
        """Send requests (type, body), then a question; return the bodies of its answers.

        All leave at once. The kernel handles them in order, and reports only requests that fail.
        Raises RequestRefused, OSError.
        """
        sent = [netlink.request(kind, number, requested)
                for number, (kind, requested) in enumerate(requests)]
        last = len(sent)
        self.socket.send(b"".join((*sent, netlink.question(question, last, body))))

        refused: RequestRefused | None = None
        answers: list[bytes] = []
        while True:
            for message in netlink.messages(self.socket.recv(_ANSWER_BYTES)):
                is_error = message.kind == netlink.ERROR
                if is_error and refused is None:
                    refused = RequestRefused(message.number, *netlink.refusal(message))
                if message.kind == netlink.DONE or is_error and message.number == last:
                    if refused is not None:
                        raise refused
                    return answers
                if not is_error:
                    answers.append(message.body)
