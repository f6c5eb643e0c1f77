"""Parts of a host: HTTP messages, waiting, tcp_info, and captures of packets."""

from __future__ import annotations

import hashlib
import io
import os
import select
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import dpkt
import pytest

from firstflight.net import bpf
from firstflight.net.pcap import HEADER, SNAP_BYTES
from firstflight.net.waiting import Timer, waited_ns
from firstflight.testbed.hosts.kernel import SAMPLE_FIELDS, InfoTrace, TcpInfo, sample_of
from firstflight.testbed.hosts.connections import EventLoop, ServedConnection
from firstflight.testbed.hosts.http_messages import (BadRequest, PathSpec, RequestBody, body_length,
                                                   parse_path, parse_request, respond,
                                                   write_times)
from firstflight.testbed.worker.tap import Capture, PacketBuffers, Tap, sample_filter
from firstflight.testbed.worker.tls_streams import TlsStreams


@pytest.mark.parametrize(("head", "read"), [
    (b"GET /5 HTTP/1.1\r\nHost: me", ("GET", "/5", False)),
    (b"GET /5 HTTP/1.1\r\nConnection: Close", ("GET", "/5", True)),
    (b"POST /5 HTTP/1.1\r\nContent-Length: 3", ("POST", "/5", False)),
    (b"HEAD /5 HTTP/1.0", ("HEAD", "/5", True)),
    (b"GET /5 HTTP/1.0\r\nConnection: keep-alive", ("GET", "/5", False))])
def test_a_request_is_read_with_whether_it_closes_its_connection(
        head: bytes, read: tuple[str, str, bool]) -> None:
    assert parse_request(head) == read


@pytest.mark.parametrize("head", [b"", b"GET /5", b"PUT /5 HTTP/1.1", b"GET /5 SMTP"])
def test_bytes_that_are_no_request_are_refused(head: bytes) -> None:
    with pytest.raises(BadRequest):
        parse_request(head)


@pytest.mark.parametrize(("header", "length"), [
    ("Host: me", 0), ("Content-Length: 30000", 30_000), ("content-length:  0 ", 0)])
def test_the_length_of_a_body_is_read_from_the_head(header: str, length: int) -> None:
    assert body_length(f"POST /5 HTTP/1.1\r\n{header}".encode()) == length


@pytest.mark.parametrize("header", ["Content-Length: much", "Content-Length: -1",
                                    f"Content-Length: {1 << 31}", f"Content-Length: {'9' * 5000}",
                                    "Transfer-Encoding: chunked"])
def test_a_body_without_a_length_is_refused(header: str) -> None:
    with pytest.raises(BadRequest):
        body_length(f"POST /5 HTTP/1.1\r\n{header}".encode())


def test_a_body_ends_where_its_length_says() -> None:
    body = RequestBody(b"", 7)
    assert (body.take(b"abc"), body.take(b"defgGET /"), body.take(b"5")) == (b"", b"GET /", b"5")
    assert body.digest.hexdigest() == hashlib.sha256(b"abcdefg").hexdigest()
    assert (body.received_bytes, body.left) == (7, 0)


@pytest.mark.parametrize("path", ["/", "/-1", "/much", f"/{1 << 31}", "/5?burst=-1",
                                  "/5?sndbuf=-1", "/5?sndbuf=x", "/5?gap_ms=inf", "/5?trace_ms=-1"])
def test_a_path_with_values_out_of_range_is_not_found(path: str) -> None:
    assert parse_path(path) is None


def test_a_responses_body_is_as_long_as_its_length_field() -> None:
    response = respond(("GET", "/1000", True), parse_path("/1000"), 20, offset=7)
    head, _, body = bytes(response.payload).partition(b"\r\n\r\n")
    assert b"200 OK" in head and b"Content-Length: 1000" in head and b"close" in head
    assert len(body) == response.body_bytes == 1000
    assert response.released == len(response.payload) and not response.writes
    assert response.end_offset == 7 + len(response.payload) - 1


def test_an_unknown_path_is_answered_404_and_head_without_a_body() -> None:
    assert b"404 Not Found" in bytes(respond(("GET", "/x", False), None, 20, 0).payload)
    of_head = respond(("HEAD", "/9", False), parse_path("/9"), 20, 0)
    assert len(of_head.payload) == of_head.header_bytes


@pytest.mark.parametrize("text", ["5", "5:", "a:1", "5:-1", "5:0", "2:1;1:1", "5..4/1:1",
                                  "0..1/0:1", "nan:1", "0..inf/1:1", "-1:5", "0..1e9/1:5"])
