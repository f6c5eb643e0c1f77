"""Judges a path packet by packet: packets that left one host against those that came to the other.

In virtual time only the qdiscs decide when a packet arrives, or whether it does. So each packet's
arrival follows from when it left, its length, and the packets before it in the queue, whatever
program sent it. TCP does not matter here.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from typing import NamedTuple

from firstflight.base.comparison import Comparison
from firstflight.net.headers import ETHERNET_BYTES
from firstflight.net.link import MANAGED, Link, Path
from firstflight.net.path import LEAST_TIMER_NS, NEVER
from firstflight.net.segments import MS, CaptureError, Packets, frames
from firstflight.wire.delivery.qdiscs import arrival_times, shaper

TOLERANCE_NS = 1000  # times that differ by less are the same
# How much later than due a packet may arrive. Timers of a guest wait for each other, LEAST_TIMER_NS
# each: two timers of the path, and two of other things that happen at the same time.
_LATE_NS = 4 * LEAST_TIMER_NS
# A failing system call takes a microsecond of a guest's clock (um_udelay). If a packet makes a
# program call several, other packets that are due then wait for whole microseconds.
_CALL_NS, _CALLS_NS = 1000, 10_000
_OUTAGE_NS = 2 * MS  # an outage may begin and end so much earlier or later than requested
_SENDER = slice(6, 12)  # of a frame: the sender's MAC address, which shows the direction


class Frame(NamedTuple):
    """A captured packet."""

    time_ns: int
    head: bytes  # the captured bytes
    wire_bytes: int  # the whole length
    number: int  # in its capture, from 1, as Wireshark counts

    def is_same(self, other: Frame) -> bool:
        """Whether both are the same packet, as far as the captures show."""
        return self.head == other.head and self.wire_bytes == other.wire_bytes


@dataclass(frozen=True)
class Deviation:
    """A packet that the path did not treat as it should."""

    number: int  # in the sender's capture; in the receiver's if nobody sent it
    what: str  # the deviation in words


@dataclass
class Delivery:
    """The packets of one direction and what happened to them."""

    sent: int  # how many
    events: Sequence[int]  # when a packet left or came at either host, ns, ascending
    # The numbers of packets that the bottleneck's queue and random loss dropped, as they have to.
    queue_drops: list[int] = field(default_factory=list)
    random_drops: list[int] = field(default_factory=list)
    deviations: list[Deviation] = field(default_factory=list)
    worst_ns: int = 0  # the largest difference of an arrival that is no deviation
    late_ns: int = _LATE_NS  # how much later than due a packet may arrive

    @property
    def dropped(self) -> int:
        """The number of packets that the path dropped, as it has to."""
        return len(self.queue_drops) + len(self.random_drops)

    def note_deviation(self, frame: Frame, what: str) -> None:
        """Note that the path did not treat a packet as it should. what: in words."""
        self.deviations.append(Deviation(frame.number, what))

    def compare(self, frame: Frame, came_ns: int, due_ns: int) -> None:
        """Compare when a packet came with when it had to."""
        late_ns = came_ns - due_ns
        if late_ns > self.late_ns and self._has_waited(came_ns, due_ns):
            return
        if not -TOLERANCE_NS <= late_ns <= self.late_ns:
            direction = "late" if late_ns > 0 else "early"
            self.note_deviation(frame, f"arrived {abs(late_ns) / 1000:.3f} µs too {direction}")
        else:
            self.worst_ns = max(self.worst_ns, abs(late_ns))

    def _has_waited(self, came_ns: int, due_ns: int) -> bool:
        """Whether a packet woke a program whose failing calls explain the delay."""
        first = bisect_left(self.events, came_ns - _CALLS_NS)
        return any((came_ns - woken + 1) % _CALL_NS <= 2
                   for woken in self.events[first:bisect_right(self.events, due_ns)])


def deliveries(client_pcap: Packets, server_pcap: Packets, path: Path,
               table: Callable[[], Sequence[int]]) -> tuple[Delivery, Delivery]:
    """What the path did to packets to the client, and to those to the server.

    client_pcap, server_pcap: every packet of a trial. table: returns netem's normal distribution;
    called only if there is jitter. Raises CaptureError.
    """
    at_client, at_server = _frames(client_pcap, "client"), _frames(server_pcap, "server")
    if not at_client:
        raise CaptureError("the client's capture holds no packet")
    client = at_client[0].head[_SENDER]  # the client sends the first packet
    numbers = table() if path.down.jitter_ms or path.up.jitter_ms else ()
    events = sorted(frame.time_ns for frame in (*at_client, *at_server))
    begun_ns = at_client[0].time_ns

    sent, came = _direction(at_server, at_client, client, to_client=True)
    down = _delivery(sent, came, path.down, table=numbers, begun_ns=begun_ns,
                     delivery=Delivery(len(sent), events))
    sent, came = _direction(at_client, at_server, client, to_client=False)
    up = _delivery(sent, came, path.up, table=numbers, begun_ns=begun_ns,
                   delivery=Delivery(len(sent), events))
    return down, up


def delivery_of(sent: Sequence[Frame], came: Sequence[Frame], link: Link, late_ns: int) -> Delivery:
    """What a link without jitter did to packets.

    sent: the packets that came to the link. came: those that left it. Their heads identify them.
    late_ns: how much later than due a packet may leave, because of other timers and system calls.
    """
    return _delivery(list(sent), list(came), link, table=(), begun_ns=0,
                     delivery=Delivery(len(sent), (), late_ns=late_ns))


def _frames(pcap: Packets, side: str) -> list[Frame]:
    """The packets of a capture. Raises CaptureError."""
    return [Frame(*frame, number) for number, frame in enumerate(frames(pcap, side), start=1)]


def _direction(sender: Sequence[Frame], receiver: Sequence[Frame], client: bytes, to_client: bool
               ) -> tuple[list[Frame], list[Frame]]:
    """The frames of one direction, at the sending host and at the receiving one.

    client: the client's MAC address.
    """
    def is_of_direction(frame: Frame) -> bool:
        return (frame.head[_SENDER] != client) == to_client

    return list(filter(is_of_direction, sender)), list(filter(is_of_direction, receiver))


def _delivery(sent: list[Frame], came: list[Frame], link: Link, table: Sequence[int],
              begun_ns: int, delivery: Delivery) -> Delivery:
    """Judge each packet of a direction. begun_ns: when the trial's first packet left."""
    arrived = _pair(sent, came, delivery)
    times = arrival_times(link, [frame.time_ns for frame in sent], table)
    if len({frame.head for frame in sent}) < len(sent):
        _match_duplicates(link, sent, times, arrived=arrived)

    through: list[tuple[int, int]] = []  # packets after random loss: arrival at the queue, place
    uncertain: set[int] = set()  # places that an outage may have taken, or the queue
    for place, reaches in enumerate(times):
        may_be_cut, is_cut = _in_outage(link, sent[place].time_ns - begun_ns)
        if reaches is not None and not is_cut:
            through.append((reaches, place))
            if may_be_cut:
                uncertain.add(place)
            continue

        delivery.random_drops.append(sent[place].number)
        if arrived[place] is not None:
            delivery.note_deviation(sent[place], "arrived though random loss has to take it")

    if link.jitter_ms:
        through.sort()
    if link.qdisc in MANAGED:
        _judge_managed_queue(delivery, link, sent, arrived=arrived, through=through,
                             uncertain=uncertain)
        return delivery

    if link.jitter_ms:
        _order_by_arrival(through, arrived)
    _judge_drop_tail(delivery, link, sent, arrived=arrived, through=through, uncertain=uncertain)
    return delivery


