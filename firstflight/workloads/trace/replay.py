"""Replays a connection's rules over its packets, and compares with TCP_INFO sample by sample."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from firstflight.net.headers import SYN
from firstflight.net.segments import Segment
from firstflight.wire.exchange import Exchange, clock_phase_ns
from firstflight.workloads.trace.rules import Rules, restart_rule, rules_for
from firstflight.workloads.trace.trial import TraceTrial
from firstflight.workloads.trace.window import OPEN, WindowSample

TICK_NS = 1_000_000  # jiffies at HZ = 1000


@dataclass(frozen=True)
class Restart:
    """The first segments after a silence of more than an RTO with nothing outstanding.

    time_ns: of the first of them. idle, rto: in ticks (ms). before, after:
    (cwnd, ssthresh) as TCP_INFO has them; rule: as the TCP's rule has them,
    None where it is not written down. flight: segments on the wire before the
    first acknowledgement; may_send: as many as the windows and the data allow.
    """

    time_ns: int
    idle: int
    rto: int
    before: tuple[int, int]
    after: tuple[int, int]
    rule: tuple[int, int] | None
    flight: int
    may_send: int

    @property
    def agrees(self) -> bool:
        """Whether TCP_INFO and the wire show what the rule requires."""
        return self.rule in (None, self.after) and self.flight == self.may_send


@dataclass(frozen=True)
class Mismatch:
    """A sample that is not what the rules require."""

    time_ns: int
    observed: tuple[int, int]
    rule: tuple[int, int]


@dataclass(frozen=True)
class Replay:
    """checked: samples compared; unjudged: those in and right after a recovery from loss."""

    checked: int
    unjudged: int
    mismatches: tuple[Mismatch, ...]
    restarts: tuple[Restart, ...]


@dataclass
class SendGroup:
    """One moment of TCP: the acknowledgement or write that it took, and what it then sent.

    sends: data, and the FIN, which takes a place in the window like a byte.
    """

    time_ns: int
    ack: int | None
    window: int = 0  # of the acknowledgement, as its header has it
    sends: list[Segment] = field(default_factory=list)


def groups_of(exchange: Exchange) -> list[SendGroup]:
    """The server's packets in groups, in order of time, without the handshake."""
    groups: list[SendGroup] = []
    for segment in exchange.at_server:
        if segment.flags & SYN:
            continue
        if not segment.to_client:
            if segment.ack is not None:
                groups.append(SendGroup(segment.time_ns, segment.ack, segment.window))
        elif segment.payload_bytes or segment.is_fin:
            if not groups or groups[-1].time_ns != segment.time_ns:
                groups.append(SendGroup(segment.time_ns, None))
            groups[-1].sends.append(segment)
    return groups


def replay(trial: TraceTrial, exchange: Exchange, samples: Sequence[WindowSample]) -> Replay:
    """Compare all samples of a connection with its TCP's rules."""
    return _Replayer(trial, exchange, samples).run()


