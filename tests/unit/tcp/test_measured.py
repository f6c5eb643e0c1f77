"""The model against what guests measured beside times (tests/golden/rules.json has those)."""

from __future__ import annotations

import pytest

from firstflight.model.predict import predict
from tests.transfers import transfer


def test_a_queue_holds_what_slow_start_has_sent_when_it_ends() -> None:
    """hystart_ack_delay: what a batch takes decides at which acknowledgement slow start ends.

    The guest lost a packet to a queue of 164, and none to one of 165.
    """
    assert predict(transfer(
        rtt_ms=1.138, bandwidth_kbps=757191.792, uplink_kbps=757191.792, initcwnd=44, initrwnd=14,
        response_bytes=1045003, request_bytes=98)).peak_queue == 165


def test_a_server_that_is_woken_up_writes_a_microsecond_later() -> None:
    """As the guest: its buffer makes the server wait, and what the last call wrote comes last."""
    assert predict(transfer(
        rtt_ms=6.647, bandwidth_kbps=90024.006, uplink_kbps=90024.006, initcwnd=12, initrwnd=64,
        response_bytes=1553947, request_bytes=98, congestion_control="reno",
        receive_buffers=(189800, 6291456))).total_ms == pytest.approx(167.474315, abs=2e-5)
