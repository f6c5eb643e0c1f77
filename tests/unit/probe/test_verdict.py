"""What a probe says: the flight before anything was sent again, and what limited it."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from firstflight.net.headers import ACK, SYN
from firstflight.probe import verdict

FIRST, MSS = 0xFFFFFF00, 1448  # the numbers pass their circle within the flight
RTT_MS = 40.0


class Packet(NamedTuple):
    """As firstflight.probe.tap has it."""

    time_ns: int
    to_client: bool
    seq: int
    ack: int
    flags: int
    window: int
    payload_bytes: int
    segment_bytes: int
    stamp: int | None


def data(at_ms: float, start: int, size: int = MSS, merged: int = 0, stamp: bool = True,
         sent_ms: float | None = None) -> Packet:
    """From the server; sent_ms: by its clock, half a round trip before it came."""
    sent_ms = at_ms - RTT_MS / 2 if sent_ms is None else sent_ms
    return Packet(round(at_ms * 1e6), True, (FIRST + start) % (1 << 32), 1, ACK, 64, size, merged,
                  round(1000 + sent_ms) if stamp else None)


def seen(*packets: Packet, **more: Any) -> verdict.ProbedConnection:
    """A connection whose request leaves at 40 ms."""
    syn_ack = Packet(20_000_000, True, FIRST - 1, 1, SYN | ACK, 64, 0, 0, 1000)
    requested = Packet(40_000_000, False, 1, FIRST, ACK, 64, 100, 0, 7)
    response = verdict.Response(200, "", 20 * MSS, False, 100_000)
    of_response = {name: more.pop(name) for name in response._fields if name in more}
    return verdict.ProbedConnection(RTT_MS, 0, 65536, 10, MSS, [syn_ack], [requested, *packets],
                                    True, [],
                                    response._replace(**of_response))._replace(**more)


def flight(count: int, from_ms: float = 80.0, each_ms: float = 0.0, **more: Any) -> list[Packet]:
    return [data(from_ms + each_ms * place, place * MSS, **more) for place in range(count)]


AGAIN = data(330, 0)


def test_the_flight_is_what_came_before_it_was_sent_again() -> None:
    found = verdict.judge_probe(seen(*flight(10), AGAIN, data(600, 10 * MSS)))
    assert (found.segments, found.payload_bytes, found.mss) == (10, 10 * MSS, MSS)
    assert found.limit == ("the server's initial window: the response goes on, and there is room"
                           " for it")
    assert verdict.lines(found) == [
        "first flight: 10 segments, 14480 bytes", f"limited by {found.limit}",
        "RTT 40.0 ms, 1448 bytes in a full segment; the response has 100000 bytes with its head",
        "measured by a capture of this connection"]


def test_what_comes_in_another_order_or_joined_with_more_when_it_is_sent_again() -> None:
    first, second, *others = flight(10)
    assert verdict.judge_probe(seen(second, first, *others, AGAIN)).segments == 10
    joined = data(330, 9 * MSS, 2 * MSS)  # (tcp_retrans_try_collapse)
    assert verdict.judge_probe(seen(first, second, *others, joined)).segments == 10


def test_merged_frames_are_taken_apart() -> None:
    merged = [data(80, 0, 4 * MSS, MSS), data(80, 4 * MSS, 5 * MSS + 10, MSS)]
    found = verdict.judge_probe(seen(*merged, AGAIN))
    assert found.segments == 10 and found.mss == MSS and found.full is False


def test_a_timers_probe_does_not_count() -> None:
    probe = data(80 + 2.2 * RTT_MS, 10 * MSS)
    assert verdict.judge_probe(seen(*flight(10), probe, AGAIN)).segments == 10
    again = data(80 + 2.2 * RTT_MS, 9 * MSS)
    assert verdict.judge_probe(seen(*flight(10), again, AGAIN)).segments == 10


@pytest.mark.parametrize("probe", [data(170, 9 * MSS), data(170, 10 * MSS, 700)])
def test_a_timers_probe_shows_that_the_program_had_written_no_more(probe: Packet) -> None:
    """It repeats the last segment, or has a tail that waited for an acknowledgement."""
    found = verdict.judge_probe(seen(*flight(10), probe, AGAIN))
    assert (found.segments, found.is_window) == (10, False)
    assert found.limit == ("the server's program, which had written no more: the server's initial"
                           " window is at least 10 segments")
    assert "--iw" not in (verdict.next_command(found) or "")


def test_a_probe_that_arrives_with_the_flight_is_known_by_the_servers_clock() -> None:
    slow = flight(10, each_ms=12.0, sent_ms=60.0)
    probe = data(200, 10 * MSS, sent_ms=60 + 2 * RTT_MS)
    assert verdict.judge_probe(seen(*slow, probe, AGAIN)).segments == 10
    next_to_it = data(200, 10 * MSS, sent_ms=61.0)
    assert verdict.judge_probe(seen(*slow, next_to_it, AGAIN)).segments == 11
    # Without stamps, also of but one of the two, the arrivals have to do.
    bare, probe = flight(10, stamp=False), data(170, 10 * MSS, stamp=False)
    assert verdict.judge_probe(seen(*bare, probe, AGAIN)).segments == 10
    assert verdict.judge_probe(seen(*flight(10), probe, AGAIN)).segments == 10


@pytest.mark.parametrize(("ticks", "segments"), [(1, 10), (0, 11), (-5, 11)])
def test_a_servers_clock_tells_time_where_it_runs(ticks: int, segments: int) -> None:
    """A link so slow that all that a tick of 300 ms tells apart arrives at once; a clock that
    stands, or goes back, tells nothing: then arrivals count."""
    def at(time_ms: float, start: int, stamp: int) -> Packet:
        return data(time_ms, start)._replace(stamp=stamp)

    packets = [at(80, place * MSS, 1000) for place in range(10)]
    probe = at(81, 10 * MSS, 1000 + ticks)
    assert verdict.judge_probe(seen(*packets, probe, at(330, 0, 1000 + ticks))).segments == segments


@pytest.mark.parametrize(("stamps", "per_ms"), [
    ([(0, 5000), (300, 9000), (1000, 5100)], 0.1),  # 100 Hz; what lies between does not count
    ([(0, (1 << 32) - 10), (50, 40)], 1.0),  # past its end, over the least time
    ([(0, 5000), (1000, 5001)], 0.001), ([(0, 5000), (49.9, 5050)], None),
    ([(0, 5000), (1000, 5000)], None), ([(0, 5000), (1000, 4999)], None), ([], None)])
def test_how_fast_a_servers_clock_ticks(stamps: list[tuple[float, int]], per_ms: float | None
                                        ) -> None:
    packets = [data(ms, 0)._replace(stamp=stamp) for ms, stamp in stamps]
    ours = data(5000, 0)._replace(to_client=False, stamp=99)
    found = verdict._stamps_per_ms([ours, *packets, data(6000, 0, stamp=False), ours])
    assert found == (per_ms if per_ms is None else pytest.approx(per_ms, rel=1e-9))


def test_what_the_program_writes_later_counts() -> None:
    early = [data(80, 0, 1000)]
    assert verdict.judge_probe(seen(*early, data(130, 1000), AGAIN)).segments == 2
    later = [data(130, 2 * MSS + place * MSS) for place in range(3)]
    assert verdict.judge_probe(seen(*flight(2), *later, AGAIN)).segments == 5


def test_what_was_lost_is_counted_by_its_gap() -> None:
    packets = flight(10)
    del packets[4]
    found = verdict.judge_probe(seen(*packets, AGAIN))
    assert (found.segments, found.lost, found.payload_bytes) == (10, 1, 10 * MSS)
    assert any(line.startswith("1 of the segments were lost") for line in verdict.lines(found))
    found = verdict.judge_probe(seen(*packets[1:], AGAIN))  # also the first of all
    assert (found.segments, found.lost) == (10, 2)


@pytest.mark.parametrize(("more", "limit"), [
    ({"response_bytes": 10 * MSS}, "the response, all of which is in it: the server's initial"
     " window is at least 10 segments"),
    ({"response_bytes": 11 * MSS - 1}, "the response, which ends within a segment of it: the"
     " server's initial window is at least 10 segments"),
    ({"response_bytes": 11 * MSS - 1, "segments_before": 3}, "the response, which ends within a"
     " segment of it: the server's initial window is at least 7 segments, since the 3 segments"),
    ({"response_bytes": 11 * MSS}, "the server's initial window:"),
    ({"scale": 8}, "the receive window that this client offers, 16384 bytes"),
    ({"scale": 0}, "the receive window that this client offers, 64 bytes"),
    ({"segments_before": 3}, "the server's window, which may have grown by the 3 segments"),
])
def test_what_limits(more: dict[str, Any], limit: str) -> None:
    packets = flight(11 if more.get("scale") == 8 else 10)
    assert verdict.judge_probe(seen(*packets, AGAIN, **more)).limit.startswith(limit)


def test_a_last_segment_that_is_not_full_was_all_that_was_written() -> None:
    found = verdict.judge_probe(seen(*flight(9), data(80, 9 * MSS, 500), AGAIN))
    assert found.limit.startswith("the server's program") and "at least 10 segm" in found.limit
    assert verdict.judge_probe(seen(data(80, 0, 500), data(330, 0, 500), response_bytes=500)
                         ).limit.endswith("the server's initial window is at least 1 segment")
    head = verdict.judge_probe(seen(data(80, 0, 200), data(330, 0, 200), response_bytes=1600))
    assert head.ends_with_the_response  # a body of one segment waits behind it


@pytest.mark.parametrize(("segments", "response_bytes"), [(13, 20_200), (3, 5_200), (2, 3_500)])
def test_a_page_that_ends_the_flight_proves_a_lower_bound(segments: int,
                                                          response_bytes: int) -> None:
    """32 segments at the server; the tail waits for an acknowledgement, the page is too small."""
    found = verdict.judge_probe(seen(*flight(segments), AGAIN, ended=True,
                                     response_bytes=response_bytes, size_bytes=response_bytes))
    said = verdict.lines(found)
    assert said[1] == ("limited by the response, which ends within a segment of it: the server's"
                       f" initial window is at least {segments} segments")
    assert said[2] == (f"probe a page of {65536 + MSS} bytes or more: it does not fit into this"
                       " client's receive window")
    assert verdict.next_command(found) == f"./run.sh --rtt 40.0 --size {response_bytes}"


def test_what_is_not_known_is_not_suggested() -> None:
    found = verdict.judge_probe(seen(*flight(10), AGAIN))
    assert verdict.next_command(found) == "./run.sh --rtt 40.0 --size 100000 --iw 10,20"
    found = verdict.judge_probe(seen(*flight(10), AGAIN, size_bytes=None))
    assert verdict.next_command(found) is None
    assert "the response has more than 28960 bytes with its head" in verdict.lines(found)[2]
    grown = verdict.judge_probe(seen(*flight(10), AGAIN, segments_before=3))
    assert verdict.next_command(grown) == "./run.sh --rtt 40.0 --size 100000"


def counted(*counts: tuple[float, int], **more: Any) -> verdict.ProbeResult:
    return verdict.judge_probe(seen(captured=False, packets=[], counts=list(counts), **more))


def test_without_a_capture_segments_are_counted() -> None:
    found = counted((40.0, 4), (40.5, 10))
    assert (found.segments, found.payload_bytes, found.full, found.unsure) == (10, None, None,
                                                                               False)
    assert verdict.lines(found)[0] == "first flight: 10 segments, at most 14480 bytes"
    assert found.limit.endswith("only a capture decides")
    assert counted((40.0, 10), window_bytes=0).window_bytes is None  # an older kernel
    assert counted((40.0, 10), window_bytes=15 * 1024).limit.startswith("the receive window")
    bare = counted((40.0, 10), window_bytes=0, response_bytes=10 * MSS + 9)
    assert verdict.lines(bare)[2] == ("probe a page that is larger than this client's receive"
                                      " window")
    slow = counted((40.0, 1), (140.0, 11))
    assert slow.unsure and verdict.lines(slow)[0].startswith("first flight: at most 11 segments")
    small = counted((40.0, 1), (140.0, 11), response_bytes=11 * MSS)
    # What timers sent bounds nothing.
    assert small.limit == "the response, which ends within a segment of it"


def test_without_a_capture_a_fin_of_its_own_is_no_segment() -> None:
    found = counted((40.0, 3), ended=True, response_bytes=2 * MSS)
    assert found.segments == 2 and found.limit.startswith("the response, which ends")
