"""netem's arithmetic: which packets it drops at random, and by how much it delays each.

All of it is whole numbers in the kernel (net/sched/sch_netem.c), so that it can be done
again to the nanosecond. Its random numbers follow from the seed that the qdisc was given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lab.tcp.path import LATE_NS, delay_ns

CHOOSING = ("fq_codel", "cake")  # queues that drop before they are full
MOST_U32 = 0xFFFFFFFF
_MOST_JITTER_NS = 0x7FFFFFFF  # netem_change: what tabledist takes
_TABLE_SCALE = 8192  # NETEM_DIST_SCALE


@dataclass(frozen=True)
class Way:
    """One direction of a path: how the qdiscs of its port are configured.

    delay_ms: propagation; jitter_ms: its standard deviation, by netem's table of the
        normal distribution. rate_kbps, queue_packets: of the bottleneck.
    loss_percent, loss_burst: random loss before it, and how many packets in a row, on
        average. seed: of netem's random numbers. qdisc: fifo, fq_codel or cake, or htb
        with htb_burst_bytes. outage_ms: when all that leaves is lost, from and to, since the first
        packet of a trial.
    """

    delay_ms: float
    rate_kbps: float
    queue_packets: int
    loss_percent: float = 0.0
    loss_burst: float = 1.0
    jitter_ms: float = 0.0
    seed: int = 0
    qdisc: str = "fifo"
    htb_burst_bytes: int = 0
    outage_ms: tuple[float, float] = (0.0, 0.0)


def reached(way: Way, left_ns: Sequence[int], table: Sequence[int]) -> list[int | None]:
    """When each packet has propagated, ns; None for one that random loss takes.

    left_ns: when they left, in that order. table: netem's normal distribution, where
    there is jitter.
    """
    propagation_ns = delay_ns(way.delay_ms) + LATE_NS
    if not (way.loss_percent or way.jitter_ms):
        return [left + propagation_ns for left in left_ns]
    jitter_ns = min(delay_ns(way.jitter_ms), _MOST_JITTER_NS)
    numbers = random_numbers(way.seed)
    losses = _losses(way, numbers)
    return [None if next(losses) else
            max(left, left + propagation_ns + _deviation_ns(jitter_ns, numbers, table))
            for left in left_ns]


def random_numbers(seed: int) -> Iterator[int]:
    """The 32-bit numbers that a seed gives (prandom_seed_state, prandom_u32_state)."""
    mixed = (seed >> 32 ^ seed << 10 ^ seed) & MOST_U32
    one, two, three, four = (mixed + least if mixed < least else mixed
                             for least in (2, 8, 16, 128))
    while True:
        one = (one & 0xFFFFFFFE) << 18 & MOST_U32 ^ (one << 6 & MOST_U32 ^ one) >> 13
        two = (two & 0xFFFFFFF8) << 2 & MOST_U32 ^ (two << 2 & MOST_U32 ^ two) >> 27
        three = (three & 0xFFFFFFF0) << 7 & MOST_U32 ^ (three << 13 & MOST_U32 ^ three) >> 21
        four = (four & 0xFFFFFF80) << 13 & MOST_U32 ^ (four << 3 & MOST_U32 ^ four) >> 12
        yield one ^ two ^ three ^ four


def _losses(way: Way, numbers: Iterator[int]) -> Iterator[bool]:
    """Whether random loss takes the next packet (loss_event)."""
    if not way.loss_percent:
        while True:
            yield False
    if way.loss_burst == 1:
        limit = _share(way.loss_percent)
        while True:
            yield next(numbers) <= limit
    # Gilbert's model (loss_gilb_ell): a transfer begins among packets that go through. Each
    # packet may change the state for the next; those of the lossy state are lost.
    ends_percent = 100 / way.loss_burst
    begins = _share(way.loss_percent * ends_percent / (100 - way.loss_percent))
    ends, is_lossy = _share(ends_percent), False
    while True:
        changes = next(numbers) < (ends if is_lossy else begins)
        yield next(numbers) > 0 and is_lossy
        is_lossy ^= changes


def _share(percent: float) -> int:
    """A probability in the kernel's unit, with as many digits as tc is told."""
    return round(float(f"{percent:g}") / 100 * MOST_U32)


def _deviation_ns(jitter_ns: int, numbers: Iterator[int], table: Sequence[int]) -> int:
    """How far one delay is from the mean (tabledist): C's division cuts towards zero."""
    if not jitter_ns:
        return 0
    drawn = table[next(numbers) % len(table)]
    part = jitter_ns % _TABLE_SCALE * drawn
    rounded = (abs(part) + _TABLE_SCALE // 2) // _TABLE_SCALE
    return (rounded if part >= 0 else -rounded) + jitter_ns // _TABLE_SCALE * drawn
