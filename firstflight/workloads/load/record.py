"""LoadRecord, and the connections of a load run.

Connections that failed, or were open when the run ended, always count: percentiles take them as the
longest. The file connections.csv.gz of a run has all connections, with the columns of clients and
servers. Here they are arrays, since there are tens of thousands.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from firstflight.base.errors import FirstFlightError
from firstflight.base.inflated import inflate
from firstflight.judge.shared_evidence import ConnectionEvidence, SharedEvidence
from firstflight.runs.results.records import Record
from firstflight.testbed.messages import ObservedTrial
from firstflight.testbed.observations import FILE_BYTES
from firstflight.wire.exchange import Exchange, read_exchanges
from firstflight.workloads.load.traffic import wire_bytes
from firstflight.workloads.load.trial import LoadTrial

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Numbers = NDArray[numpy.float64]

MOST_COUNTED = 1e15  # the largest number in a run's files
MOST_S = 1e6  # the largest time in them
FILE = "connections.csv.gz"
QUEUE_FILE = "bottleneck.csv"
OK, FAILED, OPEN = "ok", "failed", "open"  # how a connection ended
ENDS = (OK, FAILED, OPEN)
# The columns of connections.csv.gz; those of BY_SERVER are the servers'.
BY_SERVER = ("initial_window", "first_flight", "sent_bytes", "retransmitted_bytes", "min_rtt_ms")
COLUMNS = ("host", "arrival_s", "connect_ms", "total_ms", "asked_bytes", "got_bytes", "end",
           *BY_SERVER, "error")


class ConnectionsError(FirstFlightError):
    """The records of a run's connections are damaged."""


@dataclass(frozen=True)
class Connections:
    """The connections of a run in order of arrival, as arrays of equal length."""

    host: Numbers  # the client's number, from 0
    arrival_s: Numbers
    connect_ms: Numbers  # from the SYN to the end of the handshake; nan where there was none
    total_ms: Numbers  # from the SYN to the last byte of the response; nan where there was none
    asked_bytes: Numbers
    got_bytes: Numbers
    end: Numbers  # index in ENDS
    # The server's columns, nan for connections that never reached it.
    initial_window: Numbers
    first_flight: Numbers
    sent_bytes: Numbers
    retransmitted_bytes: Numbers
    min_rtt_ms: Numbers

    def __len__(self) -> int:
        return len(self.host)

    def select(self, chosen: NDArray[numpy.bool_]) -> Connections:
        """The connections for which `chosen` is true; it has a value for each connection."""
        return Connections(*(getattr(self, name)[chosen] for name in COLUMNS[:-1]))

    def counted(self, between_s: tuple[float, float]) -> Connections:
        """The connections that arrived between two times."""
        return self.select((self.arrival_s >= between_s[0]) & (self.arrival_s < between_s[1]))

    def select_hosts(self, hosts: set[int]) -> Connections:
        """The connections of these clients."""
        import numpy
        return self.select(numpy.isin(self.host, sorted(hosts)))

    def ended(self, end: str) -> Connections:
        """The connections with this end, one of ENDS."""
        return self.select(self.end == ENDS.index(end))

    @property
    def retransmission_percent(self) -> float:
        """Retransmitted bytes over unique bytes, as the deck's "Retrans. %"."""
        import numpy
        retransmitted = float(numpy.nansum(self.retransmitted_bytes))
        unique = float(numpy.nansum(self.sent_bytes)) - retransmitted
        return retransmitted / unique * 100 if unique else 0.0

    def percentile_of_all_ms(self, percentile: float) -> float | None:
        """A percentile of the completion times of all connections, each of the same weight.

        Those that never completed are the longest; None where the percentile is one of them. For
        transfers that completed, with weights, there is base.stats.weighted_quantile.
        """
        import numpy
        if not len(self):
            return None
        times = numpy.where(self.end == ENDS.index(OK), self.total_ms, numpy.inf)
        value = float(numpy.percentile(times, percentile, method="lower"))
        return value if numpy.isfinite(value) else None


def join_rows(files: Mapping[str, bytes]) -> bytes:
    """The rows of client<n>.csv and server<n>.csv as one file, ordered by arrival, gzipped.

    Rows of client and server are joined by their id. The file has no time stamp, so equal runs give
    equal bytes.
    """
    served: dict[str, dict[str, str]] = {}
    for name, content in files.items():
        if name.startswith("server"):
            served.update((row["id"], row) for row in _rows(content))

    rows: list[dict[str, str | int]] = []
    for name, content in files.items():
        if not name.startswith("client"):
            continue
        host = int(name.removeprefix("client").removesuffix(".csv")) - 1
        for row in _rows(content):
            server = served.get(row["id"], {})
            by_server = {column: server.get(column, "") for column in BY_SERVER}
            rows.append({**row, "host": host, **by_server})
    rows.sort(key=lambda row: (float(row["arrival_s"]), row["host"]))

    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return gzip.compress(text.getvalue().encode(), compresslevel=6, mtime=0)


