"""The connections of a load run: clients' and servers' records joined, one row each.

Kept as connections.csv.gz in the run's files; arrays here, since there are
tens of thousands.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lab.core.errors import FirstFlightError

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Numbers = NDArray[numpy.float64]

MOST_COUNTED, MOST_S = 1e15, 1e6  # of any number of these files, and of their times
FILE = "connections.csv.gz"
QUEUE_FILE = "bottleneck.csv"
OK, FAILED, OPEN = "ok", "failed", "open"
ENDS = (OK, FAILED, OPEN)
BY_SERVER = ("initial_window", "first_flight", "sent_bytes", "retransmitted_bytes", "min_rtt_ms")
COLUMNS = ("host", "arrival_s", "connect_ms", "total_ms", "asked_bytes", "got_bytes", "end",
           *BY_SERVER, "error")


class ConnectionsError(FirstFlightError):
    """The records of a run's connections are damaged."""


@dataclass(frozen=True)
class Connections:
    """The connections of a run, arrays of one length, in order of arrival.

    host: the client's number, from 0. connect_ms, total_ms: from the SYN to
    the end of the handshake, to the last byte of the response; nan where
    there was none. end: place in ENDS. What the server never saw is nan.
    """

    host: Numbers
    arrival_s: Numbers
    connect_ms: Numbers
    total_ms: Numbers
    asked_bytes: Numbers
    got_bytes: Numbers
    end: Numbers
    initial_window: Numbers
    first_flight: Numbers
    sent_bytes: Numbers
    retransmitted_bytes: Numbers
    min_rtt_ms: Numbers

    def __len__(self) -> int:
        return len(self.host)

    def where(self, chosen: NDArray[numpy.bool_]) -> Connections:
        return Connections(*(getattr(self, name)[chosen] for name in COLUMNS[:-1]))

    def counted(self, between_s: tuple[float, float]) -> Connections:
        """Those that arrived in the time that counts."""
        return self.where((self.arrival_s >= between_s[0]) & (self.arrival_s < between_s[1]))

    def of_hosts(self, hosts: set[int]) -> Connections:
        import numpy
        return self.where(numpy.isin(self.host, sorted(hosts)))

    def ended(self, end: str) -> Connections:
        return self.where(self.end == ENDS.index(end))

    @property
    def retransmission_percent(self) -> float:
        """Retransmitted bytes over unique bytes, as the deck's "Retrans. %"."""
        import numpy
        again = float(numpy.nansum(self.retransmitted_bytes))
        unique = float(numpy.nansum(self.sent_bytes)) - again
        return again / unique * 100 if unique else 0.0

    def percentile_ms(self, percentile: float) -> float | None:
        """Of the completion time over all connections, those that never completed
        as the longest; None where the percentile is one of them."""
        import numpy
        if not len(self):
            return None
        times = numpy.where(self.end == ENDS.index(OK), self.total_ms, numpy.inf)
        value = float(numpy.percentile(times, percentile, method="lower"))
        return value if numpy.isfinite(value) else None


def joined(files: Mapping[str, bytes]) -> bytes:
    """The rows of client<n>.csv and server<n>.csv as one file, ordered by arrival, gzipped.

    A server's row belongs to the client's with the same id. The file has no
    time stamp: two runs alike are alike to the byte.
    """
    served = {row["id"]: row for name, content in files.items() if name.startswith("server")
              for row in _rows(content)}
    rows: list[dict[str, str | int]] = []
    for name, content in files.items():
        if not name.startswith("client"):
            continue
        host = int(name.removeprefix("client").removesuffix(".csv")) - 1
        for row in _rows(content):
            server = served.get(row["id"], {})
            rows.append({**row, "host": host,
                         **{column: server.get(column, "") for column in BY_SERVER}})
    rows.sort(key=lambda row: (float(row["arrival_s"]), row["host"]))
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return gzip.compress(text.getvalue().encode(), compresslevel=6, mtime=0)


def read(content: bytes, where: str = FILE) -> Connections:
    """The reverse of `joined`, as arrays. Raises ConnectionsError where it is damaged."""
    import numpy
    try:
        lines = gzip.decompress(content).decode("utf-8").splitlines()
        if not lines or tuple(lines[0].split(",")) != COLUMNS:
            raise ValueError("its columns are not this version's")
        names = {end: str(place) for place, end in enumerate(ENDS)}
        cells = [[names[cell] if column == "end" else cell or "nan"
                  for column, cell in zip(COLUMNS[:-1], row)] for row in csv.reader(lines[1:])]
        table = numpy.array(cells, dtype=float).reshape(len(cells), len(COLUMNS) - 1)
        if numpy.any(numpy.abs(table) >= MOST_COUNTED):
            raise ValueError("a number is out of range")
    except (OSError, EOFError, zlib.error, ValueError, KeyError, csv.Error) as error:
        raise _damaged(where, error) from error
    return Connections(*table.T)


def _damaged(where: str, error: Exception) -> ConnectionsError:
    return ConnectionsError(f"{where}: is damaged ({error}); measure again with --fresh")


@dataclass(frozen=True)
class Bottleneck:
    """The bottleneck's counters over time, arrays of one length."""

    time_s: Numbers
    bytes: Numbers
    packets: Numbers
    drops: Numbers
    queue_packets: Numbers

    def between(self, between_s: tuple[float, float]) -> Bottleneck:
        """The samples of a span of time, its ends included."""
        slack_s = 1e-3
        chosen = ((self.time_s >= between_s[0] - slack_s)
                  & (self.time_s <= between_s[1] + slack_s))
        return Bottleneck(*(getattr(self, name)[chosen] for name in QUEUE_COLUMNS))


QUEUE_COLUMNS = ("time_s", "bytes", "packets", "drops", "queue_packets")


def read_bottleneck(content: bytes, where: str = QUEUE_FILE) -> Bottleneck:
    """Raises ConnectionsError where it is damaged."""
    import numpy
    try:
        rows = [[float(row[name]) for name in QUEUE_COLUMNS] for row in _rows(content)]
        table = numpy.array(rows).reshape(len(rows), len(QUEUE_COLUMNS))
        if not numpy.all((table >= 0) & (table < MOST_COUNTED)) or numpy.any(
                table[:, 0] > MOST_S):
            raise ValueError("a number is out of range")
    except (ValueError, KeyError, TypeError, csv.Error) as error:
        raise _damaged(where, error) from error
    return Bottleneck(*table.T)


def _rows(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode("utf-8"))))
