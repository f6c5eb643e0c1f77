"""The path, packet by packet: what left one host against what came to the other.

In virtual time nothing but the qdiscs decides when a packet arrives, or that it does not.
So each packet's arrival follows from when it left, its bytes, and what was before it in
the queue, whatever program sent it. TCP does not matter here.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from typing import NamedTuple

from firstflight.findings.findings import Compared
from firstflight.net.headers import ETHERNET_BYTES
from firstflight.net.link import CHOOSING, Link, Path
from firstflight.net.path import LEAST_TIMER_NS, NEVER
from firstflight.net.segments import MS, CaptureError, Packets, frames
from firstflight.wire.delivery.qdiscs import arrival_times, shaper

# Timers of a guest wait for each other, LEAST_TIMER_NS each: two of a path, and as many of what
# else happens just then.
TOLERANCE_NS = 1000
_LATE_NS = 4 * LEAST_TIMER_NS
# A system call that fails takes a microsecond of a guest's clock (um_udelay). If a packet makes a
# program do several, what is due meanwhile waits for whole microseconds.
_CALL_NS, _CALLS_NS = 1000, 10_000
_OUTAGE_NS = 2 * MS  # how far an outage may be from when it was requested
_ADDRESSES = slice(6, 12)  # of a frame: the sender's, by which its direction is known


class Frame(NamedTuple):
    """A captured packet.

    head: what the capture kept of it; wire_bytes: all of it. number: in its capture, from 1,
    as Wireshark counts.
    """

    time_ns: int
    head: bytes
    wire_bytes: int
    number: int

    def is_same(self, other: Frame) -> bool:
        """Whether the other is this one, as far as the captures keep it."""
        return self.head == other.head and self.wire_bytes == other.wire_bytes


@dataclass(frozen=True)
class Deviation:
    """A packet that the path did not treat as it should.

    number: in the capture of the host that sent it; of one that nobody sent in the capture of
    the other host. what: in words.
    """

    number: int
    what: str


@dataclass
class Delivery:
    """One direction: how many packets were sent, what became of them.

    queue_drops, random_drops: the numbers of those that the bottleneck's queue dropped and
    that random loss took, as they have to. worst_ns: the largest difference of an arrival
    that is no deviation; late_ns: how much later than due a packet may be. events: when a packet
    left or came, at either host, in order.
    """

    sent: int
    events: Sequence[int]
    queue_drops: list[int] = field(default_factory=list)
    random_drops: list[int] = field(default_factory=list)
    deviations: list[Deviation] = field(default_factory=list)
    worst_ns: int = 0
    late_ns: int = _LATE_NS

    @property
    def dropped(self) -> int:
        """How many the path dropped, as it has to."""
        return len(self.queue_drops) + len(self.random_drops)

    def wrong(self, frame: Frame, what: str) -> None:
        self.deviations.append(Deviation(frame.number, what))

    def compare(self, frame: Frame, came_ns: int, due_ns: int) -> None:
        late_ns = came_ns - due_ns
        if late_ns > self.late_ns and self._has_waited(came_ns, due_ns):
            return
        if not -TOLERANCE_NS <= late_ns <= self.late_ns:
            self.wrong(frame, f"arrived {abs(late_ns) / 1000:.3f} µs too"
                              f" {'late' if late_ns > 0 else 'early'}")
        else:
            self.worst_ns = max(self.worst_ns, abs(late_ns))

    def _has_waited(self, came_ns: int, due_ns: int) -> bool:
        """Whether a program that something had woken up made calls meanwhile."""
        first = bisect_left(self.events, came_ns - _CALLS_NS)
        return any((came_ns - woken + 1) % _CALL_NS <= 2
                   for woken in self.events[first:bisect_right(self.events, due_ns)])


def deliveries(client_pcap: Packets, server_pcap: Packets, path: Path,
               table: Callable[[], Sequence[int]]) -> tuple[Delivery, Delivery]:
    """What the path did to client and to server.

    client_pcap, server_pcap: every packet of a trial. table: gives netem's normal
    distribution, where there is jitter. Raises CaptureError.
    """
    at_client, at_server = _frames(client_pcap, "client"), _frames(server_pcap, "server")
    if not at_client:
        raise CaptureError("the client's capture holds no packet")
    client = at_client[0].head[_ADDRESSES]  # who speaks first
    numbers = table() if path.down.jitter_ms or path.up.jitter_ms else ()
    directions = (path.down, _direction(at_server, at_client, client, True)), (
        path.up, _direction(at_client, at_server, client, False))
    events = sorted(frame.time_ns for frame in (*at_client, *at_server))
    down, up = (_delivery(sent, came, link, numbers, at_client[0].time_ns,
                          Delivery(len(sent), events)) for link, (sent, came) in directions)
    return down, up


def delivery_of(sent: Sequence[Frame], came: Sequence[Frame], link: Link, late_ns: int) -> Delivery:
    """What a link without jitter did to the packets that came to it, and those that it let go.

    Their heads distinguish them. late_ns: how much later than due a packet may be, where others'
    timers and system calls are in between.
    """
    return _delivery(list(sent), list(came), link, (), 0, Delivery(len(sent), (), late_ns=late_ns))


def _frames(pcap: Packets, side: str) -> list[Frame]:
    return [Frame(*frame, number) for number, frame in enumerate(frames(pcap, side), start=1)]


def _direction(sender: Sequence[Frame], receiver: Sequence[Frame], client: bytes, to_client: bool
        ) -> tuple[list[Frame], list[Frame]]:
    """The frames of one direction, at the host that sends and at the one that receives."""
    sent, came = ([frame for frame in frames if (frame.head[_ADDRESSES] != client) == to_client]
                  for frames in (sender, receiver))
    return sent, came


def _delivery(sent: list[Frame], came: list[Frame], link: Link, table: Sequence[int],
              begun_ns: int, delivery: Delivery) -> Delivery:
    arrived = _paired(sent, came, delivery)
    times = arrival_times(link, [frame.time_ns for frame in sent], table)
    if len({frame.head for frame in sent}) < len(sent):
        _match_duplicates(link, sent, times, arrived)
    through: list[tuple[int, int]] = []  # when it comes to the bottleneck, and its place
    for place, reaches in enumerate(times):
        may_be_cut, is_cut = _cut(link, sent[place].time_ns - begun_ns)
        if reaches is not None and not (is_cut or may_be_cut and arrived[place] is None):
            through.append((reaches, place))
            continue
        delivery.random_drops.append(sent[place].number)
        if arrived[place] is not None:
            delivery.wrong(sent[place], "arrived though random loss has to take it")
    if link.jitter_ms:
        through.sort()
    if link.jitter_ms and link.qdisc not in CHOOSING:
        _settle(through, arrived)
    (_managed if link.qdisc in CHOOSING else _first_in_first_out)(
        delivery, link, sent, arrived, through)
    return delivery


def _settle(through: list[tuple[int, int]], arrived: Sequence[int | None]) -> None:
    """Put first what arrived first, of two that jitter brings to the bottleneck at one time.

    A packet that leaves while a program makes calls may reach netem some of them later.
    """
    for place in range(1, len(through)):
        while place:
            (before, first), (reaches, second) = through[place - 1:place + 1]
            came, other = arrived[first], arrived[second]
            if (came is None or other is None or came <= other
                    or reaches - before > _CALLS_NS):
                break
            through[place - 1:place + 1] = through[place], through[place - 1]
            place -= 1


def _cut(link: Link, since_ns: int) -> tuple[bool, bool]:
    """Whether an outage may take a packet, and whether it has to: a program begins it."""
    if not link.outage_ms[1]:
        return False, False
    begins, ends = (round(at_ms * MS) for at_ms in link.outage_ms)
    return (begins - _OUTAGE_NS <= since_ns <= ends + _OUTAGE_NS,
            begins + _OUTAGE_NS < since_ns < ends - _OUTAGE_NS)


def _paired(sent: Sequence[Frame], came: Sequence[Frame], delivery: Delivery) -> list[int | None]:
    """When each sent packet arrived, None for never; one that nobody sent is a deviation."""
    arrived: list[int | None] = [None] * len(sent)
    place = 0
    for number, frame in enumerate(came):
        while place < len(sent) and not sent[place].is_same(frame):
            place += 1
        if place == len(sent):  # one that was overtaken, or that nobody sent
            return _paired_in_any_order(sent, came, delivery)
        arrived[place] = frame.time_ns
        place += 1
    return arrived


def _paired_in_any_order(sent: Sequence[Frame], came: Sequence[Frame], delivery: Delivery
                         ) -> list[int | None]:
    arrived: list[int | None] = [None] * len(sent)
    waiting: dict[tuple[bytes, int], deque[int]] = {}
    for place, frame in enumerate(sent):
        waiting.setdefault((frame.head, frame.wire_bytes), deque()).append(place)
    for frame in came:
        places = waiting.get((frame.head, frame.wire_bytes))
        if places:
            arrived[places.popleft()] = frame.time_ns
        else:
            delivery.wrong(frame, "arrived and nobody sent it so" if places is None
                           else "arrived twice")
    return arrived


def _match_duplicates(link: Link, sent: Sequence[Frame], times: Sequence[int | None],
                      arrived: list[int | None]) -> None:
    """Match arrivals with packets that are equal byte for byte, as repeated SYN-ACKs are.

    The latest goes to the last that can have come by then. times: when they have propagated.
    """
    bottleneck = shaper(link)
    alike: dict[tuple[bytes, int], list[int]] = {}
    for place, frame in enumerate(sent):
        alike.setdefault((frame.head, frame.wire_bytes), []).append(place)
    for places in alike.values():
        came = sorted(at for place in places if (at := arrived[place]) is not None)
        if len(places) == 1 or not came:
            continue
        able = sorted((reaches, place) for place in places if (reaches := times[place]) is not None)
        for place in places:
            arrived[place] = None
        for at in reversed(came):
            size = sent[places[0]].wire_bytes
            fits = [candidate for candidate in able
                    if bottleneck.due(candidate[0], size) <= at + TOLERANCE_NS] or able
            if not fits:  # random loss takes all of them, and yet one came
                arrived[places[0]] = at
                continue
            able.remove(fits[-1])
            arrived[fits[-1][1]] = at


def _first_in_first_out(delivery: Delivery, link: Link, sent: Sequence[Frame],
                        arrived: list[int | None], through: Sequence[tuple[int, int]]) -> None:
    """A drop-tail queue: a packet is dropped if the queue is full when it comes, else never.

    Of packets that are the same, as two resets are, the first that finds room arrived.
    """
    bottleneck = shaper(link)
    places: dict[bytes, list[int]] = {}  # of packets that are the same, the last first
    for _, place in reversed(through):
        places.setdefault(sent[place].head, []).append(place)
    leaving: deque[int] = deque()  # when each of those that are in the queue leaves it
    for reaches, place in through:
        frame, came_ns = sent[place], arrived[place]
        # HTB's queue holds what still propagates as well, and so does netem's own.
        enters = frame.time_ns if link.htb_burst_bytes or link.qdisc == "netem" else reaches
        while leaving and leaving[0] < enters - TOLERANCE_NS:
            leaving.popleft()
        same = places[frame.head]
        same.pop()
        if came_ns is None and same and len(leaving) < link.queue_packets:
            due_ns = bottleneck.due(reaches, frame.wire_bytes)
            for later in same:
                at = arrived[later]
                if at is not None and -TOLERANCE_NS <= at - due_ns <= delivery.late_ns:
                    came_ns, arrived[later] = at, None
                    break
        if came_ns is None:
            if len(leaving) >= link.queue_packets:
                delivery.queue_drops.append(frame.number)
            else:
                delivery.wrong(frame, f"did not arrive though the queue held {len(leaving)} of"
                                      f" {link.queue_packets} packets")
            continue
        if len(leaving) - _leave_now(leaving, enters) >= link.queue_packets:
            delivery.wrong(frame, f"arrived though the queue held {len(leaving)} of"
                                  f" {link.queue_packets} packets")
        delivery.compare(frame, came_ns, bottleneck.due(reaches, frame.wire_bytes))
        bottleneck.take(reaches, frame.wire_bytes, came_ns)
        leaving.append(came_ns)


def _leave_now(leaving: Sequence[int], now: int) -> int:
    """How many leave so near to that time that they may be gone already."""
    return sum(1 for _ in takewhile(lambda time: time <= now + TOLERANCE_NS, leaving))


def _managed(delivery: Delivery, link: Link, sent: Sequence[Frame], arrived: Sequence[int | None],
             through: Sequence[tuple[int, int]]) -> None:
    """fq_codel and cake choose what they drop and which connection is next.

    They keep the order of what leaves together, drop only what has to wait, and never leave the
    link idle: so each that arrives has to leave when the link was free and it was there. A
    connection is another flow to them after a timeout (sk_rethink_txhash): what it sends then
    may overtake what it sent before.
    """
    bottleneck = shaper(link)
    last: dict[bytes, tuple[int, int]] = {}  # by connection, the latest of those that came
    events = sorted((reaches if arrived[place] is None else arrived[place] or 0, place, reaches)
                    for reaches, place in through)
    crowded = _crowded([reaches for reaches, _ in through])
    waits = _waiting(events, arrived)
    for at, place, reaches in events:
        frame = sent[place]
        if arrived[place] is None:
            if place in waits or reaches in crowded or (
                    bottleneck.due(reaches, frame.wire_bytes) > reaches):
                delivery.queue_drops.append(frame.number)
            else:
                delivery.wrong(frame, "did not arrive though the link was free")
            continue
        connection, turn = _connection(frame), (reaches, place)
        latest = last.get(connection, turn)
        if latest > turn and latest[0] - reaches < MS and not link.jitter_ms:
            delivery.wrong(frame, "arrived after one that left later")
        last[connection] = max(latest, turn)
        delivery.compare(frame, at, bottleneck.due(reaches, frame.wire_bytes))
        bottleneck.take(reaches, frame.wire_bytes, at)


def _waiting(events: Sequence[tuple[int, int, int]], arrived: Sequence[int | None]) -> set[int]:
    """The places of those that never arrived and that came while another one, which did, waited.

    events: (when it arrived, or came to the queue and was dropped; its place; when it came).
    """
    places: set[int] = set()
    begun = NEVER  # when the earliest came of those that arrive after this
    for at, place, reaches in reversed(events):
        if arrived[place] is None:
            if begun <= at:
                places.add(place)
        else:
            begun = min(begun, reaches)
    return places


def _crowded(times: Sequence[int]) -> set[int]:
    """Times at which several packets come: all are queued before the first can leave."""
    return {time for pair in pairwise(times) if pair[1] - pair[0] <= TOLERANCE_NS for time in pair}


def _connection(frame: Frame) -> bytes:
    """Protocol, addresses and ports of a frame: IPv4 without options, as hosts send it."""
    ports = ETHERNET_BYTES + 20
    return frame.head[ETHERNET_BYTES + 9:ETHERNET_BYTES + 10] + frame.head[26:ports + 4]


# What every kind compares -------------------------------------------------------------

SIDES = ("to_client", "to_server")
EITHER = "either"  # a drop by the queue or at random
PATH = "path"  # of what a record's column judged_by names
NAME = "path"
WHY = ("each packet arrives to the microsecond when delay, rate and queue let it, or is dropped"
       " where they have to")
_EXAMPLES = 3  # deviations in one reason


def compare_path(path: Sequence[Delivery] | None, drops: Mapping[str, Mapping[str, int]]
             ) -> Iterable[Compared]:
    """Each packet, and as many dropped as the qdiscs counted; nothing if it is not judged.

    path: to client and to server, None in real time. drops: by side, then by cause, which is
    "queue", "random", or EITHER where the counters do not distinguish them; {} where nobody
    counted.
    """
    for side, delivery in zip(SIDES, path or ()):
        link, deviations = side.replace("_", " "), delivery.deviations
        yield Compared(not deviations, f"{len(deviations)} of {delivery.sent} packets {link} differ"
                       f" ({examples(deviations)})", "none")
        observed = {"queue": (len(delivery.queue_drops), " by the queue"),
                    "random": (len(delivery.random_drops), " at random"),
                    EITHER: (delivery.dropped, "")}
        for cause, counted in drops.get(side, {}).items():
            lost, words = observed[cause]
            yield Compared(lost == counted, f"{lost} lost {link}{words}",
                           f"{counted} as the network dropped")


def examples(deviations: Sequence[Deviation]) -> str:
    """The first of some deviations, in words."""
    return ", ".join(f"packet {deviation.number} {deviation.what}"
                     for deviation in deviations[:_EXAMPLES])
