"""What a probe says of connections that are built by hand: their flights and what limited them.

A flight begins at 80 ms. Its first segment is sent again at 330 ms, since nothing is acknowledged.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from firstflight.net.headers import ACK, SYN
from firstflight.probe import verdict
from firstflight.probe.tap import Packet

FIRST = 0xFFFFFF00  # the first sequence number, which wraps around to 0 within the flight
MSS = 1448
RTT_MS = 40.0


def data(at_ms: float, start: int, size: int = MSS, merged: int = 0, stamp: bool = True,
         sent_ms: float | None = None) -> Packet:
    """A segment of the server, which arrives at `at_ms`.

    start: its first byte, from 0. merged: the size of the segments of which the kernel merged it,
    0 if it did not. stamp: whether it has a time stamp. sent_ms: by the server's clock, None for
    half a round trip before it arrived.
    """
    sent_ms = at_ms - RTT_MS / 2 if sent_ms is None else sent_ms
    return Packet(round(at_ms * 1e6), True, (FIRST + start) % (1 << 32), 1, ACK, 64, size, merged,
                  round(1000 + sent_ms) if stamp else None)


def seen(*packets: Packet, **more: Any) -> verdict.ProbedConnection:
    """A connection whose request leaves at 40 ms, with these packets after it.

    more: other fields of the connection or of its response.
    """
    syn_ack = Packet(20_000_000, True, FIRST - 1, 1, SYN | ACK, 64, 0, 0, 1000)
    requested = Packet(40_000_000, False, 1, FIRST, ACK, 64, 100, 0, 7)
    response = verdict.Response(200, "", 20 * MSS, False, 100_000)
    of_response = {name: more.pop(name) for name in response._fields if name in more}
    connection = verdict.ProbedConnection(
        RTT_MS, 0, 65536, 10, MSS, [syn_ack], [requested, *packets], True, [],
        response._replace(**of_response))
    return connection._replace(**more)


def counted(*counts: tuple[float, int], **more: Any) -> verdict.ProbedConnection:
    """A connection without a capture: at which times, in ms, the kernel had counted how many."""
    return seen(captured=False, packets=[], counts=list(counts), **more)


def flight(count: int, each_ms: float = 0.0, **more: Any) -> list[Packet]:
    """The first segments, one every `each_ms`. more: as data() takes it."""
    return [data(80 + each_ms * place, place * MSS, **more) for place in range(count)]


def stamped(ticks: int) -> list[Packet]:
    """Ten segments, an eleventh and a repeated one, of which the last two have another stamp.

    ticks: how much larger their stamp is. A clock that ticks every 300 ms gives ten segments one
    stamp, although they left within that time one by one.
    """
    return [*(packet._replace(stamp=1000) for packet in TEN),
            data(81, 10 * MSS)._replace(stamp=1000 + ticks),
            AGAIN._replace(stamp=1000 + ticks)]


def page(segments: int, size: int) -> verdict.ProbedConnection:
    """A flight that ends with the page. size: bytes of the page."""
    return seen(*flight(segments), AGAIN, ended=True, response_bytes=size, size_bytes=size)


AGAIN = data(330, 0)  # the first segment once more
TEN = flight(10)
SLOW = flight(10, each_ms=12.0, sent_ms=60.0)  # sent at once, over a slow link
BARE = flight(10, stamp=False)
LIMITS: dict[str, dict[str, Any]] = {
    "the response is in it": {"response_bytes": 10 * MSS},
    "the response ends within a segment": {"response_bytes": 11 * MSS - 1},
    "the response, after three segments": {"response_bytes": 11 * MSS - 1, "segments_before": 3},
    "a response of a segment more": {"response_bytes": 11 * MSS},
    "a receive window without a scale": {"scale": 0},
    "three segments before": {"segments_before": 3},
    "a size that is not known": {"size_bytes": None}}
PROBES: dict[str, verdict.ProbedConnection] = {
    "ten segments, and the response goes on": seen(*TEN, AGAIN, data(600, 10 * MSS)),
    "in another order": seen(*TEN[1::-1], *TEN[2:], AGAIN),
    "joined with more when it is sent again": seen(*TEN, data(330, 9 * MSS, 2 * MSS)),
    "merged frames": seen(data(80, 0, 4 * MSS, MSS), data(80, 4 * MSS, 5 * MSS + 10, MSS), AGAIN),
    "a timer's probe of the next segment": seen(*TEN, data(168, 10 * MSS), AGAIN),
    "a timer's probe of the last segment": seen(*TEN, data(168, 9 * MSS), AGAIN),
    "a timer's probe of a tail that waited": seen(*TEN, data(168, 10 * MSS, 700), AGAIN),
    "a probe that comes with the flight": seen(
        *SLOW, data(200, 10 * MSS, sent_ms=60 + 2 * RTT_MS), AGAIN),
    "a segment that leaves a moment later": seen(*SLOW, data(200, 10 * MSS, sent_ms=61), AGAIN),
    "without stamps": seen(*BARE, data(170, 10 * MSS, stamp=False), AGAIN),
    "a probe without a stamp": seen(*TEN, data(170, 10 * MSS, stamp=False), AGAIN),
    "a clock that ticks": seen(*stamped(1)), "a clock that stands": seen(*stamped(0)),
    "a clock that goes back": seen(*stamped(-5)),
    "the rest is written half a round trip later": seen(data(80, 0, 1000), data(130, 1000), AGAIN),
    "three more are written later": seen(
        *flight(2), *(data(130, place * MSS) for place in (2, 3, 4)), AGAIN),
    "one is lost": seen(*TEN[:4], *TEN[5:], AGAIN),
    "two are lost, also the first": seen(*TEN[1:4], *TEN[5:], AGAIN),
    **{name: seen(*TEN, AGAIN, **more) for name, more in LIMITS.items()},
    "a receive window": seen(*flight(11), AGAIN, scale=8),
    "a last segment that is not full": seen(*flight(9), data(80, 9 * MSS, 500), AGAIN),
    "a response of one small segment": seen(
        data(80, 0, 500), data(330, 0, 500), response_bytes=500),
    "a head alone, and a body of a segment": seen(
        data(80, 0, 200), data(330, 0, 200), response_bytes=1600),
    **{f"a page of {size} bytes": page(segments, size)
       for segments, size in ((13, 20_200), (3, 5_200), (2, 3_500))},
    "counted": counted((40.0, 4), (40.5, 10)),
    "counted by an older kernel": counted((40.0, 10), window_bytes=0),
    "counted, up to the receive window": counted((40.0, 10), window_bytes=15 * 1024),
    "counted, with a small response": counted((40.0, 10), window_bytes=0,
                                              response_bytes=10 * MSS + 9),
    "counted, slowly": counted((40.0, 1), (140.0, 11)),
    "counted, slowly, with a small response": counted((40.0, 1), (140.0, 11),
                                                      response_bytes=11 * MSS),
    "counted with a FIN of its own": counted((40.0, 3), ended=True, response_bytes=2 * MSS)}


def text() -> str:
    """A paragraph for each probe."""
    return "\n".join("".join(f"{line}\n" for line in (name, *_lines(verdict.judge_probe(probe))))
                     for name, probe in PROBES.items())


def _lines(found: verdict.ProbeResult) -> list[str]:
    return [*verdict.result_lines(found), f"next: {verdict.next_command(found)}",
            *(f"{name}: {value}" for name, value in asdict(found).items())]
