"""Replays a connection's packets to the rules, and compares the rules with samples of TCP_INFO."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from firstflight.net.headers import SYN
from firstflight.net.link import MANAGED
from firstflight.net.segments import Segment
from firstflight.net.sysctls import settings_of
from firstflight.wire.exchange import Exchange, clock_phase_ns
from firstflight.workloads.trace.rules import Rules, restart_rule, rules_for
from firstflight.workloads.trace.trial import TraceTrial
from firstflight.workloads.trace.window import LOSS, OPEN, RECOVERY, WindowSample

TICK_NS = 1_000_000  # jiffies at HZ = 1000
# Settings of a server that the rules follow, or that matter in a recovery only.
FOLLOWED = frozenset(f"net.ipv4.tcp_{name}" for name in (
    "slow_start_after_idle", "timestamps", "window_scaling", "sack", "dsack", "early_retrans",
    "frto", "recovery", "reordering", "max_reordering"))


@dataclass(frozen=True)
class Restart:
    """The first segments after a silence of more than an RTO with nothing outstanding."""

    time_ns: int  # of the first of these segments
    idle: int  # ticks (ms)
    rto: int  # ticks
    before: tuple[int, int]  # (cwnd, ssthresh) by TCP_INFO before the silence
    after: tuple[int, int]  # (cwnd, ssthresh) by TCP_INFO when these segments had left
    # (cwnd, ssthresh) as the TCP's rule requires them; None if no rule covers this restart.
    rule: tuple[int, int] | None
    flight: int  # segments on the wire before the first acknowledgement
    may_send: int  # how many segments the windows and the data allow in this flight

    @property
    def agrees(self) -> bool:
        """Whether TCP_INFO and the wire show what the rule requires, where there is one."""
        return self.rule is None or (self.rule == self.after and self.flight == self.may_send)


@dataclass(frozen=True)
class Mismatch:
    """A sample that is not what the rules require."""

    time_ns: int
    observed: tuple[int, int]  # (cwnd, ssthresh)
    rule: tuple[int, int]  # (cwnd, ssthresh)


def is_recovering(sample: WindowSample) -> bool:
    """Whether TCP recovered from a loss, or suspected one, when a sample was taken."""
    return bool(sample.state != OPEN or sample.lost or sample.retransmitted or sample.sacked)


@dataclass(frozen=True)
class Replay:
    """The result of comparing a connection's samples with the rules."""

    checked: int  # samples that were compared
    unjudged: int  # samples that were not compared, such as those in a recovery from loss
    mismatches: tuple[Mismatch, ...]
    restarts: tuple[Restart, ...]


@dataclass
class SendGroup:
    """One moment of TCP: an acknowledgement or a write, and what TCP sent because of it."""

    time_ns: int
    ack: int | None  # None for a write
    window: int = 0  # the receive window in the acknowledgement's header, without its scale
    sacked: bool = False  # whether the acknowledgement has SACK blocks
    carries_data: bool = False  # whether the acknowledgement came with data or a FIN
    # Segments with data, and with the FIN, which counts in the window like a byte.
    sends: list[Segment] = field(default_factory=list)


def groups_of(exchange: Exchange) -> list[SendGroup]:
    """The server's packets in groups, in order of time, without the handshake."""
    groups: list[SendGroup] = []
    for segment in exchange.at_server:
        if segment.flags & SYN:
            continue
        if not segment.to_client:
            if segment.ack is not None:
                groups.append(SendGroup(segment.time_ns, segment.ack, segment.window,
                                        sacked=bool(segment.sacked),
                                        carries_data=segment.end_with_fin > segment.seq))
        elif segment.payload_bytes or segment.is_fin:
            joins = bool(groups) and groups[-1].time_ns == segment.time_ns
            # A FIN without data is a moment of its own: when a program closes that has sent all,
            # TCP looks once more for what it may send (tcp_send_fin).
            closes = joins and bool(groups[-1].sends) and not segment.payload_bytes
            if not joins or closes:
                groups.append(SendGroup(segment.time_ns, ack=None))
            groups[-1].sends.append(segment)
    return groups


def replay(trial: TraceTrial, exchange: Exchange, samples: Sequence[WindowSample],
           tick_ns: int = 0) -> Replay:
    """Compare all samples of a connection with its TCP's rules.

    tick_ns: the time of any tick of the kernel's clock; 0 where only packets show it.
    """
    return _Replayer(trial, exchange, samples, tick_ns).run()


