"""The record of a page: one row of trials.csv. The times of its objects are in objects.csv."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property, lru_cache
from typing import ClassVar, NamedTuple, TypeVar

from firstflight.base.errors import FirstFlightError
from firstflight.judge.path import compute_deliveries, counted_drops
from firstflight.judge.records import lengths_of
from firstflight.judge.shared_evidence import Body, ConnectionEvidence, SharedEvidence
from firstflight.net.link import MANAGED
from firstflight.net.segments import MS, frames_of
from firstflight.runs.results.records import Record
from firstflight.testbed.hosts.serving import body_of
from firstflight.testbed.messages import Download, Observation, ObservedTrial, Response
from firstflight.wire.delivery.packet_path import PATH, Delivery
from firstflight.wire.exchange import Exchange, read_exchanges
from firstflight.workloads.page import crossings
from firstflight.workloads.page.crossings import Crossing
from firstflight.workloads.page.objects import fault_of
from firstflight.workloads.page.timing import ConnectionTimes, by_connection
from firstflight.workloads.page.trial import PageTrial

FILE = "objects.csv"  # of each trial: the times of its objects
MOST_FILE_MS = 1e9  # a later time in a file of objects or requests shows that it is damaged


@lru_cache(maxsize=4096)
def digest_of(size_bytes: int) -> str:
    """The SHA-256 of a body of this size, as all servers of the testbed send it."""
    return hashlib.sha256(body_of(size_bytes)).hexdigest()


@dataclass(frozen=True)
class PageEvidence:
    """What was observed of a page whose objects all arrived."""

    trial: PageTrial
    observation: Observation
    # The connections by the client's port, without those whose sessions the page resumes.
    exchanges: Mapping[int, Exchange]
    exact: bool  # whether it was measured in virtual time
    # What the path did with each packet, to the client and to the server; in virtual time only.
    path: tuple[Delivery, Delivery] | None = None
    tick_ns: int = 0  # when the kernel's clock ticked, for one of its ticks; 0 for unknown
    # The connections whose sessions the page resumes, by the client's port.
    earlier: Mapping[int, Exchange] = field(default_factory=dict)
    sysctls: Mapping[str, str] = field(default_factory=dict)  # that the scenario sets
    known_kernel: bool = True  # whether the model was checked against the kernel's TCP
    predicted: Sequence[Predicted] = ()  # by workloads.page.predicted
    load_ms: float | None = None  # when the load event fired; None without a browser

    @classmethod
    def of_captures(cls: type[Ev], trial: PageTrial, observed: ObservedTrial, exact: bool) -> Ev:
        """The evidence in a trial's captures. Raises CaptureError where one cannot be read."""
        client, server = frames_of(observed.client_pcap, observed.server_pcap)
        observation, path, tick_ns = observed.content, None, 0
        if exact:
            path = compute_deliveries(trial, client, server)
            tick_ns = round(observation.get("started_at", 0) * 1e9)

        earlier_ports = observation.get("session_ports", ())
        exchanges: dict[int, Exchange] = {}
        earlier: dict[int, Exchange] = {}
        for (_, port), exchange in read_exchanges(client, server).items():
            group = earlier if port in earlier_ports else exchanges
            group[port] = exchange
        return cls(trial, observation, exchanges, exact=exact, path=path, tick_ns=tick_ns,
                   earlier=earlier)

    @property
    def all_exchanges(self) -> dict[int, Exchange]:
        """The connections of the page, and those whose sessions it resumes; by the client's port.
        """
        return {**self.earlier, **self.exchanges}

    @property
    def missing_ports(self) -> set[int]:
        """The client's ports of connections with objects that the captures lack."""
        return {loaded["port"] for loaded in self.objects} - self.exchanges.keys()

    @property
    def objects(self) -> Sequence[Download]:
        """What the client reports of each object, in the order of the page."""
        return self.observation["objects"]

    @cached_property
    def connections(self) -> dict[int, ConnectionTimes]:
        """The connections by the client's port, in the order of their SYNs."""
        record_bytes = self.trial.record_bytes if self.trial.is_secure else 0
        return by_connection(self.objects, self.exchanges, record_bytes)

    @cached_property
    def responses(self) -> dict[int, Response]:
        """What the server or its kernel reports of each connection, by the client's port."""
        reports = self.observation.get("responses", ())
        return {report["client_port"]: report for report in reports if "client_port" in report}

    @cached_property
    def records(self) -> dict[int, list[int]]:
        """The length of each TLS record that the server sent, by the client's port."""
        return lengths_of(self.observation)

    @cached_property
    def shared(self) -> SharedEvidence:
        """The evidence for those checks that all workloads share."""
        trial = self.trial
        connections = [ConnectionEvidence(exchange) for exchange in self.earlier.values()]
        for number, (port, connection) in enumerate(self.connections.items(), start=1):
            reports = [self.responses[port]] if port in self.responses else []
            connections.append(ConnectionEvidence(
                connection.exchange, reports, where=f" of connection {number}",
                initial_window=reports[0].get("initial_window") if reports else None))

        bodies = []
        for number, (loaded, requested) in enumerate(zip(self.objects, trial.requested), start=1):
            size_bytes = requested.size_bytes
            bodies.append(Body(loaded["size"], size_bytes, size_bytes, sha256=loaded["sha256"],
                               sent_sha256=digest_of(size_bytes), where=f" of object {number}"))

        drops = counted_drops(trial, self.observation.get("drops", {}))
        return SharedEvidence(
            trial, connections, client_sysctls=self.sysctls, server_sysctls=self.sysctls,
            is_exact=self.exact and self.known_kernel, path=self.path, drops=drops, bodies=bodies)

    @cached_property
    def begun_ns(self) -> int:
        """When the first packet left the client, in ns: about when the client's times begin."""
        return min(connection.opened_ns for connection in self.connections.values())

    @cached_property
    def down(self) -> list[Crossing]:
        """The packets that reached the client."""
        return crossings.crossings_of(self.exchanges, to_client=True)

    @cached_property
    def up(self) -> list[Crossing]:
        """The packets that reached the server."""
        return crossings.crossings_of(self.exchanges, to_client=False)

    @property
    def page_ms(self) -> float:
        """When the page was there: at its load event, or with its last object."""
        if self.load_ms is not None:
            return self.load_ms
        return max(loaded["end_ms"] or 0.0 for loaded in self.objects)

    @property
    def first_screen_ms(self) -> float | None:
        """When the objects of the first screen had arrived; None where no object is marked so."""
        ends_ms = [loaded["end_ms"] or 0.0 for loaded, requested
                   in zip(self.objects, self.trial.requested) if requested.is_early]
        return max(ends_ms, default=None)

    @property
    def idle_ms(self) -> float:
        """How long the link to the client sent nothing while the page loaded, in ms."""
        return crossings.idle_ms(self.down, self.trial.bandwidth_kbps, self.begun_ns,
                                 self.begun_ns + round(self.page_ms * MS))


