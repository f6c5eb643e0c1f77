"""Deliveries: when each packet arrives, and why a host sent."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace

import pytest

from firstflight.net.link import Link, Path
from firstflight.net.segments import MS, Segment
from firstflight.wire.delivery.host import Pauses, find_uncaused
from firstflight.wire.delivery.packet_path import Delivery, deliveries
from firstflight.wire.delivery.qdiscs import arrival_times, random_numbers
from firstflight.wire.exchange import Exchange, read_exchange
from tests.golden import stored
from tests.golden.stored import Packet


TABLE = (0, 8192, -8192, 4096, -4096)  # of a distribution: one standard deviation is 8192


def way(rate_kbps: float = 1000, **more: float | str) -> Link:
    return Link(delay_ms=50, rate_kbps=rate_kbps, queue_packets=1000,
                **more)  # type: ignore[arg-type]


def packet(time_ns: int, number: int, to_client: bool, size: int = 1514) -> Packet:
    """A segment of IPv4 and TCP; number: what tells it from others."""
    ends = (b"\0" * 5 + b"\1", b"\0" * 5 + b"\2")
    client, server = ends
    ethernet = (client + server if to_client else server + client) + b"\x08\0"
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, size - 14, number, 0, 64, 6, 0,
                     *((b"\n\0\0\2", b"\n\0\0\1") if to_client else (b"\n\0\0\1", b"\n\0\0\2")))
    ports = (80, 50000) if to_client else (50000, 80)
    return Packet(time_ns, ethernet + ip + struct.pack(">HH", *ports) + b"\0" * 16, size)


def judge(client: list[Packet], server: list[Packet], to_client: Link) -> Delivery:
    """Of what was sent to the client."""
    path = Path(to_client, way())
    return deliveries(stored.write(client), stored.write(server), path, lambda: TABLE)[0]


SERIALISED_NS = 12_112_000  # 1514 bytes at 1000 kbit/s
PROPAGATED_NS = 50_000_000 + 1  # a nanosecond late


def trial(count: int = 5) -> tuple[list[Packet], list[Packet]]:
    """A packet of the client's, then so many of the server's at once."""
    asks = packet(0, 9, False, 66)
    sent = [packet(60_000_000, number, True) for number in range(count)]
    came = [replace(each, time_ns=60_000_000 + PROPAGATED_NS + (number + 1) * SERIALISED_NS + 1)
            for number, each in enumerate(sent)]
    requested = replace(asks, time_ns=PROPAGATED_NS + 528_000 + 1)
    return [asks, *came], [requested, *sent]


def test_a_packet_propagates_queues_and_is_serialised() -> None:
    delivery = judge(*trial(), way())
    assert (delivery.sent, delivery.deviations, delivery.worst_ns) == (5, [], 0)


Tamper = Callable[[list[Packet], list[Packet]], tuple[list[Packet], list[Packet]]]


def moved(client: list[Packet], place: int, by_ns: int) -> list[Packet]:
    return [replace(each, time_ns=each.time_ns + by_ns) if number == place else each
            for number, each in enumerate(client)]


@pytest.mark.parametrize(("tamper", "told"), [
    (lambda client, server: (moved(client, 5, 50_000), server),
     ["6 arrived 50.000 µs too late"]),
    (lambda client, server: (moved(client, 5, -2_000), server),
     ["6 arrived 2.000 µs too early"]),
    (lambda client, server: (client[:5] + moved(client, 5, 900_000)[5:], server),
     ["6 arrived 900.000 µs too late"]),
    (lambda client, server: (client[:5], server),
     ["6 did not arrive though the queue held 4 of 1000 packets"]),
    (lambda client, server: (client + client[-1:], server), ["7 arrived twice"]),
    (lambda client, server: (client[:-1] + [replace(client[-1], wire_bytes=1515)], server),
     ["6 arrived and nobody sent it so",
      "6 did not arrive though the queue held 4 of 1000 packets"]),
    (lambda client, server: (client[:-1] + [replace(
        client[-1], frame=client[-1].frame[:-1] + b"\1")], server),
     ["6 arrived and nobody sent it so",
      "6 did not arrive though the queue held 4 of 1000 packets"]),
    (lambda client, server: (client[:4] + [replace(client[5], time_ns=client[4].time_ns),
                                           replace(client[4], time_ns=client[5].time_ns)], server),
     ["5 arrived 12112.000 µs too late", "6 arrived 12112.000 µs too early"]),
    (lambda client, server: (client, server[:5]), ["6 arrived and nobody sent it so"])],
    ids=("late", "early", "last", "lost", "doubled", "a byte more", "a byte changed", "swapped",
         "from nowhere"))
def test_each_tampered_packet_is_a_deviation(tamper: Tamper, told: list[str]) -> None:
    found = [f"{each.number} {each.what}" for each in judge(*tamper(*trial()), way()).deviations]
    assert found == told


@pytest.mark.parametrize("rate_kbps", [995.0, 1005.0])
def test_a_rate_half_a_percent_off_is_a_deviation(rate_kbps: float) -> None:
    assert len(judge(*trial(), way(rate_kbps)).deviations) == 5


def test_a_packet_is_dropped_if_the_queue_is_full_and_only_then() -> None:
    client, server = trial()
    short = replace(way(), queue_packets=3)
    dropped = judge(client[:4], server, short)
    assert (dropped.deviations, dropped.queue_drops, dropped.dropped) == ([], [5, 6], 2)
    (late, later) = judge(client, server, short).deviations
    assert late.what == "arrived though the queue held 3 of 3 packets" and later.number == 6


def test_of_equal_packets_the_first_that_finds_room_arrives() -> None:
    """Two resets of one connection: the queue has room for the first, and none for the second."""
    client, server = trial()
    server[5] = replace(server[4], time_ns=server[4].time_ns + 1_000_000)  # the same once more
    full = judge(client[:5], server, replace(way(), queue_packets=4))
    assert (full.deviations, full.queue_drops) == ([], [6])
    roomy = judge(client[:5], server, way())
    assert [each.what for each in roomy.deviations] == [
        "did not arrive though the queue held 4 of 1000 packets"]


def test_random_loss_follows_from_the_seed() -> None:
    client, server = trial(20)
    lossy = way(loss_percent=30.0, seed=1006759911)
    lost = [place for place, reaches in enumerate(arrival_times(lossy, [0] * 20, ()))
            if reaches is None]
    assert 1 < len(lost) < 12
    kept = [each for number, each in enumerate(client[1:]) if number not in lost]
    arrived = [client[0], *(replace(each, time_ns=client[1 + place].time_ns)
                            for place, each in enumerate(kept))]
    delivery = judge(arrived, server, lossy)
    assert (delivery.deviations, delivery.random_drops) == ([], [2 + place for place in lost])
    other = judge(arrived, server, replace(lossy, seed=1006759912)).deviations
    assert {each.what.partition(" though")[0] for each in other} >= {"arrived", "did not arrive"}


def test_equal_packets_are_matched_by_which_can_have_arrived() -> None:
    """As SYN-ACKs are, and what a program sends twice: one is lost, or one overtakes the other."""
    lossy = way(loss_percent=50.0, seed=3280387012)
    first, second = (reaches is None for reaches in arrival_times(lossy, [0, 0], ()))
    assert (first, second) == (True, False)
    client, server = trial(1)
    again = replace(server[1], time_ns=server[1].time_ns + 30_000_000)
    arrives = replace(client[1], time_ns=client[1].time_ns + 30_000_000)
    delivery = judge([client[0], arrives], [*server, again], lossy)
    assert (delivery.deviations, delivery.random_drops) == ([], [2])
    jittered = way(jitter_ms=20.0, seed=3)
    left = [server[1].time_ns, again.time_ns]
    times = [at for at in arrival_times(jittered, left, TABLE) if at is not None]
    came = [replace(client[1], time_ns=at + SERIALISED_NS + 1) for at in sorted(times)]
    assert judge([client[0], *came], [*server, again], jittered).deviations == []


def test_equal_packets_that_all_arrive_too_early_are_deviations_each() -> None:
    client, server = trial(1)
    again = replace(server[1], time_ns=server[1].time_ns + 30_000_000)
    early = [replace(client[1], time_ns=server[1].time_ns + at_ns) for at_ns in (1_000, 2_000)]
    told = judge([client[0], *early], [*server, again], way()).deviations
    assert len(told) == 2 and all(each.what.endswith("µs too early") for each in told)


def test_four_timers_may_wait_for_each_other_by_whole_microseconds() -> None:
    client, server = trial(2)
    assert not judge(moved(client, 2, 2_004), server, way()).deviations
    assert judge(moved(client, 2, 2_006), server, way()).deviations
    woken = packet(client[2].time_ns - 500, 77, False, 66)  # something that left just before
    late = moved([*client[:2], woken, client[2]], 3, 2_500)
    assert not judge(late, server, way()).deviations  # 3 µs after it
    assert judge(moved(late, 3, 300), server, way()).deviations


def test_bursts_begin_outside_and_end_by_chance() -> None:
    bursts = way(loss_percent=20.0, loss_burst=4.0, seed=77)
    taken = [reaches is None for reaches in arrival_times(bursts, range(20_000), ())]
    assert not taken[0]
    assert sum(taken) / len(taken) == pytest.approx(0.2, abs=0.02)
    begins = sum(now and not before for before, now in zip(taken, taken[1:]))
    assert sum(taken) / begins == pytest.approx(4, abs=0.3)


def test_jitter_follows_from_the_seed_and_the_table() -> None:
    jittered = way(jitter_ms=2.0, seed=5)
    drawn = [TABLE[number % len(TABLE)] for _, number in zip(range(6), random_numbers(5))]
    times = arrival_times(jittered, [0] * 6, TABLE)
    assert times == [PROPAGATED_NS + round(2e6 * each / 8192) for each in drawn]


@pytest.mark.parametrize("apart_ns, holds", [(9_999, True), (10_001, False)])
def test_of_two_packets_that_jitter_makes_simultaneous_either_may_be_first(
        apart_ns: int, holds: bool) -> None:
    """Such calls as a program makes meanwhile delay what leaves, up to 10 µs."""
    jittered = way(jitter_ms=2.0, seed=5)  # draws 2 ms for the first, nothing for the second
    client, server = trial(2)
    server[2] = replace(server[2], time_ns=server[1].time_ns + 2_000_000 + apart_ns)
    begins_ns = server[2].time_ns + PROPAGATED_NS
    came = [replace(client[place], time_ns=begins_ns + count * SERIALISED_NS + count)
            for count, place in ((1, 2), (2, 1))]
    assert (not judge([client[0], *came], server, jittered).deviations) is holds


@pytest.mark.parametrize(("apart_ns", "explained"), [(900, True), (1_100, False)])
def test_jitter_may_bring_a_packet_before_one_that_finds_the_queue_full(apart_ns: int,
                                                                        explained: bool) -> None:
    jittered = replace(way(jitter_ms=2.0, seed=5), queue_packets=1)  # 2 ms, then nothing
    client, server = trial(2)
    server[2] = replace(server[2], time_ns=server[1].time_ns + 2_000_000 + apart_ns)
    came = replace(client[2], time_ns=server[2].time_ns + PROPAGATED_NS + SERIALISED_NS + 1)
    delivery = judge([client[0], came], server, jittered)
    assert (delivery.queue_drops == [2], not delivery.deviations) == (explained, explained)


@pytest.mark.parametrize(("queue_packets", "queue", "random"), [(4, [6], []), (5, [], [6])])
def test_at_the_edge_of_an_outage_a_full_queue_drops_first(queue_packets: int, queue: list[int],
                                                           random: list[int]) -> None:
    client, server = trial()
    since_ms = (server[5].time_ns - client[0].time_ns) / 1e6
    edge = replace(way(), queue_packets=queue_packets, outage_ms=(since_ms + 1, since_ms + 9))
    delivery = judge(client[:5], server, edge)
    assert (delivery.deviations, delivery.queue_drops, delivery.random_drops) == ([], queue, random)


# The stored trials: real captures of every kind that the path has to explain.

@pytest.mark.parametrize("name", stored.NAMES)
def test_a_rate_half_a_percent_off_fails_in_real_captures(name: str) -> None:
    real = stored.load(name)
    assert "path" in real.judge().judged_by
    kbps = real.trial.bandwidth_kbps
    for other in (kbps * 1.005, kbps / 1.005):
        if not real.trial.integer_kbps:
            assert "path: observed" in real.requested(bandwidth_kbps=other).judge().verdict_reason


KINDS = ("iw10", "as_published", "cake_full", "fq_codel_full", "jitter_and_bursts", "paced",
         "uplink_full")


def to_client(packets: list[Packet]) -> list[Packet]:
    return [each for each in packets if each.frame[6:12] != packets[0].frame[6:12]]


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("by_ns", [50_000, -50_000])
def test_a_packet_that_arrives_50_us_off_fails_in_real_captures(name: str, by_ns: int) -> None:
    """Behind every kind of queue: each of the packets in turn."""
    real = stored.load(name)
    packets = stored.read(real.client)
    for moved_one in to_client(packets)[::4]:
        tampered = [replace(each, time_ns=each.time_ns + by_ns) if each is moved_one else each
                    for each in packets]
        reason = real.captured(client=tampered).judge().verdict_reason
        when = "late" if by_ns > 0 else "early"
        assert "path: observed" in reason and f" µs too {when}" in reason


@pytest.mark.parametrize("name", KINDS)
def test_a_missing_or_doubled_packet_fails_in_real_captures(name: str) -> None:
    real = stored.load(name)
    packets = stored.read(real.client)
    gone = to_client(packets)[0]  # nothing is before it
    reason = real.captured(client=[each for each in packets if each is not gone]
                           ).judge().verdict_reason
    assert "did not arrive though" in reason
    reason = real.captured(client=[*packets, replace(gone, time_ns=packets[-1].time_ns)]
                           ).judge().verdict_reason
    assert "arrived twice" in reason


@pytest.mark.parametrize("name", ["cake_full", "fq_codel_full"])
def test_a_queue_of_flows_keeps_the_order_of_packets_sent_together(name: str) -> None:
    real = stored.load(name)
    packets = stored.read(real.client)
    first, second = [each for each in to_client(packets) if each.wire_bytes == 1514][:2]
    swapped = [replace(second, time_ns=first.time_ns) if each is first else
               replace(first, time_ns=second.time_ns) if each is second else each
               for each in packets]
    assert "arrived after one that left later" in real.captured(client=swapped
                                                                ).judge().verdict_reason


@pytest.mark.parametrize(("first_seq", "told"), [
    (2000, []), (500, ["arrived after one that left later"])])
def test_a_retransmission_after_a_timeout_may_overtake_like_another_flow(
        first_seq: int, told: list[str]) -> None:
    """The second packet left 0.3 ms behind the first, with the bytes from 1000 on."""
    def numbered(sent: Packet, seq: int) -> Packet:
        return replace(sent, frame=sent.frame[:38] + struct.pack(">I", seq) + sent.frame[42:])

    client, server = trial(2)
    first = numbered(server[1], first_seq)
    second = replace(numbered(server[2], 1000), time_ns=first.time_ns + 300_000)
    full = way(qdisc="fq_codel")
    came = [client[0], *(replace(each, time_ns=second.time_ns + PROPAGATED_NS + after_ns)
                         for each, after_ns in ((second, 0), (first, SERIALISED_NS)))]
    found = judge(came, [server[0], first, second], full).deviations
    assert [each.what for each in found if each.what.startswith("arrived after")] == told


# Why a host sent ----------------------------------------------------------------------

GOOD = stored.load("iw3")
EXCHANGE = read_exchange(GOOD.client, GOOD.server)
TICK_NS = EXCHANGE.at_client[0].time_ns - 2000
DATA = [segment for segment in EXCHANGE.at_server if segment.payload_bytes and segment.to_client]
CAME = [segment.time_ns for segment in EXCHANGE.at_server if not segment.to_client]


def sent_at(when_ns: int) -> Exchange:
    """As if the server's last segment of data had left then, and nothing had come meanwhile."""
    kept: list[Segment] = [segment for segment in EXCHANGE.at_server
                           if segment.time_ns <= DATA[-1].time_ns and segment is not DATA[-1]]
    return replace(EXCHANGE, at_server=(*kept, DATA[-1]._replace(time_ns=when_ns)))


