"""Ranges of a TCP stream's bytes: which copies covered a byte, when it arrived, what is missing.

A range begins at its first byte, and its end is the byte after its last one.
"""

from __future__ import annotations

from bisect import bisect_left, insort

import numpy

from firstflight.net.path import NEVER
from firstflight.wire.capture.pcapng import Numbers

Hole = tuple[int, int, int]  # begin, end, and the number of the loss that made it


def first_arrivals(begins: Numbers, ends: Numbers, times: Numbers, bytes_at: Numbers) -> Numbers:
    """When each byte first arrived, NEVER for a byte that did not.

    begins, ends, times: of the segments that arrived. bytes_at: sequence numbers of the bytes.
    It is exact if retransmissions begin where the original segments began.
    """
    order = numpy.lexsort((times, begins))
    if not len(order):
        return numpy.full(len(bytes_at), NEVER)
    # Find the last begin at the byte or before it. Of the segments with this begin, the earliest
    # arrival counts.
    last = numpy.searchsorted(begins[order], bytes_at, "right") - 1
    begin = begins[order][numpy.maximum(last, 0)]
    earliest = order[numpy.searchsorted(begins[order], begin)]
    reach = numpy.maximum.accumulate(ends[order])[numpy.maximum(last, 0)]
    return numpy.where((last >= 0) & (reach > bytes_at), times[earliest], NEVER)


def count_covering(begins: Numbers, ends: Numbers, bytes_at: Numbers) -> Numbers:
    """How many ranges contain each byte."""
    return (numpy.searchsorted(numpy.sort(begins), bytes_at, "right")
            - numpy.searchsorted(numpy.sort(ends), bytes_at, "right"))


def add_hole(holes: list[Hole], begin: int, end: int, loss: int) -> None:
    """Add a hole to sorted, disjoint ones; it replaces the parts of them that it overlaps."""
    place = max(bisect_left(holes, (begin, 0, 0)) - 1, 0)
    while place < len(holes) and holes[place][0] < end:
        old_begin, old_end, old_loss = holes[place]
        if old_end <= begin:
            place += 1
            continue
        del holes[place]
        if old_begin < begin:  # what is left of the old hole before the new one
            insort(holes, (old_begin, begin, old_loss))
            place += 1
        if end < old_end:  # and after it
            insort(holes, (end, old_end, old_loss))
    insort(holes, (begin, end, loss))
