"""The model against what guests measured: for each rule a transfer that shows it."""

from __future__ import annotations

import pytest

from lab.tcp.model.predict import predict
from lab.tcp.model.transfer import Secure, Transfer

# What a network of no sysctls but its own kept (scenarios/dukkipati2010.toml).
OLD = {"restart_after_idle": False, "loss_probes": False}
# The rule, by the kernel's function; total_ms as curl's library told it; the transfer.
MEASURED: dict[str, tuple[float, Transfer]] = {
    "calc_wheel_index: a timer fires in the jiffy after": (494.906, Transfer(
        rtt_ms=221.376, bandwidth_kbps=4203.027, uplink_kbps=4203.027, initcwnd=3, initrwnd=64,
        response_bytes=11221, request_bytes=77, earlier_bytes=581, earlier_request_bytes=75,
        **OLD)),
    "tcp_poll: a server that waits wants a larger buffer": (820.491, Transfer(
        rtt_ms=678.101, bandwidth_kbps=2601.13, uplink_kbps=2601.13, initcwnd=10, initrwnd=64,
        response_bytes=44042, request_bytes=77, earlier_bytes=38690, earlier_request_bytes=77,
        **OLD)),
    "tcp_dec_quickack_mode: a request uses up no quick ACK": (2053.036, Transfer(
        rtt_ms=592.418, bandwidth_kbps=1765.32, uplink_kbps=1765.32, initcwnd=3, initrwnd=64,
        response_bytes=80432, request_bytes=103, burst_bytes=4325, gap_ms=167.224,
        earlier_bytes=9175, earlier_request_bytes=76, **OLD)),
    "tcp_retransmit_timer: the client repeats its request": (4644.84, Transfer(
        rtt_ms=76.264, bandwidth_kbps=59.677, uplink_kbps=59.677, initcwnd=3, initrwnd=64,
        response_bytes=32272, request_bytes=77, earlier_bytes=8672, earlier_request_bytes=76,
        **OLD)),
    "tcp_send_loss_probe: new data beyond the window": (26153.246, Transfer(
        rtt_ms=12.827, bandwidth_kbps=44.769, uplink_kbps=44.769, initcwnd=1, initrwnd=64,
        response_bytes=139365, request_bytes=97)),
    "tcp_send_loss_probe: the last segment again": (7639.521, Transfer(
        rtt_ms=24.396, bandwidth_kbps=72.798, uplink_kbps=72.798, initcwnd=27, initrwnd=64,
        response_bytes=65354, request_bytes=77, earlier_bytes=2426, earlier_request_bytes=76)),
    "tcp_try_undo_loss: a timeout that was in vain": (96380.601, Transfer(
        rtt_ms=2.104, bandwidth_kbps=33.013, uplink_kbps=33.013, initcwnd=82, initrwnd=11,
        response_bytes=377870, request_bytes=97)),
    "tcp_rearm_rto: a probe that is not sent leaves the timeout": (4380.741, Transfer(
        rtt_ms=5.139, bandwidth_kbps=48.481, uplink_kbps=48.481, initcwnd=3, initrwnd=64,
        response_bytes=23407, request_bytes=96, congestion_control="reno")),
    "tcp_enter_quickack_mode: a segment that comes twice": (6970.948, Transfer(
        rtt_ms=6.268, bandwidth_kbps=193.139, uplink_kbps=193.139, initcwnd=73, initrwnd=2,
        response_bytes=158263, request_bytes=97)),
    "tcp_sendmsg_locked: a second write before the first is taken": (346.409, Transfer(
        rtt_ms=34.48, bandwidth_kbps=347262.646, uplink_kbps=347262.646, initcwnd=5, initrwnd=64,
        response_bytes=1893215, request_bytes=125, burst_bytes=770212, gap_ms=35.851)),
    "tcp_cleanup_rbuf: the window could double": (109.504, Transfer(
        rtt_ms=21.829, bandwidth_kbps=480208.003, uplink_kbps=480208.003, initcwnd=1, initrwnd=2,
        response_bytes=37735, request_bytes=77, earlier_bytes=66, earlier_request_bytes=74,
        congestion_control="reno")),
    "tcp_grow_window: a short segment opens no window": (3.305, Transfer(
        rtt_ms=1.643, bandwidth_kbps=2041618.537, uplink_kbps=2041618.537, initcwnd=51,
        initrwnd=64, response_bytes=64318, request_bytes=77, earlier_bytes=163,
        earlier_request_bytes=75, congestion_control="reno")),
    "tcp_cong_avoid: a window that grows is in use": (1292.508, Transfer(
        rtt_ms=46.686, bandwidth_kbps=8696.72, uplink_kbps=8696.72, initcwnd=5, initrwnd=64,
        response_bytes=962783, request_bytes=100, burst_bytes=44, gap_ms=251.74,
        earlier_bytes=4905, earlier_request_bytes=76, congestion_control="reno")),
    "tcp_rcv_space_adjust: a nanosecond ends a round trip": (728.805, Transfer(
        rtt_ms=25.941, bandwidth_kbps=1589373.248, uplink_kbps=173190.939, initcwnd=1,
        initrwnd=14, response_bytes=1458477, request_bytes=123, burst_bytes=177, gap_ms=439.483,
        congestion_control="reno")),
    "tcp_ack_tstamp: a time stamp wakes the server to write": (26761.11, Transfer(
        rtt_ms=144.064, bandwidth_kbps=309.234, uplink_kbps=240.462, initcwnd=59, initrwnd=44,
        response_bytes=977877, request_bytes=97, congestion_control="reno")),
    "__tcp_select_window: unread memory is no window": (288.563, Transfer(
        rtt_ms=5.589, bandwidth_kbps=40418.741, uplink_kbps=40418.741, initcwnd=5, initrwnd=2,
        response_bytes=1278739, request_bytes=79, earlier_bytes=47, earlier_request_bytes=73,
        congestion_control="reno")),
    "tcp_send_delayed_ack: an acknowledgement that is due leaves before the reading": (73450.983, Transfer(
        rtt_ms=53.449, bandwidth_kbps=219.481, uplink_kbps=219.481, initcwnd=53, initrwnd=37,
        response_bytes=1921104, request_bytes=124, burst_bytes=1827, gap_ms=160.525)),
    "tcp_select_window: a window that stays is rounded up": (1234.077, Transfer(
        rtt_ms=3.374, bandwidth_kbps=895.733, uplink_kbps=138.145, initcwnd=53, initrwnd=64,
        response_bytes=114588, request_bytes=101, burst_bytes=87, gap_ms=145.64, earlier_bytes=42,
        earlier_request_bytes=73)),
    "tcp_small_queue_check: the host's own queue is full": (5303.592, Transfer(
        rtt_ms=4.441, bandwidth_kbps=2350.724, uplink_kbps=2350.724, initcwnd=48, initrwnd=16,
        response_bytes=1487266, request_bytes=79, earlier_bytes=940, earlier_request_bytes=75,
        congestion_control='reno')),
    "tcp_tsq_write: a server that was woken writes first": (2893.483, Transfer(
        rtt_ms=571.983, bandwidth_kbps=77506.228, uplink_kbps=6265.661, initcwnd=21, initrwnd=18,
        response_bytes=1594464, request_bytes=102, burst_bytes=865, gap_ms=2.208,
        earlier_bytes=66953, earlier_request_bytes=77)),
    "tcp_ack_tstamp: a call whose end is in another skb by now": (75.701, Transfer(
        rtt_ms=5.272, bandwidth_kbps=350170.956, uplink_kbps=350170.956, initcwnd=11, initrwnd=3,
        response_bytes=1843556, request_bytes=98, congestion_control='reno')),
    "tcp_fragment_tstamp: the end of a call moves on": (4924.876, Transfer(
        rtt_ms=32.103, bandwidth_kbps=3298.312, uplink_kbps=70.725, initcwnd=5, initrwnd=68,
        response_bytes=1697938, request_bytes=98)),
    "tcp_bound_rto: two minutes at most": (586778.967, Transfer(
        rtt_ms=6.083, bandwidth_kbps=28.1, uplink_kbps=28.1, initcwnd=5, initrwnd=6,
        response_bytes=1967493, request_bytes=98, congestion_control='reno')),
    "tcp_try_keep_open: no probe behind a segment sent again": (6733.61, Transfer(
        rtt_ms=3.088, bandwidth_kbps=31.768, uplink_kbps=28.0, initcwnd=3, initrwnd=2,
        response_bytes=22148, request_bytes=96)),
    "tcp_rcv_rtt_measure_ts: a segment that comes twice is measured": (20085.109, Transfer(
        rtt_ms=1.985, bandwidth_kbps=121.371, uplink_kbps=121.371, initcwnd=7, initrwnd=3,
        response_bytes=288046, request_bytes=97, congestion_control='reno')),
    "the server answers after a microsecond": (180.146, Transfer(
        rtt_ms=9.382, bandwidth_kbps=132157.174, uplink_kbps=5139.903, initcwnd=3, initrwnd=20,
        response_bytes=1900515, request_bytes=98)),
    "server.py: an acknowledgement ends its wait": (10.801, Transfer(
        rtt_ms=3.516, bandwidth_kbps=349153.971, uplink_kbps=13857.516, initcwnd=30, initrwnd=24,
        response_bytes=971, request_bytes=116, burst_bytes=106, gap_ms=3.556,
        congestion_control='reno')),
    "tcp_retransmit_timer: a SYN again, of a route longer than a second": (3246.335, Transfer(
        rtt_ms=1031.934, bandwidth_kbps=44.913, uplink_kbps=44.913, initcwnd=1, initrwnd=55,
        response_bytes=124, request_bytes=116, burst_bytes=59, gap_ms=113.867,
        congestion_control='reno')),
    "reqsk_timer_handler: SYNs and SYN-ACKs again, and challenge ACKs": (276192.844, Transfer(
        rtt_ms=3081.775, bandwidth_kbps=29.419, uplink_kbps=29.419, initcwnd=97, initrwnd=60,
        response_bytes=948953, request_bytes=97)),
    "tcp_dsack_seen: a segment that comes twice is delivered twice": (1617.092, Transfer(
        rtt_ms=8.261, bandwidth_kbps=474.907, uplink_kbps=474.907, initcwnd=8, initrwnd=2,
        response_bytes=89624, request_bytes=77, earlier_bytes=72, earlier_request_bytes=74)),
    "tcp_data_snd_check: a repeated request, too, lets the window be noted as full": (377809.192, Transfer(
        rtt_ms=2.342, bandwidth_kbps=30.152, uplink_kbps=28.0, initcwnd=84, initrwnd=64,
        response_bytes=1358326, request_bytes=79, earlier_bytes=784, earlier_request_bytes=75,
        congestion_control='reno')),
    "tcp_rcv_rtt_measure_ts: a pure acknowledgement has the time stamp first": (19207.663, Transfer(
        rtt_ms=6.058, bandwidth_kbps=96.465, uplink_kbps=96.465, initcwnd=9, initrwnd=64,
        response_bytes=219182, request_bytes=78, earlier_bytes=5078, earlier_request_bytes=76,
        congestion_control='reno')),
    "clockevents_program_event: timers are half a microsecond apart": (4366.62, Transfer(
        rtt_ms=435.842, bandwidth_kbps=541530.085, uplink_kbps=541530.085, initcwnd=3,
        initrwnd=31, response_bytes=1489896, request_bytes=98)),
    "tcp_sendmsg_locked: a call that finds no memory pushes twice": (34.754, Transfer(
        rtt_ms=5.397, bandwidth_kbps=559636.484, uplink_kbps=559636.484, initcwnd=50, initrwnd=3,
        response_bytes=524904, request_bytes=78, earlier_bytes=49, earlier_request_bytes=74,
        congestion_control='reno')),
    "server.py: what waited is written once": (52529.515, Transfer(
        rtt_ms=1.107, bandwidth_kbps=171.609, uplink_kbps=73.589, initcwnd=5, initrwnd=60,
        response_bytes=1069464, request_bytes=121, burst_bytes=69, gap_ms=361.633)),
    "cubictcp_cwnd_event_tx_start: the epoch moves, but not beyond now": (72126.524, Transfer(
        rtt_ms=3026.039, bandwidth_kbps=232.008, uplink_kbps=28.0, initcwnd=4, initrwnd=5,
        response_bytes=1895925, request_bytes=79, earlier_bytes=73918,
        earlier_request_bytes=77)),
    "handle_syscall: what the server asks for in vain takes a microsecond": (63.011, Transfer(
        rtt_ms=6.854, bandwidth_kbps=871437.764, uplink_kbps=871437.764, initcwnd=5, initrwnd=64,
        response_bytes=1098578, request_bytes=102, burst_bytes=240, gap_ms=3.185,
        earlier_bytes=86, earlier_request_bytes=74, congestion_control='reno')),
    "tcp_sendmsg_locked: only a call's first bytes clear PSH": (150.281, Transfer(
        rtt_ms=5.32, bandwidth_kbps=99625.502, uplink_kbps=99625.502, initcwnd=2, initrwnd=64,
        response_bytes=1420217, request_bytes=98, congestion_control='reno')),
    "tcp_ack_snd_check: a DSACK leaves before what is written then": (218674.205, Transfer(
        rtt_ms=39.807, bandwidth_kbps=35.126, uplink_kbps=35.126, initcwnd=15, initrwnd=99,
        response_bytes=916986, request_bytes=105, burst_bytes=676282, gap_ms=82.117,
        earlier_bytes=38479, earlier_request_bytes=77, congestion_control='reno')),
    "tcp_data_snd_check: what waited takes the DSACK along": (3182.435, Transfer(
        rtt_ms=17.056, bandwidth_kbps=29.996, uplink_kbps=29.996, initcwnd=6, initrwnd=64,
        response_bytes=9645, request_bytes=102, burst_bytes=4325, gap_ms=221.023,
        earlier_bytes=391, earlier_request_bytes=75, **OLD)),
    "tcp_current_mss: segments leave room for a DSACK": (12203.576, Transfer(
        rtt_ms=18.679, bandwidth_kbps=32.625, uplink_kbps=32.625, initcwnd=16, initrwnd=64,
        response_bytes=45817, request_bytes=103, burst_bytes=4325, gap_ms=237.745,
        earlier_bytes=634, earlier_request_bytes=75, **OLD)),
    "tcp_replace_ts_recent: of a segment and its copy the copy is echoed": (11503.805, Transfer(
        rtt_ms=10.009, bandwidth_kbps=547.045, uplink_kbps=547.045, initcwnd=73, initrwnd=64,
        response_bytes=710827, request_bytes=104, burst_bytes=3912, gap_ms=663.917,
        earlier_bytes=62, earlier_request_bytes=74, congestion_control='reno')),
    "tcp_replace_ts_recent: also where that keeps the timeout short": (4926.658, Transfer(
        rtt_ms=2.996, bandwidth_kbps=663.996, uplink_kbps=663.996, initcwnd=19, initrwnd=2,
        response_bytes=389049, request_bytes=78, earlier_bytes=39, earlier_request_bytes=73)),
    "tcp_check_space: a buffer with room is not looked at, and does not grow": (335.295, Transfer(
        rtt_ms=167.337, bandwidth_kbps=28513.0, uplink_kbps=28513.0, initcwnd=53, initrwnd=64,
        mss=159, response_bytes=51115, request_bytes=77, earlier_bytes=44177,
        earlier_request_bytes=77)),
    "tcp_try_keep_open: after a timeout no probe of what a probe has sent": (19347.233, Transfer(
        rtt_ms=1.889, bandwidth_kbps=35.035, uplink_kbps=35.035, initcwnd=7, initrwnd=4,
        response_bytes=75785, request_bytes=118, congestion_control="reno",
        writes=(16406, 16406, 16406, 16406, 10161),
        secure=Secure(240, (1887,), 80, (255, 255), 16406))),
}


@pytest.mark.parametrize("rule", MEASURED)
def test_the_model_takes_what_the_guest_took(rule: str) -> None:
    total_ms, transfer = MEASURED[rule]
    assert predict(transfer).total_ms == pytest.approx(total_ms, abs=0.01)


def test_a_queue_holds_what_slow_start_has_sent_when_it_ends() -> None:
    """hystart_ack_delay: what a batch takes decides at which acknowledgement slow start ends.

    The guest lost a packet to a queue of 164, and none to one of 165.
    """
    assert predict(Transfer(
        rtt_ms=1.138, bandwidth_kbps=757191.792, uplink_kbps=757191.792, initcwnd=44, initrwnd=14,
        response_bytes=1045003, request_bytes=98)).peak_queue == 165


def test_a_server_that_is_woken_up_writes_a_microsecond_later() -> None:
    """As the guest: its buffer makes the server wait, and what the last call wrote comes last."""
    assert predict(Transfer(
        rtt_ms=6.647, bandwidth_kbps=90024.006, uplink_kbps=90024.006, initcwnd=12, initrwnd=64,
        response_bytes=1553947, request_bytes=98, congestion_control="reno",
        receive_buffers=(189800, 6291456))).total_ms == pytest.approx(167.474315, abs=2e-5)
