"""What a worker reports of a trial, as testbed/observations.py has checked it: types of its keys.

Which keys there are depends on the bench, on the client and on the server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import TypedDict

# By direction, "to_client" and "to_server": packets that "queue" and "random" loss dropped.
Drops = Mapping[str, Mapping[str, int]]


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


class TlsReport(TypedDict):
    """What the server reports of a handshake (testbed.hosts.tls.Tls.told). Sizes in bytes."""

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

    Of another server (testbed/servers/external.py) it has server, client_port, sha256,
    initial_window, mss, fields and samples: of its socket, (acknowledged bytes, received bytes,
    window).
    """

    client_port: int
    initial_window: int | None
    mss: int | None
    sha256: str
    error: str
    request_bytes: int
    header_bytes: int
    body_bytes: int
    latency_ms: float
    min_rtt_ms: float
    retransmissions: int
    final_window: int
    tls: TlsReport
    server: str
    fields: Sequence[str]
    samples: Sequence[Sequence[int]]


class CapturePlace(TypedDict, total=False):
    """Where the packets of a trial lie in a capture."""

    offset: int
    bytes: int
    packets: int


class Observation(TypedDict, total=False):
    """One trial. fetch, server: of a bench of fetches; fetches, responses: of traces."""

    trial: str
    started_at: float
    duration_s: float
    error: str
    skipped: str
    captures: Mapping[str, CapturePlace]
    files: Mapping[str, str]
    fetch: Fetch
    server: Response
    drops: Drops
    fetches: Sequence[Fetch]
    responses: Sequence[Response]
    ended_servers: Sequence[int]


def started_at(observation: Observation) -> str:
    """When a trial started, by the measuring kernel's clock; ISO 8601, UTC; "" if not known."""
    if "started_at" not in observation:
        return ""
    started = datetime.fromtimestamp(observation["started_at"], timezone.utc)
    return started.isoformat(timespec="milliseconds")
