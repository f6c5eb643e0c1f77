"""A queue's length as users request it: in packets, in ms or in bandwidth-delay products."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from firstflight.base import typed
from firstflight.base.quantity import Quantity
from firstflight.base.words import plain
from firstflight.net.headers import HEADER_BYTES, MSS
from firstflight.net.tc import FULL_FRAME_BYTES

# AUTO is a queue of one BDP, but at least of LEAST_AUTO_PACKETS. With so much slow start can fill
# the path, and routers are built with about as much.
AUTO = "auto"
LEAST_AUTO_PACKETS = 100

PACKETS = Quantity("queue_packets", "a queue", "packets", 1, 1_000_000, whole=True, head="queue")
MS = Quantity("queue_ms", "a queue", "ms", 0.01, 60_000, head="queue")
BDP = Quantity("queue_bdp", "a queue", "bandwidth-delay products", 0.001, 100, head="buffer",
               why=" (a bottleneck without a buffer passes nothing on)")
_DISCIPLINES = ("droptail", "fifo", "fq", "fq_codel", "cake")
_BY_UNIT = {"": PACKETS, "ms": MS, "bdp": BDP}


@dataclass(frozen=True)
class Length(Quantity):
    """The quantity of a queue's length. Values are words: "100", "50ms", "1bdp", or AUTO."""

    def accept(self, value: object) -> str:
        if isinstance(value, (int, float)):
            return str(PACKETS.accept(value))
        if value == AUTO:
            return AUTO
        if isinstance(value, str) and value in _DISCIPLINES:
            qdisc = value.replace("droptail", "fifo")
            raise ValueError(f"{value!r} is no length but a discipline: write qdisc ="
                             f' "{qdisc}" (--qdisc {qdisc})')

        match = None
        if isinstance(value, str):
            match = re.fullmatch(r"(\d{0,9}(?:\.\d{1,6})?)(ms|bdp|)", value)
        # Only "bdp" needs no number: it is one BDP.
        if match is None or (not match[1] and match[2] != "bdp"):
            raise ValueError(f"{value!r} is not a queue length; write packets, a time or"
                             f" bandwidth-delay products, like 100, 50ms or 0.5bdp; {AUTO} is one"
                             f" BDP, at least {LEAST_AUTO_PACKETS} packets")

        number, unit = match.groups()
        accepted = _BY_UNIT[unit].accept(float(number or 1))
        return f"{plain(accepted)}{unit}"

    def listed(self, words: str) -> list[str]:
        """Lengths as typed, with units in upper or lower case. Raises ValueError.

        Bytes are refused, with a message that gives their number of packets.
        """
        lengths = []
        for word in typed.expand_range(words, "packets", whole=True):
            low = re.sub(r"(?<=\d)\s*(p|pkts?|packets?)$|\s", "", word.lower())
            if re.fullmatch(r"[\d.]+[kmg]?i?b(ytes)?", low):
                packets = math.ceil(typed.number(low, "bytes") / FULL_FRAME_BYTES)
                raise ValueError(f"{word!r} is a length in bytes; a queue holds packets, here"
                                 f" {packets} of {FULL_FRAME_BYTES} bytes: write {packets}, 50ms or"
                                 " 1bdp")

            if re.fullmatch(r"\d*\.\d*[1-9]\d*", low):
                raise ValueError(f"{word!r} is not a whole number of packets; write {low}bdp,"
                                 f" {low}ms or whole packets")
            if seconds := re.fullmatch(r"([\d.]+)(us|s)", low):
                low = f"{plain(typed.number(seconds[0], 'ms'))}ms"
            lengths.append(low)
        return lengths

    def parsed(self, word: str) -> str:
        return word

    @property
    def metavar(self) -> str:
        return "PACKETS|MSms|bdp,…"

    @property
    def range(self) -> str:
        ends = ", ".join(quantity.range for quantity in (PACKETS, MS, BDP))
        return f"{ends}, like 100, 50ms or 0.5bdp; {AUTO}"


def packets_of(length: str, rtt_ms: float, bandwidth_kbps: float) -> int:
    """How many full packets a queue of this length holds, rounded up.

    A load's queue_bdp is rounded to the nearest number instead (LoadSweep.nearest_packets). Raises
    UsageError if the queue is too long.
    """
    if length.isdigit():
        return int(length)

    if length == AUTO:
        length_ms = rtt_ms
    elif length.endswith("ms"):
        length_ms = float(length.removesuffix("ms"))
    else:
        length_ms = float(length.removesuffix("bdp")) * rtt_ms

    packets = math.ceil(length_ms * bandwidth_kbps / 8 / (MSS + HEADER_BYTES))
    if length == AUTO:
        return min(max(LEAST_AUTO_PACKETS, packets), int(PACKETS.highest))
    checked: int = PACKETS.check(packets, f"a queue of {length}")
    return checked
