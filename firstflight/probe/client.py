"""Measures a server's initial window from here, with one connection and one request.

The client acknowledges nothing of the response until the server retransmits. What came until then
is all that the server may send without an acknowledgement, however slow the link is (Padhye and
Floyd 2001, On Inferring TCP Behavior, section 4.1; Rüth, Bormann and Hohlfeld 2017, Large-Scale
Scanning of TCP's Initial Window). A filter on the socket keeps the response from TCP: TCP never
sees what the filter drops (tcp_v4_rcv, tcp_filter). Any user may set it. With CAP_NET_RAW a tap
records the packets. Without it, the kernel's counter of the filter's drops is read
(SK_MEMINFO_DROPS), which counts segments, not bytes.
"""

from __future__ import annotations

import re
import select
import socket
import ssl
import struct
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from itertools import islice
from typing import NamedTuple
from urllib.parse import SplitResult, quote

from firstflight.net.bpf import attach, detach
from firstflight.probe.tap import ConnectionTap, Packet
from firstflight.probe.verdict import ProbedConnection, Response

CONNECT_S = 10.0  # deadline to connect
ANSWER_S = 15.0  # deadline for the first byte of the response
RESEND_S = 5.0  # so long after its last segment every TCP has retransmitted
# Without a capture the flight ends with a pause of a round trip, or of so much if that is longer.
LEAST_PAUSE_S = 0.002
REST_S = 20.0  # the most that reading the response takes after its flight
MOST_BYTES = 4 << 20  # the most of the response that is read after its flight
ALL_S = 60.0  # deadline for everything, whatever the server does
MOST_HANDSHAKE_BYTES = 1 << 20  # of TLS's handshake
MOST_PACKETS = 4096  # that a server may send without an acknowledgement
POLL_S = 0.0005  # between two looks at the filter's counter
HEAD_END, MOST_HEAD_BYTES = b"\r\n\r\n", 65536
SAFE = "/%:@!$&'()*+,;=~?-._[]"  # characters of a path that are sent unquoted

_SO_MEMINFO, _DROPS = 55, 8  # an option of sockets, and the place of SK_MEMINFO_DROPS in it
_FIN_OR_RST = 0x05
CLOSED = "closes the connection without an answer"
THIS_MACHINE = ("is this machine itself: packets over loopback have up to 64 kB, so that no window"
                " shows; probe the server from another machine")
# A filter in BPF that drops packets with payload or a FIN. Offsets count from TCP's header.
_NO_DATA = [(0x30, 0, 0, 12), (0x54, 0, 0, 0xF0), (0x74, 0, 0, 2), (0x07, 0, 0, 0),
            (0x80, 0, 0, 0), (0x1C, 0, 0, 0), (0x15, 0, 3, 0), (0x30, 0, 0, 13),
            (0x45, 1, 0, 1), (0x06, 0, 0, 0xFFFFFFFF), (0x06, 0, 0, 0)]


class ProbeFailed(Exception):
    """A server cannot be reached, or sends nothing that can be judged. The message says why."""


class ProbeNotAllowed(ProbeFailed):
    """This machine does not let this user probe. The message says what to do."""


class SocketInfo(NamedTuple):
    """Fields of struct tcp_info (include/uapi/linux/tcp.h). A field that the kernel lacks is 0."""

    scales: int  # by how many bits windows are shifted: 4 bits for the server's, 4 for this host's
    received_mss: int  # of the segments that came
    rtt_us: int
    least_rtt_us: int
    received_segments: int  # with data
    receive_window_bytes: int

    @property
    def receive_scale(self) -> int:
        """By how many bits this client's windows are shifted."""
        return self.scales >> 4

    @staticmethod
    def of_socket(connection: socket.socket) -> SocketInfo:
        """Ask the kernel about a socket. Raises OSError."""
        raw = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
        return SocketInfo(*_TCP_INFO.unpack(raw.ljust(_TCP_INFO.size, b"\0")))


# The fields of SocketInfo, at offsets 6, 20, 68, 148, 152 and 232.
_TCP_INFO = struct.Struct("=6xB 13xI 44xI 76xII 76xI")


