"""What a capture shows; what a report says of it: tests/golden/captures.py."""

from __future__ import annotations

import os
import re
import signal
import struct
import time
from pathlib import Path

import numpy
import pytest

from firstflight.base.errors import OK
from firstflight.commands.virtual import captured, script
from firstflight.commands.virtual.ignored import ignored
from firstflight.net.link import Link
from firstflight.wire.capture.drops import drop_statements
from firstflight.wire.capture.links import _effective_settings
from firstflight.wire.capture.pcapng import (Capture, DeviceState, NoCapture, _without_cut,
                                             packets_of)
from firstflight.wire.capture.qdiscs import DeviceSetting, Qdisc, parse_setting
from firstflight.wire.capture.spaces import NamespaceNames
from tests.builders.captures import (ACK, DELAY, HANDSHAKE, MS, QUEUE_DROP, ROOT, RST, SYN,
                                     TAKEN_DOWN, Packet, found, made, message, netem, of, seen)
from tests.unit.capture.test_capture import content, own_block, small


# Connections ------------------------------------------------------------------

def test_numbers_go_on_above_32_bits() -> None:
    size = 1 << 30
    data = [Packet(0, 30 + 20 * place, 1 + place * size, size) for place in range(9)]
    acks = [Packet(1, 45 + 20 * place, 1, 0, ack=1 + (place + 1) * size) for place in range(9)]
    (one,) = seen(made([*HANDSHAKE, *data, *acks], starts=(4_000_000_000, 5)))
    assert one.to_server.bytes == 9 * size and not one.retransmitted
    assert one.to_server.goodput_kbps == pytest.approx(9 * size * 8 / (175 / 1000) / 1000, rel=0.1)


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


def test_forty_thousand_drops_take_no_longer_than_they_are() -> None:
    lost = [Packet(0, 30 + place * 0.02, 1 + 100 * place, 100, took_ms=0, reason=QUEUE_DROP)
            for place in range(40_000)]
    again = [packet._replace(queued_ms=packet.queued_ms + 2000, reason=0) for packet in lost]
    capture = made([*HANDSHAKE, *lost, *again])
    began = time.process_time()
    (one,) = seen(capture)
    assert one.retransmitted["dropped by the queue, h1 → h2, after a timeout"] == 1
    assert one.retransmitted["dropped by the queue, h1 → h2"] == 39_999
    assert time.process_time() - began < 20  # it was a minute


# What was set ---------------------------------------------------------------

def test_hfsc_is_listed_once_and_a_class_that_is_not_listed_hides_nothing() -> None:
    hfsc = parse_setting(0, message("hfsc", 5 << 16, ROOT) + message("hfsc", 5 << 16, ROOT, True)
                  + message("hfsc", 5 << 16 | 1, 5 << 16, True)
                  + message("netem", 10 << 16, 5 << 16 | 1, options=DELAY))
    assert hfsc.words == "netem delay 10 ms limit 9 packets" and hfsc.delay_ms == 10
    prio = parse_setting(0, message("prio", 1 << 16, ROOT, packets=50) + message(
        "netem", 2 << 16, 1 << 16 | 3, options=DELAY))
    assert prio.words == "netem delay 10 ms limit 9 packets" and prio.is_shaping
    assert prio.delay_ms == 0  # by another class packets pass without


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


@pytest.mark.parametrize(("text", "hints"), [
    ("net.addLink(a, b, bw=10,\n  delay=d())", ["bw", "delay"]), ("f(bw=10)", []),
    ("link=TCLink\nnet.addLink(a, b, bw=10)", []),
    ("net.addLink(h1, h2, delay='5us')", ["delay", "microseconds"]),
    ("net.addLink(h1, h2, delay='0.1ms')", ["delay", "microseconds"])])
def test_a_script_says_what_its_links_are_meant_to_have(tmp_path: Path, text: str,
                                                        hints: list[str]) -> None:
    path = tmp_path / "a.py"
    path.write_text(text)
    assert script.hints(["python3", str(path)]) == hints


# What stands above all --------------------------------------------------------------

def test_small_connections_stand_in_the_file_alone() -> None:
    def of_port(port: int, size: int) -> list[Packet]:
        data = Packet(0, 30, 1, size), Packet(1, 45, 1, 0, ack=1 + size)
        return [packet._replace(ends=(port, 80)) for packet in (*HANDSHAKE, *data)]
    refused = [Packet(0, 50, 0, 0, SYN, -1, ends=(9, 80)),
               Packet(1, 60, 0, 0, RST | ACK, 1, ends=(9, 80))]
    made_of = of(made([*of_port(7, 400), *of_port(8, 60_000), *refused]))
    (shown,) = next(each for each in made_of.report.findings if each.name == "connections").tables
    assert [row[0] for row in shown.rows] == [3, 2] and shown.hidden_rows == 1
    assert len(made_of.connections.rows) == 3


