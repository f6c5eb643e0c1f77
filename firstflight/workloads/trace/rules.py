"""The rules by which each TCP grows, validates and restarts its window.

They are written from these sources, independently of the kernel that is measured. The functions of
Linux are in model/congestion.py, since the model of a fetch follows them as well.

    RFC 2861 as Linux has it: tcp_cwnd_restart(), tcp_cwnd_validate(),
        tcp_is_cwnd_limited(), tcp_reno_cong_avoid()
    RFC 5681 section 4.1: restart from the initial window
    the report (Handley, Padhye and Floyd 1999), section 2.2; its windows are
        in bytes (sections 2.2 and 5)

workloads.trace.replay feeds the rules with the packets at the server's interface, and reads the
window whenever TCP_INFO was sampled: both have to agree, to the segment. Windows are in segments;
times are in ticks of the kernel's clock (jiffies, 1 ms at HZ = 1000).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import NamedTuple, Self

from firstflight.model.congestion import (WindowUse, additive_increase, remembered_threshold,
                                          restarted_window, shrunk_window, slow_start)
from firstflight.workloads.trace.window import INFINITE, LOSS, RECOVERY


MOST_IN_A_PACKET = 65_535 - 320  # GSO_LEGACY_MAX_SIZE less MAX_TCP_HEADER, bytes


@dataclass
class SentData:
    """What every TCP remembers of the data that it sent. Offsets in bytes; the SYN has 0."""

    last_send: int  # when it last sent, in ticks
    una: int = 1  # the first offset that is not acknowledged
    nxt: int = 1  # the first offset that is not sent
    outstanding: deque[int] = field(default_factory=deque)  # where each packet ends, in order

    @property
    def packets(self) -> int:
        return len(self.outstanding)

    @property
    def unacknowledged(self) -> int:
        return self.nxt - self.una

    def add_packet(self, end: int) -> None:
        """Note a packet that was sent. end: the offset that follows its last byte."""
        self.nxt = end
        self.outstanding.append(end)

    def remove_acknowledged(self, ack: int) -> int:
        """Forget the packets up to an acknowledged offset; return how many there were."""
        count = 0
        while self.outstanding and self.outstanding[0] <= ack:
            self.outstanding.popleft()
            count += 1
        self.una = max(self.una, ack)
        return count


@dataclass(frozen=True)
class RuleSetting:
    """How a TCP is configured, and which of the rules it follows."""

    initcwnd: int  # segments
    mss: int  # bytes
    validation: bool = False  # Linux's own validation (tcp_slow_start_after_idle)
    restarts: bool = False  # a restart from the initial window after an idle RTO (RFC 5681)
    grows_unused: bool = False  # the window grows although the sender did not fill it
    exact: bool = False  # the report's window is full only if not a single byte of it is free


class Rules:
    """One TCP's window. `rto`, in ticks, is set from outside: it is measured, not predicted."""

    rto: int

    def __init__(self, setting: RuleSetting, start: int) -> None:
        self.setting = setting
        self.cwnd = setting.initcwnd
        self.ssthresh = INFINITE
        self.peer_window_bytes = INFINITE
        self.largest_peer_window_bytes = 0
        self.connection = SentData(last_send=start)
        self.recovering = False

    def may_have_stopped_early(self, cwnd: int) -> bool:
        """Whether TCP may have kept data back although its window had room, by what packets show.

        cwnd: the window that was observed after it sent.
        """
        raise NotImplementedError

    def note_peer_window(self, window_bytes: int) -> None:
        """Note the receive window that the peer offers."""
        self.peer_window_bytes = window_bytes
        self.largest_peer_window_bytes = max(self.largest_peer_window_bytes, window_bytes)

    def set_window(self, cwnd: int, ssthresh: int) -> None:
        """Take over a window that other rules made: those of recovery from a loss."""
        self.cwnd, self.ssthresh = cwnd, ssthresh

    def duplicate(self) -> Self:
        """A copy that changes independently. There may be hundreds, so it shares what it can."""
        other = copy(self)
        outstanding = deque(self.connection.outstanding)
        other.connection = replace(self.connection, outstanding=outstanding)
        return other

    def after_recovery(self) -> list[Rules]:
        """Copies of this, one for each way in which a recovery may have left the window.

        All have the same window in whole segments, which TCP_INFO shows. They differ in how much of
        the next segment it has grown by, which nothing shows.
        """
        raise NotImplementedError

    def is_known_after(self, states: Collection[int], cwnd_before: int, by_chance: bool) -> bool:
        """Whether after_recovery() has every window that this recovery may have left.

        states: of congestion control, as sampled during the recovery. cwnd_before: the window
        before it. by_chance: whether packets are lost or reordered at random.
        """
        return True

    def before_sending(self, now: int) -> None:
        """Called when TCP begins to send what the application wrote or an ACK allowed."""

    def after_blocked_write(self, now: int) -> None:
        """Called when the application wrote and nothing could leave."""

    @property
    def is_full(self) -> bool:
        """Whether the window is full. TCP then begins to count again how much of it is used."""
        return self.connection.packets >= self.cwnd

    def after_sending(self, now: int, data_is_left: bool) -> None:
        """Called when TCP has sent all that it may. data_is_left: it has more to send."""

    def take_acknowledgement(self, now: int, ack: int) -> None:
        """Let an acknowledgement grow the window. ack: the next offset that the peer expects."""
        raise NotImplementedError

    def restart_window(self, idle: int, rto: int) -> tuple[int, int]:
        """(cwnd, ssthresh) that an idle time would leave; nothing is changed."""
        raise NotImplementedError