class Deadline:
    """When to stop waiting for one server."""

    def __init__(self) -> None:
        self.at = time.monotonic() + ALL_S

    def left_s(self, at_most_s: float = ALL_S) -> float:
        """How long the next step may take. Raises ProbeFailed after the deadline."""
        left_s = min(self.at - time.monotonic(), at_most_s)
        if left_s <= 0:
            raise ProbeFailed(f"has not finished within {ALL_S:g} s")
        return left_s


class PlainProbe:
    """A connection to the probed server, without TLS."""

    def __init__(self, connection: socket.socket, deadline: Deadline) -> None:
        self.socket, self.deadline = connection, deadline

    def open(self) -> None:
        """Prepare for the request: plain HTTP needs nothing."""

    def send(self, data: bytes) -> None:
        """Send data of the request. Raises ProbeFailed, OSError."""
        self.socket.settimeout(self.deadline.left_s(CONNECT_S))
        self.socket.sendall(data)

    def decode(self, data: bytes) -> bytes:
        """The bytes of the response in received bytes."""
        return data


class TlsProbe(PlainProbe):
    """A connection to the probed server with TLS.

    No certificate is checked: nothing secret is sent or relied on.
    """

    def __init__(self, connection: socket.socket, deadline: Deadline, name: str) -> None:
        """name: of the host, which the client's hello carries."""
        super().__init__(connection, deadline)
        self.handshake_bytes = 0  # received before the request, so far
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(["http/1.1"])
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname=name)

    def open(self) -> None:
        """Do the handshake, and read what the server sends right after it, such as tickets."""
        while True:
            try:
                self.tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self._flush()
                self._feed()
        self._flush()

        quiet_s = max(0.1, 2 * SocketInfo.of_socket(self.socket).rtt_us / 1e6)
        while select.select([self.socket], [], [], self.deadline.left_s(quiet_s))[0]:
            self._feed()
            with suppress(ssl.SSLWantReadError):
                self.tls.read(1)

    def send(self, data: bytes) -> None:
        self.tls.write(data)
        self._flush()

    def decode(self, data: bytes) -> bytes:
        self.incoming.write(data)
        got = b""
        with suppress(ssl.SSLWantReadError, ssl.SSLEOFError, ssl.SSLZeroReturnError):
            while more := self.tls.read(65536):
                got += more
        return got

    def _feed(self) -> None:
        """Give TLS what the server sends next. Raises ProbeFailed, OSError."""
        self.socket.settimeout(self.deadline.left_s(CONNECT_S))
        data = self.socket.recv(65536)
        if not data:
            raise ProbeFailed("closed the connection before the request")

        self.handshake_bytes += len(data)
        if self.handshake_bytes > MOST_HANDSHAKE_BYTES:
            raise ProbeFailed(f"sends more than {MOST_HANDSHAKE_BYTES} bytes before the request")
        self.incoming.write(data)

    def _flush(self) -> None:
        """Send what TLS has written."""
        super().send(self.outgoing.read())


def observe(url: SplitResult, capture: bool = True) -> ProbedConnection:
    """Fetch a URL as the module describes, and return what was observed.

    url: http or https with a host. capture: whether to tap the connection if that is allowed.
    Raises ProbeFailed.
    """
    stack = ExitStack()
    try:
        return _observe(url, capture, stack)
    except socket.gaierror as error:
        raise ProbeFailed(f"{url.hostname} has no address: {error.strerror}") from error
    except socket.timeout as error:
        raise ProbeFailed("does not answer") from error
    except ssl.SSLError as error:
        raise ProbeFailed(f"does not speak TLS as this machine does: {error.reason}") from error
    except (OSError, ValueError) as error:  # ValueError: a name that TLS refuses
        reason = getattr(error, "strerror", None) or error
        raise ProbeFailed(f"cannot be reached: {reason}") from error
    finally:
        stack.close()


