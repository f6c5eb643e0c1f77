"""When each packet has to arrive, and what causes a host to send a segment."""

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


TABLE = (0, 8192, -8192, 4096, -4096)  # a table of jitter, where 8192 is a standard deviation


def one_way(rate_kbps: float = 1000, **more: float | str) -> Link:
    """A link of 50 ms with room for 1000 packets. more: other fields."""
    return Link(delay_ms=50, rate_kbps=rate_kbps, queue_packets=1000,
                **more)  # type: ignore[arg-type]


def packet(time_ns: int, number: int, to_client: bool, size: int = 1514) -> Packet:
    """A segment of IPv4 and TCP. number: IPv4's identification, which no other packet has."""
    ends = (b"\0" * 5 + b"\1", b"\0" * 5 + b"\2")
    client, server = ends
    ethernet = (client + server if to_client else server + client) + b"\x08\0"
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, size - 14, number, 0, 64, 6, 0,
                     *((b"\n\0\0\2", b"\n\0\0\1") if to_client else (b"\n\0\0\1", b"\n\0\0\2")))
    ports = (80, 50000) if to_client else (50000, 80)
    return Packet(time_ns, ethernet + ip + struct.pack(">HH", *ports) + b"\0" * 16, size)


def judge(client: list[Packet], server: list[Packet], to_client: Link) -> Delivery:
    """The delivery of the packets to the client."""
    path = Path(to_client, one_way())
    return deliveries(stored.write(client), stored.write(server), path, lambda: TABLE)[0]


SERIALISED_NS = 12_112_000  # 1514 bytes at 1000 kbit/s
PROPAGATED_NS = 50_000_000 + 1  # each netem is a nanosecond late


def trial(count: int = 5) -> tuple[list[Packet], list[Packet]]:
    """The captures of client and server.

    The client sends a packet of 66 bytes at 0 ms, and the server so many at once at 60 ms.
    """
    request = packet(0, 9, False, 66)
    sent = [packet(60_000_000, number, True) for number in range(count)]
    arrived = [replace(one, time_ns=60_000_000 + PROPAGATED_NS + (number + 1) * SERIALISED_NS + 1)
               for number, one in enumerate(sent)]
    arrived_request = replace(request, time_ns=PROPAGATED_NS + 528_000 + 1)
    return [request, *arrived], [arrived_request, *sent]


def test_a_packet_propagates_queues_and_is_serialised() -> None:
    delivery = judge(*trial(), one_way())
    assert (delivery.sent, delivery.deviations, delivery.worst_ns) == (5, [], 0)


Tamper = Callable[[list[Packet], list[Packet]], tuple[list[Packet], list[Packet]]]


def moved(client: list[Packet], place: int, by_ns: int) -> list[Packet]:
    """The packets, with the one at this place by_ns later."""
    return [replace(one, time_ns=one.time_ns + by_ns) if number == place else one
            for number, one in enumerate(client)]