class _Replayer:
    def __init__(self, trial: TraceTrial, exchange: Exchange,
                 samples: Sequence[WindowSample]) -> None:
        self.trial, self.samples = trial, samples
        self.groups = groups_of(exchange)
        self.times = [sample.time_ns for sample in samples]
        first = next((s for s in exchange.at_client if not s.to_client), None)
        # Trials start on a grid of the kernel's clock; the packets show where in a tick.
        self.tick_start_ns = (first.time_ns if first else 0) - (clock_phase_ns(exchange) or 0)
        start = self._tick(self.groups[0].time_ns)
        rules = rules_for(trial.congestion_control, trial.validation, trial.initcwnd, trial.mss,
                          start)
        # One, or after a recovery from loss all that it can have left: all that fit so far.
        self.candidates: list[Rules] = [rules] if rules is not None else []
        self.window_scale = self._window_scale()
        self.unsure = False  # after a loss: the window is the recovery's, not the rules'
        self.last_send = start
        self.written = self.outstanding_end = self.una = 1  # byte 0 is the SYN's
        self.checked = self.unjudged = 0
        self.mismatches: list[Mismatch] = []
        self.restarts: list[Restart] = []

    def run(self) -> Replay:
        place = 0
        for sample in self.samples:
            while place < len(self.groups) and self._precedes(self.groups[place], sample):
                self._take(place)
                place += 1
            self._compare(sample)
        return Replay(self.checked, self.unjudged, tuple(self.mismatches), tuple(self.restarts))

    def _precedes(self, group: SendGroup, sample: WindowSample) -> bool:
        if group.time_ns != sample.time_ns or not self.candidates:
            return group.time_ns <= sample.time_ns
        # At the same time: it is from after the group where more is outstanding or sent.
        return (self.candidates[0].connection.packets != sample.unacked
                or self.outstanding_end + sample.notsent_bytes != self.written)

    def _window_scale(self) -> int:
        """The client's window scale (RFC 7323): the one that fits its headers to TCP_INFO."""
        windows = {sample.send_window_bytes for sample in self.samples}
        return max(range(15), key=lambda scale: sum(
            group.window << scale in windows for group in self.groups))

    def _tick(self, time_ns: int) -> int:
        return (time_ns - self.tick_start_ns) // TICK_NS

    def _before(self, time_ns: int) -> WindowSample:
        """The newest sample before a write of the application."""
        return self.samples[max(bisect_left(self.times, time_ns) - 1, 0)]

    def _after(self, time_ns: int) -> WindowSample:
        """The first sample after an acknowledgement or a write took effect.

        There is one: a group is taken for a sample that comes after it.
        """
        return self.samples[max(bisect_left(self.times, time_ns),
                                bisect_right(self.times, time_ns) - 1)]

    def _take(self, place: int) -> None:
        group = self.groups[place]
        now = self._tick(group.time_ns)
        if group.ack is not None:
            self.una = max(self.una, group.ack)
        new = [segment for segment in group.sends if segment.end_with_fin > self.outstanding_end]
        if new and group.ack is None and self.una == self.outstanding_end:
            self._note_restart(place, now)
        for rules in self.candidates:
            self._apply(rules, group, new, now)
        for segment in new:
            self.outstanding_end = segment.end_with_fin
        if group.sends:
            self.last_send = now

    def _apply(self, rules: Rules, group: SendGroup, new: Sequence[Segment], now: int) -> None:
        near = self._after(group.time_ns) if group.ack is not None else self._before(group.time_ns)
        rules.rto = near.rto_us // 1000
        rules.recovering = self.unsure
        if group.ack is not None:
            rules.declared(group.window << self.window_scale)
            rules.acknowledged(now, group.ack)
        if new:
            rules.before_sending(now)
            for segment in new:
                rules.connection.sent(segment.end_with_fin)
            if group.ack is None:
                left = self._after(group.time_ns).notsent_bytes > 0
            else:
                left = rules.connection.nxt < self.written
            rules.after_sending(now, left)
        if group.sends:
            rules.connection.last_send = now

    def _note_restart(self, place: int, now: int) -> None:
        group = self.groups[place]
        before = self._before(group.time_ns)
        idle, rto = now - self.last_send, before.rto_us // 1000
        if idle <= rto or self.outstanding_end == 1:
            return
        flight = len(self._flight(place))
        after = self._after(group.time_ns)
        windows = min(after.cwnd, after.send_window_bytes // self.trial.mss)
        # Short segments fill a window of bytes less than full ones do.
        may_send = windows if after.notsent_bytes and flight < windows else flight
        may_send = min(may_send, after.cwnd)
        rule: tuple[int, int] | None
        if self.candidates:
            expected = [rules.restart_window(idle, rto) for rules in self.candidates]
            rule = (after.cwnd, after.ssthresh)
            rule = rule if rule in expected else expected[0]
        else:
            rule = restart_rule(self.trial.congestion_control, self.trial.validation,
                                self.trial.initcwnd, self.trial.mss,
                                (before.cwnd, before.ssthresh), idle, rto)
        self.restarts.append(Restart(
            group.time_ns, idle, rto, (before.cwnd, before.ssthresh),
            (after.cwnd, after.ssthresh), rule, flight, may_send))

    def _flight(self, place: int) -> list[Segment]:
        """What is sent at once with a group, and before any acknowledgement."""
        sends: list[Segment] = []
        for group in self.groups[place:]:
            if group.ack is not None:
                break
            sends += [segment for segment in group.sends if segment.payload_bytes]
        return sends

    def _compare(self, sample: WindowSample) -> None:
        self.written = max(self.written, self.outstanding_end + sample.notsent_bytes)
        if not self.candidates:
            return
        observed = (sample.cwnd, sample.ssthresh)
        recovering = bool(sample.state != OPEN or sample.lost or sample.retransmitted
                          or sample.sacked)
        if recovering or self.unsure:
            self.unjudged += 1
            self._take_over(observed)
            if not recovering:
                self.candidates = self.candidates[0].after_recovery()
            self.unsure = recovering
            return
        self.checked += 1
        fitting = [rules for rules in self.candidates if (rules.cwnd, rules.ssthresh) == observed]
        if fitting:
            self.candidates = fitting
            return
        rule = (self.candidates[0].cwnd, self.candidates[0].ssthresh)
        self.mismatches.append(Mismatch(sample.time_ns, observed, rule))
        self._take_over(observed)

    def _take_over(self, observed: tuple[int, int]) -> None:
        """Go on with the window that was observed."""
        self.candidates = self.candidates[:1]
        self.candidates[0].set_window(*observed)
