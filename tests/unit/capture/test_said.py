"""What the report says, and does not say, of captures that are made by hand: S18 to S24."""

from __future__ import annotations

import os
import re
import signal
import struct
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy
import pytest

from firstflight.base.errors import OK
from firstflight.commands.virtual import captured, script
from firstflight.net.link import Link
from firstflight.wire.capture.connections import ObservedConnection, observe_connections
from firstflight.wire.capture.conversations import find_conversations
from firstflight.wire.capture.fields import read_headers
from firstflight.wire.capture.direction import LinkDirection
from firstflight.wire.capture.links import _effective_settings, observe_links
from firstflight.wire.capture.spaces import NamespaceNames
from firstflight.wire.capture.drops import drop_statements
from firstflight.wire.capture.pcapng import (Capture, Device, DeviceState, Packets, _without_cut,
                                             packets_of)
from firstflight.wire.capture.qdiscs import DeviceSetting, Qdisc, parse_setting
from firstflight.wire.capture.report import CaptureReport, report_capture

MS = 1_000_000
SYN, RST, PUSH, ACK, FIN = 2, 4, 8, 16, 1
QUEUE_DROP, TAKEN_DOWN = 126, 2


class Packet(NamedTuple):
    """One of TCP on a link: 0 for h1 to h2, 1 back, 2 and 3 for a further link behind h2."""

    device: int
    queued_ms: float
    seq: int
    size: int
    flags: int = ACK
    ack: int = 1
    took_ms: float = 10.0
    reason: int = 0
    source: str = ""
    ends: tuple[int, int] = (1024, 80)


def made(packets: Iterable[Packet], starts: tuple[int, int] = (1000, 2000),
         kinds: Sequence[str] = ("veth", "veth"), settings: Sequence[Qdisc] = (),
         mtus: Sequence[int] = (1500, 1500, 1500, 1500), queue_packets: int = 1000) -> Capture:
    """A capture of them. seq, ack: relative to each side's start. settings: of the first device."""
    names = ("h1-eth0", "h2-eth0", "h2-eth1", "h3-eth0")
    devices = [Device(number, name, [DeviceState(
        0, name, kinds[number % 2], number // 2 + number % 2, False, number ^ 1, mtus[number], True,
        queue_packets=queue_packets if number == 0 else 1000)])
        for number, name in enumerate(names)]
    devices[2].states = [devices[2].states[0]._replace(namespace=1)]
    devices[0].settings = [DeviceSetting(0, tuple(settings)) if settings else parse_setting(0, b"")]
    heads, columns = [], dict[str, list[int]]()
    place = 0
    for number, packet in enumerate(sorted(packets, key=lambda each: each.queued_ms), start=1):
        back = packet.device % 2
        own, other = starts[::-1] if back else starts
        from_port, to_port = packet.ends[::-1] if back else packet.ends
        addresses = [b"\x0a\0\0\1", b"\x0a\0\0\2"]
        if packet.source:
            addresses[0] = bytes(map(int, packet.source.split(".")))
        source, destination = reversed(addresses) if back else addresses
        tcp = struct.pack(">HHIIHHHH", from_port, to_port, (own + packet.seq) % (1 << 32),
                          (other + packet.ack) % (1 << 32), 5 << 12 | packet.flags, 65535, 0, 0)
        # IP's length is 0, as of more than 64 kB: the frame's bytes say how many there are.
        head = bytes(12) + b"\x08\0" + struct.pack(
            ">BBHHHBBH", 0x45, 0, 0, number % 65536, 0, 64, 6, 0) + source + destination + tcp
        heads.append(head)
        times = round(packet.queued_ms * MS), round((packet.queued_ms + packet.took_ms) * MS)
        for name, value in zip(Packets._fields, (
                packet.device, times[1], times[0], number, number,
                packet.reason != QUEUE_DROP, packet.reason, 1, len(head) + packet.size, place,
                len(head))):
            columns.setdefault(name, []).append(value)
        place += len(head)
    packets_there = packets_of(**columns)
    order = numpy.lexsort((packets_there.number, packets_there.time_ns))
    return Capture(devices, packets_there.at(order),
                   numpy.frombuffer(b"".join(heads) or b"\0", numpy.uint8))