def _order_by_arrival(through: list[tuple[int, int]], arrived: Sequence[int | None]) -> None:
    """Order packets that jitter brings to the bottleneck at about the same time by their arrival.

    A packet that leaves while a program makes failing calls may reach netem a few of them later.
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


def _in_outage(link: Link, since_ns: int) -> tuple[bool, bool]:
    """Whether an outage may take a packet, and whether it must.

    A program begins and ends the outage, so that its times are not exact.
    """
    if not link.outage_ms[1]:
        return False, False
    begins, ends = (round(at_ms * MS) for at_ms in link.outage_ms)
    return (begins - _OUTAGE_NS <= since_ns <= ends + _OUTAGE_NS,
            begins + _OUTAGE_NS < since_ns < ends - _OUTAGE_NS)


def _pair(sent: Sequence[Frame], came: Sequence[Frame], delivery: Delivery) -> list[int | None]:
    """When each sent packet arrived; None for never. Arrivals that nobody sent are deviations."""
    arrived: list[int | None] = [None] * len(sent)
    place = 0
    for frame in came:
        while place < len(sent) and not sent[place].is_same(frame):
            place += 1
        if place == len(sent):  # it was overtaken, or nobody sent it
            return _pair_in_any_order(sent, came, delivery)
        arrived[place] = frame.time_ns
        place += 1
    return arrived


def _pair_in_any_order(sent: Sequence[Frame], came: Sequence[Frame], delivery: Delivery
                       ) -> list[int | None]:
    """As _pair, where packets have overtaken others."""
    arrived: list[int | None] = [None] * len(sent)
    waiting: dict[tuple[bytes, int], deque[int]] = {}
    for place, frame in enumerate(sent):
        waiting.setdefault((frame.head, frame.wire_bytes), deque()).append(place)

    for frame in came:
        places = waiting.get((frame.head, frame.wire_bytes))
        if places:
            arrived[places.popleft()] = frame.time_ns
        elif places is None:
            delivery.note_deviation(frame, "arrived and nobody sent it so")
        else:
            delivery.note_deviation(frame, "arrived twice")
    return arrived


def _match_duplicates(link: Link, sent: Sequence[Frame], times: Sequence[int | None],
                      arrived: list[int | None]) -> None:
    """Match arrivals with packets that are equal byte by byte, such as repeated SYN-ACKs.

    The latest arrival belongs to the last packet that can have arrived by then. times: when each
    packet reaches the bottleneck.
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
        size = sent[places[0]].wire_bytes
        for place in places:
            arrived[place] = None
        for at in reversed(came):
            if not able:  # random loss had to take all that are left, and yet one came
                arrived[places[0]] = at
                continue

            in_time = [candidate for candidate in able
                       if bottleneck.due(candidate[0], size) <= at + TOLERANCE_NS]
            latest = in_time[-1] if in_time else able[-1]  # none in time: judged as too early
            able.remove(latest)
            arrived[latest[1]] = at


