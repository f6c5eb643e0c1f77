"""What a report says of captures, made by hand and measured: links, connections, what was dropped.

The one that was measured is that of tests/golden/capture/small.py.
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
                                     TAKEN_DOWN, Change, Packet, Row, burst, changed, content,
                                     found, made, netem, of, own_block, seen, small, tbf,
                                     with_commands)

Make = Callable[[], Capture]
FULL = replace(netem(delay_ms=50.0), limit_packets=25)
LOSSY = replace(netem(loss_percent=2.0, rate_kbps=10_000.0), limit_packets=25, packets=999)
JITTER = netem(delay_ms=10.0, jitter_ms=5.0)
ON_PURPOSE = ("reorder 25 %",)
TBF = Qdisc("tbf", False, 2 << 16, ROOT, packets=60, rate_kbps=1e6, burst_bytes=9000)
AT_ONCE = [packet._replace(took_ms=0) for packet in HANDSHAKE]
CAME = burst(1000, apart_ms=1.0, took_ms=5)
LOST = burst(60, 30.5, apart_ms=16.0, took_ms=0, reason=3)
CROSSED = [packet._replace(took_ms=15.0 if number % 2 else 9.0)
           for number, packet in enumerate(burst(20))]
SMALL_ONES = [Packet(0, 5 + number, 1, 100, took_ms=2) for number in range(5)]
LARGE = burst(7, took_ms=0, reason=QUEUE_DROP)
WHILE_DOWN = [Packet(0, 100 + number, 1, 0, took_ms=0, reason=3) for number in range(3)]


def sent_twice(*packets: Packet, **more: Any) -> Make:
    return lambda: made([*HANDSHAKE, *packets], **more)


def through(*packets: Packet) -> list[Packet]:
    """By h2 to h3, and back."""
    return [each for packet in packets for each in (
        packet, packet._replace(device=packet.device + 2,
                                queued_ms=packet.queued_ms + 10 - 20 * packet.device))]


def elsewhere(*packets: Packet) -> Make:
    syn, answer, last = HANDSHAKE
    opening = through(syn, answer._replace(queued_ms=30), last._replace(queued_ms=40))
    return lambda: made([*opening, *packets])


def then(at_ms: float, *later: Qdisc, command: str = "") -> Make:
    """A delay of 10 ms, and from a moment on other queues, or none."""
    def make() -> Capture:
        capture = made([*HANDSHAKE, *burst(60, 100, took_ms=12)], settings=[netem(delay_ms=10.0)])
        capture.devices[0].settings.append(DeviceSetting(round(at_ms * MS), later, command=command))
        return capture
    return make


def commanded(command: str, took_ms: float = 10.0, **setting: float) -> Make:
    """The setting, as a command made it."""
    def make() -> Capture:
        capture = made([packet._replace(took_ms=took_ms) for packet in HANDSHAKE],
                       settings=[netem(**setting)])
        capture.devices[0].settings = [replace(capture.devices[0].settings[0], command=command)]
        return capture
    return make


def full_until_it_is_taken_down() -> Capture:
    """A byte takes a millisecond, and the queue holds two packets."""
    waiting = [Packet(0, 1000 + place, 1, 0, took_ms=5000, reason=TAKEN_DOWN) for place in range(2)]
    full = Packet(0, 1010, 1, 0, took_ms=0, reason=QUEUE_DROP)
    capture = made([Packet(0, 1, 1, 0, took_ms=54), *waiting, full],
                   settings=[netem(rate_kbps=8.0)])
    capture.devices[0].settings = [replace(capture.devices[0].settings[0],
                                           link=Link(0.0, 8.0, 2, qdisc="netem"))]
    return capture


def policed(*packets: Packet) -> Make:
    def make() -> Capture:
        capture = made([*HANDSHAKE, *packets])
        capture.dropped = [(1, "TC_INGRESS", 3), (0, "NO_SOCKET", 9), (0, "IP_OUTNOROUTES", 2)]
        return capture
    return make


def of_protocol(protocol: int) -> Capture:
    """Dropped by the host's own queue: of TCP (6), of UDP (17)."""
    capture = made(burst(5, took_ms=0, reason=QUEUE_DROP), settings=[netem(rate_kbps=1000.0)])
    data = bytearray(capture.data.tobytes())
    for place in capture.packets.place.tolist():
        data[place + 23] = protocol
    capture.data = numpy.frombuffer(bytes(data), numpy.uint8)
    return capture


