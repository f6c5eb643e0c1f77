"""Why a host sent: what arrived, a timer's tick, or a pause that was asked for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from firstflight.net.segments import MS, Segment
from firstflight.wire.delivery.host import Pauses, find_uncaused
from firstflight.wire.exchange import Exchange, read_exchange
from tests.golden import stored

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


def test_a_sound_exchange_has_a_cause_for_everything() -> None:
    assert not find_uncaused(EXCHANGE, TICK_NS)


@pytest.mark.parametrize("since_tick_ns", [1_500, 100_000, 300_000, 900_000, 999_500])
def test_data_that_leaves_between_ticks_has_none(since_tick_ns: int) -> None:
    when = ticks_later(20) + since_tick_ns
    (found,) = find_uncaused(sent_at(when), TICK_NS)
    assert found.time_ns == when
    assert not find_uncaused(sent_at(when), when)


@pytest.mark.parametrize("late_ns", [-200, 0, 100, 900])
def test_a_timer_fires_on_a_tick(late_ns: int) -> None:
    assert not find_uncaused(sent_at(ticks_later(20) + late_ns), TICK_NS)


@pytest.mark.parametrize(("late_ns", "passes"), [(1_000, True), (4_000, False), (30_000, False)])
def test_a_server_answers_at_once(late_ns: int, passes: bool) -> None:
    late = [segment._replace(time_ns=segment.time_ns + late_ns) if segment is DATA[0] else segment
            for segment in EXCHANGE.at_server]
    found = find_uncaused(replace(EXCHANGE, at_server=tuple(late)), TICK_NS)
    assert (not found) == passes


def test_a_pause_that_was_asked_for_is_a_cause() -> None:
    begun = max(each for each in CAME if each <= DATA[-1].time_ns)
    when = begun + 40 * MS + 7_000
    tick_ns = when - MS // 2  # as far from a tick as can be
    assert find_uncaused(sent_at(when), tick_ns)
    assert not find_uncaused(sent_at(when), tick_ns, Pauses(server_ns=40 * MS))
    assert find_uncaused(sent_at(when), tick_ns, Pauses(client_ns=40 * MS))
    assert find_uncaused(sent_at(when + 6_000), tick_ns, Pauses(server_ns=40 * MS))
    assert find_uncaused(sent_at(when), tick_ns, Pauses(server_ns=41 * MS))
    assert find_uncaused(sent_at(when), tick_ns, Pauses(server_ns=30 * MS))
