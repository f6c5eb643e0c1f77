"""Who requests what in a load: client hosts, mixes of initial windows, and sizes of responses.

Scenario files have a table for each, and trials.csv a column of JSON (runs.typed_columns).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from firstflight.base.errors import UsageError
from firstflight.base.quantity import Quantity
from firstflight.base.words import format_lossless
from firstflight.net.headers import HEADER_BYTES, MSS, SYN_BYTES
from firstflight.parameters import default
from firstflight.runs.schema import key

SHARE_TOLERANCE = 1e-6
SIZE_STEPS = 20_000  # quantiles of a distribution of sizes, from which its mean is computed
_BELOW = Quantity("share", "a share of a distribution", lowest=0, highest=1)

# A distribution of response sizes, as points (share, bytes): this share has at most so many bytes.
Curve = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class ClientHost:
    """One client host and its share of the arrivals."""

    share: float = key(quantity="host_share")
    rtt_ms: float = key()  # of the empty path to the host
    initcwnd: int = key()  # set on the servers' routes to the host, in segments
    bandwidth_kbps: float | None = None  # of the host's own link; None for unlimited
    # Random loss and jitter on the way to the host, independent of the load (setting/path.py).
    loss_percent: float = default("loss_percent")
    loss_burst: float = default("loss_burst")
    jitter_ms: float = default("jitter_ms")


@dataclass(frozen=True)
class MixPart:
    """One initial window of a mix, and the share of all clients that have it."""

    initcwnd: int
    share: float


@dataclass(frozen=True)
class SizePoint:
    """One point of a distribution of sizes: the share of responses of at most so many bytes."""

    share: float = key(reader=_BELOW.check)
    size_bytes: float = key(quantity="response_bytes", name="bytes")


@dataclass(frozen=True)
class Window:
    """The initial windows that are compared with others: one for all clients, or a mix."""

    parts: tuple[MixPart, ...]

    @property
    def is_mix(self) -> bool:
        """Whether clients have different initial windows."""
        return len(self.parts) > 1

    @property
    def part_names(self) -> tuple[str, ...]:
        """A name for each part: "3" and "10" if shares are equal, otherwise "3*0.9", "10*0.1"."""
        first = self.parts[0]
        if all(abs(part.share - first.share) < SHARE_TOLERANCE for part in self.parts):
            return tuple(f"{part.initcwnd}" for part in self.parts)
        return tuple(f"{part.initcwnd}*{format_lossless(part.share)}" for part in self.parts)

    @property
    def name(self) -> str:
        """The name in figures and claims: "10", "3+10", "3*0.9+10*0.1"."""
        return "+".join(self.part_names)

    @property
    def label(self) -> str:
        """The name in sentences: "IW 10", "mix of IW 3 and 10"."""
        return f"{'mix of ' if self.is_mix else ''}IW {' and '.join(self.part_names)}"

    @property
    def initcwnd(self) -> int:
        """The initial window of all clients; 0 for a mix."""
        return 0 if self.is_mix else self.parts[0].initcwnd

    @property
    def largest(self) -> int:
        """The largest initial window of all parts."""
        return max(part.initcwnd for part in self.parts)


def single(initcwnd: int) -> Window:
    """The window that all clients have."""
    return Window((MixPart(initcwnd, 1.0),))


def check_shares(shares: Sequence[float], what: str, where: str) -> None:
    """Check that shares sum to 1. Raises UsageError.

    what: whose shares they are, for the message.
    """
    if abs(sum(shares) - 1) > SHARE_TOLERANCE:
        summed = " + ".join(f"{share:g}" for share in shares)
        raise UsageError(f"{where}: the shares of {what} {summed}"
                         f" sum to {sum(shares):g}, not to 1")


# Sizes -------------------------------------------------------------------------------

def wire_bytes(response_bytes: float, mss: int = MSS) -> float:
    """How many bytes cross the bottleneck for one response if nothing is lost.

    Headers are included, as the qdisc counts them: the HTTP header of the response, and those of
    Ethernet, IPv4 and TCP for each segment. Besides the data these are the SYN-ACK, the
    acknowledgement of the request, and the server's FIN, which acknowledges the client's.
    """
    segments = segments_of(response_bytes, mss)
    return SYN_BYTES + _with_head(response_bytes) + (segments + 2) * HEADER_BYTES


def segments_of(response_bytes: float, mss: int = MSS) -> int:
    """How many segments a response takes with its head."""
    return math.ceil(_with_head(response_bytes) / mss)


def _with_head(response_bytes: float) -> float:
    """The bytes of a response with the HTTP header of load_server.py."""
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {response_bytes:.0f}\r\n\r\n"
    return response_bytes + len(head)


@cache
def named_curve(name: str) -> Curve:
    """A service's response sizes (the paper's Figure 1). Raises UsageError for an unknown one."""
    from firstflight.scenario.curves import size_curve
    curve = size_curve(name)
    return tuple(zip(curve.cdf, curve.values))


def check_points(points: Sequence[SizePoint], where: str) -> None:
    """Check that points are a distribution function from share 0 to 1. Raises UsageError."""
    if len(points) < 2:
        raise UsageError(f"{where} has to be a list of two points or more, such as"
                         " [{ share = 0, bytes = 500 }, { share = 1, bytes = 60000 }]")
    rising = all(first.share <= second.share and first.size_bytes <= second.size_bytes
                 for first, second in zip(points, points[1:]))
    if (points[0].share, points[-1].share) != (0, 1) or not rising:
        raise UsageError(f"{where}: its shares have to rise from 0 to 1, and the sizes with them")


@cache
def mean_bytes(curve: Curve) -> float:
    """The mean size of a response, in bytes."""
    sizes = _even_quantiles(curve)
    return sum(sizes) / len(sizes)


@cache
def mean_wire_bytes(curve: Curve, mss: int = MSS) -> float:
    """The mean of wire_bytes over a distribution of sizes."""
    sizes = _even_quantiles(curve)
    return sum(wire_bytes(size, mss) for size in sizes) / len(sizes)


@cache
def _even_quantiles(curve: Curve) -> tuple[float, ...]:
    """Evenly spaced quantiles of the sizes, in bytes, rounded as load_client.py rounds a draw."""
    if len(curve) == 1:
        return (curve[0][1],)
    import numpy
    shares, sizes = zip(*curve)
    even_shares = (numpy.arange(SIZE_STEPS) + 0.5) / SIZE_STEPS
    quantiles = numpy.rint(numpy.interp(even_shares, shares, sizes))
    return tuple(map(float, numpy.maximum(quantiles, 1)))