def down(*packets: Packet, up_again_ms: float = 0) -> Make:
    """The far end is down from 50 ms on."""
    def make() -> Capture:
        capture = made(packets)
        up = capture.devices[1].states[0]
        capture.devices[1].states.append(up._replace(time_ns=50 * MS, is_up=False))
        if up_again_ms:
            capture.devices[1].states.append(up._replace(time_ns=round(up_again_ms * MS)))
        return capture
    return make


def typed(kind: int, *packets: Packet, **more: Any) -> Capture:
    """The packets as frames of an EtherType."""
    capture = made(packets, **more)
    data = bytearray(capture.data.tobytes())
    for place in capture.packets.place.tolist():
        data[place + 12:place + 14] = struct.pack(">H", kind)
    capture.data = numpy.frombuffer(bytes(data), numpy.uint8)
    return capture


def two_classes(command: str = "", default: int = 0, master: str = "",
                shares: tuple[int, int] = (60_000, 0)) -> Make:
    """HTB with two classes, 1:1 of 10 Mbit/s and 1:2 of 2. shares: the bytes that passed them."""
    def make() -> Capture:
        below = [Qdisc("htb", True, 1 << 16 | number, ROOT, above=1 << 16, rate_kbps=rate,
                       bytes=share, packets=share // 1000)
                 for number, rate, share in zip((1, 2), (10_000.0, 2000.0), shares)]
        capture = made([*HANDSHAKE, *burst(60, 100, took_ms=12)], settings=[
            Qdisc("htb", False, 1 << 16, ROOT, packets=63, default_class=default), *below])
        first = capture.devices[0]
        first.states = [first.states[0]._replace(master=master)]
        if command:
            capture.commands = [Command(5, 0, False, 0, 0, command)]
        return capture
    return make


def set_again(packets: list[Packet]) -> Make:
    """A delay that Open vSwitch removes at 50 ms, and that is there again at 70."""
    def make() -> Capture:
        capture = made(packets, settings=[netem(delay_ms=10.0)])
        capture.devices[0].settings += [
            DeviceSetting(50 * MS, command="ovs-vswitchd x"),
            DeviceSetting(70 * MS, (netem(delay_ms=10.0),)),
            DeviceSetting(150 * MS, (TBF,), command="tc qdisc add dev h1-eth0 root tbf")]
        return capture
    return make


def refused_and_open() -> Capture:
    refused = [packet for port in range(2000, 2048) for packet in (
        Packet(0, port, 0, 0, SYN, -1, ends=(port, 80)),
        Packet(1, port + 10, 0, 0, RST | ACK, 1, ends=(port, 80)))]
    return made([*refused, *(packet._replace(ends=(port, 80), queued_ms=packet.queued_ms + port)
                             for port in (3000, 3001) for packet in HANDSHAKE)])


def through_a_nat() -> Capture:
    """The address of the server is that of h3."""
    behind = [packet._replace(device=packet.device + 2, queued_ms=packet.queued_ms + 1,
                              source="10.0.9.9", ends=(5555, 80)) for packet in HANDSHAKE]
    return made([*HANDSHAKE, *behind])


def released_by_an_acknowledgement(size: int, full: int = 1448) -> Make:
    """What Nagle's algorithm held back; a full segment would have left at once."""
    flight = [Packet(0, 30, 1 + full * place, full) for place in range(3)]
    return sent_twice(*flight, Packet(1, 45, 1, 0, ack=1 + 3 * full),
                      Packet(0, 55, 1 + 3 * full, size))


def beyond_32_bits() -> Capture:
    size = 1 << 30
    data = [Packet(0, 30 + 20 * place, 1 + place * size, size) for place in range(9)]
    acks = [Packet(1, 45 + 20 * place, 1, 0, ack=1 + (place + 1) * size) for place in range(9)]
    return made([*HANDSHAKE, *data, *acks], starts=(4_000_000_000, 5))


def of_sizes(of_ports: dict[int, int]) -> Capture:
    """Connections with so much data, and one that is refused."""
    opened = [packet._replace(ends=(port, 80)) for port, size in of_ports.items()
              for packet in (*HANDSHAKE, Packet(0, 30, 1, size), Packet(1, 45, 1, 0, ack=1 + size))]
    return made([*opened, Packet(0, 50, 0, 0, SYN, -1, ends=(9, 80)),
                 Packet(1, 60, 0, 0, RST | ACK, 1, ends=(9, 80))])


def pings() -> Capture:
    """Four, and three answers."""
    capture = made([*(Packet(0, 10 * number, number, 0, took_ms=1.0) for number in range(4)),
                    *(Packet(1, 10 * number + 2, number, 0, took_ms=1.0) for number in range(3))])
    data, packets = bytearray(capture.data.tobytes()), capture.packets
    for place, device, at_ns in zip(packets.place.tolist(), packets.device.tolist(),
                                    packets.queued_ns.tolist()):
        data[place + 23] = 1
        data[place + 34:place + 42] = struct.pack(
            ">BBHHH", 0 if device else 8, 0, 0, 7, at_ns // (10 * MS))
    capture.data = numpy.frombuffer(bytes(data), numpy.uint8)
    return capture


# Of the capture that was measured: its packets are others -------------------------------------

def first(**more: int) -> Change:
    return lambda packets: [packets[0] | more, *packets[1:]]


def late(packets: list[Row]) -> list[Row]:
    """The tenth leaves a millisecond later than it may."""
    packets[9]["time_ns"] += MS
    return packets


def refused(packet: Row) -> Row:
    """The file says that the queue dropped it."""
    return packet | {"reason": 3, "time_ns": packet["queued_ns"], "accepted": False}


def saved(packets: list[Row]) -> list[Row]:
    """One that random loss took arrives."""
    return [packet | {"reason": 0, "time_ns": packet["queued_ns"] + 5_000_001}
            if packet["reason"] else packet for packet in packets]


def ending(kept: int) -> Change:
    """The last is refused. Of one before it that is still queued the file has nothing."""
    return lambda packets: [*packets[:kept], refused(packets[-1])]


def crowd(packets: list[Row]) -> list[Row]:
    full = max(packets, key=lambda packet: packet["frame_bytes"])
    return packets + [full | {"number": 10_000 + place, "time_ns": full["time_ns"] + place * MS,
                              "queued_ns": full["queued_ns"] + place * MS}
                      for place in range(1, 1500)]


CHANGES: dict[str, tuple[str, Change]] = {
    "the first is there when the delay is set": (
        "s1-eth1", first(time_ns=ORIGIN_NS + 130 * MS)),
    "the first has spent the bucket": ("s1-eth1", first(frame_bytes=60_000)),
    "one leaves too late": ("h1-eth0", late),
    "one leaves too late where nothing is set": ("s1-eth3", late),
    "one is dropped though there was room": (
        "h1-eth0", lambda packets: [*packets[:9], refused(packets[9]), *packets[10:]]),
    "what was lost arrives": ("s1-eth2", saved),
    "all leave at once": ("h1-eth0", lambda packets: [
        packet | {"time_ns": packet["queued_ns"]} for packet in packets]),
    "the last is dropped though there was room": ("h1-eth0", ending(-1)),
    "the last is dropped while another one may be queued": ("h1-eth0", ending(-2)),
    "more than the rate": ("h1-eth0", crowd),
    "more is lost than chance explains": ("s1-eth2", lambda packets: [
        packet | {"number": number, "reason": 0}
        for number, packet in enumerate(packets * 40, start=1)])}
NO_ROOM = b"\1\0\5\0netem\0\0\0" + b"\2\0\7\0No room\0" + bytes(4)
MEASURED: dict[str, Make] = {
    "measured": small,
    **{f"measured, {name}": (lambda what=what: changed(*what)) for name, what in CHANGES.items()},
    "measured, and a qdisc refused": lambda: small(
        content() + own_block(5, 0, struct.pack("<I", 17) + NO_ROOM)),
    "measured, and a qdisc refused without a word": lambda: small(
        content() + own_block(5, 0, struct.pack("<I", 17) + bytes(4))),
    "measured, and full": lambda: small(content() + own_block(4, 0, b"")),
    "measured, and cut": lambda: small(content()[:-7]),
    "measured, with a formula for a name": lambda: small(
        content().replace(b"h1-eth0", b"=1+h1()"))}


AGAIN = Packet(0, 400, 1, 1000, took_ms=600)
CAPTURES: dict[str, Make] = {
    "nothing": Capture,
    "a copy that waits is not lost": sent_twice(Packet(0, 30, 1, 1000, took_ms=900), AGAIN),
    "lost where nobody looks": elsewhere(Packet(0, 50, 1, 500), *through(Packet(0, 90, 1, 500))),
    "sent again though it had arrived": elsewhere(*through(Packet(0, 50, 1, 500)),
                                                  *through(Packet(0, 90, 1, 500))),
    "dropped and sent again at one moment": sent_twice(
        *[Packet(0, 30, 1, 1000, took_ms=0, reason=QUEUE_DROP)] * 3, Packet(0, 30, 1, 1000)),
    "still queued when its link goes": sent_twice(
        Packet(0, 30, 1, 1000, took_ms=70, reason=TAKEN_DOWN), Packet(0, 200, 1, 1000)),
    "a queue that was full when it was taken down": full_until_it_is_taken_down,
    **{f"refused by the host's own {kind}": sent_twice(
        Packet(0, 30, 1, 100, took_ms=0, reason=QUEUE_DROP), Packet(0, 60, 1, 100),
        settings=[replace(netem(), kind=kind)]) for kind in ("netem", "tbf", "red", "fq_codel")},
    "arrived twice": sent_twice(*burst(4, took_ms=10), *burst(4, 400, took_ms=10)),
    "policed at the ingress": policed(*burst(4, took_ms=10), *burst(4, 400, took_ms=10)),
    "48 refused, two open": refused_and_open,
    "segments that the own queue drops": lambda: of_protocol(6),
    "datagrams that the own queue drops": lambda: of_protocol(17),

    "at once where reordering is set": lambda: made(AT_ONCE, settings=[
        netem(delay_ms=10.0, other_settings=ON_PURPOSE)]),
    "at once where it is not": lambda: made(AT_ONCE, settings=[netem(delay_ms=10.0)]),
    "MTUs that differ": lambda: made(HANDSHAKE, mtus=(9000, 1500, 1500, 1500)),
    "txqueuelen beside netem": lambda: made(HANDSHAKE, settings=[netem(rate_kbps=1000.0)],
                                            queue_packets=10),
    "txqueuelen without a queue": lambda: made(HANDSHAKE, queue_packets=10),
    "a queue below a delay": lambda: made(HANDSHAKE, settings=[netem(delay_ms=10.0), Qdisc(
        "pfifo", False, 2 << 16, 1 << 16, above=1 << 16, limit_packets=5)]),
    "set on the switch": lambda: made(HANDSHAKE, kinds=("bridge", "veth"), settings=[
        netem(delay_ms=10.0)]),
    "set on a dummy": lambda: made((), kinds=("dummy", "veth"), settings=[netem(delay_ms=10.0)]),
    "set and not used": lambda: made((), settings=[netem(delay_ms=10.0)]),
    "removed soon": then(50), "removed after it was used": then(130),
    "replaced by the next command": then(
        50, TBF, command="tc qdisc add dev h1-eth0 root tbf rate 1gbit"),
    "replaced after most came": then(159, TBF),
    "set again before a packet came": set_again([*HANDSHAKE, *burst(60, 160, took_ms=0)]),
    "set again after packets came": set_again([*HANDSHAKE, *burst(60, 60, 0.1, took_ms=0)]),
    "a delay that only ARP passed": lambda: typed(0x0806, *burst(9, took_ms=10), settings=[
        netem(delay_ms=10.0)]),
    "a delay that only LLDP passed": lambda: typed(0x88CC, *burst(9, took_ms=10), settings=[
        netem(delay_ms=10.0)]),
    "a delay that a spanning tree passed": lambda: typed(38, *burst(9, took_ms=10), settings=[
        netem(delay_ms=10.0)]),
    "a class that no filter leads to": two_classes(),
    "a class whose filter matched nothing": two_classes(
        "tc filter add dev h1-eth0 parent 1: u32 match ip dport 9 0xffff flowid 1:2"),
    "a class of which no filter of this device tells": two_classes(
        "tc filter add dev h2-eth0 parent 1: u32 match ip dport 9 0xffff flowid 1:2"),
    "a class for all that no filter matches": two_classes(default=1 << 16 | 2),
    "a class that no flow of Open vSwitch leads to": two_classes(master="ovs-system"),
    "a class that carried nearly all": two_classes(shares=(3000, 57_000)),
    "two classes that carried as much": two_classes(shares=(30_000, 30_000)),
    "another delay in its place": then(50, netem(delay_ms=11.0)),
    "another delay of another handle": then(50, replace(netem(delay_ms=11.0), handle=7 << 16)),

    "a delay fills the limit below the rate": lambda: made(
        [*burst(30), *burst(3, 60, took_ms=0, reason=QUEUE_DROP)],
        settings=[replace(FULL, rate_kbps=10_000.0)]),
    "a delay and a limit that carry the rate": lambda: made(
        [*burst(30), *burst(3, 60, took_ms=0, reason=QUEUE_DROP)],
        settings=[replace(FULL, rate_kbps=4000.0)]),
    "a delay fills the limit without a rate": lambda: made(
        [*burst(30), *burst(3, 60, took_ms=0, reason=QUEUE_DROP)], settings=[FULL]),
    "a limit that is not filled": lambda: made(burst(30), settings=[
        replace(FULL, rate_kbps=10_000.0)]),
    "random losses as set": lambda: made(
        [*CAME, *LOST, *burst(2000, 30.7, apart_ms=0.4, took_ms=0, reason=QUEUE_DROP)],
        settings=[LOSSY]),
    "more random losses than set": lambda: made([*CAME, *LOST], settings=[LOSSY]),
    "a burst below one packet": lambda: made([*SMALL_ONES, *LARGE], settings=[tbf(1000)]),
    "a burst that holds one": lambda: made([*SMALL_ONES, *LARGE, *burst(1, 90)],
                                           settings=[tbf(1600)]),
    "a burst that hides the rate": lambda: made(burst(60, apart_ms=0.01, took_ms=1),
                                                settings=[tbf(1_000_000)]),
    "a large burst and a slow sender": lambda: made(burst(60, apart_ms=20, took_ms=1),
                                                    settings=[tbf(1_000_000)]),
    "a small burst": lambda: made(burst(60, apart_ms=0.01, took_ms=1), settings=[tbf(15_000)]),
    "out of order by jitter": lambda: made(CROSSED, settings=[JITTER]),
    "in order with jitter": lambda: made(burst(20, took_ms=10), settings=[JITTER]),
    "out of order on purpose": lambda: made(
        CROSSED, settings=[replace(JITTER, other_settings=ON_PURPOSE)]),
    "while the far end is down": down(*HANDSHAKE, *WHILE_DOWN, up_again_ms=102),
    "while it is down, and nothing else": down(*(
        packet._replace(queued_ms=packet.queued_ms + 1) for packet in AT_ONCE), *WHILE_DOWN[:2]),
    "5 µs": commanded("tc … netem delay 5 limit 9", 0.004992, delay_ms=0.004992),
    "5 µs by nobody knows whom": commanded("", 0.004992, delay_ms=0.004992),
    "5 ns": commanded("tc … netem delay 5", 5e-6, delay_ms=5e-6),
    "200 ns": commanded("tc … netem delay 200", 2e-4, delay_ms=2e-4),
    "100 µs": commanded("tc … netem delay 100", 0.0999968, delay_ms=0.0999968),
    "100 µs as it is written": commanded("tc qdisc add dev x root netem delay 0.1ms", 0.0999968,
                                         delay_ms=0.0999968),
    "10 mbps": commanded("tc qdisc add dev x root netem rate 10mbps", rate_kbps=80_000.0),
    "10 mbit": commanded("tc qdisc add dev x root netem rate 10mbit", rate_kbps=80_000.0),

    **{words: (lambda given=given: with_commands(*given)) for words, given in {
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
    "a complaint of tc": lambda: with_commands(
        ("tc qdisc add dev h9-eth0 root netem delay 5ms", 1, False),
        complaints=('Cannot find device "h9-eth0"\n',)),
    "a complaint of a shell": lambda: with_commands(
        complaints=("bash: iptables: command not found\n",), program="bash"),
    "a complaint of Mininet": lambda: with_commands(
        complaints=("*** Error: Bandwidth limit 2000.0 is outside supported range 0..1000 -"
                    " ignoring",), program="python3"),
    "a window that came": lambda: with_commands(
        ("ip route change 10.0.0.0/8 dev h1-eth0 initcwnd 20", 0, False), segments=20),
    "a route of the root": lambda: with_commands(
        ("ip route change default via 10.0.0.9 initcwnd 20", 0, True), segments=20),

    "numbers above 32 bits": beyond_32_bits, "both sides of a NAT": through_a_nat,
    **{f"{size} bytes follow the acknowledgement": released_by_an_acknowledgement(size)
       for size in (1448, 2 * 1448 + 9, 700)},
    "segments below the least that is full": released_by_an_acknowledgement(500, full=500),
    "a small one, a large one and one refused": lambda: of_sizes({7: 400, 8: 60_000}),
    "a ping without an answer": pings, "names of namespaces": policed(),
    **MEASURED}
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
    capture, reported = make(), of(make(), ORIGIN_NS if name in MEASURED else 0, **facts)
    directions, spaces = found(capture), NamespaceNames(facts.get("namespaces", ()))
    lines = [f"answer: {reported.report.answer.sentence}",
             *(f"alarm: {alarm}" for alarm in reported.report.alarms)]
    for link in directions:
        lines += [f"{link.name}: {words}" for words in link.remarks]  # the others are alarms
        if link.queue_drops or link.discarded or link.random_drops or link.judged:
            lines.append(f"{link.name}: {link.queue_drops} dropped, {link.random_drops} lost,"
                         f" {link.discarded} discarded, {link.judged} judged")
        if link.unjudged:
            lines.append(f"{link.name}: {link.unjudged}")
    connections = seen(capture)
    lines += [f"{each.ends.client[1]}: {each.state} first flight {each.to_server.first_flight}"
              f" retransmitted {dict(each.retransmitted)}{_others(each)}"
              for each in connections[:3]]
    lines += [f"drops: {each.text} {each.measured}" for each
              in drop_statements(capture, directions, spaces)]
    lines += [f"command: {words}" for words in lines_about_commands(capture, spaces)]
    return lines + (_tables(reported) if name in TABLES else [])


def _others(connection: ObservedConnection) -> str:
    """Other ends of it, on the other side of a NAT."""
    return f" also {connection.ends.nat_ends}" if connection.ends.nat_ends else ""


def _tables(reported: CaptureReport) -> list[str]:
    """What the page shows of links and connections, and what their files have."""
    shown = [f"shown: {row[:4]}" for finding in reported.report.findings[:2]
             for row in finding.tables[0].rows]
    return shown + [f"file: {line}" for table in (reported.links, reported.connections)
                    for line in table_csv(table).splitlines()]
