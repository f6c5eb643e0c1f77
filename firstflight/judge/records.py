"""Checks how long each TLS record is that a server sent (testbed/worker/tls_streams.py).

A server fills its records. Over HTTP/1.1 server.py and nginx send a shorter record only at the end
of a response. Over HTTP/2 nginx writes frames of several responses into its records, and a record
is shorter where nginx has nothing more to write.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby, takewhile

from firstflight.base.comparison import Comparison
from firstflight.testbed.hosts.tls_records import (DIGEST_BYTES, MESSAGE_BYTES,
                                                   RECORD_OVERHEAD_BYTES)
from firstflight.testbed.messages import Observation

# nginx reads so much of a file at once (output_buffers), and may write it before it reads on.
READ_BYTES = 32_768
# One of so many responses may have a record more than others. On a link whose queue drops, one
# response of 13 had; in 144 other loads none had.
RESPONSES_OF_A_SPLIT = 8
# Records of the server's SETTINGS, and of its acknowledgement of the client's.
SETTINGS_RECORDS = 2
# The least and the most bytes of a record with a ticket of OpenSSL's: server.py's have 255 bytes,
# nginx's 271 to 295. SETTINGS and a response's record of headers are shorter, and a response is
# longer or comes later.
TICKET_BYTES = (150, 600)
FINISHED_BYTES = MESSAGE_BYTES + DIGEST_BYTES + RECORD_OVERHEAD_BYTES
_ALIKE_BYTES = 3  # by which the compressed headers of equal responses may differ
_SHOWN = 6  # runs of equal records in a verdict's reason


def lengths_of(observation: Observation) -> dict[int, list[int]]:
    """The length of each TLS record that the server sent, by the client's port."""
    by_port: dict[int, list[int]] = {}
    for port, runs in observation.get("records", ()):
        lengths = by_port[port] = []
        for length, count in runs:
            lengths += [length] * count
    return by_port


def records_after_finished(lengths: Sequence[int]) -> list[int]:
    """The records after the server's first messages, which end with its Finished.

    [] where no record has the length of Finished.
    """
    if FINISHED_BYTES not in lengths:
        return []
    return [*lengths[lengths.index(FINISHED_BYTES) + 1:]]


def records_between(lengths: Sequence[int], start: int, end: int) -> list[int]:
    """The records that begin in one part of what the server sent.

    start, end: of the part, in bytes from the first one that the server sent; end is not in it.
    """
    found, sent = [], 0
    for length in lengths:
        if start <= sent < end:
            found.append(length)
        sent += length
    return found


def split_text(sealed_bytes: int, record_bytes: int) -> list[int]:
    """The lengths of the records of one text: full records, and one with the rest.

    sealed_bytes: the length of all these records. record_bytes: the most text in a record.
    """
    full = record_bytes + RECORD_OVERHEAD_BYTES
    count, rest = divmod(sealed_bytes, full)
    lengths = [full] * count
    if rest:
        lengths.append(rest)
    return lengths


def compare_records(lengths: Sequence[int], expected: Sequence[int], name: str) -> Comparison:
    """Compare records whose lengths follow from what the server sends."""
    return Comparison(list(lengths) == list(expected), f"records of {_listed(lengths)} bytes",
                      _listed(expected), name=name)


def compare_sent(lengths: Sequence[int], sent_bytes: int, name: str) -> Comparison:
    """Compare the bytes of all records with what the server sent on the connection."""
    return Comparison(sum(lengths) == sent_bytes, f"records of {sum(lengths)} bytes",
                      f"{sent_bytes} sent", name=name)


def compare_tickets(lengths: Sequence[int], tickets: int, name: str, *, or_more: bool
                    ) -> Comparison:
    """Compare the records after the server's first messages with its tickets, one in each record.

    All tickets of a session have the same length. or_more: whether a response follows, whose record
    may have that length, too. Over HTTP/2 SETTINGS follow, which are shorter.
    """
    least, most = TICKET_BYTES
    first = lengths[0] if lengths else 0
    sent = 0
    if least <= first <= most:
        sent = len([*takewhile(lambda length: length == first, lengths)])
    is_right = sent >= tickets if or_more else sent == tickets
    return Comparison(is_right, f"{sent} tickets", f"{tickets}", name=name)


def compare_flushed(lengths: Sequence[int], record_bytes: int, tickets: int,
                    sizes: Sequence[int], name: str) -> Iterator[Comparison]:
    """Compare the records after the server's first messages over HTTP/2: tickets and responses.

    record_bytes: the most text in a record. tickets: how many. sizes: of the bodies on the
    connection.
    """
    most_short = tickets + SETTINGS_RECORDS + most_flushes(sizes)
    yield from compare_filled(lengths, record_bytes, most_short, name=name)
    yield from compare_repeated(lengths[tickets:], record_bytes, sizes, name=name)


def compare_filled(lengths: Sequence[int], record_bytes: int, most_short: int, name: str
                   ) -> Iterator[Comparison]:
    """Compare records that are full, except where the server had nothing more to write.

    record_bytes: the most text in a record. most_short: how many may be shorter.
    """
    full = record_bytes + RECORD_OVERHEAD_BYTES
    longest = max(lengths, default=0)
    yield Comparison(longest <= full, f"a record of {longest} bytes", f"at most {full}", name=name)

    short = [length for length in lengths if length < full]
    yield Comparison(len(short) <= most_short,
                     f"{len(short)} records shorter than {full} bytes ({_listed(short)})",
                     f"at most {most_short}", name=name)


def compare_repeated(lengths: Sequence[int], record_bytes: int, sizes: Sequence[int], name: str
                     ) -> Iterator[Comparison]:
    """Compare how often the longest record of responses was sent, where no record was full.

    Each record then has all of one or a few responses, and only equal responses make equal records.
    If the server's records were shorter than requested, many of them would be equal. sizes: of the
    bodies on the connection.
    """
    longest = max(lengths, default=0)
    if not 0 < longest < record_bytes + RECORD_OVERHEAD_BYTES:
        return

    most_alike = 0  # the largest number of bodies whose sizes are nearly equal
    for size in sizes:
        alike = sum(size <= other <= size + _ALIKE_BYTES for other in sizes)
        most_alike = max(most_alike, alike)
    count = list(lengths).count(longest)
    yield Comparison(count <= 1 + most_alike,
                     f"{count} records of {longest} bytes, and none longer",
                     f"at most {1 + most_alike} alike", name=name)


def most_flushes(sizes: Sequence[int], read_bytes: int = READ_BYTES) -> int:
    """The most records that nginx may end early in bodies of these sizes.

    nginx has nothing more to write at the end of each body, and at the end of each part of
    read_bytes that it reads of a body. Now and then its socket is full in the midst of a record.
    """
    parts = sum(max(1, math.ceil(size / read_bytes)) for size in sizes)
    full_sockets = 1 + len(sizes) // RESPONSES_OF_A_SPLIT
    return parts + full_sockets


def _listed(lengths: Sequence[int]) -> str:
    """Lengths in words: "3×16406, 4627", or "no" without any."""
    runs = [(length, len([*same])) for length, same in groupby(lengths)]
    shown = [f"{count}×{length}" if count > 1 else f"{length}" for length, count in runs[:_SHOWN]]
    if len(runs) > _SHOWN:
        shown.append("…")
    return ", ".join(shown) or "no"
