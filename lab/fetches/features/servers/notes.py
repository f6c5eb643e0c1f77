"""What readers have to know of servers besides server.py, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from lab.fetches.scenario.server import BUILTIN, HTTP_3, OWN
from lab.fetches.verify.record import Record

NAMES = {OWN: "the server of your own"}


def of_servers(records: Sequence[Record]) -> list[str]:
    """Whose writes no model knows, and whose requests were early data."""
    others = [record for record in records if record.counts and record.trial.server != BUILTIN]
    names = " and ".join(sorted({NAMES.get(record.trial.server, record.trial.server)
                                 for record in others}))
    return [*([f"In which writes {names} sends is not known, so {len(others)} of {len(records)}"
               " trials have no model: they are verified by window, RTT, bandwidth, losses,"
               f" retransmissions and the received bytes{_over_quic(others)}."] if others else []),
            *_early(records)]


def _early(records: Sequence[Record]) -> list[str]:
    """How many requests were early data."""
    taken = [record.accepted_early_bytes or 0 for record in records
             if record.counts and record.trial.early_data_bytes]
    sizes = " to ".join(map(str, sorted({min(taken), max(taken)}))) if taken else ""
    return [f"The requests of {len(taken)} of {len(records)} trials were early data (0-RTT),"
            f" {sizes} bytes: they left with the client's hello, and the server took them."
            ] if taken else []


def _over_quic(records: Sequence[Record]) -> str:
    """How those over HTTP/3 are verified instead; "" where there are none."""
    count = sum(record.trial.http == HTTP_3 for record in records)
    return (f"; over QUIC ({count}), whose window nobody can see and no route sets, by the"
            " RTT, bandwidth, losses and sizes of their datagrams" if count else "")
