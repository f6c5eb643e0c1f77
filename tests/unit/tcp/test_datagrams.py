"""What two captures of a QUIC connection say, of datagrams that were made one by one."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import pytest

from net.segments import CaptureError
from tests.unit.tcp.conversation import CLIENT, MS, SERVER, START_NS, capture
from wire import datagrams

HEADERS = 14 + 20 + 8  # of Ethernet, IPv4 and UDP
LONG, SHORT = 0xC0, 0x40  # the first byte of a packet of the handshake, and of a later one
WAY_MS = 50.0


@dataclass
class Talk:
    """Builds both captures over a path of 50 ms each way."""

    client: list[tuple[int, bytes, int]] = field(default_factory=list)
    server: list[tuple[int, bytes, int]] = field(default_factory=list)

    def send(self, at_ms: float, to_client: bool, payload: int, first: int = LONG,
             takes_ms: float = WAY_MS, lost: bool = False) -> Talk:
        frame = framed(payload, to_client, first)
        sender, receiver = ((self.server, self.client) if to_client
                            else (self.client, self.server))
        sender.append((START_NS + round(at_ms * MS), frame, HEADERS + payload))
        if not lost:
            receiver.append((START_NS + round((at_ms + takes_ms) * MS), frame, HEADERS + payload))
        return self

    def read(self) -> datagrams.Datagrams:
        return datagrams.read_datagrams(capture(self.client), capture(self.server))


def framed(payload: int, to_client: bool = False, first: int = LONG, kind: int = 0x0800,
           protocol: int = 17, ports: tuple[int, int] = (40000, 8443), options: int = 0) -> bytes:
    """The first bytes of a frame as a tap keeps them; options: of IPv4, in words."""
    if to_client:
        ports = ports[1], ports[0]
    address = (SERVER, CLIENT) if to_client else (CLIENT, SERVER)
    return (bytes(12) + struct.pack(">H", kind) + bytes([0x45 + options]) + bytes(8)
            + bytes([protocol]) + bytes(2) + b"".join(address) + bytes(4 * options)
            + struct.pack(">HHHH", *ports, 8 + payload, 0) + bytes([first]) + bytes(20))


def handshake() -> Talk:
    """The client's hello; three times as much, the rest when the client has answered; a request.

    As RFC 9000, 8.1 has it: 1200 bytes came, so no more than 3600 leave before the address is
    validated.
    """
    talk = Talk().send(0, False, 1200)
    for place, size in enumerate((1200, 1200, 1200)):
        talk.send(50, True, size, takes_ms=WAY_MS + place)
    talk.send(100, False, 1252).send(102, False, 40)
    talk.send(150, True, 1000).send(150.0005, True, 500, takes_ms=WAY_MS + 1)
    talk.send(200, False, 60).send(201, False, 90, first=SHORT)
    return talk.send(251, True, 300, first=SHORT)


def test_a_handshake_is_told_by_its_round_trips() -> None:
    seen = handshake().read()
    assert [[each.payload_bytes for each in trip] for trip in seen.rounds] == [
        [1200, 1200, 1200], [1000, 500]]
    assert [each.payload_bytes for each in seen.requested] == [1200]
    assert seen.allowed_bytes == seen.unvalidated_bytes == 3600
    assert [each.payload_bytes for each in seen.unvalidated] == [1200, 1200, 1200]
    assert seen.lost == (0, 0)


@pytest.mark.parametrize(("sent_ms", "requested"), [(99.999, 2), (100, 1)])
def test_the_client_has_asked_with_what_left_before_an_answer_came(sent_ms: float,
                                                                   requested: int) -> None:
    seen = handshake().send(sent_ms, False, 1100).read()
    assert len(seen.requested) == requested and seen.allowed_bytes == 3600 + (requested - 1) * 3300


@pytest.mark.parametrize(("sent_ms", "unvalidated"), [(149.999, 4), (150, 3)])
def test_an_address_is_validated_when_what_answers_the_server_has_come(sent_ms: float,
                                                                      unvalidated: int) -> None:
    assert len(handshake().send(sent_ms, True, 77).read().unvalidated) == unvalidated


def test_each_that_does_not_come_is_missed_on_its_own_way() -> None:
    talk = Talk().send(0, False, 1200).send(50, True, 1200, lost=True).send(51, True, 900)
    talk.send(100, False, 300, lost=True).send(101, False, 200).send(160, True, 400, lost=True)
    seen = talk.read()
    assert seen.lost == (2, 1)
    assert [came and came.payload_bytes for _, came in seen.to_client] == [None, 900, None]


def test_the_rtt_is_what_the_first_took_each_way_less_serialisation() -> None:
    seen = Talk().send(0, False, 1200, takes_ms=60).send(60, True, 1000, takes_ms=70).read()
    up_ms, down_ms = (HEADERS + 1200) * 8 / 2000, (HEADERS + 1000) * 8 / 1000
    assert seen.rtt_ms(1000, 2000) == pytest.approx(130 - up_ms - down_ms)
    lost = Talk().send(0, False, 1200, lost=True).send(9, False, 100).send(70, True, 1000)
    assert lost.read().rtt_ms(1000, 2000) is None


def busy(apart_ms: float = 0.0, count: int = 3) -> Talk:
    """So many of 958 bytes that leave in a row; each takes the link 1 ms: 8000 kbit/s."""
    talk = Talk().send(0, False, 1200)
    for place in range(count):
        at_ms = 50 + place * apart_ms
        talk.send(at_ms, True, 1000 - HEADERS, takes_ms=WAY_MS + 50 + place - at_ms)
    return talk


@pytest.mark.parametrize(("apart_ms", "count", "kbps"), [
    (0, 3, 8000), (0.001, 3, 8000), (0.0011, 3, None), (0, 2, 8000), (0, 1, None)])
def test_what_leaves_within_a_microsecond_tells_the_rate(apart_ms: float, count: int,
                                                         kbps: float | None) -> None:
    found = busy(apart_ms, count).read().bandwidth_kbps
    assert found == (None if kbps is None else pytest.approx(kbps))


def test_the_longest_row_tells_it_and_a_loss_ends_one() -> None:
    talk = busy(count=2).send(60, True, 700, lost=True)
    for place in range(3):  # at half the rate
        talk.send(60, True, 1000 - HEADERS, takes_ms=60 + 2 * place)
    assert talk.read().bandwidth_kbps == pytest.approx(4000)
    for place in range(3):  # as long a row, later
        talk.send(90, True, 1000 - HEADERS, takes_ms=60 + 4 * place)
    assert talk.read().bandwidth_kbps == pytest.approx(4000)
    at_once = Talk().send(0, False, 1200).send(50, True, 50).send(50, True, 50)
    assert at_once.read().bandwidth_kbps is None


@pytest.mark.parametrize(("frame", "is_seen"), [
    (framed(300), True), (framed(300, options=3), True), (framed(300, kind=0x86DD), False),
    (framed(300, protocol=6), False), (framed(300, ports=(40000, 53)), False),
    (framed(300)[:HEADERS], False), (framed(300, options=3)[:HEADERS + 1], False),
    (framed(300)[:20], False)])
def test_what_is_no_datagram_of_the_server_is_passed_over(frame: bytes, is_seen: bool) -> None:
    talk = handshake()
    talk.client.append((START_NS + 500 * MS, frame, HEADERS + 300))
    assert len(talk.read().to_server) == len(handshake().read().to_server) + is_seen


def test_what_nobody_sent_is_refused() -> None:
    talk = handshake()
    talk.client.append((START_NS + 900 * MS, framed(50, to_client=True), HEADERS + 50))
    with pytest.raises(CaptureError, match="1 datagrams came that nobody sent"):
        talk.read()
    for only in (Talk().send(0, False, 50), Talk().send(0, True, 50)):
        with pytest.raises(CaptureError, match="each way"):
            only.read()
