"""Computes what qdiscs do: netem's losses and delays, and when packets leave a bottleneck.

netem computes with whole numbers (net/sched/sch_netem.c), so its arithmetic can be repeated to the
nanosecond. Its random numbers follow from the qdisc's seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from firstflight.net.link import Link
from firstflight.net.path import LEAST_TIMER_NS, bytes_per_s, delay_ns
from firstflight.net.tc import (FULL_FRAME_BYTES, HTB_CEILING_BURST_BYTES, MOST_U32, TICK_NS,
                                htb_ticks, probability)
from firstflight.net.waiting import LATE_NS

_MOST_JITTER_NS = 0x7FFFFFFF  # netem_change: tabledist takes no more
_TABLE_SCALE = 8192  # NETEM_DIST_SCALE


def arrival_times(link: Link, left_ns: Sequence[int], table: Sequence[int]) -> list[int | None]:
    """When each packet arrives at the bottleneck, ns; None for a packet that random loss takes.

    left_ns: when the packets left, in order. table: netem's normal distribution; it is used if
    there is jitter.
    """
    propagation_ns = delay_ns(link.delay_ms) + LATE_NS
    if not (link.loss_percent or link.jitter_ms):
        return [left + propagation_ns for left in left_ns]

    jitter_ns = min(delay_ns(link.jitter_ms), _MOST_JITTER_NS)
    numbers = random_numbers(link.seed)
    losses = _losses(link, numbers)
    times: list[int | None] = []
    for left in left_ns:
        if next(losses):
            times.append(None)
        else:
            delayed_ns = propagation_ns + _deviation_ns(jitter_ns, numbers, table)
            times.append(max(left, left + delayed_ns))
    return times


def random_numbers(seed: int) -> Iterator[int]:
    """The 32-bit random numbers of a seed (prandom_seed_state, prandom_u32_state).

    Four shift registers make each number together.
    """
    mixed = (seed >> 32 ^ seed << 10 ^ seed) & MOST_U32
    one, two, three, four = (mixed + least if mixed < least else mixed
                             for least in (2, 8, 16, 128))
    while True:
        one = (one & 0xFFFFFFFE) << 18 & MOST_U32 ^ (one << 6 & MOST_U32 ^ one) >> 13
        two = (two & 0xFFFFFFF8) << 2 & MOST_U32 ^ (two << 2 & MOST_U32 ^ two) >> 27
        three = (three & 0xFFFFFFF0) << 7 & MOST_U32 ^ (three << 13 & MOST_U32 ^ three) >> 21
        four = (four & 0xFFFFFF80) << 13 & MOST_U32 ^ (four << 3 & MOST_U32 ^ four) >> 12
        yield one ^ two ^ three ^ four


def _losses(link: Link, numbers: Iterator[int]) -> Iterator[bool]:
    """Yields for each packet whether random loss takes it (loss_event)."""
    if not link.loss_percent:
        while True:
            yield False

    if link.loss_burst == 1:
        limit = probability(link.loss_percent)
        while True:
            yield next(numbers) <= limit

    # Gilbert's model (loss_gilb_ell): a transfer begins in the lossless state. Each packet may
    # change the state for the next one; packets in the lossy state are lost.
    ends_percent = 100 / link.loss_burst
    begins = probability(link.loss_percent * ends_percent / (100 - link.loss_percent))
    ends, is_lossy = probability(ends_percent), False
    while True:
        changes = next(numbers) < (ends if is_lossy else begins)
        yield next(numbers) > 0 and is_lossy
        is_lossy ^= changes


def _deviation_ns(jitter_ns: int, numbers: Iterator[int], table: Sequence[int]) -> int:
    """How far one delay is from the mean (tabledist).

    A number is drawn from the table; the result is jitter_ns × this number / _TABLE_SCALE. The
    kernel divides jitter_ns first, and rounds only what is left of it.
    """
    if not jitter_ns:
        return 0
    drawn = table[next(numbers) % len(table)]
    rest = jitter_ns % _TABLE_SCALE * drawn
    # C divides towards zero, and Python down.
    rounded = (abs(rest) + _TABLE_SCALE // 2) // _TABLE_SCALE
    return (rounded if rest >= 0 else -rounded) + jitter_ns // _TABLE_SCALE * drawn


# Bottlenecks --------------------------------------------------------------------------

SECOND = 1_000_000_000  # ns
_LONGEST_NS = 60_000_000_000  # HTB counts no longer idle time (htb_change_class: mbuffer)


class Shaper(Protocol):
    """A bottleneck. Times are in ns, sizes in bytes with the Ethernet header."""

    def due(self, arrival: int, size: int) -> int:
        """When a packet that comes at the time `arrival` has to leave, after all packets taken."""

    def take(self, arrival: int, size: int, left: int) -> None:
        """Note that a packet that came at the time `arrival` left at the time `left`."""


def shaper(link: Link) -> Shaper:
    """The bottleneck of one direction, empty."""
    rate = int(bytes_per_s(link.rate_kbps))
    if link.htb_burst_bytes:
        return Htb(rate, link.htb_burst_bytes)
    makers: dict[str, Callable[[int], Shaper]] = {"cake": Cake, "fq_codel": TokenBucket}
    return makers.get(link.qdisc, Rate)(rate)


class Rate:
    """netem's rate (netem_enqueue, packet_time_ns): a packet leaves when it has been serialised.

    Its serialisation begins when that of the packet before it ends. A guest sets no timer sooner
    than LEAST_TIMER_NS after another one has fired, and each timer fires LATE_NS late.
    """

    def __init__(self, rate: int) -> None:
        self.rate = rate  # bytes a second
        self.free = 0  # when the last packet has been serialised
        self.left = 0  # when the last packet left

    def due(self, arrival: int, size: int) -> int:
        arrival = self._handling_time(arrival)
        serialised = max(arrival, self.free) + size * SECOND // self.rate
        # netem sets no timer for a packet that takes no time, or whose serialisation ends before
        # the last packet leaves.
        if serialised == arrival or serialised + LATE_NS <= self.left:
            return max(serialised, self.left)
        return max(serialised, max(arrival, self.left) + LEAST_TIMER_NS) + LATE_NS

    def take(self, arrival: int, size: int, left: int) -> None:
        self.free = max(self._handling_time(arrival), self.free) + size * SECOND // self.rate
        self.left = left

    def _handling_time(self, arrival: int) -> int:
        """When netem handles a packet: one that comes just after a timer has to wait."""
        return max(arrival, self.left + LEAST_TIMER_NS) if arrival > self.left else arrival


@dataclass(frozen=True)
class Scale:
    """A rate as most qdiscs store it: a packet takes size × factor >> shift ns."""

    factor: int
    shift: int

    def takes(self, size: int) -> int:
        """How long it takes to send a packet of this size in bytes, ns."""
        return size * self.factor >> self.shift

    @staticmethod
    def for_rate(rate: int) -> Scale:
        """The scale whose factor has as many bits as fit into 32 (psched_ratecfg_precompute__)."""
        shift = 0
        while (factor := (SECOND << shift) // rate) < 1 << 31 and SECOND << shift < 1 << 63:
            shift += 1
        return Scale(factor, shift)

    @staticmethod
    def for_cake(rate: int) -> Scale:
        """The scale whose factor has at most 34 bits (cake_set_rate)."""
        factor, shift = (SECOND << 34) // max(rate, 64), 34
        while factor >> 34:
            factor, shift = factor >> 1, shift - 1
        return Scale(factor, shift)


class TokenBucket:
    """tbf with a burst of one full packet (tbf_dequeue). Its tokens are nanoseconds.

    The burst is the one that testbed.network.shaping sets.
    """

    def __init__(self, rate: int) -> None:
        self.scale = Scale.for_rate(rate)
        self.burst = self.tokens = self.scale.takes(FULL_FRAME_BYTES)
        self.left = 0  # when the last packet left

    def due(self, arrival: int, size: int) -> int:
        ready = self.left + self.scale.takes(size) - self.tokens
        return arrival if ready <= arrival else ready + LATE_NS

    def take(self, arrival: int, size: int, left: int) -> None:
        self.tokens = min(self.burst, self.tokens + left - self.left) - self.scale.takes(size)
        self.left = left


class Cake:
    """cake's shaper (cake_advance_shaper): after each packet it waits for the time that the packet
    takes."""

    def __init__(self, rate: int) -> None:
        self.scale = Scale.for_cake(rate)
        self.ready = 0  # when the next packet may leave

    def due(self, arrival: int, size: int) -> int:
        return arrival if self.ready <= arrival else self.ready + LATE_NS

    def take(self, arrival: int, size: int, left: int) -> None:
        self.ready = max(arrival, self.ready) + self.scale.takes(size)


class Htb:
    """HTB with one class (htb_charge_class): a packet leaves while neither bucket is overdrawn.

    One bucket is the rate's, the other one the ceiling's, which is the same rate. Tokens are
    nanoseconds.
    """

    def __init__(self, rate: int, burst_bytes: int) -> None:
        self.scale = Scale.for_rate(rate)
        self.bursts = [htb_ticks(rate, size) * TICK_NS
                       for size in (burst_bytes, HTB_CEILING_BURST_BYTES)]
        self.tokens = list(self.bursts)
        self.left = 0  # when the last packet left

    def due(self, arrival: int, size: int) -> int:
        ready = self.left + max(0, -min(self.tokens))
        return arrival if ready <= arrival else ready + LATE_NS

    def take(self, arrival: int, size: int, left: int) -> None:
        idle = min(left - self.left, _LONGEST_NS)
        takes = self.scale.takes(size)
        self.tokens = [max(min(tokens + idle, burst) - takes, 1 - _LONGEST_NS)
                       for tokens, burst in zip(self.tokens, self.bursts)]
        self.left = left
