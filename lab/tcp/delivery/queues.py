"""When a bottleneck lets a packet go: netem's rate, a token bucket, cake, and HTB.

Each takes packets one by one in the order in which they leave. `due` says when one that
has come to it has to leave; `take` tells it when that packet really left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from lab.tcp.delivery.netem import Way
from lab.tcp.path import LATE_NS, LEAST_TIMER_NS, TICK_NS, bytes_per_s

SECOND = 1_000_000_000
FULL_FRAME_BYTES = 1514  # the burst of the token bucket above fq_codel (engines.network.shaping)
_CEILING_BURST_BYTES = 1600  # of HTB's ceiling (engines.network.qdiscs)
_LONGEST_NS = 60_000_000_000  # HTB counts no longer idle time (htb_change_class: mbuffer)


class Shaper(Protocol):
    """Times in ns, sizes in bytes with the Ethernet header."""

    def due(self, reached: int, size: int) -> int:
        """When a packet leaves that comes at `reached`, behind all that was taken."""

    def take(self, reached: int, size: int, left: int) -> None:
        """A packet left at that time."""


def shaper(way: Way) -> Shaper:
    """Of one direction, with nothing in it."""
    rate = int(bytes_per_s(way.rate_kbps))
    if way.htb_burst_bytes:
        return Htb(rate, way.htb_burst_bytes)
    makers: dict[str, Callable[[int], Shaper]] = {"cake": Cake, "fq_codel": TokenBucket}
    return makers.get(way.qdisc, Rate)(rate)


class Rate:
    """netem's rate: a packet leaves when it has been serialised behind the one before.

    (netem_enqueue, packet_time_ns.) The guest sets no timer sooner than LEAST_TIMER_NS after
    another one has fired, and each fires LATE_NS late.
    """

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self.free = 0  # when the last one has been serialised
        self.left = 0  # when it left

    def due(self, reached: int, size: int) -> int:
        reached = self._seen(reached)
        done = max(reached, self.free) + size * SECOND // self.rate
        if done == reached or done + LATE_NS <= self.left:
            return max(done, self.left)
        return max(done, max(reached, self.left) + LEAST_TIMER_NS) + LATE_NS

    def take(self, reached: int, size: int, left: int) -> None:
        self.free = max(self._seen(reached), self.free) + size * SECOND // self.rate
        self.left = left

    def _seen(self, reached: int) -> int:
        """When a packet that comes just after a timer is looked at."""
        return max(reached, self.left + LEAST_TIMER_NS) if reached > self.left else reached


@dataclass(frozen=True)
class Scale:
    """A rate as most qdiscs keep it: a packet takes size × factor >> shift ns."""

    factor: int
    shift: int

    def takes(self, size: int) -> int:
        return size * self.factor >> self.shift

    @staticmethod
    def of(rate: int) -> Scale:
        """psched_ratecfg_precompute__: as many bits as fit into 32."""
        shift = 0
        while (factor := (SECOND << shift) // rate) < 1 << 31 and SECOND << shift < 1 << 63:
            shift += 1
        return Scale(factor, shift)

    @staticmethod
    def of_cake(rate: int) -> Scale:
        """cake_set_rate: 34 bits."""
        factor, shift = (SECOND << 34) // max(rate, 64), 34
        while factor >> 34:
            factor, shift = factor >> 1, shift - 1
        return Scale(factor, shift)


class TokenBucket:
    """tbf with a burst of one full packet (tbf_dequeue); its tokens are nanoseconds."""

    def __init__(self, rate: int) -> None:
        self.scale = Scale.of(rate)
        self.burst = self.tokens = self._takes(FULL_FRAME_BYTES)
        self.left = 0

    def _takes(self, size: int) -> int:
        return self.scale.takes(size)

    def due(self, reached: int, size: int) -> int:
        ready = self.left + self._takes(size) - self.tokens
        return reached if ready <= reached else ready + LATE_NS

    def take(self, reached: int, size: int, left: int) -> None:
        self.tokens = min(self.burst, self.tokens + left - self.left) - self._takes(size)
        self.left = left


class Cake:
    """cake's shaper (cake_advance_shaper): after a packet it waits as long as that one takes."""

    def __init__(self, rate: int) -> None:
        self.scale = Scale.of_cake(rate)
        self.ready = 0

    def due(self, reached: int, size: int) -> int:
        return reached if self.ready <= reached else self.ready + LATE_NS

    def take(self, reached: int, size: int, left: int) -> None:
        self.ready = max(reached, self.ready) + self.scale.takes(size)


class Htb:
    """HTB's only class (htb_charge_class): a packet leaves while neither bucket is overdrawn."""

    def __init__(self, rate: int, burst_bytes: int) -> None:
        self.scale = Scale.of(rate)
        self.bursts = [_burst_ns(rate, size) for size in (burst_bytes, _CEILING_BURST_BYTES)]
        self.tokens = list(self.bursts)
        self.left = 0

    def due(self, reached: int, size: int) -> int:
        ready = self.left + max(0, -min(self.tokens))
        return reached if ready <= reached else ready + LATE_NS

    def take(self, reached: int, size: int, left: int) -> None:
        idle = min(left - self.left, _LONGEST_NS)
        takes = self.scale.takes(size)
        self.tokens = [max(min(tokens + idle, burst) - takes, 1 - _LONGEST_NS)
                       for tokens, burst in zip(self.tokens, self.bursts)]
        self.left = left


def _burst_ns(rate: int, size: int) -> int:
    """As a kernel is told a burst: whole microseconds, in ticks (engines.network.qdiscs)."""
    return max(size * 1_000_000 // rate * 125 // 8, 1) * TICK_NS
