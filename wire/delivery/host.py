"""Why a host sent: in virtual time computing takes no time, so all data has a cause.

A host sends when a packet reaches it, when a timer of its kernel fires, or when a pause
that a trial requests is over. What leaves at another moment has been held up, and nothing
that was built here may do that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from net.segments import MS, Segment
from wire.exchange import Exchange

# A system call that fails counts a microsecond of a guest's clock (um_udelay). Of all data in 8,770
# random transfers none left later than 8 µs after its cause, and that was curl's first request.
COMPUTING_NS = 20_000
# A timer is not early, and what it sends leaves at once.
_EARLY_NS, _LATE_NS = 60_000, 10_000
# server.py may wait a thousandth longer (net.waiting.waited_ns).
_PAUSE_LATE_NS, _PAUSE_LATE_SHARE = 2 * MS, 0.002


def find_uncaused(exchange: Exchange, to_client: bool, tick_ns: int,
                  pauses_ms: Iterable[float] = ()) -> tuple[Segment, ...]:
    """The data that a host sent although nothing had happened.

    to_client: whether the host is the server. tick_ns: some tick of the kernel's clock, which
    has one each millisecond. pauses_ms: how long the host was to wait.
    """
    pauses_ns = [round(pause_ms * 1e6) for pause_ms in pauses_ms if pause_ms]
    unexplained: list[Segment] = []
    came: list[int] = []
    caused_ns = -COMPUTING_NS  # when something last happened that makes the host send
    for segment in exchange.at_server if to_client else exchange.at_client:
        now = segment.time_ns
        if segment.to_client != to_client:
            came.append(now)
            caused_ns = now
            continue
        if now - caused_ns > COMPUTING_NS and not (_is_tick(now - tick_ns)
                                                   or _is_pause(now, came, pauses_ns)):
            if segment.payload_bytes:
                unexplained.append(segment)
            continue
        # What was sent for a cause may be followed by more, one call after another.
        caused_ns = max(caused_ns, now)
    return tuple(unexplained)


def _is_tick(since_ns: int) -> bool:
    late = since_ns % MS
    return late <= _LATE_NS or MS - late <= _EARLY_NS


def _is_pause(now: int, came: Sequence[int], pauses_ns: Sequence[int]) -> bool:
    """Whether a pause that began when something came is over now."""
    return any(pause <= now - begun <= pause * (1 + _PAUSE_LATE_SHARE) + _PAUSE_LATE_NS
               for pause in pauses_ns for begun in came)