# Deviations count packets from 1: the client's request is 1, the server's five are 2 to 6.
@pytest.mark.parametrize(("tamper", "deviations"), [
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
    ids=("50 µs late", "2 µs early", "900 µs late", "lost", "doubled", "a byte longer",
         "a byte changed", "two swapped", "not sent"))
def test_each_tampered_packet_is_a_deviation(tamper: Tamper, deviations: list[str]) -> None:
    found = judge(*tamper(*trial()), one_way()).deviations
    assert [f"{deviation.number} {deviation.what}" for deviation in found] == deviations


@pytest.mark.parametrize("rate_kbps", [995.0, 1005.0])
def test_a_rate_that_is_half_a_percent_wrong_makes_every_packet_deviate(rate_kbps: float) -> None:
    assert len(judge(*trial(), one_way(rate_kbps)).deviations) == 5


def test_a_packet_is_dropped_if_the_queue_is_full_and_only_then() -> None:
    client, server = trial()
    short_queue = replace(one_way(), queue_packets=3)
    dropped = judge(client[:4], server, short_queue)
    assert (dropped.deviations, dropped.queue_drops, dropped.dropped) == ([], [5, 6], 2)
    (fifth, sixth) = judge(client, server, short_queue).deviations
    assert fifth.what == "arrived though the queue held 3 of 3 packets" and sixth.number == 6


def test_of_equal_packets_the_first_that_finds_room_arrives() -> None:
    """Two resets of a connection are equal. The queue has room for the first one only."""
    client, server = trial()
    server[5] = replace(server[4], time_ns=server[4].time_ns + 1_000_000)  # equal to server[4]
    full = judge(client[:5], server, replace(one_way(), queue_packets=4))
    assert (full.deviations, full.queue_drops) == ([], [6])
    roomy = judge(client[:5], server, one_way())
    assert [deviation.what for deviation in roomy.deviations] == [
        "did not arrive though the queue held 4 of 1000 packets"]


def test_random_loss_follows_from_the_seed() -> None:
    client, server = trial(20)
    lossy = one_way(loss_percent=30.0, seed=1006759911)
    lost = [place for place, reaches in enumerate(arrival_times(lossy, [0] * 20, ()))
            if reaches is None]
    assert 1 < len(lost) < 12
    kept = [one for number, one in enumerate(client[1:]) if number not in lost]
    # Lost packets take no time on the link, so the others arrive one after the other.
    arrived = [client[0], *(replace(one, time_ns=client[1 + place].time_ns)
                            for place, one in enumerate(kept))]
    delivery = judge(arrived, server, lossy)
    assert (delivery.deviations, delivery.random_drops) == ([], [2 + place for place in lost])
    with_other_seed = judge(arrived, server, replace(lossy, seed=1006759912)).deviations
    assert {deviation.what.partition(" though")[0] for deviation in with_other_seed} >= {
        "arrived", "did not arrive"}


def test_equal_packets_are_matched_by_which_can_have_arrived() -> None:
    """Of two equal packets, such as SYN-ACKs, the first may be lost, or overtaken by the second."""
    lossy = one_way(loss_percent=50.0, seed=3280387012)
    first, second = (reaches is None for reaches in arrival_times(lossy, [0, 0], ()))
    assert (first, second) == (True, False)
    client, server = trial(1)
    repeated = replace(server[1], time_ns=server[1].time_ns + 30_000_000)
    arrives = replace(client[1], time_ns=client[1].time_ns + 30_000_000)
    delivery = judge([client[0], arrives], [*server, repeated], lossy)
    assert (delivery.deviations, delivery.random_drops) == ([], [2])
    jittered = one_way(jitter_ms=20.0, seed=3)
    left = [server[1].time_ns, repeated.time_ns]
    times = [at_ns for at_ns in arrival_times(jittered, left, TABLE) if at_ns is not None]
    arrived = [replace(client[1], time_ns=at_ns + SERIALISED_NS + 1) for at_ns in sorted(times)]
    assert judge([client[0], *arrived], [*server, repeated], jittered).deviations == []


def test_equal_packets_that_all_arrive_too_early_are_deviations_each() -> None:
    client, server = trial(1)
    repeated = replace(server[1], time_ns=server[1].time_ns + 30_000_000)
    early = [replace(client[1], time_ns=server[1].time_ns + at_ns) for at_ns in (1_000, 2_000)]
    deviations = judge([client[0], *early], [*server, repeated], one_way()).deviations
    assert len(deviations) == 2
    assert all(deviation.what.endswith("µs too early") for deviation in deviations)


def test_a_packet_may_be_late_by_two_microseconds_and_by_more_after_another_one_left() -> None:
    """Timers wait for each other, in whole microseconds."""
    client, server = trial(2)
    assert not judge(moved(client, 2, 2_004), server, one_way()).deviations
    assert judge(moved(client, 2, 2_006), server, one_way()).deviations
    left_before = packet(client[2].time_ns - 500, 77, False, 66)
    late = moved([*client[:2], left_before, client[2]], 3, 2_500)
    assert not judge(late, server, one_way()).deviations  # 3 µs after the other packet
    assert judge(moved(late, 3, 300), server, one_way()).deviations


def test_bursts_of_losses_have_the_requested_share_and_mean_length() -> None:
    bursts = one_way(loss_percent=20.0, loss_burst=4.0, seed=77)
    is_lost = [reaches is None for reaches in arrival_times(bursts, range(20_000), ())]
    assert not is_lost[0]
    assert sum(is_lost) / len(is_lost) == pytest.approx(0.2, abs=0.02)
    bursts_begun = sum(now and not before for before, now in zip(is_lost, is_lost[1:]))
    assert sum(is_lost) / bursts_begun == pytest.approx(4, abs=0.3)


def test_jitter_follows_from_the_seed_and_the_table() -> None:
    jittered = one_way(jitter_ms=2.0, seed=5)
    drawn = [TABLE[number % len(TABLE)] for _, number in zip(range(6), random_numbers(5))]
    times = arrival_times(jittered, [0] * 6, TABLE)
    assert times == [PROPAGATED_NS + round(2e6 * deviation / 8192) for deviation in drawn]


@pytest.mark.parametrize("apart_ns, holds", [(9_999, True), (10_001, False)])
def test_of_two_packets_that_jitter_makes_simultaneous_either_may_be_first(
        apart_ns: int, holds: bool) -> None:
    """Calls of a program may delay a packet by up to 10 µs."""
    jittered = one_way(jitter_ms=2.0, seed=5)  # draws 2 ms for the first, nothing for the second
    client, server = trial(2)
    server[2] = replace(server[2], time_ns=server[1].time_ns + 2_000_000 + apart_ns)
    begins_ns = server[2].time_ns + PROPAGATED_NS
    arrived = [replace(client[2], time_ns=begins_ns + SERIALISED_NS + 1),
               replace(client[1], time_ns=begins_ns + 2 * SERIALISED_NS + 2)]
    assert (not judge([client[0], *arrived], server, jittered).deviations) is holds


@pytest.mark.parametrize(("apart_ns", "explained"), [(900, True), (1_100, False)])
def test_jitter_may_bring_a_packet_before_one_that_finds_the_queue_full(apart_ns: int,
                                                                        explained: bool) -> None:
    jittered = replace(one_way(jitter_ms=2.0, seed=5), queue_packets=1)  # 2 ms, then nothing
    client, server = trial(2)
    server[2] = replace(server[2], time_ns=server[1].time_ns + 2_000_000 + apart_ns)
    arrived = replace(client[2], time_ns=server[2].time_ns + PROPAGATED_NS + SERIALISED_NS + 1)
    delivery = judge([client[0], arrived], server, jittered)
    assert (delivery.queue_drops == [2], not delivery.deviations) == (explained, explained)


@pytest.mark.parametrize(("queue_packets", "queue", "random"), [(4, [6], []), (5, [], [6])])
def test_a_packet_at_the_edge_of_an_outage_is_dropped_by_a_full_queue_first(
        queue_packets: int, queue: list[int], random: list[int]) -> None:
    client, server = trial()
    left_ms = (server[5].time_ns - client[0].time_ns) / 1e6
    with_outage = replace(one_way(), queue_packets=queue_packets,
                          outage_ms=(left_ms + 1, left_ms + 9))
    delivery = judge(client[:5], server, with_outage)
    assert (delivery.deviations, delivery.queue_drops, delivery.random_drops) == ([], queue, random)


# Stored trials: real captures with every kind of queue and loss -----------------------

@pytest.mark.parametrize("name", stored.NAMES)
def test_a_rate_that_is_half_a_percent_wrong_fails_in_real_captures(name: str) -> None:
    real = stored.load(name)
    assert "path" in real.judge().judged_by
    kbps = real.trial.bandwidth_kbps
    for other in (kbps * 1.005, kbps / 1.005):
        if not real.trial.integer_kbps:
            assert "path: observed" in real.requested(bandwidth_kbps=other).judge().verdict_reason


KINDS = ("iw10", "as_published", "cake_full", "fq_codel_full", "jitter_and_bursts", "paced",
         "uplink_full")


def to_client(packets: list[Packet]) -> list[Packet]:
    """The packets of the server: their source MAC is not that of the first packet, a SYN."""
    return [one for one in packets if one.frame[6:12] != packets[0].frame[6:12]]


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("by_ns", [50_000, -50_000])
def test_a_packet_that_arrives_50_us_off_fails_in_real_captures(name: str, by_ns: int) -> None:
    """One in four of the packets is moved, one at a time, behind every kind of queue."""
    real = stored.load(name)
    packets = stored.read(real.client)
    for moved_one in to_client(packets)[::4]:
        tampered = [replace(one, time_ns=one.time_ns + by_ns) if one is moved_one else one
                    for one in packets]
        reason = real.captured(client=tampered).judge().verdict_reason
        when = "late" if by_ns > 0 else "early"
        assert "path: observed" in reason and f" µs too {when}" in reason


@pytest.mark.parametrize("name", KINDS)
def test_a_missing_or_doubled_packet_fails_in_real_captures(name: str) -> None:
    real = stored.load(name)
    packets = stored.read(real.client)
    first = to_client(packets)[0]  # the queue was empty when it left
    reason = real.captured(client=[one for one in packets if one is not first]
                           ).judge().verdict_reason
    assert "did not arrive though" in reason
    reason = real.captured(client=[*packets, replace(first, time_ns=packets[-1].time_ns)]
                           ).judge().verdict_reason
    assert "arrived twice" in reason


@pytest.mark.parametrize("name", ["cake_full", "fq_codel_full"])
def test_two_swapped_packets_of_a_flow_fail_behind_a_queue_of_flows(name: str) -> None:
    real = stored.load(name)
    packets = stored.read(real.client)
    first, second = [one for one in to_client(packets) if one.wire_bytes == 1514][:2]
    swapped = [one for one in packets if one is not first and one is not second]
    swapped += [replace(second, time_ns=first.time_ns), replace(first, time_ns=second.time_ns)]
    assert "arrived after one that left later" in real.captured(client=swapped
                                                                ).judge().verdict_reason


@pytest.mark.parametrize(("first_seq", "deviations"), [
    (2000, []), (500, ["arrived after one that left later"])])
def test_a_retransmission_after_a_timeout_may_overtake_like_another_flow(
        first_seq: int, deviations: list[str]) -> None:
    """The second packet leaves 0.3 ms after the first one, with the bytes from 1000 on.

    It is a retransmission where the first one has later bytes.
    """
    def numbered(sent: Packet, seq: int) -> Packet:
        return replace(sent, frame=sent.frame[:38] + struct.pack(">I", seq) + sent.frame[42:])

    client, server = trial(2)
    first = numbered(server[1], first_seq)
    second = replace(numbered(server[2], 1000), time_ns=first.time_ns + 300_000)
    of_flows = one_way(qdisc="fq_codel")
    begins_ns = second.time_ns + PROPAGATED_NS
    arrived = [client[0], replace(second, time_ns=begins_ns),
               replace(first, time_ns=begins_ns + SERIALISED_NS)]
    found = judge(arrived, [server[0], first, second], of_flows).deviations
    assert [deviation.what for deviation in found
            if deviation.what.startswith("arrived after")] == deviations


# What causes a host to send -----------------------------------------------------------

GOOD = stored.load("iw3")
EXCHANGE = read_exchange(GOOD.client, GOOD.server)
TICK_NS = EXCHANGE.at_client[0].time_ns - 2000  # a tick of the clock, one every millisecond
DATA = [segment for segment in EXCHANGE.at_server if segment.payload_bytes and segment.to_client]
ARRIVALS_NS = [segment.time_ns for segment in EXCHANGE.at_server if not segment.to_client]


def sent_at(when_ns: int) -> Exchange:
    """The exchange as if the server's last segment of data had left at when_ns.

    Nothing arrives at the server between the time at which it really left and when_ns.
    """
    kept: list[Segment] = [segment for segment in EXCHANGE.at_server
                           if segment.time_ns <= DATA[-1].time_ns and segment is not DATA[-1]]
    return replace(EXCHANGE, at_server=(*kept, DATA[-1]._replace(time_ns=when_ns)))


def ticks_later(count: int) -> int:
    """The time, in ns, of a tick after the last segment of data left."""
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


def test_data_on_a_tick_has_a_cause_although_an_acknowledgement_left_just_before() -> None:
    """Linux holds duplicate acknowledgements back, by a timer that is not bound to ticks."""
    when = ticks_later(20)
    sent = sent_at(when)
    for since_ns, passes in ((0, True), (-1_000, False)):
        data = sent.at_server[-1]._replace(time_ns=when + since_ns)
        held_back = data._replace(time_ns=when - 2_900, payload_bytes=0)
        found = find_uncaused(replace(sent, at_server=(*sent.at_server[:-1], held_back, data)),
                              TICK_NS)
        assert (not found) == passes


@pytest.mark.parametrize(("late_ns", "passes"), [(1_000, True), (4_000, False), (30_000, False)])
def test_an_answer_that_leaves_microseconds_late_has_no_cause(late_ns: int, passes: bool) -> None:
    late = [segment._replace(time_ns=segment.time_ns + late_ns) if segment is DATA[0] else segment
            for segment in EXCHANGE.at_server]
    found = find_uncaused(replace(EXCHANGE, at_server=tuple(late)), TICK_NS)
    assert (not found) == passes


def test_a_requested_pause_is_a_cause() -> None:
    begins_ns = max(time_ns for time_ns in ARRIVALS_NS if time_ns <= DATA[-1].time_ns)
    when = begins_ns + 40 * MS + 7_000
    tick_ns = when - MS // 2  # no tick is near
    assert find_uncaused(sent_at(when), tick_ns)
    assert not find_uncaused(sent_at(when), tick_ns, Pauses(server_ns=40 * MS))
    assert find_uncaused(sent_at(when), tick_ns, Pauses(client_ns=40 * MS))
    assert find_uncaused(sent_at(when + 6_000), tick_ns, Pauses(server_ns=40 * MS))
    assert find_uncaused(sent_at(when), tick_ns, Pauses(server_ns=41 * MS))
    assert find_uncaused(sent_at(when), tick_ns, Pauses(server_ns=30 * MS))


def test_data_after_a_pause_may_leave_right_after_a_timers_acknowledgement() -> None:
    """Such an acknowledgement may leave at any time, so it does not explain the data after it."""
    begins_ns = max(time_ns for time_ns in ARRIVALS_NS if time_ns <= DATA[-1].time_ns)
    when = begins_ns + 40 * MS
    tick_ns = when - MS // 2
    sent = sent_at(when)
    data = sent.at_server[-1]
    held_back = data._replace(time_ns=when - 2_900, payload_bytes=0)
    both = replace(sent, at_server=(*sent.at_server[:-1], held_back, data))
    assert not find_uncaused(both, tick_ns, Pauses(server_ns=40 * MS))
    assert find_uncaused(both, tick_ns, Pauses(server_ns=41 * MS)) == (data,)
