"""The JSON that workers read and write: its keys and their types.

Which keys are used depends on the bench, the client and the server. What a worker writes has these
types once testbed/observations.py has checked it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

HOST, UML = "host", "uml"  # the names of the engines
# Kinds of benches of pages, by their client, and the names of the clients.
BROWSED_PAGE = "browsed page"
LIBCURL, CHROMIUM = "libcurl", "chromium"
BROWSER_MEMORY_MB = 1024  # of its guest: a browser takes some 300, and its page what it allocates
# Libraries in a worker's folder, where there are some (testbed/hosts/*.c).
FORK_SERVER, KERNEL_RANDOM = "fork_server.so", "kernel_random.so"
BROWSER_RANDOM, BROWSER_CLOCK = "browser_random.so", "browser_clock.so"


class Tls(TypedDict):
    """Settings of TLS (setting.tls)."""

    chain_bytes: int
    signature: str
    intermediates: int
    tickets: int
    resumed: int
    early_data_bytes: int
    record_bytes: int
    buffer_bytes: int
    key_share: str
    apart_s: int  # from one connection to the next


class OwnServer(TypedDict):
    """The user's own server (setting.server.OwnServer)."""

    command: list[str]
    ready: str
    name: str
    ca: str
    folders: list[str]


class Traffic(TypedDict):
    """The traffic of one client of a load run (testbed/hosts/load_client.py)."""

    arrivals_per_s: float
    connections: int
    sizes: Sequence[Sequence[float]]
    seed: int


class Options(TypedDict, total=False):
    """Other options of the star's routes (testbed.network.links.RouteOptions)."""

    rto_min_ms: int
    quickack: bool
    advertised_mss: int
    client_initcwnd: int
    client_congestion_control: str


class NeededOfJob(TypedDict):
    """The keys of every job."""

    kind: str  # of its bench
    id: str
    deadline_s: float
    # Path.to_json of net.link; of a load run the fields of testbed.network.shaping.DumbbellLinks.
    network: Mapping[str, Any]
    congestion_control: str


class Job(NeededOfJob, total=False):
    """One trial, as a worker reads it. Windows in segments."""

    # Its guest.
    alone: bool  # it has a kernel of its own
    seed: int  # of what its guest draws at random, by default 0
    guest_s: float  # an estimate of how long its guest computes
    system: str  # whose programs run
    kernel: str  # of its guest, by its name
    module_parameters: Sequence[str]  # of that kernel, NAME=VALUE each

    # TCP and hosts.
    initcwnd: int
    client_initcwnd: list[int]  # of load runs, by client, in the place of initcwnd
    initrwnd: int
    options: Options
    buffers: Mapping[str, str]  # sysctls that limit them, by name
    host_sysctls: Mapping[str, str]  # of both hosts, in place of the run's
    sysctls: Mapping[str, str]  # of the server alone
    arp_ms: int

    # What fetches over TCP, and from what.
    client: str
    server: str  # other than server.py
    own: OwnServer
    http: str
    tls: Tls
    paths: Sequence[str]  # what the client fetches, in order
    think_s: Sequence[float]  # its pauses before each of them
    request_bytes: int  # of the body of each request
    window_bytes: int  # the largest window that the client offers, 0 for no limit

    # Of a page (testbed/hosts/page_client.py).
    connections: int
    objects: Sequence[Sequence[float]]
    certificates: Sequence[int]  # over TLS, by host the first host that has the same one
    site: str  # in a browser, the digest of the recording (testbed/site_store.py)
    phase_ms: float  # after a frame of the browser, when the load begins
    filmed: bool  # whether pictures of it are kept

    # Of a load.
    servers: int
    duration_s: float
    traffic: Sequence[Traffic]


# By direction, "to_client" and "to_server", then by cause, "queue" and "random": dropped packets.
Drops = Mapping[str, Mapping[str, int]]


class ClientSocket(TypedDict):
    """The socket of a client that uploads."""

    initial_window: int  # segments, before the first request
    congestion_control: str
    mss: int
    retransmissions: int
    request_bytes: int
    request_sha256: str  # of the last request's body


class Fetch(TypedDict, total=False):
    """What the client reports of one transfer (client.py). Times in ms."""

    ok: bool
    error: str
    size: int
    sha256: str
    port: int
    connect_ms: float | None
    appconnect_ms: float | None
    first_byte_ms: float | None
    total_ms: float | None
    exit_status: int | None
    http_status: int | None
    http_version: str
    early_data_bytes: int
    socket: ClientSocket  # of a request with a body, as the client's kernel reports it


class Download(TypedDict):
    """What the client reports of one object of a page (testbed/hosts/page_client.py). Times in ms.
    """

    ok: bool
    error: str
    size: int
    sha256: str
    port: int
    connects: int
    header_bytes: int
    named_ms: float | None
    start_ms: float | None
    first_byte_ms: float | None
    end_ms: float | None


