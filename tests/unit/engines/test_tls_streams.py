"""The lengths of TLS records, found in the packets of a server."""

from __future__ import annotations

import struct

import pytest

from firstflight.net.headers import ACK, SYN
from firstflight.testbed import observations
from firstflight.testbed.worker.tls_streams import TlsStreams

FIRST = 2**32 - 300  # the first sequence number: numbers wrap to 0 within the stream
RECORDS = [127, 6, 1022, 1022, 64, 5]  # lengths with the head of 5 bytes
SENT = b"".join(b"\x17\x03\x03" + struct.pack(">H", length - 5) + bytes(length - 5)
                for length in RECORDS)


def frame(start: int, payload: bytes = b"", source: int = 443, flags: int = ACK,
          port: int = 40000) -> bytes:
    """A packet of a server. start: where its payload begins in the stream, -1 for a SYN-ACK.

    port: of the client. Ethernet pads short packets.
    """
    tcp = struct.pack(">HHIIBBHHH", source, port, (FIRST + 1 + start) % 2**32, 7, 8 << 4, flags,
                      500, 0, 0) + bytes(12)
    ip = struct.pack(">BBHHHBBHII", 0x45, 0, 40 + 12 + len(payload), 1, 0, 64, 6, 0, 1, 2)
    return (bytes(12) + b"\x08\x00" + ip + tcp + payload).ljust(60, b"\xff")


def reported(*frames: bytes, syn_port: int = 443) -> list[tuple[int, list[tuple[int, int]]]]:
    """The report on a SYN-ACK and these frames."""
    streams = TlsStreams()
    for added in (frame(-1, flags=SYN | ACK, source=syn_port), *frames):
        streams.add(added)
    return streams.report()


def cut(size: int) -> list[bytes]:
    """The stream SENT in segments of this size."""
    return [frame(start, SENT[start:start + size]) for start in range(0, len(SENT), size)]


# The report on SENT: the client's port, and runs of (length, count).
WHOLE = [(40000, [(127, 1), (6, 1), (1022, 2), (64, 1), (5, 1)])]


@pytest.mark.parametrize("size", [1, 2, 3, 130, 536, 1448, 5000])
def test_records_are_found_in_segments_of_any_size(size: int) -> None:
    """A record's head may lie in two segments, a record in several, and several records in one."""
    assert reported(*cut(size)) == WHOLE


def test_retransmitted_bytes_of_a_record_count_once() -> None:
    segments = cut(100)
    retransmitted = [frame(250, SENT[250:450]), *segments[:3]]  # the first is cut differently
    assert reported(*segments[:4], *retransmitted, *segments[4:]) == WHOLE
    assert reported(frame(-1, flags=SYN | ACK), *segments) == WHOLE


def test_a_stream_with_a_gap_is_not_reported() -> None:
    segments = cut(100)
    assert reported(*segments[:2], *segments[3:]) == []


def test_segments_without_tls_or_from_the_client_have_no_records() -> None:
    assert reported(*(frame(0, SENT, source=source) for source in (80, 600, 40001))) == [
        (40000, [])]
    assert reported(frame(0, SENT, source=80), syn_port=80) == []


def test_a_connection_whose_beginning_was_not_captured_is_not_reported() -> None:
    assert reported(frame(0, SENT, port=40001), *cut(700)) == WHOLE


@pytest.mark.parametrize("wrong", [[[1]], [[70_000, [[5, 1]]]], [[1, [[5]]]], [[1, [[5, -1]]]],
                                   [[1, [["5", 1]]]], [[1, 5]], 7])
def test_a_malformed_report_of_records_is_refused(wrong: object) -> None:
    right = [[40000, [[127, 1], [1022, 2]]]]
    assert observations.OBSERVATION({"trial": "x", "records": right}, "")["records"] == right
    with pytest.raises(ValueError):
        observations.OBSERVATION({"trial": "x", "records": wrong}, "")
