"""Judges a path packet by packet: compares packets that left one host with those that came to the
other.

In virtual time only the qdiscs decide whether and when a packet arrives. So each packet's arrival
follows from the time when it left, from its length, and from the packets before it in the queue.
Which program sent it, and what TCP does, does not matter here.
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

TOLERANCE_NS = 1000  # times that differ by less count as the same
# How much later than due a packet may arrive. Timers of a guest wait for each other, LEAST_TIMER_NS
# each: two timers of the path, and two of other things that happen at the same time.
_LATE_NS = 4 * LEAST_TIMER_NS
# A failing system call takes a microsecond of a guest's clock (um_udelay). If a packet makes a
# program make several such calls, other packets that are due then wait for whole microseconds.
_CALL_NS = 1000
_CALLS_NS = 10_000  # the longest wait that several calls explain
_OUTAGE_NS = 2 * MS  # an outage may begin and end this much earlier or later than requested
_SENDER = slice(6, 12)  # of a frame: the sender's MAC address, which shows the direction


class Frame(NamedTuple):
    """A captured packet."""

    time_ns: int
    head: bytes  # the captured bytes
    wire_bytes: int  # the packet's length, of which `head` may be a part
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
    """What happened to the packets of one direction."""

    sent: int  # how many packets were sent
    events: Sequence[int]  # when a packet left either host or came to it, ns, ascending
    # The numbers of the packets that the bottleneck's queue, or random loss, dropped as it has to.
    queue_drops: list[int] = field(default_factory=list)
    random_drops: list[int] = field(default_factory=list)
    deviations: list[Deviation] = field(default_factory=list)
    # The largest difference between when a packet arrived and when it had to, deviations aside.
    worst_ns: int = 0
    late_ns: int = _LATE_NS  # how much later than due a packet may arrive

    @property
    def dropped(self) -> int:
        """How many packets the path dropped, as it has to."""
        return len(self.queue_drops) + len(self.random_drops)

    def note_deviation(self, frame: Frame, what: str) -> None:
        """Note that the path did not treat a packet as it should. what: in words."""
        self.deviations.append(Deviation(frame.number, what))

    def compare(self, frame: Frame, came_ns: int, due_ns: int) -> None:
        """Compare the time when a packet came with the time when it was due."""
        late_ns = came_ns - due_ns
        if late_ns > self.late_ns and self._has_waited(came_ns, due_ns):
            return
        if not -TOLERANCE_NS <= late_ns <= self.late_ns:
            direction = "late" if late_ns > 0 else "early"
            self.note_deviation(frame, f"arrived {abs(late_ns) / 1000:.3f} µs too {direction}")
        else:
            self.worst_ns = max(self.worst_ns, abs(late_ns))

    def _has_waited(self, came_ns: int, due_ns: int) -> bool:
        """Whether the failing calls of a program explain why a packet is late.

        Then another packet woke the program, at most _CALLS_NS before this one came, and this one
        waited for whole calls, to a nanosecond.
        """
        first = bisect_left(self.events, came_ns - _CALLS_NS)
        return any((came_ns - woken + 1) % _CALL_NS <= 2
                   for woken in self.events[first:bisect_right(self.events, due_ns)])


def deliveries(client_pcap: Packets, server_pcap: Packets, path: Path,
               table: Callable[[], Sequence[int]]) -> tuple[Delivery, Delivery]:
    """Judge what the path did to packets to the client, and to packets to the server.

    client_pcap, server_pcap: every packet of a trial at that host. table: returns netem's normal
    distribution; it is called only if there is jitter. Raises CaptureError.
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
    """Judge what a link without jitter did to packets.

    sent: the packets that came to the link. came: the packets that left it. Packets with the same
    head are the same. late_ns: how much later than due a packet may leave the link, because of
    other timers and system calls.
    """
    return _delivery(list(sent), list(came), link, table=(), begun_ns=0,
                     delivery=Delivery(len(sent), (), late_ns=late_ns))


def _frames(pcap: Packets, side: str) -> list[Frame]:
    """The packets of a capture. Raises CaptureError."""
    return [Frame(time_ns, head, wire_bytes, number)
            for number, (time_ns, head, wire_bytes) in enumerate(frames(pcap, side), start=1)]


