"""What a capture says, on one that was measured (tests/golden/capture/small.py), and on others."""

from __future__ import annotations

import gzip
import random
import struct
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy
import pytest

from firstflight.base.errors import FirstFlightError
from firstflight.commands.virtual import captured
from firstflight.findings.render.data import table_csv
from firstflight.net.headers import TCP, UDP
from firstflight.wire.capture import pcapng
from firstflight.wire.capture.connections import observe_connections
from firstflight.wire.capture.conversations import find_conversations
from firstflight.wire.capture.fields import FRAGMENT, Headers, read_headers
from firstflight.wire.capture.direction import LinkDirection
from firstflight.wire.capture.links import _effective_settings, observe_links
from firstflight.wire.capture.spaces import NamespaceNames
from firstflight.wire.capture.pcapng import (Capture, Device, DeviceState, NoCapture, Packets,
                                             packets_of, read)
from firstflight.wire.capture.qdiscs import DeviceSetting, Qdisc, parse_setting, format_rate
from firstflight.wire.capture.report import CaptureReport, report_capture

SMALL = Path(__file__).resolve().parents[2] / "golden" / "capture" / "small.pcapng.gz"
ORIGIN_NS = 1_767_225_600_000_000_000


@cache
def content() -> bytes:
    return gzip.decompress(SMALL.read_bytes())


def small(folder: Path, data: bytes | None = None) -> Capture:
    (folder / pcapng.NAME).write_bytes(content() if data is None else data)
    return read(folder / pcapng.NAME)


def of(capture: Capture) -> CaptureReport:
    return report_capture(capture, {"command": ["python3", "small.py"]}, "folder", ORIGIN_NS)


Row = dict[str, int]


def rows(packets: Packets) -> list[Row]:
    return [dict(zip(Packets._fields, row)) for row in zip(*(c.tolist() for c in packets))]


def changed(capture: Capture, device: str, change: Callable[[list[Row]], list[Row]]
            ) -> list[LinkDirection]:
    """The links, where the packets of one device were others."""
    number = next(each.number for each in capture.devices if each.name == device)
    every = rows(capture.packets)
    kept = [row for row in every if row["device"] != number]
    own = change([row for row in every if row["device"] == number])
    both = sorted(kept + own, key=lambda row: (row["time_ns"], row["number"]))
    capture.packets = packets_of(**{name: [row[name] for row in both] for name in Packets._fields})
    return observe_links(capture, read_headers(capture), NamespaceNames())


def linked(capture: Capture) -> list[LinkDirection]:
    return observe_links(capture, read_headers(capture), NamespaceNames())


def wrong(found: list[LinkDirection], device: str) -> str:
    return "; ".join(next(link for link in found if link.sender == device).wrong)


# What it says ---------------------------------------------------------------------------

def test_links_are_as_set_but_the_one_whose_class_nobody_uses(tmp_path: Path) -> None:
    found = linked(small(tmp_path))
    assert [link.name for link in found] == ["h1 → s1", "s1 → h1", "h2 → s1", "s1 → h2",
                                             "h3 → s1", "s1 → h3"]
    assert [len(link.wrong) for link in found] == [0, 0, 0, 0, 2, 0]
    assert "netem delay 50 ms limit 1000 packets: never used" in wrong(found, "h3-eth0")
    first = found[0]
    assert first.setting.words == "htb 5 Mbit/s → netem delay 20 ms limit 20 packets"
    assert (first.setting.rate_kbps, first.setting.delay_ms) == (5000, 20)
    # Each packet leaves when its queue lets it go, random losses by netem's own numbers among them.
    assert sum(link.judged for link in found) == 299 and max(link.worst_us for link in found) < 1
    assert [link.random_drops for link in found] == [0, 0, 5, 7, 0, 0]
    assert first.least_ms == pytest.approx(20, abs=0.001)
    # A packet of the kernel's own came before Mininet had set a delay: the delays are not of it.
    assert all(link.least_ms is not None and link.least_ms >= link.setting.delay_ms
               for link in found if not link.wrong)


def test_a_queue_that_is_replaced_has_what_it_counted_until_then() -> None:
    def delay(time_ns: int, ms: float, packets: int) -> DeviceSetting:
        return DeviceSetting(time_ns,
                             (Qdisc("netem", False, 1 << 16, 0, delay_ms=ms, packets=packets),))
    times = [5, 6, 11]
    came = packets_of(time_ns=times, queued_ns=times, number=times, accepted=[True] * 3)
    before, after = _effective_settings(
        [delay(0, 7, 0), delay(10, 7, 2), delay(10, 30, 0), delay(20, 30, 1)], came)
    assert (before.time_ns, before.queues[0].packets) == (0, 2)
    assert (after.time_ns, after.queues[0].packets, after.delay_ms) == (10, 1, 30)
    # Open vSwitch makes its classes anew, and they count from 0 on.
    (again,) = _effective_settings([delay(0, 7, 60), delay(10, 7, 0)], came)
    assert again.queues[0].packets == 60


