"""The alterations that pass the judges although they change a time by more than the judges allow.

They are the table in docs/METHOD.md. A key is the name in benchmarks.outside.alterations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Passes(NamedTuple):
    """A row of the table.

    fetch, page and trace are the largest changes of a time in ms. None: no such trial passed, or
    none of its times changed by more than is allowed.
    """

    words: str  # as METHOD has them
    fetch: float | None = None
    page: float | None = None
    trace: float | None = None


PASSES: Mapping[str, Passes] = {
    "a queue of half the packets": Passes(
        "fq_codel or cake with half the packets", 483, 287, 608),
    "no slow start after a pause": Passes("no slow start after a pause", 416, 41, 91),
    "cake": Passes("cake instead of fq_codel", 370),
    "a least timeout of 400 ms": Passes("a least timeout of 400 ms instead of 200", None, 465, 295),
    "another seed": Passes("other random numbers of the kernel under cake", 186, 249, 196),
    "a client that acknowledges each segment": Passes(
        "a client that acknowledges each segment", 77, 224, 107),
    "Nagle's algorithm": Passes("Nagle's algorithm in TLS's handshake", 61, 204),
    "no compressed acknowledgements": Passes("no compressed acknowledgements", 1.1, 195, 2.1),
    "no tail loss probes": Passes("a server without tail loss probes", None, 163),
    "objects named 3 kB early": Passes("objects named 3 kB early, over HTTP/2", None, 107),
    "objects named 3 kB late": Passes("objects named 3 kB late, over HTTP/2", None, 23),
    "a chain 600 bytes longer": Passes(
        "a chain 600 bytes longer under cake, over HTTP/2", None, 66),
    "a first-in first-out queue": Passes("no fq", None, 11.3),
    "fq": Passes("fq where BBR paces already", None, 5),
    "the client's window a segment smaller": Passes(
        "a receive window of 99 segments instead of 100", 4.9, None, 1.1),
    "connections used once": Passes("connections used once, over HTTP/2", None, 3.5),
    "a server that pauses 3 ms before its answer": Passes(
        "a server that pauses 3 ms before what is paced over TLS", 3.1),
    "a server that pauses 3 ms within its answer": Passes(
        "a server that pauses 3 ms within what BBR paces", 2.5, 2.4),
    "no DSACK": Passes("no DSACK", None, 2.2),
}


def table() -> str:
    """The rows of the table in docs/METHOD.md."""
    def cell(most_ms: float | None) -> str:
        return "" if most_ms is None else f"{most_ms:g}"

    return "".join(f"| {row.words} | {cell(row.fetch)} | {cell(row.page)} | {cell(row.trace)} |\n"
                   for row in PASSES.values())