def test_drops_outside_of_queues_have_their_reason_and_names_of_namespaces_are_used() -> None:
    capture = made(HANDSHAKE)
    spaces = ["5 1 other", "0 0 client", "0 7 nobody", "damaged"]
    capture.dropped = [(0, "NO_SOCKET", 9), (0, "IP_OUTNOROUTES", 2)]
    assert [f"{each.text} {each.measured}" for each in drop_statements(
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


# How long a report may take -----------------------------------------------------------

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


# Commands, scripts and pings ----------------------------------------------------------

def alarms(capture: Capture, **facts: object) -> str:
    return "; ".join(of(capture, **facts).report.alarms)


def test_settings_know_the_command_that_made_them(tmp_path: Path) -> None:
    def asked(words: bytes) -> bytes:
        head, end = struct.pack("<HH", 1, len(words)), bytes(-len(words) % 4 + 4)
        return own_block(6, 0, head + words + end)
    queues = message("netem", 1 << 16, ROOT)
    settings = own_block(2, 0, struct.pack("<I", len(queues)) + queues)
    capture = small(tmp_path, content() + asked(b"tc qdisc add") + settings + settings)
    assert [setting.command for setting in capture.devices[0].settings[-2:]] == ["tc qdisc add", ""]
    refusal = own_block(5, 0, struct.pack("<I", 17) + bytes(4))
    refused = small(tmp_path, content() + asked(b"tc x") + refusal + settings).devices[0]
    assert refused.refused == ["the kernel refused a qdisc: File exists (tc x)"]
    assert refused.settings[-1].command == ""


def test_commands_are_read_from_a_capture_and_damaged_ones_refused(tmp_path: Path) -> None:
    words = struct.pack("<HH", 1, 6) + b"tc add\0\0"
    ended = own_block(7, 5, struct.pack("<III", 1, 77, 2 << 8) + words + bytes(4))
    wrote = own_block(8, 5, struct.pack("<II", 0, 77) + words
                      + struct.pack("<HH", 2, 2) + b"tc\0\0" + bytes(4))
    capture = small(tmp_path, content() + ended + wrote)
    assert capture.commands[0][1:] == (5, True, 77, 2, "tc add")
    assert capture.complaints[0][1:] == (5, False, 77, "tc add", "tc")
    killed = own_block(7, 5, struct.pack("<III", 1, 77, 9) + bytes(4))
    assert small(tmp_path, content() + killed).commands[0].status == 137
    with pytest.raises(NoCapture, match="damaged"):
        small(tmp_path, content() + own_block(7, 5, b"\0\0\0\0"))


def test_what_mininet_ignores_of_links_is_read_from_the_script() -> None:
    text = ("o = dict(bandwidth=10, weight=3)\nself.addLink(a, b, **o)\n"
            "net.addLink(a, b, cls=Link, bw=10)\nnet.addLink(a, b, bw=2000)\n"
            "net.addLink(a, b, dealy='5ms', latency_ms=3)\nnet.addLink(a, b, cls=TCLink, bw=9)\n")
    assert ignored(["python3", "x"], text) == [
        "line 2, addLink: Mininet does not know bandwidth, and ignores it: write bw",
        "line 3, addLink: cls=Link ignores bw: write cls=TCLink",
        "line 4, addLink: bw=2000: Mininet takes at most 1000 Mbit/s, and sets no rate for more",
        "line 5, addLink: Mininet does not know dealy, and ignores it: write delay"]
    assert ignored(["mn", "--link", "tc,bw=2000"], "") == [
        "--link tc,bw=2000: bw=2000: Mininet takes at most 1000 Mbit/s, and sets no rate for more"]
    assert not ignored(["bash", "x"], "addLink(")
    assert "line 3, addLink" in alarms(made(HANDSHAKE), hints=ignored([], text))


def test_a_program_that_is_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "r.cmd('iptables -t nat -A POSTROUTING -j MASQUERADE')\n# wget it")
    words = ["python3", str(tmp_path / "a.py")]
    assert script.advice(words, lambda name: None) == [
        "iptables: used and not installed on this machine, whose programs the guest has"]
    assert not script.advice(words, lambda name: f"/usr/sbin/{name}")


def test_red_is_named_with_what_it_is_set_to() -> None:
    parameters = struct.pack("=HH3I4B", 20, 1, 60_000, 15_000, 45_000, 0, 0, 0, 1)
    red = parse_setting(0, message("red", 1 << 16, ROOT, options=parameters))
    assert red.words == "red min 15000 max 45000 bytes ecn limit 60000 bytes" and red.is_shaping


def test_pings_without_an_answer_stand_in_the_first_sentence() -> None:
    def icmp(kind: int, device: int, at_ms: float, number: int) -> Packet:
        return Packet(device, at_ms, number, 0, took_ms=1.0)
    pings = [icmp(8, 0, 10 * number, number) for number in range(4)]
    answers = [icmp(0, 1, 10 * number + 2, number) for number in range(3)]
    capture = made([*pings, *answers])
    data = bytearray(capture.data.tobytes())
    for place, device, at_ns in zip(capture.packets.place.tolist(), capture.packets.device.tolist(),
                                    capture.packets.queued_ns.tolist()):
        data[place + 23] = 1
        data[place + 34:place + 42] = struct.pack(
            ">BBHHH", 8 if device == 0 else 0, 0, 0, 7, at_ns // (10 * MS))
    capture.data = numpy.frombuffer(bytes(data), numpy.uint8)
    sentence = of(capture).report.answer.sentence
    assert "Pings took 3" in sentence and "1 of 4 pings were not answered." in sentence