def parse_connections(content: bytes, where: str = FILE) -> Connections:
    """Read what `join_rows` wrote, as arrays. Raises ConnectionsError where it is damaged."""
    import numpy
    try:
        lines = inflate(content, FILE_BYTES).decode("utf-8").splitlines()
        if not lines or tuple(lines[0].split(",")) != COLUMNS:
            raise ValueError("its columns are not this version's")
        number_of = {end: str(index) for index, end in enumerate(ENDS)}
        cells = []
        for row in csv.reader(lines[1:]):
            cells.append([number_of[cell] if column == "end" else cell or "nan"
                          for column, cell in zip(COLUMNS[:-1], row)])
        table = numpy.array(cells, dtype=float).reshape(len(cells), len(COLUMNS) - 1)
        if numpy.any(numpy.abs(table) >= MOST_COUNTED):
            raise ValueError("a number is out of range")
    except OSError as error:
        raise _damaged(where, error.strerror) from error
    except (ValueError, KeyError, csv.Error) as error:
        raise _damaged(where, error) from error
    return Connections(*table.T)


def _damaged(where: str, why: object) -> ConnectionsError:
    """The error of a damaged file."""
    return ConnectionsError(f"{where}: is damaged ({why}); measure again with --fresh")


@dataclass(frozen=True)
class Bottleneck:
    """The bottleneck's counters over time, as arrays of equal length."""

    time_s: Numbers
    bytes: Numbers
    packets: Numbers
    drops: Numbers
    queue_packets: Numbers

    def between(self, between_s: tuple[float, float]) -> Bottleneck:
        """The samples between two times, both included."""
        slack_s = 1e-3
        chosen = ((self.time_s >= between_s[0] - slack_s)
                  & (self.time_s <= between_s[1] + slack_s))
        return Bottleneck(*(getattr(self, name)[chosen] for name in QUEUE_COLUMNS))


QUEUE_COLUMNS = ("time_s", "bytes", "packets", "drops", "queue_packets")


def read_bottleneck(content: bytes, where: str = QUEUE_FILE) -> Bottleneck:
    """Read the bottleneck's counters. Raises ConnectionsError where they are damaged."""
    import numpy
    try:
        rows = []
        for row in _rows(content):
            rows.append([float(row[name]) for name in QUEUE_COLUMNS])
        table = numpy.array(rows).reshape(len(rows), len(QUEUE_COLUMNS))
        is_in_range = numpy.all((table >= 0) & (table < MOST_COUNTED))
        if not is_in_range or numpy.any(table[:, 0] > MOST_S):
            raise ValueError("a number is out of range")
    except (ValueError, KeyError, TypeError, csv.Error) as error:
        raise _damaged(where, error) from error
    return Bottleneck(*table.T)


def _rows(content: bytes) -> list[dict[str, str]]:
    """The rows of a CSV file, each by the names of columns."""
    return list(csv.DictReader(io.StringIO(content.decode("utf-8"))))


# The record ------------------------------------------------------------------------

PERCENTILES = (10, 25, 50, 75, 90, 95, 99, 99.9)
# TCP_TIMEOUT_INIT: a handshake that takes so long had a retransmission, after which TCP begins with
# a window of one segment (tcp_init_transfer; RFC 5681, 3.1).
REPEATED_MS = 1000.0
MOST_HEAD_BYTES = 64  # of what load_server.py writes before a body


def awaited_by_client(exchange: Exchange, most_bytes: int) -> tuple[int, int]:
    """How many bytes have to come before a connection's client is woken: the least and the most.

    load_client.py is woken once the body of its response could be there. Packets show the length of
    a response only where all of it has left. Otherwise it may be as long as the longest response,
    most_bytes.
    """
    from_server = [segment for segment in exchange.at_server if segment.to_client]
    sent_bytes = max((segment.end - 1 for segment in from_server), default=0)
    least_bytes = max(0, sent_bytes - MOST_HEAD_BYTES)
    has_ended = any(segment.is_fin for segment in from_server)
    return least_bytes, sent_bytes if has_ended else max(most_bytes, least_bytes)


