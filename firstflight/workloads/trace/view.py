"""One measured trace, ready for analysis: packets and window, at times since the first request."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from firstflight.base.errors import FirstFlightError
from firstflight.base.words import plain
from firstflight.net.path import serialised_ms
from firstflight.net.segments import MS, Segment
from firstflight.runs.measuring import capture_path, trial_file_path, read_trial_file
from firstflight.wire.exchange import Exchange, read_exchange
from firstflight.wire.flights import split_into_flights
from firstflight.workloads.trace.replay import Replay, SendGroup, groups_of, replay
from firstflight.workloads.trace.trial import TraceTrial
from firstflight.workloads.trace.window import (INFINITE, LOSS, WINDOW_FILE, WindowSample,
                                                format_ssthresh, parse)

# A write at a moment may change the window, so the window of a moment is read so much after it.
SETTLED_NS = 500_000
NEAR_NS = 100_000  # a packet may leave so much before a time and still counts as sent at it


@dataclass(frozen=True)
class View:
    """What figures, claims and checks read of a trace: its packets, and its window over time."""

    trial: TraceTrial
    exchange: Exchange
    samples: tuple[WindowSample, ...]
    start_ns: int  # when the first request arrived at the server, the zero of all times here
    sends: tuple[Segment, ...]  # data that the server sent, retransmissions too; never empty
    groups: tuple[SendGroup, ...]
    tick_ns: int = 0  # when one tick of the kernel's clock came; 0 where only packets show ticks

    def seconds(self, time_ns: int) -> float:
        """A packet's time in seconds after the first request."""
        return (time_ns - self.start_ns) / 1e9

    @cached_property
    def replayed(self) -> Replay:
        """The comparison of all samples with the TCP's rules."""
        return replay(self.trial, self.exchange, self.samples, self.tick_ns)

    # What claims compare. at_s: the moment, or from when on; in s after the first request --------

    def sample_at(self, at_s: float) -> WindowSample:
        """The newest sample at a time, after the effect of a write at that time."""
        times = [sample.time_ns for sample in self.samples]
        place = bisect_right(times, self.start_ns + round(at_s * 1e9) + SETTLED_NS)
        return self.samples[max(place - 1, 0)]

    def window(self, at_s: float) -> float:
        """The congestion window at a time, in segments."""
        return self.sample_at(at_s).cwnd

    def ssthresh(self, at_s: float) -> float:
        """The slow start threshold at a time, in segments."""
        return self.sample_at(at_s).ssthresh

    def rtt_ms(self, at_s: float) -> float:
        """TCP's smoothed RTT at a time."""
        return self.sample_at(at_s).rtt_us / 1000

    def burst(self, at_s: float) -> float:
        """How many segments left from a time on before an acknowledgement came in."""
        sent, begun = 0, False
        for group in self.groups:
            if not self._since(group, at_s):
                continue
            if begun and group.ack is not None:
                break
            data = sum(segment.payload_bytes > 0 for segment in group.sends)
            sent, begun = sent + data, begun or data > 0
        return sent

    def finish_s(self, at_s: float = 0.0) -> float:
        """When the last byte of data was acknowledged, in s; at_s changes nothing."""
        last_end = max(segment.end for segment in self.sends)
        for group in self.groups:
            if group.ack is not None and group.ack >= last_end:
                return self.seconds(group.time_ns)
        raise FirstFlightError(f"{self.trial.id}: its data was never acknowledged")

    def lasts_s(self, at_s: float) -> float:
        """How long it took from a time until the last byte of data was acknowledged, in s."""
        return self.finish_s() - at_s

    def retransmissions(self, at_s: float = 0.0) -> int:
        """How many data segments were retransmitted."""
        return sum(self._since(segment, at_s) for segment in self.exchange.retransmissions)

    def lost(self, at_s: float = 0.0) -> int:
        """How many data segments left and never arrived."""
        return sum(self._since(segment, at_s) for segment in self.exchange.lost_data)

    def timeouts(self, at_s: float = 0.0) -> int:
        """How often the retransmission timer ran out.

        While TCP recovers from one timeout its window only grows; the next timeout shrinks it.
        """
        count = 0
        for previous, sample in zip((None, *self.samples), self.samples):
            begins = (previous is None or previous.state != LOSS
                      or sample.cwnd < previous.cwnd)
            count += sample.state == LOSS and begins and self.seconds(sample.time_ns) >= at_s
        return count

    def largest_window(self, at_s: float = 0.0) -> int:
        """The largest congestion window of all samples, in segments."""
        return max((sample.cwnd for sample in self.samples
                    if self.seconds(sample.time_ns) >= at_s), default=0)

    def longest_rtt_ms(self, at_s: float = 0.0) -> float:
        """The longest time from a segment that was sent only once to its first acknowledgement."""
        retransmitted = {segment.end for segment in self.exchange.retransmissions}
        waiting = [segment for segment in self.sends
                   if self._since(segment, at_s) and segment.end not in retransmitted]
        longest_ns, place = 0, 0
        for group in self.groups:
            while group.ack is not None and place < len(waiting) \
                    and waiting[place].end <= group.ack:
                longest_ns = max(longest_ns, group.time_ns - waiting[place].time_ns)
                place += 1
        return longest_ns / 1e6

    def last_request_s(self) -> float:
        """When the last request arrived at the server, in s; without its retransmissions."""
        arrived_ns, end = self.start_ns, 0
        for segment in self.exchange.at_server:
            if not segment.to_client and segment.payload_bytes and segment.end > end:
                arrived_ns, end = segment.time_ns, segment.end
        return self.seconds(arrived_ns)

    def last_idle_ms(self) -> float | None:
        """How long the link to the client sent nothing during the last response, in ms.

        The response lasts from its first byte sent until its last byte was acknowledged. Each
        packet that arrived meanwhile kept the link busy for its length. None where HTB shapes: its
        packets leave in bursts.
        """
        if self.trial.htb_burst_bytes:
            return None
        begun_ns = self._last_sends[0].time_ns
        ended_ns = self.start_ns + round(self.finish_s() * 1e9)
        busy_ms = sum(serialised_ms(segment.frame_bytes, self.trial.down_kbps)
                      for segment in self.exchange.at_client
                      if segment.to_client and begun_ns < segment.time_ns <= ended_ns)
        return max(0.0, (ended_ns - begun_ns) / MS - busy_ms)

    def last_flights(self) -> list[list[Segment]]:
        """The flights in which the last response left."""
        sends = self._last_sends
        bytes_before = sends[0].seq - 1  # the first byte of a connection has the number 1
        return split_into_flights(self.exchange.at_server, bytes_before,
                                  max(segment.end for segment in sends))

    @cached_property
    def _last_sends(self) -> list[Segment]:
        """The data segments of the last response, in the order in which they left.

        There is at least one, even if the capture has none after the last request.
        """
        request_s = self.last_request_s()
        since_request = [segment for segment in self.sends if self._since(segment, request_s)]
        return since_request or [self.sends[-1]]

    def lateness_ms(self, quiet_ms: float) -> float | None:
        """The most by which a write was late, in ms; None without a schedule.

        Only writes count that found nothing outstanding, after at least quiet_ms without a packet.
        In real time a server can be too slow for its own burst, and pause within it. The first
        write does not count.
        """
        if not self.trial.writes:
            return None
        due = [self.start_ns + round(time_s * 1e9) for time_s in self.trial.due_s]
        # The numbers of the next byte to be acknowledged and to be sent. The first byte has 1.
        acknowledged, sent = 1, 1
        worst_ns = 0
        for previous, group in zip((None, *self.groups), self.groups):
            if group.ack is not None:
                acknowledged = max(acknowledged, group.ack)
            if not group.sends:
                continue
            is_quiet = (previous is not None
                        and group.time_ns - previous.time_ns >= quiet_ms * 1e6)
            is_first = sent == 1
            is_outstanding = acknowledged != sent
            if group.ack is None and is_quiet and not is_first and not is_outstanding:
                place = bisect_right(due, group.time_ns)
                if place:
                    worst_ns = max(worst_ns, group.time_ns - due[place - 1])
            sent = max(sent, max(segment.end_with_fin for segment in group.sends))
        return worst_ns / 1e6

    def _since(self, sent: Segment | SendGroup, at_s: float) -> bool:
        """Whether a segment or a group left at a time, or later."""
        return sent.time_ns >= self.start_ns + round(at_s * 1e9) - NEAR_NS


