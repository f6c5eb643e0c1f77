"""The first packet that differs between two captures of one command."""

from __future__ import annotations

import struct
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

from firstflight.commands.virtual import compared
from firstflight.wire.capture.differing import (FirstDifference, Totals, add_up, decode,
                                                find_first_difference)
from firstflight.wire.capture.pcapng import Capture, Device, DeviceState, packets_of

BEGINS_NS = 1_000_000_000
ETHERNET_BYTES, IP_BYTES, TCP_BYTES, PAYLOAD_BYTES = 14, 20, 20, 10  # of a frame


def frame(seq: int = 1000, flags: int = 0x18) -> bytes:
    """A TCP segment of ten bytes from 10.0.0.1:80 to 10.0.0.2:5000."""
    tcp = struct.pack("!HHIIHHHH", 80, 5000, seq, 7, 5 << 12 | flags, 502, 0, 0) + b"0123456789"
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 1, 0, 64, 6, 0, bytes((10, 0, 0, 1)),
                     bytes((10, 0, 0, 2)))
    return bytes(12) + b"\x08\x00" + ip + tcp


def capture(*frames: bytes, times_ns: list[int] | None = None,
            reasons: list[int] | None = None) -> Capture:
    """A capture of frames that s1-eth1 sent to h1-eth0, a microsecond apart."""
    count, size = len(frames), len(frame())
    state = DeviceState(0, "s1-eth1", "veth", namespace=1, is_root=False, peer=2, mtu=1500,
                        is_up=True)
    peer = state._replace(name="h1-eth0", namespace=2, peer=1)
    return Capture(
        [Device(1, "s1-eth1", [state]), Device(2, "h1-eth0", [peer])],
        packets_of(device=[1] * count, frame_bytes=[size] * count, kept=[size] * count,
                   time_ns=times_ns or [BEGINS_NS + 1000 * index for index in range(count)],
                   place=[size * index for index in range(count)], reason=reasons or [0] * count),
        numpy.frombuffer(b"".join(frames), numpy.uint8))


FRAMES = [frame(1000 + 10 * index) for index in range(8)]


def difference_from(other: Capture) -> FirstDifference:
    """The first difference of a capture from one of FRAMES."""
    found = find_first_difference(capture(*FRAMES), other, BEGINS_NS)
    assert found is not None
    return found


def test_equal_captures_have_no_difference() -> None:
    assert find_first_difference(capture(*FRAMES), capture(*FRAMES), BEGINS_NS) is None
    assert find_first_difference(capture(), capture(), BEGINS_NS) is None


@pytest.mark.parametrize("index", [0, 2, 7])
def test_a_packet_with_another_byte_is_found_with_those_before_it(index: int) -> None:
    frames = [*FRAMES]
    frames[index] = frames[index][:-1] + b"!"
    found = difference_from(capture(*frames))
    assert found.number == index + 1 and found.what == "its bytes"
    assert found.link == "s1-eth1 → h1-eth0" and found.at_s == index / 1e6
    assert len(found.before) == min(4, index)
    assert all("TCP 10.0.0.1:80 → 10.0.0.2:5000 [PA] seq" in line for line in found.before)


def test_a_packet_that_is_a_nanosecond_late_differs_in_its_time_only() -> None:
    times_ns = [BEGINS_NS + 1000 * index + (index > 4) for index in range(8)]
    found = difference_from(capture(*FRAMES, times_ns=times_ns))
    assert (found.number, found.what) == (6, "only its time: 0.000001 ms later")


def test_a_packet_that_was_dropped_in_one_capture_differs() -> None:
    found = difference_from(capture(*FRAMES, reasons=[0, 0, 0, 5, 0, 0, 0, 0]))
    assert (found.number, found.what) == (4, "whether it was dropped")
    assert " dropped TCP" in found.second and " dropped TCP" not in found.first


def test_the_first_packet_past_the_end_of_the_shorter_capture_differs() -> None:
    found = difference_from(capture(*FRAMES[:5]))
    assert (found.number, found.second) == (6, "no packet")
    assert "no more packets" in found.what


def test_frames_of_other_protocols_and_cut_frames_are_described_by_type_and_length() -> None:
    assert decode(bytes(12) + b"\x08\x06" + bytes(28), 42) == "ARP, 42 bytes"
    assert decode(b"", 60) == "type 0x0000, 60 bytes"
    assert decode(frame()[:30], 64).endswith("64 bytes")


@pytest.mark.parametrize("options, words", [
    (b"\x01\x01\x08\x0a\x00\x00\x00\x07\x00\x00\x00\x03", "10 bytes TSval 7 TSecr 3"),
    (b"\x01\x01\x05\x0a\x00\x00\x00\x01\x00\x00\x00\x09", "10 bytes SACK 1–9"),
    (b"\x08\x00\x01\x01", "10 bytes"), (b"\x08\x03\x01\x00", "10 bytes"),
    (b"\x01\x01\x01\x08", "10 bytes")])
def test_timestamps_and_sack_blocks_are_shown(options: bytes, words: str) -> None:
    """They may be all that differs: a time stamp shows that a segment waited in a queue."""
    plain = frame()
    tcp_at, payload_at = ETHERNET_BYTES + IP_BYTES, ETHERNET_BYTES + IP_BYTES + TCP_BYTES
    before, tcp, payload = plain[:tcp_at], plain[tcp_at:payload_at], plain[payload_at:]

    ip_length = IP_BYTES + TCP_BYTES + len(options) + PAYLOAD_BYTES
    before = before[:16] + struct.pack("!H", ip_length) + before[18:]
    tcp = tcp[:12] + bytes([(TCP_BYTES + len(options)) // 4 << 4]) + tcp[13:]
    with_options = before + tcp + options + payload
    assert decode(with_options, len(with_options)).endswith(words)


def test_totals_count_packets_that_left_and_all_drops() -> None:
    counted = replace(capture(*FRAMES, reasons=[0, 5, 0, 0, 0, 0, 0, 0]), dropped=[(1, "x", 2)])
    assert add_up(counted, BEGINS_NS) == Totals(
        packets=7, frame_bytes=7 * len(frame()), dropped=3, last_s=7e-6)


TOTALS = Totals(packets=8, frame_bytes=640, dropped=0, last_s=1.0)
RESULT: Any = SimpleNamespace(clock_s=1.0, status=0)


def test_the_answer_shows_both_packets_and_which_totals_differ() -> None:
    found = difference_from(capture(*FRAMES[:6], frame(7), *FRAMES[7:]))
    text = compared.render(("plain", "mine"), found,
                           (TOTALS, replace(TOTALS, dropped=2, last_s=1.5)), (RESULT, RESULT))
    assert "packet 7 is the first that differs, on s1-eth1 → h1-eth0 after 0.000006000 s" in text
    assert text.count("  both ") == 4 and "mine   0.000006000 s s1-eth1 → h1-eth0 TCP" in text
    assert "dropped" in text.partition("In the end:")[2]
    assert "the same: packets that left, bytes" in text


def test_the_answer_says_that_nothing_differs_where_nothing_does() -> None:
    text = compared.render(("plain", "mine"), None, (TOTALS, TOTALS), (RESULT, RESULT))
    assert text == ("Kernels plain and mine: no packet differs, of 8.\n"
                    "In the end nothing differs: packets, bytes, drops, times.")