class BrowserRequest(TypedDict):
    """What a browser reports of one request (testbed/hosts/browser/client.py). Times in ms."""

    url: str
    method: str
    kind: str
    priority: str
    status: int
    protocol: str
    connection: int
    server_port: int
    start_ms: float | None
    connect_ms: float | None
    sent_ms: float | None
    first_byte_ms: float | None
    end_ms: float | None
    content_bytes: int
    wire_bytes: int
    sha256: str
    cached: bool
    failure: str


class BrowserLoad(TypedDict):
    """What a browser reports of one load. Times in ms after begun_ns."""

    begun_ns: int  # since the epoch
    content_loaded_ms: float | None
    load_ms: float | None
    paint_ms: float | None
    largest_paint_ms: float | None
    phase_ms: float  # how long before begun_ns a frame was due
    dialogs: int
    requests: Sequence[BrowserRequest]


class TlsReport(TypedDict):
    """What the server reports of a handshake (testbed.hosts.tls.Tls.report). Sizes in bytes."""

    version: str | None
    cipher: str
    group: str
    resumed: bool
    library: str
    hello_bytes: int
    finished_bytes: int
    flight: Sequence[int]
    tickets: Sequence[int]
    response: Sequence[int]
    window: int


class Response(TypedDict, total=False):
    """What a server reports of one response (server.py); windows in segments, times in ms.

    Of another server (testbed/servers/external.py) it has server, client_port, sha256, fields and
    samples; and of its socket, before anything was acknowledged, initial_window, mss,
    congestion_control, first_buffer_bytes, pacing_bytes_per_s and is_pacing_limited.
    """

    event: str
    connection: int
    path: str
    number_on_connection: int
    client_port: int
    initial_window: int | None
    mss: int | None
    sha256: str
    error: str
    request_bytes: int  # of the request's head
    request_body_bytes: int  # of its body, if it has one
    request_sha256: str  # of its body
    header_bytes: int
    body_bytes: int
    latency_ms: float
    min_rtt_ms: float
    retransmissions: int
    final_window: int
    congestion_control: str
    reordering: int
    fixed_send_buffer: bool
    first_buffer_bytes: int
    send_buffer_bytes: int
    has_nagle: bool
    pacing_bytes_per_s: int
    is_pacing_limited: bool
    tls: TlsReport
    server: str
    fields: Sequence[str]  # the names of a sample's values
    samples: Sequence[Sequence[int]]  # (acknowledged bytes, received bytes, window)


class CapturePlace(TypedDict, total=False):
    """Where the packets of a trial lie in a capture."""

    offset: int
    bytes: int
    packets: int


class Observation(TypedDict, total=False):
    """What was observed of one trial."""

    trial: str
    started_at: float  # by the worker's clock
    received_at: float  # by that of the engine, which adds it
    duration_s: float
    error: str
    skipped: str
    captures: Mapping[str, CapturePlace]
    files: Mapping[str, str]
    drops: Drops
    # Over TLS the records that the server sent (testbed/worker/tls_streams.py).
    records: Sequence[tuple[int, Sequence[tuple[int, int]]]]

    # Of a fetch.
    fetch: Fetch
    server: Response

    # Of a trace.
    fetches: Sequence[Fetch]
    responses: Sequence[Response]  # and of a page the first one on each connection

    # Of a page.
    objects: Sequence[Download]
    session_ports: Sequence[int]  # the client's, of the connections whose sessions it resumed
    # With several certificates, the client's port of each connection and what the certificate that
    # it got is for, in OpenSSL's words.
    certificates: Sequence[tuple[int, str]]
    libcurl: str  # its version
    browser: str  # its version
    load: BrowserLoad
    served: Sequence[Sequence[Any]]  # by a recorded site (testbed/hosts/replay/backend.py)

    # Of a load.
    ended_servers: Sequence[int]  # the numbers of those that have died


class Line(Observation, total=False):
    """What a worker writes: a trial's observation, or a stage that it has reached."""

    stage: str
    facts: Mapping[str, object]
    reason: str


def trials_file(number: int) -> str:
    """The name of the file with a worker's first trials (number 1), or of those given later."""
    return f"trials{number}.jsonl"


@dataclass(frozen=True)
class ObservedTrial:
    """All that comes back from one trial: the worker's observation, packets and files."""

    trial_id: str
    content: Observation
    client_pcap: bytes = b""  # pcap records, without the file's header
    server_pcap: bytes = b""
    files: Mapping[str, bytes] = field(default_factory=dict)  # other files of its bench, by name


def started_at(observation: Observation) -> str:
    """When a trial was measured, ISO 8601, UTC; "" if not known.

    By the engine's clock: in a guest each trial starts at the same date.
    """
    from datetime import datetime, timezone  # not for guests, which import this module, too
    at_s = observation.get("received_at", observation.get("started_at"))
    if at_s is None:
        return ""
    return datetime.fromtimestamp(at_s, timezone.utc).isoformat(timespec="milliseconds")
