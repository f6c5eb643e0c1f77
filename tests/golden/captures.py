"""What the report of a capture says of links, of connections and of dropped packets.

The captures are built by hand, but for one that was measured: by tests/golden/capture/small.py.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy

from firstflight.findings.render.data import table_csv
from firstflight.net.link import Link
from firstflight.wire.capture.commands import lines_about_commands
from firstflight.wire.capture.connections import ObservedConnection
from firstflight.wire.capture.drops import drop_statements
from firstflight.wire.capture.pcapng import Capture, Command
from firstflight.wire.capture.qdiscs import DeviceSetting, Qdisc
from firstflight.wire.capture.report import CaptureReport
from firstflight.wire.capture.spaces import NamespaceNames
from tests.builders.captures import (ACK, HANDSHAKE, MS, ORIGIN_NS, QUEUE_DROP, ROOT, RST, SYN,
                                     TAKEN_DOWN, Change, Packet, Row, build_capture,
                                     build_with_commands, burst, change_small, find_links,
                                     make_report, netem, observe_tcp, own_block, read_small,
                                     small_bytes, tbf)

Make = Callable[[], Capture]
# Packet(device, queued_ms, seq, size): device 0 is h1's, devices 1 and 2 are h2's, 3 is h3's. A
# packet that acknowledges nothing has ack=-1. burst(count, begin_ms): data from h1 to h2.
OTHER_REASON = 3  # of a drop that is neither of a full queue nor of a link taken down
# At 10 Mbit/s 50 ms are 41 full packets, more than the limit of 25.
FULL = replace(netem(delay_ms=50.0), limit_packets=25)
LOSSY = replace(netem(loss_percent=2.0, rate_kbps=10_000.0), limit_packets=25, packets=999)
JITTER = netem(delay_ms=10.0, jitter_ms=5.0)
ON_PURPOSE = ("reorder 25 %",)
TBF = Qdisc("tbf", is_class=False, handle=2 << 16, parent=ROOT, packets=60, rate_kbps=1e6,
            burst_bytes=9000)
AT_ONCE = [packet._replace(took_ms=0) for packet in HANDSHAKE]
CAME = burst(1000, apart_ms=1.0, took_ms=5)
LOST = burst(60, begin_ms=30.5, apart_ms=16.0, took_ms=0, reason=OTHER_REASON)  # 6 % of CAME
# Each second packet is 6 ms slower than the one that comes 1 ms after it.
CROSSED = [packet._replace(took_ms=15.0 if number % 2 else 9.0)
           for number, packet in enumerate(burst(20))]
SMALL_ONES = [Packet(0, 5 + number, 1, 100, took_ms=2) for number in range(5)]
LARGE = burst(7, took_ms=0, reason=QUEUE_DROP)
# Three drops, at 100, 101 and 102 ms, for the reason that a link has which is down. Whether it is
# down at that time is for take_down to say.
WHILE_DOWN = [Packet(0, 100 + number, 1, 0, took_ms=0, reason=OTHER_REASON) for number in range(3)]


def after_handshake(*packets: Packet, **more: Any) -> Make:
    """A handshake and then these packets, between h1 and h2. more: as build_capture takes it."""
    return lambda: build_capture([*HANDSHAKE, *packets], **more)


def forward(*packets: Packet) -> list[Packet]:
    """Each packet on the link between h1 and h2, and on the one between h2 and h3.

    h2 forwards it. A packet from h1 (device 0) comes to the second link 10 ms later. A packet to h1
    (from device 1) came to the second link 10 ms earlier.
    """
    forwarded = []
    for packet in packets:
        later_ms = -10 if packet.device else 10
        forwarded += [packet, packet._replace(device=packet.device + 2,
                                              queued_ms=packet.queued_ms + later_ms)]
    return forwarded


def after_long_handshake(*packets: Packet) -> Make:
    """A handshake of h1 and h3, through h2, and then these packets."""
    syn, answer, last = HANDSHAKE
    opening = forward(syn, answer._replace(queued_ms=30), last._replace(queued_ms=40))
    return lambda: build_capture([*opening, *packets])


def replace_delay(at_ms: float, *later: Qdisc, command: str = "") -> Make:
    """A delay of 10 ms that is replaced by other queues, or removed where there are none.

    command: by which it was replaced, "" if not known.
    """
    def make() -> Capture:
        capture = build_capture([*HANDSHAKE, *burst(60, 100, took_ms=12)],
                                settings=[netem(delay_ms=10.0)])
        capture.devices[0].settings.append(DeviceSetting(round(at_ms * MS), later, command=command))
        return capture
    return make


def set_netem(command: str, took_ms: float = 10.0, **setting: float) -> Make:
    """A handshake through a netem that a command set. took_ms: what each packet takes there."""
    def make() -> Capture:
        capture = build_capture([packet._replace(took_ms=took_ms) for packet in HANDSHAKE],
                       settings=[netem(**setting)])
        capture.devices[0].settings = [replace(capture.devices[0].settings[0], command=command)]
        return capture
    return make


def full_until_it_is_taken_down() -> Capture:
    """A queue for two packets behind a rate of 8 kbit/s, at which a byte takes 1 ms.

    It drops one packet because it is full, and the two that wait when it is taken down.
    """
    waiting = [Packet(0, 1000 + place, 1, 0, took_ms=5000, reason=TAKEN_DOWN) for place in range(2)]
    full = Packet(0, 1010, 1, 0, took_ms=0, reason=QUEUE_DROP)
    capture = build_capture([Packet(0, 1, 1, 0, took_ms=54), *waiting, full],
                   settings=[netem(rate_kbps=8.0)])
    capture.devices[0].settings = [replace(capture.devices[0].settings[0],
                                           link=Link(0.0, 8.0, 2, qdisc="netem"))]
    return capture


def drop_outside_queues(*packets: Packet) -> Make:
    """A handshake, these packets, and drops by a policer, without a socket and without a route."""
    def make() -> Capture:
        capture = build_capture([*HANDSHAKE, *packets])
        capture.dropped = [(1, "TC_INGRESS", 3), (0, "NO_SOCKET", 9), (0, "IP_OUTNOROUTES", 2)]
        return capture
    return make


def drop_of_protocol(protocol: int) -> Capture:
    """Five packets that the host's own queue drops; protocol: IP's, 6 for TCP and 17 for UDP."""
    capture = build_capture(burst(5, took_ms=0, reason=QUEUE_DROP),
                            settings=[netem(rate_kbps=1000.0)])
    data = bytearray(capture.data.tobytes())
    for place in capture.packets.place.tolist():
        data[place + 14 + 9] = protocol  # after Ethernet's header
    capture.data = numpy.frombuffer(bytes(data), numpy.uint8)
    return capture


def take_down(*packets: Packet, up_again_ms: float = 0) -> Make:
    """These packets over a link whose far end is down from 50 ms until up_again_ms.

    up_again_ms: 0 if it stays down.
    """
    def make() -> Capture:
        capture = build_capture(packets)
        up = capture.devices[1].states[0]
        capture.devices[1].states.append(up._replace(time_ns=50 * MS, is_up=False))
        if up_again_ms:
            capture.devices[1].states.append(up._replace(time_ns=round(up_again_ms * MS)))
        return capture
    return make


def set_ethertype(kind: int, *packets: Packet, **more: Any) -> Capture:
    """A capture of these packets with another EtherType than IP's."""
    capture = build_capture(packets, **more)
    data = bytearray(capture.data.tobytes())
    for place in capture.packets.place.tolist():
        data[place + 12:place + 14] = struct.pack(">H", kind)
    capture.data = numpy.frombuffer(bytes(data), numpy.uint8)
    return capture