def _observe(url: SplitResult, capture: bool, stack: ExitStack) -> ProbedConnection:
    """Observe a server as observe() does. Raises OSError, ValueError, ProbeFailed.

    stack: whoever closes it closes the sockets that are opened here.
    """
    deadline = Deadline()
    connection, tap = _connect(url, capture, stack, deadline=deadline)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    round_trip_s = SocketInfo.of_socket(connection).rtt_us / 1e6
    channel = PlainProbe(connection, deadline)
    if url.scheme == "https":
        channel = TlsProbe(connection, deadline, url.hostname or "")
    channel.open()

    before = list(islice(tap.packets(), MOST_PACKETS)) if tap else []
    opened = SocketInfo.of_socket(connection)
    try:
        attach(connection, _NO_DATA)
    except PermissionError as error:
        raise ProbeNotAllowed("cannot be probed: this kernel lets only root set a filter on a"
                              " socket; run it as root") from error

    channel.send(request(url))
    started = time.monotonic()
    packets: list[Packet] = []
    counts: list[tuple[float, int]] = []
    if tap is not None:
        packets = _packets_until_retransmission(tap, started, deadline)
    else:
        counts = _count_until_pause(connection, started, round_trip_s, deadline=deadline)
    detach(connection)

    response = _read_rest(connection, channel, _bytes_beyond_flight(packets))
    closed = SocketInfo.of_socket(connection)
    return ProbedConnection(
        rtt_ms=closed.least_rtt_us / 1000, segments_before=opened.received_segments,
        window_bytes=opened.receive_window_bytes, scale=closed.receive_scale,
        mss=closed.received_mss, before=before, packets=packets, captured=tap is not None,
        counts=counts, response=response)


def _bytes_beyond_flight(packets: Sequence[Packet]) -> int:
    """The bytes of the first flight and of another full segment; 0 without a capture."""
    came = [packet for packet in packets if packet.to_client and packet.payload_bytes]
    largest = max((packet.segment_bytes or packet.payload_bytes for packet in came), default=0)
    return sum(packet.payload_bytes for packet in came) + largest


def _connect(url: SplitResult, capture: bool, stack: ExitStack,
             deadline: Deadline) -> tuple[socket.socket, ConnectionTap | None]:
    """Connect to the first address of the host that accepts. Raises OSError, ProbeFailed.

    Returns the connection, and its tap: None where capturing is not wanted or not allowed.
    """
    port = url.port or (443 if url.scheme == "https" else 80)
    addresses = socket.getaddrinfo(url.hostname, port, type=socket.SOCK_STREAM)
    for place, (family, _, _, _, address) in enumerate(addresses, start=1):
        connection = stack.enter_context(socket.socket(family, socket.SOCK_STREAM))
        connection.bind(("::" if family == socket.AF_INET6 else "0.0.0.0", 0))

        tap = None
        if capture:
            with suppress(PermissionError):
                tap = ConnectionTap(family, (str(address[0]), port), connection.getsockname()[1])
                stack.callback(tap.close)

        connection.settimeout(deadline.left_s(CONNECT_S))
        try:
            connection.connect(address)
        except OSError:
            if place == len(addresses):
                raise
            continue
        return connection, tap
    raise ProbeFailed(f"{url.hostname} has no address")


