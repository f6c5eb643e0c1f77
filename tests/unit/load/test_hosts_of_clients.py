"""Clients as a column of trials.csv has them: written and read back, whatever their numbers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as any_

from firstflight.study.load.trial import Clients


@pytest.mark.parametrize("clients, text", [
    (Clients(3, 0.5, 60.0), "iw3*0.5@60ms"), (Clients(10, 0.25, 0.5, 512.0), "iw10*0.25@0.5ms/512k"),
    (Clients(10, 1.0, 300.0, 0.0, 1.5), "iw10*1@300ms~1.5%"),
    (Clients(1, 0.0001, 20.0, 1000.5, 2.0), "iw1*0.0001@20ms/1000.5k~2%"),
    (Clients(3, 0.5, 1e5, 1e7, 1.0), "iw3*0.5@100000ms/10000000k~1%")])
def test_clients_are_told_in_one_word(clients: Clients, text: str) -> None:
    assert str(clients) == text and Clients.parse(text) == clients


positive = any_.floats(0.001, 1e6)


@settings(max_examples=50, deadline=None)
@given(any_.integers(1, 65_535), positive, positive, positive | any_.just(0.0),
       any_.floats(0.001, 99) | any_.just(0.0))
def test_no_number_is_lost(initcwnd: int, share: float, rtt_ms: float, kbps: float,
                           loss_percent: float) -> None:
    made = Clients(initcwnd, share, rtt_ms, kbps, loss_percent)
    assert Clients.parse(str(made)) == made
