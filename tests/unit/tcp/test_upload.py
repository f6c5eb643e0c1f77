"""Predictions of requests with a body. Some times were measured in guests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from firstflight.model.predict import predict
from firstflight.model.transfer import Transfer
from firstflight.net.headers import MSS
from tests.transfers import changed, transfer

HEAD = 150  # bytes of a request's headers
BASE = transfer(rtt_ms=220, bandwidth_kbps=100_000, uplink_kbps=100_000, initcwnd=10,
                initrwnd=1000, response_bytes=1056, request_bytes=HEAD)


def uploading(size: int, window: int, base: Transfer = BASE, **fields: Any) -> Transfer:
    """BASE with a body of this size, written together with the headers. window: the client's."""
    return replace(base, request_writes=(HEAD + size,), client_initcwnd=window, **fields)


def kept(size: int, window: int, count: int, idle_ms: float, **fields: Any) -> Transfer:
    """An upload on a connection that has had count equal ones, and then a pause."""
    return uploading(size, window, earlier_bytes=BASE.response_bytes, earlier_request_bytes=HEAD,
                     earlier_writes=(HEAD + size,), earlier_count=count, idle_ms=idle_ms, **fields)


@pytest.mark.parametrize("window", [1, 5, 10, 20, 21, 40])
def test_the_clients_window_is_the_first_flight_of_its_upload(window: int) -> None:
    assert predict(uploading(30_000, window)).upload_flight == min(window, 21)


def test_a_window_that_holds_the_request_saves_its_round_trips() -> None:
    """Handshake, and upload with its response: two round trips are the least."""
    times = [predict(uploading(30_000, window)).total_ms for window in (21, 10, 5, 3, 1)]
    round_trips = [time_ms // 220 for time_ms in times]
    assert round_trips == [2, 3, 4, 4, 6]
    assert times[0] == pytest.approx(440 + 2 * 0.0053 + 21 * 1514 * 8 / 100_000, abs=0.5)


def test_an_upload_takes_as_long_as_the_same_bytes_the_other_way() -> None:
    """Both transfers have a large message one way and a small one the other way."""
    for size, window in ((30_000, 10), (30_000, 30), (20_000, 4), (50_000, 40)):
        upload = predict(uploading(size, window, response_bytes=HEAD)).total_ms
        download = predict(replace(BASE, initcwnd=window, response_bytes=HEAD + size)).total_ms
        assert upload == pytest.approx(download, abs=1.0)


def test_a_long_pause_resets_the_clients_window() -> None:
    """Measured in guests: 222.5 ms after a pause of 280 ms, 441 ms after one of 1000 ms."""
    assert predict(kept(30_000, 10, 30, 280)).total_ms == pytest.approx(222.6, abs=0.1)
    assert predict(kept(30_000, 10, 30, 1000)).total_ms == pytest.approx(441.6, abs=0.1)
    assert predict(kept(30_000, 10, 30, 1000, restart_after_idle=False)
                   ).total_ms == pytest.approx(222.6, abs=0.1)
    assert predict(kept(30_000, 32, 30, 1000)).total_ms == pytest.approx(222.6, abs=0.1)


def test_a_servers_receive_window_limits_an_upload() -> None:
    """The first one is that of the SYN-ACK, which has 16 bits, with a buffer of any size."""
    flights = [predict(uploading(300_000, 200, server_receive_buffers=buffers)).upload_flight
               for buffers in ((20_000, 60_000), (131_072, 6 << 20), (4 << 20, 6 << 20))]
    assert flights == [8688 // MSS, 65_160 // MSS, -(-65_535 // MSS)]


@pytest.mark.parametrize("total_ms, values", [
    # The client's receiver has a large window, and curl writes the rest only when poll allows it.
    (1317.448, {"rtt_ms": 658.617, "bandwidth_kbps": 6731333.614, "initcwnd": 23, "initrwnd": 64,
                "response_bytes": 71, "request_writes": (75, *[1 << 16] * 12, 39_964),
                "earlier_bytes": 447, "earlier_request_bytes": 76, "client_initcwnd": 10,
                "earlier_writes": (76, *[1 << 16] * 12, 39_964)}),
    # The server's buffer is larger than its SYN-ACK can say: the first acknowledgement says it.
    (4656.720, {"rtt_ms": 587.111, "bandwidth_kbps": 987.092, "initcwnd": 46, "initrwnd": 100,
                "mss": 1222, "response_bytes": 24_033, "client_initcwnd": 68,
                "server_receive_buffers": (500_000, 6_000_000),
                "request_writes": (121, *[1 << 16] * 5, 54_644)}),
    # Handshakes are repeated. The window of a SYN-ACK is not scaled.
    (9282.088, {"rtt_ms": 3054.569, "bandwidth_kbps": 1149.337, "initcwnd": 37, "initrwnd": 100,
                "response_bytes": 3850, "request_writes": (119, 1 << 16, 8563),
                "client_initcwnd": 54})])
def test_an_upload_takes_the_time_that_a_guest_measured(total_ms: float,
                                                        values: dict[str, Any]) -> None:
    rate = values["bandwidth_kbps"]
    measured = changed(BASE, uplink_kbps=rate, **values)
    assert predict(measured).total_ms == pytest.approx(total_ms, abs=0.1)


def test_a_slow_uplink_retransmits_data_that_was_not_lost() -> None:
    slow = predict(uploading(20_000, 10, changed(BASE, uplink_kbps=28)))
    assert slow.client_retransmissions > 0 == slow.retransmissions


def test_a_pause_of_the_back_end_is_in_the_time() -> None:
    usual, paused = (predict(uploading(30_000, 10, gap_ms=gap_ms, burst_bytes=56))
                     for gap_ms in (0.0, 500.0))
    assert paused.total_ms - usual.total_ms == pytest.approx(500, abs=0.1)
    assert paused.first_byte_ms == pytest.approx(usual.first_byte_ms, abs=0.1)