def test_the_server_refuses_a_bad_schedule(text: str) -> None:
    assert parse_path(f"/100?at={text}") is None


def test_a_schedule_lets_each_write_out_at_its_time() -> None:
    def times(path: str) -> list[tuple[float, int]]:
        """The ms of each write, and where it ends behind headers of 50 bytes."""
        wanted = parse_path(path)
        assert isinstance(wanted, PathSpec)
        return list(write_times(wanted, 50, 50 + wanted.body_bytes))
    assert times("/100") == [(0.0, 150)]
    assert times("/100?burst=30&gap_ms=7") == [(0.0, 80), (7.0, 150)]
    assert times("/100?burst=300&gap_ms=7") == [(0.0, 150)]
    assert times("/100?at=0:30;5:70") == [(0.0, 80), (5.0, 150)]
    # The headers leave at once, and the bytes without a time with the last write.
    assert times("/100?at=3:30;5:30") == [(0.0, 50), (3.0, 80), (5.0, 150)]
    assert times("/100?at=0:300") == [(0.0, 150)]


def test_headers_are_as_long_as_the_writes_that_a_path_requests() -> None:
    response = respond(("GET", "/9000", True), parse_path("/9000?head=17,38,37,2&until_close=1"),
                       20, 0)
    head, _, body = bytes(response.payload).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n") and len(head) + 4 == 94 == response.header_bytes
    assert b"Content-Length" not in head and len(body) == 9000
    assert tuple(response.cuts) == (17, 55, 92, 94)


def test_a_path_that_requests_impossibly_short_headers_is_not_found() -> None:
    assert b"404 Not Found" in bytes(respond(("GET", "/9", True), parse_path("/9?head=17,2"), 20,
                                             0).payload)


def test_a_body_without_a_length_field_closes_the_connection() -> None:
    response = respond(("GET", "/9", False), parse_path("/9?until_close=1"), 20, 0)
    assert response.close and b"Connection: close" in bytes(response.payload)


@pytest.mark.parametrize("text", ["0", "-1", "17,x", "20000", ",".join(["1"] * 101)])
def test_the_server_refuses_writes_of_no_size(text: str) -> None:
    assert parse_path(f"/100?head={text}") is None


# tcp_info -----------------------------------------------------------------------------

# The offset of each field in struct tcp_info (include/uapi/linux/tcp.h).
OFFSETS = {"congestion_state": 1, "flags": 7, "retransmission_timeout_us": 8, "mss": 16,
           "unacknowledged": 24, "selectively_acknowledged": 28, "lost": 32,
           "retransmitted_in_flight": 36, "rtt_us": 68, "slow_start_threshold": 76,
           "congestion_window": 80, "reordering": 88, "retransmissions": 100,
           "pacing_rate": 104, "most_pacing_rate": 112, "unsent_bytes": 144,
           "min_rtt_us": 148, "sent_bytes": 200, "retransmitted_bytes": 208,
           "send_window_bytes": 228}


@pytest.fixture
def connection() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with socket.create_connection(listener.getsockname()) as near, listener.accept()[0]:
            yield near


def test_every_field_of_tcp_info_is_read_at_its_offset() -> None:
    raw = bytearray(240)
    for number, offset in enumerate(OFFSETS.values(), start=1):  # fields are 1, 2, 3, …
        raw[offset] = number
    assert TcpInfo.read(bytes(raw[:232]))._asdict() == {
        name: number for number, name in enumerate(OFFSETS, start=1)}


def test_fields_that_an_older_kernel_lacks_are_0() -> None:
    raw = bytearray(struct.pack("=I", 7) * 48)  # Linux 4.18 ends with tcpi_delivered
    info = TcpInfo.read(bytes(raw))
    assert (info.congestion_window, info.sent_bytes, info.send_window_bytes) == (7, 0, 0)


def test_tcp_info_of_the_running_kernel_has_the_fields_that_are_read(
        connection: socket.socket) -> None:
    connection.send(b"five!")
    info = TcpInfo.of_socket(connection)
    assert info.congestion_window > 0 and info.mss > 500 and info.sent_bytes == 5


def test_a_sample_is_kept_only_where_something_has_changed(connection: socket.socket) -> None:
    info = TcpInfo.of_socket(connection)
    assert len(sample_of(info, 1)) == len(SAMPLE_FIELDS)
    trace = InfoTrace(interval_ns=1_000_000)
    assert not trace.take(connection) and not trace.take(connection)
    assert len(trace.samples) == 1


# Waiting ------------------------------------------------------------------------------

