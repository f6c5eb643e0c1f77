"""Netlink (RFC 3549): a kernel's qdiscs, routes and neighbours, without a process.

Requests are bytes that engines/network/links.py and engines/network/qdiscs.py make, as `ip`
and `tc` would send them (include/uapi/linux/netlink.h, rtnetlink.h).
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def network_of(pid: int) -> Iterator[None]:
    """Be in the network namespace of process `pid`. Raises OSError; needs CAP_SYS_ADMIN."""
    own = os.open("/proc/self/ns/net", os.O_RDONLY)
    other = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    try:
        _enter(other)
        yield
    finally:
        _enter(own)
        os.close(own)
        os.close(other)


def _enter(namespace: int) -> None:
    # os.setns() came with Python 3.12.
    if _libc.setns(namespace, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "setns")


_NLM_F_DUMP, _NLM_F_REPLACE = 0x300, 0x500  # the latter with NLM_F_CREATE, as `… replace` sets
_NEW_BITS, _NEW = 3, 0  # of a type: whether it is one of RTM_NEW…
NLA_F_NESTED = 0x8000  # of an attribute's type
_NLM_F_REQUEST, _NLM_F_CAPPED, _NLM_F_ACK_TLVS = 1, 0x100, 0x200
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_NLMSGERR_ATTR_MSG = 1
_SOL_NETLINK, _NETLINK_CAP_ACK, _NETLINK_EXT_ACK = 270, 10, 11
_HEADER = struct.Struct("=IHHII")  # struct nlmsghdr: length, type, flags, sequence, port
_TYPE_BITS = 0x3FFF  # of an attribute's type (NLA_TYPE_MASK)
_ANSWER_BYTES = 1 << 16  # at least what a kernel sends at once


class RequestRefused(Exception):
    """A kernel refused a request: its number in its list, the error number, the kernel's words."""

    def __init__(self, number: int, code: int, words: str) -> None:
        super().__init__(f"{os.strerror(code)}{f' ({words})' if words else ''}")
        self.number = number


class Netlink:
    """The kernel's network in one namespace. Closed by `close`."""

    def __init__(self, pid: int, family: int = socket.NETLINK_ROUTE) -> None:
        """pid: a process in the namespace; family: of netlink's, what is requested and reported.

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
        """Send requests (type, body), then a question; the bodies of its answers.

        All leave at once: the kernel does one after another, and reports of a
        request only that it failed. Raises Refused, OSError.
        """
        messages = [_message(kind, _NLM_F_REPLACE if kind & _NEW_BITS == _NEW else 0, number,
                             requested)
                    for number, (kind, requested) in enumerate(requests)]
        last = len(messages)
        self.socket.send(b"".join((*messages, _message(question, _NLM_F_DUMP, last, body))))
        refused: RequestRefused | None = None
        answers: list[bytes] = []
        while True:
            for kind, flags, number, answer in _messages(self.socket.recv(_ANSWER_BYTES)):
                if kind == _NLMSG_ERROR:
                    refused = refused or _refusal(number, flags, answer)
                if kind == _NLMSG_DONE or (kind == _NLMSG_ERROR and number == last):
                    if refused:
                        raise refused
                    return answers
                if kind != _NLMSG_ERROR:
                    answers.append(answer)


def _message(kind: int, flags: int, number: int, body: bytes) -> bytes:
    return (_HEADER.pack(_HEADER.size + len(body), kind, _NLM_F_REQUEST | flags, number, 0)
            + body + bytes(-len(body) % 4))


def _messages(received: bytes) -> Iterator[tuple[int, int, int, bytes]]:
    """Type, flags, number and body of each message."""
    place = 0
    while place < len(received):
        length, kind, flags, number, _ = _HEADER.unpack_from(received, place)
        yield kind, flags, number, received[place + _HEADER.size:place + length]
        place += length + -length % 4


def _refusal(number: int, flags: int, answer: bytes) -> RequestRefused:
    """What a struct nlmsgerr holds: the error, the head of the request, and the kernel's words."""
    (status,) = struct.unpack_from("=i", answer)
    words = b""
    if flags & _NLM_F_ACK_TLVS and flags & _NLM_F_CAPPED:
        words = attributes(answer[4 + _HEADER.size:]).get(_NLMSGERR_ATTR_MSG, b"")
    return RequestRefused(number, -status, words.rstrip(b"\0").decode(errors="replace"))


def attribute(kind: int, payload: bytes) -> bytes:
    """One attribute, padded to four bytes."""
    return struct.pack("=HH", 4 + len(payload), kind) + payload + bytes(-len(payload) % 4)


def u32(kind: int, value: int) -> bytes:
    """An attribute that is a number."""
    return attribute(kind, struct.pack("=I", value))


def attributes(raw: bytes) -> dict[int, bytes]:
    """Payloads by type."""
    payloads, place = {}, 0
    while len(raw) - place >= 4:
        length, kind = struct.unpack_from("=HH", raw, place)
        payloads[kind & _TYPE_BITS] = raw[place + 4:place + length]
        place += length + -length % 4 if length >= 4 else len(raw)
    return payloads
