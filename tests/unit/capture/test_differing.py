"""The first packet that differs between two captures of one command."""

from __future__ import annotations

import struct
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

from firstflight.commands.virtual import compared
from firstflight.wire.capture.differing import Ends, decode, ends, first_difference
from firstflight.wire.capture.pcapng import Capture, Device, DeviceState, packets_of

BEGINS_NS = 1_000_000_000


def frame(seq: int = 1000, flags: int = 0x18) -> bytes:
    """A TCP segment of ten bytes from 10.0.0.1:80 to 10.0.0.2:5000."""
    tcp = struct.pack("!HHIIHHHH", 80, 5000, seq, 7, 5 << 12 | flags, 502, 0, 0) + b"0123456789"
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 1, 0, 64, 6, 0, bytes((10, 0, 0, 1)),
                     bytes((10, 0, 0, 2)))
    return bytes(12) + b"\x08\x00" + ip + tcp


def capture(*frames: bytes, times_ns: list[int] | None = None,
            reasons: list[int] | None = None) -> Capture:
    count, size = len(frames), len(frame())
    state = DeviceState(0, "s1-eth1", "veth", 1, False, 2, 1500, True)
    peer = DeviceState(0, "h1-eth0", "veth", 2, False, 1, 1500, True)
    return Capture(
        [Device(1, "s1-eth1", [state]), Device(2, "h1-eth0", [peer])],
        packets_of(device=[1] * count, frame_bytes=[size] * count, kept=[size] * count,
                   time_ns=times_ns or [BEGINS_NS + 1000 * place for place in range(count)],
                   place=[size * place for place in range(count)], reason=reasons or [0] * count),
        numpy.frombuffer(b"".join(frames), numpy.uint8))


SAME = [frame(1000 + 10 * place) for place in range(8)]


def test_two_captures_that_are_the_same_have_no_difference() -> None:
    assert first_difference(capture(*SAME), capture(*SAME), BEGINS_NS) is None
    assert first_difference(capture(), capture(), BEGINS_NS) is None


@pytest.mark.parametrize("place", [0, 2, 7])
def test_one_bit_of_one_packet_is_found(place: int) -> None:
    other = [*SAME]
    other[place] = other[place][:-1] + b"!"
    found = first_difference(capture(*SAME), capture(*other), BEGINS_NS)
    assert found is not None and found.number == place + 1 and found.what == "its bytes"
    assert found.link == "s1-eth1 → h1-eth0" and found.at_s == place / 1e6
    assert len(found.before) == min(4, place)
    assert all("TCP 10.0.0.1:80 → 10.0.0.2:5000 [PA] seq" in line for line in found.before)


def test_a_nanosecond_a_drop_and_an_end_are_differences() -> None:
    times_ns = [BEGINS_NS + 1000 * place + (place > 4) for place in range(8)]
    later = first_difference(capture(*SAME), capture(*SAME, times_ns=times_ns), BEGINS_NS)
    assert later is not None and (
        (later.number, later.what) == (6, "only its time: 0.000001 ms later"))
    dropped = first_difference(capture(*SAME), capture(*SAME, reasons=[0, 0, 0, 5, 0, 0, 0, 0]),
                               BEGINS_NS)
    assert dropped is not None and (dropped.number, dropped.what) == (4, "whether it was dropped")
    assert " dropped TCP" in dropped.second and " dropped TCP" not in dropped.first
    over = first_difference(capture(*SAME), capture(*SAME[:5]), BEGINS_NS)
    assert over is not None and (over.number, over.second) == (6, "no packet")
    assert "no more packets" in over.what


def test_what_is_no_tcp_is_named_and_what_is_broken_too() -> None:
    assert decode(bytes(12) + b"\x08\x06" + bytes(28), 42) == "ARP, 42 bytes"
    assert decode(b"", 60) == "type 0x0000, 60 bytes"
    assert decode(frame()[:30], 64).endswith("64 bytes")


@pytest.mark.parametrize("options, words", [
    (b"\x01\x01\x08\x0a\x00\x00\x00\x07\x00\x00\x00\x03", "10 bytes TSval 7 TSecr 3"),
    (b"\x01\x01\x05\x0a\x00\x00\x00\x01\x00\x00\x00\x09", "10 bytes SACK 1–9"),
    (b"\x08\x00\x01\x01", "10 bytes"), (b"\x08\x03\x01\x00", "10 bytes"),
    (b"\x01\x01\x01\x08", "10 bytes")])
def test_options_that_change_from_segment_to_segment_are_shown(options: bytes, words: str) -> None:
    """Two segments may differ in nothing else, such as one that waited behind others in a queue."""
    plain = frame()
    head, tcp, payload = plain[:34], plain[34:54], plain[54:]
    head = head[:16] + struct.pack("!H", 20 + 20 + len(options) + 10) + head[18:]
    tcp = tcp[:12] + bytes([(20 + len(options)) // 4 << 4]) + tcp[13:]
    assert decode(head + tcp + options + payload, 64 + len(options)).endswith(words)


def test_the_ends_count_what_left_and_what_was_dropped() -> None:
    shown = replace(capture(*SAME, reasons=[0, 5, 0, 0, 0, 0, 0, 0]), dropped=[(1, "x", 2)])
    assert ends(shown, BEGINS_NS) == Ends(7, 7 * len(frame()), 3, 7e-6)


def test_the_answer_has_both_versions_and_what_parts_in_the_end() -> None:
    result: Any = SimpleNamespace(clock_s=1.0, status=0)
    other = [*SAME[:6], frame(7), *SAME[7:]]
    first, second = capture(*SAME), capture(*other)
    found = first_difference(first, second, BEGINS_NS)
    text = compared.render(("plain", "mine"), found, (Ends(8, 640, 0, 1.0), Ends(8, 640, 2, 1.5)),
                           (result, result))
    assert "packet 7 is the first that differs, on s1-eth1 → h1-eth0 after 0.000006000 s" in text
    assert text.count("  both ") == 4 and "mine   0.000006000 s s1-eth1 → h1-eth0 TCP" in text
    assert "dropped" in text.partition("In the end:")[2]
    assert "the same: packets that left, bytes" in text
    alike = compared.render(("plain", "mine"), None, (Ends(8, 640, 0, 1.0),) * 2, (result, result))
    assert alike == ("Kernels plain and mine: no packet differs, of 8.\n"
                     "In the end nothing differs: packets, bytes, drops, times.")