HANDSHAKE = (Packet(0, 0, 0, 0, SYN, -1), Packet(1, 10, 0, 0, SYN | ACK, 1), Packet(0, 20, 1, 0))


def seen(capture: Capture) -> list[ObservedConnection]:
    fields, directions = read_headers(capture), found(capture)
    conversations = find_conversations(capture, fields, directions)
    assert conversations.tcp is not None
    return [each for each in observe_connections(conversations.connections, conversations.tcp, directions, capture.data)
            if each]


def of(capture: Capture, **facts: object) -> CaptureReport:
    return report_capture(capture, facts, "folder", 0)


def found(capture: Capture) -> list[LinkDirection]:
    return observe_links(capture, read_headers(capture), NamespaceNames())


# S18, S22: connections ------------------------------------------------------------------

def test_numbers_go_on_above_32_bits() -> None:
    size = 1 << 30
    data = [Packet(0, 30 + 20 * place, 1 + place * size, size) for place in range(9)]
    acks = [Packet(1, 45 + 20 * place, 1, 0, ack=1 + (place + 1) * size) for place in range(9)]
    (one,) = seen(made([*HANDSHAKE, *data, *acks], starts=(4_000_000_000, 5)))
    assert one.to_server.bytes == 9 * size and not one.retransmitted
    assert one.to_server.goodput_kbps == pytest.approx(9 * size * 8 / (175 / 1000) / 1000, rel=0.1)


def causes(*packets: Packet) -> dict[str, int]:
    (one,) = seen(made([*HANDSHAKE, *packets]))
    return dict(one.retransmitted)


def test_a_copy_that_waits_is_not_lost() -> None:
    first, again = Packet(0, 30, 1, 1000, took_ms=900), Packet(0, 400, 1, 1000, took_ms=600)
    assert causes(first, again) == {"the first copy was still under way, after a timeout": 1}


def test_a_copy_that_is_lost_where_nobody_looks_is_lost_elsewhere() -> None:
    def through(*packets: Packet) -> list[Packet]:
        """By h2 to h3, and back."""
        return [each for packet in packets for each in (
            packet, packet._replace(device=packet.device + 2,
                                    queued_ms=packet.queued_ms + 10 - 20 * packet.device))]
    syn, answer, last = HANDSHAKE
    handshake = through(syn, answer._replace(queued_ms=30), last._replace(queued_ms=40))
    first, again = Packet(0, 50, 1, 500), Packet(0, 90, 1, 500)
    (one,) = seen(made([*handshake, first, *through(again)]))
    assert one.ends.server_node == "h3" and one.retransmitted == {"lost elsewhere": 1}
    (one,) = seen(made([*handshake, *through(first), *through(again)]))
    assert one.retransmitted == {"the first copy had arrived": 1}


def test_what_is_dropped_and_sent_again_at_one_moment_was_dropped() -> None:
    dropped = [Packet(0, 30, 1, 1000, took_ms=0, reason=QUEUE_DROP)] * 3
    assert causes(*dropped, Packet(0, 30, 1, 1000)) == {"dropped by the queue, h1 → h2": 3}


def test_what_is_still_queued_when_its_link_goes_is_discarded() -> None:
    gone = Packet(0, 30, 1, 1000, took_ms=70, reason=TAKEN_DOWN)
    assert causes(gone, Packet(0, 200, 1, 1000)) == {"discarded, h1 → h2": 1}
    (link, *_) = found(made([*HANDSHAKE, gone]))
    assert link.discarded == 1 and not link.wrong and not link.remarks