def is_this_machine(url: SplitResult) -> bool:
    """Whether the host of a URL is this machine. Nothing is sent."""
    try:
        family, _, _, _, address = socket.getaddrinfo(url.hostname, url.port or 80,
                                                      type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as asking:
            asking.connect(address)
            return bool(asking.getsockname()[0] == asking.getpeername()[0])
    except (OSError, ValueError):  # no such name or network: connecting reports it
        return False


def request(url: SplitResult) -> bytes:
    """A request after which the server closes, with as few headers as servers accept."""
    path = url.path or "/"
    if url.query:
        path += f"?{url.query}"
    text = (f"GET {quote(path, safe=SAFE)} HTTP/1.1\r\nHost: {url.netloc}\r\n"
            "User-Agent: first-flight-probe\r\nAccept: */*\r\nConnection: close\r\n\r\n")
    return text.encode("ascii", "ignore")


def _packets_until_retransmission(tap: ConnectionTap, started: float, deadline: Deadline
                                  ) -> list[Packet]:
    """All packets up to the first retransmission. Raises ProbeFailed if no data comes."""
    packets: list[Packet] = []
    data: list[Packet] = []
    heard = started
    while True:
        deadline.left_s()
        for packet in tap.packets():
            packets.append(packet)
            if len(packets) > MOST_PACKETS:
                raise ProbeFailed(f"sends more than {MOST_PACKETS} packets without an"
                                  " acknowledgement")
            if packet.to_client and packet.payload_bytes:
                if any(_overlap(packet, earlier) for earlier in data):
                    return packets
                data.append(packet)
                heard = time.monotonic()
            elif packet.to_client and packet.flags & _FIN_OR_RST and not data:
                raise ProbeFailed(CLOSED)

        now = time.monotonic()
        if not data and now - started > ANSWER_S:
            raise ProbeFailed(f"sends nothing for {ANSWER_S:g} s")
        if data and now - heard > RESEND_S:
            return packets
        tap.wait(0.1)


def _overlap(packet: Packet, other: Packet) -> bool:
    """Whether two packets share a byte; sequence numbers wrap at 32 bits."""
    return ((packet.seq - other.seq) % (1 << 32) < other.payload_bytes
            or (other.seq - packet.seq) % (1 << 32) < packet.payload_bytes)


def _count_until_pause(connection: socket.socket, started: float, round_trip_s: float,
                       deadline: Deadline) -> list[tuple[float, int]]:
    """How many segments had come, whenever their number grew, up to the first pause.

    Each as (ms after the request, segments so far). Raises ProbeFailed.
    """
    counts: list[tuple[float, int]] = []
    first, heard = _drops(connection), started
    pause_s = max(LEAST_PAUSE_S, round_trip_s)
    while True:
        deadline.left_s()
        count, now = _drops(connection) - first, time.monotonic()
        if count > (counts[-1][1] if counts else 0):
            counts.append((1000 * (now - started), count))
            heard = now
        elif counts and now - heard > pause_s:
            return counts
        elif now - started > ANSWER_S:
            raise ProbeFailed(f"sends nothing for {ANSWER_S:g} s")
        time.sleep(POLL_S)


def _drops(connection: socket.socket) -> int:
    """How many segments the socket's filter has dropped."""
    raw = connection.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, 36)
    drops: int = struct.unpack_from("=I", raw, 4 * _DROPS)[0]
    return drops


def _read_rest(connection: socket.socket, channel: PlainProbe, enough_bytes: int) -> Response:
    """Read on until the response is known to be longer than its flight, or has ended.

    enough_bytes: a response with more bytes is longer; 0 if the flight's length is not known.
    Raises ProbeFailed, OSError.
    """
    head, count, ended, is_closed = b"", 0, False, False
    until = min(time.monotonic() + REST_S, channel.deadline.at)
    while not ended and time.monotonic() < until and count < MOST_BYTES:
        if HEAD_END in head and enough_bytes and count > enough_bytes:
            break

        connection.settimeout(max(POLL_S, until - time.monotonic()))
        try:
            data = connection.recv(65536)
        except socket.timeout:
            break
        except ConnectionError:
            is_closed = True
            break

        ended = is_closed = not data
        count += len(data)
        if len(head) < MOST_HEAD_BYTES:
            head += channel.decode(data)
        if HEAD_END in head and (length := _content_length(head)) is not None:
            ended = ended or len(head) >= length  # the server may keep the connection open

    if not head and not is_closed:
        channel.deadline.left_s()
        raise ProbeFailed(f"sends nothing for {REST_S:g} s")
    return _response_of(head, count, ended)


def _response_of(head: bytes, count: int, ended: bool) -> Response:
    """The response, as its head describes it. Raises ProbeFailed if it has no head of HTTP/1.1.

    head: the first bytes of the response. count, ended: as response_bytes and ended of Response.
    """
    if not head:
        raise ProbeFailed(CLOSED)
    match = re.match(rb"HTTP/1\.[01] (\d{3})", head)
    if match is None:
        raise ProbeFailed("does not answer in HTTP/1.1")

    location = re.search(rb"(?im)^location:[ \t]*([^\r\n]*)", head.partition(HEAD_END)[0])
    size_bytes = _content_length(head)
    if not size_bytes and ended:
        size_bytes = count
    return Response(status=int(match[1]),
                    location=location[1].decode("latin-1") if location else "",
                    response_bytes=count, ended=ended, size_bytes=size_bytes)


def _content_length(head: bytes) -> int | None:
    """Bytes of head and body together; None if the head has no Content-Length."""
    text, _, _ = head.partition(HEAD_END)
    match = re.search(rb"(?im)^content-length:[ \t]*(\d{1,15})[ \t\r]*$", text)
    return len(text) + len(HEAD_END) + int(match[1]) if match else None
