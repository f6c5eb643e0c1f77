"""What the rules of every TCP have: what is outstanding, what it is told, when it is asked.

lab.trace.replay feeds them with the packets at the server's interface and asks
for the window whenever TCP_INFO was sampled: both have to agree, to the
segment. Windows are in segments; times in ticks of the kernel's clock
(jiffies, 1 ms at HZ = 1000).
"""

from __future__ import annotations

from collections import deque
from copy import deepcopy
from dataclasses import dataclass, field

from lab.trace.window import INFINITE


@dataclass
class Outstanding:
    """What every TCP keeps of what it has sent: byte offsets, and the ends of its packets."""

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
    """What a TCP is told: its initial window in segments, bytes of a segment, which rules.

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

    def declared(self, window_bytes: int) -> None:
        self.peer_window_bytes = window_bytes
        self.largest_peer_window_bytes = max(self.largest_peer_window_bytes, window_bytes)

    def set_window(self, cwnd: int, ssthresh: int) -> None:
        """Take over a window that other rules made: those of recovery from a loss."""
        self.cwnd, self.ssthresh = cwnd, ssthresh

    def after_recovery(self) -> list[Rules]:
        """Copies of this, one for each part of a segment of growth that recovery can have left.

        TCP_INFO tells whole segments only.
        """
        copies = [deepcopy(self) for _ in range(self.cwnd)]
        for acknowledgements, copy in enumerate(copies):
            copy.grow_unseen(acknowledgements)
        return copies

    def grow_unseen(self, acknowledgements: int) -> None:
        """Grow by so many, by less than a segment together."""
        raise NotImplementedError

    def before_sending(self, now: int) -> None:
        """Called when TCP begins to send what the application wrote or an ACK allowed."""

    def after_sending(self, now: int, data_is_left: bool) -> None:
        """Called when it has sent all that it may."""

    def acknowledged(self, now: int, ack: int) -> None:
        raise NotImplementedError

    def restart_window(self, idle: int, rto: int) -> tuple[int, int]:
        """(cwnd, ssthresh) after an idle time. The closed form, without changing anything."""
        raise NotImplementedError