def _judge_drop_tail(delivery: Delivery, link: Link, sent: Sequence[Frame],
                     arrived: list[int | None], through: Sequence[tuple[int, int]],
                     uncertain: Collection[int]) -> None:
    """Judge a drop-tail queue: it drops a packet if it is full when the packet comes, else never.

    Of equal packets, such as two resets, the first that finds room is the one that arrived.
    through: when each packet that random loss did not take comes to the queue, and its place.
    uncertain: places of packets that an outage may have taken instead of the queue.
    """
    bottleneck = shaper(link)
    places: dict[bytes, list[int]] = {}  # of equal packets, the last one first
    for _, place in reversed(through):
        places.setdefault(sent[place].head, []).append(place)

    leaving: deque[int] = deque()  # when each packet in the queue leaves it
    for turn, (reaches, place) in enumerate(through):
        frame, came_ns = sent[place], arrived[place]
        # The queues of HTB and of a single netem also hold packets that still propagate.
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
            held = len(leaving)
            if link.jitter_ms:
                held += _count_just_behind(through, turn, arrived)
            if held >= link.queue_packets:
                delivery.queue_drops.append(frame.number)
            elif place in uncertain:
                delivery.random_drops.append(frame.number)
            else:
                delivery.note_deviation(
                    frame, f"did not arrive though the queue held {len(leaving)} of"
                           f" {link.queue_packets} packets")
            continue

        # Packets that leave at about the same time may be gone already.
        leave_now = sum(1 for _ in takewhile(lambda time: time <= enters + TOLERANCE_NS, leaving))
        if len(leaving) - leave_now >= link.queue_packets:
            delivery.note_deviation(frame, f"arrived though the queue held {len(leaving)} of"
                                           f" {link.queue_packets} packets")
        delivery.compare(frame, came_ns, bottleneck.due(reaches, frame.wire_bytes))
        bottleneck.take(reaches, frame.wire_bytes, came_ns)
        leaving.append(came_ns)


def _count_just_behind(through: Sequence[tuple[int, int]], turn: int,
                       arrived: Sequence[int | None]) -> int:
    """How many packets behind one came to the queue at about the same time, and arrived.

    Jitter may have brought them first.
    """
    latest, count = through[turn][0] + TOLERANCE_NS, 0
    for number in range(turn + 1, len(through)):
        reaches, place = through[number]
        if reaches > latest:
            break
        count += arrived[place] is not None
    return count


