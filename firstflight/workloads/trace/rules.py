"""The rules of each TCP for an unused window: what it has to be, without any packet.

They are from their sources, not from the code that is measured (Linux's stand in
model/congestion.py, which the model of a fetch follows as well):

    RFC 2861 as Linux has it: tcp_cwnd_restart(), tcp_cwnd_validate(),
        tcp_is_cwnd_limited(), tcp_reno_cong_avoid()
    RFC 5681 section 4.1: restart from the initial window
    the report (Handley, Padhye and Floyd 1999), section 2.2; its windows are
        in bytes (sections 2.2 and 5)

workloads.trace.replay feeds them with the packets at the server's interface and asks
for the window whenever TCP_INFO was sampled: both have to agree, to the
segment. Windows are in segments; times in ticks of the kernel's clock
(jiffies, 1 ms at HZ = 1000).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Self

from firstflight.model.congestion import (WindowUse, additive_increase, remembered_threshold,
                                          restarted_window, shrunk_window, slow_start)
from firstflight.workloads.trace.window import INFINITE, LOSS, RECOVERY


MOST_IN_A_PACKET = 65_535 - 320  # GSO_LEGACY_MAX_SIZE less MAX_TCP_HEADER, bytes


@dataclass
class Outstanding:
    """What every TCP remembers of what it sent: byte offsets, and where its packets end."""

    last_send: int
    una: int = 1
    nxt: int = 1
    outstanding: deque[int] = field(default_factory=deque)

    @property
    def packets(self) -> int:
        return len(self.outstanding)

    @property
    def unacknowledged(self) -> int:
        return self.nxt - self.una

    def sent(self, end: int) -> None:
        self.nxt = end
        self.outstanding.append(end)

    def acknowledged(self, ack: int) -> int:
        """Take an acknowledgement; return how many packets it was for."""
        count = 0
        while self.outstanding and self.outstanding[0] <= ack:
            self.outstanding.popleft()
            count += 1
        self.una = max(self.una, ack)
        return count


@dataclass(frozen=True)
class RuleSetting:
    """How a TCP is configured: its initial window in segments, bytes of a segment, which rules.

    restarts: only RFC 5681's; grows_unused: without the limit on growth;
    exact: the window is full only when nothing of it is free.
    """

    initcwnd: int
    mss: int
    validation: bool = False
    restarts: bool = False
    grows_unused: bool = False
    exact: bool = False


class Rules:
    """One TCP's window. `rto`, in ticks, is set from outside: it is measured, not predicted."""

    rto: int

    def __init__(self, setting: RuleSetting, start: int) -> None:
        self.setting = setting
        self.cwnd = setting.initcwnd
        self.ssthresh = INFINITE
        self.peer_window_bytes = INFINITE
        self.largest_peer_window_bytes = 0
        self.connection = Outstanding(last_send=start)
        self.recovering = False

    def stopped_early(self, cwnd: int) -> bool:
        """Whether data is left that the window had room for, as far as packets show.

        cwnd: the observed window behind that.
        """
        raise NotImplementedError

    def declared(self, window_bytes: int) -> None:
        self.peer_window_bytes = window_bytes
        self.largest_peer_window_bytes = max(self.largest_peer_window_bytes, window_bytes)

    def set_window(self, cwnd: int, ssthresh: int) -> None:
        """Take over a window that other rules made: those of recovery from a loss."""
        self.cwnd, self.ssthresh = cwnd, ssthresh

    def duplicate(self) -> Self:
        """The same once more, which goes on by itself. There may be hundreds."""
        other = copy(self)
        outstanding = deque(self.connection.outstanding)
        other.connection = replace(self.connection, outstanding=outstanding)
        return other

    def after_recovery(self) -> list[Rules]:
        """Copies of this, one for each part of a segment of growth that recovery can have left.

        TCP_INFO has whole segments only.
        """
        raise NotImplementedError

    def is_known_behind(self, states: Collection[int], cwnd_before: int, by_chance: bool) -> bool:
        """Whether after_recovery() has every window that a recovery can have left.

        states: of congestion control, as samples had them in it. cwnd_before: the window before it.
        by_chance: whether packets are lost or reordered at random.
        """
        return True

    def before_sending(self, now: int) -> None:
        """Called when TCP begins to send what the application wrote or an ACK allowed."""

    def tried_to_send(self, now: int) -> None:
        """Called when the application wrote, and nothing could leave."""

    @property
    def is_full(self) -> bool:
        """Whether the window is full, so that TCP counts anew how much of it is used."""
        return self.connection.packets >= self.cwnd

    def after_sending(self, now: int, data_is_left: bool) -> None:
        """Called when it has sent all that it may."""

    def acknowledged(self, now: int, ack: int) -> None:
        raise NotImplementedError

    def restart_window(self, idle: int, rto: int) -> tuple[int, int]:
        """(cwnd, ssthresh) after an idle time. The closed form, without changing anything."""
        raise NotImplementedError