def _tick_before(exchange: Exchange) -> int:
    """The time of the tick before the client's first packet, or of that packet.

    It is the packet's time where packets do not show the tick.
    """
    first = next((segment for segment in exchange.at_client if not segment.to_client), None)
    return (first.time_ns if first else 0) - (clock_phase_ns(exchange) or 0)


def shows_rules(trial: TraceTrial, samples: Sequence[WindowSample]) -> bool:
    """Whether packets and samples show all that the rules need to know.

    They do not where a sender paces: its segments leave later than TCP decides to send. They do not
    either where the length of segments changes, as with a small receive window
    (tcp_bound_to_half_wnd), or where a sysctl is set that the rules do not follow.
    """
    return (not trial.paces and {*trial.settings, *settings_of(trial.sysctl)} <= FOLLOWED
            and all(sample.mss == samples[0].mss for sample in samples))


class _Replayer:
    """Follows one connection with its rules, group by group and sample by sample.

    The rules are settled while they know all that TCP knows. After a recovery from loss, or a
    packet that hints at one, they do not know how much of its window TCP has counted as used, since
    no sample shows it. TCP begins to count again when it fills its window (tcp_cwnd_validate).
    Until then a sample that the rules do not explain is not judged.
    """

    def __init__(self, trial: TraceTrial, exchange: Exchange, samples: Sequence[WindowSample],
                 tick_ns: int = 0) -> None:
        self.trial, self.samples = trial, samples
        self.retransmissions = {id(segment) for segment in exchange.retransmissions}
        self.probes = {id(segment) for segment in exchange.probes}
        self.groups = groups_of(exchange)
        self.sample_times = [sample.time_ns for sample in samples]
        self.tick_start_ns = tick_ns or _tick_before(exchange)
        start = self._tick(self.groups[0].time_ns)
        rules = rules_for(trial.congestion_control, trial.validation, trial.initcwnd,
                          samples[0].mss, start)
        # The rules; none where no rules cover the congestion control. After a recovery from loss,
        # one candidate for each state that it may have left. Candidates that a sample contradicts
        # are dropped.
        self.candidates: list[Rules] = [rules] if rules is not None else []
        self.is_shown = shows_rules(trial, samples)
        self.window_scale = self._window_scale()
        # Whether other rules made the window: in a recovery, and at the first sample after one.
        # After several SYN-ACKs, TCP begins with another window (tcp_init_transfer).
        self.unsure = len(exchange.syn_acks) > 1
        self.is_settled = not self.unsure
        self.states: set[int] = set()  # of congestion control, in samples of the last recovery
        self.cwnd_before = trial.initcwnd  # before the last recovery
        self.may_settle = True  # whether the candidates have every window that it may have left
        # Where the data ended that was sent when the last retransmission left. That may have been a
        # tail loss probe: then an acknowledgement beyond this end still shrinks the window
        # (tcp_process_tlp_ack).
        self.probe_end = 0
        # Since the last hint at a recovery: whether a sample showed none, and whether the window
        # was full after that.
        self.was_clean = self.was_full = False
        self.last_window = 0  # in the header of the last acknowledgement
        self.last_send = start
        # Sequence numbers, of which the SYN has 0: up to where the application wrote, up to where
        # data was sent, and up to where it was acknowledged.
        self.written = self.outstanding_end = self.una = 1
        self.checked = self.unjudged = 0
        self.mismatches: list[Mismatch] = []
        self.restarts: list[Restart] = []

    def run(self) -> Replay:
        """Compare all samples with the rules."""
        place = 0
        for sample in self.samples:
            first = place
            while place < len(self.groups) and self._precedes(self.groups[place], sample):
                self._take(place)
                place += 1
            if place == first:
                self._try_to_send(sample)
            self._compare(sample)
        return Replay(self.checked, self.unjudged, mismatches=tuple(self.mismatches),
                      restarts=tuple(self.restarts))

    def _try_to_send(self, sample: WindowSample) -> None:
        """Take a write of which nothing left: the window was full, or Nagle's algorithm held it."""
        if self.outstanding_end + sample.notsent_bytes <= self.written:
            return
        for rules in self.candidates:
            rules.rto = sample.rto_us // 1000
            rules.recovering = self.unsure
            rules.after_blocked_write(self._tick(sample.time_ns))

    def _precedes(self, group: SendGroup, sample: WindowSample) -> bool:
        """Whether a sample was taken after a group had its effect."""
        if group.time_ns != sample.time_ns or not self.candidates:
            return group.time_ns <= sample.time_ns
        # At the same time: it is from after the group if its counts are not those from before.
        sent = self.outstanding_end + sample.notsent_bytes
        return (self.candidates[0].connection.packets != sample.unacked
                or sent != max(self.written, self.outstanding_end))

    def _window_scale(self) -> int:
        """The client's window scale (RFC 7323): the one that fits its headers to TCP_INFO."""
        windows = {sample.send_window_bytes for sample in self.samples}
        return max(range(15), key=lambda scale: sum(
            group.window << scale in windows for group in self.groups))

    def _tick(self, time_ns: int) -> int:
        """The last tick of the kernel's clock at a time, by its number."""
        return (time_ns - self.tick_start_ns) // TICK_NS

    def _sample_before(self, time_ns: int) -> WindowSample:
        """The newest sample before a write of the application."""
        return self.samples[max(bisect_left(self.sample_times, time_ns) - 1, 0)]

    def _sample_after(self, time_ns: int) -> WindowSample:
        """The first sample after an acknowledgement or a write took effect.

        That is the last sample of the same time, or else the next one. There is one: a group is
        taken for a sample that comes after it.
        """
        return self.samples[max(bisect_left(self.sample_times, time_ns),
                                bisect_right(self.sample_times, time_ns) - 1)]

    def _take(self, place: int) -> None:
        """Apply the rules to a group. place: its index in self.groups."""
        group = self.groups[place]
        now = self._tick(group.time_ns)
        if self._shows_disorder(group):
            self._unsettle()
        if any(segment.end_with_fin <= self.outstanding_end for segment in group.sends):
            self.probe_end = self.outstanding_end
        if group.ack is not None:
            self.una = max(self.una, group.ack)
            self.last_window = group.window

        new = [segment for segment in group.sends if segment.end_with_fin > self.outstanding_end]
        if new and group.ack is None and self.una == self.outstanding_end:
            self._note_restart(place, now)
        for rules in self.candidates:
            self._apply(rules, group, new, now)

        if new and self.candidates:
            observed = self._sample_after(group.time_ns).cwnd
            if any(rules.may_have_stopped_early(observed) for rules in self.candidates):
                self._unsettle()
        if new and self.was_clean:
            self.was_full = self.was_full or all(rules.is_full for rules in self.candidates)
        for segment in new:
            self.outstanding_end = segment.end_with_fin
        if group.sends:
            self.last_send = now

    def _shows_disorder(self, group: SendGroup) -> bool:
        """Whether a group hints at a recovery.

        Something is sent again, or the acknowledgement reports a gap, comes twice, or comes late.
        """
        if any(segment.end_with_fin <= self.outstanding_end for segment in group.sends):
            return True
        if group.ack is None or self.outstanding_end == 1:
            return False
        is_double = (group.ack == self.una < self.outstanding_end and not group.carries_data
                     and group.window == self.last_window)
        return group.sacked or is_double or group.ack < self.una

    def _apply(self, rules: Rules, group: SendGroup, new: Sequence[Segment], now: int) -> None:
        """Apply one candidate's rules to a group. new: segments that are sent for the first time.

        now: in ticks.
        """
        is_write = group.ack is None
        near = (self._sample_before if is_write else self._sample_after)(group.time_ns)
        rules.rto = near.rto_us // 1000
        rules.recovering = self.unsure
        if group.ack is not None:
            rules.note_peer_window(group.window << self.window_scale)
            rules.take_acknowledgement(now, group.ack)

        if new:
            rules.before_sending(now)
            for segment in new:
                rules.connection.add_packet(segment.end_with_fin)
            if is_write:
                data_is_left = self._sample_after(group.time_ns).notsent_bytes > 0
            else:
                data_is_left = rules.connection.nxt < self.written
            rules.after_sending(now, data_is_left)
        if group.sends:
            rules.connection.last_send = now

    def _note_restart(self, place: int, now: int) -> None:
        """Note a write after a silence of more than an RTO, and what the rule requires there."""
        group = self.groups[place]
        before = self._sample_before(group.time_ns)
        idle, rto = now - self.last_send, before.rto_us // 1000
        if idle <= rto or self.outstanding_end == 1:
            return

        flight = len(self._flight(place))
        after = self._sample_after(group.time_ns)
        windows = min(after.cwnd, after.send_window_bytes // max(after.mss, 1))
        # Short segments fill a window of bytes less than full ones do.
        may_send = windows if after.notsent_bytes and flight < windows else flight
        may_send = min(may_send, after.cwnd)

        rule: tuple[int, int] | None
        if not self.is_shown or is_recovering(before):
            rule = None
        elif self.candidates:
            expected = [rules.restart_window(idle, rto) for rules in self.candidates]
            rule = (after.cwnd, after.ssthresh)
            if rule not in expected:  # only settled rules can say that TCP is wrong
                rule = expected[0] if self.is_settled else None
        else:
            trial = self.trial
            rule = restart_rule(trial.congestion_control, trial.validation, trial.initcwnd,
                                mss=trial.mss, before=(before.cwnd, before.ssthresh), idle=idle,
                                rto=rto)
        self.restarts.append(Restart(
            group.time_ns, idle, rto, before=(before.cwnd, before.ssthresh),
            after=(after.cwnd, after.ssthresh), rule=rule, flight=flight, may_send=may_send))

    def _flight(self, place: int) -> list[Segment]:
        """The data segments sent with a group and after it, up to the next acknowledgement.

        Segments that a timer sends are left out: retransmissions, and probes after the group.
        """
        sends: list[Segment] = []
        for number, group in enumerate(self.groups[place:]):
            if group.ack is not None:
                break
            timed = self.retransmissions | self.probes if number else self.retransmissions
            sends += [segment for segment in group.sends
                      if segment.payload_bytes and id(segment) not in timed]
        return sends

    def _compare(self, sample: WindowSample) -> None:
        """Compare a sample with the rules, or take its window over where they do not judge it."""
        self.written = max(self.written, self.outstanding_end + sample.notsent_bytes)
        if not self.candidates:
            return
        if not self.is_shown:
            self.unjudged += 1
            return

        observed = (sample.cwnd, sample.ssthresh)
        if is_recovering(sample):
            self._unsettle()
            self.states.add(sample.state)
            if sample.state in (RECOVERY, LOSS):  # TCP forgets its probe when these begin
                self.probe_end = 0
        if is_recovering(sample) or self.unsure:
            self.unjudged += 1
            self._take_over(observed)
            if not is_recovering(sample):
                self._go_on()
            self.unsure = is_recovering(sample)
            return

        fitting = [rules for rules in self.candidates if (rules.cwnd, rules.ssthresh) == observed]
        if fitting:
            self.checked += 1
            self.candidates = fitting
            if not self.is_settled and self.may_settle and self.was_full:
                self._settle(observed)
        elif not self.is_settled:
            self.unjudged += 1
            self._take_over(observed)
            self._go_on()
            self.was_full = False
        else:
            self.checked += 1
            rule = (self.candidates[0].cwnd, self.candidates[0].ssthresh)
            self.mismatches.append(Mismatch(sample.time_ns, observed, rule))
            self._take_over(observed)
        self.was_clean = self.una > self.probe_end

    def _go_on(self) -> None:
        """Let the rules go on from the window that was taken over."""
        rules = self.candidates[0]
        by_chance = self.trial.is_random or self.trial.qdisc in MANAGED
        self.may_settle = rules.is_known_after(self.states, self.cwnd_before, by_chance)
        self.candidates = rules.after_recovery()

    def _settle(self, observed: tuple[int, int]) -> None:
        """Note that from now on the rules know how much of its window TCP uses.

        Until now they may have let an acknowledgement grow the window where TCP did not. So each
        part of a segment by which the window may have grown becomes a candidate again.
        """
        rules = self.candidates[0].duplicate()
        rules.set_window(*observed)
        self.candidates += rules.after_recovery()
        self.is_settled = True

    def _unsettle(self) -> None:
        """Note a recovery, or a hint at one."""
        if (self.is_settled or self.was_clean) and self.candidates:
            self.states = set()
            self.cwnd_before = self.candidates[0].cwnd
        self.is_settled = self.was_clean = self.was_full = False

    def _take_over(self, observed: tuple[int, int]) -> None:
        """Go on with the window that was observed."""
        self.candidates = self.candidates[:1]
        self.candidates[0].set_window(*observed)