class ValidatedRules(Rules):
    """A window that Linux itself validates where tcp_slow_start_after_idle is on (RFC 2861)."""

    def __init__(self, setting: RuleSetting, start: int) -> None:
        super().__init__(setting, start)
        self.most_used = 0  # snd_cwnd_used
        self.stamp = start  # snd_cwnd_stamp
        self.usage = WindowUse(usage_end=1)

    def duplicate(self) -> Self:
        other = super().duplicate()
        other.usage = copy(self.usage)
        return other

    def validated_restart(self, idle: int, rto: int) -> tuple[int, int]:
        """(cwnd, ssthresh) after an idle time, as tcp_cwnd_restart leaves them."""
        if idle <= rto or not self.setting.validation:
            return self.cwnd, self.ssthresh
        return (restarted_window(self.cwnd, self.setting.initcwnd, idle, rto),
                remembered_threshold(self.cwnd, self.ssthresh))

    def resize(self, cwnd: int) -> None:
        """Set the window that validation leaves. Growth within a segment is kept (snd_cwnd_cnt)."""
        self.cwnd = cwnd

    def note_usage(self, now: int) -> None:
        """Note how much of the window is used after sending; validate it (tcp_cwnd_validate)."""
        packets = self.connection.packets
        self.usage.note(self.connection.una, self.connection.nxt, in_flight=packets,
                        limited=packets >= self.cwnd)
        if self.usage.may_grow(self.cwnd, self.ssthresh):
            self.most_used, self.stamp = 0, now
            return

        self.most_used = max(self.most_used, packets)
        if not self.setting.validation or self.recovering or now - self.stamp < self.rto:
            return
        cwnd = shrunk_window(self.cwnd, self.setting.initcwnd, self.most_used)
        if cwnd < self.cwnd:
            self.ssthresh = remembered_threshold(self.cwnd, self.ssthresh)
            self.resize(cwnd)
        self.most_used, self.stamp = 0, now


class LinuxRules(ValidatedRules):
    """Reno as Linux has it. The setting says whether it validates, restarts, or grows unused."""

    def __init__(self, setting: RuleSetting, start: int) -> None:
        super().__init__(setting, start)
        self.credit = 0  # snd_cwnd_cnt
        self.left_room = False  # whether the window had room for data that was kept back

    def may_have_stopped_early(self, cwnd: int) -> bool:
        return self.left_room and cwnd > self.connection.packets

    def set_window(self, cwnd: int, ssthresh: int) -> None:
        super().set_window(cwnd, ssthresh)
        self.credit = 0

    def after_recovery(self) -> list[Rules]:
        copies: list[Rules] = []
        for credit in range(self.cwnd):
            other = self.duplicate()
            other.credit = credit
            copies.append(other)
        return copies

    def restart_window(self, idle: int, rto: int) -> tuple[int, int]:
        cwnd, ssthresh = self.validated_restart(idle, rto)
        if self.setting.restarts and idle > rto:
            cwnd = min(self.setting.initcwnd, cwnd)
        return cwnd, ssthresh

    def before_sending(self, now: int) -> None:
        idle = now - self.connection.last_send
        if self.connection.packets or idle <= self.rto:
            return
        self.cwnd, self.ssthresh = self.restart_window(idle, self.rto)
        self.stamp, self.most_used = now, 0

    def after_sending(self, now: int, data_is_left: bool) -> None:
        self.note_usage(now)
        # TCP may wait until a larger packet fits (tcp_tso_should_defer). It counts the window as
        # full in some of these cases only, and packets do not show in which.
        room_bytes = self.peer_window_bytes - self.connection.unacknowledged
        has_room = not self.is_full and room_bytes >= self.setting.mss
        self.left_room = data_is_left and has_room

    def take_acknowledgement(self, now: int, ack: int) -> None:
        count = self.connection.remove_acknowledged(ack)
        if not count or self.recovering:
            return
        if self.setting.grows_unused or self.usage.may_grow(self.cwnd, self.ssthresh):
            self._grow(count)
        # tcp_cong_avoid() sets the stamp with every acknowledgement. An RTO hardly ever passes
        # without one, so Linux hardly ever shrinks a window that an application does not fill.
        self.stamp = now

    def _grow(self, count: int) -> None:
        """Grow by so many acknowledged segments (tcp_reno_cong_avoid)."""
        if self.cwnd < self.ssthresh:
            self.cwnd, count = slow_start(self.cwnd, self.ssthresh, count)
            if not count:
                return
        self.cwnd, self.credit = additive_increase(self.cwnd, self.credit, self.cwnd, count)


