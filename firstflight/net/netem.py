"""netem's options as a kernel takes and reports them.

Their structures are from include/uapi/linux/pkt_sched.h.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from firstflight.net.netlink import NESTED, attribute, attributes, u64
from firstflight.net.tc import MOST_U32, TICK_NS, normal_distribution

_HEAD = struct.Struct("=6I")  # struct tc_netem_qopt
_FOUR_WORDS = struct.Struct("=4I")  # struct tc_netem_rate, tc_netem_gemodel
(_CORRELATION, _DELAY_DIST, _REORDER, _CORRUPT, _LOSS, _RATE, _ECN, _RATE64, _LATENCY64, _JITTER64,
 _SLOT, _SEED) = 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 14
_LOSS_GE = 2  # in _LOSS: the parameters of Gilbert's model


class NetemOptions(NamedTuple):
    """netem's options in the kernel's units: ticks, chances in parts of MOST_U32, bytes a second.
    """

    latency: int = 0
    limit: int = 0
    loss: int = 0
    duplicate: int = 0
    jitter: int = 0
    rate: int = 0
    overhead: int = 0
    burst_begins: int = 0  # of Gilbert's model, as burst_ends
    burst_ends: int = 0
    reorder: int = 0
    corrupt: int = 0
    # Of older kernels, which report ticks only, both are computed from these.
    latency_ns: int = 0
    jitter_ns: int = 0
    seed: int = 0
    is_correlated: bool = False
    has_ecn: bool = False
    has_loss_model: bool = False  # Gilbert's or another one
    has_slots: bool = False

    def pack(self, seeded: bool) -> bytes:
        """The options as tc sends them, without attributes whose numbers are all 0.

        seeded: whether to send the seed. Raises OSError if jitter is set and this machine has no
        table of the normal distribution.
        """
        options = _HEAD.pack(self.latency, self.limit, self.loss, 0, self.duplicate, self.jitter)
        if self.rate > MOST_U32:
            options += u64(_RATE64, self.rate)
        if self.rate:
            options += attribute(_RATE, _FOUR_WORDS.pack(min(self.rate, MOST_U32), 0, 0, 0))
        if self.burst_begins or self.burst_ends:
            bursts = _FOUR_WORDS.pack(self.burst_begins, self.burst_ends, 0, 0)
            options += attribute(_LOSS | NESTED, attribute(_LOSS_GE, bursts))
        if self.jitter:
            table = normal_distribution()
            options += attribute(_DELAY_DIST, struct.pack(f"={len(table)}h", *table))
        if seeded:
            options += u64(_SEED, self.seed)
        return options


def read_options(options: bytes) -> NetemOptions:
    """The options of a netem, from a kernel's report. Raises ValueError if they are not netem's.
    """
    if len(options) < _HEAD.size:
        raise ValueError(f"{len(options)} bytes are not options of netem")
    latency, limit, loss, _, duplicate, jitter = _HEAD.unpack_from(options)

    held = attributes(options[_HEAD.size:])
    rate, overhead, *_ = struct.unpack("=IiIi", held.get(_RATE) or bytes(16))
    loss_model = attributes(held.get(_LOSS, b""))
    begins, ends, *_ = _FOUR_WORDS.unpack(loss_model.get(_LOSS_GE) or bytes(_FOUR_WORDS.size))
    return NetemOptions(
        latency=latency, limit=limit, loss=loss, duplicate=duplicate, jitter=jitter,
        rate=_number(held, _RATE64, "=Q", rate), overhead=overhead,
        burst_begins=begins, burst_ends=ends,
        reorder=_number(held, _REORDER, "=I", 0), corrupt=_number(held, _CORRUPT, "=I", 0),
        latency_ns=_number(held, _LATENCY64, "=q", latency * TICK_NS),
        jitter_ns=_number(held, _JITTER64, "=q", jitter * TICK_NS),
        seed=_number(held, _SEED, "=Q", 0), is_correlated=any(held.get(_CORRELATION, b"")),
        has_ecn=any(held.get(_ECN, b"")), has_loss_model=_LOSS in held,
        has_slots=any(held.get(_SLOT, b"")))


def _number(held: dict[int, bytes], kind: int, form: str, absent: int) -> int:
    """The number with which an attribute begins; `absent` where there is no such attribute.

    Raises ValueError if the attribute is too short.
    """
    if kind not in held:
        return absent
    if len(held[kind]) < struct.calcsize(form):
        raise ValueError("an option of netem that is cut")
    number: int = struct.unpack_from(form, held[kind])[0]
    return number
