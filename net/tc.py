"""What netem and tc count by: for who sets qdiscs, and for who computes what they do."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

TABLE = "tc/normal.dist"  # below /usr/lib or a folder of it
MOST_U32 = 0xFFFFFFFF
FULL_FRAME_BYTES = 1514  # of Ethernet
HTB_CEILING_BURST_BYTES = 1600  # of HTB's ceiling, tc's default: its MTU


def probability(percent: float) -> int:
    """As the kernel and tc count it, in parts of MOST_U32, with as many digits as tc is given."""
    return round(float(f"{percent:g}") / 100 * MOST_U32)


@lru_cache(1)
def normal_distribution(library: Path = Path("/usr/lib")) -> tuple[int, ...]:
    """The numbers that tc sends for `distribution normal`, 16 bits each.

    Raises OSError where there is no such file.
    """
    places = [library / TABLE, *library.glob(f"*/{TABLE}")]
    text = next(filter(Path.is_file, places), places[0]).read_text(encoding="ascii")
    return tuple(int(word) for line in text.splitlines() if not line.startswith("#")
                 for word in line.split())
