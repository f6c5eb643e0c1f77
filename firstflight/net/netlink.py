"""Netlink's messages and attributes (RFC 3549; include/uapi/linux/netlink.h, rtnetlink.h)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

ERROR, DONE = 2, 3  # types of messages
NESTED = 0x8000  # of an attribute's type
_REQUEST, _CAPPED, _ACK_TLVS = 1, 0x100, 0x200
_DUMP, _REPLACE = 0x300, 0x500  # the latter with NLM_F_CREATE, as `… replace` sets
_NEW_BITS, _NEW = 3, 0  # the lowest bits of a type, which are 0 for all RTM_NEW…
_ERROR_ATTRIBUTE_WORDS = 1  # NLMSGERR_ATTR_MSG
_HEADER = struct.Struct("=IHHII")  # struct nlmsghdr: length, type, flags, sequence, port
_ATTRIBUTE = struct.Struct("=HH")  # length, type
_TYPE_BITS = 0x3FFF  # of an attribute's type (NLA_TYPE_MASK)


class Message(NamedTuple):
    """One netlink message from the kernel."""

    kind: int  # the type, such as ERROR or DONE
    flags: int
    number: int  # of the request that this message answers, as the sender numbered it
    body: bytes


def request(kind: int, number: int, body: bytes) -> bytes:
    """A message that changes something. If it adds an object, it replaces an existing one."""
    flags = _REPLACE if kind & _NEW_BITS == _NEW else 0
    return _message(kind, flags, number, body=body)


def question(kind: int, number: int, body: bytes) -> bytes:
    """A message that the kernel answers with a list (NLM_F_DUMP)."""
    return _message(kind, _DUMP, number, body=body)


def _message(kind: int, flags: int, number: int, body: bytes) -> bytes:
    """A message, padded to four bytes."""
    header = _HEADER.pack(_HEADER.size + len(body), kind, _REQUEST | flags, number, 0)
    return header + body + bytes(-len(body) % 4)


def messages(received: bytes) -> Iterator[Message]:
    """The messages in received bytes. Raises ValueError if a message is cut."""
    place = 0
    while place + _HEADER.size <= len(received):
        length, kind, flags, number, _ = _HEADER.unpack_from(received, place)
        if length < _HEADER.size or place + length > len(received):
            raise ValueError("netlink messages that are cut")
        yield Message(kind, flags, number, received[place + _HEADER.size:place + length])
        place += length + -length % 4  # padded to four bytes


def refusal(error: Message) -> tuple[int, str]:
    """The error number of a struct nlmsgerr, and the kernel's words; "" without words."""
    (status,) = struct.unpack_from("=i", error.body)
    words = b""
    # Attributes follow the refused message, of which only the header is there (_CAPPED).
    if error.flags & _ACK_TLVS and error.flags & _CAPPED:
        words = attributes(error.body[4 + _HEADER.size:]).get(_ERROR_ATTRIBUTE_WORDS, b"")
    return -status, words.rstrip(b"\0").decode(errors="replace")


def attribute(kind: int, payload: bytes) -> bytes:
    """One attribute, padded to four bytes."""
    header = _ATTRIBUTE.pack(_ATTRIBUTE.size + len(payload), kind)
    return header + payload + bytes(-len(payload) % 4)


def u32(kind: int, value: int) -> bytes:
    """An attribute with a number of 32 bits."""
    return attribute(kind, struct.pack("=I", value))


def u64(kind: int, value: int) -> bytes:
    """An attribute with a number of 64 bits."""
    return attribute(kind, struct.pack("=Q", value))


def text_attribute(kind: int, value: str) -> bytes:
    """An attribute with a text that ends in a zero byte."""
    return attribute(kind, value.encode() + b"\0")


def attributes(raw: bytes) -> dict[int, bytes]:
    """The payload of each attribute, by type. Raises ValueError if an attribute is cut."""
    payloads, place = {}, 0
    while place + _ATTRIBUTE.size <= len(raw):
        length, kind = _ATTRIBUTE.unpack_from(raw, place)
        if length < _ATTRIBUTE.size or place + length > len(raw):
            raise ValueError("a netlink attribute that is cut")
        payloads[kind & _TYPE_BITS] = raw[place + _ATTRIBUTE.size:place + length]
        place += length + -length % 4
    return payloads
