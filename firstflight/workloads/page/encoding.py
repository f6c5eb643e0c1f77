"""Compresses the contents of a HAR again, which has them as a page reads them.

With which quality their servers did is not recorded, but how many bytes came often is. So the
quality is taken that comes nearest to these.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from functools import partial

import brotli

from firstflight.testbed.hosts.replay.recording import BROTLI, GZIP
from firstflight.workloads.page.har_file import number, table

# By coding: its lowest and highest quality, and the one to begin with.
_QUALITIES = {GZIP: (1, 9, 6), BROTLI: (0, 11, 5)}
# Larger ones would take seconds each with the two highest qualities of brotli.
MOST_SLOW_BYTES, MOST_QUICK = 1 << 20, 9
# That browsers announce besides gzip; zstd is sent as brotli, which comes near its sizes.
AS_BROTLI = ("br", "zstd")


def recorded_bytes(response: Mapping[str, object]) -> int | None:
    """How many bytes the body of a response had as it came; None where the HAR does not say.

    HAR 1.2 has bodySize, and content.compression where that is -1; Chrome's own _transferSize
    counts the head, too, which its HARs do not have apart over HTTP/2.
    """
    content = table(response, "content")
    came = number(response.get("bodySize"))
    if came <= 0 < number(content.get("compression")):
        came = number(content.get("size")) - number(content.get("compression"))
    if came <= 0:
        came = number(response.get("_transferSize"))
    return int(came) if came > 0 else None


def compressed(body: bytes, coding: str, wanted_bytes: int | None = None) -> tuple[str, bytes]:
    """A body compressed as near to a size as it gets; its coding, and the bytes.

    coding: the recorded one. wanted_bytes: how many came, None for unknown.
    """
    name = BROTLI if coding in AS_BROTLI else GZIP
    compress = _brotli if name == BROTLI else _gzip
    lowest, highest, usual = _QUALITIES[name]
    if wanted_bytes is None:
        return name, compress(body, usual)
    if len(body) > MOST_SLOW_BYTES:
        highest = min(highest, MOST_QUICK)
    return name, _nearest(partial(compress, body), usual, (lowest, highest), wanted_bytes)


def _nearest(made: Callable[[int], bytes], usual: int, last: tuple[int, int], wanted_bytes: int
             ) -> bytes:
    """The compressed body whose size is nearest to the wanted one.

    made: compresses by a quality. It begins with the usual one, and goes on to higher ones while
    the body is too large, or to lower ones while it is too small, up to the last ones.
    """
    bodies = [made(usual)]
    lowest, highest = last
    is_large = len(bodies[0]) > wanted_bytes
    others = range(usual + 1, highest + 1) if is_large else range(usual - 1, lowest - 1, -1)
    for quality in others:
        if (len(bodies[-1]) > wanted_bytes) != is_large:
            break
        bodies.append(made(quality))
    return min(bodies, key=lambda body: abs(len(body) - wanted_bytes))


def _gzip(body: bytes, quality: int) -> bytes:
    return gzip.compress(body, quality, mtime=0)


def _brotli(body: bytes, quality: int) -> bytes:
    made: bytes = brotli.compress(body, quality=quality)
    return made
