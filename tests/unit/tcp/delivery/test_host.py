"""Why a host sent: what arrived, a timer's tick, or a pause that was asked for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from net.segments import MS, Segment
from tests.golden import stored
from wire.delivery.host import find_uncaused
from wire.exchange import Exchange, read_exchange

GOOD = stored.load("iw3")
EXCHANGE = read_exchange(GOOD.client, GOOD.server)
TICK_NS = EXCHANGE.at_client[0].time_ns - 2000


def sent_at(when_ns: int) -> Exchange:
    """As if the server's last segment of data had left so long after all before it."""
    *before, last = [segment for segment in EXCHANGE.at_server
                     if segment.payload_bytes and segment.to_client]
    moved = last._replace(time_ns=when_ns)
    kept: list[Segment] = [segment for segment in EXCHANGE.at_server
                           if segment is not last and segment.time_ns <= last.time_ns]
    return replace(EXCHANGE, at_server=(*kept, moved))


LAST_NS = sent_at(0).at_server[-2].time_ns


def test_a_sound_exchange_has_a_cause_for_everything() -> None:
    assert not find_uncaused(EXCHANGE, True, TICK_NS) and not find_uncaused(EXCHANGE, False, TICK_NS)


@pytest.mark.parametrize("since_tick_ns", [100_000, 300_000, 900_000])
def test_data_that_leaves_between_ticks_has_none(since_tick_ns: int) -> None:
    when = TICK_NS + (LAST_NS - TICK_NS) // MS * MS + 20 * MS + since_tick_ns
    (found,) = find_uncaused(sent_at(when), True, TICK_NS)
    assert found.time_ns == when
    assert not find_uncaused(sent_at(when), True, TICK_NS - MS + since_tick_ns)


def test_a_timer_fires_on_a_tick() -> None:
    when = TICK_NS + (LAST_NS - TICK_NS) // MS * MS + 20 * MS
    assert not find_uncaused(sent_at(when), True, TICK_NS)


def test_a_pause_that_was_asked_for_is_a_cause() -> None:
    came = [segment.time_ns for segment in EXCHANGE.at_server if not segment.to_client]
    begun = max(each for each in came if each <= LAST_NS)
    when = begun + 40 * MS + 30_000
    tick = when + 500_000  # as far from one as can be
    assert find_uncaused(sent_at(when), True, tick)
    assert not find_uncaused(sent_at(when), True, tick, (40.0,))
    assert find_uncaused(sent_at(when), True, tick, (41.0,))
    assert find_uncaused(sent_at(when), True, tick, (30.0,))