def _judge_managed_queue(delivery: Delivery, link: Link, sent: Sequence[Frame],
                         arrived: Sequence[int | None], through: Sequence[tuple[int, int]],
                         uncertain: Collection[int]) -> None:
    """Judge fq_codel or cake, which choose what to drop and which connection is next.

    They keep the order of packets of a connection, drop only packets that have to wait, and never
    leave the link idle. So each packet that arrives has to leave as soon as the link is free. A
    timeout makes a connection another flow (sk_rethink_txhash): packets after it may overtake
    earlier ones. through, uncertain: as of _judge_drop_tail.
    """
    bottleneck = shaper(link)
    events = []
    for reaches, place in through:
        came_ns = arrived[place]
        events.append((reaches if came_ns is None else came_ns, place, reaches))
    events.sort()
    waiting = _dropped_while_waiting(events, arrived)

    # Packets that come at the same time are all queued before the first of them can leave.
    together: set[int] = set()
    for (before, _), (reaches, _) in pairwise(through):
        if reaches - before <= TOLERANCE_NS:
            together.update((before, reaches))

    # By connection, of packets that arrived, the one that came last to the queue: (when, place).
    last: dict[bytes, tuple[int, int]] = {}
    for at, place, reaches in events:
        frame = sent[place]
        if arrived[place] is None:
            if place in uncertain:
                delivery.random_drops.append(frame.number)
            elif place in waiting or reaches in together or (
                    bottleneck.due(reaches, frame.wire_bytes) > reaches):
                delivery.queue_drops.append(frame.number)
            else:
                delivery.note_deviation(frame, "did not arrive though the link was free")
            continue

        connection, came = _connection(frame), (reaches, place)
        latest = last.get(connection, came)
        # Packets that come within a millisecond have no timeout between them: they are one flow.
        was_overtaken = latest > came and latest[0] - reaches < MS and not link.jitter_ms
        if was_overtaken and not _goes_back(frame, then=sent[latest[1]]):
            delivery.note_deviation(frame, "arrived after one that left later")
        last[connection] = max(latest, came)
        delivery.compare(frame, at, bottleneck.due(reaches, frame.wire_bytes))
        bottleneck.take(reaches, frame.wire_bytes, at)


def _dropped_while_waiting(events: Sequence[tuple[int, int, int]], arrived: Sequence[int | None]
                           ) -> set[int]:
    """The places of dropped packets that came while a packet that arrived later was waiting.

    events: (when the packet arrived, or when it came to the queue if it was dropped; its place;
    when it came to the queue).
    """
    places: set[int] = set()
    begun = NEVER  # of packets that arrive after this one, when the first came to the queue
    for at, place, reaches in reversed(events):
        if arrived[place] is None:
            if begun <= at:
                places.add(place)
        else:
            begun = min(begun, reaches)
    return places


def _goes_back(first: Frame, then: Frame) -> bool:
    """Whether `then`, which left after `first`, has a lower sequence number, as after a timeout."""
    place = ETHERNET_BYTES + 20 + 4  # of the sequence number, behind IPv4 without options
    first_seq = int.from_bytes(first.head[place:place + 4], "big")
    then_seq = int.from_bytes(then.head[place:place + 4], "big")
    return (then_seq - first_seq) % (1 << 32) >= 1 << 31


def _connection(frame: Frame) -> bytes:
    """Protocol, addresses and ports of a frame with IPv4 without options, as our hosts send it."""
    protocol, addresses, ports = ETHERNET_BYTES + 9, ETHERNET_BYTES + 12, ETHERNET_BYTES + 20
    return frame.head[protocol:protocol + 1] + frame.head[addresses:ports + 4]


# What every workload compares ---------------------------------------------------------

SIDES = ("to_client", "to_server")
EITHER = "either"  # a drop by the queue or at random
PATH = "path"  # a value of a record's column judged_by
_EXAMPLES = 3  # deviations in a verdict's reason


def compare_path(path: Sequence[Delivery] | None, drops: Mapping[str, Mapping[str, int]]
             ) -> Iterable[Comparison]:
    """Compare each packet's arrival, and the number of drops with the qdiscs' counters.

    path: to the client and to the server; None in real time, which is not judged. drops: by side,
    then by cause: "queue", "random", or EITHER if the counters do not distinguish them; {} without
    counters.
    """
    for side, delivery in zip(SIDES, path or ()):
        direction, deviations = side.replace("_", " "), delivery.deviations
        yield Comparison(not deviations, f"{len(deviations)} of {delivery.sent} packets {direction}"
                         f" differ ({examples(deviations)})", "none")

        observed = {"queue": (len(delivery.queue_drops), " by the queue"),
                    "random": (len(delivery.random_drops), " at random"),
                    EITHER: (delivery.dropped, "")}
        for cause, counted in drops.get(side, {}).items():
            lost, words = observed[cause]
            yield Comparison(lost == counted, f"{lost} lost {direction}{words}",
                             f"{counted} as the network dropped")


def examples(deviations: Sequence[Deviation]) -> str:
    """The first few deviations in words."""
    return ", ".join(f"packet {deviation.number} {deviation.what}"
                     for deviation in deviations[:_EXAMPLES])