@dataclass(frozen=True)
class LoadEvidence:
    """What was observed of one run."""

    trial: LoadTrial
    everything: Connections  # all connections
    bottleneck: Bottleneck  # its samples during the counted time
    flights: Mapping[str, list[int]]  # captured first flights in segments, by client address
    ended_servers: tuple[int, ...]  # numbers of servers that died
    sampled: tuple[Exchange, ...] = ()  # the captured connections
    # Of all hosts: those of the scenario and the trial.
    sysctls: Mapping[str, str] = field(default_factory=dict)
    # Whether time was virtual and the kernel's source is unchanged, as in SharedEvidence.
    is_exact: bool = True

    @classmethod
    def gather(cls, trial: LoadTrial, observed: ObservedTrial, connections: bytes,
               sysctls: Mapping[str, str], is_exact: bool) -> LoadEvidence:
        """The evidence of a run. Raises ConnectionsError and CaptureError.

        connections: what join_rows() wrote. sysctls: the scenario's.
        """
        exchanges = read_exchanges(observed.client_pcap, observed.server_pcap)
        bottleneck = read_bottleneck(observed.files[QUEUE_FILE])
        return cls(trial, parse_connections(connections),
                   bottleneck=bottleneck.between(trial.counted_s),
                   flights=wire_flights(exchanges),
                   ended_servers=tuple(observed.content.get("ended_servers", ())),
                   sampled=tuple(exchanges.values()), sysctls=trial.host_settings(sysctls),
                   is_exact=is_exact)

    @property
    def shared(self) -> SharedEvidence:
        """The evidence for the checks that all workloads share: the sampled connections."""
        connections = []
        for exchange in self.sampled:
            awaited_bytes = awaited_by_client(exchange, self.trial.most_bytes)
            connections.append(ConnectionEvidence(exchange, awaited_bytes=awaited_bytes))
        return SharedEvidence(
            self.trial, connections, client_sysctls=self.sysctls, server_sysctls=self.sysctls,
            is_exact=self.is_exact)

    @cached_property
    def counted(self) -> Connections:
        """The connections that arrived during the counted time."""
        return self.everything.counted(self.trial.counted_s)

    @cached_property
    def done(self) -> Connections:
        """The counted connections that completed."""
        return self.counted.ended(OK)

    @cached_property
    def hit(self) -> Connections:
        """The completed connections that retransmitted."""
        return self.done.select(self.done.retransmitted_bytes > 0)

    @cached_property
    def smooth(self) -> Connections:
        """All connections without a repeated handshake."""
        is_repeated = self.everything.connect_ms >= REPEATED_MS  # False where there was none (nan)
        return self.everything.select(~is_repeated)

    def grown(self, counter: str) -> float:
        """The increase of a counter of the bottleneck."""
        samples = getattr(self.bottleneck, counter)
        return float(samples[-1] - samples[0])

    @property
    def utilisation(self) -> float | None:
        """The bottleneck's throughput as a share of its rate; None with fewer than two samples."""
        if len(self.bottleneck.time_s) < 2:
            return None
        return self.grown("bytes") / (self.trial.bandwidth_kbps * 125 * self.grown("time_s"))

    @property
    def drops(self) -> int | None:
        """Packets that the bottleneck dropped; None with fewer than two samples."""
        return round(self.grown("drops")) if len(self.bottleneck.time_s) > 1 else None

    @property
    def drop_percent(self) -> float | None:
        """Drops in percent of the packets that came to the bottleneck; None without `drops`."""
        if self.drops is None:
            return None
        came = self.grown("packets") + self.drops
        return self.drops / came * 100 if came else 0.0

    @property
    def queue_packets(self) -> Numbers:
        """The samples of the queue; empty where there are fewer than two."""
        packets = self.bottleneck.queue_packets
        return packets if len(packets) > 1 else packets[:0]

    @property
    def on_wire(self) -> list[int]:
        """Sizes in segments of all captured first flights."""
        return [segments for host in self.flights.values() for segments in host]


def wire_flights(exchanges: Mapping[tuple[str, int], Exchange]) -> dict[str, list[int]]:
    """Sizes in segments of the captured first flights, by client address.

    Only connections that lost nothing are among them: a timer's retransmission before the first
    acknowledgement is no part of a flight.
    """
    flights: dict[str, list[int]] = {}
    for (address, _), exchange in exchanges.items():
        lossless = not (exchange.lost_to_client or exchange.retransmissions or exchange.probes
                        or exchange.handshake_retransmissions)
        if lossless and exchange.first_flight:
            flights.setdefault(address, []).append(len(exchange.first_flight))
    return flights


def percentile_column(percentile: float) -> str:
    """The column of a percentile: p50_ms, p999_ms."""
    return f"p{percentile}_ms".replace(".", "")