def two_classes(command: str = "", default: int = 0, master: str = "",
                shares: tuple[int, int] = (60_000, 0)) -> Make:
    """An HTB with two classes: 1:1 of 10 Mbit/s and 1:2 of 2 Mbit/s.

    command: that set up the network, "" for none. default: the handle of the class for packets
    that no filter matches. master: the bridge of which the device is a port. shares: how many
    bytes passed each class.
    """
    def make() -> Capture:
        root = Qdisc("htb", is_class=False, handle=1 << 16, parent=ROOT, packets=63,
                     default_class=default)
        classes = [Qdisc("htb", is_class=True, handle=1 << 16 | number, parent=ROOT,
                         above=1 << 16, rate_kbps=rate, bytes=share, packets=share // 1000)
                   for number, rate, share in zip((1, 2), (10_000.0, 2000.0), shares)]
        capture = build_capture([*HANDSHAKE, *burst(60, 100, took_ms=12)],
                                settings=[root, *classes])
        first = capture.devices[0]
        first.states = [first.states[0]._replace(master=master)]
        if command:
            capture.commands = [Command(time_ns=5, namespace=0, is_root=False, process=0,
                                        status=0, words=command)]
        return capture
    return make


def set_again(packets: list[Packet]) -> Make:
    """A delay that Open vSwitch removes at 50 ms, that is set again at 70, and replaced at 150."""
    def make() -> Capture:
        capture = build_capture(packets, settings=[netem(delay_ms=10.0)])
        capture.devices[0].settings += [
            DeviceSetting(50 * MS, command="ovs-vswitchd x"),
            DeviceSetting(70 * MS, (netem(delay_ms=10.0),)),
            DeviceSetting(150 * MS, (TBF,), command="tc qdisc add dev h1-eth0 root tbf")]
        return capture
    return make


def refuse_48_open_two() -> Capture:
    """48 connections that the server refuses, and two that are opened.

    A connection of port N begins after N ms.
    """
    packets = []
    for port in range(2000, 2048):
        packets += [Packet(0, port, 0, 0, SYN, ack=-1, ends=(port, 80)),
                    Packet(1, port + 10, 0, 0, RST | ACK, ack=1, ends=(port, 80))]
    for port in (3000, 3001):
        packets += [packet._replace(ends=(port, 80), queued_ms=packet.queued_ms + port)
                    for packet in HANDSHAKE]
    return build_capture(packets)


def translate_address() -> Capture:
    """A handshake on both sides of a NAT, which replaces the client's address and port."""
    behind = [packet._replace(device=packet.device + 2, queued_ms=packet.queued_ms + 1,
                              source="10.0.9.9", ends=(5555, 80)) for packet in HANDSHAKE]
    return build_capture([*HANDSHAKE, *behind])


def release_by_acknowledgement(size: int, full: int = 1448) -> Make:
    """Three full segments, and data that leaves only after they were acknowledged.

    Nagle's algorithm holds a small one back. A full one would have left at once. size: bytes of
    the data; full: of a full segment.
    """
    flight = [Packet(0, 30, 1 + full * place, full) for place in range(3)]
    return after_handshake(*flight, Packet(1, 45, 1, 0, ack=1 + 3 * full),
                           Packet(0, 55, 1 + 3 * full, size))


def send_9_gigabytes() -> Capture:
    """Nine packets of 1 GiB, whose sequence numbers wrap around three times."""
    size = 1 << 30
    data = [Packet(0, 30 + 20 * place, 1 + place * size, size) for place in range(9)]
    acks = [Packet(1, 45 + 20 * place, 1, 0, ack=1 + (place + 1) * size) for place in range(9)]
    return build_capture([*HANDSHAKE, *data, *acks], starts=(4_000_000_000, 5))


def send_and_refuse(sizes: dict[int, int]) -> Capture:
    """Connections that carry data, by client port how many bytes, and one that is refused."""
    packets = [Packet(0, 50, 0, 0, SYN, ack=-1, ends=(9, 80)),
               Packet(1, 60, 0, 0, RST | ACK, ack=1, ends=(9, 80))]
    for port, size in sizes.items():
        exchange = (*HANDSHAKE, Packet(0, 30, 1, size), Packet(1, 45, 1, 0, ack=1 + size))
        packets += [packet._replace(ends=(port, 80)) for packet in exchange]
    return build_capture(packets)


def ping_without_an_answer() -> Capture:
    """Four pings, and answers to the first three."""
    requests = [Packet(0, 10 * number, number, 0, took_ms=1.0) for number in range(4)]
    answers = [Packet(1, 10 * number + 2, number, 0, took_ms=1.0) for number in range(3)]
    capture = build_capture([*requests, *answers])

    data, packets = bytearray(capture.data.tobytes()), capture.packets
    for place, device, at_ns in zip(packets.place.tolist(), packets.device.tolist(),
                                    packets.queued_ns.tolist()):
        data[place + 23] = 1  # ICMP is IP's protocol
        # Type (an answer or a request), code, checksum, identifier, and the number of the ping.
        data[place + 34:place + 42] = struct.pack(
            ">BBHHH", 0 if device else 8, 0, 0, 7, at_ns // (10 * MS))
    capture.data = numpy.frombuffer(bytes(data), numpy.uint8)
    return capture


# Changes of the capture that was measured -----------------------------------------------------

def change_first(**more: int) -> Change:
    return lambda packets: [packets[0] | more, *packets[1:]]


def delay_tenth(packets: list[Row]) -> list[Row]:
    """The tenth packet leaves a millisecond later than it may."""
    packets[9]["time_ns"] += MS
    return packets


def mark_refused(packet: Row) -> Row:
    """The packet as if the queue had dropped it at once."""
    return packet | {"reason": OTHER_REASON, "time_ns": packet["queued_ns"], "accepted": False}


def deliver_lost(packets: list[Row]) -> list[Row]:
    """Packets that random loss took leave after the delay of their link, 5 ms."""
    return [packet | {"reason": 0, "time_ns": packet["queued_ns"] + 5 * MS}
            if packet["reason"] else packet for packet in packets]


def refuse_last(kept: int) -> Change:
    """Only the packets up to `kept`, as in a slice, and the last one, which is refused.

    -1 keeps all before it. -2 drops one from the file, as if it were still queued at the end.
    """
    return lambda packets: [*packets[:kept], mark_refused(packets[-1])]


def exceed_rate(packets: list[Row]) -> list[Row]:
    """Another 1499 of the largest packet, one a millisecond, which is more than 5 Mbit/s."""
    full = max(packets, key=lambda packet: packet["frame_bytes"])
    return packets + [full | {"number": 10_000 + place, "time_ns": full["time_ns"] + place * MS,
                              "queued_ns": full["queued_ns"] + place * MS}
                      for place in range(1, 1500)]


CHANGES: dict[str, tuple[str, Change]] = {
    "the first is there when the delay is set": (
        "s1-eth1", change_first(time_ns=ORIGIN_NS + 130 * MS)),
    "the first has spent the bucket": ("s1-eth1", change_first(frame_bytes=60_000)),
    "one leaves too late": ("h1-eth0", delay_tenth),
    "one leaves too late where nothing is set": ("s1-eth3", delay_tenth),
    "one is dropped though there was room": (
        "h1-eth0", lambda packets: [*packets[:9], mark_refused(packets[9]), *packets[10:]]),
    "what was lost arrives": ("s1-eth2", deliver_lost),
    "all leave at once": ("h1-eth0", lambda packets: [
        packet | {"time_ns": packet["queued_ns"]} for packet in packets]),
    "the last is dropped though there was room": ("h1-eth0", refuse_last(-1)),
    "the last is dropped while another one may be queued": ("h1-eth0", refuse_last(-2)),
    "more than the rate": ("h1-eth0", exceed_rate),
    "more is lost than chance explains": ("s1-eth2", lambda packets: [
        packet | {"number": number, "reason": 0}
        for number, packet in enumerate(packets * 40, start=1)])}
# Kinds of blocks, as vtime/kernel/capture.c numbers them: a refused qdisc, and the file is full.
REFUSED_BLOCK, FULL_BLOCK = 5, 4
EEXIST = struct.pack("<I", 17)
# The options of a refused qdisc: 1, its kind; 2, the kernel's words; and the end.
NO_ROOM = b"\1\0\5\0netem\0\0\0" + b"\2\0\7\0No room\0" + bytes(4)
MEASURED: dict[str, Make] = {
    "measured": read_small,
    **{f"measured, {name}": (lambda change=change: change_small(*change))
       for name, change in CHANGES.items()},
    "measured, and a qdisc refused": lambda: read_small(
        small_bytes() + own_block(REFUSED_BLOCK, 0, EEXIST + NO_ROOM)),
    "measured, and a qdisc refused without a word": lambda: read_small(
        small_bytes() + own_block(REFUSED_BLOCK, 0, EEXIST + bytes(4))),
    "measured, and full": lambda: read_small(small_bytes() + own_block(FULL_BLOCK, 0, b"")),
    "measured, and cut": lambda: read_small(small_bytes()[:-7]),
    "measured, with a formula for a name": lambda: read_small(
        small_bytes().replace(b"h1-eth0", b"=1+h1()"))}


AGAIN = Packet(0, 400, 1, 1000, took_ms=600)
CAPTURES: dict[str, Make] = {
    "nothing": Capture,
    "a copy that waits is not lost": after_handshake(Packet(0, 30, 1, 1000, took_ms=900), AGAIN),
    "lost where nobody looks": after_long_handshake(
        Packet(0, 50, 1, 500), *forward(Packet(0, 90, 1, 500))),
    "sent again though it had arrived": after_long_handshake(*forward(Packet(0, 50, 1, 500)),
                                                  *forward(Packet(0, 90, 1, 500))),
    "dropped and sent again at one moment": after_handshake(
        *[Packet(0, 30, 1, 1000, took_ms=0, reason=QUEUE_DROP)] * 3, Packet(0, 30, 1, 1000)),
    "still queued when its link goes": after_handshake(
        Packet(0, 30, 1, 1000, took_ms=70, reason=TAKEN_DOWN), Packet(0, 200, 1, 1000)),
    "a queue that was full when it was taken down": full_until_it_is_taken_down,
    **{f"refused by the host's own {kind}": after_handshake(
        Packet(0, 30, 1, 100, took_ms=0, reason=QUEUE_DROP), Packet(0, 60, 1, 100),
        settings=[replace(netem(), kind=kind)]) for kind in ("netem", "tbf", "red", "fq_codel")},
    "arrived twice": after_handshake(*burst(4, took_ms=10), *burst(4, 400, took_ms=10)),
    "policed at the ingress": drop_outside_queues(
        *burst(4, took_ms=10), *burst(4, 400, took_ms=10)),
    "48 refused, two open": refuse_48_open_two,
    "segments that the own queue drops": lambda: drop_of_protocol(6),
    "datagrams that the own queue drops": lambda: drop_of_protocol(17),

    "at once where reordering is set": lambda: build_capture(AT_ONCE, settings=[
        netem(delay_ms=10.0, other_settings=ON_PURPOSE)]),
    "at once where it is not": lambda: build_capture(AT_ONCE, settings=[netem(delay_ms=10.0)]),
    "MTUs that differ": lambda: build_capture(HANDSHAKE, mtus=(9000, 1500, 1500, 1500)),
    "txqueuelen beside netem": lambda: build_capture(HANDSHAKE, settings=[netem(rate_kbps=1000.0)],
                                            queue_packets=10),
    "txqueuelen without a queue": lambda: build_capture(HANDSHAKE, queue_packets=10),
    "a queue below a delay": lambda: build_capture(HANDSHAKE, settings=[netem(delay_ms=10.0), Qdisc(
        "pfifo", is_class=False, handle=2 << 16, parent=1 << 16, above=1 << 16,
        limit_packets=5)]),
    "set on the switch": lambda: build_capture(HANDSHAKE, kinds=("bridge", "veth"), settings=[
        netem(delay_ms=10.0)]),
    "set on a dummy": lambda: build_capture((), kinds=("dummy", "veth"), settings=[
        netem(delay_ms=10.0)]),
    "set and not used": lambda: build_capture((), settings=[netem(delay_ms=10.0)]),
    "removed soon": replace_delay(50), "removed after it was used": replace_delay(130),
    "replaced by the next command": replace_delay(
        50, TBF, command="tc qdisc add dev h1-eth0 root tbf rate 1gbit"),
    "replaced after most came": replace_delay(159, TBF),
    "set again before a packet came": set_again([*HANDSHAKE, *burst(60, 160, took_ms=0)]),
    "set again after packets came": set_again([*HANDSHAKE, *burst(60, 60, 0.1, took_ms=0)]),
    "a delay that only ARP passed": lambda: set_ethertype(0x0806, *burst(9, took_ms=10), settings=[
        netem(delay_ms=10.0)]),
    "a delay that only LLDP passed": lambda: set_ethertype(0x88CC, *burst(9, took_ms=10), settings=[
        netem(delay_ms=10.0)]),
    "a delay that a spanning tree passed": lambda: set_ethertype(  # 38 is its frame's length
        38, *burst(9, took_ms=10), settings=[netem(delay_ms=10.0)]),
    "a class that no filter leads to": two_classes(),
    "a class whose filter matched nothing": two_classes(
        "tc filter add dev h1-eth0 parent 1: u32 match ip dport 9 0xffff flowid 1:2"),
    "a class of which no filter of this device tells": two_classes(
        "tc filter add dev h2-eth0 parent 1: u32 match ip dport 9 0xffff flowid 1:2"),
    "a class for all that no filter matches": two_classes(default=1 << 16 | 2),
    "a class that no flow of Open vSwitch leads to": two_classes(master="ovs-system"),
    "a class that carried nearly all": two_classes(shares=(3000, 57_000)),
    "two classes that carried as much": two_classes(shares=(30_000, 30_000)),
    "another delay in its place": replace_delay(50, netem(delay_ms=11.0)),
    "another delay of another handle": replace_delay(
        50, replace(netem(delay_ms=11.0), handle=7 << 16)),

    "a delay fills the limit below the rate": lambda: build_capture(
        [*burst(30), *burst(3, 60, took_ms=0, reason=QUEUE_DROP)],
        settings=[replace(FULL, rate_kbps=10_000.0)]),
    "a delay and a limit that carry the rate": lambda: build_capture(
        [*burst(30), *burst(3, 60, took_ms=0, reason=QUEUE_DROP)],
        settings=[replace(FULL, rate_kbps=4000.0)]),
    "a delay fills the limit without a rate": lambda: build_capture(
        [*burst(30), *burst(3, 60, took_ms=0, reason=QUEUE_DROP)], settings=[FULL]),
    "a limit that is not filled": lambda: build_capture(burst(30), settings=[
        replace(FULL, rate_kbps=10_000.0)]),
    "random losses as set": lambda: build_capture(
        [*CAME, *LOST, *burst(2000, 30.7, apart_ms=0.4, took_ms=0, reason=QUEUE_DROP)],
        settings=[LOSSY]),
    "more random losses than set": lambda: build_capture([*CAME, *LOST], settings=[LOSSY]),
    "a burst below one packet": lambda: build_capture([*SMALL_ONES, *LARGE], settings=[tbf(1000)]),
    "a burst that holds one": lambda: build_capture([*SMALL_ONES, *LARGE, *burst(1, 90)],
                                           settings=[tbf(1600)]),
    "a burst that hides the rate": lambda: build_capture(burst(60, apart_ms=0.01, took_ms=1),
                                                settings=[tbf(1_000_000)]),
    "a large burst and a slow sender": lambda: build_capture(burst(60, apart_ms=20, took_ms=1),
                                                    settings=[tbf(1_000_000)]),
    "a small burst": lambda: build_capture(burst(60, apart_ms=0.01, took_ms=1),
                                           settings=[tbf(15_000)]),
    "out of order by jitter": lambda: build_capture(CROSSED, settings=[JITTER]),
    "in order with jitter": lambda: build_capture(burst(20, took_ms=10), settings=[JITTER]),
    "out of order on purpose": lambda: build_capture(CROSSED, settings=[
        replace(JITTER, other_settings=ON_PURPOSE)]),
    "while the far end is down": take_down(*HANDSHAKE, *WHILE_DOWN, up_again_ms=102),
    "while it is down, and nothing else": take_down(*(
        packet._replace(queued_ms=packet.queued_ms + 1) for packet in AT_ONCE), *WHILE_DOWN[:2]),
    "5 µs": set_netem("tc … netem delay 5 limit 9", 0.004992, delay_ms=0.004992),
    "5 µs by nobody knows whom": set_netem("", 0.004992, delay_ms=0.004992),
    "5 ns": set_netem("tc … netem delay 5", 5e-6, delay_ms=5e-6),
    "200 ns": set_netem("tc … netem delay 200", 2e-4, delay_ms=2e-4),
    "100 µs": set_netem("tc … netem delay 100", 0.0999968, delay_ms=0.0999968),
    "100 µs as it is written": set_netem("tc qdisc add dev x root netem delay 0.1ms", 0.0999968,
                                         delay_ms=0.0999968),
    "10 mbps": set_netem("tc qdisc add dev x root netem rate 10mbps", rate_kbps=80_000.0),
    "10 mbit": set_netem("tc qdisc add dev x root netem rate 10mbit", rate_kbps=80_000.0),

    **{words: (lambda given=given: build_with_commands(*given)) for words, given in {
        "a command that failed": [("ip route add default via 10.9.9.9", 2, True)],
        "a removal that failed": [("tc qdisc del dev h9-eth0 root", 2, False)],
        "a command that did it": [("tc qdisc add dev h1-eth0 root netem", 0, False)],
        "a sysctl of the root": [("sysctl -w net.ipv4.tcp_congestion_control=bbr", 0, True)],
        "a sysctl of the root and the host": [("sysctl -w net.ipv4.tcp_sack=0", 0, True),
                                              ("sysctl -w net.ipv4.tcp_sack=0", 0, False)],
        "a sysctl that is read": [("sysctl net.ipv4.tcp_sack", 0, True)],
        "a sysctl of the whole machine": [("sysctl -w net.core.rmem_max=9", 0, True)],
        "a window that did not come": [
            ("ip route change 10.0.0.0/8 dev h1-eth0 initcwnd 20", 0, False)],
        "a queue of the loopback": [("tc qdisc add dev lo root netem delay 5ms", 0, False)],
        "a look at the loopback": [("tc qdisc show dev lo", 0, False)]}.items()},
    "a complaint of tc": lambda: build_with_commands(
        ("tc qdisc add dev h9-eth0 root netem delay 5ms", 1, False),
        complaints=('Cannot find device "h9-eth0"\n',)),
    "a complaint of a shell": lambda: build_with_commands(
        complaints=("bash: iptables: command not found\n",), program="bash"),
    "a complaint of Mininet": lambda: build_with_commands(
        complaints=("*** Error: Bandwidth limit 2000.0 is outside supported range 0..1000 -"
                    " ignoring",), program="python3"),
    "a window that came": lambda: build_with_commands(
        ("ip route change 10.0.0.0/8 dev h1-eth0 initcwnd 20", 0, False), segments=20),
    "a route of the root": lambda: build_with_commands(
        ("ip route change default via 10.0.0.9 initcwnd 20", 0, True), segments=20),

    "numbers above 32 bits": send_9_gigabytes, "both sides of a NAT": translate_address,
    **{f"{size} bytes follow the acknowledgement": release_by_acknowledgement(size)
       for size in (1448, 2 * 1448 + 9, 700)},
    "segments below the least that is full": release_by_acknowledgement(500, full=500),
    "a small one, a large one and one refused": lambda: send_and_refuse({7: 400, 8: 60_000}),
    "a ping without an answer": ping_without_an_answer,
    "names of namespaces": drop_outside_queues(),
    **MEASURED}
# What command.json has. A line of its namespaces: the time in ns, the namespace's number, its name.
FACTS: dict[str, dict[str, Any]] = {"names of namespaces": {
    "namespaces": ["5 1 other", "0 0 client", "0 7 nobody", "damaged"]}}
TABLES = ("measured", "measured, with a formula for a name", "names of namespaces",
          "numbers above 32 bits", "a small one, a large one and one refused")


def text() -> str:
    """A paragraph for each capture."""
    return "\n".join("\n".join([name, *(f"  {line}" for line in _lines(name, make))])
                     for name, make in CAPTURES.items()) + "\n"


def _lines(name: str, make: Make) -> list[str]:
    facts = FACTS.get(name, {})
    capture, reported = make(), make_report(make(), ORIGIN_NS if name in MEASURED else 0, **facts)
    directions, spaces = find_links(capture), NamespaceNames(facts.get("namespaces", ()))
    lines = [f"answer: {reported.report.answer.sentence}",
             *(f"alarm: {alarm}" for alarm in reported.report.alarms)]
    for link in directions:
        lines += [f"{link.name}: {words}" for words in link.remarks]  # wrong and advice are alarms
        if link.queue_drops or link.discarded or link.random_drops or link.judged:
            lines.append(f"{link.name}: {link.queue_drops} dropped, {link.random_drops} lost,"
                         f" {link.discarded} discarded, {link.judged} judged")
        if link.unjudged:
            lines.append(f"{link.name}: {link.unjudged}")
    connections = observe_tcp(capture)
    lines += [f"{each.ends.client[1]}: {each.state} first flight {each.to_server.first_flight}"
              f" retransmitted {dict(each.retransmitted)}{_others(each)}"
              for each in connections[:3]]
    lines += [f"drops: {each.text} {each.measured}" for each
              in drop_statements(capture, directions, spaces)]
    lines += [f"command: {words}" for words in lines_about_commands(capture, spaces)]
    return lines + (_tables(reported) if name in TABLES else [])


def _others(connection: ObservedConnection) -> str:
    """The addresses and ports of a connection on the other side of a NAT."""
    return f" also {connection.ends.nat_ends}" if connection.ends.nat_ends else ""


def _tables(reported: CaptureReport) -> list[str]:
    """What the page shows of links and connections, and what their files have."""
    shown = [f"shown: {row[:4]}" for finding in reported.report.findings[:2]
             for row in finding.tables[0].rows]
    return shown + [f"file: {line}" for table in (reported.links, reported.connections)
                    for line in table_csv(table).splitlines()]