def test_what_is_discarded_has_filled_the_queue_until_then() -> None:
    way = Link(0.0, 8.0, 2, qdisc="netem")  # a byte takes a millisecond, and it holds two
    waiting = [Packet(0, 1000 + place, 1, 0, took_ms=5000, reason=TAKEN_DOWN) for place in range(2)]
    full = Packet(0, 1010, 1, 0, took_ms=0, reason=QUEUE_DROP)
    capture = made([Packet(0, 1, 1, 0, took_ms=54), *waiting, full],
                   settings=[netem(rate_kbps=8.0)])
    capture.devices[0].settings = [replace(capture.devices[0].settings[0], link=way)]
    (link, *_) = found(capture)
    assert not link.wrong and link.judged == 1 and link.queue_drops == 1


def test_a_packet_that_a_queue_cuts_is_its_segments() -> None:
    rows = packets_of(number=[7, 7, 7, 8], reason=[TAKEN_DOWN, 0, QUEUE_DROP, TAKEN_DOWN],
                      segments=[2, 0, 0, 2], accepted=[0, 0, 0, 0])
    kept = _without_cut(rows)
    assert kept.number.tolist() == [7, 7, 8] and kept.accepted.tolist() == [True, False, False]


def test_a_connection_on_both_sides_of_a_nat_is_one() -> None:
    behind = [packet._replace(device=packet.device + 2, queued_ms=packet.queued_ms + 1,
                              source="10.0.9.9", ends=(5555, 80)) for packet in HANDSHAKE]
    # The address of the server is that of h3 then.
    (one,) = seen(made([*HANDSHAKE, *behind]))
    assert one.ends.client == ("10.0.0.1", 1024)
    assert one.ends.also == (("10.0.9.9", 5555),)


@pytest.mark.parametrize(("released", "is_window"), [(1448, True), (2 * 1448 + 9, True),
                                                    (700, False)])
def test_what_nagle_held_back_shows_no_initial_window(released: int, is_window: bool) -> None:
    """An acknowledgement releases it: a full segment would have left at once."""
    flight = [Packet(0, 30, 1 + 1448 * place, 1448) for place in range(3)]
    acknowledged = Packet(1, 45, 1, 0, ack=1 + 3 * 1448)
    more = Packet(0, 55, 1 + 3 * 1448, released)
    (one,) = seen(made([*HANDSHAKE, *flight, acknowledged, more]))
    assert one.to_server.first_flight == (3 * 1448, 3, is_window)


@pytest.mark.parametrize(("kind", "retransmitted"), [("netem", 0), ("tbf", 0), ("red", 1),
                                                     ("fq_codel", 1)])
def test_what_the_hosts_own_queue_refuses_was_never_sent(kind: str, retransmitted: int) -> None:
    """TCP is told, and does not count the next try, nor does iperf3 (Retr)."""
    refused = Packet(0, 30, 1, 100, took_ms=0, reason=QUEUE_DROP)
    capture = made([*HANDSHAKE, refused, Packet(0, 60, 1, 100)],
                   settings=[replace(netem(), kind=kind)])
    (one,) = seen(capture)
    assert one.retransmitted.total() == retransmitted


def test_forty_thousand_drops_take_no_longer_than_they_are() -> None:
    lost = [Packet(0, 30 + place * 0.02, 1 + 100 * place, 100, took_ms=0, reason=QUEUE_DROP)
            for place in range(40_000)]
    again = [packet._replace(queued_ms=packet.queued_ms + 2000, reason=0) for packet in lost]
    capture = made([*HANDSHAKE, *lost, *again])
    began = time.process_time()
    (one,) = seen(capture)
    assert one.retransmitted["dropped by the queue, h1 → h2, after a timeout"] == 1
    assert one.retransmitted["dropped by the queue, h1 → h2"] == 39_999
    assert time.process_time() - began < 4  # it was a minute


# S19 to S21: what was set ---------------------------------------------------------------

