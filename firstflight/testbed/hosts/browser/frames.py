"""The frames of Chromium: when they come, and how a load begins at a phase of one.

A browser without a display has a frame each FRAME_NS of the monotonic clock, counted from 0 (viz's
DelayBasedTimeSource with base::Hertz(60), which has whole microseconds). What arrives is painted
with the next frame. So one load says nothing of a difference that is shorter than a frame, and
loads that begin at several phases say it by their mean.
"""

from __future__ import annotations

from random import Random

FRAME_NS = 16_666_000
FRAME_MS = FRAME_NS / 1e6
PHASES = 8  # parts of a frame in which loads begin, and so the loads of a page
# A load begins later by whole slots of the kernel's timer wheel for timers up to 0.5 s
# (kernel/time/timer.c, 1000 ticks a second): those are rounded as in any other load. Within so
# many slots the phases that come are 2/3 ms apart.
SLOT_NS, SLOTS = 8_000_000, 25


def drawn_phase_ms(run_seed: int, repeat: int) -> float:
    """The phase at which a repeat begins, in ms after a frame, from the seed of the run.

    Of each PHASES repeats in turn, one begins in each part of a frame, at a random time of it.
    """
    block, place = divmod(repeat - 1, PHASES)
    random = Random(f"{run_seed} {block}")
    parts = random.sample(range(PHASES), PHASES)
    within = [random.random() for _ in parts]
    return round((parts[place] + within[place]) / PHASES * FRAME_MS, 3)


def next_start_ns(now_ns: int, phase_ms: float) -> int:
    """When to begin a load next, so that a frame was due about phase_ms before.

    Both in ns of the monotonic clock; whole slots of the timer wheel, at most SLOTS later.
    """
    first_slot = -(-now_ns // SLOT_NS)

    def away_ns(slot: int) -> float:
        later_ns = (slot * SLOT_NS - phase_ms * 1e6) % FRAME_NS
        return min(later_ns, FRAME_NS - later_ns)

    return SLOT_NS * min(range(first_slot, first_slot + SLOTS), key=away_ns)


def phase_of(monotonic_s: float) -> float:
    """How long ago a frame was due at a time of the monotonic clock, in ms."""
    return round(monotonic_s * 1e9) % FRAME_NS / 1e6
