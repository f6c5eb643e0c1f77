"""Which packets netem drops at random: its own generator, for many transfers at once.

The worker seeds netem with a trial's seed, so that the simulation loses what the guest loses
(prandom_seed_state, prandom_u32_state; netem's loss_event). Every packet towards the client
draws a number, the SYN-ACK first.
"""

from __future__ import annotations

import numpy
from numpy.typing import NDArray

from lab.core.scenario.curves import Numbers
from lab.fetches.features.population.draws import Counts

Chances = NDArray[numpy.uint32]
# Of each of the generator's four parts (TAUSWORTHE): shifts and mask; the least of a seed.
_PARTS = ((6, 13, 4294967294, 18, 2), (2, 27, 4294967288, 2, 8), (13, 21, 4294967280, 7, 16),
          (3, 12, 4294967168, 13, 128))


def begin(seed: Counts) -> Chances:
    """The generators of these seeds, shape (n, 4)."""
    wide = seed.astype(numpy.uint64)
    mixed = ((wide >> numpy.uint64(32)) ^ (wide << numpy.uint64(10)) ^ wide).astype(numpy.uint32)
    return numpy.stack([numpy.where(mixed < least, mixed + numpy.uint32(least), mixed)
                        for *_, least in _PARTS], axis=1)


def lost(chance: Chances, rows: Counts, share: Numbers) -> NDArray[numpy.bool_]:
    """Whether the next packet of each of these transfers is dropped; share: of all, shape (n,)."""
    value = numpy.zeros(len(rows), numpy.uint32)
    for part, (up, down, mask, by, _) in enumerate(_PARTS):
        state = chance[rows, part]
        state = (((state & numpy.uint32(mask)) << numpy.uint32(by))
                 ^ (((state << numpy.uint32(up)) ^ state) >> numpy.uint32(down)))
        chance[rows, part] = state
        value ^= state
    return value <= share * 2.0**32


def handshakes(chance: Chances, share: Numbers, handshake_ms: Numbers, timer_ms: float
               ) -> NDArray[numpy.bool_]:
    """Let each SYN-ACK arrive, and the acknowledgement of the request; which were retransmitted.

    Where the handshake outlasts the timers (timer_ms) of the SYN and of the SYN-ACK, each that
    runs out sends the SYN-ACK once more.
    """
    repeated = handshake_ms > timer_ms
    rows = numpy.flatnonzero(share)
    again = rows
    while len(again):
        again = again[lost(chance, again, share[again])]
        repeated[again] = True
    expired = numpy.floor(numpy.log2(handshake_ms / timer_ms + 1))
    for number in range(int(expired.max(initial=0))):
        late = rows[expired[rows] > number]
        for _ in range(2):
            lost(chance, late, share[late])
    lost(chance, rows, share[rows])
    return repeated
