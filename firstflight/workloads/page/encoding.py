"""Compresses the contents of a HAR again: a HAR has them as a page reads them, decompressed.

A HAR does not record which quality a server compressed with, but often how many bytes came. So the
quality is chosen whose result has nearly as many.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from functools import partial

import brotli

from firstflight.testbed.hosts.replay.recording import BROTLI, GZIP
from firstflight.workloads.page.har_file import number, table

# By coding: its lowest and highest quality, and the quality to begin with.
_QUALITIES = {GZIP: (1, 9, 6), BROTLI: (0, 11, 5)}
# A larger body would take seconds with each of brotli's qualities above MOST_QUICK.
MOST_SLOW_BYTES = 1 << 20
MOST_QUICK = 9
# Codings that are sent as brotli: brotli itself, and zstd, whose sizes come near brotli's.
AS_BROTLI = ("br", "zstd")


def recorded_bytes(response: Mapping[str, object]) -> int | None:
    """How many bytes the body of a response had as it came; None where the HAR does not say.

    HAR 1.2 has bodySize, or content.compression where bodySize is -1. Chrome has _transferSize,
    which counts the headers as well: over HTTP/2 Chrome does not write how long these were.
    """
    content = table(response, "content")
    came = number(response.get("bodySize"))
    if came <= 0 < number(content.get("compression")):
        came = number(content.get("size")) - number(content.get("compression"))
    if came <= 0:
        came = number(response.get("_transferSize"))
    return int(came) if came > 0 else None


def compress(body: bytes, coding: str, wanted_bytes: int | None = None) -> tuple[str, bytes]:
    """Compress a body to nearly a size. Return the coding that was used, and the bytes.

    coding: the recorded one. wanted_bytes: how many came, None for unknown.
    """
    name = BROTLI if coding in AS_BROTLI else GZIP
    compress_by = partial(_brotli if name == BROTLI else _gzip, body)
    lowest, highest, usual = _QUALITIES[name]
    if wanted_bytes is None:
        return name, compress_by(usual)
    if len(body) > MOST_SLOW_BYTES:
        highest = min(highest, MOST_QUICK)
    return name, _nearest(compress_by, wanted_bytes, usual=usual, lowest=lowest, highest=highest)


def _nearest(compress_by: Callable[[int], bytes], wanted_bytes: int, *, usual: int, lowest: int,
             highest: int) -> bytes:
    """The compressed body whose size is nearest to the wanted one.

    The usual quality comes first, then higher ones while the body is too large, or lower ones while
    it is too small.
    """
    bodies = [compress_by(usual)]
    is_large = len(bodies[0]) > wanted_bytes
    others = range(usual + 1, highest + 1) if is_large else range(usual - 1, lowest - 1, -1)
    for quality in others:
        if (len(bodies[-1]) > wanted_bytes) != is_large:
            break
        bodies.append(compress_by(quality))
    return min(bodies, key=lambda body: abs(len(body) - wanted_bytes))


def _gzip(body: bytes, quality: int) -> bytes:
    return gzip.compress(body, quality, mtime=0)


def _brotli(body: bytes, quality: int) -> bytes:
    compressed: bytes = brotli.compress(body, quality=quality)
    return compressed