@pytest.fixture
def loop() -> Iterator[EventLoop]:
    loop = EventLoop()
    yield loop
    loop.selector.close()
    loop.timer.close()


def served() -> ServedConnection:
    """A connection of a server, whose socket is not connected."""
    return ServedConnection(socket.socket(), ("", 0), TcpInfo.read(b""), 1, 0.0)


def test_a_wait_is_over_when_something_is_due_and_not_before(loop: EventLoop) -> None:
    open_one, done = served(), []
    loop.call_at(time.monotonic_ns() + 7_000_000, open_one, done.append)
    loop.wait()
    loop.run_due()
    assert done == [open_one] and not loop.due
    open_one.socket.close()


def test_work_due_on_a_closed_connection_is_dropped(loop: EventLoop) -> None:
    closed, open_one, done = served(), served(), []
    closed.socket.close()
    loop.call_at(time.monotonic_ns() + 1_000_000, closed, done.append)
    loop.call_at(time.monotonic_ns() + 7_000_000, open_one, done.append)
    loop.wait()
    loop.run_due()
    assert done == [open_one]
    open_one.socket.close()


def test_work_of_closed_connections_does_not_end_a_wait(loop: EventLoop) -> None:
    ours, theirs = socket.socketpair()
    heard: list[bytes] = []
    loop.call_when_readable(ours, lambda: heard.append(ours.recv(1)))
    closed = served()
    closed.socket.close()
    loop.call_at(time.monotonic_ns(), served(), lambda open_one: open_one.socket.close())
    loop.wait()
    loop.run_due()
    loop.call_at(time.monotonic_ns() + 1_000_000, closed, lambda _: None)
    theirs.send(b"x")
    events = loop.wait()
    assert [key.fileobj for key, _ in events] == [ours]
    ours.close()
    theirs.close()


@pytest.mark.parametrize(("wait_ns", "waited"), [
    (-1, 0), (0, 0), (1, 1_002), (3_184_001, 3_188_186), (3_185_000, 3_188_186),
    (5_000_000, 5_005_001),
    # A long wait has two steps: 99 % of it, then the rest. A step takes whole microseconds, a
    # thousandth more, and a nanosecond.
    (361_633_000, 358_017_000 + 358_017 + 1 + 3_258_000 + 3_258 + 1)])
def test_a_wait_is_as_late_as_an_undisturbed_select(wait_ns: int, waited: int) -> None:
    assert waited_ns(wait_ns) == waited


# Packets are read many at a time -----------------------------------------------------

SO_TIMESTAMPNS = 35  # asm-generic/socket.h; Python has no name for it