class Sending(NamedTuple):
    """One moment at which a TCP sent."""

    time: int  # ticks
    rto: int  # ticks, at that time
    data_is_left: bool  # whether it had more to send


class ReportRules(ValidatedRules):
    """The report's algorithm: section 2.2, and growth only of a window that was full.

    A sending is judged when the next segments are sent or the next acknowledgement arrives, by what
    was true when it left: TCP_INFO can show the result only then (vtime/kernel/tcp_cwv.c).
    """

    def __init__(self, setting: RuleSetting, start: int) -> None:
        super().__init__(setting, start)
        self.window_bytes = setting.initcwnd * setting.mss
        self.previous = start  # T_prev
        self.used_bytes = 0  # W_used
        self.sent_from = 1  # the first byte that was sent at the last sending
        self.unjudged: Sending | None = None  # the last sending, until it is judged

    def set_window(self, cwnd: int, ssthresh: int) -> None:
        super().set_window(cwnd, ssthresh)
        self.window_bytes = cwnd * self.setting.mss

    def resize(self, cwnd: int) -> None:
        """The module drops what it had beyond whole segments (cwv_window)."""
        self.set_window(cwnd, self.ssthresh)

    def after_recovery(self) -> list[Rules]:
        """Copies for all numbers of acknowledgements since, of one segment each or of two each."""
        by_one = islice(self._grown_windows(1), self.cwnd + 1)
        by_two = islice(self._grown_windows(2), self.cwnd // 2 + 1)
        copies: list[Rules] = []
        for window_bytes in dict.fromkeys((*by_one, *by_two)):
            other = self.duplicate()
            other.window_bytes = window_bytes
            copies.append(other)
        return copies

    def _grown_windows(self, segments: int) -> Iterator[int]:
        """The window in bytes after 0, 1, 2, … acknowledgements of so many segments each.

        Each adds less than the one before, since the window has grown by then. The window stays
        below the next whole segment.
        """
        mss, window_bytes = self.setting.mss, self.window_bytes
        while True:
            yield window_bytes
            grown = window_bytes + segments * mss * mss // window_bytes
            window_bytes = min(grown, (self.cwnd + 1) * mss - 1)

    def is_known_after(self, states: Collection[int], cwnd_before: int, by_chance: bool) -> bool:
        """Only a fast recovery leaves a window in whole segments.

        Otherwise the module keeps a part of a segment that nothing shows (cwv_window).
        """
        was_fast = RECOVERY in states and LOSS not in states
        return was_fast and self.cwnd != cwnd_before and not by_chance

    def restart_window(self, idle: int, rto: int) -> tuple[int, int]:
        restarted = self.duplicate()
        restarted.rto = rto
        restarted._restart_as_linux(idle)
        restarted._restart(idle)
        return restarted.cwnd, restarted.ssthresh

    def _restart_as_linux(self, idle: int) -> None:
        """Linux's own restart, which comes first (tcp_slow_start_after_idle_check)."""
        cwnd, self.ssthresh = self.validated_restart(idle, self.rto)
        if cwnd != self.cwnd:
            self.resize(cwnd)

    def _restart(self, idle: int) -> None:
        """Halve the window for every RTO ("the sender has been idle")."""
        times = idle // self.rto
        if not times:
            return
        self.ssthresh = self._remembered_threshold()
        for _ in range(times):
            usable = min(self.window_bytes, self.largest_peer_window_bytes)
            self._set_bytes(max(usable // 2, self.setting.mss))

    def before_sending(self, now: int) -> None:
        idle = now - self.connection.last_send
        if not self.connection.packets and idle > self.rto:
            self._restart_as_linux(idle)
            self.stamp, self.most_used = now, 0
        self._judge()
        self.sent_from = self.connection.nxt
        if idle < self.rto or self.recovering:
            return
        self._restart(idle)
        self.previous, self.used_bytes = now, 0

    def may_have_stopped_early(self, cwnd: int) -> bool:
        """Whether the module may have judged a write of which it had sent a part only.

        The kernel pushes the first packet of a long write before it has copied the others. The
        module then takes that packet for the whole write, and may shrink the window
        (cwv_judge_sent) before the rest is there.
        """
        if self.unjudged is None or self.is_full:
            return False
        if self.unjudged.data_is_left:
            return True
        sent_bytes = self.connection.nxt - self.sent_from
        is_long = sent_bytes > self._most_in_a_packet - self.setting.mss
        return is_long and self.unjudged.time - self.previous >= self.unjudged.rto

    @property
    def _most_in_a_packet(self) -> int:
        """The most bytes that the kernel copies before it sends them (tcp_xmit_size_goal)."""
        return min(self.largest_peer_window_bytes // 2, MOST_IN_A_PACKET)

    def after_blocked_write(self, now: int) -> None:
        """The module judges whenever it looks for something to send (cwv_before_sending)."""
        self.before_sending(now)

    def after_sending(self, now: int, data_is_left: bool) -> None:
        self.unjudged = Sending(now, self.rto, data_is_left)
        self.note_usage(now)

    def _judge(self) -> None:
        """Judge the last sending ("after sending a data segment")."""
        sending, self.unjudged = self.unjudged, None
        if sending is None:
            return
        if self.recovering or self.is_full:
            self.previous, self.used_bytes = sending.time, 0
            return
        if sending.data_is_left:
            return

        self.used_bytes = max(self.used_bytes, self.connection.unacknowledged)
        if sending.time - self.previous < sending.rto:
            return
        self.ssthresh = self._remembered_threshold()
        usable = min(self.window_bytes, self.largest_peer_window_bytes)
        self._set_bytes(max((usable + self.used_bytes) // 2, self.setting.mss))
        self.previous, self.used_bytes = sending.time, 0

    def take_acknowledgement(self, now: int, ack: int) -> None:
        if ack > self.connection.una:
            self._judge()
        was_full = self.is_full
        count = self.connection.remove_acknowledged(ack)
        if not count or self.recovering:
            return
        self.stamp = now
        if not was_full:
            return

        window_bytes, mss = self.window_bytes, self.setting.mss
        if self.cwnd < self.ssthresh:
            in_slow_start = min(count, self.ssthresh - self.cwnd)
            window_bytes += in_slow_start * mss
            count -= in_slow_start
        if count:
            window_bytes += max(count * mss * mss // window_bytes, 1)
        self._set_bytes(window_bytes)

    @property
    def is_full(self) -> bool:
        free = min(self.window_bytes, self.peer_window_bytes) - self.connection.unacknowledged
        if self.setting.exact:
            return free <= 0
        return free < self.setting.mss or self.connection.packets >= self.cwnd

    def _remembered_threshold(self) -> int:
        """The ssthresh, in segments, that remembers the window before it shrinks."""
        return max(self.ssthresh, self.window_bytes * 3 // 4 // self.setting.mss)

    def _set_bytes(self, window_bytes: int) -> None:
        """Set the window to a number of bytes, parts of a segment included."""
        self.window_bytes = window_bytes
        self.cwnd = window_bytes // self.setting.mss


RULES: dict[str, tuple[type[Rules], dict[str, bool]]] = {
    "reno": (LinuxRules, {}),
    "unvalidated": (LinuxRules, {"grows_unused": True}),
    "restart": (LinuxRules, {"restarts": True}),
    "cwv": (ReportRules, {}),
    "cwv_exact": (ReportRules, {"exact": True}),
}


def rules_for(congestion_control: str, validation: bool, initcwnd: int, mss: int,
              start: int) -> Rules | None:
    """The rules of a congestion control; None for one whose growth these rules do not cover."""
    if congestion_control not in RULES:
        return None
    kind, options = RULES[congestion_control]
    return kind(RuleSetting(initcwnd, mss, validation=validation, **options), start)


def restart_rule(congestion_control: str, validation: bool, initcwnd: int, mss: int,
                 before: tuple[int, int], idle: int, rto: int) -> tuple[int, int] | None:
    """(cwnd, ssthresh) after an idle time by Linux's own rules, for any congestion control.

    before: (cwnd, ssthresh) before it. None for BBR, which Linux's rules leave alone
    (tcp_slow_start_after_idle_check).
    """
    if congestion_control == "bbr":
        return None
    rules = LinuxRules(RuleSetting(initcwnd, mss, validation=validation), 0)
    rules.set_window(*before)
    return rules.restart_window(idle, rto)
