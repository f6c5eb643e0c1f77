"""What claims read off a trace: of a stored one, and of one with losses built by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from firstflight.base.errors import FirstFlightError
from firstflight.net.headers import ACK
from firstflight.study.trace.view import METRICS, Metric, View, stored, view_of
from firstflight.study.trace.window import INFINITE, OPEN, WindowSample
from tests.golden import stored_trace
from tests.golden.stored_trace import trial
from tests.unit.tcp.conversation import MS, MSS, START_NS, Conversation

REQUEST_NS = START_NS + 150 * MS  # when it is at the server


@pytest.fixture(name="idle", scope="module")
def _idle() -> View:
    """26 segments at once, 21 more after 2.2 s; each flight's data is acknowledged in 0.1 s."""
    return stored(trial("idle-linux-iw10"), stored_trace.RUN)


@pytest.mark.parametrize("metric, at_s, value", [
    ("window", 0.0, 10), ("window", 0.11, 20), ("window", 1.0, 36), ("window", 2.2, 10),
    ("ssthresh", 1.0, INFINITE), ("burst", 0.0, 10), ("burst", 2.2, 10), ("burst", 9.0, 0),
    ("retransmissions", 0.0, 0), ("lost", 0.0, 0), ("timeouts", 0.0, 0),
    ("largest_window", 0.0, 36), ("largest_window", 2.2, 31), ("largest_window", 9.0, 0)])
def test_counts_at_a_time_or_from_it_on(idle: View, metric: str, at_s: float, value: int) -> None:
    assert METRICS[metric].value(idle, at_s) == value


@pytest.mark.parametrize("metric, at_s, value", [
    ("finish_s", 0.0, 2.401354), ("lasts_s", 2.2, 0.201354), ("rtt_ms", 0.0, 100.012),
    ("rtt_ms", 1.0, 100.751), ("longest_rtt_ms", 0.0, 101.220764),
    ("longest_rtt_ms", 2.3, 100.732004), ("longest_rtt_ms", 9.0, 0.0)])
def test_times_at_a_time_or_from_it_on(idle: View, metric: str, at_s: float,
                                       value: float) -> None:
    assert METRICS[metric].value(idle, at_s) == pytest.approx(value, abs=1e-6)


def test_the_schedule_is_kept_to_the_microsecond(idle: View) -> None:
    late_ms = idle.lateness_ms(0.0)
    assert late_ms == pytest.approx(0.002868) == idle.lateness_ms(10.0)
    assert idle.last_request_s() == 0.0
    later = replace(idle, start_ns=idle.start_ns - 7_000_000)  # due 7 ms before it was sent
    assert later.lateness_ms(0.0) == pytest.approx(7.002868)
    # Nothing was quiet for longer than from the last acknowledgement to the second write.
    acknowledged_ns = max(group.time_ns for group in idle.groups
                          if idle.seconds(group.time_ns) < 1)
    write_ns = next(group.time_ns for group in idle.groups if idle.seconds(group.time_ns) > 1)
    quiet_ms = (write_ns - acknowledged_ns) / 1e6
    assert idle.lateness_ms(quiet_ms) == late_ms and idle.lateness_ms(quiet_ms + 0.001) == 0.0
    assert replace(idle, trial=replace(idle.trial, paths="/5?")).lateness_ms(0.0) is None


def sample(at_ms: float, cwnd: int, state: int = OPEN) -> WindowSample:
    values = dict.fromkeys(stored_trace.FIELDS, 0)
    return WindowSample(**values | {"time_ns": REQUEST_NS + round(at_ms * MS), "cwnd": cwnd,
                                    "state": state, "ssthresh": cwnd * 2, "rtt_us": cwnd * 1000})


