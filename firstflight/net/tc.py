"""The units of tc and netem, for the code that sets qdiscs and the code that computes delays."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

TABLE = "tc/normal.dist"  # below /usr/lib or one of its folders
MOST_U32 = 0xFFFFFFFF
FULL_FRAME_BYTES = 1514  # of Ethernet
HTB_CEILING_BURST_BYTES = 1600  # tc's default for the burst of HTB's ceiling
TICK_NS = 64  # the kernel's unit of a delay (PSCHED_SHIFT)


def bits(kbps: float) -> int:
    """A rate in bit/s, the unit in which tc takes it."""
    return round(kbps * 1000)


def ticks(microseconds: int) -> int:
    """A delay in the kernel's unit, rounded down as tc does."""
    return microseconds * 1000 // TICK_NS


def htb_ticks(rate: int, size_bytes: int) -> int:
    """How many ticks it takes to send size_bytes, at least one (tc_calc_xmittime).

    rate: bytes a second.
    """
    return max(ticks(size_bytes * 1_000_000 // rate), 1)


def probability(percent: float) -> int:
    """A percentage in parts of MOST_U32, the kernel's unit, from the digits that tc gets."""
    return round(float(f"{percent:g}") / 100 * MOST_U32)


@lru_cache(1)
def normal_distribution(library: Path = Path("/usr/lib")) -> tuple[int, ...]:
    """The numbers of 16 bits that tc sends for `distribution normal`.

    Raises OSError if this machine lacks tc's file.
    """
    places = [library / TABLE, *library.glob(f"*/{TABLE}")]
    text = next(filter(Path.is_file, places), places[0]).read_text(encoding="ascii")
    numbers: list[int] = []
    for line in text.splitlines():
        if not line.startswith("#"):
            numbers += map(int, line.split())
    return tuple(numbers)
