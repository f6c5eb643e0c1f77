"""Seeds: of each repeat's, user's or host's random numbers, from the seed of the run."""

from __future__ import annotations

import zlib


def seed_for(run_seed: int, number: int) -> int:
    """The seed of one repeat, user or host by its number, 32 bits."""
    return zlib.crc32(f"{run_seed} {number}".encode())


def netem_seed(run_seed: int, number: int) -> int:
    """The same for netem, whose generator starts neighbouring seeds alike.

    So the bits are mixed. Of the seeds 1 to 100 as they are, 12 would lose the fifth packet at a
    loss rate of 2 %, and none some others (kernel, prandom_seed_state: no warm-up).
    """
    return seed_for(run_seed, number) * 0x9E3779B1 % 2**32
