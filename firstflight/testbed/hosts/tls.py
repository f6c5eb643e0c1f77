"""TLS 1.3 on a connection of server.py: its messages, and the writes in which they leave.

OpenSSL reads from memory and writes into memory (ssl.MemoryBIO), and server.py sends what it has
written. So the kernel's time stamps can be used. The writes are those of a server in which OpenSSL
writes to the socket (testbed/hosts/tls_records.py). Tickets leave one by one, and so do the records
of a response.
"""

from __future__ import annotations

import ctypes
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from firstflight.testbed.hosts.tls_records import records, writes_of

if TYPE_CHECKING:
    from firstflight.testbed.messages import TlsReport

_KEY_SHARE, _SERVER_HELLO, _HANDSHAKE = 51, 2, 22
_GROUPS = {23: "P-256", 24: "P-384", 25: "P-521", 29: "X25519", 30: "X448",
           4588: "X25519MLKEM768"}


@dataclass(frozen=True)
class TlsSettings:
    """How a server speaks TLS."""

    context: ssl.SSLContext
    record_bytes: int  # the most plain text in a record of a response
    buffer_bytes: int  # of the buffer for the first messages, 0 if all of them leave in one write


def tls_settings(order: Mapping[str, Any]) -> TlsSettings:
    """TLS as "chain", "key", "tickets", "record_bytes" and "buffer_bytes" of an order set it.

    "others" are chains for clients that name one of their hosts, {"names", "chain", "key"} each.
    With a "library", that of kernel_random.c, OpenSSL draws from the kernel from now on.
    Raises OSError, which ssl.SSLError is.
    """
    if library := order.get("library"):
        ctypes.CDLL(library)
    context = _context(order, order["tickets"])

    contexts: dict[str, ssl.SSLContext] = {}  # by the name of a host
    for chain in order.get("others", ()):
        contexts.update(dict.fromkeys(chain["names"], _context(chain, order["tickets"])))
    if contexts:
        def choose(connection: ssl.SSLObject, name: str, _: ssl.SSLContext) -> None:
            connection.context = contexts.get(name, context)
        context.sni_callback = choose
    return TlsSettings(context, order["record_bytes"], order["buffer_bytes"])


def _context(files: Mapping[str, Any], tickets: int) -> ssl.SSLContext:
    """A context with the "chain" and the "key" of these files. Raises OSError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(files["chain"], files["key"])
    context.num_tickets = tickets  # type: ignore[attr-defined]  # since Python 3.8
    return context


@dataclass
class Tls:
    """TLS on one connection: it takes received bytes, and returns plain text and bytes to send."""

    settings: TlsSettings
    hello_bytes: int = 0  # of the client's first message
    finished_bytes: int = 0  # of its last one in the handshake
    flight: tuple[int, ...] = ()  # bytes of each write of the server's messages
    tickets: tuple[int, ...] = ()  # bytes of each write of its tickets
    group: str = ""  # of the key exchange
    done: bool = False  # the handshake
    received: int = 0  # bytes of the handshake
    incoming: ssl.MemoryBIO = field(default_factory=ssl.MemoryBIO)
    outgoing: ssl.MemoryBIO = field(default_factory=ssl.MemoryBIO)

    def __post_init__(self) -> None:
        self.ssl = self.settings.context.wrap_bio(self.incoming, self.outgoing, server_side=True)

    def continue_handshake(self, data: bytes) -> tuple[bytes, tuple[int, ...]]:
        """Take the client's bytes; return those to send, and the size of each write.

        Raises ssl.SSLError; `alert` then has the bytes to send.
        """
        self.received += len(data)
        self.incoming.write(data)
        try:
            self.ssl.do_handshake()
            self.done = True
        except ssl.SSLWantReadError:
            pass

        message = self.outgoing.read()
        if self.done:
            self.finished_bytes = self.received - self.hello_bytes - self.incoming.pending
            self.tickets = tuple(records(message))
            return message, self.tickets

        if message:
            self.hello_bytes = self.received
            self.group = group_of(message)
            writes = writes_of(records(message), self.settings.buffer_bytes)
            self.flight += writes
            return message, writes
        return b"", ()

    def alert(self) -> bytes:
        """The bytes that OpenSSL has to send after a handshake has failed."""
        return self.outgoing.read()

    def decrypt(self, data: bytes) -> bytes:
        """The plain text of the records that have come complete. Raises ssl.SSLError."""
        self.incoming.write(data)
        text = b""
        try:
            while more := self.ssl.read(1 << 16):
                text += more
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:  # close_notify
            pass
        return text

    def encrypt(self, text: memoryview) -> tuple[bytes, tuple[int, ...]]:
        """The text in records, and the size of each, bytes."""
        size = self.settings.record_bytes
        for start in range(0, len(text), size):
            self.ssl.write(text[start:start + size])
        encrypted = self.outgoing.read()
        return encrypted, tuple(records(encrypted))

    def report(self, response: Sequence[int], window: int) -> TlsReport:
        """The handshake's part of the server's report.

        response: sizes of the response's records, bytes. window: after the handshake, segments.
        """
        cipher = self.ssl.cipher()
        return {"version": self.ssl.version(), "cipher": cipher[0] if cipher else "",
                "group": self.group, "resumed": bool(self.ssl.session_reused),
                "library": ssl.OPENSSL_VERSION, "hello_bytes": self.hello_bytes,
                "finished_bytes": self.finished_bytes, "flight": self.flight,
                "tickets": self.tickets, "response": response, "window": window}


def group_of(message: bytes) -> str:
    """The key exchange that a ServerHello chooses, "" if it is none (RFC 8446, 4.1.3)."""
    if len(message) < 44 or message[0] != _HANDSHAKE or message[5] != _SERVER_HELLO:
        return ""
    at = 44 + message[43] + 3  # behind the session's id, the cipher and the compression
    end = at + 2 + int.from_bytes(message[at:at + 2], "big")
    at += 2
    while at + 4 <= end:  # extension by extension
        kind = int.from_bytes(message[at:at + 2], "big")
        size = int.from_bytes(message[at + 2:at + 4], "big")
        if kind == _KEY_SHARE:
            number = int.from_bytes(message[at + 4:at + 6], "big")
            return _GROUPS.get(number, str(number))
        at += 4 + size
    return ""