def ticks_later(count: int) -> int:
    return TICK_NS + (DATA[-1].time_ns - TICK_NS) // MS * MS + count * MS


def test_every_segment_of_a_sound_exchange_has_a_cause() -> None:
    assert not find_uncaused(EXCHANGE, TICK_NS)


@pytest.mark.parametrize("since_tick_ns", [1_500, 100_000, 300_000, 900_000, 999_500])
def test_data_that_leaves_between_ticks_has_no_cause(since_tick_ns: int) -> None:
    when = ticks_later(20) + since_tick_ns
    (found,) = find_uncaused(sent_at(when), TICK_NS)
    assert found.time_ns == when
    assert not find_uncaused(sent_at(when), when)


@pytest.mark.parametrize("late_ns", [-200, 0, 100, 900])
def test_a_timer_fires_on_a_tick(late_ns: int) -> None:
    assert not find_uncaused(sent_at(ticks_later(20) + late_ns), TICK_NS)


def test_an_acknowledgement_just_before_a_tick_takes_nothing_from_its_timer() -> None:
    """Linux holds duplicate acknowledgements back by a timer of nanoseconds."""
    when = ticks_later(20)
    sent = sent_at(when)
    for since_ns, passes in ((0, True), (-1_000, False)):
        data = sent.at_server[-1]._replace(time_ns=when + since_ns)
        held_back = data._replace(time_ns=when - 2_900, payload_bytes=0)
        found = find_uncaused(replace(sent, at_server=(*sent.at_server[:-1], held_back, data)),
                              TICK_NS)
        assert (not found) == passes


