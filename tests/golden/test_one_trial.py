"""docs/ONE_TRIAL.md explains each packet of its trial, and no other trial than a sound one."""

from __future__ import annotations

import pytest

from firstflight.net.segments import MS
from firstflight.wire.delivery.host import find_uncaused
from firstflight.wire.exchange import read_exchange
from tests.golden import one_trial, stored


def test_each_packet_is_in_one_row_and_timers_are_those_of_the_host_check() -> None:
    trial = stored.load(one_trial.NAME)
    exchange = read_exchange(trial.client, trial.server)
    rows = one_trial.rows_of(exchange)
    sent = [segment for row in rows for segment in row.sent]
    assert len(sent) == len(stored.read(trial.client)) == len(stored.read(trial.server))
    tick_ns = round(trial.observation["started_at"] * 1e9)
    by_timer = set(find_uncaused(exchange, tick_ns + MS // 2))
    named = {row.sent[0] for row in rows if "timer" in one_trial.reason(row, rows, exchange)}
    assert named == by_timer and len(named) == 2


def test_a_packet_that_nothing_explains_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = stored.load(one_trial.NAME)
    packets = stored.read(trial.server)
    late = [packet if packet is not stored.nth_data(packets, 4) else stored.Packet(
        packet.time_ns + 40_000, packet.frame, packet.wire_bytes) for packet in packets]
    tampered = trial.captured(server=late)
    exchange = read_exchange(tampered.client, tampered.server)
    rows = one_trial.rows_of(exchange)
    with pytest.raises(ValueError, match="^row 9: nothing explains it"):
        for row in rows:
            one_trial.reason(row, rows, exchange)
    monkeypatch.setattr(one_trial.stored, "load", lambda _: tampered)
    with pytest.raises(ValueError, match="^queue_timer: fail path host TCP, 19 rows"):
        one_trial.page()