def message(kind: str, handle: int, parent: int, is_class: bool = False, options: bytes = b"",
            packets: int = 0) -> bytes:
    """RTM_NEWQDISC or RTM_NEWTCLASS."""
    def attribute(number: int, content: bytes) -> bytes:
        whole = struct.pack("=HH", 4 + len(content), number) + content
        return whole + bytes(-len(whole) % 4)
    body = struct.pack("=BxxxiIII", 0, 0, handle, parent, 0) + attribute(
        1, kind.encode() + b"\0") + attribute(7, attribute(1, struct.pack("=QI", 0, packets)))
    if options:
        body += attribute(2, options)
    return struct.pack("=IHHII", 16 + len(body), 40 if is_class else 36, 0, 0, 0) + body


ROOT = 0xFFFFFFFF
DELAY = struct.pack("=6I", 156250, 9, 0, 0, 0, 0)  # 10 ms in ticks, limit 9


def test_hfsc_is_listed_once_and_a_class_that_is_not_listed_hides_nothing() -> None:
    hfsc = parse_setting(0, message("hfsc", 5 << 16, ROOT) + message("hfsc", 5 << 16, ROOT, True)
                         + message("hfsc", 5 << 16 | 1, 5 << 16, True)
                         + message("netem", 10 << 16, 5 << 16 | 1, options=DELAY))
    assert hfsc.words == "netem delay 10 ms limit 9 packets" and hfsc.delay_ms == 10
    prio = parse_setting(0, message("prio", 1 << 16, ROOT, packets=50) + message(
        "netem", 2 << 16, 1 << 16 | 3, options=DELAY))
    assert prio.words == "netem delay 10 ms limit 9 packets" and prio.is_shaping
    assert prio.delay_ms == 0  # by another class packets pass without


def netem(**more: object) -> Qdisc:
    return Qdisc("netem", False, 1 << 16, ROOT, packets=9, limit_packets=1000,
                 **more)  # type: ignore[arg-type]


def test_what_reorders_on_purpose_takes_no_time_and_is_right() -> None:
    at_once = [packet._replace(took_ms=0) for packet in HANDSHAKE]
    assert not found(made(at_once, settings=[netem(delay_ms=10.0, also=("reorder 25 %",))]))[0].wrong
    assert "0 ms, and 10 ms are set" in found(made(at_once, settings=[netem(delay_ms=10.0)]))[
        0].wrong[0]


def test_a_netem_that_is_made_again_has_other_random_numbers() -> None:
    came = packets_of(queued_ns=[5, 15], time_ns=[5, 15], number=[1, 2])

    def of_seeds(*seeds: int) -> list[int]:
        return [setting.time_ns for setting in _effective_settings([
            DeviceSetting(10 * place, (netem(loss_percent=2.0, seed=seed),))
            for place, seed in enumerate(seeds)], came)]
    assert of_seeds(7, 8) == [0, 10] and of_seeds(7, 7) == [0]


def test_no_queue_counts_the_tag_of_a_vlan() -> None:
    capture = made(HANDSHAKE)
    heads = bytearray(capture.data.tobytes())
    (plain, *_) = found(capture)
    capture.data = numpy.frombuffer(bytes(heads[:12]) + b"\x81\0\0\7" + bytes(heads[12:]),
                                    numpy.uint8)
    capture.packets = capture.packets.at(slice(0, 1))._replace(
        kept=numpy.array([58]), frame_bytes=numpy.array([58]))
    (tagged, *_) = found(capture)
    assert tagged.wire_bytes.tolist() == [58]
    assert tagged.queue_bytes.tolist() == [54] == plain.queue_bytes[:1].tolist()


@pytest.mark.parametrize(("capture", "said"), [
    (lambda: made(HANDSHAKE, mtus=(9000, 1500, 1500, 1500)), "MTU 9000, and 1500 at h2-eth0"),
    (lambda: made(HANDSHAKE, settings=[netem(rate_kbps=1000.0)], queue_packets=10),
     "txqueuelen 10: it limits nothing; the queue of netem holds 1000 packets"),
    (lambda: made(HANDSHAKE, queue_packets=10), "txqueuelen 10: it limits nothing; h1-eth0 has no"),
    (lambda: made(HANDSHAKE, settings=[netem(delay_ms=10.0), Qdisc(
        "pfifo", False, 2 << 16, 1 << 16, above=1 << 16, limit_packets=5)]), "it never fills"),
    (lambda: made(HANDSHAKE, kinds=("bridge", "veth"), settings=[netem(delay_ms=10.0)]),
     "set on the switch's own device"),
    (lambda: made((), kinds=("dummy", "veth"), settings=[netem(delay_ms=10.0)]),
     "never used, no packet came to h1-eth0")])
