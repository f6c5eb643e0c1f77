"""Checks what the client of a page sends: the length of each request."""

from __future__ import annotations

from collections.abc import Iterator

from firstflight.base.comparison import Comparison
from firstflight.judge.requests import CLOSE_NOTIFY_BYTES, most_bytes_over_http_2
from firstflight.setting.server import BUILTIN, HTTP_1
from firstflight.testbed.hosts.downloads import host_name
from firstflight.testbed.hosts.tls_records import RECORD_OVERHEAD_BYTES
from firstflight.testbed.network.commands import OTHER_PORT, OTHER_SECURE_PORT
from firstflight.testbed.network.links import SERVER_IP
from firstflight.workloads.page.objects import PageObject
from firstflight.workloads.page.record import PageEvidence


def request_bytes(evidence: PageEvidence, requested: PageObject) -> int:
    """The length of the request of an object over HTTP/1.1, without what TLS adds."""
    path, host, agent = _fields(evidence, requested)
    return len(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {agent}\r\nAccept: */*\r\n\r\n")


def compare_requests(evidence: PageEvidence) -> Iterator[Comparison]:
    """Compare the client's data on each connection with the requests of its objects.

    Over HTTP/1.1 each request is a segment of a known length; TLS may send another one to close the
    connection. Over HTTP/2 headers are compressed: all requests together have at most the length of
    their text.
    """
    trial = evidence.trial
    added_bytes = RECORD_OVERHEAD_BYTES if trial.is_secure else 0
    for number, connection in enumerate(evidence.connections.values(), start=1):
        requested = [trial.requested[loaded.number - 1] for loaded in connection.objects]
        sent = [segment.payload_bytes for segment in connection.requests]
        name = f"requests of connection {number}"
        if trial.http == HTTP_1:
            expected = [added_bytes + request_bytes(evidence, wanted) for wanted in requested]
            further = sent[len(expected):]
            closing = [CLOSE_NOTIFY_BYTES] if CLOSE_NOTIFY_BYTES in further else []
            yield Comparison(sent == expected + closing, _list_sizes(sent), _list_sizes(expected),
                             name)
        else:
            most = most_bytes_over_http_2(_fields(evidence, wanted) for wanted in requested)
            yield Comparison(sum(sent) <= most, f"{sum(sent)} bytes", f"at most {most}", name)


def _fields(evidence: PageEvidence, requested: PageObject) -> tuple[str, str, str]:
    """The parts of a request that vary: path, host and the client's name for itself."""
    trial = evidence.trial
    path = f"/{requested.size_bytes}"
    if requested.think_ms:
        path += f"?think_ms={requested.think_ms:g}"

    host = host_name(requested.host, trial.is_secure) if requested.host else SERVER_IP
    if trial.server != BUILTIN:
        host += f":{OTHER_SECURE_PORT if trial.is_secure else OTHER_PORT}"
    return path, host, f"curl/{evidence.observation.get('libcurl', '')}"


def _list_sizes(sizes: list[int]) -> str:
    """How many sizes there are, and the first five of them, such as "2 of 78, 81 bytes"."""
    shown = ", ".join(map(str, sizes[:5]))
    return f"{len(sizes)} of {shown}{', …' if len(sizes) > 5 else ''} bytes"