@pytest.mark.parametrize("change", [
    {"time_ns": ORIGIN_NS + 130_000_000},  # it is still there when the delay is set
    {"frame_bytes": 60_000}])  # it has spent what the bucket had
def test_a_packet_between_two_settings_may_spoil_the_last_one(
        tmp_path: Path, change: dict[str, int]) -> None:
    def first(packets: list[Row]) -> list[Row]:
        return [packets[0] | change, *packets[1:]]
    before, after = (next(link for link in changed(small(tmp_path), "s1-eth1", how)
                          if link.sender == "s1-eth1") for how in (lambda packets: packets, first))
    assert before.judged == 77 and not before.unjudged
    assert after.judged == 0 and after.unjudged == "its settings changed meanwhile"


def test_connections_have_their_windows_and_losses(tmp_path: Path) -> None:
    capture = small(tmp_path)
    found = linked(capture)
    conversations = find_conversations(capture, read_headers(capture), found)
    assert conversations.tcp is not None
    seen = observe_connections(conversations.connections, conversations.tcp, found, capture.data)
    lossy, clean, refused = (each for each in seen if each)
    assert lossy.handshake_ms == pytest.approx(50, abs=0.01)  # 20 + 5 ms, there and back
    assert clean.handshake_ms == pytest.approx(40, abs=0.01)
    for each in (lossy, clean):
        assert each.to_client.bytes == 60203 and each.state == ""
        assert each.to_client.first_flight == (13235, 10, True)  # the header's segment is short
        assert each.to_client.goodput_kbps and each.ended_ns > each.begun_ns
    assert lossy.to_client.retransmitted == {"lost at random, s1 → h2": 3}
    assert not clean.to_client.retransmitted and refused.state == "refused"


def test_the_answer_names_what_was_never_applied_and_the_files_have_all(tmp_path: Path) -> None:
    made = of(small(tmp_path))
    assert made.report.answer.sentence.startswith(
        "1 of 6 directions of links did not do what was set: of 338 packets 0 were dropped")
    assert len(made.report.alarms) == 2 and "never used" in made.report.alarms[0]
    assert len(table_csv(made.links).splitlines()) == 7
    assert len(table_csv(made.connections).splitlines()) == 4
    assert "retransmitted_segments" in table_csv(made.connections).splitlines()[0]
    assert ("Most were lost at s1 → h2 (s1-eth2; htb 50 Mbit/s → netem delay 5 ms loss 10 % limit"
            in made.report.answer.sentence) and "): 7 at random." in made.report.answer.sentence
    assert "Pings took 40.0 ms." in made.report.answer.sentence


def test_the_page_shows_first_what_differs_and_what_was_dropped(
        tmp_path: Path) -> None:
    made = of(small(tmp_path))
    links_shown, connections_shown = (finding.tables[0] for finding in made.report.findings[:2])
    assert links_shown.columns[0].name == made.links.columns[0].name == "what differs"
    assert "never used" in str(links_shown.rows[0][0]) and not links_shown.rows[1][0]
    # Those that dropped most come next; what was refused is shown, however small.
    assert [row[3] for row in links_shown.rows[1:3]] == ["s1-eth2", "h2-eth0"]
    assert [row[0] for row in connections_shown.rows] == [3, 1, 2]


def test_a_network_without_links_says_so() -> None:
    assert of(Capture()).report.answer.sentence == \
        "The command made no link between two hosts or switches."


# Every check has refused something ------------------------------------------------------

def later(packets: list[Row]) -> list[Row]:
    """The tenth packet leaves a millisecond later than it may."""
    packets[9]["time_ns"] += 1_000_000
    return packets


def without(packets: list[Row]) -> list[Row]:
    """Of the tenth packet the file says that the queue dropped it, though there was room."""
    packets[9] |= {"reason": 3, "time_ns": packets[9]["queued_ns"], "accepted": False}
    return packets


def saved(packets: list[Row]) -> list[Row]:
    """One that random loss took arrives."""
    return [packet | {"reason": 0, "time_ns": packet["queued_ns"] + 5_000_001}
            if packet["reason"] else packet for packet in packets]