class ValidatedRules(Rules):
    """A window that Linux itself validates where tcp_slow_start_after_idle is on (RFC 2861)."""

    def __init__(self, setting: RuleSetting, start: int) -> None:
        super().__init__(setting, start)
        self.used = 0  # snd_cwnd_used
        self.stamp = start  # snd_cwnd_stamp
        self.use = WindowUse(usage_end=1)

    def duplicate(self) -> Self:
        other = super().duplicate()
        other.use = copy(self.use)
        return other

    def validated_restart(self, idle: int, rto: int) -> tuple[int, int]:
        """(cwnd, ssthresh) after an idle time, as tcp_cwnd_restart leaves them."""
        if idle <= rto or not self.setting.validation:
            return self.cwnd, self.ssthresh
        return (restarted_window(self.cwnd, self.setting.initcwnd, idle, rto),
                remembered_threshold(self.cwnd, self.ssthresh))

    def resize(self, cwnd: int) -> None:
        """Take the window that this validation leaves; what it has grown by within a segment stays.
        """
        self.cwnd = cwnd

    def note_use(self, now: int) -> None:
        """Note how much of the window is used behind what was sent (tcp_cwnd_validate)."""
        packets = self.connection.packets
        self.use.note(self.connection.una, self.connection.nxt, packets, packets >= self.cwnd)
        if self.use.may_grow(self.cwnd, self.ssthresh):
            self.used, self.stamp = 0, now
            return

        self.used = max(self.used, packets)
        if (self.setting.validation and not self.recovering
                and now - self.stamp >= self.rto):
            if (cwnd := shrunk_window(self.cwnd, self.setting.initcwnd, self.used)) < self.cwnd:
                self.ssthresh = remembered_threshold(self.cwnd, self.ssthresh)
                self.resize(cwnd)
            self.used, self.stamp = 0, now


class LinuxRules(ValidatedRules):
    """Reno in Linux, with its own validation, none, a restart, or without the limit on growth."""

    def __init__(self, setting: RuleSetting, start: int) -> None:
        super().__init__(setting, start)
        self.credit = 0  # snd_cwnd_cnt
        self.deferred = False  # whether the last sending left room in the window, and data

    def stopped_early(self, cwnd: int) -> bool:
        return self.deferred and cwnd > self.connection.packets

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
        self.stamp, self.used = now, 0

    def after_sending(self, now: int, data_is_left: bool) -> None:
        self.note_use(now)
        # TCP waits for room for more than it has, and then counts the window as full, or does not
        # (tcp_tso_should_defer).
        room_bytes = self.peer_window_bytes - self.connection.unacknowledged
        has_room = not self.is_full and room_bytes >= self.setting.mss
        self.deferred = data_is_left and has_room

    def acknowledged(self, now: int, ack: int) -> None:
        count = self.connection.acknowledged(ack)
        if not count or self.recovering:
            return
        if self.setting.grows_unused or self.use.may_grow(self.cwnd, self.ssthresh):
            self._grow(count)
        # tcp_cong_avoid(): with every acknowledgement, which is why Linux's
        # application-limited rule hardly ever finds an RTO without one.
        self.stamp = now

    def _grow(self, count: int) -> None:
        """Grow by so many acknowledged segments (tcp_reno_cong_avoid)."""
        if self.cwnd < self.ssthresh:
            self.cwnd, count = slow_start(self.cwnd, self.ssthresh, count)
            if not count:
                return
        self.cwnd, self.credit = additive_increase(self.cwnd, self.credit, self.cwnd, count)