Ev = TypeVar("Ev", bound=PageEvidence)


class Predicted(NamedTuple):
    """An object whose end the model of TCP predicts; times in ms after its connection's SYN."""

    number: int  # in the page, from 1
    observed_ms: float
    model_ms: float


@dataclass(frozen=True)
class PageRecord(Record):
    """One page. Times in ms from the request of its document, windows in segments.

    first_byte_ms: when the document's first byte arrived.
    document_ms: when the whole document had arrived.
    first_screen_ms: when the objects that the first screen waits for had arrived; empty where none
        is marked so.
    page_ms: when the whole page had arrived; in a browser when its load event fired.
    content_loaded_ms: in a browser when DOMContentLoaded fired: the document is parsed, and its
        scripts are run.
    paint_ms: in a browser the first contentful paint.
    largest_paint_ms: in a browser the largest contentful paint. What has come is painted with the
        next frame, and frames come each 16.7 ms: means over loads at several phases of a frame say
        more than one load.
    requests: how many requests the browser made.
    not_recorded: requests that the recording has no answer to; they got status 404.
    page_bytes: bytes of all bodies.
    opened_connections: how many connections the client opened.
    seen_initcwnd: the initial windows by TCP_INFO, "10", or "3 10" where they differ.
    first_flights: segments that the server sent on each connection before the first
        acknowledgement of data, in the order of SYNs.
    queued_ms: the mean time from when an object could be requested until a connection was free.
    data_segments: segments with data that the server sent.
    retransmissions: data segments that the server had sent before.
    queue_drops: packets that the bottlenecks' queues dropped, both ways.
    random_drops: packets lost at random.
    longest_queue: the most packets at the bottleneck to the client at once.
    idle_ms: how long the link to the client sent nothing before the page had arrived.
    judged_by: "path" where each packet was judged by delay, rate and queue.
    model_objects: objects whose end the model of TCP predicts: those on connections that never
        waited behind another one's packets.
    model_deviation_ms: the largest difference of such an object from the model.
    """

    COMPARED: ClassVar[str] = "page_ms"
    ALSO_COMPARED: ClassVar[tuple[str, ...]] = (
        "first_byte_ms", "document_ms", "first_screen_ms", "content_loaded_ms", "paint_ms",
        "largest_paint_ms")
    DIFFERENCES: ClassVar[tuple[str, ...]] = ("paint_ms", "largest_paint_ms")
    trial: PageTrial
    _: KW_ONLY
    judged_by: str = ""
    first_byte_ms: float | None = None
    document_ms: float | None = None
    first_screen_ms: float | None = None
    page_ms: float | None = None
    content_loaded_ms: float | None = None
    paint_ms: float | None = None
    largest_paint_ms: float | None = None
    page_bytes: int | None = None
    requests: int | None = None
    not_recorded: int | None = None
    opened_connections: int | None = None
    seen_initcwnd: str = ""
    first_flights: str = ""
    queued_ms: float | None = None
    data_segments: int | None = None
    retransmissions: int | None = None
    queue_drops: int | None = None
    random_drops: int | None = None
    longest_queue: int | None = None
    idle_ms: float | None = None
    model_objects: int | None = None
    model_deviation_ms: float | None = None

    def validate(self) -> None:
        """Check which object names which, and the limits of a page. Raises ValueError."""
        fault = "" if self.trial.site else fault_of(
            self.trial.objects, self.trial.shared_certificates)
        if fault:
            raise ValueError(f"objects: {fault}")