# What claims may name -----------------------------------------------------------------

@dataclass(frozen=True)
class Metric:
    """A number that claims compare: how it is read from a view, and how sentences write it."""

    value: Callable[[View, float], float]  # of a view and at_s
    unit: str
    digits: int = 0
    prefix: str = ""  # the words before the number in a sentence
    at_a_time: bool = False  # whether the number is of one moment, which the sentence names

    def words(self, value: float) -> str:
        """The value with its unit, as a sentence has it."""
        number = format_ssthresh(int(value)) if value == INFINITE else f"{value:.{self.digits}f}"
        # Units of one or two letters, such as ms, have no plural.
        is_one = number == "1" and len(self.unit) > 2
        unit = self.unit.removesuffix("s") if is_one else self.unit
        return f"{self.prefix} {number} {unit}".strip()

    def when(self, at_s: float) -> str:
        """The moment, such as " at 2.5 s"; "" where the metric is not of one moment."""
        return f" at {plain(at_s)} s" if self.at_a_time else ""


METRICS = {
    "window": Metric(View.window, "segments", prefix="a window of", at_a_time=True),
    "ssthresh": Metric(View.ssthresh, "segments", prefix="an ssthresh of", at_a_time=True),
    "burst": Metric(View.burst, "segments", prefix="at once", at_a_time=True),
    "finish_s": Metric(View.finish_s, "s", 3, "finished after"),
    "lasts_s": Metric(View.lasts_s, "s", 3, "took"),
    "retransmissions": Metric(View.retransmissions, "segments", prefix="retransmitted"),
    "lost": Metric(View.lost, "segments", prefix="lost"),
    "timeouts": Metric(View.timeouts, "timeouts"),
    "rtt_ms": Metric(View.rtt_ms, "ms", prefix="a smoothed RTT of", at_a_time=True),
    "longest_rtt_ms": Metric(View.longest_rtt_ms, "ms", prefix="an RTT of up to"),
    "largest_window": Metric(View.largest_window, "segments", prefix="a window of up to"),
}