def lossy() -> View:
    """Segments 1 and 3 of four are lost, sent again after a timeout, the last a second time."""
    packets = Conversation().handshake().flight(0)
    for number in (1, 3):
        packets.send(160 + number, True, ACK, seq=1 + number * MSS, ack=96, payload=MSS, lost=True)
    packets.send(162, True, ACK, seq=1 + 2 * MSS, ack=96, payload=MSS)
    packets.acknowledge(222, 1)
    packets.send(650, True, ACK, seq=1 + MSS, ack=96, payload=MSS)
    packets.acknowledge(700, 3)
    packets.send(760, True, ACK, seq=1 + 3 * MSS, ack=96, payload=MSS, lost=True)
    packets.send(1600, True, ACK, seq=1 + 3 * MSS, ack=96, payload=MSS)
    packets.acknowledge(1660, 4)
    return view_of(trial("idle-linux-iw10"), packets.read(), [
        sample(0, 4), sample(500, 1, 4), sample(550, 2, 4), sample(610, 1, 4), sample(700, 1, 3),
        sample(1450, 1, 4), sample(1510, 3)])


def test_what_was_lost_and_sent_again_from_a_time_on() -> None:
    view = lossy()
    assert [view.lost(at_s) for at_s in (0.0, 0.013, 0.4, 0.7)] == [3, 2, 1, 0]
    assert [view.retransmissions(at_s) for at_s in (0.0, 0.5, 0.5002, 1.0, 2.0)] == [3, 3, 2, 1, 0]
    # A tenth of a millisecond is near enough to a time, to the nanosecond.
    just, too_late = 0.500_1, 0.500_100_001
    assert (view.retransmissions(just), view.retransmissions(too_late)) == (3, 2)
    # The one that is sent then, or the two after the next acknowledgement.
    assert (view.burst(just), view.burst(too_late)) == (1, 2)
    assert view.longest_rtt_ms() == 588.0  # of segment 2; segments sent twice tell none
    # Acknowledgements leave the client at the times given, and are at the server 50 ms later.
    assert view.finish_s() == pytest.approx(1.56) and view.lasts_s(0.5) == pytest.approx(1.06)


def test_a_timeout_within_a_recovery_is_another_one() -> None:
    """Its window falls, and in a recovery it grows only."""
    view = lossy()
    assert [view.timeouts(at_s) for at_s in (0.0, 0.5, 0.51, 0.62, 1.46)] == [3, 3, 2, 1, 0]
    assert view.largest_window() == 4 and view.largest_window(1.0) == 3


def test_a_sample_belongs_to_what_was_written_just_before_it() -> None:
    view = lossy()
    assert [view.window(at_s) for at_s in (0.0, 0.4994, 0.4996, 0.5, -1.0)] == [4, 4, 1, 1, 4]
    assert (view.ssthresh(0.56), view.rtt_ms(0.56)) == (4, 2.0)


def test_without_a_request_or_an_end_there_is_no_view_or_time() -> None:
    packets = Conversation().handshake().flight(0)
    with pytest.raises(FirstFlightError, match="idle-linux-iw10: its data was never acknowledged"):
        view_of(trial("idle-linux-iw10"), packets.read(), [sample(0, 4)]).finish_s()
    silent = Conversation()
    silent.send(0, False, 2)
    with pytest.raises(FirstFlightError, match="no request arrived"):
        view_of(trial("idle-linux-iw10"), silent.read(), [])
    with pytest.raises(FirstFlightError, match="idle-linux-iw10: the server sent no data"):
        view_of(trial("idle-linux-iw10"), Conversation().handshake().read(), [])


@pytest.mark.parametrize("name, value, said", [
    ("window", 10, "a window of 10 segments at 2.5 s"), ("window", 1, "a window of 1 segment at 2.5 s"),
    ("ssthresh", INFINITE, "an ssthresh of ∞ segments at 2.5 s"), ("burst", 3, "at once 3 segments at 2.5 s"),
    ("finish_s", 1, "finished after 1.000 s"), ("lasts_s", 2.5, "took 2.500 s"),
    ("retransmissions", 2, "retransmitted 2 segments"), ("lost", 1, "lost 1 segment"),
    ("timeouts", 1, "1 timeout"), ("timeouts", 2, "2 timeouts"), ("longest_rtt_ms", 1, "an RTT of up to 1 ms"),
    ("rtt_ms", 99.6, "a smoothed RTT of 100 ms at 2.5 s"),
    ("largest_window", 7, "a window of up to 7 segments")])
def test_a_metric_in_a_sentence(name: str, value: float, said: str) -> None:
    metric: Metric = METRICS[name]
    assert metric.words(value) + metric.when(2.5) == said