def is_one_draw(record: PageRecord) -> bool:
    """Whether another RTT, by microseconds, may give quite another time.

    Settings with random losses or jitter have repeats of their own.
    """
    trial = record.trial
    # BBR draws the phase in which it probes.
    return not trial.is_random and bool(
        record.queue_drops or trial.qdisc in MANAGED or trial.is_bbr)


def record_of(evidence: PageEvidence) -> PageRecord:
    """The record of a page, before its verdict."""
    trial, objects = evidence.trial, evidence.objects
    connections = evidence.connections.values()
    drops = evidence.observation.get("drops", {}).values()
    deviations_ms = [abs(predicted.observed_ms - predicted.model_ms)
                     for predicted in evidence.predicted]

    windows = set()
    for port, report in evidence.responses.items():
        window = report.get("initial_window")
        if port in evidence.exchanges and window is not None:
            windows.add(window)

    queued_ms = 0.0
    for loaded, requested in zip(objects, trial.requested):
        waited_ms = (loaded["start_ms"] or 0.0) - (loaded["named_ms"] or 0.0)
        queued_ms += waited_ms - requested.parse_ms

    data_segments = 0
    for connection in connections:
        data_segments += sum(segment.to_client and segment.payload_bytes > 0
                             for segment in connection.exchange.at_server)
    first_flights = [len(connection.exchange.first_flight) for connection in connections]
    retransmissions = sum(len(connection.exchange.retransmissions) for connection in connections)
    return PageRecord(
        trial, True,
        judged_by=PATH if evidence.path is not None else "",
        first_byte_ms=objects[0]["first_byte_ms"],
        document_ms=objects[0]["end_ms"],
        first_screen_ms=evidence.first_screen_ms,
        page_ms=evidence.page_ms,
        page_bytes=sum(loaded["size"] for loaded in objects),
        opened_connections=len(connections),
        seen_initcwnd=" ".join(map(str, sorted(windows))),
        first_flights=" ".join(map(str, first_flights)),
        queued_ms=round(queued_ms / len(objects), 6),
        data_segments=data_segments,
        retransmissions=retransmissions,
        queue_drops=sum(dropped.get("queue", 0) for dropped in drops),
        random_drops=sum(dropped.get("random", 0) for dropped in drops),
        longest_queue=crossings.longest_queue(evidence.down, trial.path.down.delay_ms),
        idle_ms=evidence.idle_ms,
        model_objects=len(deviations_ms),
        model_deviation_ms=max(deviations_ms, default=None))


# The objects over time ----------------------------------------------------------------

class ObjectTimes(NamedTuple):
    """The times of one object, as objects.csv has them."""

    number: int
    size_bytes: int
    connection: int  # by the order of SYNs, from 1
    is_first: bool  # on its connection
    named_ms: float  # when the client knew of it
    start_ms: float  # when it was requested
    first_byte_ms: float
    end_ms: float


def file_of(evidence: PageEvidence) -> bytes:
    """objects.csv: a row for each object, in the order of the page."""
    numbers = {port: number for number, port in enumerate(evidence.connections, start=1)}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(ObjectTimes._fields)
    for number, loaded in enumerate(evidence.objects, start=1):
        times_ms = (loaded["named_ms"], loaded["start_ms"], loaded["first_byte_ms"],
                    loaded["end_ms"])
        times = [f"{at_ms or 0.0:.6f}" for at_ms in times_ms]
        writer.writerow((number, loaded["size"], numbers.get(loaded["port"], 0),
                         int(loaded["connects"] > 0), *times))
    return text.getvalue().encode("ascii")


def read_file(content: bytes, where: str) -> list[ObjectTimes]:
    """The reverse of file_of. Raises FirstFlightError where it is damaged."""
    try:
        rows = csv.DictReader(io.StringIO(content.decode("ascii")))
        objects = [ObjectTimes(
            int(row["number"]), int(row["size_bytes"]), int(row["connection"]),
            is_first=row["is_first"] == "1", named_ms=float(row["named_ms"]),
            start_ms=float(row["start_ms"]), first_byte_ms=float(row["first_byte_ms"]),
            end_ms=float(row["end_ms"])) for row in rows]
    except (UnicodeDecodeError, csv.Error, ValueError, KeyError, TypeError) as error:
        raise _damaged(where, str(error)) from error

    if not objects:
        raise _damaged(where, "it has no object")
    for times in objects:
        times_ms = times.named_ms, times.start_ms, times.first_byte_ms, times.end_ms
        if not all(0 <= at_ms < MOST_FILE_MS for at_ms in times_ms):
            raise _damaged(where, "a time is out of range")
    return objects


def _damaged(where: str, why: str) -> FirstFlightError:
    return FirstFlightError(f"{where}: is damaged ({why}); measure again with --fresh")
