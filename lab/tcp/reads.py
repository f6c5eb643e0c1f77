"""The calls by which a client reads what has come."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

from lab.tcp.transfer import Transfer

RECORD_HEADER_BYTES = 5  # RFC 8446, 5.1


class Reads:
    """Where they may end, counted from the first byte that the server sends.

    OpenSSL reads the header of a record, then the rest of it (ssl3_read_n, without read
    ahead). The server's first messages count as one record, which nearly all of them are: the
    chain. Without TLS one call takes all.
    """

    def __init__(self, transfer: Transfer) -> None:
        secure = transfer.secure
        records = () if secure is None else (sum(secure.flight), *secure.tickets, *transfer.writes)
        self.ends = [place for end, size in zip(accumulate(records), records)
                     for place in (end - size + RECORD_HEADER_BYTES, end)]

    def first(self, begin: int, end: int) -> int:
        """How far the first call reads of what arrived at once; 0 if it reads all."""
        place = bisect_right(self.ends, begin)
        return self.ends[place] if place < len(self.ends) and self.ends[place] < end else 0