def test_what_cannot_do_what_is_meant_is_told(capture: Callable[[], Capture], said: str) -> None:
    (first, *others) = found(capture())
    assert any(said in wrong for wrong in first.wrong), first.wrong
    assert not any(link.wrong for link in others)


def test_a_queue_that_is_removed_soon_is_told_and_one_that_was_used_is_noted() -> None:
    def with_removal(at_ms: float) -> LinkDirection:
        capture = made([*HANDSHAKE, *(Packet(0, 100 + place, 1, 0) for place in range(50))],
                       settings=[netem(delay_ms=10.0)])
        capture.devices[0].settings.append(DeviceSetting(round(at_ms * MS)))
        return found(capture)[0]
    assert "removed 0.05 s after it was set; 2 packets came under it, 50 later" in \
        with_removal(50).wrong[0]
    used = with_removal(130)
    assert not used.wrong and "removed 0.13 s after" in used.remarks[0]


def test_an_untested_setting_is_not_called_right() -> None:
    capture = made((), settings=[netem(delay_ms=10.0)])
    assert of(capture).report.answer.sentence.startswith(
        "3 of 4 directions of links did what was set, and on 1 nothing shows what was set")


def test_microseconds_are_asked_about_unless_the_script_writes_them(tmp_path: Path) -> None:
    # 5 µs are 78 ticks of 64 ns; a newer tc has no ticks.
    for delay_ms, words in ((0.004992, "5 µs; did you mean 5 ms? Without a unit tc takes micro"),
                            (5e-6, "5 ns; did you mean 5 ms? Without a unit tc takes nano"),
                            (200e-6, "200 ns; did you mean 200 ms? Without a unit tc takes nano")):
        capture = made([packet._replace(took_ms=delay_ms) for packet in HANDSHAKE],
                       settings=[netem(delay_ms=delay_ms)])
        assert f"delay {words}seconds" in of(capture).report.alarms[0]
    (tmp_path / "a.py").write_text("net.addLink(h1, h2, delay='5us')")
    hints = script.hints(["python3", str(tmp_path / "a.py")])
    assert hints == ["delay", "microseconds"] and not of(capture, hints=hints).report.alarms


def test_what_plain_links_ignore_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    for text, hints in (("net.addLink(a, b, bw=10,\n  delay=d())", ["bw", "delay"]),
                        ("link=TCLink\nnet.addLink(a, b, bw=10)", []), ("f(bw=10)", [])):
        path.write_text(text)
        assert script.hints(["python3", str(path)]) == hints
    alarms = of(made(HANDSHAKE), hints=["bw", "delay"]).report.alarms
    assert alarms[0].startswith("the script gives links bw, delay, and nothing was set on any")
    assert not of(made([packet._replace(took_ms=11) for packet in HANDSHAKE], settings=[
        netem(delay_ms=10.0)]), hints=["bw"]).report.alarms[1:]


# S23: what stands above all --------------------------------------------------------------

def test_refused_connections_stand_in_the_first_sentence() -> None:
    refused = [packet for port in range(2000, 2048) for packet in (
        Packet(0, port, 0, 0, SYN, -1, ends=(port, 80)),
        Packet(1, port + 10, 0, 0, RST | ACK, 1, ends=(port, 80)))]
    open_ones = [packet._replace(ends=(port, 80), queued_ms=packet.queued_ms + port)
                 for port in (3000, 3001) for packet in HANDSHAKE]
    sentence = of(made([*refused, *open_ones])).report.answer.sentence
    assert "50 TCP connections, 48 refused" in sentence