def whole_numbers(numbers: Iterable[float]) -> str:
    """The distinct numbers without nan as text, ascending, such as "3 10"."""
    return " ".join(map(str, sorted({int(number) for number in numbers if number == number})))


def _mean(numbers: Numbers) -> float | None:
    """The mean; None without a number."""
    return float(numbers.mean()) if len(numbers) else None


@dataclass(frozen=True)
class LoadRecord(Record):
    """One load run. Times in ms, over the connections that arrived while it counts.

    arrivals: connections that arrived.
    completed, failed, unfinished: those that completed, failed, or were open at the end.
    mean_ms: mean completion time (UCT: SYN to last byte) of the completed ones.
    mean_transfer_ms: the same without the handshake.
    p10_ms, p25_ms, p50_ms, p75_ms, p90_ms, p95_ms, p99_ms, p999_ms: percentiles of the completion
        time over all arrivals, empty where one that never completed stands there.
    retransmission_percent: retransmitted bytes over unique bytes.
    hit_percent: connections that retransmitted. hit_mean_ms: their mean completion time.
    offered_load: what the arrivals would send without loss, as a part of the bottleneck.
    utilisation: what left the bottleneck, by its own counters.
    drops: packets dropped at the bottleneck. drop_percent: the same as a share of those that came.
    queue_mean_packets: the queue's mean length, sampled ten times a second.
    queue_max_packets: its largest length.
    repeated_handshakes: connections that lost a SYN or a SYN-ACK.
    seen_initcwnd: initial windows by TCP_INFO at accept, "3" or "3 10", without those of repeated
        handshakes.
    seen_first_flight: the same after the first write.
    wire_connections: connections whose packets were captured. wire_first_flight: segments before
        the first acknowledgement of data, in them.
    """

    COMPARED: ClassVar[str] = "mean_ms"
    trial: LoadTrial
    _: KW_ONLY
    arrivals: int | None = None
    completed: int | None = None
    failed: int | None = None
    unfinished: int | None = None
    mean_ms: float | None = None
    mean_transfer_ms: float | None = None
    p10_ms: float | None = None
    p25_ms: float | None = None
    p50_ms: float | None = None
    p75_ms: float | None = None
    p90_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    p999_ms: float | None = None
    retransmission_percent: float | None = None
    hit_percent: float | None = None
    hit_mean_ms: float | None = None
    offered_load: float | None = None
    utilisation: float | None = None
    drops: int | None = None
    drop_percent: float | None = None
    queue_mean_packets: float | None = None
    queue_max_packets: int | None = None
    repeated_handshakes: int | None = None
    seen_initcwnd: str = ""
    seen_first_flight: str = ""
    wire_connections: int | None = None
    wire_first_flight: str = ""


def record_of(run: LoadEvidence) -> LoadRecord:
    """What was measured of a run, without a verdict."""
    counted, done, hit = run.counted, run.done, run.hit
    offered_bytes = sum(wire_bytes(size, run.trial.mss) for size in counted.asked_bytes)
    queue = run.queue_packets
    return LoadRecord(
        run.trial, True,
        arrivals=len(counted),
        completed=len(done),
        failed=len(counted.ended(FAILED)),
        unfinished=len(counted.ended(OPEN)),
        mean_ms=_mean(done.total_ms),
        mean_transfer_ms=_mean(done.total_ms - done.connect_ms),
        p10_ms=counted.percentile_of_all_ms(10),
        p25_ms=counted.percentile_of_all_ms(25),
        p50_ms=counted.percentile_of_all_ms(50),
        p75_ms=counted.percentile_of_all_ms(75),
        p90_ms=counted.percentile_of_all_ms(90),
        p95_ms=counted.percentile_of_all_ms(95),
        p99_ms=counted.percentile_of_all_ms(99),
        p999_ms=counted.percentile_of_all_ms(99.9),
        retransmission_percent=counted.retransmission_percent,
        hit_percent=len(hit) / len(done) * 100 if len(done) else None,
        hit_mean_ms=_mean(hit.total_ms),
        offered_load=offered_bytes / (run.trial.bandwidth_kbps * 125 * run.trial.counted_span_s),
        utilisation=run.utilisation,
        drops=run.drops,
        drop_percent=run.drop_percent,
        queue_mean_packets=_mean(queue),
        queue_max_packets=round(float(queue.max())) if len(queue) else None,
        repeated_handshakes=len(run.everything) - len(run.smooth),
        seen_initcwnd=whole_numbers(run.smooth.initial_window),
        seen_first_flight=whole_numbers(run.smooth.first_flight),
        wire_connections=len(run.on_wire),
        wire_first_flight=whole_numbers(run.on_wire))