# Making one --------------------------------------------------------------------------

def view_of(trial: TraceTrial, exchange: Exchange, samples: Sequence[WindowSample],
            tick_ns: int = 0) -> View:
    """The view of a trace. tick_ns: as in View.

    Raises FirstFlightError where the capture holds no request, or no data for it.
    """
    request = next((segment for segment in exchange.at_server
                    if not segment.to_client and segment.payload_bytes), None)
    if request is None:
        raise FirstFlightError(f"{trial.id}: no request arrived at the server")
    sends = tuple(segment for segment in exchange.at_server
                  if segment.to_client and segment.payload_bytes)
    if not sends:
        raise FirstFlightError(f"{trial.id}: the server sent no data")
    return View(trial, exchange, tuple(samples), start_ns=request.time_ns, sends=sends,
                groups=tuple(groups_of(exchange)), tick_ns=tick_ns)


def read_view(trial: TraceTrial, folder: Path) -> View:
    """Read the view of a trial from the files of its run. Raises FirstFlightError."""
    client, server = (read_trial_file(capture_path(folder, trial.id, side))
                      for side in ("client", "server"))
    path = trial_file_path(folder, trial.id, WINDOW_FILE)
    return view_of(trial, read_exchange(client, server), parse(read_trial_file(path), str(path)))