def test_small_connections_stand_in_the_file_alone() -> None:
    def of_port(port: int, size: int) -> list[Packet]:
        data = Packet(0, 30, 1, size), Packet(1, 45, 1, 0, ack=1 + size)
        return [packet._replace(ends=(port, 80)) for packet in (*HANDSHAKE, *data)]
    refused = [Packet(0, 50, 0, 0, SYN, -1, ends=(9, 80)),
               Packet(1, 60, 0, 0, RST | ACK, 1, ends=(9, 80))]
    made_of = of(made([*of_port(7, 400), *of_port(8, 60_000), *refused]))
    (shown,) = next(each for each in made_of.report.findings if each.name == "connections").tables
    assert [row[0] for row in shown.rows] == [3, 2] and shown.left_out == 1
    assert len(made_of.connections.rows) == 3


def test_drops_outside_of_queues_have_their_reason_and_names_of_namespaces_are_used() -> None:
    capture = made(HANDSHAKE)
    spaces = ["5 1 other", "0 0 client", "0 7 nobody", "damaged"]
    capture.dropped = [(0, "NO_SOCKET", 9), (0, "IP_OUTNOROUTES", 2)]
    assert [f"{each.says} {each.found}" for each in drop_statements(
        capture, found(capture), NamespaceNames(spaces))] == [
            "Dropped at client: 2 packets, since there was no route (IP_OUTNOROUTES)."]
    assert of(capture, namespaces=spaces).links.rows[0][1] == "client"
    state = DeviceState(4, "x", "veth", 1, False, None, 1500, True)
    named = NamespaceNames(["1 1 before", "5 1 after"])
    assert (named.name(state), named.name(state._replace(time_ns=6))) == ("before", "after")
    assert named.name(state._replace(namespace=9)) == ""


@pytest.mark.parametrize(("settings", "took_ms"), [
    (parse_setting(0, b""), 0.0),
    (DeviceSetting(0, (Qdisc("netem", False, 1 << 16, 0, packets=9, delay_ms=10.0),),
                   Link(10.0, 1e12, 1000, qdisc="netem")), 10.0)])
def test_packets_have_wiresharks_numbers(settings: DeviceSetting, took_ms: float) -> None:
    late = [Packet(0, 30 + place, 1, 0, took_ms=took_ms + (0 if place else 5))
            for place in range(3)]
    capture = made([*(packet._replace(took_ms=took_ms, queued_ms=packet.queued_ms + 1)
                      for packet in HANDSHAKE), *late])
    capture.devices[0].settings = [settings]
    capture.packets = capture.packets._replace(frame=capture.packets.frame + 100)
    assert re.search(r"\(packet 104 (waited or was|arrived)", found(capture)[0].wrong[0])


# S24: how long a report may take -----------------------------------------------------------

@pytest.mark.parametrize(("left_s", "number", "status"), [
    (0.01, 0, 124), (None, signal.SIGTERM, 143), (None, signal.SIGINT, 130)])
def test_a_report_ends_with_its_time_or_by_the_first_signal(
        monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path,
        left_s: float | None, number: int, status: int) -> None:
    def endless(*_: object, **__: object) -> None:
        if number:
            os.kill(os.getpid(), number)
        time.sleep(60)
    monkeypatch.setattr(captured, "write", endless)
    monkeypatch.setattr(captured, "LEAST_S", 0.05)
    heeded = signal.SIGINT if not number else number
    # Tests that a shell has started in the background ignore SIGINT, and so does what they call.
    before = signal.signal(heeded, signal.default_int_handler)
    try:
        assert captured.write_in_time(tmp_path, {}, left_s, False) == status
        assert signal.getsignal(heeded) is signal.default_int_handler
    finally:
        signal.signal(heeded, before)
    assert "--report" in capsys.readouterr().err
    monkeypatch.setattr(captured, "write", lambda *_, **__: None)
    assert captured.write_in_time(tmp_path, {}, 0.0, False) == OK
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