class ReportRules(ValidatedRules):
    """The report's algorithm: section 2.2, and growth only of a window that was full.

    What was sent is judged when the next segments are sent or the next
    acknowledgement arrives, as of the time of sending: that is when TCP_INFO
    can show it (vtime/kernel/tcp_cwv.c).
    """

    def __init__(self, setting: RuleSetting, start: int) -> None:
        super().__init__(setting, start)
        self.window_bytes = setting.initcwnd * setting.mss
        self.previous = start  # T_prev
        self.used_bytes = 0  # W_used
        self.sent_from = 1  # the first byte of what was sent last
        self.unjudged: tuple[int, int, bool] | None = None  # when sent, RTO, data is left

    def set_window(self, cwnd: int, ssthresh: int) -> None:
        super().set_window(cwnd, ssthresh)
        self.window_bytes = cwnd * self.setting.mss

    def resize(self, cwnd: int) -> None:
        """The module drops what it had beyond whole segments (cwv_window)."""
        self.set_window(cwnd, self.ssthresh)

    def after_recovery(self) -> list[Rules]:
        """Those that acknowledgements of one segment each have grown, and those of two."""
        by_one = islice(self._grown_windows(1), self.cwnd + 1)
        by_two = islice(self._grown_windows(2), self.cwnd // 2 + 1)
        copies: list[Rules] = []
        for window_bytes in dict.fromkeys((*by_one, *by_two)):
            other = self.duplicate()
            other.window_bytes = window_bytes
            copies.append(other)
        return copies

    def _grown_windows(self, segments: int) -> Iterator[int]:
        """The window behind 0, 1, 2, … acknowledgements of so many segments, within its last one.

        It grows by less with each, as it has grown by then.
        """
        mss, window_bytes = self.setting.mss, self.window_bytes
        while True:
            yield window_bytes
            grown = window_bytes + segments * mss * mss // window_bytes
            window_bytes = min(grown, (self.cwnd + 1) * mss - 1)

    def is_known_behind(self, states: Collection[int], cwnd_before: int, by_chance: bool) -> bool:
        """Only a fast recovery leaves a window in whole segments.

        Else the module goes on with a part of a segment that nothing shows (cwv_window).
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
        """"The sender has been idle": halve the window for every RTO."""
        times = idle // self.rto
        if not times:
            return
        self.ssthresh = self._remembered()
        for _ in range(times):
            usable = min(self.window_bytes, self.largest_peer_window_bytes)
            self._set(max(usable // 2, self.setting.mss))

    def before_sending(self, now: int) -> None:
        idle = now - self.connection.last_send
        if not self.connection.packets and idle > self.rto:
            self._restart_as_linux(idle)
            self.stamp, self.used = now, 0
        self._judge()
        self.sent_from = self.connection.nxt
        if idle < self.rto or self.recovering:
            return
        self._restart(idle)
        self.previous, self.used_bytes = now, 0

    def stopped_early(self, cwnd: int) -> bool:
        """The kernel pushes the first packet of a write before it has the others.

        The module then takes what it sent for all that there was, and may shrink the window
        (cwv_judge_sent) before the rest is there.
        """
        if self.unjudged is None or self.is_full:
            return False
        now, rto, data_is_left = self.unjudged
        sent_bytes = self.connection.nxt - self.sent_from
        is_long = sent_bytes > self._most_in_a_packet - self.setting.mss
        return data_is_left or is_long and now - self.previous >= rto

    @property
    def _most_in_a_packet(self) -> int:
        """The most bytes that the kernel copies before it sends them (tcp_xmit_size_goal)."""
        return min(self.largest_peer_window_bytes // 2, MOST_IN_A_PACKET)

    def tried_to_send(self, now: int) -> None:
        """It judges whenever it looks for something to send (cwv_before_sending)."""
        self.before_sending(now)

    def after_sending(self, now: int, data_is_left: bool) -> None:
        self.unjudged = now, self.rto, data_is_left
        self.note_use(now)

    def _judge(self) -> None:
        """"After sending a data segment"."""
        if self.unjudged is None:
            return
        (now, rto, data_is_left), self.unjudged = self.unjudged, None
        if self.recovering or self.is_full:
            self.previous, self.used_bytes = now, 0
            return
        if data_is_left:
            return
        self.used_bytes = max(self.used_bytes, self.connection.unacknowledged)
        if now - self.previous < rto:
            return
        self.ssthresh = self._remembered()
        window = min(self.window_bytes, self.largest_peer_window_bytes)
        self._set(max((window + self.used_bytes) // 2, self.setting.mss))
        self.previous, self.used_bytes = now, 0

    def acknowledged(self, now: int, ack: int) -> None:
        if ack > self.connection.una:
            self._judge()
        was_full = self.is_full
        count = self.connection.acknowledged(ack)
        if not count or self.recovering:
            return
        self.stamp = now
        if not was_full:
            return
        window, mss = self.window_bytes, self.setting.mss
        if self.cwnd < self.ssthresh:
            more = min(count, self.ssthresh - self.cwnd)
            window, count = window + more * mss, count - more
        if count:
            window += max(count * mss * mss // window, 1)
        self._set(window)

    @property
    def is_full(self) -> bool:
        free = min(self.window_bytes, self.peer_window_bytes) - self.connection.unacknowledged
        if self.setting.exact:
            return free <= 0
        return free < self.setting.mss or self.connection.packets >= self.cwnd

    def _remembered(self) -> int:
        return max(self.ssthresh, self.window_bytes * 3 // 4 // self.setting.mss)

    def _set(self, window_bytes: int) -> None:
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
    """The rules of a congestion control; None for one whose growth is not written down here."""
    if congestion_control not in RULES:
        return None
    kind, options = RULES[congestion_control]
    return kind(RuleSetting(initcwnd, mss, validation=validation, **options), start)


def restart_rule(congestion_control: str, validation: bool, initcwnd: int, mss: int,
                 before: tuple[int, int], idle: int, rto: int) -> tuple[int, int] | None:
    """(cwnd, ssthresh) after an idle time, by the rules of Linux, whatever the growth.

    None for BBR, which Linux's rules leave alone (tcp_slow_start_after_idle_check).
    """
    if congestion_control == "bbr":
        return None
    rules = LinuxRules(RuleSetting(initcwnd, mss, validation=validation), 0)
    rules.set_window(*before)
    return rules.restart_window(idle, rto)
