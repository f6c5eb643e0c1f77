"""A connection's window over time: the samples of TCP_INFO that server.py took."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, fields

from firstflight.base.errors import FirstFlightError

WINDOW_FILE = "window.csv"  # as engines name it
# TCP_CA_Open: no loss is being recovered from; by fast retransmission; by a timeout.
OPEN, RECOVERY, LOSS = 0, 3, 4
LEAST_RTO_US = 1000  # a tick of the kernel's clock at HZ = 1000: no timer is shorter
INFINITE = 0x7FFFFFFF  # TCP_INFINITE_SSTHRESH


@dataclass(frozen=True)
class WindowSample:
    """What TCP knew at one time, as server.py's SAMPLE_FIELDS has it.

    time_ns: since the epoch, the clock of the captures. state: of congestion
    control, TCP_CA_Open (0) to TCP_CA_Loss (4). Windows and counts in
    segments. app_limited: whether the last sending was limited by the
    application. notsent_bytes: in the send buffer, not sent yet.
    """

    time_ns: int
    state: int
    cwnd: int
    ssthresh: int
    unacked: int
    sacked: int
    lost: int
    retransmitted: int
    rtt_us: int
    rto_us: int
    total_retransmissions: int
    app_limited: int
    notsent_bytes: int
    mss: int
    send_window_bytes: int

    @property
    def in_flight(self) -> int:
        """tcp_packets_in_flight(): outstanding, less what has left the network."""
        return self.unacked - self.sacked - self.lost + self.retransmitted


def limit(ssthresh: int) -> str:
    """A slow start threshold as people write it."""
    return "∞" if ssthresh == INFINITE else str(ssthresh)


FIELDS = tuple(column.name for column in fields(WindowSample))


class WindowError(FirstFlightError):
    """A file of samples is not what it should be."""


def _number(text: str) -> int:
    """A number of the kernel's, which is never negative or beyond 63 bits. Raises ValueError."""
    number = int(text)
    if not 0 <= number < 1 << 63:
        raise ValueError(f"{text[:40]} is none of a kernel's")
    return number


def parse(content: bytes, name: str) -> tuple[WindowSample, ...]:
    """The samples of a window.csv, one at least. Raises WindowError naming it."""
    try:
        rows = csv.reader(io.StringIO(content.decode("ascii")))
        if tuple(next(rows, ())) != FIELDS:
            raise WindowError(f"{name}: its columns are not those of a window's samples")
        samples = tuple(WindowSample(*map(_number, row)) for row in rows)
    except (TypeError, ValueError, csv.Error) as error:
        raise WindowError(f"{name}: a row is not one of numbers: {error}") from error
    if not samples:
        raise WindowError(f"{name}: holds no sample of the window")
    if min(sample.rto_us for sample in samples) < LEAST_RTO_US:
        raise WindowError(f"{name}: a retransmission timeout is shorter than a tick")
    return samples