def quick(packets: list[Row]) -> list[Row]:
    """All leave at once."""
    return [packet | {"time_ns": packet["queued_ns"]} for packet in packets]


@pytest.mark.parametrize(("device", "change", "said"), [
    ("h1-eth0", later, "packets differ from what its queue has to do"),
    ("h1-eth0", without, "did not arrive though the queue held"),
    ("s1-eth2", saved, "arrived though random loss"), ("h1-eth0", quick, "and 20 ms are set"),
    ("s1-eth3", later, "waited or was dropped")])
def test_a_packet_that_the_queue_did_not_treat_so_is_told(
        tmp_path: Path, device: str, change: Callable[[list[Row]], list[Row]], said: str
        ) -> None:
    assert said in wrong(changed(small(tmp_path), device, change), device)


@pytest.mark.parametrize(("stays", "is_told"), [(False, True), (True, False)])
def test_what_is_still_queued_at_the_end_may_have_filled_the_queue(tmp_path: Path, stays: bool,
                                                                   is_told: bool) -> None:
    """A packet is written down when it leaves: of one that stays the file has nothing."""
    def ending(packets: list[Row]) -> list[Row]:
        dropped = packets[-1] | {"reason": 3, "time_ns": packets[-1]["queued_ns"],
                                 "accepted": False}
        return [*packets[:-2 if stays else -1], dropped]
    said = wrong(changed(small(tmp_path), "h1-eth0", ending), "h1-eth0")
    assert ("did not arrive though the queue held" in said) == is_told


def test_a_rate_that_is_passed_is_told(tmp_path: Path) -> None:
    def crowd(packets: list[Row]) -> list[Row]:
        full = max(packets, key=lambda packet: packet["frame_bytes"])
        return packets + [full | {"number": 10_000 + place,
                                  "time_ns": full["time_ns"] + place * 10**6,
                                  "queued_ns": full["queued_ns"] + place * 10**6}
                          for place in range(1, 1500)]
    said = wrong(changed(small(tmp_path), "h1-eth0", crowd), "h1-eth0")
    assert "in a second, and 5 Mbit/s are set" in said


def test_a_share_of_losses_that_chance_does_not_explain_is_told(tmp_path: Path) -> None:
    def more(packets: list[Row]) -> list[Row]:
        return [packet | {"number": number, "reason": 0} for number, packet
                in enumerate(packets * 40, start=1)]
    assert "lost at random, and 10 % are set" in wrong(
        changed(small(tmp_path), "s1-eth2", more), "s1-eth2")


def own_block(kind: int, device: int, rest: bytes) -> bytes:
    """A block as vtime/kernel/capture.c writes it."""
    body = struct.pack("<HxxIQ", kind, device, ORIGIN_NS) + rest
    return struct.pack("<II", 0x80004646, len(body) + 12) + body + struct.pack("<I", len(body) + 12)


def test_what_the_kernel_refused_is_told(tmp_path: Path) -> None:
    words = b"\1\0\5\0netem\0\0\0" + b"\2\0\7\0No room\0" + bytes(4)
    refused = own_block(5, 0, struct.pack("<I", 17) + words)
    assert wrong(linked(small(tmp_path, content() + refused)), "h1-eth0") == \
        "the kernel refused netem: No room"
    silent = own_block(5, 0, struct.pack("<I", 17) + bytes(4))
    assert "refused a qdisc: File exists" in wrong(
        linked(small(tmp_path, content() + silent)), "h1-eth0")


def test_a_capture_that_was_full_says_so(tmp_path: Path) -> None:
    assert "the capture was full" in of(small(tmp_path, content() + own_block(4, 0, b""))
                                        ).report.alarms[0]