def _direction(at_sender: Sequence[Frame], at_receiver: Sequence[Frame], client: bytes,
               to_client: bool) -> tuple[list[Frame], list[Frame]]:
    """The frames of one direction, at the sending host and at the receiving one.

    at_sender, at_receiver: all frames there, in both directions. client: its MAC address.
    """
    sent = [frame for frame in at_sender if (frame.head[_SENDER] != client) == to_client]
    came = [frame for frame in at_receiver if (frame.head[_SENDER] != client) == to_client]
    return sent, came


def _delivery(sent: list[Frame], came: list[Frame], link: Link, table: Sequence[int],
              begun_ns: int, delivery: Delivery) -> Delivery:
    """Judge each packet of a direction, and note the results in `delivery`, which is returned.

    begun_ns: when the trial's first packet left. In this function and those that it calls, a place
    is a packet's index in `sent`.
    """
    arrived = _pair(sent, came, delivery)
    # When each packet reaches the queue of the bottleneck; None for one that random loss takes.
    queue_times = arrival_times(link, [frame.time_ns for frame in sent], table)
    if len({frame.head for frame in sent}) < len(sent):
        _match_duplicates(link, sent, queue_times, arrived=arrived)

    through: list[tuple[int, int]] = []  # packets after random loss: arrival at the queue, place
    uncertain: set[int] = set()  # places of packets that either an outage or the queue took
    for place, reaches in enumerate(queue_times):
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

    A packet that leaves while a program makes failing calls may reach netem by the time of a few
    calls later. arrived: when each packet arrived at the receiving host.
    """
    for index in range(1, len(through)):
        while index:
            (earlier, earlier_place), (later, later_place) = through[index - 1:index + 1]
            earlier_came, later_came = arrived[earlier_place], arrived[later_place]
            if (earlier_came is None or later_came is None or earlier_came <= later_came
                    or later - earlier > _CALLS_NS):
                break
            through[index - 1:index + 1] = through[index], through[index - 1]
            index -= 1


def _in_outage(link: Link, since_ns: int) -> tuple[bool, bool]:
    """Whether an outage may take a packet, and whether it must.

    since_ns: when the packet left, after the trial's first packet. A program begins and ends the
    outage, so its times are not exact.
    """
    if not link.outage_ms[1]:  # none is requested
        return False, False
    begins, ends = (round(at_ms * MS) for at_ms in link.outage_ms)
    return (begins - _OUTAGE_NS <= since_ns <= ends + _OUTAGE_NS,
            begins + _OUTAGE_NS < since_ns < ends - _OUTAGE_NS)


def _pair(sent: Sequence[Frame], came: Sequence[Frame], delivery: Delivery) -> list[int | None]:
    """When each sent packet arrived; None for never.

    A packet that arrived and was not sent is noted as a deviation.
    """
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
    """When each sent packet arrived, as _pair returns it, if packets have overtaken others."""
    arrived: list[int | None] = [None] * len(sent)
    waiting: dict[tuple[bytes, int], deque[int]] = {}
    for place, frame in enumerate(sent):
        waiting.setdefault((frame.head, frame.wire_bytes), deque()).append(place)

    # A packet that nobody sent has no places; one whose places are used up came once too often.
    for frame in came:
        places = waiting.get((frame.head, frame.wire_bytes))
        if places:
            arrived[places.popleft()] = frame.time_ns
        elif places is None:
            delivery.note_deviation(frame, "arrived and nobody sent it so")
        else:
            delivery.note_deviation(frame, "arrived twice")
    return arrived


def _match_duplicates(link: Link, sent: Sequence[Frame], queue_times: Sequence[int | None],
                      arrived: list[int | None]) -> None:
    """Match the arrivals of packets that are equal byte by byte, such as repeated SYN-ACKs.

    The latest arrival belongs to the last packet that can have arrived by then. queue_times: when
    each packet reaches the bottleneck; None for one that random loss takes. arrived: when each
    packet arrived; is changed.
    """
    bottleneck = shaper(link)
    equal: dict[tuple[bytes, int], list[int]] = {}
    for place, frame in enumerate(sent):
        equal.setdefault((frame.head, frame.wire_bytes), []).append(place)

    for places in equal.values():
        came = sorted(came_ns for place in places if (came_ns := arrived[place]) is not None)
        if len(places) == 1 or not came:
            continue

        # The packets that random loss did not take, each until an arrival belongs to it.
        survivors = sorted((reaches, place) for place in places
                           if (reaches := queue_times[place]) is not None)
        size = sent[places[0]].wire_bytes
        for place in places:
            arrived[place] = None
        for came_ns in reversed(came):
            if not survivors:  # more packets came than survived: judged as lost at random
                arrived[places[0]] = came_ns
                continue

            in_time = [survivor for survivor in survivors
                       if bottleneck.due(survivor[0], size) <= came_ns + TOLERANCE_NS]
            # If none can have arrived by then, the last one is judged as too early.
            latest = in_time[-1] if in_time else survivors[-1]
            survivors.remove(latest)
            arrived[latest[1]] = came_ns


def _judge_drop_tail(delivery: Delivery, link: Link, sent: Sequence[Frame],
                     arrived: list[int | None], through: Sequence[tuple[int, int]],
                     uncertain: Collection[int]) -> None:
    """Judge a drop-tail queue: it drops a packet if it is full when the packet comes, else never.

    Where fewer of several equal packets arrived, such as two resets, the first one that found room
    is the one that arrived. through: when each packet that random loss did not take comes to the
    queue, and its place. uncertain: places of packets that an outage may have taken instead of the
    queue.
    """
    bottleneck = shaper(link)
    later_equals = _later_equals(sent, [place for _, place in through])
    leaving: deque[int] = deque()  # when each packet in the queue leaves it
    for index, (reaches, place) in enumerate(through):
        frame, came_ns = sent[place], arrived[place]
        # The queues of HTB and of a single netem also hold packets that still propagate.
        enters = frame.time_ns if link.htb_burst_bytes or link.qdisc == "netem" else reaches
        while leaving and leaving[0] < enters - TOLERANCE_NS:
            leaving.popleft()

        if came_ns is None and place in later_equals and len(leaving) < link.queue_packets:
            due_ns = bottleneck.due(reaches, frame.wire_bytes)
            for later in later_equals[place]:
                later_ns = arrived[later]
                if later_ns is not None and -TOLERANCE_NS <= later_ns - due_ns <= delivery.late_ns:
                    came_ns, arrived[later] = later_ns, None
                    break

        if came_ns is None:
            held = len(leaving)
            if link.jitter_ms:
                held += _count_just_after(through, index, arrived)
            if held >= link.queue_packets:
                delivery.queue_drops.append(frame.number)
            elif place in uncertain:
                delivery.random_drops.append(frame.number)
            else:
                delivery.note_deviation(
                    frame, f"did not arrive though the queue held {len(leaving)} of"
                           f" {link.queue_packets} packets")
            continue

        if len(leaving) >= link.queue_packets:
            # Packets that leave at about the same time may be gone already.
            at_once = takewhile(lambda time: time <= enters + TOLERANCE_NS, leaving)
            if len(leaving) - len(list(at_once)) >= link.queue_packets:
                delivery.note_deviation(frame, f"arrived though the queue held {len(leaving)} of"
                                               f" {link.queue_packets} packets")
        delivery.compare(frame, came_ns, bottleneck.due(reaches, frame.wire_bytes))
        bottleneck.take(reaches, frame.wire_bytes, came_ns)
        leaving.append(came_ns)


def _later_equals(sent: Sequence[Frame], places: Sequence[int]) -> dict[int, list[int]]:
    """The places of later packets that are equal to a packet byte by byte, the last one first.

    They are by the place of that packet, for packets of which there are several.
    """
    by_head: dict[bytes, list[int]] = {}
    for place in places:
        by_head.setdefault(sent[place].head, []).append(place)
    return {place: equal[:index:-1] for equal in by_head.values() if len(equal) > 1
            for index, place in enumerate(equal)}


def _count_just_after(through: Sequence[tuple[int, int]], index: int,
                      arrived: Sequence[int | None]) -> int:
    """How many packets came to the queue at about the same time as one, or just after, and arrived.

    Jitter may have brought them first. index: of the one packet in `through`.
    """
    latest, count = through[index][0] + TOLERANCE_NS, 0
    for later in range(index + 1, len(through)):
        reaches, place = through[later]
        if reaches > latest:
            break
        count += arrived[place] is not None
    return count


def _judge_managed_queue(delivery: Delivery, link: Link, sent: Sequence[Frame],
                         arrived: Sequence[int | None], through: Sequence[tuple[int, int]],
                         uncertain: Collection[int]) -> None:
    """Judge fq_codel or cake, which choose the packets to drop and the connection that is next.

    They keep the order of a connection's packets, drop only packets that have to wait, and never
    leave the link idle. So each packet that arrives has to leave as soon as the link is free. After
    a timeout a connection is another flow for them (sk_rethink_txhash): packets from then on may
    overtake earlier ones. through, uncertain: as for _judge_drop_tail.
    """
    bottleneck = shaper(link)
    # Each packet's event, in time: when it arrived, or for a dropped one when it came to the queue;
    # then its place, and when it came to the queue.
    events = []
    for reaches, place in through:
        came_ns = arrived[place]
        events.append((reaches if came_ns is None else came_ns, place, reaches))
    events.sort()
    dropped_while_waiting = _dropped_while_waiting(events, arrived)

    # Packets that come at the same time are all queued before the first of them can leave.
    simultaneous: set[int] = set()  # the times at which several came to the queue
    for (earlier, _), (later, _) in pairwise(through):
        if later - earlier <= TOLERANCE_NS:
            simultaneous.update((earlier, later))

    # For each connection, of its packets that arrived, the last one to come to the queue: when it
    # came, and its place.
    last: dict[bytes, tuple[int, int]] = {}
    for event_ns, place, reaches in events:
        frame = sent[place]
        if arrived[place] is None:
            if place in uncertain:
                delivery.random_drops.append(frame.number)
            elif place in dropped_while_waiting or reaches in simultaneous or (
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
        delivery.compare(frame, event_ns, bottleneck.due(reaches, frame.wire_bytes))
        bottleneck.take(reaches, frame.wire_bytes, event_ns)


def _dropped_while_waiting(events: Sequence[tuple[int, int, int]], arrived: Sequence[int | None]
                           ) -> set[int]:
    """The places of dropped packets that came while a packet that arrived later was waiting.

    events: as in _judge_managed_queue.
    """
    places: set[int] = set()
    earliest = NEVER  # when the first of the packets that arrive after this event came to the queue
    for event_ns, place, reaches in reversed(events):
        if arrived[place] is None:
            if earliest <= event_ns:
                places.add(place)
        else:
            earliest = min(earliest, reaches)
    return places


def _goes_back(first: Frame, then: Frame) -> bool:
    """Whether `then`, which left after `first`, has a lower sequence number, as after a timeout."""
    # The sequence number is in bytes 4 to 7 of TCP's header, after 20 bytes of IPv4.
    offset = ETHERNET_BYTES + 20 + 4
    first_seq = int.from_bytes(first.head[offset:offset + 4], "big")
    then_seq = int.from_bytes(then.head[offset:offset + 4], "big")
    return (then_seq - first_seq) % (1 << 32) >= 1 << 31


def _connection(frame: Frame) -> bytes:
    """The protocol, the addresses and the ports in a frame.

    The frame has IPv4 without options, as the hosts of a trial send it.
    """
    protocol, addresses, ports = ETHERNET_BYTES + 9, ETHERNET_BYTES + 12, ETHERNET_BYTES + 20
    return frame.head[protocol:protocol + 1] + frame.head[addresses:ports + 4]


# What every workload compares ---------------------------------------------------------

SIDES = ("to_client", "to_server")  # the directions, in the order of `deliveries`
EITHER = "either"  # the cause of a drop by the queue or at random
PATH = "path"  # a value of a record's column judged_by
_EXAMPLES = 3  # deviations in a verdict's reason


def compare_path(path: Sequence[Delivery] | None, drops: Mapping[str, Mapping[str, int]]
             ) -> Iterable[Comparison]:
    """Compare each packet's arrival, and the number of drops with the qdiscs' counters.

    path: to the client and to the server; None in real time, which is not judged.
    drops: what the qdiscs counted for each of SIDES, by cause: "queue", "random", or EITHER if the
    counters do not distinguish these two; {} without counters.
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
