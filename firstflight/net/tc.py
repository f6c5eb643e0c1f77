"""What netem and tc count by: for who sets qdiscs, and for who computes what they do."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

TABLE = "tc/normal.dist"  # below /usr/lib or a folder of it
MOST_U32 = 0xFFFFFFFF
FULL_FRAME_BYTES = 1514  # of Ethernet
HTB_CEILING_BURST_BYTES = 1600  # of HTB's ceiling, tc's default: its MTU
TICK_NS = 64  # the kernel's unit of a delay (PSCHED_SHIFT)


def bits(kbps: float) -> int:
    """A rate as tc takes it, bit/s."""
    return round(kbps * 1000)


def ticks(microseconds: int) -> int:
    """A delay in the kernel's unit; tc cuts off what is over."""
    return microseconds * 1000 // TICK_NS


def htb_ticks(rate: int, size_bytes: int) -> int:
    """How long so many bytes take, as tc counts it (tc_calc_xmittime): at least a tick.

    rate: bytes a second.
    """
    return max(ticks(size_bytes * 1_000_000 // rate), 1)


def probability(percent: float) -> int:
    """A percentage in parts of MOST_U32, as the kernel has it from the digits that tc is given."""
    return round(float(f"{percent:g}") / 100 * MOST_U32)


@lru_cache(1)
def normal_distribution(library: Path = Path("/usr/lib")) -> tuple[int, ...]:
    """The numbers that tc sends for `distribution normal`, 16 bits each.

    Raises OSError if there is no such file.
    """
    places = [library / TABLE, *library.glob(f"*/{TABLE}")]
    text = next(filter(Path.is_file, places), places[0]).read_text(encoding="ascii")
    return tuple(int(word) for line in text.splitlines() if not line.startswith("#")
                 for word in line.split())
