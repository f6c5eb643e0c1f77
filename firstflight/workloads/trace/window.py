"""A connection's window over time: the samples of TCP_INFO that server.py took."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, fields

from firstflight.base.errors import FirstFlightError

WINDOW_FILE = "window.csv"  # the name by which guests return it
# States of congestion control (TCP_CA_Open, …): no recovery, by fast retransmission, by a timeout.
OPEN, RECOVERY, LOSS = 0, 3, 4
LEAST_RTO_US = 1000  # a tick of the kernel's clock at HZ = 1000: no timer is shorter
INFINITE = 0x7FFFFFFF  # TCP_INFINITE_SSTHRESH


@dataclass(frozen=True)
class WindowSample:
    """What TCP knew at one time, in the order of server.py's SAMPLE_FIELDS.

    Windows and counts are in segments.
    """

    time_ns: int  # since the epoch, by the clock of the captures
    state: int  # of congestion control, TCP_CA_Open (0) to TCP_CA_Loss (4)
    cwnd: int
    ssthresh: int
    unacked: int
    sacked: int
    lost: int
    retransmitted: int
    rtt_us: int  # smoothed
    rto_us: int
    total_retransmissions: int
    app_limited: int  # whether the application limited the last sending
    notsent_bytes: int  # in the send buffer, not sent yet
    mss: int
    send_window_bytes: int  # that the peer offers

    @property
    def in_flight(self) -> int:
        """tcp_packets_in_flight(): outstanding, less what has left the network."""
        return self.unacked - self.sacked - self.lost + self.retransmitted


def format_ssthresh(ssthresh: int) -> str:
    """A slow start threshold as text; "∞" where there is none."""
    return "∞" if ssthresh == INFINITE else str(ssthresh)


FIELDS = tuple(column.name for column in fields(WindowSample))


class WindowError(FirstFlightError):
    """A file of samples is damaged."""


def _number(text: str) -> int:
    """Read a number that the kernel gave: not negative, and below 2⁶³. Raises ValueError."""
    number = int(text)
    if not 0 <= number < 1 << 63:
        raise ValueError(f"{text[:40]} is none of a kernel's")
    return number


def parse(content: bytes, name: str) -> tuple[WindowSample, ...]:
    """The samples of a window.csv, at least one. Raises WindowError with the file's name."""
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