@pytest.fixture(name="pair")
def fixture_pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A sender of datagrams, and a receiver that gets the arrival time of each.

    The process stays on one processor. Each processor has a queue and a clock of its own, so
    datagrams of a sender that moves between two might overtake each other.
    """
    processors = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(processors)})
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver, \
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        receiver.bind(("127.0.0.1", 0))
        receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        sender.connect(receiver.getsockname())
        yield sender, receiver
    os.sched_setaffinity(0, processors)


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 16, 20])
def test_all_waiting_packets_are_read_in_order(pair: tuple[socket.socket, socket.socket],
                                               count: int) -> None:
    sender, receiver = pair
    sent = [bytes([number]) * (10 * number) for number in range(1, count + 1)]
    before = time.time_ns()
    for data in sent:
        sender.send(data)
    received = list(PacketBuffers(8).packets_of(receiver))
    after = time.time_ns()
    assert [head for _, _, head in received] == [data[:SNAP_BYTES] for data in sent]
    stamps = [seconds * 1_000_000_000 + nanoseconds for seconds, nanoseconds, _ in received]
    slack_ns = 1_000_000_000  # the machine's clock may be adjusted between two readings
    assert stamps == sorted(stamps)
    assert all(before - slack_ns <= stamp <= after + slack_ns for stamp in stamps)


def test_a_packet_without_a_time_is_refused(pair: tuple[socket.socket, socket.socket]) -> None:
    sender, receiver = pair
    batch = PacketBuffers(8)
    sender.send(b"x")
    assert len(list(batch.packets_of(receiver))) == 1  # its stamp stays in the buffer
    receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 0)
    sender.send(b"x")
    with pytest.raises(OSError, match="without a time stamp"):
        list(batch.packets_of(receiver))


def test_reading_a_closed_socket_raises_an_error(pair: tuple[socket.socket, socket.socket]) -> None:
    _, receiver = pair
    receiver.close()
    with pytest.raises(OSError, match="recvmmsg"):
        list(PacketBuffers(8).packets_of(receiver))


def test_a_capture_has_ip_packets_with_their_length_on_the_wire(
        pair: tuple[socket.socket, socket.socket]) -> None:
    sender, receiver = pair
    ipv4 = bytes(12) + b"\x08\x00\x45\x00" + struct.pack(">H", 1500)  # says that it has 1500 bytes
    ipv6 = bytes(12) + b"\x86\xdd" + bytes(30)
    arp = bytes(12) + b"\x08\x06" + bytes(28)
    for packet in (ipv4.ljust(300, b"\0"), ipv6, ipv4.ljust(60, b"\0"), arp):
        sender.send(packet)
    tap = Tap.__new__(Tap)  # __init__ would open an interface, for which only root has the right
    tap.socket, tap.batch = receiver, PacketBuffers(2)
    records = tap.records()
    assert len(records) == 3
    # Each record has 16 bytes of head; from the eighth on stand the kept and the original length.
    saved = b"".join(records)
    assert struct.unpack_from("<II", saved, 8) == (SNAP_BYTES, 1514)
    assert struct.unpack_from("<II", saved, 16 + SNAP_BYTES + 8) == (60, 1514)
    assert struct.unpack_from("<II", saved, 16 + SNAP_BYTES + 16 + 60 + 8) == (42, 42)
    assert len(saved) == 16 + SNAP_BYTES + 16 + 60 + 16 + 42


def test_a_reader_of_streams_gets_whole_packets(pair: tuple[socket.socket, socket.socket]) -> None:
    """Captures keep the first SNAP_BYTES of a packet, with and without such a reader."""
    sender, receiver = pair
    packet = (bytes(12) + b"\x08\x00\x45\x00" + struct.pack(">H", 1500)).ljust(1514, b"x")
    arp = bytes(12) + b"\x08\x06" + bytes(28)
    tap = Tap.__new__(Tap)
    tap.socket, tap.batch, tap.whole = receiver, PacketBuffers(2), None
    added: list[bytes] = []

    class Streams(TlsStreams):
        def add(self, frame: bytes) -> None:
            added.append(frame)

    saved: list[bytes] = []
    for streams in (None, Streams()):
        for frame in (packet, arp, packet):
            sender.send(frame)
        records = tap.records(streams)
        assert len(records) == 3
        saved.append(b"".join(records))
    assert added == [packet, packet]
    without_streams, with_streams = saved
    assert len(without_streams) == len(with_streams) == 2 * (16 + SNAP_BYTES) + 16 + 42
    for capture in saved:
        assert capture[16:16 + SNAP_BYTES] == packet[:SNAP_BYTES]


# The filter of a sample of connections -----------------------------------------------

CLIENTS, SERVER = ("10.0.0.1", "10.0.0.7"), "10.1.0.1"
# Instructions of classic BPF: code, jump if true, jump if false, value.
Program = list[tuple[int, int, int, int]]


def run(program: Program, frame: bytes) -> int:
    """How many bytes of a frame a classic BPF program keeps (Documentation/networking/filter.rst).

    A program that loads beyond the frame keeps none.
    """
    accumulator = index = place = 0
    while True:
        code, yes, no, value = program[place]
        place += 1
        try:
            if code == 0x28:  # ldh [k]
                (accumulator,) = struct.unpack_from(">H", frame, value)
            elif code == 0x20:  # ld [k]
                (accumulator,) = struct.unpack_from(">I", frame, value)
            elif code == 0x48:  # ldh [x + k]
                (accumulator,) = struct.unpack_from(">H", frame, index + value)
            elif code == 0xB1:  # ldx 4*([k]&0xf)
                index = 4 * (frame[value] & 0xF)
            elif code == 0x54:  # and
                accumulator &= value
            elif code == 0x15:  # jeq
                place += yes if accumulator == value else no
            else:
                assert code == 0x06  # ret
                return value
        except (struct.error, IndexError):
            return 0


def frame(source: tuple[str, int], target: tuple[str, int], options: int = 0,
          kind: int = 0x0800) -> bytes:
    """A TCP segment between two (address, port). options: bytes of IPv4's options.

    kind: the EtherType, IPv4 by default.
    """
    tcp = dpkt.tcp.TCP(sport=source[1], dport=target[1], data=b"x" * 200)
    ip = dpkt.ip.IP(src=socket.inet_aton(source[0]), dst=socket.inet_aton(target[0]), p=6,
                    opts=bytes(options), data=tcp)
    ip.hl = 5 + options // 4
    return bytes(dpkt.ethernet.Ethernet(type=kind, data=bytes(ip)))


@pytest.mark.parametrize("every, port, taken", [
    (2, 4000, True), (2, 4001, False), (16, 4000, True), (16, 4008, False), (16, 4015, False),
    (4096, 4096, True), (4096, 4000, False)])
@pytest.mark.parametrize("client", [*CLIENTS, "10.0.0.2"])
@pytest.mark.parametrize("options", [0, 8])
def test_a_sample_has_every_nth_port_of_the_chosen_clients(every: int, port: int, taken: bool,
                                                           client: str, options: int) -> None:
    program = sample_filter(every, CLIENTS)
    kept = SNAP_BYTES if taken and client in CLIENTS else 0
    assert run(program, frame((client, port), (SERVER, 80), options)) == kept
    assert run(program, frame((SERVER, 80), (client, port), options)) == kept


def test_packets_that_are_no_http_of_the_sample_are_dropped() -> None:
    program = sample_filter(16, CLIENTS)
    ipv6 = frame((CLIENTS[0], 4000), (SERVER, 80), kind=0x86DD)
    arp = frame((CLIENTS[0], 4000), (SERVER, 80), kind=0x0806)
    other_port = frame((SERVER, 81), (CLIENTS[0], 4001))
    for dropped in (ipv6, arp, other_port, b"", bytes(20)):
        assert run(program, dropped) == 0
    # 80 is a multiple of 16, too, but the client's port decides.
    assert run(program, frame((SERVER, 80), (CLIENTS[1], 4016))) == SNAP_BYTES
    assert run(program, frame((SERVER, 80), (CLIENTS[1], 4001))) == 0


def test_the_kernel_filters_as_the_emulated_program_does() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, theirs:
        bpf.attach(theirs, sample_filter(16, CLIENTS))
        theirs.setblocking(False)
        for port in (4000, 4001, 4016):
            try:
                ours.send(frame((CLIENTS[0], port), (SERVER, 80)))
            except PermissionError:  # how a UNIX socket reports a datagram that a filter dropped
                assert port == 4001
        received = [theirs.recv(1000) for _ in range(2)]
        with pytest.raises(BlockingIOError):
            theirs.recv(1000)
    assert [dpkt.ethernet.Ethernet(packet).ip.tcp.sport for packet in received] == [4000, 4016]
    assert {len(packet) for packet in received} == {SNAP_BYTES}


class Recorded(Tap):
    """A tap that has recorded these packets. It opens no interface, for which it needs no root."""

    def __init__(self, packets: list[bytes]) -> None:
        self.packets = packets

    def records(self, streams: object = None) -> list[bytes]:
        return self.packets


def test_a_timer_is_readable_from_its_time_until_it_is_set_again() -> None:
    timer = Timer()
    try:
        past_ns = time.monotonic_ns()
        in_an_hour_ns = past_ns + 3600 * 10**9
        # A time of 0 stops the timer.
        for at_ns, is_readable in ((past_ns, True), (past_ns, True), (0, False), (0, False),
                                   (past_ns, True), (in_an_hour_ns, False)):
            timer.set(at_ns)
            readable, _, _ = select.select([timer.fd], [], [], 0)
            assert bool(readable) == is_readable
    finally:
        timer.close()


def test_a_capture_has_the_header_of_a_pcap_file(tmp_path: Path) -> None:
    """pcap-savefile(5): times in nanoseconds, version 2.4, Ethernet."""
    capture = Capture(tmp_path / "a.pcap")
    capture.add([Recorded([struct.pack("<IIII", 5, 7, 3, 9) + b"abc"])])
    capture.close()
    content = (tmp_path / "a.pcap").read_bytes()
    reader = dpkt.pcap.Reader(io.BytesIO(content))
    assert (reader.snaplen, reader.datalink()) == (SNAP_BYTES, dpkt.pcap.DLT_EN10MB)
    assert [(float(stamp), packet) for stamp, packet in reader] == [(5.000000007, b"abc")]
    assert content.startswith(HEADER) and len(HEADER) == 24
    assert HEADER[:8] == b"\x4d\x3c\xb2\xa1\x02\x00\x04\x00"


def test_packets_of_several_taps_are_appended_to_a_capture(tmp_path: Path) -> None:
    capture = Capture(tmp_path / "a.pcap")
    capture.add([Recorded([b"before"])])
    place = capture.add([Recorded([b"p", b"q"]), Recorded([b"rst"])])
    capture.close()
    assert place == {"offset": len(HEADER) + 6, "bytes": 5, "packets": 3}
    assert (tmp_path / "a.pcap").read_bytes() == HEADER + b"beforepqrst"