@pytest.mark.parametrize(("late_ns", "passes"), [(1_000, True), (4_000, False), (30_000, False)])
def test_a_server_answers_at_once(late_ns: int, passes: bool) -> None:
    late = [segment._replace(time_ns=segment.time_ns + late_ns) if segment is DATA[0] else segment
            for segment in EXCHANGE.at_server]
    found = find_uncaused(replace(EXCHANGE, at_server=tuple(late)), TICK_NS)
    assert (not found) == passes


def test_a_requested_pause_is_a_cause() -> None:
    begun = max(each for each in CAME if each <= DATA[-1].time_ns)
    when = begun + 40 * MS + 7_000
    tick_ns = when - MS // 2  # as far from a tick as can be
    assert find_uncaused(sent_at(when), tick_ns)
    assert not find_uncaused(sent_at(when), tick_ns, Pauses(server_ns=40 * MS))
    assert find_uncaused(sent_at(when), tick_ns, Pauses(client_ns=40 * MS))
    assert find_uncaused(sent_at(when + 6_000), tick_ns, Pauses(server_ns=40 * MS))
    assert find_uncaused(sent_at(when), tick_ns, Pauses(server_ns=41 * MS))
    assert find_uncaused(sent_at(when), tick_ns, Pauses(server_ns=30 * MS))


def test_data_after_a_pause_may_leave_right_after_a_timers_acknowledgement() -> None:
    """That timer fires when it likes: what leaves just behind it has a cause of its own."""
    begun = max(each for each in CAME if each <= DATA[-1].time_ns)
    when = begun + 40 * MS
    tick_ns = when - MS // 2
    sent = sent_at(when)
    data = sent.at_server[-1]
    held_back = data._replace(time_ns=when - 2_900, payload_bytes=0)
    both = replace(sent, at_server=(*sent.at_server[:-1], held_back, data))
    assert not find_uncaused(both, tick_ns, Pauses(server_ns=40 * MS))
    assert find_uncaused(both, tick_ns, Pauses(server_ns=41 * MS)) == (data,)