def test_the_flag_for_one_connections_packets_says_what_draws_them(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small(tmp_path)
    with pytest.raises(SystemExit):
        captured.run(["--report", str(tmp_path), "--connection", "3"])
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "open capture.pcapng in Wireshark" in err


# Strangers' files -----------------------------------------------------------------------

def test_damaged_files_are_refused_or_read_never_more(tmp_path: Path) -> None:
    chance, whole, refused = random.Random(27), content(), 0
    for _ in range(25):
        data = bytearray(whole)
        for _ in range(chance.choice((1, 4, 40))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        cut = bytes(data[:chance.choice((len(data), chance.randrange(len(data))))])
        try:
            of(small(tmp_path, cut))
        except FirstFlightError as error:
            refused += 1
            assert "\n" not in str(error)
    assert refused > 5


def test_other_files_are_refused(tmp_path: Path) -> None:
    for data in (b"", b"no capture at all", struct.pack("<II", 0x0A0D0D0A, 0xFFFFFFF0) + bytes(9)):
        with pytest.raises(NoCapture, match="not written by ./run.sh --capture"):
            small(tmp_path, data)
    cut = small(tmp_path, content()[:-7])
    assert cut.is_cut and "ends within a packet" in of(cut).report.alarms[0]
    assert not any("ends within" in alarm for alarm in of(small(tmp_path)).report.alarms)


def test_names_of_devices_make_no_formula_of_a_table(tmp_path: Path) -> None:
    made = of(small(tmp_path, content().replace(b"h1-eth0", b"=1+h1()")))
    assert "\n=1+h1" not in table_csv(made.links) and ",=1+h1" not in table_csv(made.links)


# Parts ----------------------------------------------------------------------------------

@pytest.mark.parametrize(("kbps", "words"), [(5e6, "5 Gbit/s"), (1500, "1.5 Mbit/s"),
                                             (64, "64 kbit/s")])
def test_rates_in_their_unit(kbps: float, words: str) -> None:
    assert format_rate(kbps) == words


def test_headers_of_ipv6_in_a_vlan_with_extensions_and_of_fragments() -> None:
    tcp = struct.pack(">HHIIHHHH", 1234, 80, 7, 9, 5 << 12 | 2, 100, 0, 0)
    hop = bytes((6, 0)) + bytes(6)
    ipv6 = struct.pack(">IHBB", 6 << 28, len(hop + tcp) + 3, 0, 64) + bytes(15) + b"\1" + \
        bytes(15) + b"\2"
    found = parsed_heads(bytes(12) + b"\x81\x00\x00\x07\x86\xdd" + ipv6 + hop + tcp,
                         bytes(12) + b"\x08\x00" + 
                         bytes((0x45, 0, 0, 60, 0, 1, 0x20, 0)) + bytes(60))
    assert [found.addresses[code] for code in (found.source[0], found.destination[0])] == [
        "::1", "::2"]
    assert (found.to_port[0], found.payload_bytes[0], found.u32(found.body + 4)[0]) == (80, 3, 7)
    assert found.is_tagged.tolist() == [True, False] and found.protocol[1] == FRAGMENT


def parsed_heads(*heads: bytes, frame_bytes: int = 100, segments: int = 0) -> Headers:
    return read_headers(capture_of(*heads, frame_bytes=frame_bytes, segments=segments))


def capture_of(*heads: bytes, frame_bytes: int = 100, segments: int = 0) -> Capture:
    """Packets with these first bytes."""
    sizes, count = [len(head) for head in heads], len(heads)
    packets = packets_of(place=[sum(sizes[:place]) for place in range(count)], kept=sizes,
                         frame_bytes=[frame_bytes] * count, segments=[segments] * count,
                         number=[*range(1, count + 1)])
    return Capture([Device(0, "a-eth0")], packets,
                   numpy.frombuffer(b"".join(heads), numpy.uint8))


def test_settings_of_a_cut_message_are_refused(tmp_path: Path) -> None:
    whole = small(tmp_path).devices[0].settings[-1]
    assert not whole.is_same(replace(whole, queues=whole.queues[:1]))
    with pytest.raises((ValueError, struct.error)):
        parse_setting(0, struct.pack("=IHHII", 80, 36, 0, 0, 0) + bytes(20))


@pytest.mark.parametrize(("version", "protocol", "header_bytes"), [(4, TCP, 54), (6, UDP, 62)])
def test_each_segment_of_an_offloaded_packet_has_headers_of_its_own(
        version: int, protocol: int, header_bytes: int) -> None:
    transport = struct.pack(">HHIIHHHH", 1, 2, 3, 4, 5 << 12, 6, 0, 0) if protocol == TCP else \
        struct.pack(">HHHH", 1, 2, 3008, 0)
    size = len(transport) + 3000
    ip = struct.pack(">BBHIBB10x", 0x45, 0, size + 20, 0, 64, protocol) if version == 4 else \
        struct.pack(">IHBB32x", 6 << 28, size, protocol, 64)
    head = bytes(12) + (b"\x08\x00" if version == 4 else b"\x86\xdd") + ip + transport
    capture = capture_of(head, frame_bytes=header_bytes + 3000, segments=3)
    capture.devices[0].states.append(DeviceState(0, "a-eth0", "veth", 0, False, 0, 1500, True))
    (link,) = linked(capture)
    assert link.wire_bytes.tolist() == [3000 + 3 * header_bytes]
