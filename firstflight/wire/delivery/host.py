"""Checks that a host sends only for a reason: in virtual time computing takes no time.

A host sends when a packet reaches it, when a timer of its kernel fires, or when a pause that the
trial requests is over. Data that leaves at another moment was delayed, and nothing in the guest
may do that.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from firstflight.net.segments import MS, Segment
from firstflight.wire.exchange import Exchange

# A failing system call takes a microsecond of a guest's clock (um_udelay). In 20,000 random
# transfers all data left at most 1 µs after its cause, except curl's first request: 8 µs.
SERVER_LATE_NS, CLIENT_LATE_NS = 3_000, 10_000
# server.py waits up to a thousandth of 5 ms longer (net.waiting.waited_ns); 7 µs were observed.
PAUSE_LATE_NS = 12_000
# TCP's timers fire in the interrupt of a tick (run_timer_base), which both hosts share and in
# which no virtual time passes. The time of a tick is known from a float in seconds, whose
# resolution is 240 ns.
TICK_EARLY_NS, TICK_LATE_NS = 250, 1_000


class Pauses(NamedTuple):
    """How long a server and a client are to wait after a packet has come.

    A host has one pause, or several of which any one may follow a request. A pause of 0 is none.
    """

    server_ns: int | Collection[int] = 0
    client_ns: int | Collection[int] = 0
    late_ns: int = PAUSE_LATE_NS  # how much longer than requested a pause may be

    def is_over(self, to_client: bool, now: int, came: Sequence[int]) -> bool:
        """Whether a pause that began when a packet came is over now.

        to_client: whether the server waits. came: when packets came, ns, ascending.
        """
        pauses_ns = self.server_ns if to_client else self.client_ns
        for pause_ns in (pauses_ns,) if isinstance(pauses_ns, int) else pauses_ns:
            latest = now - pause_ns
            first = bisect_left(came, latest - self.late_ns)
            if pause_ns > 0 and first < len(came) and came[first] <= latest:
                return True
        return False


class _Departure(NamedTuple):
    """Data that left for one reason: one write after the other, without a wait between them."""

    time_ns: int  # when the first segment left, with data or without
    data: tuple[Segment, ...]


def find_uncaused(exchange: Exchange, tick_ns: int, pauses: Pauses = Pauses()
                  ) -> tuple[Segment, ...]:
    """The data that a host sent without a reason: the server's, then the client's.

    tick_ns: the time of any tick of the kernel's clock, which ticks every millisecond.
    """
    by_server = find_uncaused_of(exchange.at_server, True, tick_ns, pauses=pauses)
    by_client = find_uncaused_of(exchange.at_client, False, tick_ns, pauses=pauses)
    return (*by_server, *by_client)


def find_uncaused_of(segments: Iterable[Segment], to_client: bool, tick_ns: int,
                     pauses: Pauses = Pauses(), more_ns: int = 0) -> tuple[Segment, ...]:
    """The data that one host sent without a reason: the server if to_client, else the client.

    segments: at that host, in order of time, of one connection, or of several if a packet on one
    lets a program send on another. more_ns: how much later this host may send than SERVER_LATE_NS
    or CLIENT_LATE_NS after a cause.
    """
    late_ns = (SERVER_LATE_NS if to_client else CLIENT_LATE_NS) + more_ns
    found: list[Segment] = []
    for departure in _unprompted(segments, to_client, late_ns, pauses=pauses):
        is_timed = is_near_tick(departure.time_ns - tick_ns)
        for segment in departure.data:
            # If the departure began with an acknowledgement by a finer timer
            # (tcp_compressed_ack_kick), its data may have left at a tick shortly after.
            is_timed = is_timed or is_near_tick(segment.time_ns - tick_ns)
            if not is_timed:
                found.append(segment)
    return tuple(found)


def is_near_tick(since_ns: int) -> bool:
    """Whether a timer may have sent data that left this time after a tick of the kernel's clock."""
    return (since_ns + TICK_EARLY_NS) % MS <= TICK_EARLY_NS + TICK_LATE_NS


def _unprompted(segments: Iterable[Segment], to_client: bool, late_ns: int,
                pauses: Pauses) -> Iterator[_Departure]:
    """Departures with data that neither an arrival nor the end of a pause explains."""
    came: list[int] = []
    caused_ns: int | None = None  # the last event for which the host may send
    first_ns, data = 0, list[Segment]()
    for segment in segments:
        now = segment.time_ns
        if segment.to_client != to_client or caused_ns is None or now - caused_ns > late_ns:
            if data:
                yield _Departure(first_ns, tuple(data))

            first_ns, data = now, []
            if segment.to_client != to_client:
                came.append(now)
                is_explained = True
            else:
                is_explained = pauses.is_over(to_client, now, came)

        caused_ns = now
        if segment.payload_bytes and not is_explained:
            # After an acknowledgement that a timer sent, data may leave since its pause is over.
            is_explained = pauses.is_over(to_client, now, came)
            if not is_explained:
                data.append(segment)
    if data:
        yield _Departure(first_ns, tuple(data))
