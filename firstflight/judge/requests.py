"""Checks how long a client's requests are: its headers are known, except for a version's digits.

A longer request takes longer on a slow uplink. Where the model of TCP does not judge, no other
check would see that; where it does, it takes the length from the packets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from firstflight.base.comparison import Comparison
from firstflight.testbed.hosts.tls_records import RECORD_OVERHEAD_BYTES

# The headers of our clients besides Host and what a connection needs.
_CURL = "User-Agent: curl/\r\nAccept: */*\r\n"
HEADERS = {"curl": _CURL, "libcurl": _CURL,
           "wget": "User-Agent: Wget/\r\nAccept: */*\r\nAccept-Encoding: identity\r\n"}
_KEPT = {"wget": "Connection: Keep-Alive\r\n"}
_CLOSES = "Connection: close\r\n"
CLOSE_NOTIFY_BYTES = 2 + RECORD_OVERHEAD_BYTES  # an alert
# Over HTTP/2 a client of curl's library begins with its preface, its settings and a larger window,
# and acknowledges the server's settings (RFC 9113, 3.4 and 6.5); at the end it sends GOAWAY.
_AROUND_REQUESTS_BYTES = (24 + 27 + 13) + 9 + 17 + 3 * RECORD_OVERHEAD_BYTES
# A frame of headers has a head, an index or two bytes before each of six fields, and an Accept.
_AROUND_FIELDS_BYTES = 9 + 2 * 6 + 3
LEAST_VERSION, MOST_VERSION = len("1.2.3"), len("10.11.12")


def request_bytes(url: str, client: str, closes: bool, body_bytes: int = 0) -> tuple[int, int]:
    """The least and the most bytes of a request's head over HTTP/1.1.

    closes: whether the connection ends behind the request. body_bytes: of its body; 0 for GET.
    """
    parts = urlsplit(url)
    path = parts.path
    if parts.query:
        path += f"?{parts.query}"
    method, length = "GET", ""
    if body_bytes:
        method, length = "POST", f"Content-Length: {body_bytes}\r\n"
    connection = _CLOSES if closes else _KEPT.get(client, "")
    text = (f"{method} {path} HTTP/1.1\r\nHost: {parts.netloc}\r\n{HEADERS[client]}"
            f"{connection}{length}\r\n")
    return len(text) + LEAST_VERSION, len(text) + MOST_VERSION


def compare_length(observed: int, expected: tuple[int, int]) -> Iterator[Comparison]:
    """Compare the bytes of one request, or of several."""
    least, most = expected
    yield Comparison(least <= observed <= most, f"{observed} bytes", f"{least} to {most}")


def most_bytes_over_http_2(fields: Iterable[tuple[str, str, str]]) -> int:
    """The most bytes of all requests of a connection over HTTP/2, in records of TLS.

    fields: of each request its path, its host and the name of the client. Headers are compressed,
    so that none is longer than its text.
    """
    most = _AROUND_REQUESTS_BYTES + CLOSE_NOTIFY_BYTES
    for texts in fields:
        most += RECORD_OVERHEAD_BYTES + _AROUND_FIELDS_BYTES + sum(map(len, texts))
    return most
